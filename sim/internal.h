/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the simulated engine share. One thread runs all of it. */
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
    double start_s, end_s; /* of one that shares: no earlier than, and as things stand */
    double part;           /* of the task's time: 1 but for one that waits, */
    struct body *body;     /* which this is; else NULL */
    bool used;
    /* of one that shares cores and memory with others (cores.c) */
    struct kernel *next; /* behind it on its worker */
    struct duet__demand demand;
    double left_s, since_s; /* seconds of it alone that were left at date since_s */
    double rate;            /* at which these pass; 0: it has not begun */
    double event_s;         /* date of the event of its end that counts, */
    uint64_t event;         /* and its order; others of this kernel are out of date */
};

/* A device's engine for one direction: one copy at a time, in the order in which they were given.
 */
struct dma {
    struct transfer *head, *tail;
};

/* Bytes on the network: the first member of what `tag` points to. */
struct flow {
    struct sim *sim; /* whose event their end is, */
    enum event_kind end;
    unsigned worker; /* and which worker's */
};

/*
 * A copy on its way. It holds the outgoing engine of a source device and the incoming one of a
 * destination device, and starts when it is the first of both.
 */
struct transfer {
    struct flow flow;
    struct duet__engine_command command;
    double launched_s, start_s, end_s;
    bool started;
    unsigned engines;
    struct dma *engine[2];
    struct transfer *next[2]; /* behind it on that engine; next[0] also chains the pool */
};

struct sim_worker {
    double thread_s; /* its thread is busy until then: scheduling, launches, a CPU's kernels */
    double stream_s; /* its device's kernel stream is busy until then */
    struct kernel *kernels;      /* duet_worker_slots of them */
    struct body *body;           /* the newest of its tasks that may wait (bodies.c) */
    bool shares;                 /* its kernels share cores and memory with others, */
    struct kernel *first, *last; /* and these are given to it and have not ended */
    /* of CPU workers, if sim.rests (idle.c) */
    bool idle, waking;
    double idle_s; /* idle: since then */
};

/* A task that the application has submitted and whose submission has not been simulated yet. */
struct submission {
    struct duet_task *task;
    double date;     /* if no push cost anything after it was made */
    double pushed_s; /* sim.pushed_s when it was made */
};

/* What all nodes have in common: the clock, the network and who waits (cluster.c). */
struct cluster {
    struct duet_machine machine; /* of each node */
    struct sim **nodes;
    unsigned count, living;
    double now; /* date of the event at hand */
    struct events events;
    double *alarms; /* pending alarms of the network, latest first */
    size_t alarm_count, alarm_capacity;
    unsigned flows;            /* on the network */
    struct messages *messages; /* NULL: one node */
    struct sim *at;            /* the node of the event at hand; NULL: the application is at work */
    struct sim *touched, **touched_end; /* others that something was done to: they come next */
    /* the application's thread waits until this is so on this node; NULL: it does not wait */
    struct sim *waiter;
    bool (*reached)(void *arg);
    void *reached_arg;
    bool notified;
};

/* The engine of one node. */
struct sim {
    struct cluster *cluster;
    unsigned number;             /* of the node */
    struct duet_machine machine; /* its arrays are the cluster's */
    struct sim_options options;
    struct duet_runtime *core;
    int asked;        /* the worker that asks or reports, and may be called back; DUET_OUTSIDE */
    uint64_t pending; /* its events and flows */
    bool touched;
    struct sim *next; /* touched after it */
    double asked_s;   /* the date of the last question to a worker */
    unsigned in_vain; /* questions to workers at asked_s that got nothing, one after another */

    struct sim_worker *workers;
    uint64_t *woken; /* bit a worker */
    unsigned words;
    struct dma *incoming, *outgoing; /* by memory node */
    struct transfer *pool;
    /* what kernels take, by number of class, then architecture; NULL until first used */
    struct duet__point **points;
    size_t point_count;
    struct duet__point point; /* of an execution whose class has no number */

