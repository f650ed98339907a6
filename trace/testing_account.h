/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings made by hand, for the tests of accounts and explanations. */
#ifndef DUET_TRACE_TESTING_ACCOUNT_H
#define DUET_TRACE_TESTING_ACCOUNT_H

#include <math.h>

#include "report/testing_report.h"
#include "trace/recording.h"
#include "trace/account.h"

enum { TESTING_EVENTS = 64 };

/* Worker 0 is a CPU, workers 1 and 2 are GPUs, in memories 1 and 2. */
struct testing_recording {
    struct duet_machine machine;
    struct duet_event events[TESTING_EVENTS];
    struct duet__recording recording;
};

static const char *testing_kernels[] = {"potrf", "gemm"};

static inline void testing_init(struct testing_recording *testing, double makespan_s)
{
    *testing = (struct testing_recording){0};
    sample_machine(&testing->machine, 1, 2);
    testing->recording = (struct duet__recording){.machine = &testing->machine,
                                                  .events = testing->events,
                                                  .kernels = testing_kernels,
                                                  .kernel_count = G_N_ELEMENTS(testing_kernels),
                                                  .makespan_s = makespan_s};
}

static inline void testing_fini(struct testing_recording *testing)
{
    duet_machine_fini(&testing->machine);
}

/* The account does not need events in order. */
static inline struct duet_event *testing_task(struct testing_recording *testing, int worker,
                                              unsigned kernel, double ready_s, double start_s,
                                              double end_s)
{
    size_t index = testing->recording.event_count++;
    uint16_t node = (uint16_t)testing->machine.workers[worker].node;
    g_assert_cmpuint(index, <, TESTING_EVENTS);
    testing->events[index] = (struct duet_event){.kind = DUET_EVENT_TASK,
                                                 .worker = worker,
                                                 .kernel = kernel,
                                                 .id = index + 1,
                                                 .ready_s = ready_s,
                                                 .start_s = start_s,
                                                 .end_s = end_s,
                                                 .source = node,
                                                 .destination = node};
    return &testing->events[index];
}

static inline struct duet_event *testing_copy(struct testing_recording *testing, uint64_t handle,
                                              uint16_t source, uint16_t destination,
                                              double decided_s, double start_s, double end_s)
{
    size_t index = testing->recording.event_count++;
    g_assert_cmpuint(index, <, TESTING_EVENTS);
    testing->events[index] = (struct duet_event){.kind = DUET_EVENT_COPY,
                                                 .id = handle,
                                                 .submit_s = decided_s,
                                                 .ready_s = decided_s,
                                                 .start_s = start_s,
                                                 .end_s = end_s,
                                                 .source = source,
                                                 .destination = destination,
                                                 .bytes = 1000};
    return &testing->events[index];
}

static inline int testing_by_start(const void *left, const void *right, void *data)
{
    const struct duet_event *a = left, *b = right;
    return (a->start_s > b->start_s) - (a->start_s < b->start_s);
}

/* Finds what released the events, by dates, as where the records do not say it. */
static inline void testing_release(struct testing_recording *testing)
{
    g_qsort_with_data(testing->events, (gint)testing->recording.event_count,
                      sizeof *testing->events, testing_by_start, NULL);
    duet__releases_guess(&testing->recording, false);
}

static inline void testing_near(double value, double expected)
{
    /* sums of a few dates of a few seconds: all but their last bits */
    g_assert_cmpfloat_with_epsilon(value, expected, 1e-12 * (1 + fabs(expected)));
}

#endif
