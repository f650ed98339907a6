/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the CUDA backend: what there is, kernels and their statuses, and what a task costs. */
#include "backends/common.h"
#include "backends/cuda/testing.h"

enum { MIB = 1 << 20 };

/* ------------------------------------------------------------------------------------------- */
/* Finding devices */

static void test_absent(void)
{
    struct fake_cuda_config config = {.no_driver = true};
    struct duet_message why = {""};
    fake_cuda_reset(&config);
    g_assert_cmpuint(duet__backend_cuda.count(&why), ==, 0);
    g_assert_nonnull(strstr(why.text, "driver"));
    config.no_driver = false;
    fake_cuda_reset(&config);
    g_assert_cmpuint(duet__backend_cuda.count(&why), ==, 0);
    g_assert_nonnull(strstr(why.text, "CUDA_VISIBLE_DEVICES"));
    config.devices = 3;
    fake_cuda_reset(&config);
    fake_cuda_fail("cudaGetDeviceCount", 1, cudaErrorInsufficientDriver);
    g_assert_cmpuint(duet__backend_cuda.count(&why), ==, 0);
    g_assert_nonnull(strstr(why.text, "too old"));
    fake_cuda_fail("cudaGetDeviceCount", 1, cudaErrorSystemNotReady);
    g_assert_cmpuint(duet__backend_cuda.count(&why), ==, 0);
    g_assert_nonnull(strstr(why.text, "fabricmanager"));
    fake_cuda_fail("cudaGetDeviceCount", 1, cudaErrorUnknown);
    g_assert_cmpuint(duet__backend_cuda.count(&why), ==, 0);
    g_assert_nonnull(strstr(why.text, "cudaGetDeviceCount"));
    g_assert_cmpuint(duet__backend_cuda.count(NULL), ==, 3);
}

static void test_describe(void)
{
    struct fake_cuda_config config = {.devices = 2, .memory_bytes = 64 * MIB};
    struct backend_info info;
    int current = -1;
    fake_cuda_reset(&config);
    g_assert_cmpint(cudaSetDevice(0), ==, cudaSuccess);
    WORKS(duet__backend_cuda.describe(1, &info, hear()));
    g_assert_cmpuint(info.memory_bytes, ==, 56 * MIB); /* without a reserve */
    g_assert_cmpuint(info.total_bytes, ==, 64 * MIB);
    g_assert_cmpuint(strlen(info.pci), ==, strlen("0000:3b:00.0"));
    for (const char *c = info.pci; *c; c++)
        g_assert_false(g_ascii_isupper(*c));
    for (const char *c = info.arch; *c; c++)
        g_assert_true(g_ascii_islower(*c) || g_ascii_isdigit(*c) || *c == '-');
    g_assert_false(strstr(info.arch, "nvidia"));
    g_assert_nonnull(strstr(info.description, "compute "));
    g_assert_nonnull(strstr(info.description, "multiprocessors"));
    /* what was current on this thread still is */
    g_assert_cmpint(cudaGetDevice(&current), ==, cudaSuccess);
    g_assert_cmpint(current, ==, 0);
    FAILS(duet__backend_cuda.describe(2, &info, hear()), DUET_EINVAL, "GPU 2");
    fake_cuda_fail("cudaMemGetInfo", 1, cudaErrorUnknown);
    FAILS(duet__backend_cuda.describe(0, &info, hear()), DUET_EIO, "cudaMemGetInfo");
    g_assert_cmpint(cudaGetLastError(), ==, cudaSuccess);
    fake_cuda_fail("cudaDeviceGetPCIBusId", 1, cudaErrorNotSupported);
    WORKS(duet__backend_cuda.describe(0, &info, hear()));
    g_assert_cmpstr(info.pci, ==, "");
}

static void test_reserve(void)
{
    const uint64_t gib = UINT64_C(1) << 30;
    struct fake_cuda_config config = {.devices = 1, .memory_bytes = 140 * gib};
    struct backend_info info;
    fake_cuda_reset(&config);
    WORKS(duet__backend_cuda.describe(0, &info, hear()));
    g_assert_cmpuint(info.memory_bytes, ==, 139 * gib);
}

