/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that run the first CPU worker: waiting threads of the application, and the spare thread.
 */
#include <stdlib.h>

#include <duet/policy.h>

#include "real/testing.h"

enum { THREADS = 4, ROUNDS = 40 };

/* ------------------------------------------------------------------------------------------- */
/* The application waits                                                                        */

/* Tasks run on the thread that waits, with one CPU worker. */
static int where_am_i(const struct duet_call *call)
{
    pthread_t *thread;
    memcpy(&thread, call->args, sizeof thread);
    *thread = pthread_self();
    return DUET_OK;
}

static void test_waiting_thread_runs(void)
{
    OWNED(testing_close) struct duet_runtime *core = testing_open(&(struct testing){.cpus = 1});
    struct duet_codelet *codelet = testing_codelet(core, "where_am_i", where_am_i, NULL);
    unsigned here = 0;
    /* the spare thread may be faster when this thread is held up, but not always */
    for (unsigned round = 0; round < ROUNDS || !here; round++) {
        pthread_t thread = {0}, *to = &thread;
        testing_submit(core, codelet, NULL, 0, &to, sizeof to);
        testing_must(core, duet_wait(core));
        here += pthread_equal(thread, pthread_self()) != 0;
    }
}

/* Holds up whoever submits what is ready. */
static void slow_push(void *self, struct duet_view *view, struct duet_task **batch, size_t count,
                      int by, double now)
{
    for (size_t i = 0; i < count; i++)
        duet_push_tail(view, duet_view_shared(view), batch[i]);
    if (by == DUET_SUBMITTER)
        testing_sleep(5e-3);
}

static struct duet_task *pop(void *self, struct duet_view *view, unsigned worker, double now)
{
    return duet_pop_head(view, duet_view_shared(view), worker);
}

/* Held tasks run on the thread that lets them in, however long that takes. */
static void test_held(void)
{
    const struct duet_policy slow = {.name = "slow",
                                     .description = "slow to push",
                                     .source = "a test",
                                     .order = DUET_DEQUE,
                                     .push = slow_push,
                                     .pop = pop};
    struct testing t = {.cpus = 1, .hold = true, .own_policy = &slow};
    OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
    struct duet_codelet *codelet = testing_codelet(core, "where_am_i", where_am_i, NULL);
    pthread_t threads[10] = {0};
    for (unsigned i = 0; i < G_N_ELEMENTS(threads); i++) {
        pthread_t *to = &threads[i];
        testing_submit(core, codelet, NULL, 0, &to, sizeof to);
    }
    testing_must(core, duet_wait(core));
    for (unsigned i = 0; i < G_N_ELEMENTS(threads); i++)
        g_assert_true(pthread_equal(threads[i], pthread_self()));
}

struct submitter {
    struct duet_runtime *core;
    struct duet_codelet *codelet;
    _Atomic(int) *calls;
    pthread_t id;
};

/* Submits and waits, all the time, beside others that do the same. */
static void *submit_and_wait(void *argument)
{
    const struct submitter *self = argument;
    uint64_t cell = 0;
    struct duet_access access = {testing_cells(self->core, &cell, 1), DUET_RW};
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i <= round % 5; i++)
            testing_submit(self->core, self->codelet, &access, i % 2, &self->calls,
                           sizeof self->calls);
        if (round % 3 == 0) {
            testing_must(self->core, duet_acquire(self->core, access.handle, DUET_RW));
            testing_must(self->core, duet_release(self->core, access.handle));
        } else if (round % 3 == 1) {
            testing_must(self->core, duet_wait(self->core));
        }
    }
    testing_must(self->core, duet_unregister(self->core, access.handle));
    return NULL;
}

