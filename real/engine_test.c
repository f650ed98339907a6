/* SPDX-License-Identifier: Apache-2.0 */
/* The real engine on CPU workers: order, results, errors, the end in the middle of a graph. */
#include <stdlib.h>

#include "core/testing_released.h"
#include "real/testing_steps.h"

enum { WIDE = 40, DATED = 6, ASKED = 2000 };

/* ------------------------------------------------------------------------------------------- */
/* Order and results                                                                            */

static void test_results(void)
{
    for (unsigned p = 0; duet_policy_at(p); p++) {
        struct testing t = {.cpus = 1 + p % 4, .policy = duet_policy_at(p)->name};
        (void)run_steps(&t, p, NULL);
    }
    for (unsigned cpus = 1; cpus <= 4; cpus++) {
        struct testing t = {.cpus = cpus, .window = 16};
        (void)run_steps(&t, cpus, NULL);
    }
}

/* More buffers than a kernel's slot has room for, then few again. */
static void test_many_accesses(void)
{
    OWNED(testing_close) struct duet_runtime *core = testing_open(&(struct testing){.cpus = 2});
    struct duet_codelet *codelet = testing_codelet(core, "mix", mix_all, NULL);
    uint64_t cells[WIDE], expected[WIDE];
    struct duet_access accesses[WIDE];
    for (unsigned c = 0; c < WIDE; c++) {
        cells[c] = expected[c] = c;
        accesses[c].mode = c + 1 == WIDE ? DUET_RW : DUET_R;
        accesses[c].handle = testing_cells(core, &cells[c], 1);
    }
    for (unsigned count = WIDE; count > 0; count--) {
        testing_submit(core, codelet, &accesses[WIDE - count], count, NULL, 0);
        for (unsigned c = WIDE - count; c < WIDE; c++)
            expected[WIDE - 1] = mix(expected[WIDE - 1], expected[c]);
    }
    testing_must(core, duet_wait(core));
    g_assert_cmpmem(cells, sizeof cells, expected, sizeof expected);
}

/* A kernel sees the matrix and the arguments as they were given. */
static int look_at(const struct duet_call *call)
{
    const struct duet_buffer *buffer = call->buffers;
    double *data = buffer->data, args[2];
    memcpy(args, call->args, sizeof args);
    if (call->buffer_count != 1 || buffer->rows != 3 || buffer->cols != 2 || buffer->ld != 5 ||
        buffer->element_bytes != sizeof(double) || !call->runtime || call->stream)
        return DUET_EINVAL;
    data[1 * buffer->ld + 2] = args[0] + args[1];
    return DUET_OK;
}

static void test_call(void)
{
    OWNED(testing_close) struct duet_runtime *core = testing_open(&(struct testing){.cpus = 1});
    double matrix[10] = {0}, args[] = {1, 2};
    struct duet_access access = {.mode = DUET_RW};
    testing_must(core, duet_register_matrix(core, matrix, 3, 2, 5, sizeof(double), &access.handle));
    testing_submit(core, testing_codelet(core, "look_at", look_at, NULL), &access, 1, args,
                   sizeof args);
    testing_must(core, duet_wait(core));
    g_assert_cmpfloat(matrix[7], ==, 3);
}

/* ------------------------------------------------------------------------------------------- */
/* Dates                                                                                        */

/* The two handles that the i-th task of test_dates changes. */
static unsigned handle_of(uint64_t i, unsigned which)
{
    return (unsigned)(which ? i * i + i / 7 : i) % DATED;
}

/*
 * Checks that tasks run one after another on a worker, none before it was ready or before another
 * one that it waits for had ended, none after it was waited for.
 */
static void check_dates(const struct duet_runtime *core, double end_s)
{
    g_autofree struct duet_event *events = NULL;
    size_t count = 0;
    double free_s[8] = {0}, written_s[DATED] = {0};
    g_assert_cmpint(duet_trace_events(core, &events, &count), ==, DUET_OK);
    g_assert_cmpuint(count, ==, STEPS);
    testing_check_released(events, count, 0);
    for (size_t i = 0; i < count; i++) {
        const struct duet_event *event = &events[i];
        g_assert_cmpint(event->worker, <, G_N_ELEMENTS(free_s));
        g_assert_cmpfloat(event->submit_s, >=, 0);
        g_assert_cmpfloat(event->submit_s, <=, event->ready_s);
        g_assert_cmpfloat(event->ready_s, <=, event->start_s);
        g_assert_cmpfloat(event->start_s, <=, event->end_s);
        g_assert_cmpfloat(event->end_s, <=, end_s);
        g_assert_cmpfloat(free_s[event->worker], <=, event->start_s);
        free_s[event->worker] = event->end_s;
        for (unsigned which = 0; which < 2; which++)
            g_assert_cmpfloat(written_s[handle_of(event->id, which)], <=, event->start_s);
        for (unsigned which = 0; which < 2; which++)
            written_s[handle_of(event->id, which)] = event->end_s;
    }
}

