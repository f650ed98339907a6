/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tree of tasks that expand, some of whose children fail, in both worlds: the same data is valid
 * afterwards, and the same program goes on.
 */
#include <string.h>

#include "runtime/testing.h"

enum { PARTS = 4, ROWS = 64 };

struct world {
    struct duet_runtime *duet;
    struct duet_handle *parts[PARTS], *sum;
    double values[PARTS][ROWS], total[1];
    struct duet_codelet *add, *split;
};

/* Argument of a task: true if it is to fail when it expands. */
struct argument {
    bool fails;
};

static int add(const struct duet_call *call)
{
    double *to = call->buffers[0].data;
    for (size_t i = 0; i < call->buffers[0].rows; i++)
        to[i] += 1;
    return DUET_OK;
}

static double cost(const void *args, const char *arch)
{
    return 1e-5;
}

/* Two halves, of which the second expands in turn, and fails if it is to. */
static int split(struct duet_expansion *expansion, const struct duet_call *call)
{
    struct argument argument;
    memcpy(&argument, call->args, sizeof argument);
    size_t rows = call->buffers[0].rows, half = rows / 2;
    if (rows < ROWS)
        return argument.fails ? duet_fail(call->message, DUET_ETASK, "asked to") : DUET_OK;
    int error = DUET_OK;
    for (size_t i = 0; i < 2 && !error; i++) {
        struct duet_access access = {.mode = DUET_RW};
        const struct duet_task_desc child =
            testing_task(call->runtime, i ? "split" : "add", &access, &argument, sizeof argument);
        error = duet_expand_block(expansion, 0, i * half, 0, half, 1, &access.handle);
        if (!error)
            error = duet_expand_submit(expansion, &child);
    }
    return error;
}

static void open_world(struct world *world, const char *simulate, bool keep_going)
{
    const struct duet_codelet_desc adds = {.cost = cost}, splits = {.expand = split};
    struct duet_config config = testing_config(simulate, 2, 2);
    config.emulate = simulate ? NULL : "free";
    config.keep_going = keep_going;
    *world = (struct world){.duet = testing_open(&config)};
    for (unsigned i = 0; i < PARTS; i++)
        must(world->duet, duet_register_vector(world->duet, world->values[i], ROWS, sizeof(double),
                                               &world->parts[i]));
    must(world->duet,
         duet_register_vector(world->duet, world->total, 1, sizeof(double), &world->sum));
    world->add = testing_codelet(world->duet, "add", add, adds);
    world->split = testing_codelet(world->duet, "split", NULL, splits);
}

static void submit(const struct world *world, const struct duet_codelet *kernel,
                   const struct duet_access *accesses, size_t count, bool fails)
{
    const struct argument argument = {.fails = fails};
    const struct duet_task_desc task = {.codelet = kernel,
                                        .accesses = accesses,
                                        .access_count = count,
                                        .args = &argument,
                                        .args_bytes = sizeof argument};
    must(world->duet, duet_submit(world->duet, &task));
}

/* Runs parts of which one fails deep inside; another reads it. */
static void run(const struct world *world)
{
    for (unsigned i = 0; i < PARTS; i++)
        submit(world, world->split, (struct duet_access[]){{world->parts[i], DUET_RW}}, 1, i == 1);
    const struct duet_access accesses[] = {{world->parts[2], DUET_RW}, {world->parts[1], DUET_R}};
    submit(world, world->add, accesses, 2, false);
    submit(world, world->add, (struct duet_access[]){{world->sum, DUET_RW}}, 1, false);
}

/* Checks that valid data is right, where kernels compute, and other data is said to be invalid. */
static void check(struct world *world, bool computes)
{
    for (unsigned i = 0; i < PARTS; i++) {
        bool valid = duet_valid(world->duet, world->parts[i]);
        int error = duet_unregister(world->duet, world->parts[i]);
        g_assert_cmpint(error, ==, valid ? DUET_OK : DUET_EDATA);
        if (valid && computes)
            g_assert_cmpfloat(world->values[i][0], ==, 1);
    }
}

static void go_on(const char *simulate)
{
    struct world world;
    open_world(&world, simulate, true);
    run(&world);
    REFUSED(world.duet, duet_wait(world.duet), DUET_ETASK, "asked to");
    const bool valid[PARTS] = {true, false, false, true};
    for (unsigned i = 0; i < PARTS; i++)
        g_assert_cmpint(duet_valid(world.duet, world.parts[i]), ==, valid[i]);
    g_assert_true(duet_valid(world.duet, world.sum));
    struct duet_failures failures;
    duet_failures(world.duet, &failures);
    g_assert_cmpuint(failures.failed, ==, 1);
    g_assert_cmpuint(failures.cancelled, ==, 1);
    must(world.duet, duet_recover(world.duet));
    /* nothing is left of the failure from here on */
    submit(&world, world.add, (struct duet_access[]){{world.sum, DUET_RW}}, 1, false);
    must(world.duet, duet_wait(world.duet));
    check(&world, !simulate);
    g_assert_cmpint(duet_close(world.duet), ==, DUET_OK);
    g_assert_cmpfloat(world.total[0], >=, 0);
}

static void test_keep_going(void)
{
    go_on(NULL);
    go_on("idgraf");
}

/* The run ends with the first error, wherever the others are then, and is taken up again. */
static void test_recover(void)
{
    for (unsigned i = 0; i < 20; i++) {
        struct world world;
        open_world(&world, NULL, false);
        run(&world);
        if (i % 2)
            duet_cancel(world.duet);
        g_assert_cmpint(duet_wait(world.duet), !=, DUET_OK);
        must(world.duet, duet_recover(world.duet));
        must(world.duet, duet_wait(world.duet));
        g_assert_false(duet_valid(world.duet, world.parts[1]));
        check(&world, true);
        g_assert_cmpint(duet_close(world.duet), ==, DUET_OK);
    }
}

TEST_MAIN(test_keep_going, test_recover)
