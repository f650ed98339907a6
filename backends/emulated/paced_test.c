/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paced emulated devices: dates of kernels and copies to the last digits, on a clock that the test
 * moves. Expected figures are computed by hand here. Tests are text, of statements with semicolons
 * between them; dates are in seconds, devices are numbers, and what they do has letters:
 *
 *     now 1.5                    the clock
 *     kernel 0 a 0.5             device 0 is given kernel a of half a second
 *     in 0 a 16, out 0 a 16      or a copy of 16 MB from the host, or to it
 *     over 0 1 a 10              or device 1 a copy from device 0
 *     ends 0 a 1 1.5             the next that has ended there is a, from one date to the other
 *     lost 0 a 1 1.5             the next that has ended there is a, which is lost
 *     nothing 0                  has ended there
 *     next 0 1.75                device 0 is to be asked at that date ("inf": no more)
 *     notices 0 1, unnoticed     device 0 was notified so often; all counts become 0
 *     gone 0 1                   whether it knows that it is lost
 *     close 0, open 0            the device
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

/* ------------------------------------------------------------------------------------------- */
/* Statements                                                                                   */

/* Returns what stands for the command of a letter; NULL for no word. */
static void *tag_of(const char *word)
{
    static char tags[26];
    return word ? &tags[(unsigned char)word[0] % 26] : NULL;
}

/* Returns the number of a device, or of times. */
static unsigned number_of(const char *word)
{
    return (unsigned)g_ascii_strtoull(word, NULL, 10);
}

static void check_ended(struct scene *s, char **words, const void *tag)
{
    struct backend_completion done = {.tag = NULL};
    struct backend_device *device = s->owners[number_of(words[1])].device;
    g_assert_cmpuint(emulated->poll(device, &done, 1), ==, 1);
    g_assert_true(done.tag == tag);
    g_assert_cmpint(done.status, ==, words[0][0] == 'l' ? DUET_ELOST : DUET_OK);
    assert_date(done.start_s, g_ascii_strtod(words[3], NULL));
    assert_date(done.end_s, g_ascii_strtod(words[4], NULL));
}

static void scene_step(struct scene *s, char **words)
{
    struct backend_completion none;
    const char *const what = words[0];
    const bool clock = !strcmp(what, "now");
    const unsigned index = words[1] && !clock ? number_of(words[1]) : 0;
    struct backend_device *device = s->owners[index].device;
    void *tag = words[1] ? tag_of(words[2]) : NULL;
    const double number = tag && words[3] ? g_ascii_strtod(words[3], NULL) : 0;
    const double date = tag ? g_ascii_strtod(words[2], NULL) : 0;
    if (clock)
        s->now = g_ascii_strtod(words[1], NULL);
    else if (!strcmp(what, "kernel"))
        kernel(s, index, tag, number);
    else if (!strcmp(what, "in") || !strcmp(what, "out"))
        copy(s, index, what[0] == 'i' ? BACKEND_IN : BACKEND_OUT, tag, number * MB);
    else if (!strcmp(what, "over"))
        copy_between(s, index, number_of(words[2]), tag_of(words[3]),
                     g_ascii_strtod(words[4], NULL) * MB);
    else if (!strcmp(what, "ends") || !strcmp(what, "lost"))
        check_ended(s, words, tag);
    else if (!strcmp(what, "nothing"))
        g_assert_cmpuint(emulated->poll(device, &none, 1), ==, 0);
    else if (!strcmp(what, "next") && isinf(date))
        g_assert_true(isinf(emulated->next_s(device)));
    else if (!strcmp(what, "next"))
        assert_date(emulated->next_s(device), date);
    else if (!strcmp(what, "notices"))
        g_assert_cmpuint(s->owners[index].notices, ==, number_of(words[2]));
    else if (!strcmp(what, "unnoticed"))
        s->owners[0].notices = s->owners[1].notices = s->owners[2].notices = 0;
    else if (!strcmp(what, "gone"))
        g_assert_cmpuint(backend_lost(device), ==, number_of(words[2]));
    else if (!strcmp(what, "close"))
        emulated->close(device);
    else if (!strcmp(what, "open"))
        scene_open(s, index, 0);
    else
        g_error("%s is no statement", what);
}

