/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that wait for their children. Their functions really run, each on a stack of its own, which
 * is left at a wait and resumed when the core says RESUME. Functions take no simulated time by
 * themselves: a part of the task's time passes before its function begins and after each wait,
 * before it continues, as an event of its own like a kernel's; the rest passes when it has
 * returned. The distribution of a task's time over its waits is not known: half of the rest is
 * taken each time.
 */
#include <stdlib.h>

#include "sim/internal.h"

enum body_state {
    BODY_GOES_ON, /* its function continues when the current part of its time has passed */
    BODY_PAUSES,  /* its function waits then */
    BODY_RETURNS, /* its function has returned; it waits when all its time has passed */
    BODY_ENDS,    /* its function has returned, and its children have ended */
};

struct body {
    struct body *below; /* task begun before on the same worker */
    struct sim *sim;
    struct duet__engine_command command;
    struct coroutine *coroutine;
    enum body_state state;
    double left;              /* fraction of its time that is still to pass */
    double start_s, before_s; /* date since when it runs, and its running time before its last
                                 wait */
    bool runs;                /* the last part of the task followed on another without a wait */
    int status;
    struct duet_message message;
};

/* ------------------------------------------------------------------------------------------- */
/* Parts                                                                                        */

/* Lets a part of the task's time pass. */
static void pass_part(struct sim *sim, struct body *body, double part)
{
    body->left -= part;
    duet__sim_kernel(sim, &body->command, part)->body = body;
}

/* Reports a part that has passed, with the date since when the task has been running. */
static struct duet__completion report_of(struct body *body, const struct kernel *kernel)
{
    if (!body->runs)
        body->start_s = kernel->start_s;
    body->runs = true;
    return (struct duet__completion){.start_s = body->start_s,
                                     .end_s = kernel->end_s,
                                     .before_s = body->before_s};
}

static void run_body(void *argument)
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

static void end_body(struct sim *sim, struct body *body, struct duet__completion *report)
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
/* Functions of the engine */

void duet__body_begin(struct sim *sim, const struct duet__engine_command *command)
{
    struct sim_worker *worker = &sim->workers[command->worker];
    struct body *body = calloc(1, sizeof *body);
    if (body)
        body->coroutine = duet__coroutine_new(&sim->stacks, run_body, body);
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
    pass_part(sim, body, body->left / 2);
}

void duet__body_resume(struct sim *sim, unsigned worker)
{
    struct body *body = sim->workers[worker].body;
    body->state = BODY_GOES_ON;
    pass_part(sim, body, body->left / 2);
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
        pass_part(sim, body, body->left);
    else if (body->state == BODY_ENDS)
        end_body(sim, body, &report);
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
