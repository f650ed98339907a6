/* SPDX-License-Identifier: Apache-2.0 */
/* One simulated run in a process of its own, and how its outcome gets back to the parent. */
#include "cli/simulate.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "validate/bounds.h"

/*
 * A file of one outcome: this, then kernel_count names of DUET_NAME_MAX bytes, then event_count
 * records. Written and read by the same program on the same machine, so the types say it all.
 */
struct head {
    int64_t error; /* enum duet_error */
    struct duet_message message;
    struct duet_run run;
    uint64_t recorded, kernel_count, event_count;
};

/* Reports the progress of a run from a thread beside it. */
struct watcher {
    const struct duet_runtime *runtime;
    duet__counter *done;
    pid_t parent;
    GMutex mutex;
    GCond changed; /* `over` is set: only so that the thread need not sleep to the end */
    /* atomic although it changes under the mutex: ThreadSanitizer cannot see into GLib's */
    atomic_bool over;
    GThread *thread;
};

static void *watch(void *argument)
{
    struct watcher *watcher = argument;

    g_mutex_lock(&watcher->mutex);
    while (!atomic_load(&watcher->over)) {
        /* nobody reads the outcome any more once the parent has died */
        if (getppid() != watcher->parent)
            _exit(EXIT_FAILURE);
        atomic_store_explicit(watcher->done, duet_tasks_done(watcher->runtime),
                              memory_order_relaxed);
        g_cond_wait_until(&watcher->changed, &watcher->mutex,
                          g_get_monotonic_time() + 50 * G_TIME_SPAN_MILLISECOND);
    }
    g_mutex_unlock(&watcher->mutex);
    return NULL;
}

static void watcher_start(struct watcher *watcher, const struct duet_runtime *runtime,
                          duet__counter *done)
{
    watcher->runtime = runtime;
    watcher->done = done;
    watcher->parent = getppid();
    g_mutex_init(&watcher->mutex);
    g_cond_init(&watcher->changed);
    watcher->thread = g_thread_try_new("progress", watch, watcher, NULL);
}

static void watcher_stop(struct watcher *watcher)
{
    g_mutex_lock(&watcher->mutex);
    atomic_store(&watcher->over, true);
    g_cond_signal(&watcher->changed);
    g_mutex_unlock(&watcher->mutex);
    if (watcher->thread)
        g_thread_join(watcher->thread);
    g_cond_clear(&watcher->changed);
    g_mutex_clear(&watcher->mutex);
}

static double wall_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Submits the workload, waits, and reads the figures. */
static int run_workload(const struct duet__simulation *simulation, struct duet_runtime *runtime,
                        duet__counter *done, void **state, struct head *head)
{
    struct watcher watcher = {0};
    struct duet_bounds bounds = {0};
    double start = wall_clock();
    int error;

    watcher_start(&watcher, runtime, done);
    error =
        simulation->job.workload->build(runtime, &simulation->job.problem, state, &head->message);
    duet__job_explain(&head->message, runtime, error);
    if (!error)
        error = duet__job_explain(&head->message, runtime, duet_wait(runtime));
    watcher_stop(&watcher);
    head->run.wall_s = wall_clock() - start;
    if (error)
        return error;
    duet_stats(runtime, &head->run.stats);
    atomic_store_explicit(done, head->run.stats.tasks, memory_order_relaxed);
    error =
        duet__job_explain(&head->message, runtime, duet_bounds(runtime, &bounds, &head->message));
    head->run.critical_path_s = bounds.critical_path_s;
    head->run.area_s = bounds.area_s;
    return error;
}

static void put_kernels(FILE *stream, const struct duet_runtime *runtime, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char name[DUET_NAME_MAX] = {0};

        g_strlcpy(name, duet_kernel_name(runtime, i), sizeof(name));
        fwrite(name, sizeof(name), 1, stream);
    }
}

