/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of how many tasks a worker has in preparation or in flight. */
#include "core/testing_lost.h"

enum { GPU = 0, BLOCK = SLAB_ALIGN };

static const struct testing_machine one = {.gpus = 1, .window = 2, .window_short = 6};

/* A task of so many microseconds on the device, which its cost function says; 0: says nothing. */
static void submit_us(struct testing *t, const struct duet_codelet *codelet, double microseconds)
{
    double flops = microseconds * 1e4;
    const struct duet_task_desc desc = {.codelet = codelet,
                                        .args = &flops,
                                        .args_bytes = sizeof flops};
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
}

/* Asks for kernels until there is none. How many. */
static unsigned launch(struct testing *t, struct duet__engine_command *commands)
{
    unsigned count = 0;
    for (;;) {
        struct duet__engine_command command = testing_next(t, GPU);
        if (command.kind == DUET_IDLE)
            return count;
        g_assert_cmpint(command.kind, ==, DUET_RUN);
        commands[count++] = command;
    }
}

/* Ends what is in flight, and what follows; the models' beliefs do not change. */
static void end(struct testing *t, const struct duet__engine_command *commands, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        testing_done(t, &commands[i], 0, 0);
    (void)testing_work(t, GPU, NULL);
    lost_end(t, DUET_OK, "");
}

/* `count` tasks, each of so many microseconds, are submitted; `expected` are started. */
static void check(const struct testing_machine *machine, double microseconds, unsigned expected)
{
    struct duet__engine_command commands[20];
    struct testing *t = lost_start(machine, "eager");
    for (unsigned i = 0; i < 10; i++)
        submit_us(t, t->gpu, microseconds);
    unsigned count = launch(t, commands);
    g_assert_cmpuint(count, ==, expected);
    g_assert_cmpuint(t->core->workers[GPU].taken, ==, expected);
    end(t, commands, count);
}

/* A window of tasks that take less than 100 us together, and one more; at least the window, at most
   the other. */
static void test_short(void)
{
    static const struct testing_machine plain = {.gpus = 1, .window = 2};
    static const struct testing_machine equal = {.gpus = 1, .window = 3, .window_short = 3};
    check(&one, 1, 6);
    check(&one, 16, 6);
    check(&one, 24, 5);
    check(&one, 25, 4);
    check(&one, 40, 3);
    check(&one, 60, 2);
    check(&one, 5000, 2);
    check(&plain, 1, 2);
    check(&equal, 1, 3);
}

/* A long one among short ones: nothing is taken beyond the window while it is there. */
static void test_mixed(void)
{
    struct duet__engine_command commands[20];
    struct testing *t = lost_start(&one, "eager");
    submit_us(t, t->gpu, 10);
    submit_us(t, t->gpu, 10);
    submit_us(t, t->gpu, 1000);
    for (unsigned i = 0; i < 7; i++)
        submit_us(t, t->gpu, 10);
    unsigned count = launch(t, commands);
    g_assert_cmpuint(count, ==, 3);
    testing_done(t, &commands[0], 0, 0);
    testing_done(t, &commands[1], 0, 0);
    g_assert_cmpuint(launch(t, commands), ==, 1); /* up to the window */
    testing_done(t, &commands[2], 0, 0);
    g_assert_cmpuint(launch(t, &commands[1]), ==, 5);
    end(t, commands, 6);
}

static const struct duet_implementation cuda = {.arch = "cuda"};

/* A task without a known time counts as long, alone and among short ones. */
static void test_unknown(void)
{
    struct duet__engine_command commands[20];
    struct duet_codelet *unknown = NULL;
    const struct duet_codelet_desc desc = {.name = "unknown",
                                           .implementations = &cuda,
                                           .implementation_count = 1};
    struct testing *t = lost_start(&one, "eager");
    g_assert_cmpint(duet_register_codelet(t->core, &desc, &unknown), ==, DUET_OK);
    for (unsigned i = 0; i < 3; i++)
        submit_us(t, unknown, 0);
    unsigned count = launch(t, commands);
    g_assert_cmpuint(count, ==, 2);
    submit_us(t, t->gpu, 1);
    submit_us(t, t->gpu, 1);
    testing_done(t, &commands[0], 0, 0);
    testing_done(t, &commands[1], 0, 0);
    count = launch(t, commands);
    g_assert_cmpuint(count, ==, 2); /* the last unknown one, and one that is short */
    testing_done(t, &commands[0], 0, 0);
    testing_done(t, &commands[1], 0, 0);
    end(t, commands, launch(t, commands));
}

