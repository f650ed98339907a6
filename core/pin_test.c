/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of page-locking as the core sees it, of handles' marks, and of an engine's reasons. */
#include "core/testing_expand.h"
#include "core/testing_lost.h"

enum { BLOCK = SLAB_ALIGN };

static const struct testing_machine both = {.cpus = 1, .gpus = 1};

/* ------------------------------------------------------------------------------------------- */
/* Page-locking                                                                                 */

static void test_checked(void)
{
    char data[8];
    OWNED(testing_end) struct testing *t = testing_init(&both, "eager", 1);
    t->core->computes = true;
    refuses(t, duet_pin(t->core, data, 0), "0 bytes");
    refuses(t, duet_pin(t->core, data, SIZE_MAX), "the address space");
    refuses(t, duet_pin(t->core, NULL, 8), "NULL");
    refuses(t, duet_unpin(t->core, NULL), "NULL");
    g_assert_cmpuint(t->pins + t->unpins, ==, 0);
    /* where nothing is computed, data may have no address, and nothing is done about it */
    t->core->computes = false;
    g_assert_cmpint(duet_pin(t->core, NULL, 8), ==, DUET_OK);
    g_assert_cmpint(duet_unpin(t->core, NULL), ==, DUET_OK);
    refuses(t, duet_pin(t->core, NULL, 0), "0 bytes");
    g_assert_cmpuint(t->pins + t->unpins, ==, 0);
}

static void test_passed_on(void)
{
    char data[8];
    OWNED(testing_end) struct testing *t = testing_init(&both, "eager", 1);
    g_assert_cmpint(duet_pin(t->core, data, sizeof data), ==, DUET_OK);
    g_assert_true(t->pins == 1 && t->pinned == data && t->pinned_bytes == sizeof data);
    t->pinned = NULL;
    g_assert_cmpint(duet_unpin(t->core, data), ==, DUET_OK);
    g_assert_true(t->unpins == 1 && t->pinned == data);
    t->pin_error = DUET_ENOMEM;
    g_assert_cmpint(duet_pin(t->core, data, sizeof data), ==, DUET_ENOMEM);
    g_assert_cmpstr(duet_last_message(t->core), ==, "refused by the test");
    t->pin_error = DUET_EINVAL;
    g_assert_cmpint(duet_unpin(t->core, data), ==, DUET_EINVAL);
    /* it is no failure of the run */
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
}

/* Simulations have none of the three. */
static void test_no_slots(void)
{
    char data[8];
    g_autofree struct testing *t = testing_init(&both, "eager", 1);
    struct duet__engine_ops few = *t->core->ops;
    few.pin = NULL;
    few.unpin = NULL;
    few.forget = NULL;
    t->core->ops = &few;
    g_assert_cmpint(duet_pin(t->core, data, sizeof data), ==, DUET_OK);
    g_assert_cmpint(duet_unpin(t->core, data), ==, DUET_OK);
    g_assert_cmpint(duet_pin(t->core, data, 0), ==, DUET_EINVAL);
    g_assert_cmpint(duet_unregister(t->core, testing_handle(t, BLOCK)), ==, DUET_OK);
    duet__core_free(t->core);
    g_assert_cmpuint(t->pins + t->unpins + t->forgotten, ==, 0);
}

/* ------------------------------------------------------------------------------------------- */
/* Marks                                                                                        */

/*
 * Every handle has one mark, empty at first; it is forgotten when the handle is freed, each once.
 */
static void test_marks(void)
{
    g_autofree struct testing *t = testing_init(&both, "eager", 1);
    struct duet_handle *a = testing_handle(t, BLOCK), *b = testing_handle(t, BLOCK);
    (void)testing_handle(t, BLOCK);
    g_assert_true(duet__handle_mark(a) && duet__handle_mark(a) == duet__handle_mark(a));
    g_assert_true(duet__handle_mark(a) != duet__handle_mark(b));
    g_assert_null(atomic_load(duet__handle_mark(a)));
    atomic_store(duet__handle_mark(a), t);
    g_assert_null(atomic_load(duet__handle_mark(b)));
    uint64_t number = b->id;
    g_assert_cmpint(duet_unregister(t->core, b), ==, DUET_OK);
    g_assert_cmpuint(t->forgotten, ==, 1);
    g_assert_cmpuint(t->last_forgotten, ==, number);
    duet__core_free(t->core);
    g_assert_cmpuint(t->forgotten, ==, 3);
}

static _Atomic(void *) *seen_mark;

