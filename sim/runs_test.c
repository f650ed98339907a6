/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole simulated runs: Cholesky and random graphs under every policy, on several machines made of
 * idgraf, checked for what must hold of any run. The dependencies are worked out again from what
 * was submitted, the contents of memories from the records.
 */
#include "sim/testing.h"

#include <duet/policy.h>
#include <duet/random.h>

#include "trace/bounds.h"
#include "runtime/testing.h"

enum { POTRF, TRSM, SYRK, GEMM, KERNELS };
enum { HANDLES_MAX = 512, ACCESSES_MAX = 3 };

static const double SLACK_S = 1e-12; /* SimGrid's precision */

/* One run. */
struct scenario {
    const char *graph, *policy; /* "cholesky" or "layered" */
    int cpus, gpus;
    uint64_t memory_bytes; /* memory of a GPU; 0: as it is */
    bool set_arch, noise, no_peer;
    uint64_t seed;
};

struct submitted {
    int kernel;
    unsigned count, handles[ACCESSES_MAX], modes[ACCESSES_MAX];
};

struct run {
    struct duet_runtime *duet;
    const struct duet_machine *machine;
    struct duet_codelet *kernels[KERNELS];
    struct duet_handle *handles[HANDLES_MAX];
    unsigned handle_count;
    GArray *tasks; /* struct submitted */
    struct duet_event *events;
    size_t event_count;
};

/* ------------------------------------------------------------------------------------------- */
/* Graphs                                                                                       */

static double flops_potrf(const void *args)
{
    double n = *(const double *)args;
    return n * n * n / 3 + n * n / 2 + n / 6;
}

static double flops_trsm(const void *args)
{
    return pow(*(const double *)args, 3);
}

static double flops_syrk(const void *args)
{
    double n = *(const double *)args;
    return n * n * (n + 1);
}

static double flops_gemm(const void *args)
{
    return 2 * pow(*(const double *)args, 3);
}

static void submit(struct run *run, int kernel, double edge, unsigned count,
                   const unsigned *handles, const unsigned *modes)
{
    struct submitted task = {.kernel = kernel, .count = count};
    struct duet_access accesses[ACCESSES_MAX];
    for (unsigned i = 0; i < count; i++) {
        task.handles[i] = handles[i];
        task.modes[i] = modes[i];
        accesses[i] = (struct duet_access){run->handles[handles[i]], (enum duet_mode)modes[i]};
    }
    const struct duet_task_desc desc = {.codelet = run->kernels[kernel],
                                        .accesses = accesses,
                                        .access_count = count,
                                        .args = &edge,
                                        .args_bytes = sizeof edge};
    if (duet_submit(run->duet, &desc))
        g_error("%s", duet_last_message(run->duet));
    g_array_append_val(run->tasks, task);
}

static unsigned add_handle(struct run *run, size_t edge)
{
    g_assert_cmpuint(run->handle_count, <, HANDLES_MAX);
    g_assert_cmpint(duet_register_matrix(run->duet, NULL, edge, edge, edge, sizeof(double),
                                         &run->handles[run->handle_count]),
                    ==, DUET_OK);
    return run->handle_count++;
}

/* 12 x 12 tiles of 960 x 960: 364 tasks. */
static void cholesky(struct run *run)
{
    enum { TILES = 12 };
    const double edge = 960;
    const unsigned modes[] = {DUET_R, DUET_R, DUET_RW};
    unsigned a[TILES][TILES];
    for (unsigned i = 0; i < TILES; i++)
        for (unsigned j = 0; j <= i; j++)
            a[i][j] = add_handle(run, 960);
    for (unsigned k = 0; k < TILES; k++) {
        submit(run, POTRF, edge, 1, &a[k][k], modes + 2);
        for (unsigned i = k + 1; i < TILES; i++)
            submit(run, TRSM, edge, 2, (unsigned[]){a[k][k], a[i][k]}, modes + 1);
        for (unsigned i = k + 1; i < TILES; i++) {
            submit(run, SYRK, edge, 2, (unsigned[]){a[i][k], a[i][i]}, modes + 1);
            for (unsigned j = k + 1; j < i; j++)
                submit(run, GEMM, edge, 3, (unsigned[]){a[i][k], a[j][k], a[i][j]}, modes);
        }
    }
}

