/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Support for tests of backends: an engine's side of one (clock, machine, notification), and
 * waiting for completions in the way that the backend asks for.
 */
#ifndef DUET_BACKENDS_TESTING_H
#define DUET_BACKENDS_TESTING_H

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <glib.h>

#include "backends/backend.h"
#include "backends/cuda/testing_gpu.h"
#include "backends/cuda/testing_kernels.h"
#include "backends/opencl/testing_kernels.h"

enum {
    TESTING_NODES = 3,
    TESTING_BYTES = 1 << 20, /* bytes of a slab */
    TESTING_WATCHDOG_S = 600,
};

/* A backend in use by a test. */
struct testing {
    const struct duet__backend *backend;
    struct duet_machine machine;
    void *shared;
};

/* A device in use, and whom it notifies. */
struct testing_device {
    struct testing *testing;
    struct backend_device *device;
    unsigned char *base;
    unsigned node;
    pthread_mutex_t mutex;
    pthread_cond_t notified;
    uint64_t notices; /* with the mutex */
    bool closed;      /* no notice may come any more */
};

static inline double testing_now(void *clock)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Every node is one link away from every other. */
static inline void testing_machine(struct duet_machine *machine)
{
    g_assert_cmpint(duet_machine_init(machine, 1, TESTING_NODES, 1, 1), ==, DUET_OK);
    machine->links[0].bandwidth_Bps = 1e9;
    for (unsigned i = 0; i < TESTING_NODES * TESTING_NODES; i++) {
        machine->routes[i].direct = i / TESTING_NODES != i % TESTING_NODES;
        machine->routes[i].count = 1;
        machine->routes[i].bandwidth_Bps = 1e9;
    }
}

/* Attaches the backend, free, with a real clock and so much memory to page-lock. */
static inline void testing_init_pinning(struct testing *t, const struct duet__backend *backend,
                                        uint64_t pin_bytes)
{
    memset(t, 0, sizeof *t);
    t->backend = backend;
    testing_machine(&t->machine);
    struct backend_setup setup = {.machine = &t->machine,
                                  .now = testing_now,
                                  .pin_bytes = pin_bytes};
    WORKS(backend->attach(&t->shared, &setup, hear()));
}

static inline void testing_init(struct testing *t, const struct duet__backend *backend)
{
    testing_init_pinning(t, backend, 0);
}

static inline void testing_fini(struct testing *t)
{
    t->backend->detach(t->shared);
    duet_machine_fini(&t->machine);
}

static inline void testing_notify(void *owner)
{
    struct testing_device *device = owner;
    (void)pthread_mutex_lock(&device->mutex);
    g_assert_false(device->closed);
    device->notices++;
    (void)pthread_cond_broadcast(&device->notified);
    (void)pthread_mutex_unlock(&device->mutex);
}

/* Opens device `index` as node index + 1; config.notify and owner are set here. */
static inline void testing_open_as(struct testing_device *d, struct testing *t,
                                   struct backend_config config)
{
    memset(d, 0, sizeof *d);
    d->testing = t;
    d->node = config.node;
    (void)pthread_mutex_init(&d->mutex, NULL);
    (void)pthread_cond_init(&d->notified, NULL);
    config.notify = testing_notify;
    config.owner = d;
    WORKS(t->backend->open(&d->device, t->shared, &config, hear()));
    if (!t->backend->execute)
        d->base = backend_base(d->device);
}

static inline void testing_open(struct testing_device *d, struct testing *t, unsigned index)
{
    testing_open_as(d, t,
                    (struct backend_config){.index = index,
                                            .node = t->backend->execute ? DUET_HOST : index + 1,
                                            .capacity_bytes =
                                                t->backend->execute ? 0 : TESTING_BYTES});
}

static inline void testing_close(struct testing_device *d)
{
    d->testing->backend->close(d->device);
    (void)pthread_mutex_lock(&d->mutex);
    d->closed = true;
    (void)pthread_mutex_unlock(&d->mutex);
    (void)pthread_cond_destroy(&d->notified);
    (void)pthread_mutex_destroy(&d->mutex);
}

