/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data structures shared by the files of the real engine. Every worker has a thread, except the
 * first CPU worker: a waiting thread of the application runs it, or a spare one (first_worker.c).
 *
 * Mutexes: first.mutex > park.mutex; threads.mutex and watch.mutex are taken with none of the
 * engine's or with first.mutex held; said.mutex is held only inside engine.c.
 */
#ifndef DUET_REAL_INTERNAL_H
#define DUET_REAL_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/backend.h"
#include "core/engine.h"
#include "real/machine.h"

/* ------------------------------------------------------------------------------------------- */
/*
 * The engine's clock: seconds since the run began. clock_tsc.c reads the processor's counter where
 * that can be trusted, clock_posix.c asks the operating system; the build takes one of them.
 */

struct clock {
    bool counter;    /* dates come from the processor's counter */
    uint64_t origin; /* counter's value, or nanoseconds of CLOCK_MONOTONIC, at date 0 */
    double tick_s;   /* seconds from one value to the next */
};

/* Sets date 0 to now. Sleeps for a few milliseconds where the counter's rate has to be measured. */
void duet__clock_start(struct clock *clock);

/*
 * Returns the seconds since duet__clock_start. Any thread; never goes back, whatever the thread's
 * core.
 */
double duet__clock_now(const struct clock *clock);

/* Pauses for a moment in a loop that watches memory. */
void duet__clock_rest(void);

/* ------------------------------------------------------------------------------------------- */
/*
 * A place where a thread sleeps until it is woken. Waking one that is awake is one atomic exchange,
 * and is not lost: it does not sleep the next time.
 */

enum park_state {
    PARK_AWAKE,  /* not called since */
    PARK_WOKEN,  /* called; awake, or about to be */
    PARK_NUDGED, /* called by duet__park_nudge only */
    PARK_ASLEEP,
};

struct park {
    _Atomic(int) state; /* enum park_state */
    pthread_mutex_t mutex;
    pthread_cond_t condition;
};

/* Initialises. DUET_ENOMEM: there is nothing to free. */
int duet__park_init(struct park *park);
void duet__park_fini(struct park *park);

/*
 * Wakes the thread. Any thread. Returns true if it had not been woken since its last call was
 * taken.
 */
bool duet__park_wake(struct park *park);

/* Calls the thread with less weight than a wake, which replaces the nudge. */
void duet__park_nudge(struct park *park);

/*
 * Sleeps until called, at most for `seconds` (INFINITY: without limit), and takes the call: the
 * state is PARK_AWAKE again. Returns the earlier state: PARK_WOKEN, PARK_NUDGED, or PARK_AWAKE if
 * the time is over.
 */
enum park_state duet__park(struct park *park, double seconds);

/* Clears a nudge. Returns true if there is a wake to take. */
bool duet__park_settle(struct park *park);

/* Takes a call without sleeping; PARK_AWAKE: there was none. */
static inline enum park_state park_take(struct park *park)
{
    return (enum park_state)atomic_exchange(&park->state, PARK_AWAKE);
}

/* True if there is a call to take; only reads. */
static inline bool park_called(const struct park *park)
{
    return atomic_load_explicit(&park->state, memory_order_relaxed) != PARK_AWAKE;
}

/* Makes a condition whose limits are dates of CLOCK_MONOTONIC. DUET_ENOMEM. */
int duet__condition_init(pthread_cond_t *condition);

/*
 * Waits on the condition for `seconds` at most; INFINITY: without limit. Returns false if the time
 * is over. May return early.
 */
bool duet__condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, double seconds);

/* ------------------------------------------------------------------------------------------- */
/* The engine                                                                                   */

enum {
    CACHE_LINE = 64,
    FEW = 16,        /* buffers for which a kernel's slot has room of its own */
    UNBOUND = -1,    /* place of a thread without a chosen core */
    SLACK_NS = 1000, /* timer slack: of a paced emulation, and between polls */
};

struct real;

/*
 * The worker or kernel to which the calling thread belongs. Kernels may not wait, and their
 * submissions say on which worker's thread they are made.
 */
