/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole library on a GPU of this machine, or on the fake CUDA: random programs whose tasks are
 * kernels for GPUs, with little memory, against the same programs carried out in order by one
 * thread. See core/testing_random.h for the environment. Skipped where there is no GPU.
 */
#include <cuda_runtime_api.h>

#include "backends/cuda/testing_gpu.h"
#include "core/testing_random.h"

enum { FLIGHTS = 128, SKIPPED = 77 };

/* A task from its launch to its end, in page-locked memory. */
struct flight {
    _Atomic(bool) used;
    struct argument argument; /* of a step's task; else its step is NULL */
    struct addition bare;     /* what adds to none of the library's memory; else its run is NULL */
    struct testing_gpu_work work;
};

static struct flight *flights; /* FLIGHTS of them */

/* Waits until one is free: those in flight end without this thread. */
static struct flight *flight_take(const struct duet_call *call)
{
    for (unsigned i = 0;; i = (i + 1) % FLIGHTS) {
        struct flight *flight = &flights[i];
        if (!atomic_exchange(&flight->used, true)) {
            flight->argument.step = NULL;
            flight->bare.run = NULL;
            flight->work.status = call->status;
            flight->work.failure = DUET_OK;
            flight->work.add_words = 0;
            flight->work.count = call->buffer_count;
            memcpy(flight->work.buffers, call->buffers, call->buffer_count * sizeof *call->buffers);
            return flight;
        }
        if (i == FLIGHTS - 1)
            (void)sched_yield();
    }
}

/* For the fake: the work in the host's memory. */
static void on_host(struct testing_gpu_work *work)
{
    if (work->failure)
        *work->status = work->failure;
    else if (work->add_words)
        add_to(work->buffers[0].data, work->salt);
    else
        work->sum = compute(work->salt, work->buffers, work->modes, work->count);
}

/* In stream order, behind the kernel. */
static void CUDART_CB flight_end(void *argument)
{
    struct flight *flight = argument;
    const struct argument *task = &flight->argument;
    if (task->step && !flight->work.failure)
        task->step->results[task->number] = flight->work.sum;
    if (flight->bare.run)
        (void)atomic_fetch_add(&flight->bare.run->real_bare, mix(flight->bare.salt));
    atomic_store(&flight->used, false);
}

/* What is refused was not enqueued, or the flight is lost with its device. */
static int flight_enqueue(const struct duet_call *call, struct flight *flight)
{
    int error =
        flight->bare.run ? cudaSuccess : testing_gpu_compute(call->stream, &flight->work, on_host);
    if (!error)
        error = cudaLaunchHostFunc(call->stream, flight_end, flight);
    return error ? duet_fail(call->message, DUET_ETASK, "launch: error %d", error) : DUET_OK;
}

/* The one that is to fail does so at once, or when it runs. */
static int launch_work(const struct duet_call *call)
{
    struct argument argument;
    memcpy(&argument, call->args, sizeof argument);
    struct run *run = argument.step->run;
    g_assert_true(call->runtime == run->duet && call->stream && *call->status == 0);
    int error = count_kernel(run);
    if (error && run->setting.fail_kernel % 2)
        return duet_fail(call->message, error, "not launched");
    if (!error)
        begin(&argument);
    struct flight *flight = flight_take(call);
    flight->argument = argument;
    flight->work.failure = error;
    flight->work.salt = argument.salt;
    memcpy(flight->work.modes, modes_of(&argument), call->buffer_count);
    return flight_enqueue(call, flight);
}

static int launch_add(const struct duet_call *call)
{
    struct addition addition;
    memcpy(&addition, call->args, sizeof addition);
    int error = count_kernel(addition.run);
    if (error)
        return error;
    struct flight *flight = flight_take(call);
    flight->work.salt = addition.salt;
    flight->work.add_words = SUM_WORDS;
    if (!call->buffer_count)
        flight->bare = addition;
    error = flight_enqueue(call, flight);
    for (unsigned i = 0; !error && addition.deeper && i < 2; i++)
        submit_addition(addition.run, descendant(addition.salt, i), addition.deeper - 1);
    return error;
}

/* ------------------------------------------------------------------------------------------- */

static int gpus; /* of this machine */

static int open_real(struct run *run, struct duet_message *message)
{
    return duet_open(&run->duet, &run->setting.config, message);
}

static void draw(struct setting *setting)
{
    static const struct world world = {.arch = "cuda",
                                       .work = launch_work,
                                       .add = launch_add,
                                       .open = open_real,
                                       .stays = true};
    uint64_t rng = duet_random_stream(setting->config.seed, 79);
    struct duet_config *config = &setting->config;
    setting->world = &world;
    draw_machine(setting, &rng);
    config->cpus = (int)duet_random_below(&rng, 3);
    config->gpus = 1 + (int)duet_random_below(&rng, (unsigned)gpus);
    config->gpu_streams = duet_random_below(&rng, 4);
    config->gpu_untimed = one_of(&rng, 4);
    config->no_pin = one_of(&rng, 4);
    config->pin_bytes = one_of(&rng, 4) ? 4096 : 0;
    config->watchdog_s = WATCHDOG_S / 4.0;
    draw_program(setting, &rng, 200);
    setting->fail_copy = 0;
}

static void test_programs(void)
{
    struct tally sum = run_programs(40, draw, 2, false);
    g_assert_cmpuint(sum.tasks, >, 0);
}

int main(int argc, char **argv)
{
    void *memory = NULL;
    g_test_init(&argc, &argv, NULL);
    if (cudaGetDeviceCount(&gpus) || gpus == 0) {
        (void)fprintf(stderr, "skipped: no GPU\n");
        return SKIPPED;
    }
    g_assert_cmpint(cudaHostAlloc(&memory, FLIGHTS * sizeof *flights, cudaHostAllocPortable), ==,
                    cudaSuccess);
    flights = memory;
    for (unsigned i = 0; i < FLIGHTS; i++)
        atomic_init(&flights[i].used, false);
    g_test_add_func("/cuda_programs/programs", test_programs);
    int status = g_test_run();
    (void)cudaFreeHost(flights);
    return status;
}
