/* SPDX-License-Identifier: Apache-2.0 */
/* Gives computations of libraries to streams; kernels of duet itself and of its tests. */
#include "tests/fake_cuda/library.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/testing_gpu.h"
#include "tests/fake_cuda/fake.h"
#include "tests/fake_cuda/internal.h"
#include "workloads/kernels.h"
#include "workloads/kernels_cuda.h"

static void illegal(void *argument)
{
    fake_lock();
    fake_break(*(const unsigned *)argument, cudaErrorIllegalAddress);
    fake_unlock();
}

/* Replaces the addresses of matrices by those of their bytes. Returns true if all lie on the
   device. */
static bool resolve(unsigned device, const struct fake_matrix *matrices, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct fake_matrix *m = &matrices[i];
        if (!m->rows || !m->cols)
            continue;
        struct span span = {(uintptr_t)*m->address,
                            ((m->cols - 1) * m->ld + m->rows) * m->element_bytes};
        void *shadow = fake_shadow(device, span);
        if (!shadow) {
            (void)fprintf(stderr, "fake CUDA: a kernel for device %u is to touch %zu bytes at %p\n",
                          device, span.bytes, *m->address);
            return false;
        }
        *m->address = shadow;
    }
    return true;
}

/* Gives a computation to a stream; needs the lock. */
static void give(struct fake_stream *stream, void (*run)(void *argument), void *argument,
                 size_t bytes, bool resolved)
{
    fake_state()->stats.kernels++;
    if (resolved)
        fake_give(stream, fake_command(run, argument, bytes));
    else
        fake_give(stream, fake_command(illegal, &stream->device, sizeof stream->device));
}

cudaError_t fake_compute(const struct fake_library *library, void (*run)(void *argument),
                         void *argument, size_t bytes, const struct fake_matrix *matrices,
                         size_t count)
{
    struct fake_stream *stream;
    fake_lock();
    cudaError_t error = fake_stream_of(library->stream, &stream);
    if (!error && (stream->device != library->device || fake_device() != library->device))
        error = cudaErrorInvalidResourceHandle;
    if (!error)
        give(stream, run, argument, bytes, resolve(library->device, matrices, count));
    return fake_leave(error);
}

enum { JACOBI_BUFFERS = 10 };

static void jacobi2d(void *argument)
{
    const struct duet_call call = {.buffers = argument, .buffer_count = JACOBI_BUFFERS};
    (void)duet__kernel_jacobi2d(&call);
}

int duet__cuda_jacobi2d(const struct duet_buffer *buffers, void *stream)
{
    struct duet_buffer real[JACOBI_BUFFERS];
    struct fake_matrix matrices[JACOBI_BUFFERS];
    memcpy(real, buffers, sizeof real);
    for (size_t i = 0; i < JACOBI_BUFFERS; i++)
        matrices[i] = (struct fake_matrix){&real[i].data, real[i].rows, real[i].cols, real[i].ld,
                                           real[i].element_bytes};
    fake_lock();
    struct fake_library library = {fake_device(), stream};
    fake_unlock();
    return (int)fake_compute(&library, jacobi2d, real, sizeof real, matrices, JACOBI_BUFFERS);
}

static void empty(void *argument)
{
}

int duet__cuda_launch_empty(void *stream)
{
    return fake_cuda_launch(stream, empty, NULL, 0);
}

/* ------------------------------------------------------------------------------------------- */
/* Kernels of tests                                                                             */

struct task {
    struct testing_gpu_work *work;
    void (*on_host)(struct testing_gpu_work *work);
};

static void compute(void *argument)
{
    const struct task *task = argument;
    task->on_host(task->work);
}

int testing_gpu_compute(void *stream, struct testing_gpu_work *work,
                        void (*on_host)(struct testing_gpu_work *work))
{
    struct task task = {work, on_host};
    struct fake_matrix matrices[TESTING_GPU_BUFFERS];
    for (size_t i = 0; i < work->count; i++) {
        struct duet_buffer *buffer = &work->buffers[i];
        matrices[i] = (struct fake_matrix){&buffer->data, buffer->rows, buffer->cols, buffer->ld,
                                           buffer->element_bytes};
    }
    fake_lock();
    const struct fake_library library = {fake_device(), stream};
    fake_unlock();
    return (int)fake_compute(&library, compute, &task, sizeof task, matrices, work->count);
}

struct gate {
    _Atomic(bool) *waiting, *go;
};

static void wait_for(void *argument)
{
    const struct gate *gate = argument;
    *gate->waiting = true;
    while (!*gate->go)
        (void)sched_yield();
}

int testing_gpu_wait(void *stream, void *waiting, void *go)
{
    const struct gate gate = {(_Atomic(bool) *)waiting, (_Atomic(bool) *)go};
    return fake_cuda_launch(stream, wait_for, &gate, sizeof gate);
}
