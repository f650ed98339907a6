/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paced devices and the bus that they share: kernels and copies get dates from a calibration, and
 * do nothing. Nothing here has a thread: each caller first handles all events that are due until
 * now, in order of their dates, and tells the other devices.
 */
#include <math.h>
#include <stdlib.h>

#include "backends/emulated/internal.h"

/* A paced device. The bus's mutex is held wherever what is below `bus` is used. */
struct paced {
    struct backend_device common; /* first: a backend_device is one of these */
    struct paced *self;           /* to write known_s where a device is given as const */
    struct bus *bus;
    struct queue queues[BACKEND_STREAMS]; /* kernels are dated when they are launched */
    double free_s;                        /* end of the last kernel launched */
    double known_s;   /* date of its next completion that the worker was last told */
    unsigned telling; /* number of callers inside its notify */
};

int duet__bus_init(struct bus *bus, const struct backend_setup *setup)
{
    if (duet__flows_init(&bus->flows, setup->machine, setup->scale) ||
        pthread_mutex_init(&bus->mutex, NULL))
        goto no_mutex;
    if (pthread_cond_init(&bus->told, NULL))
        goto no_condition;
    return DUET_OK;
no_condition:
    (void)pthread_mutex_destroy(&bus->mutex);
no_mutex:
    duet__flows_fini(&bus->flows);
    return DUET_ENOMEM;
}

void duet__bus_fini(struct bus *bus)
{
    (void)pthread_cond_destroy(&bus->told);
    (void)pthread_mutex_destroy(&bus->mutex);
    duet__flows_fini(&bus->flows);
}

/* ------------------------------------------------------------------------------------------- */
/* Events                                                                                       */

/* Handles all events that are due until `now`: reports the copies that have ended. */
static void bus_advance(struct bus *bus, double now)
{
    struct duet__flows *flows = &bus->flows;
    bus->stirred |= flows->next_s <= now;
    duet__flows_advance(flows, now);
    for (size_t f = 0; f < flows->count;) {
        if (flows->flows[f].state != DUET__ENDED) {
            f++;
            continue;
        }
        const struct duet__flow flow = duet__flows_remove(flows, f);
        struct queue *queue = flow.tag;
        struct backend_completion *report = &queue_head(queue)->report;
        report->start_s = flow.start_s;
        report->end_s = flow.date_s;
        report->status = flow.cancelled ? DUET_ELOST : DUET_OK;
        queue->done++;
    }
    bus->now_s = fmax(bus->now_s, now);
}

/* Locks the bus, and handles all events that are due. The clock is read with the mutex held. */
static struct bus *enter_bus(struct paced *device)
{
    const struct backend_setup *setup = &device->common.emulated->setup;
    struct bus *bus = device->bus;
    (void)pthread_mutex_lock(&bus->mutex);
    bus_advance(bus, setup->now(setup->clock));
    return bus;
}

/*
 * Returns the date at which the device's state changes next; INFINITY: not known. The end of a
 * latency completes nothing, but the flow that begins then changes the shares of others, and may
 * even end some sooner (it slows a second one, which leaves more of another link to a third): their
 * devices have to be told in time.
 */
static double next_change(const struct paced *device)
{
    const struct duet__flows *flows = &device->bus->flows;
    double next = INFINITY;
    for (unsigned s = 0; s < BACKEND_STREAMS; s++)
        if (device->queues[s].commands.count)
            next = fmin(next,
                        ((struct command *)ring_at(&device->queues[s].commands, 0))->report.end_s);
    for (size_t f = 0; f < flows->count; f++)
        if (flows->flows[f].worker == device->common.config.index)
            next = fmin(next, flows->flows[f].date_s);
    return next;
}

/*
 * Notifies devices whose next change comes earlier than they know, except `but`. The mutex is
 * released meanwhile.
 */
