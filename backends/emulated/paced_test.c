/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paced emulated devices: dates of kernels and copies to the last digits, on a clock that the test
 * moves. Expected figures are computed by hand here.
 */
#include <math.h>
#include <string.h>

#include <glib.h>

#include "backends/backend.h"

extern const struct duet__backend duet__backend_emulated;
static const struct duet__backend *const emulated = &duet__backend_emulated;

enum {
    DEVICES = 3,
    NODES = DEVICES + 1,
    CAPACITY = 1 << 30,
    UP,    /* gpu0 and gpu1 to the switch and on to the host */
    DOWN,  /* the same way back */
    EACH,  /* a limit of each copy alone */
    CROSS, /* between devices */
    OWN,   /* gpu2's, behind no switch */
    LINKS,
    MB = 1000000,
};

/* Links start from 0 in the machine. */
static unsigned number(unsigned link)
{
    return link - UP;
}

struct owner {
    struct backend_device *device;
    unsigned notices;
};

/* A machine with its devices open, at date `now`. */
struct scene {
    struct duet_machine machine;
    void *shared;
    double now;
    struct owner owners[DEVICES];
};

static double clock_now(void *clock)
{
    return *(double *)clock;
}

static void notify(void *owner)
{
    ((struct owner *)owner)->notices++;
}

static void add_link(struct duet_machine *m, unsigned link, double bandwidth_Bps, bool per_copy)
{
    g_snprintf(m->links[number(link)].name, DUET_NAME_MAX, "link%u", link);
    m->links[number(link)].bandwidth_Bps = bandwidth_Bps;
    m->links[number(link)].per_copy = per_copy;
}

static void add_route(struct duet_machine *m, unsigned from, unsigned to, double latency_s,
                      unsigned first, unsigned second)
{
    struct duet_route *route = &m->routes[from * NODES + to];
    route->direct = true;
    route->latency_s = latency_s;
    route->links[route->count++] = (uint16_t)number(first);
    if (second)
        route->links[route->count++] = (uint16_t)number(second);
    route->bandwidth_Bps = INFINITY;
    for (unsigned i = 0; i < route->count; i++)
        route->bandwidth_Bps = fmin(route->bandwidth_Bps, m->links[route->links[i]].bandwidth_Bps);
}

/*
 * gpu0 and gpu1 share a switch of 10 MB/s in each direction; a copy into one of them alone gets 8.
 * gpu2 has 4 MB/s of its own, both directions together. Between gpu0 and gpu1 5 MB/s for each copy.
 */
static void scene_machine(struct duet_machine *m)
{
    g_assert_cmpint(duet_machine_init(m, 1, NODES, 1, LINKS - UP), ==, DUET_OK);
    add_link(m, UP, 10 * MB, false);
    add_link(m, DOWN, 10 * MB, false);
    add_link(m, EACH, 8 * MB, true);
    add_link(m, CROSS, 5 * MB, true);
    add_link(m, OWN, 4 * MB, false);
    for (unsigned n = 1; n <= 2; n++) {
        add_route(m, DUET_HOST, n, 0.5, DOWN, EACH);
        add_route(m, n, DUET_HOST, 0.25, UP, 0);
        add_route(m, n, 3 - n, 0, CROSS, 0);
    }
    add_route(m, DUET_HOST, 3, 0, OWN, 0);
    add_route(m, 3, DUET_HOST, 0, OWN, 0);
}

static void scene_open(struct scene *s, unsigned index, uint64_t lose_at)
{
    struct backend_config config = {.index = index,
                                    .node = index + 1,
                                    .capacity_bytes = CAPACITY,
                                    .lose_at = lose_at,
                                    .notify = notify,
                                    .owner = &s->owners[index]};
    WORKS(emulated->open(&s->owners[index].device, s->shared, &config, hear()));
}

/* `lose_at` is the first device's. */
static void scene_init(struct scene *s, double scale, uint64_t lose_at)
{
    memset(s, 0, sizeof *s);
    scene_machine(&s->machine);
    struct backend_setup setup = {.machine = &s->machine,
                                  .scale = scale,
                                  .now = clock_now,
                                  .clock = &s->now};
    WORKS(emulated->attach(&s->shared, &setup, hear()));
    for (unsigned i = 0; i < DEVICES; i++)
        scene_open(s, i, i == 0 ? lose_at : 0);
}

static void scene_fini(struct scene *s)
{
    for (unsigned i = 0; i < DEVICES; i++)
        emulated->close(s->owners[i].device);
    emulated->detach(s->shared);
    duet_machine_fini(&s->machine);
}

