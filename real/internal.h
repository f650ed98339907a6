/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the real engine share. Every worker has a thread, but the first CPU worker:
 * that is run by whichever thread of the application waits, or by a spare one (first_worker.c).
 *
 * Mutexes: first.mutex > park.mutex; threads.mutex and watch.mutex are taken with none of the
 * engine's or with first.mutex held; said.mutex is held only inside say.c.
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
#include "real/clock.h"
#include "real/park.h"
#include "real/real.h"
#include "real/topology.h"

enum {
    CACHE_LINE = 64,
    FEW = 16,        /* buffers for which a kernel's slot has room of its own */
    UNBOUND = -1,    /* place of a thread that no core is chosen for */
    SLACK_NS = 1000, /* within which short sleeps end: of a paced emulation, and between looks */
};

struct real;

/*
 * On a thread that runs a worker's commands or a kernel of a device: whose it is. Kernels may not
 * wait, and what they submit says which worker's thread they are on.
 */
struct inside {
    struct real *real;
    int by;                 /* worker, or DUET_SUBMITTER on a thread that is no worker's */
    struct duet_task *task; /* whose kernel it is, on a device; else NULL */
};

/* A kernel from the core's command to its completion. */
struct slot {
    struct duet_call call;
    struct duet_buffer few[FEW];
    struct duet_buffer *many; /* more accesses than that */
    size_t room;              /* of `many` */
    /* of a device */
    bool used;
    struct duet__engine_command command;
    duet_kernel_fn run;
    struct real *real;
    uint64_t number; /* kernels were launched in this order */
    double launched_s;
    struct duet_message message; /* why it fails, if the kernel says so */
};

struct worker {
    /* its thread; what is not changed by it is written once, before it starts */
    _Alignas(CACHE_LINE) struct real *real;
    unsigned index, arch, node;
    bool device;
    bool owed; /* it is to be asked again: not idle when it was last asked, or called since */
    bool woke; /* it has called another worker since it looked at the clock */
    double now_s;
    /* of the newest of its tasks that wait: since when it runs, and how long it did before */
    double piece_s, before_s;
    /* it runs nested tasks that it has kept, since then */
    bool in_batch;
    double batch_s;
    const struct duet__backend *backend;
    struct backend_device *opened;
    struct slot *slots; /* as many as kernels may be in flight */
    unsigned slot_count;
    unsigned kernels, copies; /* in flight on the device */
    uint64_t launched;
    double still_s; /* since when the device has ended nothing, after the run failed; 0: it has */
    bool lost;
    unsigned ordinal; /* of its device among those of its backend */
    uint64_t lose_at;
    int place; /* core to bind to, or UNBOUND */
    pthread_t thread;
    struct inside inside;
    /* what others look at; written by its thread */
    _Atomic(uint64_t) steps;      /* commands begun or ended */
    _Atomic(const char *) kernel; /* that runs, the oldest of a device; NULL: none */
    _Atomic(uint64_t) task;       /* its number */
    _Atomic(double) since_s;
    _Atomic(bool) resting; /* nothing to do, nothing in flight */
    _Atomic(bool) asking;  /* a device's thread is in a call into the core */
    /* called by others */
    _Alignas(CACHE_LINE) struct park park;
};

/* Lines that were said to the user: say.c. */
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
    unsigned ready;   /* threads that have opened what they need, or failed to */
    unsigned leaving; /* device threads with nothing more to do */
    int error;
    struct duet_message message;
    /* the thread that attaches and destroys */
    unsigned started; /* worker threads, in order of their workers */
    bool has_spare;
};

enum first_holder { FIRST_FREE, FIRST_APPLICATION, FIRST_SPARE };

