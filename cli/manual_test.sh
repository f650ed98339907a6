#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The manual has a page for each subcommand, with its options, and man has no warnings.
set -eu
command -v python3 >/dev/null || exit 77
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 "$DUET_SOURCE_DIR/scripts/manual" "$DUET" "$place"

expect() {
    grep -qF -- "$2" "$place/$1.1" || {
        echo "$1.1 lacks $2" >&2
        exit 1
    }
}
for name in $("$DUET" --help | sed -n 's/^  \([a-z]\{1,\}\)  .*/\1/p'); do
    expect duet "duet\\-$name"
    expect "duet-$name" "duet $name"
    expect "duet-$name" 'SH OPTIONS'
done
expect duet '\fBDUET_GPU_WINDOW_SHORT\fR=\fIK\fR'
expect duet 'SH EXIT STATUS'
expect duet-simulate '\fB\-p\fR, \fB\-\-platform\fR=\fIP\fR'
expect duet-simulate 'duet simulate cholesky \-\-platform idgraf \-\-n 38400 \-\-tile'
expect duet-compare 'SH EXAMPLES'

command -v man >/dev/null || exit 0
for page in "$place"/*.1; do
    MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" >/dev/null
done 2>"$place/warnings"
cat "$place/warnings" >&2
[ ! -s "$place/warnings" ]
