/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of the core's files that other files of the core call. Included by core/internal.h, at
 * its end.
 */
#ifndef DUET_CORE_CALLS_H
#define DUET_CORE_CALLS_H

#include "core/internal.h"

/*
 * Functions called for every task are `inline` or HOT where they are defined: libduet is optimised
 * as a whole, and the attribute tells the compiler to save the call.
 */

/*
 * Begins a call into the core. The array of workers to wake is left unset, as it is mostly unused.
 */
static inline void view_begin(struct duet_view *view, struct duet_runtime *core, double now, int by,
                              struct duet__ops *ops)
{
    view->core = core;
    view->ops = ops;
    view->now = now;
    view->by = by;
    view->self = by >= 0 ? &core->workers[by] : NULL;
    view->over = NULL;
    view->busy = view->wake_all = view->notify = view->ended = view->surely = false;
    view->wake_count = 0;
}

/* Return true if a number that a policy or the application gives is that of a worker, of a node. */
static inline bool has_worker(const struct duet_runtime *core, unsigned worker)
{
    return worker < core->machine.worker_count;
}

static inline bool has_node(const struct duet_runtime *core, unsigned node)
{
    return node < core->machine.node_count;
}

/*
 * Returns the policy. Its state is visible, too: a worker may ask while the core makes its choice.
 */
static inline const struct duet_policy *policy_of(const struct duet_runtime *core)
{
    return atomic_load_explicit(&core->policy, memory_order_acquire);
}

/* ------------------------------------------------------------------------------------------- */
/* worker.c                                                                                     */

void duet__view_wake(struct duet_view *view, unsigned worker);
void duet__view_act(struct duet_view *view);

/*
 * Ends a call, with no lock held: ends tasks put off, wakes workers and notifies waiting threads.
 */
static inline void duet__view_flush(struct duet_view *view)
{
    if (view->over || view->wake_count || view->wake_all || view->notify || view->ended)
        duet__view_act(view);
}

/* class.c */
int duet__class_find(struct duet_codelet *codelet, const void *args, const struct access *accesses,
                     unsigned count, struct task_class **out, double *work,
                     struct duet_message *message);
double duet__class_seconds(const struct task_class *klass, unsigned arch);
void duet__class_best(struct task_class *klass);
struct task_class *duet__class_twin(const struct task_class *klass, struct duet_codelet *codelet);
void duet__classes_fini(struct duet_runtime *core);

/* belief.c */
double duet__belief(const struct task_class *klass, const struct duet__class *described,
                    unsigned arch);
uint64_t duet__belief_varied(struct duet_codelet *codelet, uint64_t footprint);
void duet__class_measured(struct task_class *klass, const struct worker *worker, double seconds);

/* trace.c: bytes of the handles' data, and of their replicas on a device */
uint64_t duet__access_bytes(const struct access *accesses, unsigned count);
uint64_t duet__slab_bytes(const struct access *accesses, unsigned count);
/* Records the accesses of a task. trace_lock is held. */
void duet__trace_accesses(struct worker *worker, const struct duet_task *task);

/* codelet.c */
void duet__codelets_fini(struct duet_runtime *core);

/* class.c */
int duet__mask_find(struct duet_runtime *core, uint64_t kinds, uint8_t *out);
uint64_t duet__kinds_of_archs(const struct duet_runtime *core, uint64_t archs);
void duet__masks_fini(struct duet_runtime *core);

/* task.c */
struct duet_task *duet__task_alloc(struct duet_runtime *core, int by, unsigned access_count);
struct duet_task *duet__tasks_alloc(struct duet_runtime *core, struct duet_task *const *models,
                                    size_t count);
void duet__task_pool(struct duet_task *task, unsigned access_count);
void duet__task_free(struct duet_runtime *core, int by, struct duet_task *task);
void duet__pools_fini(struct duet_runtime *core);

/* extra.c */
int duet__extra_new(struct duet_runtime *core, struct duet_task *task,
                    const struct duet_task_desc *desc, struct duet_message *message);
