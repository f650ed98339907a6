/* SPDX-License-Identifier: Apache-2.0 */
/* States the main cause of a run's length in one sentence. */
#include "report/why.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/table.h"
#include "base/stats.h"
#include "workloads/tiles.h"

static const double much = 0.25;           /* part of the path, or of the processors' time, that is
                                              a cause */
static const double small_bytes = 1 << 16; /* data whose copies take little more than their
                                              latency */
static const double disorder = 0.2;        /* part of the path in kernels that others should have
                                              preceded */
static const double some = 0.05;           /* part of the path that is mentioned */
static const double outlier = 10;          /* times its median: a kernel is disturbed */
static const double most = 0.8; /* part of the processors' time: little is left to gain */

const char *duet__cause_name(enum duet__cause cause)
{
    static const char *const names[] = {
        [DUET_CAUSE_MEMORY] = "memory",           [DUET_CAUSE_TO_DEVICE] = "to_device",
        [DUET_CAUSE_TO_HOST] = "to_host",         [DUET_CAUSE_BETWEEN] = "between",
        [DUET_CAUSE_MESSAGE] = "message",         [DUET_CAUSE_OVERHEAD] = "overhead",
        [DUET_CAUSE_SUBMISSION] = "submission",   [DUET_CAUSE_PRIORITIES] = "priorities",
        [DUET_CAUSE_KERNEL] = "kernel",           [DUET_CAUSE_CHOICE] = "choice",
        [DUET_CAUSE_PARALLELISM] = "parallelism", [DUET_CAUSE_WORK] = "work",
    };

    return names[cause];
}

char *duet__why_part(const struct duet__why *why, const struct duet__path_part *part)
{
    static const char *const names[] = {
        [DUET_STATE_TO_DEVICE_QUEUE] = "copies to devices, waiting for the link",
        [DUET_STATE_TO_DEVICE] = "copies to devices",
        [DUET_STATE_TO_HOST_QUEUE] = "copies to the host, waiting for the link",
        [DUET_STATE_TO_HOST] = "copies to the host",
        [DUET_STATE_BETWEEN_QUEUE] = "copies between devices, waiting for the link",
        [DUET_STATE_BETWEEN] = "copies between devices",
        [DUET_STATE_MESSAGE_QUEUE] = "messages from other nodes, waiting for the network",
        [DUET_STATE_MESSAGE] = "messages from other nodes",
        [DUET_STATE_ROOM] = "making room in a device's memory",
        [DUET_STATE_OVERHEAD] = "overhead",
        [DUET_STATE_BEFORE] = "submission",
    };
    const struct duet__recording *recording = &why->trace->run.recording;
    const struct duet_event event = {.kernel = part->kernel};

    if (part->state != DUET_STATE_KERNEL)
        return g_strdup(names[part->state]);
    return g_strdup_printf("%s on %s", duet__recording_kernel(recording, &event),
                           recording->machine->archs[part->arch].name);
}

/* ------------------------------------------------------------------------------------------- */
/* Figures                                                                                      */

/* Parts of 1, for the path and for the workers that count. */
struct shares {
    double path[DUET_STATES], workers[DUET_STATES];
    const char *who;                      /* name of these workers */
    const struct duet__path_part *kernel; /* the longest one of the path; NULL: none */
    bool gpus;
    double again; /* part of the bytes to devices that had been there before */
};

static bool is_gpu(const struct duet_machine *machine, unsigned worker)
{
    return !duet__is_host(machine, machine->workers[worker].node);
}

/* Fills the shares, of GPUs if there are any, else of CPUs. */
static void find_shares(const struct duet__why *why, struct shares *out)
{
    const struct duet_machine *machine = why->trace->run.recording.machine;
    const double makespan_s = fmax(why->account->makespan_s, 1e-300);
    double in_bytes = 0, again_bytes = 0, count = 0;

    *out = (struct shares){.who = "CPUs"};
    for (unsigned i = 0; i < machine->worker_count; i++)
        out->gpus |= is_gpu(machine, i);
    if (out->gpus)
        out->who = "GPUs";
    for (unsigned i = 0; i < machine->worker_count; i++) {
        if (out->gpus && !is_gpu(machine, i))
            continue;
        count++;
        for (unsigned state = 0; state < DUET_STATES; state++)
            out->workers[state] += why->account->workers_s[i][state] / makespan_s;
    }
    for (unsigned state = 0; state < DUET_STATES; state++)
        out->workers[state] /= count;
    for (guint i = 0; i < why->path->parts->len; i++) {
        const struct duet__path_part *part =
            &g_array_index(why->path->parts, struct duet__path_part, i);

        out->path[part->state] += part->seconds / makespan_s;
        if (part->state == DUET_STATE_KERNEL && !out->kernel)
            out->kernel = part;
    }
    for (unsigned i = 0; i < machine->node_count; i++) {
        if (duet__is_host(machine, i))
            continue;
        in_bytes += (double)why->uses[i].in_bytes;
        again_bytes += (double)why->uses[i].again_bytes;
    }
    out->again = in_bytes > 0 ? again_bytes / in_bytes : 0;
}

