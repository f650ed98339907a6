/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of what a failure leaves: which tasks run all the same, which data is valid, and a runtime
 * that is taken up again.
 */
#include "core/testing_script.h"

enum { CPU = 0 };

#define GOES_ON "cpus=1 keep-going"
#define GPUS_GO_ON "cpus=1 gpus=2 kinds=2 keep-going"
/* A task of the core fails; the others may begin. */
#define FAILS_1 "cpu0 run 1; done 1 EIO; wake cpu0;"

static const struct script scripts[] = {
    {"only what needs what a failed task was to write is cancelled, until it is written anew",
     GOES_ON,
     "data a b c d; cpu a:rw d:r; cpu a:r b:rw; cpu b:r c:w; cpu d:rw; cpu a:w d:r; cpu "
     "a:rw;" FAILS_1
     "go 3; wait EIO; says task 1 (for_cpus) failed; failures 1 2; good a d; bad b c; cpu d:rw;"
     "wait EIO; failures 1 2; end EIO"},
    {"after the first error nothing begins; after that nothing that reads what did not run",
     "cpus=1",
     "data a b c d; cpu a:w; cpu b:rw; cpu c:w a:r; wait; cpu b:rw; cpu d:w a:r; cpu0 run 4;"
     "done 4 EIO; wake cpu0; wait EIO; failures 1 1; good a c; bad b d; recover; wait; good a; bad "
     "b;"
     "cpu b:r a:rw; cpu c:rw; cpu b:w; cpu b:rw; wake cpu0; go 3; wait; failures 1 2; good b c;"
     "bad a"},
    {"a run that was cancelled goes on from there, also one that keeps going",
     "cpus=1 {|keep-going}",
     "data a b; cpu a:w; wait; cancel; cpu b:w a:r; wait ECANCELED; failures 0 1; recover; wait;"
     "cpu b:w a:r; wait; good a b"},
    {"the application learns that what it acquires is not valid, and may write it itself", GOES_ON,
     "data a b; cpu a:rw;" FAILS_1 "acquire b:rw; release b;"
     "acquire a:r EDATA; says handle 1 has no valid contents; release a; bad a;"
     "acquire a:rw EDATA; says handle 1 has no valid contents; release a; bad a;"
     "acquire a:w; release a; good a; unregister a; cpu b:rw; cpu0 run 2; done 2 EIO; wake cpu0;"
     "unregister b EDATA; end EIO"},
    {"data that only a lost device had is poisoned when a task needs it, and reported once",
     GPUS_GO_ON,
     "data a b c d; gpu@card0 a:w; gpu@card1 b:w; go 2; lose gpu0; good b; bad a; cpu a:r c:w;"
     "cpu b:r d:w; gpu@card1 c:rw; gpu@card0 d:rw; go 1; wait ELOST; failures 1 2; good b;"
     "bad a c d; recover; wait; unregister a EDATA; gpu@card1 c:w; wait; good c"},
    {"a copy that fails poisons its data, for those that were waiting for it and for others",
     "cpus=1 gpus=1 keep-going",
     "data a b c; gpu a:r b:w; gpu c:rw; gpu0 copy a host>gpu0; done a EIO; wake gpu0; go 1;"
     "wait EIO; failures 0 1; bad a b; good c; recover; wait; cpu a:w; gpu a:r b:w; wait; good a "
     "b"},
    {"a whole is as valid as its parts, and the other way round, whichever was written last",
     GOES_ON,
     "data a b; cut a 2; cpu a0:rw; cpu a1:rw;" FAILS_1 "go 1; bad a a0; good a1; cpu a:r b:w;"
     "cpu a1:rw; wait EIO; failures 1 1; good a1; bad b;"
     /* the application may change the valid part by what it reads of the other one */
     "acquire a:rw EDATA; release a; bad a1; cpu a:w; wait EIO; good a0 a; recover; wait; cpu a:rw;"
     "cpu0 run 6; done 6 EIO; wake cpu0; bad a0 a1; cpu a0:w; cpu a1:rw; wait EIO; good a0; bad a1;"
     "unregister a EDATA; end EIO"},
    {"tasks without data fail and are none of the others' business", GOES_ON,
     "cpu; cpu; cpu; cpu;" FAILS_1 "go 3; failures 1 0; end EIO"},
    {"a stopped core lets the workers go once none of them has anything in flight",
     "cpus=1 gpus=2 kinds=2",
     "data a; gpu a:r; gpu0 copy a host>gpu0; hush gpu0; stop; woken cpu0; woken gpu0; woken gpu1;"
     "cpu0 idle; gpu0 idle; done a; gpu0 idle; gpu1 exit; woken cpu0; woken gpu0; cpu0 exit;"
     "gpu0 exit; unfinished 0; fini"},
    {"no worker takes a task that needs a copy by a worker that has gone", "cpus=1 gpus=2 kinds=2",
     "data a; gpu a:w; gpu0 work 1; cpu a:r; stop; gpu0 idle; gpu1 idle; cpu0 work 0; cpu0 exit;"
     "gpu0 exit; gpu1 exit; error ECANCELED; fini"},
};

/* A worker's next task fails. */
static void fail(struct testing *t, unsigned worker)
{
    struct duet__engine_command command = expect_run(t, worker);
    testing_done(t, &command, 1e-6, DUET_EIO);
    t->woken[worker] = true;
}

/* Data that a cut leaves out stays invalid where another cut was written in vain before. */
static void test_left_out(void)
{
    struct testing *t = stage_of(GOES_ON);
    struct duet_handle *whole = testing_handle(t, SLAB_ALIGN), *all[2], *some;
    const struct duet_part half = {.rows = whole->rows / 2, .cols = whole->cols};
    g_assert_cmpint(duet_cut_blocks(t->core, whole, 2, 1, all), ==, DUET_OK);
    g_assert_cmpint(duet_cut(t->core, whole, &half, 1, &some), ==, DUET_OK);
    submit_to(t, t->cpu, NULL, all[1], DUET_RW, NULL, 0); /* fails */
    submit_to(t, t->cpu, NULL, some, DUET_W, NULL, 0);
    fail(t, CPU);
    g_assert_cmpuint(go(t, NULL), ==, 1);
    g_assert_true(duet_valid(t->core, some) && !duet_valid(t->core, whole));
    g_assert_cmpint(duet_unregister(t->core, whole), ==, DUET_EDATA);
    lost_end(t, DUET_EIO, NULL);
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
    struct testing *t = stage_of(GOES_ON);
    g_assert_false(duet_valid(t->core, NULL) || duet_address(NULL));
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
            submit_to(t, t->cpu, NULL, v->handle, mode, NULL, 0);
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
    lost_end(t, DUET_EIO, NULL);
}

SCRIPTS_MAIN(test_scripts, test_left_out, test_elements)