/* 500 tasks with one to three accesses of any mode to 60 tiles of two sizes. */
static void layered(struct run *run, uint64_t seed)
{
    enum { TILES = 60, TASKS = 500 };
    uint64_t random = duet_random_stream(seed, 1);
    for (unsigned i = 0; i < TILES; i++)
        (void)add_handle(run, i % 3 ? 960 : 320);
    for (unsigned t = 0; t < TASKS; t++) {
        unsigned handles[ACCESSES_MAX], modes[ACCESSES_MAX];
        unsigned count = 1 + duet_random_below(&random, ACCESSES_MAX);
        unsigned first = duet_random_below(&random, TILES);
        for (unsigned i = 0; i < count; i++) {
            handles[i] = (first + i * (1 + t % 19)) % TILES;
            modes[i] = 1 + duet_random_below(&random, 3);
        }
        submit(run, (int)duet_random_below(&random, KERNELS), t % 2 ? 960 : 320, count, handles,
               modes);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Running                                                                                      */

static void register_kernels(struct run *run)
{
    static const struct {
        const char *name;
        double (*flops)(const void *args);
    } kernels[KERNELS] = {[POTRF] = {"dpotrf", flops_potrf},
                          [TRSM] = {"dtrsm", flops_trsm},
                          [SYRK] = {"dsyrk", flops_syrk},
                          [GEMM] = {"dgemm", flops_gemm}};
    const struct duet_implementation where[] = {{"cpu", NULL}, {"cuda", NULL}};
    for (int k = 0; k < KERNELS; k++) {
        const struct duet_codelet_desc desc = {.name = kernels[k].name,
                                               .implementations = where,
                                               .implementation_count = k == POTRF ? 1 : 2,
                                               .flops = kernels[k].flops};
        g_assert_cmpint(duet_register_codelet(run->duet, &desc, &run->kernels[k]), ==, DUET_OK);
    }
}

static struct run simulate(const struct scenario *scenario)
{
    struct run run = {.tasks = g_array_new(FALSE, FALSE, sizeof(struct submitted))};
    struct duet_config config = testing_config("idgraf", scenario->cpus, scenario->gpus);
    config.gpu_memory_bytes = scenario->memory_bytes;
    config.policy = scenario->policy;
    config.set_arch = scenario->set_arch;
    config.noise = scenario->noise;
    config.no_peer = scenario->no_peer;
    config.seed = scenario->seed;
    config.record = true;
    run.duet = testing_open(&config);
    duet__keep_entered(run.duet);
    run.machine = duet_runtime_machine(run.duet);
    register_kernels(&run);
    if (strcmp(scenario->graph, "cholesky") == 0)
        cholesky(&run);
    else
        layered(&run, scenario->seed);
    if (duet_wait(run.duet))
        g_error("%s", duet_last_message(run.duet));
    g_assert_cmpint(duet_trace_events(run.duet, &run.events, &run.event_count), ==, DUET_OK);
    testing_check_released(run.events, run.event_count, 0);
    return run;
}

static void run_free(struct run *run)
{
    free(run->events);
    g_array_free(run->tasks, TRUE);
    g_assert_cmpint(duet_close(run->duet), ==, DUET_OK);
}

/* ------------------------------------------------------------------------------------------- */
/* Checks                                                                                       */

static const struct submitted *task_of(const struct run *run, const struct duet_event *event)
{
    return &g_array_index(run->tasks, struct submitted, event->id - 1);
}

/* Every task ran once, where it can, after what it depends on. */
static void check_tasks(const struct run *run)
{
    const struct duet_event **by_task = g_new0(const struct duet_event *, run->tasks->len);
    double written_s[HANDLES_MAX] = {0}, read_s[HANDLES_MAX] = {0};
    for (size_t i = 0; i < run->event_count; i++) {
        const struct duet_event *event = &run->events[i];
        if (event->kind != DUET_EVENT_TASK)
            continue;
        g_assert_cmpuint(event->id, <=, run->tasks->len);
        g_assert_null(by_task[event->id - 1]);
        by_task[event->id - 1] = event;
        g_assert_false(event->failed);
        g_assert_true(task_of(run, event)->kernel != POTRF || event->source == DUET_HOST);
        g_assert_cmpfloat(event->submit_s, <=, event->ready_s);
        g_assert_cmpfloat(event->ready_s, <=, event->start_s);
        g_assert_cmpfloat(event->start_s, <, event->end_s);
    }
    for (unsigned t = 0; t < run->tasks->len; t++) {
        g_assert_nonnull(by_task[t]);
        const struct submitted *task = task_of(run, by_task[t]);
        double before = 0;
        for (unsigned i = 0; i < task->count; i++) {
            before = fmax(before, written_s[task->handles[i]]);
            if (task->modes[i] & DUET_W)
                before = fmax(before, read_s[task->handles[i]]);
        }
        g_assert_cmpfloat(by_task[t]->start_s, >=, before);
        g_assert_cmpfloat(by_task[t]->ready_s, >=, before);
        for (unsigned i = 0; i < task->count; i++) {
            double *last = task->modes[i] & DUET_W ? written_s : read_s;
            last[task->handles[i]] = fmax(last[task->handles[i]], by_task[t]->end_s);
        }
    }
    g_free(by_task);
}

/*
 * Checks that nothing overlaps on a worker, nor on a device's engine for one direction. (Events: by
 * start.)
 */
static void check_exclusive(const struct run *run)
{
    const struct duet_machine *m = run->machine;
    double *worker = g_new0(double, m->worker_count);
    double *in = g_new0(double, m->node_count), *out = g_new0(double, m->node_count);
    for (size_t i = 0; i < run->event_count; i++) {
        const struct duet_event *event = &run->events[i];
        double *busy[2] = {NULL, NULL};
        if (event->kind == DUET_EVENT_TASK)
            busy[0] = &worker[event->worker];
        if (event->kind == DUET_EVENT_COPY && event->source != DUET_HOST)
            busy[0] = &out[event->source];
        if (event->kind == DUET_EVENT_COPY && event->destination != DUET_HOST)
            busy[1] = &in[event->destination];
        for (unsigned k = 0; k < 2; k++) {
            if (!busy[k])
                continue;
            g_assert_cmpfloat(event->start_s, >=, *busy[k] - SLACK_S);
            *busy[k] = event->end_s;
        }
    }
    g_free(worker);
    g_free(in);
    g_free(out);
}

struct moment {
    double date;
    bool start; /* what ends at a date comes before what starts then */
    size_t event;
};

static int compare_moments(const void *left, const void *right)
{
    const struct moment *a = left, *b = right;
    if (a->date != b->date)
        return a->date < b->date ? -1 : 1;
    if (a->start != b->start)
        return a->start ? 1 : -1;
    return (a->event > b->event) - (a->event < b->event);
}

struct contents {
    uint64_t valid[HANDLES_MAX]; /* bit a memory node */
    unsigned version[HANDLES_MAX];
    unsigned *copied; /* by event: the version that was read from the source */
};

static void kernel_moment(const struct run *run, struct contents *contents,
                          const struct duet_event *event, bool start)
{
    const struct submitted *task = task_of(run, event);
    uint64_t node = UINT64_C(1) << event->source;
    for (unsigned i = 0; i < task->count; i++) {
        unsigned h = task->handles[i];
        if (start && (task->modes[i] & DUET_R))
            g_assert_true(contents->valid[h] & node);
        if (!start && (task->modes[i] & DUET_W)) {
            contents->valid[h] = node;
            contents->version[h]++;
        }
    }
}

/* Checks that read data is valid where it is read, by kernels and by copies. */
static void check_coherence(const struct run *run)
{
    struct contents contents = {.copied = g_new0(unsigned, run->event_count)};
    struct moment *moments = g_new(struct moment, 2 * run->event_count);
    for (unsigned h = 0; h < run->handle_count; h++)
        contents.valid[h] = 1;
    for (size_t i = 0; i < run->event_count; i++) {
        moments[2 * i] = (struct moment){run->events[i].start_s, true, i};
        moments[2 * i + 1] = (struct moment){run->events[i].end_s, false, i};
    }
    qsort(moments, 2 * run->event_count, sizeof *moments, compare_moments);
    for (size_t i = 0; i < 2 * run->event_count; i++) {
        const struct duet_event *event = &run->events[moments[i].event];
        if (event->kind == DUET_EVENT_TASK) {
            kernel_moment(run, &contents, event, moments[i].start);
            continue;
        }
        unsigned h = (unsigned)event->id - 1;
        g_assert_cmpuint(h, <, run->handle_count);
        if (moments[i].start) {
            g_assert_true(contents.valid[h] >> event->source & 1);
            contents.copied[moments[i].event] = contents.version[h];
        } else if (contents.copied[moments[i].event] == contents.version[h]) {
            contents.valid[h] |= UINT64_C(1) << event->destination;
        }
    }
    g_free(moments);
    g_free(contents.copied);
}

/* Sums the records up as struct duet_stats would. */
static struct duet_stats sum_up(const struct run *run)
{
    struct duet_stats sum = {0};
    for (size_t i = 0; i < run->event_count; i++) {
        const struct duet_event *event = &run->events[i];
        if (event->kind == DUET_EVENT_TASK) {
            const struct submitted *task = task_of(run, event);
            sum.tasks++;
            sum.accesses += task->count;
            sum.busy_s += event->end_s - event->start_s;
            sum.last_end_s = fmax(sum.last_end_s, event->end_s);
            for (unsigned a = 0; a < task->count && event->source != DUET_HOST; a++)
                sum.reads_on_device += task->modes[a] & DUET_R;
        } else if (event->source == DUET_HOST) {
            sum.bytes_to_device += event->bytes;
            sum.copies_to_device++;
        } else if (event->destination == DUET_HOST) {
            sum.bytes_to_host += event->bytes;
            sum.copies_to_host++;
            sum.write_backs += event->write_back;
        } else {
            sum.bytes_between += event->bytes;
            sum.copies_between++;
        }
    }
    return sum;
}

static void check_counters(const struct run *run)
{
    struct duet_stats stats, sum = sum_up(run);
    duet_stats(run->duet, &stats);
    g_assert_cmpuint(stats.tasks, ==, sum.tasks);
    g_assert_cmpuint(stats.accesses, ==, sum.accesses);
    g_assert_cmpuint(stats.bytes_to_device, ==, sum.bytes_to_device);
    g_assert_cmpuint(stats.bytes_to_host, ==, sum.bytes_to_host);
    g_assert_cmpuint(stats.bytes_between, ==, sum.bytes_between);
    g_assert_cmpuint(stats.copies_to_device, ==, sum.copies_to_device);
    g_assert_cmpuint(stats.copies_to_host, ==, sum.copies_to_host);
    g_assert_cmpuint(stats.copies_between, ==, sum.copies_between);
    g_assert_cmpuint(stats.write_backs, ==, sum.write_backs);
    if (stats.revocations) /* inputs of some were requested on two devices */
        g_assert_cmpuint(stats.reads_on_device, >=, sum.reads_on_device);
    else
        g_assert_cmpuint(stats.reads_on_device, ==, sum.reads_on_device);
    /* every read that was no hit has started one copy into its device */
    g_assert_cmpuint(stats.reads_on_device - stats.read_hits, ==,
                     sum.copies_to_device + sum.copies_between);
    g_assert_cmpuint(stats.merged, <=, stats.read_hits);
    g_assert_cmpuint(stats.pops + stats.steals, ==, sum.tasks + stats.revocations);
    assert_seconds(stats.busy_s, sum.busy_s);
    g_assert_cmpfloat(stats.last_end_s, ==, sum.last_end_s);
}

static void check_bounds(const struct run *run)
{
    const struct duet__bounds bounds = duet__bounds(run->duet, true);
    struct duet_stats stats;
    duet_stats(run->duet, &stats);
    g_assert_cmpfloat(bounds.area_s, >, 0);
    g_assert_cmpfloat(bounds.critical_path_s, >, 0);
    g_assert_cmpfloat(bounds.mixed_s, >=, fmax(bounds.area_s, bounds.critical_path_s));
    g_assert_cmpfloat(stats.makespan_s, >=, bounds.mixed_s * (1 - 1e-9));
    g_assert_cmpfloat(stats.makespan_s, >=, bounds.links_s * (1 - 1e-9));
}

static void check_run(const void *argument, FILE *out)
{
    const struct scenario *scenario = argument;
    struct run run = simulate(scenario);
    check_tasks(&run);
    check_exclusive(&run);
    check_coherence(&run);
    check_counters(&run);
    if (!scenario->noise)
        check_bounds(&run);
    if (scenario->gpus == 0)
        g_assert_cmpuint(run.event_count, ==, run.tasks->len);
    if (scenario->memory_bytes && strcmp(scenario->graph, "cholesky") == 0) {
        struct duet_stats stats;
        duet_stats(run.duet, &stats);
        fprintf(out, "%u", (unsigned)stats.evictions);
    }
    run_free(&run);
}

/*
 * Policies on one machine, with all its GPU memory and with little, both graphs: a third of each
 * policy's runs, the others on other machines.
 */
static void test_conservation(const void *argument)
{
    int gpus = GPOINTER_TO_INT(argument);
    /* 60 MB are 8 tiles of 960 x 960: two tasks of three tiles, and hardly more */
    static const uint64_t memories[] = {0, 200 << 20, 60000000};
    for (size_t p = 0; duet_policy_at(p); p++) {
        for (unsigned k = 0; k < 2 * G_N_ELEMENTS(memories); k++) {
            struct scenario scenario = {.graph = k % 2 ? "cholesky" : "layered",
                                        .policy = duet_policy_at(p)->name,
                                        .cpus = 4,
                                        .gpus = gpus,
                                        .memory_bytes = gpus ? memories[k / 2] : 0,
                                        .noise = k == 2,
                                        .no_peer = k == 4,
                                        .seed = p * 10 + k};
            if ((p + k + (unsigned)gpus) % 3)
                continue;
            g_test_message("%s, %s, %d GPUs of %u bytes", scenario.graph, scenario.policy, gpus,
                           (unsigned)scenario.memory_bytes);
            GByteArray *bytes = lab_fork(check_run, &scenario);
            g_byte_array_unref(bytes);
        }
    }
}

/* Kernels that GPUs have stay off the CPUs; little memory does evict. */
static void test_set_arch(void)
{
    struct scenario scenario = {.graph = "cholesky",
                                .policy = "heft",
                                .cpus = 4,
                                .gpus = 2,
                                .memory_bytes = 60000000,
                                .set_arch = true};
    GByteArray *bytes = lab_fork(check_run, &scenario);
    g_byte_array_append(bytes, (const guint8 *)"", 1);
    g_assert_cmpuint(g_ascii_strtoull((const char *)bytes->data, NULL, 10), >, 100);
    g_byte_array_unref(bytes);
}

/* ------------------------------------------------------------------------------------------- */
/* Determinism                                                                                  */

static void print_run(const void *argument, FILE *out)
{
    struct run run = simulate(argument);
    for (size_t i = 0; i < run.event_count; i++) {
        const struct duet_event *e = &run.events[i];
        fprintf(out, "%d %d %u %u %a %a %a %a %u %u %d %u\n", e->kind, e->worker, e->kernel,
                (unsigned)e->id, e->submit_s, e->ready_s, e->start_s, e->end_s, e->source,
                e->destination, e->write_back, (unsigned)e->bytes);
    }
    run_free(&run);
}

/*
 * Two equal runs have equal records, to the last bit. Another seed gives others, where it matters.
 */
static void test_determinism(void)
{
    for (size_t p = 0; duet_policy_at(p); p++) {
        struct scenario scenario = {.graph = "cholesky",
                                    .policy = duet_policy_at(p)->name,
                                    .cpus = 4,
                                    .gpus = 4,
                                    .memory_bytes = 100000000,
                                    .seed = 3,
                                    .noise = p % 2};
        GByteArray *first = lab_fork(print_run, &scenario);
        GByteArray *again = lab_fork(print_run, &scenario);
        g_assert_cmpuint(first->len, >, 10000);
        g_assert_cmpmem(first->data, first->len, again->data, again->len);
        if (strcmp(scenario.policy, "ws") == 0) {
            scenario.seed = 4;
            GByteArray *other = lab_fork(print_run, &scenario);
            g_assert_true(first->len != other->len ||
                          memcmp(first->data, other->data, first->len) != 0);
            g_byte_array_unref(other);
        }
        g_byte_array_unref(first);
        g_byte_array_unref(again);
    }
}

int main(int argc, char **argv)
{
    static const int gpus[] = {0, 1, 2, 4, 8};
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(gpus); i++) {
        char name[64];
        g_snprintf(name, sizeof name, "/runs/conservation/%d_gpus", gpus[i]);
        g_test_add_data_func(name, GINT_TO_POINTER(gpus[i]), test_conservation);
    }
    g_test_add_func("/runs/set_arch", test_set_arch);
    g_test_add_func("/runs/determinism", test_determinism);
    return g_test_run();
}