/* Slots are given back, whatever becomes of the tasks: a device that is lost, a run that fails. */
static void test_given_back(void)
{
    const struct testing_machine two = {.cpus = 0, .gpus = 2, .window = 1, .window_short = 4};
    struct duet__engine_command commands[20];
    struct testing *t = lost_start(&two, "eager");
    for (unsigned i = 0; i < 10; i++)
        submit_us(t, t->gpu, 1);
    unsigned count = launch(t, commands);
    g_assert_cmpuint(count, ==, 4);
    lose(t, GPU);
    for (unsigned i = 0; i < count; i++)
        done_lost(t, &commands[i]);
    (void)go(t, NULL);
    lost_end(t, DUET_OK, "");

    t = lost_start(&one, "eager");
    for (unsigned i = 0; i < 10; i++)
        submit_us(t, t->gpu, 1);
    count = launch(t, commands);
    g_assert_cmpuint(count, ==, 6);
    for (unsigned i = 0; i < count; i++)
        testing_done(t, &commands[i], 0, i == 2 ? DUET_EIO : 0);
    (void)testing_work(t, GPU, NULL);
    lost_end(t, DUET_EIO, "task 3 (for_gpus) failed on gpu0");
}

/* A short task that reads this handle. */
static void submit_reader(struct testing *t, struct duet_handle *handle)
{
    double flops = 1e4;
    const struct duet_access access = {handle, DUET_R};
    const struct duet_task_desc desc = {.codelet = t->gpu,
                                        .accesses = &access,
                                        .access_count = 1,
                                        .args = &flops,
                                        .args_bytes = sizeof flops};
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
}

/* While one waits for its data, none is taken beyond the window; data that is there is no reason.
 */
static void test_copies(void)
{
    struct duet__engine_command commands[20];
    struct testing *t = lost_start(&one, "eager");
    struct duet_handle *first = testing_handle(t, BLOCK), *second = testing_handle(t, BLOCK);
    for (unsigned i = 0; i < 10; i++)
        submit_reader(t, i == 4 ? second : first);
    struct duet__engine_command copy = testing_next(t, GPU);
    g_assert_true(copy.kind == DUET_COPY && copy.copy->handle == first);
    expect_idle(t, GPU);
    g_assert_cmpuint(t->core->workers[GPU].taken, ==, 2);
    testing_done(t, &copy, 0, 0);
    for (unsigned i = 0; i < 4; i++)
        commands[i] = expect_run(t, GPU);
    copy = testing_next(t, GPU);
    g_assert_true(copy.kind == DUET_COPY && copy.copy->handle == second);
    expect_idle(t, GPU);
    g_assert_cmpuint(t->core->workers[GPU].taken, ==, 5);
    testing_done(t, &copy, 0, 0);
    g_assert_cmpuint(launch(t, &commands[4]), ==, 2);
    end(t, commands, 6);
}

/* Beyond its window a worker leaves others what is theirs, and is not called for it. */
static void test_not_stolen(void)
{
    const struct testing_machine two = {.gpus = 2, .window = 2, .window_short = 6};
    enum { THIEF = 1 };
    struct duet__engine_command stolen[2], commands[20];
    struct testing *t = lost_start(&two, "ws");
    for (unsigned i = 0; i < 10; i++)
        submit_us(t, t->gpu, 1);
    g_assert_cmpuint(duet_list_length(&t->core->workers[GPU].list), ==, 10);
    stolen[0] = expect_run(t, THIEF);
    stolen[1] = expect_run(t, THIEF);
    expect_idle(t, THIEF);
    g_assert_cmpuint(launch(t, commands), ==, 6);
    g_assert_cmpuint(duet_list_length(&t->core->workers[GPU].list), ==, 2);
    submit_us(t, t->gpu, 1);
    g_assert_false(t->woken[THIEF]);
    testing_done(t, &stolen[0], 0, 0);
    testing_done(t, &stolen[1], 0, 0);
    g_assert_cmpuint(testing_work(t, THIEF, NULL), ==, 3);
    end(t, commands, 6);
}

/*
 * A long task beyond a window of one, which fills it when the short one before it ends: what that
 * one made ready is for a worker that has nothing to do, since its own takes nothing.
 */
static void test_left_to_others(void)
{
    const struct testing_machine two = {.gpus = 2, .window = 1, .window_short = 4};
    enum { OTHER = 1 };
    struct testing *t = lost_start(&two, "ws");
    struct duet_handle *handle = testing_handle(t, BLOCK);
    submit_reader(t, handle);
    struct duet__engine_command copy = testing_next(t, GPU);
    testing_done(t, &copy, 0, 0);
    struct duet__engine_command first = expect_run(t, GPU);
    submit_to(t, t->gpu, NULL, handle, DUET_RW, NULL, 0);
    submit_us(t, t->gpu, 1000);
    struct duet__engine_command second = expect_run(t, GPU);
    expect_idle(t, GPU);
    expect_idle(t, OTHER);
    testing_done(t, &first, 0, 0);
    expect_idle(t, GPU);
    g_assert_true(t->woken[OTHER]);
    g_assert_cmpuint(go(t, NULL), ==, 1);
    testing_done(t, &second, 0, 0);
    (void)go(t, NULL);
    lost_end(t, DUET_OK, "");
}

TEST_MAIN(test_short, test_mixed, test_unknown, test_given_back, test_copies, test_not_stolen,
          test_left_to_others)
