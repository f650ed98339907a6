/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole library on CUDA: random programs whose tasks run on GPUs, with little memory and
 * page-locking by the application, by duet or not at all, against the same programs carried out in
 * order by one thread; on the fake CUDA also with several devices, some of which break. See
 * core/testing_random.h for the environment. Skipped where there is no GPU.
 */
#include <cuda_runtime_api.h>

#include "backends/cuda/testing_gpu.h"
#include "core/testing_random.h"
#include "tests/fake_cuda/fake.h"

/* ------------------------------------------------------------------------------------------- */
/* A kernel's arguments lie in a flight, from its launch until flight_end in the same stream     */

enum { FLIGHTS = 128 };

struct flight {
    _Atomic(bool) used;
    struct argument argument; /* argument of a step's task; step NULL: of an addition */
    struct addition bare;     /* an addition without a buffer, by flight_end; run NULL: none */
    struct testing_gpu_work work;
};

/* FLIGHTS of them, where GPUs reach them, all unused before the first program. */
static struct flight *flights;

/* Waits until one is free: those in flight end without this thread. */
static struct flight *flight_take(const struct duet_call *call)
{
    unsigned i = 0;
    while (atomic_exchange(&flights[i].used, true))
        if (++i == FLIGHTS) {
            (void)sched_yield();
            i = 0;
        }
    struct flight *flight = &flights[i];
    flight->argument.step = NULL;
    flight->bare.run = NULL;
    flight->work.status = call->status;
    flight->work.failure = DUET_OK;
    flight->work.add_words = 0;
    flight->work.count = call->buffer_count;
    memcpy(flight->work.buffers, call->buffers, call->buffer_count * sizeof *call->buffers);
    return flight;
}

/* The fake's kernel: the work in the host's memory. */
static void flight_work(struct testing_gpu_work *work)
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

/* A launch that CUDA refuses fails the task, unless the device is lost, which duet finds out. */
static int flight_enqueue(const struct duet_call *call, struct flight *flight)
{
    int error = flight->bare.run ? cudaSuccess
                                 : testing_gpu_compute(call->stream, &flight->work, flight_work);
    if (!error)
        error = cudaLaunchHostFunc(call->stream, flight_end, flight);
    return error ? duet_fail(call->message, DUET_ETASK, "launch: error %d", error) : DUET_OK;
}

