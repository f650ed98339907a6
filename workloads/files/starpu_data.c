/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the data that the tasks of a record access. StarPU's records name data by address, which
 * other data may have later. */
#include <math.h>
#include <string.h>

#include "workloads/files/formats.h"
#include "workloads/files/starpu.h"

/* ------------------------------------------------------------------------------------------- */
/* Data                                                                                         */

/* Reads a mode: R, W, and S for scratch, X for reduction, C for commuting; none: no access. */
static bool read_mode(const char *text, enum duet_mode *mode)
{
    const bool inner = g_str_has_suffix(text, "X-mpi"); /* an access of StarPU's own sums */
    const size_t length = strlen(text) - (inner ? strlen("X-mpi") : 0);
    const bool r = memchr(text, 'R', length), w = memchr(text, 'W', length);

    *mode = memchr(text, 'S', length)        ? DUET_SCRATCH
            : memchr(text, 'X', length)      ? DUET_REDUCE
            : w && memchr(text, 'C', length) ? DUET_COMMUTE
            : inner || (r && w)              ? DUET_RW
            : w                              ? DUET_W
                                             : DUET_R;
    return *text && strspn(text, "RWSXC") >= length;
}

int duet__starpu_add_accesses(struct duet__starpu *r, const struct duet__starpu_record *record)
{
    static const enum duet__starpu_field fields[] = {HANDLES, MODES, SIZES};
    char **texts[G_N_ELEMENTS(fields)];
    guint count = 0;
    int error = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++) {
        const char *text = record->fields[fields[i]];

        texts[i] = g_strsplit(text ? text : "", " ", -1);
        count = i ? count : g_strv_length(texts[i]);
        if (!error && count != g_strv_length(texts[i]))
            error = duet__starpu_fail(r, record, "not as many Modes or Sizes as Handles", "");
    }
    for (guint i = 0; i < count && !error; i++) {
        const uint64_t bytes = g_ascii_strtoull(texts[2][i], NULL, 10);
        char *key = g_strconcat(texts[0][i], " ", texts[2][i], NULL);
        guint data = GPOINTER_TO_UINT(g_hash_table_lookup(r->data, key));
        enum duet_mode mode = DUET_R;

        if (!*texts[0][i] || strspn(texts[0][i], "0123456789abcdefABCDEFx") < strlen(texts[0][i]))
            error = duet__starpu_fail(r, record, "Handles: no address: ", texts[0][i]);
        else if (!g_ascii_isdigit(*texts[2][i]) || bytes > DUET__GRAPH_BYTES_MAX)
            error = duet__starpu_fail(r, record, "Sizes: no number of bytes: ", texts[2][i]);
        else if (*texts[1][i] && !read_mode(texts[1][i], &mode))
            error = duet__starpu_fail(r, record, "Modes: unknown: ", texts[1][i]);
        if (!data && !error)
            data = duet__graph_add_data(r->graph, bytes, NULL, true) + 1;
        if (!error)
            g_hash_table_replace(r->data, g_steal_pointer(&key), GUINT_TO_POINTER(data));
        if (!error && *texts[1][i])
            duet__graph_add_access(r->graph, data - 1, mode);
        g_free(key);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++)
        g_strfreev(texts[i]);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Order                                                                                        */

/* Users of an address: tasks from `now` on share a mode, those from `before` on had the mode
 * before. The next user comes after one of the two groups. */
struct history {
    uint32_t data; /* index of its present data */
    uint32_t mode;
    uint32_t before, now, last; /* tasks; NOBODY: there is none */
    double end_ms;              /* end of all its users; NaN: not known */
    /* task `asks` shares the mode, and comes after tasks `from` to `to` - 1, as edges also say */
    uint32_t asks, from, to;
    bool shares, found;
};
#define NOBODY UINT32_MAX

struct settling {
    struct duet__starpu *r;
    struct history *histories;
    GArray *owners;   /* uint32_t, by data: its history */
    GArray *left;     /* uint32_t: explicit edges that data does not imply */
    GArray *queue;    /* uint32_t: tasks whose edges are searched */
    uint32_t *seen;   /* by task: 1 + the task for which it was last queued */
    uint32_t first;   /* first task that may have used the same data */
    unsigned missing; /* number of its data whose last users are not found */
    bool all;         /* the search was not cut short */
    int error;
};

/* Makes the current task, which accesses data, come after its last users. */
static void ask_order(struct settling *s, const struct duet__graph_access *access, uint32_t task)
{
    struct history *h = &s->histories[access->data];

    if (access->mode == DUET_SCRATCH || h->now == NOBODY || h->asks == task)
        return;
    h->asks = task;
    h->shares = access->mode != DUET_W && access->mode != DUET_RW && access->mode == h->mode;
    h->from = h->shares ? h->before : h->now;
    h->to = h->shares ? h->now : task;
    h->found = h->from == h->to;
    s->missing += !h->found;
    s->first = h->found ? s->first : MIN(s->first, h->from);
}

/* Checks if `earlier` has used data of the task, which then, or if both are of one group, comes
 * after the users before. Returns true if data implies that it comes after `earlier`. */
