/* SPDX-License-Identifier: Apache-2.0 */
/* Acquisitions that a call ends, and data whose contents come and go with them. */
#include <duet/failure.h>

#include "core/testing_lost.h"

enum { CPU = 0, GPU = 1, MANY = 20000 };

/* Reports to one acquisition, and its next step. */
struct told {
    struct testing *t;
    struct duet__acquisition *acquisition;
    int status;
    unsigned count;
    bool ends;                /* at once */
    struct duet_handle *then; /* a task is submitted that writes it, */
    struct told *next;        /* an acquisition that reads it, and reports to this */
};

static void granted(void *arg, struct duet__acquisition *acquisition, int status);

static void acquire(struct testing *t, struct duet_handle *handle, int mode, struct told *told)
{
    told->t = t;
    g_assert_cmpint(duet__acquire_submit(t->core, handle, (enum duet_mode)mode, 3, granted, told),
                    ==, DUET_OK);
}

static void granted(void *arg, struct duet__acquisition *acquisition, int status)
{
    struct told *told = arg;
    struct testing *t = told->t;
    g_assert_true(duet__awaits(t->core));
    g_assert_cmpint(duet__caller(t->core), !=, DUET_OUTSIDE);
    told->acquisition = acquisition;
    told->status = status;
    told->count++;
    if (told->ends)
        duet__acquisition_end(acquisition, t->now, status);
    if (!told->then)
        return;
    submit_to(t, t->any, NULL, told->then, DUET_W, NULL, 0);
    acquire(t, told->then, DUET_R, told->next);
}

static void check(const struct told *told, int status)
{
    g_assert_cmpuint(told->count, ==, 1);
    g_assert_cmpint(told->status, ==, status);
}

static void end(struct told *told, int status)
{
    duet__acquisition_end(told->acquisition, told->t->now, status);
}

static struct testing *start(void)
{
    return lost_start(&(struct testing_machine){.cpus = 1, .gpus = 1}, "eager");
}

/* Data comes home when it is its turn, and stays as it is until the end, at whose date others go
   on; readers share it. */
static void test_turn(void)
{
    struct testing_log log = {0};
    struct told first = {NULL}, second = {NULL};
    struct testing *t = start();
    struct duet_handle *a = testing_handle(t, 1000);
    submit_to(t, t->gpu, NULL, a, DUET_W, NULL, 0);
    acquire(t, a, DUET_R, &first);
    acquire(t, a, DUET_R, &second);
    submit_to(t, t->cpu, NULL, a, DUET_RW, NULL, 0);
    struct duet__engine_command run = expect_run(t, GPU);
    g_assert_cmpuint(first.count, ==, 0);
    testing_done(t, &run, 1e-3, 0);
    g_assert_cmpuint(go(t, &log), ==, 0);
    g_assert_cmpuint(log.count, ==, 1);
    g_assert_cmpuint(log.copies[0].destination, ==, DUET_HOST);
    check(&first, DUET_OK);
    check(&second, DUET_OK);
    end(&second, DUET_OK);
    g_assert_true(duet__awaits(t->core));
    expect_idle(t, CPU);
    duet__acquisition_end(first.acquisition, 0.5, DUET_OK);
    g_assert_false(duet__awaits(t->core));
    g_assert_true(t->woken[CPU]);
    struct duet__engine_command next = expect_run(t, CPU);
    g_assert_cmpfloat(duet__task_ready(next.task), ==, 0.5);
    testing_done(t, &next, 1e-3, 0);
    struct duet_stats stats;
    duet_stats(t->core, &stats);
    g_assert_cmpuint(stats.tasks, ==, 2);
    g_assert_cmpuint(duet_tasks_done(t->core), ==, 2);
    lost_end(t, DUET_OK, NULL);
}

/* Acquisitions that end inside, with submissions there, cost no stack, whatever follows. */
static void test_inside(void)
{
    struct told last = {.ends = true}, other = {.ends = true, .next = &last}, many = {.ends = true};
    struct testing *t = start();
    struct duet_handle *a = testing_handle(t, 1000), *b = testing_handle(t, 1000);
    other.then = b;
    submit_to(t, t->cpu, NULL, a, DUET_W, NULL, 0);
    for (unsigned i = 0; i < MANY; i++)
        acquire(t, a, DUET_RW, &many);
    acquire(t, a, DUET_RW, &other);
    submit_to(t, t->cpu, NULL, a, DUET_R, NULL, 0);
    g_assert_cmpuint(go(t, NULL), ==, 3);
    g_assert_cmpuint(many.count, ==, MANY);
    check(&other, DUET_OK);
    check(&last, DUET_OK);
    lost_end(t, DUET_OK, NULL);
}

