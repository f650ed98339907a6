/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a scheduling policy: the framework of XKaapi (Gautier et al., IPDPS 2013; Lima et al.,
 * Parallel Computing 44, 2015). A policy decides on which list a task that became ready is placed,
 * and what a worker takes from the lists. It neither locks, nor wakes, nor reads a clock: the core
 * does.
 *
 * A policy is a constant `struct duet_policy`, one external symbol a file, and one line in
 * policies/list.h; or a shared object that exports one named `duet_policy`, given as
 * `--policy ./mine.so`.
 *
 * Seconds and bytes throughout. Workers are numbered from 0, CPU workers first.
 */
#ifndef DUET_POLICY_H
#define DUET_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/error.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* exported by libduet, as nothing else is */

struct duet_task;
struct duet_view; /* what a policy may ask and do; valid during a call */
struct duet_list; /* a concurrent list of ready tasks */

/* `by` of push when the ready tasks come from a submission, not from a finished task. */
enum { DUET_SUBMITTER = -1 };

/* Order of a list; the workers' and the shared one have that of the policy. */
enum duet_order {
    DUET_DEQUE,  /* as pushed: head and tail */
    DUET_HEAP,   /* highest priority first; among equals the earliest pushed */
    DUET_SORTED, /* highest note first, likewise: see duet_push_sorted */
};

enum { DUET_PARAMETERS_MAX = 16 }; /* of a policy */

/* A number that is chosen together with a policy: `--policy NAME:parameter=value`. */
struct duet_policy_parameter {
    const char *name; /* lower case */
    double initial;   /* where none is given */
    double least, most;
    const char *description;
};

/* A policy to be tried. */
struct duet_candidate {
    const char *policy;    /* a built-in one's name */
    const char *parameter; /* of it, that has another value than at first; NULL: none */
    double value;
    bool alike; /* tried only where all workers are of one architecture; not the first one */
};

/* Measured times of a finished task. */
struct duet_times {
    double start_s, end_s; /* of the kernel */
    double predicted_s; /* duet_view_seconds at the time it was taken by its worker; 0: unknown */
};

/*
 * The policy. `self` is state_size zeroed bytes that the core allocates; a runtime has its own.
 * Slots may be called for different workers by different threads at once: state that several
 * workers change must be C11 atomics. Optional slots may be NULL.
 */
struct duet_policy {
    const char *name;        /* as in --policy, lower case */
    const char *description; /* one line for --policy=help */
    const char *source;      /* the paper it comes from */
    enum duet_order order;
    /*
     * A CPU worker may keep what its kernels submit without data and without restriction to itself,
     * run it last in, first out, whatever its priority, and give the oldest away, between two
     * tasks, when another CPU worker is idle: private deques (Acar, Chargueraud, Rainey, PPoPP
     * 2013). Only kernels known to take less than 10 microseconds. The core does so whether or not
     * the run is recorded, and a recording has these tasks as all others. They never meet the slots
     * below unless they are given away. It is what a policy of local lists and stealing does
     * anyway, at less cost.
     */
    bool private_nested;
    /*
     * `pop` may leave a task that its worker could run on a list that all share: then every idle
     * worker that can run it is called when one is pushed, not one of them. A worker that has
     * left something is asked again when something is pushed. Somebody has to take each task,
     * whatever expected times become meanwhile.
     */
    bool declines;
    size_t state_size;          /* bytes of state for the policy */
    size_t state_size_a_worker; /* and more for each worker: see duet_view_worker_state */
    size_t state_size_a_data;   /* and for each piece of data: see duet_task_data_state */
    size_t state_size_a_place;  /* and each memory node it may be on: see duet_task_place_state */
    /* the performance model it is meant for, where none is chosen; NULL: the default one */
    const char *model;
    /* what can be chosen, ended by one without a name; NULL: nothing. See duet_view_parameter */
    const struct duet_policy_parameter *parameters;
    /*
     * Optional: ended by one without a name. This is then no policy by itself: it has no slots, and
     * its first parameter says how many tasks are tried. The core holds what the application
     * submits (config.hold). When that waits for more tasks than there are workers, and nothing
     * else is going on, each candidate is tried by simulation on them, and the core goes on with
     * the best. Until then it has the first one, which keeps no state, has neither `init` nor
     * `steal`, and whose `pop` and `victim` ask for no parameter: idle workers may be in them when
     * it changes.
     */
    const struct duet_candidate *candidates;

