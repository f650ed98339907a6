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
#include <duet/graph.h>
#include <duet/random.h>
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
    g_autofree uint64_t *data = g_malloc0(LARGE);
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
        g_autofree uint64_t *data = g_malloc0(LARGE);
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
    g_autofree uint64_t *data = g_malloc0(LARGE);
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

/* ------------------------------------------------------------------------------------------- */
/* Graphs that are launched as CUDA graphs                                                      */

enum { VECTORS = 4, TASKS_MAX = 6 };

/* A task: to := 3 to + from + amount. */
struct mixing {
    unsigned to, from;
    uint64_t amount;
    int status; /* left from the 100th launch of a program on */
};

struct mixture {
    uint64_t *to;
    const uint64_t *from;
    struct mixing mixing;
    int *status;
};

static _Atomic(unsigned) calls;    /* of the function below */
static _Atomic(unsigned) launches; /* of the kernel */
static cudaError_t (*more)(
    cudaStream_t stream); /* what the function calls as well; NULL: nothing */

static void run_mix(void *argument)
{
    const struct mixture *m = argument;
    for (size_t i = 0; i < WORDS; i++)
        m->to[i] = 3 * m->to[i] + m->from[i] + m->mixing.amount;
    if (++launches > 100)
        *m->status = m->mixing.status;
}

static int mix(const struct duet_call *call)
{
    struct mixture m = {.to = call->buffers[0].data,
                        .from = call->buffers[1].data,
                        .status = call->status};
    memcpy(&m.mixing, call->args, sizeof m.mixing);
    calls++;
    if (!call->stream) {
        run_mix(&m);
        return DUET_OK;
    }
    m.to = fake_cuda_memory(0, m.to, sizeof(uint64_t[WORDS]));
    m.from = fake_cuda_memory(0, m.from, sizeof(uint64_t[WORDS]));
    int error = more ? (int)more(call->stream) : 0;
    if (!error)
        error = fake_cuda_launch(call->stream, run_mix, &m, sizeof m);
    return error ? duet_fail(call->message, DUET_ETASK, "mix: %s",
                             cudaGetErrorName((cudaError_t)error))
                 : DUET_OK;
}

/* A program, and what it is to compute. */
struct program {
    struct duet_runtime *duet;
    struct duet_codelet *kernel;
    struct duet_handle *handles[VECTORS];
    uint64_t words[VECTORS][WORDS], expected[VECTORS][WORDS];
};

static void program_open(struct program *p, const struct duet_config *config, bool capturable,
                         duet_kernel_fn on_cpu)
{
    const struct duet_implementation both[] = {{"cuda", mix}, {"cpu", on_cpu}};
    const struct duet_codelet_desc desc = {.name = "mix",
                                           .implementations = both,
                                           .implementation_count = on_cpu ? 2 : 1,
                                           .capturable = capturable};
    *p = (struct program){.duet = open_with(config)};
    calls = 0;
    launches = 0;
    must(p->duet, duet_register_codelet(p->duet, &desc, &p->kernel));
    for (unsigned v = 0; v < VECTORS; v++)
        must(p->duet,
             duet_register_vector(p->duet, p->words[v], WORDS, sizeof(uint64_t), &p->handles[v]));
}

static void program_close(struct program *p, int error)
{
    for (unsigned v = 0; v < VECTORS && !error; v++) {
        must(p->duet, duet_unregister(p->duet, p->handles[v]));
        g_assert_cmpmem(p->words[v], sizeof p->words[v], p->expected[v], sizeof p->expected[v]);
    }
    end(p->duet, error);
    g_assert_cmpuint(fake_cuda_leaks(true), ==, 0);
}

static void expect(struct program *p, const struct mixing *tasks, unsigned count)
{
    for (const struct mixing *task = tasks; task < tasks + count; task++)
        for (unsigned i = 0; i < WORDS; i++)
            p->expected[task->to][i] =
                3 * p->expected[task->to][i] + p->expected[task->from][i] + task->amount;
}