/* A kernel that must never run. */
static int forbidden(const struct duet_call *call)
{
    g_assert_not_reached();
}

static void kernel(struct scene *s, unsigned index, void *tag, double seconds)
{
    struct backend_kernel kernel = {.tag = tag, .run = forbidden, .seconds = seconds};
    g_assert_cmpint(emulated->launch(s->owners[index].device, &kernel), ==, DUET_OK);
}

/* A copy of `bytes` in a hundred columns; nobody looks at the host's address. */
static void copy(struct scene *s, unsigned index, enum backend_stream stream, void *tag,
                 double bytes)
{
    unsigned char *base = backend_base(s->owners[index].device), *host = NULL;
    bool in = stream == BACKEND_IN;
    struct backend_copy copy = {.tag = tag,
                                .stream = stream,
                                .destination = in ? base : host,
                                .source = in ? host : base,
                                .column_bytes = (size_t)bytes / 100,
                                .cols = 100,
                                .destination_pitch = (size_t)bytes / 100,
                                .source_pitch = (size_t)bytes / 100,
                                .source_node = in ? DUET_HOST : index + 1,
                                .destination_node = in ? index + 1 : DUET_HOST};
    g_assert_cmpint(emulated->copy(s->owners[index].device, &copy), ==, DUET_OK);
}

static void copy_between(struct scene *s, unsigned from, unsigned to, void *tag, double bytes)
{
    struct backend_copy copy = {.tag = tag,
                                .stream = BACKEND_IN,
                                .destination = backend_base(s->owners[to].device),
                                .source = backend_base(s->owners[from].device),
                                .column_bytes = (size_t)bytes,
                                .cols = 1,
                                .destination_pitch = (size_t)bytes,
                                .source_pitch = (size_t)bytes,
                                .source_node = from + 1,
                                .destination_node = to + 1,
                                .peer = s->owners[from].device};
    g_assert_cmpint(emulated->copy(s->owners[to].device, &copy), ==, DUET_OK);
}

static void assert_date(double date, double expected)
{
    if (fabs(date - expected) > 1e-12 * fmax(1, fabs(expected)))
        g_error("date %.17g, expected %.17g", date, expected);
}

/* The next completion of a device. */
static void ended_as(struct scene *s, unsigned index, const void *tag, int status, double start_s,
                     double end_s)
{
    struct backend_completion done = {.tag = NULL};
    g_assert_cmpuint(emulated->poll(s->owners[index].device, &done, 1), ==, 1);
    g_assert_true(done.tag == tag);
    g_assert_cmpint(done.status, ==, status);
    assert_date(done.start_s, start_s);
    assert_date(done.end_s, end_s);
}

static void ended(struct scene *s, unsigned index, const void *tag, double start_s, double end_s)
{
    ended_as(s, index, tag, DUET_OK, start_s, end_s);
}

static void nothing(struct scene *s, unsigned index)
{
    struct backend_completion none;
    g_assert_cmpuint(emulated->poll(s->owners[index].device, &none, 1), ==, 0);
}

static double next_s(struct scene *s, unsigned index)
{
    return emulated->next_s(s->owners[index].device);
}

/* ------------------------------------------------------------------------------------------- */
/* Kernels                                                                                      */

static void test_kernels(void)
{
    OWNED(scene_fini) struct scene s;
    char tags[5];
    scene_init(&s, 1, 0);
    g_assert_true(isinf(next_s(&s, 0)));
    s.now = 1;
    kernel(&s, 0, &tags[0], 0.5);
    kernel(&s, 0, &tags[1], 0.25);
    s.now = 1.25;
    kernel(&s, 0, &tags[2], 0);
    nothing(&s, 0);
    assert_date(next_s(&s, 0), 1.5);
    s.now = 1.5;
    ended(&s, 0, &tags[0], 1, 1.5);
    nothing(&s, 0);
    assert_date(next_s(&s, 0), 1.75);
    s.now = 10; /* late, which changes no date */
    ended(&s, 0, &tags[1], 1.5, 1.75);
    ended(&s, 0, &tags[2], 1.75, 1.75);
    kernel(&s, 0, &tags[3], 2); /* a late launch does */
    kernel(&s, 1, &tags[4], 1);
    s.now = 20;
    ended(&s, 0, &tags[3], 10, 12);
    ended(&s, 1, &tags[4], 10, 11);
    nothing(&s, 0);
    g_assert_true(isinf(next_s(&s, 0)));
}

