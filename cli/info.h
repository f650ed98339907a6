/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `duet info` share. */
#ifndef DUET_CLI_INFO_H
#define DUET_CLI_INFO_H

#include <stdbool.h>
#include <stdio.h>

#include <glib.h>

#include "world/info.h"
#include "workloads/kernels_about.h"

/* Something of this machine that a run leaves alone. */
struct duet__unused {
    char *what; /* "2 cores" */
    char *why;
};

/* A kernel that tasks of workloads call, and which kinds of device have code for it. */
struct duet__offer {
    const char *name;
    bool cpu, cuda;
};

/* Everything that is shown. Zero-initialise; duet__facts_fini frees it. */
struct duet__facts {
    const struct duet_config *config;
    struct duet__info info;
    char host[256];
    bool has_blas;
    struct duet__blas blas;
    int cuda_error; /* whether cuBLAS and cuSOLVER can be used: 0, or why not */
    struct duet_message cuda_why;
    GArray *unused; /* struct duet__unused */
    GArray *offers; /* struct duet__offer */
};

/*
 * Finds it out for a configuration, which is borrowed. Errors of duet__info_open; *facts is to be
 * freed in any case.
 */
DUET_MUST_CHECK int duet__facts_find(struct duet__facts *facts, const struct duet_config *config,
                                     struct duet_message *message);

void duet__facts_fini(struct duet__facts *facts);

/* "free", "paced", or NULL: whether GPUs are emulated, and how. */
const char *duet__facts_emulation(const struct duet__facts *facts);

/* Why a device cannot be used, without the device's name in front; "" if it can. */
const char *duet__facts_why(const struct survey_device *device);

/* Prints it for people, and for programs (docs/formats.md). */
void duet__facts_put_text(const struct duet__facts *facts, FILE *stream);
void duet__facts_put_json(const struct duet__facts *facts, FILE *stream);

/* The part of the text that is about the machine a run is made on: info_machine.c. */
void duet__facts_put_machine(const struct duet__facts *facts, FILE *stream);

#endif