/* A GPU for which this build has no code. */
static void test_old(void)
{
    struct fake_cuda_config config = {.devices = 2, .compute = 37};
    struct backend_info info;
    fake_cuda_reset(&config);
    FAILS(duet__backend_cuda.describe(0, &info, hear()), DUET_EABSENT,
          "GPU 0: compute capability 3.7: this duet was built");
    g_assert_cmpuint(fake_cuda_calls("cudaSetDevice"), ==, 0); /* makes no context */
    WORKS(duet__backend_cuda.describe(1, &info, hear()));
    config.compute = 75;
    fake_cuda_reset(&config);
    WORKS(duet__backend_cuda.describe(0, &info, hear()));
    g_assert_nonnull(strstr(info.description, "compute 7.5"));
}

static void test_arch(void)
{
    static const char *const names[][2] = {
        {"NVIDIA H200", "h200"},
        {"Tesla V100-SXM2-32GB", "v100-sxm2-32gb"},
        {"NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"},
        {"NVIDIA GeForce RTX 4090", "geforce-rtx-4090"},
        {"NVIDIA Tesla T4 (x) ", "t4-x"},
        {"NVIDIA ", "gpu"},
        {"a name that is longer than names of architectures are",
         "a-name-that-is-longer-than-name"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        char arch[DUET_NAME_MAX];
        duet__arch_name(arch, names[i][0]);
        g_assert_cmpstr(arch, ==, names[i][1]);
    }
}

static void expect_open(struct user *user, struct backend_config config, int error,
                        const char *text)
{
    struct backend_device *device = NULL;
    g_assert_cmpint(duet__backend_cuda.open(&device, user->shared, &config, hear()), ==, error);
    g_assert_null(device);
    SAYS(text);
    g_assert_cmpuint(fake_cuda_leaks(true), ==, 0);
}

static void test_open(void)
{
    struct fake_cuda_config config = {.devices = 1, .memory_bytes = 64 * MIB};
    struct user user;
    void *shared = NULL;
    user_begin(&user, &config, 0);
    expect_open(&user, user_config(0, 65 * MIB), DUET_ENOMEM, "GPU 0 (");
    expect_open(&user, user_config(0, 65 * MIB), DUET_ENOMEM,
                "0.06 GiB are wanted while 0.06 of 0.06 GiB are free: cudaMalloc: out of memory");
    expect_open(&user, user_config(0, 0), DUET_EINVAL, "size");
    expect_open(&user, user_config(1, MIB), DUET_EABSENT, "GPU 1: cudaSetDevice: invalid device");
    expect_open(&user, user_config(UINT32_MAX, MIB), DUET_EABSENT, "GPU 4294967295");
    struct backend_config many = user_config(0, MIB);
    many.kernel_streams = KERNEL_STREAMS + 1;
    expect_open(&user, many, DUET_EINVAL, "at once");
    fake_cuda_fail("cudaStreamCreateWithFlags", 2, cudaErrorNotSupported);
    expect_open(&user, user_config(0, MIB), DUET_EIO, "cudaStreamCreateWithFlags");
    user_end(&user);

    struct backend_setup setup = {.now = NULL};
    g_assert_cmpint(duet__backend_cuda.attach(&shared, &setup, hear()), ==, DUET_EINVAL);
    setup = (struct backend_setup){.now = testing_now, .scale = 1};
    g_assert_cmpint(duet__backend_cuda.attach(&shared, &setup, hear()), ==, DUET_EINVAL);
    duet__backend_cuda.detach(NULL);
    duet__backend_cuda.close(NULL);
}

/* Both ways, whichever is opened first; not without the hardware. */
static void test_peers(void)
{
    for (unsigned none = 0; none < 2; none++) {
        const struct fake_cuda_config config = {.devices = 3, .no_peers = none};
        struct fake_cuda_stats stats;
        OWNED(user_end) struct user user;
        struct backend_device *devices[3];
        unsigned char host[1000], back[1000];
        user_begin(&user, &config, 0);
        for (unsigned i = 0; i < 3; i++)
            devices[i] = user_open(&user, user_config(2 - i, MIB));
        memset(host, 6, sizeof host);
        struct backend_copy copy = user_copy(devices[0], true, 0, host, sizeof host, 1, 1000);
        g_assert_cmpint(duet__backend_cuda.copy(devices[0], &copy), ==, DUET_OK);
        g_assert_cmpint(user_finish(devices[0]).status, ==, DUET_OK);
        for (unsigned i = 0; i < 3; i++) { /* all around */
            struct backend_device *from = devices[i], *to = devices[(i + 1) % 3];
            copy = user_copy(to, true, 0, backend_base(from), sizeof host, 1, 1000);
            copy.peer = from;
            g_assert_cmpint(duet__backend_cuda.copy(to, &copy), ==, DUET_OK);
            g_assert_cmpint(user_finish(to).status, ==, DUET_OK);
        }
        copy = user_copy(devices[0], false, 0, back, sizeof back, 1, 1000);
        g_assert_cmpint(duet__backend_cuda.copy(devices[0], &copy), ==, DUET_OK);
        g_assert_cmpint(user_finish(devices[0]).status, ==, DUET_OK);
        g_assert_cmpmem(back, sizeof back, host, sizeof host);
        fake_cuda_stats(&stats);
        g_assert_cmpuint(none ? stats.staged : stats.direct, ==, 3);
        g_assert_cmpuint(fake_cuda_calls("cudaDeviceEnablePeerAccess"), ==, none ? 0 : 6);
        for (unsigned i = 0; i < 3; i++)
            duet__backend_cuda.close(devices[i]);
        /* once more: it is enabled already */
        for (unsigned i = 0; i < 2; i++)
            devices[i] = user_open(&user, user_config(i, MIB));
        for (unsigned i = 0; i < 2; i++)
            duet__backend_cuda.close(devices[i]);
        g_assert_cmpuint(user.hearing.count, ==, 0);
    }
}

static void test_misplaced(void)
{
    const struct fake_cuda_config config = {.devices = 1};
    OWNED(user_end) struct user user;
    unsigned char host[64];
    user_begin(&user, &config, 0);
    struct backend_device *device = user_open(&user, user_config(0, 4096));
    struct backend_copy wrong[6];
    for (unsigned i = 0; i < G_N_ELEMENTS(wrong); i++)
        wrong[i] = user_copy(device, i % 2 == 0, 0, host, 8, 8, 8);
    wrong[0].destination = host;
    wrong[1].source = host;
    wrong[2].destination = (unsigned char *)wrong[2].destination + 4096 - 63;
    wrong[3].source_pitch = 4096;
    wrong[4].stream = BACKEND_KERNEL;
    wrong[5].peer = device;
    for (unsigned i = 0; i < G_N_ELEMENTS(wrong); i++)
        g_assert_cmpint(duet__backend_cuda.copy(device, &wrong[i]), ==, DUET_EINVAL);
    struct backend_kernel nothing = {.run = NULL};
    g_assert_cmpint(duet__backend_cuda.launch(device, &nothing), ==, DUET_EINVAL);
    /* nothing to copy is a copy like any other */
    struct backend_copy empty = user_copy(device, true, 0, host, 0, 0, 0);
    g_assert_cmpint(duet__backend_cuda.copy(device, &empty), ==, DUET_OK);
    g_assert_cmpint(user_finish(device).status, ==, DUET_OK);
}

/* ------------------------------------------------------------------------------------------- */
/* Kernels                                                                                      */

/* The work of a test's kernel. */
struct job {
    int late, now;         /* status words: what its stream writes, what its function returns */
    cudaError_t behind;    /* what it leaves pending */
    const char *text;      /* said in call->message */
    _Atomic(bool) *gate;   /* waits for it on the device */
    _Atomic(unsigned) *in; /* counts those that are running */
};

struct passed {
    struct job job;
    int *status;
};

static void run_job(void *argument)
{
    const struct passed *passed = argument;
    if (passed->job.in)
        (*passed->job.in)++;
    while (passed->job.gate && !*passed->job.gate)
        (void)sched_yield();
    *passed->status = passed->job.late;
}

static int job_kernel(const struct duet_call *call)
{
    struct passed passed = {.job = *(const struct job *)call->args, .status = call->status};
    g_assert_nonnull(call->stream);
    g_assert_cmpint(*call->status, ==, 0);
    if (passed.job.text)
        (void)duet_fail(call->message, DUET_ETASK, "%s", passed.job.text);
    if (passed.job.behind) {
        fake_cuda_fail("cudaGetDevice", 1, passed.job.behind);
        (void)cudaGetDevice(&passed.job.now);
        return DUET_OK;
    }
    g_assert_cmpint(fake_cuda_launch(call->stream, run_job, &passed, sizeof passed), ==, 0);
    return passed.job.now;
}

static void launch_job(struct backend_device *device, struct job *job, struct duet_call *call)
{
    *call = (struct duet_call){.args = job, .message = call->message};
    struct backend_kernel kernel = {.tag = job, .run = job_kernel, .call = call};
    g_assert_cmpint(duet__backend_cuda.launch(device, &kernel), ==, DUET_OK);
}

static void test_statuses(void)
{
    static const struct {
        struct job job;
        int status;
        const char *why;
    } cases[] = {
        {{.late = 0}, DUET_OK, NULL},
        {{.late = 3}, DUET_ETASK, "info = 3"},
        {{.late = DUET_ENOMEM}, DUET_ENOMEM, NULL},
        {{.late = -77}, DUET_ETASK, "status = -77"},
        {{.now = DUET_EINVAL}, DUET_EINVAL, NULL},
        {{.now = DUET_EINVAL, .late = 3}, DUET_EINVAL, NULL},
        {{.now = DUET_ETASK, .text = "cublasDgemm: no"}, DUET_ETASK, "cublasDgemm: no"},
        {{.text = "is not said"}, DUET_OK, NULL},
        {{.behind = cudaErrorInvalidConfiguration}, DUET_ETASK, "after the kernel's function"},
        {{.behind = cudaErrorMemoryAllocation}, DUET_ENOMEM, "out of memory"},
        {{.behind = cudaErrorNotReady}, DUET_OK, NULL},
        {{.late = 0}, DUET_OK, NULL},
    };
    enum { CASES = G_N_ELEMENTS(cases) };
    const struct fake_cuda_config config = {.devices = 1};
    OWNED(user_end) struct user user;
    struct duet_call calls[CASES];
    struct duet_message messages[CASES];
    struct job jobs[CASES];
    user_begin(&user, &config, 0);
    struct backend_device *device = user_open(&user, user_config(0, MIB));
    for (unsigned i = 0; i < CASES; i++) {
        jobs[i] = cases[i].job;
        *messages[i].text = '\0';
        calls[i].message = &messages[i];
        launch_job(device, &jobs[i], &calls[i]);
    }
    for (unsigned i = 0; i < CASES; i++) {
        struct backend_completion done = user_finish(device);
        g_assert_true(done.tag == &jobs[i]);
        g_assert_cmpint(done.status, ==, cases[i].status);
        g_assert_true(!done.why == !cases[i].why);
        if (cases[i].why)
            g_assert_nonnull(strstr(done.why, cases[i].why));
    }
}

/* More reasons than one poll can write: all come, by and by. */
static void test_many_reasons(void)
{
    enum { MANY = 3 * TEXTS + 1 };
    const struct fake_cuda_config config = {.devices = 1};
    OWNED(user_end) struct user user;
    struct duet_call calls[MANY];
    struct job jobs[MANY];
    struct backend_completion done[MANY];
    user_begin(&user, &config, 0);
    struct backend_device *device = user_open(&user, user_config(0, MIB));
    for (unsigned i = 0; i < MANY; i++) {
        jobs[i] = (struct job){.late = 1 + (int)i};
        calls[i].message = NULL;
        launch_job(device, &jobs[i], &calls[i]);
    }
    for (unsigned got = 0; got < MANY;) {
        size_t now = duet__backend_cuda.poll(device, done, MANY);
        for (size_t i = 0; i < now; i++, got++) {
            char text[32];
            g_snprintf(text, sizeof text, "info = %u", got + 1);
            g_assert_cmpstr(done[i].why, ==, text);
        }
    }
}

/* Loads something first, which takes time and no processor. */
static int prepare_kernel(const struct duet_call *call)
{
    const struct timespec nap = {.tv_nsec = (long)(1.2e9 * DUET__PREPARING_S)};
    (void)nanosleep(&nap, NULL);
    *(double *)(uintptr_t)call->args = testing_now(NULL);
    struct passed passed = {.status = call->status};
    g_assert_cmpint(fake_cuda_launch(call->stream, run_job, &passed, sizeof passed), ==, 0);
    return DUET_OK;
}

/* Work that a function does before it enqueues its kernel is not counted as the kernel's time. */
static void test_preparing(void)
{
    const struct fake_cuda_config config = {.devices = 1};
    OWNED(user_end) struct user user;
    double prepared_s = 0;
    struct duet_call call = {.args = &prepared_s};
    struct backend_kernel kernel = {.tag = &call, .run = prepare_kernel, .call = &call};
    user_begin(&user, &config, 0);
    struct backend_device *device = user_open(&user, user_config(0, MIB));
    g_assert_cmpint(duet__backend_cuda.launch(device, &kernel), ==, DUET_OK);
    struct backend_completion done = user_finish(device);
    g_assert_cmpint(done.status, ==, DUET_OK);
    g_assert_cmpfloat(done.start_s, >=, prepared_s);
    g_assert_cmpfloat(done.end_s, >=, done.start_s);
}

/* Kernels run at once, one on each stream, and end in any order. */
static void test_streams(void)
{
    enum { STREAMS = 3, JOBS = 7 };
    const struct fake_cuda_config config = {.devices = 1};
    OWNED(user_end) struct user user;
    _Atomic(bool) gates[JOBS] = {false};
    _Atomic(unsigned) running = 0;
    struct job jobs[JOBS];
    struct duet_call calls[JOBS];
    user_begin(&user, &config, 0);
    struct backend_config wanted = user_config(0, MIB);
    wanted.kernel_streams = STREAMS;
    struct backend_device *device = user_open(&user, wanted);
    for (unsigned i = 0; i < JOBS; i++) {
        jobs[i] = (struct job){.gate = &gates[i], .in = &running};
        calls[i].message = NULL;
        launch_job(device, &jobs[i], &calls[i]);
    }
    while (running < STREAMS)
        (void)sched_yield();
    for (unsigned i = 0; i < 1000; i++)
        g_assert_cmpuint(running, ==, STREAMS);
    static const unsigned order[JOBS] = {2, 1, 0, 4, 5, 3, 6};
    for (unsigned i = 0; i < JOBS; i++) {
        gates[order[i]] = true;
        struct backend_completion done = user_finish(device);
        g_assert_true(done.tag == &jobs[order[i]]);
    }
}

/* The calls of CUDA that a task costs: on its path nothing is made, registered or waited for. */
static void test_calls(void)
{
    enum { TASKS = 500 };
    static const struct {
        const char *name;
        unsigned each; /* task: a kernel, a copy in, a copy out; or at most that many */
    } expected[] = {
        {"cudaEventRecord", 6},          {"cudaMemcpyAsync", 2},      {"cudaEventElapsedTime", 6},
        {"cudaEventCreateWithFlags", 0}, {"cudaHostRegister", 0},     {"cudaHostAlloc", 0},
        {"cudaStreamSynchronize", 0},    {"cudaSetDevice", 0},        {"cudaMalloc", 0},
        {"cudaStreamQuery", 0},          {"cudaEventSynchronize", 0}, {"cudaMemcpy2DAsync", 0},
    };
    const struct fake_cuda_config config = {.devices = 1};
    struct user user;
    uint64_t before[G_N_ELEMENTS(expected)];
    _Atomic(void *) mark = NULL;
    struct job job = {.late = 0};
    struct duet_call call = {.message = NULL};
    unsigned char *host = user_pages(MIB);
    user_begin(&user, &config, 16 * MIB);
    struct backend_device *device = user_open(&user, user_config(0, MIB));
    struct backend_copy in = user_copy(device, true, 0, host, MIB, 1, MIB), out = in;
    out = user_copy(device, false, 0, host, MIB, 1, MIB);
    in.mark = out.mark = &mark;
    for (unsigned i = 0; i < TASKS; i++) {
        struct backend_completion done[3];
        for (unsigned k = 0; i == 1 && k < G_N_ELEMENTS(expected); k++)
            before[k] = fake_cuda_calls(expected[k].name);
        g_assert_cmpint(duet__backend_cuda.copy(device, &in), ==, DUET_OK);
        launch_job(device, &job, &call);
        user_collect(device, done, 2);
        g_assert_cmpint(duet__backend_cuda.copy(device, &out), ==, DUET_OK);
        user_collect(device, done + 2, 1);
    }
    for (unsigned k = 0; k < G_N_ELEMENTS(expected); k++) {
        uint64_t calls = fake_cuda_calls(expected[k].name) - before[k];
        if (calls != (uint64_t)(TASKS - 1) * expected[k].each)
            g_error("%s: %g calls a task", expected[k].name, (double)calls / (TASKS - 1));
    }
    duet__backend_cuda.forget(user.shared, &mark);
    duet__backend_cuda.close(device);
    user_end(&user);
    free(host);
}

TEST_MAIN(test_absent, test_describe, test_reserve, test_old, test_arch, test_open, test_peers,
          test_misplaced, test_statuses, test_many_reasons, test_preparing, test_streams,
          test_calls)
