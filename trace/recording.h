/* SPDX-License-Identifier: Apache-2.0 */
/* The records of one run: input of every drawing, export, account and fit. */
#ifndef DUET_TRACE_RECORDING_H
#define DUET_TRACE_RECORDING_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <duet/trace.h>

/*
 * Records of a run; owned, by duet__recording_fini: arrays of malloc, and names as g_strfreev frees
 * them. One that only shows arrays of others is never given to that. Zero-initialise.
 */
struct duet__recording {
    struct duet_machine *machine; /* NULL: nothing was recorded */
    struct duet_event *events;    /* sorted by start_s, as duet_trace_events gives them */
    size_t event_count;
    const char **kernels; /* names, by the index that events carry; NULL-ended where owned */
    size_t kernel_count;
    double makespan_s;                  /* makespan; a drawing's axis is at least as long */
    struct duet_trace_access *accesses; /* from duet_trace_accesses; NULL: not recorded */
    size_t access_count;
    const char **names; /* the application's, by number less 1; NULL-ended where owned */
    size_t name_count;
    struct duet_trace_mark *marks; /* from duet_trace_marks */
    size_t mark_count;
};

/* The plan that a schedule had of a recorded run. */
struct duet__run_plan {
    struct duet__recording
        tasks;       /* the run's tasks that have planned dates, where and when they
                        were planned. `events` is freed with g_free; machine and names
                        belong to the run's recording. No events: nothing was planned */
    size_t moved;    /* tasks that ran on another worker than planned */
    bool may_move;   /* true if the schedule was followed with slack */
    double late_s;   /* largest delay of a task's beginning; negative: all began early */
    uint64_t latest; /* number of that task */
};

struct duet_runtime;

/*
 * Takes the records of a runtime's tasks since duet_stats_reset, with their accesses if these are
 * wanted (and were recorded: struct duet_config). No task is in flight. Dates count from the
 * opening of the runtime. DUET_EINVAL, DUET_ENOMEM; *out is then empty.
 */
DUET_MUST_CHECK int duet__recording_take(struct duet__recording *out,
                                         const struct duet_runtime *runtime, bool accesses);

/* Moves every date by `seconds`. */
void duet__recording_shift(struct duet__recording *recording, double seconds);

/* More seconds than any run takes: what is computed of them overflows nowhere. */
#define DUET__MAKESPAN_MOST_S 1e15

/* Multiplies every date, and the makespan. */
void duet__recording_scale(struct duet__recording *recording, double factor);

void duet__recording_fini(struct duet__recording *recording); /* safe on a zeroed one, and twice */

/* Returns the index of a task's first access, or else of a later task's. */
static inline size_t duet__recording_accesses(const struct duet__recording *recording,
                                              uint64_t task)
{
    size_t low = 0, high = recording->access_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (recording->accesses[middle].task < task)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Sorts accesses as those of a recording are: by task, then as the task has declared them. */
static inline int duet__by_task(const void *left, const void *right)
{
    const struct duet_trace_access *a = left, *b = right;
    if (a->task != b->task)
        return a->task < b->task ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* True if a memory is a host's: each of several nodes has one (run.h). */
static inline bool duet__is_host(const struct duet_machine *machine, unsigned memory)
{
    const char *name = machine->nodes[memory].name;
    return !memory ||
           (*name == 'n' && !strcmp(name + 1 + strspn(name + 1, "0123456789"), ".host") &&
            !strcmp(machine->nodes[0].name, "n0.host"));
}

/* Returns the host's memory of the node that has this memory. */
static inline unsigned duet__host_of(const struct duet_machine *machine, unsigned memory)
{
    while (!duet__is_host(machine, memory))
        memory--;
    return memory;
}

static inline unsigned duet__host_count(const struct duet_machine *machine)
{
    unsigned count = 0;
    for (unsigned i = 0; i < machine->node_count; i++)
        count += duet__is_host(machine, i);
    return count;
}

/* True if a copy is a message from node to node. */
static inline bool duet__is_message(const struct duet_machine *machine,
                                    const struct duet_event *copy)
{
    return duet__is_host(machine, copy->source) && duet__is_host(machine, copy->destination) &&
           copy->source != copy->destination;
}

/* Returns the memory where an event is shown: the worker's, the device's that a copy goes to or
   comes from, or where a message arrives. */
static inline unsigned duet__shown_in(const struct duet_machine *machine,
                                      const struct duet_event *event)
{
    return duet__is_host(machine, event->destination) && !duet__is_host(machine, event->source)
               ? event->source
               : event->destination;
}

/* Returns the name of the kernel of a TASK event; "?" where the index has no name. Never NULL. */
static inline const char *duet__recording_kernel(const struct duet__recording *recording,
                                                 const struct duet_event *event)
{
    return event->kernel < recording->kernel_count ? recording->kernels[event->kernel] : "?";
}

/* Returns the application's name of that number; NULL: it has none. */
static inline const char *duet__recording_name(const struct duet__recording *recording,
                                               uint32_t number)
{
    return number && number <= recording->name_count ? recording->names[number - 1] : NULL;
}

/* ------------------------------------------------------------------------------------------- */
/* Releases: the events that released a run's kernels and copies, as the records say it */

/* Names of enum duet_release in traces, and NULL. */
extern const char *const duet__release_names[DUET_RELEASE_OUTSIDE + 2];

/* Returns the index of the event that released one; event_count: there is none. */
static inline size_t duet__released_by(const struct duet__recording *recording, size_t event)
{
    const struct duet_event *own = &recording->events[event];
    const bool known = own->released_by && own->release != DUET_RELEASE_OUTSIDE &&
                       own->released_by <= recording->event_count;
    return known ? own->released_by - 1 : recording->event_count;
}

/*
 * Returns, by event, the index of the task that ended last on its worker before it started, and 1;
 * 0: there is none, or it is a copy. For g_free. O(n log n).
 */
uint32_t *duet__queued_behind(const struct duet__recording *recording);

/*
 * Returns, by event, the index of the task or copy from which an arrow leads to it, and 1; 0: there
 * is no arrow. An arrow's origin has a lower index, and its data released the event. Copies that
 * nothing waited for have no arrow and, unless `all`, events for which the task before on their
 * worker ended later. Events are sorted by start; for g_free.
 */
uint32_t *duet__arrows_make(const struct duet__recording *recording, bool all);

/* Adds, by memory, the bytes that were copied there though the same data had been there before. */
void duet__count_again(const struct duet__recording *recording, uint64_t *again_bytes);

/*
 * Fills in what released the events of a recording that does not say it, by dates and accesses: of
 * the tasks and copies that something may have waited for, the one that ended last, which has a
 * lower index. `messages`: of records of several nodes, whose cores know all but what messages
 * waited for, and what waited for them. Data is followed by handle, not from parts to their whole.
 * Events are sorted by start. O(n log n).
 */
void duet__releases_guess(struct duet__recording *recording, bool messages);

#endif
