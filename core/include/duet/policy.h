/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a scheduling policy, in the framework of XKaapi (Gautier et al., IPDPS 2013; Lima et al.,
 * Parallel Computing 44, 2015). A policy decides on which list a task that became ready is placed,
 * and which task a worker takes from the lists. It neither locks, nor wakes, nor reads a clock: the
 * core does.
 *
 * A policy is a constant `struct duet_policy`, one external symbol a file, and one line in
 * policies/list.h; or a shared object that exports one named `duet_policy`, given as `--policy
 * ./mine.so`.
 *
 * Units are seconds and bytes. Workers are numbered from 0, CPU workers first. For a worker, memory
 * node or access that does not exist questions answer 0, false, NULL or -1, and other functions do
 * nothing, unless their comments say otherwise.
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

struct duet_machine;
struct duet_task;
struct duet_view; /* access of a policy to the core; valid during a call */
struct duet_list; /* a concurrent list of ready tasks */

/* `by` of push when the ready tasks come from a submission, not from a finished task. */
enum { DUET_SUBMITTER = -1 };

/* Order of a list. The workers' lists and the shared one have that of the policy. */
enum duet_order {
    DUET_DEQUE,  /* order of pushes at head and tail */
    DUET_HEAP,   /* highest priority first; among equals the earliest pushed */
    DUET_SORTED, /* highest note first; among equals the earliest pushed: see duet_push_sorted */
    /* on a worker's list: first the task with the fewest inputs that are neither valid on the
       worker's memory node nor on their way there; among equals the earliest pushed. Their
       tasks have no note: it is 0, and setting it does nothing. */
    DUET_NEAREST,
    DUET_HEAP_NEAREST, /* highest priority first; among equals as DUET_NEAREST */
};

enum { DUET_PARAMETERS_MAX = 16 }; /* most parameters of a policy */

/* A number that is chosen together with a policy: `--policy NAME:parameter=value`. */
struct duet_policy_parameter {
    const char *name; /* lower case */
    double initial;   /* value if none is given */
    double least, most;
    const char *description;
};

/* A policy that the core tries by simulation. */
struct duet_candidate {
    const char *policy;    /* name of a built-in policy */
    const char *parameter; /* parameter that differs from its initial value; NULL: none */
    double value;
    bool alike; /* tried only where all workers are of one architecture; false for the first
                   candidate */
};

/* Measured times of a finished task. */
struct duet_times {
    double start_s, end_s; /* when the kernel ran */
    double predicted_s;    /* duet_view_seconds when its worker took it; 0: unknown */
};

/*
 * A policy. `self` is state_size bytes, zeroed, that the core allocates for each runtime. Slots may
 * be called for different workers by different threads at once: state that several workers change
 * must be C11 atomics. Optional slots may be NULL.
 */
struct duet_policy {
    const char *name;        /* as in --policy, lower case */
    const char *description; /* one line for --policy=help */
    const char *source;      /* the paper it comes from */
    enum duet_order order;
    /*
     * Private deques (Acar, Chargueraud, Rainey, PPoPP 2013): a CPU worker may keep tasks to itself
     * that its kernels submit without data and without restriction. It runs them last in, first
     * out, whatever their priority, and gives the oldest away, between two tasks, when another CPU
     * worker is idle. Only for kernels known to take less than 10 microseconds. Such tasks do not
     * meet the slots below unless they are given away; a recording shows them as all others.
     * Policies of local lists and stealing do the same at more cost.
     */
    bool keeps_nested;
    /*
     * `pop` may leave a task that its worker could run on a list that all share: a push then wakes
     * every idle worker that can run the task, not one of them. A worker that has left a task is
     * asked again after the next push. Each task must be taken by some worker, however expected
     * times change.
     */
    bool may_decline;
    /*
     * The score that `victim` gives to data on a node rises only when duet_luf_count counts down,
     * or the data is no longer `sole`: a search need not ask for all scores again. True where
     * `victim` is duet_luf_victim.
     */
    bool scores_hold;
    size_t state_size;          /* bytes of state for the policy */
    size_t state_size_a_worker; /* bytes of state for each worker: duet_view_worker_state */
    size_t state_size_a_data;   /* bytes of state for each piece of data: duet_task_data_state */
    size_t state_size_a_place;  /* bytes of state for each piece of data and memory node:
                                   duet_task_place_state */
    /* Performance model that is used if the user chooses none; NULL: the default one. */
    const char *model;
    /* Parameters, ended by one without a name; NULL: none. See duet_view_parameter. */
    const struct duet_policy_parameter *parameters;
    /*
     * Optional: candidates, ended by one without a name. The policy then has no slots, and its
     * first parameter is the number of tasks on which candidates are tried. The core holds
     * submitted tasks (config.hold). When the application waits for more tasks than there are
     * workers, and nothing else is going on, the core simulates them with each candidate, and goes
     * on with the best. Until then it uses the first candidate, which keeps no state, has neither
     * `init` nor `steal`, and whose `pop` and `victim` read no parameter: idle workers may be in
     * them when it changes.
     */
    const struct duet_candidate *candidates;

