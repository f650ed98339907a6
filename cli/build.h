/* SPDX-License-Identifier: Apache-2.0 */
/* What this duet was built with. */
#ifndef DUET_CLI_BUILD_H
#define DUET_CLI_BUILD_H

/* Constants; "" where something is not in this build. */
struct duet__build {
    const char *version;    /* of duet: "0.1.0" */
    const char *compiler;   /* "GNU 12.2.0" */
    const char *type;       /* "RelWithDebInfo" */
    const char *simgrid;    /* its version, at building */
    const char *blas;       /* likewise; which one is used is found when running */
    const char *cuda;       /* of the toolkit */
    const char *gpus;       /* kinds of GPU that CUDA kernels of duet's own are compiled for */
    const char *sanitizers; /* "address undefined" */
    int link_time_optimisation;
};

const struct duet__build *duet__build(void);

#endif
