/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Export to the JSON trace event format, which Perfetto (ui.perfetto.dev) and Chrome's
 * about:tracing open. One process for the CPUs and one a device; in a device, one thread for
 * kernels, one for copies coming in and one for copies going out (more where records of one thread
 * overlap). Arrows lead to what waited for something, counters show tasks, links and memories.
 */
#ifndef DUET_TRACE_TRACE_H
#define DUET_TRACE_TRACE_H

#include <stdio.h>

#include <glib.h>

#include "base/fields.h"
#include "trace/run.h"
#include "workloads/files/graph.h"

enum { DUET__TRACE_MOST_MIB = 512 }; /* largest that is read */

/* A recorded run, and what a trace says of it beside its records. The reader's caller owns it
   (duet__trace_fini). */
struct duet__trace {
    struct duet__run run; /* with its seed, counters, bounds and recording */
    char *world;          /* "simulated", "real", "emulated"; a text that is NULL: not known */
    char *workload;       /* name of the workload, or of the program */
    char *settings;       /* parameters of the workload */
    uint64_t n, tile;     /* sizes of the problem; 0: not known */
    double scale;         /* seconds of the run for one of the emulated platform; 0: 1 */
    char *estimated;      /* kernels whose times nobody has measured, NULL: none */
    char *policy;
    char *options;                         /* from duet__settings_text */
    char *platform_file, *platform_digest; /* see struct duet__platform */
    struct duet__spent *spent; /* expected times of its executions; NULL: not simulated */
    unsigned spent_count;
    bool releases; /* true if the events say what released them; else that is guessed */
    bool paje;     /* true if it is written in Paje's format, which is not read */
};

/*
 * Writes the trace to `stream` event by event. Arrows and counters take memory meanwhile, less than
 * the records themselves. Write errors are left for the one who closes the stream. A copy from
 * device to device stands with the one that receives it.
 */
void duet__trace_write(FILE *stream, const struct duet__trace *trace);

/* True if a file of this name gets a trace in Paje's format: "...paje" and "...paje.gz" do. */
bool duet__trace_is_paje(const char *path);

/* Writes a trace like duet__trace_write, in the format of Paje. */
void duet__trace_write_paje(FILE *stream, const struct duet__trace *trace);

/* Letters of the bits of a mode (enum duet_mode) in accesses, and of temporary data. */
#define DUET__TRACE_LETTERS "rwcxst"

/* The keys of otherData that are members of struct duet__trace, for writer and reader. */
extern const struct duet__field duet__trace_fields[];
/* The keys of otherData that are members of struct duet_choice, a policy's choice. */
extern const struct duet__field duet__choice_fields[];

/*
 * Reads the text of a trace, also of one that says nothing but the machine and the events. Dates
 * count from the first submission that it shows, the makespan is from there to the end of the last
 * kernel that did not fail; both to the nanosecond, as they are written. Copies have no worker; of
 * the machine, names, workers and memories are known. Parts have higher numbers than their wholes.
 * The caller owns *out (duet__trace_fini), which is empty after an error. DUET_EPARSE, with a line
 * that names file and place.
 */
DUET_MUST_CHECK int duet__read_trace(const char *text, size_t length, const char *path,
                                     struct duet__trace *out, struct duet_message *message);

/* Reads a trace like duet__read_trace, also one without kernels that has figures of some. */
DUET_MUST_CHECK int duet__read_figures(const char *text, size_t length, const char *path,
                                       struct duet__trace *out, struct duet_message *message);

/* Reads a trace like duet__read_trace, from a file or a pipe; DUET_EIO as well. */
DUET_MUST_CHECK int duet__trace_load(const char *path, struct duet__trace *out,
                                     struct duet_message *message);

void duet__trace_fini(struct duet__trace *trace); /* safe on a zeroed one, and twice */

/* ------------------------------------------------------------------------------------------- */
/* The keys of traces: one table serves writer and reader. */

/* An event of a trace. */
struct duet__trace_record {
    struct duet_event event; /* dates in microseconds; `end_s` counts from the start */
    const char *phase, *category;
    const char *name; /* the kernel's, or "host to gpu0" */
    const char *own;  /* the application's name of the task; NULL: none */
    double priority;
    unsigned process, thread, worker, source, destination, release;
    const struct duet__recording *recording; /* the one that is written; NULL where one reads */
    GArray *accesses; /* struct duet_trace_access: all that were read; NULL where one writes */
    guint first;      /* index in `accesses` of the event's first */
};

/* Keys of otherData that are members of struct duet_machine. Reading leaves out the routes. */
extern const struct duet__field duet__trace_machine_fields[];
/* The architectures and workers of struct duet_machine. */
extern const struct duet__list duet__trace_workers;
/* Keys of events that are kernels and copies; the root is the machine. */
extern const struct duet__field duet__trace_kernel_fields[], duet__trace_copy_fields[];

/* ------------------------------------------------------------------------------------------- */
/* Task graphs of runs that were recorded. */

/*
 * Makes an initialised graph of a run whose accesses were recorded. Tasks are in order
 * of submission. Their times, to the picosecond, are measured where they ran; on other
 * architectures they are means of tasks of the same kernel, work and bytes, or else of the same
 * kernel and work. Parts of data are data of their own. Waits of the application are not recorded.
 * DUET_EINVAL with a message: tasks were made by others or waited for them, or accesses are
 * missing.
 */
DUET_MUST_CHECK int duet__graph_take(struct duet__graph *graph,
                                     const struct duet__recording *recording,
                                     struct duet_message *message);

#endif
