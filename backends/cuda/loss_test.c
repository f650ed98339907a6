/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of errors in the middle of things: devices that break, peers that are lost, refusals. */
#include <sys/wait.h>
#include <unistd.h>

#include "backends/cuda/testing.h"
#include "backends/cuda/testing_fake.h"

enum { MIB = 1 << 20, LARGE = 3 * TESTING_STAGING, FLIGHT = 6 };

/* A kernel that waits for a flag, or for nothing. */
static void wait_for(void *argument)
{
    _Atomic(bool) *gate = *(_Atomic(bool) **)argument;
    while (gate && !*gate)
        (void)sched_yield();
}

static int gate_kernel(const struct duet_call *call)
{
    _Atomic(bool) *const *gate = call->args;
    if (fake_cuda_launch(call->stream, wait_for, gate, sizeof *gate))
        return duet_fail(call->message, DUET_ETASK, "the launch");
    return DUET_OK;
}

struct scene {
    struct user user;
    struct backend_device *device;
    _Atomic(bool) open, *gate;
    struct duet_call calls[FLIGHT];
    unsigned char *host;
    struct backend_completion done[64];
};

/* Kernels that wait, copies behind each other in both directions; staged, some of many pieces. */
static void begin(struct scene *s, unsigned kernels)
{
    const struct fake_cuda_config config = {.devices = 2};
    memset(s, 0, sizeof *s);
    user_begin(&s->user, &config, 0);
    s->device = user_open(&s->user, user_config(0, MIB));
    s->gate = &s->open;
    s->host = user_pages(MIB);
    for (unsigned i = 0; i < kernels; i++) {
        s->calls[i] = (struct duet_call){.args = &s->gate};
        struct backend_kernel kernel = {.tag = &s->calls[i], .run = gate_kernel};
        kernel.call = &s->calls[i];
        g_assert_cmpint(duet__backend_cuda.launch(s->device, &kernel), ==, DUET_OK);
    }
}

/* In several pieces, in or out, which do not touch each other's memory. */
static struct backend_copy large(struct scene *s, bool in)
{
    size_t offset = in ? 0 : MIB / 2;
    return user_copy(s->device, in, offset, s->host + offset, LARGE, 1, LARGE);
}

static void give_copies(struct scene *s)
{
    for (unsigned i = 0; i < 4; i++) {
        struct backend_copy copy = large(s, i % 2 == 0);
        g_assert_cmpint(duet__backend_cuda.copy(s->device, &copy), ==, DUET_OK);
    }
}

static void end(struct scene *s)
{
    s->open = true;
    duet__backend_cuda.close(s->device);
    user_end(&s->user);
    free(s->host);
}

/* Everything given to a lost device ends so, at once. */
static void expect_gone(struct scene *s)
{
    struct backend_copy copy = user_copy(s->device, true, 0, s->host, 8, 1, 8);
    struct backend_kernel kernel = {.tag = s, .run = gate_kernel, .call = &s->calls[0]};
    g_assert_true(backend_lost(s->device));
    g_assert_cmpint(duet__backend_cuda.copy(s->device, &copy), ==, DUET_OK);
    g_assert_cmpint(duet__backend_cuda.launch(s->device, &kernel), ==, DUET_OK);
    g_assert_cmpuint(duet__backend_cuda.poll(s->device, s->done, 64), ==, 2);
    g_assert_cmpint(s->done[0].status, ==, DUET_ELOST);
    g_assert_cmpint(s->done[1].status, ==, DUET_ELOST);
    g_assert_nonnull(s->done[0].why);
    g_assert_cmpuint(duet__backend_cuda.poll(s->device, s->done, 64), ==, 0);
}

