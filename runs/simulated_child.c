/* SPDX-License-Identifier: Apache-2.0 */
/* One simulated run in a process of its own, and how it gets back to the parent. */
#include "runs/simulated.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "validate/bounds.h"
#include "world/open.h"

/*
 * A file of one run: this, then kernel_count names of DUET_NAME_MAX bytes, then events, then
 * accesses. Written and read by the same program on the same machine, so the types say it all.
 */
struct head {
    int64_t error; /* enum duet_error */
    struct duet_message message;
    struct duet_run run; /* without its pointers */
    uint64_t recorded, kernel_count, event_count, access_count;
};

/* ------------------------------------------------------------------------------------------- */
/* In the child                                                                                 */

/* Tells the parent how far the run is, from a thread beside it, until the process ends. */
struct watcher {
    const struct duet_runtime *runtime;
    duet_task_counter *done;
    pid_t parent;
};

static void *watch(void *argument)
{
    const struct watcher *watcher = argument;

    /* nobody reads what comes out any more once the parent has died */
    while (getppid() == watcher->parent) {
        atomic_store_explicit(watcher->done, duet_tasks_done(watcher->runtime),
                              memory_order_relaxed);
        g_usleep(50 * G_TIME_SPAN_MILLISECOND);
    }
    _exit(EXIT_FAILURE);
}

/* Takes the message of a failed call from the runtime, where the call has given none. */
static int explain(const struct duet_runtime *runtime, int error, struct duet_message *message)
{
    const char *last = duet_last_message(runtime);

    if (error && !message->text[0])
        duet_fail(message, error, "%s", last[0] ? last : duet_strerror(error));
    return error;
}

/* Submits the workload, waits, and reads the figures. */
static int run_workload(const struct duet_request *request, struct duet_runtime *runtime,
                        struct head *head)
{
    struct duet_bounds bounds = {0};
    gint64 start_us = g_get_monotonic_time();
    void *state = NULL;
    int error = request->workload->build(runtime, &request->problem, &state, &head->message);

    explain(runtime, error, &head->message);
    if (!error)
        error = explain(runtime, duet_wait(runtime), &head->message);
    head->run.wall_s = (double)(g_get_monotonic_time() - start_us) * 1e-6;
    if (error)
        return error;
    duet_stats(runtime, &head->run.stats);
    if (request->bounds)
        error = explain(runtime, duet_bounds(runtime, &bounds, &head->message), &head->message);
    head->run.critical_path_s = bounds.critical_path_s;
    head->run.area_s = bounds.area_s;
    return error;
}

/* What of the runtime's records is wanted. An error leaves nothing written. */
static int put_run(FILE *stream, const struct duet_request *request,
                   const struct duet_runtime *runtime, struct head *head)
{
    struct duet_recording recording = {0};
    int error = 0;

    if (head->recorded)
        error = duet_recording_take(&recording, runtime, request->records == DUET_RECORDS_ACCESSES);
    if (error)
        return explain(runtime, error, &head->message);
    head->kernel_count = recording.kernel_count;
    head->event_count = recording.event_count;
    head->access_count = recording.access_count;
    fwrite(head, sizeof(*head), 1, stream);
    for (size_t i = 0; i < recording.kernel_count; i++) {
        char name[DUET_NAME_MAX] = {0};

        g_strlcpy(name, recording.kernels[i], sizeof(name));
        fwrite(name, sizeof(name), 1, stream);
    }
    if (recording.event_count)
        fwrite(recording.events, sizeof(*recording.events), recording.event_count, stream);
    if (recording.access_count)
        fwrite(recording.accesses, sizeof(*recording.accesses), recording.access_count, stream);
    duet_recording_fini(&recording);
    return 0;
}

void duet_simulation_child(const struct duet_request *request, size_t policy, size_t rep,
                           FILE *stream, duet_task_counter *done)
{
    struct duet_config config = request->config;
    struct duet_runtime *runtime = NULL;
    struct head head = {.run = {.seed = request->seed + rep}};
    struct watcher watcher = {.done = done, .parent = getppid()};

    head.recorded = request->records == DUET_RECORDS_FIRST ? rep == 0 : request->records != 0;
    config.policy = request->policies[policy];
    config.seed = head.run.seed;
    config.record = head.recorded != 0;
    config.record_accesses = request->records == DUET_RECORDS_ACCESSES;
    head.error = duet__open_with(&runtime, &config, request->platform, &head.message);
    if (!head.error) {
        watcher.runtime = runtime;
        g_thread_unref(g_thread_new("progress", watch, &watcher));
        head.error = run_workload(request, runtime, &head);
    }
    if (!head.error)
        head.error = put_run(stream, request, runtime, &head);
    if (head.error) {
        if (!head.message.text[0])
            duet_fail(&head.message, (int)head.error, "%s", duet_strerror((int)head.error));
        fwrite(&head, sizeof(head), 1, stream);
    }
    /* the process ends here: nothing is gained by tidying up what the system takes back */
    fflush(stream);
}

/* ------------------------------------------------------------------------------------------- */
/* In the parent                                                                                */

/* An array of `count` elements from the file; NULL: the file is not as long as it says. */
static void *read_array(FILE *stream, uint64_t count, size_t bytes)
{
    void *array = count < SIZE_MAX / bytes ? malloc((count + 1) * bytes) : NULL;

    if (array && fread(array, bytes, count, stream) == count)
        return array;
    free(array);
    return NULL;
}

static bool read_recording(FILE *stream, const struct head *head,
                           const struct duet_machine *machine, struct duet_recording *out)
{
    char(*names)[DUET_NAME_MAX] = read_array(stream, head->kernel_count, DUET_NAME_MAX);
    const char **pointers = g_new0(const char *, head->kernel_count + 1);

    for (size_t i = 0; names && i < head->kernel_count; i++)
        pointers[i] = names[i];
    *out = (struct duet_recording){
        .machine = calloc(1, sizeof(*out->machine)),
        .event_count = head->event_count,
        .kernels = names ? duet_recording_names(pointers, head->kernel_count) : NULL,
        .kernel_count = head->kernel_count,
        .makespan_s = head->run.stats.makespan_s,
        .access_count = head->access_count,
    };
    g_free(pointers);
    free(names);
    if (!out->kernels || !out->machine || duet_machine_copy(out->machine, machine))
        return false;
    out->events = read_array(stream, head->event_count, sizeof(*out->events));
    if (out->events && head->access_count)
        out->accesses = read_array(stream, head->access_count, sizeof(*out->accesses));
    return out->events && (out->accesses || !head->access_count);
}

int duet_simulation_read(const struct duet_request *request, struct duet_run *run, FILE *stream,
                         struct duet_message *message)
{
    struct head head;

    rewind(stream);
    if (fread(&head, sizeof(head), 1, stream) != 1)
        return duet_fail(message, DUET_EIO, "it ended without a result");
    if (head.error)
        return duet_fail(message, (int)head.error, "%s", head.message.text);
    *run = head.run;
    if (head.recorded && !read_recording(stream, &head, &request->machine, &run->recording)) {
        duet_recording_fini(&run->recording);
        return duet_fail(message, DUET_EIO, "it left only a part of its outcome: is /tmp full?");
    }
    return 0;
}