struct inside {
    struct real *real;
    int by;                 /* worker, or DUET_SUBMITTER on a thread that is no worker's */
    struct duet_task *task; /* task whose kernel runs, on a device; else NULL */
};

/* A kernel from the core's command to its completion. */
struct slot {
    struct duet_call call;
    struct duet_buffer few[FEW];
    struct duet_buffer *many; /* buffers of a kernel with more than FEW */
    size_t room;              /* capacity of `many` */
    /* devices only */
    bool used;
    struct duet__engine_command command;
    duet_kernel_fn run;
    struct real *real;
    uint64_t number; /* number of the kernel in order of launch */
    double launched_s;
    struct duet_message message; /* reason of a failure, by the kernel */
};

struct worker {
    /* for its thread; fields that it does not change are written once, before it starts */
    _Alignas(CACHE_LINE) struct real *real;
    unsigned index, arch, node;
    bool device;
    bool owed; /* the core has to be asked for it again: it was not idle when last asked, or was
                  woken since */
    bool woke; /* the worker has woken another one since it read the clock */
    double now_s;
    /* its newest task that waits: beginning of the current piece, and seconds of earlier pieces */
    double piece_s, before_s;
    /* it has run nested tasks that it kept since batch_s */
    bool in_batch;
    double batch_s;
    const struct duet__backend *backend;
    struct backend_device *opened;
    struct slot *slots; /* as many as kernels may be in flight */
    unsigned slot_count;
    unsigned kernels, copies; /* in flight on the device */
    uint64_t launched;
    double still_s; /* date from which the device has ended nothing after the run failed; 0: it
                       has */
    bool lost;
    unsigned ordinal; /* number of its device among those of its backend */
    uint64_t lose_at;
    int place; /* core to bind to, or UNBOUND */
    pthread_t thread;
    struct inside inside;
    /* read by others; written by its thread */
    _Atomic(uint64_t) steps;      /* number of commands begun or ended */
    _Atomic(const char *) kernel; /* running kernel, the oldest of a device; NULL: none */
    _Atomic(uint64_t) task;       /* number of its task */
    _Atomic(double) since_s;
    _Atomic(bool) resting; /* nothing to do, nothing in flight */
    _Atomic(bool) asking;  /* a device's thread is in a call into the core */
    /* written by others */
    _Alignas(CACHE_LINE) struct park park;
};

/* Lines already printed for the user: engine.c. */
struct said {
    pthread_mutex_t mutex;
    /* mutex */
    char **lines;
    size_t count, capacity;
};

/* A backend in use. */
struct use {
    const struct duet__backend *backend;
    void *shared;
    bool attached;
};

enum threads_state { THREADS_START, THREADS_WORK, THREADS_END };

/* Threads that start and end together: threads.c. */
struct threads {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    /* mutex */
    enum threads_state state;
    unsigned ready;   /* threads that have opened their devices, or failed to */
    unsigned leaving; /* device threads with nothing more to do */
    int error;
    struct duet_message message;
    /* for the thread that attaches and destroys */
    unsigned started; /* worker threads, in order of their workers */
    bool has_spare;
};

enum first_holder { FIRST_FREE, FIRST_APPLICATION, FIRST_SPARE };

/* State of the first CPU worker: first_worker.c. */
struct first_worker {
    pthread_mutex_t mutex;
    pthread_cond_t changed;    /* for the application's threads: the worker is free, or they have to
                                  look again */
    pthread_cond_t stopped;    /* for the spare thread */
    _Atomic(int) holder;       /* enum first_holder; written under the mutex */
    _Atomic(bool) wanted;      /* the application wants it from the spare thread; written under the
                                  mutex */
    unsigned aside;            /* mutex: threads of the application that wait without the worker */
    _Atomic(unsigned) waiting; /* threads of the application in ops.wait */
    bool stopping;             /* mutex */
    struct park park;          /* place where the spare thread sleeps while it has nothing to do */
    pthread_t spare;
};

