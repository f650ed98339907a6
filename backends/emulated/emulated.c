/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emulated GPUs: devices in ordinary memory with an address space, a capacity and three streams of
 * their own. They either do the work of a GPU, or take the time of one.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/emulated/internal.h"

/* ------------------------------------------------------------------------------------------- */
/* Devices                                                                                      */

enum {
    DEFAULT_BYTES = 1 << 30,
    SHARE_OF_HOST = 16, /* default limit of a device's memory, as a fraction of the host's */
};

static unsigned emulated_count(struct duet_message *why)
{
    return EMULATED_MAX;
}

static int check_index(unsigned index, struct duet_message *message)
{
    if (index < EMULATED_MAX)
        return DUET_OK;
    return duet_fail(message, DUET_EINVAL,
                     "emulated device %u: at most %d devices can be emulated, from 0 on", index,
                     EMULATED_MAX);
}

static uint64_t usual_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    uint64_t bytes = DEFAULT_BYTES;
    if (pages > 0 && page_bytes > 0) {
        uint64_t share = (uint64_t)pages * (uint64_t)page_bytes / SHARE_OF_HOST;
        bytes = share < bytes ? share : bytes;
    }
    return bytes >> 20 << 20;
}

/*
 * Describes a device. Its capacity is the default of an emulation; any other may be chosen.
 * Bandwidth and latency are assumed, not measured: one thread's memcpy, and waking it up.
 */
static int emulated_describe(unsigned index, struct backend_info *info,
                             struct duet_message *message)
{
    int error = check_index(index, message);
    if (error)
        return error;
    *info = (struct backend_info){.arch = "emulated",
                                  .description = "GPU emulated in the host's memory, by CPU cores",
                                  .memory_bytes = usual_bytes(),
                                  .bandwidth_Bps = 5e9,
                                  .latency_s = 1e-5};
    return DUET_OK;
}

static void emulated_detach(void *shared)
{
    struct emulated *emulated = shared;
    if (!emulated)
        return;
    if (emulated->setup.scale > 0)
        duet__bus_fini(&emulated->bus);
    duet__locks_fini(&emulated->locks);
    free(emulated);
}

static int emulated_attach(void **shared, const struct backend_setup *setup,
                           struct duet_message *message)
{
    if (!setup->now || !(setup->scale >= 0) || isinf(setup->scale))
        return duet_fail(message, DUET_EINVAL,
                         "emulated devices need a clock and a finite scale >= 0, not %g",
                         setup->scale);
    if (setup->scale > 0 && !setup->machine)
        return duet_fail(message, DUET_EINVAL,
                         "emulated devices with a pace need the machine that sets it");
    struct emulated *emulated = calloc(1, sizeof *emulated);
    if (!emulated)
        return duet_fail(message, DUET_ENOMEM, "emulated devices: out of memory");
    emulated->setup = *setup;
    int error = duet__locks_init(&emulated->locks, &emulated->setup);
    if (error)
        goto no_locks;
    if (setup->scale > 0)
        error = duet__bus_init(&emulated->bus, setup);
    if (error)
        goto no_bus;
    *shared = emulated;
    return DUET_OK;
no_bus:
    duet__locks_fini(&emulated->locks);
no_locks:
    free(emulated);
    return duet_fail(message, error, "emulated devices: out of memory");
}

static int emulated_pin(void *shared, void *data, uint64_t bytes, struct duet_message *message)
{
    struct emulated *emulated = shared;
    return duet__locks_pin(&emulated->locks, data, bytes, message);
}

static int emulated_unpin(void *shared, void *data, struct duet_message *message)
{
    struct emulated *emulated = shared;
    return duet__locks_unpin(&emulated->locks, data, message);
}

static void emulated_forget(void *shared, _Atomic(void *) *mark)
{
    struct emulated *emulated = shared;
    duet__locks_forget(&emulated->locks, mark);
}

/* Opens a device, which runs one kernel at a time, whatever config->kernel_streams allows. */

static int open_device(struct backend_device **out, void *shared,
                       const struct backend_config *config, struct duet_message *message)
{
    struct emulated *emulated = shared;
    int error = check_index(config->index, message);
    if (error)
        return error;
    if (!config->capacity_bytes || !config->notify)
        return duet_fail(message, DUET_EINVAL,
                         "emulated device %u: needs a capacity and somebody to notify",
                         config->index);
    error = emulated->setup.scale > 0 ? duet__emulated_open_paced(out, emulated, config, message)
                                      : duet__emulated_open_free(out, emulated, config, message);
    if (!error)
        (*out)->head.base = (*out)->memory.base;
    return error;
}

static void close_device(struct backend_device *device)
{
    if (device)
        device->mode->close(device);
}

static int emulated_launch(struct backend_device *device, const struct backend_kernel *kernel)
{
    struct command command = {.report.tag = kernel->tag, .is_kernel = true, .kernel = *kernel};
    return device->mode->launch(device, &command);
}

static int emulated_copy(struct backend_device *device, const struct backend_copy *what)
{
    struct command command = {.report.tag = what->tag, .copy = *what};
    const struct memory *own = &device->memory, *peer = what->peer ? &what->peer->memory : own;
    return duet__copy_placed(what, own->base, own->bytes, peer->base, peer->bytes)
               ? device->mode->launch(device, &command)
               : DUET_EINVAL;
}

static size_t emulated_poll(struct backend_device *device, struct backend_completion *out,
                            size_t max)
{
    return device->mode->poll(device, out, max);
}

static double emulated_next_s(const struct backend_device *device)
{
    return device->mode->next_s(device);
}

size_t duet__emulated_take(struct queue *queue, struct backend_completion *out, size_t max,
                           bool lost)
{
    size_t taken = 0;
    for (; taken < max && queue->done; taken++, queue->done--) {
        const struct command *command = ring_at(&queue->commands, 0);
        out[taken] = command->report;
        /* the text is in its slot, which is used again only by a launch or a copy */
        out[taken].why = *command->why && !lost ? command->why : NULL;
        if (lost)
            out[taken].status = DUET_ELOST;
        ring_drop(&queue->commands);
    }
    return taken;
}

const struct duet__backend duet__backend_emulated = {
    .name = "emulated",
    .description = "GPUs emulated in ordinary memory, by CPU cores or by a calibration's pace",
    .count = emulated_count,
    .describe = emulated_describe,
    .attach = emulated_attach,
    .detach = emulated_detach,
    .pin = emulated_pin,
    .unpin = emulated_unpin,
    .forget = emulated_forget,
    .open = open_device,
    .close = close_device,
    .launch = emulated_launch,
    .copy = emulated_copy,
    .poll = emulated_poll,
    .next_s = emulated_next_s,
};
