/* SPDX-License-Identifier: Apache-2.0 */
/* Handles of cuBLAS and cuSOLVER: one for each stream, and spare ones for threads to come. */
#include "workloads/kernels_cuda_handles.h"

#include <pthread.h>
#include <stdlib.h>

enum { ALIGNMENT = 256 /* of addresses from cudaMalloc */, MIB = 1 << 20 };

/* Handles of a stream, in the list of its thread or among the spare ones. */
struct owned {
    struct duet__cuda_handles handles; /* first member */
    int device;
    void *workspace; /* device memory; NULL: none yet */
    size_t workspace_bytes;
    struct owned *next;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* of a thread's list of struct owned */
static int key_error;     /* error of making the key; 0: it is made */
static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;
static struct owned *spare; /* handles of ended threads, for all devices */

/* Called when a thread ends. Its device's streams are closed, so none of its work is in flight. */
static void handles_leave(void *list)
{
    pthread_mutex_lock(&spare_lock);
    while (list) {
        struct owned *first = list;
        list = first->next;
        first->next = spare;
        spare = first;
    }
    pthread_mutex_unlock(&spare_lock);
}

static void make_key(void)
{
    key_error = pthread_key_create(&key, handles_leave);
}

/* Takes spare handles of a device; NULL if there are none. */
static struct owned *spare_take(int device)
{
    pthread_mutex_lock(&spare_lock);
    struct owned **at = &spare;
    while (*at && (*at)->device != device)
        at = &(*at)->next;
    struct owned *owned = *at;
    if (owned)
        *at = owned->next;
    pthread_mutex_unlock(&spare_lock);
    return owned;
}

size_t duet__cuda_handles_spare(void)
{
    size_t count = 0;
    pthread_mutex_lock(&spare_lock);
    for (const struct owned *owned = spare; owned; owned = owned->next)
        count++;
    pthread_mutex_unlock(&spare_lock);
    return count;
}

/* Makes new handles of the current device, with cuBLAS's; NULL with *error. */
static struct owned *handles_make(int device, int *error, struct duet_message *message)
{
    const struct duet__cuda_library *library = duet__cuda_library(message);
    *error = DUET_EABSENT;
    if (!library)
        return NULL;
    struct owned *owned = calloc(1, sizeof *owned);
    if (!owned) {
        *error = duet_fail(message, DUET_ENOMEM, "no memory for a handle of cuBLAS");
        return NULL;
    }
    owned->handles.library = library;
    owned->device = device;
    *error = duet__cublas_check(library, library->cublasCreate(&owned->handles.blas),
                                "cublasCreate", message);
    if (!*error)
        return owned;
    free(owned);
    return NULL;
}

/* Binds the handles to a stream, until another one has its address or the thread ends. */
static int bind_stream(struct duet__cuda_handles *handles, cudaStream_t stream,
                       unsigned long long id, struct duet_message *message)
{
    const struct duet__cuda_library *library = handles->library;
    handles->stream = stream;
    handles->stream_id = 0; /* bound to none: if this fails, the next call tries again */
    int error = duet__cublas_check(library, library->cublasSetStream(handles->blas, stream),
                                   "cublasSetStream", message);
    if (!error && handles->solver)
        error = duet__cusolver_check(library->cusolverDnSetStream(handles->solver, stream),
                                     "cusolverDnSetStream", message);
    if (!error)
        handles->stream_id = id;
    return error;
}

/* Gets handles for a stream that this thread has none for yet, at the head of its list. NULL with
 * *error. */
static struct owned *handles_acquire(struct owned *list, int device, cudaStream_t stream,
                                     unsigned long long id, int *error,
                                     struct duet_message *message)
{
    struct owned *owned = spare_take(device);
    if (!owned)
        owned = handles_make(device, error, message);
    if (!owned)
        return NULL;
    *error = bind_stream(&owned->handles, stream, id, message);
    owned->next = list;
    if (!*error && pthread_setspecific(key, owned))
        *error = duet_fail(message, DUET_ENOMEM, "no memory for what a thread keeps");
    if (!*error)
        return owned;
    owned->next = NULL;
    handles_leave(owned);
    return NULL;
}

int duet__cuda_handles(struct duet__cuda_handles **out, cudaStream_t stream,
                       struct duet_message *message)
{
    int device;
    unsigned long long id;
    pthread_once(&once, make_key);
    if (key_error)
        return duet_fail(message, DUET_ENOMEM, "no key for what a thread keeps");
    int error = duet__cudart_check(cudaGetDevice(&device), "cudaGetDevice", message);
    if (!error)
        error = duet__cudart_check(cudaStreamGetId(stream, &id), "cudaStreamGetId", message);
    if (error)
        return error;
    struct owned *list = pthread_getspecific(key), *owned = list;
    while (owned && (owned->handles.stream != stream || owned->device != device))
        owned = owned->next;
    if (!owned)
        owned = handles_acquire(list, device, stream, id, &error, message);
    else if (owned->handles.stream_id != id)
        error = bind_stream(&owned->handles, stream, id, message);
    if (owned)
        *out = &owned->handles;
    return error;
}

int duet__cuda_solver(struct duet__cuda_handles *handles, struct duet_message *message)
{
    const struct duet__cuda_library *library = handles->library;
    if (handles->solver)
        return 0;
    int error = duet__cusolver_check(library->cusolverDnCreate(&handles->solver),
                                     "cusolverDnCreate", message);
    if (error) {
        handles->solver = NULL;
        return error;
    }
    error = duet__cusolver_check(library->cusolverDnSetStream(handles->solver, handles->stream),
                                 "cusolverDnSetStream", message);
    if (error) { /* unbound, it would use the default stream */
        (void)library->cusolverDnDestroy(handles->solver);
        handles->solver = NULL;
    }
    return error;
}

/* Replaces the workspace by a larger one: the stream frees the old one after its last use. */
static int workspace_grow(struct owned *owned, size_t bytes, struct duet_message *message)
{
    void *memory = NULL;
    cudaStream_t stream = owned->handles.stream;
    int error =
        duet__cudart_check(cudaMallocAsync(&memory, bytes, stream), "cudaMallocAsync", message);
    if (error == DUET_ENOMEM)
        return duet_fail(message, error,
                         "cudaMallocAsync: cuSOLVER needs %zu MiB of the GPU's memory beside that "
                         "for data: lower --gpu-memory (DUET_GPU_MEMORY)",
                         (bytes + MIB - 1) / MIB);
    if (error)
        return error;
    if (owned->workspace)
        error =
            duet__cudart_check(cudaFreeAsync(owned->workspace, stream), "cudaFreeAsync", message);
    owned->workspace = memory;
    owned->workspace_bytes = bytes;
    return error;
}

int duet__cuda_workspace(struct duet__cuda_handles *handles, size_t bytes, void **out, int **info,
                         struct duet_message *message)
{
    struct owned *owned = (struct owned *)handles;
    size_t needed = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + ALIGNMENT;
    int error = needed > owned->workspace_bytes ? workspace_grow(owned, needed, message) : 0;
    if (error)
        return error;
    *out = owned->workspace;
    *info = (int *)((char *)owned->workspace + owned->workspace_bytes - ALIGNMENT);
    return 0;
}

/* ------------------------------------------------------------------------------------------- */
/* Errors of CUDA's runtime, cuBLAS and cuSOLVER by the names of the call and of the status     */

int duet__cublas_check(const struct duet__cuda_library *library, cublasStatus_t status,
                       const char *call, struct duet_message *message)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return 0;
    return duet_fail(message, status == CUBLAS_STATUS_ALLOC_FAILED ? DUET_ENOMEM : DUET_ETASK,
                     "%s: %s", call, library->cublasGetStatusName(status));
}

