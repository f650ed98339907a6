/* SPDX-License-Identifier: Apache-2.0 */
/* Runs on two nodes, made by hand, become one. */
#include "trace/run.h"

#include <string.h>
#include <unistd.h>

#include "report/gantt.h"
#include "trace/recording.h"
#include "trace/trace.h"
#include "trace/account.h"
#include "trace/testing_account.h"

enum { AHEAD_S = 100 };
static const double EARLY_S =
    0.25; /* from the second node's submission until the first one's clock begins */

static const struct duet__wires wires = {.bandwidth_Bps = 1e10, .latency_s = 1e-6};

/* Two nodes: the first computes something on its CPU, the second needs it on a GPU. */
struct two {
    struct testing_recording testing[2];
    struct duet__node_log logs[2];
    struct duet__node_run parts[2];
    struct duet_trace_access accesses[3];
    double classes[2][9]; /* 2 CPUs and a GPU; tasks on CPUs alone */
};

static struct duet__logged_message message(bool arrives, double ready_s, double start_s,
                                           double end_s)
{
    return (struct duet__logged_message){.tag = 2,
                                         .turn = 12,
                                         .bytes = 1000,
                                         .from = 0,
                                         .to = 1,
                                         .arrives = arrives,
                                         .ready_s = ready_s,
                                         .start_s = start_s,
                                         .end_s = end_s};
}

static void begin(struct two *two)
{
    const struct duet__logged_message out = message(false, 3, 3.5, 4.9),
                                      in = message(true, AHEAD_S, AHEAD_S + 4.8, AHEAD_S + 5);
    struct duet_event *event;
    *two = (struct two){.accesses = {{.task = 4, .handle = 5, .writes = true, .mode = DUET_W},
                                     {.task = 2, .handle = 1, .reads = true, .mode = DUET_R},
                                     {.task = 2, .index = 1, .after = 1}},
                        .classes = {{0, 2, 1, 0, 0, 1, 1, 3, 0}, {0, 2, 1, 0, 0, 1, 2, 2, 0}}};
    for (unsigned node = 0; node < 2; node++) {
        struct testing_recording *testing = &two->testing[node];
        testing_init(testing, 8);
        duet__log_init(&two->logs[node], true);
        testing->recording.accesses = &two->accesses[node];
        testing->recording.access_count = 1 + node;
        two->parts[node] = (struct duet__node_run){.workers = 3,
                                                   .log = &two->logs[node],
                                                   .classes = {2, 1, two->classes[node]},
                                                   .recording = testing->recording};
    }
    event = testing_task(&two->testing[0], 0, 1, 0, 0, 3);
    event->id = 4;
    event->where = 1;
    duet__log_task(&two->logs[0], 3, 10);
    duet__log_datum(&two->logs[0], 5, 2);
    duet__log_message(&two->logs[0], &out);
    event = testing_task(&two->testing[1], 2, 0, AHEAD_S + 5, AHEAD_S + 6, AHEAD_S + 8);
    event->id = 2;
    event = testing_task(&two->testing[1], 0, 1, AHEAD_S, AHEAD_S, AHEAD_S + 2);
    event->id = 1;
    /* the task needs the copy, and that the message: its records are the first and the third */
    event = testing_copy(&two->testing[1], 1, 0, 2, AHEAD_S + 5, AHEAD_S + 5, AHEAD_S + 6);
    event->release = DUET_RELEASE_OUTSIDE;
    event->released_by = 1;
    two->testing[1].events[0].release = DUET_RELEASE_COPY;
    two->testing[1].events[0].released_by = 3;
    (void)testing_copy(&two->testing[1], 3, 0, 2, AHEAD_S + 7, AHEAD_S + 7, AHEAD_S + 9);
    duet__log_task(&two->logs[1], 0, 4);
    duet__log_task(&two->logs[1], 1, 12);
    duet__log_datum(&two->logs[1], 1, 2);
    duet__log_message(&two->logs[1], &in);
    two->parts[1].ahead_s = AHEAD_S;
    for (unsigned node = 0; node < 2; node++) {
        two->parts[node].recording = two->testing[node].recording;
        duet__recording_shift(&two->parts[node].recording, -two->parts[node].ahead_s);
        two->parts[node].stats =
            (struct duet_stats){.tasks = 1 + node,
                                .first_submit_s = node ? AHEAD_S - EARLY_S : 0.5,
                                .last_end_s = node ? AHEAD_S + 8 : 3,
                                .busy_s = node ? 4 : 3,
                                .busy_by_arch_s = {3, node},
                                .bytes_to_device = 1000};
    }
}