/* Returns the share of waiting for data, or room for it. */
static double waiting(const double *shares)
{
    return duet__states_sum(shares, DUET_STATE_TO_DEVICE_QUEUE, DUET_STATE_MESSAGE);
}

/* ------------------------------------------------------------------------------------------- */
/* Causes                                                                                       */

/* True if some tasks of a kernel could have run on a GPU. */
static bool could_on_gpu(const struct duet__recording *recording, unsigned kernel)
{
    for (size_t i = 0; i < recording->event_count; i++) {
        const struct duet_event *event = &recording->events[i];

        if (event->kind != DUET_EVENT_TASK || event->kernel != kernel)
            continue;
        for (unsigned w = 0; w < recording->machine->worker_count; w++)
            if (is_gpu(recording->machine, w) &&
                event->where >> recording->machine->workers[w].arch & 1)
                return true;
    }
    return false;
}

/* Returns the setting of a workload that keeps a kernel from GPUs, "potrf"; NULL: none does. */
static const char *placement_of(const struct duet__trace *trace, const char *kernel)
{
    const struct duet__workload *workload =
        trace->tile && trace->workload ? duet__workload_find(trace->workload) : NULL;
    const struct duet__tiled *tiled = workload ? workload->tiled : NULL;
    const unsigned placed = tiled && tiled->placement ? tiled->placed ? tiled->placed : 1 : 0;
    const struct duet__problem usual = {.settings = NULL};

    for (unsigned i = 0; placed && i < DUET__KERNELS_MAX && workload->kernels[i]; i++)
        if (placed >> i & 1 && !strcmp(kernel + (*kernel != 0), workload->kernels[i])) {
            const bool on_cpus =
                !strcmp(duet__setting(&usual, workload->parameters, tiled->placement), "cpu");
            g_autofree char *other = g_strconcat(tiled->placement, on_cpus ? "=any" : "=cpu", NULL);

            return (trace->settings && strstr(trace->settings, other)) != on_cpus ? tiled->placement
                                                                                  : NULL;
        }
    return NULL;
}

/* Describes why a kernel of the path ran on CPUs: by choice, or as it may run nowhere else. */
static char *say_place(const struct duet__why *why, unsigned kernel, enum duet__cause *cause)
{
    const struct duet__recording *recording = &why->trace->run.recording;
    const struct duet_event event = {.kernel = kernel};
    const char *setting = placement_of(why->trace, duet__recording_kernel(recording, &event));
    const bool could = could_on_gpu(recording, kernel);

    *cause = could ? DUET_CAUSE_CHOICE : DUET_CAUSE_KERNEL;
    if (setting && !could)
        return g_strdup_printf(
            ", as the workload keeps it from GPUs (--param %s=any lets them run it)", setting);
    return g_strdup(could
                        ? " by the policy's choice: GPUs could run it"
                        : ", as no GPU may run it (no code for them, or no time in the platform)");
}

/* Returns the shortest time of simulated changes whose names begin so; NaN: there is none. */
static double trial_s(const struct duet__why *why, const char *name)
{
    double best_s = NAN;

    for (guint i = 0; why->what_if && i < why->what_if->changes->len; i++) {
        const struct duet__change *change =
            &g_array_index(why->what_if->changes, struct duet__change, i);

        if (g_str_has_prefix(change->what, name))
            best_s = fmin(best_s, change->makespan_s);
    }
    return best_s;
}

/* True if the order was simulated otherwise, by policies and priorities, and none is better. */
static bool is_order_fine(const struct duet__why *why)
{
    const double best_s = fmin(trial_s(why, "policy "), trial_s(why, "priorities "));

    return why->what_if && best_s > (1 - some) * why->what_if->reference_s &&
           why->what_if->reference_s > (1 - some) * why->account->makespan_s;
}

/*
 * Returns the sentence about the first execution that took many times the usual time of its kernel
 * on that architecture, with the same work, and is a considerable part of the path, and its share;
 * else NULL.
 */
