/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Behaviour of computing emulated devices beyond the conformance of all backends: memory that is
 * poison until written, a thread for each stream, loss on demand, and detection of the engine's
 * errors.
 */
#include "backends/testing.h"

#include <limits.h>

#include <duet/random.h>

extern const struct duet__backend duet__backend_emulated;
static const struct duet__backend *const emulated = &duet__backend_emulated;

static void open_with(struct testing_device *d, struct testing *t, unsigned index,
                      uint64_t capacity_bytes, uint64_t lose_at)
{
    testing_open_as(d, t,
                    (struct backend_config){.index = index,
                                            .node = index + 1,
                                            .capacity_bytes = capacity_bytes,
                                            .lose_at = lose_at});
}

static bool is_poison(const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < count; i++)
        if (at[i] != 0xff)
            return false;
    return true;
}

/* ------------------------------------------------------------------------------------------- */
/* Memory                                                                                       */

static void test_poison(void)
{
    double back[64], one = 1;
    float narrow;
    OWNED(testing_stop) struct testing_device *d = testing_start(emulated);
    for (size_t at = 0; at < TESTING_BYTES; at += TESTING_BYTES / 8) {
        testing_read(d, at, back, sizeof back);
        g_assert_true(is_poison(back, sizeof back));
        g_assert_true(isnan(back[0]) && isnan(back[63]));
        memcpy(&narrow, &back[5], sizeof narrow);
        g_assert_true(isnan(narrow));
    }
    testing_write(d, 64, &one, sizeof one);
    testing_read(d, 0, back, sizeof back);
    g_assert_true(isnan(back[7]) && back[8] == 1 && isnan(back[9]));
}

/* false where the system promises no more memory than it has. */
static bool promises(struct testing *t, uint64_t bytes)
{
    struct backend_config config = {.node = 1,
                                    .capacity_bytes = bytes,
                                    .notify = testing_notify,
                                    .owner = t};
    struct backend_device *device = NULL;
    int error = emulated->open(&device, t->shared, &config, NULL);
    emulated->close(device);
    return error != DUET_ENOMEM;
}

/* A slab much larger than this machine's memory may be, used at its ends. */
static void test_large(void)
{
    const uint64_t bytes = (UINT64_C(80) << 30) + 17;
    OWNED(testing_fini) struct testing t;
    unsigned char host[17], back[17];
    testing_init(&t, emulated);
    if (!promises(&t, bytes)) {
        g_test_skip("no memory is promised beyond what there is");
        return;
    }
    OWNED(testing_close) struct testing_device d;
    open_with(&d, &t, 0, bytes, 0);
    memset(host, 5, sizeof host);
    testing_read(&d, bytes - sizeof back, back, sizeof back);
    g_assert_true(is_poison(back, sizeof back));
    testing_write(&d, bytes - sizeof host, host, sizeof host);
    testing_read(&d, bytes - sizeof back, back, sizeof back);
    g_assert_cmpmem(back, sizeof back, host, sizeof host);
    struct backend_copy beyond = testing_in(&d, bytes - sizeof host + 1, host, sizeof host);
    g_assert_cmpint(emulated->copy(d.device, &beyond), ==, DUET_EINVAL);
}

static void refuse(struct testing_device *d, struct backend_copy copy)
{
    struct backend_completion none;
    g_assert_cmpint(emulated->copy(d->device, &copy), ==, DUET_EINVAL);
    g_assert_cmpuint(emulated->poll(d->device, &none, 1), ==, 0);
}

/* Ends that are not where they should be, and kernels that are none. */
static void test_refused(void)
{
    OWNED(testing_fini) struct testing t;
    struct testing_device d, other;
    unsigned char host[256];
    struct duet_call call = {.args = NULL};
    struct backend_kernel kernel = {.call = &call};
    testing_init(&t, emulated);
    open_with(&d, &t, 0, TESTING_BYTES, 1); /* what is refused does not count */
    testing_open(&other, &t, 1);
    refuse(&d, testing_in(&d, TESTING_BYTES - 255, host, 256));
    refuse(&d, testing_out(&d, TESTING_BYTES - 255, host, 256));
    refuse(&d, testing_in(&d, TESTING_BYTES + 1024, host, 256));
    refuse(&d, testing_in(&other, 0, host, 256));
    refuse(&d, testing_out(&other, 0, host, 256));
    struct backend_copy copy = testing_in(&d, TESTING_BYTES - 200, host, 100);
    copy.cols = 2;
    copy.destination_pitch = 101;
    refuse(&d, copy);
    copy.destination_pitch = SIZE_MAX - 10;
    refuse(&d, copy);
    copy = testing_in(&d, 0, host, 100); /* not from the peer */
    copy.peer = other.device;
    refuse(&d, copy);
    copy = testing_out(&d, 0, other.base, 100); /* between devices it is the other's to do */
    copy.peer = other.device;
    refuse(&d, copy);
    copy = testing_in(&d, 0, host, 100);
    copy.stream = BACKEND_KERNEL;
    refuse(&d, copy);
    g_assert_cmpint(emulated->launch(d.device, &kernel), ==, DUET_EINVAL);
    testing_close(&other);
    testing_close(&d);
}

