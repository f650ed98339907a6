/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that share cores, caches and memory with others: those of CPU workers, and those of
 * emulated devices, which need a core. The time of one is known as long as nothing begins or ends
 * beside it: then the rates of all are computed anew (platforms/model/effects.h), and their ends
 * are dated anew. An event cannot be taken off the heap. One that has become out of date, since its
 * kernel ends earlier, is recognised by its order and ignored; one that comes before the kernel's
 * end is put back.
 */
#include <limits.h>
#include <stdlib.h>

#include "sim/internal.h"

enum { FEW = 8 /* operands that there is room for from the beginning */ };

struct cores {
    struct duet__caches *caches; /* NULL: caches have no effect */
    struct duet__running *running;
    struct kernel **kernels; /* in the order in which they began, as in `running` */
    size_t count;
    struct duet__operand *operands; /* room for the operands of one task */
    double *missing;                /* bytes of each that are missing in the caches */
    size_t room;
};

/* ------------------------------------------------------------------------------------------- */
/* Is sharing simulated at all? */

static bool has_effect(const struct sim *sim, const struct duet__point *point)
{
    bool neighbours = sim->options.effects & DUET__EFFECT_NEIGHBOURS;
    return point->base_s > 0 || (neighbours && point->busy_ratio > 0);
}

static bool on_cpus(const struct sim *sim, const char *arch)
{
    for (unsigned w = 0; w < sim->machine.worker_count; w++) {
        const struct duet_worker *worker = &sim->machine.workers[w];
        if (worker->node == DUET_HOST && !strcmp(sim->machine.archs[worker->arch].name, arch))
            return true;
    }
    return false;
}

/* True if a kernel of some CPU takes longer under other circumstances. */
static bool times_vary(const struct sim *sim)
{
    const struct duet__calibration *calibration = sim->options.calibration;
    for (size_t c = 0; c < calibration->count; c++) {
        const struct duet__curve *curve = &calibration->curves[c];
        for (size_t p = 0; p < curve->count; p++)
            if (has_effect(sim, &curve->points[p]) && on_cpus(sim, curve->arch))
                return true;
    }
    return false;
}

/* True if there are fewer cores than workers that may need one at the same time. */
static bool few_cores(const struct sim *sim)
{
    unsigned wanted = 0;
    for (unsigned w = 0; w < sim->machine.worker_count; w++)
        wanted += duet__needs_core(&sim->machine, w);
    return (sim->options.effects & DUET__EFFECT_CORES) && sim->machine.cores &&
           wanted > sim->machine.cores;
}

/* ------------------------------------------------------------------------------------------- */
/* Making and freeing                                                                           */

static bool make_operand_room(struct cores *cores, size_t count)
{
    if (count <= cores->room)
        return true;
    free(cores->operands);
    free(cores->missing);
    cores->operands = calloc(2 * count, sizeof *cores->operands);
    cores->missing = calloc(2 * count, sizeof *cores->missing);
    cores->room = cores->operands && cores->missing ? 2 * count : 0;
    return cores->room > 0;
}

/* Creates sim->cores, or leaves it NULL if nothing needs it. DUET_ENOMEM. */
int duet__cores_init(struct sim *sim)
{
    const struct duet_sharing *sharing = &sim->machine.sharing;
    bool few = few_cores(sim);
    if (!few && !times_vary(sim))
        return DUET_OK;
    struct cores *cores = sim->cores = calloc(1, sizeof *cores);
    if (!cores)
        return DUET_ENOMEM;
    cores->running = calloc(sim->machine.worker_count, sizeof *cores->running);
    cores->kernels = calloc(sim->machine.worker_count, sizeof(struct kernel *));
    if (!cores->running || !cores->kernels || !make_operand_room(cores, FEW))
        return DUET_ENOMEM;
    for (unsigned w = 0; w < sim->machine.worker_count; w++)
        sim->workers[w].shares = sim->machine.workers[w].node == DUET_HOST ||
                                 (few && duet__needs_core(&sim->machine, w));
    if (!sharing->shared_bytes || !(sim->options.effects & DUET__EFFECT_CACHES))
        return DUET_OK;
    return duet__caches_new(&cores->caches, &sim->machine);
}

void duet__cores_fini(struct sim *sim)
{
    struct cores *cores = sim->cores;
    if (!cores)
        return;
    duet__caches_free(cores->caches);
    free(cores->running);
    free(cores->kernels);
    free(cores->operands);
    free(cores->missing);
    free(cores);
    sim->cores = NULL;
}

/* ------------------------------------------------------------------------------------------- */
/* Dates                                                                                        */

static void end_at(struct sim *sim, struct kernel *kernel, double date)
{
    kernel->event_s = date;
    kernel->event =
        event_order(&sim->cluster->events, EVENT_KERNEL_END, of_all(sim, kernel->command.worker));
    duet__sim_event(sim, date, EVENT_KERNEL_END, kernel->command.worker, kernel);
}

/* Sets the rate of a kernel from now on: seconds of its execution alone that pass in a second. */
static void set_rate(struct sim *sim, struct kernel *kernel, double rate)
{
    if (rate == kernel->rate)
        return;
    kernel->left_s -= (sim->cluster->now - kernel->since_s) * kernel->rate;
    if (kernel->left_s < 0)
        kernel->left_s = 0; /* only rounding keeps it from ending now */
    kernel->since_s = sim->cluster->now;
    kernel->rate = rate;
    kernel->end_s = sim->cluster->now + kernel->left_s / rate;
    if (kernel->end_s < kernel->event_s)
        end_at(sim, kernel, kernel->end_s);
}