    /* Optional. Called once; 0 or a negative enum duet_error. */
    int (*init)(void *self, struct duet_view *view);

    /* Optional. Called once, when nothing else is any more; also after an `init` that has failed.
     */
    void (*fini)(void *self);

    /*
     * Places every task of the batch, in an order of its choice, on one of the lists. The batch
     * holds, in order of activation, the tasks that a completion made ready (`by`: the worker that
     * finished, which may be unable to run them) or one task at its submission (DUET_SUBMITTER).
     * The policy may reorder the array.
     */
    void (*push)(void *self, struct duet_view *view, struct duet_task **batch, size_t count, int by,
                 double now);

    /*
     * Optional: with it the core holds what the application submits until it waits (config.hold),
     * and calls this before that enters the graph: `count` tasks in order of submission, and the
     * upward rank of each in seconds (Topcuoglu, Hariri, Wu, TPDS 2002, equation 8): the longest
     * path from its beginning to the end of the last of them, by mean expected times and mean
     * copies; never less than the rank of a task that comes after it. It may set notes and
     * priorities, which push then finds. Never called for two threads at once. What is submitted
     * inside of tasks, or while a thread waits, comes to push without it, and what was planned for
     * a device that is lost comes again.
     */
    void (*plan)(void *self, struct duet_view *view, struct duet_task *const *tasks, size_t count,
                 const double *ranks, double now);

    /*
     * Takes a task that `worker` can run from a list that is its own or shared, or NULL. The run
     * ends with DUET_EINVAL if `pop` or `steal` returns a task that is still on a list, that a
     * worker has taken before, or that the worker cannot run.
     */
    struct duet_task *(*pop)(void *self, struct duet_view *view, unsigned worker, double now);

    /*
     * Optional: NULL means no stealing. Takes a task that `thief` can run from a list of `victim`,
     * or NULL. The core asks victims whose lists are not empty, each once, until one gives a task:
     * at random, or in the order of `victims`.
     */
    struct duet_task *(*steal)(void *self, struct duet_view *view, unsigned thief, unsigned victim,
                               double now);

    /*
     * Optional. The order in which a thief asks its victims, always; asked once for each, after
     * `init`. `order` has all other workers, by number: to be sorted.
     */
    void (*victims)(void *self, struct duet_view *view, unsigned thief, unsigned *order);

    /*
     * Optional. Which data leaves a memory node that has no room: that of the highest score, among
     * equals what was used least recently, which without this slot is all that counts. `place`:
     * duet_task_place_state of the data on that node; `sole`: it has to be written back first.
     * INFINITY: it leaves, and nothing else is asked for. Asked for what nobody uses there and is
     * valid, up to 1,024 of it, least recently used first, and again for each that leaves. With the
     * node locked: it may look at its own state, and do nothing else.
     */
    double (*victim)(void *self, struct duet_view *view, unsigned node, void *place, bool sole);

    /* Optional. The worker has taken the task; its inputs are about to be fetched. */
    void (*prologue)(void *self, struct duet_view *view, struct duet_task *task, unsigned worker,
                     double now);

    /*
     * Optional. `victim` has taken the task and not begun it; it is expected to begin it at
     * `begin_s`, when what it has taken before is done and the inputs are there. The number of an
     * idle worker that can run it: the task goes to the end of that worker's list, where `pop` has
     * to look, and is not asked for again; what prologue has counted is to be undone here. -1: it
     * stays. Asked on the victim's thread while somebody is idle: before it begins a task, of which
     * a device's kernel may be given behind another that still runs, and when somebody becomes idle
     * while its task waits for data or room. Copies on their way go on, and what they bring is
     * valid there. Never of tasks with accesses that commute, reduce or are scratch, and of
     * children of others; nor of a task while data that it writes is on its way.
     */
    int (*revoke)(void *self, struct duet_view *view, const struct duet_task *task, unsigned victim,
                  double begin_s, double now);

