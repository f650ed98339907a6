/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole library on the fake CUDA: random programs whose tasks run on its devices, with little
 * memory, page-locking by the application, by duet or not at all, and devices that break, against
 * the same programs carried out in order by one thread. See core/testing_random.h for the
 * environment.
 */
#include <cuda_runtime_api.h>

#include "core/testing_random.h"
#include "tests/fake_cuda/fake.h"

/* ------------------------------------------------------------------------------------------- */
/* What stands in for kernels                                                                   */

/* One launch of a step's task, as its stream carries it out. */
struct launch {
    struct argument argument;
    size_t count;
    int *status, failure;                     /* written there before the end, unless it is 0 */
    struct duet_buffer buffers[ACCESSES_MAX]; /* so many as count says */
};

static void run_work(void *argument)
{
    const struct launch *launch = argument;
    const struct argument *task = &launch->argument;
    if (launch->failure)
        *launch->status = launch->failure;
    else
        task->step->results[task->number] =
            compute(task->salt, launch->buffers, modes_of(task), launch->count);
}

/* The buffer as the host sees it. */
static struct duet_buffer seen(const struct duet_buffer *buffer)
{
    struct duet_buffer at = *buffer;
    int device = -1;
    g_assert_cmpint(cudaGetDevice(&device), ==, cudaSuccess);
    g_assert_cmpuint(at.ld, ==, at.rows);
    at.data = fake_cuda_memory((unsigned)device, at.data, at.rows * at.cols * at.element_bytes);
    g_assert_nonnull(at.data);
    return at;
}

/* A launch that CUDA refuses fails the task, unless the device is lost, which duet finds out. */
static int enqueue(const struct duet_call *call, void (*run)(void *argument), const void *argument,
                   size_t bytes)
{
    int error = fake_cuda_launch(call->stream, run, argument, bytes);
    return error ? duet_fail(call->message, DUET_ETASK, "launch: %d", error) : DUET_OK;
}

/* The one that is to fail does so at once, or when it runs. */
static int launch_work(const struct duet_call *call)
{
    struct launch launch;
    launch.count = call->buffer_count;
    launch.status = call->status;
    memcpy(&launch.argument, call->args, sizeof launch.argument);
    struct run *run = launch.argument.step->run;
    g_assert_true(call->runtime == run->duet && call->stream && call->message);
    g_assert_true(call->status && *call->status == 0);
    int error = count_kernel(run);
    if (error && run->setting.fail_kernel % 2)
        return duet_fail(call->message, error, "not launched");
    launch.failure = error;
    if (!error)
        begin(&launch.argument);
    for (size_t i = 0; i < call->buffer_count; i++)
        launch.buffers[i] = seen(&call->buffers[i]);
    return enqueue(call, run_work, &launch,
                   offsetof(struct launch, buffers) + launch.count * sizeof *launch.buffers);
}

/* One launch of an adding task. */
struct added {
    struct addition addition;
    uint64_t *words; /* NULL: it adds to what is none of the library's */
};

static void run_add(void *argument)
{
    const struct added *added = argument;
    if (added->words)
        add_to(added->words, added->addition.salt);
    else
        (void)atomic_fetch_add(&added->addition.run->real_bare, mix(added->addition.salt));
}

static int launch_add(const struct duet_call *call)
{
    struct added added = {.words = NULL};
    memcpy(&added.addition, call->args, sizeof added.addition);
    const struct addition *addition = &added.addition;
    int error = count_kernel(addition->run);
    if (error)
        return error;
    if (call->buffer_count)
        added.words = seen(&call->buffers[0]).data;
    error = enqueue(call, run_add, &added, sizeof added);
    for (unsigned i = 0; !error && addition->deeper && i < 2; i++)
        submit_addition(addition->run, descendant(addition->salt, i), addition->deeper - 1);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Settings                                                                                     */

static struct fake_cuda_stats devices; /* what happened on them in all programs */
static bool last_loses;                /* the last program may have broken some */

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
}

static void draw_config(struct duet_config *config, const struct fake_cuda_config *fake,
                        uint64_t *rng)
{
    config->cpus = (int)duet_random_below(rng, 3);
    config->gpus = (int)fake->devices;
    config->no_peer = one_of(rng, 4);
    config->gpu_streams = duet_random_below(rng, 4);
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

static int open_fake(struct run *run, struct duet_message *message)
{
    return duet_open(&run->duet, &run->setting.config, message);
}

/* Also starts the fake anew, once what it says of the program before has been looked at. */
static void draw(struct setting *setting)
{
    static const struct world world = {.arch = "cuda",
                                       .work = launch_work,
                                       .add = launch_add,
                                       .open = open_fake};
    uint64_t rng = duet_random_stream(setting->config.seed, 77);
    struct fake_cuda_config fake;
    look_at_devices();
    draw_devices(&fake, &rng);
    fake_cuda_reset(&fake);
    setting->world = &world;
    draw_machine(setting, &rng);
    draw_config(&setting->config, &fake, &rng);
    draw_program(setting, &rng, 200);
    setting->config.model = NULL;
    setting->fail_copy = 0;
    if (one_of(&rng, 3))
        break_devices(setting, fake.devices, &rng);
    last_loses = setting->loses;
}

/* One program at a time: there is one fake for the whole process. */
static void test_programs(void)
{
    (void)run_programs(40, draw, 1, false);
    look_at_devices();
    g_test_message("%" G_GUINT64_FORMAT " copies in, %" G_GUINT64_FORMAT
                   " between, %" G_GUINT64_FORMAT " kernels",
                   devices.in, devices.direct, devices.kernels);
    if (g_getenv("DUET_TEST_SEED"))
        return;
    /* duet itself brings data into page-locked memory; kernels ran, peers were used */
    g_assert_cmpuint(devices.pageable_in, ==, 0);
    g_assert_true(devices.in && devices.direct && devices.kernels);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cuda_random/programs", test_programs);
    return g_test_run();
}
