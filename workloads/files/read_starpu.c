/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads records of StarPU (tasks.rec, which starpu_fxt_tool makes of a trace): tasks, their data,
 * predecessors, and times. The seconds of a task are those of StarPU's performance models, or else
 * of tasks like it in the record.
 */
#include <math.h>
#include <string.h>
#include <stdbool.h>

#include "base/json.h"
#include "workloads/files/graph.h"

/* Fields of a record, in the order of their names below. */
enum record_field {
    NAME,
    MODEL,
    JOB,
    ORDER,
    PRIORITY,
    DEPENDS,
    WORKER,
    NODE,
    SUBMITTED,
    START,
    END,
    FOOTPRINT,
    GFLOP,
    HANDLES,
    MODES,
    SIZES,
    RANK,
    CONTROL,
    FIELDS,
};

/* A performance model, and the file that it was looked for in. */
struct perf_model {
    GArray *times; /* struct duet__starpu_time; NULL: there is no file */
    char *path;
};

/* Tasks with the same times: those of one kernel and footprint. */
struct record_class {
    struct perf_model *model; /* NULL: there is none */
    double sums[2];           /* measured seconds, on CPUs and on devices */
    unsigned counts[2];
};

struct record {
    char *fields[FIELDS]; /* NULL: it is absent */
    unsigned line;
    bool gone; /* the task only orders others, which have its edges */
    double order, submitted_ms, start_ms, end_ms; /* NaN: not known */
    double priority, gflop, node;
    uint32_t footprint;
    size_t after, after_count; /* predecessors, in `after` of struct reading */
    struct record_class *like; /* class of the task */
};

struct reading {
    struct duet__graph *graph;
    const char *path;
    struct duet_message *message;
    GArray *records;     /* struct record, by order of submission */
    GArray *after;       /* uint32_t */
    GHashTable *jobs;    /* JobId -> index + 1 */
    GHashTable *data;    /* address and size -> index + 1 */
    GHashTable *classes; /* text -> struct record_class */
    GHashTable *models;  /* name -> struct perf_model */
    bool measured[2];    /* times on CPUs, on devices are known */
};

static struct record *record_at(const struct reading *r, guint i)
{
    return &g_array_index(r->records, struct record, i);
}

static const char *const field_names[FIELDS] = {
    "Name",     "Model",      "JobId",      "SubmitOrder", "Priority", "DependsOn",
    "WorkerId", "MemoryNode", "SubmitTime", "StartTime",   "EndTime",  "Footprint",
    "GFlop",    "Handles",    "Modes",      "Sizes",       "MPIRank",  "Control",
};

/* Fails with a message about a record, "f.rec:12: job 5 (POTRF): ...". Returns DUET_EPARSE. */
static int fail_at(const struct reading *r, const struct record *record, const char *what,
                   const char *text)
{
    const char *job = record->fields[JOB], *name = record->fields[NAME];
    return duet_fail(r->message, DUET_EPARSE, "%.300s:%u: %s%.40s%s%.60s%s: %s%.300s", r->path,
                     record->line, job ? "job " : "a task without JobId", job ? job : "",
                     name ? " (" : "", name ? name : "", name ? ")" : "", what, text);
}

/* ------------------------------------------------------------------------------------------- */
/* Records                                                                                      */

/* Cuts the text into records, which empty lines separate; their fields point into it. */
static void split(struct reading *r, char *text)
{
    struct record record = {.line = 0};
    unsigned line = 1;
    for (char *at = text, *next; at; at = next, line++) {
        char *value;
        next = strchr(at, '\n');
        if (next)
            *next++ = 0;
        at[strcspn(at, "\r")] = 0;
        value = strchr(at, ':');
        if (value && *at != '#' && *at != '%') {
            record.line = record.line ? record.line : line;
            *value++ = 0;
            value += *value == ' ';
            for (int i = 0; i < FIELDS; i++)
                if (strcmp(at, field_names[i]) == 0)
                    record.fields[i] = value;
        }
        if ((*at && next) || !record.line)
            continue;
        /* a record that data will not be used soon is no task */
        if (!record.fields[CONTROL])
            g_array_append_val(r->records, record);
        memset(&record, 0, sizeof record);
    }
}

