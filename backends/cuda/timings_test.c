/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of timings: dates of commands on a device whose clock runs otherwise, over many anchors. */
#include "backends/common.h"
#include "backends/cuda/testing.h"

enum { MIB = 1 << 20, ROUNDS = 60, FLIGHT = 5 };

/* Dates when a kernel's body really ran, on the host's clock. */
struct body {
    double start_s, end_s;
    double launch_s; /* how long its launch has taken */
};

static void run_body(void *argument)
{
    struct body *body = *(struct body **)argument;
    const struct timespec nap = {.tv_nsec = 50000};
    body->start_s = testing_now(NULL);
    (void)nanosleep(&nap, NULL);
    body->end_s = testing_now(NULL);
}

static int body_kernel(const struct duet_call *call)
{
    const struct body *const *body = call->args;
    return fake_cuda_launch(call->stream, run_body, body, sizeof *body) ? DUET_ETASK : DUET_OK;
}

/* Launches a kernel, and notes how long that takes. */
static void launch(struct backend_device *device, struct body *body, duet_kernel_fn run,
                   struct duet_call *call)
{
    const struct backend_kernel kernel = {.tag = body, .run = run, .call = call};
    double begun_s = testing_now(NULL);
    g_assert_cmpint(duet__backend_cuda.launch(device, &kernel), ==, DUET_OK);
    body->launch_s = testing_now(NULL) - begun_s;
}

/*
 * The body ran between the dates, as far as the offset of the clocks was known; of the command
 * before it, too, whose end its start may have been moved to. Where launching has taken as long as
 * if something had been prepared, the start may be that of what came after it.
 */
static void check(const struct timings *timings, const struct backend_completion *done,
                  double *unsure_s)
{
    const struct body *body = done->tag;
    *unsure_s = fmax(*unsure_s, timings->dates.high_s - timings->dates.low_s + 1e-5);
    g_assert_cmpint(done->status, ==, DUET_OK);
    if (body->launch_s < DUET__PREPARING_S)
        g_assert_cmpfloat(done->start_s, <=, body->start_s + *unsure_s);
    g_assert_cmpfloat(done->end_s, >=, body->end_s - *unsure_s);
    g_assert_cmpfloat(done->start_s, <=, done->end_s);
}

static void run_on(unsigned index, double anchor_age_s, unsigned kernel_streams)
{
    const struct fake_cuda_config config = {.devices = 2};
    OWNED(user_end) struct user user;
    struct body bodies[FLIGHT], *tags[FLIGHT];
    struct duet_call calls[FLIGHT];
    double unsure_s = 0;
    unsigned moved = 0;
    user_begin(&user, &config, 0);
    struct backend_config wanted = user_config(index, MIB);
    wanted.kernel_streams = kernel_streams;
    struct backend_device *device = user_open(&user, wanted);
    device->timings.anchor_age_s = anchor_age_s;
    for (unsigned round = 0; round < ROUNDS; round++) {
        const struct anchor *before = device->timings.anchor;
        for (unsigned i = 0; i < FLIGHT; i++) {
            tags[i] = &bodies[i];
            calls[i] = (struct duet_call){.args = &tags[i]};
            launch(device, &bodies[i], body_kernel, &calls[i]);
        }
        for (unsigned i = 0; i < FLIGHT; i++) {
            struct backend_completion done = user_finish(device);
            check(&device->timings, &done, &unsure_s);
        }
        moved += device->timings.anchor != before;
        for (unsigned i = 0; i < ANCHORS; i++)
            g_assert_cmpuint(device->timings.anchors[i].users, ==, 0);
    }
    g_assert_true((moved > 0) == (anchor_age_s < 1));
}

static void test_anchors(void)
{
    for (unsigned index = 0; index < 2; index++) {
        run_on(index, 0, 1);
        run_on(index, 1e-3, 3);
        run_on(index, 1e9, 1);
    }
}

/*
 * A function that has slept or computed has prepared something. One that took long without either
 * was preempted, and nothing is known of its kernel but its events.
 */
