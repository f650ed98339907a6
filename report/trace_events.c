/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a trace: threads, kernels and copies one by one. */
#include <string.h>

#include <duet/trace.h>

#include "report/trace_loader.h"

/* What an element of traceEvents says. Strings are kept as far as they mean something. */
struct row {
    char phase;
    bool thread_name; /* metadata: the thread's name */
    enum { OTHER, KERNEL, COPY } category;
    struct duet__trace_name name;
    uint64_t pid, tid, id, bytes;
    double start_us, length_us, submitted_us, ready_us;
    int worker, source, destination; /* -1: not said */
    bool failed, write_back;
    bool has_start, has_length, has_id, has_bytes, has_submitted, has_ready;
};

/* Dates of years in microseconds, so that nothing that is computed of them overflows. */
static bool read_us(struct duet__trace_loader *loader, double least, double *value, bool *has)
{
    if (!duet__reader_number(&loader->json, value))
        return false;
    *has = *value >= least && *value <= 1e15;
    return *has || duet__reader_wrong(&loader->json, "a time of %g us makes no sense", *value);
}

static bool read_whole(struct duet__trace_loader *loader, uint64_t *value, bool *has)
{
    *has = duet__reader_count(&loader->json, UINT64_MAX, value);
    return *has;
}

static bool read_args(struct duet__trace_loader *loader, struct row *row)
{
    struct duet__reader *json = &loader->json;
    const char *key;

    duet__reader_object(json);
    while (duet__reader_key(json, &key)) {
        if (strcmp(key, "task") == 0 || strcmp(key, "handle") == 0)
            read_whole(loader, &row->id, &row->has_id);
        else if (strcmp(key, "bytes") == 0)
            read_whole(loader, &row->bytes, &row->has_bytes);
        else if (strcmp(key, "submitted_us") == 0)
            read_us(loader, -1e15, &row->submitted_us, &row->has_submitted);
        else if (strcmp(key, "ready_us") == 0)
            read_us(loader, -1e15, &row->ready_us, &row->has_ready);
        else if (strcmp(key, "source") == 0)
            duet__trace_read_node(loader, &row->source);
        else if (strcmp(key, "destination") == 0)
            duet__trace_read_node(loader, &row->destination);
        else if (strcmp(key, "worker") == 0)
            duet__trace_read_worker(loader, &row->worker);
        else if (strcmp(key, "failed") == 0)
            duet__reader_flag(json, &row->failed);
        else if (strcmp(key, "write_back") == 0)
            duet__reader_flag(json, &row->write_back);
        else
            duet__reader_skip(json);
    }
    return !json->error;
}

/* A name that means something: of metadata which, of a kernel its own. */
static bool read_row_name(struct duet__trace_loader *loader, struct row *row)
{
    const char *text;

    if (!duet__reader_text(&loader->json, &text))
        return false;
    row->thread_name = strcmp(text, "thread_name") == 0;
    /* of copies it is made of two names, and not needed; too long, it is refused for a kernel */
    if (strlen(text) < sizeof(row->name.text))
        g_strlcpy(row->name.text, text, sizeof(row->name.text));
    return true;
}

static bool read_row(struct duet__trace_loader *loader, struct row *row)
{
    struct duet__reader *json = &loader->json;
    const char *key, *text;

    duet__reader_object(json);
    while (duet__reader_key(json, &key)) {
        if (strcmp(key, "ph") == 0) {
            if (duet__reader_text(json, &text))
                row->phase = text[0] && !text[1] ? text[0] : 0;
        } else if (strcmp(key, "cat") == 0) {
            if (duet__reader_text(json, &text))
                row->category = strcmp(text, "kernel") == 0 ? KERNEL
                                : strcmp(text, "copy") == 0 ? COPY
                                                            : OTHER;
        } else if (strcmp(key, "name") == 0) {
            read_row_name(loader, row);
        } else if (strcmp(key, "pid") == 0) {
            duet__reader_count(json, UINT32_MAX, &row->pid);
        } else if (strcmp(key, "tid") == 0) {
            duet__reader_count(json, UINT32_MAX, &row->tid);
        } else if (strcmp(key, "ts") == 0) {
            read_us(loader, -1e15, &row->start_us, &row->has_start);
        } else if (strcmp(key, "dur") == 0) {
            read_us(loader, 0, &row->length_us, &row->has_length);
        } else if (strcmp(key, "args") == 0) {
            read_args(loader, row);
        } else {
            duet__reader_skip(json);
        }
    }
    return !json->error;
}