/* Records and runs tasks. */
static struct duet_graph *record(struct program *p, const struct mixing *tasks, unsigned count)
{
    struct duet_graph *graph = NULL;
    must(p->duet, duet_graph_begin(p->duet));
    for (unsigned i = 0; i < count; i++) {
        const struct duet_access accesses[] = {{p->handles[tasks[i].to], DUET_RW},
                                               {p->handles[tasks[i].from], DUET_R}};
        const struct duet_task_desc desc = {.codelet = p->kernel,
                                            .accesses = accesses,
                                            .access_count = 2,
                                            .args = &tasks[i],
                                            .args_bytes = sizeof tasks[i]};
        must(p->duet, duet_submit(p->duet, &desc));
    }
    must(p->duet, duet_graph_end(p->duet, &graph));
    expect(p, tasks, count);
    return graph;
}

/* Submits a graph of these tasks. */
static void again(struct program *p, struct duet_graph *graph, const struct mixing *tasks,
                  unsigned count)
{
    must(p->duet, duet_graph_submit(p->duet, graph));
    expect(p, tasks, count);
}

/* The calls of CUDA, and of the kernels' function, that graphs have needed. */
static void made(unsigned captures, unsigned instances, unsigned updates, unsigned graphs,
                 unsigned functions)
{
    g_assert_cmpuint(fake_cuda_calls("cudaStreamBeginCapture"), ==, captures);
    g_assert_cmpuint(fake_cuda_calls("cudaGraphInstantiate"), ==, instances);
    g_assert_cmpuint(fake_cuda_calls("cudaGraphExecUpdate"), ==, updates);
    g_assert_cmpuint(fake_cuda_calls("cudaGraphLaunch"), ==, graphs);
    g_assert_cmpuint(calls, ==, functions);
}

/* One by one, then captured, then launched; again captured where something has changed. */
static void test_graph(void)
{
    struct mixing tasks[] = {{0, 1, 5, 0}, {1, 0, 7, 0}, {2, 3, 1, 0}};
    struct duet_config config = start(1, 0);
    struct program p;
    program_open(&p, &config, true, NULL);
    struct duet_graph *graph = record(&p, tasks, 3);
    for (unsigned i = 0; i < 3; i++) {
        again(&p, graph, tasks, 3);
        must(p.duet, duet_wait(p.duet));
    }
    made(1, 1, 0, 2, 9);
    g_assert_cmpuint(duet_tasks_done(p.duet), ==, 3 + 3);
    tasks[1].amount = 9;
    must(p.duet, duet_graph_set_value(graph, 1, 0, &tasks[1], sizeof tasks[1]));
    again(&p, graph, tasks, 3);
    must(p.duet, duet_wait(p.duet));
    made(2, 1, 1, 3, 12);
    must(p.duet, duet_graph_set_handle(graph, p.handles[3], p.handles[0]));
    tasks[2].from = 0;
    again(&p, graph, tasks, 3);
    must(p.duet, duet_wait(p.duet));
    made(3, 1, 2, 4, 15);
    again(&p, graph, tasks, 3);
    struct duet_graph *other = record(&p, tasks + 1, 2); /* in turn with the first one */
    for (unsigned i = 0; i < 3; i++) {
        again(&p, other, tasks + 1, 2);
        again(&p, graph, tasks, 3);
    }
    must(p.duet, duet_wait(p.duet));
    made(4, 2, 2, 5 + 5, 15 + 6);
    duet_graph_free(graph);
    duet_graph_free(record(&p, tasks, 1)); /* of one task: as ever */
    graph = record(&p, tasks, 2);
    again(&p, graph, tasks, 2); /* frees what the first one had */
    must(p.duet, duet_wait(p.duet));
    g_assert_cmpuint(fake_cuda_calls("cudaGraphExecDestroy"), ==, 1);
    duet_graph_free(other);
    program_close(&p, DUET_OK); /* with a graph alive */
    duet_graph_free(graph);
}