static void test_prepared(void)
{
    struct duet__usage now, sleepy, busy;
    duet__thread_usage(&now);
    sleepy = busy = now;
    sleepy.sleeps--;
    busy.computed_s -= DUET__PREPARING_S;
    now.computed_s += 1; /* this thread computes on, and sleeps no more */
    now.sleeps += 1000;
    g_assert_true(duet__has_prepared(1.1 * DUET__PREPARING_S, &sleepy));
    g_assert_true(duet__has_prepared(1.1 * DUET__PREPARING_S, &busy));
    g_assert_false(duet__has_prepared(1.1 * DUET__PREPARING_S, &now));
    g_assert_false(duet__has_prepared(0.9 * DUET__PREPARING_S, &sleepy));
}

/* Without times, dates are those of the host: a kernel begins when it is launched or after the one
   before it, and ends when its end is noticed. No event has a date. */
static void test_untimed(void)
{
    const struct fake_cuda_config config = {.devices = 1};
    OWNED(user_end) struct user user;
    struct body bodies[FLIGHT], *tags[FLIGHT];
    struct duet_call calls[FLIGHT];
    double end_s = 0;
    user_begin(&user, &config, 0);
    struct backend_config wanted = user_config(0, MIB);
    wanted.untimed = true;
    struct backend_device *device = user_open(&user, wanted);
    uint64_t records = fake_cuda_calls("cudaEventRecord");
    for (unsigned i = 0; i < FLIGHT; i++) {
        tags[i] = &bodies[i];
        calls[i] = (struct duet_call){.args = &tags[i]};
        launch(device, &bodies[i], body_kernel, &calls[i]);
    }
    g_assert_cmpuint(fake_cuda_calls("cudaEventRecord") - records, ==, FLIGHT);
    for (unsigned i = 0; i < FLIGHT; i++) {
        struct backend_completion done = user_finish(device);
        g_assert_true(done.tag == &bodies[i]);
        g_assert_cmpint(done.status, ==, DUET_OK);
        g_assert_cmpfloat(done.start_s, >=, end_s);
        g_assert_cmpfloat(done.end_s, >=, bodies[i].end_s);
        end_s = done.end_s;
    }
    g_assert_cmpuint(fake_cuda_calls("cudaEventElapsedTime"), ==, 0);
}

/* The lists grow with what is in flight, and are kept; page-locked memory is made at once. */
static void test_list(void)
{
    enum { MANY = 150 };
    const struct fake_cuda_config config = {.devices = 1};
    struct timings timings = {.now = testing_now};
    struct timing *taken[MANY];
    struct failure failure;
    cudaStream_t stream;
    fake_cuda_reset(&config);
    duet__timings_fini(&timings);
    timings = (struct timings){.now = testing_now};
    g_assert_cmpint(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), ==, cudaSuccess);
    g_assert_true(duet__timings_init(&timings, stream, MANY / 2, &failure));
    for (unsigned round = 0; round < 3; round++) {
        uint64_t events = fake_cuda_calls("cudaEventCreateWithFlags");
        for (unsigned i = 0; i < MANY; i++) {
            bool kernel = i % 2;
            taken[i] = duet__timings_take(&timings, kernel, &failure);
            g_assert_nonnull(taken[i]);
            g_assert_true(kernel == (taken[i]->status != NULL));
            if (kernel) {
                g_assert_cmpint(*taken[i]->status, ==, 0);
                *taken[i]->status = 5;
            }
            for (unsigned k = 0; k < i; k++)
                g_assert_true(taken[k] != taken[i] &&
                              (!kernel || taken[k]->status != taken[i]->status));
        }
        g_assert_cmpuint(fake_cuda_calls("cudaHostAlloc"), ==, 1);
        g_assert_cmpuint(timings.anchor->users, ==, MANY);
        for (unsigned i = 0; i < MANY; i++)
            duet__timings_give(&timings, taken[i]);
        g_assert_true((fake_cuda_calls("cudaEventCreateWithFlags") > events) == (round == 0));
    }
    duet__timings_fini(&timings);
    g_assert_cmpint(cudaStreamDestroy(stream), ==, cudaSuccess);
    g_assert_cmpuint(fake_cuda_leaks(true), ==, 0);
}

TEST_MAIN(test_anchors, test_prepared, test_untimed, test_list)