static gpointer thread_key(const struct row *row)
{
    uint64_t key = row->pid << 32 | row->tid;

    return g_memdup2(&key, sizeof(key));
}

/* Index of the kernel of that name, which is added where it is new. */
static unsigned kernel_index(struct duet__trace_loader *loader, const char *name)
{
    gpointer found;

    if (g_hash_table_lookup_extended(loader->kernels, name, NULL, &found))
        return GPOINTER_TO_UINT(found);
    g_ptr_array_add(loader->names, g_strdup(name));
    g_hash_table_insert(loader->kernels, g_strdup(name), GUINT_TO_POINTER(loader->names->len - 1));
    return loader->names->len - 1;
}

static bool add_kernel(struct duet__trace_loader *loader, const struct row *row)
{
    uint64_t thread = row->pid << 32 | row->tid;
    unsigned worker = GPOINTER_TO_UINT(g_hash_table_lookup(loader->threads, &thread));
    struct duet_event event = {.kind = DUET_EVENT_TASK,
                               .id = row->id,
                               .submit_s = row->submitted_us * 1e-6,
                               .ready_s = row->ready_us * 1e-6,
                               .start_s = row->start_us * 1e-6,
                               .end_s = (row->start_us + row->length_us) * 1e-6,
                               .failed = row->failed,
                               .bytes = row->bytes};

    if (!row->name.text[0] || !row->has_start || !row->has_length || !row->has_id ||
        !row->has_bytes || !row->has_submitted || !row->has_ready)
        return duet__reader_wrong(&loader->json,
                                  "a kernel needs name (below %d bytes), ts, dur and "
                                  "args with task, bytes, submitted_us, ready_us",
                                  DUET_NAME_MAX);
    if (!worker)
        return duet__reader_wrong(&loader->json, "a kernel in a thread of no worker");
    event.worker = (int)worker - 1;
    event.source = event.destination =
        (uint16_t)g_array_index(loader->workers, struct duet__trace_worker, worker - 1).node;
    event.kernel = kernel_index(loader, row->name.text);
    g_array_append_val(loader->events, event);
    return true;
}

static int worker_of(const struct duet__trace_loader *loader, int node)
{
    for (unsigned i = 0; i < loader->workers->len; i++)
        if (g_array_index(loader->workers, struct duet__trace_worker, i).node == (unsigned)node)
            return (int)i;
    return DUET_NO_WORKER;
}

static bool add_copy(struct duet__trace_loader *loader, const struct row *row)
{
    struct duet_event event = {.kind = DUET_EVENT_COPY,
                               .id = row->id,
                               .submit_s = row->ready_us * 1e-6,
                               .ready_s = row->ready_us * 1e-6,
                               .start_s = row->start_us * 1e-6,
                               .end_s = (row->start_us + row->length_us) * 1e-6,
                               .source = (uint16_t)row->source,
                               .destination = (uint16_t)row->destination,
                               .write_back = row->write_back,
                               .failed = row->failed,
                               .bytes = row->bytes};

    if (row->source < 0 || row->destination < 0 || row->source == row->destination ||
        !row->has_start || !row->has_length || !row->has_id || !row->has_bytes || !row->has_ready)
        return duet__reader_wrong(&loader->json,
                                  "a copy needs ts, dur and args with handle, bytes, "
                                  "ready_us and two memories");
    event.worker =
        worker_of(loader, row->destination != DUET_HOST ? row->destination : row->source);
    g_array_append_val(loader->events, event);
    return true;
}

void duet__trace_read_events(struct duet__trace_loader *loader)
{
    struct duet__reader *json = &loader->json;

    if (!json->error && (!loader->ours || !loader->nodes->len || !loader->workers->len)) {
        duet__reader_wrong(json, "no trace of duet's: before traceEvents, otherData has to name "
                                 "duet as producer, nodes and workers");
        return;
    }
    duet__reader_array(json);
    while (duet__reader_next(json)) {
        struct row row = {.worker = -1, .source = -1, .destination = -1};

        if (!read_row(loader, &row))
            return;
        if (row.phase == 'M' && row.thread_name && row.worker >= 0)
            g_hash_table_insert(loader->threads, thread_key(&row),
                                GUINT_TO_POINTER((unsigned)row.worker + 1));
        else if (row.phase == 'X' && row.category == KERNEL)
            add_kernel(loader, &row);
        else if (row.phase == 'X' && row.category == COPY)
            add_copy(loader, &row);
    }
}