    /* Optional. Called once. Returns 0 or a negative enum duet_error. */
    int (*init)(void *self, struct duet_view *view);

    /* Optional. Called once, after all other calls; also after an `init` that has failed. */
    void (*fini)(void *self);

    /*
     * Places every task of the batch, in an order of its choice, on one of the lists. The batch
     * holds, in order of activation, the tasks that a completion made ready (`by`: the worker that
     * finished, which may be unable to run them) or tasks at their submission (DUET_SUBMITTER):
     * one, or several of a graph that is submitted again. The policy may reorder the array.
     */
    void (*push)(void *self, struct duet_view *view, struct duet_task **batch, size_t count, int by,
                 double now);

    /*
     * Optional. Plans tasks before they enter the graph: the core holds submitted tasks until the
     * application waits (config.hold), and then passes `count` of them in order of submission.
     * `ranks` are their upward ranks in seconds (Topcuoglu, Hariri, Wu, TPDS 2002, equation 8): the
     * longest path from the beginning of a task to the end of the last one, by mean expected times
     * and mean copies; at least the rank of each successor. The policy may set notes and
     * priorities, which push then finds. Never called by two threads at once. Tasks submitted
     * inside of tasks, or while a thread waits, come to push without a plan, and tasks planned for
     * a lost device come to push again.
     */
    void (*plan)(void *self, struct duet_view *view, struct duet_task *const *tasks, size_t count,
                 const double *ranks, double now);

    /*
     * Takes a task that `worker` can run from a list that is its own or shared, or returns NULL.
     * The run ends with DUET_EINVAL if `pop` or `steal` returns a task that is still on a list,
     * that a worker has taken before, or that the worker cannot run.
     */
    struct duet_task *(*pop)(void *self, struct duet_view *view, unsigned worker, double now);

    /*
     * Optional; NULL: no stealing. Takes a task that `thief` can run from a list of `victim`, or
     * returns NULL. The core asks victims whose lists are not empty, each once, until one gives a
     * task: at random, or in the order of `victims`.
     */
    struct duet_task *(*steal)(void *self, struct duet_view *view, unsigned thief, unsigned victim,
                               double now);

    /*
     * Optional. Sorts `order`, the numbers of all other workers, into the order in which a thief
     * always asks its victims. Called once for each thief, after `init`.
     */
    void (*victims)(void *self, struct duet_view *view, unsigned thief, unsigned *order);

    /*
     * Optional. Scores data for eviction from a memory node that has no room: the highest score
     * leaves, among equals the least recently used, which is the only rule without this slot.
     * `place` is duet_task_place_state of the data on that node; `sole`: it has to be written back
     * first, or would have to. INFINITY: it leaves, and no other is scored. Called for data that is
     * valid there, also if it is in use, up to 1,024 pieces that are not, least recently used
     * first, and again for each that leaves. The node is locked: the slot may read its own state,
     * and do nothing else.
     */
    double (*victim)(void *self, struct duet_view *view, unsigned node, void *place, bool sole);

    /* Optional. Called when the worker has taken the task, before its inputs are fetched. */
    void (*prologue)(void *self, struct duet_view *view, struct duet_task *task, unsigned worker,
                     double now);

