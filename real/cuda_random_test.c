/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole library on the fake CUDA: random programs whose tasks run on its devices, with little
 * memory, page-locking by the application, by duet or not at all, and devices that break, against
 * the same programs carried out in order by one thread.
 *
 * DUET_TEST_LONG=N, above 1, multiplies the number of programs by N and their length by 10.
 * DUET_TEST_SEED=N: only program number N.
 */
#include <cuda_runtime_api.h>

#include <duet/policy.h>

#include "real/testing_random_run.h"
#include "tests/fake_cuda/fake.h"

enum { PROGRAMS = 40 };

/* ------------------------------------------------------------------------------------------- */
/* What stands in for kernels                                                                   */

/* One launch of a step's task, as its stream carries it out. */
struct launch {
    struct argument argument;
    struct duet_buffer buffers[ACCESSES];
    size_t count;
    int *status, failure; /* written there before the end, unless it is 0 */
};

static void run_work(void *argument)
{
    const struct launch *launch = argument;
    const struct argument *task = &launch->argument;
    if (launch->failure)
        *launch->status = launch->failure;
    else
        task->step->results[task->number] =
            compute(task->salt, launch->buffers, task->modes, launch->count);
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
    struct launch launch = {.count = call->buffer_count, .status = call->status};
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
    return enqueue(call, run_work, &launch, sizeof launch);
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
    static const uint64_t memories[] = {1, 1, 2, 4, 100};
    config->cpus = (int)duet_random_below(rng, 3);
    config->gpus = (int)fake->devices;
    config->gpu_memory_bytes =
        memories[duet_random_below(rng, 5)] * (ACCESSES * ((BYTES_MAX + 255) / 256 * 256));
    config->no_peer = duet_random_below(rng, 4) == 0;
    config->gpu_window = duet_random_below(rng, 5);
    config->gpu_window_short = duet_random_below(rng, 2) ? 0 : config->gpu_window + 4;
    config->gpu_streams = duet_random_below(rng, 4);
    config->window = duet_random_below(rng, 2) ? 0 : 2 + duet_random_below(rng, 40);
    config->no_pin = duet_random_below(rng, 4) == 0;
    if (duet_random_below(rng, 4) == 0)
        config->pin_bytes = 4096;
    config->no_bind = true;
    config->watchdog_s = WATCHDOG_S / 4.0;
}

/* Devices that break, each by an error of its hardware, or one that a kernel causes. */
static void break_devices(struct setting *setting, unsigned devices, uint64_t *rng)
{
    for (unsigned d = 0; d < devices; d++) {
        bool kernels = duet_random_below(rng, 4) == 0;
        if (duet_random_below(rng, 2))
            continue;
        /* after what opening it takes */
        fake_cuda_break(d, kernels ? cudaErrorIllegalAddress : cudaErrorECCUncorrectable,
                        20 + duet_random_below(rng, 150 * testing_length()));
        setting->loses = true;
        setting->breaks = setting->breaks || kernels;
    }
}

static void draw_failures(struct setting *setting, uint64_t *rng)
{
    unsigned failure = duet_random_below(rng, 16);
    unsigned when = 1 + duet_random_below(rng, 100 * testing_length());
    setting->fail_kernel = failure == 0 || failure == 1 ? when : 0;
    setting->cancel_at = failure == 2 ? when : 0;
    setting->cancel_step = failure == 3 ? when : 0;
}

