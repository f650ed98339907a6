/* SPDX-License-Identifier: Apache-2.0 */
/* Makes one run of the runs that nodes have left. */
#include "trace/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "base/texts.h"

/* ------------------------------------------------------------------------------------------- */
/* The machines of several nodes as one                                                         */

/* Position of a node's parts in the machine of all. Zero-initialise for the first node. */
struct place {
    unsigned node, memory, worker, link, socket;
};

/* "n3.gpu0"; of a name that is too long the end, which has its number. */
static void name_of(char out[DUET_NAME_MAX], unsigned node, const char *name)
{
    const int length = snprintf(out, DUET_NAME_MAX, "n%u.", node);
    const size_t room = (size_t)(DUET_NAME_MAX - 1 - length), own = strlen(name);
    (void)g_strlcpy(out + length, own > room ? name + own - room : name, room + 1);
}

static bool same_arch(const struct duet_arch *a, const struct duet_arch *b)
{
    return !strcmp(a->name, b->name) && !strcmp(a->backend, b->backend);
}

/* Returns the number of an architecture in the machine of all; arch_count: it is new. */
static unsigned arch_find(const struct duet_machine *machine, const struct duet_arch *arch)
{
    unsigned number = 0;
    while (number < machine->arch_count && !same_arch(&machine->archs[number], arch))
        number++;
    return number;
}

/* Moves the place from a node, whose machine that is, to the next one. */
static void place_move(struct place *place, const struct duet_machine *machine)
{
    unsigned sockets = 0;
    for (unsigned i = 0; i < machine->worker_count; i++)
        sockets = MAX(sockets, machine->workers[i].socket + 1);
    place->node++;
    place->memory += machine->node_count;
    place->worker += machine->worker_count;
    place->link += machine->link_count + 2; /* two more: to and from the network */
    place->socket += sockets;
}

/* The links are there before the routes. */
static void join_routes(struct duet_machine *out, const struct duet_machine *from,
                        const struct place *place)
{
    for (unsigned i = 0; i < from->node_count; i++)
        for (unsigned k = 0; k < from->node_count; k++) {
            struct duet_route *route =
                &out->routes[(size_t)(place->memory + i) * out->node_count + place->memory + k];
            *route = *duet_machine_route(from, i, k);
            for (unsigned link = 0; link < route->count; link++)
                route->links[link] = (uint16_t)(route->links[link] + place->link);
        }
}

static void join_one(struct duet_machine *out, const struct duet_machine *from,
                     const struct place *place, const struct duet__wires *wires)
{
    struct duet_link *network = &out->links[place->link + from->link_count];
    for (unsigned i = 0; i < from->arch_count; i++) {
        const unsigned number = arch_find(out, &from->archs[i]);
        out->archs[number] = from->archs[i];
        out->arch_count = MAX(out->arch_count, number + 1);
    }
    for (unsigned i = 0; i < from->node_count; i++) {
        out->nodes[place->memory + i] = from->nodes[i];
        name_of(out->nodes[place->memory + i].name, place->node,
                i == DUET_HOST ? "host" : from->nodes[i].name);
    }
    for (unsigned i = 0; i < from->worker_count; i++) {
        struct duet_worker *worker = &out->workers[place->worker + i];
        *worker = from->workers[i];
        name_of(worker->name, place->node, from->workers[i].name);
        worker->arch = arch_find(out, &from->archs[worker->arch]);
        worker->node += place->memory;
        worker->socket += place->socket;
    }
    for (unsigned i = 0; i < from->link_count; i++) {
        out->links[place->link + i] = from->links[i];
        name_of(out->links[place->link + i].name, place->node, from->links[i].name);
    }
    name_of(network[0].name, place->node, "to-network");
    name_of(network[1].name, place->node, "from-network");
    network[0].bandwidth_Bps = network[1].bandwidth_Bps = wires->bandwidth_Bps;
    out->cores += from->cores;
    join_routes(out, from, place);
}

/* Messages go from host to host. */
static void join_hosts(struct duet_machine *out, const struct duet_machine *const *machines,
                       unsigned count, const struct duet__wires *wires)
{
    struct place from = {0};
    for (unsigned i = 0; i < count; i++) {
        struct place to = {0};
        for (unsigned k = 0; k < count; k++) {
            struct duet_route *route =
                &out->routes[(size_t)from.memory * out->node_count + to.memory];
            if (i != k)
                *route =
                    (struct duet_route){.direct = true,
                                        .count = 2,
                                        .links = {(uint16_t)(from.link + machines[i]->link_count),
                                                  (uint16_t)(to.link + machines[k]->link_count +
                                                             1)},
                                        .latency_s = wires->latency_s,
                                        .bandwidth_Bps = wires->bandwidth_Bps};
            place_move(&to, machines[k]);
        }
        place_move(&from, machines[i]);
    }
}