static void test_dates(void)
{
    struct testing t = {.cpus = 3, .record = true};
    OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
    struct duet_codelet *codelet = testing_codelet(core, "count", testing_count, NULL);
    _Atomic(int) calls = 0, *counter = &calls;
    uint64_t cells[DATED] = {0};
    struct duet_handle *handles[DATED];
    for (unsigned c = 0; c < DATED; c++)
        handles[c] = testing_cells(core, &cells[c], 1);
    for (uint64_t id = 1; id <= STEPS; id++) {
        const struct duet_access accesses[] = {{handles[handle_of(id, 0)], DUET_RW},
                                               {handles[handle_of(id, 1)], DUET_RW}};
        testing_submit(core, codelet, accesses, 2, &counter, sizeof counter);
    }
    testing_must(core, duet_wait(core));
    double end_s = duet_now(core);
    g_assert_cmpint(atomic_load(&calls), ==, STEPS);
    check_dates(core, end_s);
}

/*
 * A policy that lets the worker `held` wait for the counter before it is given anything, and one
 * that takes its time where the end of a kernel makes another worker's task ready.
 */
enum { HELD = 1 };

static _Atomic(int) arrived;
static _Atomic(double) pushed_s;

static void push_slowly(void *self, struct duet_view *view, struct duet_task **batch, size_t count,
                        int by, double now)
{
    duet_policy_find("pinned")->push(self, view, batch, count, by, now);
    if (by < 0)
        return;
    testing_sleep(2e-3);
    atomic_store(&pushed_s, now + 2e-3);
}

static struct duet_task *pop_late(void *self, struct duet_view *view, unsigned worker, double now)
{
    while (worker == HELD && !atomic_load(&arrived))
        testing_sleep(1e-4);
    return duet_policy_find("pinned")->pop(self, view, worker, now);
}

static struct duet_event event_of(const struct duet_runtime *core, enum duet_event_kind kind,
                                  uint64_t id)
{
    struct duet_event *events = NULL, found = {.id = 0};
    size_t count = 0;
    g_assert_cmpint(duet_trace_events(core, &events, &count), ==, DUET_OK);
    for (size_t i = 0; i < count; i++)
        if (events[i].kind == kind && events[i].id == id)
            found = events[i];
    free(events);
    g_assert_cmpuint(found.id, ==, id);
    return found;
}

static void submit_pinned(struct duet_runtime *core, const struct duet_codelet *codelet,
                          struct duet_handle *handle, enum duet_mode mode, int worker)
{
    _Atomic(int) *counter = &arrived;
    const struct duet_access access = {handle, mode};
    const struct duet_task_desc desc = {.codelet = codelet,
                                        .accesses = &access,
                                        .access_count = handle != NULL,
                                        .args = &counter,
                                        .args_bytes = sizeof counter,
                                        .priority = worker};
    testing_must(core, duet_submit(core, &desc));
}

/* A worker that looked at the clock before the data came, and was given its task after that. */
static void test_dates_of_inputs(void)
{
    enum { GPU = 2 };
    struct duet_policy late = *duet_policy_find("pinned");
    late.pop = pop_late;
    struct testing t = {.cpus = 2, .gpus = 1, .own_policy = &late, .record = true};
    atomic_store(&arrived, 0);
    OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
    uint64_t cell = 0;
    struct duet_handle *handle = testing_cells(core, &cell, 1);
    submit_pinned(core, testing_codelet(core, "write", mix_all, "cuda"), handle, DUET_RW, GPU);
    struct duet_codelet *count = testing_codelet(core, "count", testing_count, "cpu");
    submit_pinned(core, count, handle, DUET_R, 0);
    submit_pinned(core, count, handle, DUET_R, HELD);
    testing_must(core, duet_wait(core));
    const struct duet_event copy = event_of(core, DUET_EVENT_COPY, 1);
    g_assert_cmpuint(copy.destination, ==, DUET_HOST);
    for (uint64_t id = 2; id <= 3; id++)
        g_assert_cmpfloat(event_of(core, DUET_EVENT_TASK, id).start_s, >=, copy.end_s);
}