/* Kernels in flight are to blame for what kernels do, and are reported first. */
static void test_by_kernel(void)
{
    static const int errors[] = {cudaErrorIllegalAddress, cudaErrorAssert, cudaErrorLaunchFailure,
                                 cudaErrorMisalignedAddress, cudaErrorLaunchTimeout};
    for (unsigned e = 0; e < G_N_ELEMENTS(errors); e++) {
        OWNED(end) struct scene s;
        begin(&s, 3);
        give_copies(&s);
        s.open = true;
        fake_cuda_break(0, errors[e], 0);
        user_collect(s.device, s.done, 7);
        for (unsigned i = 0; i < 7; i++) {
            /* copies may have ended before */
            g_assert_nonnull(s.done[i].why);
            g_assert_nonnull(strstr(s.done[i].why, cudaGetErrorName((cudaError_t)errors[e])));
            g_assert_nonnull(strstr(s.done[i].why, "seen by cuda"));
            g_assert_cmpint(s.done[i].status, ==, i < 3 ? DUET_ETASK : DUET_ELOST);
            g_assert_true(s.done[i].start_s <= s.done[i].end_s);
        }
        g_assert_cmpuint(s.user.hearing.count, ==, 0); /* the tasks say it */
        expect_gone(&s);
    }
}

/* Faults of hardware, and failures without a running kernel, blame no kernel, and say so. */
static void test_by_hardware(void)
{
    for (unsigned k = 0; k < 2; k++) {
        OWNED(end) struct scene s;
        begin(&s, k ? 0 : 3);
        give_copies(&s);
        s.open = true;
        fake_cuda_break(0, k ? cudaErrorIllegalAddress : cudaErrorECCUncorrectable, 0);
        user_collect(s.device, s.done, k ? 4 : 7);
        for (unsigned i = 0; i < (k ? 4 : 7); i++)
            g_assert_cmpint(s.done[i].status, ==, DUET_ELOST);
        g_assert_cmpuint(hearing_count(&s.user.hearing, "GPU 0 ("), ==, 1);
        g_assert_cmpuint(hearing_count(&s.user.hearing, k ? "illegal" : "ECC"), ==, 1);
        expect_gone(&s);
        g_assert_cmpuint(s.user.hearing.count, ==, 1);
    }
}

/* Closing does not hang on a broken device, however much it has. */
static void test_close_broken(void)
{
    for (unsigned polled = 0; polled < 2; polled++) {
        OWNED(end) struct scene s;
        begin(&s, FLIGHT);
        give_copies(&s);
        s.open = true;
        fake_cuda_break(0, cudaErrorIllegalAddress, 0);
        if (polled)
            (void)duet__backend_cuda.poll(s.device, s.done, 1);
    }
}

/*
 * The device breaks at each of its operations in turn: all given commands end, and later ones are
 * lost.
 */
static void test_fuse(void)
{
    for (unsigned at = 1; at < 60; at += at < 20 ? 1 : 7) {
        OWNED(end) struct scene s;
        begin(&s, 0);
        s.open = true;
        fake_cuda_break(0, cudaErrorIllegalAddress, at);
        size_t given = 0, bad = 0;
        for (unsigned i = 0; i < 4; i++) {
            s.calls[i] = (struct duet_call){.args = &s.gate};
            struct backend_kernel kernel = {.tag = &s.calls[i], .run = gate_kernel};
            kernel.call = &s.calls[i];
            struct backend_copy copy = large(&s, i % 2 == 0);
            given += duet__backend_cuda.launch(s.device, &kernel) == DUET_OK;
            given += duet__backend_cuda.copy(s.device, &copy) == DUET_OK;
        }
        g_assert_cmpuint(given, ==, 8);
        user_collect(s.device, s.done, given);
        for (size_t i = 0; i < given; i++)
            bad += s.done[i].status != DUET_OK;
        g_assert_true((bad > 0) == backend_lost(s.device) || at > 40);
    }
}

/* An error that is not listed breaks the device if the next call has it, too. */
static void test_unlisted(void)
{
    enum { UNLISTED = 730 }; /* an error that device.c does not list */
    for (unsigned lasting = 0; lasting < 2; lasting++) {
        OWNED(end) struct scene s;
        begin(&s, 2);
        s.open = true;
        if (lasting)
            fake_cuda_break(0, UNLISTED, 0);
        else
            fake_cuda_fail("cudaEventQuery", 1, UNLISTED);
        user_collect(s.device, s.done, 2);
        g_assert_cmpint(s.done[0].status, ==, DUET_ETASK);
        g_assert_cmpint(s.done[1].status, ==, lasting ? DUET_ETASK : DUET_OK);
        g_assert_true(backend_lost(s.device) == (lasting > 0));
    }
}

