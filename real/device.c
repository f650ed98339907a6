/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread of a device: it gives the core's commands to the device's streams, and reports those
 * that have ended with the device's dates. It computes nothing, and sleeps whenever the backend can
 * tell it when to look again.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <stdio.h>

#include "real/internal.h"

enum {
    REPORTS = 16,    /* completions taken at a time */
    POLL_NS = 20000, /* pause between two polls of a device that cannot notify, with too few cores
                        to spin */
    NEAR_NS = 50000, /* a date as near as this is spun for: waking up takes as long */
};

/* ------------------------------------------------------------------------------------------- */
/* Reporting                                                                                    */

static void count_step(struct worker *self)
{
    uint64_t steps = atomic_load_explicit(&self->steps, memory_order_relaxed);
    atomic_store_explicit(&self->steps, steps + 1, memory_order_relaxed);
}

/* Publishes the oldest kernel on the device. */
static void show_oldest(struct worker *self)
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
    count_step(self);
}

/* Tells the core once that the device is lost, before it hears of the first lost command. */
static void lose_device(struct worker *self)
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

/*
 * Returns the reason of an error: the kernel's own message before the backend's. If one kernel of a
 * graph has left the error, the graph's message is made of its name and the reason.
 */
static const char *why(struct slot *slot, const struct backend_completion *completion)
{
    if (slot && completion->part)
        duet__part_failed(&slot->call, completion->part - 1, completion->status, completion->why);
    return slot && *slot->message.text ? slot->message.text : completion->why;
}

/*
 * Ends a piece of a copy. Returns true for the last one: the report is then that of all pieces.
 * Pieces are in one stream, so that they end in their order.
 */
static bool all_pieces(struct duet__copy *copy, struct duet__completion *report)
{
    if (!copy->start_s)
        copy->start_s = report->start_s;
    if (copy->status)
        report->why = copy->why;
    else
        copy->status = report->status;
    if (copy->pieces > 1) {
        copy->pieces--;
        if (report->why && !copy->why)
            copy->why = strdup(report->why);
        return false;
    }
    report->start_s = copy->start_s;
    report->status = copy->status;
    return true;
}

/* Reports one completion to the core. A copy's tag is the core's own record of it. */
static void report_completion(struct worker *self, const struct backend_completion *completion)
{
    struct duet__ops ops = {0};
    struct duet__completion report = {.start_s = completion->start_s,
                                      .end_s = completion->end_s,
                                      .status = completion->status};
    struct duet__engine_command command = {.kind = DUET_COPY, .worker = self->index};
    const bool kernel = is_kernel(self, completion->tag);
    struct slot *slot = kernel ? completion->tag : NULL;
    char *kept = NULL;
    if (report.status)
        report.why = why(slot, completion);
    if (kernel) {
        command = slot->command;
        slot->used = false;
        self->kernels--;
    } else {
        command.copy = completion->tag;
        if (!all_pieces(command.copy, &report))
            return;
        kept = command.copy->why; /* the copy's record belongs to the core again */
        self->copies--;
    }
    /* a copy from another device also ends so when that one is lost */
    if (report.status == DUET_ELOST && backend_lost(self->opened))
        lose_device(self);
    show_oldest(self);
    duet__done(self->real->core, &command, duet__worker_now(self), &report, &ops);
    free(kept);
}

/* Reports all commands that have ended on the device. Returns their number. */
static size_t collect_ended(struct worker *self)
{
    struct backend_completion completions[REPORTS];
    size_t count, total = 0;
    if (!self->kernels && !self->copies)
        return 0;
    do {
        count = self->backend->poll(self->opened, completions, REPORTS);
        for (size_t i = 0; i < count; i++)
            report_completion(self, &completions[i]);
        total += count;
    } while (count == REPORTS);
    return total;
}

/* ------------------------------------------------------------------------------------------- */
/* Launching                                                                                    */

/* Ends a command at once that the device did not take. */
static void refuse_command(struct worker *self, void *tag, int status, const char *why)
{
    double now = duet__worker_now(self);
    const struct backend_completion completion = {.tag = tag,
                                                  .start_s = now,
                                                  .end_s = now,
                                                  .status = status,
                                                  .why = why};
    report_completion(self, &completion);
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

static void launch_kernel(struct worker *self, const struct duet__engine_command *command)
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
    struct backend_kernel kernel = {
        .tag = slot,
        .run = run_inside,
        .call = &slot->call,
        .seconds = error ? 0 : duet__paced_seconds(self, command->task),
    };
    kernel.repeat = duet__task_repeat(command->task, &kernel.version);
    show_oldest(self);
    if (error) {
        refuse_command(self, slot, error, NULL);
        return;
    }
    error = self->backend->launch(self->opened, &kernel);
    if (error)
        refuse_command(self, slot, error, backend_why(self->opened));
}

