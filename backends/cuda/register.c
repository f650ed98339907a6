/* SPDX-License-Identifier: Apache-2.0 */
/* Page-locking on a working device, whatever device is current on the calling thread. */
#include "backends/cuda/register.h"

#include <pthread.h>

struct request {
    void *begin;
    size_t bytes; /* 0: unregister */
    int device;
    bool failed;
    struct failure *failure;
};

static bool call_cuda(const struct request *request)
{
    if (!request->bytes)
        return duet__cuda_failed(request->failure, "cudaHostUnregister",
                                 cudaHostUnregister(request->begin));
    /* portable: page-locked for every device, not only the one current on this thread */
    return duet__cuda_failed(request->failure, "cudaHostRegister",
                             cudaHostRegister(request->begin, request->bytes,
                                              cudaHostRegisterPortable));
}

static void *call_aside(void *argument)
{
    struct request *request = argument;
    request->failed =
        duet__cuda_failed(request->failure, "cudaSetDevice", cudaSetDevice(request->device)) ||
        call_cuda(request);
    return NULL;
}

/* Makes the call with `device` current, on a thread of its own if another one is. */
static bool call_on(struct request *request, int device, int current)
{
    pthread_t thread;
    request->device = device;
    if (device < 0 || device == current || pthread_create(&thread, NULL, call_aside, request))
        return call_cuda(request);
    (void)pthread_join(thread, NULL);
    return request->failed;
}

static bool make_request(const struct registrar *registrar, struct request *request)
{
    int current = -1;
    if (!registrar->device)
        return call_cuda(request);
    duet__cuda_ignore(cudaGetDevice(&current));
    int device = registrar->device(registrar->context, current, -1);
    if (device == REGISTER_NEVER) { /* registrations stay */
        *request->failure = (struct failure){"cudaHostRegister", cudaErrorDevicesUnavailable};
        return request->bytes > 0;
    }
    bool failed = call_on(request, device, current);
    while (failed && device >= 0 && duet__cuda_fate(request->failure->error) != FATE_REFUSED) {
        device = registrar->device(registrar->context, current, device);
        if (device >= 0)
            failed = call_on(request, device, current);
    }
    return failed;
}

bool duet__cuda_register(const struct registrar *registrar, void *begin, size_t bytes,
                         struct failure *failure)
{
    struct request request = {.begin = begin, .bytes = bytes, .failure = failure};
    return make_request(registrar, &request);
}

bool duet__cuda_unregister(const struct registrar *registrar, void *begin, struct failure *failure)
{
    struct request request = {.begin = begin, .failure = failure};
    return make_request(registrar, &request);
}
