/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the results of a run on one node or several, also from other processes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "core/engine.h"
#include "nodes/nodes.h"
#include "trace/run.h"

/* ------------------------------------------------------------------------------------------- */
/* Recordings as bytes, between processes of the same program                                   */

/* Reads an array of `count` elements, with room for one more: of malloc. NULL: the file is not as
   long as it says. */
static void *wire_read(FILE *stream, size_t count, size_t bytes)
{
    void *array = count < SIZE_MAX / bytes ? calloc(count + 1, bytes) : NULL;
    if (array && fread(array, bytes, count, stream) == count)
        return array;
    free(array);
    return NULL;
}

void duet__wire_write(FILE *stream, const void *array, size_t count, size_t bytes)
{
    if (count)
        fwrite(array, bytes, count, stream);
}

static void write_texts(FILE *stream, const char **texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fwrite(texts[i], strlen(texts[i]) + 1, 1, stream);
}

/* Reads so many texts, owned by the caller; *whole becomes false where one is missing. */
static const char **read_texts(FILE *stream, size_t count, bool *whole)
{
    const char **texts = g_new0(const char *, count + 1);
    size_t room = 0;
    char *text = NULL;
    for (size_t i = 0; i < count && *whole; i++) {
        *whole = getdelim(&text, &room, 0, stream) > 0;
        texts[i] = *whole ? g_strdup(text) : NULL;
    }
    free(text);
    return texts;
}

/* An array of a machine, to be written or read. */
struct array {
    void **at;
    size_t count, bytes;
};

enum { ARRAYS = 5 };

static void arrays_of(struct duet_machine *machine, struct array arrays[ARRAYS])
{
    const size_t nodes = machine->node_count;
    const struct array all[ARRAYS] = {
        {(void **)&machine->archs, machine->arch_count, sizeof *machine->archs},
        {(void **)&machine->nodes, nodes, sizeof *machine->nodes},
        {(void **)&machine->workers, machine->worker_count, sizeof *machine->workers},
        {(void **)&machine->links, machine->link_count, sizeof *machine->links},
        {(void **)&machine->routes, nodes * nodes, sizeof *machine->routes},
    };
    memcpy(arrays, all, sizeof all);
}

static struct duet_machine *read_machine(FILE *stream, bool *whole)
{
    struct duet_machine *machine = wire_read(stream, 1, sizeof *machine);
    struct array arrays[ARRAYS];
    *whole = machine != NULL;
    if (!machine)
        return NULL;
    arrays_of(machine, arrays);
    for (unsigned i = 0; i < ARRAYS; i++) {
        *arrays[i].at = wire_read(stream, arrays[i].count, arrays[i].bytes);
        *whole &= *arrays[i].at != NULL;
    }
    return machine;
}

void duet__recording_write(FILE *stream, const struct duet__recording *recording)
{
    struct array arrays[ARRAYS];
    if (!recording->machine)
        return;
    duet__wire_write(stream, recording->machine, 1, sizeof *recording->machine);
    arrays_of(recording->machine, arrays);
    for (unsigned i = 0; i < ARRAYS; i++)
        duet__wire_write(stream, *arrays[i].at, arrays[i].count, arrays[i].bytes);
    duet__wire_write(stream, recording->events, recording->event_count, sizeof *recording->events);
    duet__wire_write(stream, recording->accesses, recording->access_count,
                     sizeof *recording->accesses);
    duet__wire_write(stream, recording->marks, recording->mark_count, sizeof *recording->marks);
    write_texts(stream, recording->kernels, recording->kernel_count);
    write_texts(stream, recording->names, recording->name_count);
}

bool duet__recording_read(FILE *stream, struct duet__recording *out)
{
    bool whole = true;
    if (!out->machine)
        return true;
    out->machine = read_machine(stream, &whole);
    out->events = wire_read(stream, out->event_count, sizeof *out->events);
    out->accesses =
        out->accesses ? wire_read(stream, out->access_count, sizeof *out->accesses) : NULL;
    out->marks = wire_read(stream, out->mark_count, sizeof *out->marks);
    whole &= out->events && out->marks && (out->accesses || !out->access_count);
    out->kernels = read_texts(stream, out->kernel_count, &whole);
    out->names = read_texts(stream, out->name_count, &whole);
    return whole;
}

