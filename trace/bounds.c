/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lower bounds on the makespan of a run: what is asked of the runtime, and what follows from the
 * graph. area.c does the rest.
 */
#include "trace/bounds.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include <glib.h>

/* Products of a time and a price that are looked at where there are more than two architectures:
   some tenths of a second, some milliseconds. */
static const double MOST = 3e8, LESS = 1e7;

/* ------------------------------------------------------------------------------------------- */
/* Classes                                                                                      */

struct duet__node_classes duet__node_classes(const struct duet_runtime *core)
{
    const struct duet_machine *machine = duet_runtime_machine(core);
    const size_t row = 1 + machine->arch_count, count = duet_class_count(core);
    struct duet__node_classes out = {machine->arch_count, count, g_new0(double, (2 + count) * row)};
    double *workers = out.rows, *devices = workers + row, *next = devices + row;
    for (unsigned w = 0; w < machine->worker_count; w++) {
        workers[1 + machine->workers[w].arch]++;
        devices[1 + machine->workers[w].arch] += machine->workers[w].node != DUET_HOST;
    }
    for (size_t c = 0; c < count; c++, next += row) {
        struct duet_class_stats class; /* array valid until the next call */
        if (duet_class_stats(core, c, &class)) {
            next[0] = 1; /* nothing is known of it */
            continue;
        }
        next[0] = (double)class.tasks;
        for (unsigned a = 0; a < machine->arch_count; a++)
            next[1 + a] = class.expected_s[a];
    }
    return out;
}

/* ------------------------------------------------------------------------------------------- */
/* Tasks before and after each task                                                             */

/* Tasks in an order in which they may run, with the uses that order them. */
struct graph {
    const struct duet__classes *classes;
    const struct duet__entered *entered;
};

/* Class of a task; -1: it takes no time. */
static int64_t class_of(const struct graph *graph, size_t task)
{
    const uint32_t klass = graph->entered->tasks[task].klass;
    return klass < graph->classes->count && graph->classes->tasks[klass] > 0 ? (int64_t)klass : -1;
}

static double fastest_s(const struct graph *graph, size_t task)
{
    const int64_t klass = class_of(graph, task);
    return klass < 0 ? 0 : graph->classes->best_s[klass];
}

/* Returns the index of the first use of a task. */
static uint32_t first_use(const struct graph *graph, size_t task)
{
    return task ? graph->entered->tasks[task - 1].end : 0;
}

/* Returns true if all tasks of the graph have ended: after a failure some may not. */
static bool is_whole(const struct graph *graph)
{
    double *left = g_memdup2(graph->classes->tasks, graph->classes->count * sizeof(double));
    bool whole = true;
    for (size_t i = 0; i < graph->entered->task_count && whole; i++) {
        const int64_t klass = class_of(graph, i);
        whole = klass < 0 || left[klass]-- > 0;
    }
    g_free(left);
    return whole;
}

/* Returns the larger one, without the call that fmax is, several times a task. */
static double longer(double a_s, double b_s)
{
    return a_s > b_s ? a_s : b_s;
}

/*
 * Returns, for each task, the longest path that ends where it begins or, `back`, begins where it
 * ends, with every task where it is fastest. The caller frees it.
 */
