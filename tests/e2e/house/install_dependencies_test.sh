#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/install-dependencies with stand-ins for dpkg-query and apt-get. usage: install_dependencies_test.sh ROOT
set -euo pipefail
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
export PATH=$work/bin:$PATH APT_CALLS=$work/calls ABSENT="" APT_FAILS=""

expect() { # what, condition...
    local what=$1
    shift
    "$@" || { echo "FAILED: $what"; cat "$work/out" "$work/err" "$APT_CALLS"; exit 1; }
    echo "ok: $what"
}
cat >"$work/bin/dpkg-query" <<'EOS'
#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
for last; do :; done
[[ " $ABSENT " != *" $last "* ]] || exit 1
printf installed
EOS
cat >"$work/bin/apt-get" <<'EOS'
#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
echo "$*" >>"$APT_CALLS"
[[ "$*" != *install* || -z $APT_FAILS ]]
EOS
cat >"$work/bin/sudo" <<'EOS'
#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
exec "$@"
EOS
chmod +x "$work"/bin/*
install() {
    : >"$APT_CALLS"
    status=0
    "$root/scripts/install-dependencies" "$@" >"$work/out" 2>"$work/err" || status=$?
}

install
expect "nothing missing: succeeds" [ "$status" -eq 0 ]
expect "nothing missing: apt-get is not called" [ ! -s "$APT_CALLS" ]

ABSENT="libhwy-dev cmake" install
expect "two missing: succeeds" [ "$status" -eq 0 ]
expect "two missing: these two are installed, without recommended ones" \
    grep -q -- 'install --no-install-recommends -y cmake libhwy-dev$' "$APT_CALLS"

ABSENT="qemu-user" install
expect "a package of --all alone is not needed" [ ! -s "$APT_CALLS" ]
ABSENT="qemu-user" install --all
expect "and is installed by --all" grep -q -- '-y qemu-user$' "$APT_CALLS"

ABSENT="cmake" APT_FAILS=1 install
expect "apt-get fails: so do we" [ "$status" -eq 1 ]
expect "apt-get fails: says what is missing" grep -q 'apt-get install cmake' "$work/err"

install --print
expect "the list names no package twice" [ -z "$(sort "$work/out" | uniq -d)" ]
expect "the list is of package names" [ -z "$(grep -Ev '^[a-z0-9][a-z0-9+.-]+$' "$work/out")" ]
install --all --print
undocumented=$(while read -r package; do grep -q "\`$package\`" "$root/README.md" || echo "$package"; done <"$work/out")
expect "README.md gives a reason for each package" [ -z "$undocumented" ]
install --nonsense
expect "unknown option: usage, status 2" [ "$status" -eq 2 ]

# Without apt-get in sight.
mkdir "$work/bare"
for tool in bash cat cut dirname basename nproc id getent env mktemp; do ln -s "$(command -v $tool)" "$work/bare/$tool"; done
status=0
PATH=$work/bare "$root/scripts/install-dependencies" >"$work/out" 2>"$work/err" || status=$?
expect "another system: fails" [ "$status" -eq 1 ]
expect "another system: one sentence" grep -q 'not Debian or Ubuntu' "$work/err"
