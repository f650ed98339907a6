/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls between the core and the backends beside commands: page-locking, handles' marks, reasons of
 * failures, lines for the user. On emulated GPUs, which detect forbidden calls of an engine and
 * report them on standard error.
 */
#include <stdlib.h>

#include "backends/emulated/internal.h"
#include "real/internal.h"
#include "real/testing_steps.h"

/* ------------------------------------------------------------------------------------------- */
/* Page-locking                                                                                 */

static void test_pin(void)
{
    struct testing t = {.cpus = 1, .gpus = 1, .pin_bytes = 100};
    OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
    char data[200];
    testing_must(core, duet_pin(core, data, 60));
    testing_must(core, duet_pin(core, data + 10, 20));
    REFUSED(core, duet_pin(core, data + 50, 20), DUET_EINVAL, "overlap");
    REFUSED(core, duet_pin(core, data + 100, 41), DUET_ENOMEM, "60 of at most 100");
    g_assert_cmpint(duet_unpin(core, data + 10), ==, DUET_EINVAL);
    testing_must(core, duet_unpin(core, data));
    g_assert_cmpint(duet_unpin(core, data), ==, DUET_EINVAL);
    testing_must(core, duet_pin(core, data + 100, 41)); /* ends with the run */
    testing_must(core, duet_wait(core));
}

/* Nothing is page-locked where there are no copies, or where only time passes. */
static void test_no_pin(void)
{
    struct testing without = {.cpus = 1}, paced = {.gpus = 1, .scale = 1, .seconds = 1e-6};
    struct testing *const cases[] = {&without, &paced};
    char data[200];
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        OWNED(testing_close) struct duet_runtime *core = testing_open(cases[i]);
        testing_must(core, duet_pin(core, data, 60));
        testing_must(core, duet_pin(core, data + 50, 60));
        testing_must(core, duet_unpin(core, data + 7));
        g_assert_cmpint(duet_pin(core, data, 0), ==, DUET_EINVAL);
    }
}

static int pin_one(const struct duet_call *call)
{
    char *data;
    memcpy(&data, call->args, sizeof data);
    return duet_pin(call->runtime, data, 8);
}

/* From kernels, on all threads at once. */
static void test_from_kernels(void)
{
    enum { COUNT = 200 };
    struct testing t = {.cpus = 2, .gpus = 2, .pin_bytes = 8 * COUNT};
    OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
    struct duet_codelet *codelet = testing_codelet(core, "pin", pin_one, NULL);
    char data[COUNT][8];
    for (unsigned i = 0; i < COUNT; i++) {
        char *at = data[i];
        testing_submit(core, codelet, NULL, 0, &at, sizeof at);
    }
    testing_must(core, duet_wait(core));
    g_assert_cmpint(duet_pin(core, &t, 8), ==, DUET_ENOMEM);
    for (unsigned i = 0; i < COUNT; i++)
        testing_must(core, duet_unpin(core, data[i]));
}

/* ------------------------------------------------------------------------------------------- */
/* Marks                                                                                        */

/* The emulated devices' books, while the run is open. */
static const struct locks *locks_of(const struct duet_runtime *core)
{
    const struct real *real = duet__core_engine(core);
    const struct use *marker = duet__marker(real);
    const struct emulated *emulated = marker->shared;
    return &emulated->locks;
}

static int add_one(const struct duet_call *call)
{
    ++*(uint64_t *)call->buffers[0].data;
    return DUET_OK;
}

/* A handle has a note once it was copied; one that is unregistered has none any more. */
static void test_marks(void)
{
    OWNED(testing_close) struct duet_runtime *core = testing_open(&(struct testing){.gpus = 2});
    struct duet_codelet *codelet = testing_codelet(core, "add", add_one, NULL);
    uint64_t cells[3] = {0};
    struct duet_access accesses[3];
    for (unsigned c = 0; c < 3; c++) {
        accesses[c].mode = DUET_RW;
        testing_must(core, duet_register_vector(core, &cells[c], 1, sizeof cells[c],
                                                &accesses[c].handle));
        g_assert_null(atomic_load(duet__handle_mark(accesses[c].handle)));
    }
    for (unsigned i = 0; i < 20; i++)
        testing_submit(core, codelet, &accesses[i % 2], 1, NULL, 0);
    testing_must(core, duet_wait(core));
    g_assert_nonnull(atomic_load(duet__handle_mark(accesses[0].handle)));
    g_assert_nonnull(atomic_load(duet__handle_mark(accesses[1].handle)));
    g_assert_null(atomic_load(duet__handle_mark(accesses[2].handle)));
    g_assert_nonnull(locks_of(core)->notes);
    for (unsigned c = 0; c < 3; c++)
        testing_must(core, duet_unregister(core, accesses[c].handle));
    g_assert_null(locks_of(core)->notes);
    g_assert_cmpuint(locks_of(core)->errors, ==, 0);
    g_assert_cmpuint(cells[0] + cells[1], ==, 20);
}