static void end(struct two *two)
{
    for (unsigned node = 0; node < 2; node++) {
        testing_fini(&two->testing[node]);
        duet__log_fini(&two->logs[node]);
    }
}

static void merge(const struct duet__node_run *parts, struct duet__run *run)
{
    struct duet_message why = {""};
    *run = (struct duet__run){0};
    g_assert_cmpint(duet__node_runs_merge(parts, 2, &wires, run, &why), ==, DUET_OK);
}

static void check_records(const struct duet__recording *recording)
{
    /* sorted by start: 4, 10, 12 in the order of the program are tasks 1 to 3 */
    static const struct {
        uint64_t id;
        int worker;
        unsigned source, destination;
        double start_s, end_s;
    } expected[] = {
        {2, 0, 0, 0, 0, 3}, {1, 3, 3, 3, 0, 2}, {3, DUET_NO_WORKER, 0, 3, 3.5, 5},
        {3, 3, 3, 5, 5, 6}, {3, 5, 5, 5, 6, 8}, {4, 3, 3, 5, 7, 9},
    };
    g_assert_cmpuint(recording->event_count, ==, G_N_ELEMENTS(expected));
    for (size_t i = 0; i < G_N_ELEMENTS(expected); i++) {
        const struct duet_event *event = &recording->events[i];
        g_test_message("event %zu", i);
        g_assert_cmpuint(event->id, ==, expected[i].id);
        g_assert_cmpint(event->worker, ==, expected[i].worker);
        g_assert_cmpuint(event->source, ==, expected[i].source);
        g_assert_cmpuint(event->destination, ==, expected[i].destination);
        testing_near(event->start_s, EARLY_S + expected[i].start_s);
        testing_near(event->end_s, EARLY_S + expected[i].end_s);
    }
    testing_near(recording->events[2].ready_s, EARLY_S + 3);
    g_assert_cmpstr(duet__recording_kernel(recording, &recording->events[0]), ==, "gemm");
    g_assert_cmpstr(duet__recording_kernel(recording, &recording->events[4]), ==, "potrf");
    g_assert_cmpuint(recording->access_count, ==, 3);
    g_assert_cmpuint(recording->accesses[0].task, ==, 2);
    g_assert_cmpuint(recording->accesses[0].handle, ==, 3);
    g_assert_cmpuint(recording->accesses[1].handle, ==, 3);
    g_assert_cmpuint(recording->accesses[2].after, ==, 1);
}

static void check_machine(const struct duet_machine *machine)
{
    const struct duet_route *route = duet_machine_route(machine, 0, 3);
    g_assert_cmpuint(machine->node_count, ==, 6);
    g_assert_cmpuint(machine->worker_count, ==, 6);
    g_assert_cmpuint(machine->arch_count, ==, 2);
    g_assert_cmpstr(machine->nodes[0].name, ==, "n0.host");
    g_assert_cmpstr(machine->workers[4].name, ==, "n1.gpu0");
    g_assert_cmpuint(machine->workers[5].node, ==, 5);
    g_assert_true(route->direct && route->count == 2);
    g_assert_cmpstr(machine->links[route->links[0]].name, ==, "n0.to-network");
    g_assert_cmpstr(machine->links[route->links[1]].name, ==, "n1.from-network");
    testing_near(machine->links[route->links[1]].bandwidth_Bps, 1e10);
    g_assert_false(duet_machine_route(machine, 0, 4)->direct);
}