static double *paths(const struct graph *graph, bool back)
{
    const struct duet__entered *entered = graph->entered;
    const size_t count = entered->task_count;
    struct {
        double in_turn_s, any_s; /* the longest up to the last use in turn, to any */
    } *data = g_malloc0_n(entered->datum_count + 1, sizeof(*data));
    double *paths_s = g_new0(double, count + 1);
    for (size_t n = 0; n < count; n++) {
        const size_t i = back ? count - 1 - n : n;
        double path_s = paths_s[i];
        for (uint32_t u = first_use(graph, i); u < entered->tasks[i].end; u++) {
            const uint32_t use = entered->uses[u], of = use >> DUET__USE_BITS;
            if (!(use & DUET__USE_TASK))
                path_s =
                    longer(path_s, use & DUET__USE_IN_TURN ? data[of].any_s : data[of].in_turn_s);
            else if (!back)
                path_s = longer(path_s, paths_s[of] + fastest_s(graph, of));
        }
        paths_s[i] = path_s;
        path_s += fastest_s(graph, i);
        for (uint32_t u = first_use(graph, i); u < entered->tasks[i].end; u++) {
            const uint32_t use = entered->uses[u], of = use >> DUET__USE_BITS;
            if (use & DUET__USE_TASK) {
                paths_s[of] = back ? longer(paths_s[of], path_s) : paths_s[of];
                continue;
            }
            data[of].any_s = longer(data[of].any_s, path_s);
            if (use & DUET__USE_IN_TURN)
                data[of].in_turn_s = path_s;
        }
    }
    g_free(data);
    return paths_s;
}

/* ------------------------------------------------------------------------------------------- */
/* Bound of paths and area together                                                             */

enum { SLICES = 512 };

/* Cuts values, up to the longest, into slices. `slice`: by value; `least_s`: by slice. */
static void slice_up(const struct graph *graph, const double *values_s, uint16_t *slice,
                     double *least_s)
{
    const size_t count = graph->entered->task_count;
    double longest_s = 0;
    for (size_t i = 0; i < count; i++)
        longest_s = longer(longest_s, values_s[i]);
    for (size_t k = 0; k < SLICES; k++)
        least_s[k] = INFINITY;
    for (size_t i = 0; i < count; i++) {
        slice[i] = longest_s > 0 ? (uint16_t)(values_s[i] / longest_s * (SLICES - 1)) : 0;
        if (values_s[i] < least_s[slice[i]])
            least_s[slice[i]] = values_s[i];
    }
}

/*
 * The largest of all cuts at slices, by what tasks of each class cost at prices of which the
 * machine earns 1 a second.
 */
static double best_middle(const struct graph *graph, const double *costs, const double *heads_s,
                          const double *tails_s)
{
    const size_t count = graph->entered->task_count;
    uint16_t *head = g_new(uint16_t, count), *tail = g_new(uint16_t, count);
    double first_s[SLICES], last_s[SLICES], costs_after[SLICES] = {0}, best_s = 0;
    double *all = g_new0(double, (size_t)SLICES *SLICES); /* cost by slices */
    slice_up(graph, heads_s, head, first_s);
    slice_up(graph, tails_s, tail, last_s);
    for (size_t i = 0; i < count; i++) {
        const int64_t klass = class_of(graph, i);
        all[(size_t)head[i] * SLICES + tail[i]] += klass < 0 ? 0 : costs[klass];
    }
    for (size_t h = SLICES; h-- > 0;) {
        double sum = 0;
        if (isinf(first_s[h])) /* nothing is in it */
            continue;
        for (size_t t = SLICES; t-- > 0;) {
            costs_after[t] += all[h * SLICES + t];
            sum += costs_after[t];
            if (sum > 0 && isfinite(last_s[t]))
                best_s = longer(best_s, first_s[h] + sum + last_s[t]);
        }
    }
    g_free(all);
    g_free(head);
    g_free(tail);
    return best_s;
}

/* `all` are all tasks, whose prices are known. */
static double mixed(const struct graph *graph, const struct duet__area *all)
{
    const struct duet__classes *classes = graph->classes;
    double *heads_s = paths(graph, false), *tails_s = paths(graph, true), bound_s;
    double *costs = g_new0(double, classes->count + 1);
    size_t where;
    for (size_t c = 0; c < classes->count; c++)
        if (classes->tasks[c] > 0)
            costs[c] = duet__area_cost(all, classes->times_s + c * classes->arch_count, 0,
                                       all->prices, &where);
    bound_s = best_middle(graph, costs, heads_s, tails_s);
    g_free(costs);
    g_free(heads_s);
    g_free(tails_s);
    return bound_s;
}

