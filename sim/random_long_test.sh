#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fifty thousand tasks of the random programs of sim.random; core.random_long runs more.
set -eu
DUET_TEST_LONG=50000 exec "$DUET_BUILD_DIR/tests/sim.random"