/* Kernels of which each ends when the clock is next looked at, a second later. */
static struct queue {
    struct gate gates[12];
    unsigned opened;
    double now_s;
} queue;

static int launch_gate(const struct duet_call *call)
{
    struct gate *const *gate = call->args;
    block(call->stream, *gate);
    return DUET_OK;
}

static double end_one(void *clock)
{
    (void)clock;
    if (queue.opened == G_N_ELEMENTS(queue.gates))
        return queue.now_s;
    queue.gates[queue.opened++].open = true;
    while (queue.opened < G_N_ELEMENTS(queue.gates) && !queue.gates[queue.opened].waiting)
        (void)sched_yield();
    return queue.now_s += 1;
}

/* An error that waits for a long queue gives no device up on which something ends meanwhile. */
static void test_queue(void)
{
    OWNED(end) struct scene s;
    struct gate *gates[G_N_ELEMENTS(queue.gates)];
    struct duet_call calls[G_N_ELEMENTS(gates)];
    begin(&s, 0);
    struct cuda *cuda = s.user.shared;
    for (unsigned i = 0; i < G_N_ELEMENTS(gates); i++) {
        gates[i] = &queue.gates[i];
        calls[i] = (struct duet_call){.args = &gates[i]};
        struct backend_kernel kernel = {.tag = &s, .run = launch_gate, .call = &calls[i]};
        g_assert_cmpint(duet__backend_cuda.launch(s.device, &kernel), ==, DUET_OK);
    }
    cuda->setup.now = end_one;
    cuda->setup.patience_s = 1.5;
    fake_cuda_fail("cudaEventRecord", 2, cudaErrorInvalidValue);
    s.open = true;
    s.calls[0] = (struct duet_call){.args = &s.gate};
    struct backend_kernel last = {.tag = &s, .run = gate_kernel, .call = &s.calls[0]};
    g_assert_cmpint(duet__backend_cuda.launch(s.device, &last), ==, DUET_ETASK);
    user_collect(s.device, s.done, G_N_ELEMENTS(gates));
    for (unsigned i = 0; i < G_N_ELEMENTS(gates); i++)
        g_assert_cmpint(s.done[i].status, ==, DUET_OK);
    g_assert_false(backend_lost(s.device));
}

/*
 * A device whose kernel never ends is given up after patience_s: while it is closed, and when an
 * error has to wait for the stream. Its memory can then not be freed, hence a child process.
 */
