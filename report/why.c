/* SPDX-License-Identifier: Apache-2.0 */
/* States the main cause of a run's length in one sentence, and shows what tells it. */

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/stats.h"
#include "base/table.h"
#include "report/report.h"
#include "trace/recording.h"
#include "workloads/tiles.h"

/* Possible main causes. */
enum cause {
    CAUSE_MEMORY,      /* devices wait for data that had been there before, or for room */
    CAUSE_TO_DEVICE,   /* tasks wait for data from the host */
    CAUSE_TO_HOST,     /* tasks wait for data on its way to the host */
    CAUSE_BETWEEN,     /* tasks wait for data from other devices */
    CAUSE_MESSAGE,     /* tasks wait for data from other nodes */
    CAUSE_OVERHEAD,    /* tasks are short compared with starting them */
    CAUSE_SUBMISSION,  /* the application submits late */
    CAUSE_PRIORITIES,  /* tasks ran before others on which more depends */
    CAUSE_KERNEL,      /* a kernel can run on CPUs alone, or some of its executions took too long */
    CAUSE_CHOICE,      /* the policy leaves tasks to slower or busy workers */
    CAUSE_PARALLELISM, /* too few tasks are ready */
    CAUSE_WORK,        /* the processors compute nearly all the time */
};

static const double much = 0.25;           /* part of the path, or of the processors' time, that is
                                              a cause */
static const double small_bytes = 1 << 16; /* data whose copies take little more than their
                                              latency */
static const double disorder = 0.2;        /* part of the path in kernels that others should have
                                              preceded */
static const double some = 0.05;           /* part of the path that is mentioned */
static const double outlier = 10;          /* times its median: a kernel is disturbed */
static const double most = 0.8; /* part of the processors' time: little is left to gain */

static const char *cause_name(enum cause cause)
{
    static const char *const names[] = {
        [CAUSE_MEMORY] = "memory",           [CAUSE_TO_DEVICE] = "to_device",
        [CAUSE_TO_HOST] = "to_host",         [CAUSE_BETWEEN] = "between",
        [CAUSE_MESSAGE] = "message",         [CAUSE_OVERHEAD] = "overhead",
        [CAUSE_SUBMISSION] = "submission",   [CAUSE_PRIORITIES] = "priorities",
        [CAUSE_KERNEL] = "kernel",           [CAUSE_CHOICE] = "choice",
        [CAUSE_PARALLELISM] = "parallelism", [CAUSE_WORK] = "work",
    };
    return names[cause];
}