bool duet__real_repeats(void *engine, unsigned worker)
{
    const struct real *real = engine;
    const struct duet__backend *backend = real->workers[worker].backend;
    /* with several streams kernels of a graph may run at once; a calibration wants the time of
       each */
    return backend->repeats && real->config.gpu_streams <= 1 && !real->config.calibrate &&
           !real->config.no_cuda_graphs;
}

/* Returns the beginning of a memory node's slab, and its device; NULL for the host. */
static void *slab_of(const struct real *real, unsigned node, struct backend_device **device)
{
    *device = NULL;
    if (node == DUET_HOST)
        return NULL;
    const struct worker *owner = real->workers + real->cpus;
    while (owner->node != node)
        owner++;
    *device = owner->opened;
    return backend_base(owner->opened);
}

/* Returns the place where the worker's backend may note something about the handle. */
static _Atomic(void *) *mark_of(const struct worker *self, struct duet_handle *handle)
{
    const struct use *marker = duet__marker(self->real);
    return marker && marker->backend == self->backend ? duet__handle_mark(handle) : NULL;
}

/*
 * A copy whose pieces are given to the device; other fields of `given` are the same for all pieces.
 */
struct giving {
    struct worker *self;
    struct backend_copy given;
    unsigned pieces;
    bool refused; /* the device has refused a piece */
};

static int give_piece(void *arg, const struct duet__piece *piece)
{
    struct giving *giving = arg;
    struct backend_copy *given = &giving->given;
    given->destination = piece->to;
    given->source = piece->from;
    given->column_bytes = piece->column_bytes;
    given->cols = piece->cols;
    given->destination_pitch = piece->to_pitch;
    given->source_pitch = piece->from_pitch;
    given->first = piece->first;
    given->end = piece->end;
    given->first_step = piece->first_step;
    given->end_step = piece->end_step;
    int error = giving->self->backend->copy(giving->self->opened, given);
    giving->pieces += !error;
    giving->refused = error;
    return error;
}

/* Gives a paced device a copy as one piece, with one latency, as in a simulation. */
static int give_time(struct giving *giving, const struct duet__copy *copy, const void *source,
                     void *destination)
{
    char *to = destination ? (char *)destination + copy->destination_offset : NULL;
    const char *from = source ? (const char *)source + copy->source_offset : NULL;
    const struct duet__piece all = {.to = to,
                                    .from = from,
                                    .column_bytes = copy->bytes,
                                    .cols = 1,
                                    .to_pitch = copy->bytes,
                                    .from_pitch = copy->bytes};
    return give_piece(giving, &all);
}

static void start_copy(struct worker *self, const struct duet__engine_command *command)
{
    const struct real *real = self->real;
    struct duet__copy *copy = command->copy;
    struct backend_device *devices[2];
    struct duet_buffer buffer;
    void *source = slab_of(real, copy->source, &devices[0]);
    void *destination = slab_of(real, copy->destination, &devices[1]);
    struct giving giving = {.self = self,
                            .given = {.tag = copy,
                                      .stream = command->stream == DUET_STREAM_IN ? BACKEND_IN
                                                                                  : BACKEND_OUT,
                                      .source_node = copy->source,
                                      .destination_node = copy->destination,
                                      .mark = mark_of(self, copy->handle),
                                      .peer =
                                          devices[0] == self->opened ? devices[1] : devices[0]}};
    const bool paced = real->pace.scale > 0;
    self->copies++;
    count_step(self);
    duet__handle_buffer(copy->handle, &buffer);
    if ((!source || !destination) && !buffer.data && !paced) {
        refuse_command(self, copy, DUET_ENOMEM, "no memory left for temporary data");
        return;
    }
    int error = paced ? give_time(&giving, copy, source, destination)
                      : duet__copy_pieces(copy, source, destination, give_piece, &giving);
    /* not refused: there was nothing to copy, unless the data's type errs */
    const char *reason = giving.refused ? backend_why(self->opened)
                                        : "a piece is not within the bytes that its type asks for";
    copy->pieces = giving.pieces;
    if (!giving.pieces) {
        refuse_command(self, copy, error, reason);
        return;
    }
    copy->status = error;
    if (error && reason)
        copy->why = strdup(reason);
}