/* Computes the rates of all running kernels anew, after one has begun or ended. */
static void update_rates(struct sim *sim)
{
    struct cores *cores = sim->cores;
    duet__rates(&sim->machine, cores->running, cores->count, sim->options.effects);
    for (size_t i = 0; i < cores->count; i++)
        set_rate(sim, cores->kernels[i], cores->running[i].rate);
}

/* True if this event is not the kernel's end: another one is on the heap, or is added. */
bool duet__cores_moved(struct sim *sim, const struct event *event)
{
    struct kernel *kernel = event->what;
    if (!sim->workers[kernel->command.worker].shares)
        return false;
    if (event->order != kernel->event)
        return true;
    if (kernel->end_s <= event->date)
        return false;
    end_at(sim, kernel, kernel->end_s);
    return true;
}

/* ------------------------------------------------------------------------------------------- */
/* Kernels                                                                                      */

/*
 * Finds the operands of a task that begins on a CPU worker, and their bytes that are missing in the
 * caches. False: out of memory.
 */
static bool touch_operands(struct sim *sim, const struct duet__engine_command *command)
{
    struct cores *cores = sim->cores;
    const struct duet_task *task = command->task;
    size_t count = duet_task_accesses(task);
    if (!make_operand_room(cores, count))
        return false;
    for (size_t i = 0; i < count; i++) {
        cores->operands[i] = (struct duet__operand){.handle = duet__task_handle_id(task, i),
                                                    .bytes = duet_task_access_bytes(task, i),
                                                    .writes = duet_task_writes(task, i)};
        cores->missing[i] = 0;
    }
    return !cores->caches ||
           duet__caches_touch(cores->caches, command->worker, cores->operands, count,
                              duet__registered_bytes(sim->core), cores->missing) == DUET_OK;
}

/* Sets the kernel's demand and its time alone. */
static void measure_kernel(struct sim *sim, struct kernel *kernel)
{
    const struct duet_task *task = kernel->command.task;
    const struct duet_worker *worker = &sim->machine.workers[kernel->command.worker];
    kernel->demand = (struct duet__demand){.fixed_s = 1, .busy_ratio = 1};
    if (worker->node != DUET_HOST) {
        kernel->left_s = kernel->demand.fixed_s = duet__sim_seconds(sim, task, worker->arch);
        return;
    }
    const struct duet__point *point = duet__sim_point(sim, task, worker->arch);
    kernel->left_s = 0;
    if (!point || !touch_operands(sim, &kernel->command)) {
        duet__fail_run(sim->core, DUET_ENOMEM, "no memory left for kernel times");
        return;
    }
    duet__demand(point, sim->cores->operands, sim->cores->missing, duet_task_accesses(task),
                 sim->options.effects, &kernel->demand);
    kernel->left_s = (kernel->demand.fixed_s + kernel->demand.memory_s) *
                     duet__sim_factor(sim, task, point) * kernel->part;
}

static void begin_at(struct sim *sim, struct kernel *kernel, double date)
{
    duet__sim_event(sim, date, EVENT_KERNEL_BEGIN, kernel->command.worker, kernel);
}

/* Accepts a kernel that can begin at launched_s, after those before it on its worker. */
void duet__cores_add(struct sim *sim, struct kernel *kernel, double launched_s)
{
    struct sim_worker *worker = &sim->workers[kernel->command.worker];
    kernel->start_s = launched_s;
    kernel->next = NULL;
    kernel->rate = 0;
    if (worker->first)
        worker->last->next = kernel;
    else
        worker->first = kernel;
    worker->last = kernel;
    if (worker->first == kernel)
        begin_at(sim, kernel, launched_s);
}

void duet__cores_begin(struct sim *sim, struct kernel *kernel)
{
    struct cores *cores = sim->cores;
    const struct duet_worker *worker = &sim->machine.workers[kernel->command.worker];
    measure_kernel(sim, kernel);
    kernel->start_s = kernel->since_s = sim->cluster->now;
    kernel->event_s = INFINITY;
    cores->kernels[cores->count] = kernel;
    /* an emulated device affects no neighbour: it only needs a core */
    cores->running[cores->count++] = (struct duet__running){
        .demand = &kernel->demand,
        .socket = worker->node == DUET_HOST ? worker->socket : UINT_MAX,
    };
    update_rates(sim);
}

void duet__cores_end(struct sim *sim, struct kernel *kernel)
{
    struct cores *cores = sim->cores;
    struct sim_worker *worker = &sim->workers[kernel->command.worker];
    size_t at = 0;
    while (cores->kernels[at] != kernel)
        at++;
    cores->count--;
    for (; at < cores->count; at++) {
        cores->kernels[at] = cores->kernels[at + 1];
        cores->running[at] = cores->running[at + 1];
    }
    kernel->rate = 0;
    worker->first = kernel->next;
    if (worker->first)
        begin_at(sim, worker->first,
                 worker->first->start_s > sim->cluster->now ? worker->first->start_s
                                                            : sim->cluster->now);
    update_rates(sim);
}
