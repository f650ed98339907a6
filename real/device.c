/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a device's thread does: it gives the core's commands to the device's streams, and reports
 * what has ended with the device's dates. It computes nothing, and sleeps whenever the backend can
 * tell it when to look again.
 */
#include <math.h>
#include <stddef.h>

#include "real/internal.h"

enum {
    REPORTS = 16, /* completions taken at a time */
    POLL_NS =
        20000, /* between two looks at a device that cannot tell, with too few cores to spin */
    NEAR_NS = 50000, /* a date as near as this is watched for: waking up takes as long */
};

/* ------------------------------------------------------------------------------------------- */
/* Reporting                                                                                    */

static void step(struct worker *self)
{
    uint64_t steps = atomic_load_explicit(&self->steps, memory_order_relaxed);
    atomic_store_explicit(&self->steps, steps + 1, memory_order_relaxed);
}

/* Shows the oldest kernel on the device to those who look. */
static void show(struct worker *self)
{
    const struct slot *oldest = NULL;
    for (unsigned i = 0; i < self->slot_count; i++)
        if (self->slots[i].used && (!oldest || self->slots[i].number < oldest->number))
            oldest = &self->slots[i];
    if (oldest) {
        const struct duet_task *task = oldest->command.task;
        atomic_store_explicit(&self->task, duet_task_id(task), memory_order_relaxed);
        atomic_store_explicit(&self->since_s, oldest->launched_s, memory_order_relaxed);
    }
    atomic_store_explicit(&self->kernel, oldest ? duet_task_kernel(oldest->command.task) : NULL,
                          memory_order_relaxed);
    step(self);
}

/* The core is told once, before it hears of the first command that was lost. */
static void lose(struct worker *self)
{
    struct duet__ops ops = {0};
    if (self->lost)
        return;
    self->lost = true;
    (void)duet__worker_lost(self->real->core, self->index, duet__worker_now(self), &ops);
}

static bool is_kernel(const struct worker *self, const void *tag)
{
    const struct slot *slot = tag;
    return slot >= self->slots && slot < self->slots + self->slot_count;
}

/* What is known of an error: what the kernel says itself is nearer than what the backend says. */
static const char *why(const struct slot *slot, const struct backend_completion *completion)
{
    return slot && *slot->message.text ? slot->message.text : completion->why;
}

/* Reports one completion to the core. A copy's tag is the core's own record of it. */
static void report(struct worker *self, const struct backend_completion *completion)
{
    struct duet__ops ops = {0};
    struct duet__report report = {.start_s = completion->start_s,
                                  .end_s = completion->end_s,
                                  .status = completion->status};
    struct duet__engine_command command = {.kind = DUET_COPY, .worker = self->index};
    struct slot *slot = is_kernel(self, completion->tag) ? completion->tag : NULL;
    if (report.status)
        report.why = why(slot, completion);
    if (slot) {
        command = slot->command;
        slot->used = false;
        self->kernels--;
    } else {
        command.copy = completion->tag;
        self->copies--;
    }
    /* a copy from another device also ends so when that one is lost */
    if (report.status == DUET_ELOST && self->backend->lost(self->opened))
        lose(self);
    show(self);
    duet__done(self->real->core, &command, duet__worker_now(self), &report, &ops);
}

/* Reports what has ended on the device. How much. */
static size_t collect(struct worker *self)
{
    struct backend_completion completions[REPORTS];
    size_t count, total = 0;
    if (!self->kernels && !self->copies)
        return 0;
    do {
        count = self->backend->poll(self->opened, completions, REPORTS);
        for (size_t i = 0; i < count; i++)
            report(self, &completions[i]);
        total += count;
    } while (count == REPORTS);
    return total;
}

/* ------------------------------------------------------------------------------------------- */
/* Launching                                                                                    */

/* A command that the device did not take has ended at once. */
static void refuse(struct worker *self, void *tag, int status, const char *why)
{
    double now = duet__worker_now(self);
    const struct backend_completion completion = {.tag = tag,
                                                  .start_s = now,
                                                  .end_s = now,
                                                  .status = status,
                                                  .why = why};
    report(self, &completion);
}