static int read_number(const struct reading *r, const struct record *record,
                       enum record_field field, double low, double high, double *out)
{
    const char *text = record->fields[field];
    g_autofree char *what = NULL;
    char *end;
    double value;
    if (!text)
        return 0;
    value = g_ascii_strtod(text, &end);
    if (end > text && !end[strspn(end, " ")] && value >= low && value <= high) {
        *out = value;
        return 0;
    }
    what = g_strdup_printf("%s: not a number from %g to %g: ", field_names[field], low, high);
    return fail_at(r, record, what, text);
}

static int read_numbers(const struct reading *r, struct record *record)
{
    const char *footprint = record->fields[FOOTPRINT];
    const struct {
        enum record_field field;
        double low, high, *out;
    } numbers[] = {
        {ORDER, 0, 1e15, &record->order},
        {PRIORITY, INT32_MIN, INT32_MAX, &record->priority},
        {SUBMITTED, 0, 1e15, &record->submitted_ms},
        {START, 0, 1e15, &record->start_ms},
        {END, 0, 1e15, &record->end_ms},
        {GFLOP, 0, 1e-9 * DUET__GRAPH_WORK_MAX, &record->gflop},
        {NODE, 0, 1e6, &record->node},
    };
    int error = 0;
    record->order = INFINITY; /* tasks that were not submitted come where others need them */
    record->submitted_ms = record->start_ms = record->end_ms = NAN;
    if (!record->fields[JOB])
        return fail_at(r, record, "a record of a task has a JobId", "");
    for (size_t i = 0; i < G_N_ELEMENTS(numbers) && !error; i++)
        error = read_number(r, record, numbers[i].field, numbers[i].low, numbers[i].high,
                            numbers[i].out);
    if (!error && record->end_ms < record->start_ms)
        return fail_at(r, record, "it ends before it starts", "");
    record->footprint = footprint ? (uint32_t)g_ascii_strtoull(footprint, NULL, 16) : 0;
    return error;
}

