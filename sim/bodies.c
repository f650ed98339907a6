/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that wait for their children. Their functions really run, each on a stack of its own, which
 * is left at a wait, and gone on with when the core says RESUME. They take no simulated time by
 * themselves: a part of the task's time passes before its function begins and after each wait,
 * before it goes on, as an event of its own like a kernel's; what is left passes when it has
 * returned. How a task's time is spread over its waits is not known: it is half of what is left
 * each time.
 */
#include <stdlib.h>

#include "sim/coroutine.h"
#include "sim/internal.h"

enum body_state {
    BODY_GOES_ON, /* its function, when the part of its time at hand has passed */
    BODY_PAUSES,  /* it waits then */
    BODY_RETURNS, /* its function has returned, and it waits when all its time has passed */
    BODY_ENDS,    /* its function has returned, and its children have ended */
};

struct body {
    struct body *below; /* begun before on the same worker */
    struct sim *sim;
    struct duet__engine_command command;
    struct coroutine *coroutine;
    enum body_state state;
    double left;              /* part of its time that is to pass */
    double start_s, before_s; /* since when it runs, and how long it did before its last wait */
    bool runs;                /* its last part has followed on another */
    int status;
    struct duet_message message;
};

/* ------------------------------------------------------------------------------------------- */
/* Parts                                                                                        */

/* A part of the task's time is to pass. */
static void pass(struct sim *sim, struct body *body, double part)
{
    body->left -= part;
    duet__sim_kernel(sim, &body->command, part)->body = body;
}

/* It has passed: since when the task has been running. */
static struct duet__completion report_of(struct body *body, const struct kernel *kernel)
{
    if (!body->runs)
        body->start_s = kernel->start_s;
    body->runs = true;
    return (struct duet__completion){.start_s = body->start_s,
                                     .end_s = kernel->end_s,
                                     .before_s = body->before_s};
}

static void run(void *argument)
{
    struct body *body = argument;
    body->status =
        duet__body_run(body->sim->core, body->command.worker, body->command.task, &body->message);
    body->state = BODY_ENDS;
}

static void come_to_wait(struct sim *sim, struct body *body, const struct duet__completion *report)
{
    body->runs = false;
    body->before_s += report->end_s - report->start_s;
    duet__pause(sim->core, body->command.worker, report, false);
    duet__sim_wake(sim, body->command.worker);
}

static void end(struct sim *sim, struct body *body, struct duet__completion *report)
{
    const struct duet__engine_command command = body->command;
    struct duet__ops ops = {0};
    sim->workers[command.worker].body = body->below;
    report->status = body->status;
    report->why = body->message.text;
    sim->asked = (int)command.worker;
    duet__done(sim->core, &command, sim->cluster->now, report, &ops);
    sim->asked = DUET_OUTSIDE;
    duet__sim_charge(sim, command.worker, &ops);
    duet__sim_wake(sim, command.worker);
    duet__coroutine_free(&sim->stacks, body->coroutine);
    free(body);
}

/* ------------------------------------------------------------------------------------------- */
/* What the engine does                                                                         */

void duet__body_begin(struct sim *sim, const struct duet__engine_command *command)
{
    struct sim_worker *worker = &sim->workers[command->worker];
    struct body *body = calloc(1, sizeof *body);
    if (body)
        body->coroutine = duet__coroutine_new(&sim->stacks, run, body);
    if (!body || !body->coroutine) {
        const struct duet__completion report = {
            .start_s = sim->cluster->now,
            .end_s = sim->cluster->now,
            .status = DUET_ENOMEM,
            .why = "no memory left for the stack of another task that waits",
        };
        struct duet__ops ops = {0};
        free(body);
        sim->asked = (int)command->worker;
        duet__done(sim->core, command, sim->cluster->now, &report, &ops);
        sim->asked = DUET_OUTSIDE;
        duet__sim_charge(sim, command->worker, &ops);
        duet__sim_wake(sim, command->worker);
        return;
    }
    body->sim = sim;
    body->command = *command;
    body->below = worker->body;
    body->left = 1;
    worker->body = body;
    pass(sim, body, body->left / 2);
}

void duet__body_resume(struct sim *sim, unsigned worker)
{
    struct body *body = sim->workers[worker].body;
    body->state = BODY_GOES_ON;
    pass(sim, body, body->left / 2);
}

void duet__body_passed(struct sim *sim, struct kernel *kernel)
{
    struct body *body = kernel->body;
    struct duet__completion report = report_of(body, kernel);
    if (body->state == BODY_GOES_ON) {
        sim->asked = (int)body->command.worker;
        duet__coroutine_resume(body->coroutine);
        sim->asked = DUET_OUTSIDE;
    }
    bool returned = body->state == BODY_RETURNS || body->state == BODY_ENDS;
    if (returned && body->left > 0)
        pass(sim, body, body->left);
    else if (body->state == BODY_ENDS)
        end(sim, body, &report);
    else
        come_to_wait(sim, body, &report);
}

void duet__sim_await(void *engine, bool last)
{
    struct sim *sim = engine;
    struct body *body = sim->workers[sim->asked].body;
    body->state = last ? BODY_RETURNS : BODY_PAUSES;
    duet__coroutine_pause(body->coroutine);
}

void duet__bodies_fini(struct sim *sim)
{
    for (unsigned w = 0; sim->workers && w < sim->machine.worker_count; w++) {
        while (sim->workers[w].body) {
            struct body *body = sim->workers[w].body;
            sim->workers[w].body = body->below;
            duet__coroutine_free(&sim->stacks, body->coroutine);
            free(body);
        }
    }
    duet__coroutines_fini(&sim->stacks);
}
