/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole library on OpenCL's devices: random programs whose tasks run there, with little memory,
 * against the same programs carried out in order by one thread. Kernels are functions of the host
 * that the device's queue calls, which pocl has. See core/testing_random.h for the environment.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <duet/opencl.h>

#include "backends/opencl/testing_kernels.h"
#include "core/testing_random.h"

/* ------------------------------------------------------------------------------------------- */
/* Replacements of kernels */

/* Argument of a function that the queue calls first; copied when it is enqueued. */
struct place {
    char *memory; /* the slab, set by OpenCL; NULL: nothing of it is used */
    const char *base;
};

/* Returns the address of a buffer for such a function. */
static void *seen(const struct place *place, const struct duet_buffer *buffer)
{
    g_assert_cmpuint(buffer->ld, ==, buffer->rows);
    return place->memory + ((const char *)buffer->data - place->base);
}

/* A launch that OpenCL refuses fails the task. `launch` begins with its place. */
static int enqueue(const struct duet_call *call, void(CL_CALLBACK *run)(void *argument),
                   struct place *launch, size_t bytes)
{
    const struct duet_opencl *opencl = call->stream;
    cl_mem memory = opencl->memory;
    const void *place = &launch->memory;
    bool uses = call->buffer_count > 0;
    launch->base = opencl->base;
    int error = clEnqueueNativeKernel(opencl->queue, run, launch, bytes, uses,
                                      uses ? &memory : NULL, uses ? &place : NULL, 0, NULL, NULL);
    return error ? duet_fail(call->message, DUET_ETASK, "launch: %d", error) : DUET_OK;
}

/* One launch of a step's task. */
struct launch {
    struct place place;
    struct argument argument;
    size_t count;
    int *status, failure;                     /* written there before the end, unless it is 0 */
    struct duet_buffer buffers[ACCESSES_MAX]; /* so many as count says */
};

static void CL_CALLBACK run_work(void *argument)
{
    struct launch *launch = argument;
    const struct argument *task = &launch->argument;
    for (size_t i = 0; i < launch->count; i++)
        launch->buffers[i].data = seen(&launch->place, &launch->buffers[i]);
    if (launch->failure)
        *launch->status = launch->failure;
    else
        task->step->results[task->number] =
            compute(task->salt, launch->buffers, modes_of(task), launch->count);
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
    memcpy(launch.buffers, call->buffers, call->buffer_count * sizeof *launch.buffers);
    return enqueue(call, run_work, &launch.place,
                   offsetof(struct launch, buffers) + launch.count * sizeof *launch.buffers);
}

/* One launch of an adding task: to the sum, or to memory that is none of the library's. */
struct added {
    struct place place;
    struct addition addition;
    struct duet_buffer sum;
};

static void CL_CALLBACK run_add(void *argument)
{
    const struct added *added = argument;
    if (added->place.memory)
        add_to(seen(&added->place, &added->sum), added->addition.salt);
    else
        (void)atomic_fetch_add(&added->addition.run->real_bare, mix(added->addition.salt));
}

static int launch_add(const struct duet_call *call)
{
    struct added added = {.place = {NULL}};
    memcpy(&added.addition, call->args, sizeof added.addition);
    const struct addition *addition = &added.addition;
    int error = count_kernel(addition->run);
    if (error)
        return error;
    if (call->buffer_count)
        added.sum = call->buffers[0];
    error = enqueue(call, run_add, &added.place, sizeof added);
    for (unsigned i = 0; !error && addition->deeper && i < 2; i++)
        submit_addition(addition->run, descendant(addition->salt, i), addition->deeper - 1);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Programs                                                                                     */

static unsigned device_count;

static int open_real(struct run *run, struct duet_message *message)
{
    return duet_open(&run->duet, &run->setting.config, message);
}

static void draw(struct setting *setting)
{
    static const struct world world = {.arch = "opencl",
                                       .work = launch_work,
                                       .add = launch_add,
                                       .open = open_real};
    uint64_t rng = duet_random_stream(setting->config.seed, 78);
    struct duet_config *config = &setting->config;
    setting->world = &world;
    draw_machine(setting, &rng);
    config->devices = "opencl";
    config->cpus = (int)duet_random_below(&rng, 3);
    config->gpus = 1 + (int)duet_random_below(&rng, device_count);
    config->gpu_streams = duet_random_below(&rng, 3);
    config->watchdog_s = WATCHDOG_S / 4.0;
    draw_program(setting, &rng, 100);
    setting->fail_copy = 0;
}

/* Found out by a process of its own: one that has begun with OpenCL must not be forked. */
static unsigned count_devices(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit((int)testing_opencl_devices());
    g_assert_true(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    return (unsigned)WEXITSTATUS(status);
}

static void test_programs(void)
{
    device_count = count_devices();
    if (!device_count)
        g_test_skip("no device of OpenCL with native kernels");
    else
        (void)run_programs(8, draw, 2, true);
}

TEST_MAIN(test_programs)
