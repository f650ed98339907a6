/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paced emulated devices against the model of copies: random copies over random links, once with
 * devices that look when they are told, once with devices that look at random: the dates must be
 * the same.
 */
#include <math.h>
#include <sched.h>
#include <time.h>

#include "backends/backend.h"
#include "core/flows.h"
#include "core/testing_links.h"

extern const struct duet__backend duet__backend_emulated;
static const struct duet__backend *const emulated = &duet__backend_emulated;

enum { DEVICES = 6, NODES = DEVICES + 1, COPIES = 400, CAPACITY = 1 << 25 };

struct transfer {
    unsigned source, destination;
    size_t bytes;
    double given_s;
    double expected_start_s, expected_end_s;
    double start_s, end_s; /* as the devices say */
    unsigned seen;
};

struct scene {
    struct duet_machine machine;
    double scale;
    void *shared;
    double now;
    struct owner {
        struct backend_device *device;
        bool notified;
        double wake_s;
    } owners[DEVICES];
    struct transfer transfers[COPIES]; /* ascending in given_s */
    struct figures figures;
};

/* Fills in the dates by the model. */
static void expect(struct scene *s)
{
    OWNED(duet__flows_fini) struct duet__flows flows;
    g_assert_cmpint(duet__flows_init(&flows, &s->machine, s->scale), ==, DUET_OK);
    for (struct transfer *t = s->transfers; t < &s->transfers[COPIES]; t++) {
        const struct duet__flow flow = {.source = t->source,
                                        .destination = t->destination,
                                        .bytes = (double)t->bytes,
                                        .start_s = t->given_s,
                                        .tag = t};
        duet__flows_advance(&flows, t->given_s);
        g_assert_cmpint(duet__flows_add(&flows, &flow), ==, DUET_OK);
    }
    duet__flows_advance(&flows, INFINITY);
    while (flows.count) {
        const struct duet__flow flow = duet__flows_remove(&flows, 0);
        ((struct transfer *)flow.tag)->expected_start_s = flow.start_s;
        ((struct transfer *)flow.tag)->expected_end_s = flow.date_s;
    }
}

/* ------------------------------------------------------------------------------------------- */
/* The devices                                                                                  */

static double clock_now(void *clock)
{
    return *(double *)clock;
}

static void notify(void *owner)
{
    ((struct owner *)owner)->notified = true;
}

static int by_date(const void *left, const void *right)
{
    const struct transfer *a = left, *b = right;
    return (a->given_s > b->given_s) - (a->given_s < b->given_s);
}

static void make_transfers(struct scene *s)
{
    for (unsigned i = 0; i < COPIES; i++) {
        struct transfer *t = &s->transfers[i];
        *t = (struct transfer){.source = duet_random_below(&s->figures.random, NODES)};
        t->destination = (t->source + 1 + duet_random_below(&s->figures.random, NODES - 1)) % NODES;
        t->bytes = 1 + duet_random_below(&s->figures.random, CAPACITY - 1);
        t->given_s = s->scale * 3 * duet_random_unit(&s->figures.random);
    }
    qsort(s->transfers, COPIES, sizeof s->transfers[0], by_date);
}

static void scene_attach(struct scene *s)
{
    struct backend_setup setup = {.machine = &s->machine,
                                  .scale = s->scale,
                                  .now = clock_now,
                                  .clock = &s->now};
    s->now = 0;
    WORKS(emulated->attach(&s->shared, &setup, hear()));
    for (unsigned i = 0; i < DEVICES; i++) {
        struct owner *owner = &s->owners[i];
        *owner = (struct owner){.wake_s = INFINITY};
        struct backend_config config = {.index = i,
                                        .node = i + 1,
                                        .capacity_bytes = CAPACITY,
                                        .notify = notify,
                                        .owner = owner};
        WORKS(emulated->open(&owner->device, s->shared, &config, hear()));
    }
}

static void scene_detach(struct scene *s)
{
    for (unsigned i = 0; i < DEVICES; i++)
        emulated->close(s->owners[i].device);
    emulated->detach(s->shared);
}