/* The merged run is right, whether its parts have gone through a file or not. */
static void test_two(void)
{
    for (int file = 0; file < 2; file++) {
        struct duet__node_run read[2] = {{0}};
        struct duet__run run;
        OWNED(end) struct two two;
        begin(&two);
        if (file) {
            FILE *stream = tmpfile();
            long length;
            duet__node_run_write(stream, &two.parts[0]);
            length = ftell(stream);
            duet__node_run_write(stream, &two.parts[1]);
            rewind(stream);
            g_assert_cmpint(duet__node_run_read(stream, &read[0]), ==, DUET_OK);
            g_assert_cmpint(duet__node_run_read(stream, &read[1]), ==, DUET_OK);
            g_assert_cmpint(ftruncate(fileno(stream), length / 2), ==, 0);
            rewind(stream);
            g_assert_cmpint(duet__node_run_read(stream, &(struct duet__node_run){0}), ==, DUET_EIO);
            fclose(stream);
        }
        merge(file ? read : two.parts, &run);
        check_machine(run.recording.machine);
        check_records(&run.recording);
        g_assert_cmpuint(run.stats.tasks, ==, 3);
        g_assert_cmpuint(run.stats.bytes_to_device, ==, 2000);
        testing_near(run.stats.first_submit_s, 0);
        testing_near(run.stats.makespan_s, 8.25);
        testing_near(run.stats.busy_by_arch_s[0], 6);
        g_assert_cmpuint(run.over.nodes, ==, 2);
        g_assert_cmpuint(run.over.messages, ==, 1);
        g_assert_cmpuint(run.over.bytes, ==, 1000);
        testing_near(run.bounds.area_s, 7.0 / 4);
        testing_near(run.over.idle_least, 1 - 4 / 24.75);
        testing_near(run.over.idle_median, 1 - 3.5 / 24.75);
        testing_near(run.over.idle_most, 1 - 3 / 24.75);
        duet__run_fini(&run);
        duet__node_run_fini(&read[0]);
        duet__node_run_fini(&read[1]);
    }
}

/* Arrows lead from task to task on another node, over the message and the copy to the GPU. */
static void test_arrows(void)
{
    static const uint32_t expected[] = {0, 0, 1, 3, 4, 0};
    g_autofree uint32_t *arrows = NULL;
    OWNED(duet__run_fini) struct duet__run run;
    OWNED(end) struct two two;
    begin(&two);
    merge(two.parts, &run);
    arrows = duet__arrows_make(&run.recording, true);
    for (size_t i = 0; i < G_N_ELEMENTS(expected); i++)
        g_assert_cmpuint(arrows[i], ==, expected[i]);
}

/* The second node's GPU has reasons to do nothing: first nothing was ready anywhere, then a message
   waited and came, then a copy. These are on the critical path, too. */
static void test_reasons(void)
{
    static const enum duet__state steps[] = {DUET_STATE_BEFORE,        DUET_STATE_KERNEL,
                                             DUET_STATE_MESSAGE_QUEUE, DUET_STATE_MESSAGE,
                                             DUET_STATE_TO_DEVICE,     DUET_STATE_KERNEL};
    struct duet_message why = {""};
    OWNED(duet__account_fini) struct duet__account account;
    struct duet__path path;
    OWNED(duet__run_fini) struct duet__run run;
    OWNED(end) struct two two;
    const double *gpu;
    begin(&two);
    merge(two.parts, &run);
    g_assert_cmpint(duet__account_make(&run.recording, &account, &why), ==, DUET_OK);
    gpu = account.workers_s[5];
    testing_near(gpu[DUET_STATE_BEFORE], 3 + EARLY_S);
    testing_near(gpu[DUET_STATE_MESSAGE_QUEUE], 0.5);
    testing_near(gpu[DUET_STATE_MESSAGE], 1.5);
    testing_near(gpu[DUET_STATE_TO_DEVICE], 1);
    testing_near(gpu[DUET_STATE_KERNEL], 2);
    testing_near(account.bytes[0], 2000);
    testing_near(account.bytes[3], 1000);
    duet__path_make(&run.recording, NULL, &path);
    g_assert_cmpuint(path.steps->len, ==, G_N_ELEMENTS(steps));
    for (guint i = 0; i < path.steps->len; i++)
        g_assert_cmpint(g_array_index(path.steps, struct duet__step, i).state, ==, steps[i]);
    duet__path_fini(&path);
}

