/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread of a CPU worker: it asks the core, runs the kernel, reports. One reading of the clock
 * suffices for a task: a kernel begins when the worker asks for it, which is when the one before it
 * ended; the core's work in between counts as the kernel's. It is read again where that would be
 * wrong, see start_of.
 */
#include <math.h>
#include <sched.h>
#include <stdlib.h>

#include "real/internal.h"

enum { SPIN_RESTS = 16 }; /* pauses between two readings of the clock */

/* ------------------------------------------------------------------------------------------- */
/* The worker or kernel of this thread */

/* Not initial-exec: with CUDA's own such variables libduet could then not be loaded by dlopen. */
static _Thread_local const struct inside *inside_now;

const struct inside *duet__enter(const struct inside *inside)
{
    const struct inside *before = inside_now;
    inside_now = inside;
    return before;
}

static _Atomic unsigned forks; /* number of fork() on the way to this process */

static void count_fork(void)
{
    atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed);
}

static void count_forks(void)
{
    (void)pthread_atfork(NULL, NULL, count_fork);
}

unsigned duet__forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, count_forks);
    return atomic_load_explicit(&forks, memory_order_relaxed);
}

inline int duet__inside(void *engine)
{
    const struct real *real = engine;
    if (atomic_load_explicit(&forks, memory_order_relaxed) != real->forks)
        return DUET_FORKED;
    return inside_now && inside_now->real == engine ? inside_now->by : DUET_OUTSIDE;
}

void duet__real_submitted(void *engine, struct duet_task *task)
{
    struct real *real = engine;
    struct duet__ops ops = {0};
    int by = duet__inside(real);
    struct duet_task *parent = by == DUET_OUTSIDE || by == DUET_FORKED ? NULL : inside_now->task;
    uint64_t submissions = atomic_load_explicit(&real->submissions, memory_order_relaxed);
    atomic_store_explicit(&real->submissions, submissions + 1, memory_order_relaxed);
    if (parent && !duet__task_acquires(task))
        duet__link_after(parent, task);
    else
        duet__link(real->core, task, by == DUET_OUTSIDE ? DUET_SUBMITTER : by,
                   duet__clock_now(&real->clock), &ops);
}

void duet__real_submitted_all(void *engine, struct duet_task *first)
{
    struct real *real = engine;
    struct duet__ops ops = {0};
    uint64_t submissions = atomic_load_explicit(&real->submissions, memory_order_relaxed);
    atomic_store_explicit(&real->submissions, submissions + 1, memory_order_relaxed);
    duet__link_all(real->core, first, duet__clock_now(&real->clock), &ops);
}

/* ------------------------------------------------------------------------------------------- */
/* Kernels                                                                                      */

static double later_date(double a, double b)
{
    return a > b ? a : b;
}

double duet__worker_now(struct worker *self)
{
    self->now_s = later_date(self->now_s, duet__clock_now(&self->real->clock));
    self->woke = false;
    return self->now_s;
}

/* Makes room for the buffers of a kernel with many accesses; kept for the next one. */
static struct duet_buffer *reserve_buffers(struct slot *slot, size_t count)
{
    if (count > slot->room) {
        struct duet_buffer *more = realloc(slot->many, 2 * count * sizeof *more);
        if (!more)
            return NULL;
        slot->many = more;
        slot->room = 2 * count;
    }
    return slot->many;
}

/* Fills in buffers where some data is not a matrix. NULL: no memory. */
__attribute__((cold, noinline)) static struct duet_buffer *fill_laid(const struct worker *self,
                                                                     struct slot *slot,
                                                                     const struct duet_task *task,
                                                                     void *base)
{
    size_t count = duet__task_buffer_count(task);
    struct duet_buffer *buffers = count <= FEW ? slot->few : reserve_buffers(slot, count);
    if (buffers)
        duet__laid_buffers(task, self->node, base, buffers);
    return buffers;
}

