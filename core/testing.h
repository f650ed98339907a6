/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Support for tests of the core: machines made by a few numbers, and an engine that does nothing by
 * itself, so that a test asks duet__next and reports duet__done by hand, in any order.
 */
#ifndef DUET_CORE_TESTING_H
#define DUET_CORE_TESTING_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "core/internal.h"

/* Aborts unless a condition of the support itself holds; tests have their own assertions. */
#define TESTING_MUST(condition)                                                                    \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);    \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* A machine of `cpus` cores and `gpus` devices. */
struct testing_machine {
    unsigned cpus, gpus;
    unsigned gpu_archs;      /* kinds of devices, used in turn; 0: 1 */
    uint64_t capacity_bytes; /* capacity of each device; 0: 1 MiB */
    bool no_peer;
    unsigned window;       /* window of devices; 0: 2 */
    unsigned window_short; /* likewise; 0: as window */
};

static inline void testing_name(char *to, const char *what, unsigned number)
{
    (void)snprintf(to, DUET_NAME_MAX, "%s%u", what, number);
}

/* 1 us and 1 GB/s to and from the host, the same between devices. */
static inline void testing_routes(struct duet_machine *machine, bool no_peer)
{
    for (unsigned s = 0; s < machine->node_count; s++) {
        for (unsigned d = 0; d < machine->node_count; d++) {
            struct duet_route *route = &machine->routes[s * machine->node_count + d];
            route->direct = s != d && (s == DUET_HOST || d == DUET_HOST || !no_peer);
            route->count = 1;
            route->links[0] = 0;
            route->latency_s = 1e-6;
            route->bandwidth_Bps = 1e9;
        }
    }
}

/*
 * Architectures "core" (backend cpu), "card0", "card1" ... (backend cuda); nodes host, gpu0, ...;
 * workers cpu0, ..., gpu0, ... The caller frees it with duet_machine_fini.
 */
static inline void testing_machine(struct duet_machine *machine, const struct testing_machine *make)
{
    unsigned gpu_archs = make->gpu_archs ? make->gpu_archs : 1;
    TESTING_MUST(
        !duet_machine_init(machine, 1 + gpu_archs, 1 + make->gpus, make->cpus + make->gpus, 1));
    (void)snprintf(machine->name, DUET_NAME_MAX, "testing");
    for (unsigned a = 0; a <= gpu_archs; a++) {
        if (a)
            testing_name(machine->archs[a].name, "card", a - 1);
        else
            (void)snprintf(machine->archs[a].name, DUET_NAME_MAX, "core");
        (void)snprintf(machine->archs[a].backend, DUET_NAME_MAX, a ? "cuda" : "cpu");
    }
    (void)snprintf(machine->nodes[0].name, DUET_NAME_MAX, "host");
    for (unsigned w = 0; w < machine->worker_count; w++) {
        struct duet_worker *worker = &machine->workers[w];
        bool device = w >= make->cpus;
        testing_name(worker->name, device ? "gpu" : "cpu", device ? w - make->cpus : w);
        worker->arch = device ? 1 + (w - make->cpus) % gpu_archs : 0;
        worker->node = device ? 1 + w - make->cpus : DUET_HOST;
        worker->window = !device ? 1 : make->window ? make->window : 2;
        worker->window_short = device ? make->window_short : 0;
        if (device) {
            struct duet_node *node = &machine->nodes[worker->node];
            testing_name(node->name, "gpu", w - make->cpus);
            node->capacity_bytes = make->capacity_bytes ? make->capacity_bytes : 1 << 20;
        }
    }
    (void)snprintf(machine->links[0].name, DUET_NAME_MAX, "bus");
    machine->links[0].bandwidth_Bps = 1e9;
    testing_routes(machine, make->no_peer);
}

/* ------------------------------------------------------------------------------------------- */
/* The passive engine                                                                           */

enum { TESTING_WORKERS = 256 };