    /*
     * Optional. Gives a task back that `victim` has taken and not begun; it is expected to begin it
     * at `begin_s`, when its earlier tasks are done and the inputs are there. Returns the number of
     * an idle worker that can run the task: the task goes to the end of that worker's list, where
     * `pop` has to look, and is not asked for again; the slot undoes what prologue has counted.
     * Returns -1 if the task stays. Called on the victim's thread while a worker is idle: before it
     * begins a task (a device may be given a kernel behind another that still runs), and when a
     * worker becomes idle while the task waits for data or room. Copies on their way go on, and
     * their data is valid there. Never called for tasks with accesses that commute, reduce or are
     * scratch, for children of other tasks, nor while data that the task writes is on its way.
     */
    int (*revoke)(void *self, struct duet_view *view, const struct duet_task *task, unsigned victim,
                  double begin_s, double now);

    /*
     * Optional. Called when the kernel has ended, before its successors become ready; or when a
     * taken task ends without running, at the date at which it would have begun, because the run or
     * its input has failed.
     */
    void (*epilogue)(void *self, struct duet_view *view, struct duet_task *task, unsigned worker,
                     const struct duet_times *times, double now);

    /*
     * Optional. Called when tasks are left and nothing can happen any more, on any thread: writes
     * into the message, by duet_fail, which task the policy waits for.
     */
    void (*explain)(void *self, struct duet_view *view, struct duet_message *message);

    /* Optional. Data of whoever made the policy, for duet_view_context: at least as long there as
       the runtimes that use the policy. */
    const void *context;
};

/* ------------------------------------------------------------------------------------------- */
/* Lists                                                                                        */

/*
 * Return the list of a worker, and the list that all workers share. Never NULL: the run fails with
 * DUET_EINVAL if there is no such worker.
 */
DUET_EXPORT struct duet_list *duet_view_list(struct duet_view *view, unsigned worker);
DUET_EXPORT struct duet_list *duet_view_shared(struct duet_view *view);

/*
 * Makes a list of the policy's own, which all workers share; the core frees it. Only in `init`.
 * Returns NULL if there is no memory.
 */
DUET_EXPORT struct duet_list *duet_view_new_list(struct duet_view *view, enum duet_order order);

/*
 * Place a ready task, once, on a list and wake a worker that can take it: the owner of a worker's
 * list; for the shared list, and for any list when the policy steals, an idle worker that can run
 * the task, chosen at random. The two ends differ only on DUET_DEQUE lists.
 */
DUET_EXPORT void duet_push_head(struct duet_view *view, struct duet_list *list,
                                struct duet_task *task);
DUET_EXPORT void duet_push_tail(struct duet_view *view, struct duet_list *list,
                                struct duet_task *task);

/*
 * Places a ready task on a DUET_SORTED list by its note, which becomes `key` and stays while it is
 * there.
 */
DUET_EXPORT void duet_push_sorted(struct duet_view *view, struct duet_list *list,
                                  struct duet_task *task, double key);

/*
 * Take the first task, from that end, that `worker` can run, passing over the others; NULL if there
 * is none. The two ends give different tasks only on DUET_DEQUE lists.
 */
DUET_EXPORT struct duet_task *duet_pop_head(struct duet_view *view, struct duet_list *list,
                                            unsigned worker);
DUET_EXPORT struct duet_task *duet_pop_tail(struct duet_view *view, struct duet_list *list,
                                            unsigned worker);

/*
 * Returns the value of a task for a worker that takes one: the highest is taken, the first among
 * equals. -INFINITY: it is left. INFINITY: it is taken, unless one before it has the same value.
 * NAN: it is left, and so are all after it that the same workers can run. The list is locked: the
 * function may ask, and do nothing else.
 */
typedef double duet_score_fn(void *context, const struct duet_view *view,
                             const struct duet_task *task);

/*
 * Takes the task of the list that `worker` can run and whose score is highest, or returns NULL. The
 * first task is scored first, others in no special order, and not all where that is not needed.
 * Time is in proportion to their number.
 */
DUET_EXPORT struct duet_task *duet_pop_best(struct duet_view *view, struct duet_list *list,
                                            unsigned worker, duet_score_fn *score, void *context);

