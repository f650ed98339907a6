/* SPDX-License-Identifier: Apache-2.0 */
/* Measurements through the public interface: of the runtime's operations, memory's bandwidth,
 * copies and messages. */
#ifndef DUET_CALIBRATE_LAB_H
#define DUET_CALIBRATE_LAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

#include <duet/duet.h>
#include <duet/trace.h>

#include "base/clock.h"
#include "base/stats.h"
#include "nodes/mpi.h"
#include "platforms/model/network.h"

/* ------------------------------------------------------------------------------------------- */
/* Measures the runtime's own operations on this machine, and the bandwidth of its memory, through
 * the public interface. */

/* Input of measurements. Their errors are those of duet_open, DUET_ENOMEM, DUET_ETASK and
 * DUET_ECANCELED, all with a message. */
struct duet__measurement {
    const struct duet_config *config; /* the machine; policy, records and window are chosen */
    double end_s;                /* deadline on duet__clock_s; some samples are taken in any case */
    bool (*stop)(void *context); /* asked between steps: true ends the measurement; may be NULL */
    void *context;
    struct duet_message *message;
};

/* A measured time. */
struct duet__measured {
    const char *name;           /* "submit", a constant */
    const char *description;    /* one line, a constant */
    struct duet__summary times; /* seconds; count 0: not measured, `why` has the reason */
    const char *why;            /* NULL: it was measured */
};

enum duet__cost {
    DUET__COST_SUBMIT,        /* a task, on the application's thread, until it is in the graph */
    DUET__COST_PUSH,          /* a finished task makes another one ready: on a list */
    DUET__COST_POP,           /* a task is taken from the own list, run and reported done (empty) */
    DUET__COST_STEAL,         /* like POP, but from another worker's list, at the first attempt */
    DUET__COST_TASK,          /* an empty task on one worker: the sum of the above but STEAL */
    DUET__COST_WAKE,          /* from waking a CPU worker that sleeps until its kernel begins */
    DUET__COST_SPIN,          /* how long a worker polls before it sleeps */
    DUET__COST_KERNEL_LAUNCH, /* on the thread that feeds a device */
    DUET__COST_COPY_LAUNCH,
    DUET__COST_EVENT, /* from the end of a device's command until its thread knows */
    DUET__COSTS,
};

/* Measures all of them. */
DUET_MUST_CHECK int duet__costs_measure(const struct duet__measurement *given,
                                        struct duet__measured costs[DUET__COSTS]);

/*
 * Sets *out to the costs that the simulation charges: medians; 0 for costs that were not measured.
 * An attempt to steal, of which a stolen task may take several, is charged the difference of a
 * stolen and a popped task: failed attempts take less than that.
 */
void duet__costs_fill(const struct duet__measured costs[DUET__COSTS], struct duet_costs *out);

/* Bytes a second that the cores of one socket get from memory, beyond all caches. */
struct duet__bandwidth {
    double one_Bps;   /* what one core alone gets */
    double all_Bps;   /* what all CPU workers of the socket get together */
    uint64_t samples; /* 0: not measured */
};

/*
 * Measures by streaming through vectors far larger than any cache (y := y + a x, bytes as struct
 * duet__demand counts them: of each operand once) on one core, and on all CPU workers of its
 * socket. After an error *out is zeroed.
 */
DUET_MUST_CHECK int duet__bandwidth_measure(const struct duet__measurement *given,
                                            struct duet__bandwidth *out);

/* ------------------------------------------------------------------------------------------- */
/* A runtime, a clock, tasks, values                                                            */

/* An open runtime with the kernels that measurements use. The first error stays, with its message:
 * later calls then do nothing, but waiting waits and closing closes. */
struct duet__microbench {
    const struct duet__measurement *given; /* borrowed */
    struct duet_runtime *runtime;
    const struct duet_machine *machine; /* the runtime's */
    unsigned cpus;                      /* workers of the host's memory, the first ones */
    struct duet_codelet *empty;         /* does nothing, everywhere */
    void *memory; /* tasks' data: g_free frees it once the runtime is closed */
    int error;
};

/*
 * Opens a runtime, quiet, under this policy. Without GPUs it is the host alone, not emulated: at
 * least one CPU worker, and at most `cpus` if that is not 0. Else it has so many CPU workers, at
 * most `gpus` GPUs if their number was given, and records. False: bench->error is one of duet_open,
 * DUET_ENOMEM or DUET_ECANCELED, with its message. Either way it is to be closed. Closing returns
 * bench->error, or if that is 0 the status of duet_close.
 */
DUET_MUST_CHECK bool duet__microbench_open(struct duet__microbench *bench,
                                           const struct duet__measurement *given,
                                           const char *policy, int cpus, int gpus);
DUET_MUST_CHECK int duet__microbench_close(struct duet__microbench *bench);

/* True if there is no error so far, and the user wants more; if he does not, that is the error. */
bool duet__microbench_goes_on(struct duet__microbench *bench);

/* True if another one is wanted after `count`: up to `least`, then up to `most` until the date. */
bool duet__microbench_more(struct duet__microbench *bench, size_t count, size_t least, size_t most,
                           double end_s);

/* Returns the date at which this part of the remaining time ends. */
double duet__microbench_share(const struct duet__microbench *bench, double part);

/* Notes an error of the runtime, if it is the first one; 0 is none. */
void duet__microbench_note(struct duet__microbench *bench, int error);

