/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submits a task graph. Handles of data and references to tasks are made when the first task needs
 * them and given up after the last one, so that a run holds beside the graph a few words a task and
 * the data of the tasks in the window.
 */
#include <math.h>
#include <string.h>

#include <duet/nodes.h>
#include <duet/trace.h>

#include "workloads/files/graph.h"

/* Seconds of tasks that take no time, and of making and adding contributions of reductions. */
static const double least_s = 1e-9;

/* State of a build for the functions that are called until the tasks have ended. */
struct state {
    const struct duet__graph *graph;
    const struct duet_machine *machine;
    unsigned columns;
    int *column;   /* by architecture of the machine: its column of seconds, below 0: none */
    double *speed; /* by kernel: for each architecture of the machine, then for each column */
};

/* Arguments of a task. */
struct arguments {
    const struct state *state;
    size_t task;
};

/* ------------------------------------------------------------------------------------------- */
/* Times                                                                                        */

static const char *column_name(const struct state *state, unsigned column)
{
    return state->graph->archs->pdata[column];
}

static bool is_word(const char *word, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(word, name, length) == 0;
}

/* True if `word`, such as "gpu", "cuda" or "c2050", names an architecture of the machine. */
static bool names_arch(const char *word, size_t length, const struct duet_arch *arch)
{
    return is_word(word, length, arch->name) || is_word(word, length, arch->backend) ||
           (is_word(word, length, "gpu") && strcmp(arch->backend, "cpu") != 0);
}

/* True if `word` names a column of the graph: a GPU's has the name of a backend. */
static bool names_column(const char *word, size_t length, const char *name)
{
    return is_word(word, length, name) ||
           (is_word(word, length, "gpu") &&
            (g_str_has_prefix(name, "cuda") || g_str_has_prefix(name, "opencl")));
}

/* Reads a speed: "[KERNEL@]ARCH=X". */
static int read_speed(const struct state *state, const char *text, struct duet_message *message)
{
    const struct duet__graph *graph = state->graph;
    const unsigned archs = state->machine->arch_count, width = archs + state->columns;
    const char *equals = strrchr(text, '='),
               *at = equals ? g_strrstr_len(text, equals - text, "@") : NULL;
    const char *word = at ? at + 1 : text;
    g_autofree char *kernel = at ? g_strndup(text, (gsize)(at - text)) : NULL;
    gpointer index = NULL;
    char *end = NULL;
    double speed = equals ? g_ascii_strtod(equals + 1, &end) : 0;
    bool met = false;
    if (!equals || equals == word || end == equals + 1 || *end || !(speed >= 1e-9 && speed <= 1e9))
        return duet_fail(message, DUET_EINVAL,
                         "--speed takes [KERNEL@]ARCH=X, X from 1e-9 to 1e9, not '%s'", text);
    if (kernel && !g_hash_table_lookup_extended(graph->kernel_index, kernel, NULL, &index))
        return duet_fail(message, DUET_EINVAL,
                         "--speed %s: there is no kernel '%s' in %s (duet list FILE shows them)",
                         text, kernel, graph->name);
    for (unsigned i = 0; i < width; i++) {
        const size_t length = (size_t)(equals - word);
        if (!(i < archs ? names_arch(word, length, &state->machine->archs[i])
                        : names_column(word, length, column_name(state, i - archs))))
            continue;
        met = true;
        for (guint k = 0; k < graph->kernels->len; k++)
            if (!kernel || k == GPOINTER_TO_UINT(index))
                state->speed[k * width + i] = speed;
    }
    if (!met && strncmp(word, "gpu=", 4) != 0 && strncmp(word, "cpu=", 4) != 0)
        return duet_fail(
            message, DUET_EINVAL,
            "--speed %s: %s has no such architecture (duet list kernels --platform shows them)",
            text, state->machine->name);
    return 0;
}

/* Returns the seconds of a task on an architecture of the machine; 0: no column has them. *column
   gets the graph's column that they are from. */
