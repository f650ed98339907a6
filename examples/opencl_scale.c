/* SPDX-License-Identifier: Apache-2.0 */
/* An application's kernel on OpenCL's devices and on CPUs: multiplies the pieces of a vector by a
 * number. Usage: opencl_scale --duet-devices=opencl. */
#include <stdio.h>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <duet/duet.h>
#include <duet/opencl.h>

enum { PIECES = 8, PIECE = 10000 };

static const char *source = "kernel void scale(global float *memory, ulong first, float factor)"
                            "{ memory[first + get_global_id(0)] *= factor; }";

/* ------------------------------------------------------------------------------------------- */
/* The kernel                                                                                   */

static int scale(const struct duet_call *call)
{
    float *x = call->buffers[0].data;
    for (size_t i = 0; i < call->buffers[0].rows; i++)
        x[i] *= *(const float *)call->args;
    return 0;
}

/* Returns the compiled kernel of the device's context, which lasts as long as the process. Every
 * device has a thread that calls its kernels. */
static cl_kernel kernel_of(const struct duet_opencl *opencl)
{
    static _Thread_local cl_kernel kernel;
    cl_device_id device = opencl->device;
    if (kernel)
        return kernel;
    cl_program program = clCreateProgramWithSource(opencl->context, 1, &source, NULL, NULL);
    if (program && clBuildProgram(program, 1, &device, NULL, NULL, NULL) == CL_SUCCESS)
        kernel = clCreateKernel(program, "scale", NULL);
    return kernel;
}

static int scale_on_device(const struct duet_call *call)
{
    const struct duet_opencl *opencl = call->stream;
    const struct duet_buffer *x = &call->buffers[0];
    cl_mem memory = opencl->memory;
    cl_ulong first = duet_opencl_offset(opencl, x) / sizeof(float);
    cl_kernel kernel = kernel_of(opencl); /* compiles once for each context */
    clSetKernelArg(kernel, 0, sizeof memory, &memory);
    clSetKernelArg(kernel, 1, sizeof first, &first);
    clSetKernelArg(kernel, 2, sizeof(float), call->args);
    cl_int error =
        clEnqueueNDRangeKernel(opencl->queue, kernel, 1, NULL, &x->rows, NULL, 0, NULL, NULL);
    return error ? duet_fail(call->message, DUET_ETASK, "scale: error %d", (int)error) : 0;
}

/* ------------------------------------------------------------------------------------------- */
/* The program                                                                                  */

/* Submits every piece twice, with different factors. */
static int submit(struct duet_runtime *duet, float *x)
{
    const struct duet_implementation where[] = {{"cpu", scale}, {"opencl", scale_on_device}};
    const struct duet_codelet_desc desc = {.name = "sscale",
                                           .implementations = where,
                                           .implementation_count = 2};
    struct duet_codelet *codelet;
    int error = duet_register_codelet(duet, &desc, &codelet);
    for (size_t i = 0; !error && i < PIECES; i++) {
        struct duet_handle *handle;
        const float factor = (float)(i + 1), half = 0.5F;
        error = duet_register_vector(duet, x + i * PIECE, PIECE, sizeof *x, &handle);
        const struct duet_access access = {handle, DUET_RW};
        struct duet_task_desc task = {.codelet = codelet,
                                      .accesses = &access,
                                      .access_count = 1,
                                      .args = &factor,
                                      .args_bytes = sizeof factor};
        if (!error)
            error = duet_submit(duet, &task);
        task.args = &half;
        if (!error)
            error = duet_submit(duet, &task);
        if (!error)
            error = duet_unregister_submit(duet, handle);
    }
    return error ? error : duet_wait(duet);
}

int main(int argc, char **argv)
{
    static float x[PIECES * PIECE];
    struct duet_config config;
    struct duet_runtime *duet;
    struct duet_message message = {""};
    size_t right = 0;
    duet_config_init(&config);
    int error = duet_config_environment(&config, &message);
    if (!error)
        error = duet_config_arguments(&config, &argc, argv, &message);
    if (!error)
        error = duet_open(&duet, &config, &message);
    if (error) {
        fprintf(stderr, "%s\n", message.text);
        return 2;
    }
    for (size_t i = 0; i < PIECES * PIECE; i++)
        x[i] = 2;
    error = submit(duet, x);
    if (error)
        fprintf(stderr, "%s\n", duet_last_message(duet));
    for (size_t i = 0; i < PIECES * PIECE; i++) {
        size_t piece = i / PIECE;
        right += x[i] == (float)(piece + 1);
    }
    printf("%zu elements are right\n", right);
    return duet_close(duet) || error || right < PIECES * PIECE;
}