unsigned duet__extra_room(const struct duet_task_desc *desc);
void duet__extra_refused(struct duet_task *task);
void duet__extra_free(struct duet_task *task);
void duet__extra_postpone(struct duet_view *view, struct duet_task *kernel, struct duet_task *task);
void duet__extra_enlist(struct duet_runtime *core, struct duet_task *child);
void duet__extra_failed(struct duet_task *task, int status);
void duet__extra_end(struct duet_view *view, struct duet_task *task);
bool duet__in_done(void);
void duet__in_done_begin(void);
void duet__in_done_end(void);

/* runtime.c */
const struct duet__gate *duet__gate_of(const struct duet_runtime *core);
int duet__gate_submit(struct duet_runtime *core, const struct duet_task_desc *desc);
void duet__gate_failed(struct duet_runtime *core);

/* names.c */
uint32_t duet__name(struct duet_runtime *core, const char *text);
void duet__marks_reset(struct duet_runtime *core);
void duet__names_fini(struct duet_runtime *core);

/* Description of a task in messages: failure.c. */
struct task_says {
    char text[128];
};

/* entered.c */
void duet__entered_add(struct duet_runtime *core, struct duet_task *task);
void duet__entered_reset(struct duet_runtime *core);
void duet__entered_fini(struct duet_runtime *core);

/* ref.c */
struct duet_ref *duet__ref_new(struct duet_runtime *core);
int duet__refs_check(const struct duet_runtime *core, const struct duet_task_desc *desc,
                     struct duet_message *message);
size_t duet__edges_bytes(size_t count);
unsigned duet__edges_fill(struct edge *edges, struct duet_task *task,
                          const struct duet_task_extra *from);
void duet__edges_free(struct edge *edges, unsigned count);
int duet__edges_enter(struct duet_task *task, double *path);
void duet__ref_entered(struct duet_ref *ref, struct duet_task *task, double path);
void duet__ref_see(struct duet_ref *ref, uint32_t number);
uint32_t duet__edge_seen(const struct task_extra *extra, unsigned index);
void duet__ref_postpone(struct duet_ref **list, struct duet_ref *ref);
void duet__ref_again(struct duet_ref **list, struct duet_ref *ref);
void duet__refs_drop(struct duet_view *view, struct duet_ref *list);
void duet__refs_release(struct duet_view *view);
unsigned duet__refs_example(struct duet_runtime *core, struct task_says *says, unsigned most,
                            bool *waits);
struct duet_runtime *duet__edges_core(const struct edge *edges);
uint64_t duet__edge_after(const struct edge *edges, unsigned i);
void duet__ref_end(struct duet_view *view, struct duet_ref *ref);
void duet__edges_rank(const struct duet_task *task, double rank);
double duet__ref_rank(const struct duet_ref *ref);
void duet__ref_set_twin(struct duet_ref *ref, struct duet_ref *twin);
void duet__edges_twins(const struct task_extra *extra, struct duet_ref **out);
typedef void duet__next_fn(struct duet_successors *found, const struct duet_task *next,
                           unsigned before);
void duet__ref_each(struct duet_ref *ref, duet__next_fn *add, struct duet_successors *found);

/* failure.c */
DUET_PRINTF(3, 0)
void duet__fail_run_as(struct duet_runtime *core, int error, const char *format, va_list arguments);
void duet__put_damage(struct duet_runtime *core, struct duet_handle *handle, bool bad);
void duet__poison(struct duet_runtime *core, struct duet_handle *handle);
void duet__settle_poison(struct duet_runtime *core, struct access *access, bool written);
void duet__poison_copy(struct duet_runtime *core, const struct duet__copy *copy);
bool duet__reads_poisoned(const struct duet_task *task);
void duet__pass_poison(struct duet_runtime *core, struct duet_task *task);
bool duet__hopeless(const struct duet_runtime *core, const struct duet_task *task);
int duet__cancelled_by(const struct duet_runtime *core);
void duet__count_failure(struct duet_runtime *core, struct duet_task *task, int status,
                         bool cancelled);
int duet__data_error(struct duet_runtime *runtime, struct duet_handle *handle, unsigned mode);
const char *duet__task_says(const struct duet_runtime *core, const struct duet_task *task,
                            struct task_says *says);

static inline bool in_trouble(const struct duet_runtime *core)
{
    return atomic_load_explicit(&core->watch, memory_order_acquire) & WATCH_TROUBLE;
}

