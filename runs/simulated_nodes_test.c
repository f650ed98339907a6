/* SPDX-License-Identifier: Apache-2.0 */
/* A run on four simulated nodes is one run for whoever looks at it. */

#include "trace/run.h"
#include "runs/session.h"
#include "trace/account.h"

enum { TILES = 8, TASKS = TILES * (TILES + 1) * (TILES + 2) / 6 };

static void make(const char *workload, const char *nodes, const char *network,
                 struct duet__series *series)
{
    OWNED(duet__request_fini) struct duet__request request;
    struct duet__progress progress;
    int number = 0;
    duet__request_init(&request);
    request.workload = duet__workload_find(workload);
    request.problem.n = 960 * TILES;
    request.problem.tile = 960;
    request.problem.precision = 'd';
    request.policies = g_strsplit("heft", ",", -1);
    request.policy_count = 1;
    request.config.simulate = "idgraf";
    request.config.nodes = nodes;
    request.config.network = network;
    request.problem.nodes = nodes ? (struct duet_grid){2, 2} : (struct duet_grid){1, 1};
    request.records = DUET_RECORDS_ACCESSES;
    request.bounds = true;
    WORKS(duet__request_build(&request, hear()));
    duet__progress_init(&progress, false, 1, 1);
    WORKS(duet__simulate(&request, &progress, series, &number, hear()));
    if (series->error)
        g_error("%s", series->message.text);
    g_assert_cmpuint(series->count, ==, 1);
}

/* Returns the kernel that ran a task. */
static const char **kernels_of(const struct duet__recording *recording)
{
    const char **kernels = g_new0(const char *, TASKS + 1);
    for (size_t i = 0; i < recording->event_count; i++)
        if (recording->events[i].kind == DUET_EVENT_TASK) {
            g_assert_cmpuint(recording->events[i].id, <=, TASKS);
            kernels[recording->events[i].id] =
                duet__recording_kernel(recording, &recording->events[i]);
        }
    return kernels;
}

/* Tasks and their data are the program's, whatever nodes they are on. */
static void check_program(const struct duet__recording *four, const struct duet__recording *one)
{
    g_autofree const char **kernels = kernels_of(four), **expected = kernels_of(one);
    g_autoptr(GHashTable) data = g_hash_table_new(NULL, NULL), back = g_hash_table_new(NULL, NULL);
    for (unsigned i = 1; i <= TASKS; i++)
        g_assert_cmpstr(kernels[i], ==, expected[i]);
    g_assert_cmpuint(four->access_count, ==, one->access_count);
    for (size_t i = 0; i < one->access_count; i++) {
        const struct duet_trace_access *a = &four->accesses[i], *b = &one->accesses[i];
        gpointer of_a = GSIZE_TO_POINTER(a->handle), of_b = GSIZE_TO_POINTER(b->handle);
        g_assert_cmpuint(a->task, ==, b->task);
        g_assert_cmpuint(a->mode, ==, b->mode);
        if (!g_hash_table_contains(data, of_b)) {
            g_assert_false(g_hash_table_contains(back, of_a));
            g_hash_table_insert(data, of_b, of_a);
            g_hash_table_insert(back, of_a, of_b);
        }
        g_assert_true(g_hash_table_lookup(data, of_b) == of_a);
    }
}

/* A node that has got a message reads its data afterwards, or sends it on. */
static void check_messages(const struct duet__run *run)
{
    const struct duet__recording *recording = &run->recording;
    const struct duet_machine *machine = recording->machine;
    uint64_t messages = 0, bytes = 0;
    for (size_t i = 0; i < recording->event_count; i++) {
        const struct duet_event *message = &recording->events[i];
        bool used = false;
        if (message->kind != DUET_EVENT_COPY || !duet__is_message(machine, message))
            continue;
        messages++;
        bytes += message->bytes;
        g_assert_cmpfloat(message->ready_s, <=, message->start_s);
        g_assert_cmpfloat(message->start_s, <, message->end_s);
        for (size_t k = i; k < recording->event_count && !used; k++) {
            const struct duet_event *later = &recording->events[k];
            if (duet__host_of(machine, later->source) != message->destination ||
                later->start_s < message->end_s)
                continue;
            used = later->kind == DUET_EVENT_COPY && later->id == message->id;
            for (size_t a = duet__recording_accesses(recording, later->id);
                 later->kind == DUET_EVENT_TASK && a < recording->access_count &&
                 recording->accesses[a].task == later->id;
                 a++)
                used |= recording->accesses[a].handle == message->id;
        }
        g_assert_true(used);
    }
    g_assert_cmpuint(messages, >, 0);
    g_assert_cmpuint(messages, ==, run->over.messages);
    g_assert_cmpuint(bytes, ==, run->over.bytes);
}

