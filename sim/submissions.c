/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The application's thread in simulated time. It submits ahead of the clock while nothing else
 * runs, so its submissions are dated and kept until the clock is there. Where no worker could take
 * the task, they are entered at the next event with their own date, which changes nothing and saves
 * an event.
 */
#include <stdlib.h>

#include "sim/internal.h"

static bool grow_ring(struct sim *sim)
{
    size_t capacity = sim->ring_capacity ? 2 * sim->ring_capacity : 64;
    struct submission *ring = malloc(capacity * sizeof *ring);
    if (!ring)
        return false;
    for (size_t i = 0; i < sim->ring_count; i++)
        ring[i] = sim->ring[(sim->ring_first + i) & (sim->ring_capacity - 1)];
    free(sim->ring);
    sim->ring = ring;
    sim->ring_first = 0;
    sim->ring_capacity = capacity;
    return true;
}

/*
 * Submits from a task that expands: on its worker's thread, as in reality, at the date of the
 * current event; the cost delays the worker's next command.
 */
static void submit_inside(struct sim *sim, struct duet_task *task)
{
    struct duet__ops ops = {.submissions = !duet__task_acquires(task)};
    duet__link(sim->core, task, sim->asked, sim->cluster->now, &ops);
    if (sim->asked >= 0)
        duet__sim_charge(sim, (unsigned)sim->asked, &ops);
}

void duet__sim_submitted(void *engine, struct duet_task *task)
{
    struct sim *sim = engine;
    if (sim->asked != DUET_OUTSIDE) {
        submit_inside(sim, task);
        return;
    }
    touch_node(sim);
    sim->first_dated = false;
    if (sim->submit_s < sim->cluster->now)
        sim->submit_s = sim->cluster->now;
    /* the thread that submits has just worked for the first worker */
    if (sim->first_waits && sim->submit_s < sim->workers[0].thread_s)
        sim->submit_s = sim->workers[0].thread_s;
    if (!duet__task_acquires(task)) /* an acquisition is no submission to pay for */
        sim->submit_s += sim->machine.costs.submit_s;
    if (sim->ring_count == sim->ring_capacity && !grow_ring(sim)) {
        duet__fail_run(sim->core, DUET_ENOMEM, "no memory left for another submission");
        return;
    }
    if (duet__task_lends(sim->core, task))
        sim->lends_to = sim->entered + sim->ring_count + 1;
    size_t at = (sim->ring_first + sim->ring_count++) & (sim->ring_capacity - 1);
    sim->ring[at] =
        (struct submission){.task = task, .date = sim->submit_s, .pushed_s = sim->pushed_s};
}

static const struct submission *first_submission(const struct sim *sim)
{
    return sim->ring_count ? &sim->ring[sim->ring_first] : NULL;
}

/* Returns the date of a submission, delayed by the pushes of the tasks before it. */
static double date_of(const struct sim *sim, const struct submission *submission)
{
    return submission->date + (sim->pushed_s - submission->pushed_s);
}

/* Returns the first submission that may grant an acquisition; NULL: there is none. */
static const struct submission *first_to_lend(struct sim *sim)
{
    for (; sim->entered + sim->lends_from < sim->lends_to; sim->lends_from++) {
        size_t at = (sim->ring_first + sim->lends_from) & (sim->ring_capacity - 1);
        if (duet__task_lends(sim->core, sim->ring[at].task))
            return &sim->ring[at];
    }
    return NULL;
}

/* Enters the first submission at its own date. */
static void enter_first(struct sim *sim)
{
    struct submission submission = sim->ring[sim->ring_first];
    sim->ring_first = (sim->ring_first + 1) & (sim->ring_capacity - 1);
    sim->ring_count--;
    sim->entered++;
    sim->lends_from -= sim->lends_from > 0;
    struct duet__ops ops = {0};
    sim->asked = DUET_SUBMITTER; /* calls from the core are inside it */
    duet__link(sim->core, submission.task, DUET_SUBMITTER, date_of(sim, &submission), &ops);
    sim->asked = DUET_OUTSIDE;
    double pushes_s = ops.pushes * sim->machine.costs.push_s;
    sim->pushed_s += pushes_s;
    sim->submit_s += pushes_s;
}

/* Enters the submissions made before the date of the current event, or at it. */
void duet__sim_submit_due(struct sim *sim, bool at_this_date)
{
    const struct submission *submission;
    while ((submission = first_submission(sim))) {
        double date = date_of(sim, submission);
        if (date > sim->cluster->now || (date == sim->cluster->now && !at_this_date))
            return;
        enter_first(sim);
        /* workers that it woke are asked before the next one of the same date, as when it is
           entered ahead */
        if (date == sim->cluster->now && duet__sim_anything_due(sim))
            return;
    }
}

bool duet__sim_anything_due(const struct sim *sim)
{
    for (unsigned i = 0; i < sim->words; i++)
        if (sim->woken[i])
            return true;
    return sim->cluster->notified;
}

/*
 * Prepares the next event. With no copy under way the next event is known, and earlier submissions
 * are entered now, up to the first one that wakes a worker. Otherwise the next submission gets an
 * event of its own if an idle worker or the application may be waiting for it, or if this node of
 * several has no other event; else the first submission does that may grant an acquisition at its
 * date.
 */
void duet__sim_submit_ahead(struct sim *sim)
{
    const struct submission *submission;
    const struct events *events = &sim->cluster->events;
    while (sim->cluster->flows == 0 && (submission = first_submission(sim)) &&
           !duet__task_lends(sim->core, submission->task) &&
           date_of(sim, submission) < duet__events_first_s(events)) {
        double date = date_of(sim, submission);
        enter_first(sim);
        if (duet__sim_anything_due(sim)) {
            duet__sim_event(sim, date, EVENT_SERVE, 0, NULL);
            return;
        }
    }
    submission = first_submission(sim);
    if (!submission)
        return;
    if (!duet__task_acquires(submission->task) && !duet__hungry(sim->core) && sim->pending)
        submission = first_to_lend(sim);
    if (submission && date_of(sim, submission) < sim->dated_s) {
        sim->dated_s = date_of(sim, submission);
        duet__sim_event(sim, sim->dated_s, EVENT_SUBMIT, 0, NULL);
    }
}