/* true if the task is not to run: the run is over, or what it reads is not valid. */
static inline bool hopeless(const struct duet_runtime *core, const struct duet_task *task)
{
    return in_trouble(core) && duet__hopeless(core, task);
}

/* graph.c */
void duet__link_in(struct duet_view *view, struct duet_task *task);
void duet__link_turn(struct duet_view *view, struct duet_task *turn);
void duet__push(struct duet_view *view, struct duet_task *task);
void duet__released(struct duet_view *view, struct duet_task *task);
void duet__task_over(struct duet_view *view, struct duet_task *task);
void duet__task_end(struct duet_view *view, struct duet_task *task);
void duet__link_alone(struct duet_runtime *core, struct duet_task *task, double now);
void duet__graph_release(struct duet_view *view, struct duet_handle *handle);
void duet__graph_finish(struct duet_view *view, struct duet_task *task, unsigned node, bool pinned,
                        bool written);

/* finished.c */
uint64_t duet__finished_tasks(const struct duet_runtime *core);
void duet__add_finished(struct duet_runtime *core, struct worker *self, uint64_t count);
void duet__count_finished(struct duet_view *view, uint64_t count);
void duet__count_internal(struct duet_view *view, uint64_t count);
void duet__look_idle(struct duet_view *view, struct worker *worker);

/*
 * nested.c: keeps a task without accesses and restriction that a kernel of this worker submits, a
 * child of `parent` or NULL. Returns false if it has to be submitted as usual. Worker's thread
 * only.
 */
bool duet__nested_submit(struct duet_runtime *core, struct worker *worker,
                         const struct duet_task_desc *desc, struct duet_expansion *parent);

/* list.c */
void duet__list_init(struct duet_list *list, struct duet_runtime *core, struct worker *owner);
/* Tells lists sorted by missing inputs that a handle's data is on its way to a node. */
void duet__list_nearer(struct duet_runtime *core, struct duet_handle *handle, unsigned node);
void duet__list_order(struct duet_list *list, enum duet_order order);
void duet__call_another(struct duet_view *view);
void duet__list_doom(struct duet_view *view, struct duet_list *list);
void duet__list_drain(struct duet_view *view, struct duet_list *list);

/* expand.c */
void duet__expansion_failed(struct duet_expansion *expansion, int error);
void duet__expand(struct duet_view *view, struct duet_task *task);
struct duet_message *duet__expansion_message(struct duet_expansion *expansion);
struct duet_task *duet__child_finished(struct duet_view *view, struct duet_expansion *expansion);

/* names.c: marks in the trace that a worker's device was lost */
void duet__mark_lost(struct duet_runtime *core, unsigned worker, double now);
/* lost.c */
void duet__node_lost(struct duet_runtime *core, unsigned node);
void duet__submitted_again(const struct duet_task *kernel, const struct duet_task *task);
void duet__lost_next(struct duet_view *view, struct worker *worker);
void duet__lost_requeue(struct duet_view *view, struct worker *worker, struct duet_task *task);
void duet__link_submitted(struct duet_view *view, struct duet_task *task);

/* revoke.c */
bool duet__revoke(struct duet_view *view, struct worker *worker,
                  struct duet__engine_command *command);
void duet__call_waiting(struct duet_view *view);

/* worker.c */
void duet__slot_remove(struct worker *worker, struct duet_task *task);
const struct duet_task *duet__running_kernel(const struct worker *worker);
void duet__task_cancel(struct duet_view *view, struct worker *worker, struct duet_task *task);

/* transfer.c */
struct duet__copy *duet__next_copy(struct worker *worker);
struct replica *duet__replica_get(struct duet_runtime *core, struct duet_handle *handle,
                                  unsigned node);
enum fetch { FETCH_HIT, FETCH_MERGED, FETCH_STARTED, FETCH_FAILED, FETCH_FULL };
enum fetch duet__fetch(struct duet_view *view, struct access *waiter, unsigned node);
void duet__write_back(struct duet_view *view, struct replica *replica,
                      const struct duet_task *task);