/*
 * Returns true for a task to be chosen. The list is locked; the function may change state of the
 * policy.
 */
typedef bool duet_choice_fn(void *context, const struct duet_view *view,
                            const struct duet_task *task);

/*
 * Moves the chosen tasks that `worker`, the calling one, can run from a DUET_DEQUE list to the tail
 * of its own list, or of one that all share. Time is in proportion to the length.
 */
DUET_EXPORT void duet_move(struct duet_view *view, struct duet_list *from, struct duet_list *to,
                           unsigned worker, duet_choice_fn *chosen, void *context);

/*
 * Takes a task for `steal`: as duet_pop_tail, or NULL while another thread is at the list, unless
 * it is the thief's last attempt. Where tasks are known to be short a CPU worker takes its equal
 * part of the list at once (its length over the number of workers), at most 64 tasks and 100
 * microseconds of work: those after the first come to its own list, in their order, where `pop` has
 * to look. Guided self-scheduling gives out iterations like this (Polychronopoulos, Kuck, IEEE
 * Transactions on Computers 1987).
 */
DUET_EXPORT struct duet_task *duet_steal_tail(struct duet_view *view, struct duet_list *list,
                                              unsigned thief);

/* Functions for `pop`. duet_pop_own takes the head of the worker's own list; duet_pop_own_or_shared
   also, if that list is empty, the head of the list that all workers share. */
DUET_EXPORT struct duet_task *duet_pop_own(void *self, struct duet_view *view, unsigned worker,
                                           double now);
DUET_EXPORT struct duet_task *duet_pop_own_or_shared(void *self, struct duet_view *view,
                                                     unsigned worker, double now);
/* A function for `steal`: takes tasks from the victim's own list, by duet_steal_tail. */
DUET_EXPORT struct duet_task *duet_steal_own(void *self, struct duet_view *view, unsigned thief,
                                             unsigned victim, double now);

/*
 * Returns the number of tasks on a list, or about to be; other threads may push and pop meanwhile.
 */
DUET_EXPORT size_t duet_list_length(const struct duet_list *list);

/* ------------------------------------------------------------------------------------------- */
/* Questions: workers and machine                                                               */

/* Number of workers. */
DUET_EXPORT unsigned duet_view_workers(const struct duet_view *view);
/* Number of memory nodes; 0 is the host's. */
DUET_EXPORT unsigned duet_view_nodes(const struct duet_view *view);
DUET_EXPORT unsigned duet_view_archs(const struct duet_view *view);
DUET_EXPORT unsigned duet_view_arch(const struct duet_view *view, unsigned worker);
DUET_EXPORT unsigned duet_view_node(const struct duet_view *view, unsigned worker);
/* True for a worker whose memory is not the host's. */
DUET_EXPORT bool duet_view_is_device(const struct duet_view *view, unsigned worker);
/*
 * Returns the worker whose list is the local one for `by` of push: `by` itself; for a submission
 * worker 0, as XKaapi's main thread is its first worker.
 */
DUET_EXPORT unsigned duet_view_local(const struct duet_view *view, int by);
/* Returns this policy's state for one worker: state_size_a_worker bytes, zeroed at the start. */
DUET_EXPORT void *duet_view_worker_state(struct duet_view *view, unsigned worker);
/*
 * Returns the value of this policy's parameter number `index`, within its bounds; the run fails
 * with DUET_EINVAL if there is no such parameter.
 */
DUET_EXPORT double duet_view_parameter(const struct duet_view *view, unsigned index);
/*
 * Returns a uniform random number in [0, bound), from the generator of `worker` (DUET_SUBMITTER for
 * the submitting thread's). bound > 0. Reproducible with the run's seed.
 */
DUET_EXPORT unsigned duet_view_random(struct duet_view *view, int worker, unsigned bound);
/*
 * Returns the number of the first task that was submitted since the opening, or the last
 * duet_stats_reset or duet_recover: the one that traces begin with. 0: none was.
 */