static char *say_outlier(const struct duet__why *why, double *share)
{
    const struct duet__recording *recording = &why->trace->run.recording;
    const struct duet_worker *workers = recording->machine->workers;
    g_autoptr(GArray) lengths_s = g_array_new(FALSE, FALSE, sizeof(double));

    for (guint i = 0; i < why->path->steps->len; i++) {
        const struct duet__step *step = &g_array_index(why->path->steps, struct duet__step, i);
        const struct duet_event *own = &recording->events[step->event];
        double times;

        *share = (step->end_s - step->start_s) / why->account->makespan_s;
        if (step->state != DUET_STATE_KERNEL || !(*share >= some))
            continue;
        g_array_set_size(lengths_s, 0);
        for (size_t k = 0; k < recording->event_count; k++) {
            const struct duet_event *event = &recording->events[k];
            const double length_s = event->end_s - event->start_s;

            if (event->kind == DUET_EVENT_TASK && event->kernel == own->kernel &&
                !(event->work < own->work) && !(event->work > own->work) &&
                workers[event->worker].arch == workers[own->worker].arch)
                g_array_append_val(lengths_s, length_s);
        }
        times = (own->end_s - own->start_s) /
                duet__median((double *)(void *)lengths_s->data, lengths_s->len);
        if (times >= outlier)
            return g_strdup_printf("%s took %.3g times its median in task %" PRIu64 " on %s: that "
                                   "is %.0f %% of the critical path.",
                                   duet__recording_kernel(recording, own), times, own->id,
                                   workers[own->worker].name, 100 * *share);
    }
    return NULL;
}

static char *say_memory(const struct duet__why *why, const struct shares *shares)
{
    const struct duet_machine *machine = why->trace->run.recording.machine;
    const uint64_t capacity = machine->node_count > 1 ? machine->nodes[1].capacity_bytes : 0;
    g_autofree char *size = capacity ? duet__size_text(capacity) : NULL;

    return g_strdup_printf(
        "The memory of the GPUs%s%s%s is too small: %.0f %% of the bytes that were copied to them "
        "had been there before, and they wait %.0f %% of the time for data or room.",
        size ? " (" : "", size ? size : "", size ? ")" : "", 100 * shares->again,
        100 * waiting(shares->workers));
}

/* Describes the direction of copies that is waited for most, on the path above all. */
static char *say_copies(const struct duet__why *why, const struct shares *shares,
                        enum duet__cause *cause)
{
    static const struct {
        enum duet__cause cause;
        enum duet__state first, end;
        const char *what;
    } ways[] = {
        {DUET_CAUSE_TO_DEVICE, DUET_STATE_TO_DEVICE_QUEUE, DUET_STATE_TO_DEVICE, "from the host"},
        {DUET_CAUSE_TO_HOST, DUET_STATE_TO_HOST_QUEUE, DUET_STATE_TO_HOST,
         "on its way to the host"},
        {DUET_CAUSE_BETWEEN, DUET_STATE_BETWEEN_QUEUE, DUET_STATE_BETWEEN, "from other GPUs"},
        {DUET_CAUSE_MESSAGE, DUET_STATE_MESSAGE_QUEUE, DUET_STATE_MESSAGE, "from other nodes"},
    };
    const struct duet__recording *recording = &why->trace->run.recording;
    const double all_path = waiting(shares->path), all_workers = waiting(shares->workers);
    g_autofree char *size = NULL, *all = NULL,
                    *twice = g_strdup_printf("tile %" PRIu64, 2 * why->trace->tile);
    unsigned largest = 0;
    double found = -1, path, workers, bytes = 0, copies = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(ways); i++) {
        double own = 2 * duet__states_sum(shares->path, ways[i].first, ways[i].end) +
                     duet__states_sum(shares->workers, ways[i].first, ways[i].end);

        largest = own > found ? i : largest;
        found = fmax(found, own);
    }
    path = duet__states_sum(shares->path, ways[largest].first, ways[largest].end);
    workers = duet__states_sum(shares->workers, ways[largest].first, ways[largest].end);
    for (size_t i = 0; i < recording->event_count; i++) {
        copies += recording->events[i].kind == DUET_EVENT_COPY;
        if (recording->events[i].kind == DUET_EVENT_COPY)
            bytes += (double)recording->events[i].bytes;
    }
    size = duet__size_text((uint64_t)(bytes / fmax(copies, 1)));
    /* only all directions together are a cause */
    all = fmax(all_path - path, all_workers - workers) < 0.01
              ? g_strdup("")
              : g_strdup_printf(" With other data and room it is %.0f %% and %.0f %%.",
                                100 * all_path, 100 * all_workers);
    *cause = ways[largest].cause;
    return g_strdup_printf(
        "%.0f %% of the critical path is waiting for data %s; %s wait %.0f %% of "
        "the time for that.%s%s%s%s",
        100 * path, ways[largest].what, shares->who, 100 * workers, all,
        bytes < small_bytes * copies ? " Copies are small, " : "",
        bytes < small_bytes * copies ? size : "",
        bytes >= small_bytes * copies ? ""
        : why->what_if && trial_s(why, twice) >= why->what_if->reference_s
            ? " in the mean, and take their latency."
            : " in the mean, and take their latency: larger tiles help.");
}