/* Watchdog for runs that do not go on: watch.c. */
struct watch {
    double look_s; /* interval in which waiting threads look; INFINITY: never */
    pthread_mutex_t mutex;
    /* mutex */
    uint64_t steps;   /* count_steps at the last look */
    double since_s;   /* date at which that number was first seen */
    unsigned crowded; /* consecutive looks that found more threads than cores */
    bool crowd_said;
};

struct real {
    struct duet_machine machine;
    struct duet_config config; /* its texts belong to the caller and may be freed: the engine only
                                  asks whether they are NULL */
    struct real_pace pace;
    struct duet_runtime *core; /* NULL until attached */
    struct clock clock;
    struct places *places;
    bool has_devices; /* some worker is a device */
    bool spin; /* there is a core for every thread: threads with nothing to do spin for a while */
    _Atomic(double) spin_s; /* so long, on CPU workers; 0: they do not */
    unsigned cpus;
    unsigned forks; /* duet__forks when it was made: it belongs to this process */
    struct worker *workers;
    bool *emulated; /* by architecture: true if its devices are emulated */
    struct use *uses;
    unsigned use_count;
    unsigned parks;                                   /* parks made, for workers in order */
    bool has_threads, has_first, has_watch, has_said; /* parts that were made */
    bool has_one_thread;                              /* duet__one_thread_begin was called */
    struct said said;
    struct threads threads;
    struct watch watch;
    _Alignas(CACHE_LINE) struct first_worker first;
    /*
     * written by the application's threads; inexact with several of them: shows only that it has
     * changed
     */
    _Alignas(CACHE_LINE) _Atomic(uint64_t) submissions;
    _Atomic(uint64_t) waits;
};

/* ------------------------------------------------------------------------------------------- */
/* worker.c                                                                                     */

/* Condition under which a thread stops running a worker's commands. */
struct until {
    bool (*reached)(void *arg); /* evaluated after a wake, not after every task */
    void *arg;
    bool watches; /* ends with SERVED_STUCK when nothing happens any more */
    bool leaves;  /* ends with SERVED_ENOUGH when there is nothing to do */
};

enum served { SERVED_ENOUGH, SERVED_STUCK, SERVED_EXIT };

/* Runs a CPU worker's commands until `until` (NULL: until the core says EXIT). */
enum served duet__serve(struct worker *self, const struct until *until);

/*
 * Returns the date for the worker's next call into the core: now, and never before the previous
 * one.
 */
double duet__worker_now(struct worker *self);

/* Spins until a date, or until the worker is woken. */
void duet__spin(const struct worker *self, double date_s);

/* Fills in the arguments of a kernel. DUET_ENOMEM. */
int duet__slot_fill(struct worker *self, struct slot *slot, const struct duet_task *task);

/* Returns the seconds of a kernel in a paced emulation; else 0. */
double duet__paced_seconds(const struct worker *self, const struct duet_task *task);

/* As ops.await and ops.run_kept. */
void duet__real_await(void *engine, bool last);
void duet__real_run_kept(void *engine);

/* duet__inside is ops.inside; duet__forks returns the number of forks that led to this process. */
int duet__inside(void *engine);
unsigned duet__forks(void);

/* Sets the worker or kernel to which this thread belongs (NULL: none). Returns the previous one. */
const struct inside *duet__enter(const struct inside *inside);

void duet__real_submitted(void *engine, struct duet_task *task);
void duet__real_submitted_all(void *engine, struct duet_task *first);

/* Threads of a CPU worker and of a device: the argument is the worker. */
void *duet__cpu_thread(void *worker);
void *duet__device_thread(void *worker);

/* ------------------------------------------------------------------------------------------- */
/* first_worker.c */

int duet__first_init(struct first_worker *first);
void duet__first_fini(struct first_worker *first);
void duet__real_wake(void *engine, unsigned index);
void duet__real_notify(void *engine);
int duet__real_wait(void *engine, bool (*reached)(void *arg), void *arg);
/* The spare thread: the argument is the engine. */
void *duet__spare_thread(void *engine);
/* Lets the spare thread take the worker, or keep it, until the core says EXIT. */
void duet__first_stop(struct real *real);

