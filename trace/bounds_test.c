/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lower bounds: instances solved by hand, random ones against exact methods, degenerate and wrong
 * input. bounds.c is included with the calls to the runtime renamed to a small fake.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include <glib.h>

#include <duet/machine.h>
#include <duet/trace.h>

#include "core/engine.h"
#include "trace/bounds.h"

struct duet_runtime {
    const struct duet_machine *machine;
    const struct duet_class_stats *classes;
    size_t class_count;
    double critical_path_s;
    int error;
    const struct duet__entered *entered;
    double scratch[8]; /* expected_s of the last answer only, as the header says */
};

static int fake_class_stats(const struct duet_runtime *runtime, size_t index,
                            struct duet_class_stats *stats)
{
    double *scratch = ((struct duet_runtime *)(uintptr_t)runtime)->scratch;
    *stats = runtime->classes[index];
    memcpy(scratch, stats->expected_s, runtime->machine->arch_count * sizeof *scratch);
    stats->expected_s = scratch;
    return runtime->error;
}

static void fake_stats(const struct duet_runtime *runtime, struct duet_stats *stats)
{
    *stats = (struct duet_stats){.critical_path_s = runtime->critical_path_s};
}

static struct duet__bounds tested_bounds(const struct duet_runtime *runtime, bool links);
static const char *tested_best(const struct duet__bounds *bounds, double *best_s);

#define duet_runtime_machine(runtime) ((runtime)->machine)
#define duet_class_count(runtime) ((runtime)->class_count)
#define duet_class_stats(...) fake_class_stats(__VA_ARGS__)
#define duet_stats(...) fake_stats(__VA_ARGS__)
#define duet__entered(runtime) ((runtime)->entered)
#define duet__bounds(...) tested_bounds(__VA_ARGS__)
#define duet__bounds_best(...) tested_best(__VA_ARGS__)

#include "trace/bounds.c" /* NOLINT(bugprone-suspicious-include) */

#undef duet_class_stats
#undef duet_stats
#undef duet__entered
#undef duet__bounds
#undef duet__bounds_best

/* The bounds of classes, and of so many workers of each architecture. */
static struct duet__bounds bounds(const struct duet_class_stats *classes, size_t count,
                                  const unsigned *workers, size_t arch_count)
{
    struct duet_worker all[64] = {0};
    struct duet_machine machine = {.arch_count = (unsigned)arch_count, .workers = all};
    const struct duet_runtime runtime = {.machine = &machine,
                                         .classes = classes,
                                         .class_count = count,
                                         .critical_path_s = 2.5};
    for (unsigned a = 0; a < arch_count; a++)
        for (unsigned w = 0; w < workers[a]; w++)
            all[machine.worker_count++].arch = a;
    return tested_bounds(&runtime, false);
}

static double area(const struct duet_class_stats *classes, size_t count, const unsigned *workers,
                   size_t arch_count)
{
    struct duet__bounds out = bounds(classes, count, workers, arch_count);
    g_assert_cmpfloat(out.critical_path_s, ==, 2.5);
    return out.area_s;
}

/* ------------------------------------------------------------------------------------------- */
/* Instances solved by hand                                                                     */

enum { ARCHS_BY_HAND = 3, CLASSES_BY_HAND = 3 };