    struct submission *ring; /* power of two */
    size_t ring_first, ring_count, ring_capacity;
    double submit_s;   /* the application's thread is busy until then */
    double pushed_s;   /* of that, time spent on pushing the tasks it submitted */
    size_t entered;    /* of all submissions; up to which of them one may begin something outside */
    size_t lends_to;   /* at its date: duet__task_lends; */
    size_t lends_from; /* from which in the ring on */
    double dated_s;    /* of the first EVENT_SUBMIT on the heap; INFINITY: there is none */

    struct coroutine *stacks; /* that are kept */
    struct cores *cores;      /* NULL: kernels on CPUs have nothing to do with each other */
    double notice_s;          /* until a device's thread has noticed the end of a kernel or copy */
    double wake_s;            /* until a worker's thread that sleeps is awake */
    double woken_s;           /* when the last one that was woken is awake */
    bool jitter;              /* latencies of threads are drawn */
    uint64_t jitter_state;
    bool rests; /* CPU workers sleep, or the first one only while the application waits: idle.c */
    bool first_waits;  /* the first CPU worker is the application's thread */
    bool first_called; /* and was woken while that did not wait */
    bool first_dated;  /* an EVENT_WAIT of this wait was put on the heap */
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

/* bodies.c: of tasks that wait for their children */
void duet__body_begin(struct sim *sim, const struct duet__engine_command *command);
void duet__body_resume(struct sim *sim, unsigned worker);
/* Such a part of its time has passed. */
void duet__body_passed(struct sim *sim, struct kernel *kernel);
void duet__sim_await(void *engine, bool last);
void duet__bodies_fini(struct sim *sim);

/* idle.c */
void duet__idle_init(struct sim *sim);
/* When a device's thread notices what ends now. */
double duet__idle_notice_s(struct sim *sim);
bool duet__idle_may_ask(struct sim *sim, unsigned worker);
void duet__idle_rest(struct sim *sim, unsigned worker);
void duet__idle_awake(struct sim *sim, unsigned worker);
void duet__first_date(struct sim *sim);
void duet__first_again(struct sim *sim);
void duet__first_open(struct sim *sim);
bool duet__first_busy(const struct sim *sim);

/* The number of a worker among those of all nodes. */
static inline unsigned of_all(const struct sim *sim, unsigned worker)
{
    return sim->number * sim->machine.worker_count + worker;
}

/* cluster.c */
/* Adds an event of the node. */
void duet__sim_event(struct sim *sim, double date, enum event_kind kind, unsigned worker,
                     void *what);
/* Puts the node on the list of those that come next. */
void duet__sim_touched(struct sim *sim);
/* Something is done to the node: it is looked at before time goes on. */
static inline void touch_node(struct sim *sim)
{
    if (sim != sim->cluster->at && !sim->touched)
        duet__sim_touched(sim);
}
int duet__sim_wait(void *engine, bool (*reached)(void *arg), void *arg);
void duet__sim_destroy(void *engine);

/* Bytes begin to flow. */
void duet__sim_flows(const struct flow *flow);

/* messages.c */
int duet__messages_new(struct cluster *cluster, const struct duet__network *network);
void duet__messages_free(struct cluster *cluster);
void duet__messages_event(struct sim *sim, enum event_kind kind, void *what);

/* engine.c */
int duet__node_new(struct sim **out, struct cluster *cluster, unsigned number,
                   const struct sim_options *options);
void duet__node_free(struct sim *sim);
/* It is the event's date. */
void duet__node_event(struct sim *sim, const struct event *event);
/* Asks the workers that were woken; false: there was none. */
bool duet__node_serve(struct sim *sim);
void duet__sim_wake(void *engine, unsigned worker);
/* A part of the task's time begins to pass on its worker. */
struct kernel *duet__sim_kernel(struct sim *sim, const struct duet__engine_command *command,
                                double part);
/* The worker's thread spends the time of these operations, from now or when it is free. */
void duet__sim_charge(struct sim *sim, unsigned worker, const struct duet__ops *ops);

/* submissions.c */
void duet__sim_submitted(void *engine, struct duet_task *task);
void duet__sim_submit_due(struct sim *sim, bool at_this_date);
void duet__sim_submit_ahead(struct sim *sim);
bool duet__sim_anything_due(const struct sim *sim);

#endif