struct testing {
    struct duet_runtime *core;
    unsigned workers, cpus;
    double now;
    bool woken[TESTING_WORKERS];
    unsigned wakes, notified, destroyed;
    unsigned in_kernel;     /* 1 + the worker whose kernel submits; 0: the application does */
    bool hold;              /* created tasks stay in `held` instead of being linked */
    struct duet_task *held; /* the last of them */
    uint64_t untimed;       /* architectures for which classify knows no time */
    int refusal;            /* what classify returns */
    int pin_error;          /* what pin and unpin return */
    unsigned pins, unpins;  /* calls of these, and the last arguments */
    void *pinned;
    size_t pinned_bytes;
    unsigned forgotten;                   /* handles that the engine was told to forget */
    uint64_t last_forgotten;              /* the number of the last one */
    struct duet__ops ops;                 /* operations made so far */
    struct duet_codelet *any, *cpu, *gpu; /* kernels for everything, CPUs, devices; NULL: none */
};

static inline void testing_wake(void *engine, unsigned worker)
{
    struct testing *t = engine;
    t->woken[worker] = true;
    t->wakes++;
}

static inline void testing_submitted(void *engine, struct duet_task *task)
{
    struct testing *t = engine;
    if (t->hold)
        t->held = task;
    else
        duet__link(t->core, task, t->in_kernel ? (int)t->in_kernel - 1 : DUET_SUBMITTER, t->now,
                   &t->ops);
}

static inline void testing_submitted_all(void *engine, struct duet_task *first)
{
    struct testing *t = engine;
    if (t->hold)
        t->held = first;
    else
        duet__link_all(t->core, first, t->now, &t->ops);
}

static inline int testing_inside(void *engine)
{
    const struct testing *t = engine;
    return t->in_kernel ? (int)t->in_kernel - 1 : DUET_OUTSIDE;
}

static inline struct duet__engine_command testing_next(struct testing *t, unsigned worker)
{
    struct duet__engine_command command;
    t->woken[worker] = false;
    duet__next(t->core, worker, t->now, &command, &t->ops);
    return command;
}

/* The command took `seconds`, and that is where the clock is now. */
static inline void testing_done(struct testing *t, const struct duet__engine_command *command,
                                double seconds, int status)
{
    struct duet__completion report = {.start_s = t->now,
                                      .end_s = t->now + seconds,
                                      .status = status};
    t->now += seconds;
    duet__done(t->core, command, t->now, &report, &t->ops);
}

/* Copies that were made, in order. */
struct testing_log {
    unsigned count;
    struct duet__copy copies[256];
};

/* Lets one worker do what it can until it is idle. How many tasks it ran. */
static inline unsigned testing_work(struct testing *t, unsigned worker, struct testing_log *log)
{
    unsigned runs = 0;
    for (;;) {
        struct duet__engine_command command = testing_next(t, worker);
        if (command.kind != DUET_RUN && command.kind != DUET_COPY)
            return runs;
        runs += command.kind == DUET_RUN;
        if (command.kind == DUET_COPY && log)
            log->copies[log->count++ % 256] = *command.copy;
        testing_done(t, &command, 1e-6, 0);
    }
}

/* Lets every worker do what it can, in increasing number, until all are idle. */
static inline void testing_drain(struct testing *t)
{
    bool any = true;
    while (any) {
        uint64_t copies = 0, before = duet__finished_tasks(t->core);
        for (unsigned w = 0; w < t->workers; w++) {
            struct testing_log log = {0};
            (void)testing_work(t, w, &log);
            copies += log.count;
        }
        any = copies || duet__finished_tasks(t->core) != before;
    }
}

/* Stops the core: what is left ends, then everybody may go. */
static inline void testing_stop(struct testing *t)
{
    duet__core_stop(t->core);
    for (unsigned w = 0; w < t->workers; w++) {
        TESTING_MUST(t->woken[w]);
        TESTING_MUST(testing_work(t, w, NULL) == 0);
    }
    for (unsigned w = 0; w < t->workers; w++)
        TESTING_MUST(testing_next(t, w).kind == DUET_EXIT);
}