/* Why it did not. */
static const char *why_refused(const struct worker *self)
{
    return self->backend->why ? self->backend->why(self->opened) : NULL;
}

/* Runs a kernel, on whichever thread the backend runs it. */
static int run_inside(const struct duet_call *call)
{
    const struct slot *slot = (const void *)((const char *)call - offsetof(struct slot, call));
    int by = duet__inside(slot->real); /* DUET_OUTSIDE: on a thread of the backend's */
    const struct inside inside = {.real = slot->real,
                                  .by = by == DUET_OUTSIDE ? DUET_SUBMITTER : by,
                                  .task = slot->command.task};
    const struct inside *before = duet__enter(&inside);
    int status = slot->run(call);
    (void)duet__enter(before);
    return status;
}

static void launch(struct worker *self, const struct duet__engine_command *command)
{
    struct real *real = self->real;
    struct slot *slot = self->slots;
    while (slot->used)
        slot++;
    slot->used = true;
    slot->command = *command;
    slot->number = self->launched++;
    slot->launched_s = self->now_s;
    slot->real = real;
    slot->run = real->emulated[self->arch] ? duet__task_emulation(command->task)
                                           : duet__task_function(command->task, self->arch);
    self->kernels++;
    int error = duet__slot_fill(self, slot, command->task);
    const struct backend_kernel kernel = {
        .tag = slot,
        .run = run_inside,
        .call = &slot->call,
        .seconds = error ? 0 : duet__paced_seconds(self, command->task),
    };
    show(self);
    if (error) {
        refuse(self, slot, error, NULL);
        return;
    }
    error = self->backend->launch(self->opened, &kernel);
    if (error)
        refuse(self, slot, error, why_refused(self));
}

/* One end of a copy; *pitch: bytes from one column to the next. */
static void *end_of(const struct real *real, const struct duet__copy *copy, unsigned node,
                    uint64_t offset, size_t *pitch, struct backend_device **device)
{
    struct duet_buffer buffer;
    duet__handle_buffer(copy->handle, &buffer);
    *pitch = (node == DUET_HOST ? buffer.ld : buffer.rows) * buffer.element_bytes;
    *device = NULL;
    if (node == DUET_HOST)
        return buffer.data;
    const struct worker *owner = real->workers + real->cpus;
    while (owner->node != node)
        owner++;
    *device = owner->opened;
    return (char *)owner->backend->base(owner->opened) + offset;
}

/* Where the worker's backend may note something about the handle. */
static _Atomic(void *) *mark_of(const struct worker *self, struct duet_handle *handle)
{
    const struct use *marker = duet__marker(self->real);
    return marker && marker->backend == self->backend ? duet__handle_mark(handle) : NULL;
}

/* What belongs to the handle, if not all of it does. */
static void set_slant(struct backend_copy *copy, const struct duet_handle *handle,
                      const struct duet_buffer *buffer)
{
    size_t first, end, next_first, next_end;
    duet__handle_column(handle, 0, &first, &end);
    duet__handle_column(handle, 1, &next_first, &next_end);
    if (first == next_first && end == next_end)
        return;
    copy->first = first * buffer->element_bytes;
    copy->end = end * buffer->element_bytes;
    copy->first_step = (next_first - first) * buffer->element_bytes;
    copy->end_step = (next_end - end) * buffer->element_bytes;
}

static void start_copy(struct worker *self, const struct duet__engine_command *command)
{
    const struct real *real = self->real;
    struct duet__copy *from = command->copy;
    struct backend_device *devices[2];
    struct duet_buffer buffer;
    duet__handle_buffer(from->handle, &buffer);
    struct backend_copy copy = {
        .tag = from,
        .stream = command->stream == DUET_STREAM_IN ? BACKEND_IN : BACKEND_OUT,
        .column_bytes = buffer.rows * buffer.element_bytes,
        .cols = buffer.cols,
        .source_node = from->source,
        .destination_node = from->destination,
        .mark = mark_of(self, from->handle),
    };
    copy.source =
        end_of(real, from, from->source, from->source_offset, &copy.source_pitch, &devices[0]);
    copy.destination = end_of(real, from, from->destination, from->destination_offset,
                              &copy.destination_pitch, &devices[1]);
    set_slant(&copy, from->handle, &buffer);
    copy.peer = devices[0] == self->opened ? devices[1] : devices[0];
    self->copies++;
    step(self);
    bool at_host = from->source == DUET_HOST || from->destination == DUET_HOST;
    if (at_host && !buffer.data && !(real->options.scale > 0)) {
        refuse(self, from, DUET_ENOMEM, "no memory left for temporary data");
        return;
    }
    int error = self->backend->copy(self->opened, &copy);
    if (error)
        refuse(self, from, error, why_refused(self));
}