/* Until there has been another notice than `seen`; a date on CLOCK_REALTIME ends the patience. */
static inline void testing_await(struct testing_device *d, uint64_t seen)
{
    struct timespec until;
    int error = 0;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += TESTING_WATCHDOG_S;
    (void)pthread_mutex_lock(&d->mutex);
    while (d->notices == seen && error != ETIMEDOUT)
        error = pthread_cond_timedwait(&d->notified, &d->mutex, &until);
    if (d->notices == seen)
        g_error("nothing was notified for %d s", TESTING_WATCHDOG_S);
    (void)pthread_mutex_unlock(&d->mutex);
}

static inline uint64_t testing_notices(struct testing_device *d)
{
    (void)pthread_mutex_lock(&d->mutex);
    uint64_t notices = d->notices;
    (void)pthread_mutex_unlock(&d->mutex);
    return notices;
}

/* Polls until there are `count` completions, at most `step` at a time, as an engine would. */
static inline void testing_collect_by(struct testing_device *d, struct backend_completion *out,
                                      size_t count, size_t step)
{
    const struct duet__backend *backend = d->testing->backend;
    double begun = testing_now(NULL);
    size_t got = 0;
    while (got < count) {
        uint64_t seen = testing_notices(d);
        size_t now = backend->poll(d->device, out + got, MIN(step, count - got));
        g_assert_cmpuint(now, <=, MIN(step, count - got));
        got += now;
        if (now || got == count)
            continue;
        if (testing_now(NULL) - begun > TESTING_WATCHDOG_S)
            g_error("%zu of %zu completions after %d s", got, count, TESTING_WATCHDOG_S);
        if (backend->next_s && isinf(backend->next_s(d->device)))
            testing_await(d, seen);
        else
            (void)sched_yield();
    }
}

static inline void testing_collect(struct testing_device *d, struct backend_completion *out,
                                   size_t count)
{
    testing_collect_by(d, out, count, count);
}

/* Waits for one completion, which must be a success. */
static inline void testing_finish(struct testing_device *d, const void *tag)
{
    struct backend_completion done;
    testing_collect(d, &done, 1);
    g_assert_true(done.tag == tag);
    g_assert_cmpint(done.status, ==, DUET_OK);
}

/* A dense copy of `bytes` from or to the host. The tag is the address of the device's end. */
static inline struct backend_copy testing_in(const struct testing_device *d, size_t offset,
                                             const void *source, size_t bytes)
{
    return (struct backend_copy){.tag = d->base + offset,
                                 .stream = BACKEND_IN,
                                 .destination = d->base + offset,
                                 .source = source,
                                 .column_bytes = bytes,
                                 .cols = 1,
                                 .destination_pitch = bytes,
                                 .source_pitch = bytes,
                                 .source_node = DUET_HOST,
                                 .destination_node = d->node};
}

static inline struct backend_copy testing_out(const struct testing_device *d, size_t offset,
                                              void *destination, size_t bytes)
{
    return (struct backend_copy){.tag = d->base + offset,
                                 .stream = BACKEND_OUT,
                                 .destination = destination,
                                 .source = d->base + offset,
                                 .column_bytes = bytes,
                                 .cols = 1,
                                 .destination_pitch = bytes,
                                 .source_pitch = bytes,
                                 .source_node = d->node,
                                 .destination_node = DUET_HOST};
}

/* Gives a copy to the device, which must take it. */
static inline void testing_copy(struct testing_device *d, struct backend_copy copy)
{
    const struct duet__backend *backend = d->testing->backend;
    int error = backend->copy(d->device, &copy);
    const char *why = error ? backend_why(d->device) : NULL;
    if (error)
        g_error("copy: %d (%s)", error, why ? why : "no reason");
}

static inline void testing_launch(struct testing_device *d, void *tag, duet_kernel_fn run,
                                  struct duet_call *call)
{
    struct backend_kernel kernel = {.tag = tag, .run = run, .call = call};
    g_assert_cmpint(d->testing->backend->launch(d->device, &kernel), ==, DUET_OK);
}

/* Copies and waits. Nothing else may be in flight. */
static inline void testing_write(struct testing_device *d, size_t offset, const void *source,
                                 size_t bytes)
{
    testing_copy(d, testing_in(d, offset, source, bytes));
    testing_finish(d, d->base + offset);
}

