/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be validated: cross products of cases, from a file or from options. */
#ifndef DUET_VALIDATE_SPEC_H
#define DUET_VALIDATE_SPEC_H

#include <stdbool.h>

#include <glib.h>

#include <duet/error.h>

#include "workloads/workload.h"

/* Lists of numbers in a spec. */
enum duet_list { DUET_LIST_N, DUET_LIST_TILE, DUET_LIST_CPUS, DUET_LIST_GPUS, DUET_LISTS };

/* A cross product. A list without elements stands for what is taken if nothing is said. */
struct duet_spec {
    const struct duet_workload *workload;
    char precision;            /* 's' or 'd' */
    GArray *lists[DUET_LISTS]; /* uint64_t */
    char **policies;           /* names, NULL-ended, by duet_spec_check */
    char **params;             /* "NAME=VALUE", NULL-ended */
    bool set_arch;
};

/* A spec of double precision without elements. Free with duet_spec_free. */
struct duet_spec *duet_spec_new(void);
void duet_spec_free(void *data);

/*
 * Checks its lists, as far as that can be said without a case: ranges, nothing twice; and makes its
 * policies of their list (duet_policies_read). The messages are about the options of the same
 * names. DUET_EINVAL, DUET_ENOTFOUND.
 */
DUET_MUST_CHECK int duet_spec_check(struct duet_spec *spec, const char *policies,
                                    struct duet_message *message);

/*
 * Adds the checked specs of a file, docs/validate.md. DUET_EIO, DUET_EPARSE, DUET_EINVAL, with a
 * message that names file and place.
 */
DUET_MUST_CHECK int duet_specs_read(GPtrArray *specs, const char *path,
                                    struct duet_message *message);

#endif
