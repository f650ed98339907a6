#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fifty thousand tasks of the random programs of real.cuda_random, on the fake CUDA.
set -eu
DUET_TEST_LONG=50000 exec "$DUET_BUILD_DIR/tests/real.cuda_random"