static double seconds_on(const struct state *state, size_t task, unsigned arch, unsigned *column)
{
    const unsigned archs = state->machine->arch_count, width = archs + state->columns;
    const double *seconds = duet__graph_seconds(state->graph, task);
    const double *speed =
        state->speed + (size_t)duet__graph_task(state->graph, task)->kernel * width;
    *column = (unsigned)state->column[arch];
    if (state->column[arch] >= 0 && !isnan(seconds[*column]))
        return fmax(seconds[*column], least_s);
    for (*column = 0; *column < state->columns && isnan(seconds[*column]);)
        ++*column;
    if (*column == state->columns)
        return 0;
    return fmax(seconds[*column] * speed[archs + *column] / speed[arch], least_s);
}

static double kernel_cost(const void *args, const char *arch)
{
    const struct arguments *a = args;
    const struct duet_machine *machine = a->state->machine;
    unsigned i = 0, column;
    while (i < machine->arch_count && strcmp(machine->archs[i].name, arch) != 0)
        i++;
    return i < machine->arch_count ? seconds_on(a->state, a->task, i, &column) : 0;
}

static double kernel_flops(const void *args)
{
    const struct arguments *a = args;
    return duet__graph_task(a->state->graph, a->task)->work;
}

/* Time of kernels of reductions and joins, which have no arguments. */
static double instant(const void *args, const char *arch)
{
    return least_s;
}

static void free_state(void *data)
{
    struct state *state = data;
    if (!state)
        return;
    g_free(state->column);
    g_free(state->speed);
    g_free(state);
}

/* Makes the state that depends on machine and speeds. *out is for free_state, also after an error.
 */
static int make_state(void **out, const struct duet__problem *problem,
                      const struct duet_machine *machine, struct duet_message *message)
{
    struct state *state = *out = g_new0(struct state, 1);
    const size_t kernels = problem->graph->kernels->len;
    int error = 0;
    state->graph = problem->graph;
    state->machine = machine;
    state->columns = state->graph->archs->len;
    state->column = g_new(int, machine->arch_count);
    state->speed = g_new(double, kernels *(machine->arch_count + state->columns) + 1);
    for (size_t i = 0; i < kernels * (machine->arch_count + state->columns); i++)
        state->speed[i] = 1;
    for (unsigned i = 0; i < machine->arch_count; i++) {
        state->column[i] = -1;
        for (unsigned k = state->columns; k-- > 0;)
            if (strcmp(column_name(state, k), machine->archs[i].backend) == 0)
                state->column[i] = (int)k;
        for (unsigned k = state->columns; k-- > 0;)
            if (strcmp(column_name(state, k), machine->archs[i].name) == 0)
                state->column[i] = (int)k;
    }
    for (char *const *speed = problem->speeds; speed && *speed && !error; speed++)
        error = read_speed(state, *speed, message);
    return error;
}

/* True if tasks with this list of places may run on an architecture. */
static bool may_run(const char *where, const struct duet_arch *arch)
{
    g_auto(GStrv) words = g_strsplit(where, ",", -1);
    bool may = !*where;
    for (char **word = words; *word; word++)
        may |= names_arch(*word, strlen(*word), arch);
    return may;
}

double *duet__graph_sources(const struct duet__problem *problem, const struct duet_machine *machine)
{
    const struct duet__graph *graph = problem->graph;
    const size_t columns = graph->archs->len, kernels = graph->kernels->len;
    double *sums = g_new0(double, kernels * machine->arch_count * columns + 1);
    void *state;
    unsigned column;
    (void)make_state(&state, problem, machine, NULL); /* runs report errors of the speeds */
    for (size_t i = 0; i < duet__graph_count(graph); i++)
        for (unsigned a = 0; a < machine->arch_count; a++) {
            const struct duet__graph_task *task = duet__graph_task(graph, i);
            const double s = seconds_on(state, i, a, &column);
            if (s > 0 && may_run(graph->wheres->pdata[task->where], &machine->archs[a]))
                sums[(a * kernels + task->kernel) * columns + column] += s;
        }
    free_state(state);
    return sums;
}

/* ------------------------------------------------------------------------------------------- */
/* Submission                                                                                   */