static int split(struct duet_expansion *expansion, const struct duet_call *call)
{
    struct duet_codelet *codelet;
    memcpy(&codelet, call->args, sizeof codelet);
    for (size_t i = 0; i < call->buffers[0].rows; i++) {
        struct duet_access access = {.mode = DUET_RW};
        int error = duet_expand_block(expansion, 0, i, 0, 1, 1, &access.handle);
        const struct duet_task_desc task = {.codelet = codelet,
                                            .accesses = &access,
                                            .access_count = 1};
        if (!error)
            error = duet_expand_submit(expansion, &task);
        if (error)
            return error;
    }
    return DUET_OK;
}

/* Blocks of an expansion do not last: their copies carry no mark. */
static void test_blocks(void)
{
    struct testing t = {.cpus = 1, .gpus = 2};
    OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
    struct duet_codelet *add = testing_codelet(core, "add", add_one, "cuda"), *codelet = NULL;
    const struct duet_codelet_desc desc = {.name = "split", .expand = split};
    uint64_t cells[8] = {0};
    struct duet_access access = {.mode = DUET_RW};
    testing_must(core, duet_register_codelet(core, &desc, &codelet));
    testing_must(core, duet_register_vector(core, cells, 8, sizeof cells[0], &access.handle));
    for (unsigned i = 0; i < 5; i++)
        testing_submit(core, codelet, &access, 1, &add, sizeof add);
    testing_must(core, duet_wait(core));
    struct duet_stats stats;
    duet_stats(core, &stats);
    g_assert_cmpuint(stats.copies_to_device, >, 0);
    g_assert_null(locks_of(core)->notes);
    testing_must(core, duet_unregister(core, access.handle));
    for (unsigned c = 0; c < 8; c++)
        g_assert_cmpuint(cells[c], ==, 5);
}

/* A run that is given up in the middle, with copies under way and handles left. */
static void subprocess_given_up(void)
{
    for (unsigned round = 0; round < 20; round++) {
        struct testing t = {.cpus = round % 2,
                            .gpus = 2,
                            .gpu_memory_bytes = round % 4 < 2 ? 0 : 8 << 8,
                            .lose = round % 8 < 4 ? NULL : "gpu0@40"};
        uint64_t cells[CELLS] = {0};
        OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
        submit_mixes(core, cells, 300);
        duet_cancel(core);
    }
}

/* Nothing is forgotten while it is copied, nothing is left at the end. */
static void test_given_up(void)
{
    g_test_trap_subprocess("/subprocess/given_up", 0, G_TEST_SUBPROCESS_DEFAULT);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr_unmatched("*emulated devices*");
}

/* ------------------------------------------------------------------------------------------- */
/* Reasons                                                                                      */

static int fail_silently(const struct duet_call *call)
{
    return DUET_ETASK;
}

static int fail_saying(const struct duet_call *call)
{
    return duet_fail(call->message, DUET_ETASK, "no pivot in column %d", 3);
}

static int fail_by_status(const struct duet_call *call)
{
    if (!call->status)
        return duet_fail(call->message, DUET_ETASK, "info = 7"); /* on a CPU */
    *call->status = 7;
    return DUET_OK;
}

static int only_say(const struct duet_call *call)
{
    (void)duet_fail(call->message, DUET_ETASK, "all is well");
    return DUET_OK;
}

