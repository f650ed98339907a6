/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files of the simulated engine share. One thread runs all of it. */
#ifndef DUET_SIM_INTERNAL_H
#define DUET_SIM_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/engine.h"
#include "platforms/model/effects.h"
#include "sim/events.h"
#include "sim/network.h"
#include "sim/sim.h"

/* A kernel on its worker's stream. */
struct kernel {
    struct duet__engine_command command;
    double start_s, end_s; /* if it shares cores: the earliest start, and the currently expected
                              end */
    double part;           /* fraction of the task's time: 1, less if it waits for children */
    struct body *body;     /* the task that waits for children; else NULL */
    bool used;
    /* only of kernels that share cores and memory with others (cores.c) */
    struct kernel *next; /* next one on its worker */
    struct duet__demand demand;
    double left_s, since_s; /* seconds of its execution alone that were left at date since_s */
    double rate;            /* seconds alone that pass in a second; 0: it has not begun */
    double event_s;         /* date of the valid event of its end */
    uint64_t event;         /* order of that event; others of this kernel are out of date */
};

/* A device's engine for one direction: one copy at a time, in the order of their launches. */
struct dma {
    struct transfer *head, *tail;
};

/* Bytes on the network: the first member of the structure that `tag` points to. */
struct flow {
    struct sim *sim; /* node of the event of its end */
    enum event_kind end;
    unsigned worker; /* worker of that event */
};

/*
 * A copy in progress. It holds the outgoing engine of a source device and the incoming one of a
 * destination device, and starts when it is the first on both.
 */
struct transfer {
    struct flow flow;
    struct duet__engine_command command;
    double launched_s, start_s, end_s;
    bool started;
    unsigned engines;
    struct dma *engine[2];
    struct transfer *next[2]; /* next one on that engine; next[0] also chains the pool */
};

struct sim_worker {
    double thread_s;        /* date until which its thread is busy: scheduling, launches, a CPU's
                               kernels */
    double stream_s;        /* date until which its device's kernel stream is busy */
    struct kernel *kernels; /* duet_worker_slots of them */
    struct body *body;      /* the newest of its tasks that may wait (bodies.c) */
    bool shares;            /* its kernels share cores and memory with others */
    struct kernel *first, *last; /* if so: kernels launched on it that have not ended */
    /* only of CPU workers, if sim.rests (idle.c) */
    bool idle, waking;
    double idle_s; /* date since when it is idle */
};

/* A task that the application has submitted and whose submission has not been simulated yet. */
struct submission {
    struct duet_task *task;
    double date;     /* without the cost of pushes after it was made */
    double pushed_s; /* sim.pushed_s when it was made */
};

/* Common state of all nodes: the clock, the network and the waiting application (cluster.c). */
struct cluster {
    struct duet_machine machine; /* machine of each node */
    struct sim **nodes;
    unsigned count, living;
    double now; /* date of the current event */
    const struct network_engine *engine;
    struct network *network;
    struct events events;
    unsigned flows;                     /* flows on the network */
    struct messages *messages;          /* NULL: one node */
    struct sim *at;                     /* node of the current event; NULL: the application runs */
    struct sim *touched, **touched_end; /* other nodes that were changed and are served next */
    /* condition and node that the application's thread waits for; NULL: it does not wait */
    struct sim *waiter;
    bool (*reached)(void *arg);
    void *reached_arg;
    bool notified;
};

/* The engine of one node. */
struct sim {
    struct cluster *cluster;
    unsigned number;             /* number of the node */
    struct duet_machine machine; /* its arrays are the cluster's */
    struct sim_options options;
    struct duet_runtime *core;
    int asked;        /* worker that asks or reports, and may be called back; DUET_OUTSIDE */
    uint64_t pending; /* number of its events and flows */
    bool touched;
    struct sim *next; /* next node that was changed */
    double asked_s;   /* date of the last question to a worker */
    unsigned in_vain; /* consecutive questions to workers at asked_s that got no command */