static void test_hung(void)
{
    for (unsigned closed = 0; closed < 2; closed++) {
        int status = -1;
        pid_t child = fork();
        if (child) {
            g_assert_cmpint(waitpid(child, &status, 0), ==, child);
            g_assert_cmpint(status, ==, 0);
            continue;
        }
        struct scene s;
        begin(&s, 2);
        struct cuda *cuda = s.user.shared;
        struct backend_kernel kernel = {.tag = &s, .run = gate_kernel, .call = &s.calls[0]};
        cuda->setup.patience_s = 0.05;
        cuda->pins.limit_bytes = MIB;
        g_assert_cmpint(duet__backend_cuda.pin(cuda, s.host, MIB, NULL), ==, DUET_OK);
        fake_cuda_fail("cudaEventRecord", 2, cudaErrorInvalidValue);
        if (!closed) {
            (void)duet__backend_cuda.launch(s.device, &kernel);
            g_assert_true(backend_lost(s.device));
            user_collect(s.device, s.done, 2);
            g_assert_cmpint(s.done[1].status, ==, DUET_ETASK);
            g_assert_cmpint(duet__backend_cuda.unpin(cuda, s.host, NULL), ==, DUET_OK);
            g_assert_cmpint(duet__backend_cuda.pin(cuda, s.host, MIB, NULL), ==, DUET_ENOMEM);
        }
        duet__backend_cuda.close(s.device);
        g_assert_cmpuint(hearing_count(&s.user.hearing, "has not ended for 0.05 s"), ==, 1);
        struct backend_config again = user_config(1, MIB);
        g_assert_cmpint(duet__backend_cuda.open(&s.device, cuda, &again, NULL), ==, DUET_EIO);
        duet__backend_cuda.detach(cuda);
        g_assert_cmpuint(fake_cuda_calls("cudaHostUnregister"), ==, 0);
        _exit(0);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Two devices                                                                                  */

static struct backend_copy across(struct backend_device *to, struct backend_device *from)
{
    struct backend_copy copy = user_copy(to, true, 0, backend_base(from), MIB, 1, MIB);
    copy.peer = from;
    copy.tag = to;
    return copy;
}

/* The copy has not arrived, and the device that made it goes on. */
static void test_peer(void)
{
    OWNED(end) struct scene s;
    begin(&s, 0);
    struct backend_device *other = user_open(&s.user, user_config(1, 2 * MIB));
    struct backend_copy copy = across(other, s.device);
    /* not known yet to be lost: the copy's own call says so, and this device is well */
    fake_cuda_break(0, cudaErrorIllegalAddress, 0);
    g_assert_cmpint(duet__backend_cuda.copy(other, &copy), ==, DUET_ELOST);
    g_assert_nonnull(strstr(backend_why(other), "cudaMemcpyPeerAsync"));
    g_assert_false(backend_lost(other));
    /* known to be */
    struct backend_copy in = user_copy(s.device, true, 0, s.host, 8, 1, 8);
    g_assert_cmpint(duet__backend_cuda.copy(s.device, &in), ==, DUET_OK);
    g_assert_cmpint(user_finish(s.device).status, ==, DUET_ELOST);
    g_assert_cmpint(duet__backend_cuda.copy(other, &copy), ==, DUET_OK);
    struct backend_completion done = user_finish(other);
    g_assert_true(done.tag == other);
    g_assert_cmpint(done.status, ==, DUET_ELOST);
    g_assert_nonnull(done.why);
    g_assert_false(backend_lost(other));
    in = user_copy(other, true, 0, s.host, 8, 1, 8);
    g_assert_cmpint(duet__backend_cuda.copy(other, &in), ==, DUET_OK);
    g_assert_cmpint(user_finish(other).status, ==, DUET_OK);
}

/* Lost while the copy is on its way. */
static void test_peer_in_flight(void)
{
    OWNED(end) struct scene s;
    begin(&s, 0);
    struct backend_device *other = user_open(&s.user, user_config(1, 2 * MIB));
    struct backend_copy copy = across(other, s.device);
    g_assert_cmpint(duet__backend_cuda.copy(other, &copy), ==, DUET_OK);
    struct failure failure = {.call = "cudaEventQuery", .error = cudaErrorECCUncorrectable};
    duet__cuda_lose(s.device, &failure);
    g_assert_cmpint(user_finish(other).status, ==, DUET_ELOST);
    g_assert_false(backend_lost(other));
}

/* The device that makes the copy breaks: that is its own loss. */
static void test_own_loss(void)
{
    OWNED(end) struct scene s;
    begin(&s, 0);
    struct backend_device *other = user_open(&s.user, user_config(1, 2 * MIB));
    struct backend_copy copy = across(other, s.device);
    fake_cuda_break(1, cudaErrorIllegalAddress, 0);
    g_assert_cmpint(duet__backend_cuda.copy(other, &copy), ==, DUET_OK);
    g_assert_cmpint(user_finish(other).status, ==, DUET_ELOST);
    g_assert_true(backend_lost(other));
    g_assert_false(backend_lost(s.device));
}

TEST_MAIN(test_by_kernel, test_by_hardware, test_close_broken, test_fuse, test_unlisted, test_queue,
          test_hung, test_peer, test_peer_in_flight, test_own_loss)