static int expand_once(struct duet_expansion *expansion, const struct duet_call *call)
{
    struct duet_handle *block = NULL;
    int error = duet_expand_block(expansion, 0, 0, 0, BLOCK / 2, 1, &block);
    seen_mark = error ? NULL : duet__handle_mark(block);
    return error;
}

/* Blocks of an expansion have none, and nobody is told of their end. */
static void test_blocks(void)
{
    _Atomic(void *) other = NULL;
    g_autofree struct testing *t = lost_start(&both, "eager");
    const struct duet_codelet_desc desc = {.name = "whole", .expand = expand_once};
    struct duet_codelet *codelet = NULL;
    g_assert_cmpint(duet_register_codelet(t->core, &desc, &codelet), ==, DUET_OK);
    const struct duet_access access = {testing_handle(t, BLOCK), DUET_RW};
    const struct duet_task_desc task = {.codelet = codelet, .accesses = &access, .access_count = 1};
    seen_mark = &other;
    g_assert_cmpint(duet_submit(t->core, &task), ==, DUET_OK);
    (void)go(t, NULL);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_null(seen_mark);
    g_assert_cmpuint(t->forgotten, ==, 0);
    check_rest(t);
    testing_stop(t);
    duet__core_free(t->core);
    g_assert_cmpuint(t->forgotten, ==, 1);
}

/* ------------------------------------------------------------------------------------------- */
/* Reasons                                                                                      */

/* Reports a command as failed, with a reason; the run's message is `expected`. */
static void fail(struct testing *t, const struct duet__engine_command *command, int status,
                 const char *why, const char *expected)
{
    const struct duet__completion report = {.start_s = t->now,
                                            .end_s = t->now,
                                            .status = status,
                                            .why = why};
    duet__done(t->core, command, t->now, &report, &t->ops);
    (void)testing_work(t, command->worker, NULL);
    g_assert_cmpint(duet_wait(t->core), ==, status);
    g_assert_cmpstr(duet_last_message(t->core), ==, expected);
    testing_fini(t);
}

static struct duet__engine_command started(struct testing **made, bool with_copy)
{
    struct testing *t = *made = testing_init(&(struct testing_machine){.gpus = 1}, "eager", 1);
    struct duet_handle *handle = testing_handle(t, BLOCK);
    (void)testing_submit(t, t->gpu, handle, with_copy ? DUET_R : DUET_W, NULL, 0, 0);
    struct duet__engine_command command = testing_next(t, 0);
    g_assert_cmpint(command.kind, ==, with_copy ? DUET_COPY : DUET_RUN);
    return command;
}

static void test_reasons(void)
{
    struct testing *t;
    struct duet__engine_command command = started(&t, false);
    fail(t, &command, DUET_ETASK, "cublasDgemm: CUBLAS_STATUS_EXECUTION_FAILED",
         "task 1 (for_gpus) failed on gpu0: cublasDgemm: CUBLAS_STATUS_EXECUTION_FAILED");
    command = started(&t, false);
    fail(t, &command, DUET_ETASK, NULL, "task 1 (for_gpus) failed on gpu0: a task failed");
    command = started(&t, false);
    fail(t, &command, DUET_ETASK, "", "task 1 (for_gpus) failed on gpu0: a task failed");
    command = started(&t, true);
    fail(t, &command, DUET_EIO, "cudaMemcpyAsync: out of memory",
         "copy of handle 1 from host to gpu0 failed: cudaMemcpyAsync: out of memory");
    command = started(&t, true);
    fail(t, &command, DUET_EIO, NULL,
         "copy of handle 1 from host to gpu0 failed: cannot read or write");
}

static int expand_never(struct duet_expansion *expansion, const struct duet_call *call)
{
    return duet_fail(call->message, DUET_ETASK, "no pivot in column 3");
}

/* A task that does not expand can give a reason, too. */
static void test_expansion(void)
{
    struct testing *t = lost_start(&both, "eager");
    const struct duet_codelet_desc desc = {.name = "whole", .expand = expand_never};
    struct duet_codelet *codelet = NULL;
    g_assert_cmpint(duet_register_codelet(t->core, &desc, &codelet), ==, DUET_OK);
    const struct duet_task_desc task = {.codelet = codelet};
    g_assert_cmpint(duet_submit(t->core, &task), ==, DUET_OK);
    (void)go(t, NULL);
    lost_end(t, DUET_ETASK, "task 1 (whole) cannot expand: no pivot in column 3");
}

TEST_MAIN(test_checked, test_passed_on, test_no_slots, test_marks, test_blocks, test_reasons,
          test_expansion)