/* Tasks stay apart where another worker could run one, or kernels could run beside each other. */
static void test_graph_of_tasks(void)
{
    enum { STREAMS, SWITCHED_OFF, MEMORY, FUNCTIONS, CPU, GRAPH };
    const struct mixing tasks[] = {{0, 1, 5, 0}, {2, 3, 7, 0}};
    for (unsigned i = STREAMS; i <= GRAPH; i++) {
        struct duet_config config = start(1, 1);
        struct program p;
        config.gpu_streams = i == STREAMS ? 2 : 0;
        config.no_cuda_graphs = i == SWITCHED_OFF;
        config.gpu_memory_bytes = i == MEMORY ? 3 * sizeof(uint64_t[WORDS]) : 0;
        program_open(&p, &config, i != FUNCTIONS, i == CPU ? mix : NULL);
        struct duet_graph *graph = record(&p, tasks, 2);
        for (unsigned k = 0; k < 3; k++)
            again(&p, graph, tasks, 2);
        must(p.duet, duet_wait(p.duet));
        made(i == GRAPH, i == GRAPH, 0, i == GRAPH ? 2 : 0, i == GRAPH ? 6 : 8);
        duet_graph_free(graph);
        program_close(&p, DUET_OK);
    }
}

static cudaError_t allocate(cudaStream_t stream)
{
    void *memory = NULL;
    cudaError_t error = cudaMalloc(&memory, 1);
    return error ? error : cudaFree(memory);
}

static cudaError_t look(cudaStream_t stream)
{
    (void)cudaStreamQuery(stream); /* whatever it says */
    return cudaSuccess;
}

/* Kernels that cannot be captured, or fail to become a CUDA graph, are launched one by one. */
static void test_graph_refused(void)
{
    static const struct {
        cudaError_t (*more)(cudaStream_t stream);
        const char *fails;
        unsigned captures, launches;
    } cases[] = {
        {allocate, NULL, 1, 0},
        {look, NULL, 1, 0},
        {NULL, "cudaStreamBeginCapture", 1, 0},
        {NULL, "cudaStreamEndCapture", 1, 0},
        {NULL, "cudaGraphInstantiate", 1, 0},
        {NULL, "cudaGraphExecUpdate", 2, 4}, /* made anew */
        {NULL, "cudaGraphLaunch", 1, 1},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct mixing tasks[] = {{0, 1, 5, 0}, {2, 3, 7, 0}};
        struct duet_config config = start(1, 0);
        struct program p;
        config.quiet = true;
        program_open(&p, &config, true, NULL);
        more = cases[i].more;
        if (cases[i].fails)
            fake_cuda_fail(cases[i].fails, 1, cudaErrorNotSupported);
        struct duet_graph *graph = record(&p, tasks, 2);
        for (unsigned k = 0; k < 5; k++) {
            again(&p, graph, tasks, 2);
            if (k != 2)
                continue;
            tasks[1].amount = 8;
            must(p.duet, duet_graph_set_value(graph, 1, 0, &tasks[1], sizeof tasks[1]));
        }
        must(p.duet, duet_wait(p.duet));
        g_assert_cmpuint(fake_cuda_calls("cudaStreamBeginCapture"), ==, cases[i].captures);
        g_assert_cmpuint(fake_cuda_calls("cudaGraphLaunch"), ==, cases[i].launches);
        more = NULL;
        duet_graph_free(graph);
        program_close(&p, DUET_OK);
    }
}