inline int duet__slot_fill(struct worker *self, struct slot *slot, const struct duet_task *task)
{
    size_t count = duet_task_accesses(task);
    struct duet_buffer *buffers = count <= FEW ? slot->few : reserve_buffers(slot, count);
    slot->message.text[0] = '\0'; /* the message of the previous kernel */
    if (!buffers)
        return DUET_ENOMEM;
    void *base = self->device ? backend_base(self->opened) : NULL;
    if (count && !duet__task_buffers(task, self->node, base, buffers)) {
        count = duet__task_buffer_count(task);
        buffers = fill_laid(self, slot, task, base);
        if (!buffers)
            return DUET_ENOMEM;
    }
    slot->call = (struct duet_call){.runtime = self->real->core,
                                    .args = duet__task_args(task),
                                    .buffers = buffers,
                                    .buffer_count = count,
                                    .message = &slot->message};
    return DUET_OK;
}

double duet__paced_seconds(const struct worker *self, const struct duet_task *task)
{
    const struct real_pace *pace = &self->real->pace;
    if (!(pace->scale > 0))
        return 0;
    const struct duet__class klass = duet__task_class(task);
    double seconds = pace->seconds(pace->times, &klass, self->arch);
    return seconds > 0 ? seconds * pace->scale : 0;
}

/* Runs the kernel. Returns its status; *end_s is when it ended. */
static int compute_kernel(struct worker *self, const struct duet_task *task, struct slot *slot,
                          double *end_s)
{
    const struct backend_kernel kernel = {
        .tag = slot,
        .run = duet__task_function(task, self->arch),
        .call = &slot->call,
    };
    int status = self->backend->execute(self->opened, &kernel);
    *end_s = later_date(*end_s, duet__worker_now(self));
    return status;
}

/* Lets the time of a kernel pass. It ends at its date, even if this thread wakes up later. */
static int pass_time(struct worker *self, const struct duet_task *task, double *end_s)
{
    *end_s += duet__paced_seconds(self, task);
    duet__sleep_until(self->real, *end_s);
    (void)duet__worker_now(self);
    return DUET_OK;
}

static void show_task(struct worker *self, const struct duet_task *task, double start_s)
{
    uint64_t steps = atomic_load_explicit(&self->steps, memory_order_relaxed);
    atomic_store_explicit(&self->steps, steps + 1, memory_order_relaxed);
    atomic_store_explicit(&self->task, duet_task_id(task), memory_order_relaxed);
    atomic_store_explicit(&self->since_s, start_s, memory_order_relaxed);
    atomic_store_explicit(&self->kernel, duet_task_kernel(task), memory_order_relaxed);
}

/*
 * Returns when a kernel that the core has just given out begins: not before it was ready, as
 * another worker may have made it so after the last reading of the clock, nor before its inputs
 * were there, which devices may have brought since. Stealing, and waking others, which may take the
 * core from this thread, count for no kernel.
 */
static double start_of(struct worker *self, const struct duet_task *task, bool stole)
{
    bool brought = self->real->has_devices && duet_task_accesses(task);
    if (stole || brought || self->woke)
        (void)duet__worker_now(self);
    return later_date(self->now_s, duet__task_ready(task));
}

/* Fills in the arguments of a kernel, and runs it. Returns its status. */
static inline int run_kernel(struct worker *self, const struct duet_task *task, double *end_s)
{
    struct slot *slot = self->slots;
    int error = duet__slot_fill(self, slot, task);
    if (error)
        return error;
    return self->real->pace.scale > 0 ? pass_time(self, task, end_s)
                                      : compute_kernel(self, task, slot, end_s);
}

/* Stack of this thread; 0 bytes: not known yet. */
static _Thread_local const char *stack;
static _Thread_local size_t stack_bytes;

static void find_stack(void)
{
    if (!stack_bytes)
        stack_bytes = duet__thread_stack(&stack);
}

