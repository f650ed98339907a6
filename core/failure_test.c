/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of what a failure leaves: which tasks run all the same, which data is valid, and a runtime
 * that is taken up again.
 */
#include <duet/failure.h>

#include "core/testing_lost.h"

enum { CPU = 0, GPU = 1, GPU2 = 2, BLOCK = SLAB_ALIGN };

static struct testing *start(unsigned gpus, bool keep_going)
{
    struct testing_machine make = {.cpus = 1, .gpus = gpus, .gpu_archs = gpus};
    struct testing *t = lost_start(&make, "eager");
    t->core->keep_going = keep_going;
    return t;
}

static struct duet_handle *data(struct testing *t)
{
    return testing_handle(t, BLOCK);
}

/* A task on the CPU with one or two accesses, which is not run yet. */
static void task(struct testing *t, struct duet_handle *a, int mode_a, struct duet_handle *b,
                 int mode_b)
{
    submit_to(t, t->cpu, NULL, a, mode_a, b, mode_b);
}

/* A worker's next task fails. */
static void fail(struct testing *t, unsigned worker)
{
    struct duet__engine_command command = expect_run(t, worker);
    testing_done(t, &command, 1e-6, DUET_EIO);
    t->woken[worker] = true;
}

static void check_failures(const struct testing *t, uint64_t failed, uint64_t cancelled)
{
    struct duet_failures failures;
    duet_failures(t->core, &failures);
    g_assert_cmpuint(failures.failed, ==, failed);
    g_assert_cmpuint(failures.cancelled, ==, cancelled);
}

static void recover(struct testing *t)
{
    g_assert_cmpint(duet_recover(t->core), ==, DUET_OK);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
}

static void end(struct testing *t)
{
    check_rest(t);
    testing_stop(t);
    testing_fini(t);
}

/* Only what needs what a failed task was to write is cancelled, until it is written anew. */
static void test_keep_going(void)
{
    struct testing *t = start(0, true);
    struct duet_handle *a = data(t), *b = data(t), *c = data(t), *d = data(t);
    task(t, a, DUET_RW, d, DUET_R); /* fails */
    task(t, a, DUET_R, b, DUET_RW); /* cancelled */
    task(t, b, DUET_R, c, DUET_W);  /* cancelled for that */
    task(t, d, DUET_RW, NULL, 0);   /* runs */
    task(t, a, DUET_W, d, DUET_R);  /* runs */
    task(t, a, DUET_RW, NULL, 0);   /* runs */
    fail(t, CPU);
    g_assert_cmpuint(go(t, NULL), ==, 3);
    REFUSED(t->core, duet_wait(t->core), DUET_EIO, "task 1 (for_cpus) failed");
    check_failures(t, 1, 2);
    g_assert_true(duet_valid(t->core, a) && duet_valid(t->core, d));
    g_assert_false(duet_valid(t->core, NULL) || duet_address(NULL));
    g_assert_false(duet_valid(t->core, b) || duet_valid(t->core, c));
    task(t, d, DUET_RW, NULL, 0); /* the error stays, and goes on being none of others' */
    g_assert_cmpint(duet_wait(t->core), ==, DUET_EIO);
    check_failures(t, 1, 2);
    end(t);
}

/* After the first error nothing begins, and all that did not run is not valid. */
static void test_stop(void)
{
    struct testing *t = start(0, false);
    struct duet_handle *a = data(t), *b = data(t), *c = data(t), *d = data(t);
    task(t, a, DUET_W, NULL, 0);
    task(t, b, DUET_RW, NULL, 0); /* fails */
    task(t, c, DUET_W, a, DUET_R);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    task(t, b, DUET_RW, NULL, 0); /* fails */
    task(t, d, DUET_W, a, DUET_R);
    fail(t, CPU);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_EIO);
    check_failures(t, 1, 1);
    g_assert_true(duet_valid(t->core, a) && duet_valid(t->core, c));
    g_assert_false(duet_valid(t->core, b) || duet_valid(t->core, d));
    recover(t);
    g_assert_true(duet_valid(t->core, a) && !duet_valid(t->core, b));
    /* what reads it does not run even now, nor what is to come of that; the rest does */
    task(t, b, DUET_R, a, DUET_RW);
    task(t, c, DUET_RW, NULL, 0);
    task(t, b, DUET_W, NULL, 0);
    task(t, b, DUET_RW, NULL, 0);
    t->woken[CPU] = true;
    g_assert_cmpuint(go(t, NULL), ==, 3);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    check_failures(t, 1, 2);
    g_assert_true(duet_valid(t->core, b) && duet_valid(t->core, c) && !duet_valid(t->core, a));
    end(t);
}

