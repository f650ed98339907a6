/* SPDX-License-Identifier: Apache-2.0 */
/* Opening runtimes that run on this machine: alone, with emulated GPUs, at a platform's pace. */
#include <stdatomic.h>
#include <string.h>

#include <duet/trace.h>

#include "platforms/platform.h"
#include "real/real.h"
#include "runtime/open.h"
#include "runtime/testing.h"

enum { COUNT = 64, TILE = 960 };

/* Returns a configuration with a short watchdog, so that a run that goes wrong ends; -1: as many as
   there are. */
static struct duet_config configure(const char *emulate, int cpus, int gpus)
{
    struct duet_config config = testing_config(NULL, cpus, gpus);
    config.emulate = emulate;
    config.watchdog_s = 5;
    config.no_bind = true;
    config.quiet = false;
    return config;
}

/* ------------------------------------------------------------------------------------------- */
/* Tasks that compute                                                                           */

/* Adds one to every element. */
static int increment(const struct duet_call *call)
{
    const struct duet_buffer *buffer = &call->buffers[0];
    for (size_t i = 0; i < buffer->rows; i++)
        ((double *)buffer->data)[i] += 1;
    return DUET_OK;
}

static int fail(const struct duet_call *call)
{
    return DUET_EINVAL;
}

static double flops(const void *args)
{
    return COUNT;
}

static void submit(struct duet_runtime *duet, struct duet_codelet *codelet,
                   struct duet_handle *handle)
{
    const struct duet_access access = {handle, DUET_RW};
    const struct duet_task_desc task = {.codelet = codelet, .accesses = &access, .access_count = 1};
    g_assert_cmpint(duet_submit(duet, &task), ==, DUET_OK);
}

static struct duet_codelet *codelet_of(struct duet_runtime *duet, duet_kernel_fn run)
{
    const struct duet_codelet_desc like = {.flops = flops};
    return testing_codelet(duet, "increment", run, like);
}

/* Registers a vector of COUNT elements. */
static struct duet_handle *vector_of(struct duet_runtime *duet, double *values)
{
    struct duet_handle *handle = NULL;
    must(duet, duet_register_vector(duet, values, COUNT, sizeof *values, &handle));
    return handle;
}

/* Makes 20 tasks in a row on one vector and looks at what they leave. */
static void count_to_20(struct duet_runtime *duet)
{
    double values[COUNT] = {0};
    struct duet_codelet *codelet = codelet_of(duet, increment);
    struct duet_handle *handle = vector_of(duet, values);
    for (int i = 0; i < 20; i++)
        submit(duet, codelet, handle);
    g_assert_cmpint(duet_wait(duet), ==, DUET_OK);
    g_assert_cmpint(duet_unregister(duet, handle), ==, DUET_OK);
    for (int i = 0; i < COUNT; i++)
        g_assert_cmpfloat(values[i], ==, 20);
}

/* Two runtimes run at a time, then one after another; models learn from these runs. */
static void test_real(void)
{
    struct duet_config config = configure(NULL, 1, 0);
    struct duet_runtime *one = testing_open(&config), *other = testing_open(&config);
    count_to_20(one);
    count_to_20(other);
    struct duet_class_stats stats;
    g_assert_cmpint(duet_class_stats(one, 0, &stats), ==, DUET_OK);
    g_assert_cmpuint(stats.tasks, ==, 20);
    g_assert_cmpfloat(stats.expected_s[0], >, 0);
    g_assert_cmpint(duet_close(one), ==, DUET_OK);
    g_assert_cmpint(duet_close(other), ==, DUET_OK);
    one = testing_open(&config);
    count_to_20(one);
    g_assert_cmpint(duet_close(one), ==, DUET_OK);
}

/* Nothing is known of a kernel before it has run: no platform's times are believed here. */
static void test_history_is_empty(void)
{
    struct duet_config config = configure(NULL, 1, 0);
    struct duet_runtime *duet = testing_open(&config);
    double values[COUNT] = {0};
    struct duet_class_stats stats;
    submit(duet, codelet_of(duet, fail), vector_of(duet, values));
    g_assert_cmpint(duet_wait(duet), !=, DUET_OK);
    TOLD(duet, "increment");
    g_assert_cmpint(duet_class_stats(duet, 0, &stats), ==, DUET_OK);
    g_assert_cmpfloat(stats.expected_s[0], ==, 0);
    g_assert_cmpint(duet_close(duet), !=, DUET_OK);
}