static void tell_devices(struct bus *bus, const struct paced *but)
{
    if (!bus->stirred)
        return;
    bus->stirred = false;
    for (unsigned i = 0; i < EMULATED_MAX; i++) {
        struct paced *device = bus->devices[i];
        if (!device || device == but || next_change(device) >= device->known_s)
            continue;
        device->known_s = next_change(device);
        device->telling++;
        (void)pthread_mutex_unlock(&bus->mutex);
        device->common.config.notify(device->common.config.owner);
        (void)pthread_mutex_lock(&bus->mutex);
        if (--device->telling == 0)
            (void)pthread_cond_broadcast(&bus->told);
    }
}

/*
 * Loses the device at bus->now_s: its commands in flight end, and copies of others from it when
 * their turn comes.
 */
static void lose_device(struct bus *bus, struct paced *device)
{
    const unsigned node = device->common.config.node;
    struct queue *kernels = &device->queues[BACKEND_KERNEL];
    device->common.head.lost = bus->stirred = true;
    for (; kernels->done < kernels->commands.count; kernels->done++) {
        struct backend_completion *report = &queue_head(kernels)->report;
        report->start_s = fmin(report->start_s, bus->now_s);
        report->end_s = fmin(report->end_s, bus->now_s);
    }
    device->free_s = fmin(device->free_s, bus->now_s);
    for (size_t f = 0; f < bus->flows.count; f++) {
        struct duet__flow *flow = &bus->flows.flows[f];
        if (flow->source == node || flow->destination == node)
            duet__flows_cancel(&bus->flows, flow, bus->now_s);
    }
    bus_advance(bus, bus->now_s);
}

/* ------------------------------------------------------------------------------------------- */
/* Commands                                                                                     */

static struct paced *paced_of(struct backend_device *device)
{
    return (struct paced *)device;
}

static void give_kernel(struct paced *device, struct command *kernel)
{
    kernel->report.start_s = fmax(device->bus->now_s, device->free_s);
    kernel->report.end_s = device->free_s = kernel->report.start_s + kernel->kernel.seconds;
}

static double bytes_of(const struct backend_copy *copy)
{
    double bytes = backend_slanted(copy) ? 0 : (double)copy->column_bytes * (double)copy->cols;
    for (size_t col = 0; col < copy->cols && backend_slanted(copy); col++)
        bytes += (double)backend_column(copy, col, &(size_t){0});
    return bytes;
}

/* Gives a copy to the bus. A peer that is lost has no directions any more. */
static int give_copy(struct paced *device, struct queue *queue, const struct backend_copy *copy)
{
    bool lost = copy->peer && backend_lost(copy->peer);
    const struct duet__flow flow = {.source = lost ? DUET_HOST : copy->source_node,
                                    .destination = copy->destination_node,
                                    .bytes = bytes_of(copy),
                                    .start_s = device->bus->now_s,
                                    .tag = queue,
                                    .worker = device->common.config.index,
                                    .cancelled = lost};
    return duet__flows_add(&device->bus->flows, &flow);
}

static int give_command(struct paced *device, struct command command)
{
    enum backend_stream stream = command.is_kernel ? BACKEND_KERNEL : command.copy.stream;
    struct queue *queue = &device->queues[stream];
    if (!duet__ring_reserve(&queue->commands))
        return DUET_ENOMEM;
    command.report.start_s = device->bus->now_s;
    command.report.end_s = device->common.head.lost ? device->bus->now_s : INFINITY;
    if (device->common.head.lost) {
        command.report.status = DUET_ELOST;
        queue->done++;
    } else if (command.is_kernel)
        give_kernel(device, &command);
    else if (give_copy(device, queue, &command.copy))
        return DUET_ENOMEM;
    (void)duet__ring_add(&queue->commands, &command);
    bus_advance(device->bus, device->bus->now_s); /* without latency a copy flows at once */
    return DUET_OK;
}

static bool can_be_timed(const struct duet_machine *machine, const struct command *command)
{
    const struct backend_copy *copy = &command->copy;
    if (command->is_kernel)
        return isfinite(command->kernel.seconds) && command->kernel.seconds >= 0;
    return copy->source_node < machine->node_count &&
           copy->destination_node < machine->node_count &&
           duet_machine_route(machine, copy->source_node, copy->destination_node)->direct;
}