/* A kernel that fails when it runs, or whose function fails, is named. */
static void test_graph_fails(void)
{
    const struct mixing tasks[] = {{0, 1, 5, 0}, {2, 3, 7, 2}};
    for (unsigned at = 0; at < 3; at++) {
        struct duet_config config = start(1, 0);
        struct program p;
        program_open(&p, &config, true, NULL);
        struct duet_graph *graph = record(&p, tasks, 2);
        for (unsigned k = 0; k < at; k++)
            again(&p, graph, tasks, 2);
        must(p.duet, duet_wait(p.duet));
        launches = 100; /* the next ones leave a status */
        must(p.duet, duet_graph_submit(p.duet, graph));
        REFUSED(p.duet, duet_wait(p.duet), DUET_ETASK,
                "(graph of 2 tasks) failed on gpu0: mix (task 1 of the graph, from 0): info = 2");
        duet_graph_free(graph);
        program_close(&p, DUET_ETASK);
    }
}

static int nests(const struct duet_call *call)
{
    struct duet_handle *const *ends = call->args;
    if (ends)
        return duet_unregister_submit(call->runtime, *ends);
    submit(call->runtime, duet_codelet_find(call->runtime, "increment"), NULL);
    return DUET_OK;
}

/* A kernel that breaks its word and submits a task, or the end of data, fails the run: a launch as
   a CUDA graph would not submit it again. */
static void test_graph_nests(void)
{
    for (unsigned ends = 0; ends < 2; ends++) {
        struct duet_config config = start(1, 0);
        struct duet_runtime *duet = open_with(&config);
        const struct duet_implementation one = {"cuda", nests};
        const struct duet_codelet_desc desc = {.name = "nests",
                                               .implementations = &one,
                                               .implementation_count = 1,
                                               .capturable = true};
        struct duet_codelet *kernel = NULL;
        struct duet_graph *graph = NULL;
        struct duet_handle *data[2];
        (void)codelet(duet, increment, NULL);
        must(duet, duet_register_codelet(duet, &desc, &kernel));
        must(duet, duet_graph_begin(duet));
        for (unsigned i = 0; i < 2; i++) {
            must(duet, duet_register_temporary(duet, 1, 1, 8, &data[i]));
            const struct duet_task_desc task = {.codelet = kernel,
                                                .args = &data[i],
                                                .args_bytes = ends ? sizeof data[i] : 0};
            must(duet, duet_submit(duet, &task));
        }
        must(duet, duet_graph_end(duet, &graph));
        must(duet, duet_wait(duet));
        for (unsigned i = 0; i < 2 && ends; i++) {
            must(duet, duet_register_temporary(duet, 1, 1, 8, &data[i]));
            must(duet, duet_graph_set_value(graph, i, 0, &data[i], sizeof data[i]));
        }
        must(duet, duet_graph_submit(duet, graph));
        REFUSED(duet, duet_wait(duet), DUET_EINVAL,
                ends ? "has submitted the end of data" : "(increment)");
        duet_graph_free(graph);
        end(duet, DUET_EINVAL);
    }
}

static struct gate {
    _Atomic(bool) waiting, open;
} gate;

static void pass(void *argument)
{
    gate.waiting = true;
    while (!gate.open)
        (void)sched_yield();
}

static int close_gate(const struct duet_call *call)
{
    return fake_cuda_launch(call->stream, pass, NULL, 0);
}

/* A graph that is freed while it is in flight, twice and with two arguments; a run cancelled then.
 */
static void test_graph_freed(void)
{
    for (unsigned cancelled = 0; cancelled < 2; cancelled++) {
        struct mixing tasks[] = {{0, 1, 5, 0}, {2, 3, 7, 0}};
        struct duet_config config = start(1, 0);
        struct program p;
        program_open(&p, &config, true, NULL);
        struct duet_graph *graph = record(&p, tasks, 2);
        again(&p, graph, tasks, 2);
        must(p.duet, duet_wait(p.duet));
        gate.waiting = gate.open = false;
        submit(p.duet, codelet(p.duet, close_gate, NULL), NULL);
        while (!gate.waiting)
            (void)sched_yield();
        again(&p, graph, tasks, 2);
        tasks[0].amount = 6;
        must(p.duet, duet_graph_set_value(graph, 0, 0, &tasks[0], sizeof tasks[0]));
        again(&p, graph, tasks, 2);
        duet_graph_free(graph);
        if (cancelled)
            duet_cancel(p.duet);
        gate.open = true;
        int error = duet_wait(p.duet);
        g_assert_cmpint(error, ==, cancelled ? DUET_ECANCELED : DUET_OK);
        program_close(&p, error);
    }
}

