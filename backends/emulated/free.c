/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emulated devices that compute: one thread a stream takes its commands in order, so that copies
 * run beside kernels and beside each other. The threads run on the cores of the thread that opens
 * the device.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/emulated/internal.h"

struct stream {
    struct queue queue;
    struct device *device;
    pthread_cond_t given; /* signalled for a new command, and for the end */
    pthread_t thread;
    bool running; /* the thread exists */
};

struct device {
    struct backend_device common; /* first: a backend_device is one of these */
    pthread_mutex_t mutex;        /* lock of all below, and of the queues */
    pthread_cond_t unused;        /* signalled when `users` falls to 0 */
    struct stream streams[BACKEND_STREAMS];
    unsigned opened; /* streams whose condition exists */
    /*
     * Commands that may touch the slab, and have not ended: the device's own, and copies of others.
     */
    size_t users;
    bool poisoned, ending;
};

static struct device *free_of(struct backend_device *device)
{
    return (struct device *)device;
}

static double device_now(const struct device *device)
{
    const struct backend_setup *setup = &device->common.emulated->setup;
    return setup->now(setup->clock);
}

/* ------------------------------------------------------------------------------------------- */
/* Users of the slab */

static void device_use(struct device *device)
{
    (void)pthread_mutex_lock(&device->mutex);
    device->users++;
    (void)pthread_mutex_unlock(&device->mutex);
}

/* Ends a use of the slab; the last one of a lost device poisons it. */
static void device_leave(struct device *device)
{
    (void)pthread_mutex_lock(&device->mutex);
    if (--device->users == 0) {
        if (device->common.head.lost && !device->poisoned)
            device->poisoned = duet__memory_poison(&device->common.memory);
        (void)pthread_cond_broadcast(&device->unused);
    }
    (void)pthread_mutex_unlock(&device->mutex);
}

static bool is_lost(struct device *device)
{
    (void)pthread_mutex_lock(&device->mutex);
    bool lost = device->common.head.lost;
    (void)pthread_mutex_unlock(&device->mutex);
    return lost;
}

/* ------------------------------------------------------------------------------------------- */
/* The threads                                                                                  */

static void move_data(const struct backend_copy *copy)
{
    unsigned char *to = copy->destination;
    const unsigned char *from = copy->source;
    size_t bytes = copy->column_bytes;
    if (!backend_slanted(copy) && bytes == copy->destination_pitch && bytes == copy->source_pitch) {
        if (bytes && copy->cols)
            memcpy(to, from, bytes * copy->cols);
        return;
    }
    for (size_t i = 0; bytes && i < copy->cols; i++) {
        size_t first, part = backend_column(copy, i, &first);
        if (part)
            memcpy(to + first + i * copy->destination_pitch, from + first + i * copy->source_pitch,
                   part);
    }
}

/* Runs a kernel. It may fail by its result, or by the status that it leaves in its call. */
static int run_kernel(struct stream *stream, struct command *command)
{
    struct duet_call *call = command->kernel.call;
    int info = 0;
    call->stream = stream;
    call->status = &info;
    int status = command->kernel.run(call);
    call->status = NULL;
    if (status || info <= 0)
        return status ? status : info;
    (void)snprintf(command->why, sizeof command->why, "info = %d", info);
    return DUET_ETASK;
}

static int perform(struct stream *stream, struct command *command)
{
    if (is_lost(stream->device))
        return DUET_ELOST;
    if (command->is_kernel)
        return run_kernel(stream, command);
    struct device *peer = free_of(command->copy.peer);
    move_data(&command->copy);
    return peer && is_lost(peer) ? DUET_ELOST : DUET_OK;
}

/* Carries out one command and posts its completion, with the mutex held before and after. */
static void serve_command(struct stream *stream)
{
    struct device *device = stream->device;
    struct command command = *queue_head(&stream->queue);
    (void)pthread_mutex_unlock(&device->mutex);
    command.report.start_s = device_now(device);
    command.report.status = perform(stream, &command);
    command.report.end_s = device_now(device);
    if (!command.is_kernel && command.copy.peer)
        device_leave(free_of(command.copy.peer));
    device_leave(device);
    duet__locks_leave(&device->common.emulated->locks, command.note);
    (void)pthread_mutex_lock(&device->mutex);
    *queue_head(&stream->queue) = command;
    stream->queue.done++;
    (void)pthread_mutex_unlock(&device->mutex);
    device->common.config.notify(device->common.config.owner);
    (void)pthread_mutex_lock(&device->mutex);
}

static void *run_stream(void *argument)
{
    struct stream *stream = argument;
    struct device *device = stream->device;
    const struct backend_setup *setup = &device->common.emulated->setup;
    if (setup->computes)
        setup->computes(setup->clock);
    (void)pthread_mutex_lock(&device->mutex);
    for (;;) {
        if (queue_head(&stream->queue))
            serve_command(stream);
        else if (device->ending)
            break;
        else
            (void)pthread_cond_wait(&stream->given, &device->mutex);
    }
    (void)pthread_mutex_unlock(&device->mutex);
    return NULL;
}

/* ------------------------------------------------------------------------------------------- */
/* Functions for the worker */

