/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Support for tests of the core: an engine that really copies and really computes, with one thread
 * for each worker, or with one thread for all in an order drawn from a seed, so that a failure can
 * be repeated. Commands are carried out and reported in every order that streams allow. Devices can
 * be lost: then their commands, and copies from them, end with DUET_ELOST.
 */
#ifndef DUET_CORE_TESTING_ENGINE_H
#define DUET_CORE_TESTING_ENGINE_H

#include <pthread.h>
#include <sched.h>

#include "core/testing.h"

enum {
    FIFOS = 3,       /* queues of a worker: kernels, copies in, copies out */
    FIFO_MAX = 4096, /* commands in flight */
};

struct engine;

/* Behaviour of an engine. */
struct engine_setting {
    struct testing_machine machine;
    const char *policy;
    const struct duet_policy *own; /* instead of that; NULL: none */
    uint64_t seed;
    bool alone; /* one thread for all workers */
    bool spin;  /* workers poll instead of parking, so that wakes order nothing */
    const char *model;
    double perturbation;
    size_t window;
    bool set_arch, keep_going, record, hold, nearest_source;
    enum duet__priorities priorities;
    bool computes;        /* data has addresses, but for what is temporary */
    unsigned losses;      /* devices that are lost, at a random command */
    unsigned lose_within; /* range of that command: the first ones of the device */
    /* a copy begins, in `data`: DUET_OK, or the status with which it fails */
    int (*copying)(void *data);
    void *data; /* the test's */
};

struct fifo {
    struct duet__engine_command commands[FIFO_MAX];
    int status[FIFO_MAX];
    unsigned first, count;
    unsigned ended; /* number of these, from the first, carried out but not reported yet */
};

struct thread {
    struct engine *engine;
    unsigned worker;
    pthread_t id;
    uint64_t rng;
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    _Atomic(bool) woken;
    bool told;               /* the core knows that the device is lost */
    bool left;               /* the core has said EXIT */
    bool resumed;            /* the core has said RESUME, which the newest of its tasks has not seen
                                yet */
    unsigned begun, lose_at; /* commands carried out, the one at which the device is lost */
    struct fifo fifos[FIFOS];
};

struct engine {
    struct duet_runtime *core;
    struct engine_setting setting;
    unsigned workers;
    struct thread *threads;
    char **memories;     /* by node; NULL for the host */
    _Atomic(bool) *gone; /* by node */
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    bool started;
    uint64_t rng; /* state of random draws, for an engine alone */
};

/* The worker whose commands or kernel this thread is at, or -1. */
static _Thread_local int engine_inside = -1;

/* The task of a device whose kernel this thread is at, or NULL. */
static _Thread_local struct duet_task *engine_kernel_of;

/* ------------------------------------------------------------------------------------------- */
/* A worker's commands */

static inline int engine_copy_piece(void *arg, const struct duet__piece *piece)
{
    (void)arg;
    bool slanted = piece->end || piece->end_step;
    for (size_t col = 0; col < piece->cols; col++) {
        size_t first = piece->first + col * piece->first_step;
        size_t end = slanted ? piece->end + col * piece->end_step : piece->column_bytes;
        memcpy((char *)piece->to + first + col * piece->to_pitch,
               (const char *)piece->from + first + col * piece->from_pitch, end - first);
    }
    return DUET_OK;
}

static inline int engine_copy(struct engine *engine, const struct duet__copy *copy)
{
    int error = engine->setting.copying ? engine->setting.copying(engine->setting.data) : DUET_OK;
    if (error)
        return error;
    if (atomic_load(&engine->gone[copy->source]))
        return DUET_ELOST;
    TESTING_MUST(!duet__copy_pieces(copy, engine->memories[copy->source],
                                    engine->memories[copy->destination], engine_copy_piece, NULL));
    /* lost meanwhile: what has been copied is of no use */
    return atomic_load(&engine->gone[copy->source]) ? DUET_ELOST : DUET_OK;
}