/* ------------------------------------------------------------------------------------------- */
/* Links                                                                                        */

/*
 * A way by which data comes to devices: one more resource of the area, which a copy keeps busy for
 * the latency and its bytes; and the memories behind it, so many of so many bytes at most.
 */
struct way {
    double latency_s, Bps, memories, bytes;
};

static double busy_s(const struct way *way, double bytes)
{
    return way->latency_s + bytes / way->Bps;
}

/*
 * Returns the way from the host's memory to all devices: a set of links, the narrowest shared one
 * of each device's route. A device without a shared link makes copies take no time.
 */
static struct way from_host(const struct duet_machine *machine)
{
    bool *chosen = g_new0(bool, machine->link_count + 1);
    struct way way = {.memories = 1};
    for (unsigned n = 1; n < machine->node_count; n++) {
        const struct duet_route *route = duet_machine_route(machine, DUET_HOST, n);
        const struct duet_link *narrowest = NULL;
        way.bytes += (double)machine->nodes[n].capacity_bytes;
        for (unsigned i = 0; route->direct && i < route->count; i++) {
            const struct duet_link *link = &machine->links[route->links[i]];
            if (!link->per_copy && (!narrowest || link->bandwidth_Bps < narrowest->bandwidth_Bps))
                narrowest = link;
        }
        if (!narrowest)
            way.Bps = INFINITY;
        else if (!chosen[narrowest - machine->links])
            way.Bps += narrowest->bandwidth_Bps;
        if (narrowest)
            chosen[narrowest - machine->links] = true;
    }
    g_free(chosen);
    return way;
}

/*
 * Returns the way into devices, one copy after another each, as simulations have it: the engines of
 * all, as if the fastest route led to each. `all`: also from other devices.
 */
static struct way into_devices(const struct duet_machine *machine, bool all)
{
    struct way way = {.latency_s = INFINITY, .memories = machine->node_count - 1};
    for (unsigned n = 1; n < machine->node_count; n++) {
        way.bytes = fmax(way.bytes, (double)machine->nodes[n].capacity_bytes);
        for (unsigned from = 0; from < (all ? machine->node_count : 1); from++) {
            const struct duet_route *route = duet_machine_route(machine, from, n);
            if (from == n || !route->direct)
                continue;
            way.latency_s = fmin(way.latency_s, route->latency_s / way.memories);
            way.Bps = fmax(way.Bps, route->bandwidth_Bps * way.memories);
        }
    }
    return way;
}

/* The first version of a datum: seconds of a copy of it, and the number of tasks that read it, each
   of which may bring it. */
struct first {
    double copy_s, readers;
    bool over; /* another version has come */
};

/* Seconds that a task's data keeps the way busy if it runs on a device, its part of what it reads:
   0 while readers are counted. */
static double bring(const struct graph *graph, size_t task, struct first *data, bool counting)
{
    double seconds = 0;
    for (uint32_t u = first_use(graph, task); u < graph->entered->tasks[task].end; u++) {
        const uint32_t use = graph->entered->uses[u];
        const bool reads = use & DUET__USE_READS;
        struct first *of = &data[use >> DUET__USE_BITS];
        if (use & DUET__USE_TASK || of->over)
            continue;
        if (class_of(graph, task) < 0) {
            /* an acquisition or a hint, which may have brought it before the first task came */
            of->copy_s = of->readers > 0 ? of->copy_s : 0;
        } else if (reads) {
            of->readers += counting;
            seconds += counting ? 0 : of->copy_s / of->readers;
        }
        of->over = use & DUET__USE_IN_TURN || !reads;
    }
    return seconds;
}

