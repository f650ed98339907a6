/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model of copies against the simulated engine's copies, which either network carries: random
 * copies on random machines.
 */
#include <float.h>
#include <string.h>

#include "core/flows.h"
#include "core/testing_links.h"
#include "platforms/catalogue.h"
#include "sim/internal.h"
#include "sim/testing.h"

enum { NODES = 7, COPIES = 40, CASES = 100, ALL = CASES * COPIES, SEEDS = 24 };

/* A copy of a case, and its dates by the model. */
struct job {
    struct duet__copy copy; /* first, as a job is found by it */
    struct sim *sim;
    double launched_s, start_s, end_s;
};

/* Cases on machines that are equal and share nothing, on one clock. */
struct scene {
    struct duet_machine machine;
    struct cluster cluster;
    struct sim cases[CASES];
    struct job jobs[ALL]; /* in the order in which they are decided */
    unsigned arrived;
};

static double next_s(void *owner)
{
    const struct scene *scene = owner;
    return duet__events_first_s(&scene->cluster.events);
}

static bool alarm_rings(void *owner, double date)
{
    struct scene *scene = owner;
    struct events *events = &scene->cluster.events;
    const double clock_s = date * (1 + 4 * DBL_EPSILON);
    while (duet__events_first_s(events) <= clock_s) {
        struct event event = duet__events_take(events);
        struct job *job = event.what;
        scene->cluster.now = event.date;
        if (event_kind(&event) == EVENT_SUBMIT)
            duet__sim_copy(job->sim, &(struct duet__engine_command){.copy = &job->copy},
                           job->launched_s);
        else
            duet__sim_flow(((struct flow *)event.what)->sim, event.what);
    }
    return false;
}

static void assert_near(const struct job *job, double date, double expected)
{
    if (fabs(date - expected) > 1e-12 * fmax(1, expected))
        g_error("a copy of %g bytes launched at %.12g: %.15g, not %.15g", (double)job->copy.bytes,
                job->launched_s, date, expected);
}

static void arrived(void *owner, void *tag)
{
    struct scene *scene = owner;
    struct transfer *transfer = tag;
    const struct job *job = (const struct job *)transfer->command.copy;
    scene->cluster.now = duet__sim_clock(&scene->cluster);
    duet__sim_copy_end(job->sim, transfer);
    assert_near(job, transfer->start_s, job->start_s);
    assert_near(job, transfer->end_s, job->end_s);
    free(transfer);
    scene->arrived++;
}

static int by_decision(const void *left, const void *right)
{
    const double a = ((const struct job *)left)->copy.decided_s;
    const double b = ((const struct job *)right)->copy.decided_s;
    return (a > b) - (a < b);
}

static void make_jobs(struct scene *scene, struct figures *figures)
{
    for (unsigned i = 0; i < ALL; i++) {
        struct job *job = &scene->jobs[i];
        const unsigned from = duet_random_below(&figures->random, NODES);
        job->sim = &scene->cases[i % CASES];
        job->copy.source = (uint16_t)from;
        job->copy.destination =
            (uint16_t)((from + 1 + duet_random_below(&figures->random, NODES - 1)) % NODES);
        job->copy.bytes = (uint64_t)pow(10, 12 * figure(figures));
        job->copy.decided_s = 100 * figure(figures);
        job->launched_s = job->copy.decided_s + 10 * figure(figures); /* its worker is busy */
    }
    qsort(scene->jobs, ALL, sizeof scene->jobs[0], by_decision);
}

/* Fills in the dates of a case by the model. */
static void expect_dates(struct scene *scene, const struct sim *sim)
{
    OWNED(duet__flows_fini) struct duet__flows flows;
    g_assert_cmpint(duet__flows_init(&flows, &scene->machine, 1), ==, DUET_OK);
    for (struct job *job = scene->jobs; job < &scene->jobs[ALL]; job++) {
        const struct duet__flow flow = {.source = job->copy.source,
                                        .destination = job->copy.destination,
                                        .bytes = (double)job->copy.bytes,
                                        .start_s = job->launched_s,
                                        .tag = job};
        if (job->sim != sim)
            continue;
        duet__flows_advance(&flows, job->copy.decided_s);
        g_assert_cmpint(duet__flows_add(&flows, &flow), ==, DUET_OK);
    }
    duet__flows_advance(&flows, INFINITY);
    while (flows.count) {
        const struct duet__flow flow = duet__flows_remove(&flows, 0);
        g_assert_cmpint(flow.state, ==, DUET__ENDED);
        ((struct job *)flow.tag)->start_s = flow.start_s;
        ((struct job *)flow.tag)->end_s = flow.date_s;
    }
}

static const struct network_engine *engine_of(bool simgrid)
{
    return simgrid ? duet__network_simgrid(NULL) : &duet__network_fluid;
}