/* Makes a kernel for all architectures, which does nothing where it is NULL. NULL after an
 * error. */
struct duet_codelet *duet__microbench_kernel(struct duet__microbench *bench, const char *name,
                                             duet_kernel_fn cpu, duet_kernel_fn emulated);

/* Registers data of `bytes` bytes; NULL after an error. To be forgotten before its memory is
 * freed. */
struct duet_handle *duet__microbench_vector(struct duet__microbench *bench, void *data,
                                            size_t bytes);
void duet__microbench_forget(struct duet__microbench *bench,
                             struct duet_handle *handle); /* NULL is fine */

/* Submits a task, on this worker if the policy is "pinned"; kernels find `context` as their
 * argument. */
void duet__microbench_submit(struct duet__microbench *bench, const struct duet_codelet *codelet,
                             unsigned worker, const struct duet_access *accesses, size_t count,
                             void *context);
void duet__microbench_wait(struct duet__microbench *bench);
/* Waits. Returns the number of records since the last reset; *events is the caller's (free). */
size_t duet__microbench_events(struct duet__microbench *bench, struct duet_event **events);

/* Sets the times of a cost, unless there are none, and frees the values (double). */
void duet__measured_set(struct duet__measured *out, GArray *values);

/* ------------------------------------------------------------------------------------------- */
/*
 * Copies between memories: latency and bandwidth of each pair and direction, alone and at the same
 * time, and which devices share a link, as these figures tell.
 */

/* Copies of one pair of memory nodes, alone. */
struct duet__copy_pair {
    unsigned source, destination; /* memory nodes */
    uint64_t samples;
    double latency_s, bandwidth_Bps; /* t = latency + bytes / bandwidth, robust fit */
    double error;                    /* median relative error of that fit */
    bool direct;                     /* false: copies went through the host */
};

/* Copies of two directed pairs at the same time. */
struct duet__together {
    size_t first, second;         /* indices into pairs */
    double first_Bps, second_Bps; /* bandwidth of each at the same time */
};

struct duet__copies {
    unsigned node_count;
    struct duet__copy_pair *pairs;
    size_t pair_count;
    struct duet__together *together;
    size_t together_count;
    /* inferred: by device (memory node - 1), the number of its switch; devices of one switch share
     * its link to the host */
    unsigned *switches;
    unsigned switch_count;
    double *to_device_Bps, *to_host_Bps; /* link of each switch, shared by its devices */
};

/*
 * Measures copies by tasks that need data elsewhere. Sizes go from 4 KiB to copies of some
 * milliseconds. In the host's memory copies move on from place to place, and begin again once all
 * of it was used, so that no cache has their data. Without devices, and after an error, *out is
 * empty. The caller owns *out (duet__copies_fini).
 */
DUET_MUST_CHECK int duet__copies_measure(const struct duet__measurement *given,
                                         struct duet__copies *out);

/*
 * Infers switches and the links' bandwidths from pairs and together: devices whose copies from the
 * host slow each other down by more than a tenth share a link (transitively), unless all devices
 * share the host's memory.
 */
void duet__copies_infer(struct duet__copies *copies);

/* One copy without others beside it. */
struct duet__copy_sample {
    double bytes, seconds;
};

/*
 * Fits latency_s >= 0 and bandwidth_Bps > 0 of t = latency + bytes / bandwidth so that the sum of
 * absolute relative errors is smallest: iteratively reweighted least squares (Holland, Welsch,
 * Communications in Statistics A6, 1977). `error` becomes the median relative error. Without
 * samples, or only such that take no time, all is 0.
 */
void duet__copies_fit(const struct duet__copy_sample *samples, size_t count,
                      struct duet__copy_pair *out);

void duet__copies_fini(struct duet__copies *copies); /* safe on a zeroed one, and twice */

/* ------------------------------------------------------------------------------------------- */
/* The network between processes of MPI: figures from measured messages. */

/* Messages of one size. */
struct duet__network_size {
    uint64_t bytes;
    struct duet__summary ping; /* seconds of one, without outliers */
    size_t rejected;           /* number of outliers */
    double stream_s;           /* median seconds of each of many at once; 0: not measured */
    double predicted_s;        /* duet__network_message_s */
};

struct duet__network_fit {
    struct duet__network network; /* a switch */
    struct duet__network_size sizes[DUET__MPI_SIZES];
    size_t count;
};

/*
 * Fits figures to measured messages. Overhead: the median time of each of many small messages given
 * to MPI at once, since all that they share is processors (the gap of LogP, Culler et al., PPoPP
 * 1993); but at most half of a small message's time, as both ends have one. Latency, bandwidth and
 * rendezvous: by least absolute relative errors of the medians of all sizes, none of them negative,
 * so that each size is predicted, not only the largest. DUET_EINVAL with a message if nothing was
 * measured.
 */
DUET_MUST_CHECK int duet__network_fit(const struct duet__mpi_measured *measured,
                                      struct duet__network_fit *out, struct duet_message *message);

/*
 * Measures the submission on one node of a task, with three accesses, that runs on another node
 * alone. Called in every process, of which config->nodes is the number. Errors as
 * duet__costs_measure.
 */
DUET_MUST_CHECK int duet__foreign_measure(const struct duet__measurement *given,
                                          struct duet__measured *out);

#endif
