/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads records of StarPU (tasks.rec, which starpu_fxt_tool makes of a trace): tasks, their data,
 * predecessors, and times. The seconds of a task are those of StarPU's performance models, or else
 * of tasks like it in the record.
 */
#include <math.h>
#include <string.h>

#include "workloads/files/formats.h"
#include "workloads/files/starpu.h"
#include "base/json.h"

static const char *const field_names[FIELDS] = {
    "Name",     "Model",      "JobId",      "SubmitOrder", "Priority", "DependsOn",
    "WorkerId", "MemoryNode", "SubmitTime", "StartTime",   "EndTime",  "Footprint",
    "GFlop",    "Handles",    "Modes",      "Sizes",       "MPIRank",  "Control",
};

/* Fails with "f.rec:12: job 5 (POTRF): ...". */
int duet__starpu_fail(const struct duet__starpu *r, const struct duet__starpu_record *record,
                      const char *what, const char *text)
{
    const char *job = record->fields[JOB], *name = record->fields[NAME];

    return duet_fail(r->message, DUET_EPARSE, "%.300s:%u: %s%.40s%s%.60s%s: %s%.300s", r->path,
                     record->line, job ? "job " : "a task without JobId", job ? job : "",
                     name ? " (" : "", name ? name : "", name ? ")" : "", what, text);
}

/* ------------------------------------------------------------------------------------------- */
/* Records                                                                                      */

/* Cuts the text into records, which empty lines separate; their fields point into it. */
static void split(struct duet__starpu *r, char *text)
{
    struct duet__starpu_record record = {.line = 0};
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

static int read_number(const struct duet__starpu *r, const struct duet__starpu_record *record,
                       enum duet__starpu_field field, double low, double high, double *out)
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
    return duet__starpu_fail(r, record, what, text);
}