static void refuse_open(struct testing *t, struct backend_config config)
{
    struct backend_device *none = NULL;
    g_assert_cmpint(emulated->open(&none, t->shared, &config, hear()), ==, DUET_EINVAL);
    g_assert_cmpstr(heard(), !=, "");
    g_assert_null(none);
}

static void test_bad_setup(void)
{
    OWNED(testing_fini) struct testing t;
    struct backend_info info;
    void *shared = NULL;
    unsigned count = emulated->count(NULL);
    struct backend_config config = {.node = 1,
                                    .capacity_bytes = 1,
                                    .notify = testing_notify,
                                    .owner = &t};
    g_assert_cmpint(emulated->describe(count, &info, hear()), ==, DUET_EINVAL);
    g_assert_cmpstr(heard(), !=, "");
    testing_init(&t, emulated);
    const struct backend_setup bad[] = {
        {.machine = &t.machine},
        {.machine = &t.machine, .now = testing_now, .scale = -1},
        {.machine = &t.machine, .now = testing_now, .scale = NAN},
        {.machine = &t.machine, .now = testing_now, .scale = INFINITY},
        {.now = testing_now, .scale = 1},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_cmpint(emulated->attach(&shared, &bad[i], hear()), ==, DUET_EINVAL);
    emulated->detach(NULL);
    config.index = count;
    refuse_open(&t, config);
    config.index = 0;
    config.capacity_bytes = 0;
    refuse_open(&t, config);
    config.capacity_bytes = 1;
    config.notify = NULL;
    refuse_open(&t, config);
}

/* ------------------------------------------------------------------------------------------- */
/* Threads                                                                                      */

static int thread_kernel(const struct duet_call *call)
{
    const pthread_t *launcher = call->args;
    return pthread_equal(*launcher, pthread_self()) ? DUET_ETASK : DUET_OK;
}

/* A kernel never runs on the thread that launches it; every completion is notified before it can
   be missed; dates of a stream do not overlap. */
static void test_threads(void)
{
    pthread_t self = pthread_self();
    struct duet_call call = {.args = &self};
    double last_s = 0;
    OWNED(testing_stop) struct testing_device *d = testing_start(emulated);
    g_assert_true(isinf(emulated->next_s(d->device)));
    for (unsigned i = 0; i < 100; i++) {
        struct backend_completion done;
        uint64_t seen = testing_notices(d);
        testing_launch(d, &call, thread_kernel, &call);
        testing_await(d, seen);
        g_assert_cmpuint(emulated->poll(d->device, &done, 1), ==, 1);
        g_assert_cmpint(done.status, ==, DUET_OK);
        g_assert_true(done.start_s >= last_s);
        last_s = done.end_s;
        g_assert_cmpuint(testing_notices(d), ==, seen + 1);
    }
}

enum { RING = 3, TURNS = 60, AREA = 3000 };

struct player {
    struct testing_device device;
    struct player *left;
    pthread_barrier_t *barrier;
};

/* Each turn a device copies what its left neighbour had in the turn before. */
static gpointer play(gpointer argument)
{
    struct player *player = argument;
    struct testing_device *d = &player->device, *left = &player->left->device;
    for (size_t turn = 0; turn < TURNS; turn++) {
        size_t from = turn % 2 * AREA, to = AREA - from;
        (void)pthread_barrier_wait(player->barrier);
        struct backend_copy copy = testing_in(d, to, left->base + from, AREA);
        copy.source_node = left->node;
        copy.peer = left->device;
        testing_copy(d, copy);
        testing_finish(d, copy.tag);
    }
    return NULL;
}

static void test_ring(void)
{
    OWNED(testing_fini) struct testing t;
    struct player players[RING];
    GThread *threads[RING];
    pthread_barrier_t barrier;
    static unsigned char host[AREA];
    testing_init(&t, emulated);
    (void)pthread_barrier_init(&barrier, NULL, RING);
    for (unsigned i = 0; i < RING; i++) {
        players[i].left = &players[(i + RING - 1) % RING];
        players[i].barrier = &barrier;
        open_with(&players[i].device, &t, i, TESTING_BYTES, 0);
        memset(host, (int)i, sizeof host);
        testing_write(&players[i].device, 0, host, AREA);
    }
    for (unsigned i = 0; i < RING; i++)
        threads[i] = g_thread_new("player", play, &players[i]);
    for (unsigned i = 0; i < RING; i++)
        (void)g_thread_join(threads[i]);
    for (unsigned i = 0; i < RING; i++) {
        testing_read(&players[i].device, TURNS % 2 * AREA, host, AREA);
        for (unsigned k = 0; k < AREA; k++)
            g_assert_cmpuint(host[k], ==, (i + RING * TURNS - TURNS) % RING);
        testing_close(&players[i].device);
    }
    (void)pthread_barrier_destroy(&barrier);
}

/* ------------------------------------------------------------------------------------------- */
/* Loss                                                                                         */

enum { STEPS = 9 };

/* Command `step` of a program that uses every stream in turn. */
static void give_step(struct testing_device *d, unsigned step, unsigned char host[64],
                      struct duet_call *call)
{
    if (step % 3 == 0)
        testing_copy(d, testing_in(d, step * 64, host, 64));
    else if (step % 3 == 1)
        testing_launch(d, d->base + step * 64, testing_probe_kernel, call);
    else
        testing_copy(d, testing_out(d, step * 64, host, 64));
}

/* Every command is waited for before the next: those before the loss go well, no other does. */
static void lose_step_by_step(unsigned lose_at)
{
    OWNED(testing_fini) struct testing t;
    OWNED(testing_close) struct testing_device d;
    unsigned char host[64] = {1};
    struct testing_probe probe = {.status = 0};
    struct testing_argument args = {&probe};
    struct duet_call call = {.args = &args};
    unsigned kernels = 0;
    testing_init(&t, emulated);
    open_with(&d, &t, 0, TESTING_BYTES, lose_at);
    for (unsigned step = 0; step < STEPS; step++) {
        struct backend_completion done;
        bool fine = step + 1 < lose_at;
        g_assert_true(backend_lost(d.device) == (step >= lose_at));
        memset(host, 1, sizeof host);
        give_step(&d, step, host, &call);
        testing_collect(&d, &done, 1);
        g_assert_true(done.tag == d.base + step * 64);
        g_assert_cmpint(done.status, ==, fine ? DUET_OK : DUET_ELOST);
        g_assert_true(done.start_s <= done.end_s);
        kernels += step % 3 == 1 && fine;
        if (!fine) /* nothing came out, and nothing is left inside */
            g_assert_true(host[0] == 1 && is_poison(d.base, STEPS * (size_t)64));
    }
    g_assert_cmpuint(probe.ran, ==, kernels);
}

/* All at once: what was not polled before the loss is lost. */
static void lose_in_flight(unsigned lose_at)
{
    OWNED(testing_fini) struct testing t;
    OWNED(testing_close) struct testing_device d;
    unsigned char hosts[STEPS][64] = {{1}};
    struct testing_probe probe = {.status = 0};
    struct testing_argument args = {&probe};
    struct duet_call call = {.args = &args};
    struct backend_completion done[STEPS];
    testing_init(&t, emulated);
    open_with(&d, &t, 0, TESTING_BYTES, lose_at);
    for (unsigned step = 0; step < STEPS; step++)
        give_step(&d, step, hosts[step], &call);
    testing_collect(&d, done, STEPS);
    for (unsigned i = 0; i < STEPS; i++)
        g_assert_cmpint(done[i].status, ==, lose_at <= STEPS ? DUET_ELOST : DUET_OK);
    if (lose_at <= STEPS)
        g_assert_true(is_poison(d.base, STEPS * (size_t)64));
}

static void test_loss(void)
{
    for (unsigned lose_at = 1; lose_at <= STEPS + 1; lose_at++) {
        lose_step_by_step(lose_at);
        lose_in_flight(lose_at);
    }
}

/* A kernel that runs when its device is lost runs on, in memory that is there, and is lost. */
static void test_loss_under_kernel(void)
{
    OWNED(testing_fini) struct testing t;
    OWNED(testing_close) struct testing_device d;
    unsigned char host[64] = {1};
    struct testing_probe probe = {.status = 0};
    struct testing_argument args = {&probe};
    struct duet_call call = {.args = &args};
    struct backend_completion done;
    testing_init(&t, emulated);
    open_with(&d, &t, 0, TESTING_BYTES, 3);
    testing_write(&d, 0, host, sizeof host);
    testing_launch(&d, &probe, testing_blocking_kernel, &call);
    while (!probe.waiting)
        (void)sched_yield();
    testing_copy(&d, testing_in(&d, 128, host, sizeof host));
    testing_collect(&d, &done, 1);
    g_assert_true(done.tag == d.base + 128 && done.status == DUET_ELOST);
    g_assert_cmpuint(d.base[0], ==, 1); /* it may still be in use */
    probe.go = true;
    testing_collect(&d, &done, 1);
    g_assert_true(done.tag == &probe && done.status == DUET_ELOST);
    g_assert_true(is_poison(d.base, 256));
}

/* Copies from a lost device are lost, the device that makes them is not. */
static void test_lost_peer(void)
{
    OWNED(testing_fini) struct testing t;
    struct testing_device lost, d;
    struct backend_completion done;
    unsigned char host[64] = {1}, back[64];
    testing_init(&t, emulated);
    open_with(&lost, &t, 0, TESTING_BYTES, 2);
    open_with(&d, &t, 1, TESTING_BYTES, 0);
    testing_write(&lost, 0, host, sizeof host);
    testing_copy(&lost, testing_in(&lost, 0, host, sizeof host));
    testing_collect(&lost, &done, 1);
    g_assert_cmpint(done.status, ==, DUET_ELOST);
    struct backend_copy across = testing_in(&d, 0, lost.base, sizeof host);
    across.source_node = lost.node;
    across.peer = lost.device;
    testing_copy(&d, across);
    testing_collect(&d, &done, 1);
    g_assert_true(done.tag == across.tag && done.status == DUET_ELOST);
    g_assert_true(backend_lost(lost.device) && !backend_lost(d.device));
    testing_write(&d, 0, host, sizeof host);
    testing_read(&d, 0, back, sizeof back);
    g_assert_cmpmem(back, sizeof back, host, sizeof host);
    testing_close(&lost);
    testing_close(&d);
}

/* ------------------------------------------------------------------------------------------- */
/* Status                                                                                       */

struct leaves {
    int info, returned;
};

/* Fails in the two ways that a kernel has. */
static int leave_status(const struct duet_call *call)
{
    const struct leaves *leaves = call->args;
    g_assert_true(call->status && *call->status == 0);
    *call->status = leaves->info;
    return leaves->returned;
}

/* A kernel's result is its status, otherwise the one it leaves; a number above 0 is its reason. */
static void test_status(void)
{
    static const struct {
        struct leaves leaves;
        int status;
        const char *why;
    } cases[] = {
        {{0, 0}, DUET_OK, NULL},
        {{DUET_EIO, 0}, DUET_EIO, NULL},
        {{7, 0}, DUET_ETASK, "info = 7"},
        {{INT_MAX, 0}, DUET_ETASK, "info = 2147483647"},
        {{7, DUET_EPARSE}, DUET_EPARSE, NULL},
        {{0, DUET_EPARSE}, DUET_EPARSE, NULL},
    };
    enum { CASES = G_N_ELEMENTS(cases) };
    struct duet_call calls[CASES];
    struct backend_completion done[CASES];
    OWNED(testing_stop) struct testing_device *d = testing_start(emulated);
    for (unsigned i = 0; i < CASES; i++) {
        calls[i] = (struct duet_call){.args = &cases[i].leaves};
        testing_launch(d, &calls[i], leave_status, &calls[i]);
    }
    testing_collect_by(d, done, CASES, 1);
    for (unsigned i = 0; i < CASES; i++) {
        g_assert_true(done[i].tag == &calls[i]);
        g_assert_cmpint(done[i].status, ==, cases[i].status);
        g_assert_cmpstr(done[i].why, ==, cases[i].why);
        g_assert_null(calls[i].status);
    }
}

TEST_MAIN(test_poison, test_large, test_refused, test_bad_setup, test_threads, test_ring, test_loss,
          test_loss_under_kernel, test_lost_peer, test_status)