/* Workers by architecture, as many as it has; classes of tasks, each with its seconds there. */
static const struct by_hand {
    unsigned workers[ARCHS_BY_HAND];
    struct {
        uint64_t tasks;
        double seconds[ARCHS_BY_HAND];
    } classes[CLASSES_BY_HAND];
    double area_s, tolerance;
} by_hand[] = {
    {{4}, {{10, {2}}}, 5, 1e-12},
    {{4}, {{10, {2}}, {8, {0.5}}}, 6, 1e-12},
    /* 12 tasks, 1 s on one GPU, 2 s on one CPU: 8 and 4 of them, 8 s; the same in three classes */
    {{1, 1}, {{12, {2, 1}}}, 8, 1e-12},
    {{1, 1}, {{5, {2, 1}}, {3, {2, 1}}, {4, {2, 1}}}, 8, 1e-12},
    /* 4 tasks only on the CPU, 1 s; 30 of 10 s there, 1 s on one of two GPUs. Balanced: 4 + 10 x =
       (30 - x) / 2, x = 22 / 21, T = 4 + 220 / 21 */
    {{1, 2}, {{4, {1, 0}}, {30, {10, 1}}}, 4 + 220.0 / 21, 1e-10},
    /* the task with the greater speed-up goes to the GPU, the other one stays on the CPU */
    {{1, 1}, {{6, {4, 1}}, {3, {2, 1.5}}}, 6, 1e-10},
    /* rates 1, 2 and 4 tasks a second: 70 tasks in 10 s; with two of the middle ones, 70 / 9 */
    {{1, 1, 1}, {{70, {1, 0.5, 0.25}}}, 10, 1e-10},
    {{1, 2, 1}, {{70, {1, 0.5, 0.25}}}, 70.0 / 9, 1e-10},
    /* many tasks, and long ones beside short ones */
    {{4, 8}, {{1000000000000000, {1e-6, 1e-7}}}, 1e15 / 84e6, 1e-9},
    {{4, 8}, {{1000000000000, {1e-6, 1e-7}}, {3, {1e4, 1e3}}}, (1e12 * 1e-7 + 3e3) / 8.4, 1e-6},
    /* nothing */
    {{1, 1}, {{0, {0, 0}}}, 0, DBL_MIN},
};

static void test_by_hand(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(by_hand); i++) {
        const struct by_hand *own = &by_hand[i];
        struct duet_class_stats classes[CLASSES_BY_HAND];
        size_t archs = 0;
        while (archs < ARCHS_BY_HAND && own->workers[archs])
            archs++;
        for (size_t c = 0; c < CLASSES_BY_HAND; c++)
            classes[c] = (struct duet_class_stats){.kernel = "k",
                                                   .tasks = own->classes[c].tasks,
                                                   .expected_s = own->classes[c].seconds};
        g_assert_cmpfloat_with_epsilon(area(classes, CLASSES_BY_HAND, own->workers, archs),
                                       own->area_s, own->tolerance * fmax(own->area_s, 1));
    }
    g_assert_cmpfloat(area(NULL, 0, by_hand[0].workers, 1), ==, 0);
}

/* ------------------------------------------------------------------------------------------- */
/* Random instances against exact methods                                                       */

static int compare_ratio(const void *left, const void *right)
{
    const struct duet_class_stats *a = left, *b = right;
    double x = a->expected_s[0] / a->expected_s[1], y = b->expected_s[0] / b->expected_s[1];
    return (x > y) - (x < y);
}

/* Two architectures: classes in order of speed-up fill the CPUs until both sides end together. */
static double exact_for_two(struct duet_class_stats *classes, size_t count, const unsigned *workers)
{
    double cpu = 0, gpu = 0;
    for (size_t i = 0; i < count; i++)
        gpu += (double)classes[i].tasks * classes[i].expected_s[1] / workers[1];
    qsort(classes, count, sizeof *classes, compare_ratio);
    for (size_t i = 0; i < count; i++) {
        double more_cpu = (double)classes[i].tasks * classes[i].expected_s[0] / workers[0];
        double less_gpu = (double)classes[i].tasks * classes[i].expected_s[1] / workers[1];
        double part = (gpu - cpu) / (more_cpu + less_gpu);
        if (part <= 1)
            return cpu + fmax(part, 0) * more_cpu;
        cpu += more_cpu;
        gpu -= less_gpu;
    }
    return cpu;
}

static void random_classes(GRand *random, struct duet_class_stats *classes, double *seconds,
                           size_t count, size_t arch_count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t a = 0; a < arch_count; a++)
            seconds[i * arch_count + a] = exp(g_rand_double_range(random, -9, 3));
        classes[i] =
            (struct duet_class_stats){.kernel = "k",
                                      .tasks = (uint64_t)exp(g_rand_double_range(random, 0, 14)),
                                      .expected_s = seconds + i * arch_count};
    }
}