/* Of the first CPU worker: first_worker.c. */
struct first_worker {
    pthread_mutex_t mutex;
    pthread_cond_t changed;    /* for the application's threads: it is free, or they look again */
    pthread_cond_t stopped;    /* for the spare thread */
    _Atomic(int) holder;       /* enum first_holder; written under the mutex */
    _Atomic(bool) wanted;      /* by the application, from the spare thread; likewise */
    unsigned aside;            /* mutex: the application's threads that wait without it */
    _Atomic(unsigned) waiting; /* the application's threads in ops.wait */
    bool stopping;             /* mutex */
    struct park park;          /* the spare thread's, while it has nothing to do */
    pthread_t spare;
};

/* For what a run is waited for that does not go on: watch.c. */
struct watch {
    double look_s; /* how often those who wait look; INFINITY: never */
    pthread_mutex_t mutex;
    /* mutex */
    uint64_t steps;   /* as it was when last looked at */
    double since_s;   /* when it was first seen to be so */
    unsigned crowded; /* looks in a row at which there were more threads than cores */
    bool crowd_said;
};

struct real {
    struct duet_machine machine;
    struct real_options options; /* without `lose` */
    struct duet_runtime *core;   /* NULL until attached */
    struct clock clock;
    struct places *places;
    bool has_devices; /* some worker is one */
    bool spin; /* there is a core for every thread: threads with nothing to do watch for a while */
    unsigned cpus;
    unsigned forks; /* duet__forks when it was made: it is this process's own */
    struct worker *workers;
    bool *emulated; /* by architecture: its devices are */
    struct use *uses;
    unsigned use_count;
    unsigned parks;                                   /* made, for workers in order */
    bool has_threads, has_first, has_watch, has_said; /* made */
    bool has_one_thread;                              /* begun */
    struct said said;
    struct threads threads;
    struct watch watch;
    _Alignas(CACHE_LINE) struct first_worker first;
    /* written by the application's threads; rough under several of them: whether it has changed */
    _Alignas(CACHE_LINE) _Atomic(uint64_t) submissions;
    _Atomic(uint64_t) waits;
};

/* ------------------------------------------------------------------------------------------- */
/* worker.c                                                                                     */

/* For how long a thread runs a worker's commands. */
struct until {
    bool (*reached)(void *arg); /* evaluated after a call, not after every task */
    void *arg;
    bool watches; /* ends with SERVED_STUCK when nothing happens any more */
    bool leaves;  /* ends with SERVED_ENOUGH when there is nothing to do */
};

enum served { SERVED_ENOUGH, SERVED_STUCK, SERVED_EXIT };

/* Runs a CPU worker's commands until `until` (NULL: until the core says EXIT). */
enum served duet__serve(struct worker *self, const struct until *until);

/* The date for the worker's next call into the core: now, and never before the one before. */
double duet__worker_now(struct worker *self);

/* Watches for a call, without sleeping, until a date. */
void duet__spin(const struct worker *self, double date_s);

/* Fills in what a kernel is called with. DUET_ENOMEM. */
int duet__slot_fill(struct worker *self, struct slot *slot, const struct duet_task *task);

/* Seconds a kernel takes at the engine's pace; 0 if it has none. */
double duet__paced_seconds(const struct worker *self, const struct duet_task *task);

/* As ops.await and ops.run_kept. */
void duet__real_await(void *engine, bool last);
void duet__real_run_kept(void *engine);

/* As ops.inside. */
int duet__inside(void *engine);
unsigned duet__forks(void);

/* Enters, for kernels that begin on this thread, whose they are (NULL: none). Returns what was. */
const struct inside *duet__enter(const struct inside *inside);

void duet__real_submitted(void *engine, struct duet_task *task);

/* A CPU worker's and a device's thread: argument is the worker. */
void *duet__cpu_thread(void *worker);
void *duet__device_thread(void *worker);

/* ------------------------------------------------------------------------------------------- */
/* first_worker.c */

