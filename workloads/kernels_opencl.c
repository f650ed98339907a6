/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels on OpenCL's devices, each a call of CLBlast in the precision of its buffers. The
 * library is opened when one of them is first called.
 */

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <clblast_c.h>

#include <duet/opencl.h>

#include "workloads/kernels.h"
#include "workloads/tiles.h"

/* ------------------------------------------------------------------------------------------- */
/* The library                                                                                  */

/* X(name): the functions in use, as clblast_c.h declares them. */
#define FUNCTIONS(X)                                                                               \
    X(CLBlastSgemm)                                                                                \
    X(CLBlastDgemm)                                                                                \
    X(CLBlastSsyrk)                                                                                \
    X(CLBlastDsyrk)                                                                                \
    X(CLBlastStrsm)                                                                                \
    X(CLBlastDtrsm)                                                                                \
    X(CLBlastSaxpy)                                                                                \
    X(CLBlastDaxpy)

static const char file[] = "libclblast.so.1";

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct duet_message refused; /* reason why it is not open; "": it is */
static struct {
#define MEMBER(name) __typeof__(&name) name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} library;

/* Copies the address by memcpy: POSIX, but not C, lets a pointer to a function be one to data. */
static void find_function(void *opened, const char *name, void *function, size_t bytes)
{
    void *address = dlsym(opened, name);
    if (!address)
        duet_fail(&refused, 0, "%s lacks %s", file, name);
    memcpy(function, &address, bytes);
}

static void open_library(void)
{
    void *opened = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!opened) {
        duet_fail(&refused, 0, "%s cannot be opened (%s): install CLBlast", file, dlerror());
        return;
    }
#define FIND(name) find_function(opened, #name, &library.name, sizeof library.name);
    FUNCTIONS(FIND)
#undef FIND
}

int duet__opencl_about(struct duet_message *message)
{
    (void)pthread_once(&once, open_library);
    return refused.text[0] ? duet_fail(message, DUET_EABSENT, "%s", refused.text) : DUET_OK;
}

/* ------------------------------------------------------------------------------------------- */
/* Calls                                                                                        */

/* Place of a call: its queue, and each buffer's first element in the device's one object. */
struct place {
    cl_command_queue queue;
    cl_mem memory;
    size_t at[3];
    bool single, first;
};

/* Held until a first call has returned: CLBlast 1.5.3 fills its tables in it, and crashes if
 * another thread calls it meanwhile. */
static pthread_mutex_t first_call = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(bool) filled;

/* Begins a call, which is then to be made and ended. DUET_EABSENT with a message. */
static int call_begin(struct place *place, const struct duet_call *call)
{
    const struct duet_opencl *opencl = call->stream;
    *place = (struct place){.queue = opencl->queue,
                            .memory = opencl->memory,
                            .single = call->buffers[0].element_bytes == sizeof(float)};
    for (size_t i = 0; i < call->buffer_count && i < 3; i++)
        place->at[i] =
            duet_opencl_offset(opencl, &call->buffers[i]) / call->buffers[i].element_bytes;
    int error = duet__opencl_about(call->message);
    place->first = !error && !atomic_load(&filled);
    if (place->first)
        (void)pthread_mutex_lock(&first_call);
    return error;
}

/* Ends a call. Usual errors of CLBlast have numbers of their own; others are OpenCL's. */
static int call_end(const struct duet_call *call, const struct place *place, const char *name,
                    CLBlastStatusCode status)
{
    if (place->first) {
        atomic_store(&filled, true);
        (void)pthread_mutex_unlock(&first_call);
    }
    switch (status) {
    case CLBlastSuccess:
        return DUET_OK;
    case CLBlastNoDoublePrecision:
        return duet_fail(call->message, DUET_ETASK, "%s: the device has no double precision", name);
    case CLBlastTempBufferAllocFailure:
    case CLBlastOpenCLOutOfResources:
    case CLBlastOpenCLOutOfHostMemory:
        return duet_fail(call->message, DUET_ENOMEM, "%s: no memory left on the device (%d)", name,
                         (int)status);
    default:
        return duet_fail(call->message, DUET_ETASK, "%s: error %d of CLBlast", name, (int)status);
    }
}

/* Column-major, as in BLAS. */
static const CLBlastLayout columns = CLBlastLayoutColMajor;