static char *say_overhead(const struct duet__why *why, const struct shares *shares)
{
    const struct duet__account *account = why->account;
    double count = 0;

    for (size_t i = 0; i < account->kernel_count; i++)
        count += account->kernels[i].count;
    return g_strdup_printf(
        "Tasks are too short: a kernel takes %.3g us in the mean, and %.0f %% of "
        "the critical path is what it takes to start them.",
        1e6 * account->states_s[DUET_STATE_KERNEL] / fmax(count, 1),
        100 * shares->path[DUET_STATE_OVERHEAD]);
}

/* Explains a path of kernels: they are slow there, in a bad order, too few, or all there is. */
static char *say_kernels(const struct duet__why *why, const struct shares *shares,
                         enum duet__cause *cause)
{
    const struct duet__recording *recording = &why->trace->run.recording;
    const double none = duet__states_sum(shares->workers, DUET_STATE_BEFORE, DUET_STATE_AFTER),
                 elsewhere = shares->workers[DUET_STATE_ELSEWHERE],
                 hindered = why->path->hindered_s / fmax(why->account->makespan_s, 1e-300);
    const struct duet__path_part *kernel = shares->kernel;
    g_autofree char *what = kernel ? duet__why_part(why, kernel) : g_strdup("kernels");
    const double share = kernel ? kernel->seconds / fmax(why->account->makespan_s, 1e-300) : 0;

    if (shares->workers[DUET_STATE_KERNEL] >= most) {
        *cause = DUET_CAUSE_WORK;
        return g_strdup_printf("%s compute %.0f %% of the time: less work, or more or faster ones, "
                               "would shorten the run.",
                               shares->who, 100 * shares->workers[DUET_STATE_KERNEL]);
    }
    if (hindered >= disorder && !is_order_fine(why)) {
        *cause = DUET_CAUSE_PRIORITIES;
        return g_strdup_printf("The order of tasks is bad: for %.0f %% of the time the critical "
                               "path waits for tasks on which less depends than on those that were "
                               "ready.",
                               100 * hindered);
    }
    if (shares->gpus && kernel && share >= much &&
        strcmp(recording->machine->archs[kernel->arch].backend, "cpu") == 0) {
        g_autofree char *place = say_place(why, kernel->kernel, cause);

        return g_strdup_printf(
            "%s is %.0f %% of the critical path%s, while GPUs compute %.0f %% of the time.", what,
            100 * share, place, 100 * shares->workers[DUET_STATE_KERNEL]);
    }
    if (waiting(shares->workers) > fmax(elsewhere, none))
        return say_copies(why, shares, cause); /* less than `much`, but more than all else */
    *cause = elsewhere > none ? DUET_CAUSE_CHOICE : DUET_CAUSE_PARALLELISM;
    if (elsewhere > none)
        return g_strdup_printf("%s have nothing to do for %.0f %% of the time although tasks that "
                               "they could run are ready, for others: that is the policy's choice.",
                               shares->who, 100 * elsewhere);
    return g_strdup_printf(
        "%s have nothing to do for %.0f %% of the time, as no task is ready: too "
        "few tasks can run at once. %s is %.0f %% of the critical path.",
        shares->who, 100 * none, what, 100 * share);
}

static char *say_cause(const struct duet__why *why, enum duet__cause *cause)
{
    struct shares shares;
    double path, workers;

    find_shares(why, &shares);
    path = waiting(shares.path);
    workers = waiting(shares.workers);
    if (fmax(path, workers) >= much && shares.again >= much) {
        *cause = DUET_CAUSE_MEMORY;
        return say_memory(why, &shares);
    }
    if (shares.path[DUET_STATE_OVERHEAD] >= fmax(much, path)) {
        *cause = DUET_CAUSE_OVERHEAD;
        return say_overhead(why, &shares);
    }
    if (shares.path[DUET_STATE_BEFORE] >= fmax(much, path)) {
        *cause = DUET_CAUSE_SUBMISSION;
        return g_strdup_printf("%.0f %% of the critical path is before tasks are submitted: the "
                               "application does something else, or submission takes that long.",
                               100 * shares.path[DUET_STATE_BEFORE]);
    }
    if (fmax(path, workers) >= much)
        return say_copies(why, &shares, cause);
    return say_kernels(why, &shares, cause);
}

char *duet__why_sentence(const struct duet__why *why, enum duet__cause *cause)
{
    double share;
    g_autofree char *slow = say_outlier(why, &share), *main_cause = say_cause(why, cause);

    if (!slow)
        return g_steal_pointer(&main_cause);
    if (share < much)
        return g_strdup_printf("%s %s", main_cause, slow);
    *cause = DUET_CAUSE_KERNEL;
    return g_steal_pointer(&slow);
}