    struct sim_worker *workers;
    uint64_t *woken; /* one bit for each worker */
    unsigned words;
    struct dma *incoming, *outgoing; /* by memory node */
    struct transfer *pool;
    /* times of kernels, by number of class, then architecture; NULL until first used */
    struct duet__point **points;
    size_t point_count;
    struct duet__point point; /* times of an execution whose class has no number */

    struct submission *ring; /* power of two */
    size_t ring_first, ring_count, ring_capacity;
    double submit_s;   /* date until which the application's thread is busy */
    double pushed_s;   /* part of it that was spent on pushing the tasks it submitted */
    size_t entered;    /* number of submissions entered so far */
    size_t lends_to;   /* submissions up to which one may grant an acquisition */
    size_t lends_from; /* position in the ring from which on one may */
    double dated_s;    /* date of the first EVENT_SUBMIT on the heap; INFINITY: there is none */

    struct coroutine *stacks; /* stacks kept for reuse */
    struct cores *cores;      /* NULL: kernels on CPUs do not affect each other */
    double notice_s;          /* time until a device's thread has noticed the end of a kernel or
                                 copy */
    double wake_s;            /* time until a sleeping worker's thread is awake */
    double woken_s;           /* date when the last woken thread is awake */
    bool jitter;              /* latencies of threads are drawn */
    uint64_t jitter_state;
    bool rests;       /* CPU workers sleep, or the first one works only while the application waits:
                         idle.c */
    bool first_waits; /* the first CPU worker is the application's thread */
    bool first_called; /* the first worker was woken while the application did not wait */
    bool first_dated;  /* an EVENT_WAIT of the current wait was added */
};

/* timing.c */
int duet__sim_classify(void *engine, const struct duet__class *klass, uint64_t *archs,
                       struct duet_message *message);
double duet__sim_mean(void *engine, const struct duet__class *klass, unsigned arch);
double duet__sim_seconds(struct sim *sim, const struct duet_task *task, unsigned arch);
const struct duet__point *duet__sim_point(struct sim *sim, const struct duet_task *task,
                                          unsigned arch);
double duet__sim_factor(const struct sim *sim, const struct duet_task *task,
                        const struct duet__point *point);
void duet__sim_timings_fini(struct sim *sim);

/* copies.c */
void duet__sim_copy(struct sim *sim, const struct duet__engine_command *command, double launched_s);
void duet__sim_flow(struct sim *sim, struct transfer *transfer);
void duet__sim_copy_end(struct sim *sim, struct transfer *transfer);
void duet__sim_copy_done(struct sim *sim, struct transfer *transfer, struct duet__ops *ops);
void duet__sim_copies_fini(struct sim *sim);

/* cores.c */
int duet__cores_init(struct sim *sim);
void duet__cores_fini(struct sim *sim);
void duet__cores_add(struct sim *sim, struct kernel *kernel, double launched_s);
void duet__cores_begin(struct sim *sim, struct kernel *kernel);
bool duet__cores_moved(struct sim *sim, const struct event *event);
void duet__cores_end(struct sim *sim, struct kernel *kernel);

/* bodies.c: tasks that wait for their children */
void duet__body_begin(struct sim *sim, const struct duet__engine_command *command);
void duet__body_resume(struct sim *sim, unsigned worker);
/* Continues the task, when a part of its time has passed. */
void duet__body_passed(struct sim *sim, struct kernel *kernel);
void duet__sim_await(void *engine, bool last);
void duet__bodies_fini(struct sim *sim);

/* idle.c */
void duet__idle_init(struct sim *sim);
/* Returns the date at which a device's thread notices a completion of now. */
double duet__idle_notice_s(struct sim *sim);
bool duet__idle_may_ask(struct sim *sim, unsigned worker);
void duet__idle_rest(struct sim *sim, unsigned worker);
void duet__idle_awake(struct sim *sim, unsigned worker);
void duet__first_date(struct sim *sim);
void duet__first_again(struct sim *sim);
void duet__first_open(struct sim *sim);
bool duet__first_busy(const struct sim *sim);

