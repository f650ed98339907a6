/* SPDX-License-Identifier: Apache-2.0 */
/* The core's workers on a crew's threads, as the real engine has them, with kernels of any time. */
#include "bench/contention/contention.h"

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine.h"

enum { LINE = 64, ACCESSES_MAX = 3 };

static const double PAUSE_S = 20e-9, SLEEP_S = 20e-6; /* of the first pause and sleep */

/* State of a worker's thread. */
struct hand {
    _Alignas(LINE) bool in_kernel;
    double now_s;
    uint64_t ran;
};

static const struct crew *crew;
static const struct work *work;
static struct duet_runtime *core;
static struct duet_codelet *codelet;
static struct duet_handle **handles;
static struct hand hands[CREW_MAX];
static _Alignas(LINE) _Atomic(bool) noticed;
static double elapsed_s;

static void check(int error, const char *message)
{
    if (!error)
        return;
    (void)fprintf(stderr, "contention: %s: %s\n", duet_strerror(error), message);
    exit(1);
}

/* ------------------------------------------------------------------------------------------- */
/* Workers                                                                                      */

static void kernel(struct hand *self, const struct duet_task *task)
{
    unsigned depth;
    memcpy(&depth, duet__task_args(task), sizeof depth);
    self->in_kernel = true;
    if (work->kernel_s > 0) /* varied, or all workers would act at the same times */
        crew->compute(work->kernel_s * (0.9 + 0.2 * fmod((double)duet_task_id(task) * 0.618, 1)));
    for (unsigned i = 0; depth && i < 2; i++)
        engine_submit_tree(depth - 1);
    self->in_kernel = false;
    self->ran++;
}

static void look_at_clock(struct hand *self)
{
    self->now_s = fmax(self->now_s, crew->now());
}

static void run_nested(unsigned index, struct duet__ops *ops)
{
    struct hand *self = &hands[index];
    double start_s = self->now_s;
    struct duet_task *task;
    while ((task = duet__nested_next(core, index, self->now_s, ops))) {
        struct duet__completion report = {.start_s = self->now_s, .end_s = self->now_s};
        kernel(self, task);
        duet__nested_done(core, index, task, &report);
    }
    look_at_clock(self);
    duet__nested_end(core, index, start_s, self->now_s, ops);
}

static void run(unsigned index, const struct duet__engine_command *command, struct duet__ops *ops)
{
    struct hand *self = &hands[index];
    if (ops->steal_attempts)
        look_at_clock(self);
    ops->steal_attempts = 0;
    struct duet__completion report = {.start_s =
                                          fmax(self->now_s, duet__task_ready(command->task))};
    kernel(self, command->task);
    look_at_clock(self);
    report.end_s = fmax(self->now_s, report.start_s);
    duet__done(core, command, self->now_s, &report, ops);
    if (duet__nested_any(core, index))
        run_nested(index, ops);
}

/* Serves as worker `index` until the core stops, or until reached(arg), which a notice
 * announces. */