static int launch_paced(struct backend_device *self, const struct command *command)
{
    struct paced *device = paced_of(self);
    if (!can_be_timed(device->bus->flows.machine, command))
        return DUET_EINVAL;
    struct bus *bus = enter_bus(device);
    if (++self->launched == self->config.lose_at)
        lose_device(bus, device);
    int error = give_command(device, *command);
    tell_devices(bus, device);
    (void)pthread_mutex_unlock(&bus->mutex);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Completions                                                                                  */

static size_t poll_paced(struct backend_device *self, struct backend_completion *out, size_t max)
{
    struct paced *device = paced_of(self);
    struct bus *bus = enter_bus(device);
    struct queue *kernels = &device->queues[BACKEND_KERNEL];
    size_t taken = 0;
    while (queue_head(kernels) && queue_head(kernels)->report.end_s <= bus->now_s)
        kernels->done++;
    for (unsigned s = 0; s < BACKEND_STREAMS; s++)
        taken += duet__emulated_take(&device->queues[s], out + taken, max - taken,
                                     device->common.head.lost);
    tell_devices(bus, device);
    (void)pthread_mutex_unlock(&bus->mutex);
    return taken;
}

static double next_s_paced(const struct backend_device *self)
{
    struct paced *device = ((const struct paced *)self)->self;
    struct bus *bus = enter_bus(device);
    tell_devices(bus, device);
    double next = device->known_s = next_change(device);
    (void)pthread_mutex_unlock(&bus->mutex);
    return next;
}

/* ------------------------------------------------------------------------------------------- */
/* Opening and closing                                                                          */

static void release_device(struct paced *device)
{
    for (unsigned s = 0; s < BACKEND_STREAMS; s++)
        duet__ring_fini(&device->queues[s].commands);
    duet__memory_close(&device->common.memory);
    free(device);
}

/* Closes a device: commands in flight are dropped, as none really runs. */
static void close_paced(struct backend_device *self)
{
    struct paced *device = paced_of(self);
    struct bus *bus = enter_bus(device);
    lose_device(bus, device);
    bus->devices[self->config.index] = NULL;
    while (device->telling)
        (void)pthread_cond_wait(&bus->told, &bus->mutex);
    tell_devices(bus, NULL);
    (void)pthread_mutex_unlock(&bus->mutex);
    release_device(device);
}

static const struct mode paced_mode = {
    .close = close_paced,
    .launch = launch_paced,
    .poll = poll_paced,
    .next_s = next_s_paced,
};

static struct paced *make_device(struct emulated *emulated, const struct backend_config *config)
{
    struct paced *device = calloc(1, sizeof *device);
    if (!device)
        return NULL;
    device->common = (struct backend_device){.mode = &paced_mode,
                                             .emulated = emulated,
                                             .config = *config,
                                             .memory.file = -1};
    device->self = device;
    device->bus = &emulated->bus;
    device->known_s = INFINITY;
    for (unsigned s = 0; s < BACKEND_STREAMS; s++)
        device->queues[s].commands.slot_bytes = sizeof(struct command);
    return device;
}

int duet__emulated_open_paced(struct backend_device **out, struct emulated *emulated,
                              const struct backend_config *config, struct duet_message *message)
{
    struct paced *device = make_device(emulated, config);
    if (!device)
        return duet_fail(message, DUET_ENOMEM, "emulated device %u: out of memory", config->index);
    int error = duet__memory_open(&device->common.memory, config->capacity_bytes, true, message);
    if (error) {
        release_device(device);
        return error;
    }
    struct bus *bus = enter_bus(device);
    bus->devices[config->index] = device;
    tell_devices(bus, NULL);
    (void)pthread_mutex_unlock(&bus->mutex);
    *out = &device->common;
    return DUET_OK;
}