int duet__memories_check(unsigned nodes, unsigned memories, struct duet_message *message)
{
    if (memories <= DUET_MEMORIES_MOST)
        return 0;
    return duet_fail(message, DUET_EINVAL,
                     "%u nodes have %u memories, and records (--trace, --gantt, --html) are of at "
                     "most %d: ask for a table, or for fewer nodes",
                     nodes, memories, DUET_MEMORIES_MOST);
}

int duet__machine_join(struct duet_machine *out, const struct duet_machine *const *machines,
                       unsigned count, const struct duet__wires *wires,
                       struct duet_message *message)
{
    struct place all = {0}, place = {0};
    unsigned archs = 0;
    int error = 0;
    for (unsigned i = 0; i < count; i++) {
        place_move(&all, machines[i]);
        archs += machines[i]->arch_count;
    }
    *out = (struct duet_machine){.name = ""};
    error = duet__memories_check(count, all.memory, message);
    if (!error && all.link > UINT16_MAX)
        error = duet_fail(message, DUET_EINVAL, "%u nodes have %u links, records at most %d", count,
                          all.link, UINT16_MAX);
    if (error)
        return error;
    error = duet_machine_init(out, archs, all.memory, all.worker, all.link);
    if (error)
        return duet_fail(message, error, "%s", duet_strerror(error));
    (void)snprintf(out->name, sizeof out->name, "%.*s_x%u", DUET__NODE_NAME, machines[0]->name,
                   count);
    out->arch_count = 0; /* only different ones are added */
    out->costs = machines[0]->costs;
    out->sharing = machines[0]->sharing;
    for (unsigned i = 0; i < count; i++) {
        join_one(out, machines[i], &place, wires);
        place_move(&place, machines[i]);
    }
    join_hosts(out, machines, count, wires);
    return 0;
}

/* ------------------------------------------------------------------------------------------- */
/* Figures                                                                                      */

static void add_stats(struct duet_stats *to, const struct duet_stats *from)
{
    uint64_t *const sums[] = {&to->tasks,          &to->accesses,        &to->bytes_to_device,
                              &to->bytes_to_host,  &to->bytes_between,   &to->copies_to_device,
                              &to->copies_to_host, &to->copies_between,  &to->evictions,
                              &to->write_backs,    &to->reads_on_device, &to->read_hits,
                              &to->merged,         &to->pushes,          &to->pops,
                              &to->steals,         &to->steal_attempts,  &to->revocations};
    for (size_t i = 0; i < G_N_ELEMENTS(sums); i++) /* same place in `from` */
        *sums[i] += *(const uint64_t *)(const void *)((const char *)from +
                                                      ((const char *)sums[i] - (const char *)to));
    to->flops += from->flops;
    to->busy_s += from->busy_s;
    to->critical_path_s = fmax(to->critical_path_s, from->critical_path_s);
}

/* Merges figures; nodes without a task have no dates. Returns the start by the first clock. */
static double merge_stats(const struct duet__node_run *parts, unsigned count, struct duet__run *run)
{
    struct duet_stats *stats = &run->stats;
    double *idle = g_new(double, count), first_s = INFINITY, last_s = -INFINITY;
    *stats = (struct duet_stats){0};
    run->over = (struct duet__over_nodes){.nodes = count};
    for (unsigned i = 0; i < count; i++) {
        const struct duet__node_run *part = &parts[i];
        add_stats(stats, &part->stats);
        for (unsigned arch = 0; arch < DUET_STATS_ARCHS; arch++)
            stats->busy_by_arch_s[arch] += part->stats.busy_by_arch_s[arch];
        if (part->stats.tasks) {
            first_s = fmin(first_s, part->stats.first_submit_s - part->ahead_s);
            last_s = fmax(last_s, part->stats.last_end_s - part->ahead_s);
        }
        run->over.messages += part->log->messages_out;
        run->over.bytes += part->log->bytes_out;
    }
    if (stats->tasks)
        stats->last_end_s = stats->makespan_s = last_s - first_s;
    for (unsigned i = 0; i < count; i++) {
        const double room_s = stats->makespan_s * parts[i].workers;
        idle[i] = room_s > 0 ? 1 - parts[i].stats.busy_s / room_s : 0;
    }
    duet__sort(idle, count);
    run->over.idle_least = idle[0];
    run->over.idle_median = (idle[(count - 1) / 2] + idle[count / 2]) / 2;
    run->over.idle_most = idle[count - 1];
    g_free(idle);
    return stats->tasks ? first_s : 0;
}