static void test_refused(void)
{
    OWNED(scene_fini) struct scene s;
    scene_init(&s, 1, 0);
    struct backend_device *device = s.owners[2].device;
    const double bad[] = {-1, NAN, INFINITY};
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        struct backend_kernel kernel = {.seconds = bad[i]};
        g_assert_cmpint(emulated->launch(device, &kernel), ==, DUET_EINVAL);
    }
    struct backend_copy copy = {.stream = BACKEND_IN,
                                .destination = backend_base(device),
                                .column_bytes = 1,
                                .cols = 1,
                                .source_node = 1, /* no route */
                                .destination_node = 3};
    g_assert_cmpint(emulated->copy(device, &copy), ==, DUET_EINVAL);
    copy.source_node = NODES;
    g_assert_cmpint(emulated->copy(device, &copy), ==, DUET_EINVAL);
    copy.source_node = DUET_HOST;
    g_assert_cmpint(emulated->copy(device, &copy), ==, DUET_OK);
}

/* ------------------------------------------------------------------------------------------- */
/* Copies                                                                                       */

/* The latency first, then the bytes at the narrowest link; all of it times the scale. */
static void test_alone(void)
{
    for (unsigned i = 0; i < 3; i++) {
        const double scales[] = {1, 0.125, 3}, k = scales[i];
        OWNED(scene_fini) struct scene s;
        char tag;
        scene_init(&s, k, 0);
        s.now = 2;
        copy(&s, 0, BACKEND_IN, &tag, 16 * MB);
        assert_date(next_s(&s, 0), 2 + 0.5 * k); /* the bytes begin to flow */
        s.now = 2 + 0.75 * k;
        nothing(&s, 0);
        assert_date(next_s(&s, 0), 2 + 2.5 * k);
        s.now = 100;
        ended(&s, 0, &tag, 2, 2 + 2.5 * k);
        copy(&s, 2, BACKEND_OUT, &tag, 0); /* no bytes, no latency: over at once */
        ended(&s, 2, &tag, 100, 100);
    }
}

/* Two copies through the switch take twice as long as its bandwidth would let one. */
static void test_shared(void)
{
    OWNED(scene_fini) struct scene s;
    char tags[2];
    scene_init(&s, 1, 0);
    copy(&s, 0, BACKEND_OUT, &tags[0], 10 * MB);
    copy(&s, 1, BACKEND_OUT, &tags[1], 10 * MB);
    s.now = 50;
    ended(&s, 0, &tags[0], 0, 0.25 + 2);
    ended(&s, 1, &tags[1], 0, 0.25 + 2);
}

/* Links that limit each copy alone are not shared; opposite directions are two links. */
static void test_not_shared(void)
{
    OWNED(scene_fini) struct scene s;
    char tags[4];
    scene_init(&s, 1, 0);
    copy_between(&s, 0, 1, &tags[0], 10 * MB);
    copy_between(&s, 1, 0, &tags[1], 10 * MB);
    s.now = 2;
    ended(&s, 1, &tags[0], 0, 2);
    ended(&s, 0, &tags[1], 0, 2);
    copy(&s, 0, BACKEND_IN, &tags[2], 8 * MB);
    copy(&s, 1, BACKEND_OUT, &tags[3], 10 * MB);
    s.now = 50;
    ended(&s, 0, &tags[2], 2, 3.5);
    ended(&s, 1, &tags[3], 2, 3.25);
}

/* Both directions of a device share its link: a copy joins halfway, one ends. */
static void test_joining(void)
{
    OWNED(scene_fini) struct scene s;
    char tags[3];
    scene_init(&s, 1, 0);
    copy(&s, 2, BACKEND_IN, &tags[0], 4 * MB); /* alone until 0.5, half of it is left */
    s.now = 0.5;
    copy(&s, 2, BACKEND_OUT, &tags[1], 4 * MB); /* 2 MB/s each: the first ends at 1.5 ... */
    assert_date(next_s(&s, 2), 1.5);
    s.now = 9; /* ... and the second has 2 MB left then, which take half a second alone */
    ended(&s, 2, &tags[0], 0, 1.5);
    ended(&s, 2, &tags[1], 0.5, 2);
    copy(&s, 2, BACKEND_IN, &tags[2], 4 * MB);
    s.now = 10;
    ended(&s, 2, &tags[2], 9, 10);
}