/* A step's task. The one that is to fail does so at once, or when it runs. */
static int launch_work(const struct duet_call *call)
{
    struct argument argument;
    memcpy(&argument, call->args, sizeof argument);
    struct run *run = argument.step->run;
    g_assert_true(call->runtime == run->duet && call->stream && call->message);
    g_assert_true(call->status && *call->status == 0);
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
/* Settings                                                                                     */

static struct fake_cuda_stats devices; /* what happened on them in all programs */
static bool last_loses;                /* the last program may have broken some */
static int gpus;                       /* real GPUs in this machine; 0 with the fake CUDA */

/* The last program has ended: it has left nothing behind, and did nothing that is forbidden. */
static void look_at_devices(void)
{
    struct fake_cuda_stats stats;
    fake_cuda_stats(&stats);
    g_assert_cmpuint(stats.violations, ==, 0);
    g_assert_cmpuint(fake_cuda_registered(), ==, 0);
    if (!last_loses)
        g_assert_cmpuint(fake_cuda_leaks(true), ==, 0);
    devices.in += stats.in;
    devices.direct += stats.direct;
    devices.kernels += stats.kernels;
    devices.pageable_in += stats.pageable_in;
}

/* The devices of a program. */
static void draw_devices(struct fake_cuda_config *fake, uint64_t *rng)
{
    *fake = (struct fake_cuda_config){.devices = 1 + duet_random_below(rng, 3),
                                      .no_peers = duet_random_below(rng, 3) == 0,
                                      .whole_pages = duet_random_below(rng, 2),
                                      .delay_us = duet_random_below(rng, 2) ? 0 : 50};
    if (duet_random_below(rng, 4) == 0)
        fake->registered_bytes = 8192; /* a limit of the system's: page-locking is refused */
    if (gpus)
        fake->devices = 1 + duet_random_below(rng, (unsigned)gpus);
}

static void draw_config(struct duet_config *config, const struct fake_cuda_config *fake,
                        uint64_t *rng)
{
    config->cpus = (int)duet_random_below(rng, 3);
    config->gpus = (int)fake->devices;
    config->no_peer = one_of(rng, 4);
    config->gpu_streams = duet_random_below(rng, 4);
    config->gpu_untimed = config->seed % 4 == 3;
    config->no_pin = one_of(rng, 4);
    config->pin_bytes = one_of(rng, 4) ? 4096 : 0;
    config->watchdog_s = WATCHDOG_S / 4.0;
}

/* Devices that break, each by an error of its hardware, or one that a kernel causes. */
static void break_devices(struct setting *setting, unsigned count, uint64_t *rng)
{
    for (unsigned d = 0; d < count; d++) {
        bool kernels = duet_random_below(rng, 4) == 0;
        if (duet_random_below(rng, 2))
            continue;
        /* after what opening it takes */
        fake_cuda_break(d, kernels ? cudaErrorIllegalAddress : cudaErrorECCUncorrectable,
                        20 + duet_random_below(rng, 150 * length_of(setting->config.seed)));
        setting->loses = true;
        setting->breaks = setting->breaks || kernels;
    }
}

static int open_real(struct run *run, struct duet_message *message)
{
    return duet_open(&run->duet, &run->setting.config, message);
}

/* Draws a setting, and starts the fake anew, once its report of the program before was read. */
static void draw(struct setting *setting)
{
    static struct world world = {.arch = "cuda",
                                 .work = launch_work,
                                 .add = launch_add,
                                 .open = open_real};
    uint64_t rng = duet_random_stream(setting->config.seed, 77);
    struct fake_cuda_config fake;
    look_at_devices();
    draw_devices(&fake, &rng);
    fake_cuda_reset(&fake);
    for (unsigned i = 0; i < FLIGHTS; i++) /* also those of devices that broke */
        atomic_store(&flights[i].used, false);
    world.stays = gpus > 0;
    setting->world = &world;
    draw_machine(setting, &rng);
    draw_config(&setting->config, &fake, &rng);
    draw_program(setting, &rng, 200);
    setting->config.model = NULL;
    setting->fail_copy = 0;
    if (one_of(&rng, 3) && !gpus)
        break_devices(setting, fake.devices, &rng);
    last_loses = setting->loses;
}

/* One program at a time: there is one fake for the whole process. */
static void test_programs(void)
{
    (void)run_programs(13, draw, 1, false);
    look_at_devices();
    g_test_message("%" G_GUINT64_FORMAT " copies in, %" G_GUINT64_FORMAT
                   " between, %" G_GUINT64_FORMAT " kernels",
                   devices.in, devices.direct, devices.kernels);
    if (g_getenv("DUET_TEST_SEED") || gpus)
        return;
    /* duet itself brings data into page-locked memory; kernels ran, peers were used */
    g_assert_cmpuint(devices.pageable_in, ==, 0);
    g_assert_true(devices.in && devices.direct && devices.kernels);
}

int main(int argc, char **argv)
{
    static struct flight of_host[FLIGHTS];
    void *memory = of_host;
    g_test_init(&argc, &argv, NULL);
    if (!fake_cuda_present() && (cudaGetDeviceCount(&gpus) || !gpus))
        return (void)fprintf(stderr, "skipped: no GPU\n"), 77;
    if (gpus)
        g_assert_cmpint(cudaHostAlloc(&memory, sizeof of_host, cudaHostAllocPortable), ==,
                        cudaSuccess);
    flights = memory;
    g_test_add_func("/cuda_random/programs", test_programs);
    return g_test_run(); /* the flights' memory goes with the process */
}
