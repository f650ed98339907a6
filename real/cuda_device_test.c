/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole library on the fake CUDA, case by case: what is said of calls that fail, page-locking
 * as the application sees it, and a device that breaks at any of its operations.
 */
#include <cuda_runtime_api.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib.h>

#include <duet/duet.h>
#include <duet/trace.h>

#include "real/real.h"
#include "tests/fake_cuda/fake.h"

enum { WORDS = 512, HANDLES = 6, LARGE = 1 << 20, ALARM_S = 600 };

static struct duet_runtime *open_with(const struct duet_config *config)
{
    struct duet_runtime *duet = NULL;
    (void)alarm(ALARM_S);
    WORKS(duet_open(&duet, config, hear()));
    return duet;
}

/* Returns the configuration of `gpus` fake GPUs and no CPU, or one. */
static struct duet_config start(unsigned gpus, int cpus)
{
    const struct fake_cuda_config fake = {.devices = gpus};
    struct duet_config config;
    fake_cuda_reset(&fake);
    duet_config_init(&config);
    config.gpus = (int)gpus;
    config.cpus = cpus;
    config.no_bind = true;
    config.watchdog_s = ALARM_S / 4.0;
    return config;
}

static void end(struct duet_runtime *duet, int error)
{
    struct fake_cuda_stats stats;
    g_assert_cmpint(duet_close(duet), ==, error);
    fake_cuda_stats(&stats);
    g_assert_cmpuint(stats.violations, ==, 0);
    g_assert_cmpuint(fake_cuda_registered(), ==, 0);
}

