/* SPDX-License-Identifier: Apache-2.0 */
/* Paced devices: kernels and copies get dates from a calibration, and do nothing. */
#include "backends/emulated/paced.h"

#include <math.h>
#include <stdlib.h>

static struct paced *paced_of(struct backend_device *device)
{
    return (struct paced *)device;
}

/* Locks the bus, and handles all events that are due. The clock is read with the mutex held. */
static struct bus *enter_bus(struct paced *device)
{
    const struct backend_setup *setup = &device->common.emulated->setup;
    struct bus *bus = device->bus;
    (void)pthread_mutex_lock(&bus->mutex);
    duet__bus_advance(bus, setup->now(setup->clock));
    return bus;
}

/* ------------------------------------------------------------------------------------------- */
/* Commands                                                                                     */

static void begin_kernel(struct paced *device, const struct command *command)
{
    struct command *kernel = duet__ring_add(&device->kernels.commands, command);
    kernel->report.start_s = fmax(device->bus->now_s, device->free_s);
    kernel->report.end_s = device->free_s = kernel->report.start_s + command->kernel.seconds;
}

static int give_kernel(struct paced *device, const struct command *command)
{
    if (!duet__ring_reserve(&device->kernels.commands))
        return DUET_ENOMEM;
    begin_kernel(device, command);
    return DUET_OK;
}

static int give_copy(struct paced *device, const struct command *command)
{
    bool in = command->copy.stream == BACKEND_IN;
    struct lane *lane = in ? &device->in : &device->out;
    struct paced *source = in ? peer_of(command) : device;
    if (!duet__ring_reserve(&lane->queue.commands) ||
        (source && !duet__ring_reserve(&source->leaving)))
        return DUET_ENOMEM;
    (void)duet__ring_add(&lane->queue.commands, command);
    if (source && !source->common.lost)
        (void)duet__ring_add(&source->leaving, &lane);
    duet__bus_given(device->bus, lane);
    return DUET_OK;
}

/* Enters a command of a lost device, which has ended. */
static int give_lost(struct paced *device, struct command command)
{
    struct queue *queue = command.is_kernel                   ? &device->kernels
                          : command.copy.stream == BACKEND_IN ? &device->in.queue
                                                              : &device->out.queue;
    command.report.start_s = command.report.end_s = device->bus->now_s;
    command.report.status = DUET_ELOST;
    if (!duet__ring_reserve(&queue->commands))
        return DUET_ENOMEM;
    (void)duet__ring_add(&queue->commands, &command);
    queue->done++;
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
    if (!can_be_timed(device->bus->shares.machine, command))
        return DUET_EINVAL;
    struct bus *bus = enter_bus(device);
    int error;
    if (++self->launched == self->config.lose_at)
        duet__bus_lose(bus, device);
    if (device->common.lost)
        error = give_lost(device, *command);
    else if (command->is_kernel)
        error = give_kernel(device, command);
    else
        error = give_copy(device, command);
    duet__bus_tell(bus, device);
    (void)pthread_mutex_unlock(&bus->mutex);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Completions                                                                                  */

static void end_kernels(struct paced *device)
{
    struct queue *kernels = &device->kernels;
    struct command *kernel;
    while ((kernel = queue_head(kernels)) && kernel->report.end_s <= device->bus->now_s)
        kernels->done++;
}

static size_t poll_paced(struct backend_device *self, struct backend_completion *out, size_t max)
{
    struct paced *device = paced_of(self);
    struct bus *bus = enter_bus(device);
    struct queue *queues[BACKEND_STREAMS] = {&device->in.queue, &device->kernels,
                                             &device->out.queue};
    size_t taken = 0;
    end_kernels(device);
    for (unsigned s = 0; s < BACKEND_STREAMS; s++)
        taken += duet__emulated_take(queues[s], out + taken, max - taken, device->common.lost);
    duet__bus_tell(bus, device);
    (void)pthread_mutex_unlock(&bus->mutex);
    return taken;
}

static double next_s_paced(const struct backend_device *self)
{
    struct paced *device = ((const struct paced *)self)->self;
    struct bus *bus = enter_bus(device);
    duet__bus_tell(bus, device);
    double next = device->known_s = duet__bus_next(device);
    (void)pthread_mutex_unlock(&bus->mutex);
    return next;
}

/* ------------------------------------------------------------------------------------------- */
/* Opening and closing                                                                          */

static void release_device(struct paced *device)
{
    duet__ring_fini(&device->kernels.commands);
    duet__ring_fini(&device->in.queue.commands);
    duet__ring_fini(&device->out.queue.commands);
    duet__ring_fini(&device->leaving);
    duet__memory_close(&device->common.memory);
    free(device);
}

/* Closes a device: commands in flight are dropped, as none really runs. */
static void close_paced(struct backend_device *self)
{
    struct paced *device = paced_of(self);
    struct bus *bus = enter_bus(device);
    duet__bus_lose(bus, device);
    duet__bus_part(bus, device);
    while (device->telling)
        (void)pthread_cond_wait(&bus->told, &bus->mutex);
    duet__bus_tell(bus, NULL);
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
    device->in.device = device->out.device = device;
    device->known_s = INFINITY;
    device->kernels.commands.slot_bytes = sizeof(struct command);
    device->in.queue.commands.slot_bytes = sizeof(struct command);
    device->out.queue.commands.slot_bytes = sizeof(struct command);
    device->leaving.slot_bytes = sizeof(struct lane *);
    return device;
}

int duet__emulated_open_paced(struct backend_device **out, struct emulated *emulated,
                              const struct backend_config *config, struct duet_message *message)
{
    struct paced *device = make_device(emulated, config);
    if (!device)
        return duet_fail(message, DUET_ENOMEM, "emulated device %u: out of memory", config->index);
    int error = duet__memory_open(&device->common.memory, config->capacity_bytes, true, message);
    if (!error) {
        struct bus *bus = enter_bus(device);
        error = duet__bus_join(bus, device);
        duet__bus_tell(bus, NULL);
        (void)pthread_mutex_unlock(&bus->mutex);
        if (error)
            (void)duet_fail(message, error, "emulated device %u: out of memory", config->index);
    }
    if (error) {
        release_device(device);
        return error;
    }
    *out = &device->common;
    return DUET_OK;
}
