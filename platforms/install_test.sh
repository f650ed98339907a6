#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The installed command and library find the platforms beside them, and pkg-config the prefix,
# wherever they lie. A platform that only the installed folder has tells it from the sources.
set -eu
command -v cmake >/dev/null || exit 77
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
prefix=$place/moved

cmake --install "$DUET_BUILD_DIR" --prefix "$place/prefix" >"$place/log" || {
    cat "$place/log"
    exit 1
}
mv "$place/prefix" "$prefix"
data=$prefix/share/duet/platforms
sed 's/"name": "idgraf"/"name": "elsewhere"/' "$data/idgraf.json" >"$data/elsewhere.json"
library=$(dirname "$(find "$prefix" -name libduet.so)")

"$prefix/bin/duet" list platforms | grep -q '^elsewhere'
(cd / && PATH=$prefix/bin:$PATH duet list platforms) | grep -q '^elsewhere'

# Without the simulated engine the program fails too, but not because of the platform.
if ! LD_LIBRARY_PATH=$library DUET_SIMULATE=elsewhere \
    "$DUET_BUILD_DIR/examples/tiled_cholesky" >"$place/log" 2>&1 &&
    ! grep -qi simgrid "$place/log"; then
    cat "$place/log"
    exit 1
fi

command -v pkg-config >/dev/null || exit 0
PKG_CONFIG_PATH=$library/pkgconfig
export PKG_CONFIG_PATH
test "$(pkg-config --variable=libdir duet)" -ef "$library"
test "$(pkg-config --variable=includedir duet)/duet/duet.h" -ef "$prefix/include/duet/duet.h"
test "$(pkg-config --variable=datadir duet)/platforms" -ef "$data"
