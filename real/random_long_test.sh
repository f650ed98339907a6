#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Four hundred thousand tasks of the random programs of real.random.
set -eu
DUET_TEST_LONG=200000 exec "$DUET_BUILD_DIR/tests/real.random"
