/* SPDX-License-Identifier: Apache-2.0 */
/* Makes accounts of runs: kernels, and what lies between them; and means of several accounts. */
#include "trace/account.h"

#include <math.h>

/* A state that something has for so long; the stretches of one array are in order and apart. */
struct stretch {
    double start_s, end_s;
    enum duet__state state;
};

/* Sums and pieces to which the parts of divided gaps are added. */
struct gap_sums {
    double (*workers_s)[DUET_STATES]; /* seconds by worker and state: each piece is added */
    GArray *pieces;                   /* struct duet__gap; NULL: not wanted */
};

/* ------------------------------------------------------------------------------------------- */
/* Checks                                                                                       */

/*
 * Dates of devices and of the host are brought together with less than this between them; kernels
 * that are further outside of the run belong to another one, or have dates of another origin.
 */
static double tolerance_s(double makespan_s)
{
    return 1e-6 + 1e-6 * makespan_s;
}

static int check_task(const struct duet__recording *recording, const struct duet_event *event,
                      struct duet_message *message)
{
    double tolerance = tolerance_s(recording->makespan_s);
    if (event->worker < 0 || (unsigned)event->worker >= recording->machine->worker_count)
        return duet_fail(message, DUET_EINVAL, "task %llu ran on worker %d, which there is not",
                         (unsigned long long)event->id, event->worker);
    /* a task that was never run because of an error is dated when that was found out */
    if (!event->failed &&
        (event->start_s < -tolerance || event->end_s > recording->makespan_s + tolerance))
        return duet_fail(message, DUET_EINVAL,
                         "task %llu ran from %g to %g s in a run from 0 to %g s",
                         (unsigned long long)event->id, event->start_s, event->end_s,
                         recording->makespan_s);
    return 0;
}