/* State of data: a task has made it; its last use was a read, after which it is worth nothing; its
 * reduction is registered. */
enum { MADE = 1, READ = 2, REDUCED = 4 };

struct build {
    struct duet_runtime *runtime;
    const struct duet__graph *graph;
    struct state *state;
    struct duet_codelet **codelets;      /* by kernel */
    struct duet_codelet *init, *combine; /* of reductions; NULL: none yet */
    struct duet_codelet *join;           /* of tasks that only join edges; NULL: none yet */
    uint64_t *wheres;
    struct datum {
        struct duet_handle *handle; /* NULL: not made yet */
        uint32_t uses;              /* accesses to come */
        uint8_t marks;
    } * data;
    struct duet_ref **refs;   /* by task; NULL: no successor is left */
    uint32_t *followers;      /* by task: explicit edges not submitted yet */
    GArray *accesses, *after; /* struct duet_access, struct duet_ref *: of the current task */
};

static void free_build(struct build *b)
{
    for (size_t i = 0; b->refs && i < duet__graph_count(b->graph); i++)
        duet_ref_free(b->refs[i]);
    g_free(b->codelets);
    g_free(b->wheres);
    g_free(b->data);
    g_free(b->refs);
    g_free(b->followers);
    g_array_unref(b->accesses);
    g_array_unref(b->after);
}

static int make_codelet(struct build *b, const char *name,
                        double (*cost)(const void *, const char *), double (*flops)(const void *),
                        struct duet_codelet **out)
{
    static const struct duet_implementation implementations[] = {
        {.arch = "cpu", .run = NULL},
        {.arch = "cuda", .run = NULL},
        {.arch = "opencl", .run = NULL},
    };
    const struct duet_codelet_desc desc = {
        .name = name,
        .implementations = implementations,
        .implementation_count = G_N_ELEMENTS(implementations),
        .flops = flops,
        .cost = cost,
    };
    *out = duet_codelet_find(b->runtime, name); /* registered by an earlier run */
    return *out ? 0 : duet_register_codelet(b->runtime, &desc, out);
}

/* Finds the architectures that tasks of this restriction may run on. */
static int find_where(struct build *b, guint index, struct duet_message *message)
{
    const char *where = b->graph->wheres->pdata[index];
    g_auto(GStrv) words = g_strsplit(where, ",", -1);
    for (char **word = words; *word; word++)
        b->wheres[index] |=
            duet_where(b->runtime, strcmp(*word, "gpu") == 0 ? "cuda,opencl" : *word);
    if (*where && !b->wheres[index])
        return duet_fail(
            message, DUET_EINVAL,
            "%s has tasks that run on '%s' only, which this machine (%s) does not have",
            b->graph->name, where, b->state->machine->name);
    return 0;
}

static int prepare(struct build *b, struct duet_message *message)
{
    const struct duet__graph *graph = b->graph;
    int error = 0;
    b->codelets = g_new0(struct duet_codelet *, graph->kernels->len + 1);
    b->wheres = g_new0(uint64_t, graph->wheres->len);
    b->data = g_new0(struct datum, graph->data->len + 1);
    b->refs = g_new0(struct duet_ref *, graph->tasks->len + 1);
    b->followers = g_new0(uint32_t, graph->tasks->len + 1);
    for (guint i = 0; i < graph->accesses->len; i++)
        b->data[g_array_index(graph->accesses, struct duet__graph_access, i).data].uses++;
    for (guint i = 0; i < graph->after->len; i++)
        b->followers[g_array_index(graph->after, uint32_t, i)]++;
    for (guint i = 0; i < graph->wheres->len && !error; i++)
        error = find_where(b, i, message);
    for (guint i = 0; i < graph->kernels->len && !error; i++)
        error = make_codelet(b, duet__graph_kernel_name(graph, i), kernel_cost, kernel_flops,
                             &b->codelets[i]);
    return error;
}

/* Makes a kernel without computation, unless it exists, under a name that no kernel of the graph
 * has. */