static void serve(unsigned index, bool (*reached)(void *arg), void *arg)
{
    struct duet__ops ops = {0};
    for (;;) {
        struct duet__engine_command command;
        if (reached && atomic_load_explicit(&noticed, memory_order_relaxed)) {
            atomic_store(&noticed, false);
            if (reached(arg))
                return;
        }
        duet__next(core, index, hands[index].now_s, &command, &ops);
        if (command.kind == DUET_EXIT)
            return;
        if (command.kind == DUET_RUN) {
            run(index, &command, &ops);
            continue;
        }
        if (!(reached && atomic_load(&noticed)))
            crew->rest();
        look_at_clock(&hands[index]);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Functions that the core calls */

static void null_wake(void *engine, unsigned worker)
{
    crew->call(worker);
}

static void null_notify(void *engine)
{
    atomic_store(&noticed, true);
    crew->call(0);
}

static double null_now(void *engine)
{
    return crew->now();
}

static int null_inside(void *engine)
{
    unsigned self = crew->self();
    return hands[self].in_kernel ? (int)self : DUET_OUTSIDE;
}

static void null_submitted(void *engine, struct duet_task *task)
{
    struct duet__ops ops = {0};
    int by = null_inside(engine);
    duet__link(core, task, by == DUET_OUTSIDE ? DUET_SUBMITTER : by, crew->now(), &ops);
}

static int null_wait(void *engine, bool (*reached)(void *arg), void *arg)
{
    look_at_clock(&hands[0]);
    if (!reached(arg))
        serve(0, reached, arg);
    return DUET_OK;
}

static int null_classify(void *engine, const struct duet__class *klass, uint64_t *archs,
                         struct duet_message *message)
{
    return DUET_OK;
}

static void null_destroy(void *engine)
{
}

/* No task waits. */
static void null_run_kept(void *engine)
{
}

static const struct duet__engine_ops null_ops = {
    .wake = null_wake,
    .submitted = null_submitted,
    .wait = null_wait,
    .inside = null_inside,
    .run_kept = null_run_kept,
    .notify = null_notify,
    .now = null_now,
    .classify = null_classify,
    .destroy = null_destroy,
};

static int no_kernel(const struct duet_call *call)
{
    return DUET_OK;
}

void engine_open(const struct crew *threads, const struct work *what)
{
    struct duet_machine machine;
    struct duet_message message = {""};
    const struct duet_implementation implementation = {.arch = "cpu", .run = no_kernel};
    const struct duet_codelet_desc desc = {.name = "null",
                                           .implementations = &implementation,
                                           .implementation_count = 1};
    crew = threads;
    work = what;
    check(duet_machine_init(&machine, 1, 1, work->threads, 0), "no machine");
    (void)snprintf(machine.name, DUET_NAME_MAX, "null");
    (void)snprintf(machine.archs[0].name, DUET_NAME_MAX, "core");
    (void)snprintf(machine.archs[0].backend, DUET_NAME_MAX, "cpu");
    (void)snprintf(machine.nodes[0].name, DUET_NAME_MAX, "host");
    for (unsigned w = 0; w < work->threads; w++) {
        (void)snprintf(machine.workers[w].name, DUET_NAME_MAX, "cpu%u", w);
        machine.workers[w].window = 1;
    }
    const struct duet__core_config config = {.machine = &machine,
                                             .policy = duet_policy_find(work->policy),
                                             .model = duet_model_at(0),
                                             .seed = 1,
                                             .ops = &null_ops};
    check(config.policy ? DUET_OK : DUET_EINVAL, "no such policy");
    check(duet__core_new(&core, &config, &message), message.text);
    duet_machine_fini(&machine);
    check(duet_register_codelet(core, &desc, &codelet), duet_last_message(core));
}

void engine_close(void)
{
    duet__core_free(core);
    free(handles);
    handles = NULL;
    memset(hands, 0, sizeof hands);
}

void engine_handles(size_t count)
{
    handles = calloc(count, sizeof *handles);
    check(handles ? DUET_OK : DUET_ENOMEM, "handles");
    for (size_t i = 0; i < count; i++)
        check(duet_register_vector(core, NULL, LINE, 1, &handles[i]), duet_last_message(core));
}

static void submit(const struct duet_access *accesses, size_t count, unsigned depth)
{
    const struct duet_task_desc desc = {.codelet = codelet,
                                        .accesses = accesses,
                                        .access_count = count,
                                        .args = &depth,
                                        .args_bytes = sizeof depth};
    int error = duet_submit(core, &desc);
    if (error) /* the message is behind a lock */
        check(error, duet_last_message(core));
}

void engine_submit(const size_t *numbers, size_t count)
{
    struct duet_access accesses[ACCESSES_MAX];
    for (size_t i = 0; i < count; i++)
        accesses[i] = (struct duet_access){handles[numbers[i]], i + 1 < count ? DUET_R : DUET_RW};
    submit(accesses, count, 0);
}

void engine_submit_tree(unsigned depth)
{
    submit(NULL, 0, depth);
}

void engine_wait(void)
{
    check(duet_wait(core), duet_last_message(core));
}

uint64_t engine_ran(void)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < work->threads; i++)
        sum += hands[i].ran;
    return sum;
}

/* Waits as the real engine does: a few microseconds of pauses, then sleep. */
static void wait_for_lock(unsigned tries)
{
    enum { PAUSES = 16, LONGEST = 6 };
    unsigned doublings = tries < PAUSES ? tries : tries - PAUSES;
    doublings = doublings < LONGEST ? doublings : LONGEST;
    if (tries < PAUSES)
        crew->compute(PAUSE_S * (1u << doublings));
    else
        crew->sleep(SLEEP_S * (1u << doublings));
}

/* Runs the work once to warm up and once to count; then all threads may end. */
static void body(unsigned self)
{
    if (self == 0) {
        for (int pass = 0; pass < 2; pass++) {
            work->begin(pass);
            double start_s = crew->now();
            work->submit(work);
            check(duet_wait(core), duet_last_message(core));
            elapsed_s = crew->now() - start_s;
        }
        work->begin(2);
        duet__core_stop(core);
    }
    serve(self, NULL, NULL);
}

double engine_run(void)
{
    duet__rest_by(wait_for_lock);
    crew->run(work->threads, body);
    return elapsed_s;
}
