#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two hundred thousand tasks of the random programs of core.random, by one thread and by several.
set -eu
DUET_TEST_LONG=200000 exec "$DUET_BUILD_DIR/tests/core.random"
