/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Behaviour of the OpenCL backend beyond the conformance suite: copies in many pieces, errors that
 * a queue finds, and a lost device.
 */
#include "backends/opencl/internal.h"
#include "backends/testing.h"

#include <duet/random.h>

static const struct duet__backend *opencl(void)
{
    return duet__backend_find("opencl");
}

/* The kernel is given what is documented. */
static int look_at_view(const struct duet_call *call)
{
    const struct duet_opencl *view = call->stream;
    cl_context context = NULL;
    cl_device_id device = NULL;
    size_t bytes = 0;
    g_assert_cmpuint(duet_opencl_offset(view, &call->buffers[0]), ==, 512);
    (void)clGetCommandQueueInfo(view->queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
    (void)clGetCommandQueueInfo(view->queue, CL_QUEUE_DEVICE, sizeof device, &device, NULL);
    (void)clGetMemObjectInfo(view->memory, CL_MEM_SIZE, sizeof bytes, &bytes, NULL);
    g_assert_true(context == view->context && device == view->device);
    g_assert_cmpuint(bytes, ==, TESTING_BYTES);
    return DUET_OK;
}

static void test_view(void)
{
    if (testing_absent(opencl(), 1))
        return;
    OWNED(testing_stop) struct testing_device *d = testing_start(opencl());
    struct duet_buffer buffer = testing_buffer(d, 512, 100);
    struct duet_call call = {.buffers = &buffer, .buffer_count = 1};
    testing_launch(d, &call, look_at_view, &call);
    testing_finish(d, &call);
}

/* Buffers of a few bytes: every copy is cut, also within columns, and many are on their way. */
static void test_pieces(void)
{
    enum { COUNT = 40, ROOM = 1 << 14 };
    struct testing t;
    struct testing_device d;
    static unsigned char from[COUNT][ROOM], to[COUNT][ROOM];
    struct backend_copy copies[COUNT];
    struct backend_completion done[COUNT];
    uint64_t random = 11;
    if (testing_absent(opencl(), 1))
        return;
    testing_init(&t, opencl());
    ((struct opencl *)t.shared)->staging_bytes = 100;
    testing_open(&d, &t, 0);
    for (unsigned i = 0; i < COUNT; i++) {
        size_t bytes = 1 + duet_random_below(&random, 300);
        for (unsigned k = 0; k < ROOM; k++)
            from[i][k] = (unsigned char)duet_random_next(&random);
        copies[i] = testing_in(&d, (size_t)i * ROOM, from[i], bytes);
        copies[i].cols = duet_random_below(&random, 20);
        copies[i].source_pitch = bytes + duet_random_below(&random, 2) * 5;
        copies[i].destination_pitch = bytes + duet_random_below(&random, 2) * 9;
        testing_copy(&d, copies[i]);
    }
    testing_collect(&d, done, COUNT);
    memset(to, 0xa5, sizeof to);
    for (unsigned i = 0; i < COUNT; i++) {
        g_assert_true(done[i].tag == copies[i].tag && !done[i].status);
        struct backend_copy out = testing_out(&d, (size_t)i * ROOM, to[i], copies[i].column_bytes);
        out.cols = copies[i].cols;
        out.source_pitch = copies[i].destination_pitch;
        out.destination_pitch = copies[i].source_pitch;
        testing_copy(&d, out);
    }
    testing_collect(&d, done, COUNT);
    for (unsigned i = 0; i < COUNT; i++)
        for (size_t k = 0; k < ROOM; k++) {
            size_t pitch = copies[i].source_pitch;
            bool in = k / pitch < copies[i].cols && k % pitch < copies[i].column_bytes;
            g_assert_cmpuint(to[i][k], ==, in ? from[i][k] : 0xa5);
        }
    testing_close(&d);
    testing_fini(&t);
}

/* Memory outside the slab is refused. */
static void test_outside(void)
{
    unsigned char host[64];
    if (testing_absent(opencl(), 1))
        return;
    OWNED(testing_stop) struct testing_device *d = testing_start(opencl());
    struct backend_copy in = testing_in(d, TESTING_BYTES - 63, host, 64);
    struct backend_copy out = testing_out(d, 0, host, 64);
    out.source = d->base - 1;
    g_assert_cmpint(d->testing->backend->copy(d->device, &in), ==, DUET_EINVAL);
    g_assert_cmpint(d->testing->backend->copy(d->device, &out), ==, DUET_EINVAL);
}

/* An error in an event is one of its command. (pocl 3.1 aborts where others wait for that event.)
 */
static void test_ended(void)
{
    struct failure failure;
    char text[FAILURE_TEXT];
    cl_int error;
    if (testing_absent(opencl(), 1))
        return;
    OWNED(testing_stop) struct testing_device *d = testing_start(opencl());
    cl_event event = clCreateUserEvent(d->device->context, &error);
    g_assert_cmpint(error, ==, CL_SUCCESS);
    g_assert_false(duet__opencl_ended(event, "a kernel", &failure));
    g_assert_null(failure.call);
    g_assert_cmpint(clSetUserEventStatus(event, CL_OUT_OF_RESOURCES), ==, CL_SUCCESS);
    g_assert_true(duet__opencl_ended(event, "a kernel", &failure));
    g_assert_cmpstr(duet__opencl_text(text, &failure), ==, "a kernel: CL_OUT_OF_RESOURCES (-5)");
    g_assert_cmpint(duet__opencl_status(failure.error, DUET_EIO), ==, DUET_ENOMEM);
    g_assert_cmpint(duet__opencl_status(CL_INVALID_VALUE, DUET_EIO), ==, DUET_EIO);
    (void)clReleaseEvent(event);
}

/* A kernel and a copy that fail say so, and what is behind them goes on. */
static void test_failures(void)
{
    struct testing_probe blocked = {.status = 0}, probe = {.status = 0};
    struct testing_argument args[2] = {{&blocked}, {&probe}};
    struct duet_call calls[2] = {{.args = &args[0]}, {.args = &args[1]}};
    const struct failure failure = {.call = "clSomething", .error = CL_INVALID_OPERATION};
    struct backend_completion done[2];
    unsigned char host[64] = {0};
    if (testing_absent(opencl(), 1))
        return;
    OWNED(testing_stop) struct testing_device *d = testing_start(opencl());
    testing_launch(d, &calls[0], testing_kernels(d->testing->backend)->blocking, &calls[0]);
    testing_launch(d, &calls[1], testing_kernels(d->testing->backend)->probe, &calls[1]);
    duet__opencl_fail(d->device, d->device->streams[0].first, &failure);
    blocked.go = true;
    testing_collect(d, done, 2);
    g_assert_true(done[0].tag == &calls[0] && done[1].tag == &calls[1]);
    g_assert_true(done[0].status == DUET_ETASK && done[1].status == DUET_OK);
    testing_copy(d, testing_in(d, 0, host, sizeof host));
    duet__opencl_fail(d->device, d->device->streams[1].first, &failure);
    testing_collect(d, done, 1);
    g_assert_cmpint(done[0].status, ==, DUET_EIO);
    g_assert_cmpstr(done[0].why, ==, "clSomething: CL_INVALID_OPERATION (-59)");
    g_assert_false(backend_lost(d->device));
    testing_write(d, 0, host, sizeof host);
}

/* A device that is gone: all that it has and all that comes later ends, and closing it does. */
static void test_loss(void)
{
    enum { COPIES = 5, ALL = COPIES + 4 };
    struct testing t;
    struct testing_device d;
    struct testing_probe blocked = {.status = 0};
    struct testing_argument args = {&blocked};
    struct duet_call call = {.args = &args};
    const struct failure gone = {.call = "clFlush", .error = CL_DEVICE_NOT_AVAILABLE};
    struct backend_completion done[ALL];
    static unsigned char host[TESTING_BYTES];
    if (testing_absent(opencl(), 1))
        return;
    testing_init(&t, opencl());
    ((struct opencl *)t.shared)->staging_bytes = 1000;
    testing_open(&d, &t, 0);
    testing_launch(&d, &call, testing_kernels(t.backend)->blocking, &call);
    testing_launch(&d, &call, testing_kernels(t.backend)->blocking, &call);
    for (unsigned i = 0; i < COPIES; i++)
        testing_copy(&d, testing_out(&d, 0, host, sizeof host));
    duet__opencl_fail(d.device, d.device->streams[0].first, &gone);
    g_assert_true(backend_lost(d.device));
    testing_launch(&d, &call, testing_kernels(t.backend)->blocking, &call);
    testing_copy(&d, testing_in(&d, 0, host, sizeof host));
    testing_collect(&d, done, ALL);
    for (unsigned i = 0; i < ALL; i++) {
        g_assert_cmpint(done[i].status, ==, DUET_ELOST);
        g_assert_nonnull(done[i].why);
    }
    blocked.go = true;
    testing_close(&d);
    testing_fini(&t);
}

TEST_MAIN(test_view, test_pieces, test_outside, test_ended, test_failures, test_loss)
