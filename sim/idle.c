/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Idle threads: they sleep after a while, and take time to wake up and to notice completions of a
 * device. Also the first CPU worker, which is run by the application's own thread: it works while
 * the application waits.
 */
#include "sim/internal.h"

void duet__idle_init(struct sim *sim)
{
    const struct duet_costs *costs = &sim->machine.costs;
    bool wake_ups = sim->options.effects & DUET__EFFECT_WAKE_UPS;
    sim->notice_s = wake_ups ? costs->event_s : 0;
    sim->wake_s = wake_ups ? costs->wake_s : 0;
    sim->first_waits = (sim->options.effects & DUET__EFFECT_START) && sim->machine.first_waits &&
                       sim->machine.workers[0].node == DUET_HOST;
    sim->rests = sim->first_waits || sim->wake_s > 0;
    sim->jitter = sim->options.noise || sim->options.jitter;
    sim->jitter_state = duet_random_stream(sim->options.seed ^ UINT64_C(0x6a6974746572), 0);
}

/* Returns a latency with this mean; a drawn one is within a tenth of it. */
static double draw_latency(struct sim *sim, double mean_s)
{
    return sim->jitter ? mean_s * (0.9 + 0.2 * duet_random_unit(&sim->jitter_state)) : mean_s;
}

double duet__idle_notice_s(struct sim *sim)
{
    return sim->cluster->now + draw_latency(sim, sim->notice_s);
}

/* ------------------------------------------------------------------------------------------- */
/* The first worker                                                                             */

/*
 * True if the application waits at this date. It does once everything that it submitted before is
 * entered, which has taken its time. It no longer waits once its condition holds; on nodes other
 * than the one being waited for, the condition is not tested.
 */
static bool application_waits(const struct sim *sim)
{
    const struct cluster *cluster = sim->cluster;
    return cluster->reached && sim->ring_count == 0 && cluster->now >= sim->submit_s &&
           (cluster->waiter != sim || !cluster->reached(cluster->reached_arg));
}

/* Adds an event at the date from which on the application waits, once that date is known. */
void duet__first_date(struct sim *sim)
{
    if (!sim->first_waits || sim->first_dated || sim->ring_count || !sim->cluster->reached)
        return;
    sim->first_dated = true;
    duet__sim_event(sim, sim->submit_s > sim->cluster->now ? sim->submit_s : sim->cluster->now,
                    EVENT_WAIT, 0, NULL);
}

/*
 * Lets the wait begin again: its condition held when the first worker was called, and an expansion
 * at the same date took it away, as children fill the window again.
 */
void duet__first_again(struct sim *sim)
{
    if (sim->first_called)
        sim->first_dated = false;
}

/* Handles that event: the application's thread asks for work if it was called meanwhile. */
void duet__first_open(struct sim *sim)
{
    if (!application_waits(sim))
        return; /* the event of a wait that is over */
    sim->workers[0].idle = false;
    if (sim->first_called)
        duet__sim_wake(sim, 0);
    sim->first_called = false;
}

static bool at_work(const struct sim *sim, unsigned worker)
{
    unsigned slots = duet_worker_slots(&sim->machine.workers[worker]);
    for (unsigned i = 0; i < slots; i++)
        if (sim->workers[worker].kernels[i].used)
            return true;
    return false;
}

/* True if the application's thread runs a kernel or is within a task: its wait does not end before
   that. */
bool duet__first_busy(const struct sim *sim)
{
    return sim->first_waits && (sim->workers[0].body || at_work(sim, 0));
}

/* ------------------------------------------------------------------------------------------- */
/* Sleep                                                                                        */

/* True if this worker may be asked now. Otherwise it will be woken when it may. */
bool duet__idle_may_ask(struct sim *sim, unsigned worker)
{
    struct sim_worker *self = &sim->workers[worker];
    if (worker == 0 && sim->first_waits && !self->body && !application_waits(sim)) {
        sim->first_called = true;
        return false;
    }
    if (self->waking)
        return false;
    if (!self->idle || !(sim->wake_s > 0) ||
        sim->cluster->now - self->idle_s <= sim->machine.costs.spin_s)
        return true;
    self->waking = true;
    /* several threads are woken one after another: the first to wake is served first */
    if (sim->woken_s < sim->cluster->now)
        sim->woken_s = sim->cluster->now;
    sim->woken_s += draw_latency(sim, sim->wake_s);
    duet__sim_event(sim, sim->woken_s, EVENT_AWAKE, worker, NULL);
    return false;
}

/* Handles the event that a worker's thread has woken up. */
void duet__idle_awake(struct sim *sim, unsigned worker)
{
    sim->workers[worker].waking = sim->workers[worker].idle = false;
    duet__sim_wake(sim, worker);
}

/* Notes that a worker was asked and had nothing to do. A device's thread sleeps also while its
   device works. */
void duet__idle_rest(struct sim *sim, unsigned worker)
{
    struct sim_worker *self = &sim->workers[worker];
    if (sim->machine.workers[worker].node == DUET_HOST && at_work(sim, worker))
        return;
    self->idle = true;
    self->idle_s = self->thread_s > sim->cluster->now ? self->thread_s : sim->cluster->now;
}
