/* SPDX-License-Identifier: Apache-2.0 */
/* Making and freeing the real engine. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/internal.h"

static double real_now(void *engine)
{
    const struct real *real = engine;
    return duet__clock_now(&real->clock);
}

/* ------------------------------------------------------------------------------------------- */
/* Messages of backends to the user: each line once, whichever device prints it. */

static int said_init(struct said *said)
{
    return pthread_mutex_init(&said->mutex, NULL) ? DUET_ENOMEM : DUET_OK;
}

static void said_fini(struct said *said)
{
    for (size_t i = 0; i < said->count; i++)
        free(said->lines[i]);
    free(said->lines);
    (void)pthread_mutex_destroy(&said->mutex);
}

/* Stores a line; without memory, it may be printed again. The mutex is held. */
static void keep_line(struct said *said, const char *line)
{
    if (said->count == said->capacity) {
        size_t capacity = 2 * said->capacity + 8;
        char **lines = realloc(said->lines, capacity * sizeof *lines);
        if (!lines)
            return;
        said->lines = lines;
        said->capacity = capacity;
    }
    char *copy = strdup(line);
    if (copy)
        said->lines[said->count++] = copy;
}

static bool is_kept(const struct said *said, const char *line)
{
    for (size_t i = 0; i < said->count; i++)
        if (!strcmp(said->lines[i], line))
            return true;
    return false;
}

void duet__say(void *engine, const char *line)
{
    struct real *real = engine;
    struct said *said = &real->said;
    if (real->config.quiet)
        return;
    (void)pthread_mutex_lock(&said->mutex);
    if (!is_kept(said, line)) {
        keep_line(said, line);
        (void)fprintf(stderr, "duet: %s\n", line);
    }
    (void)pthread_mutex_unlock(&said->mutex);
}

/* ------------------------------------------------------------------------------------------- */
/* Freeing                                                                                      */

static void free_worker(struct worker *worker)
{
    if (worker->opened && !worker->device)
        worker->backend->close(worker->opened);
    for (unsigned i = 0; worker->slots && i < worker->slot_count; i++)
        free(worker->slots[i].many);
    free(worker->slots);
}

static void real_free(struct real *real)
{
    for (unsigned w = 0; real->workers && w < real->machine.worker_count; w++)
        free_worker(&real->workers[w]);
    for (unsigned i = 0; i < real->use_count; i++)
        if (real->uses[i].attached)
            real->uses[i].backend->detach(real->uses[i].shared);
    for (unsigned w = 0; w < real->parks; w++)
        duet__park_fini(&real->workers[w].park);
    if (real->has_one_thread)
        duet__one_thread_end(real);
    if (real->has_said)
        said_fini(&real->said);
    if (real->has_watch)
        duet__watch_fini(&real->watch);
    if (real->has_first)
        duet__first_fini(&real->first);
    if (real->has_threads)
        duet__threads_fini(&real->threads);
    duet__places_free(real->places);
    free(real->workers);
    free(real->emulated);
    free(real->uses);
    duet_machine_fini(&real->machine);
    free(real);
}

static void real_destroy(void *engine)
{
    struct real *real = engine;
    if (real->threads.started || real->threads.has_spare) {
        duet__first_stop(real);
        duet__core_stop(real->core);
        duet__threads_join(real);
        duet__handles_forget(real->core);
    }
    real_free(real);
}

/* ------------------------------------------------------------------------------------------- */
/* Making                                                                                       */

/* Finds the backend that runs this worker's kernels. DUET_EABSENT, DUET_EINVAL with a message. */
static int find_backend(const struct real *real, struct worker *worker,
                        struct duet_message *message)
{
    const char *name = real->machine.archs[worker->arch].backend;
    const char *who = real->machine.workers[worker->index].name;
    if (worker->device && real->config.emulate)
        name = "emulated";
    worker->backend = duet__backend_find(name);
    if (!worker->backend || !worker->backend->open)
        return duet_fail(message, DUET_EABSENT, "%s is programmed by %s, which this duet lacks",
                         who, name);
    if (worker->device == (worker->backend->execute != NULL))
        return duet_fail(message, DUET_EINVAL, "%s of machine %s has %s, but %s programs %s", who,
                         real->machine.name,
                         worker->device ? "a memory of its own" : "no memory of its own", name,
                         worker->device ? "none that has" : "only those that have");
    return DUET_OK;
}