/* ------------------------------------------------------------------------------------------- */
/* watch.c                                                                                      */

int duet__watch_init(struct watch *watch, double watchdog_s);
void duet__watch_fini(struct watch *watch);
/*
 * Returns true if nothing has happened for the watchdog's time, and nothing runs that could still
 * make it happen. Says on standard error what runs if something does. Called every look_s by a
 * thread that waits, or on behalf of one.
 */
bool duet__watch(struct real *real);
int duet__real_scheduling(void *engine, uint64_t *steps);

/* threads.c: checks for more runnable threads than cores. watch.mutex is held. */
void duet__crowd_look(struct real *real);

/* ------------------------------------------------------------------------------------------- */
/* one_thread.c                                                                                 */

/* Earlier numbers of threads that libraries compute with; 1, and 0 for MKL: unchanged. */
struct kernel_threads {
    int openblas, omp, mkl;
    int64_t blis;
};

/* Set the process's numbers of threads (BLAS, OpenMP) to 1 when a runtime begins, and back when it
 * ends. */
void duet__one_thread_begin(const struct real *real);
void duet__one_thread_end(const struct real *real);
/* Prepare the calling thread for kernels, until it leaves, or ends. */
void duet__one_thread_enter(const struct real *real, struct kernel_threads *before);
void duet__one_thread_leave(const struct real *real, const struct kernel_threads *before);

/* ------------------------------------------------------------------------------------------- */
/* threads.c */

int duet__threads_init(struct threads *threads);
void duet__threads_fini(struct threads *threads);
/*
 * Starts all threads and waits until they are ready. On error none is left, and *message says what
 * happened.
 */
int duet__threads_start(struct real *real, struct duet_message *message);
/* Waits for the ends of all threads, after duet__core_stop. */
void duet__threads_join(struct real *real);
/*
 * Says, on a thread of the engine, that it is ready, or has failed with `error` and *message. Waits
 * for the others. Returns false if the thread has to close what it has opened and end.
 */
bool duet__threads_ready(struct real *real, int error, const struct duet_message *message);
/* Waits, on a device's thread, until no device is used any more. */
void duet__threads_leave(struct real *real);

/* ------------------------------------------------------------------------------------------- */
/* threads.c                                                                                    */

/* Names the calling thread, for debuggers, binds it to its place, and prepares it for kernels. */
void duet__thread_begin(const struct real *real, const char *name, int place);
/* Sleeps until a date of the engine's clock. */
void duet__sleep_until(const struct real *real, double date_s);
/*
 * Sets the calling thread's timer slack, so that its sleeps end within ns of their date, on
 * average. Returns the previous one, in ns.
 */
unsigned long duet__thread_slack(unsigned long ns);

/* Lets the calling thread, when it is woken, not take the core from the thread that wakes it. */
void duet__thread_patient(void);

/* Returns the bytes of the calling thread's own stack, and its lowest address; 0: not known. */
size_t duet__thread_stack(const char **lowest);

/* As duet__rest_by: pauses for some microseconds in all, then sleeps. */
void duet__thread_rest(unsigned tries);

/* ------------------------------------------------------------------------------------------- */
/* device.c and engine.c                                                                        */

int duet__real_pin(void *engine, void *data, size_t bytes, struct duet_message *message);
int duet__real_unpin(void *engine, void *data, struct duet_message *message);
void duet__real_forget(void *engine, struct duet_handle *handle);
bool duet__real_repeats(void *engine, unsigned worker);
/* Returns the backend that keeps data in handles' marks: one of those in use, or NULL. */
const struct use *duet__marker(const struct real *real);

/* Prints a line for the user on standard error, unless it was printed before. Any thread. */
void duet__say(void *engine, const char *line);

/* Sets workers' lose_at from "gpu1@100,gpu0@5"; NULL: none. DUET_EINVAL with a message. */
int duet__lose_parse(struct real *real, const char *text, struct duet_message *message);

#endif
