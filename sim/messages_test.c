/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between simulated nodes, by hand. Each node has one CPU; cards have 1 GB/s in each
 * direction on one switch; a message of b bytes takes 2 us at either end, 10 us and b ns between
 * them, and 5 us more above 100,000 bytes.
 */
#include <math.h>

#include <duet/random.h>

#include "nodes/nodes.h"
#include "sim/testing.h"

enum { NODES = 3 };

struct cluster_lab {
    struct lab lab; /* its runtime is the front */
    struct duet_runtime *cores[NODES];
    struct duet__nodes *nodes;
};

static struct cluster_lab open_on(const struct lab_options *options,
                                  const struct duet__network *network)
{
    static const struct duet__calibration empty;
    struct cluster_lab cluster = {.lab.machine = lab_machine(options)};
    const struct sim_options sim = {.calibration = &empty,
                                    .effects = DUET__EFFECTS,
                                    .nodes = NODES,
                                    .network = network};
    struct duet__core_config core = {.machine = &cluster.lab.machine,
                                     .policy = duet_policy_find("eager"),
                                     .model = duet_model_at(0),
                                     .window = options->window,
                                     .record = true,
                                     .ops = duet__sim_ops()};
    void *engines[NODES];
    WORKS(duet__sim_new(engines, &cluster.lab.machine, &sim, hear()));
    for (unsigned n = 0; n < NODES; n++) {
        core.engine = engines[n];
        core.seed = n;
        WORKS(duet__core_new(&cluster.cores[n], &core, hear()));
        duet__sim_attach(engines[n], cluster.cores[n]);
    }
    const struct duet__nodes_config nodes = {.count = NODES,
                                             .hosted = NODES,
                                             .grid = {1, NODES},
                                             .cores = cluster.cores,
                                             .transport = duet__sim_transport(),
                                             .transport_of = engines[0]};
    WORKS(duet__nodes_new(&cluster.nodes, &nodes, hear()));
    cluster.lab.duet = cluster.cores[0];
    cluster.lab.kernel = lab_codelet(&cluster.lab, "work", lab_work, lab_cost);
    return cluster;
}

static struct cluster_lab open_lab(double submit_s, double foreign_s, size_t window)
{
    static const struct duet__network network = {.kind = DUET__NETWORK_SWITCH,
                                                 .bandwidth_Bps = 1e9,
                                                 .latency_s = 10e-6,
                                                 .overhead_s = 2e-6,
                                                 .rendezvous_s = 5e-6,
                                                 .eager_bytes = 100000};
    const struct lab_options options = {.cpus = 1,
                                        .window = window,
                                        .costs = {.submit_s = submit_s, .foreign_s = foreign_s}};
    return open_on(&options, &network);
}

static void close_lab(struct cluster_lab *cluster)
{
    duet__nodes_free(cluster->nodes);
    for (unsigned n = 0; n < NODES; n++)
        duet__core_free(cluster->cores[n]);
    duet_machine_fini(&cluster->lab.machine);
}

static struct duet_handle *data_of(struct cluster_lab *cluster, unsigned node, uint64_t bytes)
{
    struct duet_handle *handle = lab_data(&cluster->lab, bytes);
    g_assert_cmpint(duet_own(cluster->lab.duet, handle, node), ==, DUET_OK);
    return handle;
}

/* The number-th task (from 1) that ran on the node did so from start to end. */
static void expect_task(struct cluster_lab *cluster, unsigned node, unsigned number, double start_s,
                        double end_s)
{
    g_autofree struct duet_event *events = NULL;
    size_t count, tasks = 0, i = 0;
    g_assert_cmpint(duet_trace_events(cluster->cores[node], &events, &count), ==, DUET_OK);
    while (i < count && (events[i].kind != DUET_EVENT_TASK || ++tasks < number))
        i++;
    g_assert_cmpuint(i, <, count);
    assert_seconds(events[i].start_s, start_s);
    assert_seconds(events[i].end_s, end_s);
}

static void finish(struct cluster_lab *cluster)
{
    if (duet_wait(cluster->lab.duet))
        g_error("%s", duet_last_message(cluster->lab.duet));
}

#define task(cluster, seconds, ...) lab_task(&(cluster)->lab, NULL, seconds, __VA_ARGS__)