static bool find_use(struct settling *s, uint32_t earlier, uint32_t task)
{
    size_t count;
    const struct duet__graph_access *access = duet__graph_accesses(s->r->graph, earlier, &count);
    bool implied = false;

    for (size_t i = 0; i < count; i++) {
        struct history *h = &s->histories[g_array_index(s->owners, uint32_t, access[i].data)];

        if (h->asks != task || h->data != access[i].data || earlier < h->from ||
            access[i].mode == DUET_SCRATCH)
            continue;
        implied |= earlier < h->to;
        s->missing -= !h->found;
        h->found = true;
    }
    return implied;
}

/* Searches explicit edges for the last users of the task's data. Distant ones are not searched, as
 * time would grow with the square of tasks. */
static void search(struct settling *s, uint32_t task)
{
    enum { MOST = 1000 };
    size_t looks = 0;

    s->all = false;
    g_array_set_size(s->queue, 0);
    g_array_append_val(s->queue, task);
    for (guint i = 0; i < s->queue->len && (!i || s->missing); i++) {
        const uint32_t at = g_array_index(s->queue, uint32_t, i);
        size_t count;
        const uint32_t *after = duet__graph_after(s->r->graph, at, &count);

        for (size_t k = 0; k < count && (!i || s->missing); k++) {
            const bool implied = find_use(s, after[k], task);

            if (!i && !implied)
                g_array_append_val(s->left, after[k]);
            if (i && ++looks == MOST)
                return;
            if (after[k] > s->first && s->seen[after[k]] != task + 1)
                g_array_append_val(s->queue, after[k]);
            s->seen[after[k]] = task + 1;
        }
    }
    s->all = true;
}

/* Settles an access of the next task. A task that comes after no user of the address, and was
 * submitted when all of them had ended, uses other data that has the address since. */
static void settle_access(struct settling *s, uint32_t task, struct duet__graph_access *access)
{
    struct duet__graph *graph = s->r->graph;
    const struct duet__starpu_record *record =
        duet__starpu_record_at(s->r, duet__graph_task(graph, task)->where);
    struct history *h = &s->histories[access->data];
    const uint32_t owner = access->data, mode = access->mode;
    const bool exact = (mode | h->mode | DUET_RW) == DUET_RW; /* no reductions or commuting
                                                                 accesses */

    if (mode == DUET_SCRATCH)
        return;
    access->data = h->data;
    if (h->last == task) {
        h->mode = mode == h->mode ? mode : DUET_RW;
        return;
    }
    if (h->now == NOBODY) {
        g_array_index(graph->data, struct duet__graph_data, h->data).initial = mode != DUET_W;
    } else if (!h->found && h->end_ms <= record->submitted_ms) {
        const uint64_t bytes = duet__graph_datum(graph, h->data)->bytes;

        access->data = h->data = duet__graph_add_data(graph, bytes, NULL, mode != DUET_W);
        g_array_append_val(s->owners, owner);
        h->now = NOBODY;
        h->end_ms = 0;
    } else if (!h->found && exact && s->all && h->end_ms > record->submitted_ms) {
        s->error = duet__starpu_fail(s->r, record,
                                     "it follows others by data, but not by DependsOn: StarPU does "
                                     "not record what programs without sequential consistency say "
                                     "by tags",
                                     "");
    }
    if (!h->shares || h->now == NOBODY) {
        h->before = h->now == NOBODY ? task : h->now;
        h->now = task;
        h->mode = mode;
    }
    h->last = task;
    h->end_ms = isnan(record->end_ms) ? NAN : fmax(h->end_ms, record->end_ms);
}

/* Finds the data of accesses, and the explicit edges that are not implied by it. */
int duet__starpu_settle(struct duet__starpu *r)
{
    struct duet__graph *graph = r->graph;
    const uint32_t tasks = graph->tasks->len;
    g_autoptr(GArray) owners = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_autoptr(GArray) queue = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    GArray *left = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    struct settling s = {.r = r,
                         .histories = g_new0(struct history, graph->data->len + 1),
                         .owners = owners,
                         .left = left,
                         .queue = queue,
                         .seen = g_new0(uint32_t, tasks + 1)};
    size_t *starts = g_new(size_t, tasks + 1);

    for (uint32_t i = 0; i < graph->data->len; i++) {
        s.histories[i] = (struct history){i, DUET_RW, NOBODY, NOBODY, NOBODY, .asks = NOBODY};
        g_array_append_val(owners, i);
    }
    for (uint32_t i = 0; i < tasks && !s.error; i++) {
        size_t count;
        const struct duet__graph_access *access = duet__graph_accesses(graph, i, &count);

        s.first = NOBODY;
        s.missing = 0;
        for (size_t k = 0; k < count; k++)
            ask_order(&s, &access[k], i);
        starts[i] = left->len;
        search(&s, i);
        for (size_t k = duet__graph_task(graph, i)->accesses; count && !s.error; k++, count--)
            settle_access(&s, i, &g_array_index(graph->accesses, struct duet__graph_access, k));
    }
    for (uint32_t i = 0; i < tasks && !s.error; i++)
        g_array_index(graph->tasks, struct duet__graph_task, i).after = starts[i];
    g_array_unref(graph->after);
    graph->after = left;
    g_free(s.histories);
    g_free(s.seen);
    g_free(starts);
    return s.error;
}