static inline void testing_read(struct testing_device *d, size_t offset, void *destination,
                                size_t bytes)
{
    testing_copy(d, testing_out(d, offset, destination, bytes));
    testing_finish(d, d->base + offset);
}

/* Both at once: the first device of a backend. */
/* The first device of a backend, in use by nobody else, for OWNED(testing_stop). */
static inline struct testing_device *testing_start(const struct duet__backend *backend)
{
    struct testing_device *d = g_new(struct testing_device, 1);
    struct testing *t = g_new(struct testing, 1);
    testing_init(t, backend);
    testing_open(d, t, 0);
    return d;
}

static inline void testing_stop(struct testing_device **d)
{
    g_autofree struct testing *t = (*d)->testing;
    testing_close(*d);
    testing_fini(t);
    g_free(*d);
}

static inline bool testing_absent(const struct duet__backend *backend, unsigned devices)
{
    struct duet_message why = {""};
    unsigned count = backend->count(&why);
    bool able = !count || strcmp(backend->name, "opencl") != 0 || testing_opencl_devices() > 0;
    if (!able)
        (void)duet_fail(&why, 0, "devices of OpenCL without native kernels");
    if (count >= devices && able)
        return false;
    if (count == 0)
        g_assert_cmpstr(why.text, !=, "");
    g_test_skip(*why.text ? why.text : "too few devices");
    return true;
}

/* ------------------------------------------------------------------------------------------- */
/* Kernels                                                                                      */

/* Arguments and results of a test kernel. */
struct testing_probe {
    int status;            /* to return */
    _Atomic(unsigned) ran; /* how often */
    _Atomic(bool) waiting; /* it is running and waits ... */
    _Atomic(bool) go;      /* ... for this */
    bool stream;           /* it was given one */
};

struct testing_argument {
    struct testing_probe *probe;
};

static inline int testing_probe_body(const void *args, unsigned char *bytes, size_t count)
{
    const struct testing_argument *argument = args;
    argument->probe->ran++;
    return argument->probe->status;
}

static inline int testing_blocking_body(const void *args, unsigned char *bytes, size_t count)
{
    const struct testing_argument *argument = args;
    argument->probe->waiting = true;
    while (!argument->probe->go)
        (void)sched_yield();
    argument->probe->ran++;
    return DUET_OK;
}

/* Adds 1 to every byte. */
static inline int testing_add_body(const void *args, unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bytes[i]++;
    return DUET_OK;
}

/* The kernels of devices whose memory the host reaches, of CUDA's and of OpenCL's. */

static inline void testing_see_stream(const struct duet_call *call)
{
    const struct testing_argument *argument = call->args;
    argument->probe->stream = call->stream != NULL;
}

static inline int testing_probe_kernel(const struct duet_call *call)
{
    testing_see_stream(call);
    return testing_probe_body(call->args, NULL, 0);
}

static inline int testing_probe_cuda(const struct duet_call *call)
{
    testing_see_stream(call);
    return testing_cuda_call(call, testing_probe_body);
}

static inline int testing_probe_opencl(const struct duet_call *call)
{
    testing_see_stream(call);
    return testing_opencl_call(call, testing_probe_body);
}

static inline int testing_blocking_kernel(const struct duet_call *call)
{
    return testing_blocking_body(call->args, NULL, 0);
}

static inline int testing_ran_body(const void *args, unsigned char *bytes, size_t count)
{
    const struct testing_argument *argument = args;
    argument->probe->ran++;
    return DUET_OK;
}

static inline int testing_blocking_cuda(const struct duet_call *call)
{
    struct testing_probe *probe = ((const struct testing_argument *)call->args)->probe;
    int error = testing_gpu_wait(call->stream, &probe->waiting, &probe->go);
    return error ? DUET_ETASK : testing_cuda_call(call, testing_ran_body);
}

/* A probe for a kernel that blocks, one at a time: where kernels of the backend reach it. */
static inline struct testing_probe *testing_blocked(const struct duet__backend *backend)
{
    static struct testing_probe ordinary;
    struct testing_probe *probe =
        strcmp(backend->name, "cuda") != 0 ? &ordinary : testing_cuda_shared();
    memset(probe, 0, sizeof *probe);
    return probe;
}