static inline int testing_wait(void *engine, bool (*reached)(void *arg), void *arg)
{
    struct testing *t = engine;
    if (!reached(arg))
        testing_drain(t);
    return reached(arg) ? DUET_OK : DUET_ESTUCK;
}

static inline void testing_notify(void *engine)
{
    struct testing *t = engine;
    t->notified++;
}

static inline double testing_now(void *engine)
{
    const struct testing *t = engine;
    return t->now;
}

static inline int testing_classify(void *engine, const struct duet__class *klass, uint64_t *archs,
                                   struct duet_message *message)
{
    const struct testing *t = engine;
    *archs &= ~t->untimed;
    return t->refusal ? duet_fail(message, t->refusal, "kernel %s refused by the test",
                                  duet__class_kernel(klass))
                      : DUET_OK;
}

static inline int testing_pin(void *engine, void *data, size_t bytes, struct duet_message *message)
{
    struct testing *t = engine;
    t->pins++;
    t->pinned = data;
    t->pinned_bytes = bytes;
    return t->pin_error ? duet_fail(message, t->pin_error, "refused by the test") : DUET_OK;
}

static inline int testing_unpin(void *engine, void *data, struct duet_message *message)
{
    struct testing *t = engine;
    t->unpins++;
    t->pinned = data;
    return t->pin_error ? duet_fail(message, t->pin_error, "refused by the test") : DUET_OK;
}

/* Forgets an engine's mark of the handle, which would be wrong for the next one at its address. */
static inline void testing_forget(void *engine, struct duet_handle *handle)
{
    struct testing *t = engine;
    TESTING_MUST(duet__handle_mark(handle));
    t->forgotten++;
    t->last_forgotten = handle->id;
}

static inline void testing_destroy(void *engine)
{
    struct testing *t = engine;
    duet__handles_forget(t->core);
    t->destroyed++;
}

/* No task waits. */
static inline void testing_run_kept(void *engine)
{
}

static const struct duet__engine_ops testing_ops = {
    .wake = testing_wake,
    .submitted = testing_submitted,
    .submitted_all = testing_submitted_all,
    .wait = testing_wait,
    .inside = testing_inside,
    .run_kept = testing_run_kept,
    .notify = testing_notify,
    .now = testing_now,
    .classify = testing_classify,
    .pin = testing_pin,
    .unpin = testing_unpin,
    .forget = testing_forget,
    .destroy = testing_destroy,
};

/* ------------------------------------------------------------------------------------------- */
/* A core with kernels                                                                          */

/* Tasks of the three kernels carry their flops as their argument; none: 1e6. */
static inline double testing_flops(const void *args)
{
    double flops = 0;
    if (args)
        memcpy(&flops, args, sizeof flops);
    return flops > 0 ? flops : 1e6;
}

/* Cores do 1 Gflop/s, devices 10 Gflop/s. */
static inline double testing_cost(const void *args, const char *arch)
{
    return testing_flops(args) / (strcmp(arch, "core") ? 1e10 : 1e9);
}

static inline struct duet_codelet *testing_codelet(struct duet_runtime *core, const char *name,
                                                   bool cpu, bool gpu)
{
    struct duet_implementation implementations[2];
    size_t count = 0;
    if (cpu)
        implementations[count++] = (struct duet_implementation){.arch = "cpu"};
    if (gpu)
        implementations[count++] = (struct duet_implementation){.arch = "cuda"};
    struct duet_codelet_desc desc = {.name = name,
                                     .implementations = implementations,
                                     .implementation_count = count,
                                     .flops = testing_flops,
                                     .cost = testing_cost};
    struct duet_codelet *codelet = NULL;
    TESTING_MUST(!duet_register_codelet(core, &desc, &codelet));
    return codelet;
}