/*
 * True if another task that waits may be put on this stack. An eighth of it is left for the
 * functions they call. A stack that is not the thread's own, such as that of an application's
 * fiber, is not checked.
 */
static bool has_stack(void)
{
    find_stack();
    uintptr_t left = (uintptr_t)__builtin_frame_address(0) - (uintptr_t)stack;
    return left >= stack_bytes || left > stack_bytes / 8;
}

const char *duet__stack_part(unsigned part)
{
    find_stack();
    return stack + stack_bytes / part;
}

/*
 * Calls a task that may wait for its children; its arguments are on this stack, as others run on
 * top of it.
 */
static int start_body(struct worker *self, struct duet_task *task)
{
    struct duet_message *message = &self->slots->message;
    if (has_stack())
        return duet__body_run(self->real->core, self->index, task, message);
    return duet_fail(message, DUET_ENOMEM,
                     "so many tasks wait on top of each other on this worker that its stack is "
                     "used up: let fewer wait, or give threads a larger stack (ulimit -s)");
}

/* Reports the end of a task. */
static inline __attribute__((always_inline)) void task_over(
    struct worker *self, const struct duet__engine_command *command,
    struct duet__completion *report, struct duet__ops *ops)
{
    if (report->status)
        report->why = self->slots->message.text;
    self->now_s = later_date(self->now_s, report->end_s);
    atomic_store_explicit(&self->kernel, NULL, memory_order_relaxed);
    ops->steal_attempts = 0;
    duet__done(self->real->core, command, self->now_s, report, ops);
}

/* As task_over, with what it needs of the stack gone afterwards. */
__attribute__((noinline)) static void body_over(struct worker *self,
                                                const struct duet__engine_command *command,
                                                struct duet__completion *report,
                                                struct duet__ops *ops)
{
    task_over(self, command, report, ops);
}

/*
 * Runs a task that may wait. It takes its own time, even in a paced emulation. Thousands may be on
 * one stack, so that this function and those that it calls keep little there.
 */
__attribute__((noinline)) static void run_body(struct worker *self,
                                               const struct duet__engine_command *command,
                                               struct duet__ops *ops)
{
    const double outer_s = self->before_s;
    struct duet__completion report = {.start_s =
                                          start_of(self, command->task, ops->steal_attempts > 0)};
    show_task(self, command->task, report.start_s);
    self->before_s = 0;
    self->piece_s = report.start_s;
    report.status = start_body(self, command->task);
    report.start_s = self->piece_s;
    report.end_s = duet__worker_now(self);
    report.before_s = self->before_s;
    self->before_s = outer_s;
    body_over(self, command, &report, ops);
}

/* Runs a kernel to its end and reports it. */
static inline __attribute__((always_inline)) void run_task(
    struct worker *self, const struct duet__engine_command *command, struct duet__ops *ops)
{
    if (duet__task_waits(command->task)) {
        run_body(self, command, ops);
        return;
    }
    struct duet_task *task = command->task;
    double start_s = start_of(self, task, ops->steal_attempts > 0);
    show_task(self, task, start_s);
    struct duet__completion report = {.start_s = start_s, .end_s = start_s};
    report.status = run_kernel(self, task, &report.end_s);
    task_over(self, command, &report, ops);
}

/* As run_task; on a stack with tasks that wait. */
__attribute__((noinline)) static void run_plain(struct worker *self,
                                                const struct duet__engine_command *command,
                                                struct duet__ops *ops)
{
    run_task(self, command, ops);
}

/* ------------------------------------------------------------------------------------------- */
/* Having nothing to do                                                                         */

void duet__spin(const struct worker *self, double date_s)
{
    do {
        for (int i = 0; i < SPIN_RESTS; i++) {
            if (park_called(&self->park))
                return;
            duet__clock_rest();
        }
    } while (duet__clock_now(&self->real->clock) < date_s);
}

/*
 * Spins for the engine's time, or until the worker is woken. What is long enough to take a core
 * from other threads, as teams ask for it, lets these run in between.
 */