/* One message of each kind, the second when the first is done. */
static void test_lone(void)
{
    OWNED(close_lab) struct cluster_lab c = open_lab(0, 0, 0);
    struct duet_handle *few = data_of(&c, 0, 100000), *many = data_of(&c, 1, 200000);
    struct duet_handle *last = data_of(&c, 2, 8);
    task(&c, 1e-3, 1, few, DUET_RW);
    task(&c, 1e-3, 2, few, DUET_R, many, DUET_RW);
    task(&c, 1e-3, 2, many, DUET_R, last, DUET_RW);
    finish(&c);
    expect_task(&c, 0, 1, 0, 1e-3);
    expect_task(&c, 1, 1, 1.114e-3, 2.114e-3); /* 2 + 10 + 100 + 2 us later */
    expect_task(&c, 2, 1, 2.333e-3, 3.333e-3); /* 2 + 10 + 5 + 200 + 2 */
    assert_seconds(duet_now(c.lab.duet), 3.333e-3);
}

/*
 * Two of 50,000 bytes leave node 0: at 2 and 4 us, to flow from 12 and 14 us on: until then the
 * first has had 2,000 bytes. Both have half of the card until the first is there, at 110 us; the
 * second has 2,000 bytes left then. At the same time node 1 sends to node 0, which shares nothing.
 */
static void test_two_out(void)
{
    OWNED(close_lab) struct cluster_lab c = open_lab(0, 0, 0);
    struct duet_handle *a = data_of(&c, 0, 50000), *b = data_of(&c, 0, 50000);
    struct duet_handle *other = data_of(&c, 1, 50000), *home = data_of(&c, 0, 8);
    struct duet_handle *one = data_of(&c, 1, 8), *two = data_of(&c, 2, 8);
    task(&c, 1e-3, 2, a, DUET_R, one, DUET_RW);
    task(&c, 1e-3, 2, b, DUET_R, two, DUET_RW);
    task(&c, 1e-3, 2, other, DUET_R, home, DUET_RW);
    finish(&c);
    expect_task(&c, 1, 1, 112e-6, 1.112e-3);
    expect_task(&c, 2, 1, 114e-6, 1.114e-3);
    expect_task(&c, 0, 1, 64e-6, 1.064e-3);
}

/*
 * Into one card, both at once: 2 x 50,000 bytes from 12 us on are there at 112 us; their receiver
 * takes one after the other.
 */
static void test_two_in(void)
{
    OWNED(close_lab) struct cluster_lab c = open_lab(0, 0, 0);
    struct duet_handle *a = data_of(&c, 1, 50000), *b = data_of(&c, 2, 50000);
    struct duet_handle *one = data_of(&c, 0, 8), *two = data_of(&c, 0, 8);
    task(&c, 1e-6, 2, a, DUET_R, one, DUET_RW);
    task(&c, 1e-6, 2, b, DUET_R, two, DUET_RW);
    finish(&c);
    expect_task(&c, 0, 1, 114e-6, 115e-6);
    expect_task(&c, 0, 2, 116e-6, 117e-6);
}

/* The number-th message (from 1) that arrived on node 1. */
static void expect_message(struct cluster_lab *cluster, unsigned number, double start_s,
                           double end_s)
{
    const struct duet__node_log *log = duet__nodes_log(cluster->nodes, 1);
    g_assert_cmpuint(log->message_count, >=, number);
    g_assert_true(log->messages[number - 1].arrives);
    assert_seconds(log->messages[number - 1].start_s, start_s);
    assert_seconds(log->messages[number - 1].end_s, end_s);
}

/*
 * The application's thread of node 1 submits three tasks first, in 1 ms each, then what takes the
 * messages, in 1 ms, too, before each of the tasks that need them. By then the eager one is there;
 * the other one starts only now.
 */
static void test_late_receiver(void)
{
    OWNED(close_lab) struct cluster_lab c = open_lab(1e-3, 0, 0);
    struct duet_handle *few = data_of(&c, 0, 50000), *many = data_of(&c, 0, 2000000);
    struct duet_handle *own = data_of(&c, 1, 8), *next = data_of(&c, 1, 8);
    for (unsigned i = 0; i < 3; i++)
        task(&c, 1e-6, 1, own, DUET_RW);
    task(&c, 0.1e-3, 2, few, DUET_R, next, DUET_RW);
    task(&c, 0.1e-3, 2, many, DUET_R, next, DUET_RW);
    finish(&c);
    expect_message(&c, 1, 1e-3, 4.002e-3);
    expect_message(&c, 2, 2e-3, 8.017e-3); /* 6 ms, 5 + 10 us, 2 ms, 2 us */
    expect_task(&c, 1, 4, 5e-3, 5.1e-3);
    expect_task(&c, 1, 5, 8.017e-3, 8.117e-3);
}