/* A run that was cancelled goes on from there, also one that keeps going. */
static void test_cancelled(void)
{
    for (int keep_going = 0; keep_going < 2; keep_going++) {
        struct testing *t = start(0, keep_going);
        struct duet_handle *a = data(t), *b = data(t);
        task(t, a, DUET_W, NULL, 0);
        g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
        duet_cancel(t->core);
        task(t, b, DUET_W, a, DUET_R);
        g_assert_cmpint(duet_wait(t->core), ==, DUET_ECANCELED);
        check_failures(t, 0, 1);
        recover(t);
        task(t, b, DUET_W, a, DUET_R);
        g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
        g_assert_true(duet_valid(t->core, a) && duet_valid(t->core, b));
        end(t);
    }
}

/* The application learns that what it acquires is not valid, and may write it itself. */
static void test_acquire(void)
{
    struct testing *t = start(0, true);
    struct duet_handle *a = data(t), *b = data(t);
    task(t, a, DUET_RW, NULL, 0);
    fail(t, CPU);
    g_assert_cmpint(duet_acquire(t->core, b, DUET_RW), ==, DUET_OK);
    g_assert_cmpint(duet_release(t->core, b), ==, DUET_OK);
    for (int mode = DUET_R; mode <= DUET_RW; mode += DUET_RW - DUET_R) {
        REFUSED(t->core, duet_acquire(t->core, a, (enum duet_mode)mode), DUET_EDATA,
                "handle 1 has no valid contents");
        g_assert_cmpint(duet_release(t->core, a), ==, DUET_OK);
        g_assert_false(duet_valid(t->core, a));
    }
    g_assert_cmpint(duet_acquire(t->core, a, DUET_W), ==, DUET_OK);
    g_assert_cmpint(duet_release(t->core, a), ==, DUET_OK);
    g_assert_true(duet_valid(t->core, a));
    g_assert_cmpint(duet_unregister(t->core, a), ==, DUET_OK);
    task(t, b, DUET_RW, NULL, 0);
    fail(t, CPU);
    g_assert_cmpint(duet_unregister(t->core, b), ==, DUET_EDATA);
    end(t);
}

/*
 * Data that only a lost device had is poisoned when a task needs it, and the error is reported
 * once.
 */
static void test_lost(void)
{
    struct testing *t = start(2, true);
    struct duet_handle *a = data(t), *b = data(t), *c = data(t), *d = data(t);
    submit_to(t, t->gpu, "card0", a, DUET_W, NULL, 0);
    submit_to(t, t->gpu, "card1", b, DUET_W, NULL, 0);
    g_assert_cmpuint(go(t, NULL), ==, 2);
    lose(t, GPU);
    g_assert_true(duet_valid(t->core, b) && !duet_valid(t->core, a));
    task(t, a, DUET_R, c, DUET_W);
    task(t, b, DUET_R, d, DUET_W);
    submit_to(t, t->gpu, "card1", c, DUET_RW, NULL, 0);
    submit_to(t, t->gpu, "card0", d, DUET_RW, NULL, 0); /* nobody is left to run it */
    (void)go(t, NULL);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_ELOST);
    check_failures(t, 1, 2);
    g_assert_true(duet_valid(t->core, b));
    g_assert_false(duet_valid(t->core, a) || duet_valid(t->core, c) || duet_valid(t->core, d));
    recover(t);
    g_assert_cmpint(duet_unregister(t->core, a), ==, DUET_EDATA);
    submit_to(t, t->gpu, "card1", c, DUET_W, NULL, 0);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_true(duet_valid(t->core, c));
    end(t);
}

/* A copy that fails poisons its data, for those that were waiting for it and for others. */
static void test_copy(void)
{
    struct testing *t = start(1, true);
    struct duet_handle *a = data(t), *b = data(t), *c = data(t);
    submit_to(t, t->gpu, NULL, a, DUET_R, b, DUET_W);
    submit_to(t, t->gpu, NULL, c, DUET_RW, NULL, 0);
    struct duet__engine_command copy = expect_copy(t, GPU, a, 0, 1);
    testing_done(t, &copy, 1e-6, DUET_EIO);
    t->woken[GPU] = true;
    g_assert_cmpuint(go(t, NULL), ==, 1);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_EIO);
    check_failures(t, 0, 1);
    g_assert_false(duet_valid(t->core, a) || duet_valid(t->core, b));
    g_assert_true(duet_valid(t->core, c));
    recover(t);
    task(t, a, DUET_W, NULL, 0);
    submit_to(t, t->gpu, NULL, a, DUET_R, b, DUET_W);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_true(duet_valid(t->core, a) && duet_valid(t->core, b));
    end(t);
}