static inline int engine_kernel(struct engine *engine, unsigned worker, struct duet_task *task)
{
    const struct worker *at = &engine->core->workers[worker];
    const size_t count = duet__task_buffer_count(task);
    struct duet_buffer *buffers = g_new(struct duet_buffer, count);
    const struct duet_call call = {.runtime = engine->core,
                                   .args = task_args(task),
                                   .buffers = buffers,
                                   .buffer_count = count};
    TESTING_MUST(engine->core->masks[task->mask].kinds >> at->kind & 1);
    duet__laid_buffers(task, at->node, engine->memories[at->node], buffers);
    engine_kernel_of = at->node == DUET_HOST ? NULL : task;
    int status = duet__task_function(task, at->arch)(&call);
    engine_kernel_of = NULL;
    g_free(buffers);
    return status;
}

/* Runs a task that may wait, at once: its worker is given nothing else before it ends or waits. */
static inline void engine_body(struct engine *engine, struct thread *self,
                               const struct duet__engine_command *command)
{
    struct duet__ops ops = {0};
    struct duet_message message = {""};
    struct duet__completion report = {.why = message.text};
    report.status = duet__body_run(engine->core, self->worker, command->task, &message);
    duet__done(engine->core, command, 0, &report, &ops);
}

/* Carries out the first command of a queue that has not been yet. */
static inline void engine_carry_out(struct engine *engine, struct thread *self, struct fifo *fifo)
{
    unsigned i = (fifo->first + fifo->ended++) % FIFO_MAX;
    const struct duet__engine_command *command = &fifo->commands[i];
    unsigned node = engine->core->workers[self->worker].node;
    if (++self->begun == self->lose_at)
        atomic_store(&engine->gone[node], true);
    if (atomic_load(&engine->gone[node]))
        fifo->status[i] = DUET_ELOST;
    else if (command->kind == DUET_RUN)
        fifo->status[i] = engine_kernel(engine, self->worker, command->task);
    else
        fifo->status[i] = engine_copy(engine, command->copy);
}

/* The core learns, once, that the device is lost. */
static inline void engine_tell_lost(struct engine *engine, struct thread *self)
{
    struct duet__ops ops = {0};
    if (self->told)
        return;
    self->told = true;
    TESTING_MUST(!duet__worker_lost(engine->core, self->worker, 0, &ops));
}

/* A device may also be lost while nothing is in flight, and known to be before it is given more. */
static inline void engine_lose_idle(struct engine *engine, struct thread *self)
{
    if (self->told || !self->lose_at || self->begun + 1 < self->lose_at ||
        duet_random_below(&self->rng, 4))
        return;
    atomic_store(&engine->gone[engine->core->workers[self->worker].node], true);
    engine_tell_lost(engine, self);
}

/* Reports the first command of a queue, which has been carried out. */
static inline void engine_report(struct engine *engine, struct thread *self, struct fifo *fifo)
{
    struct duet__ops ops = {0};
    struct duet__engine_command command = fifo->commands[fifo->first];
    struct duet__completion report = {.end_s = 1e-6, .status = fifo->status[fifo->first]};
    fifo->first = (fifo->first + 1) % FIFO_MAX;
    fifo->count--;
    fifo->ended--;
    bool gone = atomic_load(&engine->gone[engine->core->workers[self->worker].node]);
    if (report.status == DUET_ELOST && gone)
        engine_tell_lost(engine, self);
    duet__done(engine->core, &command, 0, &report, &ops);
}

/* Carries out or reports one command of one of the queues, whichever. */
static inline void engine_go_on(struct engine *engine, struct thread *self)
{
    unsigned f = duet_random_below(&self->rng, FIFOS);
    while (!self->fifos[f].count)
        f = (f + 1) % FIFOS;
    struct fifo *fifo = &self->fifos[f];
    for (unsigned i = duet_random_below(&self->rng, 4) ? 0 : 50; i > 0; i--)
        atomic_signal_fence(memory_order_seq_cst);
    if (!engine->setting.alone && !duet_random_below(&self->rng, 8))
        (void)sched_yield();
    bool waits = fifo->ended < fifo->count && duet_random_below(&self->rng, 4) == 0;
    if (fifo->ended == 0 || waits)
        engine_carry_out(engine, self, fifo);
    else
        engine_report(engine, self, fifo);
}