/*
 * Into gpu0 at 8 MB/s; a copy into gpu1 joins halfway: both at 5. Its start was seen by nobody, and
 * the first one's date is found out by asking at the old one.
 */
static void test_third(void)
{
    OWNED(scene_fini) struct scene s;
    char tags[2];
    scene_init(&s, 1, 0);
    copy(&s, 0, BACKEND_IN, &tags[0], 16 * MB); /* flows from 0.5, alone it would end at 2.5 */
    s.now = 1;
    copy(&s, 1, BACKEND_IN, &tags[1], 16 * MB); /* flows from 1.5, 8 MB of the first are left */
    assert_date(next_s(&s, 0), 2.5);
    s.now = 2.5;
    nothing(&s, 0);
    assert_date(next_s(&s, 0), 1.5 + 8.0 / 5);
    s.now = 40; /* the second: 8 MB at 5, the rest at 8 MB/s */
    ended(&s, 1, &tags[1], 1, 3.1 + 1);
    ended(&s, 0, &tags[0], 0, 3.1);
}

/* A copy behind another in its stream begins at its end, latency and all. */
static void test_queue(void)
{
    OWNED(scene_fini) struct scene s;
    char tags[4];
    scene_init(&s, 1, 0);
    copy(&s, 0, BACKEND_OUT, &tags[0], 10 * MB);
    copy(&s, 0, BACKEND_OUT, &tags[1], 20 * MB);
    copy(&s, 0, BACKEND_IN, &tags[2], 8 * MB);
    s.now = 1;
    copy(&s, 0, BACKEND_OUT, &tags[3], 10 * MB);
    s.now = 60;
    ended(&s, 0, &tags[2], 0, 1.5);
    ended(&s, 0, &tags[0], 0, 1.25);
    ended(&s, 0, &tags[1], 1.25, 3.5);
    ended(&s, 0, &tags[3], 3.5, 4.75);
}

/* One copy at a time leaves a device, to the host or to another, as in the simulation. */
static void test_leaving(void)
{
    OWNED(scene_fini) struct scene s;
    char tags[4];
    scene_init(&s, 1, 0);
    copy(&s, 0, BACKEND_OUT, &tags[0], 10 * MB); /* 0 to 1.25 */
    copy_between(&s, 0, 1, &tags[1], 10 * MB);   /* behind it: 1.25 to 3.25 */
    copy(&s, 0, BACKEND_OUT, &tags[2], 10 * MB); /* behind that: 3.25 to 4.5 */
    copy(&s, 1, BACKEND_IN, &tags[3], 8 * MB);   /* behind the one that comes in: 3.25 to 4.75 */
    g_assert_true(isinf(next_s(&s, 1)));
    s.now = 1.25;
    ended(&s, 0, &tags[0], 0, 1.25);
    g_assert_cmpuint(s.owners[1].notices, ==, 1); /* it is known now when something comes */
    assert_date(next_s(&s, 1), 3.25);
    s.now = 60;
    ended(&s, 1, &tags[1], 1.25, 3.25);
    ended(&s, 0, &tags[2], 3.25, 4.5);
    ended(&s, 1, &tags[3], 3.25, 4.75);
}

/* A device whose copy ends sooner because another's has ended is told, and nobody else is. */
static void test_told(void)
{
    OWNED(scene_fini) struct scene s;
    char tags[2];
    scene_init(&s, 1, 0);
    copy(&s, 0, BACKEND_OUT, &tags[0], 5 * MB);
    copy(&s, 1, BACKEND_OUT, &tags[1], 10 * MB);
    s.now = 0.25;
    assert_date(next_s(&s, 0), 1.25);
    assert_date(next_s(&s, 1), 2.25);
    s.owners[0].notices = s.owners[1].notices = 0; /* from before they had asked */
    s.now = 1.25;
    ended(&s, 0, &tags[0], 0, 1.25);
    g_assert_cmpuint(s.owners[0].notices, ==, 0);
    g_assert_cmpuint(s.owners[1].notices, ==, 1);
    g_assert_cmpuint(s.owners[2].notices, ==, 0);
    assert_date(next_s(&s, 1), 1.75);
    s.now = 1.75;
    ended(&s, 1, &tags[1], 0, 1.75);
    g_assert_cmpuint(s.owners[1].notices, ==, 1);
}

/* ------------------------------------------------------------------------------------------- */
/* The end                                                                                      */