static gint by_order(gconstpointer a, gconstpointer b)
{
    const struct record *x = a, *y = b;
    if (x->order < y->order || x->order > y->order)
        return x->order < y->order ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static void read_after(struct reading *r, struct record *record)
{
    g_auto(GStrv) jobs =
        g_strsplit(record->fields[DEPENDS] ? record->fields[DEPENDS] : "", " ", -1);
    record->after = r->after->len;
    for (char **job = jobs; *job; job++) {
        const uint32_t index = GPOINTER_TO_UINT(g_hash_table_lookup(r->jobs, *job));
        const uint32_t before = index - 1;
        if (index) /* numbers without a record are of StarPU's own tasks */
            g_array_append_val(r->after, before);
    }
    record->after_count = r->after->len - record->after;
}

/* True if a task computes nothing: StarPU's own ones, and those without a codelet. */
static bool is_empty(const struct record *record)
{
    return !record->fields[MODEL] && !record->fields[WORKER] && !record->fields[HANDLES];
}

/* Removes tasks that compute nothing while they have no predecessor, or no successor. */
static void take_out(const struct reading *r)
{
    enum { MOST_PASSES = 100 };
    const guint count = r->records->len;
    bool *followed = g_new0(bool, count + 1);
    bool changed = true;
    for (int pass = 0; changed && pass < MOST_PASSES; pass++) {
        changed = false;
        memset(followed, 0, count * sizeof *followed);
        for (guint i = 0; i < count; i++) {
            const struct record *record = record_at(r, i);
            for (size_t k = 0; k < record->after_count && !record->gone; k++)
                followed[g_array_index(r->after, uint32_t, record->after + k)] = true;
        }
        for (guint i = 0; i < count; i++) {
            struct record *record = record_at(r, i);
            bool follows = false;
            if (record->gone || !is_empty(record))
                continue;
            for (size_t k = 0; k < record->after_count; k++)
                follows |=
                    !record_at(r, g_array_index(r->after, uint32_t, record->after + k))->gone;
            record->gone = !followed[i] || !follows;
            changed |= record->gone;
        }
    }
    g_free(followed);
}

static int read_records(struct reading *r)
{
    const char *rank = NULL;
    int error = 0;
    for (guint i = 0; i < r->records->len && !error; i++)
        error = read_numbers(r, record_at(r, i));
    if (error)
        return error;
    g_array_sort(r->records, by_order);
    for (guint i = 0; i < r->records->len; i++) {
        const struct record *record = record_at(r, i);
        const char *own = record->fields[RANK];
        if (!g_hash_table_insert(r->jobs, record->fields[JOB], GUINT_TO_POINTER(i + 1)))
            return fail_at(r, record, "its JobId is there twice", "");
        if (own && rank && strcmp(own, rank) != 0)
            return fail_at(r, record, "it is of another MPI rank than the ones before: ", own);
        rank = own ? own : rank;
    }
    for (guint i = 0; i < r->records->len; i++)
        read_after(r, record_at(r, i));
    take_out(r);
    return 0;
}

/* ------------------------------------------------------------------------------------------- */
/* Times                                                                                        */

static void free_model(void *data)
{
    struct perf_model *model = data;
    if (model->times)
        g_array_unref(model->times);
    g_free(model->path);
    g_free(model);
}

/* Finds StarPU's model of a kernel: DIR/codelets/45/NAME.HOST; older ones have another number. */
static int find_model(struct reading *r, char *name, struct perf_model **out)
{
    enum { MOST_MIB = 64 };
    const struct duet__graph *graph = r->graph;
    g_autofree char *file = g_strconcat(name, ".", graph->models.host, NULL), *text = NULL;
    struct perf_model *model = g_hash_table_lookup(r->models, name);
    g_autofree char *older = NULL;
    size_t length;
    int error;
    *out = model;
    if (model || !graph->models.directory)
        return 0;
    older = g_build_filename(graph->models.directory, "codelets", "44", file, NULL);
    *out = model = g_new0(struct perf_model, 1);
    g_hash_table_insert(r->models, name, model);
    model->path = g_build_filename(graph->models.directory, "codelets", "45", file, NULL);
    if (!g_file_test(model->path, G_FILE_TEST_EXISTS)) {
        if (!g_file_test(older, G_FILE_TEST_EXISTS))
            return 0;
        g_free(model->path);
        model->path = g_steal_pointer(&older);
    }
    model->times = g_array_new(FALSE, FALSE, sizeof(struct duet__starpu_time));
    error = duet__read_all(model->path, MOST_MIB, &text, &length, r->message);
    error = error ? error : duet__starpu_times_parse(text, model->path, model->times, r->message);
    for (guint i = 0; i < model->times->len && !error; i++) {
        const char *device = g_array_index(model->times, struct duet__starpu_time, i).device;
        g_autofree char *kind = g_strndup(device, strcspn(device, "0123456789"));
        (void)duet__graph_arch(r->graph, kind);
        if (r->graph->archs->len < DUET__GRAPH_ARCHS_MAX)
            (void)duet__graph_arch(r->graph, device);
    }
    return error;
}

static int classify(struct reading *r, struct record *record)
{
    char *model = record->fields[MODEL], *name = record->fields[NAME];
    const double seconds = 1e-3 * (record->end_ms - record->start_ms);
    const bool device = record->node > 0;
    g_autofree char *key = g_strdup_printf("%x %s", record->footprint,
                                           model  ? model
                                           : name ? name
                                                  : "");
    int error = 0;
    record->like = g_hash_table_lookup(r->classes, key);
    if (!record->like) {
        record->like = g_new0(struct record_class, 1);
        g_hash_table_insert(r->classes, g_steal_pointer(&key), record->like);
        error = model ? find_model(r, model, &record->like->model) : 0;
    }
    if (!isnan(seconds)) {
        record->like->sums[device] += seconds;
        record->like->counts[device]++;
        r->measured[device] = true;
    }
    return error;
}

/* Restricts a task to architectures with known times, where it has an implementation. */
static int restrict_to(struct reading *r, const struct record *record, const double *seconds,
                       uint32_t *where)
{
    g_autoptr(GString) devices = g_string_new(NULL);
    bool cpu = false;
    for (guint i = 0; i < r->graph->archs->len; i++) {
        const char *name = r->graph->archs->pdata[i];
        if (isnan(seconds[i]) || g_ascii_isdigit(name[strlen(name) - 1]))
            continue;
        if (strcmp(name, "cpu") == 0)
            cpu = true;
        else
            g_string_append_printf(devices, "%s%s", devices->len ? "," : "", name);
    }
    *where = 0;
    if (cpu == (devices->len > 0))
        return 0;
    return duet__graph_where(r->graph, cpu ? "cpu" : devices->str, where)
               ? 0
               : fail_at(r, record, "too many restrictions", "");
}

/* Sets the seconds of a task in all columns. */
static int set_seconds(struct reading *r, const struct record *record, double *seconds)
{
    static const char *const kinds[] = {"cpu", "cuda"};
    const struct record_class *like = record->like;
    const struct perf_model *model = like->model;
    const GPtrArray *archs = r->graph->archs;
    const double own = 1e-3 * (record->end_ms - record->start_ms);
    g_autofree char *what = NULL;
    bool known = false;
    for (guint i = 0; i < archs->len; i++) {
        if (model && model->times)
            seconds[i] = duet__starpu_seconds(model->times, archs->pdata[i], record->footprint);
        else if (is_empty(record))
            seconds[i] = 0;
        known |= !isnan(seconds[i]);
    }
    for (int kind = 0; kind < 2 && !known && !(model && r->graph->models.needed); kind++)
        for (guint i = 0; i < archs->len && like->counts[kind]; i++)
            if (strcmp(archs->pdata[i], kinds[kind]) == 0)
                seconds[i] = (record->node > 0) == kind && !isnan(own)
                                 ? own
                                 : like->sums[kind] / like->counts[kind];
    for (guint i = 0; i < archs->len; i++)
        known |= !isnan(seconds[i]);
    if (known)
        return 0;
    if (!model)
        return fail_at(r, record, "no time of it or of one like it is known", "");
    what =
        g_strdup_printf("%sno time for footprint %08x%s ",
                        r->graph->models.needed ? "" : "it was not measured, nor was one like it; ",
                        record->footprint, model->times ? " is in" : ": there is no");
    return fail_at(r, record, what, model->path);
}

/* ------------------------------------------------------------------------------------------- */
/* Finds the data that the tasks of a record access. StarPU's records name data by address, which
 * other data may have later. */

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

/* Adds the accesses of the last added task. */
static int add_accesses(struct reading *r, const struct record *record)
{
    static const enum record_field fields[] = {HANDLES, MODES, SIZES};
    char **texts[G_N_ELEMENTS(fields)];
    guint count = 0;
    int error = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++) {
        const char *text = record->fields[fields[i]];
        texts[i] = g_strsplit(text ? text : "", " ", -1);
        count = i ? count : g_strv_length(texts[i]);
        if (!error && count != g_strv_length(texts[i]))
            error = fail_at(r, record, "not as many Modes or Sizes as Handles", "");
    }
    for (guint i = 0; i < count && !error; i++) {
        const uint64_t bytes = g_ascii_strtoull(texts[2][i], NULL, 10);
        char *key = g_strconcat(texts[0][i], " ", texts[2][i], NULL);
        guint data = GPOINTER_TO_UINT(g_hash_table_lookup(r->data, key));
        enum duet_mode mode = DUET_R;
        if (!*texts[0][i] || strspn(texts[0][i], "0123456789abcdefABCDEFx") < strlen(texts[0][i]))
            error = fail_at(r, record, "Handles: no address: ", texts[0][i]);
        else if (!g_ascii_isdigit(*texts[2][i]) || bytes > DUET__GRAPH_BYTES_MAX)
            error = fail_at(r, record, "Sizes: no number of bytes: ", texts[2][i]);
        else if (*texts[1][i] && !read_mode(texts[1][i], &mode))
            error = fail_at(r, record, "Modes: unknown: ", texts[1][i]);
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
    struct reading *r;
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
    const struct record *record = record_at(s->r, duet__graph_task(graph, task)->where);
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
        s->error = fail_at(s->r, record,
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

/* Finds the data of all accesses, and the explicit edges that are not implied by it. Tasks are in
 * order; their `where` is the index of their record. */
static int settle(struct reading *r)
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

/* ------------------------------------------------------------------------------------------- */
/* Tasks                                                                                        */

/* Adds all tasks; until they are in order, `where` is the index of the task's record. */
static int add_tasks(struct reading *r)
{
    struct duet__graph *graph = r->graph;
    uint32_t *places = g_new0(uint32_t, r->records->len + 1);
    g_autoptr(GArray) edges = g_array_new(FALSE, FALSE, sizeof(struct duet__graph_edge));
    double begin_ms = INFINITY, end_ms = -INFINITY;
    uint32_t count = 0;
    int error = 0;
    for (guint i = 0; i < r->records->len; i++)
        places[i] = record_at(r, i)->gone ? UINT32_MAX : count++;
    for (guint i = 0; i < r->records->len && !error; i++) {
        const struct record *record = record_at(r, i);
        const char *name = record->fields[NAME], *model = record->fields[MODEL];
        const char *kernel = model ? model : name ? name : "";
        struct duet__graph_task *task;
        if (record->gone)
            continue;
        task = duet__graph_add(graph, duet__graph_kernel(graph, kernel));
        task->work = 1e9 * record->gflop;
        task->priority = (int32_t)record->priority;
        task->name = g_strcmp0(name, kernel) == 0 ? NULL : duet__graph_text(graph, name);
        task->where = i;
        task->job = (uint32_t)g_ascii_strtoull(record->fields[JOB], NULL, 10);
        for (size_t k = 0; k < record->after_count; k++) {
            const uint32_t from = places[g_array_index(r->after, uint32_t, record->after + k)];
            const struct duet__graph_edge edge = {.from = from, .to = places[i]};
            if (from != UINT32_MAX)
                g_array_append_val(edges, edge);
        }
        begin_ms = fmin(begin_ms, fmin(record->submitted_ms, record->start_ms));
        end_ms = fmax(end_ms, record->end_ms);
        error = add_accesses(r, record);
    }
    if (!error)
        error = duet__graph_order(graph, edges, r->path, r->message);
    g_free(places);
    graph->makespan_s = end_ms > begin_ms ? 1e-3 * (end_ms - begin_ms) : 0;
    return error;
}

bool duet__graph_is_starpu(const char *text, size_t length, const char *path)
{
    enum { HEAD = 4096 };
    const char *job = g_strstr_len(text, (gssize)MIN(length, HEAD), "JobId: ");
    return job && (job == text || job[-1] == '\n');
}

int duet__graph_read_starpu(struct duet__graph *graph, const char *text, size_t length,
                            const char *path, struct duet_message *message)
{
    g_autofree char *own = g_strndup(text, length);
    struct reading r = {
        .graph = graph,
        .path = path,
        .message = message,
        .records = g_array_new(FALSE, FALSE, sizeof(struct record)),
        .after = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
        .jobs = g_hash_table_new(g_str_hash, g_str_equal),
        .data = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
        .classes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
        .models = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, free_model),
    };
    int error;
    split(&r, own);
    error = read_records(&r);
    for (guint i = 0; i < r.records->len && !error; i++)
        if (!record_at(&r, i)->gone)
            error = classify(&r, record_at(&r, i));
    if (r.measured[0] || !graph->archs->len)
        (void)duet__graph_arch(graph, "cpu");
    if (r.measured[1])
        (void)duet__graph_arch(graph, "cuda");
    error = error ? error : add_tasks(&r);
    error = error ? error : settle(&r);
    for (guint i = 0; i < graph->tasks->len && !error; i++) {
        struct duet__graph_task *task = &g_array_index(graph->tasks, struct duet__graph_task, i);
        const struct record *record = record_at(&r, task->where);
        error = set_seconds(&r, record, duet__graph_seconds(graph, i));
        error =
            error ? error : restrict_to(&r, record, duet__graph_seconds(graph, i), &task->where);
    }
    graph->origin = g_strdup("a record of StarPU");
    g_array_unref(r.records);
    g_array_unref(r.after);
    g_hash_table_unref(r.jobs);
    g_hash_table_unref(r.data);
    g_hash_table_unref(r.classes);
    g_hash_table_unref(r.models);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/*
 * Reads StarPU's performance models of versions 44 and 45, lines of numbers between comments:
 * combinations of devices (kind, number, cores), for each its implementations, for each a
 * regression, which is skipped, and a table by footprint. Times are in microseconds.
 */

enum { NUMBERS = 8, ENTRY = 7 };

struct cursor {
    const char *at, *path;
    unsigned line, version;
    double numbers[NUMBERS]; /* of the current line */
    unsigned count;
    uint32_t footprint; /* the first word as a hexadecimal number */
    struct duet_message *message;
};

static int fail_at_line(const struct cursor *c, const char *what)
{
    return duet_fail(c->message, DUET_EPARSE,
                     "%.300s:%u: no performance model of StarPU's: there should be %s", c->path,
                     c->line, what);
}

/* Reads the next line that is not empty or a comment: at least `least` numbers. */
static int next(struct cursor *c, unsigned least, const char *what)
{
    size_t length = 0;
    while (!length && *c->at) {
        const char *word = c->at += strspn(c->at, " \t\r");
        length = strcspn(word, "#\n");
        c->line++;
        c->footprint = (uint32_t)g_ascii_strtoull(word, NULL, 16);
        for (c->count = 0; c->count < NUMBERS && word < c->at + length; c->count++) {
            char *end;
            c->numbers[c->count] = g_ascii_strtod(word, &end);
            /* a footprint is a hexadecimal number */
            if (end == word && !(c->count == 0 && least == ENTRY))
                return fail_at_line(c, what);
            word += c->count == 0 ? strcspn(word, " \t\r\n#") : (size_t)(end - word);
            word += strspn(word, " \t\r");
        }
        c->at += strcspn(c->at, "\n");
        c->at += *c->at == '\n';
    }
    return c->count < least || !length ? fail_at_line(c, what) : 0;
}

/* Reads a count on a line of its own. */
static int count(struct cursor *c, unsigned most, const char *what, unsigned *out)
{
    int error = next(c, 1, what);
    if (!error && !(c->numbers[0] >= 0 && c->numbers[0] <= most))
        return fail_at_line(c, what);
    *out = error ? 0 : (unsigned)c->numbers[0];
    return error;
}

static int read_table(struct cursor *c, GArray *times, const char *device)
{
    unsigned entries = 0;
    int error = count(c, 1 << 24, "a number of entries", &entries);
    error = error ? error : next(c, 8, "nine numbers of a regression");
    error = error ? error : next(c, 3, "three numbers of a regression");
    if (!error && c->version >= 45)
        error = next(c, 1, "the number of coefficients");
    for (unsigned i = 0; i < entries && !error; i++) {
        struct duet__starpu_time time;
        unsigned mean;
        error = next(c, ENTRY, "footprint, size, flops, mean, deviation, sums, samples");
        if (error)
            return error;
        mean = c->count > ENTRY ? 3 : 2; /* the flops may be missing */
        time = (struct duet__starpu_time){.footprint = c->footprint,
                                          .mean_s = 1e-6 * c->numbers[mean],
                                          .samples = c->numbers[mean + 4]};
        g_strlcpy(time.device, device, sizeof time.device);
        if (*device && time.mean_s > 0 && time.mean_s < 1e9 && time.samples >= 1)
            g_array_append_val(times, time);
    }
    return error;
}

/* Reads a combination. Those of several devices or cores are skipped: duet has no such tasks. */
static int read_combination(struct cursor *c, GArray *times)
{
    static const char *const kinds[] = {"cpu", "cuda", "opencl"}; /* by StarPU's number */
    unsigned devices = 0, kind = 0, number = 0, cores = 0, implementations = 0;
    char device[16] = "";
    int error = count(c, 1024, "a number of devices", &devices);
    for (unsigned i = 0; i < devices && !error; i++) {
        error = count(c, 1000, "the kind of a device", &kind);
        error = error ? error : count(c, 9999, "the number of a device", &number);
        error = error ? error : count(c, 1 << 20, "a number of cores", &cores);
    }
    if (devices == 1 && cores <= 1 && kind < G_N_ELEMENTS(kinds))
        g_snprintf(device, sizeof device, kind ? "%s%u" : "%s", kinds[kind], number);
    error = error ? error : count(c, 1024, "a number of implementations", &implementations);
    for (unsigned i = 0; i < implementations && !error; i++)
        error = read_table(c, times, device);
    return error;
}

static gint by_footprint(gconstpointer a, gconstpointer b)
{
    const struct duet__starpu_time *x = a, *y = b;
    return (x->footprint > y->footprint) - (x->footprint < y->footprint);
}

/* Sorts implementations on a device, the fastest first. */
static gint by_time(gconstpointer a, gconstpointer b)
{
    const struct duet__starpu_time *x = a, *y = b;
    const int order = by_footprint(a, b), devices = strcmp(x->device, y->device);
    return order ? order : devices ? devices : (x->mean_s > y->mean_s) - (x->mean_s < y->mean_s);
}

int duet__starpu_times_parse(const char *text, const char *path, GArray *times,
                             struct duet_message *message)
{
    struct cursor c = {.at = text, .path = path, .message = message};
    unsigned combinations = 0;
    int error = count(&c, 1000, "a version", &c.version);
    if (!error && c.version != 44 && c.version != 45)
        error = fail_at_line(&c, "version 44 or 45");
    error = error ? error : count(&c, 4096, "a number of combinations", &combinations);
    for (unsigned i = 0; i < combinations && !error; i++)
        error = read_combination(&c, times);
    g_array_sort(times, by_time);
    return error;
}

double duet__starpu_seconds(const GArray *times, const char *device, uint32_t footprint)
{
    const struct duet__starpu_time wanted = {.footprint = footprint}, *all, *last = &wanted;
    const size_t length = strlen(device);
    double sum = 0, samples = 0;
    guint i = 0;
    all = (const struct duet__starpu_time *)(const void *)times->data;
    if (!g_array_binary_search((GArray *)(uintptr_t)times, &wanted, by_footprint, &i))
        return NAN;
    while (i > 0 && all[i - 1].footprint == footprint)
        i--;
    for (; i < times->len && all[i].footprint == footprint; last = &all[i++]) {
        /* "cuda" matches each of its devices, "cuda1" does not match "cuda12" */
        if (strcmp(all[i].device, last->device) == 0 ||
            strncmp(all[i].device, device, length) != 0 ||
            (all[i].device[length] && g_ascii_isdigit(device[length - 1])))
            continue;
        sum += all[i].mean_s * all[i].samples;
        samples += all[i].samples;
    }
    return samples > 0 ? sum / samples : NAN;
}