static inline int testing_blocking_opencl(const struct duet_call *call)
{
    return testing_opencl_call(call, testing_blocking_body);
}

static inline int testing_add_kernel(const struct duet_call *call)
{
    const struct duet_buffer *buffer = &call->buffers[0];
    return testing_add_body(NULL, buffer->data, buffer->rows);
}

static inline int testing_add_cuda(const struct duet_call *call)
{
    return testing_cuda_call(call, testing_add_body);
}

static inline int testing_add_opencl(const struct duet_call *call)
{
    return testing_opencl_call(call, testing_add_body);
}

/* Fails by what the stream leaves in the call's status, not by its result. */
static inline int testing_status_kernel(const struct duet_call *call)
{
    *call->status = testing_probe_kernel(call);
    return DUET_OK;
}

/* The tests' kernels for one backend, or NULL where they do not work. */
struct testing_kernels {
    duet_kernel_fn probe, blocking, add, status;
};

static inline const struct testing_kernels *testing_kernels(const struct duet__backend *backend)
{
    static const struct testing_kernels cuda = {testing_probe_cuda, testing_blocking_cuda,
                                                testing_add_cuda, testing_probe_cuda};
    static const struct testing_kernels host = {testing_probe_kernel, testing_blocking_kernel,
                                                testing_add_kernel, testing_status_kernel};
    static const struct testing_kernels opencl = {testing_probe_opencl, testing_blocking_opencl,
                                                  testing_add_opencl, testing_probe_opencl};
    if (!strcmp(backend->name, "cuda"))
        return &cuda;
    if (!strcmp(backend->name, "opencl"))
        return &opencl;
    return !strcmp(backend->name, "emulated") || backend->execute ? &host : NULL;
}

/* Before and after all tests with kernels of devices that need it. */
static inline void testing_kernels_start(void)
{
    const struct duet__backend *cuda = duet__backend_find("cuda");
    if (cuda && cuda->count(NULL))
        g_assert_cmpint(testing_cuda_start(), ==, DUET_OK);
}

static inline void testing_kernels_stop(void)
{
    const struct duet__backend *cuda = duet__backend_find("cuda");
    if (cuda && cuda->count(NULL))
        testing_cuda_stop();
}

/* A test of every backend, or of those with (or without) streams, that have so many devices. */
struct testing_test {
    const char *name;
    GTestDataFunc test; /* test of the backend */
    enum { TESTING_STREAMS, TESTING_EXECUTE, TESTING_ANY } of;
    unsigned devices;
};

struct testing_case {
    const struct testing_test *test;
    const struct duet__backend *backend;
};

static inline void testing_try(const void *data)
{
    const struct testing_case *c = data;
    if (!c->test->devices || !testing_absent(c->backend, c->test->devices))
        c->test->test(c->backend);
}

/*
 * Runs the tests, whose list ends without a name, on each backend: "/backends/PREFIX/cuda/NAME".
 * With the fake CUDA on that alone: the program without it has the others, which are the same.
 */
static inline int testing_run(int argc, char **argv, const char *prefix,
                              const struct testing_test *tests)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; duet__backend_at(i); i++) {
        const struct duet__backend *backend = duet__backend_at(i);
        if (g_str_has_suffix(argv[0], "_fake") && strcmp(backend->name, "cuda") != 0)
            continue;
        for (const struct testing_test *test = tests; test->name; test++) {
            char path[128];
            struct testing_case c = {test, backend};
            g_snprintf(path, sizeof path, "/backends/%s%s/%s", prefix, backend->name, test->name);
            if (test->of == TESTING_ANY ||
                (test->of == TESTING_EXECUTE) == (backend->execute != NULL))
                g_test_add_data_func_full(path, g_memdup2(&c, sizeof c), testing_try, g_free);
        }
    }
    testing_kernels_start();
    int result = g_test_run();
    testing_kernels_stop();
    return result;
}

static inline struct duet_buffer testing_buffer(const struct testing_device *d, size_t offset,
                                                size_t bytes)
{
    return (struct duet_buffer){.data = d->base + offset,
                                .rows = bytes,
                                .cols = 1,
                                .ld = bytes,
                                .element_bytes = 1};
}

#endif