/* A core on the passive engine, until testing_fini. */
static inline struct testing *testing_init_core(const struct testing_machine *make,
                                                struct duet__core_config config)
{
    struct duet_machine machine;
    testing_machine(&machine, make);
    struct testing *t = g_new0(struct testing, 1);
    t->workers = machine.worker_count;
    t->cpus = make->cpus;
    TESTING_MUST(t->workers <= TESTING_WORKERS);
    config.machine = &machine;
    config.record = config.record_accesses = true;
    config.ops = &testing_ops;
    config.engine = t;
    TESTING_MUST(!duet__core_new(&t->core, &config, hear()));
    duet_machine_fini(&machine);
    if (make->cpus && make->gpus)
        t->any = testing_codelet(t->core, "any", true, true);
    if (make->cpus)
        t->cpu = testing_codelet(t->core, "for_cpus", true, false);
    if (make->gpus)
        t->gpu = testing_codelet(t->core, "for_gpus", false, true);
    if (!t->any)
        t->any = make->cpus ? t->cpu : t->gpu;
    return t;
}

/* Initialises a test with a policy, and all else as usual. */
static inline struct testing *testing_init_policy(const struct testing_machine *make,
                                                  const struct duet_policy *policy, uint64_t seed)
{
    return testing_init_core(make, (struct duet__core_config){.policy = policy,
                                                              .model = duet_model_at(0),
                                                              .seed = seed});
}

/* Initialises a test with a built-in policy. */
static inline struct testing *testing_init(const struct testing_machine *make, const char *policy,
                                           uint64_t seed)
{
    return testing_init_policy(make, duet_policy_find(policy), seed);
}

/* Fails unless a call is refused for this reason. */
#define refuses(t, call, why) REFUSED((t)->core, call, DUET_EINVAL, why)

static inline void testing_fini(struct testing *t)
{
    duet__core_free(t->core);
    TESTING_MUST(t->destroyed == 1);
    g_free(t);
}

/* Frees a test's core at the end of a block, by OWNED(testing_end). */
static inline void testing_end(struct testing **t)
{
    testing_fini(*t);
}

static inline struct duet_handle *testing_handle(struct testing *t, size_t bytes)
{
    struct duet_handle *handle = NULL;
    TESTING_MUST(!duet_register_vector(t->core, NULL, bytes, 1, &handle));
    return handle;
}

static inline bool testing_at_once(void *unused)
{
    return true;
}

/* The application waits, for nothing: what was held enters. */
static inline void testing_let_in(struct testing *t)
{
    if (t->core->held)
        TESTING_MUST(!duet__wait_until(t->core, testing_at_once, NULL));
}

/* Submits a task with up to two accesses (mode 0: none). Its number. */
static inline uint64_t testing_submit(struct testing *t, struct duet_codelet *codelet,
                                      struct duet_handle *a, int mode_a, struct duet_handle *b,
                                      int mode_b, int priority)
{
    struct duet_access accesses[2];
    size_t count = 0;
    double flops = 0;
    if (mode_a)
        accesses[count++] = (struct duet_access){a, (enum duet_mode)mode_a};
    if (mode_b)
        accesses[count++] = (struct duet_access){b, (enum duet_mode)mode_b};
    struct duet_task_desc desc = {.codelet = codelet,
                                  .accesses = accesses,
                                  .access_count = count,
                                  .args = &flops,
                                  .args_bytes = sizeof flops,
                                  .priority = priority};
    TESTING_MUST(!duet_submit(t->core, &desc));
    testing_let_in(t);
    return atomic_load(&t->core->submitted);
}

/* Creates a task without submitting it: the test gives it to a policy or to a list by hand. */
static inline struct duet_task *testing_create(struct testing *t, struct duet_codelet *codelet,
                                               struct duet_handle *a, int mode_a,
                                               struct duet_handle *b, int mode_b, int priority)
{
    bool hold = t->hold;
    t->hold = true;
    (void)testing_submit(t, codelet, a, mode_a, b, mode_b, priority);
    t->hold = hold;
    return t->held;
}

/* The view that a policy would have, for calls by hand. */
static inline struct duet_view testing_view(struct testing *t, int by)
{
    return (struct duet_view){.core = t->core, .ops = &t->ops, .now = t->now, .by = by};
}

#endif