/* ------------------------------------------------------------------------------------------- */
/* Records                                                                                      */

/* Key of a task of all nodes: its turn in the program, its node, its number there. */
struct key {
    uint64_t words[3];
};

struct merge {
    const struct duet__node_run *parts;
    unsigned count;
    struct duet__recording *out;
    const struct duet_machine *machine; /* machine of all nodes */
    GArray *keys;     /* struct key, sorted: a task's number is its position, and 1 */
    GHashTable *data; /* numbers from 1 of data, by node and number there */
    uint64_t data_count;
    GArray *events, *accesses, *marks;
    struct duet__texts kernels, names;
};

static int compare(const uint64_t *a, const uint64_t *b, size_t words)
{
    for (size_t i = 0; i < words; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

static int by_key(const void *left, const void *right)
{
    return compare(((const struct key *)left)->words, ((const struct key *)right)->words, 3);
}

static struct key key_of(const struct merge *merge, unsigned node, uint64_t task)
{
    return (struct key){{duet__log_turn(merge->parts[node].log, task), node, task}};
}

/* Returns the number of a task among all nodes' records; 0: it is not there. */
static uint64_t task_of(const struct merge *merge, unsigned node, uint64_t task)
{
    const struct key key = key_of(merge, node, task);
    guint at;
    return g_array_binary_search(merge->keys, &key, by_key, &at) ? at + 1 : 0;
}

/* Numbers of tasks, each once. */
static void number_tasks(struct merge *merge)
{
    guint left = 0;
    for (unsigned node = 0; node < merge->count; node++) {
        const struct duet__recording *recording = &merge->parts[node].recording;
        for (size_t i = 0; i < recording->event_count; i++)
            if (recording->events[i].kind == DUET_EVENT_TASK) {
                const struct key key = key_of(merge, node, recording->events[i].id);
                g_array_append_val(merge->keys, key);
            }
    }
    g_array_sort(merge->keys, by_key);
    for (guint i = 0; i < merge->keys->len; i++) {
        const struct key key = g_array_index(merge->keys, struct key, i);
        if (!left || by_key(&key, &g_array_index(merge->keys, struct key, left - 1)))
            g_array_index(merge->keys, struct key, left++) = key;
    }
    g_array_set_size(merge->keys, left);
}

static gpointer datum_key(const struct merge *merge, unsigned node, uint64_t handle)
{
    return GSIZE_TO_POINTER(handle * merge->count + node);
}

/* Numbers data: the program's first, by tag, then each node's own, as it is met. */
static void number_data(struct merge *merge)
{
    for (unsigned node = 0; node < merge->count; node++) {
        const struct duet__node_log *log = merge->parts[node].log;
        for (size_t i = 0; i < log->datum_count; i++) {
            g_hash_table_insert(merge->data, datum_key(merge, node, log->data[i].handle),
                                GSIZE_TO_POINTER(log->data[i].tag + 1));
            merge->data_count = MAX(merge->data_count, log->data[i].tag + 1);
        }
        for (size_t i = 0; i < log->message_count; i++)
            merge->data_count = MAX(merge->data_count, log->messages[i].tag + 1);
    }
}

static uint64_t datum_of(struct merge *merge, unsigned node, uint64_t handle)
{
    gpointer key = datum_key(merge, node, handle), number = g_hash_table_lookup(merge->data, key);
    if (!handle)
        return 0;
    if (!number) {
        number = GSIZE_TO_POINTER(++merge->data_count);
        g_hash_table_insert(merge->data, key, number);
    }
    return GPOINTER_TO_SIZE(number);
}

static uint32_t name_number(struct merge *merge, unsigned node, uint32_t number)
{
    const char *name = duet__recording_name(&merge->parts[node].recording, number);
    return name ? duet__texts_number(&merge->names, name) : 0;
}

static void add_event(struct merge *merge, unsigned node, const struct place *place,
                      const struct duet_event *event, guint first)
{
    const struct duet__recording *recording = &merge->parts[node].recording;
    const struct duet_machine *machine = recording->machine, *all = merge->machine;
    struct duet_event own = *event;
    if (own.release == DUET_RELEASE_OUTSIDE)
        own.released_by = (uint32_t)datum_of(merge, node, own.released_by);
    else if (own.released_by)
        own.released_by += first;
    own.source = (uint16_t)(own.source + place->memory);
    own.destination = (uint16_t)(own.destination + place->memory);
    if (own.worker >= 0)
        own.worker += (int)place->worker;
    if (own.kind == DUET_EVENT_COPY) {
        own.id = datum_of(merge, node, own.id);
    } else {
        own.id = task_of(merge, node, own.id);
        own.kernel =
            duet__texts_number(&merge->kernels, duet__recording_kernel(recording, event)) - 1;
        own.name = name_number(merge, node, own.name);
        own.where = 0;
        for (unsigned arch = 0; arch < machine->arch_count; arch++)
            if (event->where >> arch & 1)
                own.where |= UINT64_C(1) << arch_find(all, &machine->archs[arch]);
    }
    g_array_append_val(merge->events, own);
}

/* The application marks the same on all nodes: the first one's are shown; and devices lost. */
static void add_mark(struct merge *merge, unsigned node, const struct place *place,
                     const struct duet_trace_mark *mark)
{
    struct duet_trace_mark own = *mark;
    if (node && !mark->lost)
        return;
    own.name =
        mark->lost
            ? duet__texts_number(&merge->names,
                                 merge->machine->workers[place->worker + mark->lost - 1].name)
            : name_number(merge, node, mark->name);
    if (mark->lost)
        own.lost += place->worker;
    g_array_append_val(merge->marks, own);
}

static void add_access(struct merge *merge, unsigned node, const struct duet_trace_access *access)
{
    struct duet_trace_access own = *access;
    own.task = task_of(merge, node, access->task);
    own.handle = datum_of(merge, node, access->handle);
    own.whole = datum_of(merge, node, access->whole);
    own.after = access->after ? task_of(merge, node, access->after) : 0;
    if (own.task && (own.after || !access->after))
        g_array_append_val(merge->accesses, own);
}

/* Sorts both ends of a message beside each other, the sending one first. */
static int by_message(const void *left, const void *right)
{
    const struct duet__logged_message *a = left, *b = right;
    const uint64_t of_a[] = {a->turn, a->tag, a->from, a->to, a->arrives},
                   of_b[] = {b->turn, b->tag, b->from, b->to, b->arrives};
    return compare(of_a, of_b, G_N_ELEMENTS(of_a));
}

/* Adds a message by its two ends (twice the known one), waiting from when its data is there. */
static void add_message(struct merge *merge, const unsigned *hosts,
                        const struct duet__logged_message *first,
                        const struct duet__logged_message *last)
{
    const double start_s = fmax(first->start_s, first->ready_s);
    const struct duet_event event = {.kind = DUET_EVENT_COPY,
                                     .worker = DUET_NO_WORKER,
                                     .id = first->tag + 1,
                                     .submit_s = first->ready_s,
                                     .ready_s = first->ready_s,
                                     .start_s = start_s,
                                     .end_s = fmax(last->end_s, start_s),
                                     .source = (uint16_t)hosts[first->from],
                                     .destination = (uint16_t)hosts[first->to],
                                     .failed = first->failed || last->failed,
                                     .bytes = first->bytes};
    g_array_append_val(merge->events, event);
}

static void add_messages(struct merge *merge, const unsigned *hosts)
{
    g_autoptr(GArray) ends = g_array_new(FALSE, FALSE, sizeof(struct duet__logged_message));
    const struct duet__logged_message *all;
    for (unsigned node = 0; node < merge->count; node++)
        for (size_t i = 0; i < merge->parts[node].log->message_count; i++) {
            struct duet__logged_message end = merge->parts[node].log->messages[i];
            end.ready_s -= merge->parts[node].ahead_s;
            end.start_s -= merge->parts[node].ahead_s;
            end.end_s -= merge->parts[node].ahead_s;
            if (end.from < merge->count && end.to < merge->count)
                g_array_append_val(ends, end);
        }
    g_array_sort(ends, by_message);
    all = (const void *)ends->data;
    for (guint i = 0; i < ends->len; i++) {
        const bool both = i + 1 < ends->len && !all[i].arrives && all[i + 1].arrives &&
                          all[i].turn == all[i + 1].turn && all[i].tag == all[i + 1].tag &&
                          all[i].from == all[i + 1].from && all[i].to == all[i + 1].to;
        add_message(merge, hosts, &all[i], &all[i + both]);
        i += both;
    }
}

static int by_start(const void *left, const void *right, void *events)
{
    const struct duet_event *a = (const struct duet_event *)events + *(const uint32_t *)left,
                            *b = (const struct duet_event *)events + *(const uint32_t *)right;
    if (a->start_s != b->start_s)
        return a->start_s < b->start_s ? -1 : 1;
    if (a->worker != b->worker)
        return a->worker < b->worker ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

/* Sorts events by start; `released_by` follows the events to their new places. */
static void sort_events(struct duet_event *events, size_t count)
{
    uint32_t *order = g_new(uint32_t, count), *now = g_new(uint32_t, count + 1);
    struct duet_event *before = g_memdup2(events, count * sizeof *events);
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    g_qsort_with_data(order, (gint)count, sizeof *order, by_start, before);
    now[0] = 0;
    for (size_t i = 0; i < count; i++)
        now[order[i] + 1] = (uint32_t)(i + 1);
    for (size_t i = 0; i < count; i++) {
        events[i] = before[order[i]];
        if (events[i].release != DUET_RELEASE_OUTSIDE)
            events[i].released_by = now[events[i].released_by];
    }
    g_free(before);
    g_free(now);
    g_free(order);
}

static void add_part(struct merge *merge, unsigned node, const struct place *place)
{
    const struct duet__recording *recording = &merge->parts[node].recording;
    const guint first = merge->events->len;
    for (size_t i = 0; i < recording->event_count; i++)
        add_event(merge, node, place, &recording->events[i], first);
    for (size_t i = 0; i < recording->access_count; i++)
        add_access(merge, node, &recording->accesses[i]);
    for (size_t i = 0; i < recording->mark_count; i++)
        add_mark(merge, node, place, &recording->marks[i]);
}

/* Returns an array's elements, of malloc; the array is freed. */
static void *give(GArray *array, size_t *count)
{
    *count = array->len;
    return g_array_free(array, FALSE);
}

static void merge_records(struct merge *merge)
{
    struct duet__recording *out = merge->out;
    unsigned *hosts = g_new(unsigned, merge->count);
    struct place place = {0};
    merge->keys = g_array_new(FALSE, FALSE, sizeof(struct key));
    merge->events = g_array_new(FALSE, FALSE, sizeof(struct duet_event));
    merge->accesses = g_array_new(FALSE, FALSE, sizeof(struct duet_trace_access));
    merge->marks = g_array_new(FALSE, FALSE, sizeof(struct duet_trace_mark));
    merge->kernels = duet__texts_new();
    merge->names = duet__texts_new();
    merge->data = g_hash_table_new(NULL, NULL);
    number_tasks(merge);
    number_data(merge);
    for (unsigned node = 0; node < merge->count; node++) {
        hosts[node] = place.memory;
        add_part(merge, node, &place);
        place_move(&place, merge->parts[node].recording.machine);
    }
    add_messages(merge, hosts);
    g_array_sort(merge->accesses, duet__by_task);
    out->kernels = duet__texts_give(&merge->kernels, &out->kernel_count);
    out->names = duet__texts_give(&merge->names, &out->name_count);
    out->events = give(merge->events, &out->event_count);
    out->accesses = give(merge->accesses, &out->access_count);
    out->marks = give(merge->marks, &out->mark_count);
    sort_events(out->events, out->event_count);
    duet__releases_guess(out, true);
    g_array_unref(merge->keys);
    g_hash_table_unref(merge->data);
    g_free(hosts);
}

int duet__node_runs_merge(const struct duet__node_run *parts, unsigned count,
                          const struct duet__wires *wires, struct duet__run *run,
                          struct duet_message *message)
{
    struct merge merge = {.parts = parts, .count = count, .out = &run->recording};
    const double first_s = merge_stats(parts, count, run);
    struct duet__node_classes *classes = g_new(struct duet__node_classes, count);
    const struct duet_machine **machines;
    int error = DUET_ENOMEM;
    for (unsigned i = 0; i < count; i++)
        classes[i] = parts[i].classes;
    run->bounds = duet__bounds_of_nodes(classes, count, run->stats.critical_path_s);
    g_free(classes);
    if (!parts[0].recording.machine)
        return 0;
    machines = g_new(const struct duet_machine *, count);
    for (unsigned i = 0; i < count; i++)
        machines[i] = parts[i].recording.machine;
    run->recording = (struct duet__recording){.machine = calloc(1, sizeof(struct duet_machine)),
                                              .makespan_s = run->stats.makespan_s};
    merge.machine = run->recording.machine;
    if (run->recording.machine)
        error = duet__machine_join(run->recording.machine, machines, count, wires, message);
    g_free(machines);
    if (error)
        duet__recording_fini(&run->recording);
    else
        merge_records(&merge);
    duet__recording_shift(&run->recording, -first_s);
    return error;
}