static int give_command(struct device *device, const struct command *command)
{
    enum backend_stream which = command->is_kernel ? BACKEND_KERNEL : command->copy.stream;
    struct stream *stream = &device->streams[which];
    int error = DUET_OK;
    (void)pthread_mutex_lock(&device->mutex);
    if (duet__ring_reserve(&stream->queue.commands)) {
        (void)duet__ring_add(&stream->queue.commands, command);
        device->users++;
        if (++device->common.launched == device->common.config.lose_at)
            device->common.head.lost = true;
        (void)pthread_cond_signal(&stream->given);
    } else {
        error = DUET_ENOMEM;
    }
    (void)pthread_mutex_unlock(&device->mutex);
    return error;
}

static int launch_free(struct backend_device *device, const struct command *given)
{
    struct command command = *given;
    struct locks *locks = &device->emulated->locks;
    if (command.is_kernel && (!command.kernel.run || !command.kernel.call))
        return DUET_EINVAL;
    struct device *peer = command.is_kernel ? NULL : free_of(command.copy.peer);
    if (peer)
        device_use(peer);
    if (!command.is_kernel)
        command.note = duet__locks_use(locks, command.copy.mark);
    int error = give_command(free_of(device), &command);
    if (error)
        duet__locks_leave(locks, command.note);
    if (error && peer)
        device_leave(peer);
    return error;
}

static size_t poll_free(struct backend_device *self, struct backend_completion *out, size_t max)
{
    struct device *device = free_of(self);
    size_t taken = 0;
    (void)pthread_mutex_lock(&device->mutex);
    for (unsigned s = 0; s < BACKEND_STREAMS; s++)
        taken += duet__emulated_take(&device->streams[s].queue, out + taken, max - taken,
                                     device->common.head.lost);
    (void)pthread_mutex_unlock(&device->mutex);
    return taken;
}

/* Always INFINITY: threads post completions and notify. */
static double next_s_free(const struct backend_device *device)
{
    return INFINITY;
}

/* ------------------------------------------------------------------------------------------- */
/* Opening and closing                                                                          */

static void join_threads(struct device *device)
{
    (void)pthread_mutex_lock(&device->mutex);
    device->ending = true;
    for (unsigned s = 0; s < device->opened; s++)
        (void)pthread_cond_signal(&device->streams[s].given);
    (void)pthread_mutex_unlock(&device->mutex);
    for (unsigned s = 0; s < device->opened; s++)
        if (device->streams[s].running)
            (void)pthread_join(device->streams[s].thread, NULL);
    /* normally no device copies from one that is closed; if so, wait for it */
    (void)pthread_mutex_lock(&device->mutex);
    while (device->users)
        (void)pthread_cond_wait(&device->unused, &device->mutex);
    (void)pthread_mutex_unlock(&device->mutex);
}

static void close_free(struct backend_device *self)
{
    struct device *device = free_of(self);
    join_threads(device);
    for (unsigned s = 0; s < device->opened; s++) {
        (void)pthread_cond_destroy(&device->streams[s].given);
        duet__ring_fini(&device->streams[s].queue.commands);
    }
    (void)pthread_cond_destroy(&device->unused);
    (void)pthread_mutex_destroy(&device->mutex);
    duet__memory_close(&device->common.memory);
    free(device);
}

static bool start_threads(struct device *device)
{
    for (unsigned s = 0; s < BACKEND_STREAMS; s++) {
        struct stream *stream = &device->streams[s];
        stream->device = device;
        stream->queue.commands.slot_bytes = sizeof(struct command);
        if (pthread_cond_init(&stream->given, NULL))
            return false;
        device->opened++;
        if (pthread_create(&stream->thread, NULL, run_stream, stream))
            return false;
        stream->running = true;
    }
    return true;
}

static const struct mode free_mode = {
    .close = close_free,
    .launch = launch_free,
    .poll = poll_free,
    .next_s = next_s_free,
};

int duet__emulated_open_free(struct backend_device **out, struct emulated *emulated,
                             const struct backend_config *config, struct duet_message *message)
{
    struct device *device = calloc(1, sizeof *device);
    if (!device)
        return duet_fail(message, DUET_ENOMEM, "emulated device %u: out of memory", config->index);
    device->common = (struct backend_device){.mode = &free_mode,
                                             .emulated = emulated,
                                             .config = *config,
                                             .memory.file = -1};
    if (pthread_mutex_init(&device->mutex, NULL)) {
        free(device);
        return duet_fail(message, DUET_ENOMEM, "emulated device %u: no mutex", config->index);
    }
    if (pthread_cond_init(&device->unused, NULL)) {
        (void)pthread_mutex_destroy(&device->mutex);
        free(device);
        return duet_fail(message, DUET_ENOMEM, "emulated device %u: no condition", config->index);
    }
    int error = duet__memory_open(&device->common.memory, config->capacity_bytes, false, message);
    if (!error && !start_threads(device))
        error = duet_fail(message, DUET_ENOMEM,
                          "emulated device %u: the system refuses it three threads", config->index);
    if (error) {
        close_free(&device->common);
        return error;
    }
    *out = &device->common;
    return DUET_OK;
}
