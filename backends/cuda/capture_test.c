/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of a graph on the backend: what is captured, for which command, and for how long. */
#include "backends/cuda/testing.h"

#include "core/repeat.h"

enum { KERNELS = 2 };

static unsigned number;     /* of the next launch of the second kernel */
static uint64_t version;    /* of what the function enqueues */
static bool cannot_capture; /* the function makes a call that spoils a capture */
static bool launch_refused; /* CUDA refuses the launch, which the function does not say */

struct leaving {
    int *status;
};

static void leave(void *argument)
{
    const struct leaving *leaving = argument;
    *leaving->status = (int)++number;
}

/* The second kernel leaves the number of its launch. */
static int enqueue(const struct duet_call *call)
{
    const struct leaving leaving = {call->status + 1};
    if (cannot_capture)
        (void)cudaStreamQuery(call->stream);
    if (launch_refused)
        return cudaSetDevice(7) ? DUET_OK : DUET_EINVAL;
    return fake_cuda_launch(call->stream, leave, &leaving, sizeof leaving) ? DUET_ETASK : DUET_OK;
}

static struct duet__repeat *repeat_new(void)
{
    struct duet__repeat *repeat = calloc(1, sizeof *repeat);
    g_assert_nonnull(repeat);
    repeat->users = repeat->submitters = 1;
    repeat->kernels = KERNELS;
    return repeat;
}

/* Ends the use by the core. */
static void repeat_end(struct duet__repeat *repeat)
{
    repeat->submitters = 0;
    duet__repeat_drop(repeat);
}

static void launch(struct backend_device *device, struct duet__repeat *repeat,
                   struct duet_call *call, struct duet_message *message)
{
    const struct backend_kernel kernel = {.tag = call,
                                          .run = enqueue,
                                          .call = call,
                                          .repeat = repeat,
                                          .version = version};
    message->text[0] = '\0';
    *call = (struct duet_call){.message = message};
    g_assert_cmpint(duet__backend_cuda.launch(device, &kernel), ==, DUET_OK);
}

static void finish(struct backend_device *device, const char *why)
{
    const struct backend_completion done = user_finish(device);
    g_assert_cmpint(done.status, ==, DUET_ETASK);
    g_assert_cmpuint(done.part, ==, 2);
    g_assert_cmpstr(done.why, ==, why);
}

/* Each command in flight has a capture with statuses of its own; captures go with their graph. */
static void test_in_flight(void)
{
    OWNED(user_end) struct user user;
    struct duet_call calls[4];
    struct duet_message messages[4];
    number = 0;
    user_begin(&user, &(struct fake_cuda_config){.devices = 1}, 0);
    struct backend_device *device = user_open(&user, user_config(0, 4096));
    struct duet__repeat *first = repeat_new(), *second = repeat_new();
    launch(device, first, &calls[0], &messages[0]);
    finish(device, "info = 1");
    for (unsigned i = 0; i < 4; i++)
        launch(device, first, &calls[i], &messages[i]);
    g_assert_cmpuint(fake_cuda_calls("cudaGraphInstantiate"), ==, 4);
    finish(device, "info = 2");
    finish(device, "info = 3");
    finish(device, "info = 4");
    finish(device, "info = 5");
    launch(device, first, &calls[0], &messages[0]);
    finish(device, "info = 6");
    g_assert_cmpuint(fake_cuda_calls("cudaGraphInstantiate"), ==, 4);
    repeat_end(first);
    g_assert_cmpuint(fake_cuda_calls("cudaGraphExecDestroy"), ==, 0);
    launch(device, second, &calls[0], &messages[0]);
    g_assert_cmpuint(fake_cuda_calls("cudaGraphExecDestroy"), ==, 4);
    finish(device, "info = 7");
    duet__backend_cuda.close(device);
    repeat_end(second);
}

/* Kernels that cannot be captured are not tried again, and a line says so. */
static void test_told(void)
{
    OWNED(user_end) struct user user;
    struct duet_call call;
    struct duet_message message;
    number = 0;
    cannot_capture = true;
    user_begin(&user, &(struct fake_cuda_config){.devices = 1}, 0);
    struct backend_device *device = user_open(&user, user_config(0, 4096));
    struct duet__repeat *repeat = repeat_new();
    for (unsigned i = 0; i < 4; i++) {
        launch(device, repeat, &call, &message);
        g_assert_cmpint(user_finish(device).status, ==, DUET_ETASK);
    }
    g_assert_cmpuint(number, ==, 4);
    g_assert_cmpuint(fake_cuda_calls("cudaStreamBeginCapture"), ==, 1);
    g_assert_cmpuint(hearing_count(&user.hearing,
                                   "GPU 0 (Fake GPU 0): 2 kernels of a graph are launched one by "
                                   "one, not as a CUDA graph: cudaStreamEndCapture: "),
                     ==, 1);
    cannot_capture = false;
    duet__backend_cuda.close(device);
    repeat_end(repeat);
}

/* A launch that CUDA refuses while it is captured fails the kernel, though the graph lacks it. */
static void test_refused_launch(void)
{
    OWNED(user_end) struct user user;
    struct duet_call call;
    struct duet_message message;
    number = 0;
    user_begin(&user, &(struct fake_cuda_config){.devices = 1}, 0);
    struct backend_device *device = user_open(&user, user_config(0, 4096));
    struct duet__repeat *repeat = repeat_new();
    for (unsigned i = 0; i < 2; i++) {
        launch(device, repeat, &call, &message);
        g_assert_cmpint(user_finish(device).status, ==, DUET_ETASK);
    }
    g_assert_cmpuint(fake_cuda_calls("cudaGraphLaunch"), ==, 1);
    launch_refused = true;
    version++;
    launch(device, repeat, &call, &message);
    const struct backend_completion done = user_finish(device);
    g_assert_cmpint(done.status, ==, DUET_ETASK);
    g_assert_cmpstr(done.why, ==,
                    "cudaGetLastError, after the kernel's function: invalid device ordinal "
                    "(cudaErrorInvalidDevice)");
    launch_refused = false;
    duet__backend_cuda.close(device);
    repeat_end(repeat);
}

TEST_MAIN(test_in_flight, test_told, test_refused_launch)