/* Data that will not be written, or cannot be read, is poisoned as by tasks. */
static void test_poison(void)
{
    struct told in = {NULL}, out = {NULL}, again = {NULL}, late = {NULL};
    struct testing *t = start();
    t->core->keep_going = true;
    struct duet_handle *a = testing_handle(t, 1000);
    duet__handle_elsewhere(t->core, a);
    g_assert_false(duet_valid(t->core, a));
    acquire(t, a, DUET_W, &in);
    submit_to(t, t->any, NULL, a, DUET_RW, NULL, 0);
    acquire(t, a, DUET_R, &out);
    acquire(t, a, DUET_W, &again);
    submit_to(t, t->any, NULL, a, DUET_R, NULL, 0);
    check(&in, DUET_OK);
    end(&in, DUET_ECANCELED);
    g_assert_cmpuint(go(t, NULL), ==, 0);
    check(&out, DUET_EDATA);
    end(&out, DUET_OK);
    check(&again, DUET_OK);
    end(&again, DUET_OK);
    g_assert_cmpuint(go(t, NULL), ==, 1);
    g_assert_true(duet_valid(t->core, a));
    /* acquisitions of a run that is over, each in its turn */
    acquire(t, a, DUET_RW, &late);
    duet__fail_run(t->core, DUET_ECANCELED, "elsewhere");
    struct told after = {NULL};
    acquire(t, a, DUET_W, &after);
    check(&late, DUET_OK);
    g_assert_cmpuint(after.count, ==, 0);
    end(&late, DUET_OK);
    check(&after, DUET_ECANCELED);
    end(&after, DUET_OK); /* which it cannot be */
    g_assert_false(duet_valid(t->core, a));
    lost_end(t, DUET_ECANCELED, "elsewhere");
}

/* Held like any task, of which it is one without time; a wait that finds it says so. */
static void test_held(void)
{
    struct told told = {NULL};
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 1}, "eager", 1);
    g_assert_cmpint(duet__held_new(t->core), ==, DUET_OK);
    t->core->priorities = DUET__BOTTOM_LEVEL;
    struct duet_handle *a = testing_handle(t, 1000);
    submit_to(t, t->cpu, NULL, a, DUET_W, NULL, 0);
    acquire(t, a, DUET_RW, &told);
    submit_to(t, t->cpu, NULL, a, DUET_R, NULL, 0);
    g_assert_cmpuint(told.count, ==, 0);
    REFUSED(t->core, duet_wait(t->core), DUET_ESTUCK, "1 piece of data is lent");
    check(&told, DUET_OK);
    end(&told, DUET_OK);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_cmpint(duet__acquire_submit(t->core, a, DUET_COMMUTE, 0, granted, &told), ==,
                    DUET_EINVAL);
    testing_fini(t);
    t = testing_init(&(struct testing_machine){.cpus = 1}, "auto", 1);
    REFUSED(t->core, duet__acquire_submit(t->core, testing_handle(t, 8), DUET_R, 0, granted, &told),
            DUET_EINVAL, "policy");
    testing_fini(t);
}

/* ------------------------------------------------------------------------------------------- */
/* Contents                                                                                     */

static int sum_piece(void *arg, const struct duet__piece *piece)
{
    size_t *bytes = arg;
    g_assert_true(piece->from == piece->to);
    g_assert_cmpuint(piece->from_pitch, >=, piece->column_bytes);
    for (size_t col = 0; piece->from && col < piece->cols; col++)
        memset((char *)piece->to + col * piece->to_pitch, 1, piece->column_bytes);
    *bytes += piece->column_bytes * piece->cols;
    return DUET_OK;
}

/* Filled by an acquisition, used, and dropped: then the core has its memory back. */
static void come_and_go(struct testing *t, struct duet_handle *handle)
{
    struct told told = {NULL};
    size_t bytes = 0;
    acquire(t, handle, DUET_W, &told);
    check(&told, DUET_OK);
    g_assert_cmpint(duet__handle_pieces(handle, sum_piece, &bytes), ==, DUET_OK);
    g_assert_cmpuint(bytes, ==, duet__handle_bytes(handle));
    end(&told, DUET_OK);
    submit_to(t, t->gpu, NULL, handle, DUET_RW, NULL, 0);
    g_assert_cmpint(duet__handle_drop(t->core, handle), ==, DUET_OK);
    g_assert_cmpuint(go(t, NULL), ==, 1);
    g_assert_false(duet_valid(t->core, handle));
    if (duet_address(handle) == NULL && t->core->computes)
        g_assert_cmpuint(t->core->spare_bytes, >=, bytes);
}

