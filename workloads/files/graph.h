/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task graph as data, made by the reader of a file, from the recording of a run, or by a program.
 * Readers of formats make one, writers take one, and duet__graph_workload submits one.
 *
 * Tasks are in an order in which they can be submitted, as a sequential program would. They follow
 * each other as duet's tasks do: by their accesses to data, and by explicit edges to earlier tasks
 * where no data tells.
 */
#ifndef DUET_WORKLOADS_FILES_GRAPH_H
#define DUET_WORKLOADS_FILES_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <glib.h>

#include <duet/duet.h>
#include <duet/machine.h>

#include "workloads/workload.h"

enum {
    DUET__GRAPH_KERNELS_MAX = 4096,
    DUET__GRAPH_ARCHS_MAX = 64,       /* columns of seconds */
    DUET__GRAPH_WHERES_MAX = 256,     /* different restrictions */
    DUET__GRAPH_ACCESSES_MAX = 65535, /* of a task: duet_submit */
};

struct duet__graph_data {
    uint64_t bytes;   /* 0: not known; 1 byte is submitted then */
    const char *name; /* NULL: none */
    bool initial;     /* in the host's memory at the start; else its first writer creates it */
};

struct duet__graph_access {
    uint32_t data;
    uint32_t mode; /* enum duet_mode */
};

struct duet__graph_task {
    size_t accesses;  /* index of the first; they end where those of the next task begin */
    size_t after;     /* index of the first explicit edge, likewise */
    double work;      /* flops; 0: not known */
    const char *name; /* NULL: none */
    uint32_t kernel;
    int32_t priority;
    uint32_t where; /* index of a restriction; 0: anywhere */
    uint32_t job;   /* number in StarPU's record, for messages; 0: none */
};

/* Place of StarPU's performance models: DIRECTORY/codelets/45/NAME.HOST. */
struct duet__graph_models {
    const char *directory, *host; /* NULL: nowhere */
    bool needed; /* a task without a model is an error, although the record has its time */
};

/* A task graph. duet__graph_init comes first; duet__graph_fini frees it, half-built or not. */
struct duet__graph {
    char *name;               /* for people and tables; of g_malloc */
    char *origin;             /* source, for people; NULL: not known */
    GPtrArray *kernels;       /* names, of 1 to DUET_NAME_MAX - 1 bytes, each once */
    GPtrArray *wheres;        /* restrictions: "", then "cpu", "gpu", "c2050,m2070" */
    GPtrArray *archs;         /* columns of `seconds`: "c2050", "cuda", "cpu"; set before tasks */
    GArray *seconds;          /* double, by task and architecture: seconds of an execution; NaN: not
                                 known */
    GArray *tasks;            /* struct duet__graph_task */
    GArray *accesses;         /* struct duet__graph_access */
    GArray *after;            /* uint32_t: earlier tasks */
    GArray *data;             /* struct duet__graph_data */
    GStringChunk *texts;      /* names of tasks and data */
    GHashTable *kernel_index; /* name -> index */
    double makespan_s;        /* measured, if from a recording; 0: none */
    struct duet__graph_models models; /* models that readers may use beside the file */
};

/* An edge between two tasks. */
struct duet__graph_edge {
    uint32_t from, to;
    uint64_t bytes; /* that flow along it; 0: not known */
};

/* ------------------------------------------------------------------------------------------- */
/* Building                                                                                     */

void duet__graph_init(struct duet__graph *graph);

void duet__graph_fini(struct duet__graph *graph); /* safe on a zeroed one, and twice */

/* Returns a text that lives as long as the graph, made valid UTF-8; NULL for NULL and "". */
const char *duet__graph_text(struct duet__graph *graph, const char *text);

/*
 * Returns the kernel of this name, added if it is new. A name that is too long is replaced by its
 * end, if possible from behind a '.', '/' or ':'. All names beyond DUET__GRAPH_KERNELS_MAX are one
 * kernel.
 */
uint32_t duet__graph_kernel(struct duet__graph *graph, const char *name);

/* Returns the column of seconds of an architecture or backend, added if it is new. Before any
 * task. */
uint32_t duet__graph_arch(struct duet__graph *graph, const char *name);

/* Adds a restriction if it is new. false: there are too many. */
bool duet__graph_where(struct duet__graph *graph, const char *where, uint32_t *index);

/* Adds a task without times. Accesses and edges that are appended to graph->accesses and
 * graph->after until the next call belong to it. The pointer is valid until then. */
struct duet__graph_task *duet__graph_add(struct duet__graph *graph, uint32_t kernel);

void duet__graph_add_access(struct duet__graph *graph, uint32_t data, enum duet_mode mode);

/* Adds data. Returns its index. */
uint32_t duet__graph_add_data(struct duet__graph *graph, uint64_t bytes, const char *name,
                              bool initial);

/*
 * Adds `edges` (struct duet__graph_edge, in any order, perhaps repeated) to the dependences by
 * accesses, and puts the tasks into an order in which they can be submitted: the present one if
 * possible. Edges with bytes become data of their own; then tasks have no other accesses.
 * DUET_EPARSE if edges form a cycle, with a message that names tasks of it.
 */
DUET_MUST_CHECK int duet__graph_order(struct duet__graph *graph, const GArray *edges,
                                      const char *path, struct duet_message *message);

/* ------------------------------------------------------------------------------------------- */
/* Looking                                                                                      */

static inline size_t duet__graph_count(const struct duet__graph *graph)
{
    return graph->tasks->len;
}

static inline const struct duet__graph_task *duet__graph_task(const struct duet__graph *graph,
                                                              size_t task)
{
    return &g_array_index(graph->tasks, struct duet__graph_task, task);
}