static inline unsigned engine_in_flight(const struct thread *self)
{
    return self->fifos[0].count + self->fifos[1].count + self->fifos[2].count;
}

/* Asks until the core says IDLE or EXIT. false: EXIT. */
static inline bool engine_ask(struct engine *engine, struct thread *self)
{
    engine_lose_idle(engine, self);
    for (;;) {
        struct duet__ops ops = {0};
        struct duet__engine_command command;
        duet__next(engine->core, self->worker, 0, &command, &ops);
        if (command.kind == DUET_IDLE)
            return true;
        if (command.kind == DUET_EXIT) {
            /* the core promises it only once nothing is in flight */
            TESTING_MUST(engine_in_flight(self) == 0);
            return false;
        }
        if (command.kind == DUET_RESUME) {
            self->resumed = true;
            return true;
        }
        if (command.kind == DUET_RUN && duet__task_waits(command.task)) {
            engine_body(engine, self, &command);
            continue;
        }
        unsigned f = command.kind == DUET_RUN ? 0 : 1 + (command.stream == DUET_STREAM_OUT);
        struct fifo *fifo = &self->fifos[f];
        TESTING_MUST(fifo->count < FIFO_MAX);
        fifo->commands[(fifo->first + fifo->count++) % FIFO_MAX] = command;
        /* some of the time, work starts before everything was asked for */
        if (!duet_random_below(&self->rng, 4))
            engine_go_on(engine, self);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* A thread a worker                                                                            */

static inline void engine_park(struct engine *engine, struct thread *self)
{
    if (engine->setting.spin) {
        atomic_store_explicit(&self->woken, false, memory_order_relaxed);
        (void)sched_yield();
        return;
    }
    (void)pthread_mutex_lock(&self->mutex);
    while (!atomic_load(&self->woken))
        (void)pthread_cond_wait(&self->condition, &self->mutex);
    (void)pthread_mutex_unlock(&self->mutex);
}

static inline void *engine_work(void *argument)
{
    struct thread *self = argument;
    struct engine *engine = self->engine;
    engine_inside = (int)self->worker;
    for (;;) {
        atomic_store(&self->woken, false);
        if (!engine_ask(engine, self))
            return NULL;
        if (engine_in_flight(self))
            engine_go_on(engine, self);
        else
            engine_park(engine, self);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* One thread for all workers */

/* Does one step of one of the workers that have something to do. False: none has. */
static inline bool engine_step(struct engine *engine)
{
    unsigned first = duet_random_below(&engine->rng, engine->workers);
    for (unsigned i = 0; i < engine->workers; i++) {
        struct thread *self = &engine->threads[(first + i) % engine->workers];
        bool flight = engine_in_flight(self) > 0;
        if (self->left || (!flight && !atomic_load(&self->woken)))
            continue;
        engine_inside = (int)self->worker;
        if (atomic_load(&self->woken) && (!flight || duet_random_below(&engine->rng, 2))) {
            atomic_store(&self->woken, false);
            self->left = !engine_ask(engine, self);
        } else {
            engine_go_on(engine, self);
            atomic_store(&self->woken, true);
        }
        engine_inside = -1;
        return true;
    }
    return false;
}

/* ------------------------------------------------------------------------------------------- */
/* Functions of the engine */

static inline void engine_wake(void *self, unsigned worker)
{
    struct engine *engine = self;
    struct thread *thread = &engine->threads[worker];
    if (atomic_exchange(&thread->woken, true) || engine->setting.spin || engine->setting.alone)
        return;
    (void)pthread_mutex_lock(&thread->mutex);
    (void)pthread_cond_signal(&thread->condition);
    (void)pthread_mutex_unlock(&thread->mutex);
}

static inline void engine_submitted(void *self, struct duet_task *task)
{
    struct engine *engine = self;
    struct duet__ops ops = {0};
    int by = engine_inside >= 0 ? engine_inside : DUET_SUBMITTER;
    if (engine_kernel_of) {
        duet__link_after(engine_kernel_of, task);
        return;
    }
    duet__link(engine->core, task, by, 0, &ops);
    /* alone, work may begin before the next task is submitted */
    if (engine->setting.alone && by == DUET_SUBMITTER)
        for (unsigned i = duet_random_below(&engine->rng, 8); i > 0; i--)
            (void)engine_step(engine);
}

static inline int engine_wait(void *self, bool (*reached)(void *arg), void *arg)
{
    struct engine *engine = self;
    TESTING_MUST(engine_inside < 0);
    while (engine->setting.alone && !reached(arg))
        if (!engine_step(engine))
            return DUET_ESTUCK;
    (void)pthread_mutex_lock(&engine->mutex);
    while (!reached(arg))
        (void)pthread_cond_wait(&engine->condition, &engine->mutex);
    (void)pthread_mutex_unlock(&engine->mutex);
    return DUET_OK;
}

static inline int engine_is_inside(void *self)
{
    /* whose kernel it is, is not said: what that submits is kept by nobody */
    return engine_inside >= 0 ? DUET_SUBMITTER : DUET_OUTSIDE;
}

static inline void engine_notify(void *self)
{
    struct engine *engine = self;
    (void)pthread_mutex_lock(&engine->mutex);
    (void)pthread_cond_broadcast(&engine->condition);
    (void)pthread_mutex_unlock(&engine->mutex);
}

static inline double engine_now(void *self)
{
    return 0;
}

static inline int engine_classify(void *self, const struct duet__class *klass, uint64_t *archs,
                                  struct duet_message *message)
{
    return DUET_OK;
}

static inline void engine_destroy(void *self)
{
    struct engine *engine = self;
    duet__core_stop(engine->core);
    while (engine->setting.alone && engine->started && engine_step(engine))
        ;
    for (unsigned w = 0; w < engine->workers && engine->started; w++) {
        if (!engine->setting.alone)
            (void)pthread_join(engine->threads[w].id, NULL);
        else
            TESTING_MUST(engine->threads[w].left);
    }
    for (unsigned w = 0; w < engine->workers; w++) {
        (void)pthread_cond_destroy(&engine->threads[w].condition);
        (void)pthread_mutex_destroy(&engine->threads[w].mutex);
    }
    for (unsigned n = 0; n < engine->core->machine.node_count; n++)
        g_free(engine->memories[n]);
    (void)pthread_cond_destroy(&engine->condition);
    (void)pthread_mutex_destroy(&engine->mutex);
    g_free(engine->memories);
    g_free(engine->gone);
    g_free(engine->threads);
    g_free(engine);
}

/*
 * Continues with other work of the worker, on top of its task, until that is resumed. One thread
 * for all workers cannot: it would go on with a task of one worker only when another's above it has
 * ended.
 */
static inline void engine_await(void *self, bool last)
{
    struct engine *engine = self;
    struct thread *thread = &engine->threads[engine_inside];
    const struct duet__completion report = {0};
    TESTING_MUST(!engine->setting.alone);
    duet__pause(engine->core, thread->worker, &report, false);
    atomic_store(&thread->woken, true);
    while (!thread->resumed) {
        atomic_store(&thread->woken, false);
        TESTING_MUST(engine_ask(engine, thread));
        if (!thread->resumed && engine_in_flight(thread))
            engine_go_on(engine, thread);
        else if (!thread->resumed)
            engine_park(engine, thread);
    }
    thread->resumed = false;
}

static const struct duet__engine_ops engine_ops = {
    .wake = engine_wake,
    .submitted = engine_submitted,
    .wait = engine_wait,
    .inside = engine_is_inside,
    .await = engine_await,
    .notify = engine_notify,
    .now = engine_now,
    .classify = engine_classify,
    .destroy = engine_destroy,
};

/* ------------------------------------------------------------------------------------------- */
/* Making                                                                                       */

/* Draws which devices are lost and when. */
static inline void engine_draw_losses(struct engine *engine)
{
    const struct engine_setting *setting = &engine->setting;
    uint64_t rng = duet_random_stream(setting->seed, 999);
    unsigned first = setting->machine.cpus, gpus = setting->machine.gpus;
    for (unsigned i = 0; gpus && i < setting->losses; i++) {
        struct thread *thread = &engine->threads[first + duet_random_below(&rng, gpus)];
        thread->lose_at = 1 + duet_random_below(&rng, setting->lose_within);
    }
}

static inline void engine_make_thread(struct engine *engine, unsigned w)
{
    struct thread *thread = &engine->threads[w];
    thread->engine = engine;
    thread->worker = w;
    thread->rng = duet_random_stream(engine->setting.seed, 1000 + w);
    atomic_init(&thread->woken, true);
    (void)pthread_mutex_init(&thread->mutex, NULL);
    (void)pthread_cond_init(&thread->condition, NULL);
}

/*
 * Some routes are slower than others, some from the host far slower, so that copies come from
 * anywhere, also from where the data is not yet.
 */
static inline void engine_draw_routes(struct duet_machine *machine, uint64_t seed)
{
    uint64_t rng = duet_random_stream(seed, 997);
    for (unsigned i = 0; i < machine->node_count * machine->node_count; i++)
        machine->routes[i].latency_s *=
            1 + (i < machine->node_count ? 20 : 1) * duet_random_below(&rng, 3);
}

/* Each of the policy's parameters is what it is at first, the least or the most it may be. */
static inline void engine_draw_parameters(struct duet__core_config *config)
{
    uint64_t rng = duet_random_stream(config->seed, 996);
    config->chosen = true;
    for (unsigned i = 0; i < duet__parameter_count(config->policy); i++) {
        const struct duet_policy_parameter *one = &config->policy->parameters[i];
        const double values[] = {one->initial, one->initial, one->least, one->most};
        config->parameters[i] = values[duet_random_below(&rng, 4)];
    }
}

/* A core on a new engine, both freed by duet__core_free, or duet_close. */
static inline struct engine *engine_new(const struct engine_setting *setting)
{
    struct engine *engine = g_new0(struct engine, 1);
    struct duet_message message = {""};
    struct duet_machine machine;
    testing_machine(&machine, &setting->machine);
    engine_draw_routes(&machine, setting->seed);
    engine->setting = *setting;
    engine->workers = machine.worker_count;
    engine->threads = g_new0(struct thread, engine->workers);
    engine->memories = g_new0(char *, machine.node_count);
    engine->gone = g_malloc0(machine.node_count * sizeof *engine->gone);
    engine->rng = duet_random_stream(setting->seed, 998);
    (void)pthread_mutex_init(&engine->mutex, NULL);
    (void)pthread_cond_init(&engine->condition, NULL);
    for (unsigned w = 0; w < engine->workers; w++)
        engine_make_thread(engine, w);
    engine_draw_losses(engine);
    struct duet__core_config config = {.machine = &machine,
                                       .policy = setting->own ? setting->own
                                                              : duet_policy_find(setting->policy),
                                       .model = duet_model_find(setting->model),
                                       .perturbation = setting->perturbation,
                                       .seed = setting->seed,
                                       .window = setting->window,
                                       .set_arch = setting->set_arch,
                                       .computes = setting->computes,
                                       .keep_going = setting->keep_going,
                                       .hold = setting->hold,
                                       .nearest_source = setting->nearest_source,
                                       .priorities = setting->priorities,
                                       .record = setting->record,
                                       .ops = &engine_ops,
                                       .engine = engine};
    engine_draw_parameters(&config);
    int error = duet__core_new(&engine->core, &config, &message);
    if (error)
        g_error("%s", message.text);
    duet_machine_fini(&machine);
    return engine;
}

/* Threads that take turns on a core wait for each other. */
static inline void engine_rest(unsigned tries)
{
    if (tries % 16 == 15)
        (void)sched_yield();
}

static inline void engine_start(struct engine *engine)
{
    engine->started = true;
    duet__rest_by(engine_rest);
    for (unsigned n = 1; n < engine->core->machine.node_count; n++)
        engine->memories[n] = g_malloc0(engine->core->machine.nodes[n].capacity_bytes);
    for (unsigned w = 0; w < engine->workers && !engine->setting.alone; w++) {
        struct thread *thread = &engine->threads[w];
        TESTING_MUST(!pthread_create(&thread->id, NULL, engine_work, thread));
    }
}

#endif