static void test_free(void)
{
    struct duet_config config = configure("free", 0, 2);
    config.gpu_memory_bytes = 1 << 20;
    struct duet_runtime *duet = testing_open(&config);
    g_assert_cmpuint(duet_runtime_machine(duet)->worker_count, ==, 2);
    g_assert_cmpuint(duet_runtime_machine(duet)->nodes[2].capacity_bytes, ==, 1 << 20);
    count_to_20(duet);
    struct duet_stats stats;
    duet_stats(duet, &stats);
    g_assert_cmpuint(stats.bytes_to_device, >=, COUNT * sizeof(double));
    g_assert_cmpuint(stats.reads_on_device, ==, 20);
    g_assert_cmpint(duet_close(duet), ==, DUET_OK);
}

/* Settings of GPUs in the configuration reach the machine and the devices. */
static void test_gpus(void)
{
    struct duet_config config = configure("free", -1, 1);
    char data[64];
    config.gpu_memory_share = 0.5;
    config.gpu_window_short = 6;
    config.gpu_streams = 4;
    config.pin_bytes = 60;
    struct duet_runtime *duet = testing_open(&config);
    const struct duet_machine *machine = duet_runtime_machine(duet);
    uint64_t half = machine->nodes[1].capacity_bytes;
    const struct duet_worker *gpu = &machine->workers[machine->worker_count - 1];
    g_assert_true(gpu->window == 2 && gpu->window_short == 6);
    g_assert_cmpint(duet_pin(duet, data, 61), ==, DUET_ENOMEM);
    g_assert_cmpint(duet_pin(duet, data, 60), ==, DUET_OK);
    g_assert_cmpint(duet_close(duet), ==, DUET_OK);
    config.gpu_memory_share = 1;
    config.gpu_window = 5;
    config.gpu_window_short = 0;
    config.pin_bytes = 0;
    duet = testing_open(&config);
    machine = duet_runtime_machine(duet);
    gpu = &machine->workers[machine->worker_count - 1];
    g_assert_true(gpu->window == 5 && gpu->window_short == 5);
    g_assert_cmpuint(machine->nodes[1].capacity_bytes / 2, ==, half);
    g_assert_cmpint(duet_pin(duet, data, 64), ==, DUET_OK);
    g_assert_cmpint(duet_unpin(duet, data), ==, DUET_OK);
    g_assert_cmpint(duet_pin(duet, data, SIZE_MAX / 2), ==, DUET_ENOMEM); /* more than there is */
    g_assert_cmpint(duet_close(duet), ==, DUET_OK);
    config.no_pin = true;
    duet = testing_open(&config);
    g_assert_cmpint(duet_pin(duet, data, 1), ==, DUET_ENOMEM);
    g_assert_cmpint(duet_close(duet), ==, DUET_OK);
}

/* ------------------------------------------------------------------------------------------- */
/* Runs at a platform's pace                                                                    */

/* GPUs may have a part of the platform's memory; page-locking and streams mean nothing there. */
static void test_paced_gpus(void)
{
    struct duet_config config = configure("idgraf", -1, 1);
    char data[64];
    struct duet_runtime *duet = testing_open(&config);
    uint64_t all = duet_runtime_machine(duet)->nodes[1].capacity_bytes;
    const struct duet_worker *gpu =
        &duet_runtime_machine(duet)->workers[duet_runtime_machine(duet)->worker_count - 1];
    g_assert_true(gpu->window == 2 && gpu->window_short == 8);
    g_assert_cmpint(duet_close(duet), ==, DUET_OK);
    config.gpu_memory_share = 0.5;
    config.gpu_streams = 4;
    config.no_pin = true;
    duet = testing_open(&config);
    g_assert_cmpuint(duet_runtime_machine(duet)->nodes[1].capacity_bytes, ==, all / 2);
    g_assert_cmpint(duet_pin(duet, data, sizeof data), ==, DUET_OK);
    g_assert_cmpint(duet_close(duet), ==, DUET_OK);
}

static double gemm_flops(const void *args)
{
    return 2.0 * TILE * TILE * TILE;
}

/* A kernel that nobody calls. */
static int unreachable(const struct duet_call *call)
{
    g_assert_not_reached();
    return DUET_ETASK;
}

