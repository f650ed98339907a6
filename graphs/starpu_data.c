/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which data the tasks of a record access. StarPU's records name data by an address, at which there
 * may be other data later.
 */
#include <math.h>
#include <string.h>

#include "graphs/formats.h"
#include "graphs/starpu.h"

/* ------------------------------------------------------------------------------------------- */
/* Data                                                                                         */

/* R, W, and S for scratch, X for reduction, C for commuting; nothing: no access. */
static bool read_mode(const char *text, enum duet_mode *mode)
{
    const bool inner = g_str_has_suffix(text, "X-mpi"); /* of StarPU's own sums */
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

/*
 * Who has used an address: those who share their mode with the last one, and those of the mode
 * before. The next one comes after one of the two.
 */
struct history {
    uint32_t data; /* that is there now */
    uint32_t mode;
    GArray *now, *before; /* uint32_t: tasks */
    double end_ms;        /* when all have ended; NaN: not known */
};

/* Whether explicit edges lead from one of `earlier` to the task. */
static bool comes_after(const struct duet__starpu *r, uint32_t task, const GArray *earlier)
{
    g_autoptr(GArray) stack = g_array_new(FALSE, FALSE, sizeof task);
    uint32_t first = UINT32_MAX;

    for (guint i = 0; i < earlier->len; i++)
        first = MIN(first, g_array_index(earlier, uint32_t, i));
    g_array_append_val(stack, task);
    while (stack->len) {
        const uint32_t at = g_array_index(stack, uint32_t, stack->len - 1);
        size_t count;
        const uint32_t *after = duet__graph_after(r->graph, at, &count);

        g_array_set_size(stack, stack->len - 1);
        for (size_t i = 0; i < count; i++) {
            for (guint k = 0; k < earlier->len; k++)
                if (after[i] == g_array_index(earlier, uint32_t, k))
                    return true;
            if (after[i] > first && r->seen[after[i]] != task + 1)
                g_array_append_val(stack, after[i]);
            r->seen[after[i]] = task + 1;
        }
    }
    return false;
}

/*
 * The next task accesses data. Whoever comes after nobody that used the address before, and was
 * submitted when all of them had ended, accesses other data, which has been put there since.
 */
static int settle_access(struct duet__starpu *r, struct history *h, uint32_t task,
                         const struct duet__starpu_record *record,
                         struct duet__graph_access *access)
{
    const uint32_t mode = access->mode;
    const bool shared = mode != DUET_W && mode != DUET_RW && mode == h->mode;
    const bool exact = (mode | h->mode | DUET_RW) == DUET_RW; /* no sums, no taking turns */
    GArray *earlier = shared ? h->before : h->now;

    if (!h->now->len) /* the first one */
        g_array_index(r->graph->data, struct duet__graph_data, h->data).initial = mode != DUET_W;
    else if (g_array_index(h->now, uint32_t, h->now->len - 1) == task) {
        h->mode = mode == h->mode ? mode : DUET_RW;
        access->data = h->data;
        return 0;
    }
    if (earlier->len && !comes_after(r, task, earlier)) {
        if (h->end_ms <= record->submitted_ms) {
            const struct duet__graph_data *old = duet__graph_datum(r->graph, h->data);

            h->data = duet__graph_add_data(r->graph, old->bytes, NULL, mode != DUET_W);
            h->end_ms = 0;
            g_array_set_size(h->now, 0);
            g_array_set_size(h->before, 0);
        } else if (exact && h->end_ms > record->submitted_ms) {
            return duet__starpu_fail(
                r, record,
                "it follows others by data, but not by DependsOn: StarPU does "
                "not record what programs without sequential consistency say by tags",
                "");
        }
    }
    access->data = h->data;
    for (guint i = 0; i < earlier->len; i++)
        r->implied[g_array_index(earlier, uint32_t, i)] = task + 1;
    if (!shared) {
        GArray *last = h->before;

        h->before = h->now;
        h->now = last;
        g_array_set_size(h->now, 0);
        h->mode = mode;
    }
    g_array_append_val(h->now, task);
    h->end_ms = isnan(record->end_ms) ? NAN : fmax(h->end_ms, record->end_ms);
    return 0;
}

/* Which data tasks access, and which explicit edges say more than that. */
int duet__starpu_settle(struct duet__starpu *r)
{
    struct duet__graph *graph = r->graph;
    const guint data = graph->data->len, tasks = graph->tasks->len;
    struct history *histories = g_new0(struct history, data + 1);
    size_t *starts = g_new(size_t, tasks + 1);
    GArray *left = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    int error = 0;

    r->seen = g_new0(uint32_t, tasks + 1);
    r->implied = g_new0(uint32_t, tasks + 1);
    for (guint i = 0; i < data; i++)
        histories[i] = (struct history){i, DUET_RW, g_array_new(FALSE, FALSE, sizeof(uint32_t)),
                                        g_array_new(FALSE, FALSE, sizeof(uint32_t)), 0};
    for (uint32_t i = 0; i < tasks && !error; i++) {
        struct duet__graph_task *task = &g_array_index(graph->tasks, struct duet__graph_task, i);
        const struct duet__starpu_record *record = duet__starpu_record_at(r, task->where);
        size_t accesses = 0, edges = 0;
        struct duet__graph_access *access =
            &g_array_index(graph->accesses, struct duet__graph_access, task->accesses);
        const uint32_t *after = duet__graph_after(graph, i, &edges);

        (void)duet__graph_accesses(graph, i, &accesses);
        for (size_t k = 0; k < accesses && !error; k++) {
            if (access[k].mode != DUET_SCRATCH && access[k].data < data)
                error = settle_access(r, &histories[access[k].data], i, record, &access[k]);
        }
        starts[i] = left->len;
        for (size_t k = 0; k < edges; k++)
            if (r->implied[after[k]] != i + 1)
                g_array_append_val(left, after[k]);
    }
    for (uint32_t i = 0; i < tasks && !error; i++)
        g_array_index(graph->tasks, struct duet__graph_task, i).after = starts[i];
    g_array_unref(error ? left : graph->after);
    graph->after = error ? graph->after : left;
    g_free(starts);
    g_free(r->seen);
    g_free(r->implied);
    for (guint i = 0; i < data; i++) {
        g_array_unref(histories[i].now);
        g_array_unref(histories[i].before);
    }
    g_free(histories);
    return error;
}