/* ------------------------------------------------------------------------------------------- */
/* Taking a run                                                                                 */

void duet__node_run_fini(struct duet__node_run *part)
{
    duet__recording_fini(&part->recording);
    g_free(part->classes.rows);
    free(part->own.messages);
    free(part->own.tasks);
    free(part->own.data);
    *part = (struct duet__node_run){0};
}

/* Returns the number of figures that a node's classes have. */
static size_t rows_of(const struct duet__node_classes *classes)
{
    return classes->rows ? (2 + classes->count) * (1 + classes->arch_count) : 0;
}

void duet__node_run_write(FILE *stream, const struct duet__node_run *part)
{
    const struct duet__node_log *log = part->log;
    duet__wire_write(stream, part, 1, sizeof *part);
    duet__wire_write(stream, log, 1, sizeof *log);
    duet__wire_write(stream, part->classes.rows, rows_of(&part->classes), sizeof(double));
    duet__wire_write(stream, log->messages, log->message_count, sizeof *log->messages);
    duet__wire_write(stream, log->tasks, log->task_count, sizeof *log->tasks);
    duet__wire_write(stream, log->data, log->datum_count, sizeof *log->data);
    duet__recording_write(stream, &part->recording);
}

int duet__node_run_read(FILE *stream, struct duet__node_run *out)
{
    struct duet__node_log *log = &out->own;
    bool whole = fread(out, sizeof *out, 1, stream) == 1 && fread(log, sizeof *log, 1, stream) == 1;
    if (!whole) {
        *out = (struct duet__node_run){0};
        return DUET_EIO;
    }
    out->log = log;
    out->classes.rows = wire_read(stream, rows_of(&out->classes), sizeof(double));
    log->messages = wire_read(stream, log->message_count, sizeof *log->messages);
    log->tasks = wire_read(stream, log->task_count, sizeof *log->tasks);
    log->data = wire_read(stream, log->datum_count, sizeof *log->data);
    whole = duet__recording_read(stream, &out->recording) && out->classes.rows && log->messages &&
            log->tasks && log->data;
    if (!whole)
        duet__node_run_fini(out);
    return whole ? 0 : DUET_EIO;
}

/* ------------------------------------------------------------------------------------------- */
/* Runs                                                                                         */

/* Takes the results of a core, with what was noted of it. */
static int take_node(struct duet__node_run *out, const struct duet_runtime *core,
                     const struct duet__node_log *log, bool records, bool accesses, double ahead_s)
{
    int error = log->lost ? DUET_ENOMEM : 0;
    *out = (struct duet__node_run){.workers = duet_runtime_machine(core)->worker_count,
                                   .ahead_s = ahead_s,
                                   .log = log};
    duet_stats(core, &out->stats);
    out->classes = duet__node_classes(core);
    if (!error && records)
        error = duet__recording_take(&out->recording, core, accesses);
    duet__recording_shift(&out->recording, -ahead_s);
    if (error)
        duet__node_run_fini(out);
    return error;
}

/* Gathers the results of nodes that are a process each at the first one, if there was no error
 * here. */
static int gather(struct duet__nodes *nodes, struct duet__node_run *parts, unsigned count,
                  unsigned node, int error)
{
    g_autofree size_t *sizes = g_new0(size_t, count);
    char *mine = NULL, *at;
    void *all = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&mine, &bytes);
    int gathered;
    if (node && parts[node].log)
        duet__node_run_write(stream, &parts[node]);
    fclose(stream);
    gathered = duet__nodes_gather(nodes, mine, bytes, &all, sizes); /* whatever has failed here */
    error = error ? error : gathered;
    at = all;
    for (unsigned i = 1; i < count && !error && !node; at += sizes[i++]) {
        stream = sizes[i] ? fmemopen(at, sizes[i], "r") : NULL;
        error = stream ? duet__node_run_read(stream, &parts[i]) : DUET_EIO;
        if (stream)
            fclose(stream);
        if (!error && !parts[i].recording.machine != !parts[0].recording.machine)
            error = DUET_EINVAL;
    }
    free(mine);
    free(all);
    return error;
}

