#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What bash offers after the beginning of a command line of duet.
set -eu
command -v bash >/dev/null || exit 77

exec bash -s <<'BASH'
. "$DUET_SOURCE_DIR/cli/completion.bash"
failed=0

# offers EXPECTED WORD...: a regular expression, and the words, as bash takes them apart
offers() {
    local expected=$1
    shift
    COMP_WORDS=("$DUET" "$@") COMP_CWORD=$#
    COMPREPLY=()
    _duet "$DUET" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    if [[ ! "${COMPREPLY[*]}" =~ ^$expected$ ]]; then
        echo "duet $*: offered are '${COMPREPLY[*]}' and not '$expected'" >&2
        failed=1
    fi
}

offers 'simulate' sim
offers '--help --version .*run.*platform' ''
offers 'cholesky' simulate chol
offers '--gpu-memory --gpu-window --gpu-window-short' simulate --gpu-
offers '--gpu-memory --gpu-window --gpu-window-short --gpu-streams --gpu-untimed' run --gpu-
offers '' simulate --watch
offers 'idgraf' simulate cholesky --platform idg
offers 'idgraf' simulate cholesky --platform = idg
offers 'free' run cholesky --emulate fr
offers 'heft.*' simulate --policy hef
offers 'attila,idgraf' study cholesky --platform attila,idg
offers 'ws,heft.*' simulate --policy = ws,hef
offers 's d sd' calibrate --precision ''
offers 'history' run --model hist
offers 'options' list op
offers 'check' platform ch
offers '--nvlink --nvswitch' platform new --nv
offers '' compare w
offers '--no-what-if' explain --no
offers '' simulate --trace .
offers '' unknown x
exit $failed
BASH