void duet__replica_pin(struct duet_runtime *core, struct replica *replica);
void duet__replica_unpin(struct duet_view *view, struct replica *replica);
void duet__copy_done(struct duet_view *view, struct duet__copy *copy);
void duet__copy_lost(struct duet_view *view, struct duet__copy *copy);
bool duet__await_for(struct access *waiter, struct access *other, struct replica *into);
void duet__arrived(struct duet_view *view, struct duet_task *task, int count);

/* source.c */
int duet__source(const struct duet_runtime *core, const struct duet_handle *handle, unsigned node,
                 double *cost);
double duet__cost_by_host(const struct duet_view *view, const struct duet_handle *handle,
                          unsigned node);
double duet__cost_behind(const struct duet_view *view, const struct replica *on, unsigned node);
struct replica *duet__coming_source(const struct duet_view *view, const struct duet_handle *handle,
                                    unsigned node, double *best_s);
double duet__copy_queued(struct duet_runtime *core, const struct duet__copy *copy, int sign);
double duet__transfer_seconds(const struct duet_runtime *core, const struct duet_handle *handle,
                              unsigned node, double accelerators);

/* cache.c */
int duet__cache_prepare(struct duet_view *view, struct worker *worker, struct duet_task *task);
void duet__cache_prefetch(struct duet_view *view, struct duet_task *hint, unsigned index,
                          bool evicts);
void duet__replica_changed(struct node *node, struct replica *replica);
/* A replica may go now, or its score may have risen. Any lock but the node's may be held. */
static inline void replica_changed(struct node *node, struct replica *replica)
{
    if (atomic_load_explicit(&node->scored, memory_order_relaxed))
        duet__replica_changed(node, replica);
}
void duet__data_dies(struct duet_handle *handle);
void duet__cache_settled(struct duet_view *view, struct node *node, struct replica *replica);
void duet__cache_unpin(struct duet_view *view, unsigned node, struct duet_task *task);
bool duet__cache_put(struct duet_runtime *core, struct duet_handle *handle, unsigned index);
void duet__cache_stale(struct duet_runtime *core, struct replica *replica);
void duet__cache_forget(struct duet_runtime *core, struct replica *replica);

/* hint.c: true if the hint wants data that has no valid contents yet */
bool duet__hint_is_vain(const struct duet_runtime *core, struct duet_task *task);
bool duet__leave_behind(struct duet_view *view, struct duet_task *task, unsigned node);

/* rank.c */
/* Seconds of a copy, averaged over pairs of workers: latency_s + byte_s for each byte. */
struct mean_copy {
    double latency_s, byte_s;
};
struct mean_copy duet__mean_copy(const struct duet_runtime *core);
double duet__copy_seconds(const struct duet_machine *machine, unsigned from, unsigned to,
                          uint64_t bytes);
/*
 * Computes upward ranks of tasks in order of submission. `pass` is another number each time, from
 * 1.
 */
void duet__ranks(const struct duet_runtime *core, struct duet_task *const *tasks, size_t count,
                 const struct mean_copy *copy, unsigned pass, double *ranks);

/* runtime.c */
/* Makes room for the policy's state. */
void duet__policy_room(struct duet_runtime *core, const struct duet_policy *policy);
/* Installs a policy with its parameters; nothing is in flight. */
int duet__policy_begin(struct duet_runtime *core, const struct duet_policy *policy,
                       const double *parameters, struct duet_message *message);

/* choose.c */
int duet__choice_new(struct duet_runtime *core, const struct duet__core_config *config,
                     struct duet_message *message);
bool duet__chooses(const struct duet_runtime *core, size_t count);
void duet__choose(struct duet_runtime *core, struct duet_task *const *tasks, const double *ranks,
                  size_t count, size_t submitted);

/* held.c */
int duet__held_new(struct duet_runtime *core);
void duet__plan(struct duet_runtime *core, struct duet_task **tasks, const double *ranks,
                size_t count, double now);
/* Blocks a thread of the application in ops.wait, after all held tasks have entered the graph. */
int duet__wait_until(struct duet_runtime *core, bool (*reached)(void *arg), void *arg);