/* Takes groups of tasks, each with what it brings. Returns seconds that all keep the way busy. */
static double take_first(struct duet__area *area, const struct graph *graph, const struct way *way)
{
    const struct duet__classes *of = graph->classes;
    const size_t count = graph->entered->task_count;
    struct first *data = g_new0(struct first, graph->entered->datum_count + 1);
    size_t *newest = g_new0(size_t, of->count + 1); /* by class: 1 + its newest group's number */
    double *left = g_memdup2(of->tasks, of->count * sizeof(double)), all_s = 0;
    for (size_t d = 0; d < graph->entered->datum_count; d++)
        if (graph->entered->bytes[d])
            data[d].copy_s = busy_s(way, (double)graph->entered->bytes[d]);
    for (size_t i = 0; i < count; i++)
        (void)bring(graph, i, data, true);
    for (size_t d = 0; d < graph->entered->datum_count; d++)
        data[d].over = false;
    area->groups = g_new(struct duet__area_tasks, count + of->count);
    for (size_t i = 0; i < count; i++) {
        const double link_s = ldexp(bring(graph, i, data, false), -of->exponent);
        const int64_t klass = class_of(graph, i);
        size_t *group = klass < 0 ? NULL : &newest[klass];
        if (!group)
            continue;
        left[klass]--;
        all_s += link_s;
        if (!*group || area->groups[*group - 1].link_s < link_s ||
            area->groups[*group - 1].link_s > link_s) {
            area->groups[area->group_count] =
                (struct duet__area_tasks){0, link_s, of->times_s + (size_t)klass * of->arch_count};
            *group = ++area->group_count;
        }
        area->groups[*group - 1].tasks++;
    }
    for (size_t c = 0; c < of->count; c++)
        if (left[c] > 0)
            area->groups[area->group_count++] =
                (struct duet__area_tasks){left[c], 0, of->times_s + c * of->arch_count};
    g_free(left);
    g_free(newest);
    g_free(data);
    return all_s;
}

/* Returns the seconds that tasks keep the way busy if all are on devices, by what has to come again
   and again: each for *link_s, less *spare_s. */
static double again_s(const struct duet__classes *of, const struct way *way,
                      const struct duet__reuse *reuse, double *link_s, double *spare_s)
{
    const double copy_s = ldexp(busy_s(way, reuse->bytes), -of->exponent);
    *link_s = copy_s * duet__reuse_copies(reuse, way->bytes, way->memories, spare_s);
    *spare_s *= copy_s;
    return reuse->tasks * *link_s - *spare_s;
}

/* Returns true if these tasks keep no way busy for area_s, however little they can do with few
   data, all of which have `bytes`. */
static bool never_again(const struct graph *graph, const struct way *ways, double tasks,
                        double bytes, double area_s)
{
    const struct duet__reuse most = {.tasks = tasks, .factor = DUET__REUSE_LEAST, .bytes = bytes};
    double link_s, spare_s;
    return again_s(graph->classes, &ways[0], &most, &link_s, &spare_s) < area_s * (1 - 1e-9) &&
           again_s(graph->classes, &ways[2], &most, &link_s, &spare_s) < area_s * (1 - 1e-9);
}

/* Returns what tasks of the largest class can do with few data that are read only, or changed in
   place, so that wherever one is it has been copied. No tasks: it cannot raise area_s. */
static struct duet__reuse find_reuse(const struct graph *graph, const struct way *ways,
                                     double area_s, uint32_t *klass)
{
    const struct duet__entered *entered = graph->entered;
    const double room = ways[2].bytes;
    double *bytes = g_new0(double, entered->datum_count + 1), sum = 0, least = INFINITY, most = 0;
    struct duet__reuse reuse = {0};
    *klass = 0;
    for (uint32_t c = 0; c < graph->classes->count; c++)
        if (graph->classes->tasks[c] > graph->classes->tasks[*klass])
            *klass = c;
    for (size_t d = 0; d < entered->datum_count; d++)
        bytes[d] = (double)entered->bytes[d];
    for (size_t u = 0; u < entered->use_count; u++)
        if (!(entered->uses[u] & (DUET__USE_TASK | DUET__USE_READS)))
            bytes[entered->uses[u] >> DUET__USE_BITS] = 0;
    for (size_t d = 0; d < entered->datum_count; d++) {
        sum += bytes[d];
        most = longer(most, bytes[d]);
        least = bytes[d] > 0 && bytes[d] < least ? bytes[d] : least;
    }
    if (room > 0 && sum > room && /* in a larger room all may stay */
        (least < most || !never_again(graph, ways, graph->classes->tasks[*klass], most, area_s)))
        reuse = duet__reuse_find(entered, *klass, bytes);
    g_free(bytes);
    return reuse;
}