/* A whole is as valid as its parts, and the other way round, whichever was written last. */
static void test_parts(void)
{
    struct testing *t = start(0, true);
    struct duet_handle *whole = data(t), *parts[2], *a = data(t);
    g_assert_cmpint(duet_cut_blocks(t->core, whole, 2, 1, parts), ==, DUET_OK);
    task(t, parts[0], DUET_RW, NULL, 0); /* fails */
    task(t, parts[1], DUET_RW, NULL, 0);
    fail(t, CPU);
    g_assert_cmpuint(go(t, NULL), ==, 1);
    g_assert_false(duet_valid(t->core, whole) || duet_valid(t->core, parts[0]));
    g_assert_true(duet_valid(t->core, parts[1]));
    task(t, whole, DUET_R, a, DUET_W); /* cancelled */
    task(t, parts[1], DUET_RW, NULL, 0);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_EIO);
    check_failures(t, 1, 1);
    g_assert_true(duet_valid(t->core, parts[1]) && !duet_valid(t->core, a));
    /* the application may change the valid part by what it reads of the other one */
    g_assert_cmpint(duet_acquire(t->core, whole, DUET_RW), ==, DUET_EDATA);
    g_assert_cmpint(duet_release(t->core, whole), ==, DUET_OK);
    g_assert_false(duet_valid(t->core, parts[1]));
    task(t, whole, DUET_W, NULL, 0);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_EIO);
    g_assert_true(duet_valid(t->core, parts[0]) && duet_valid(t->core, whole));
    recover(t);
    task(t, whole, DUET_RW, NULL, 0); /* fails */
    fail(t, CPU);
    g_assert_false(duet_valid(t->core, parts[0]) || duet_valid(t->core, parts[1]));
    task(t, parts[0], DUET_W, NULL, 0);
    task(t, parts[1], DUET_RW, NULL, 0); /* cancelled */
    g_assert_cmpint(duet_wait(t->core), ==, DUET_EIO);
    g_assert_true(duet_valid(t->core, parts[0]) && !duet_valid(t->core, parts[1]));
    g_assert_cmpint(duet_unregister(t->core, whole), ==, DUET_EDATA);
    end(t);
}

/* Data that a cut leaves out stays invalid where another cut was written in vain before. */
static void test_left_out(void)
{
    struct testing *t = start(0, true);
    struct duet_handle *whole = data(t), *all[2], *some;
    const struct duet_part half = {.rows = whole->rows / 2, .cols = whole->cols};
    g_assert_cmpint(duet_cut_blocks(t->core, whole, 2, 1, all), ==, DUET_OK);
    g_assert_cmpint(duet_cut(t->core, whole, &half, 1, &some), ==, DUET_OK);
    task(t, all[1], DUET_RW, NULL, 0); /* fails */
    task(t, some, DUET_W, NULL, 0);
    fail(t, CPU);
    g_assert_cmpuint(go(t, NULL), ==, 1);
    g_assert_true(duet_valid(t->core, some) && !duet_valid(t->core, whole));
    g_assert_cmpint(duet_unregister(t->core, whole), ==, DUET_EDATA);
    end(t);
}

enum { N = 12, VIEWS = 25 };

/* A handle, and which elements of the matrix are its own. */
struct view {
    struct duet_handle *handle;
    bool has[N * N];
};

/* The handles of a cut. above: -1, 0, 1: elements below, on or above the diagonal alone; 2: all. */
static struct view *view(struct view *view, struct duet_handle *handle, const struct duet_part *at,
                         int above)
{
    *view = (struct view){.handle = handle};
    for (size_t col = at->col; col < at->col + at->cols; col++)
        for (size_t row = at->row; row < at->row + at->rows; row++) {
            const size_t i = row - at->row, j = col - at->col;
            view->has[row + col * N] = above == 2 || (j > i) - (j < i) == above;
        }
    return view + 1;
}

static struct view *view_rows(struct testing *t, struct view *views, struct duet_handle *whole,
                              const struct duet_part *at, size_t count)
{
    struct duet_handle *parts[N];
    g_assert_cmpint(duet_cut_blocks(t->core, whole, count, 1, parts), ==, DUET_OK);
    for (size_t i = 0, rows = at->rows / count; i < count; i++) {
        const struct duet_part part = {at->row + i * rows, at->col, rows, at->cols};
        views = view(views, parts[i], &part, 2);
    }
    return views;
}

