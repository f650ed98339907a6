/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of duet__copies_measure. */
#ifndef DUET_CALIBRATE_COPYING_H
#define DUET_CALIBRATE_COPYING_H

#include "calibrate/copies.h"
#include "calibrate/lab.h"

/* A measurement of copies that is under way. */
struct duet__copying {
    struct duet__lab lab;
    struct duet__copies *out;
    char *memory; /* of the host */
    size_t memory_bytes;
    size_t used_bytes; /* of it, from its beginning on, for the last copies */
};

/* The pair from node `source` to node `destination`, which must be there, as index. */
size_t duet__copies_find(const struct duet__copies *copies, unsigned source, unsigned destination);

/* The worker that works on a node. The host's: the first one. */
unsigned duet__copies_worker(const struct duet__copying *copying, unsigned node);

/* The most bytes of one handle of which `count` are on a device at once. */
size_t duet__copies_most(const struct duet__copying *copying, unsigned count);

/* Measures pairs at the same time. copies_together.c */
void duet__copies_beside(struct duet__copying *copying);

#endif
