/* SPDX-License-Identifier: Apache-2.0 */
/* Between the parts of the reader of StarPU's records. */
#ifndef DUET_WORKLOADS_FILES_STARPU_H
#define DUET_WORKLOADS_FILES_STARPU_H

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

#include "workloads/files/graph.h"

/* The fields of a record, as read_starpu.c names them. */
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

/* A performance model, and the file that it is in or was looked for. */
struct duet__starpu_model {
    GArray *times; /* struct duet__starpu_time; NULL: there is no file */
    char *path;
};

/* Tasks that take the same: of one kernel and footprint. */
struct duet__starpu_class {
    struct duet__starpu_model *model; /* NULL: there is none */
    double sums[2];                   /* measured, on CPUs and on devices */
    unsigned counts[2];
};

struct duet__starpu_record {
    char *fields[FIELDS]; /* NULL: it is not there */
    unsigned line;
    bool gone; /* it is nothing but an order of which the others know */
    double order, submitted_ms, start_ms, end_ms; /* NaN: not known */
    double priority, gflop, node;
    uint32_t footprint;
    size_t after, after_count;       /* records, in `after` of the reading */
    struct duet__starpu_class *like; /* it and those that take the same */
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
    bool measured[2];    /* there are times of CPUs, of devices */
};

static inline struct duet__starpu_record *duet__starpu_record_at(const struct duet__starpu *r,
                                                                 guint i)
{
    return &g_array_index(r->records, struct duet__starpu_record, i);
}

/* read_starpu.c: DUET_EPARSE with a message of this record, what is wrong with which text. */
int duet__starpu_fail(const struct duet__starpu *r, const struct duet__starpu_record *record,
                      const char *what, const char *text);

/* starpu_data.c: the accesses of the task that was added last. */
int duet__starpu_add_accesses(struct duet__starpu *r, const struct duet__starpu_record *record);

/*
 * starpu_data.c: when all tasks have their order, `where` of which says which record each is of:
 * which data they access, and which explicit edges say more than that.
 */
int duet__starpu_settle(struct duet__starpu *r);

/* starpu_times.c */

/*
 * The histories of a file, in the order of their footprints: what an execution took on a device,
 * "cpu", "cuda1" or "opencl0", by one of its implementations. Regressions are not read.
 */
struct duet__starpu_time {
    char device[16];
    uint32_t footprint;
    double mean_s, samples;
};

/*
 * Reads the text of a file, of version 44 or 45, into an array of struct duet__starpu_time.
 * DUET_EPARSE with path and line.
 */
DUET_MUST_CHECK int duet__starpu_times_parse(const char *text, const char *path, GArray *times,
                                             struct duet_message *message);

/*
 * Seconds of a task with this footprint on a device, or on those of a kind ("cuda") on average, of
 * the fastest implementation. NaN: not known.
 */
double duet__starpu_seconds(const GArray *times, const char *device, uint32_t footprint);

#endif