static void spin_at_rest(const struct worker *self)
{
    const double date_s = duet__clock_now(&self->real->clock) +
                          atomic_load_explicit(&self->real->spin_s, memory_order_relaxed);
    double step_s = duet__clock_now(&self->real->clock) + SPIN_NS * 1e-9;
    duet__spin(self, date_s < step_s ? date_s : step_s);
    while (!park_called(&self->park) && duet__clock_now(&self->real->clock) < date_s) {
        (void)sched_yield();
        duet__spin(self, 0);
    }
}

enum rest { REST_ASK, REST_ENOUGH, REST_STUCK };

/* Waits until the core has to be asked again, or there is another reason to go on. */
static enum rest rest_worker(struct worker *self, const struct until *until)
{
    struct real *real = self->real;
    double limit_s = until && until->watches ? real->watch.look_s : INFINITY;
    if (atomic_load_explicit(&real->spin_s, memory_order_relaxed) > 0)
        spin_at_rest(self);
    if (until && until->leaves && !park_called(&self->park))
        return REST_ENOUGH;
    for (;;) {
        enum park_state call = duet__park(&self->park, limit_s);
        if (call == PARK_AWAKE && limit_s < INFINITY && duet__watch(real))
            return REST_STUCK;
        self->owed = call == PARK_WOKEN;
        if (call != PARK_AWAKE && until && until->reached(until->arg))
            return REST_ENOUGH;
        if (call == PARK_WOKEN)
            return REST_ASK;
    }
}

/* Takes a call that came during a kernel. Returns true if `until` is reached. */
static bool is_enough(struct worker *self, const struct until *until)
{
    return until && park_called(&self->park) && park_take(&self->park) != PARK_AWAKE &&
           until->reached(until->arg);
}

static int run_one_nested(struct worker *self, struct duet_task *task, const char **why)
{
    self->slots->message.text[0] = '\0';
    *why = self->slots->message.text;
    if (duet__task_waits(task))
        return start_body(self, task);
    const struct duet_call call = {.runtime = self->real->core,
                                   .args = duet__task_args(task),
                                   .message = &self->slots->message};
    return duet__task_function(task, self->arch)(&call);
}

static void run_next_nested(struct worker *self, struct duet_task *task)
{
    struct duet__completion report = {.start_s = self->now_s};
    uint64_t steps = atomic_load_explicit(&self->steps, memory_order_relaxed);
    atomic_store_explicit(&self->steps, steps + 1, memory_order_relaxed);
    self->piece_s = report.start_s;
    report.status = run_one_nested(self, task, &report.why);
    report.start_s = self->piece_s;
    report.end_s = duet__records(self->real->core) ? duet__worker_now(self) : self->now_s;
    duet__nested_done(self->real->core, self->index, task, &report);
}

/* Begins a series of kept tasks, which are not timed one by one. */
static void begin_batch(struct worker *self)
{
    self->in_batch = true;
    self->batch_s = self->now_s;
}

__attribute__((noinline)) static void end_batch(struct worker *self, struct duet__ops *ops)
{
    self->in_batch = false;
    duet__nested_end(self->real->core, self->index, self->batch_s, duet__worker_now(self), ops);
}

/* Runs the tasks that the worker has kept to itself. Returns true if `until` is reached. */
static bool run_nested(struct worker *self, const struct until *until, struct duet__ops *ops)
{
    struct duet_runtime *core = self->real->core;
    bool ends = false;
    struct duet_task *task;
    begin_batch(self);
    while (!ends && (task = duet__nested_next(core, self->index, self->now_s, ops))) {
        run_next_nested(self, task);
        ends = is_enough(self, until);
    }
    end_batch(self, ops);
    return ends;
}

/* ------------------------------------------------------------------------------------------- */
/* Tasks that wait                                                                              */

/* Notes a call, which may concern what the thread waits for beneath this task. */
static bool note_call(void *called)
{
    *(bool *)called = true;
    return false;
}

