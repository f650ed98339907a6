/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a trace: what its files share. */
#ifndef DUET_TRACE_LOADER_H
#define DUET_TRACE_LOADER_H

#include <stdbool.h>

#include <glib.h>

#include <duet/machine.h>

#include "report/json_reader.h"

struct duet__trace_name {
    char text[DUET_NAME_MAX];
};

struct duet__trace_worker {
    struct duet__trace_name name, arch;
    unsigned node;
};

/* What has been read so far. */
struct duet__trace_loader {
    struct duet__reader json;
    bool ours; /* written by duet */
    struct duet__trace_name platform;
    GArray *nodes;       /* struct duet__trace_name */
    GArray *workers;     /* struct duet__trace_worker */
    GHashTable *threads; /* thread of the trace (process << 32 | thread) -> worker and 1 */
    GHashTable *kernels; /* name -> index */
    GPtrArray *names;    /* of the kernels */
    GArray *events;      /* struct duet_event */
};

/* Values. Errors are in loader->json, as everywhere in this reader. */
bool duet__trace_read_name(struct duet__trace_loader *loader, struct duet__trace_name *name);
bool duet__trace_read_node(struct duet__trace_loader *loader, int *node);
bool duet__trace_read_worker(struct duet__trace_loader *loader, int *worker);

/* The value of otherData: the machine. */
void duet__trace_read_head(struct duet__trace_loader *loader);
/* The value of traceEvents; the machine has to be known. */
void duet__trace_read_events(struct duet__trace_loader *loader);

#endif