struct duet__spent *duet__spent_take(const struct duet_runtime *core, unsigned *count)
{
    const struct duet_machine *machine = duet_runtime_machine(core);
    GArray *all = g_array_new(FALSE, TRUE, sizeof(struct duet__spent));
    struct duet_class_stats stats;
    for (size_t c = 0; !duet_class_stats(core, c, &stats); c++)
        for (unsigned a = 0; a < machine->arch_count; a++) {
            struct duet__spent one = {.work = stats.work};
            double tasks = 0;
            for (unsigned w = 0; w < machine->worker_count; w++)
                if (machine->workers[w].arch == a)
                    tasks += (double)stats.ran[w];
            if (!(tasks > 0))
                continue;
            one.seconds = tasks * stats.expected_s[a];
            g_strlcpy(one.kernel, stats.kernel, sizeof one.kernel);
            g_strlcpy(one.arch, machine->archs[a].name, sizeof one.arch);
            g_array_append_val(all, one);
        }
    *count = all->len;
    return (struct duet__spent *)(void *)g_array_free(all, FALSE);
}

/* Fills run->barred; several nodes have what the first has run. */
static void take_barred(const struct duet_runtime *core, struct duet__run *run)
{
    const struct duet_machine *machine = duet_runtime_machine(core);
    g_autoptr(GString) all = g_string_new(NULL);
    struct duet_class_stats stats;
    char why[200];
    for (size_t c = 0; !duet_class_stats(core, c, &stats); c++)
        for (unsigned a = 0; a < machine->arch_count && stats.tasks; a++) {
            g_autofree char *phrase =
                g_strdup_printf("no %s could run %s: %s", machine->archs[a].name, stats.kernel,
                                duet__class_barrier(core, c, a, why, sizeof why));
            if (*why && !strstr(all->str, phrase))
                g_string_append_printf(all, "%s%s", all->len ? "; " : "", phrase);
        }
    if (all->len >= sizeof run->barred) {
        const char *whole = all->str; /* end of the last whole character */
        g_string_truncate(all, sizeof run->barred - sizeof " ...");
        (void)g_utf8_validate(all->str, -1, &whole);
        g_string_append(g_string_truncate(all, (gsize)(whole - all->str)), " ...");
    }
    g_strlcpy(run->barred, all->str, sizeof run->barred);
}

/* Takes the results of several nodes. Processes other than the first one get their own figures. */
static int take_nodes(const struct duet_runtime *runtime, bool records, bool accesses,
                      const struct duet__wires *wires, struct duet__run *run,
                      struct duet_message *message)
{
    struct duet__nodes *nodes = duet__nodes_of(runtime);
    const unsigned count = duet_node_count(runtime), node = duet_node(runtime);
    struct duet__node_run *parts = g_new0(struct duet__node_run, count);
    int error = 0;
    for (unsigned i = 0; i < count && !error; i++)
        if (duet_node_here(runtime, i))
            error = take_node(&parts[i], duet__nodes_core(nodes, i), duet__nodes_log(nodes, i),
                              records, accesses, duet__nodes_ahead(nodes));
    parts[node].stats.critical_path_s =
        fmax(parts[node].stats.critical_path_s, duet__nodes_path_s(nodes));
    if (!duet_node_here(runtime, node ? 0 : 1))
        error = gather(nodes, parts, count, node, error);
    if (error)
        duet_fail(message, error,
                  "what the nodes have recorded does not come together (%s): all need the same "
                  "settings",
                  duet_strerror(error));
    else if (node)
        run->stats = parts[node].stats;
    else
        error = duet__node_runs_merge(parts, count, wires, run, message);
    if (!error && !node)
        take_barred(duet__nodes_core(nodes, 0), run);
    for (unsigned i = 0; i < count; i++)
        duet__node_run_fini(&parts[i]);
    g_free(parts);
    return error;
}

int duet__run_take(const struct duet_runtime *runtime, bool records, bool accesses,
                   const struct duet__wires *wires, struct duet__run *run,
                   struct duet_message *message)
{
    int error = 0;
    if (duet__nodes_of(runtime))
        return take_nodes(runtime, records, accesses, wires, run, message);
    duet_stats(runtime, &run->stats);
    take_barred(runtime, run);
    if (records)
        error = duet__recording_take(&run->recording, runtime, accesses);
    if (error)
        return duet_fail(message, error, "%s", duet_strerror(error));
    duet__recording_shift(&run->recording, -run->stats.first_submit_s);
    return 0;
}