static int read_numbers(const struct duet__starpu *r, struct duet__starpu_record *record)
{
    const char *footprint = record->fields[FOOTPRINT];
    const struct {
        enum duet__starpu_field field;
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
        return duet__starpu_fail(r, record, "a record of a task has a JobId", "");
    for (size_t i = 0; i < G_N_ELEMENTS(numbers) && !error; i++)
        error = read_number(r, record, numbers[i].field, numbers[i].low, numbers[i].high,
                            numbers[i].out);
    if (!error && record->end_ms < record->start_ms)
        return duet__starpu_fail(r, record, "it ends before it starts", "");
    record->footprint = footprint ? (uint32_t)g_ascii_strtoull(footprint, NULL, 16) : 0;
    return error;
}

static gint by_order(gconstpointer a, gconstpointer b)
{
    const struct duet__starpu_record *x = a, *y = b;

    if (x->order < y->order || x->order > y->order)
        return x->order < y->order ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static void read_after(struct duet__starpu *r, struct duet__starpu_record *record)
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
static bool is_empty(const struct duet__starpu_record *record)
{
    return !record->fields[MODEL] && !record->fields[WORKER] && !record->fields[HANDLES];
}

/* Removes tasks that compute nothing while they have no predecessor, or no successor. */
static void take_out(const struct duet__starpu *r)
{
    enum { MOST_PASSES = 100 };
    const guint count = r->records->len;
    bool *followed = g_new0(bool, count + 1);
    bool changed = true;

    for (int pass = 0; changed && pass < MOST_PASSES; pass++) {
        changed = false;
        memset(followed, 0, count * sizeof *followed);
        for (guint i = 0; i < count; i++) {
            const struct duet__starpu_record *record = duet__starpu_record_at(r, i);

            for (size_t k = 0; k < record->after_count && !record->gone; k++)
                followed[g_array_index(r->after, uint32_t, record->after + k)] = true;
        }
        for (guint i = 0; i < count; i++) {
            struct duet__starpu_record *record = duet__starpu_record_at(r, i);
            bool follows = false;

            if (record->gone || !is_empty(record))
                continue;
            for (size_t k = 0; k < record->after_count; k++)
                follows |=
                    !duet__starpu_record_at(r, g_array_index(r->after, uint32_t, record->after + k))
                         ->gone;
            record->gone = !followed[i] || !follows;
            changed |= record->gone;
        }
    }
    g_free(followed);
}

static int read_records(struct duet__starpu *r)
{
    const char *rank = NULL;
    int error = 0;

    for (guint i = 0; i < r->records->len && !error; i++)
        error = read_numbers(r, duet__starpu_record_at(r, i));
    if (error)
        return error;
    g_array_sort(r->records, by_order);
    for (guint i = 0; i < r->records->len; i++) {
        const struct duet__starpu_record *record = duet__starpu_record_at(r, i);
        const char *own = record->fields[RANK];

        if (!g_hash_table_insert(r->jobs, record->fields[JOB], GUINT_TO_POINTER(i + 1)))
            return duet__starpu_fail(r, record, "its JobId is there twice", "");
        if (own && rank && strcmp(own, rank) != 0)
            return duet__starpu_fail(r, record,
                                     "it is of another MPI rank than the ones before: ", own);
        rank = own ? own : rank;
    }
    for (guint i = 0; i < r->records->len; i++)
        read_after(r, duet__starpu_record_at(r, i));
    take_out(r);
    return 0;
}

/* ------------------------------------------------------------------------------------------- */
/* Times                                                                                        */

static void free_model(void *data)
{
    struct duet__starpu_model *model = data;

    if (model->times)
        g_array_unref(model->times);
    g_free(model->path);
    g_free(model);
}

/* Finds StarPU's model of a kernel: DIR/codelets/45/NAME.HOST; older ones have another number. */
static int find_model(struct duet__starpu *r, char *name, struct duet__starpu_model **out)
{
    enum { MOST_MIB = 64 };
    const struct duet__graph *graph = r->graph;
    g_autofree char *file = g_strconcat(name, ".", graph->models.host, NULL), *text = NULL;
    struct duet__starpu_model *model = g_hash_table_lookup(r->models, name);
    g_autofree char *older = NULL;
    size_t length;
    int error;

    *out = model;
    if (model || !graph->models.directory)
        return 0;
    older = g_build_filename(graph->models.directory, "codelets", "44", file, NULL);
    *out = model = g_new0(struct duet__starpu_model, 1);
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

static int classify(struct duet__starpu *r, struct duet__starpu_record *record)
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
        record->like = g_new0(struct duet__starpu_class, 1);
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
static int restrict_to(struct duet__starpu *r, const struct duet__starpu_record *record,
                       const double *seconds, uint32_t *where)
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
               : duet__starpu_fail(r, record, "too many restrictions", "");
}

/* Sets the seconds of a task in all columns. */
static int set_seconds(struct duet__starpu *r, const struct duet__starpu_record *record,
                       double *seconds)
{
    static const char *const kinds[] = {"cpu", "cuda"};
    const struct duet__starpu_class *like = record->like;
    const struct duet__starpu_model *model = like->model;
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
        return duet__starpu_fail(r, record, "no time of it or of one like it is known", "");
    what =
        g_strdup_printf("%sno time for footprint %08x%s ",
                        r->graph->models.needed ? "" : "it was not measured, nor was one like it; ",
                        record->footprint, model->times ? " is in" : ": there is no");
    return duet__starpu_fail(r, record, what, model->path);
}

/* Adds all tasks; until they are in order, `where` is the index of the task's record. */
static int add_tasks(struct duet__starpu *r)
{
    struct duet__graph *graph = r->graph;
    uint32_t *places = g_new0(uint32_t, r->records->len + 1);
    g_autoptr(GArray) edges = g_array_new(FALSE, FALSE, sizeof(struct duet__graph_edge));
    double begin_ms = INFINITY, end_ms = -INFINITY;
    uint32_t count = 0;
    int error = 0;

    for (guint i = 0; i < r->records->len; i++)
        places[i] = duet__starpu_record_at(r, i)->gone ? UINT32_MAX : count++;
    for (guint i = 0; i < r->records->len && !error; i++) {
        const struct duet__starpu_record *record = duet__starpu_record_at(r, i);
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
        error = duet__starpu_add_accesses(r, record);
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
    struct duet__starpu r = {
        .graph = graph,
        .path = path,
        .message = message,
        .records = g_array_new(FALSE, FALSE, sizeof(struct duet__starpu_record)),
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
        if (!duet__starpu_record_at(&r, i)->gone)
            error = classify(&r, duet__starpu_record_at(&r, i));
    if (r.measured[0] || !graph->archs->len)
        (void)duet__graph_arch(graph, "cpu");
    if (r.measured[1])
        (void)duet__graph_arch(graph, "cuda");
    error = error ? error : add_tasks(&r);
    error = error ? error : duet__starpu_settle(&r);
    for (guint i = 0; i < graph->tasks->len && !error; i++) {
        struct duet__graph_task *task = &g_array_index(graph->tasks, struct duet__graph_task, i);
        const struct duet__starpu_record *record = duet__starpu_record_at(&r, task->where);

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
