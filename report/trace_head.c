/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a trace: the machine, and the names by which the rest means its parts. */
#include <string.h>

#include "report/trace_loader.h"

/* Generous, and small enough that no input can exhaust the memory (routes are pairs of nodes). */
enum { MOST_NODES = 1024, MOST_WORKERS = 16384 };

bool duet__trace_read_name(struct duet__trace_loader *loader, struct duet__trace_name *name)
{
    const char *text;

    if (!duet__reader_text(&loader->json, &text))
        return false;
    if (!*text || strlen(text) >= sizeof(name->text))
        return duet__reader_wrong(&loader->json, "'%.60s' is no name: 1 to %d bytes", text,
                                  DUET_NAME_MAX - 1);
    g_strlcpy(name->text, text, sizeof(name->text));
    return true;
}

static int node_index(const struct duet__trace_loader *loader, const char *name)
{
    for (unsigned i = 0; i < loader->nodes->len; i++)
        if (strcmp(g_array_index(loader->nodes, struct duet__trace_name, i).text, name) == 0)
            return (int)i;
    return -1;
}

bool duet__trace_read_node(struct duet__trace_loader *loader, int *node)
{
    const char *text;

    if (!duet__reader_text(&loader->json, &text))
        return false;
    *node = node_index(loader, text);
    return *node >= 0 ||
           duet__reader_wrong(&loader->json, "'%.60s' is no memory of otherData.nodes", text);
}

bool duet__trace_read_worker(struct duet__trace_loader *loader, int *worker)
{
    const char *text;

    if (!duet__reader_text(&loader->json, &text))
        return false;
    for (unsigned i = 0; i < loader->workers->len; i++)
        if (strcmp(g_array_index(loader->workers, struct duet__trace_worker, i).name.text, text) ==
            0) {
            *worker = (int)i;
            return true;
        }
    return duet__reader_wrong(&loader->json, "'%.60s' is no worker of otherData.workers", text);
}

static bool read_nodes(struct duet__trace_loader *loader)
{
    duet__reader_array(&loader->json);
    while (duet__reader_next(&loader->json)) {
        struct duet__trace_name name = {""};

        if (!duet__trace_read_name(loader, &name))
            return false;
        if (node_index(loader, name.text) >= 0)
            return duet__reader_wrong(&loader->json, "two memories are called '%s'", name.text);
        if (loader->nodes->len == MOST_NODES)
            return duet__reader_wrong(&loader->json, "more than %d memories", MOST_NODES);
        g_array_append_val(loader->nodes, name);
    }
    return !loader->json.error;
}

static bool read_worker(struct duet__trace_loader *loader)
{
    struct duet__reader *json = &loader->json;
    struct duet__trace_worker worker = {0};
    const char *key;
    int node = -1;

    duet__reader_object(json);
    while (duet__reader_key(json, &key)) {
        if (strcmp(key, "name") == 0)
            duet__trace_read_name(loader, &worker.name);
        else if (strcmp(key, "architecture") == 0)
            duet__trace_read_name(loader, &worker.arch);
        else if (strcmp(key, "node") == 0)
            duet__trace_read_node(loader, &node);
        else
            duet__reader_skip(json);
    }
    if (json->error)
        return false;
    if (!worker.name.text[0] || !worker.arch.text[0] || node < 0)
        return duet__reader_wrong(json, "a worker needs name, architecture and node");
    if (loader->workers->len == MOST_WORKERS)
        return duet__reader_wrong(json, "more than %d workers", MOST_WORKERS);
    worker.node = (unsigned)node;
    g_array_append_val(loader->workers, worker);
    return true;
}

void duet__trace_read_head(struct duet__trace_loader *loader)
{
    struct duet__reader *json = &loader->json;
    const char *key, *text;

    duet__reader_object(json);
    while (duet__reader_key(json, &key)) {
        if (strcmp(key, "producer") == 0) {
            if (duet__reader_text(json, &text))
                loader->ours = strcmp(text, "duet") == 0;
        } else if (strcmp(key, "platform") == 0) {
            duet__trace_read_name(loader, &loader->platform);
        } else if (strcmp(key, "nodes") == 0 && !loader->nodes->len) {
            read_nodes(loader);
        } else if (strcmp(key, "workers") == 0 && !loader->workers->len) {
            duet__reader_array(json);
            while (duet__reader_next(json) && read_worker(loader))
                continue;
        } else {
            duet__reader_skip(json);
        }
    }
}