static int make_instant(struct build *b, const char *name, struct duet_codelet **out)
{
    g_autoptr(GString) own = g_string_new(name);
    while (g_hash_table_contains(b->graph->kernel_index, own->str))
        g_string_append_c(own, '\'');
    return *out ? 0 : make_codelet(b, own->str, instant, NULL, out);
}

/* Makes the reduction of a sum. Contributions are made and added in no time; copies take theirs. */
static int make_reduction(struct build *b, struct duet_handle *handle)
{
    int error = make_instant(b, "reduction init", &b->init);
    if (!error)
        error = make_instant(b, "reduction combine", &b->combine);
    return error ? error : duet_set_reduction(b->runtime, handle, b->init, b->combine);
}

/* Returns the handle of an access; the data is temporary if a task makes it. */
static int find_handle(struct build *b, const struct duet__graph_access *access)
{
    const struct duet__graph_data *data = duet__graph_datum(b->graph, access->data);
    struct datum *datum = &b->data[access->data];
    const size_t bytes = MAX(data->bytes, 1);
    const bool fresh = !datum->handle;
    int error = 0;
    if (!datum->handle && !data->initial && access->mode == DUET_W) {
        datum->marks |= MADE;
        error = duet_register_temporary(b->runtime, bytes, 1, 1, &datum->handle);
    } else if (!datum->handle) {
        error = duet_register_vector(b->runtime, NULL, bytes, 1, &datum->handle);
    }
    if (!error && fresh)
        error = duet_own(b->runtime, datum->handle, access->data % duet_node_count(b->runtime));
    datum->marks = access->mode == DUET_R ? datum->marks | READ : datum->marks & ~READ;
    if (error || access->mode != DUET_REDUCE || datum->marks & REDUCED)
        return error;
    datum->marks |= REDUCED;
    return make_reduction(b, datum->handle);
}

/* Gives up handles and references that no later task needs. */
static int release_unused(struct build *b, size_t task)
{
    size_t count;
    const struct duet__graph_access *accesses = duet__graph_accesses(b->graph, task, &count);
    const uint32_t *after;
    int error = 0;
    for (size_t i = 0; i < count && !error; i++) {
        struct datum *datum = &b->data[accesses[i].data];
        if (--datum->uses == 0 && (datum->marks & (MADE | READ)) == (MADE | READ))
            error = duet_unregister_submit(b->runtime, datum->handle);
    }
    after = duet__graph_after(b->graph, task, &count);
    for (size_t i = 0; i < count; i++)
        if (--b->followers[after[i]] == 0) {
            duet_ref_free(b->refs[after[i]]);
            b->refs[after[i]] = NULL;
        }
    return error;
}

/* Joins the first ones of too many predecessors by tasks that compute nothing, until there are few
 * enough. *joins: how many of the last ones are such tasks. */
static int join(struct build *b, int priority, guint *joins)
{
    enum { MOST = 65535 };
    int error = 0;
    for (*joins = 0; b->after->len > MOST && !error; ++*joins) {
        struct duet_ref *all = NULL;
        const struct duet_task_extra extra = {
            .ref = &all,
            .after = (struct duet_ref *const *)(void *)b->after->data,
            .after_count = MOST,
        };
        error = make_instant(b, "join", &b->join);
        if (!error)
            error = duet_submit(b->runtime, &(struct duet_task_desc){.codelet = b->join,
                                                                     .priority = priority,
                                                                     .extra = &extra});
        g_array_remove_range(b->after, 0, MOST);
        g_array_append_val(b->after, all);
    }
    return error;
}

