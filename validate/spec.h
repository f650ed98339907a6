/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be validated: cross products of cases, from a file or from options. */
#ifndef DUET_VALIDATE_SPEC_H
#define DUET_VALIDATE_SPEC_H

#include <glib.h>

#include <duet/error.h>

#include "runs/request.h"

/* Lists of numbers in a spec. */
enum duet__spec_list { DUET_LIST_N, DUET_LIST_TILE, DUET_LIST_CPUS, DUET_LIST_GPUS, DUET_LISTS };

/* A cross product. A list without elements stands for what is taken if nothing is said. */
struct duet__spec {
    struct duet__request request; /* of all its cases, with the policies that they have in turn */
    GArray *lists[DUET_LISTS];    /* uint64_t */
};

/* A spec of what is requested, with empty lists. Free with duet__spec_free. */
struct duet__spec *duet__spec_new(const struct duet__request *base);
void duet__spec_free(void *data);

/*
 * Checks its lists, as far as that can be said without a case: ranges, nothing twice. The messages
 * are about the options of the same names. DUET_EINVAL.
 */
DUET_MUST_CHECK int duet__spec_check(const struct duet__spec *spec, struct duet_message *message);

/*
 * Adds the checked specs of a file, docs/validate.md, to what `base` requests of all. DUET_EIO,
 * DUET_EPARSE, DUET_EINVAL, with a message that names file and place.
 */
DUET_MUST_CHECK int duet__specs_read(GPtrArray *specs, const struct duet__request *base,
                                     const char *path, struct duet_message *message);

#endif
