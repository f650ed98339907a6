/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Upward ranks (Topcuoglu, Hariri, Wu, TPDS 2002, equations 8 and 9) of tasks that have not entered
 * the graph yet. They are computed in one pass backwards, since each handle knows the longest path
 * after its next access. As in the graph there are no edges, and accesses that share are not
 * ordered.
 */
#include "core/internal.h"

/* Seconds assumed for a kernel of unknown time: the number of tasks on a path then decides. */
static const double UNKNOWN_S = 1e-6;

static struct mean_copy one_copy(const struct duet_machine *machine, unsigned from, unsigned to)
{
    const struct duet_route *route = duet_machine_route(machine, from, to);
    if (route->direct)
        return (struct mean_copy){route->latency_s, 1 / route->bandwidth_Bps};
    const struct mean_copy out = one_copy(machine, from, DUET_HOST),
                           in = one_copy(machine, DUET_HOST, to);
    return (struct mean_copy){out.latency_s + in.latency_s, out.byte_s + in.byte_s};
}

double duet__copy_seconds(const struct duet_machine *machine, unsigned from, unsigned to,
                          uint64_t bytes)
{
    if (from == to)
        return 0;
    const struct mean_copy copy = one_copy(machine, from, to);
    return copy.latency_s + (double)bytes * copy.byte_s;
}

/* Returns the mean over all pairs of different workers (equation 3): a copy within one memory takes
   no time. */
struct mean_copy duet__mean_copy(const struct duet_runtime *core)
{
    const struct duet_machine *machine = &core->machine;
    const double workers = machine->worker_count, devices = machine->node_count - 1;
    const double pairs = workers > 1 ? workers * (workers - 1) : 1;
    struct mean_copy mean = {0, 0};
    for (unsigned from = 0; from < machine->node_count; from++) {
        for (unsigned to = 0; to < machine->node_count; to++) {
            if (from == to)
                continue;
            const struct mean_copy copy = one_copy(machine, from, to);
            /* a device has one worker */
            double weight = (from && to ? 1 : workers - devices) / pairs;
            mean.latency_s += weight * copy.latency_s;
            mean.byte_s += weight * copy.byte_s;
        }
    }
    return mean;
}

/*
 * Returns the mean over the workers that can run the task, as far as their times are known
 * (equation 1).
 */
static double mean_seconds(const struct duet_runtime *core, const struct duet_task *task)
{
    double sum = 0, workers = 0;
    if (!task->klass)
        return 0; /* an acquisition */
    for (unsigned k = 0; k < core->kind_count; k++) {
        if (!(core->masks[task->mask].kinds >> k & 1))
            continue;
        double seconds = duet__expected_s(task, core->kinds[k].arch);
        double living = atomic_load_explicit(&core->kinds[k].living, memory_order_relaxed);
        sum += seconds > 0 ? living * seconds : 0;
        workers += seconds > 0 ? living : 0;
    }
    return workers > 0 ? sum / workers : UNKNOWN_S;
}

/* One access of a task, to its handle, or as an access to a whole that contains it. */
struct use {
    struct duet_handle *handle;
    const struct parts *of; /* cut or expansion that has the handle; NULL: none */
    uintptr_t run;          /* adjacent uses with the same number are not ordered; 0: ordered with
                               all */
    bool reads, writes;
    double copy_s; /* mean seconds of a copy of its data */
};

static struct use use_of(const struct access *access, const struct mean_copy *copy)
{
    const struct duet_handle *handle = access->handle;
    bool shared = SHARED_MODES >> (access->mode & 31) & 1;
    return (struct use){.handle = access->handle,
                        .of = handle->of,
                        .run = shared ? access->mode : 0,
                        .reads = access->mode & DUET_R,
                        .writes = access->mode & DUET_W,
                        .copy_s = copy->latency_s + copy->byte_s * (double)handle->bytes};
}

/*
 * Moves a use of a part on to its whole. Parts of one cut are in force together; those of another
 * cut, or the whole, in turns (cut.c). Returns false if it is no part.
 */
static bool next_use(struct use *use)
{
    if (!use->of || use->of->expansion)
        return false;
    use->run = (uintptr_t)use->of;
    use->handle = use->of->whole;
    use->of = use->handle->of;
    return true;
}

/*
 * Returns the longest path after a use, with the copy of its output to the next use, if that reads.
 */
static double longest_after(const struct use *use, unsigned pass)
{
    const struct below *below = &use->handle->below;
    if (below->pass != pass)
        return 0;
    bool same = use->run && below->run == use->run;
    bool read = same ? below->next_reads : below->reads;
    return (same ? below->next_s : below->run_s) + (use->writes && read ? use->copy_s : 0);
}

static void put_before(const struct use *use, unsigned pass, double rank)
{
    struct below *below = &use->handle->below;
    if (below->pass != pass)
        *below = (struct below){.pass = pass};
    if (!use->run || below->run != use->run) {
        below->next_s = below->run_s;
        below->next_reads = below->reads;
        below->run = use->run;
        below->run_s = 0;
        below->reads = use->reads;
    }
    if (rank > below->run_s)
        below->run_s = rank;
}

static double rank_of(const struct duet_runtime *core, const struct duet_task *task,
                      const struct mean_copy *copy, unsigned pass)
{
    double after = task->extra && task->extra->ref ? duet__ref_rank(task->extra->ref) : 0;
    for (unsigned i = 0; i < task->access_count; i++) {
        struct use use = use_of(&task->accesses[i], copy);
        bool any = task->accesses[i].mode;
        for (; any; any = next_use(&use)) {
            double seconds = longest_after(&use, pass);
            after = seconds > after ? seconds : after;
        }
    }
    return mean_seconds(core, task) + after;
}

void duet__ranks(const struct duet_runtime *core, struct duet_task *const *tasks, size_t count,
                 const struct mean_copy *copy, unsigned pass, double *ranks)
{
    for (size_t t = count; t-- > 0;) {
        struct duet_task *task = tasks[t];
        ranks[t] = rank_of(core, task, copy, pass);
        for (unsigned i = 0; i < task->access_count; i++) {
            struct use use = use_of(&task->accesses[i], copy);
            bool any = task->accesses[i].mode;
            for (; any; any = next_use(&use))
                put_before(&use, pass, ranks[t]);
        }
        if (task->extra)
            duet__edges_rank(task, ranks[t]);
    }
}