/* Returns the name of a part of the path: "dgemm on c2050", "copies to devices"; for g_free. */
static char *part_name(const struct duet__why *why, const struct duet__path_part *part)
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
static char *say_place(const struct duet__why *why, unsigned kernel, enum cause *cause)
{
    const struct duet__recording *recording = &why->trace->run.recording;
    const struct duet_event event = {.kernel = kernel};
    const char *setting = placement_of(why->trace, duet__recording_kernel(recording, &event));
    const bool could = could_on_gpu(recording, kernel);
    *cause = could ? CAUSE_CHOICE : CAUSE_KERNEL;
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
static char *say_copies(const struct duet__why *why, const struct shares *shares, enum cause *cause)
{
    static const struct {
        enum cause cause;
        enum duet__state first, end;
        const char *what;
    } ways[] = {
        {CAUSE_TO_DEVICE, DUET_STATE_TO_DEVICE_QUEUE, DUET_STATE_TO_DEVICE, "from the host"},
        {CAUSE_TO_HOST, DUET_STATE_TO_HOST_QUEUE, DUET_STATE_TO_HOST, "on its way to the host"},
        {CAUSE_BETWEEN, DUET_STATE_BETWEEN_QUEUE, DUET_STATE_BETWEEN, "from other GPUs"},
        {CAUSE_MESSAGE, DUET_STATE_MESSAGE_QUEUE, DUET_STATE_MESSAGE, "from other nodes"},
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
                         enum cause *cause)
{
    const struct duet__recording *recording = &why->trace->run.recording;
    const double none = duet__states_sum(shares->workers, DUET_STATE_BEFORE, DUET_STATE_AFTER),
                 elsewhere = shares->workers[DUET_STATE_ELSEWHERE],
                 hindered = why->path->hindered_s / fmax(why->account->makespan_s, 1e-300);
    const struct duet__path_part *kernel = shares->kernel;
    g_autofree char *what = kernel ? part_name(why, kernel) : g_strdup("kernels");
    const double share = kernel ? kernel->seconds / fmax(why->account->makespan_s, 1e-300) : 0;
    if (shares->workers[DUET_STATE_KERNEL] >= most) {
        *cause = CAUSE_WORK;
        return g_strdup_printf("%s compute %.0f %% of the time: less work, or more or faster ones, "
                               "would shorten the run.",
                               shares->who, 100 * shares->workers[DUET_STATE_KERNEL]);
    }
    if (hindered >= disorder && !is_order_fine(why)) {
        *cause = CAUSE_PRIORITIES;
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
    *cause = elsewhere > none ? CAUSE_CHOICE : CAUSE_PARALLELISM;
    if (elsewhere > none)
        return g_strdup_printf("%s have nothing to do for %.0f %% of the time although tasks that "
                               "they could run are ready, for others: that is the policy's choice.",
                               shares->who, 100 * elsewhere);
    return g_strdup_printf(
        "%s have nothing to do for %.0f %% of the time, as no task is ready: too "
        "few tasks can run at once. %s is %.0f %% of the critical path.",
        shares->who, 100 * none, what, 100 * share);
}

static char *say_cause(const struct duet__why *why, enum cause *cause)
{
    struct shares shares;
    double path, workers;
    find_shares(why, &shares);
    path = waiting(shares.path);
    workers = waiting(shares.workers);
    if (fmax(path, workers) >= much && shares.again >= much) {
        *cause = CAUSE_MEMORY;
        return say_memory(why, &shares);
    }
    if (shares.path[DUET_STATE_OVERHEAD] >= fmax(much, path)) {
        *cause = CAUSE_OVERHEAD;
        return say_overhead(why, &shares);
    }
    if (shares.path[DUET_STATE_BEFORE] >= fmax(much, path)) {
        *cause = CAUSE_SUBMISSION;
        return g_strdup_printf("%.0f %% of the critical path is before tasks are submitted: the "
                               "application does something else, or submission takes that long.",
                               100 * shares.path[DUET_STATE_BEFORE]);
    }
    if (fmax(path, workers) >= much)
        return say_copies(why, &shares, cause);
    return say_kernels(why, &shares, cause);
}

/*
 * Returns a sentence about the main cause of the run's length, *cause, for g_free. By thresholds: a
 * quarter of the critical path, or of the time of the processors that there are most of, is a
 * cause.
 */
static char *sentence_of(const struct duet__why *why, enum cause *cause)
{
    double share;
    g_autofree char *slow = say_outlier(why, &share), *main_cause = say_cause(why, cause);
    if (!slow)
        return g_steal_pointer(&main_cause);
    if (share < much)
        return g_strdup_printf("%s %s", main_cause, slow);
    *cause = CAUSE_KERNEL;
    return g_steal_pointer(&slow);
}

/* ------------------------------------------------------------------------------------------- */
/* Tables for people                                                                            */

enum {
    MOST_WORKERS = 32, /* workers with a row each; also of memories, or of the hosts' alone */
};

static const double far = 0.1; /* relative difference from the run: simulations then tell little of
                                  it */

static double makespan_of(const struct duet__why *why)
{
    return fmax(why->account->makespan_s, 1e-300);
}

/* Returns a share in percent; NaN for 0. */
static double percent(double share)
{
    return share < 0.0005 ? NAN : 100 * share;
}

/* Returns gibibytes; NaN for 0, which means not known. */
static double gibibytes(uint64_t bytes)
{
    return bytes ? (double)bytes / 0x1p30 : NAN;
}

static void put_head(FILE *stream, const struct duet__why *why)
{
    const struct duet__trace *trace = why->trace;
    const struct duet__recording *recording = &trace->run.recording;
    g_autofree char *resources = duet__report_resources(trace->run.recording.machine), *sentence;
    g_autoptr(GString) text = g_string_new(NULL);
    enum cause cause;
    g_string_append_printf(text, "%s: ", why->path_name);
    if (trace->workload && *trace->workload)
        g_string_append_printf(text, "%s, ", trace->workload);
    if (trace->n)
        g_string_append_printf(text, "n %" PRIu64 ", ", trace->n);
    if (trace->tile)
        g_string_append_printf(text, "tile %" PRIu64 ", ", trace->tile);
    if (trace->policy)
        g_string_append_printf(text, "%s, ", trace->policy);
    g_string_append_printf(text, "on %s with %s: %.5g s", trace->run.recording.machine->name,
                           resources, why->account->makespan_s);
    if (trace->world)
        g_string_append_printf(text, " (%s)", trace->world);
    if (trace->estimated)
        g_string_append_printf(text, "; estimated, not measured: times of %s", trace->estimated);
    for (size_t i = 0; i < recording->mark_count; i++)
        if (recording->marks[i].lost)
            g_string_append_printf(
                text, "; %s was lost at %.5g s, and is there all the time in what is simulated",
                duet__recording_name(recording, recording->marks[i].name),
                recording->marks[i].start_s);
    duet__put_wrapped(stream, text->str, 0);
    sentence = sentence_of(why, &cause);
    putc('\n', stream);
    duet__put_wrapped(stream, sentence, 0);
    if (*trace->run.barred)
        duet__put_wrapped(stream, trace->run.barred, 0);
}

/* Writes a warning if gains are of another run. */
static void put_doubt(FILE *stream, const struct duet__why *why)
{
    const double ratio = why->what_if ? why->what_if->reference_s / makespan_of(why) : 1;
    if (fabs(ratio - 1) > far)
        fprintf(stream,
                "Simulated without a change it takes %.0f %% %s than this run: gains are of "
                "that.\n",
                100 * fabs(ratio - 1), ratio < 1 ? "less" : "more");
}

/* Writes the largest gain, and the largest that needs nothing new. */
static void put_advice(FILE *stream, const struct duet__why *why)
{
    const struct duet__change *any = NULL, *setting = NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; why->what_if && i < why->what_if->changes->len; i++) {
        const struct duet__change *change =
            &g_array_index(why->what_if->changes, struct duet__change, i);
        if (change->bound || !(change->makespan_s < why->what_if->reference_s * 0.995))
            continue;
        any = any ? any : change;
        setting = setting || change->buys ? setting : change;
    }
    put_doubt(stream, why);
    if (why->what_if && why->what_if->guess)
        fprintf(stream,
                "Nothing is advised: without a change it rests on a guess, the time of %s.\n",
                why->what_if->guess);
    if (!any)
        return;
    g_string_append_printf(text, "Most would help: %s (%.1f %% of the time less)", any->what,
                           100 * (1 - any->makespan_s / why->what_if->reference_s));
    if (setting && setting != any)
        g_string_append_printf(text, "; of settings: %s (%.1f %%)", setting->what,
                               100 * (1 - setting->makespan_s / why->what_if->reference_s));
    g_string_append_c(text, '.');
    duet__put_wrapped(stream, text->str, 0);
}

/* Returns what an interval is mostly from, and what would narrow it, for g_free. */
static char *say_interval(const struct duet__holding *holding)
{
    const struct duet__held *held = holding->held;
    const bool measured = !isnan(holding->measured_half);
    g_autofree char *of = duet__report_interval(holding->interval);
    GString *text = g_string_new(NULL);
    g_string_printf(text, "Interval of %s: %.5g to %.5g s in 90 of 100 cases, +-%.2g %%. ", of,
                    holding->low_s, holding->high_s, 100 * holding->half);
    if (holding->tied == 0)
        g_string_append(text, "No drawn figure stands out.");
    if (holding->tied == 1)
        g_string_append_printf(
            text, "The largest part of it, %.0f %% of the variance, is from %s (%s)%s +-%.2g %%.",
            100 * held->share, held->name, held->why,
            measured ? ", and the interval would be" : "; were that certain, it would be",
            100 * (measured ? holding->measured_half : held->half));
    if (holding->tied < 2)
        return g_string_free(text, FALSE);
    g_string_append_printf(text, "The largest part of it is from %s", held->name);
    for (unsigned i = 1; i < holding->tied; i++)
        g_string_append_printf(text, "%s%s", i + 1 < holding->tied ? ", " : " or ", held[i].name);
    g_string_append_printf(text, ": %zu machines do not tell which.", holding->reps);
    return g_string_free(text, FALSE);
}

static void put_interval(FILE *stream, const struct duet__holding *holding)
{
    g_autofree char *sentence = say_interval(holding);
    struct duet__table table;
    putc('\n', stream);
    duet__put_wrapped(stream, sentence, 0);
    duet__table_init(&table, "trrr");
    duet__table_print(&table, "what if certain\t+-%%\t%% of variance\t+-");
    for (unsigned i = 0; i < holding->count; i++)
        duet__table_print(&table, "%s\t%.2g\t%d\t%.0f", holding->held[i].name,
                          100 * holding->held[i].half, (int)lround(100 * holding->held[i].share),
                          100 * holding->held[i].error);
    duet__table_put(&table, stream, 0);
    fprintf(stream, "%zu simulations of %zu drawn machines; +- of variance: standard error\n",
            holding->simulations, holding->reps);
}

static void put_parts(FILE *stream, const struct duet__why *why)
{
    struct duet__table table;
    duet__table_init(&table, "trrr");
    duet__table_print(&table, "critical path\ttimes\ts\t%%");
    for (guint i = 0; i < why->path->parts->len; i++) {
        const struct duet__path_part *part =
            &g_array_index(why->path->parts, struct duet__path_part, i);
        duet__table_add(&table, part_name(why, part));
        duet__table_print(&table, "%zu\t%.5g\t%.1f", part->count, part->seconds,
                          percent(part->seconds / makespan_of(why)));
    }
    putc('\n', stream);
    duet__table_put(&table, stream, 0);
}

/* ------------------------------------------------------------------------------------------- */
/* Workers and memories                                                                         */

/* Columns of the table: ranges of states, with two lines of heading. */
static const struct {
    const char *heads[2];
    enum duet__state first, end;
} columns[] = {
    {{"runs", "%"}, DUET_STATE_KERNEL, DUET_STATE_KERNEL},
    {{"to GPU", "queue"}, DUET_STATE_TO_DEVICE_QUEUE, DUET_STATE_TO_DEVICE_QUEUE},
    {{"to GPU", "copy"}, DUET_STATE_TO_DEVICE, DUET_STATE_TO_DEVICE},
    {{"to host", "%"}, DUET_STATE_TO_HOST_QUEUE, DUET_STATE_TO_HOST},
    {{"GPU-GPU", "queue"}, DUET_STATE_BETWEEN_QUEUE, DUET_STATE_BETWEEN_QUEUE},
    {{"GPU-GPU", "copy"}, DUET_STATE_BETWEEN, DUET_STATE_BETWEEN},
    {{"mes-", "sages"}, DUET_STATE_MESSAGE_QUEUE, DUET_STATE_MESSAGE},
    {{"room", "%"}, DUET_STATE_ROOM, DUET_STATE_ROOM},
    {{"over-", "head"}, DUET_STATE_OVERHEAD, DUET_STATE_OVERHEAD},
    {{"else-", "where"}, DUET_STATE_ELSEWHERE, DUET_STATE_ELSEWHERE},
    {{"none", "first"}, DUET_STATE_BEFORE, DUET_STATE_BEFORE},
    {{"none", "within"}, DUET_STATE_WITHIN, DUET_STATE_WITHIN},
    {{"none", "after"}, DUET_STATE_AFTER, DUET_STATE_LOST},
};

/* True if the machine has the column: messages need several nodes. */
static bool has_column(const struct duet_machine *machine, size_t column)
{
    return columns[column].end != DUET_STATE_MESSAGE || duet__host_count(machine) > 1;
}

/* Adds the row of the workers of an architecture, or of one worker. */
static void put_worker(struct duet__table *table, const struct duet__why *why, unsigned first,
                       unsigned count, const unsigned *workers)
{
    for (size_t i = 0; i < G_N_ELEMENTS(columns); i++) {
        double seconds = 0;
        if (!has_column(why->trace->run.recording.machine, i))
            continue;
        for (unsigned k = first; k < first + count; k++)
            for (unsigned state = columns[i].first; state <= columns[i].end; state++)
                seconds += why->account->workers_s[workers[k]][state];
        duet__table_print(table, "%.1f", percent(seconds / (count * makespan_of(why))));
    }
}

static void put_workers(FILE *stream, const struct duet__why *why)
{
    const struct duet_machine *machine = why->trace->run.recording.machine;
    g_autofree unsigned *workers = g_new(unsigned, machine->worker_count);
    struct duet__table table;
    duet__table_init(&table, duet__host_count(machine) > 1 ? "trrrrrrrrrrrrr" : "trrrrrrrrrrrr");
    for (unsigned line = 0; line < 2; line++) {
        duet__table_say(&table, line ? "" : "% of the time");
        for (size_t i = 0; i < G_N_ELEMENTS(columns); i++)
            if (has_column(machine, i))
                duet__table_say(&table, columns[i].heads[line]);
    }
    for (unsigned arch = 0, used = 0; arch < machine->arch_count; arch++) {
        const unsigned first = used;
        for (unsigned i = 0; i < machine->worker_count; i++)
            if (machine->workers[i].arch == arch)
                workers[used++] = i;
        if (used == first)
            continue;
        duet__table_print(&table, "%u x %s", used - first, machine->archs[arch].name);
        put_worker(&table, why, first, used - first, workers);
        for (unsigned i = first; i < used && machine->worker_count <= MOST_WORKERS; i++) {
            duet__table_print(&table, "  %s", machine->workers[workers[i]].name);
            put_worker(&table, why, i, 1, workers);
        }
    }
    putc('\n', stream);
    duet__table_put(&table, stream, 0);
}

static void put_memories(FILE *stream, const struct duet__why *why)
{
    const struct duet_machine *machine = why->trace->run.recording.machine;
    struct duet__table table;
    if (machine->node_count < 2)
        return;
    duet__table_init(&table, "trrrrrrr");
    duet__table_print(&table, "memory\tin\tbusy\tagain\tout\tbusy\tmost\tof\t"
                              "\tGB\t%%\tGB\tGB\t%%\tGiB\tGiB");
    for (unsigned i = 0; i < machine->node_count; i++) {
        const struct duet__node_use *use = &why->uses[i];
        if (machine->node_count > MOST_WORKERS && !duet__is_host(machine, i))
            continue;
        duet__table_print(&table, "%s\t%.3f\t%.1f\t%.3f\t%.3f\t%.1f\t%.3f\t%.3f",
                          machine->nodes[i].name, (double)use->in_bytes / 1e9,
                          percent(use->in_s / makespan_of(why)), (double)use->again_bytes / 1e9,
                          (double)use->out_bytes / 1e9, percent(use->out_s / makespan_of(why)),
                          gibibytes(use->peak_bytes), gibibytes(machine->nodes[i].capacity_bytes));
    }
    putc('\n', stream);
    duet__table_put(&table, stream, 0);
}

/* ------------------------------------------------------------------------------------------- */
/* Changes                                                                                      */

static void put_changes(FILE *stream, const struct duet__why *why)
{
    const struct duet__what_if *what_if = why->what_if;
    struct duet__table table;
    if (!what_if)
        return;
    duet__table_init(&table, "trr");
    duet__table_print(&table, "what if\ts\t%%\tnothing changes (simulated on %s)\t%.5g\t",
                      why->simulated, what_if->reference_s);
    for (guint i = 0; i < what_if->changes->len; i++) {
        const struct duet__change *change =
            &g_array_index(what_if->changes, struct duet__change, i);
        duet__table_say(&table, change->what);
        if (isnan(change->makespan_s))
            duet__table_remark(&table, change->why);
        else
            duet__table_print(&table, "%.5g\t%.1f %s", change->makespan_s,
                              100 * fabs(1 - change->makespan_s / what_if->reference_s),
                              change->makespan_s > what_if->reference_s ? "more" : "less");
    }
    putc('\n', stream);
    duet__table_put(&table, stream, 0);
}

void duet__why_write_text(FILE *stream, const struct duet__why *why)
{
    put_head(stream, why);
    put_advice(stream, why);
    put_parts(stream, why);
    put_workers(stream, why);
    put_memories(stream, why);
    put_changes(stream, why);
    if (why->holding)
        put_interval(stream, why->holding);
}

/* ------------------------------------------------------------------------------------------- */
/* JSON for programs                                                                            */

const char *const duet__state_names[] = {
    [DUET_STATE_KERNEL] = "kernel",
    [DUET_STATE_TO_DEVICE_QUEUE] = "to_device_queue",
    [DUET_STATE_TO_DEVICE] = "to_device",
    [DUET_STATE_TO_HOST_QUEUE] = "to_host_queue",
    [DUET_STATE_TO_HOST] = "to_host",
    [DUET_STATE_BETWEEN_QUEUE] = "between_queue",
    [DUET_STATE_MESSAGE_QUEUE] = "message_queue",
    [DUET_STATE_MESSAGE] = "message",
    [DUET_STATE_BETWEEN] = "between",
    [DUET_STATE_ROOM] = "room",
    [DUET_STATE_OVERHEAD] = "overhead",
    [DUET_STATE_ELSEWHERE] = "elsewhere",
    [DUET_STATE_BEFORE] = "before",
    [DUET_STATE_WITHIN] = "within",
    [DUET_STATE_AFTER] = "after",
    [DUET_STATE_LOST] = "lost",
};

static void write_path(struct duet__json_writer *json, const struct duet__why *why)
{
    const struct duet__recording *recording = &why->trace->run.recording;
    duet__json_print(json, "\n path: {hindered_s: %g, parts: [", why->path->hindered_s);
    for (guint i = 0; i < why->path->parts->len; i++) {
        const struct duet__path_part *part =
            &g_array_index(why->path->parts, struct duet__path_part, i);
        g_autofree char *what = part_name(why, part);
        duet__json_print(json, "\n  {state: %s, what: %s, count: %zu, seconds: %g}",
                         duet__state_names[part->state], what, part->count, part->seconds);
    }
    duet__json_print(json, "]\n  steps: [");
    for (guint i = 0; i < why->path->steps->len; i++) {
        const struct duet__step *step = &g_array_index(why->path->steps, struct duet__step, i);
        const struct duet_event *event = &recording->events[step->event];
        const bool task = event->kind == DUET_EVENT_TASK;
        duet__json_print(json, "\n  {state: %s, start_s: %g, end_s: %g",
                         duet__state_names[step->state], step->start_s, step->end_s);
        duet__json_put_integer(json, task ? "task" : "handle", event->id);
        if (task)
            duet__json_print(json, "kernel: %s, worker: %s",
                             duet__recording_kernel(recording, event),
                             recording->machine->workers[event->worker].name);
        else
            duet__json_print(json, "source: %s, destination: %s",
                             recording->machine->nodes[event->source].name,
                             recording->machine->nodes[event->destination].name);
        if (step->state == DUET_STATE_KERNEL)
            duet__json_put_string(json, "after", duet__release_names[step->after]);
        duet__json_end(json, '}');
    }
    duet__json_print(json, "]}");
}

static void write_machine(struct duet__json_writer *json, const struct duet__why *why)
{
    const struct duet_machine *machine = why->trace->run.recording.machine;
    duet__json_print(json, "\n workers: [");
    for (unsigned i = 0; i < machine->worker_count; i++) {
        duet__json_print(json, "\n  {name: %s, architecture: %s", machine->workers[i].name,
                         machine->archs[machine->workers[i].arch].name);
        duet__json_print(json, "seconds: {");
        for (unsigned state = 0; state < DUET_STATES; state++)
            duet__json_put_number(json, duet__state_names[state],
                                  why->account->workers_s[i][state]);
        duet__json_print(json, "}}");
    }
    duet__json_print(json, "]\n memories: [");
    for (unsigned i = 0; i < machine->node_count; i++) {
        const struct duet__node_use *use = &why->uses[i];
        duet__json_print(json,
                         "\n  {name: %s, in_bytes: %" PRIu64 ", in_s: %g, again_bytes: %" PRIu64
                         ", out_bytes: %" PRIu64 ", out_s: %g, peak_bytes: %" PRIu64
                         ", capacity_bytes: %" PRIu64 "}",
                         machine->nodes[i].name, use->in_bytes, use->in_s, use->again_bytes,
                         use->out_bytes, use->out_s, use->peak_bytes,
                         machine->nodes[i].capacity_bytes);
    }
    duet__json_print(json, "]");
}

static void write_changes(struct duet__json_writer *json, const struct duet__why *why)
{
    duet__json_print(json, "\n what_if: {platform: %s, reference_s: %g, guess: %s, changes: [",
                     why->simulated, why->what_if->reference_s, why->what_if->guess);
    for (guint i = 0; i < why->what_if->changes->len; i++) {
        const struct duet__change *change =
            &g_array_index(why->what_if->changes, struct duet__change, i);
        duet__json_print(json,
                         "\n  {what: %s, buys: %d, bound: %d, makespan_s: %g, gain: %g, error: %s}",
                         change->what, change->buys, change->bound, change->makespan_s,
                         1 - change->makespan_s / why->what_if->reference_s, change->why);
    }
    duet__json_print(json, "]}");
}

static void write_interval(struct duet__json_writer *json, const struct duet__holding *holding)
{
    g_autofree char *sentence = say_interval(holding);
    duet__json_print(json,
                     "\n interval: {of: %s, low_s: %g, high_s: %g, half: %g, sentence: %s"
                     "\n  reps: %zu, simulations: %zu, tied: %u, measured_half: %g, held: [",
                     holding->interval, holding->low_s, holding->high_s, holding->half, sentence,
                     holding->reps, holding->simulations, holding->tied, holding->measured_half);
    for (unsigned i = 0; i < holding->count; i++)
        duet__json_print(json, "\n  {name: %s, why: %s, half: %g, share: %g, error: %g}",
                         holding->held[i].name, holding->held[i].why, holding->held[i].half,
                         holding->held[i].share, holding->held[i].error);
    duet__json_print(json, "]}");
}

void duet__why_write_json(FILE *stream, const struct duet__why *why)
{
    struct duet__json_writer json = {.stream = stream};
    const struct duet__trace *trace = why->trace;
    enum cause cause;
    g_autofree char *sentence = sentence_of(why, &cause);
    duet__json_print(&json,
                     "{schema: 1, command: %s, trace: %s\n world: %s, workload: %s, n: %" PRIu64
                     ", tile: %" PRIu64
                     ", policy: %s, platform: %s, estimated: %s\n makespan_s: %g, cause: %s"
                     "\n sentence: %s, barred: %s",
                     why->command, why->path_name, trace->world, trace->workload, trace->n,
                     trace->tile, trace->policy, trace->run.recording.machine->name,
                     trace->estimated, why->account->makespan_s, cause_name(cause), sentence,
                     *trace->run.barred ? trace->run.barred : NULL);
    write_path(&json, why);
    write_machine(&json, why);
    if (why->what_if)
        write_changes(&json, why);
    else
        duet__json_print(&json, "\n what_if: null");
    if (why->holding)
        write_interval(&json, why->holding);
    else
        duet__json_print(&json, "\n interval: null");
    duet__json_end(&json, '}');
    putc('\n', stream);
}