    /*
     * Optional. The kernel has ended, or the task that the worker has taken ends without it, at the
     * date at which it would have begun, because the run or what it reads has failed; called before
     * its successors become ready.
     */
    void (*epilogue)(void *self, struct duet_view *view, struct duet_task *task, unsigned worker,
                     const struct duet_times *times, double now);
};

/* ------------------------------------------------------------------------------------------- */
/* Lists                                                                                        */

/* The list of a worker, and the one that all share. Never NULL. */
struct duet_list *duet_view_list(struct duet_view *view, unsigned worker); /* must exist */
struct duet_list *duet_view_shared(struct duet_view *view);

/*
 * Makes a list of the policy's own, which all workers share; the core frees it. Only in `init`;
 * NULL: no memory.
 */
struct duet_list *duet_view_new_list(struct duet_view *view, enum duet_order order);

/*
 * Places a ready task, once, on a list and makes sure that a worker that can take it will look: the
 * owner of a worker's list; for the shared list, and for any list when the policy steals, an idle
 * worker that can run the task, chosen at random. With DUET_HEAP and DUET_SORTED both ends mean "by
 * priority" and "by note".
 */
void duet_push_head(struct duet_view *view, struct duet_list *list, struct duet_task *task);
void duet_push_tail(struct duet_view *view, struct duet_list *list, struct duet_task *task);

/* On a DUET_SORTED list: `key` is then the task's note, which stays while it is there. */
void duet_push_sorted(struct duet_view *view, struct duet_list *list, struct duet_task *task,
                      double key);

/*
 * Takes the first task, from that end, that `worker` can run, passing over the others; NULL if
 * there is none. With DUET_HEAP and DUET_SORTED both ends give the first.
 */
struct duet_task *duet_pop_head(struct duet_view *view, struct duet_list *list, unsigned worker);
struct duet_task *duet_pop_tail(struct duet_view *view, struct duet_list *list, unsigned worker);

/*
 * What a task is worth to who takes it: the highest is taken, the first among equals. -INFINITY: it
 * is left. INFINITY: this one, unless one before it is worth as much. NAN: it is left, and so are
 * all after it that the same workers can run. With the list locked: it may ask, and do nothing
 * else.
 */
typedef double duet_score_fn(void *context, const struct duet_view *view,
                             const struct duet_task *task);

/*
 * Takes the task of the list that `worker` can run and whose score is highest, or NULL. The first
 * task is scored first, others in no special order, and not all where that is not needed. Time is
 * in proportion to their number.
 */
struct duet_task *duet_pop_best(struct duet_view *view, struct duet_list *list, unsigned worker,
                                duet_score_fn *score, void *context);

/* Of a task of a list, which is locked; it may change what is the policy's own. */
typedef bool duet_choice_fn(void *context, const struct duet_view *view,
                            const struct duet_task *task);

/*
 * Moves the tasks of a DUET_DEQUE list that `worker`, the calling one, can run and that are chosen:
 * to the tail of its own list, or of one that all share. Time is in proportion to the length.
 */
void duet_move(struct duet_view *view, struct duet_list *from, struct duet_list *to,
               unsigned worker, duet_choice_fn *chosen, void *context);

/*
 * For `steal`: as duet_pop_tail, or NULL while somebody else is at the list, where that is not the
 * thief's last look. A CPU worker takes its equal part of the list at once (its length over the
 * number of workers) where tasks are known to be short, at most 64 and 100 microseconds of work:
 * those after the first come to its own list, in their order, which `pop` has to look at. As guided
 * self-scheduling gives out iterations (Polychronopoulos, Kuck, IEEE Transactions on Computers
 * 1987).
 */
struct duet_task *duet_steal_tail(struct duet_view *view, struct duet_list *list, unsigned thief);

/* Functions for `pop`: the first takes the head of the worker's own list, the second also, where
   that list is empty, the head of the list that all workers share. */
struct duet_task *duet_pop_own(void *self, struct duet_view *view, unsigned worker, double now);
struct duet_task *duet_pop_own_or_shared(void *self, struct duet_view *view, unsigned worker,
                                         double now);
/* A function for `steal`: takes tasks from the victim's own list, by duet_steal_tail. */
struct duet_task *duet_steal_own(void *self, struct duet_view *view, unsigned thief,
                                 unsigned victim, double now);