/* Returns the first of so many numbers for tasks of the application. */
static inline uint64_t take_numbers(struct duet_runtime *core, uint64_t count)
{
    uint64_t first = atomic_fetch_add_explicit(&core->submitted, count, memory_order_relaxed) + 1;
    if (!atomic_load_explicit(&core->first_task, memory_order_relaxed))
        atomic_store_explicit(&core->first_task, first, memory_order_relaxed);
    return first;
}

/* submit.c */
int duet__caller(const struct duet_runtime *core);
unsigned duet__sort_accesses(struct access *accesses, unsigned count);
int duet__task_new(struct duet_runtime *core, int by, const struct duet_task_desc *desc,
                   struct duet_task **out, struct duet_message *message);
int duet__task_model(struct duet_runtime *core, struct duet_task *model,
                     const struct duet_task_desc *desc);
uint64_t duet__window_room(struct duet_runtime *core);
int duet__not_made(const struct duet_task_desc *desc, int error);
int duet__run_error(struct duet_runtime *runtime);
int duet__wait_all(struct duet_runtime *runtime);
void duet__tell(struct duet_runtime *core, const struct duet_message *message);

/* replay.c */

/* Copies a checked description, which may end with its task, before it is submitted. Returns NULL
   if the thread does not record, or there is no memory. */
struct recorded;
struct recorded *duet__record_begin(const struct duet_runtime *core,
                                    const struct duet_task_desc *desc);
/* Keeps the copy if the task was submitted; else frees it. */
void duet__record_end(const struct duet_runtime *core, struct recorded *task, bool submitted);
/* Notes a call that no graph can repeat, if the thread records. */
void duet__record_bars(struct duet_runtime *core, const char *function);
/* Ends what threads record of a runtime that is closed. */
void duet__record_drop(struct duet_runtime *core);

/* fused.c */

struct fused;
/*
 * Returns recorded tasks, given by their models (NULL: it has none), as one, owned by the caller
 * (duet__fused_drop); NULL: they are to be submitted one by one. `before`: the same ones before a
 * change, or NULL.
 */
struct fused *duet__fuse(struct duet_runtime *core, const struct fused *before,
                         struct duet_task *const *models, size_t count);
int duet__fused_submit(struct duet_runtime *core, struct fused *fused);
/* Ends a use. NULL is fine; also after the runtime was closed. */
void duet__fused_drop(struct fused *fused);
/* Ends the use by a task that never ended, when the runtime is closed. Other tasks have none. */
void duet__fused_left(const struct task_extra *extra);

/* stuck.c */
void duet__tell_stuck(struct duet_runtime *core);

/* part.c */
/* Returns an empty list of parts, or NULL if there is no memory. */
struct parts *duet__parts_new(struct duet_handle *whole, struct duet_expansion *expansion);
/* Adds a part as the last of parts->handles. DUET_EINVAL, DUET_ENOMEM, with a message. */
int duet__part_add(struct duet_runtime *core, struct parts *parts, const struct duet_part *part,
                   enum shape shape, struct duet_message *message);
/* Frees parts that nobody uses, and their parts. Returns parts->next. */
struct parts *duet__parts_remove(struct duet_runtime *core, struct parts *parts);
/* Frees the cuts of a handle when all handles are freed. */
void duet__cuts_fini(struct duet_handle *handle);

/* cut.c */
/*
 * Brings the parts or wholes into force that a task on cut data needs, before it enters the graph.
 * parts_lock is held.
 */
void duet__take_turns(struct duet_view *view, struct duet_task *task);
/* True if the task accesses data that is cut, or a part of such. */
bool duet__is_cut(const struct duet_task *task);
/* Refuses a task whose accesses cannot be in force at once. */
int duet__check_turns(const struct access *accesses, unsigned count, const char *kernel,
                      struct duet_message *message);
/* Refuses to free parts if the application has acquired one. */
void duet__parts_attach(struct duet_runtime *core, struct parts *parts);
int duet__check_parts(struct duet_runtime *core, const struct parts *parts);

/* layout.c: areas in the host's memory that a handle consists of */
unsigned duet__area_count(const struct duet_handle *handle);
struct duet_array duet__area(const struct duet_handle *handle, unsigned index);
void duet__layout_free(struct layout *layout);
/* Returns how many areas have an address. */
unsigned duet__areas_placed(const struct duet_handle *handle);
/* Lays data without an address out densely, as on a device, wherever it is placed later. */
void duet__be_placed(struct duet_handle *handle);
void duet__layout_place(struct duet_handle *handle, void *memory);
/* Returns the kind of a layout that is not one matrix, for messages; NULL: a matrix. */
const char *duet__no_matrix(const struct duet_handle *handle);