/*
 * Node 1 writes the same data twice, the second time first, as the first needs what takes 1 s, and
 * sends both versions to node 2: each comes to the task that reads it.
 */
static void test_versions(void)
{
    OWNED(close_lab) struct cluster_lab c = open_lab(0, 0, 0);
    struct duet_handle *late = data_of(&c, 0, 8), *home = data_of(&c, 0, 8);
    struct duet_handle *data = data_of(&c, 1, 50000);
    struct duet_handle *one = data_of(&c, 2, 8), *two = data_of(&c, 2, 8);
    task(&c, 1, 1, late, DUET_RW);
    task(&c, 1e-3, 2, late, DUET_R, data, DUET_W);
    task(&c, 2e-3, 2, data, DUET_R, one, DUET_RW);
    task(&c, 1e-3, 2, home, DUET_RW, data, DUET_W); /* here node 1 gives its own up */
    task(&c, 1e-3, 1, data, DUET_W);
    task(&c, 1e-3, 2, data, DUET_R, two, DUET_RW);
    finish(&c);
    expect_task(&c, 2, 1, 1.064e-3, 2.064e-3); /* 2 + 10 + 50 + 2 us later */
    expect_task(&c, 2, 2, 1.001078008, 1.003078008);
}

/* Submitting no task takes time, but passing one over does: 1 ms for each of the three. */
static void test_passed(void)
{
    OWNED(close_lab) struct cluster_lab c = open_lab(0, 1e-3, 0);
    struct duet_handle *here = data_of(&c, 0, 8), *there = data_of(&c, 1, 8);
    for (unsigned i = 0; i < 3; i++)
        task(&c, 1e-3, 1, here, DUET_RW);
    task(&c, 1e-3, 1, there, DUET_RW);
    finish(&c);
    expect_task(&c, 0, 3, 2e-3, 3e-3);
    expect_task(&c, 1, 1, 3e-3, 4e-3);
}

/* A network without latency. */
static const struct duet__network quick = {.kind = DUET__NETWORK_SWITCH,
                                           .bandwidth_Bps = 1e9,
                                           .overhead_s = 2e-6,
                                           .eager_bytes = 1e6};

/*
 * Threads take 5 us to wake. That of node 0 does when the task has ended; that of node 1 has slept
 * and looked since the beginning, an eighth of what it has waited at a time, 100 us at most.
 */
static void test_sleep(void)
{
    const struct lab_options options = {.cpus = 1, .costs = {.wake_s = 5e-6}};
    OWNED(close_lab) struct cluster_lab c = open_on(&options, &quick);
    struct duet_handle *few = data_of(&c, 0, 50000), *own = data_of(&c, 1, 8);
    double looks_s = 20e-6;
    task(&c, 1e-3, 1, few, DUET_RW);
    task(&c, 1e-3, 2, few, DUET_R, own, DUET_RW);
    finish(&c);
    while (looks_s < 1.057e-3) /* 1 ms, and 5 + 2 + 50 us */
        looks_s += fmin(looks_s / 8, 100e-6) + 5e-6;
    expect_message(&c, 1, 1.005e-3, looks_s + 2e-6);
    expect_task(&c, 1, 1, looks_s + 7e-6, looks_s + 1.007e-3);
}

/* Node 1 asks for the message at 2 ms: its thread is awake since when it comes, 15 us later. */
static void test_late_sleep(void)
{
    const struct lab_options options = {.cpus = 1, .costs = {.wake_s = 5e-6, .submit_s = 1e-3}};
    OWNED(close_lab) struct cluster_lab c = open_on(&options, &quick);
    struct duet_handle *few = data_of(&c, 0, 1000), *own = data_of(&c, 1, 8);
    task(&c, 1.002e-3, 1, few, DUET_RW); /* from 1.005 ms on, then node 0's thread wakes */
    task(&c, 1e-3, 1, own, DUET_RW);
    task(&c, 1e-3, 2, few, DUET_R, own, DUET_RW);
    finish(&c);
    expect_message(&c, 1, 2.012e-3, 2.017e-3);
}

/*
 * Node 0 changes data, 1 ms, while node 1 still reads what it was before, 10 ms each time: the path
 * is one change and three times reading.
 */
static void test_path(void)
{
    OWNED(close_lab) struct cluster_lab c = open_lab(0, 0, 0);
    struct duet_handle *data = data_of(&c, 0, 8), *own = data_of(&c, 1, 8);
    duet__nodes_keep_path(c.nodes);
    for (unsigned i = 0; i < 3; i++) {
        task(&c, 1e-3, 1, data, DUET_RW);
        task(&c, 10e-3, 2, data, DUET_R, own, DUET_RW);
    }
    finish(&c);
    assert_seconds(duet__nodes_path_s(c.nodes), 31e-3);
    g_assert_cmpfloat(duet_now(c.lab.duet), <, 32e-3);
}