/* Adds the backend to the list of those in use. */
static void add_use(struct real *real, const struct duet__backend *backend)
{
    for (unsigned i = 0; i < real->use_count; i++)
        if (real->uses[i].backend == backend)
            return;
    real->uses[real->use_count++].backend = backend;
}

static int make_worker(struct real *real, unsigned index, const unsigned *devices,
                       struct duet_message *message)
{
    const struct duet_worker *from = &real->machine.workers[index];
    struct worker *worker = &real->workers[index];
    worker->real = real;
    worker->index = index;
    worker->arch = from->arch;
    worker->node = from->node;
    worker->slot_count = duet_worker_slots(from);
    worker->device = from->node != DUET_HOST;
    worker->place = UNBOUND;
    worker->inside = (struct inside){.real = real, .by = (int)index};
    int error = find_backend(real, worker, message);
    if (error)
        return error;
    add_use(real, worker->backend);
    if (worker->device && devices)
        worker->ordinal = devices[index - real->cpus];
    else
        for (unsigned w = 0; w < index; w++)
            worker->ordinal += real->workers[w].backend == worker->backend;
    real->cpus += !worker->device;
    real->has_devices |= worker->device;
    real->emulated[worker->arch] = worker->device && real->config.emulate;
    worker->slots = calloc(worker->slot_count, sizeof *worker->slots);
    if (!worker->slots || duet__park_init(&worker->park))
        return DUET_ENOMEM;
    real->parks++;
    return DUET_OK;
}

static int make_workers(struct real *real, const unsigned *devices, struct duet_message *message)
{
    unsigned count = real->machine.worker_count;
    real->workers = aligned_alloc(CACHE_LINE, count * sizeof *real->workers);
    real->emulated = calloc(real->machine.arch_count, sizeof *real->emulated);
    real->uses = calloc(count, sizeof *real->uses);
    if (!real->workers || !real->emulated || !real->uses)
        return DUET_ENOMEM;
    memset(real->workers, 0, count * sizeof *real->workers);
    for (unsigned w = 0; w < count; w++) {
        int error = make_worker(real, w, devices, message);
        if (error)
            return error;
    }
    return DUET_OK;
}

/*
 * Returns the number of threads that compute, emulated devices' included; 0 in a paced emulation.
 */
static unsigned count_computing(const struct real *real)
{
    unsigned count = real->cpus;
    for (unsigned w = real->cpus; w < real->machine.worker_count; w++)
        count += real->emulated[real->workers[w].arch];
    return real->pace.scale > 0 ? 0 : count;
}

static void warn_crowded(const struct real *real, unsigned count, unsigned cores)
{
    char devices[64] = "";
    if (count > real->cpus)
        (void)snprintf(devices, sizeof devices, " and %u emulated GPU%s", count - real->cpus,
                       count - real->cpus == 1 ? "" : "s");
    (void)
        fprintf(stderr,
                "duet: %u CPU worker%s%s on %u core%s: they take turns, so that times will not be "
                "those of %u cores\n",
                real->cpus, real->cpus == 1 ? "" : "s", devices, cores, cores == 1 ? "" : "s",
                count);
}

/* Binds threads to cores: those of GPUs near them. */
static int bind_threads(struct real *real)
{
    unsigned workers = real->machine.worker_count;
    int *place = calloc(workers, sizeof *place);
    int error = place ? duet__places_of(real->places, &real->machine, place) : DUET_ENOMEM;
    for (unsigned w = 0; w < workers && !error; w++)
        real->workers[w].place = place[w] < 0 ? UNBOUND : place[w];
    free(place);
    return error;
}

