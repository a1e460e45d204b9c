# SPDX-License-Identifier: Apache-2.0
# Read by the other scripts with `source`: where things are, and how a failure is told.
# After it, the current folder is the root of the repository ($root); $called_from is where the user was.

set -euo pipefail
called_from=$PWD
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

# One sentence for people on stderr, then a failing status.
fail() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

say() { printf '%s\n' "$*" >&2; }

if [[ -z ${HOME:-} ]]; then
    HOME=$(getent passwd "$(id -u)" | cut -d: -f6) || HOME=
    [[ -n $HOME ]] || fail "HOME is not set and this user has no home folder; set HOME and try again."
    export HOME
fi

# XDG base directories: an empty or relative value counts as unset.
xdg_folder() { # value fallback
    if [[ $1 == /* ]]; then printf '%s/kvatlas' "$1"; else printf '%s/kvatlas' "$2"; fi
}
cache_folder=$(xdg_folder "${XDG_CACHE_HOME:-}" "$HOME/.cache")
data_folder=$(xdg_folder "${XDG_DATA_HOME:-}" "$HOME/.local/share")

# Two compilers at once need about 2 GiB; more cores are used where they are.
jobs=${KVATLAS_JOBS:-$(nproc)}

# One preset's objects serve the next: the build folder's name is no part of what ccache compares.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1