static double add_up(const struct duet__calibration *calibration)
{
    double sum = 0;
    for (size_t c = 0; c < calibration->count; c++)
        for (size_t p = 0; p < calibration->curves[c].count; p++)
            sum += calibration->curves[c].points[p].mean_s;
    return sum;
}

/* A trace that cannot be written is found before the run. */
static void test_trace_nowhere(void)
{
    struct duet_config config = configure(NULL, 1, 0);
    struct duet_runtime *duet = NULL;
    config.trace = "/nowhere/trace-%u.json";
    g_assert_cmpint(duet_open(&duet, &config, hear()), ==, DUET_EIO);
    g_assert_null(duet);
    SAYS("cannot write /nowhere/trace-");
}

/* No file is read for a platform in memory, whatever its name, and nothing of it is used after. */
static void test_in_memory(void)
{
    struct duet_config config = configure(NULL, -1, -1);
    struct duet__platform *platform = NULL;
    struct duet_runtime *duet = NULL;
    WORKS(duet__platform_load("idgraf", &platform, hear()));
    double sum = add_up(&platform->calibration);
    FAILS(duet__open_with(&duet, &config, platform, hear()), DUET_EINVAL,
          "whether to simulate or to emulate");
    config.emulate = "/not/a/file.json";
    config.gpus = 2;
    config.context = "gemm";
    WORKS(duet__open_with(&duet, &config, platform, hear()));
    g_assert_cmpuint(duet_runtime_machine(duet)->node_count, ==, 3);
    g_assert_cmpint(duet_close(duet), ==, DUET_OK);
    config.emulate = NULL;
    config.simulate = "/not/a/file.json";
    config.context = NULL;
    int error = duet__open_with(&duet, &config, platform, hear());
    g_assert_cmpfloat(add_up(&platform->calibration), ==, sum);
    duet__platform_free(platform);
    g_assert_cmpint(error, ==, DUET_OK);
    g_assert_cmpuint(duet_runtime_machine(duet)->node_count, ==, 3);
    g_assert_cmpint(duet_close(duet), ==, DUET_OK);
}

static struct duet_runtime *open_paced(double scale, struct duet_codelet **codelet,
                                       struct duet_handle **handle)
{
    struct duet_config config = configure("idgraf", 0, 1);
    config.scale = scale;
    config.record = true;
    struct duet_runtime *duet = testing_open(&config);
    const struct duet_codelet_desc like = {.flops = gemm_flops};
    *codelet = testing_codelet(duet, "dgemm", unreachable, like);
    g_assert_cmpint(duet_register_matrix(duet, NULL, TILE, TILE, TILE, sizeof(double), handle), ==,
                    DUET_OK);
    return duet;
}

/*
 * The scheduler believes the platform's kernel and copy times at the emulation's pace, and those
 * are what kernels and copies take at least.
 */
static void test_paced(void)
{
    const double scale = 0.25, gemm_s = 5.91e-3; /* see duet list kernels --platform idgraf */
    struct duet_codelet *codelet = NULL;
    struct duet_handle *handle = NULL;
    struct duet_runtime *full = open_paced(0, &codelet, &handle), *duet;
    const struct duet_route whole = *duet_machine_route(duet_runtime_machine(full), 0, 1);
    g_assert_cmpint(duet_close(full), ==, DUET_OK);
    duet = open_paced(scale, &codelet, &handle);
    const struct duet_route *route = duet_machine_route(duet_runtime_machine(duet), 0, 1);
    g_assert_cmpfloat_with_epsilon(route->bandwidth_Bps, whole.bandwidth_Bps / scale, 1);
    g_assert_cmpfloat_with_epsilon(route->latency_s, whole.latency_s * scale, 1e-15);
    /* no task runs, to be learned from, while the data is the program's own */
    g_assert_cmpint(duet_acquire(duet, handle, DUET_RW), ==, DUET_OK);
    submit(duet, codelet, handle);
    struct duet_class_stats stats;
    g_assert_cmpint(duet_class_stats(duet, 0, &stats), ==, DUET_OK);
    unsigned arch = duet_runtime_machine(duet)->workers[0].arch;
    g_assert_cmpfloat_with_epsilon(stats.expected_s[arch], gemm_s * scale, 0.01 * gemm_s * scale);
    double expected = stats.expected_s[arch];
    g_assert_cmpint(duet_release(duet, handle), ==, DUET_OK);
    g_assert_cmpint(duet_wait(duet), ==, DUET_OK);
    struct duet_event *events = NULL;
    size_t count = 0;
    g_assert_cmpint(duet_trace_events(duet, &events, &count), ==, DUET_OK);
    g_assert_cmpuint(count, ==, 2);
    double copy_s = whole.latency_s + TILE * TILE * sizeof(double) / whole.bandwidth_Bps;
    g_assert_cmpfloat(events[0].end_s - events[0].start_s, >=, copy_s * scale * 0.999);
    g_assert_cmpfloat(events[1].end_s - events[1].start_s, >=, expected * 0.999);
    g_free(events);
    g_assert_cmpint(duet_close(duet), ==, DUET_OK);
}