DUET_EXPORT uint64_t duet_view_first_task(const struct duet_view *view);
/* Returns the `context` of the policy. */
DUET_EXPORT const void *duet_view_context(const struct duet_view *view);
/* Returns the machine (duet/machine.h), with the names of its workers, which the runtime owns. */
DUET_EXPORT const struct duet_machine *duet_view_machine(const struct duet_view *view);
/*
 * Ends the run with a negative enum duet_error and a message of one line, unless it has failed
 * before. Tasks that have not begun do not run; the policy still places what it is given.
 */
DUET_EXPORT void duet_view_fail(struct duet_view *view, int error, const char *format, ...)
    DUET_PRINTF(3, 4);

/* ------------------------------------------------------------------------------------------- */
/* Questions: tasks                                                                             */

DUET_EXPORT bool duet_view_can_run(const struct duet_view *view, unsigned worker,
                                   const struct duet_task *task);
/*
 * Returns the seconds that the performance model expects of the kernel on the worker; 0: unknown.
 */
DUET_EXPORT double duet_view_seconds(const struct duet_view *view, unsigned worker,
                                     const struct duet_task *task);
/*
 * Returns the seconds expected until the inputs that are not valid on the worker's memory node have
 * arrived: the sum over them of latency + bytes / bandwidth. Not `alone`: of latency + bytes /
 * bandwidth x number of accelerators, the XKaapi model in which every accelerator transfers at once
 * (Lima et al. 2015, section on the performance model).
 */
DUET_EXPORT double duet_view_transfer_seconds(const struct duet_view *view, unsigned worker,
                                              const struct duet_task *task, bool alone);
/* Returns the seconds that a lone copy of so many bytes takes, by way of the host where there is no
   direct route. 0 from a node to itself. */
DUET_EXPORT double duet_view_copy_alone_seconds(const struct duet_view *view, unsigned from,
                                                unsigned to, uint64_t bytes);
/*
 * Returns the bytes of the task's accesses that are valid on a memory node, or on their way to it.
 */
DUET_EXPORT uint64_t duet_view_valid_bytes(const struct duet_view *view, unsigned node,
                                           const struct duet_task *task);
/*
 * Return the bytes of a memory node for data, and how many of them no data occupies now; both
 * UINT64_MAX for the host's. Unused data occupies its room until that is needed.
 */
DUET_EXPORT uint64_t duet_view_capacity_bytes(const struct duet_view *view, unsigned node);
DUET_EXPORT uint64_t duet_view_free_bytes(const struct duet_view *view, unsigned node);
/* True if access number `index` of the task is valid on the node, or on its way to it. */
DUET_EXPORT bool duet_view_valid(const struct duet_view *view, unsigned node,
                                 const struct duet_task *task, size_t index);
/*
 * Returns the seconds of work that wait on a worker: the tasks on its own list and those taken and
 * not finished, by duet_view_seconds.
 */
DUET_EXPORT double duet_view_load(const struct duet_view *view, unsigned worker);

/* True if the worker found no task when it last looked, and has not been woken since. */
DUET_EXPORT bool duet_view_idle(const struct duet_view *view, unsigned worker);
/*
 * For `revoke`: returns the idle worker that is expected to end the task first, if that is before
 * `victim` does, which begins in `wait_s` seconds; else -1. The expected end is the longer of the
 * worker's load and of the transfer with every copy alone, plus `weight` times the kernel. `weight`
 * 0: always -1.
 */
DUET_EXPORT int duet_view_sooner(struct duet_view *view, const struct duet_task *task,
                                 unsigned victim, double wait_s, double weight);

DUET_EXPORT size_t duet_task_accesses(const struct duet_task *task);
/* True for W and RW. */
DUET_EXPORT bool duet_task_writes(const struct duet_task *task, size_t index);
/* True for R and RW. */
DUET_EXPORT bool duet_task_reads(const struct duet_task *task, size_t index);
DUET_EXPORT uint64_t duet_task_access_bytes(const struct duet_task *task, size_t index);
/* Returns the number of the data, from 1, which stays the same as long as it is registered. */
DUET_EXPORT uint64_t duet_task_data(const struct duet_task *task, size_t index);
/*
 * Returns this policy's state for the data of an access: state_size_a_data bytes, zeroed when it is
 * registered. Parts of data that is cut have their own.
 */
DUET_EXPORT void *duet_task_data_state(struct duet_view *view, const struct duet_task *task,
                                       size_t index);