/* A window of 8 tasks a node: the run goes on while its application's thread waits for one. */
static void test_window(void)
{
    OWNED(close_lab) struct cluster_lab c = open_lab(0, 0, 8);
    struct duet_handle *a = data_of(&c, 0, 1000), *b = data_of(&c, 1, 1000);
    for (unsigned i = 0; i < 50; i++) { /* each 15 us after the other: 2 + 10 + 1 + 2 */
        task(&c, 1e-3, 2, b, DUET_R, a, DUET_RW);
        task(&c, 1e-3, 2, a, DUET_R, b, DUET_RW);
    }
    finish(&c);
    expect_task(&c, 1, 50, 99 * 1.015e-3 + 15e-6, 99 * 1.015e-3 + 1.015e-3);
}

/* A node that fails ends all, while messages wait and are on their way; more is refused. */
static void test_failure(void)
{
    OWNED(close_lab) struct cluster_lab c = open_lab(0, 0, 0);
    struct duet_handle *a = data_of(&c, 0, 500000), *b = data_of(&c, 1, 8), *d = data_of(&c, 2, 8);
    task(&c, 1e-3, 2, a, DUET_R, b, DUET_RW);
    task(&c, 1e-3, 2, b, DUET_R, d, DUET_RW);
    task(&c, 1e-3, 2, d, DUET_R, a, DUET_RW);
    duet__fail_run(c.cores[1], DUET_EIO, "its disk is full");
    g_assert_cmpint(duet_wait(c.lab.duet), ==, DUET_EIO);
    g_assert_cmpstr(duet_last_message(c.lab.duet), ==, "node 1: its disk is full");
    for (unsigned n = 0; n < NODES; n++)
        g_assert_true(duet__finished(c.cores[n]));
}

static void keep(void *arg, struct duet__acquisition *acquisition, int status)
{
    *(struct duet__acquisition **)arg = acquisition;
}

/* A node on which nothing goes on is named; when it does, all is well. */
static void test_stuck(void)
{
    OWNED(close_lab) struct cluster_lab c = open_lab(0, 0, 0);
    struct duet__acquisition *kept = NULL;
    struct duet_handle *own, *last = data_of(&c, 2, 8);
    g_assert_cmpint(duet_register_vector(c.cores[1], NULL, 8, 1, &own), ==, DUET_OK);
    g_assert_cmpint(duet__acquire_submit(c.cores[1], own, DUET_R, 0, keep, &kept), ==, DUET_OK);
    task(&c, 1e-3, 1, last, DUET_RW);
    g_assert_cmpint(duet_wait(c.lab.duet), ==, DUET_ESTUCK);
    g_assert_true(g_str_has_prefix(duet_last_message(c.lab.duet), "node 1: 1 task cannot go on"));
    TOLD(c.lab.duet, "1 piece of data is lent");
    duet__acquisition_end(kept, 1, DUET_OK);
    finish(&c);
    expect_task(&c, 2, 1, 0, 1e-3);
}

/* ------------------------------------------------------------------------------------------- */
/* Random programs                                                                              */

enum { DATA = 8, STEPS = 200 };

static double short_cost(const void *args, const char *arch)
{
    return 1e-5;
}

static int random_task(struct cluster_lab *c, struct duet_handle **data, uint64_t *rng)
{
    static const enum duet_mode modes[] = {DUET_R, DUET_R, DUET_W, DUET_RW, DUET_COMMUTE};
    const unsigned node = duet_random_below(rng, NODES), first = duet_random_below(rng, DATA);
    const struct lab_seconds seconds = {1e-5 * (1 + duet_random_below(rng, 20)), 1e-5};
    const bool reduces = duet_random_below(rng, 4) == 0;
    struct duet_access accesses[3];
    const struct duet_task_extra extra = {.node = &node};
    const struct duet_task_desc task = {.codelet = c->lab.kernel,
                                        .accesses = accesses,
                                        .access_count = 1 + duet_random_below(rng, 3),
                                        .args = &seconds,
                                        .args_bytes = sizeof seconds,
                                        .priority = (int)duet_random_below(rng, 3),
                                        .extra = duet_random_below(rng, 3) ? NULL : &extra};
    for (unsigned i = 0; i < 3; i++)
        accesses[i] = (struct duet_access){data[(first + i) % DATA],
                                           reduces && i == 0 ? DUET_REDUCE
                                                             : modes[duet_random_below(rng, 5)]};
    return duet_submit(c->lab.duet, &task);
}