static double other_flops(const void *args)
{
    return 1e3;
}

/* A size that was not measured is refused, as in a simulation. */
static void test_paced_beyond(void)
{
    struct duet_config config = configure("idgraf", -1, -1);
    config.scale = 0.01;
    for (int extrapolate = 0; extrapolate < 2; extrapolate++) {
        config.extrapolate = extrapolate;
        struct duet_runtime *duet = testing_open(&config);
        const struct duet_codelet_desc like = {.flops = other_flops};
        const struct duet_task_desc task = {.codelet = testing_codelet(duet, "dgemm", NULL, like)};
        int error = duet_submit(duet, &task);
        g_assert_cmpint(error, ==, extrapolate ? DUET_OK : DUET_ENOMODEL);
        if (error)
            TOLD(duet, "allow extrapolation");
        g_assert_cmpint(duet_close(duet), ==, DUET_OK);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Closing                                                                                      */

static struct duet_runtime *open_failing(void)
{
    struct duet_config config = configure(NULL, 1, 0);
    struct duet_runtime *duet = testing_open(&config);
    const struct duet_task_desc task = {.codelet = codelet_of(duet, fail)};
    g_assert_cmpint(duet_submit(duet, &task), ==, DUET_OK);
    return duet;
}

static void subprocess_untold(void)
{
    g_assert_cmpint(duet_close(open_failing()), !=, DUET_OK);
}

static void subprocess_told(void)
{
    struct duet_runtime *duet = open_failing();
    int error = duet_wait(duet);
    g_assert_cmpint(error, !=, DUET_OK);
    g_assert_cmpint(duet_close(duet), ==, error);
}

/* The error of a run is printed by the closing, unless a wait has returned it. */
static void test_close_after_failure(void)
{
    g_test_trap_subprocess("/subprocess/untold", 0, G_TEST_SUBPROCESS_DEFAULT);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("*duet: *increment*");
    g_test_trap_subprocess("/subprocess/told", 0, G_TEST_SUBPROCESS_DEFAULT);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr_unmatched("*duet: *");
}

/* More workers than cores: twice, once with the remark on them. */
static void subprocess_crowded(void)
{
    struct duet_config config = configure(NULL, (int)duet__real_cores() + 1, -1);
    duet_close(testing_open(&config));
    config.quiet = true;
    duet_close(testing_open(&config));
}

static void test_quiet(void)
{
    g_test_trap_subprocess("/subprocess/crowded", 0, G_TEST_SUBPROCESS_DEFAULT);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("*take turns*");
    g_test_trap_assert_stderr_unmatched("*take turns*take turns*");
}

static void test_close_after_cancel(void)
{
    struct duet_config config = configure("free", -1, 1);
    struct duet_runtime *duet = testing_open(&config);
    struct duet_codelet *codelet = codelet_of(duet, increment);
    double values[COUNT] = {0};
    struct duet_handle *handle = vector_of(duet, values);
    for (int i = 0; i < 1000; i++)
        submit(duet, codelet, handle);
    duet_cancel(duet);
    g_assert_cmpint(duet_wait(duet), ==, DUET_ECANCELED);
    g_assert_cmpint(duet_close(duet), ==, DUET_ECANCELED);
}

TEST_MAIN(test_real, test_history_is_empty, test_free, test_gpus, test_paced_gpus,
          test_trace_nowhere, test_in_memory, test_paced, test_paced_beyond, subprocess_untold,
          subprocess_told, test_close_after_failure, subprocess_crowded, test_quiet,
          test_close_after_cancel)