/* Chooses the cores of threads, and whether there are enough cores for spinning. */
static int place_threads(struct real *real)
{
    int error = duet__places_new(&real->places);
    if (error)
        return error;
    unsigned cores = duet__places_cores(real->places), workers = real->machine.worker_count;
    unsigned compute = count_computing(real);
    unsigned streams = compute > real->cpus ? compute - real->cpus : 0; /* emulated GPUs' own */
    real->spin = workers + streams <= cores;
    atomic_init(&real->spin_s, real->spin ? SPIN_NS * 1e-9 : 0);
    if (compute > cores && !real->config.quiet)
        warn_crowded(real, compute, cores);
    return !real->config.no_bind ? bind_threads(real) : DUET_OK;
}

static int fill_real(struct real *real, const unsigned *devices, struct duet_message *message)
{
    int error = duet__threads_init(&real->threads);
    real->has_threads = !error;
    if (!error) {
        error = duet__first_init(&real->first);
        real->has_first = !error;
    }
    if (!error) {
        error = duet__watch_init(&real->watch, real->config.watchdog_s);
        real->has_watch = !error;
    }
    if (!error) {
        error = said_init(&real->said);
        real->has_said = !error;
    }
    if (!error)
        error = make_workers(real, devices, message);
    return error ? error : place_threads(real);
}

int duet__real_new(void **out, const struct duet_machine *machine, const struct duet_config *config,
                   const unsigned *devices, const struct real_pace *pace,
                   struct duet_message *message)
{
    enum { WATCHDOG_S = 10 }; /* unless the configuration says otherwise */
    *out = NULL;
    struct real *real = aligned_alloc(CACHE_LINE, sizeof *real);
    if (!real)
        return duet_fail(message, DUET_ENOMEM, "no memory left for the engine");
    memset(real, 0, sizeof *real);
    real->forks = duet__forks();
    real->config = *config;
    real->pace = pace ? *pace : (struct real_pace){.scale = 0};
    if (config->watchdog_s <= 0)
        real->config.watchdog_s = config->watchdog_s < 0 ? INFINITY : WATCHDOG_S;
    int error = duet_machine_copy(&real->machine, machine);
    if (!error)
        error = fill_real(real, devices, message);
    if (!error)
        error = duet__lose_parse(real, config->lose, message);
    if (error) {
        if (error == DUET_ENOMEM)
            (void)duet_fail(message, error, "no memory left for the engine");
        real_free(real);
        return error;
    }
    duet__rest_by(duet__thread_rest);
    duet__clock_start(&real->clock);
    *out = real;
    return DUET_OK;
}

/* ------------------------------------------------------------------------------------------- */
/* Starting                                                                                     */

/* Prepares a backend's own thread that will run kernels. */
static void thread_computes(void *engine)
{
    struct kernel_threads before;
    duet__one_thread_enter(engine, &before);
}

/* Returns three quarters of the memory that the machine has now. */
static uint64_t pin_default(void *engine)
{
    (void)engine;
    return duet__real_memory_bytes() / 4 * 3;
}

uint64_t duet__real_pin_bytes(const struct duet_config *config)
{
    return config->no_pin ? 0 : config->pin_bytes ? config->pin_bytes : pin_default(NULL);
}

static int attach_backends(struct real *real, struct duet_message *message)
{
    const struct backend_setup setup = {
        .machine = &real->machine,
        .scale = real->pace.scale,
        .now = real_now,
        .clock = real,
        .pin_bytes = duet__real_pin_bytes(&real->config),
        .pin_more = real->config.no_pin || real->config.pin_bytes ? NULL : pin_default,
        .patience_s = isinf(real->config.watchdog_s) ? 0 : real->config.watchdog_s,
        .say = duet__say,
        .computes = thread_computes,
    };
    for (unsigned i = 0; i < real->use_count; i++) {
        struct use *used = &real->uses[i];
        int error = used->backend->attach(&used->shared, &setup, message);
        if (error)
            return error;
        used->attached = true;
    }
    return DUET_OK;
}