static void look(struct owner *owner)
{
    struct backend_completion done[8];
    size_t count;
    while ((count = emulated->poll(owner->device, done, G_N_ELEMENTS(done)))) {
        for (size_t i = 0; i < count; i++) {
            struct transfer *t = done[i].tag;
            g_assert_cmpint(done[i].status, ==, DUET_OK);
            t->start_s = done[i].start_s;
            t->end_s = done[i].end_s;
            t->seen++;
        }
    }
    owner->wake_s = emulated->next_s(owner->device);
}

static void give(struct scene *s, struct transfer *t)
{
    static unsigned char host[1]; /* nobody looks at it */
    struct backend_device *to = t->destination ? s->owners[t->destination - 1].device : NULL;
    struct backend_device *from = t->source ? s->owners[t->source - 1].device : NULL;
    struct backend_copy copy = {.tag = t,
                                .stream = to ? BACKEND_IN : BACKEND_OUT,
                                .destination = to ? backend_base(to) : host,
                                .source = from ? backend_base(from) : host,
                                .column_bytes = t->bytes,
                                .cols = 1,
                                .destination_pitch = t->bytes,
                                .source_pitch = t->bytes,
                                .source_node = t->source,
                                .destination_node = t->destination,
                                .peer = to ? from : NULL};
    g_assert_cmpint(emulated->copy(to ? to : from, &copy), ==, DUET_OK);
    s->owners[(to ? t->destination : t->source) - 1].notified = true;
}

/* Whom the date has come for or who was told looks; again while that tells others. */
static void serve(struct scene *s)
{
    for (bool again = true; again;) {
        again = false;
        for (unsigned i = 0; i < DEVICES; i++) {
            struct owner *owner = &s->owners[i];
            if (!owner->notified && owner->wake_s > s->now)
                continue;
            owner->notified = false;
            look(owner);
            again = true;
        }
    }
}

static double next_wake(const struct scene *s)
{
    double next = INFINITY;
    for (unsigned i = 0; i < DEVICES; i++)
        next = fmin(next, s->owners[i].wake_s);
    return next;
}

static void compare(double date, double expected)
{
    if (fabs(date - expected) > 1e-12 * fmax(1, fabs(expected)))
        g_error("date %.17g, expected %.17g", date, expected);
}

/* Runs like an engine that is never late: every completion is noticed at its very date. */
static void run_punctual(struct scene *s)
{
    unsigned given = 0, ended = 0;
    while (ended < COPIES) {
        double launch_s = given < COPIES ? s->transfers[given].given_s : INFINITY;
        s->now = fmin(launch_s, next_wake(s));
        g_assert_true(isfinite(s->now));
        while (given < COPIES && s->transfers[given].given_s == s->now)
            give(s, &s->transfers[given++]);
        serve(s);
        for (unsigned i = 0; i < COPIES; i++) {
            struct transfer *t = &s->transfers[i];
            if (t->seen == 1) {
                compare(t->end_s, s->now);
                t->seen = 2;
                ended++;
            }
        }
    }
}

/* Launches in time, but looks at whatever device and whenever it likes. */
static void run_careless(struct scene *s)
{
    for (unsigned i = 0; i < COPIES; i++) {
        struct transfer *t = &s->transfers[i];
        if (duet_random_below(&s->figures.random, 2)) {
            s->now += duet_random_unit(&s->figures.random) * (t->given_s - s->now);
            look(&s->owners[duet_random_below(&s->figures.random, DEVICES)]);
        }
        s->now = t->given_s;
        give(s, t);
    }
    s->now = 1e6;
    for (unsigned i = 0; i < DEVICES; i++)
        look(&s->owners[i]);
}