/* Names of statuses, for which cuSOLVER has no function. */
static const struct {
    cusolverStatus_t status;
    const char *name;
} names[] = {
#define NAME(status)                                                                               \
    {                                                                                              \
        status, #status                                                                            \
    }
    NAME(CUSOLVER_STATUS_NOT_INITIALIZED), NAME(CUSOLVER_STATUS_ALLOC_FAILED),
    NAME(CUSOLVER_STATUS_INVALID_VALUE),   NAME(CUSOLVER_STATUS_ARCH_MISMATCH),
    NAME(CUSOLVER_STATUS_MAPPING_ERROR),   NAME(CUSOLVER_STATUS_EXECUTION_FAILED),
    NAME(CUSOLVER_STATUS_INTERNAL_ERROR),  NAME(CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED),
    NAME(CUSOLVER_STATUS_NOT_SUPPORTED),   NAME(CUSOLVER_STATUS_ZERO_PIVOT),
    NAME(CUSOLVER_STATUS_INVALID_LICENSE), NAME(CUSOLVER_STATUS_INVALID_WORKSPACE),
};

int duet__cusolver_check(cusolverStatus_t status, const char *call, struct duet_message *message)
{
    if (status == CUSOLVER_STATUS_SUCCESS)
        return 0;
    int error = status == CUSOLVER_STATUS_ALLOC_FAILED ? DUET_ENOMEM : DUET_ETASK;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i].status == status)
            return duet_fail(message, error, "%s: %s", call, names[i].name);
    }
    return duet_fail(message, error, "%s: status %d of cuSOLVER", call, (int)status);
}

int duet__cudart_check(cudaError_t status, const char *call, struct duet_message *message)
{
    if (status == cudaSuccess)
        return 0;
    return duet_fail(message, status == cudaErrorMemoryAllocation ? DUET_ENOMEM : DUET_ETASK,
                     "%s: %s (%s)", call, cudaGetErrorString(status), cudaGetErrorName(status));
}
