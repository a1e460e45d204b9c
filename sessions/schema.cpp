// SPDX-License-Identifier: Apache-2.0
#include "sessions/schema.h"

#include <array>

namespace kvatlas::sessions {

namespace {

constexpr std::array kObjects = {
    SchemaObject{"table", "meta", R"(CREATE TABLE meta(
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL,
  checksum INTEGER NOT NULL
) WITHOUT ROWID)"},
    SchemaObject{"table", "chunks", R"(CREATE TABLE chunks(
  id INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  track INTEGER NOT NULL,
  first_event INTEGER NOT NULL,
  events INTEGER NOT NULL,
  first_step INTEGER NOT NULL,
  last_step INTEGER NOT NULL,
  codec INTEGER NOT NULL,
  raw_bytes INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  data BLOB NOT NULL
))"},
    SchemaObject{"table", "keyframes", R"(CREATE TABLE keyframes(
  step INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  first_event INTEGER NOT NULL,
  state_hash INTEGER NOT NULL,
  codec INTEGER NOT NULL,
  raw_bytes INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  data BLOB NOT NULL
))"},
    SchemaObject{"table", "requests", R"(CREATE TABLE requests(
  request INTEGER PRIMARY KEY,
  title TEXT NOT NULL,
  prompt_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cached_tokens INTEGER NOT NULL,
  preemptions INTEGER NOT NULL,
  arrived_step INTEGER NOT NULL,
  arrived_ns INTEGER NOT NULL,
  admitted_step INTEGER,
  first_token_step INTEGER,
  first_token_ns INTEGER,
  finished_step INTEGER,
  finished_ns INTEGER,
  finish_reason TEXT,
  detail TEXT NOT NULL
))"},
    SchemaObject{"table", "tokens", R"(CREATE TABLE tokens(
  request INTEGER NOT NULL,
  position INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  token INTEGER NOT NULL,
  step INTEGER,
  probability REAL,
  PRIMARY KEY(request, position)
) WITHOUT ROWID)"},
    SchemaObject{"table", "pieces", R"(CREATE TABLE pieces(
  id INTEGER PRIMARY KEY,
  bytes BLOB NOT NULL,
  checksum INTEGER NOT NULL
))"},
    SchemaObject{"table", "steps", R"(CREATE TABLE steps(
  step INTEGER PRIMARY KEY,
  start_ns INTEGER NOT NULL,
  end_ns INTEGER NOT NULL,
  compute_ns INTEGER NOT NULL,
  wait_ns INTEGER NOT NULL,
  prefill_tokens INTEGER NOT NULL,
  decode_tokens INTEGER NOT NULL,
  sequences INTEGER NOT NULL,
  waiting_requests INTEGER NOT NULL,
  active_bytes INTEGER NOT NULL,
  cached_bytes INTEGER NOT NULL,
  reserved_bytes INTEGER NOT NULL,
  capacity_bytes INTEGER NOT NULL,
  used_bytes INTEGER NOT NULL,
  active_blocks INTEGER NOT NULL,
  cached_blocks INTEGER NOT NULL,
  reserved_blocks INTEGER NOT NULL,
  free_blocks INTEGER NOT NULL,
  state_hash INTEGER NOT NULL
))"},
    SchemaObject{"table", "metrics", R"(CREATE TABLE metrics(
  step INTEGER NOT NULL,
  name TEXT NOT NULL,
  value INTEGER NOT NULL,
  PRIMARY KEY(step, name)
) WITHOUT ROWID)"},
    SchemaObject{"table", "kernels", R"(CREATE TABLE kernels(
  first_step INTEGER NOT NULL,
  kernel TEXT NOT NULL,
  last_step INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  duration_ns INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  flops INTEGER NOT NULL,
  PRIMARY KEY(first_step, kernel)
) WITHOUT ROWID)"},
    SchemaObject{"view", "request_latency", R"(CREATE VIEW request_latency AS
  SELECT request, title, prompt_tokens, cached_tokens, output_tokens, preemptions, finish_reason,
         (first_token_ns - arrived_ns) / 1e6 AS time_to_first_token_ms,
         (finished_ns - first_token_ns) / 1e6 / (output_tokens - 1) AS inter_token_ms,
         (finished_ns - arrived_ns) / 1e6 AS total_ms
  FROM requests)"},
    SchemaObject{"view", "memory_over_time", R"(CREATE VIEW memory_over_time AS
  SELECT step, end_ns / 1e9 AS seconds, used_bytes / 1048576.0 AS used_mib,
         (active_bytes - used_bytes) / 1048576.0 AS waste_inside_blocks_mib,
         reserved_bytes / 1048576.0 AS reserved_mib, cached_bytes / 1048576.0 AS cached_mib,
         capacity_bytes / 1048576.0 AS capacity_mib
  FROM steps)"},
    SchemaObject{"view", "run_summary", R"(CREATE VIEW run_summary AS
  SELECT count(*) AS steps, max(end_ns) / 1e9 AS seconds,
         sum(prefill_tokens) AS prefill_tokens, sum(decode_tokens) AS decode_tokens,
         max(active_bytes + reserved_bytes) AS peak_bytes_after_steps, max(capacity_bytes) AS capacity_bytes,
         avg(1.0 * (active_bytes - used_bytes + reserved_bytes) / nullif(active_bytes + reserved_bytes, 0)) AS waste_fraction,
         sum(wait_ns) / 1e6 AS engine_waited_ms
  FROM steps)"},
    SchemaObject{"view", "request_text", R"(CREATE VIEW request_text AS
  SELECT request,
         group_concat(CASE WHEN step IS NULL THEN CAST(bytes AS TEXT) ELSE '' END, '') AS prompt,
         group_concat(CASE WHEN step IS NULL THEN '' ELSE CAST(bytes AS TEXT) END, '') AS output
  FROM (SELECT request, position, step, coalesce(bytes, x'') AS bytes
        FROM tokens LEFT JOIN pieces ON pieces.id = tokens.token ORDER BY request, position)
  GROUP BY request)"},
    SchemaObject{"view", "kernel_totals", R"(CREATE VIEW kernel_totals AS
  SELECT kernel, sum(calls) AS calls, sum(duration_ns) / 1e6 AS total_ms, sum(bytes) AS bytes, sum(flops) AS flops,
         1.0 * sum(bytes) / nullif(sum(duration_ns), 0) AS gigabytes_per_second
  FROM kernels GROUP BY kernel ORDER BY total_ms DESC)"},
};

} // namespace

std::span<const SchemaObject> schemaObjects() {
    return kObjects;
}

} // namespace kvatlas::sessions