/* Takes groups of tasks with what has to come again and again where memory is small. Returns the
   seconds that all keep the way busy. */
static double take_again(struct duet__area *area, const struct way *way,
                         const struct duet__reuse *reuse, uint32_t klass)
{
    const struct duet__classes *of = area->of;
    double link_s;
    const double all_s = again_s(of, way, reuse, &link_s, &area->spare_s);
    area->groups = g_new(struct duet__area_tasks, of->count + 1);
    for (uint32_t c = 0; c < of->count; c++) {
        const double *times_s = of->times_s + c * of->arch_count;
        const double those = c == klass ? reuse->tasks : 0;
        if (those > 0)
            area->groups[area->group_count++] = (struct duet__area_tasks){those, link_s, times_s};
        if (of->tasks[c] > those)
            area->groups[area->group_count++] =
                (struct duet__area_tasks){of->tasks[c] - those, 0, times_s};
    }
    return all_s;
}

/* Returns true if all data, coming once, keep the way busy for less than area_s. */
static bool comes_soon(const struct graph *graph, const struct way *way, double area_s)
{
    double all_s = 0;
    for (size_t d = 0; d < graph->entered->datum_count; d++)
        if (graph->entered->bytes[d])
            all_s += busy_s(way, (double)graph->entered->bytes[d]);
    return ldexp(all_s, -graph->classes->exponent) < area_s * (1 - 1e-9);
}

/* Returns the bound of groups that keep the way busy for `all_s` if all are on devices. */
static double solve(struct duet__area *area, double all_s, double area_s)
{
    const struct duet__classes *of = area->of;
    double bound_s = 0;
    /* with less all may run on devices, and links are never waited for */
    if (isfinite(all_s) && all_s > area_s && of->arch_count > 1)
        bound_s = duet__area_bound(area, LESS);
    else if (isfinite(all_s) && of->arch_count == 1 && of->device[0])
        bound_s = all_s;
    duet__area_fini(area);
    return fmax(area_s, bound_s);
}

static double with_links(const struct graph *graph, const struct duet_machine *machine,
                         double area_s)
{
    const struct way ways[] = {from_host(machine), into_devices(machine, false),
                               into_devices(machine, true)};
    struct duet__area area;
    struct duet__reuse reuse;
    uint32_t klass;
    if (machine->node_count < 2)
        return area_s;
    reuse = find_reuse(graph, ways, area_s, &klass);
    for (unsigned i = 0; i < G_N_ELEMENTS(ways); i++) {
        if (i < 2 && !comes_soon(graph, &ways[i], area_s)) {
            area = duet__area_new(graph->classes, true);
            area_s = solve(&area, take_first(&area, graph, &ways[i]), area_s);
        }
        if (i != 1 && reuse.tasks > 0) {
            area = duet__area_new(graph->classes, true);
            area_s = solve(&area, take_again(&area, &ways[i], &reuse, klass), area_s);
        }
    }
    return area_s;
}

/* Two places: the host's memory, and those of all devices. */
enum { HOST_PLACE, DEVICE_PLACE, PLACES };

/* Latency, and seconds of a byte, of the fastest copies from the host to a device, and back. */
struct crossing {
    double latency_s[PLACES], byte_s[PLACES]; /* by where the copy goes */
};