/* The matrix, rows, columns, blocks one of which is cut into triangles, and a part with rows. */
static struct view *view_all(struct testing *t, struct view *views)
{
    const struct duet_part all = {0, 0, N, N}, some = {1, 2, 6, 7}, block = {0, 0, N / 2, N / 2};
    struct duet_handle *whole, *parts[4], *part;
    g_assert_cmpint(duet_register_matrix(t->core, NULL, N, N, N, 1, &whole), ==, DUET_OK);
    views = view_rows(t, view(views, whole, &all, 2), whole, &all, 4);
    g_assert_cmpint(duet_cut_blocks(t->core, whole, 1, 3, parts), ==, DUET_OK);
    for (size_t i = 0; i < 3; i++)
        views = view(views, parts[i], &(struct duet_part){0, i * 4, N, 4}, 2);
    g_assert_cmpint(duet_cut_blocks(t->core, whole, 2, 2, parts), ==, DUET_OK);
    for (size_t i = 0; i < 4; i++)
        views = view(views, parts[i], &(struct duet_part){i % 2 * 6, i / 2 * 6, 6, 6}, 2);
    part = parts[0];
    g_assert_cmpint(duet_cut_triangles(t->core, part, DUET_DIAGONAL_APART, parts), ==, DUET_OK);
    for (int i = 0; i < 3; i++)
        views = view(views, parts[i], &block, (const int[]){-1, 1, 0}[i]);
    g_assert_cmpint(duet_cut_triangles(t->core, whole, DUET_DIAGONAL_APART, parts), ==, DUET_OK);
    for (int i = 0; i < 3; i++)
        views = view(views, parts[i], &all, (const int[]){-1, 1, 0}[i]);
    g_assert_cmpint(duet_cut(t->core, whole, &some, 1, &part), ==, DUET_OK);
    return view_rows(t, view(views, part, &some, 2), part, &some, 6);
}

static bool meet(const struct view *view, const bool *bad)
{
    bool found = false;
    for (unsigned i = 0; i < N * N; i++)
        found |= view->has[i] && bad[i];
    return found;
}

/*
 * Tasks on all these views, some of which fail, and acquisitions: an element is valid if its last
 * writer had done, and had read nothing that was not valid.
 */
static void test_elements(void)
{
    struct view views[VIEWS];
    bool bad[N * N] = {false};
    uint64_t rng = 1;
    struct testing *t = start(0, true);
    g_assert_true(view_all(t, views) == views + VIEWS);
    for (unsigned step = 0; step < 20000; step++) {
        const struct view *v = &views[duet_random_below(&rng, VIEWS)];
        const int mode = 1 + (int)duet_random_below(&rng, 3);
        const bool hopeless = mode & DUET_R && meet(v, bad);
        const bool acquires = duet_random_below(&rng, 8) == 0;
        const bool fails = !acquires && duet_random_below(&rng, 4) == 0;
        if (step % 100 == 99) { /* what is cut anew is as it was */
            (void)!duet_uncut(t->core, views[VIEWS - 7].handle);
            const struct duet_part some = {1, 2, 6, 7};
            g_assert_cmpint(duet_cut(t->core, views->handle, &some, 1, &views[VIEWS - 7].handle),
                            ==, DUET_OK);
            (void)view_rows(t, &views[VIEWS - 6], views[VIEWS - 7].handle, &some, 6);
        }
        if (acquires) {
            g_assert_cmpint(duet_acquire(t->core, v->handle, (enum duet_mode)mode), ==,
                            hopeless ? DUET_EDATA : DUET_OK);
            g_assert_cmpint(duet_release(t->core, v->handle), ==, DUET_OK);
        } else {
            task(t, v->handle, mode, NULL, 0);
            if (fails && !hopeless)
                fail(t, CPU);
            g_assert_cmpuint(go(t, NULL), ==, !hopeless && !fails);
        }
        for (unsigned i = 0; i < N * N; i++)
            if (v->has[i] && (mode & DUET_W))
                bad[i] = hopeless || fails || (bad[i] && (mode & DUET_R));
        for (unsigned i = 0; i < VIEWS; i++)
            g_assert_true(duet_valid(t->core, views[i].handle) == !meet(&views[i], bad));
    }
    end(t);
}

/* Tasks without data fail and are none of the others' business. */
static void test_no_data(void)
{
    struct testing *t = start(0, true);
    for (unsigned i = 0; i < 4; i++)
        task(t, NULL, 0, NULL, 0);
    fail(t, CPU);
    g_assert_cmpuint(go(t, NULL), ==, 3);
    check_failures(t, 1, 0);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_EIO);
    end(t);
}

TEST_MAIN(test_keep_going, test_stop, test_cancelled, test_acquire, test_lost, test_copy,
          test_parts, test_left_out, test_no_data, test_elements)
