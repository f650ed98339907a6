/* SPDX-License-Identifier: Apache-2.0 */
/* What this duet was built with, as CMake says it. */
#include "cli/build.h"

const struct duet__build *duet__build(void)
{
    static const struct duet__build build = {
        .version = DUET_BUILD_VERSION,
        .compiler = DUET_BUILD_COMPILER,
        .type = DUET_BUILD_TYPE,
        .simgrid = DUET_BUILD_SIMGRID,
        .blas = DUET_BUILD_BLAS,
        .cuda = DUET_BUILD_CUDA,
        .gpus = DUET_BUILD_CUDA_ARCHITECTURES,
        .sanitizers = DUET_BUILD_SANITIZERS,
        .link_time_optimisation = DUET_BUILD_LTO,
    };
    return &build;
}
