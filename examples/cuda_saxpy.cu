/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with a CUDA kernel of its own: y := a x + y by blocks, on CPUs and NVIDIA GPUs.
 *
 *     cuda_saxpy                                       on all cores and GPUs of this machine
 *     cuda_saxpy --duet-gpus=0                         on the cores
 *     cuda_saxpy --duet-emulate=free --duet-gpus=2     GPUs emulated: the CPUs' code runs there
 *
 * Compile with nvcc, link with -lduet and the CUDA runtime: docs/gpus.md has the command.
 */
#include <stdio.h>
#include <stdlib.h>

#include <cuda_runtime.h>

#include <duet/duet.h>

enum { BLOCKS = 16, BLOCK = 1 << 16 /* elements */ };

/* ------------------------------------------------------------------------------------------- */
/* The kernel, for CPUs and GPUs. Accesses: x, y. Arguments: a. */

static int saxpy_on_cpu(const struct duet_call *call)
{
    float a = *static_cast<const float *>(call->args);
    const float *x = static_cast<const float *>(call->buffers[0].data);
    float *y = static_cast<float *>(call->buffers[1].data);
    for (size_t i = 0; i < call->buffers[1].rows; i++)
        y[i] += a * x[i];
    return 0;
}

static __global__ void saxpy(size_t n, float a, const float *x, float *y)
{
    size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] += a * x[i];
}

/* Runs on the thread that feeds the GPU, which is the current device. It only enqueues the kernel
 * on the stream: duet sees when it has ended. Buffers are in the GPU's memory. */
static int saxpy_on_gpu(const struct duet_call *call)
{
    const unsigned threads = 256;
    size_t n = call->buffers[1].rows;
    saxpy<<<static_cast<unsigned>((n + threads - 1) / threads), threads, 0,
            static_cast<cudaStream_t>(call->stream)>>>(n, *static_cast<const float *>(call->args),
                                                       static_cast<const float *>(
                                                           call->buffers[0].data),
                                                       static_cast<float *>(call->buffers[1].data));
    cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess)
        return duet_fail(call->message, DUET_ETASK, "saxpy: %s", cudaGetErrorString(error));
    return 0;
}

static double flops(const void *args)
{
    return 2.0 * BLOCK;
}

/* ------------------------------------------------------------------------------------------- */
/* The program                                                                                  */

struct program {
    struct duet_runtime *duet;
    struct duet_codelet *kernel;
    struct duet_handle *x[BLOCKS], *y[BLOCKS];
    float *data; /* x, then y */
};

static int begin(struct program *program)
{
    const struct duet_implementation where[] = {{"cpu", saxpy_on_cpu}, {"cuda", saxpy_on_gpu}};
    struct duet_codelet_desc desc = {};
    desc.name = "saxpy";
    desc.implementations = where;
    desc.implementation_count = 2;
    desc.flops = flops;
    int error = duet_register_codelet(program->duet, &desc, &program->kernel);
    /* Page-locked memory is copied beside everything else; all works without it, too. */
    if (!error && duet_pin(program->duet, program->data, 2 * sizeof(float) * BLOCKS * BLOCK))
        fprintf(stderr, "copies will be slower: %s\n", duet_last_message(program->duet));
    for (int b = 0; b < BLOCKS && !error; b++) {
        float *x = program->data + static_cast<size_t>(b) * BLOCK, *y = x + BLOCKS * BLOCK;
        error = duet_register_vector(program->duet, x, BLOCK, sizeof *x, &program->x[b]);
        if (!error)
            error = duet_register_vector(program->duet, y, BLOCK, sizeof *y, &program->y[b]);
    }
    return error;
}

static int submit(struct program *program, float a)
{
    for (int b = 0; b < BLOCKS; b++) {
        const struct duet_access accesses[] = {{program->x[b], DUET_R}, {program->y[b], DUET_RW}};
        struct duet_task_desc task = {};
        task.codelet = program->kernel;
        task.accesses = accesses;
        task.access_count = 2;
        task.args = &a;
        task.args_bytes = sizeof a;
        int error = duet_submit(program->duet, &task);
        if (error)
            return error;
    }
    return 0;
}

/* Brings the results back to the host's memory. */
static int end(struct program *program)
{
    int error = 0;
    for (int b = 0; b < BLOCKS; b++) {
        int one = duet_unregister(program->duet, program->x[b]);
        int other = duet_unregister(program->duet, program->y[b]);
        error = error ? error : one ? one : other;
    }
    return error;
}

/* Checks y: it began as 1, and 2 x and then 3 x were added, x being i modulo 100: exact in
 * float. */
static int check(const struct program *program)
{
    for (int i = 0; i < BLOCKS * BLOCK; i++) {
        float expected = 1 + 5 * static_cast<float>(i % 100);
        float found = program->data[BLOCKS * BLOCK + i];
        if (!(found == expected)) {
            fprintf(stderr, "element %d is %g and not %g\n", i, found, expected);
            return 1;
        }
    }
    printf("%d elements are right\n", BLOCKS * BLOCK);
    return 0;
}

static int run(struct program *program)
{
    int error = begin(program);
    if (!error)
        error = submit(program, 2);
    if (!error)
        error = submit(program, 3);
    if (!error)
        error = end(program);
    if (error)
        fprintf(stderr, "%s\n", duet_last_message(program->duet));
    int closed = duet_close(program->duet);
    return error || closed ? 1 : check(program);
}

int main(int argc, char **argv)
{
    struct duet_config config;
    struct duet_message message = {""};
    struct program program = {};
    duet_config_init(&config);
    int error = duet_config_environment(&config, &message);
    if (!error)
        error = duet_config_arguments(&config, &argc, argv, &message);
    if (!error)
        error = duet_open(&program.duet, &config, &message);
    if (error) {
        fprintf(stderr, "%s\n", message.text);
        return 2;
    }
    program.data = static_cast<float *>(malloc(2 * sizeof(float) * BLOCKS * BLOCK));
    if (!program.data)
        return 2;
    for (int i = 0; i < BLOCKS * BLOCK; i++) {
        program.data[i] = static_cast<float>(i % 100);
        program.data[BLOCKS * BLOCK + i] = 1;
    }
    int status = run(&program);
    free(program.data);
    return status;
}