/* part.c: gives the rows of a column that belong to a part of that shape and height */
void duet__shape_column(enum shape shape, size_t rows, size_t col, size_t *first, size_t *end);

/* region.c */
/* Enters the memory of a handle. DUET_EINVAL if other data overlaps it, DUET_ENOMEM; with a
   message. */
int duet__region_enter(struct duet_runtime *core, struct duet_handle *handle,
                       struct duet_message *message);
/* Removes the memory of a handle. registry_lock is held. */
void duet__region_leave(struct duet_runtime *core, struct duet_handle *handle);
void duet__regions_fini(struct duet_runtime *core);

/* handle.c */
size_t duet__data_state_offset(const struct duet_runtime *core);
size_t duet__place_state_offset(const struct duet_runtime *core, unsigned node);
struct duet_handle *duet__handle_new(struct duet_runtime *core, void *data, size_t rows,
                                     size_t cols, size_t ld, size_t element_bytes);
void duet__handle_forget(struct duet_runtime *core, struct duet_handle *handle);
void duet__handle_remove(struct duet_runtime *core, struct duet_handle *handle);
void duet__handle_gone(struct duet_runtime *core, struct duet_handle *handle);
int duet__shape_check(struct duet_runtime *runtime, size_t rows, size_t cols, size_t ld,
                      size_t element_bytes);
int duet__address_check(struct duet_runtime *runtime, const struct duet_array *array);
int duet__handle_register(struct duet_runtime *runtime, struct duet_handle *handle);
int duet__may_unregister(struct duet_runtime *runtime, struct duet_handle *handle);
struct duet_task *duet__acquisition_new(struct duet_runtime *core, unsigned count);
void duet__handles_fini(struct duet_runtime *core);
void duet__bring_home(struct duet_view *view, struct duet_task *task);
void duet__acquire_ready(struct duet_view *view, struct duet_task *task);
void duet__acquire_end(struct duet_view *view, struct duet_task *task);
void duet__release_now(struct duet_runtime *runtime, struct duet_handle *handle);

/* modes.c */
int duet__scratch_make(struct duet_runtime *core, struct duet_task *task);
void duet__scratch_refused(struct duet_runtime *core, struct duet_task *task);
bool duet__hold(struct duet_task *task);
struct duet_task *duet__next_holder(struct duet_handle *handle, bool frees);

/* reduction.c */
void duet__reduction_free(struct duet_runtime *core, struct duet_handle *handle);
int duet__reduction_restrict(struct duet_runtime *core, struct duet_task *task,
                             struct duet_message *message);
void duet__contribute(struct duet_view *view, struct worker *worker, struct duet_task *task);
void duet__initialised(struct duet_view *view, struct worker *worker, struct duet_task *task,
                       struct duet_handle *data, bool good);
void duet__contribution_return(struct duet_view *view, struct access *access, bool written);
uint64_t duet__contribution_whole(const struct duet_handle *data);
void duet__contributions_lost(struct duet_view *view, struct duet_task *task);
void duet__reduction_closes(struct duet_view *view, struct duet_handle *handle);
bool duet__reduction_enters(struct duet_handle *handle, const struct duet_task *task);
void duet__combine(struct duet_view *view, struct duet_task *task);
bool duet__contributions_valid(const struct duet_runtime *core, const struct duet_handle *handle);
void duet__reductions_recover(struct duet_runtime *core);

/* temporary.c */
void duet__memory_fini(struct duet_runtime *core);
bool duet__host_place(struct duet_runtime *core, struct duet_handle *handle);
void duet__host_leave(struct duet_runtime *core, struct duet_handle *handle);
struct duet_handle *duet__temporary_new(struct duet_runtime *core, size_t rows, size_t cols,
                                        size_t element_bytes);
void duet__no_data(struct duet_runtime *core, const struct duet_task *task,
                   const struct access *access, enum fetch fetch);