/* Nor is the time in which its worker calls another one a kernel's. */
static void test_dates_of_wakes(void)
{
    struct duet_policy slow = *duet_policy_find("pinned");
    slow.push = push_slowly;
    struct testing t = {.cpus = 2, .own_policy = &slow, .record = true};
    OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
    struct duet_codelet *codelet = testing_codelet(core, "count", testing_count, "cpu");
    uint64_t cell = 0;
    struct duet_handle *handle = testing_cells(core, &cell, 1);
    uint64_t steps;
    while (duet_worker_scheduling(core, &steps) != DUET_NO_WORKER) /* until all are idle */
        testing_sleep(1e-4);
    submit_pinned(core, codelet, handle, DUET_RW, 0);
    submit_pinned(core, codelet, handle, DUET_RW, 1);
    submit_pinned(core, codelet, NULL, 0, 0);
    testing_must(core, duet_wait(core));
    g_assert_cmpfloat(event_of(core, DUET_EVENT_TASK, 3).start_s, >=, atomic_load(&pushed_s));
}

/* ------------------------------------------------------------------------------------------- */
/* Errors                                                                                       */

static int fail(const struct duet_call *call)
{
    return DUET_EIO;
}

static void test_error(void)
{
    OWNED(testing_close) struct duet_runtime *core = testing_open(&(struct testing){.cpus = 2});
    struct duet_codelet *bad = testing_codelet(core, "spoil", fail, NULL);
    struct duet_codelet *good = testing_codelet(core, "count", testing_count, NULL);
    _Atomic(int) calls = 0, *counter = &calls;
    uint64_t cell = 0;
    struct duet_access access = {testing_cells(core, &cell, 1), DUET_RW};
    testing_submit(core, good, &access, 1, &counter, sizeof counter);
    testing_submit(core, bad, &access, 1, NULL, 0);
    testing_submit(core, good, &access, 1, &counter, sizeof counter);
    REFUSED(core, duet_wait(core), DUET_EIO, "task 2 (spoil)");
    g_assert_cmpint(atomic_load(&calls), ==, 1);
}

static void test_no_code(void)
{
    OWNED(testing_close) struct duet_runtime *core = testing_open(&(struct testing){.cpus = 1});
    const struct duet_task_desc desc = {.codelet = testing_codelet(core, "dgemm", NULL, NULL)};
    REFUSED(core, duet_submit(core, &desc), DUET_ENOWORKER,
            "kernel dgemm has no code that can run here");
    testing_must(core, duet_wait(core));
}

/* ------------------------------------------------------------------------------------------- */
/* Ends                                                                                         */

/* Holds up its worker until the counter is 1. */
static int hold_up(const struct duet_call *call)
{
    _Atomic(int) *counter;
    memcpy(&counter, call->args, sizeof counter);
    testing_until(counter, 1);
    return DUET_OK;
}

/* A long chain behind a task that is running; `cpus` such chains. */
static void submit_chains(struct duet_runtime *core, unsigned cpus, _Atomic(int) *gate,
                          _Atomic(int) *calls, uint64_t *cells)
{
    struct duet_codelet *first = testing_codelet(core, "hold_up", hold_up, NULL);
    struct duet_codelet *rest = testing_codelet(core, "count", testing_count, NULL);
    for (unsigned c = 0; c < cpus; c++) {
        struct duet_access access = {testing_cells(core, &cells[c], 1), DUET_RW};
        testing_submit(core, first, &access, 1, &gate, sizeof gate);
        for (unsigned i = 0; i < 200; i++)
            testing_submit(core, rest, &access, 1, &calls, sizeof calls);
    }
}

static void test_cancel(void)
{
    for (unsigned cpus = 1; cpus <= 3; cpus++) {
        struct testing t = {.cpus = cpus};
        OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
        _Atomic(int) gate = 0, calls = 0;
        uint64_t cells[3] = {0};
        submit_chains(core, cpus, &gate, &calls, cells);
        duet_cancel(core);
        atomic_store(&gate, 1);
        g_assert_cmpint(duet_wait(core), ==, DUET_ECANCELED);
        g_assert_cmpint(atomic_load(&calls), ==, 0);
    }
}

/* A close without a wait ends running tasks, cancels the rest, and leaves nothing behind. */
static void test_close_in_the_middle(void)
{
    for (unsigned round = 0; round < 8; round++) {
        struct testing t = {.cpus = 1 + round % 4};
        struct duet_runtime *core = testing_open(&t);
        _Atomic(int) gate = 0, calls = 0;
        uint64_t cells[4] = {0};
        submit_chains(core, t.cpus, &gate, &calls, cells);
        if (round % 2)
            testing_sleep(3e-3); /* the spare thread has taken over, most often */
        atomic_store(&gate, 1);
        if (round < 4)
            duet_cancel(core);
        duet__core_free(core);
        g_assert_cmpint(atomic_load(&calls), <=, 200 * t.cpus);
    }
}

