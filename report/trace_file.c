/* SPDX-License-Identifier: Apache-2.0 */
/* Reading back a trace: from what its head and its events say to a recording. */
#include "report/trace_file.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "report/trace_loader.h"

/* The worker's architecture, added to the machine where it is new. */
static unsigned arch_index(struct duet_machine *machine, const struct duet__trace_worker *worker)
{
    unsigned i = 0;

    while (i < machine->arch_count && strcmp(machine->archs[i].name, worker->arch.text) != 0)
        i++;
    if (i == machine->arch_count) {
        machine->arch_count++;
        g_strlcpy(machine->archs[i].name, worker->arch.text, DUET_NAME_MAX);
    }
    return i;
}

static int make_machine(const struct duet__trace_loader *loader, struct duet_machine *machine)
{
    unsigned workers = loader->workers->len;
    int error = duet_machine_init(machine, workers, loader->nodes->len, workers, 0);

    if (error)
        return error;
    machine->arch_count = 0; /* at most one each */
    g_strlcpy(machine->name, loader->platform.text, DUET_NAME_MAX);
    for (unsigned i = 0; i < loader->nodes->len; i++)
        g_strlcpy(machine->nodes[i].name,
                  g_array_index(loader->nodes, struct duet__trace_name, i).text, DUET_NAME_MAX);
    for (unsigned i = 0; i < workers; i++) {
        const struct duet__trace_worker *worker =
            &g_array_index(loader->workers, struct duet__trace_worker, i);

        g_strlcpy(machine->workers[i].name, worker->name.text, DUET_NAME_MAX);
        machine->workers[i].arch = arch_index(machine, worker);
        machine->workers[i].node = worker->node;
        machine->workers[i].window = 1;
    }
    return 0;
}

static int by_start(const void *left, const void *right)
{
    const struct duet_event *a = left, *b = right;

    if (a->start_s != b->start_s)
        return a->start_s < b->start_s ? -1 : 1;
    if (a->worker != b->worker)
        return a->worker < b->worker ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

/* Dates from the first submission; the end of the last kernel, of those that did not fail if there
 * is one. */
static double date(struct duet_event *events, size_t count)
{
    double first_s = INFINITY, last_s = -INFINITY, failed_s = -INFINITY;

    for (size_t i = 0; i < count; i++) {
        if (events[i].kind != DUET_EVENT_TASK)
            continue;
        first_s = fmin(first_s, fmin(events[i].submit_s, events[i].start_s));
        if (events[i].failed)
            failed_s = fmax(failed_s, events[i].end_s);
        else
            last_s = fmax(last_s, events[i].end_s);
    }
    for (size_t i = 0; i < count; i++) {
        events[i].submit_s -= first_s;
        events[i].ready_s -= first_s;
        events[i].start_s -= first_s;
        events[i].end_s -= first_s;
    }
    return (isfinite(last_s) ? last_s : failed_s) - first_s;
}

/* What was read becomes *out, which owns it. */
static int finish(struct duet__trace_loader *loader, struct duet_trace_file *out,
                  struct duet_message *message)
{
    size_t kernels = loader->names->len, count = loader->events->len;

    if (!kernels)
        return duet_fail(message, DUET_EPARSE, "%.300s: there is no kernel in this trace",
                         loader->json.path);
    if (make_machine(loader, &out->machine))
        return duet_fail(message, DUET_ENOMEM, "%.300s: out of memory", loader->json.path);
    g_ptr_array_add(loader->names, NULL);
    out->kernels = (char **)g_ptr_array_free(loader->names, FALSE);
    loader->names = NULL;
    out->events = (struct duet_event *)(void *)g_array_free(loader->events, FALSE);
    loader->events = NULL;
    out->recording = (struct duet_recording){
        .machine = &out->machine,
        .events = out->events,
        .event_count = count,
        .kernels = (const char *const *)out->kernels,
        .kernel_count = kernels,
        .makespan_s = date(out->events, count),
    };
    qsort(out->events, count, sizeof(*out->events), by_start);
    return 0;
}

static void loader_init(struct duet__trace_loader *loader)
{
    loader->nodes = g_array_new(FALSE, FALSE, sizeof(struct duet__trace_name));
    loader->workers = g_array_new(FALSE, FALSE, sizeof(struct duet__trace_worker));
    loader->events = g_array_new(FALSE, FALSE, sizeof(struct duet_event));
    loader->threads = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    loader->kernels = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    loader->names = g_ptr_array_new_with_free_func(g_free);
}

static void loader_fini(struct duet__trace_loader *loader)
{
    g_array_free(loader->nodes, TRUE);
    g_array_free(loader->workers, TRUE);
    g_hash_table_destroy(loader->threads);
    g_hash_table_destroy(loader->kernels);
    if (loader->events)
        g_array_free(loader->events, TRUE);
    if (loader->names)
        g_ptr_array_free(loader->names, TRUE);
}

int duet_trace_file_parse(const char *text, size_t length, const char *path,
                          struct duet_trace_file *out, struct duet_message *message)
{
    struct duet__trace_loader loader = {0};
    const char *key;
    int error;

    *out = (struct duet_trace_file){0};
    loader_init(&loader);
    duet__reader_begin(&loader.json, text, length, path, message);
    duet__reader_object(&loader.json);
    while (duet__reader_key(&loader.json, &key)) {
        if (strcmp(key, "otherData") == 0)
            duet__trace_read_head(&loader);
        else if (strcmp(key, "traceEvents") == 0)
            duet__trace_read_events(&loader);
        else
            duet__reader_skip(&loader.json);
    }
    error = duet__reader_end(&loader.json);
    if (!error)
        error = finish(&loader, out, message);
    loader_fini(&loader);
    return error;
}

void duet_trace_file_fini(struct duet_trace_file *file)
{
    duet_machine_fini(&file->machine);
    g_free(file->events);
    g_strfreev(file->kernels);
    *file = (struct duet_trace_file){0};
}