/* Exchanges the first two vectors and the others in the tasks of a graph. */
static void exchange(struct program *p, struct duet_graph *graph, struct mixing *tasks,
                     unsigned first)
{
    const unsigned instead = tasks[0].to & ~1u;
    for (unsigned v = 0; v < 2; v++)
        must(p->duet,
             duet_graph_set_handle(graph, p->handles[first + v], p->handles[(instead ^ 2) + v]));
    for (unsigned i = 0; i < TASKS_MAX; i++) {
        tasks[i].to ^= 2;
        tasks[i].from ^= 2;
    }
}

/* Random graphs, changed and not, two of the same one in flight, in memory that is too small for
   all data, on devices that break now and then. */
static void test_graph_random(void)
{
    unsigned good = 0, launched = 0;
    for (unsigned round = 0; round < 40; round++) {
        uint64_t rng = duet_random_stream(round, 5);
        struct mixing tasks[2][TASKS_MAX];
        struct duet_graph *graphs[2];
        struct duet_config config = start(1, 0);
        struct program p;
        config.gpu_memory_bytes = (3 + round % 2) * sizeof(uint64_t[WORDS]);
        program_open(&p, &config, true, NULL);
        if (round % 4 == 3)
            fake_cuda_break(0, cudaErrorECCUncorrectable, 30 + 5 * round);
        for (unsigned g = 0; g < 2; g++) {
            for (unsigned i = 0; i < TASKS_MAX; i++) {
                unsigned to = 2 * g + i % 2;
                tasks[g][i] = (struct mixing){to, to ^ 1, duet_random_next(&rng), 0};
            }
            graphs[g] = record(&p, tasks[g], TASKS_MAX);
        }
        for (unsigned k = 0; k < 40; k++) {
            const unsigned g = duet_random_below(&rng, 2), i = duet_random_below(&rng, TASKS_MAX);
            tasks[g][i].amount += duet_random_below(&rng, 4) == 0;
            must(p.duet, duet_graph_set_value(graphs[g], i, 0, &tasks[g][i], sizeof tasks[g][i]));
            if (duet_random_below(&rng, 4) == 0)
                exchange(&p, graphs[g], tasks[g], 2 * g);
            again(&p, graphs[g], tasks[g], TASKS_MAX);
        }
        int error = duet_wait(p.duet);
        good += !error;
        launched += fake_cuda_calls("cudaGraphLaunch") > 0;
        duet_graph_free(graphs[0]);
        duet_graph_free(graphs[1]);
        program_close(&p, error);
    }
    g_assert_true(good >= 30 && launched >= 30);
}

/* A runtime that is closed while a graph waits for data that the application has. */
static void test_graph_never_run(void)
{
    const struct mixing tasks[] = {{0, 1, 5, 0}, {2, 3, 7, 0}};
    struct duet_config config = start(1, 0);
    struct program p;
    config.watchdog_s = 0.5; /* after which the close gives up */
    program_open(&p, &config, true, NULL);
    struct duet_graph *graph = record(&p, tasks, 2);
    must(p.duet, duet_acquire(p.duet, p.handles[0], DUET_RW));
    again(&p, graph, tasks, 2);
    program_close(&p, DUET_ESTUCK);
    duet_graph_free(graph);
}

TEST_MAIN(test_kernels_that_fail, test_copies_that_fail, test_pin, test_handles,
          test_pin_after_loss, test_hung, test_slack, test_left_out, test_broken,
          test_broken_by_kernel, test_graph, test_graph_of_tasks, test_graph_refused,
          test_graph_fails, test_graph_nests, test_graph_freed, test_graph_random,
          test_graph_never_run)