static void play(double scale, uint64_t lose_at, const char *text)
{
    OWNED(scene_fini) struct scene s;
    g_auto(GStrv) steps = g_strsplit(text, ";", -1);
    scene_init(&s, scale, lose_at);
    for (unsigned i = 0; steps[i]; i++) {
        g_auto(GStrv) words = g_strsplit(g_strstrip(steps[i]), " ", -1);
        g_test_message("%s", steps[i]);
        scene_step(&s, words);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Tests                                                                                        */

static const struct {
    const char *name;
    uint64_t lose_at; /* of the first device */
    const char *text;
} scripts[] = {
    {"kernels: one behind the other; a late look changes no date, a late launch does", 0,
     "next 0 inf; now 1; kernel 0 a 0.5; kernel 0 b 0.25; now 1.25; kernel 0 c 0; nothing 0;"
     "next 0 1.5; now 1.5; ends 0 a 1 1.5; nothing 0; next 0 1.75; now 10; ends 0 b 1.5 1.75;"
     "ends 0 c 1.75 1.75; kernel 0 d 2; kernel 1 e 1; now 20; ends 0 d 10 12; ends 1 e 10 11;"
     "nothing 0; next 0 inf"},
    {"two copies through the switch take twice as long as its bandwidth would let one", 0,
     "out 0 a 10; out 1 b 10; now 50; ends 0 a 0 2.25; ends 1 b 0 2.25"},
    {"links that limit each copy alone are not shared; opposite directions are two links", 0,
     "over 0 1 a 10; over 1 0 b 10; now 2; ends 1 a 0 2; ends 0 b 0 2; in 0 c 8; out 1 d 10; now "
     "50;"
     "ends 0 c 2 3.5; ends 1 d 2 3.25"},
    /* the first is alone until 0.5, when half of it is left; then both have 2 MB/s until 1.5, when
     * the second has 2 MB left, which take half a second alone */
    {"both directions of a device share its link: a copy joins halfway, one ends", 0,
     "in 2 a 4; now 0.5; out 2 b 4; next 2 1.5; now 9; ends 2 a 0 1.5; ends 2 b 0.5 2; in 2 c 4;"
     "now 10; ends 2 c 9 10"},
    /* into gpu0 at 8 MB/s from 0.5 on, which alone would end at 2.5; into gpu1 from 1.5 on: both at
     * 5, until the second has 8 MB left. Its start was seen by nobody */
    {"a copy joins halfway: the first one's date is found out by asking at the old one", 0,
     "in 0 a 16; now 1; in 1 b 16; next 0 2.5; now 2.5; nothing 0; next 0 3.1; now 40;"
     "ends 1 b 1 4.1; ends 0 a 0 3.1"},
    {"a copy behind another in its stream begins at its end, latency and all", 0,
     "out 0 a 10; out 0 b 20; in 0 c 8; now 1; out 0 d 10; now 60; ends 0 c 0 1.5; ends 0 a 0 1.25;"
     "ends 0 b 1.25 3.5; ends 0 d 3.5 4.75"},
    {"one copy at a time leaves a device, to the host or to another, as in the simulation", 0,
     "out 0 a 10; over 0 1 b 10; out 0 c 10; in 1 d 8; next 1 inf; now 1.25; ends 0 a 0 1.25;"
     "notices 1 1; next 1 3.25; now 60; ends 1 b 1.25 3.25; ends 0 c 3.25 4.5; ends 1 d 3.25 4.75"},
    {"a device whose copy ends sooner because another's has ended is told, and nobody else is", 0,
     "out 0 a 5; out 1 b 10; now 0.25; next 0 1.25; next 1 2.25; unnoticed; now 1.25;"
     "ends 0 a 0 1.25; notices 0 0; notices 1 1; notices 2 0; next 1 1.75; now 1.75;"
     "ends 1 b 0 1.75; notices 1 1"},
    /* the switch is shared until 1.25, when 5 MB of each have come to the host; g would wait for
     * both, and h for the peer's */
    {"all that a lost device has in flight ends at that date, and copies of others from it", 7,
     "kernel 0 a 1; kernel 0 b 3; kernel 0 c 1; out 0 d 20; out 1 e 20; in 1 f 8; over 0 1 g 10;"
     "over 1 0 h 10; in 0 i 8; now 1.25; kernel 0 j 1; lost 0 h 1.25 1.25; lost 0 i 1.25 1.25;"
     "lost 0 a 0 1; lost 0 b 1 1.25; lost 0 c 1.25 1.25; lost 0 j 1.25 1.25; lost 0 d 0 1.25;"
     "next 0 inf; now 2; out 0 d 20; lost 0 d 2 2; now 30; ends 1 f 0 1.5; lost 1 g 1.5 1.5;"
     "ends 1 e 0 2.75; over 0 1 g 10; lost 1 g 30 30; out 1 e 10; now 40; ends 1 e 30 31.25"},
    {"a copy flows from a device when that is lost", 1,
     "over 0 1 a 10; in 1 b 8; next 1 2; now 1; kernel 0 c 1; notices 1 1; lost 1 a 0 1; nothing 1;"
     "gone 0 1; gone 1 0; now 9; ends 1 b 1 2.5"},
    {"a device that is closed does not wait for dates; what it had on the links is gone", 0,
     "kernel 0 a 1000; out 0 b 1000; out 1 c 10; now 0.25; next 1 2.25; now 1.25; close 0;"
     "notices 1 1; next 1 1.75; open 0; now 5; ends 1 c 0 1.75; nothing 0"},
};

static void test_scripts(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(scripts); i++) {
        g_test_message("%s", scripts[i].name);
        play(1, scripts[i].lose_at, scripts[i].text);
    }
}

/* The latency first, then the bytes at the narrowest link; all of it times the scale. A copy of no
 * bytes is over at once. */
static void test_scales(void)
{
    play(1, 0,
         "now 2; in 0 a 16; next 0 2.5; now 2.75; nothing 0; next 0 4.5; now 100;"
         "ends 0 a 2 4.5; out 2 a 0; ends 2 a 100 100");
    play(0.125, 0,
         "now 2; in 0 a 16; next 0 2.0625; now 2.09375; nothing 0; next 0 2.3125; now 100;"
         "ends 0 a 2 2.3125; out 2 a 0; ends 2 a 100 100");
    play(3, 0,
         "now 2; in 0 a 16; next 0 3.5; now 4.25; nothing 0; next 0 9.5; now 100;"
         "ends 0 a 2 9.5; out 2 a 0; ends 2 a 100 100");
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

TEST_MAIN(test_scripts, test_scales, test_refused)