/* Also starts the fake anew. */
static void draw(struct setting *setting, uint64_t number)
{
    uint64_t rng = duet_random_stream(number, 77);
    struct fake_cuda_config fake;
    unsigned policies = 0;
    while (duet_policy_at(policies))
        policies++;
    memset(setting, 0, sizeof *setting);
    duet_config_init(&setting->config);
    setting->device = (struct device_code){"cuda", launch_work, launch_add};
    draw_devices(&fake, &rng);
    fake_cuda_reset(&fake);
    draw_config(&setting->config, &fake, &rng);
    setting->seed = setting->config.seed = number;
    setting->config.policy = duet_policy_at(duet_random_below(&rng, policies))->name;
    setting->config.set_arch = duet_random_below(&rng, 4) == 0;
    setting->config.record = duet_random_below(&rng, 2);
    setting->submitters = duet_random_below(&rng, 2) ? 1 : 1 + duet_random_below(&rng, 3);
    setting->shared = setting->submitters > 1 && duet_random_below(&rng, 2);
    setting->steps = 1 + duet_random_below(&rng, 200 * testing_length() / setting->submitters);
    setting->look = duet_random_below(&rng, 2);
    setting->nested = duet_random_below(&rng, 2);
    setting->expand = setting->config.cpus && duet_random_below(&rng, 2);
    if (duet_random_below(&rng, 3) == 0)
        break_devices(setting, fake.devices, &rng);
    draw_failures(setting, &rng);
    setting->abrupt = duet_random_below(&rng, 6) == 0;
    setting->pin = duet_random_below(&rng, 2);
}

/* ------------------------------------------------------------------------------------------- */
/* Runs                                                                                         */

/* How programs ended, and what happened on their devices. */
struct outcome {
    struct tally tally;
    struct fake_cuda_stats devices;
};

static void run_one(uint64_t number, struct outcome *outcome)
{
    struct setting setting;
    struct fake_cuda_stats stats;
    draw(&setting, number);
    const struct duet_config *config = &setting.config;
    g_test_message("%" G_GUINT64_FORMAT ": %s, %d + %d, %u x %u steps%s%s%s%s%s%s", number,
                   config->policy, config->cpus, config->gpus, setting.submitters, setting.steps,
                   setting.shared ? ", shared" : "", setting.expand ? ", expand" : "",
                   setting.nested ? ", nested" : "", setting.look ? ", look" : "",
                   setting.pin ? ", pin" : "", setting.loses ? ", loses" : "");
    execute(&setting, &outcome->tally);
    fake_cuda_stats(&stats);
    g_assert_cmpuint(stats.violations, ==, 0);
    g_assert_cmpuint(fake_cuda_registered(), ==, 0);
    if (!setting.loses)
        g_assert_cmpuint(fake_cuda_leaks(true), ==, 0);
    outcome->devices.in += stats.in;
    outcome->devices.direct += stats.direct;
    outcome->devices.kernels += stats.kernels;
    outcome->devices.pageable_in += stats.pageable_in;
}

static void test_programs(void)
{
    const char *only = g_getenv("DUET_TEST_SEED");
    struct outcome outcome = {.tally = {0}};
    const struct tally *tally = &outcome.tally;
    const struct fake_cuda_stats *devices = &outcome.devices;
    if (only) {
        run_one(g_ascii_strtoull(only, NULL, 10), &outcome);
        return;
    }
    for (uint64_t number = 0; number < PROGRAMS * testing_repetitions(); number++)
        run_one(number, &outcome);
    g_test_message("%" G_GUINT64_FORMAT " tasks; %u of %u runs ended well, of %u with losses %u",
                   tally->tasks, tally->good, tally->runs, tally->lost, tally->lost_well);
    g_test_message("%" G_GUINT64_FORMAT " copies in, %" G_GUINT64_FORMAT
                   " between, %" G_GUINT64_FORMAT " kernels",
                   devices->in, devices->direct, devices->kernels);
    g_assert_cmpuint(2 * tally->good, >, tally->runs);
    g_assert_cmpuint(tally->lost_well, >, 0);
    /* duet itself brings data into page-locked memory; kernels ran, peers were used */
    g_assert_cmpuint(devices->pageable_in, ==, 0);
    g_assert_true(devices->in && devices->direct && devices->kernels);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cuda_random/programs", test_programs);
    return g_test_run();
}