#define must(duet, call)                                                                           \
    do {                                                                                           \
        if (call)                                                                                  \
            g_error("%s: %s", #call, duet_last_message(duet));                                     \
    } while (0)

/* ------------------------------------------------------------------------------------------- */
/* A kernel that adds one to every word                                                         */

struct words {
    uint64_t *data;
    size_t count;
    int *status, leaves; /* a status, if not 0 */
};

static void run_increment(void *argument)
{
    const struct words *words = argument;
    for (size_t i = 0; i < words->count; i++)
        words->data[i]++;
    if (words->leaves)
        *words->status = words->leaves;
}

static int launch(const struct duet_call *call, int leaves)
{
    struct words words = {.status = call->status, .leaves = leaves};
    int device = -1;
    g_assert_cmpint(cudaGetDevice(&device), ==, cudaSuccess);
    if (call->buffer_count) {
        const struct duet_buffer *buffer = &call->buffers[0];
        words.count = buffer->rows * buffer->cols;
        words.data =
            fake_cuda_memory((unsigned)device, buffer->data, words.count * sizeof *words.data);
    }
    int error = fake_cuda_launch(call->stream, run_increment, &words, sizeof words);
    return error ? duet_fail(call->message, DUET_ETASK, "increment: %s",
                             cudaGetErrorName((cudaError_t)error))
                 : DUET_OK;
}

static int increment(const struct duet_call *call)
{
    return launch(call, 0);
}

static int increment_on_cpu(const struct duet_call *call)
{
    uint64_t *data = call->buffers[0].data;
    for (size_t i = 0; i < call->buffers[0].rows; i++)
        data[i]++;
    return DUET_OK;
}

static int leave_info(const struct duet_call *call)
{
    return launch(call, 3);
}

static int leave_error(const struct duet_call *call)
{
    return launch(call, DUET_EPARSE);
}

static int refuse(const struct duet_call *call)
{
    return duet_fail(call->message, DUET_ENOTFOUND, "cublasDgemm: CUBLAS_STATUS_NOT_SUPPORTED");
}

static struct duet_codelet *codelet(struct duet_runtime *duet, duet_kernel_fn on_gpu,
                                    duet_kernel_fn on_cpu)
{
    const struct duet_implementation both[] = {{"cuda", on_gpu}, {"cpu", on_cpu}};
    const struct duet_codelet_desc desc = {.name = "increment",
                                           .implementations = both,
                                           .implementation_count = on_cpu ? 2 : 1};
    struct duet_codelet *made = NULL;
    must(duet, duet_register_codelet(duet, &desc, &made));
    return made;
}

static void submit(struct duet_runtime *duet, const struct duet_codelet *kernel,
                   struct duet_handle *handle)
{
    const struct duet_access access = {handle, DUET_RW};
    const struct duet_task_desc task = {.codelet = kernel,
                                        .accesses = &access,
                                        .access_count = handle != NULL};
    must(duet, duet_submit(duet, &task));
}

/* ------------------------------------------------------------------------------------------- */
/* Error messages */

/*
 * Runs one task with this kernel, on data if `with_data`; *function's next call gives that error.
 */
static void fails(duet_kernel_fn kernel, const char *function, int with, int expected,
                  const char *says)
{
    struct duet_config config = start(1, 0);
    struct duet_runtime *duet = open_with(&config);
    uint64_t words[WORDS] = {0};
    struct duet_handle *handle = NULL;
    must(duet, duet_register_vector(duet, words, WORDS, sizeof words[0], &handle));
    if (function)
        fake_cuda_fail(function, 1, with);
    submit(duet, codelet(duet, kernel, NULL), handle);
    REFUSED(duet, duet_wait(duet), expected, says);
    end(duet, expected);
}

static void test_kernels_that_fail(void)
{
    fails(leave_info, NULL, 0, DUET_ETASK, "task 1 (increment) failed on gpu0: info = 3");
    fails(leave_error, NULL, 0, DUET_EPARSE, "task 1 (increment) failed on gpu0: malformed input");
    fails(refuse, NULL, 0, DUET_ENOTFOUND,
          "failed on gpu0: cublasDgemm: CUBLAS_STATUS_NOT_SUPPORTED");
    fails(increment, "cudaEventRecord", cudaErrorLaunchOutOfResources, DUET_EIO, "cudaEventRecord");
}

static void test_copies_that_fail(void)
{
    fails(increment, "cudaMemcpyAsync", cudaErrorMemoryAllocation, DUET_ENOMEM,
          "copy of handle 1 from host to gpu0 failed: cudaMemcpyAsync: ");
    fails(increment, "cudaMemcpyAsync", cudaErrorInvalidValue, DUET_EIO, "cudaMemcpyAsync");
}

/* ------------------------------------------------------------------------------------------- */
/* Page-locking                                                                                 */

/* Page-locking by the application, until it ends that, or the run does. */
static void test_pin(void)
{
    struct duet_config config = start(2, 1);
    struct duet_runtime *duet = open_with(&config);
    uint64_t *data = g_malloc0(LARGE);
    must(duet, duet_pin(duet, data, LARGE));
    uint64_t registered = fake_cuda_registered();
    g_assert_cmpuint(registered, >=, LARGE);
    must(duet, duet_pin(duet, data + 10, 1000));
    g_assert_cmpuint(fake_cuda_registered(), ==, registered);
    g_assert_cmpint(duet_unpin(duet, data + 10), ==, DUET_EINVAL);
    must(duet, duet_unpin(duet, data));
    g_assert_cmpuint(fake_cuda_registered(), ==, 0);
    must(duet, duet_pin(duet, data, LARGE));
    end(duet, DUET_OK);
    config = start(2, 1);
    config.pin_bytes = LARGE / 2;
    duet = open_with(&config);
    g_assert_cmpint(duet_pin(duet, data, LARGE), ==, DUET_ENOMEM);
    must(duet, duet_pin(duet, data, LARGE / 4));
    end(duet, DUET_OK);
    config = start(2, 1);
    config.no_pin = true;
    duet = open_with(&config);
    g_assert_cmpint(duet_pin(duet, data, LARGE), ==, DUET_ENOMEM);
    end(duet, DUET_OK);
    g_free(data);
}

/*
 * Page-locking of a handle of its own pages, from its first copy until it is unregistered, or the
 * run ends.
 */
static void test_handles(void)
{
    for (unsigned round = 0; round < 2; round++) {
        struct duet_config config = start(2, 0);
        struct duet_runtime *duet = open_with(&config);
        uint64_t *data = g_malloc0(LARGE);
        struct duet_handle *handle = NULL;
        must(duet, duet_register_vector(duet, data, LARGE / sizeof *data, sizeof *data, &handle));
        g_assert_cmpuint(fake_cuda_registered(), ==, 0);
        struct duet_codelet *kernel = codelet(duet, increment, NULL);
        for (unsigned i = 0; i < 5; i++)
            submit(duet, kernel, handle);
        must(duet, duet_wait(duet));
        g_assert_cmpuint(fake_cuda_registered(), >=, LARGE);
        if (round) {
            must(duet, duet_unregister(duet, handle));
            g_assert_cmpuint(fake_cuda_registered(), ==, 0);
            for (size_t i = 0; i < LARGE / sizeof *data; i++)
                g_assert_cmpuint(data[i], ==, 5);
        }
        end(duet, DUET_OK);
        g_free(data);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Devices that break                                                                           */

/* Twenty tasks on each of a few vectors, with memory for two of them on each of two GPUs. */
static int count_up(struct duet_runtime *duet, bool *moved)
{
    struct duet_codelet *kernel = codelet(duet, increment, increment_on_cpu);
    struct duet_handle *handles[HANDLES];
    uint64_t words[HANDLES][WORDS] = {{0}};
    for (unsigned h = 0; h < HANDLES; h++)
        must(duet, duet_register_vector(duet, words[h], WORDS, sizeof words[h][0], &handles[h]));
    for (unsigned i = 0; i < 20 * HANDLES; i++)
        submit(duet, kernel, handles[i % HANDLES]);
    int error = duet_wait(duet);
    for (unsigned h = 0; h < HANDLES; h++) {
        int status = duet_unregister(duet, handles[h]);
        error = error ? error : status;
    }
    for (unsigned i = 0; i < HANDLES * WORDS && !error; i++)
        g_assert_cmpuint(words[i / WORDS][i % WORDS], ==, 20);
    struct duet_stats stats;
    duet_stats(duet, &stats);
    *moved = stats.bytes_to_device > 0;
    return error;
}

/* At one of its operations, from the first after its opening on: right results, or lost data. */
static void test_broken(void)
{
    unsigned good = 0, lost = 0;
    for (unsigned round = 0; round < 20; round++) {
        bool moved = false;
        unsigned at = 1 + round * 15 / 2;
        struct duet_config config = start(2, (int)(round % 2));
        config.gpu_memory_bytes = 2 * WORDS * sizeof(uint64_t);
        config.seed = at;
        struct duet_runtime *duet = open_with(&config);
        fake_cuda_break(round / 2 % 2, cudaErrorECCUncorrectable, at);
        int error = count_up(duet, &moved);
        g_assert_true(!error || error == DUET_ELOST);
        good += !error;
        lost += error != 0;
        end(duet, error);
    }
    g_assert_true(good && lost);
}

/*
 * Page-locked memory can be given back and page-locked again after the first GPU is lost, which is
 * current on this thread although nobody has chosen it, and stays so.
 */
static void test_pin_after_loss(void)
{
    struct duet_config config = start(2, 1);
    struct duet_runtime *duet = open_with(&config);
    uint64_t *data = g_malloc0(LARGE);
    bool moved = false;
    int current = -1;
    must(duet, duet_pin(duet, data, LARGE));
    g_assert_cmpuint(fake_cuda_registered(), >=, LARGE);
    fake_cuda_break(0, cudaErrorECCUncorrectable, 0); /* unseen by duet at first */
    must(duet, duet_unpin(duet, data));
    must(duet, duet_pin(duet, data, LARGE));
    int error = count_up(duet, &moved);
    for (unsigned i = 0; i < 2; i++) {
        g_assert_cmpint(duet_unpin(duet, data), ==, DUET_OK);
        g_assert_cmpuint(fake_cuda_registered(), ==, 0);
        g_assert_cmpint(duet_pin(duet, data, LARGE), ==, DUET_OK);
    }
    g_assert_cmpint(cudaGetDevice(&current), ==, cudaSuccess);
    g_assert_cmpint(current, ==, 0);
    end(duet, error); /* which ends the page-locking */
    g_free(data);
}

static void never_end(void *argument)
{
    for (;;)
        (void)pause();
}

static _Atomic(bool) hangs;

static int hang(const struct duet_call *call)
{
    hangs = true;
    return fake_cuda_launch(call->stream, never_end, NULL, 0) ? DUET_ETASK : DUET_OK;
}

/*
 * A kernel that never ends: once the run is cancelled, its GPU is given up after the watchdog's
 * time, nothing waits for it any more, and the runtime closes. In a process of its own, which takes
 * the kernel with it.
 */
static void test_hung(void)
{
    int status = -1;
    pid_t child = fork();
    if (!child) {
        struct duet_config config = start(1, 0);
        config.watchdog_s = 0.1;
        struct duet_runtime *duet = open_with(&config);
        void *data = g_malloc(LARGE);
        g_assert_cmpint(duet_pin(duet, data, LARGE), ==, DUET_OK);
        submit(duet, codelet(duet, hang, NULL), NULL);
        while (!hangs)
            (void)sched_yield();
        duet_cancel(duet);
        int error = duet_wait(duet);
        g_assert_cmpint(duet_unpin(duet, data), ==, DUET_OK);
        int closed = duet_close(duet);
        _exit(error && closed ? 0 : 1);
    }
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_cmpint(status, ==, 0);
}

/*
 * A thread that looks again and again, since it has no core to itself, sleeps shortly in between.
 */
static int look_at_slack(const struct duet_call *call)
{
    int slack_ns = prctl(PR_GET_TIMERSLACK);
    return slack_ns <= 1000 ? launch(call, 0)
                            : duet_fail(call->message, DUET_ETASK, "slack of %d ns", slack_ns);
}

static void test_slack(void)
{
    struct duet_config config = start(1, (int)duet__real_cores());
    struct duet_runtime *duet = open_with(&config);
    submit(duet, codelet(duet, look_at_slack, NULL), NULL);
    must(duet, duet_wait(duet));
    end(duet, DUET_OK);
}

/* The first GPU does not even say what it is, as one that another process has to itself. */
static void test_left_out(void)
{
    for (int gpus = -1; gpus <= 1; gpus += 2) {
        bool moved = false;
        struct duet_config config = start(2, 0);
        config.gpus = gpus;
        fake_cuda_fail("cudaMemGetInfo", 1, cudaErrorDevicesUnavailable);
        struct duet_runtime *duet = open_with(&config);
        g_assert_cmpuint(fake_cuda_used(0), ==, 0);
        g_assert_cmpuint(fake_cuda_used(1), >, 0);
        g_assert_cmpint(count_up(duet, &moved), ==, DUET_OK);
        g_assert_true(moved);
        end(duet, DUET_OK);
    }
}

/* A kernel breaks the device: its task fails, and the message gives the error. */
static void test_broken_by_kernel(void)
{
    struct duet_config config = start(1, 0);
    struct duet_runtime *duet = open_with(&config);
    bool moved = false;
    fake_cuda_break(0, cudaErrorIllegalAddress, 40);
    int error = count_up(duet, &moved);
    g_assert_true(moved && (error == DUET_ETASK || error == DUET_ELOST));
    if (error == DUET_ETASK)
        TOLD(duet, "cudaErrorIllegalAddress");
    end(duet, error);
}

TEST_MAIN(test_kernels_that_fail, test_copies_that_fail, test_pin, test_handles,
          test_pin_after_loss, test_hung, test_slack, test_left_out, test_broken,
          test_broken_by_kernel)