/* Returns the number of a worker among those of all nodes. */
static inline unsigned of_all(const struct sim *sim, unsigned worker)
{
    return sim->number * sim->machine.worker_count + worker;
}

/* cluster.c */
/* Adds an event of the node. */
void duet__sim_event(struct sim *sim, double date, enum event_kind kind, unsigned worker,
                     void *what);
/* Puts the node on the list of changed nodes. */
void duet__sim_touched(struct sim *sim);
/* Notes a change of the node, so that it is served before time goes on. */
static inline void touch_node(struct sim *sim)
{
    if (sim != sim->cluster->at && !sim->touched)
        duet__sim_touched(sim);
}
int duet__sim_wait(void *engine, bool (*reached)(void *arg), void *arg);
void duet__sim_destroy(void *engine);

/* Returns the network's date. */
static inline double duet__sim_clock(const struct cluster *cluster)
{
    return cluster->engine->clock(cluster->network);
}

/* Counts a flow that has begun, or fails the run for want of memory. */
void duet__sim_flows(const struct flow *flow, bool begun);

/* messages.c */
int duet__messages_new(struct cluster *cluster, const struct duet__network *network);
void duet__messages_free(struct cluster *cluster);
void duet__messages_event(struct sim *sim, enum event_kind kind, void *what);

/* engine.c */
int duet__node_new(struct sim **out, struct cluster *cluster, unsigned number,
                   const struct sim_options *options);
void duet__node_free(struct sim *sim);
/* Handles an event at its date. */
void duet__node_event(struct sim *sim, const struct event *event);
/* Asks the workers that were woken. False: there was none. */
bool duet__node_serve(struct sim *sim);
void duet__sim_wake(void *engine, unsigned worker);
/* Lets a part of the task's time pass on its worker. */
struct kernel *duet__sim_kernel(struct sim *sim, const struct duet__engine_command *command,
                                double part);
/* Adds the time of these operations to the worker's thread, from now or from when it is free. */
void duet__sim_charge(struct sim *sim, unsigned worker, const struct duet__ops *ops);

/* submissions.c */
void duet__sim_submitted(void *engine, struct duet_task *task);
void duet__sim_submit_due(struct sim *sim, bool at_this_date);
void duet__sim_submit_ahead(struct sim *sim);
bool duet__sim_anything_due(const struct sim *sim);

/* ------------------------------------------------------------------------------------------- */
/*
 * Coroutines: functions that run on a stack of their own, and can be paused and resumed. One
 * thread.
 */

struct coroutine;

/*
 * Creates a coroutine that will call run(argument) when it is first resumed, on one of the stacks
 * in *kept if there is one (NULL at first). NULL: no memory, or more stacks than the system allows.
 * Its stack is 1 MiB, of which only the used part takes memory; an overrun ends the process by a
 * signal.
 */
struct coroutine *duet__coroutine_new(struct coroutine **kept, void (*run)(void *argument),
                                      void *argument);

/* Runs the coroutine until it pauses or its function returns. Not from inside a coroutine. */
void duet__coroutine_resume(struct coroutine *coroutine);

/*
 * Pauses the coroutine that calls it: duet__coroutine_resume returns, and this does when that is
 * called again.
 */
void duet__coroutine_pause(struct coroutine *coroutine);

/*
 * Frees the coroutine, whose function has returned or will never be resumed. A stack whose function
 * has returned is kept in *kept for reuse.
 */
void duet__coroutine_free(struct coroutine **kept, struct coroutine *coroutine);

/* Frees all stacks in *kept. */
void duet__coroutines_fini(struct coroutine **kept);

#endif