/* Tasks on a list, or about to be; other threads may push and pop meanwhile. */
size_t duet_list_length(const struct duet_list *list);

/* ------------------------------------------------------------------------------------------- */
/* Questions: workers and machine                                                               */

unsigned duet_view_workers(const struct duet_view *view); /* how many */
unsigned duet_view_nodes(const struct duet_view *view);   /* memory nodes; 0 is the host's */
unsigned duet_view_archs(const struct duet_view *view);
unsigned duet_view_arch(const struct duet_view *view, unsigned worker);
unsigned duet_view_node(const struct duet_view *view, unsigned worker);
/* true for a worker whose memory is not the host's */
bool duet_view_is_device(const struct duet_view *view, unsigned worker);
/*
 * The worker whose list is the local one for `by` of push: `by` itself; for a submission worker 0,
 * as XKaapi's main thread is its first worker.
 */
unsigned duet_view_local(const struct duet_view *view, int by);
/* This policy's state for one worker: state_size_a_worker bytes, zeroed at the start. */
void *duet_view_worker_state(struct duet_view *view, unsigned worker);
/* The value of this policy's parameter number `index`, which must exist, within its bounds. */
double duet_view_parameter(const struct duet_view *view, unsigned index);
/*
 * A uniform random number in [0, bound), from the generator of `worker` (DUET_SUBMITTER for the
 * submitting thread's). bound > 0. Reproducible with the run's seed.
 */
unsigned duet_view_random(struct duet_view *view, int worker, unsigned bound);

/* ------------------------------------------------------------------------------------------- */
/* Questions: tasks                                                                             */

bool duet_view_can_run(const struct duet_view *view, unsigned worker, const struct duet_task *task);
/* Seconds the kernel is expected to take on the worker; 0: unknown. The performance model's. */
double duet_view_seconds(const struct duet_view *view, unsigned worker,
                         const struct duet_task *task);
/*
 * Seconds expected until the inputs that are not valid on the worker's memory node have arrived:
 * the sum over them of latency + bytes / bandwidth x number of accelerators, the XKaapi model in
 * which every accelerator transfers at once (Lima et al. 2015, section on the performance model).
 */
double duet_view_transfer_seconds(const struct duet_view *view, unsigned worker,
                                  const struct duet_task *task);
/* The same if every copy is alone: without the factor. */
double duet_view_transfer_alone_seconds(const struct duet_view *view, unsigned worker,
                                        const struct duet_task *task);
/* Seconds that a copy of so many bytes takes if it is alone, by way of the host where there is no
   direct route. 0 from a node to itself. */
double duet_view_copy_alone_seconds(const struct duet_view *view, unsigned from, unsigned to,
                                    uint64_t bytes);
/* Bytes of the task's accesses that are valid on a memory node, or on their way to it. */
uint64_t duet_view_valid_bytes(const struct duet_view *view, unsigned node,
                               const struct duet_task *task);
/*
 * Bytes that a memory node has for data, and those of them that no data has now; UINT64_MAX both of
 * the host's. Data that is there stays, although nobody uses it, until its room is needed.
 */
uint64_t duet_view_capacity_bytes(const struct duet_view *view, unsigned node);
uint64_t duet_view_free_bytes(const struct duet_view *view, unsigned node);
/* true if the access number `index` of the task is valid on the node (or on its way to it). */
bool duet_view_valid(const struct duet_view *view, unsigned node, const struct duet_task *task,
                     size_t index);
/*
 * Seconds of work expected to be waiting on a worker: the tasks on its own list and those taken and
 * not finished, by duet_view_seconds.
 */
double duet_view_load(const struct duet_view *view, unsigned worker);

/* Has the worker found nothing when it last looked for a task, and has not been called since? */
bool duet_view_idle(const struct duet_view *view, unsigned worker);
/*
 * For `revoke`: the idle worker that is expected to end the task first, if that is before `victim`
 * does, which begins in `wait_s` seconds; else -1. Its load, or the transfer if every copy is
 * alone, whichever is longer, and `weight` times the kernel; with 0 it is nobody.
 */
int duet_view_sooner(struct duet_view *view, const struct duet_task *task, unsigned victim,
                     double wait_s, double weight);