static inline const struct duet__graph_data *duet__graph_datum(const struct duet__graph *graph,
                                                               size_t data)
{
    return &g_array_index(graph->data, struct duet__graph_data, data);
}

static inline const char *duet__graph_kernel_name(const struct duet__graph *graph, size_t kernel)
{
    return graph->kernels->pdata[kernel];
}

static inline double *duet__graph_seconds(const struct duet__graph *graph, size_t task)
{
    return &g_array_index(graph->seconds, double, task * graph->archs->len);
}

/* Returns the accesses, or the explicit edges, of a task; *count: their number. */
const struct duet__graph_access *duet__graph_accesses(const struct duet__graph *graph, size_t task,
                                                      size_t *count);
const uint32_t *duet__graph_after(const struct duet__graph *graph, size_t task, size_t *count);

/* Names a task in messages: "job 5 (potrf)", its name, or "task 17" (the first is 0). Returns
 * `buffer`. */
enum { DUET__GRAPH_LABEL_MAX = 80 };
const char *duet__graph_label(const struct duet__graph *graph, size_t task,
                              char buffer[DUET__GRAPH_LABEL_MAX]);

/* Returns the first known of its seconds; NaN: none is known. */
double duet__graph_reference(const struct duet__graph *graph, size_t task);

/* graph.c: finds predecessors by explicit edges and by data, task after task, as a run would. */
struct duet__graph_walk;
struct duet__graph_walk *duet__graph_walk_new(const struct duet__graph *graph);
void duet__graph_walk_free(struct duet__graph_walk *walk);
/* Returns the predecessors of the next task, each once, with the bytes that it reads from them;
 * *count: their number. Valid until the next call. To be called once for each task. */
const struct duet__graph_edge *duet__graph_walk_next(struct duet__graph_walk *walk, size_t *count);

/* ------------------------------------------------------------------------------------------- */
/* Using                                                                                        */

/*
 * workload.c: makes a workload that submits the graph of a problem (problem->graph), which lives as
 * long as its runs, under the graph's name, which the workload borrows. The seconds of a task are
 * those of the platform's calibration for its kernel and work; else its own on that architecture or
 * backend; else its first known ones, divided by the speed of the architecture (problem->speeds).
 */
struct duet__workload duet__graph_workload(const struct duet__graph *graph);

/*
 * workload.c: returns sums of the seconds of a graph's tasks on a machine, by architecture of the
 * machine, then by kernel, then by the column of the graph that the seconds are from. A task counts
 * on each architecture that may run it. Free with g_free.
 */
double *duet__graph_sources(const struct duet__problem *problem,
                            const struct duet_machine *machine);

/* ------------------------------------------------------------------------------------------- */
/* Files                                                                                        */

/* True if the text of a file seems to be in this format; it ends with a zero. */
typedef bool duet__graph_is_fn(const char *text, size_t length, const char *path);
/* Reads into an initialised graph, which the caller frees, even after an error. DUET_EPARSE with a
 * message that begins with the path. */
typedef int duet__graph_read_fn(struct duet__graph *graph, const char *text, size_t length,
                                const char *path, struct duet_message *message);
/* Writes a struct duet__graph. Errors stay with the stream. */
typedef void duet__graph_write_fn(FILE *stream, const void *graph);

/* A format of task graph files: one file each, one line in formats.c. */
struct duet__graph_format {
    const char *name, *description;
    duet__graph_is_fn *is;
    duet__graph_read_fn *read;
    duet__graph_write_fn *write; /* NULL: the format can only be read */
    bool needs_times;            /* times of all tasks must be known */
};

/* Returns the index-th format, NULL beyond the last. */
const struct duet__graph_format *duet__graph_format_at(size_t index);

/* Returns the format of this name, or NULL. */
const struct duet__graph_format *duet__graph_format_find(const char *name);

/* Reads a file in any format. `models` may be NULL. *out is the caller's, for duet__graph_free.
 * DUET_EIO, DUET_EPARSE; *out is then NULL. */
DUET_MUST_CHECK int duet__graph_read(const char *path, const struct duet__graph_models *models,
                                     struct duet__graph **out, struct duet_message *message);

void duet__graph_free(struct duet__graph *graph); /* NULL is fine */

/* ------------------------------------------------------------------------------------------- */
/* Readers and writers of task graphs                                                           */

/* Upper bounds of seconds and flops of a task, and of bytes of data. */
#define DUET__GRAPH_SECONDS_MAX 1e15
#define DUET__GRAPH_WORK_MAX 1e30
#define DUET__GRAPH_BYTES_MAX (UINT64_C(1) << 60)

duet__graph_is_fn duet__graph_is_starpu, duet__graph_is_trace, duet__graph_is_stg,
    duet__graph_is_dot, duet__graph_is_wfformat;
duet__graph_read_fn duet__graph_read_json, duet__graph_read_starpu, duet__graph_read_trace,
    duet__graph_read_stg, duet__graph_read_dot, duet__graph_read_wfformat;
duet__graph_write_fn duet__graph_write_json, duet__graph_write_stg, duet__graph_write_dot,
    duet__graph_write_wfformat;

/* Makes the message "path:line: ...", without control characters. Returns DUET_EPARSE. */
int duet__graph_fail(struct duet_message *message, const char *path, unsigned line,
                     const char *format, ...) DUET_PRINTF(4, 5);

/* The architecture of times whose format names none: every machine's has its speed. */
#define DUET__GRAPH_REFERENCE "reference"

/* Returns "r", "w", "rw", "commute", "reduce", "scratch" for an enum duet_mode; NULL for others. */
const char *duet__graph_mode_name(unsigned mode);

/* A time in a performance model of StarPU's, whose array is sorted by footprint: the mean of one
 * implementation on a device, "cpu", "cuda1" or "opencl0". Regressions are not read. */
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