static int submit(struct build *b, size_t index, struct duet_message *message)
{
    const struct duet__graph_task *task = duet__graph_task(b->graph, index);
    const struct arguments args = {b->state, index};
    size_t count, after_count;
    const struct duet__graph_access *accesses = duet__graph_accesses(b->graph, index, &count);
    const uint32_t *after = duet__graph_after(b->graph, index, &after_count);
    char label[DUET__GRAPH_LABEL_MAX];
    guint joins = 0;
    int error = 0;
    g_array_set_size(b->accesses, 0);
    g_array_set_size(b->after, 0);
    for (size_t i = 0; i < count && !error; i++) {
        struct duet_access access = {.mode = (enum duet_mode)accesses[i].mode};
        error = find_handle(b, &accesses[i]);
        access.handle = b->data[accesses[i].data].handle;
        g_array_append_val(b->accesses, access);
    }
    for (size_t i = 0; i < after_count; i++)
        g_array_append_val(b->after, b->refs[after[i]]);
    if (!error)
        error = join(b, task->priority, &joins);
    const struct duet_task_extra extra = {
        .ref = b->followers[index] ? &b->refs[index] : NULL,
        .after = (struct duet_ref *const *)(void *)b->after->data,
        .after_count = b->after->len,
        .name = task->name,
    };
    const struct duet_task_desc desc = {
        .codelet = b->codelets[task->kernel],
        .accesses = (const struct duet_access *)(void *)b->accesses->data,
        .access_count = count,
        .args = &args,
        .args_bytes = sizeof args,
        .priority = task->priority,
        .where = b->wheres[task->where],
        .extra = &extra,
    };
    if (!error)
        error = duet_submit(b->runtime, &desc);
    for (; joins; joins--)
        duet_ref_free(g_array_index(b->after, struct duet_ref *, b->after->len - joins));
    if (error)
        return duet_fail(message, error, "%s: %s: %s", b->graph->name,
                         duet__graph_label(b->graph, index, label), duet_last_message(b->runtime));
    return release_unused(b, index);
}

static int build(const struct duet__workload *self, struct duet_runtime *runtime,
                 const struct duet__problem *problem, void **state, struct duet_message *message)
{
    const struct duet__graph *graph = problem->graph;
    struct build b = {
        .runtime = runtime,
        .graph = graph,
        .accesses = g_array_new(FALSE, FALSE, sizeof(struct duet_access)),
        .after = g_array_new(FALSE, FALSE, sizeof(struct duet_ref *)),
    };
    int error = make_state(state, problem, duet_runtime_machine(runtime), message);
    b.state = *state;
    if (!error)
        error = prepare(&b, message);
    for (size_t i = 0; i < duet__graph_count(graph) && !error; i++)
        error = submit(&b, i, message);
    free_build(&b);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* The workload                                                                                 */

static int check(const struct duet__problem *problem, struct duet_message *message)
{
    if (problem->setting_count)
        return duet_fail(message, DUET_EINVAL,
                         "--param %s: a file of a task graph has no parameters",
                         problem->settings[0].name);
    for (size_t i = 0, count; duet__several_nodes(problem) && i < duet__graph_count(problem->graph);
         i++) {
        char label[DUET__GRAPH_LABEL_MAX];
        bool none = (duet__graph_accesses(problem->graph, i, &count), count == 0);
        (void)duet__graph_after(problem->graph, i, &count);
        if (none || count)
            return duet_fail(message, DUET_EINVAL,
                             "%s: %s %s: tasks are dealt out to nodes by their data alone: --nodes "
                             "1",
                             problem->graph->name, duet__graph_label(problem->graph, i, label),
                             none ? "uses no data" : "comes after another without data");
    }
    return 0;
}

static double flops(const struct duet__problem *problem)
{
    double sum = 0;
    for (size_t i = 0; i < duet__graph_count(problem->graph); i++)
        sum += duet__graph_task(problem->graph, i)->work;
    return sum;
}

static uint64_t tasks(const struct duet__problem *problem)
{
    return duet__graph_count(problem->graph);
}

struct duet__workload duet__graph_workload(const struct duet__graph *graph)
{
    /* the kernels have their own names, whatever the precision */
    static const char *const kernels[] = {NULL};
    return (struct duet__workload){
        .name = graph->name,
        .description = "a task graph from a file",
        .source = graph->origin,
        .kernels = kernels,
        .default_n = duet__graph_count(graph),
        .default_tile = 1,
        .check = check,
        .flops = flops,
        .tasks = tasks,
        .build = build,
        .fini = free_state,
    };
}