size_t duet_task_accesses(const struct duet_task *task);
bool duet_task_writes(const struct duet_task *task, size_t index); /* W or RW */
bool duet_task_reads(const struct duet_task *task, size_t index);  /* R or RW */
uint64_t duet_task_access_bytes(const struct duet_task *task, size_t index);
/* Which data it is: a number that stays the same as long as the data is registered; from 1. */
uint64_t duet_task_data(const struct duet_task *task, size_t index);
/*
 * This policy's state for that data: state_size_a_data bytes, zeroed when it is registered. Parts
 * of data that is cut have their own. `index` must exist.
 */
void *duet_task_data_state(struct duet_view *view, const struct duet_task *task, size_t index);
/* The same of that data on a memory node, which must exist: state_size_a_place bytes. */
void *duet_task_place_state(struct duet_view *view, const struct duet_task *task, size_t index,
                            unsigned node);
/* What waits directly for a task: see duet_task_successors. */
struct duet_successors {
    size_t count;
    double normalised; /* each by 1 / its predecessors, of those that have not ended */
};
/*
 * The successors that were submitted by now of a task that is ready or has been taken. One that
 * waits for several of its accesses counts for each, in `normalised` as a part: of what a task
 * waits for, each access has an equal part, and of that each task that has to end first, so that
 * the parts of all its predecessors are 1 together. Time is in proportion to `count`. Not in a
 * score.
 */
struct duet_successors duet_task_successors(const struct duet_task *task);
int duet_task_priority(const struct duet_task *task);
double duet_task_complexity(const struct duet_task *task); /* the hint, else flops */
uint64_t duet_task_id(const struct duet_task *task);       /* from 1, in order of submission */
const char *duet_task_kernel(const struct duet_task *task);
/*
 * In `plan`, or in `push` before the task is on a list: what duet_task_priority gives from then on,
 * and DUET_HEAP lists are sorted by.
 */
void duet_task_set_priority(struct duet_task *task, int priority);
/* A number the policy may keep with a task from push, or plan, to epilogue; 0 at first. */
double duet_task_note(const struct duet_task *task);
void duet_task_set_note(struct duet_task *task, double note);

/*
 * Begins to bring what a task reads to a memory node, as far as there is room that nothing valid
 * has. Of a task that is the policy's, in `push` before it is on a list, or taken from one. Where
 * the task goes then is open: what it does not need there is dropped. Nothing is done for blocks of
 * an expansion, which are gone when its tasks have ended.
 */
void duet_view_prefetch(struct duet_view *view, const struct duet_task *task, unsigned node);

enum { DUET_LUF_BYTES = 8 };

/*
 * Eviction of what is least used in the future (LUF: Gonthier, Marchal, Thibault, FGCS 149, 2023),
 * for policies that give tasks to workers before these take them. With DUET_LUF_BYTES a place and
 * duet_luf_victim as `victim`, or called from it, data leaves first that the fewest tasks use which
 * were counted for a worker of the node: with 1 when a task is given to it, with -1 when it has
 * ended there or is given to another; among equals what need not be written back. Nothing is
 * counted without these bytes, or as long as all data that is registered fits.
 */
void duet_luf_count(struct duet_view *view, const struct duet_task *task, unsigned worker,
                    int change);
double duet_luf_victim(void *self, struct duet_view *view, unsigned node, void *place, bool sole);

/* A function for `epilogue`: counts by duet_luf_count that a task has ended. */
void duet_luf_epilogue(void *self, struct duet_view *view, struct duet_task *task, unsigned worker,
                       const struct duet_times *times, double now);

/* ------------------------------------------------------------------------------------------- */
/* Registry                                                                                     */

/*
 * The built-in policy of this name, or NULL. The index-th one, NULL beyond the last; "pinned",
 * which is for measurements, is not among them.
 */
const struct duet_policy *duet_policy_find(const char *name);
const struct duet_policy *duet_policy_at(size_t index);
/*
 * Checks that name, description, source, push and pop are there, and that parameters are described
 * and begin within their bounds. DUET_EINVAL with a message.
 */
DUET_MUST_CHECK int duet_policy_check(const struct duet_policy *policy,
                                      struct duet_message *message);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
