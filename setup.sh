#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that duet needs to be built and tested. Quick, and without network,
# when they are all there.
set -eu

packages="
    build-essential gfortran cmake ninja-build pkg-config ccache file
    libglib2.0-dev libjansson-dev libxml2-dev zlib1g-dev libsqlite3-dev
    libopenmpi-dev openmpi-bin
    libsimgrid-dev
    libhwloc-dev libopenblas-dev liblapacke-dev
    ocl-icd-opencl-dev opencl-headers libclblast-dev pocl-opencl-icd
    libomp-dev clang
    node-d3-axis node-d3-scale node-d3-selection
    clang-format clang-tidy universal-ctags python3 python3-numpy chromium chromium-driver nodejs
"

if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
    echo "setup.sh: this is no Debian-like system (no apt-get); install the equivalents of:" >&2
    echo $packages >&2
    exit 1
fi

missing=
for package in $packages; do
    # shellcheck disable=SC2016 # the format is dpkg-query's
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || state=
    [ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "setup.sh: to be installed by root (sudo is not there):$missing" >&2
        exit 1
    fi
    as_root=sudo
fi

echo "setup.sh: installing$missing" >&2
# shellcheck disable=SC2086 # lists of words
{
    $as_root apt-get update -qq
    $as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends $missing
} >&2