int duet__first_init(struct first_worker *first);
void duet__first_fini(struct first_worker *first);
void duet__real_wake(void *engine, unsigned index);
void duet__real_notify(void *engine);
int duet__real_wait(void *engine, bool (*reached)(void *arg), void *arg);
/* The spare thread: argument is the engine. */
void *duet__spare_thread(void *engine);
/* The spare thread takes the worker, or keeps it, until the core says EXIT. */
void duet__first_stop(struct real *real);

/* ------------------------------------------------------------------------------------------- */
/* watch.c                                                                                      */

int duet__watch_init(struct watch *watch, double watchdog_s);
void duet__watch_fini(struct watch *watch);
/*
 * Has nothing happened for so long, while nothing runs that could still make it happen? Says on
 * standard error what runs if something does. Called every look_s by a thread that waits, or on
 * behalf of one.
 */
bool duet__watch(struct real *real);
int duet__real_scheduling(void *engine, uint64_t *steps);

/* crowd.c: looks whether more threads want to run than there are cores. watch.mutex is held. */
void duet__crowd_look(struct real *real);

/* ------------------------------------------------------------------------------------------- */
/* one_thread.c                                                                                 */

/* Numbers of threads that libraries compute with, as they were: 1, and 0 for MKL, is no change. */
struct kernel_threads {
    int openblas, omp, mkl;
    int64_t blis;
};

/* A runtime begins and ends: what holds for the process. */
void duet__one_thread_begin(const struct real *real);
void duet__one_thread_end(const struct real *real);
/* Kernels may run on the calling thread from now on, until it leaves, or ends. */
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
/* Waits for their ends, after duet__core_stop. */
void duet__threads_join(struct real *real);
/*
 * On a thread of the engine: it is ready, or `error` with what *message says. Waits for the others.
 * false: it is to close what it has opened and to end.
 */
bool duet__threads_ready(struct real *real, int error, const struct duet_message *message);
/* On a device's thread: waits until no device is used any more. */
void duet__threads_leave(struct real *real);

/* ------------------------------------------------------------------------------------------- */
/* system.c                                                                                     */

/* Names the calling thread, for debuggers, binds it to its place, and readies it for kernels. */
void duet__thread_begin(const struct real *real, const char *name, int place);
/* Sleeps until a date of the engine's clock. */
void duet__sleep_until(const struct real *real, double date_s);
/*
 * Lets the calling thread's sleeps end within ns of their date, on average. Returns what it was, in
 * ns.
 */
unsigned long duet__thread_slack(unsigned long ns);

/* From now on, waking the calling thread does not take the core from the thread that wakes it. */
void duet__thread_patient(void);

/* Where the calling thread's own stack begins, and its bytes; 0: not known. */
size_t duet__thread_stack(const char **lowest);

/* As duet__rest_by: pauses for some microseconds in all, then sleeps. */
void duet__thread_rest(unsigned tries);

/* ------------------------------------------------------------------------------------------- */
/* pin.c and say.c                                                                              */

int duet__real_pin(void *engine, void *data, size_t bytes, struct duet_message *message);
int duet__real_unpin(void *engine, void *data, struct duet_message *message);
void duet__real_forget(void *engine, struct duet_handle *handle);
/* The backend that keeps something in handles' marks: one of those in use, or NULL. */
const struct use *duet__marker(const struct real *real);

int duet__said_init(struct said *said);
void duet__said_fini(struct said *said);
/* Prints a line for the user on standard error, unless it was printed before. Any thread. */
void duet__say(void *engine, const char *line);

/* ------------------------------------------------------------------------------------------- */
/* classify.c and lose.c                                                                        */

int duet__real_classify(void *engine, const struct duet__class *klass, uint64_t *archs,
                        struct duet_message *message);
double duet__real_mean(void *engine, const struct duet__class *klass, unsigned arch);

/* Sets workers' lose_at from "gpu1@100,gpu0@5"; NULL: none. DUET_EINVAL with a message. */
int duet__lose_parse(struct real *real, const char *text, struct duet_message *message);

#endif