static int random_step(struct cluster_lab *c, struct duet_handle **data, uint64_t *rng)
{
    struct duet_handle *datum = data[duet_random_below(rng, DATA)];
    const unsigned node = duet_random_below(rng, NODES);
    int error;
    switch (duet_random_below(rng, 40)) {
    case 0:
        return duet_wait(c->lab.duet);
    case 1:
        error = duet_acquire(c->lab.duet, datum, DUET_RW);
        return error ? error : duet_release(c->lab.duet, datum);
    case 2:
    case 3:
        return duet_migrate(c->lab.duet, datum, node);
    case 4:
    case 5:
        return duet_fetch(c->lab.duet, datum, node);
    case 6:
        return duet_wont_use(c->lab.duet, datum);
    default:
        return random_task(c, data, rng);
    }
}

/* Writes when what ran where. Every third program fails on some node in its midst. */
static void run_random(const void *argument, FILE *out)
{
    const uint64_t seed = *(const uint64_t *)argument;
    uint64_t rng = duet_random_stream(seed, 3);
    const struct duet__network network = {.kind = DUET__NETWORK_SWITCH,
                                          .bandwidth_Bps = 1e9,
                                          .latency_s = 1e-6 * duet_random_below(&rng, 3),
                                          .overhead_s = 1e-6 * duet_random_below(&rng, 2),
                                          .rendezvous_s = 1e-6,
                                          .eager_bytes = 10000};
    const struct lab_options options = {.cpus = 1 + duet_random_below(&rng, 2),
                                        .gpus = 1,
                                        .gpu_memory_bytes = 200000,
                                        .first_waits = duet_random_below(&rng, 2),
                                        .window = duet_random_below(&rng, 2) ? 6 : 0,
                                        .costs = {.submit_s = 1e-6,
                                                  .push_s = 2e-7,
                                                  .wake_s = 1e-6 * duet_random_below(&rng, 3)}};
    const unsigned fails = seed % 3 ? UINT_MAX : STEPS / 2;
    OWNED(close_lab) struct cluster_lab c = open_on(&options, &network);
    struct duet_codelet *clear = lab_codelet(&c.lab, "clear", NULL, short_cost);
    struct duet_codelet *add = lab_codelet(&c.lab, "add", NULL, short_cost);
    struct duet_handle *data[DATA];
    int error = DUET_OK;
    for (unsigned i = 0; i < DATA; i++) {
        data[i] = data_of(&c, i % NODES, 1000 + duet_random_below(&rng, 20000));
        g_assert_cmpint(duet_set_reduction(c.lab.duet, data[i], clear, add), ==, DUET_OK);
    }
    for (unsigned i = 0; i < STEPS && !error; i++) {
        if (i == fails)
            duet__fail_run(c.cores[seed % NODES], DUET_EIO, "that node");
        error = random_step(&c, data, &rng);
    }
    error = duet_wait(c.lab.duet);
    g_assert_cmpint(error, ==, fails < STEPS ? DUET_EIO : DUET_OK);
    for (unsigned n = 0; n < NODES; n++) {
        g_autofree struct duet_event *events = NULL;
        size_t count;
        g_assert_true(duet__finished(c.cores[n]));
        g_assert_cmpint(duet_trace_events(c.cores[n], &events, &count), ==, DUET_OK);
        for (size_t i = 0; i < count; i++)
            fprintf(out, "%u %d %llu %a %a\n", n, (int)events[i].kind,
                    (unsigned long long)events[i].id, events[i].start_s, events[i].end_s);
    }
    for (unsigned i = 0; i < DATA; i++)
        (void)duet_unregister(c.lab.duet, data[i]);
}

/* Random messages end, and the same way again. */
static void test_random(void)
{
    for (uint64_t seed = 0; seed < 30; seed++) {
        g_autoptr(GByteArray) once = lab_fork(run_random, &seed),
                              again = lab_fork(run_random, &seed);
        if (seed % 3)
            g_assert_cmpuint(once->len, >, STEPS);
        g_assert_cmpmem(once->data, once->len, again->data, again->len);
    }
}

LAB_MAIN(test_lone, test_two_out, test_two_in, test_late_receiver, test_versions, test_passed,
         test_sleep, test_late_sleep, test_path, test_window, test_failure, test_stuck, test_random)