struct duet_task *duet__unregistering_new(struct duet_runtime *core, struct duet_handle *handle);
void duet__unregister_forget(struct duet_task *task);

/* released.c */
void *duet__row_add(struct worker *worker, struct rows *rows, size_t size);
bool duet__rows_take(struct worker *worker, const struct rows *from, struct rows *to, size_t size);
struct record *duet__record_add(struct worker *worker, const struct duet_event *event);
uint64_t duet__last_record(const struct duet_view *view);
void duet__note(struct duet_view *view, const struct duet_task *task, uint64_t by,
                enum duet_release release);
void duet__note_released(struct duet_view *view, const struct duet_task *task, uint64_t handle);
void duet__note_asked(struct duet_view *view, struct duet__copy *copy,
                      const struct duet_task *task);
static inline void note_released(struct duet_view *view, const struct duet_task *task,
                                 enum duet_release release)
{
    if (view->core->record)
        duet__note(view, task, duet__last_record(view), release);
}

/* trace.c */
void duet__trace_task(struct duet_runtime *core, struct worker *worker,
                      const struct duet_task *task, const struct duet__completion *report,
                      bool failed);
void duet__trace_record(struct duet_runtime *core, struct worker *worker,
                        const struct duet_task *task, const struct duet__completion *report,
                        bool failed);
void duet__trace_piece(struct duet_runtime *core, struct worker *worker,
                       const struct duet_task *task, const struct duet__completion *report,
                       bool kept);
void duet__trace_copy(struct duet_runtime *core, struct worker *worker,
                      const struct duet__copy *copy, const struct duet__completion *report);

/* True if no worker lives that can run tasks of this mask. */
static inline bool doomed(const struct duet_runtime *core, unsigned mask)
{
    uint64_t dead = atomic_load_explicit(&core->dead_kinds, memory_order_acquire);
    return dead && !(core->masks[mask].kinds & ~dead);
}

/*
 * Returns the number of tasks created and not finished, never too few: finished tasks are counted
 * before created ones are read. So 0 is exact: all tasks created until now have finished.
 */
static inline uint64_t unfinished(const struct duet_runtime *core)
{
    uint64_t finished = duet__finished_tasks(core);
    return atomic_load(&core->submitted) - finished;
}

/* Returns the number of unfinished tasks at which a submission goes on that met a full window. */
static inline uint64_t window_low(const struct duet_runtime *core)
{
    return core->window - (core->window >= 8 ? core->window / 8 : 1);
}

/* Returns the mode of the access that frees a handle: data without an address, or without contents
   here, is not brought back to the host. */
static inline uint8_t duet__last_mode(const struct duet_handle *handle)
{
    if (handle->temporary)
        return DUET_W | ACCESS_DROPS;
    return handle->elsewhere ? DUET_RW | ACCESS_DROPS : DUET_RW;
}

/* insert.c: true if arguments that may begin with the head of a duet_insert do. */
bool duet__has_values(const void *args);

/* Returns the seconds that the task is expected to take on an architecture; 0: not known. */
static inline double duet__expected_s(const struct duet_task *task, unsigned arch)
{
    return atomic_load_explicit(&task->klass->expected[arch], memory_order_relaxed);
}

/* True if a task's record has no room for some of its description. */
static inline bool has_extra(const struct duet_task_desc *desc)
{
    return desc->extra || desc->args_bytes > DUET_ARGS_INLINE;
}

/* Copies the arguments into the task's record: the most frequent sizes without a call. */
static inline void copy_args(struct duet_task *task, const struct duet_task_desc *desc)
{
    const size_t bytes = desc->args_bytes;
    if (bytes == sizeof(void *))
        memcpy(task->args, desc->args, sizeof(void *));
    else if (bytes == 2 * sizeof(void *))
        memcpy(task->args, desc->args, 2 * sizeof(void *));
    else if (bytes)
        memcpy(task->args, desc->args, bytes);
}

static inline const void *task_args(const struct duet_task *task)
{
    return task->bare ? NULL : task->extra ? task->extra->args : task->args;
}

static inline struct duet_task *access_task(struct access *access)
{
    return (struct duet_task *)(void *)((char *)(access - access->index) -
                                        offsetof(struct duet_task, accesses));
}

#endif
