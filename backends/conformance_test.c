/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conformance to backend.h, for every backend in list.h. Parts are skipped where there are too few
 * devices. Copies and kernels are tested in detail in conformance_copies_test.c and
 * conformance_kernels_test.c.
 */
#include "backends/testing.h"

#include <duet/random.h>

/* ------------------------------------------------------------------------------------------- */
/* All backends                                                                                 */

static void test_table(const void *argument)
{
    const struct duet__backend *b = argument;
    g_assert_true(b->name && *b->name && b->description && *b->description);
    g_assert_true(duet__backend_find(b->name) == b);
    g_assert_nonnull(b->count);
    if (!b->open) { /* this build lacks it, and says why */
        struct duet_message why = {""};
        g_assert_cmpuint(b->count(&why), ==, 0);
        g_assert_cmpstr(why.text, !=, "");
        g_assert_false(b->describe || b->attach || b->detach || b->close || b->execute);
        return;
    }
    g_assert_true(b->describe && b->attach && b->detach && b->close);
    bool some = b->launch || b->copy || b->poll;
    bool all = b->launch && b->copy && b->poll;
    g_assert_true(b->execute ? !some : all);
}

static void test_unknown(const void *argument)
{
    size_t count = 0;
    while (duet__backend_at(count))
        count++;
    g_assert_cmpuint(count, >=, 2);
    g_assert_null(duet__backend_at(count + 1));
    g_assert_null(duet__backend_find("abacus"));
    g_assert_nonnull(duet__backend_find("cpu"));
}

static void test_describe(const void *argument)
{
    const struct duet__backend *b = argument;
    unsigned indices[2] = {0, b->count(NULL) - 1};
    for (unsigned i = 0; i < G_N_ELEMENTS(indices); i++) {
        struct backend_info info;
        WORKS(b->describe(indices[i], &info, hear()));
        g_assert_true(*info.arch && memchr(info.arch, '\0', sizeof info.arch));
        g_assert_true(*info.description && memchr(info.description, '\0', sizeof info.description));
        g_assert_cmpstr(heard(), ==, "");
        if (b->execute) {
            g_assert_cmpuint(info.memory_bytes, ==, 0);
            continue;
        }
        g_assert_cmpuint(info.memory_bytes, >, 0);
        g_assert_true(isfinite(info.bandwidth_Bps) && info.bandwidth_Bps > 0);
        g_assert_true(isfinite(info.latency_s) && info.latency_s >= 0);
    }
}

