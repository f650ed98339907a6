/* SPDX-License-Identifier: Apache-2.0 */
/* Facts and printers that the files of `duet info` share. */
#ifndef DUET_CLI_INFO_H
#define DUET_CLI_INFO_H

#include <stdbool.h>
#include <stdio.h>

#include <glib.h>

#include "runtime/info.h"
#include "workloads/kernels.h"

/* All facts that are shown: found once, printed for people and for programs. */
struct duet__facts {
    const struct duet_config *config;
    struct duet__info info;
    char host[256];
    bool has_blas;
    struct duet__blas blas;
    int cuda_error; /* 0: cuBLAS and cuSOLVER can be used; else why not */
    struct duet_message cuda_why;
    int opencl_error; /* 0: CLBlast can be used; else why not */
    struct duet_message opencl_why;
    GPtrArray *unused;  /* char *: each part that a run leaves alone, "2 cores", then why */
    GPtrArray *kernels; /* names of the kernels that tasks of workloads call */
};

/* Returns how GPUs are emulated: "free" or "paced"; NULL if they are not. */
const char *duet__facts_emulation(const struct duet__facts *facts);

/* Returns why a device cannot be used, without the device's name in front; "" if it can. */
const char *duet__facts_why(const struct survey_device *device);

/* Prints the facts for people; duet__facts_put_json, for programs (docs/formats.md). */
void duet__facts_put_text(const struct duet__facts *facts, FILE *stream);
void duet__facts_put_json(const struct duet__facts *facts, FILE *stream);

#endif