/*
 * True if the application waits, too, or the run has failed; otherwise it may be busy with
 * something else.
 */
static bool all_wait(struct real *real)
{
    return atomic_load(&real->first.waiting) || duet__failed(real->core);
}

/*
 * Runs the worker's other tasks on top of the one that waits: for its children, or (`wanted` not
 * NULL) for something else. Returns that task when it may go on.
 */
static const struct duet_task *run_others(struct worker *self, const struct until *wanted)
{
    struct duet_runtime *core = self->real->core;
    struct duet__ops ops = {0};
    bool called = false;
    const struct until note = {.reached = note_call, .arg = &called, .watches = true};
    const struct until *until = wanted ? wanted : &note;
    struct duet__engine_command command = {.kind = DUET_IDLE};
    while (command.kind != DUET_RESUME) {
        if (wanted && (wanted->reached(wanted->arg) || duet__failed(core)))
            duet__body_hold(core, self->index, false);
        if (duet__nested_any(core, self->index))
            (void)run_nested(self, NULL, &ops);
        self->owed = true;
        duet__next(core, self->index, self->now_s, &command, &ops);
        if (command.kind == DUET_RUN && duet__task_waits(command.task)) {
            run_body(self, &command, &ops);
        } else if (command.kind == DUET_RUN) {
            run_plain(self, &command, &ops);
        } else if (command.kind == DUET_IDLE) {
            self->owed = false;
            atomic_store_explicit(&self->resting, true, memory_order_relaxed);
            if (rest_worker(self, until) == REST_STUCK && all_wait(self->real))
                duet__give_up(core, self->index, duet__worker_now(self));
            atomic_store_explicit(&self->resting, false, memory_order_relaxed);
            ops.steal_attempts = 0;
            (void)duet__worker_now(self);
        }
    }
    if (called && self->index == 0)
        duet__park_nudge(&self->park); /* its thread checks again what it waits for itself */
    return command.task;
}

/*
 * Ends a piece of a task's work with a wait. A kept task is timed with others of its batch, and has
 * pieces in records alone.
 */
static void end_piece(struct worker *self)
{
    struct duet_runtime *core = self->real->core;
    if (self->in_batch && !duet__records(core)) {
        duet__pause(core, self->index, NULL, true);
        return;
    }
    double now = duet__worker_now(self);
    const struct duet__completion report = {.start_s = self->piece_s,
                                            .end_s = now,
                                            .before_s = self->in_batch ? 0 : self->before_s};
    if (!self->in_batch)
        self->before_s += now - self->piece_s;
    duet__pause(core, self->index, &report, self->in_batch);
}

/* Lets the newest task of the worker wait, as run_others. */
static void wait_body(struct worker *self, const struct until *wanted)
{
    struct duet__ops ops = {0};
    const bool in_batch = self->in_batch;
    end_piece(self);
    if (in_batch)
        end_batch(self, &ops);
    atomic_store_explicit(&self->kernel, NULL, memory_order_relaxed);
    const struct duet_task *task = run_others(self, wanted);
    self->piece_s = duet__worker_now(self);
    show_task(self, task, self->piece_s);
    if (in_batch)
        begin_batch(self);
}

void duet__real_await(void *engine, bool last)
{
    const struct real *real = engine;
    wait_body(&real->workers[duet__inside(engine)], NULL);
}

void duet__real_run_kept(void *engine)
{
    const struct real *real = engine;
    struct worker *self = &real->workers[duet__inside(engine)];
    struct duet__ops ops = {0};
    const bool in_batch = self->in_batch;
    if (!in_batch || duet__records(real->core))
        end_piece(self);
    if (!in_batch)
        begin_batch(self);
    while (duet__nested_awaited(real->core, self->index)) {
        struct duet_task *task = duet__nested_next(real->core, self->index, self->now_s, &ops);
        if (task)
            run_next_nested(self, task);
    }
    if (!in_batch)
        end_batch(self, &ops);
    self->piece_s = self->now_s;
}

