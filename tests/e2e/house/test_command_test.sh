#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/test itself, in a folder of its own, with stand-ins for cmake and ctest. usage: test_command_test.sh ROOT
set -euo pipefail
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/bin" "$work/tree/scripts" "$work/tree/.ci"
cp "$root/scripts/test" "$root/scripts/environment.sh" "$work/tree/scripts/"
cp "$root/.ci/run" "$work/tree/.ci/"
for script in install-dependencies fetch-model; do
    printf '#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\nexit 0\n' >"$work/tree/scripts/$script"
done
# ctest says what CTEST_SAYS holds for the preset it is called for, else that 10 of 10 passed.
cat >"$work/bin/ctest" <<'EOS'
#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
echo "ctest $*" >>"$CALLS"
preset=$(basename "$2")
if [[ -f $SAYS/$preset ]]; then
    cat "$SAYS/$preset"
    exit 8
fi
echo "100% tests passed, 0 tests failed out of 10"
EOS
cat >"$work/bin/cmake" <<'EOS'
#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
echo "cmake $*" >>"$CALLS"
[[ -z $BROKEN || "$*" != "--build build/$BROKEN"* ]]
EOS
chmod +x "$work"/bin/* "$work"/tree/scripts/*
export PATH=$work/bin:$PATH CALLS=$work/calls SAYS=$work/says BROKEN=""
mkdir "$SAYS"

expect() { # what, condition...
    local what=$1
    shift
    "$@" || { echo "FAILED: $what"; cat "$work/out"; exit 1; }
    echo "ok: $what"
}
call() {
    : >"$CALLS"
    status=0
    (cd / && "$@") >"$work/out" 2>&1 || status=$?
}
last_line() { tail -n 1 "$work/out"; }
runs() { grep -c '^ctest' "$CALLS"; }

call "$work/tree/scripts/test"
expect "all pass: succeeds" [ "$status" -eq 0 ]
expect "all pass: one run of ctest" [ "$(runs)" -eq 1 ]
expect "all pass: ends with ctest's summary" [ "$(last_line)" = "100% tests passed, 0 tests failed out of 10" ]
expect "a run without tests is an error to ctest" grep -q -- '--no-tests=error' "$CALLS"

echo "70% tests passed, 3 tests failed out of 10" >"$SAYS/dev"
call "$work/tree/scripts/test"
expect "a test fails: so does the command" [ "$status" -eq 1 ]
rm "$SAYS/dev"

BROKEN=dev call "$work/tree/scripts/test"
expect "the build fails: so does the command" [ "$status" -eq 1 ]
expect "the build fails: nothing is tested" [ "$(runs || true)" -eq 0 ]

call bash "$work/tree/.ci/run"
phases=$(runs)
expect "CI: succeeds" [ "$status" -eq 0 ]
expect "CI: tests more presets" [ "$phases" -ge 4 ]
expect "CI: the last line sums them up" [ "$(last_line)" = "$((10 * phases)) passed, 0 failed" ]
expect "CI: tells the wall time" grep -q ' s  together$' "$work/out"

echo "70% tests passed, 3 tests failed out of 10" >"$SAYS/asan"
call bash "$work/tree/.ci/run"
expect "CI, tests fail: fails" [ "$status" -eq 1 ]
expect "CI, tests fail: goes on" [ "$(runs)" -eq "$phases" ]
expect "CI, tests fail: counts them" [ "$(last_line)" = "$((10 * phases - 3)) passed, 3 failed" ]

echo "No tests were found!!!" >"$SAYS/asan"
call bash "$work/tree/.ci/run"
expect "CI, a preset has no tests: fails" [ "$status" -eq 1 ]
expect "CI, a preset has no tests: counts as a failure" [ "$(last_line)" = "$((10 * phases - 10)) passed, 1 failed" ]
rm "$SAYS/asan"

BROKEN=tsan call bash "$work/tree/.ci/run"
expect "CI, a preset does not build: fails" [ "$status" -eq 1 ]
expect "CI, a preset does not build: counts as a failure" \
    [ "$(last_line)" = "$((10 * phases - 10)) passed, 1 failed" ]

call "$work/tree/scripts/test" --nonsense
expect "unknown option: usage, status 2" [ "$status" -eq 2 ]