/* Asks until there is nothing more to start. false: the core says EXIT. */
static bool ask(struct worker *self)
{
    for (;;) {
        struct duet__ops ops = {0};
        struct duet__engine_command command;
        duet__next(self->real->core, self->index, duet__worker_now(self), &command, &ops);
        if (command.kind == DUET_RUN)
            launch(self, &command);
        else if (command.kind == DUET_COPY)
            start_copy(self, &command);
        else
            return command.kind == DUET_IDLE;
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Waiting                                                                                      */

/*
 * Waits until the device may have something to report, or the core something to do. true: the
 * latter.
 */
static bool doze(struct worker *self)
{
    bool spin = self->real->spin;
    double date_s = self->backend->next_s(self->opened);
    double left_s = date_s == 0 ? 0 : date_s - duet__clock_now(&self->real->clock);
    if (spin && left_s < NEAR_NS * 1e-9) {
        duet__spin(self, date_s);
        return park_take(&self->park) != PARK_AWAKE;
    }
    if (date_s == 0)
        left_s = POLL_NS * 1e-9;
    return duet__park(&self->park, left_s) != PARK_AWAKE;
}

/* The same with nothing in flight. */
static void rest(struct worker *self)
{
    const struct real *real = self->real;
    atomic_store_explicit(&self->resting, true, memory_order_relaxed);
    if (real->spin)
        duet__spin(self, duet__clock_now(&real->clock) + SPIN_NS * 1e-9);
    (void)duet__park(&self->park, INFINITY);
    atomic_store_explicit(&self->resting, false, memory_order_relaxed);
}

static void drive(struct worker *self)
{
    bool called = true;
    for (;;) {
        atomic_store_explicit(&self->asking, true, memory_order_relaxed);
        size_t ended = collect(self);
        bool goes_on = !(called || ended) || ask(self);
        atomic_store_explicit(&self->asking, false, memory_order_relaxed);
        if (!goes_on)
            return;
        called = true;
        if (self->kernels || self->copies)
            called = doze(self);
        else
            rest(self);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* The thread                                                                                   */

static void notify(void *owner)
{
    struct worker *self = owner;
    (void)duet__park_wake(&self->park);
}

static int open_device(struct worker *self, struct duet_message *message)
{
    struct real *real = self->real;
    const struct backend_config config = {
        .index = self->ordinal,
        .node = self->node,
        .capacity_bytes = real->machine.nodes[self->node].capacity_bytes,
        .kernel_streams = real->options.gpu_streams,
        .lose_at = self->lose_at,
        .notify = notify,
        .owner = self,
    };
    void *shared = NULL;
    for (unsigned i = 0; i < real->use_count; i++)
        if (real->uses[i].backend == self->backend)
            shared = real->uses[i].shared;
    return self->backend->open(&self->opened, shared, &config, message);
}

void *duet__device_thread(void *worker)
{
    struct worker *self = worker;
    struct real *real = self->real;
    struct duet_message message = {""};
    duet__thread_begin(real, real->machine.workers[self->index].name, self->place);
    if (real->options.scale > 0 || !real->spin)
        (void)duet__thread_slack(SLACK_NS); /* Linux's 50 us are more than POLL_NS */
    int error = open_device(self, &message);
    if (duet__threads_ready(real, error, &message)) {
        (void)duet__enter(&self->inside);
        drive(self);
        (void)duet__enter(NULL);
        duet__threads_leave(real);
    }
    self->backend->close(self->opened);
    self->opened = NULL;
    return NULL;
}