/* The outcome of a run that went well; an error of its own otherwise. */
static int put_outcome(FILE *stream, const struct duet_runtime *runtime, struct head *head)
{
    struct duet_event *events = NULL;
    size_t count = 0;

    if (head->recorded) {
        int error = duet_trace_events(runtime, &events, &count);

        if (error)
            return duet__job_explain(&head->message, runtime, error);
        head->kernel_count = duet_kernel_count(runtime);
        head->event_count = count;
    }
    fwrite(head, sizeof(*head), 1, stream);
    put_kernels(stream, runtime, head->kernel_count);
    if (count)
        fwrite(events, sizeof(*events), count, stream);
    free(events);
    return 0;
}

void duet__simulation_child(const struct duet__simulation *simulation, size_t policy, size_t rep,
                            FILE *stream, duet__counter *done)
{
    struct duet_config config = simulation->job.config;
    struct duet_runtime *runtime = NULL;
    struct head head = {.run = {.seed = simulation->job.seed + rep}};
    void *state = NULL;

    head.recorded = simulation->each || (rep == 0 && duet__job_records(&simulation->job));
    config.policy = simulation->job.policies[policy];
    config.seed = head.run.seed;
    config.record = head.recorded != 0;
    head.error = duet_open(&runtime, &config, &head.message);
    if (!head.error)
        head.error = run_workload(simulation, runtime, done, &state, &head);
    if (!head.error)
        head.error = put_outcome(stream, runtime, &head);
    if (head.error) {
        if (!head.message.text[0])
            duet_fail(&head.message, (int)head.error, "%s", duet_strerror((int)head.error));
        head.kernel_count = head.event_count = 0;
        fwrite(&head, sizeof(head), 1, stream);
    }
    /* the process ends here: nothing is gained by tidying up what the system takes back */
    fflush(stream);
}

/* Points the outcome into the mapped file. false: the file is not as long as it says. */
static bool read_recording(struct duet__outcome *outcome, const struct head *head,
                           const struct duet_machine *machine)
{
    size_t names = head->kernel_count * DUET_NAME_MAX;
    const char *at = (const char *)outcome->mapping + sizeof(*head);

    if (outcome->mapped_bytes < sizeof(*head) + names ||
        (outcome->mapped_bytes - sizeof(*head) - names) / sizeof(struct duet_event) !=
            head->event_count)
        return false;
    if (!head->recorded)
        return true;
    outcome->kernels = g_new0(const char *, head->kernel_count + 1);
    for (size_t i = 0; i < head->kernel_count; i++)
        outcome->kernels[i] = at + i * DUET_NAME_MAX;
    outcome->recording = (struct duet_recording){
        .machine = machine,
        .events = (const struct duet_event *)(const void *)(at + names),
        .event_count = head->event_count,
        .kernels = outcome->kernels,
        .kernel_count = head->kernel_count,
        .makespan_s = head->run.stats.makespan_s,
    };
    return true;
}

int duet__outcome_read(struct duet__outcome *outcome, int fd, const struct duet_machine *machine,
                       struct duet_message *message)
{
    const struct head *head;
    struct stat status;

    if (fstat(fd, &status) != 0 || (size_t)status.st_size < sizeof(*head))
        return duet_fail(message, DUET_EIO, "it ended without a result");
    outcome->mapped_bytes = (size_t)status.st_size;
    outcome->mapping = mmap(NULL, outcome->mapped_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (outcome->mapping == MAP_FAILED) {
        outcome->mapping = NULL;
        return duet_fail(message, DUET_EIO, "cannot read what it left: %s", strerror(errno));
    }
    head = outcome->mapping;
    if (head->error)
        return duet_fail(message, (int)head->error, "%s", head->message.text);
    if (!read_recording(outcome, head, machine))
        return duet_fail(message, DUET_EIO, "it left only a part of its outcome: is /tmp full?");
    outcome->run = head->run;
    if (!head->recorded) {
        munmap(outcome->mapping, outcome->mapped_bytes);
        outcome->mapping = NULL;
    }
    return 0;
}

void duet__outcome_fini(struct duet__outcome *outcome)
{
    if (outcome->mapping)
        munmap(outcome->mapping, outcome->mapped_bytes);
    g_free(outcome->kernels);
    *outcome = (struct duet__outcome){0};
}