/* The run's message says what the kernel says, on CPUs and devices. */
static void test_reasons(void)
{
    static const struct {
        duet_kernel_fn run;
        const char *why;
    } cases[] = {{fail_silently, "a task failed"},
                 {fail_saying, "no pivot in column 3"},
                 {fail_by_status, "info = 7"}};
    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(cases); i++) {
        bool gpu = i % 2;
        struct testing t = {.cpus = !gpu, .gpus = gpu};
        OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
        testing_submit(core, testing_codelet(core, "talk", only_say, NULL), NULL, 0, NULL, 0);
        testing_must(core, duet_wait(core));
        testing_submit(core, testing_codelet(core, "bad", cases[i / 2].run, NULL), NULL, 0, NULL,
                       0);
        g_assert_cmpint(duet_wait(core), ==, DUET_ETASK);
        g_autofree char *expected = g_strdup_printf("task 2 (bad) failed on %s0: %s",
                                                    gpu ? "gpu" : "cpu", cases[i / 2].why);
        g_assert_cmpstr(duet_last_message(core), ==, expected);
    }
}

static int maybe_fail(const struct duet_call *call)
{
    unsigned number;
    memcpy(&number, call->args, sizeof number);
    return number == 1000 ? duet_fail(call->message, DUET_ETASK, "number %u", number)
                          : only_say(call);
}

/* Each kernel has a message of its own, also while several are in flight on a device. */
static void test_many_in_flight(void)
{
    OWNED(testing_close) struct duet_runtime *core = testing_open(&(struct testing){.gpus = 1});
    struct duet_codelet *codelet = testing_codelet(core, "maybe", maybe_fail, NULL);
    const struct duet_worker *gpu = &duet_runtime_machine(core)->workers[0];
    g_assert_cmpuint(gpu->window_short, >, gpu->window);
    for (unsigned i = 0; i <= 1200; i++)
        testing_submit(core, codelet, NULL, 0, &i, sizeof i);
    g_assert_cmpint(duet_wait(core), ==, DUET_ETASK);
    g_assert_nonnull(
        strstr(duet_last_message(core), "task 1001 (maybe) failed on gpu0: number 1000"));
}

static int nest_fail(const struct duet_call *call)
{
    struct duet_codelet *codelet;
    memcpy(&codelet, call->args, sizeof codelet);
    const struct duet_task_desc task = {.codelet = codelet};
    return codelet ? duet_submit(call->runtime, &task) : DUET_OK;
}

/* A task kept by a worker can give a reason of its failure, too. */
static void test_nested(void)
{
    OWNED(testing_close) struct duet_runtime *core = testing_open(&(struct testing){.cpus = 1});
    struct duet_codelet *quiet = testing_codelet(core, "quiet", only_say, NULL), *none = NULL;
    struct duet_codelet *outer = testing_codelet(core, "outer", nest_fail, NULL);
    struct duet_codelet *bad = testing_codelet(core, "bad", fail_saying, NULL);
    for (unsigned i = 0; i < 200; i++) { /* until they are known to be short */
        testing_submit(core, quiet, NULL, 0, NULL, 0);
        testing_submit(core, outer, NULL, 0, &none, sizeof none);
    }
    testing_must(core, duet_wait(core));
    testing_submit(core, outer, NULL, 0, &bad, sizeof bad);
    REFUSED(core, duet_wait(core), DUET_ETASK, "(bad) failed on cpu0: no pivot in column 3");
}

/* ------------------------------------------------------------------------------------------- */
/* Lines                                                                                        */

static void subprocess_say(void)
{
    OWNED(testing_close) struct duet_runtime *core = testing_open(&(struct testing){.cpus = 1});
    struct real *real = duet__core_engine(core);
    for (unsigned i = 0; i < 30; i++) {
        char line[32];
        (void)snprintf(line, sizeof line, "line %u.", i % 10);
        duet__say(real, line);
    }
}

/* Each line once, in the order in which they were said. */
static void test_say(void)
{
    g_test_trap_subprocess("/subprocess/say", 0, G_TEST_SUBPROCESS_DEFAULT);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("duet: line 0.\nduet: line 1.\n*duet: line 9.\n");
    g_test_trap_assert_stderr_unmatched("*line 0.*line 0.*");
    g_test_trap_assert_stderr_unmatched("*line 9.*line 9.*");
}

TEST_MAIN(test_pin, test_no_pin, test_from_kernels, test_marks, test_blocks, test_given_up,
          subprocess_given_up, test_reasons, test_many_in_flight, test_nested, test_say,
          subprocess_say)