/* Asks the core until there is nothing more to start. Returns false at EXIT. */
static bool ask_core(struct worker *self)
{
    for (;;) {
        struct duet__ops ops = {0};
        struct duet__engine_command command;
        duet__next(self->real->core, self->index, duet__worker_now(self), &command, &ops);
        if (command.kind == DUET_RUN)
            launch_kernel(self, &command);
        else if (command.kind == DUET_COPY)
            start_copy(self, &command);
        else
            return command.kind == DUET_IDLE;
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Waiting                                                                                      */

/*
 * Waits until the device may have something to report, or the core something to do. Returns true
 * for the latter.
 */
static bool wait_in_flight(struct worker *self)
{
    bool spin = self->real->spin;
    double date_s = self->backend->next_s ? self->backend->next_s(self->opened) : 0;
    double left_s = date_s == 0 ? 0 : date_s - duet__clock_now(&self->real->clock);
    if (spin && left_s < NEAR_NS * 1e-9) {
        duet__spin(self, date_s);
        return park_take(&self->park) != PARK_AWAKE;
    }
    if (date_s == 0)
        left_s = POLL_NS * 1e-9;
    return duet__park(&self->park, left_s) != PARK_AWAKE;
}

/* Waits until the core may have something to do; nothing is in flight. */
static void wait_idle(struct worker *self)
{
    const struct real *real = self->real;
    atomic_store_explicit(&self->resting, true, memory_order_relaxed);
    if (real->spin)
        duet__spin(self, duet__clock_now(&real->clock) + SPIN_NS * 1e-9);
    (void)duet__park(&self->park, INFINITY);
    atomic_store_explicit(&self->resting, false, memory_order_relaxed);
}

/* Gives the device up once a run has failed and nothing has ended on it for the watchdog's time. */
static void lose_patience(struct worker *self)
{
    const struct real *real = self->real;
    double now_s = duet__clock_now(&real->clock);
    if (self->still_s == 0)
        self->still_s = now_s;
    if (!self->lost && self->backend->abandon && now_s - self->still_s > real->config.watchdog_s)
        self->backend->abandon(self->opened);
}

static void run_device(struct worker *self)
{
    bool called = true;
    for (;;) {
        atomic_store_explicit(&self->asking, true, memory_order_relaxed);
        size_t ended = collect_ended(self);
        bool goes_on = !(called || ended) || ask_core(self);
        atomic_store_explicit(&self->asking, false, memory_order_relaxed);
        if (!goes_on)
            return;
        called = true;
        if (ended || !duet__failed(self->real->core))
            self->still_s = 0;
        else if (self->kernels || self->copies)
            lose_patience(self);
        if (self->kernels || self->copies)
            called = wait_in_flight(self);
        else
            wait_idle(self);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* The thread                                                                                   */

static void notify_device(void *owner)
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
        .kernel_streams = real->config.gpu_streams ? real->config.gpu_streams : 1,
        .kernels = self->slot_count,
        .untimed = real->config.gpu_untimed,
        .lose_at = self->lose_at,
        .notify = notify_device,
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
    if (real->pace.scale > 0 || !real->spin)
        (void)duet__thread_slack(SLACK_NS); /* Linux's 50 us are more than POLL_NS */
    int error = open_device(self, &message);
    if (duet__threads_ready(real, error, &message)) {
        (void)duet__enter(&self->inside);
        run_device(self);
        (void)duet__enter(NULL);
        duet__threads_leave(real);
    }
    self->backend->close(self->opened);
    self->opened = NULL;
    return NULL;
}

/* ------------------------------------------------------------------------------------------- */
/* Page-locking, by those backends in use that support it. */

/*
 * True if the backend page-locks. In a paced emulation nothing is copied that could be copied
 * faster.
 */
static bool does_pin(const struct real *real, const struct use *use)
{
    return use->backend->pin && use->attached && !(real->pace.scale > 0);
}

/* Page-locks, or ends that, at all backends that do. Returns the first error, with its message. */
static int pin_all(const struct real *real, bool pins, void *data, size_t bytes,
                   struct duet_message *message)
{
    int error = DUET_OK;
    for (unsigned i = 0; i < real->use_count; i++) {
        const struct use *use = &real->uses[i];
        struct duet_message *first = error ? NULL : message;
        if (!does_pin(real, use))
            continue;
        int status = pins ? use->backend->pin(use->shared, data, bytes, first)
                          : use->backend->unpin(use->shared, data, first);
        error = error ? error : status;
    }
    return error;
}

int duet__real_pin(void *engine, void *data, size_t bytes, struct duet_message *message)
{
    return pin_all(engine, true, data, bytes, message);
}

int duet__real_unpin(void *engine, void *data, struct duet_message *message)
{
    return pin_all(engine, false, data, 0, message);
}

/* Returns the first backend that uses marks: a handle has one mark. */
const struct use *duet__marker(const struct real *real)
{
    for (unsigned i = 0; i < real->use_count; i++)
        if (real->uses[i].backend->forget)
            return &real->uses[i];
    return NULL;
}

void duet__real_forget(void *engine, struct duet_handle *handle)
{
    const struct use *marker = duet__marker(engine);
    _Atomic(void *) *mark = marker ? duet__handle_mark(handle) : NULL;
    if (mark && atomic_load_explicit(mark, memory_order_acquire))
        marker->backend->forget(marker->shared, mark);
}

/* ------------------------------------------------------------------------------------------- */
/* Emulated devices that are lost on purpose. */

/* Returns the number of the device's worker of this name, or -1. */
static int find_worker(const struct duet_machine *machine, const char *name, size_t length)
{
    for (unsigned w = 0; w < machine->worker_count; w++) {
        const struct duet_worker *known = &machine->workers[w];
        if (known->node != DUET_HOST && strlen(known->name) == length &&
            !memcmp(known->name, name, length))
            return (int)w;
    }
    return -1;
}

/*
 * Refuses a name, and says which devices there are, as gpu0 and gpu2 may be the two that are used.
 */
static int refuse_name(const struct duet_machine *machine, const char *name, size_t length,
                       struct duet_message *message)
{
    char names[256] = "none";
    size_t used = 0;
    for (unsigned w = 0; w < machine->worker_count && used < sizeof names; w++)
        if (machine->workers[w].node != DUET_HOST)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                     machine->workers[w].name);
    return duet_fail(message, DUET_EINVAL,
                     "cannot lose '%.*s': this machine has no such device (it has %s)", (int)length,
                     name, names);
}

/*
 * Parses one "gpu1@100" of `length` bytes, and sets the number for its worker. `emulated`: by
 * architecture, true if its devices are; NULL: all of them.
 */
static int parse_one(const struct duet_machine *machine, const bool *emulated, const char *text,
                     size_t length, uint64_t *lose_at, struct duet_message *message)
{
    const char *at = memchr(text, '@', length);
    int worker = at ? find_worker(machine, text, (size_t)(at - text)) : -1;
    if (!at)
        return duet_fail(message, DUET_EINVAL,
                         "a device to lose is given as gpu1@100 (at its 100th kernel or copy), not "
                         "'%.*s'",
                         (int)length, text);
    if (worker < 0)
        return refuse_name(machine, text, (size_t)(at - text), message);
    if (emulated && !emulated[machine->workers[worker].arch])
        return duet_fail(message, DUET_EINVAL,
                         "cannot lose '%.*s': only emulated devices are lost on purpose",
                         (int)(at - text), text);
    char *end = NULL;
    errno = 0;
    unsigned long long number = strtoull(at + 1, &end, 10);
    if (at[1] < '0' || at[1] > '9' || end != text + length || number == 0 || errno == ERANGE)
        return duet_fail(message, DUET_EINVAL,
                         "cannot lose a device at '%.*s': the number of a kernel or copy, from 1, "
                         "must stand after the @",
                         (int)length, text);
    if (lose_at[worker])
        return duet_fail(message, DUET_EINVAL, "%.*s is to be lost twice", (int)(at - text), text);
    lose_at[worker] = number;
    return DUET_OK;
}

/* Parses a list: *lose_at, to be freed, has a number for each worker, 0 for those that stay. */
static int parse_all(const struct duet_machine *machine, const bool *emulated, const char *text,
                     uint64_t **lose_at, struct duet_message *message)
{
    int error = DUET_OK;
    *lose_at = calloc((size_t)machine->worker_count + 1, sizeof **lose_at);
    if (!*lose_at)
        return duet_fail(message, DUET_ENOMEM, "no memory left for the engine");
    while (text && *text && !error) {
        size_t length = strcspn(text, ",");
        error = parse_one(machine, emulated, text, length, *lose_at, message);
        text += length;
        text += *text == ',';
    }
    return error;
}

int duet__lose_parse(struct real *real, const char *text, struct duet_message *message)
{
    uint64_t *lose_at;
    int error = parse_all(&real->machine, real->emulated, text, &lose_at, message);
    for (unsigned w = 0; w < real->machine.worker_count && !error; w++)
        real->workers[w].lose_at = lose_at[w];
    free(lose_at);
    return error;
}

int duet__real_check_lose(const struct duet_machine *machine, const char *text,
                          struct duet_message *message)
{
    uint64_t *lose_at;
    int error = parse_all(machine, NULL, text, &lose_at, message);
    free(lose_at);
    return error;
}