/* The path goes over nodes, by messages, without a hole; an account knows of all seconds. */
static void check_path(const struct duet__run *run)
{
    OWNED(duet__account_fini) struct duet__account account;
    struct duet__path path;
    double seconds = 0;
    unsigned messages = 0;
    duet__path_make(&run->recording, NULL, &path);
    for (guint i = 0; i < path.parts->len; i++) {
        const struct duet__path_part *part = &g_array_index(path.parts, struct duet__path_part, i);
        seconds += part->seconds;
        messages += part->state == DUET_STATE_MESSAGE;
    }
    g_assert_cmpfloat_with_epsilon(seconds, run->stats.makespan_s, 1e-9);
    g_assert_cmpuint(messages, ==, 1);
    for (guint i = 1; i < path.steps->len; i++) {
        const struct duet__step *step = &g_array_index(path.steps, struct duet__step, i);
        g_assert_cmpfloat_with_epsilon(step->start_s, step[-1].end_s, 1e-9);
    }
    duet__path_fini(&path);
    WORKS(duet__account_make(&run->recording, &account, hear()));
    g_assert_cmpfloat(account.bytes[3], ==, (double)run->over.bytes);
    g_assert_cmpfloat(account.states_s[DUET_STATE_MESSAGE], >, 0);
    g_assert_cmpfloat_with_epsilon(account.states_s[DUET_STATE_KERNEL], run->stats.busy_s, 1e-9);
}

static void test_four(void)
{
    struct duet__series four = {0}, again = {0}, one = {0};
    const struct duet__run *run;
    make("cholesky", "2x2", "torus:100Gbps,1us", &four);
    make("cholesky", "2x2", "torus:100Gbps,1us", &again);
    make("cholesky", NULL, NULL, &one);
    run = &four.runs[0];
    g_assert_cmpuint(run->stats.tasks, ==, TASKS);
    g_assert_cmpuint(run->over.nodes, ==, 4);
    g_assert_cmpuint(one.runs[0].over.nodes, ==, 0);
    g_assert_cmpfloat(run->stats.makespan_s, ==, again.runs[0].stats.makespan_s);
    g_assert_cmpfloat(run->stats.makespan_s, ==, run->recording.makespan_s);
    g_assert_cmpfloat(run->over.idle_least, <, run->over.idle_most);
    /* four times the workers */
    g_assert_cmpfloat_with_epsilon(run->bounds.area_s, one.runs[0].bounds.area_s / 4, 1e-9);
    g_assert_cmpfloat(run->bounds.area_s, <, run->stats.makespan_s);
    g_assert_cmpfloat_with_epsilon(run->bounds.critical_path_s, one.runs[0].bounds.critical_path_s,
                                   1e-12);
    check_program(&run->recording, &one.runs[0].recording);
    check_messages(run);
    check_path(run);
    duet__series_fini(&four);
    duet__series_fini(&again);
    duet__series_fini(&one);
}

/* A memory's own name makes no other node of it. */
static void test_hosts(void)
{
    struct duet_node memories[] = {{.name = "host"}, {.name = "n1.host"}, {.name = "n1.gpu.host"}};
    const struct duet_machine machine = {.nodes = memories, .node_count = G_N_ELEMENTS(memories)};
    g_assert_cmpuint(duet__host_count(&machine), ==, 1);
    g_strlcpy(memories[0].name, "n0.host", sizeof memories[0].name);
    g_assert_cmpuint(duet__host_count(&machine), ==, 2);
}

TEST_MAIN(test_four, test_hosts)