static void several_threads(unsigned cpus, size_t window)
{
    struct testing t = {.cpus = cpus, .window = window};
    OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
    struct duet_codelet *codelet = testing_codelet(core, "count", testing_count, NULL);
    _Atomic(int) calls = 0;
    struct submitter submitters[THREADS];
    int expected = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        submitters[i] = (struct submitter){.core = core, .codelet = codelet, .calls = &calls};
        g_assert_cmpint(pthread_create(&submitters[i].id, NULL, submit_and_wait, &submitters[i]),
                        ==, 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        g_assert_cmpint(pthread_join(submitters[i].id, NULL), ==, 0);
    testing_must(core, duet_wait(core));
    for (int round = 0; round < ROUNDS; round++)
        expected += THREADS * (1 + round % 5);
    g_assert_cmpint(atomic_load(&calls), ==, expected);
}

static void test_several_threads(void)
{
    for (unsigned cpus = 1; cpus <= 3; cpus++) {
        several_threads(cpus, 0);
        several_threads(cpus, 8);
    }
}

/* A full window is waited for, again and again. */
static void test_window(void)
{
    for (unsigned cpus = 1; cpus <= 2; cpus++) {
        struct testing t = {.cpus = cpus, .window = 4};
        OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
        struct duet_codelet *codelet = testing_codelet(core, "count", testing_count, NULL);
        _Atomic(int) calls = 0, *counter = &calls;
        for (unsigned i = 0; i < 2000; i++)
            testing_submit(core, codelet, NULL, 0, &counter, sizeof counter);
        testing_must(core, duet_wait(core));
        g_assert_cmpint(atomic_load(&calls), ==, 2000);
    }
}

/* A wait that is over leaves ready tasks on the worker's list: they are not forgotten. */
static void test_left_over(void)
{
    OWNED(testing_close) struct duet_runtime *core = testing_open(&(struct testing){.cpus = 1});
    struct duet_codelet *codelet = testing_codelet(core, "count", testing_count, NULL);
    _Atomic(int) calls = 0, *counter = &calls;
    uint64_t cell = 0;
    struct duet_access access = {testing_cells(core, &cell, 1), DUET_RW};
    for (int round = 1; round <= 5; round++) {
        for (unsigned i = 0; i < 100; i++)
            testing_submit(core, codelet, NULL, 0, &counter, sizeof counter);
        testing_must(core, duet_acquire(core, access.handle, DUET_R));
        testing_must(core, duet_release(core, access.handle));
        testing_until(&calls, 100 * round);
    }
    testing_must(core, duet_wait(core));
}

/* ------------------------------------------------------------------------------------------- */
/* The application does not wait                                                                */

static void test_spare(void)
{
    for (unsigned cpus = 1; cpus <= 2; cpus++) {
        struct testing t = {.cpus = cpus};
        OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
        struct duet_codelet *codelet = testing_codelet(core, "count", testing_count, NULL);
        _Atomic(int) calls = 0, *counter = &calls;
        for (int round = 1; round <= 20; round++) {
            for (unsigned i = 0; i < 10; i++)
                testing_submit(core, codelet, NULL, 0, &counter, sizeof counter);
            testing_until(&calls, 10 * round);
            if (round % 4 == 0)
                testing_must(core, duet_wait(core));
        }
    }
}

/* Holds up its worker until the counter is 1; then 2. */
static int pass_the_gate(const struct duet_call *call)
{
    _Atomic(int) *counter;
    memcpy(&counter, call->args, sizeof counter);
    atomic_fetch_add(counter, 10);
    while ((atomic_load(counter) & 1) == 0)
        testing_sleep(1e-4);
    return DUET_OK;
}

static void *open_the_gate(void *argument)
{
    testing_sleep(5e-3);
    atomic_fetch_add((_Atomic(int) *)argument, 1);
    return NULL;
}

/* The spare thread is in the middle of a task when the application comes to wait, and gives way. */
static void test_gives_way(void)
{
    OWNED(testing_close) struct duet_runtime *core = testing_open(&(struct testing){.cpus = 1});
    struct duet_codelet *gate = testing_codelet(core, "gate", pass_the_gate, NULL);
    struct duet_codelet *where = testing_codelet(core, "where_am_i", where_am_i, NULL);
    unsigned here = 0;
    /* the gate may be open before this thread waits, but not always */
    for (unsigned round = 0; round < 5 || !here; round++) {
        _Atomic(int) state = 0, *counter = &state;
        uint64_t cell = 0;
        pthread_t thread = {0}, *to = &thread, opener;
        struct duet_access access = {testing_cells(core, &cell, 1), DUET_RW};
        testing_submit(core, gate, &access, 1, &counter, sizeof counter);
        testing_until(&state, 10);
        testing_submit(core, where, &access, 1, &to, sizeof to);
        g_assert_cmpint(pthread_create(&opener, NULL, open_the_gate, &state), ==, 0);
        testing_must(core, duet_wait(core));
        here += pthread_equal(thread, pthread_self()) != 0;
        g_assert_cmpint(pthread_join(opener, NULL), ==, 0);
        testing_must(core, duet_unregister(core, access.handle));
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Kernels that submit                                                                          */

struct tree {
    _Atomic(int) *calls;
    struct duet_codelet *codelet;
    unsigned depth;
};

static int grow(const struct duet_call *call)
{
    struct tree tree;
    memcpy(&tree, call->args, sizeof tree);
    atomic_fetch_add(tree.calls, 1);
    if (tree.depth-- == 0)
        return DUET_OK;
    const struct duet_task_desc desc = {.codelet = tree.codelet,
                                        .args = &tree,
                                        .args_bytes = sizeof tree};
    int error = duet_submit(call->runtime, &desc);
    return error ? error : duet_submit(call->runtime, &desc);
}

static void test_nested(void)
{
    /* also beyond a window that is much too small, for which a kernel cannot wait */
    const size_t windows[] = {0, 4};
    for (unsigned i = 0; i < 6; i++) {
        struct testing t = {.cpus = 1 + i % 3, .window = windows[i / 3]};
        OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
        _Atomic(int) calls = 0;
        struct tree tree = {&calls, testing_codelet(core, "grow", grow, NULL), 9};
        testing_submit(core, tree.codelet, NULL, 0, &tree, sizeof tree);
        testing_must(core, duet_wait(core));
        g_assert_cmpint(atomic_load(&calls), ==, 1023);
    }
}

struct family {
    _Atomic(int) *calls;
    struct duet_codelet *codelet;
    struct duet_handle *handle; /* handle of the child: its worker may not keep it to itself */
};

/* Submits a task and goes on until another worker has run it. */
static int outlast_child(const struct duet_call *call)
{
    struct family family;
    memcpy(&family, call->args, sizeof family);
    const struct duet_access access = {family.handle, DUET_R};
    testing_submit(call->runtime, family.codelet, &access, 1, &family.calls, sizeof family.calls);
    testing_until(family.calls, 1);
    return DUET_OK;
}

/* An idle worker is called for the only task on the list of one that is at a long kernel. */
static void test_only_child(void)
{
    OWNED(testing_close) struct duet_runtime *core = testing_open(&(struct testing){.cpus = 2});
    _Atomic(int) calls = 0;
    uint64_t cell = 0;
    struct family family = {&calls, testing_codelet(core, "count", testing_count, NULL), NULL};
    struct duet_codelet *codelet = testing_codelet(core, "outlast", outlast_child, NULL);
    family.handle = testing_cells(core, &cell, 1);
    for (unsigned round = 0; round < 20; round++) {
        atomic_store(&calls, 0);
        testing_submit(core, codelet, NULL, 0, &family, sizeof family);
        testing_must(core, duet_wait(core));
    }
}

static int wait_inside(const struct duet_call *call)
{
    return duet_wait(call->runtime) == DUET_EINVAL ? DUET_OK : DUET_EIO;
}

static int acquire_inside(const struct duet_call *call)
{
    struct duet_handle *handle;
    memcpy(&handle, call->args, sizeof handle);
    return duet_acquire(call->runtime, handle, DUET_R) == DUET_EINVAL ? DUET_OK : DUET_EIO;
}

static int unregister_inside(const struct duet_call *call)
{
    struct duet_handle *handle;
    memcpy(&handle, call->args, sizeof handle);
    return duet_unregister(call->runtime, handle) == DUET_EINVAL ? DUET_OK : DUET_EIO;
}

/* Refused, and the run fails even if the kernel does not care. */
static void test_no_wait_inside(void)
{
    const struct {
        const char *name;
        duet_kernel_fn run;
    } kernels[] = {{"duet_wait", wait_inside},
                   {"duet_acquire", acquire_inside},
                   {"duet_unregister", unregister_inside}};
    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(kernels); i++) {
        /* on a CPU's thread, and on one of an emulated GPU's own */
        struct testing t = {.cpus = 1, .gpus = i % 2};
        OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
        uint64_t cell = 0;
        struct duet_handle *handle = testing_cells(core, &cell, 1);
        testing_submit(core,
                       testing_codelet(core, "kernel", kernels[i / 2].run, i % 2 ? "cuda" : "cpu"),
                       NULL, 0, &handle, sizeof handle);
        g_assert_cmpint(duet_wait(core), ==, DUET_EINVAL);
        g_assert_true(g_str_has_prefix(duet_last_message(core), kernels[i / 2].name));
        TOLD(core, "inside a kernel");
    }
}

/* A kernel of one runtime may use another one. */
static int wait_elsewhere(const struct duet_call *call)
{
    struct {
        struct duet_runtime *core;
        struct duet_codelet *codelet;
        _Atomic(int) *calls;
    } other;
    memcpy(&other, call->args, sizeof other);
    const struct duet_task_desc desc = {.codelet = other.codelet,
                                        .args = &other.calls,
                                        .args_bytes = sizeof other.calls};
    int error = duet_submit(other.core, &desc);
    return error ? error : duet_wait(other.core);
}

static void test_wait_elsewhere(void)
{
    struct testing t = {.cpus = 1};
    OWNED(testing_close) struct duet_runtime *core = testing_open(&t), *second = testing_open(&t);
    _Atomic(int) calls = 0;
    struct {
        struct duet_runtime *core;
        struct duet_codelet *codelet;
        _Atomic(int) *calls;
    } other = {second, testing_codelet(second, "count", testing_count, NULL), &calls};
    for (unsigned i = 0; i < 10; i++)
        testing_submit(core,
                       i ? duet_codelet_find(core, "elsewhere")
                         : testing_codelet(core, "elsewhere", wait_elsewhere, NULL),
                       NULL, 0, &other, sizeof other);
    testing_must(core, duet_wait(core));
    g_assert_cmpint(atomic_load(&calls), ==, 10);
}

TEST_MAIN(test_waiting_thread_runs, test_held, test_several_threads, test_window, test_left_over,
          test_spare, test_gives_way, test_nested, test_only_child, test_no_wait_inside,
          test_wait_elsewhere)
