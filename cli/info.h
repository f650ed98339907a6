/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `duet info` share. */
#ifndef DUET_CLI_INFO_H
#define DUET_CLI_INFO_H

#include <stdbool.h>
#include <stdio.h>

#include <glib.h>

#include "runtime/info.h"
#include "workloads/kernels.h"
#include "workloads/kernels_about.h"

/* Everything that is shown: found out once, printed for people and for programs. */
struct duet__facts {
    const struct duet_config *config;
    struct duet__info info;
    char host[256];
    bool has_blas;
    struct duet__blas blas;
    int cuda_error; /* whether cuBLAS and cuSOLVER can be used: 0, or why not */
    struct duet_message cuda_why;
    int opencl_error; /* whether CLBlast can */
    struct duet_message opencl_why;
    GPtrArray *unused;  /* what a run leaves alone, "2 cores", and why, in turn */
    GPtrArray *kernels; /* names of those that tasks of workloads call */
};

/* "free", "paced", or NULL: whether GPUs are emulated, and how. */
const char *duet__facts_emulation(const struct duet__facts *facts);

/* Why a device cannot be used, without the device's name in front; "" if it can. */
const char *duet__facts_why(const struct survey_device *device);

/* Prints it for people, and for programs (docs/formats.md). */
void duet__facts_put_text(const struct duet__facts *facts, FILE *stream);
void duet__facts_put_json(const struct duet__facts *facts, FILE *stream);

#endif