static void test_open_close(void)
{
    for (unsigned i = 0; i < 24; i++) {
        struct duet_runtime *core = testing_open(&(struct testing){.cpus = 1 + i % 4});
        _Atomic(int) calls = 0, *counter = &calls;
        if (i % 3) {
            struct duet_codelet *codelet = testing_codelet(core, "count", testing_count, NULL);
            testing_submit(core, codelet, NULL, 0, &counter, sizeof counter);
            if (i % 3 > 1)
                testing_must(core, duet_wait(core));
        }
        duet__core_free(core);
        g_assert_cmpint(atomic_load(&calls), >=, i % 3 > 1);
        g_assert_cmpint(atomic_load(&calls), <=, i % 3 > 0);
    }
}

/* Two runtimes at once know their own threads. */
static void test_two(void)
{
    struct testing t = {.cpus = 2};
    struct duet_runtime *cores[] = {testing_open(&t), testing_open(&t)};
    struct duet_codelet *codelets[2];
    _Atomic(int) calls = 0, *counter = &calls;
    for (unsigned i = 0; i < 2; i++)
        codelets[i] = testing_codelet(cores[i], "count", testing_count, NULL);
    for (unsigned i = 0; i < STEPS; i++)
        testing_submit(cores[i % 2], codelets[i % 2], NULL, 0, &counter, sizeof counter);
    for (unsigned i = 0; i < 2; i++) {
        testing_must(cores[i], duet_wait(cores[i]));
        duet__core_free(cores[i]);
    }
    g_assert_cmpint(atomic_load(&calls), ==, STEPS);
}

/* ------------------------------------------------------------------------------------------- */
/* Any time                                                                                     */

struct asking {
    struct duet_runtime *core;
    _Atomic(bool) ends;
    unsigned number;
    uint64_t most; /* most tasks that the statistics have had */
};

/* Statistics never go back, and a message is one that some call has got, and whole. */
static void *ask(void *argument)
{
    struct asking *asking = argument;
    struct duet_handle *handle = NULL;
    struct duet_codelet *codelet = NULL;
    const struct duet_codelet_desc nameless = {.name = ""};
    do {
        struct duet_stats stats;
        duet_stats(asking->core, &stats);
        g_assert_cmpuint(stats.tasks, >=, asking->most);
        g_assert_cmpuint(stats.pops + stats.steals, <=, ASKED);
        asking->most = stats.tasks;
        g_assert_cmpuint(duet_tasks_done(asking->core), <=, ASKED);
        g_assert_cmpfloat(duet_worker_stats(asking->core, 0).busy_s, >=, 0);
        size_t rows = 1000 + asking->number;
        g_assert_cmpint(duet_register_matrix(asking->core, &stats, rows, 1, rows - 1, 1, &handle),
                        ==, DUET_EINVAL);
        g_assert_cmpint(duet_register_codelet(asking->core, &nameless, &codelet), ==, DUET_EINVAL);
        const char *message = duet_last_message(asking->core);
        g_assert_true(g_str_has_suffix(message, "the number of rows") ||
                      g_str_has_suffix(message, "name of 1 to 31 bytes"));
    } while (!atomic_load(&asking->ends));
    return NULL;
}

static void test_any_time(void)
{
    struct testing t = {.cpus = 2};
    _Atomic(int) calls = 0, *counter = &calls;
    pthread_t ids[2];
    struct asking asking[2];
    OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
    struct duet_codelet *codelet = testing_codelet(core, "count", testing_count, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(ids); i++) {
        asking[i] = (struct asking){.core = core, .number = i};
        g_assert_cmpint(pthread_create(&ids[i], NULL, ask, &asking[i]), ==, 0);
    }
    for (unsigned i = 0; i < ASKED; i++)
        testing_submit(core, codelet, NULL, 0, &counter, sizeof counter);
    testing_must(core, duet_wait(core));
    for (unsigned i = 0; i < G_N_ELEMENTS(ids); i++) {
        atomic_store(&asking[i].ends, true);
        (void)pthread_join(ids[i], NULL);
    }
    g_assert_cmpuint(duet_worker_stats(core, 0).tasks + duet_worker_stats(core, 1).tasks, ==,
                     ASKED);
}

TEST_MAIN(test_results, test_many_accesses, test_call, test_dates, test_dates_of_inputs,
          test_dates_of_wakes, test_error, test_no_code, test_cancel, test_close_in_the_middle,
          test_open_close, test_two, test_any_time)