/* All that the device has in flight ends at the date of its loss, and copies of others from it. */
static void test_lost(void)
{
    OWNED(scene_fini) struct scene s;
    char tags[10];
    scene_init(&s, 1, 7);
    kernel(&s, 0, &tags[0], 1);
    kernel(&s, 0, &tags[1], 3);
    kernel(&s, 0, &tags[2], 1);
    copy(&s, 0, BACKEND_OUT, &tags[3], 20 * MB);
    copy(&s, 1, BACKEND_OUT, &tags[4], 20 * MB); /* shares the switch */
    copy(&s, 1, BACKEND_IN, &tags[5], 8 * MB);   /* until 1.5 */
    copy_between(&s, 0, 1, &tags[6], 10 * MB);   /* would wait for both */
    copy_between(&s, 1, 0, &tags[7], 10 * MB);   /* waits for the peer's */
    copy(&s, 0, BACKEND_IN, &tags[8], 8 * MB);
    s.now = 1.25; /* 5 MB of each have come to the host */
    kernel(&s, 0, &tags[9], 1);
    ended_as(&s, 0, &tags[7], DUET_ELOST, 1.25, 1.25);
    ended_as(&s, 0, &tags[8], DUET_ELOST, 1.25, 1.25);
    ended_as(&s, 0, &tags[0], DUET_ELOST, 0, 1);
    ended_as(&s, 0, &tags[1], DUET_ELOST, 1, 1.25);
    ended_as(&s, 0, &tags[2], DUET_ELOST, 1.25, 1.25);
    ended_as(&s, 0, &tags[9], DUET_ELOST, 1.25, 1.25);
    ended_as(&s, 0, &tags[3], DUET_ELOST, 0, 1.25);
    g_assert_true(isinf(next_s(&s, 0)));
    s.now = 2;
    copy(&s, 0, BACKEND_OUT, &tags[3], 20 * MB);
    ended_as(&s, 0, &tags[3], DUET_ELOST, 2, 2);
    s.now = 30;
    ended(&s, 1, &tags[5], 0, 1.5);
    ended_as(&s, 1, &tags[6], DUET_ELOST, 1.5, 1.5);
    ended(&s, 1, &tags[4], 0, 1.25 + 1.5); /* alone from there on */
    copy_between(&s, 0, 1, &tags[6], 10 * MB);
    ended_as(&s, 1, &tags[6], DUET_ELOST, 30, 30);
    copy(&s, 1, BACKEND_OUT, &tags[4], 10 * MB);
    s.now = 40;
    ended(&s, 1, &tags[4], 30, 31.25);
}

/* A copy that flows from a device when that is lost. */
static void test_lost_source(void)
{
    OWNED(scene_fini) struct scene s;
    char tags[3];
    scene_init(&s, 1, 1);
    copy_between(&s, 0, 1, &tags[0], 10 * MB);
    copy(&s, 1, BACKEND_IN, &tags[1], 8 * MB);
    assert_date(next_s(&s, 1), 2);
    s.now = 1;
    kernel(&s, 0, &tags[2], 1);
    g_assert_cmpuint(s.owners[1].notices, ==, 1);
    ended_as(&s, 1, &tags[0], DUET_ELOST, 0, 1);
    nothing(&s, 1);
    g_assert_true(backend_lost(s.owners[0].device));
    g_assert_false(backend_lost(s.owners[1].device));
    s.now = 9;
    ended(&s, 1, &tags[1], 1, 2.5);
}

/* A device that is closed does not wait for dates; what it had on the links is gone. */
static void test_close_busy(void)
{
    OWNED(scene_fini) struct scene s;
    char tags[3];
    scene_init(&s, 1, 0);
    kernel(&s, 0, &tags[0], 1000);
    copy(&s, 0, BACKEND_OUT, &tags[1], 1000 * MB);
    copy(&s, 1, BACKEND_OUT, &tags[2], 10 * MB);
    s.now = 0.25;
    assert_date(next_s(&s, 1), 2.25);
    s.now = 1.25; /* half of it at half the bandwidth */
    emulated->close(s.owners[0].device);
    g_assert_cmpuint(s.owners[1].notices, ==, 1);
    assert_date(next_s(&s, 1), 1.75);
    scene_open(&s, 0, 0);
    s.now = 5;
    ended(&s, 1, &tags[2], 0, 1.75);
    nothing(&s, 0);
}

TEST_MAIN(test_kernels, test_refused, test_alone, test_shared, test_not_shared, test_joining,
          test_third, test_queue, test_leaving, test_told, test_lost, test_lost_source,
          test_close_busy)