/* Calls a routine of CLBlast in the precision of the place. */
#define ROUTINE(place, name, ...)                                                                  \
    ((place)->single ? library.CLBlastS##name(__VA_ARGS__) : library.CLBlastD##name(__VA_ARGS__))

/* Runs a kernel that is one routine of CLBlast, and ends its call. */
#define CALL(call, place, name, ...)                                                               \
    call_end(call, place, (place)->single ? "CLBlastS" #name : "CLBlastD" #name,                   \
             ROUTINE(place, name, __VA_ARGS__))

static int gemm(const struct duet_call *call)
{
    const struct duet__tile_args *args = call->args;
    const struct duet_buffer *a = &call->buffers[0], *b = &call->buffers[1], *c = &call->buffers[2];
    CLBlastTranspose trans =
        args->form & DUET__TRANSPOSED ? CLBlastTransposeYes : CLBlastTransposeNo;
    const float alpha = args->form & DUET__MINUS ? -1 : 1;
    struct place p;
    int error = call_begin(&p, call);
    if (error)
        return error;
    return CALL(call, &p, gemm, columns, CLBlastTransposeNo, trans, c->rows, c->cols, a->cols,
                alpha, p.memory, p.at[0], a->ld, p.memory, p.at[1], b->ld, 1, p.memory, p.at[2],
                c->ld, &p.queue, NULL);
}

static int syrk(const struct duet_call *call)
{
    const struct duet_buffer *a = &call->buffers[0], *c = &call->buffers[1];
    struct place p;
    int error = call_begin(&p, call);
    if (error)
        return error;
    return CALL(call, &p, syrk, columns, CLBlastTriangleLower, CLBlastTransposeNo, c->rows, a->cols,
                -1, p.memory, p.at[0], a->ld, 1, p.memory, p.at[1], c->ld, &p.queue, NULL);
}

/* A triangular matrix in BLAS's words. */
struct triangle {
    CLBlastSide side;
    CLBlastTriangle triangle;
    CLBlastTranspose trans;
    CLBlastDiagonal diagonal;
};

/* Copies B between the device's one object and `own`, where its columns have no gaps. */
static cl_int copy_own(const struct place *p, const struct duet_buffer *b, cl_mem own, bool back)
{
    const size_t there[3] = {p->at[1] * b->element_bytes, 0, 0}, here[3] = {0, 0, 0};
    const size_t pitch = b->ld * b->element_bytes, own_pitch = b->rows * b->element_bytes;
    const size_t region[3] = {own_pitch, b->cols, 1};
    return back ? clEnqueueCopyBufferRect(p->queue, own, p->memory, here, there, region, own_pitch,
                                          0, pitch, 0, 0, NULL, NULL)
                : clEnqueueCopyBufferRect(p->queue, p->memory, own, there, here, region, pitch, 0,
                                          own_pitch, 0, 0, NULL, NULL);
}

/* Solves on a copy of B. Returns a status of CLBlast, which may be an error of OpenCL. */
static CLBlastStatusCode solve_own(const struct place *p, const struct duet_buffer *t,
                                   const struct duet_buffer *b, struct triangle kind, cl_mem own)
{
    cl_command_queue queue = p->queue;
    cl_int error = copy_own(p, b, own, false);
    if (!error)
        error =
            ROUTINE(p, trsm, columns, kind.side, kind.triangle, kind.trans, kind.diagonal, b->rows,
                    b->cols, 1, p->memory, p->at[0], t->ld, own, 0, b->rows, &queue, NULL);
    return (CLBlastStatusCode)(error ? error : copy_own(p, b, own, true));
}

/* B := B T^-1 or T^-1 B, in an object of its own: CLBlast (1.5.3) copies all of B's object up to
 * the end of B away and back, and would undo concurrent writes to other tiles. */
static int solve(const struct duet_call *call, struct triangle kind)
{
    const struct duet_opencl *opencl = call->stream;
    const struct duet_buffer *t = &call->buffers[0], *b = &call->buffers[1];
    const size_t bytes = b->rows * b->cols * b->element_bytes;
    struct place p;
    cl_int status;
    int error = call_begin(&p, call);
    if (error)
        return error;
    cl_mem own = clCreateBuffer(opencl->context, CL_MEM_READ_WRITE, bytes, NULL, &status);
    if (status)
        return call_end(call, &p, "clCreateBuffer", (CLBlastStatusCode)status);
    error = call_end(call, &p, "CLBlastXtrsm", solve_own(&p, t, b, kind, own));
    (void)clReleaseMemObject(own); /* freed after the enqueued work */
    return error;
}

static int trsm(const struct duet_call *call)
{
    return solve(call, (struct triangle){CLBlastSideRight, CLBlastTriangleLower,
                                         CLBlastTransposeYes, CLBlastDiagonalNonUnit});
}

static int trsm_l(const struct duet_call *call)
{
    return solve(call, (struct triangle){CLBlastSideLeft, CLBlastTriangleLower, CLBlastTransposeNo,
                                         CLBlastDiagonalUnit});
}

static int trsm_r(const struct duet_call *call)
{
    return solve(call, (struct triangle){CLBlastSideRight, CLBlastTriangleUpper, CLBlastTransposeNo,
                                         CLBlastDiagonalNonUnit});
}

static int axpy(const struct duet_call *call)
{
    const struct duet__axpy_args *args = call->args;
    size_t count = call->buffers[1].rows;
    struct place p;
    int error = call_begin(&p, call);
    if (error)
        return error;
    return CALL(call, &p, axpy, count, args->alpha, p.memory, p.at[0], 1, p.memory, p.at[1], 1,
                &p.queue, NULL);
}

/* ------------------------------------------------------------------------------------------- */

static const struct duet__kernel kernels[] = {
    {"gemm", gemm},     {"syrk", syrk}, {"trsm", trsm}, {"trsm_l", trsm_l},
    {"trsm_r", trsm_r}, {"axpy", axpy}, {NULL, NULL},
};

duet_kernel_fn duet__opencl_kernel(const char *base)
{
    return duet__kernel_in(kernels, base);
}