/* Opens the CPU workers' devices, which belong to no thread: the first worker's thread changes. */
static int open_cores(struct real *real, struct duet_message *message)
{
    for (unsigned w = 0; w < real->cpus; w++) {
        struct worker *worker = &real->workers[w];
        const struct backend_config config = {.index = worker->ordinal, .node = worker->node};
        int error = worker->backend->open(&worker->opened, NULL, &config, message);
        if (error)
            return error;
    }
    return DUET_OK;
}

/*
 * Asks for work for the worker without a thread, as every worker does at its start, so that the
 * core knows it as idle.
 */
static void ask_first(struct real *real)
{
    struct duet__engine_command command;
    struct duet__ops ops = {0};
    duet__next(real->core, 0, duet__worker_now(&real->workers[0]), &command, &ops);
    atomic_store(&real->workers[0].resting, true);
}

int duet__real_attach(void *engine, struct duet_runtime *core, struct duet_message *message)
{
    struct real *real = engine;
    real->core = core;
    duet__one_thread_begin(real);
    real->has_one_thread = true;
    int error = attach_backends(real, message);
    if (!error)
        error = open_cores(real, message);
    if (!error && real->cpus)
        ask_first(real);
    return error ? error : duet__threads_start(real, message);
}

/* ------------------------------------------------------------------------------------------- */
/* Classes that can run here: kernels that have code or, in a paced emulation, a time. */

static bool can_run(const struct real *real, const struct duet__class *klass, unsigned arch)
{
    const struct real_pace *pace = &real->pace;
    if (pace->scale > 0)
        return pace->seconds(pace->times, klass, arch) > 0;
    return real->emulated[arch] ? duet__class_emulation(klass) != NULL
                                : duet__class_function(klass, arch) != NULL;
}

static int real_classify(void *engine, const struct duet__class *klass, uint64_t *archs,
                         struct duet_message *message)
{
    const struct real *real = engine;
    const struct real_pace *pace = &real->pace;
    if (duet__class_expands(klass))
        return DUET_OK;
    if (pace->scale > 0 && pace->classify)
        return pace->classify(pace->times, klass, archs, message);
    for (unsigned a = 0; a < real->machine.arch_count; a++)
        if ((*archs >> a & 1) && !can_run(real, klass, a))
            *archs &= ~(UINT64_C(1) << a);
    if (*archs)
        return DUET_OK;
    const char *kernel = duet__class_kernel(klass);
    if (pace->scale > 0)
        return duet_fail(message, DUET_ENOMODEL,
                         "no time is known for kernel %s on any architecture of machine %s", kernel,
                         real->machine.name);
    return duet_fail(message, DUET_ENOWORKER,
                     "kernel %s has no code that can run here: its implementations for the "
                     "architectures of machine %s are for simulation only",
                     kernel, real->machine.name);
}

static double real_mean(void *engine, const struct duet__class *klass, unsigned arch)
{
    const struct real_pace *pace = &((const struct real *)engine)->pace;
    double seconds = pace->scale > 0 ? pace->seconds(pace->times, klass, arch) : 0;
    return seconds > 0 ? seconds * pace->scale : 0;
}

/* ------------------------------------------------------------------------------------------- */

const struct duet__engine_ops *duet__real_ops(void)
{
    static const struct duet__engine_ops ops = {
        .wake = duet__real_wake,
        .submitted = duet__real_submitted,
        .submitted_all = duet__real_submitted_all,
        .wait = duet__real_wait,
        .inside = duet__inside,
        .await = duet__real_await,
        .run_kept = duet__real_run_kept,
        .notify = duet__real_notify,
        .repeats = duet__real_repeats,
        .now = real_now,
        .scheduling = duet__real_scheduling,
        .classify = real_classify,
        .mean = real_mean,
        .pin = duet__real_pin,
        .unpin = duet__real_unpin,
        .forget = duet__real_forget,
        .destroy = real_destroy,
    };
    return &ops;
}