static struct crossing find_crossing(const struct duet_machine *machine)
{
    struct crossing crossing = {{INFINITY, INFINITY}, {INFINITY, INFINITY}};
    for (unsigned n = 1; n < machine->node_count; n++)
        for (unsigned to = 0; to < PLACES; to++) {
            const struct duet_route *route =
                duet_machine_route(machine, to == HOST_PLACE ? n : DUET_HOST,
                                   to == HOST_PLACE ? DUET_HOST : n);
            crossing.latency_s[to] = fmin(crossing.latency_s[to], route->latency_s);
            crossing.byte_s[to] = fmin(crossing.byte_s[to], 1 / route->bandwidth_Bps);
        }
    return crossing;
}

/* Seconds of a task in each place; INFINITY: it cannot run there. */
static void seconds_in(const struct graph *graph, size_t task, double seconds[PLACES])
{
    const struct duet__classes *of = graph->classes;
    const int64_t klass = class_of(graph, task);
    seconds[HOST_PLACE] = seconds[DEVICE_PLACE] = klass < 0 ? 0 : INFINITY;
    for (size_t a = 0; a < of->arch_count && klass >= 0; a++) {
        double *there = &seconds[of->device[a] ? DEVICE_PLACE : HOST_PLACE];
        *there = fmin(*there, of->times_s[(size_t)klass * of->arch_count + a]);
    }
}

/* Earliest dates of a datum. */
struct dated {
    double valid_s[PLACES]; /* its last version is valid there, if it was written there */
    double any_s;           /* all its users have ended */
};

/* Returns when a datum can be valid in a place: written there, or copied to it. */
static double arrival_s(const struct dated *datum, double bytes, const struct crossing *crossing,
                        unsigned place)
{
    double copy_s = bytes > 0 ? crossing->latency_s[place] + bytes * crossing->byte_s[place] : 0;
    return fmin(datum->valid_s[place], datum->valid_s[!place] + copy_s);
}

/*
 * Returns the longest path, with every task and the copies between the host and devices where both
 * together are fastest: data that one task writes and the next one reads is copied where one of
 * them is on the host and the other on a device. Copies between devices count nothing, as both may
 * be one.
 */
static double path_with_copies(const struct graph *graph, const struct duet_machine *machine)
{
    const struct duet__entered *entered = graph->entered;
    struct dated *data = g_new0(struct dated, entered->datum_count + 1);
    double *ends_s = g_new0(double, entered->task_count + 1), longest_s = 0;
    struct crossing crossing = find_crossing(machine);
    for (unsigned to = 0; to < PLACES; to++) { /* in the classes' unit */
        crossing.latency_s[to] = ldexp(crossing.latency_s[to], -graph->classes->exponent);
        crossing.byte_s[to] = ldexp(crossing.byte_s[to], -graph->classes->exponent);
    }
    for (size_t d = 0; d < entered->datum_count; d++)
        data[d].valid_s[DEVICE_PLACE] = entered->bytes[d] ? INFINITY : 0;
    for (size_t i = 0; i < entered->task_count; i++) {
        double end_s[PLACES] = {0}, seconds[PLACES];
        for (uint32_t u = first_use(graph, i); u < entered->tasks[i].end; u++) {
            const uint32_t use = entered->uses[u], of = use >> DUET__USE_BITS;
            for (unsigned place = 0; place < PLACES; place++) {
                double date_s = use & DUET__USE_TASK      ? ends_s[of]
                                : use & DUET__USE_IN_TURN ? data[of].any_s
                                                          : 0;
                if (!(use & DUET__USE_TASK) && use & DUET__USE_READS)
                    date_s = longer(date_s, arrival_s(&data[of], (double)entered->bytes[of],
                                                      &crossing, place));
                end_s[place] = longer(end_s[place], date_s);
            }
        }
        seconds_in(graph, i, seconds);
        for (unsigned place = 0; place < PLACES; place++)
            end_s[place] += seconds[place];
        ends_s[i] = fmin(end_s[HOST_PLACE], end_s[DEVICE_PLACE]);
        longest_s = longer(longest_s, ends_s[i]);
        for (uint32_t u = first_use(graph, i); u < entered->tasks[i].end; u++) {
            const uint32_t use = entered->uses[u], of = use >> DUET__USE_BITS;
            if (use & DUET__USE_TASK)
                continue;
            data[of].any_s = longer(data[of].any_s, ends_s[i]);
            for (unsigned place = 0; place < PLACES; place++)
                if (use & DUET__USE_IN_TURN)
                    data[of].valid_s[place] = end_s[place];
                else if (!(use & DUET__USE_READS)) /* another version, beside the one before */
                    data[of].valid_s[place] = fmin(data[of].valid_s[place], end_s[place]);
        }
    }
    g_free(data);
    g_free(ends_s);
    return longest_s;
}