static void check_random(const void *argument, bool simgrid)
{
    static const struct network_calls calls = {next_s, alarm_rings, arrived};
    static struct scene scene;
    struct duet_message message = {""};
    const struct network_engine *engine = engine_of(simgrid);
    const unsigned seed = GPOINTER_TO_UINT(argument);
    struct figures figures = {.random = seed, .round = seed % 2};
    random_machine(&scene.machine, NODES, seed / 2 % 2, &figures);
    make_jobs(&scene, &figures);
    for (unsigned c = 0; c < CASES; c++) {
        struct sim *sim = &scene.cases[c];
        *sim = (struct sim){.cluster = &scene.cluster, .number = c, .machine = scene.machine};
        sim->incoming = calloc(NODES, sizeof *sim->incoming);
        sim->outgoing = calloc(NODES, sizeof *sim->outgoing);
        expect_dates(&scene, sim);
    }
    for (struct job *job = scene.jobs; job < &scene.jobs[ALL]; job++)
        duet__sim_event(job->sim, job->copy.decided_s, EVENT_SUBMIT, 0, job);
    scene.cluster.engine = engine;
    if (engine->open(&scene.cluster.network, &scene.machine, CASES, NULL, &calls, &scene, &message))
        g_error("%s", message.text);
    engine->run(scene.cluster.network);
    g_assert_cmpuint(scene.arrived, ==, ALL);
    if (simgrid) {
        struct network *second;
        g_assert_cmpint(engine->open(&second, &scene.machine, 1, NULL, &calls, &scene, &message),
                        ==, DUET_EBUSY);
        g_assert_nonnull(strstr(message.text, "once"));
        g_assert_null(second);
    }
    engine->close(scene.cluster.network);
    for (unsigned c = 0; c < CASES; c++)
        duet__sim_copies_fini(&scene.cases[c]);
    free(scene.cluster.events.heap);
    duet_machine_fini(&scene.machine);
}

static void test_random(const void *argument)
{
    check_random(argument, false);
}

static void test_random_simgrid(const void *argument)
{
    check_random(argument, true);
}

/* Copies through the ports of GPUs, and the network that carries them. */
struct ports {
    const struct network_engine *engine;
    struct network *network;
    struct job *next, *end;
};

static double port_next_s(void *owner)
{
    const struct ports *ports = owner;
    return ports->next < ports->end ? ports->next->launched_s : INFINITY;
}

static bool port_alarm_rings(void *owner, double date)
{
    struct ports *ports = owner;
    struct job *job = ports->next++;
    g_assert_true(ports->engine->copy(ports->network, 0, job->copy.source, job->copy.destination,
                                      job->copy.bytes, job));
    return false;
}

static void port_arrived(void *owner, void *tag)
{
    const struct ports *ports = owner;
    ((struct job *)tag)->end_s = ports->engine->clock(ports->network);
}

/*
 * GPUs behind NVSwitch: a GPU's total is limited, in and out, and not only each copy. First two
 * copies leave GPU 0 and share what it has, then four pairs copy at full speed, then two copies
 * enter GPU 0.
 */
static void check_ports(bool simgrid)
{
    static const struct network_calls calls = {port_next_s, port_alarm_rings, port_arrived};
    static const uint16_t pairs[][3] = {{0, 1, 0}, {0, 2, 0}, {0, 1, 1}, {2, 3, 1},
                                        {4, 5, 1}, {6, 7, 1}, {1, 0, 2}, {2, 0, 2}};
    const struct duet__gpu_group gpus[] = {{8, "h100"}};
    const struct duet__assembly assembly = {.name = "eight",
                                            .sockets = 2,
                                            .gpus = gpus,
                                            .group_count = 1,
                                            .fabric = DUET_FABRIC_SWITCHED};
    const struct duet__platform_options whole = {.cpus = -1, .gpus = -1};
    OWNED(duet_machine_fini) struct duet_machine machine;
    struct job jobs[G_N_ELEMENTS(pairs)] = {{.end_s = 0}};
    struct ports ports = {engine_of(simgrid), .next = jobs, .end = jobs + G_N_ELEMENTS(jobs)};
    OWNED(duet__catalogue_fini) struct duet__catalogue catalogue;
    OWNED(duet__platform_fini) struct duet__platform platform;
    struct duet_message message = {""};
    if (duet__catalogue_load(&catalogue, &message) ||
        duet__platform_assemble(&catalogue, &assembly, &platform, &message) ||
        duet__platform_build(&platform, &whole, &machine, &message) ||
        ports.engine->open(&ports.network, &machine, 1, NULL, &calls, &ports, &message))
        g_error("%s", message.text);
    double port = platform.gpus[0].port_out_Bps;
    g_assert_cmpfloat_with_epsilon(port, 0.95 * 450e9, 1);
    for (unsigned i = 0; i < G_N_ELEMENTS(pairs); i++) {
        jobs[i].copy = (struct duet__copy){.source = 1 + pairs[i][0],
                                           .destination = 1 + pairs[i][1],
                                           .bytes = 1000000000};
        jobs[i].launched_s = pairs[i][2];
    }
    ports.engine->run(ports.network);
    for (unsigned i = 0; i < G_N_ELEMENTS(pairs); i++)
        g_assert_cmpfloat_with_epsilon(jobs[i].end_s - pairs[i][2],
                                       1e9 / (pairs[i][2] == 1 ? port : port / 2), 1e-9);
    ports.engine->close(ports.network);
}

static void test_ports(void)
{
    check_ports(false);
}

static void test_ports_simgrid(void)
{
    check_ports(true);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    const bool simgrid = duet__network_simgrid(NULL);
    lab_add("/network/ports", test_ports);
    if (simgrid)
        lab_add("/network/simgrid/ports", test_ports_simgrid);
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        char name[64];
        g_snprintf(name, sizeof name, "/network/random/%u", seed);
        lab_add_on(name, GUINT_TO_POINTER(seed), test_random);
        g_snprintf(name, sizeof name, "/network/simgrid/random/%u", seed);
        if (simgrid)
            lab_add_on(name, GUINT_TO_POINTER(seed), test_random_simgrid);
    }
    return g_test_run();
}