static void test_random(const void *argument)
{
    g_autofree struct scene *s = g_new0(struct scene, 1);
    s->figures.random = GPOINTER_TO_UINT(argument);
    s->scale = s->figures.random % 2 ? 1 : 0.37;
    random_machine(&s->machine, NODES, s->figures.random / 2 % 2, &s->figures);
    make_transfers(s);
    expect(s);
    scene_attach(s);
    run_punctual(s);
    scene_detach(s);
    double starts[COPIES], ends[COPIES];
    for (unsigned i = 0; i < COPIES; i++) {
        struct transfer *t = &s->transfers[i];
        compare(t->start_s, t->expected_start_s);
        compare(t->end_s, t->expected_end_s);
        starts[i] = t->start_s;
        ends[i] = t->end_s;
        t->seen = 0;
    }
    scene_attach(s);
    run_careless(s);
    scene_detach(s);
    for (unsigned i = 0; i < COPIES; i++) {
        g_assert_cmpuint(s->transfers[i].seen, ==, 1);
        g_assert_true(s->transfers[i].start_s == starts[i] && s->transfers[i].end_s == ends[i]);
    }
    duet_machine_fini(&s->machine);
}

/* ------------------------------------------------------------------------------------------- */
/* Threads                                                                                      */

static double steady(void *clock)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct user {
    void *shared;
    unsigned index;
    _Atomic(unsigned) notices;
};

static void count_notice(void *owner)
{
    ((struct user *)owner)->notices++;
}

/* A worker that opens a device, keeps its streams busy for a while, and closes it; twice. */
static gpointer use_device(gpointer argument)
{
    struct user *user = argument;
    static unsigned char host[1];
    for (unsigned round = 0; round < 2; round++) {
        struct backend_config config = {.index = user->index,
                                        .node = user->index + 1,
                                        .capacity_bytes = CAPACITY,
                                        .notify = count_notice,
                                        .owner = user};
        struct backend_device *device;
        unsigned given = 0, ended = 0;
        double last_s[BACKEND_STREAMS] = {0};
        WORKS(emulated->open(&device, user->shared, &config, hear()));
        struct backend_copy copy = {.stream = BACKEND_IN,
                                    .destination = backend_base(device),
                                    .source = host,
                                    .column_bytes = 1000,
                                    .cols = 1,
                                    .destination_node = config.node};
        struct backend_kernel kernel = {.seconds = 2e-6};
        while (ended < 600) {
            struct backend_completion done;
            if (given < 600 && given < ended + 7) {
                enum backend_stream stream = given++ % 2 ? BACKEND_IN : BACKEND_KERNEL;
                copy.tag = kernel.tag = &last_s[stream];
                g_assert_cmpint(stream == BACKEND_IN ? emulated->copy(device, &copy)
                                                     : emulated->launch(device, &kernel),
                                ==, DUET_OK);
            } else if (emulated->poll(device, &done, 1)) {
                double *last = done.tag;
                g_assert_true(*last <= done.start_s && done.start_s <= done.end_s);
                *last = done.end_s;
                ended++;
            } else {
                g_assert_true(isfinite(emulated->next_s(device)));
                (void)sched_yield();
            }
        }
        emulated->close(device);
    }
    return NULL;
}

static void test_threads(void)
{
    OWNED(duet_machine_fini) struct duet_machine machine;
    struct user users[3];
    GThread *threads[G_N_ELEMENTS(users)];
    struct figures figures = {.random = 5};
    void *shared;
    random_machine(&machine, NODES, false, &figures);
    struct backend_setup setup = {.machine = &machine, .scale = 0.01, .now = steady};
    g_assert_cmpint(emulated->attach(&shared, &setup, NULL), ==, DUET_OK);
    for (unsigned i = 0; i < G_N_ELEMENTS(users); i++) {
        users[i] = (struct user){.shared = shared, .index = i};
        threads[i] = g_thread_new("user", use_device, &users[i]);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(users); i++)
        (void)g_thread_join(threads[i]);
    emulated->detach(shared);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned seed = 1; seed <= 6; seed++) {
        char name[64];
        g_snprintf(name, sizeof name, "/paced/random/%u", seed);
        g_test_add_data_func(name, GUINT_TO_POINTER(seed), test_random);
    }
    g_test_add_func("/paced/threads", test_threads);
    return g_test_run();
}