/*
 * Returns this policy's state for the data of an access on a memory node: state_size_a_place bytes.
 */
DUET_EXPORT void *duet_task_place_state(struct duet_view *view, const struct duet_task *task,
                                        size_t index, unsigned node);
/* Direct successors of a task: see duet_task_successors. */
struct duet_successors {
    size_t count;
    double normalised; /* sum of 1 / number of predecessors that have not ended, over the successors
                        */
};
/*
 * Returns the successors, submitted by now, of a task that is ready or has been taken. A successor
 * that waits for several accesses of the task counts once for each. In `normalised` all
 * predecessors of a task have parts that are 1 together: each of its accesses has an equal part,
 * divided equally among the tasks that have to end first. Time is in proportion to `count`. Not in
 * a score.
 */
DUET_EXPORT struct duet_successors duet_task_successors(const struct duet_task *task);
DUET_EXPORT int duet_task_priority(const struct duet_task *task);
/* The submitted hint, else flops. */
DUET_EXPORT double duet_task_complexity(const struct duet_task *task);
/* From 1, in order of submission. */
DUET_EXPORT uint64_t duet_task_id(const struct duet_task *task);
DUET_EXPORT const char *duet_task_kernel(const struct duet_task *task);
/*
 * Sets the priority of a task, in `plan`, or in `push` before the task is on a list.
 * duet_task_priority returns it from then on, and DUET_HEAP lists are sorted by it.
 */
DUET_EXPORT void duet_task_set_priority(struct duet_task *task, int priority);
/* A number that the policy may keep with a task from push, or plan, to epilogue; 0 at first. */
DUET_EXPORT double duet_task_note(const struct duet_task *task);
DUET_EXPORT void duet_task_set_note(struct duet_task *task, double note);

/*
 * Begins to copy the inputs of a task to a memory node, as far as there is room without valid data.
 * The task must be held by the policy: in `push` before it is on a list, or taken from one. The
 * policy may still send it elsewhere: data that it does not need there is dropped. Does nothing for
 * blocks of an expansion, which are gone when its tasks have ended.
 */
DUET_EXPORT void duet_view_prefetch(struct duet_view *view, const struct duet_task *task,
                                    unsigned node);

enum { DUET_LUF_BYTES = 8 };

/*
 * Eviction of data least used in the future (LUF: Gonthier, Marchal, Thibault, FGCS 149, 2023), for
 * policies that assign tasks to workers before these take them. The policy sets DUET_LUF_BYTES as
 * state_size_a_place, and duet_luf_victim as `victim` or called from it. It calls duet_luf_count
 * with 1 when a task is assigned to a worker, and with -1 when it has ended there or is assigned to
 * another. Data used by the fewest tasks counted for workers of the node leaves first; among
 * equals, data that need not be written back; where no counted task uses it, its score is INFINITY.
 * Nothing is counted without these bytes, or as long as all registered data fits.
 */
DUET_EXPORT void duet_luf_count(struct duet_view *view, const struct duet_task *task,
                                unsigned worker, int change);
DUET_EXPORT double duet_luf_victim(void *self, struct duet_view *view, unsigned node, void *place,
                                   bool sole);

/* A function for `epilogue`: counts by duet_luf_count that a task has ended. */
DUET_EXPORT void duet_luf_epilogue(void *self, struct duet_view *view, struct duet_task *task,
                                   unsigned worker, const struct duet_times *times, double now);

/* ------------------------------------------------------------------------------------------- */
/* Registry                                                                                     */

/*
 * Return the built-in policy of a name, or NULL; and the index-th one, NULL beyond the last.
 * "pinned", which is for measurements, has no index.
 */
DUET_EXPORT const struct duet_policy *duet_policy_find(const char *name);
DUET_EXPORT const struct duet_policy *duet_policy_at(size_t index);
/*
 * Checks that name, description, source, push and pop are there, and that parameters are described
 * and begin within their bounds. Error: DUET_EINVAL with a message.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_policy_check(const struct duet_policy *policy,
                                                  struct duet_message *message);

#ifdef __cplusplus
}
#endif

#include <duet/old_names.h>

#endif
