/* SPDX-License-Identifier: Apache-2.0 */
/* Submission of a task graph's file, for Python: what `duet simulate FILE` does. */
#include "base/json.h"
#include "workloads/files/graph.h"

/* A graph whose tasks have been submitted: its kernels' times are asked for until they end. */
struct submitted {
    struct duet__graph graph;
    struct duet__workload workload;
    void *state;
};

/* Frees what duet__python_submit made, when the runtime is closed. NULL is fine. */
DUET_EXPORT void duet__python_free(struct submitted *submitted);

/*
 * Submits the tasks of a file in duet's own format, as `duet simulate FILE` does. *out is for
 * duet__python_free, also after an error.
 */
DUET_EXPORT int duet__python_submit(struct duet_runtime *runtime, const char *path,
                                    struct submitted **out, struct duet_message *message);

void duet__python_free(struct submitted *submitted)
{
    if (!submitted)
        return;
    submitted->workload.fini(submitted->state);
    duet__graph_fini(&submitted->graph);
    g_free(submitted);
}

int duet__python_submit(struct duet_runtime *runtime, const char *path, struct submitted **out,
                        struct duet_message *message)
{
    enum { MOST_MIB = 8192 };
    g_autofree char *text = NULL;
    size_t length = 0;
    struct submitted *submitted = *out = g_new0(struct submitted, 1);
    struct duet__problem problem = {.graph = &submitted->graph, .precision = 'd'};
    int error = duet__read_all(path, MOST_MIB, &text, &length, message);
    duet__graph_init(&submitted->graph);
    submitted->workload = duet__graph_workload(&submitted->graph);
    if (!error)
        error = duet__graph_read_json(&submitted->graph, text, length, path, message);
    if (error)
        return error;
    submitted->workload = duet__graph_workload(&submitted->graph);
    return submitted->workload.build(&submitted->workload, runtime, &problem, &submitted->state,
                                     message);
}