/* ------------------------------------------------------------------------------------------- */
/* Teams                                                                                        */

/* Begins the worker's part of a team, if one is waiting for it. */
static bool run_member(struct worker *self, struct duet__ops *ops)
{
    struct duet__engine_command command;
    if (!duet__member_take(self->real->core, self->index, self->now_s, &command))
        return false;
    run_task(self, &command, ops);
    return true;
}

int duet__team_run(void *engine, const struct duet_task_desc *member, struct duet_message *message)
{
    struct real *real = engine;
    struct worker *self = &real->workers[0];
    struct duet__ops ops = {0};
    const struct inside *before = duet__enter(&self->inside);
    double now = duet__worker_now(self);
    int error = DUET_OK;
    for (unsigned w = 0; w < real->cpus && !error; w++)
        error = duet__member_post(real->core, 0, w, member, now, message);
    for (unsigned w = 1; w < real->cpus && !error; w++)
        (void)duet__park_wake(&real->workers[w].park);
    if (!error)
        (void)run_member(self, &ops);
    (void)duet__enter(before);
    return error;
}

void duet__team_wait(void *engine, bool (*reached)(void *arg), void *arg)
{
    const struct real *real = engine;
    struct worker *self = &real->workers[duet__inside(engine)];
    const struct until wanted = {.reached = reached, .arg = arg, .watches = true};
    duet__body_hold(real->core, self->index, true);
    wait_body(self, &wanted);
}

void duet__team_call(void *engine)
{
    struct real *real = engine;
    for (unsigned w = 0; w < real->cpus; w++)
        if (duet__inside(engine) != (int)w)
            duet__park_nudge(&real->workers[w].park);
}

/*
 * Runs a worker's commands. When a thread leaves the first worker and the core has not said that
 * there is nothing to do, the spare thread is woken to ask. If all is finished, the thread itself
 * asks once more before it leaves.
 */
static enum served serve_worker(struct worker *self, const struct until *until)
{
    struct duet__ops ops = {0};
    bool ends = false;
    (void)duet__worker_now(self);
    self->owed = true;
    for (;;) {
        struct duet__engine_command command;
        if (run_member(self, &ops))
            continue;
        duet__next(self->real->core, self->index, self->now_s, &command, &ops);
        if (command.kind == DUET_EXIT)
            return SERVED_EXIT;
        if (command.kind == DUET_RUN) {
            run_task(self, &command, &ops);
            bool any = duet__nested_any(self->real->core, self->index);
            ends = (any && run_nested(self, until, &ops)) || is_enough(self, until) || ends;
            if (ends && !duet__finished(self->real->core))
                return SERVED_ENOUGH;
            continue;
        }
        self->owed = false;
        if (ends)
            return SERVED_ENOUGH;
        atomic_store_explicit(&self->resting, true, memory_order_relaxed);
        enum rest why = rest_worker(self, until);
        if (why != REST_ASK)
            return why == REST_STUCK ? SERVED_STUCK : SERVED_ENOUGH;
        atomic_store_explicit(&self->resting, false, memory_order_relaxed);
        self->owed = true;
        ops.steal_attempts = 0;
        (void)duet__worker_now(self);
    }
}

enum served duet__serve(struct worker *self, const struct until *until)
{
    const struct inside *before = duet__enter(&self->inside);
    atomic_store_explicit(&self->resting, false, memory_order_relaxed);
    enum served served = serve_worker(self, until);
    atomic_store_explicit(&self->resting, true, memory_order_relaxed);
    (void)duet__enter(before);
    return served;
}

void *duet__cpu_thread(void *worker)
{
    struct worker *self = worker;
    struct real *real = self->real;
    duet__thread_begin(real, real->machine.workers[self->index].name, self->place);
    if (duet__threads_ready(real, DUET_OK, NULL))
        (void)duet__serve(self, NULL);
    return NULL;
}