const char *duet__bounds_best(const struct duet__bounds *bounds, double *best_s)
{
    const struct {
        const char *name;
        double bound_s;
    } all[] = {{"area", bounds->area_s},
               {"critical path", bounds->critical_path_s},
               {"links", bounds->links_s},
               {"mixed", bounds->mixed_s}};
    size_t best = 0;
    /* the simplest of those that are equal */
    for (size_t i = 1; i < G_N_ELEMENTS(all); i++)
        if (all[i].bound_s > all[best].bound_s * (1 + 1e-9))
            best = i;
    *best_s = all[best].bound_s;
    return all[best].name;
}

struct duet__bounds duet__bounds_of_nodes(const struct duet__node_classes *nodes, unsigned count,
                                          double path_s)
{
    struct duet__bounds bounds = {0};
    struct duet__classes classes;
    if (duet__classes_make(&classes, nodes, count)) {
        struct duet__area area = duet__area_new(&classes, false);
        double area_s;
        duet__area_fill(&area, classes.tasks);
        area_s = ldexp(duet__area_bound(&area, MOST), classes.exponent);
        bounds.critical_path_s = path_s;
        bounds.area_s = isfinite(area_s) ? area_s : 0;
        bounds.mixed_s = fmax(bounds.area_s, path_s);
        duet__area_fini(&area);
    }
    duet__classes_free(&classes);
    return bounds;
}

struct duet__bounds duet__bounds(const struct duet_runtime *runtime, bool links)
{
    struct duet__bounds bounds = {0};
    struct duet_stats stats;
    struct duet__node_classes own = duet__node_classes(runtime);
    struct duet__classes classes;
    if (duet__classes_make(&classes, &own, 1)) {
        const struct graph graph = {&classes, duet__entered(runtime)};
        const bool known = graph.entered && is_whole(&graph);
        struct duet__area area = duet__area_new(&classes, false);
        double area_s;
        duet__area_fill(&area, classes.tasks);
        area_s = duet__area_bound(&area, MOST);
        duet_stats(runtime, &stats);
        bounds.critical_path_s = stats.critical_path_s;
        bounds.area_s = ldexp(area_s, classes.exponent);
        bounds.mixed_s = fmax(bounds.area_s, bounds.critical_path_s);
        if (known)
            bounds.mixed_s = fmax(bounds.mixed_s, ldexp(mixed(&graph, &area), classes.exponent));
        if (known && links)
            bounds.links_s = ldexp(fmax(with_links(&graph, duet_runtime_machine(runtime), area_s),
                                        path_with_copies(&graph, duet_runtime_machine(runtime))),
                                   classes.exponent);
        duet__area_fini(&area);
    }
    if (!isfinite(bounds.mixed_s) || !isfinite(bounds.links_s))
        bounds = (struct duet__bounds){0};
    duet__classes_free(&classes);
    g_free(own.rows);
    return bounds;
}
