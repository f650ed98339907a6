/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of the reader of StarPU's records. */
#ifndef DUET_WORKLOADS_FILES_STARPU_H
#define DUET_WORKLOADS_FILES_STARPU_H

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

#include "workloads/files/graph.h"

/* Fields of a record, in the order of read_starpu.c. */
enum duet__starpu_field {
    NAME,
    MODEL,
    JOB,
    ORDER,
    PRIORITY,
    DEPENDS,
    WORKER,
    NODE,
    SUBMITTED,
    START,
    END,
    FOOTPRINT,
    GFLOP,
    HANDLES,
    MODES,
    SIZES,
    RANK,
    CONTROL,
    FIELDS,
};

/* A performance model, and the file that it was looked for in. */
struct duet__starpu_model {
    GArray *times; /* struct duet__starpu_time; NULL: there is no file */
    char *path;
};

/* Tasks with the same times: those of one kernel and footprint. */
struct duet__starpu_class {
    struct duet__starpu_model *model; /* NULL: there is none */
    double sums[2];                   /* measured seconds, on CPUs and on devices */
    unsigned counts[2];
};

struct duet__starpu_record {
    char *fields[FIELDS]; /* NULL: it is absent */
    unsigned line;
    bool gone; /* the task only orders others, which have its edges */
    double order, submitted_ms, start_ms, end_ms; /* NaN: not known */
    double priority, gflop, node;
    uint32_t footprint;
    size_t after, after_count;       /* records, in `after` of the reading */
    struct duet__starpu_class *like; /* class of the task */
};

struct duet__starpu {
    struct duet__graph *graph;
    const char *path;
    struct duet_message *message;
    GArray *records;     /* struct duet__starpu_record, by order of submission */
    GArray *after;       /* uint32_t */
    GHashTable *jobs;    /* JobId -> index + 1 */
    GHashTable *data;    /* address and size -> index + 1 */
    GHashTable *classes; /* text -> struct duet__starpu_class */
    GHashTable *models;  /* name -> struct duet__starpu_model */
    bool measured[2];    /* times on CPUs, on devices are known */
};

static inline struct duet__starpu_record *duet__starpu_record_at(const struct duet__starpu *r,
                                                                 guint i)
{
    return &g_array_index(r->records, struct duet__starpu_record, i);
}

/* read_starpu.c: fails with a message about a field of this record. Returns DUET_EPARSE. */
int duet__starpu_fail(const struct duet__starpu *r, const struct duet__starpu_record *record,
                      const char *what, const char *text);

/* read_starpu.c: adds the accesses of the last added task. */
int duet__starpu_add_accesses(struct duet__starpu *r, const struct duet__starpu_record *record);

/* read_starpu.c: finds the data of all accesses, and the explicit edges that are not implied by it.
 * Tasks are in order; their `where` is the index of their record. */
int duet__starpu_settle(struct duet__starpu *r);

/* read_starpu.c */

/* A history in a file, sorted by footprint: time of an execution on a device, "cpu", "cuda1" or
 * "opencl0", by one implementation. Regressions are not read. */
struct duet__starpu_time {
    char device[16];
    uint32_t footprint;
    double mean_s, samples;
};

/* Reads the text of a file, of version 44 or 45, into an array of struct duet__starpu_time.
 * DUET_EPARSE with path and line. */
DUET_MUST_CHECK int duet__starpu_times_parse(const char *text, const char *path, GArray *times,
                                             struct duet_message *message);

/* Returns the seconds of a task with this footprint on a device, or on those of a kind ("cuda") on
 * average, by the fastest implementation. NaN: not known. */
double duet__starpu_seconds(const GArray *times, const char *device, uint32_t footprint);

#endif