static void test_random_two(void)
{
    static const unsigned workers[] = {4, 8};
    g_autoptr(GRand) random = g_rand_new_with_seed(1);
    struct duet_class_stats classes[200];
    double seconds[400];
    for (int round = 0; round < 200; round++) {
        size_t count = (size_t)g_rand_int_range(random, 1, 200);
        random_classes(random, classes, seconds, count, 2);
        double bound = area(classes, count, workers, 2);
        double exact = exact_for_two(classes, count, workers);
        g_assert_cmpfloat_with_epsilon(bound / exact, 1, 1e-6);
        g_assert_cmpfloat(bound, <=, exact * (1 + 1e-12)); /* never above */
    }
}

/* Two of four architectures that are twins are one with more workers; not all can run anywhere. */
static void test_random_twins(void)
{
    static const unsigned twins[] = {4, 3, 5, 2}, merged[] = {4, 8, 2};
    g_autoptr(GRand) random = g_rand_new_with_seed(2);
    struct duet_class_stats three[50], four[50];
    double seconds[150], doubled[200];
    for (int round = 0; round < 100; round++) {
        random_classes(random, three, seconds, 50, 3);
        for (size_t i = 0; i < 50; i++) {
            double *s = seconds + 3 * i;
            s[i % 7 % 3] *= i % 7 < 3 ? 0 : 1;
            memcpy(doubled + 4 * i, (double[]){s[0], s[1], s[1], s[2]}, 4 * sizeof(double));
            four[i] = (struct duet_class_stats){.kernel = "k",
                                                .tasks = three[i].tasks,
                                                .expected_s = doubled + 4 * i};
        }
        g_assert_cmpfloat_with_epsilon(area(four, 50, twins, 4) / area(three, 50, merged, 3), 1,
                                       1e-11);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Degenerate and wrong input                                                                   */

/* Nothing is known where some tasks can run nowhere, or their time there is no number. */
static void test_unknown(void)
{
    const unsigned workers[] = {1, 0}, none[] = {0, 0};
    const double gpu[] = {0, 1}, wrong[] = {NAN, 1}, endless[] = {INFINITY, 1};
    const struct duet_class_stats classes[] = {
        {.kernel = "dgemm", .tasks = 2, .expected_s = gpu},
        {.kernel = "dpotrf", .tasks = 2, .expected_s = wrong},
        {.kernel = "dpotrf", .tasks = 2, .expected_s = endless},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(classes); i++) {
        g_assert_cmpfloat(bounds(&classes[i], 1, workers, 2).area_s, ==, 0);
        g_assert_cmpfloat(bounds(&classes[i], 1, workers, 2).critical_path_s, ==, 0);
        g_assert_cmpfloat(bounds(&classes[i], 1, none, 2).area_s, ==, 0);
    }
}

/* Bounds of as many classes as a long run with varied sizes makes. */
static void test_many(void)
{
    static const unsigned workers[] = {4, 8};
    size_t count = 20000;
    g_autoptr(GRand) random = g_rand_new_with_seed(4);
    g_autofree struct duet_class_stats *classes = g_new(struct duet_class_stats, count);
    g_autofree double *seconds = g_new(double, count * 2);
    random_classes(random, classes, seconds, count, 2);
    double bound = area(classes, count, workers, 2);
    g_assert_cmpfloat_with_epsilon(bound / exact_for_two(classes, count, workers), 1, 1e-6);
}

/* Bounds of many classes by the linear program: GPUs of two kinds that are as fast. */
static void test_many_twins(void)
{
    static const unsigned merged[] = {4, 8}, twins[] = {4, 3, 5};
    size_t count = 5000;
    g_autoptr(GRand) random = g_rand_new_with_seed(5);
    g_autofree struct duet_class_stats *two = g_new(struct duet_class_stats, count);
    g_autofree struct duet_class_stats *three = g_new(struct duet_class_stats, count);
    g_autofree double *seconds = g_new(double, count * 2), *doubled = g_new(double, count * 3);
    random_classes(random, two, seconds, count, 2);
    for (size_t i = 0; i < count; i++) {
        const double *s = seconds + 2 * i;
        memcpy(doubled + 3 * i, (double[]){s[0], s[1], s[1]}, 3 * sizeof *s);
        three[i] = (struct duet_class_stats){.kernel = "k",
                                             .tasks = two[i].tasks,
                                             .expected_s = doubled + 3 * i};
    }
    double bound = area(three, count, twins, 3);
    g_assert_cmpfloat_with_epsilon(bound / exact_for_two(two, count, merged), 1, 1e-6);
}

/*
 * Times from 10^-300 to 10^300 s side by side, and no time, give a bound, or 0. A task has to be
 * somewhere, so that no bound is beyond what all of them take where each is fastest.
 */
static void test_extreme(void)
{
    static const double some[] = {0, 1e-300, 5e-324, 1e-9, 1, 1e300, DBL_MAX, INFINITY, NAN};
    const unsigned workers[] = {40, 3, 2, 1};
    g_autoptr(GRand) random = g_rand_new_with_seed(5);
    for (unsigned trial = 0; trial < 3000; trial++) {
        double seconds[6][4], all_s = 0;
        struct duet_class_stats classes[6];
        size_t archs = 1 + trial % 4, count = (size_t)g_rand_int_range(random, 1, 7);
        bool known = true;
        for (size_t c = 0; c < count; c++) {
            double best_s = INFINITY;
            for (size_t a = 0; a < archs; a++) {
                seconds[c][a] = some[g_rand_int_range(random, 0, G_N_ELEMENTS(some))];
                best_s = seconds[c][a] > 0 ? fmin(best_s, seconds[c][a]) : best_s;
            }
            classes[c] = (struct duet_class_stats){.tasks = 1000000, .expected_s = seconds[c]};
            known = known && isfinite(best_s);
            all_s += 1e6 * best_s;
        }
        double area_s = bounds(classes, count, workers, archs).area_s;
        g_assert_true(isfinite(area_s) && area_s >= 0 && (known || area_s == 0));
        g_assert_cmpfloat(area_s, <=, all_s * (1 + 1e-9));
    }
}

/* A search among too many classes that ends early has found a bound, too. */
static void test_limited(void)
{
    enum { CLASSES = 500, ARCHS = 4 };
    double seconds[CLASSES][ARCHS], before = 0;
    struct duet_class_stats classes[CLASSES];
    struct duet_worker workers[] = {{.arch = 0}, {.arch = 1}, {.arch = 2}, {.arch = 3}};
    const struct duet_machine machine = {.arch_count = ARCHS,
                                         .worker_count = G_N_ELEMENTS(workers),
                                         .workers = workers};
    const struct duet_runtime runtime = {.machine = &machine,
                                         .classes = classes,
                                         .class_count = CLASSES};
    struct duet__node_classes own;
    OWNED(duet__classes_free) struct duet__classes all;
    OWNED(duet__area_fini) struct duet__area area;
    g_autoptr(GRand) random = g_rand_new_with_seed(8);
    for (size_t c = 0; c < CLASSES; c++) {
        classes[c] = (struct duet_class_stats){.tasks = 1, .expected_s = seconds[c]};
        for (size_t a = 0; a < ARCHS; a++)
            seconds[c][a] = g_rand_double_range(random, 1, 2);
    }
    own = duet__node_classes(&runtime);
    g_assert_true(duet__classes_make(&all, &own, 1));
    area = duet__area_new(&all, false);
    duet__area_fill(&area, all.tasks);
    for (int power = 0; power < 7; power++) {
        double found = duet__area_bound(&area, pow(10, power));
        g_assert_cmpfloat(found, >=, before);
        g_assert_cmpfloat(found, >, 0);
        before = found;
    }
    g_assert_cmpfloat(ldexp(before, all.exponent), ==, tested_bounds(&runtime, false).area_s);
    g_free(own.rows);
}

/*
 * Two nodes, 1 CPU and 1 GPU, and 3 CPUs: 10 tasks of 3 s on CPUs alone and, of the other node, 16
 * that take 4 s there and 1 s on a GPU. 30 + 4 x = 4 (16 - x), x = 17 / 4, T = 47 / 4.
 */
static void test_nodes(void)
{
    double first[] = {0, 1, 1, 0, 0, 1, 10, 3, 0}, second[] = {0, 3, 0, 0, 0, 0, 16, 4, 1};
    const struct duet__node_classes nodes[] = {{2, 1, first}, {2, 1, second}},
                                    other[] = {{2, 1, first}, {1, 0, second}};
    g_assert_cmpfloat_with_epsilon(duet__bounds_of_nodes(nodes, 2, 1).area_s, 47.0 / 4, 1e-12);
    g_assert_cmpfloat(duet__bounds_of_nodes(other, 2, 1).critical_path_s, ==, 0);
    second[7] = second[8] = 0;
    g_assert_cmpfloat(duet__bounds_of_nodes(nodes, 2, 1).area_s, ==, 0);
}

/* ------------------------------------------------------------------------------------------- */
/* Graphs against the best of all schedules                                                     */

enum { TASKS = 6, DATA = 3, USES = 2, WORKERS = 3 };

/* Small graphs on a CPU or two and two GPUs or one, behind one link or one each. */
struct instance {
    unsigned task_count, cpus, use_count;
    double seconds[3][2]; /* by class, architecture */
    struct duet__entered_task tasks[TASKS];
    uint32_t uses[TASKS * (USES + 1)];
    uint64_t bytes[DATA];
    bool before[TASKS][TASKS]; /* before[i][j]: i ends before j begins */
    bool first[TASKS][DATA];   /* first[i][d]: i reads the first version of d */
    double Bps;                /* bandwidth of all links; 0: copies take no time */
    double fastest_Bps;        /* of one link */
};

static struct instance random_instance(GRand *random)
{
    struct instance in = {.task_count = 1 + g_rand_int(random) % TASKS,
                          .cpus = 1 + g_rand_int(random) % 2};
    bool written[DATA] = {false};
    for (unsigned c = 0; c < 3; c++) {
        in.seconds[c][0] = g_rand_int_range(random, c == 1 ? 0 : 1, 7);
        in.seconds[c][1] = g_rand_int_range(random, in.seconds[c][0] > 0 ? 0 : 1, 4);
    }
    for (unsigned d = 0; d < DATA; d++)
        in.bytes[d] = (uint64_t)g_rand_int_range(random, 0, 5);
    for (unsigned t = 0; t < in.task_count; t++) {
        const unsigned first = in.use_count, datum = g_rand_int(random) % DATA,
                       uses = g_rand_int(random) % (USES + 1);
        if (t && g_rand_int_range(random, 0, 3) == 0) {
            const unsigned task = g_rand_int(random) % t;
            in.uses[in.use_count++] = task << DUET__USE_BITS | DUET__USE_TASK;
            in.before[task][t] = true;
        }
        for (unsigned u = 0; u < uses; u++) {
            const uint32_t how = (uint32_t)g_rand_int_range(random, 0, 4), d = (datum + u) % DATA;
            in.uses[in.use_count++] = d << DUET__USE_BITS | how;
            in.first[t][d] = how & DUET__USE_READS && !written[d];
            written[d] |= how & DUET__USE_IN_TURN || !(how & DUET__USE_READS);
        }
        in.tasks[t] = (struct duet__entered_task){g_rand_int(random) % 3, in.use_count};
        for (unsigned b = 0; b < t; b++)
            for (unsigned v = b ? in.tasks[b - 1].end : 0; v < in.tasks[b].end; v++)
                for (unsigned u = first; u < in.use_count; u++)
                    in.before[b][t] |=
                        in.uses[v] >> DUET__USE_BITS == in.uses[u] >> DUET__USE_BITS &&
                        !((in.uses[v] | in.uses[u]) & DUET__USE_TASK) &&
                        (in.uses[v] | in.uses[u]) & DUET__USE_IN_TURN;
    }
    return in;
}

struct schedule {
    unsigned done;
    double span_s, link_s, free_s[WORKERS], end_s[TASKS], there_s[DATA];
    bool there[DATA];        /* on a device, and so at once on others */
    double valid_s[DATA][2]; /* in the host's memory, and on devices */
};

/* The date at which a datum can be read on the host, or on a device. */
static double read_s(const struct instance *in, const struct schedule *schedule, unsigned datum,
                     bool device)
{
    const double *valid_s = schedule->valid_s[datum];
    return fmin(valid_s[device], valid_s[!device] + (double)in->bytes[datum] / in->fastest_Bps);
}

/* Tries all that may come next, with copies in the order in which tasks need them. */
static void try_all(const struct instance *in, const struct schedule *so_far, double *best_s)
{
    if (so_far->done + 1 == 1U << in->task_count)
        *best_s = fmin(*best_s, so_far->span_s);
    for (unsigned i = 0; i < in->task_count * WORKERS; i++) {
        const unsigned t = i / WORKERS, w = i % WORKERS;
        const double time_s = in->seconds[in->tasks[t].klass][w >= in->cpus];
        struct schedule next = *so_far;
        double start_s = next.free_s[w];
        bool ready = !(next.done >> t & 1) && time_s > 0;
        for (unsigned b = 0; b < in->task_count && ready; b++) {
            ready = !in->before[b][t] || next.done >> b & 1;
            start_s = in->before[b][t] ? fmax(start_s, next.end_s[b]) : start_s;
        }
        for (unsigned d = 0; d < DATA && w >= in->cpus && in->Bps > 0; d++) {
            if (!in->first[t][d])
                continue;
            if (!next.there[d])
                next.there_s[d] = next.link_s += (double)in->bytes[d] / in->Bps;
            next.there[d] = true;
            start_s = fmax(start_s, next.there_s[d]);
        }
        const bool device = w >= in->cpus;
        const unsigned first = t ? in->tasks[t - 1].end : 0;
        for (unsigned u = first; u < in->tasks[t].end && in->Bps > 0; u++)
            if (!(in->uses[u] & DUET__USE_TASK) && in->uses[u] & DUET__USE_READS)
                start_s = fmax(start_s, read_s(in, &next, in->uses[u] >> DUET__USE_BITS, device));
        for (unsigned u = first; u < in->tasks[t].end; u++) {
            double *valid_s = next.valid_s[in->uses[u] >> DUET__USE_BITS];
            if (in->uses[u] & DUET__USE_TASK)
                continue;
            if (in->uses[u] & DUET__USE_IN_TURN)
                valid_s[!device] = valid_s[device] = INFINITY;
            if (in->uses[u] & DUET__USE_IN_TURN || !(in->uses[u] & DUET__USE_READS))
                valid_s[device] = fmin(valid_s[device], start_s + time_s);
        }
        next.free_s[w] = next.end_s[t] = start_s + time_s;
        next.span_s = fmax(next.span_s, next.end_s[t]);
        next.done |= 1U << t;
        if (ready && next.span_s < *best_s)
            try_all(in, &next, best_s);
    }
}

/* The bounds of an instance; `shared`: both GPUs have one link between them. */
static struct duet__bounds bounds_of(struct instance *in, bool shared)
{
    struct duet_worker workers[WORKERS] = {{.arch = 0}};
    struct duet_node nodes[WORKERS] = {{.capacity_bytes = 0}};
    struct duet_link links[2] = {{.bandwidth_Bps = shared ? 3 : 1}, {.bandwidth_Bps = 2}};
    struct duet_route routes[9] = {{.direct = false}};
    const unsigned gpus = WORKERS - in->cpus;
    in->Bps = shared || gpus == 2 ? 3 : 1;
    in->fastest_Bps = shared ? 3 : gpus;
    const struct duet_machine machine = {.arch_count = 2,
                                         .node_count = gpus + 1,
                                         .worker_count = WORKERS,
                                         .link_count = 2,
                                         .workers = workers,
                                         .nodes = nodes,
                                         .links = links,
                                         .routes = routes};
    const struct duet__entered entered = {in->tasks,      in->uses,      in->bytes,
                                          in->task_count, in->use_count, DATA};
    struct duet_class_stats classes[3];
    struct duet_runtime runtime = {.machine = &machine,
                                   .classes = classes,
                                   .class_count = 3,
                                   .entered = &entered};
    for (unsigned c = 0; c < 3; c++)
        classes[c] = (struct duet_class_stats){.expected_s = in->seconds[c]};
    for (unsigned t = 0; t < in->task_count; t++)
        classes[in->tasks[t].klass].tasks++;
    for (unsigned g = 0; g < gpus; g++) {
        const uint16_t link = shared ? 0 : (uint16_t)g;
        workers[in->cpus + g] = (struct duet_worker){.arch = 1, .node = g + 1};
        routes[g + 1] = (struct duet_route){true, 1, {link}, 0, links[link].bandwidth_Bps};
        routes[(g + 1) * (gpus + 1)] = routes[g + 1];
    }
    return tested_bounds(&runtime, true);
}

/* No bound is above the best of all schedules, and each is more than the others now and then. */
static void test_best_schedules(void)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(11);
    unsigned mixed_helps = 0, links_help = 0, mixed_reaches = 0, links_reach = 0;
    for (unsigned round = 0; round < 1000; round++) {
        struct instance in = random_instance(random);
        const struct duet__bounds found = bounds_of(&in, round % 2);
        struct schedule nothing = {0};
        double free_s = INFINITY, copied_s = INFINITY;
        for (unsigned d = 0; d < DATA; d++)
            nothing.valid_s[d][1] = in.bytes[d] ? INFINITY : 0;
        try_all(&in, &nothing, &copied_s);
        in.Bps = 0;
        try_all(&in, &nothing, &free_s);
        g_assert_cmpfloat(found.mixed_s, <=, free_s * (1 + 1e-9));
        g_assert_cmpfloat(found.links_s, <=, copied_s * (1 + 1e-9));
        g_assert_cmpfloat(fmin(found.mixed_s, found.links_s), >=, found.area_s);
        mixed_helps += found.mixed_s > found.area_s * (1 + 1e-9);
        links_help += found.links_s > fmax(found.area_s, found.mixed_s) * (1 + 1e-9);
        mixed_reaches += found.mixed_s > free_s * (1 - 1e-9);
        links_reach += found.links_s > fmax(copied_s, free_s + 1e-9) * (1 - 1e-9);
    }
    g_assert_true(mixed_helps > 100 && mixed_reaches > 100 && links_help > 100 && links_reach > 50);
}

/* ------------------------------------------------------------------------------------------- */
/* A run                                                                                        */

static void test_run(void)
{
    double best_s;
    struct duet_worker workers[] = {{.arch = 0}, {.arch = 1}, {.arch = 1}};
    const struct duet_machine machine = {.arch_count = 2, .worker_count = 3, .workers = workers};
    const double panel[] = {1, 0}, update[] = {10, 1};
    const struct duet_class_stats classes[] = {{.kernel = "p", .tasks = 4, .expected_s = panel},
                                               {.kernel = "g", .tasks = 30, .expected_s = update}};
    struct duet_runtime runtime = {.machine = &machine,
                                   .classes = classes,
                                   .class_count = 2,
                                   .critical_path_s = 2.5};
    struct duet__bounds out = tested_bounds(&runtime, false);
    g_assert_cmpfloat(out.critical_path_s, ==, 2.5);
    g_assert_cmpfloat_with_epsilon(out.area_s, 4 + 220.0 / 21, 1e-10);
    g_assert_cmpstr(tested_best(&out, &best_s), ==, "area");
    g_assert_cmpfloat(best_s, ==, out.mixed_s);

    runtime.error = DUET_EINVAL;
    g_assert_cmpfloat(tested_bounds(&runtime, false).area_s, ==, 0);
    runtime = (struct duet_runtime){.machine = &machine};
    g_assert_cmpfloat(tested_bounds(&runtime, false).area_s, ==, 0);
}

TEST_MAIN(test_by_hand, test_random_two, test_random_twins, test_unknown, test_many,
          test_many_twins, test_extreme, test_limited, test_nodes, test_best_schedules, test_run)