static void test_open_close(const void *argument)
{
    const struct duet__backend *b = argument;
    b->close(NULL);
    for (unsigned i = 0; i < 10; i++) {
        OWNED(testing_fini) struct testing t;
        testing_init(&t, b);
        for (unsigned k = 0; k < 3; k++) {
            OWNED(testing_close) struct testing_device d;
            testing_open(&d, &t, 0);
        }
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Synchronous backends                                                                         */

static void test_execute(const void *argument)
{
    const struct duet__backend *b = argument;
    static const int statuses[] = {DUET_OK, DUET_ETASK, DUET_ENOMEM, DUET_OK};
    OWNED(testing_stop) struct testing_device *d = testing_start(b);
    for (unsigned i = 0; i < G_N_ELEMENTS(statuses); i++) {
        unsigned char data[3] = {1, 2, 255};
        struct testing_probe probe = {.status = statuses[i]};
        struct testing_argument args = {&probe};
        struct duet_buffer buffer = {.data = data,
                                     .rows = 3,
                                     .cols = 1,
                                     .ld = 3,
                                     .element_bytes = 1};
        struct duet_call call = {.args = &args, .buffers = &buffer, .buffer_count = 1};
        struct duet_call before = call;
        struct backend_kernel kernel = {.run = testing_probe_kernel, .call = &call};
        g_assert_cmpint(b->execute(d->device, &kernel), ==, statuses[i]);
        g_assert_cmpuint(probe.ran, ==, 1);
        g_assert_false(probe.stream);
        kernel.run = testing_add_kernel;
        g_assert_cmpint(b->execute(d->device, &kernel), ==, DUET_OK);
        g_assert_true(data[0] == 2 && data[1] == 3 && data[2] == 0);
        g_assert_cmpmem(&call, sizeof call, &before, sizeof before);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Copies                                                                                       */

static void test_base(const void *argument)
{
    OWNED(testing_fini) struct testing t;
    testing_init(&t, argument);
    OWNED(testing_close) struct testing_device d;
    struct backend_config greedy = {.node = 1,
                                    .capacity_bytes = UINT64_C(1) << 62,
                                    .notify = testing_notify,
                                    .owner = &d};
    struct backend_device *none = NULL;
    g_assert_cmpint(t.backend->open(&none, t.shared, &greedy, hear()), ==, DUET_ENOMEM);
    g_assert_cmpstr(heard(), !=, "");
    testing_open(&d, &t, 0);
    g_assert_nonnull(d.base);
    g_assert_cmpuint((uintptr_t)d.base % 256, ==, 0);
    unsigned char first = 17, last = 4, back[2] = {0, 0};
    testing_write(&d, 0, &first, 1);
    testing_write(&d, TESTING_BYTES - 1, &last, 1);
    testing_read(&d, 0, &back[0], 1);
    testing_read(&d, TESTING_BYTES - 1, &back[1], 1);
    g_assert_true(back[0] == first && back[1] == last);
    g_assert_true(backend_base(d.device) == d.base);
    g_assert_false(backend_lost(d.device));
}

struct shape {
    size_t column_bytes, cols, host_gap, device_gap, offset;
};

static void fill_random(unsigned char *bytes, size_t count, uint64_t *random)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)duet_random_next(random);
}

/* Host (with gaps) to device to host (with other gaps): columns arrive and gaps stay. */
static void round_trip(struct testing_device *d, struct shape s, uint64_t *random)
{
    size_t pitch = s.column_bytes + s.host_gap, back_pitch = pitch + 3;
    unsigned char *source = g_malloc(pitch * s.cols), *back = g_malloc(back_pitch * s.cols);
    fill_random(source, pitch * s.cols, random);
    memset(back, 0xa5, back_pitch * s.cols);
    struct backend_copy in = testing_in(d, s.offset, source, s.column_bytes);
    in.cols = s.cols;
    in.source_pitch = pitch;
    in.destination_pitch = s.column_bytes + s.device_gap;
    testing_copy(d, in);
    testing_finish(d, in.tag);
    struct backend_copy out = testing_out(d, s.offset, back, s.column_bytes);
    out.cols = s.cols;
    out.source_pitch = in.destination_pitch;
    out.destination_pitch = back_pitch;
    testing_copy(d, out);
    testing_finish(d, out.tag);
    for (size_t c = 0; c < s.cols; c++) {
        g_assert_cmpmem(back + c * back_pitch, s.column_bytes, source + c * pitch, s.column_bytes);
        for (size_t i = s.column_bytes; i < back_pitch; i++)
            g_assert_cmpuint(back[c * back_pitch + i], ==, 0xa5);
    }
    g_free(source);
    g_free(back);
}

static void test_shapes(const void *argument)
{
    static const struct shape shapes[] = {
        {1, 1, 0, 0, 0},         {1, 1, 0, 0, 12345},
        {8, 1, 0, 0, 256},       {1, 4097, 0, 0, 0},
        {1, 5000, 7, 0, 256},    {513, 257, 0, 0, 768},
        {513, 257, 511, 0, 768}, {4096, 33, 8, 16, 1},
        {24, 9, 0, 40, 256},     {TESTING_BYTES, 1, 0, 0, 0},
    };
    uint64_t random = 1;
    OWNED(testing_stop) struct testing_device *d = testing_start(argument);
    for (unsigned i = 0; i < G_N_ELEMENTS(shapes); i++)
        round_trip(d, shapes[i], &random);
    for (unsigned i = 0; i < 200; i++) {
        struct shape shape = {.column_bytes = 1 + duet_random_below(&random, 900),
                              .cols = 1 + duet_random_below(&random, 60),
                              .host_gap = duet_random_below(&random, 2) * 77,
                              .device_gap = duet_random_below(&random, 2) * 9,
                              .offset = duet_random_below(&random, 1 << 19)};
        round_trip(d, shape, &random);
    }
}

/* The device's memory is its own, and changes when a copy or a kernel says so, not before. */
static void test_isolation(const void *argument)
{
    unsigned char host[1000], back[1000];
    OWNED(testing_stop) struct testing_device *d = testing_start(argument);
    memset(host, 1, sizeof host);
    testing_write(d, 512, host, sizeof host);
    memset(host, 7, sizeof host);
    testing_read(d, 512, back, sizeof back);
    for (unsigned i = 0; i < sizeof back; i++)
        g_assert_cmpuint(back[i], ==, 1);
    struct duet_buffer buffer = testing_buffer(d, 512, sizeof host);
    struct duet_call call = {.buffers = &buffer, .buffer_count = 1};
    testing_launch(d, &call, testing_kernels(d->testing->backend)->add, &call);
    testing_finish(d, &call);
    g_assert_true(host[0] == 7 && back[0] == 1);
    testing_read(d, 512, back, sizeof back);
    for (unsigned i = 0; i < sizeof back; i++)
        g_assert_cmpuint(back[i], ==, 2);
}

/* True if copies go from the first device to the second. */
static bool are_linked(const struct duet__backend *backend)
{
    struct backend_link links[4] = {{.direct = false}};
    if (!backend->links)
        return true;
    WORKS(backend->links(2, links, hear()));
    return links[1].direct;
}

/* From one device to another, by the stream IN of the destination. */
static void test_peer(const void *argument)
{
    struct testing t;
    struct testing_device a, b;
    unsigned char host[300], back[300];
    uint64_t random = 2;
    testing_init(&t, argument);
    testing_open(&a, &t, 0);
    testing_open(&b, &t, 1);
    fill_random(host, sizeof host, &random);
    testing_write(&a, 256, host, sizeof host);
    struct backend_copy across = testing_in(&b, 1024, a.base + 256, 30);
    across.cols = 10;
    across.source_pitch = 30;
    across.destination_pitch = 64;
    across.source_node = a.node;
    across.peer = a.device;
    if (!are_linked(argument)) {
        g_assert_cmpint(t.backend->copy(b.device, &across), ==, DUET_EINVAL);
        testing_close(&a);
        testing_close(&b);
        testing_fini(&t);
        return;
    }
    testing_copy(&b, across);
    testing_finish(&b, across.tag);
    memset(back, 0, sizeof back);
    testing_write(&a, 256, back, sizeof back); /* what is in b stays */
    struct backend_copy out = testing_out(&b, 1024, back, 30);
    out.cols = 10;
    out.source_pitch = 64;
    testing_copy(&b, out);
    testing_finish(&b, out.tag);
    g_assert_cmpmem(back, sizeof back, host, sizeof host);
    testing_close(&a);
    testing_close(&b);
    testing_fini(&t);
}

/* ------------------------------------------------------------------------------------------- */
/* Streams                                                                                      */

enum { MANY = 700 };

/* A stream is a FIFO: of copies to the same place the last one counts, tags come in order. */
static void test_order(const void *argument)
{
    static unsigned char sources[MANY][512];
    struct backend_completion done[MANY];
    unsigned char back[512];
    OWNED(testing_stop) struct testing_device *d = testing_start(argument);
    for (unsigned i = 0; i < MANY; i++) {
        memset(sources[i], (int)(i % 251), sizeof sources[i]);
        struct backend_copy copy = testing_in(d, 0, sources[i], sizeof sources[i]);
        copy.tag = sources[i];
        testing_copy(d, copy);
    }
    testing_collect_by(d, done, MANY, 3);
    for (unsigned i = 0; i < MANY; i++) {
        g_assert_true(done[i].tag == sources[i]);
        g_assert_cmpint(done[i].status, ==, DUET_OK);
    }
    testing_read(d, 0, back, sizeof back);
    g_assert_cmpmem(back, sizeof back, sources[MANY - 1], sizeof back);
}

/* Gives command i of a mixture to its stream, and says which that is. */
static enum backend_stream give_one(struct testing_device *d, unsigned i, unsigned char *place,
                                    struct duet_call *call)
{
    enum backend_stream stream = i * 7 / 2 % BACKEND_STREAMS;
    struct backend_copy copy = stream == BACKEND_IN ? testing_in(d, i * 64, place, 50)
                                                    : testing_out(d, (MANY + i) * 64, place, 50);
    if (stream == BACKEND_KERNEL) {
        testing_launch(d, place, testing_kernels(d->testing->backend)->probe, call);
        return stream;
    }
    copy.tag = place;
    testing_copy(d, copy);
    return stream;
}

/* Every tag comes back once, in order within its stream, with dates that make sense. */
static void test_tags(const void *argument)
{
    static unsigned char places[MANY][64];
    enum backend_stream streams[MANY];
    bool back[MANY] = {false};
    struct backend_completion done[MANY], last[BACKEND_STREAMS] = {{.tag = NULL}};
    struct testing_probe probe = {.status = DUET_OK};
    struct testing_argument args = {&probe};
    struct duet_call call = {.args = &args};
    unsigned kernels = 0;
    OWNED(testing_stop) struct testing_device *d = testing_start(argument);
    double begun = testing_now(NULL);
    for (unsigned i = 0; i < MANY; i++) {
        streams[i] = give_one(d, i, places[i], &call);
        kernels += streams[i] == BACKEND_KERNEL;
    }
    testing_collect(d, done, MANY);
    double ended = testing_now(NULL);
    g_assert_cmpuint(d->testing->backend->poll(d->device, done, 0), ==, 0);
    for (unsigned i = 0; i < MANY; i++) {
        size_t which = (size_t)((unsigned char(*)[64])done[i].tag - places);
        struct backend_completion *before = &last[streams[which]];
        g_assert_false(back[which]);
        back[which] = true;
        g_assert_true(begun <= done[i].start_s && done[i].start_s <= done[i].end_s);
        g_assert_true(done[i].end_s <= ended);
        g_assert_true((char *)done[i].tag > (char *)before->tag);
        g_assert_true(done[i].start_s >= before->start_s && done[i].end_s >= before->end_s);
        *before = done[i];
    }
    g_assert_cmpuint(probe.ran, ==, kernels);
    struct backend_completion none;
    g_assert_cmpuint(d->testing->backend->poll(d->device, &none, 1), ==, 0);
}

/* If the backend notifies, a notification comes for each command, when poll has the completion. */
static void test_notify(const void *argument)
{
    struct testing_probe probe = {.status = 0};
    struct testing_argument args = {&probe};
    struct duet_call call = {.args = &args};
    unsigned char host[64] = {0};
    OWNED(testing_stop) struct testing_device *d = testing_start(argument);
    for (unsigned i = 0; i < 60; i++) {
        struct backend_completion done;
        uint64_t seen = testing_notices(d);
        (void)give_one(d, i, host, &call);
        const struct duet__backend *backend = d->testing->backend;
        if (!backend->next_s || !isinf(backend->next_s(d->device))) {
            testing_collect(d, &done, 1);
            continue;
        }
        while (!backend->poll(d->device, &done, 1)) {
            testing_await(d, seen);
            seen = testing_notices(d);
        }
        g_assert_true(done.tag == host);
    }
}

/* Waits for what is in flight; what it would have notified is nobody's business then. */
static void test_close_busy(const void *argument)
{
    OWNED(testing_fini) struct testing t;
    static unsigned char places[MANY][64];
    struct testing_probe probe = {.status = 0};
    struct testing_argument args = {&probe};
    struct duet_call call = {.args = &args};
    testing_init(&t, argument);
    for (unsigned i = 0; i < 10; i++) {
        struct testing_device d;
        unsigned kernels = 0;
        probe.ran = 0;
        testing_open(&d, &t, 0);
        for (unsigned k = 0; k < i * 20; k++)
            kernels += give_one(&d, k, places[k], &call) == BACKEND_KERNEL;
        testing_close(&d);
        g_assert_cmpuint(probe.ran, ==, kernels);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Devices beside each other                                                                    */

enum { BLOCKS = 16, BLOCK = 512, ROUNDS = 400 };

struct user {
    struct testing *testing;
    unsigned index;
};

/* Random copies and kernels on a device of its own, against a mirror of it in the host's memory. */
static gpointer use_device(gpointer argument)
{
    const struct user *user = argument;
    struct testing_device d;
    unsigned char mirror[BLOCKS][BLOCK], back[BLOCK];
    uint64_t random = duet_random_stream(3, user->index);
    testing_open(&d, user->testing, user->index);
    for (unsigned b = 0; b < BLOCKS; b++) {
        fill_random(mirror[b], BLOCK, &random);
        testing_write(&d, b * BLOCK, mirror[b], BLOCK);
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned b = duet_random_below(&random, BLOCKS), what = duet_random_below(&random, 3);
        struct duet_buffer buffer = testing_buffer(&d, b * BLOCK, BLOCK);
        struct duet_call call = {.buffers = &buffer, .buffer_count = 1};
        if (what == 0) {
            fill_random(mirror[b], BLOCK, &random);
            testing_write(&d, b * BLOCK, mirror[b], BLOCK);
        } else if (what == 1) {
            testing_launch(&d, &call, testing_kernels(user->testing->backend)->add, &call);
            testing_finish(&d, &call);
            for (unsigned k = 0; k < BLOCK; k++)
                mirror[b][k]++;
        } else {
            testing_read(&d, b * BLOCK, back, BLOCK);
            g_assert_cmpmem(back, BLOCK, mirror[b], BLOCK);
        }
    }
    testing_close(&d);
    return NULL;
}

static void test_two_threads(const void *argument)
{
    OWNED(testing_fini) struct testing t;
    testing_init(&t, argument);
    struct user users[2] = {{&t, 0}, {&t, 1}};
    GThread *threads[2];
    for (unsigned i = 0; i < 2; i++)
        threads[i] = g_thread_new("user", use_device, &users[i]);
    for (unsigned i = 0; i < 2; i++)
        (void)g_thread_join(threads[i]);
}

int main(int argc, char **argv)
{
    static const struct testing_test tests[] = {{"unknown", test_unknown, TESTING_ANY, 0},
                                                {"base", test_base, TESTING_STREAMS, 1},
                                                {"shapes", test_shapes, TESTING_STREAMS, 1},
                                                {"isolation", test_isolation, TESTING_STREAMS, 1},
                                                {"peer", test_peer, TESTING_STREAMS, 2},
                                                {"order", test_order, TESTING_STREAMS, 1},
                                                {"tags", test_tags, TESTING_STREAMS, 1},
                                                {"notify", test_notify, TESTING_STREAMS, 1},
                                                {"close_busy", test_close_busy, TESTING_STREAMS, 1},
                                                {"two_threads", test_two_threads, TESTING_STREAMS,
                                                 2},
                                                {"table", test_table, TESTING_ANY, 0},
                                                {"describe", test_describe, TESTING_ANY, 1},
                                                {"open_close", test_open_close, TESTING_ANY, 1},
                                                {"execute", test_execute, TESTING_EXECUTE, 1},
                                                {NULL, NULL, TESTING_ANY, 0}};
    return testing_run(argc, argv, "", tests);
}