/* Rows of a chart: workers, messages in and out of each node, copies of each device. */
static void test_chart(void)
{
    OWNED(duet__gantt_fini) struct duet__gantt gantt;
    OWNED(duet__run_fini) struct duet__run run;
    OWNED(end) struct two two;
    size_t in, out;
    begin(&two);
    merge(two.parts, &run);
    duet__gantt_init(&gantt, &run.recording, 1000);
    g_assert_cmpuint(gantt.row_count, ==, 6 + 2 * 6);
    out = duet__gantt_find(&gantt, DUET_GANTT_OUT, 0);
    in = duet__gantt_find(&gantt, DUET_GANTT_IN, 3);
    g_assert_cmpuint(gantt.rows[out].bars->len, ==, 1);
    g_assert_cmpuint(gantt.rows[in].bars->len, ==, 1);
    g_assert_cmpuint(duet__gantt_bar(&gantt.rows[in], 0)->colour, ==, DUET_GANTT_MESSAGE);
    in = duet__gantt_find(&gantt, DUET_GANTT_IN, 5);
    g_assert_cmpuint(gantt.rows[in].bars->len, ==, 2);
    g_assert_cmpuint(duet__gantt_bar(&gantt.rows[in], 0)->colour, ==, DUET_GANTT_TO_DEVICE);
}

/* A trace of two nodes is read as it was, and has arrows from one process to the other. */
static void test_trace(void)
{
    struct duet_message why = {""};
    struct duet__trace trace = {0}, read;
    size_t length;
    g_autofree char *text = NULL;
    FILE *stream = open_memstream(&text, &length);
    OWNED(end) struct two two;
    begin(&two);
    merge(two.parts, &trace.run);
    duet__trace_write(stream, &trace);
    fclose(stream);
    g_assert_nonnull(strstr(text, "\"n1 CPUs\""));
    g_assert_nonnull(strstr(text, "\"messages in\""));
    g_assert_nonnull(strstr(text, "\"ph\":\"s\",\"pid\":1,"));
    g_assert_nonnull(strstr(text, "\"ph\":\"f\",\"pid\":4,"));
    if (duet__read_trace(text, length, "two.json", &read, &why))
        g_error("%s", why.text);
    g_assert_cmpuint(read.run.recording.event_count, ==, trace.run.recording.event_count);
    g_assert_cmpuint(duet__host_count(read.run.recording.machine), ==, 2);
    g_assert_cmpuint(read.run.recording.access_count, ==, 3);
    duet__trace_fini(&read);
    duet__run_fini(&trace.run);
}

/* A machine that is too large for records, and names that are too long. */
static void test_machines(void)
{
    const struct duet_machine *machines[400];
    struct duet_message why = {""};
    struct duet_machine one, all;
    sample_machine(&one, 1, 2);
    (void)g_strlcpy(one.nodes[2].name, "the-name-of-a-memory-that-is-1", DUET_NAME_MAX);
    for (unsigned i = 0; i < G_N_ELEMENTS(machines); i++)
        machines[i] = &one;
    g_assert_cmpint(duet__machine_join(&all, machines, 400, &wires, &why), ==, DUET_EINVAL);
    g_assert_nonnull(strstr(why.text, "1200 memories"));
    g_assert_cmpint(duet__machine_join(&all, machines, 12, &wires, &why), ==, DUET_OK);
    g_assert_cmpstr(all.nodes[35].name, ==, "n11.-name-of-a-memory-that-is-1");
    duet_machine_fini(&all);
    duet_machine_fini(&one);
}

TEST_MAIN(test_two, test_arrows, test_reasons, test_chart, test_trace, test_machines)