static int check(const struct duet__recording *recording, struct duet_message *message)
{
    const struct duet_machine *machine = recording->machine;
    if (!machine || !machine->worker_count)
        return duet_fail(message, DUET_EINVAL, "a run without workers has no account");
    if (!isfinite(recording->makespan_s) || recording->makespan_s < 0)
        return duet_fail(message, DUET_EINVAL, "a makespan of %g s makes no sense",
                         recording->makespan_s);
    for (size_t i = 0; i < recording->event_count; i++) {
        const struct duet_event *event = &recording->events[i];
        bool task = event->kind == DUET_EVENT_TASK;
        int error = 0;
        if (!isfinite(event->ready_s) || !isfinite(event->start_s) || !isfinite(event->end_s) ||
            event->end_s < event->start_s - tolerance_s(recording->makespan_s))
            return duet_fail(message, DUET_EINVAL, "%s %llu is dated ready %g, from %g to %g s",
                             task ? "task" : "a copy of handle", (unsigned long long)event->id,
                             event->ready_s, event->start_s, event->end_s);
        if (task)
            error = check_task(recording, event, message);
        else if (event->source >= machine->node_count || event->destination >= machine->node_count)
            error = duet_fail(message, DUET_EINVAL, "a copy goes from memory %u to %u of %u",
                              event->source, event->destination, machine->node_count);
        if (error)
            return error;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------- */
/* Kernels                                                                                      */

/* A kernel starts or ends. */
struct edge {
    double date_s;
    int worker;
    bool end;
    size_t event;
};

/*
 * Sorts edges by worker, then date. A start comes before an end at the same date: kernels that
 * follow each other closely have no gap, and a kernel without any length starts before it ends.
 */
static int by_date(const void *left, const void *right)
{
    const struct edge *a = left, *b = right;
    if (a->worker != b->worker)
        return a->worker < b->worker ? -1 : 1;
    if (a->date_s != b->date_s)
        return a->date_s < b->date_s ? -1 : 1;
    if (a->end != b->end)
        return a->end ? 1 : -1;
    return (a->event > b->event) - (a->event < b->event);
}

static double within(double date_s, double low_s, double high_s)
{
    return fmin(fmax(date_s, low_s), high_s);
}

/* The edges of all kernels, sorted, within the run. */
static GArray *collect(const struct duet__recording *recording)
{
    GArray *edges = g_array_new(FALSE, FALSE, sizeof(struct edge));
    for (size_t i = 0; i < recording->event_count; i++) {
        const struct duet_event *event = &recording->events[i];
        double start_s = within(event->start_s, 0, recording->makespan_s);
        struct edge ends[] = {
            {.date_s = start_s, .worker = event->worker, .event = i},
            {.date_s = within(event->end_s, start_s, recording->makespan_s),
             .worker = event->worker,
             .end = true,
             .event = i},
        };
        if (event->kind == DUET_EVENT_TASK)
            g_array_append_vals(edges, ends, 2);
    }
    g_array_sort(edges, by_date);
    return edges;
}

/* An account in the making. */
struct sweep {
    const struct duet__recording *recording;
    struct duet__account *account; /* its kernels: a row of all architectures for each kernel's
                                      index; the last row stands for kernels without a name */
    GArray *gaps;                  /* struct duet__gap */
    double *began_s; /* began_s[event]: seconds that an uninterrupted kernel would have had then */
};

static void add_gap(struct sweep *sweep, int worker, double start_s, double end_s,
                    enum duet__state state, size_t next)
{
    const struct duet__gap gap = {(unsigned)worker, state, start_s, end_s, next};
    if (start_s < end_s)
        g_array_append_val(sweep->gaps, gap);
}

/* The worker ran nothing from `start_s` until `next` started. */
static void add_gaps(struct sweep *sweep, double start_s, const struct edge *next, bool first)
{
    double ready_s = within(sweep->recording->events[next->event].ready_s, start_s, next->date_s);
    add_gap(sweep, next->worker, start_s, ready_s, first ? DUET_STATE_BEFORE : DUET_STATE_WITHIN,
            next->event);
    add_gap(sweep, next->worker, ready_s, next->date_s, DUET_STATE_OVERHEAD, next->event);
}

static void add_execution(struct sweep *sweep, const struct edge *edge, double seconds)
{
    const struct duet__recording *recording = sweep->recording;
    const struct duet_machine *machine = recording->machine;
    const struct duet_event *event = &recording->events[edge->event];
    size_t index = MIN(event->kernel, recording->kernel_count);
    unsigned arch = machine->workers[edge->worker].arch;
    struct duet__account_kernel *kernel =
        &sweep->account->kernels[index * machine->arch_count + arch];
    if (!(kernel->count > 0)) {
        g_strlcpy(kernel->name, duet__recording_kernel(recording, event), sizeof(kernel->name));
        g_strlcpy(kernel->arch, machine->archs[arch].name, sizeof(kernel->arch));
    }
    kernel->count += !event->paused;
    kernel->seconds += seconds;
}

/* Returns when a worker's device was lost, or else the run's end. */
static double lost_s(const struct duet__recording *recording, int worker)
{
    for (size_t i = 0; i < recording->mark_count; i++)
        if (recording->marks[i].lost == (unsigned)worker + 1)
            return fmin(recording->marks[i].start_s, recording->makespan_s);
    return recording->makespan_s;
}

/*
 * Adds one worker's kernels and gaps. Kernels that run at once share each moment: `own_s` is what a
 * kernel that ran all the time would have had. Returns the index of the next worker's first edge.
 */
static guint add_worker(struct sweep *sweep, int worker, const GArray *edges, guint at)
{
    double own_s = 0, date_s = 0, gone_s;
    double *kernels_s = &sweep->account->workers_s[worker][DUET_STATE_KERNEL];
    size_t running = 0;
    const guint begin = at;
    for (; at < edges->len; at++) {
        const struct edge *edge = &g_array_index(edges, struct edge, at);
        double length_s = edge->date_s - date_s;
        if (edge->worker != worker)
            break;
        if (running) {
            own_s += length_s / (double)running;
            *kernels_s += length_s;
        } else if (length_s > 0) {
            add_gaps(sweep, date_s, edge, at == begin);
        }
        date_s = edge->date_s;
        if (edge->end) {
            running--;
            add_execution(sweep, edge, own_s - sweep->began_s[edge->event]);
        } else {
            running++;
            sweep->began_s[edge->event] = own_s;
        }
    }
    gone_s = fmax(date_s, lost_s(sweep->recording, worker));
    add_gap(sweep, worker, date_s, gone_s, at == begin ? DUET_STATE_BEFORE : DUET_STATE_AFTER,
            SIZE_MAX);
    add_gap(sweep, worker, gone_s, sweep->recording->makespan_s, DUET_STATE_LOST, SIZE_MAX);
    return at;
}

/* Divides a gap among the stretches in it; what is left keeps its own state. */
static void gap_divide(const struct duet__gap *gap, const GArray *stretches,
                       const struct gap_sums *sums)
{
    const struct stretch *all = (const void *)stretches->data;
    double seconds[DUET_STATES] = {0};
    struct duet__gap piece = *gap;
    guint low = 0, high = stretches->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if (all[middle].end_s <= gap->start_s)
            low = middle + 1;
        else
            high = middle;
    }
    seconds[gap->state] = gap->end_s - gap->start_s;
    for (; low < stretches->len && all[low].start_s < gap->end_s; low++) {
        const double part_s =
            fmin(all[low].end_s, gap->end_s) - fmax(all[low].start_s, gap->start_s);
        seconds[all[low].state] += part_s;
        seconds[gap->state] -= part_s;
    }
    for (unsigned state = 0; state < DUET_STATES; state++) {
        sums->workers_s[gap->worker][state] += seconds[state];
        if (!sums->pieces || !(seconds[state] > 0))
            continue;
        piece.state = state;
        piece.end_s = piece.start_s + seconds[state];
        g_array_append_val(sums->pieces, piece);
        piece.start_s = piece.end_s;
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Copies that a worker waits for while its next task is ready                                  */

/* Copies to and from devices; what leaves one stands for the room that it makes. */
enum duet__state duet__copy_state(const struct duet_machine *machine, const struct duet_event *copy)
{
    if (copy->write_back)
        return DUET_STATE_ROOM;
    if (duet__is_message(machine, copy))
        return DUET_STATE_MESSAGE;
    if (duet__is_host(machine, copy->destination))
        return DUET_STATE_TO_HOST;
    return duet__is_host(machine, copy->source) ? DUET_STATE_TO_DEVICE : DUET_STATE_BETWEEN;
}

/* Adds a stretch before those that there are. */
static void add_stretch(GArray *line, double start_s, double end_s, enum duet__state state)
{
    const struct stretch stretch = {start_s, end_s, state};
    if (start_s < end_s)
        g_array_prepend_val(line, stretch);
}

/*
 * Finds the copies that a task waited for, back from the last one: each of them asked for, then
 * under way. Returns the message that made the task ready, or NULL.
 */
static const struct duet_event *find_copies(const struct duet__recording *recording, size_t task,
                                            GArray *line)
{
    double until_s = recording->events[task].start_s;
    size_t before = task, at = duet__released_by(recording, task);
    g_array_set_size(line, 0);
    for (; at < before && recording->events[at].kind == DUET_EVENT_COPY;
         at = duet__released_by(recording, at)) {
        const struct duet_event *copy = &recording->events[at];
        const enum duet__state state = duet__copy_state(recording->machine, copy);
        double start_s;
        if (state == DUET_STATE_MESSAGE)
            return copy;
        /* a copy still counts from its end until that is noticed, if another one goes on */
        if (!line->len || state == DUET_STATE_ROOM)
            until_s = fmin(until_s, copy->end_s);
        start_s = fmin(fmax(copy->start_s, copy->ready_s), until_s);
        add_stretch(line, start_s, until_s, state);
        add_stretch(line, copy->ready_s, start_s, state == DUET_STATE_ROOM ? state : state - 1);
        until_s = fmin(until_s, copy->ready_s);
        before = at;
    }
    return NULL;
}

/* ------------------------------------------------------------------------------------------- */
/* Tasks that are ready elsewhere                                                               */

/* A date from which on a task more (1), or less (-1), is ready and does not run. */
struct change {
    double date_s;
    int by;
};

static int by_change_date(const void *left, const void *right)
{
    const struct change *a = left, *b = right;
    if (a->date_s != b->date_s)
        return a->date_s < b->date_s ? -1 : 1;
    return (a->by > b->by) - (a->by < b->by);
}

/* The tasks that were ready before they started. */
static GPtrArray *collect_tasks(const struct duet__recording *recording)
{
    GPtrArray *tasks = g_ptr_array_new();
    for (size_t i = 0; i < recording->event_count; i++) {
        struct duet_event *event = &recording->events[i];
        if (event->kind == DUET_EVENT_TASK && event->ready_s < event->start_s)
            g_ptr_array_add(tasks, event);
    }
    return tasks;
}

/* Finds when tasks of one host that an architecture can run are ready and have not started. */
static GArray *find_waiting(const GPtrArray *tasks, const unsigned *hosts, unsigned host,
                            unsigned arch)
{
    g_autoptr(GArray) changes = g_array_new(FALSE, FALSE, sizeof(struct change));
    GArray *all = g_array_new(FALSE, FALSE, sizeof(struct stretch));
    struct stretch stretch = {.state = DUET_STATE_ELSEWHERE};
    int count = 0;
    for (guint i = 0; i < tasks->len; i++) {
        const struct duet_event *event = tasks->pdata[i];
        const struct change ends[] = {{event->ready_s, 1}, {event->start_s, -1}};
        if (hosts[event->source] == host && (!event->where || event->where >> arch & 1))
            g_array_append_vals(changes, ends, 2);
    }
    g_array_sort(changes, by_change_date);
    for (guint i = 0; i < changes->len; i++) {
        const struct change *change = &g_array_index(changes, struct change, i);
        if (!count)
            stretch.start_s = change->date_s;
        count += change->by;
        if (count)
            continue;
        stretch.end_s = change->date_s;
        g_array_append_val(all, stretch);
    }
    return all;
}

/* ------------------------------------------------------------------------------------------- */
/* Messages                                                                                     */

/* Divides the end of a gap, in which the message that made the next task ready was on its way; the
   gap keeps what is before it. */
static void divide_message(const struct duet_event *message, struct duet__gap *gap,
                           const struct gap_sums *sums)
{
    const double asked_s = fmin(fmax(message->ready_s, gap->start_s), gap->end_s),
                 start_s = fmin(fmax(message->start_s, asked_s), gap->end_s),
                 end_s = fmin(fmax(message->end_s, start_s), gap->end_s);
    struct stretch both[] = {{asked_s, start_s, DUET_STATE_MESSAGE_QUEUE},
                             {start_s, end_s, DUET_STATE_MESSAGE}};
    const GArray line = {(char *)both, G_N_ELEMENTS(both)};
    const struct duet__gap late = {gap->worker, DUET_STATE_OVERHEAD, asked_s, gap->end_s,
                                   gap->next};
    gap_divide(&late, &line, sums);
    gap->end_s = asked_s;
}

/* ------------------------------------------------------------------------------------------- */

/*
 * Divides all gaps (struct duet__gap) of a checked recording. Gaps of workers whose next task is
 * ready (OVERHEAD) are divided among the copies that this task waited for, others into time when a
 * task waited elsewhere, and when none did.
 */
static void divide_gaps(const struct duet__recording *recording, const GArray *gaps,
                        const struct gap_sums *sums)
{
    const struct duet_machine *machine = recording->machine;
    g_autoptr(GArray) line = g_array_new(FALSE, FALSE, sizeof(struct stretch));
    const GArray nothing = {NULL, 0};
    const size_t kinds = (size_t)machine->node_count * machine->arch_count;
    GArray **waiting = g_new0(GArray *, kinds); /* waiting tasks, by host and architecture */
    unsigned *hosts = g_new(unsigned, machine->node_count);
    g_autoptr(GPtrArray) tasks = collect_tasks(recording);
    for (unsigned i = 0; i < machine->node_count; i++)
        hosts[i] = duet__host_of(machine, i);
    for (guint i = 0; i < gaps->len; i++) {
        struct duet__gap gap = g_array_index(gaps, struct duet__gap, i);
        const struct duet_worker *worker = &machine->workers[gap.worker];
        const unsigned host = hosts[worker->node];
        GArray **ready = &waiting[(size_t)host * machine->arch_count + worker->arch];
        const struct duet_event *message = NULL;
        g_array_set_size(line, 0);
        if (gap.next < recording->event_count)
            message = find_copies(recording, gap.next, line);
        if (!*ready)
            *ready = find_waiting(tasks, hosts, host, worker->arch);
        if (message && gap.state != DUET_STATE_OVERHEAD)
            divide_message(message, &gap, sums);
        gap_divide(&gap,
                   gap.state == DUET_STATE_OVERHEAD ? line
                   : gap.state == DUET_STATE_LOST   ? &nothing
                                                    : *ready,
                   sums);
    }
    for (size_t i = 0; i < kinds; i++)
        if (waiting[i])
            g_array_unref(waiting[i]);
    g_free(waiting);
    g_free(hosts);
}

/* ------------------------------------------------------------------------------------------- */
/* Whole accounts                                                                               */

static void add_bytes(const struct duet__recording *recording, struct duet__account *out)
{
    for (size_t i = 0; i < recording->event_count; i++) {
        const struct duet_event *event = &recording->events[i];
        if (event->kind != DUET_EVENT_COPY || event->failed)
            continue;
        const bool home = duet__is_host(recording->machine, event->destination);
        out->bytes[!duet__is_host(recording->machine, event->source) ? (home ? 1 : 2)
                   : home                                            ? 3
                                                                     : 0] += (double)event->bytes;
    }
}

double duet__states_sum(const double seconds[DUET_STATES], enum duet__state first,
                        enum duet__state last)
{
    double sum_s = 0;
    for (unsigned i = first; i <= last; i++)
        sum_s += seconds[i];
    return sum_s;
}

/* Many small stretches leave a last bit or two over: the largest state takes them. */
static void complete(struct duet__account *account)
{
    double left_s = account->workers * account->makespan_s;
    unsigned largest = 0;
    for (unsigned i = 0; i < DUET_STATES; i++) {
        left_s -= account->states_s[i];
        if (account->states_s[i] > account->states_s[largest])
            largest = i;
    }
    if (fabs(left_s) <= 1e-9 * account->workers * account->makespan_s)
        account->states_s[largest] += left_s;
}

/* Makes the account of a recording that has been checked, and its gaps' pieces if not NULL. */
static void fill(const struct duet__recording *recording, struct duet__account *out, GArray *pieces)
{
    const struct duet_machine *machine = recording->machine;
    size_t kinds = (recording->kernel_count + 1) * machine->arch_count;
    g_autoptr(GArray) edges = collect(recording);
    g_autoptr(GArray) gaps = g_array_new(FALSE, FALSE, sizeof(struct duet__gap));
    double *began_s = g_new(double, recording->event_count + 1);
    struct sweep sweep = {recording, out, gaps, began_s};
    struct gap_sums sums = {.pieces = pieces};
    guint at = 0;
    out->workers = machine->worker_count;
    out->makespan_s = recording->makespan_s;
    out->kernels = g_new0(struct duet__account_kernel, kinds);
    sums.workers_s = out->workers_s = g_malloc0_n(out->workers, sizeof *out->workers_s);
    for (unsigned worker = 0; worker < machine->worker_count; worker++)
        at = add_worker(&sweep, (int)worker, edges, at);
    for (size_t i = 0; i < kinds; i++)
        if (out->kernels[i].count > 0)
            out->kernels[out->kernel_count++] = out->kernels[i];
    divide_gaps(recording, gaps, &sums);
    for (unsigned worker = 0; worker < out->workers; worker++)
        for (unsigned state = 0; state < DUET_STATES; state++)
            out->states_s[state] += out->workers_s[worker][state];
    add_bytes(recording, out);
    complete(out);
    g_free(began_s);
}

int duet__account_make(const struct duet__recording *recording, struct duet__account *out,
                       struct duet_message *message)
{
    int error = check(recording, message);
    *out = (struct duet__account){0};
    if (!error)
        fill(recording, out, NULL);
    return error;
}

static int by_worker(const void *left, const void *right)
{
    const struct duet__gap *a = left, *b = right;
    if (a->worker != b->worker)
        return a->worker < b->worker ? -1 : 1;
    return (a->start_s > b->start_s) - (a->start_s < b->start_s);
}

GArray *duet__account_gaps(const struct duet__recording *recording)
{
    struct duet__account account = {0};
    struct duet_message why;
    GArray *pieces;
    if (check(recording, &why))
        return NULL;
    pieces = g_array_new(FALSE, FALSE, sizeof(struct duet__gap));
    fill(recording, &account, pieces);
    duet__account_fini(&account);
    g_array_sort(pieces, by_worker);
    return pieces;
}

/* The kernel of that name on that architecture, which is added where there was none. */
static struct duet__account_kernel *kernel_of(struct duet__account *account,
                                              const struct duet__account_kernel *like)
{
    struct duet__account_kernel *added;
    for (size_t i = 0; i < account->kernel_count; i++)
        if (!strcmp(account->kernels[i].name, like->name) &&
            !strcmp(account->kernels[i].arch, like->arch))
            return &account->kernels[i];
    added = &account->kernels[account->kernel_count++];
    g_strlcpy(added->name, like->name, sizeof(added->name));
    g_strlcpy(added->arch, like->arch, sizeof(added->arch));
    return added;
}

static void add_account(struct duet__account *to, const struct duet__account *from, double share)
{
    to->makespan_s += share * from->makespan_s;
    for (unsigned i = 0; i < DUET_STATES; i++)
        to->states_s[i] += share * from->states_s[i];
    for (unsigned i = 0; i < G_N_ELEMENTS(to->bytes); i++)
        to->bytes[i] += share * from->bytes[i];
    for (size_t i = 0; i < from->kernel_count; i++) {
        struct duet__account_kernel *kernel = kernel_of(to, &from->kernels[i]);
        kernel->count += share * from->kernels[i].count;
        kernel->seconds += share * from->kernels[i].seconds;
    }
}

void duet__account_mean(const struct duet__account *accounts, size_t count,
                        struct duet__account *out)
{
    size_t most = 0;
    for (size_t i = 0; i < count; i++)
        most += accounts[i].kernel_count;
    *out = (struct duet__account){.workers = accounts[0].workers,
                                  .kernels = g_new0(struct duet__account_kernel, most + 1)};
    for (size_t i = 0; i < count; i++)
        add_account(out, &accounts[i], 1 / (double)count);
    complete(out);
}

void duet__account_fini(struct duet__account *account)
{
    g_free(account->kernels);
    g_free(account->workers_s);
    *account = (struct duet__account){0};
}