/* In another core: of the same shape, at no address. */
static void test_like(void)
{
    struct testing *t = start(), *other = start();
    other->core->computes = true;
    static double numbers[600];
    const struct duet_array arrays[] = {{numbers, 5, 7, 6, 8}, {numbers + 100, 3, 1, 3, 8}};
    struct duet_handle *made[4] = {NULL};
    g_assert_cmpint(duet_register_matrix(t->core, numbers + 200, 4, 5, 9, 8, &made[0]), ==,
                    DUET_OK);
    g_assert_cmpint(duet_register_block(t->core, numbers + 300, 3, 4, 5, 4, 20, 8, &made[1]), ==,
                    DUET_OK);
    g_assert_cmpint(duet_register_arrays(t->core, arrays, 2, &made[2]), ==, DUET_OK);
    g_assert_cmpint(duet_register_temporary(t->core, 6, 6, 8, &made[3]), ==, DUET_OK);
    for (unsigned i = 0; i < 4; i++) {
        struct duet_handle *like;
        g_assert_cmpint(duet__handle_like(other->core, made[i], true, &like), ==, DUET_EINVAL);
        g_assert_cmpint(duet__handle_like(other->core, made[i], false, &like), ==, DUET_OK);
        g_assert_cmpuint(duet__handle_bytes(like), ==, duet__handle_bytes(made[i]));
        g_assert_cmpint(duet__handle_temporary(made[i]), ==, i == 3);
        g_assert_false(duet__handle_temporary(like));
        come_and_go(other, like);
        g_assert_null(duet_address(like));
        come_and_go(other, like); /* once more */
        g_assert_cmpint(duet_unregister(other->core, like), ==, DUET_OK);
        come_and_go(t, made[i]);
        g_assert_cmpint(duet_unregister(t->core, made[i]), ==, DUET_OK);
    }
    g_assert_cmpuint(duet__registered_bytes(other->core), ==, 0);
    lost_end(t, DUET_OK, NULL);
    lost_end(other, DUET_OK, NULL);
}

/* Data with an address of its own is filled there, and brought home only if there is any. */
static void test_own_address(void)
{
    struct told told = {NULL};
    struct testing_log log = {0};
    uint64_t cells[8];
    struct testing *t = start();
    t->core->computes = true;
    struct duet_handle *a, *b;
    g_assert_cmpint(duet_register_vector(t->core, cells, 4, 8, &a), ==, DUET_OK);
    g_assert_cmpint(duet_register_vector(t->core, cells + 4, 4, 8, &b), ==, DUET_OK);
    duet__handle_elsewhere(t->core, a);
    duet__handle_elsewhere(t->core, b);
    acquire(t, a, DUET_W, &told);
    g_assert_true(duet_address(a) == cells);
    end(&told, DUET_OK);
    submit_to(t, t->gpu, NULL, a, DUET_RW, NULL, 0);
    (void)go(t, &log);
    g_assert_cmpuint(log.count, ==, 1);
    g_assert_cmpint(duet_unregister_submit(t->core, a), ==, DUET_OK);
    (void)go(t, &log);
    g_assert_cmpuint(log.count, ==, 2);
    g_assert_cmpint(duet_unregister(t->core, b), ==, DUET_OK);
    g_assert_cmpint(duet_register_vector(t->core, cells, 8, 8, &a), ==,
                    DUET_OK); /* they are gone */
    lost_end(t, DUET_OK, NULL);
}

static int emulated(const struct duet_call *call)
{
    return DUET_OK;
}

/* A kernel is in every core what it is in one. */
static void test_codelet(void)
{
    struct testing *t = start(), *other = start();
    const struct duet_implementation where[] = {{"cpu", emulated}, {"rare", NULL}};
    const struct duet_codelet_desc desc = {.name = "one",
                                           .implementations = where,
                                           .implementation_count = 2,
                                           .flops = testing_flops,
                                           .cost = testing_cost},
                                   nowhere = {.name = "none",
                                              .implementations = where + 1,
                                              .implementation_count = 1};
    struct duet_codelet *one, *none;
    g_assert_cmpint(duet_register_codelet(t->core, &desc, &one), ==, DUET_OK);
    g_assert_cmpint(duet_register_codelet(t->core, &nowhere, &none), ==, DUET_OK);
    const struct duet_codelet *like = duet__codelet_like(other->core, one);
    g_assert_true(like && like != one && like->core == other->core);
    g_assert_true(duet__codelet_like(other->core, one) == like);
    g_assert_true(like->flops == one->flops && like->cost == one->cost);
    g_assert_true(like->archs == one->archs && like->run[0] == emulated);
    g_assert_true(like->emulation == emulated);
    like = duet__codelet_like(other->core, none);
    g_assert_true(like && !like->archs);
    g_assert_true(duet__codelet_like(t->core, one) == one);
    lost_end(t, DUET_OK, NULL);
    lost_end(other, DUET_OK, NULL);
}

TEST_MAIN(test_turn, test_inside, test_poison, test_held, test_like, test_own_address, test_codelet)
