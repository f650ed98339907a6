/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explicit tasks. A deferred one is a child of duet's task of the region or task that creates it,
 * on handles that stand for the addresses of its depend clauses. A task of duet ends when its
 * children have, so that a wait for the children of a task is one for all its descendants. Tasks
 * that need not be deferred (a false if clause, within a final task, in a team of one thread) run
 * at once, on the creator's stack; their children are those of the creator for duet.
 */
#include "openmp/gomp/gomp.h"

#include <stdlib.h>
#include <string.h>

#include "core/engine.h"
#include "real/real.h"

/* Flags of GOMP_task and GOMP_taskloop. */
enum {
    FINAL = 1 << 1,
    DEPEND = 1 << 3,
    PRIORITY = 1 << 4,
    UP = 1 << 8,
    GRAINSIZE = 1 << 9,
    IF = 1 << 10,
    NOGROUP = 1 << 11,
    REDUCTION = 1 << 12,
    DETACH = 1 << 13,
    STRICT = 1 << 14,
};

enum {
    IS_FINAL = 1,  /* the task is final */
    IS_BLOCK = 2,  /* its data is in a block of memory, which it frees */
    HAS_EVENT = 4, /* an event is in front of the data in the block */
    IS_COPIED = 8, /* its data has been constructed, which its function has to undo */
    GIVEN_FLAGS = 15,
    ALIGNED = 64,                   /* largest alignment of data that is expected */
    INLINE = DUET_ARGS_INLINE - 24, /* most bytes of data that a task's record holds */
    FEW = 16,                       /* most accesses in an array on the stack */
    LOOK = 32,                      /* tasks between two looks at how many have not ended */
    MANY = 128,                     /* unfinished tasks a thread; above, new ones run at once */
    WINDOW = 2048, /* unfinished tasks a thread; above, a creator executes some first */
};

/* Arguments of a deferred task. */
struct given {
    void (*run)(void *data);
    struct omp_group *group;
    uintptr_t icv; /* of struct omp_icv, and the flags above */
    union {
        void *block;
        char data[INLINE];
    };
};

/* The event of a task with the clause detach, in front of its data. */
struct event {
    /* the end of the task's function, its fulfilment, and uses of data to be granted */
    _Alignas(ALIGNED) atomic_size_t left;
    struct omp_team *team;
    struct duet_expansion *parent; /* the task is its child until none is left */
    struct omp_group *group;
    struct event *next;              /* among those that `awaited` */
    bool awaited;                    /* the task ran at once; its creator waits for this */
    struct duet__acquisition **uses; /* keep what the task has written from others */
    size_t use_count;
    atomic_size_t granted;
};

/* A task to be created. */
struct making {
    void (*run)(void *data);
    void *data;
    void (*copy)(void *to, void *from);
    size_t size, align;
    unsigned flags;
    int priority;
    void **depend;             /* NULL: none */
    void (*kernel)(void *);    /* function whose kernel it is */
    const uint64_t *range;     /* a loop's first and last value, which begin the data; NULL: none */
    const struct event *event; /* its event, to be placed; NULL: none */
    void **handle;             /* of the event, for the program */
    void *block; /* the data, in memory that the task frees, behind its event; NULL: none */
};

static void *allocate(size_t align, size_t size)
{
    void *memory = NULL;
    align = align < sizeof(void *) ? sizeof(void *) : align;
    if (posix_memalign(&memory, align, size ? size : 1))
        duet__omp_die("there is no memory left for tasks");
    return memory;
}

/* ------------------------------------------------------------------------------------------- */
/* Addresses of depend clauses                                                                  */

static size_t bucket_of(const struct omp_tokens *tokens, const void *address)
{
    return (size_t)(((uintptr_t)address >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 32) &
           (tokens->room - 1);
}

static void tokens_grow(struct omp_tokens *tokens)
{
    struct omp_tokens larger = {.count = tokens->count,
                                .room = tokens->room ? 4 * tokens->room : 64};
    larger.buckets = calloc(larger.room, sizeof *larger.buckets);
    if (!larger.buckets)
        duet__omp_die("there is no memory left for depend clauses");
    for (size_t i = 0; i < tokens->room; i++)
        for (struct omp_token *next, *token = tokens->buckets[i]; token; token = next) {
            size_t bucket = bucket_of(&larger, token->address);
            next = token->next;
            token->next = larger.buckets[bucket];
            larger.buckets[bucket] = token;
        }
    free(tokens->buckets);
    *tokens = larger;
}

static struct omp_token *token_new(const struct omp_task *task)
{
    struct omp_token **spare = &task->team->on->spare[task->thread], *token = *spare;
    if (token) {
        *spare = token->next;
        return token;
    }
    token = allocate(0, sizeof *token);
    if (duet_register_vector(task->team->on->core, &token->byte, 1, 1, &token->handle))
        duet__omp_die("there is no memory left for depend clauses");
    return token;
}

/* Returns the handle that stands for an address among the children of a task. */
static struct duet_handle *token_of(struct omp_task *task, const void *address)
{
    struct omp_tokens *tokens = &task->tokens;
    if (tokens->count >= tokens->room)
        tokens_grow(tokens);
    struct omp_token **bucket = &tokens->buckets[bucket_of(tokens, address)];
    struct omp_token *token = *bucket;
    while (token && token->address != address)
        token = token->next;
    if (token)
        return token->handle;
    if (!address)
        duet__omp_refuse("depend(out: omp_all_memory)");
    token = token_new(task);
    token->address = address;
    token->next = *bucket;
    *bucket = token;
    tokens->count++;
    return token->handle;
}

/* Frees the handles of a task whose children have ended; in a recording each is used once. */
static void free_tokens(struct omp_task *task)
{
    struct omp_tokens *tokens = &task->tokens;
    struct omp_runtime *on = task->team->on;
    for (size_t i = 0; i < tokens->room; i++)
        for (struct omp_token *next, *token = tokens->buckets[i]; token; token = next) {
            next = token->next;
            if (on->records) {
                (void)duet__unregister_here(on->core, token->handle);
                free(token);
            } else {
                token->next = on->spare[task->thread];
                on->spare[task->thread] = token;
            }
        }
    free(tokens->buckets);
    *tokens = (struct omp_tokens){0};
}

static bool event_over(void *arg)
{
    const struct event *event = arg;
    return atomic_load(&event->left) == 0;
}

/* Waits for the events of tasks that ran at once. */
static void wait_for_events(struct omp_task *task)
{
    while (task->events) {
        struct event *event = task->events;
        duet__omp_wait(task, event_over, event);
        task->events = event->next;
        free(event);
    }
}

void duet__omp_wait_children(struct omp_task *task)
{
    if (task->events)
        wait_for_events(task);
    if (task->waits && task->expansion && duet_expand_wait(task->expansion))
        duet__omp_die("a task failed: %s", duet_last_message(task->team->on->core));
    task->waits = false;
    task->team->members[task->thread].unfinished = 0;
}

void duet__omp_children(struct omp_task *task)
{
    duet__omp_wait_children(task);
    if (task->tokens.room)
        free_tokens(task);
}

/* An object of the type omp_depend_t. */
struct depend_object {
    void *address;
    void *kind;
};

static size_t depend_count(void **depend)
{
    return (size_t)(uintptr_t)(depend[0] ? depend[0] : depend[1]);
}

/*
 * Fills in a task's accesses from depend clauses in gcc's format. The array begins with two
 * numbers, of all and of written addresses; or with 0 and four numbers, of all, written, mutually
 * exclusive and read addresses. The addresses follow in this order; pointers to depend objects come
 * last.
 */
static void depend_read(struct omp_task *task, void **depend, struct duet_access *accesses)
{
    enum { IN = 1, OUT = 2, INOUT = 3 };
    const size_t count = depend_count(depend);
    const bool is_long = !depend[0];
    const size_t out = (size_t)(uintptr_t)depend[is_long ? 2 : 1];
    const size_t mutex = out + (is_long ? (size_t)(uintptr_t)depend[3] : 0);
    const size_t in = is_long ? mutex + (size_t)(uintptr_t)depend[4] : count;
    depend += is_long ? 5 : 2;
    for (size_t i = 0; i < count; i++) {
        void *address = depend[i];
        enum duet_mode mode = i < out ? DUET_RW : i < mutex ? DUET_COMMUTE : DUET_R;
        if (i >= in) {
            const struct depend_object *object = depend[i];
            uintptr_t kind = (uintptr_t)object->kind;
            address = object->address;
            mode = kind == IN ? DUET_R : kind == OUT || kind == INOUT ? DUET_RW : DUET_COMMUTE;
        }
        accesses[i] = (struct duet_access){token_of(task, address), mode};
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Events                                                                                       */

static void group_leave(struct omp_team *team, struct omp_group *group)
{
    if (group && atomic_fetch_sub(&group->tasks, 1) == 1)
        duet__omp_call(team);
}

/* Counts one of the things that an event's task has to wait for; the last one ends the task. */
static void event_step(struct event *event)
{
    struct omp_team *team = event->team;
    struct omp_runtime *on = team->on;
    const bool awaited = event->awaited;
    if (atomic_fetch_sub(&event->left, 1) > 1)
        return;
    if (awaited || !on) { /* its memory may be gone by now, and that of a team of one thread */
        if (on)
            duet__omp_call(team);
        return;
    }
    struct duet_runtime *core = on->core;
    for (size_t i = 0; i < event->use_count; i++)
        duet__acquisition_end(event->uses[i], duet_now(core), DUET_OK);
    group_leave(team, event->group);
    duet__child_release(core, event->parent);
    free(event->uses);
    free(event);
}

static void use_granted(void *arg, struct duet__acquisition *acquisition, int status)
{
    struct event *event = arg;
    event->uses[atomic_fetch_add(&event->granted, 1)] = acquisition;
    event_step(event);
}

/* Keeps later tasks from the data of a submitted task until the task's event is fulfilled. */
static void event_uses(struct event *event, const struct duet_access *accesses, size_t count)
{
    struct duet_runtime *core = event->team->on->core;
    event->uses = allocate(0, count * sizeof *event->uses);
    for (size_t i = 0; i < count; i++) {
        bool again = false, writes = false;
        for (size_t k = 0; k < count; k++) {
            again |= k < i && accesses[k].handle == accesses[i].handle;
            writes |= accesses[k].handle == accesses[i].handle && accesses[k].mode != DUET_R;
        }
        event->use_count += !again;
        if (!again) {
            atomic_fetch_add(&event->left, 1);
            if (duet__acquire_submit(core, accesses[i].handle, writes ? DUET_RW : DUET_R, 0,
                                     use_granted, event))
                duet__omp_die("a task with detach: %s", duet_last_message(core));
        }
    }
}

DUET_EXPORT void omp_fulfill_event_(void *event) __attribute__((alias("omp_fulfill_event")));
CALL(omp_fulfill_event, event_step(event), void *event)

/* ------------------------------------------------------------------------------------------- */
/* Executing                                                                                    */

static bool window_open(void *arg)
{
    const struct omp_team *team = arg;
    return duet__unfinished(team->on->core) <= (uint64_t)WINDOW * team->size / 2;
}

/* True if the tasks of a group, or of its team, are cancelled. */
static bool is_cancelled(const struct omp_team *team, const struct omp_group *group)
{
    return atomic_load_explicit(&team->cancelled, memory_order_relaxed) ||
           (group && (atomic_load(&group->cancelled) ||
                      (group->workshare && group->up && atomic_load(&group->up->cancelled))));
}

int duet__omp_run_task(struct duet_expansion *expansion, const struct duet_call *call)
{
    struct given *given = (struct given *)(uintptr_t)call->args;
    const uintptr_t flags = given->icv & GIVEN_FLAGS;
    struct event *event = flags & HAS_EVENT ? given->block : NULL;
    void *block = flags & IS_BLOCK ? given->block : NULL;
    const struct omp_icv *icv = (const struct omp_icv *)(given->icv - flags);
    struct omp_team *team = icv->team;
    struct omp_task task = {
        .up = duet__omp_now,
        .team = team,
        .thread = duet__expand_worker(expansion),
        .final = flags & IS_FINAL,
        .expansion = flags & IS_FINAL ? NULL : expansion,
        .group = given->group,
        .icv = icv,
    };
    duet__omp_now = &task;
    if (flags & IS_COPIED || !is_cancelled(team, task.group))
        given->run(event ? event + 1 : block ? block : given->data);
    if (task.tokens.room || task.events)
        duet__omp_children(&task);
    duet__omp_now = task.up;
    if (atomic_load_explicit(&team->full, memory_order_relaxed) && window_open(team))
        duet__omp_call(team);
    if (event)
        event_step(event);
    else
        group_leave(team, task.group);
    if (block && !event)
        free(block);
    return DUET_OK;
}

/* Fills in a task's data. */
static void data_fill(const struct making *making, void *to)
{
    if (making->copy)
        making->copy(to, making->data);
    else if (making->size)
        memcpy(to, making->data, making->size);
    if (making->range)
        memcpy(to, making->range, 2 * sizeof *making->range);
}

void duet__omp_task_begin(struct omp_task *task, bool final)
{
    struct omp_task *creator = omp_now();
    *task = (struct omp_task){.up = creator,
                              .team = creator->team,
                              .thread = creator->thread,
                              .final = creator->final || final,
                              .group = creator->group,
                              .icv = creator->icv,
                              .shares = true};
    creator->own = NULL;
    if (!task->final)
        task->expansion = creator->expansion;
    duet__omp_now = task;
}

void duet__omp_task_end(struct omp_task *task)
{
    if (task->tokens.room)
        duet__omp_children(task);
    duet__omp_now = task->up;
    task->up->waits |= task->waits;
    while (task->events) { /* its creator waits for them in its place */
        struct event *event = task->events;
        task->events = event->next;
        event->next = task->up->events;
        task->up->events = event;
    }
}

/* Executes a task at once, on the stack of the one that creates it. */
static void run_now(const struct making *making)
{
    struct omp_task task;
    void *block = making->copy ? allocate(making->align, making->size) : making->block;
    if (making->copy)
        making->copy(block, making->data);
    if (making->range)
        memcpy(block ? block : making->data, making->range, 2 * sizeof *making->range);
    duet__omp_task_begin(&task, making->flags & FINAL);
    making->run(block ? block : making->data);
    duet__omp_task_end(&task);
    free(block);
}

/* Makes the block of a task whose data does not fit its record, or that has an event. */
static void *block_new(const struct making *making)
{
    const size_t front = making->event ? sizeof *making->event : 0;
    char *block = making->block ? (char *)making->block - front
                                : allocate(front ? ALIGNED : making->align, front + making->size);
    if (making->event) {
        *(struct event *)block = *making->event;
        *making->handle = block;
        if (making->size)
            *(void **)making->data = block;
    }
    data_fill(making, block + front);
    return block;
}

/*
 * Returns true if so many tasks of the team have not ended that one more, without dependences,
 * costs less if it runs at once: all threads have enough. Their number is read now and then, as
 * reading it disturbs those who change it, and is none after a wait for tasks. A record shows all
 * tasks.
 */
static bool has_many(const struct omp_task *creator)
{
    const struct omp_team *team = creator->team;
    struct omp_member *member = &team->members[creator->thread];
    if (++member->created % LOOK == 0)
        member->unfinished = duet__unfinished(team->on->core);
    return member->unfinished > (uint64_t)MANY * team->size && !team->on->records;
}

/*
 * Executes other tasks while there are very many, for an implicit task: an explicit one may be what
 * they wait for.
 */
static void wait_for_window(struct omp_task *creator)
{
    struct omp_team *team = creator->team;
    struct omp_member *member = &team->members[creator->thread];
    if (member->unfinished <= (uint64_t)WINDOW * team->size)
        return;
    atomic_fetch_add(&team->full, 1);
    duet__omp_wait(creator, window_open, team);
    atomic_fetch_sub(&team->full, 1);
    member->unfinished = 0;
}

/* Creates a task that is deferred. */
static void defer(struct omp_task *creator, const struct making *making)
{
    struct omp_team *team = creator->team;
    struct given given = {.run = making->run,
                          .group = creator->group,
                          .icv = (uintptr_t)creator->icv | (making->flags & FINAL ? IS_FINAL : 0)};
    const size_t count = making->depend ? depend_count(making->depend) : 0;
    const bool fits = making->size <= INLINE && making->align <= 8 && !making->copy &&
                      !making->event && !making->block;
    struct duet_access few[FEW], *accesses = few;
    size_t bytes = offsetof(struct given, data) + making->size;
    if (creator->member)
        wait_for_window(creator);
    if (count > UINT16_MAX)
        duet__omp_die("the depend clauses of a task have %zu addresses; duet takes %d", count,
                      UINT16_MAX);
    if (count > FEW)
        accesses = allocate(0, count * sizeof *accesses);
    if (count)
        depend_read(creator, making->depend, accesses);
    if (fits) {
        data_fill(making, given.data);
    } else {
        given.block = block_new(making);
        given.icv |= IS_BLOCK | (making->event ? HAS_EVENT : 0) | (making->copy ? IS_COPIED : 0);
        bytes = offsetof(struct given, block) + sizeof given.block;
    }
    const struct duet_task_desc desc = {
        .codelet = duet__omp_kernel(team->on, making->kernel, ""),
        .accesses = accesses,
        .access_count = count,
        .args = &given,
        .args_bytes = bytes,
        .priority = making->priority,
    };
    struct event *event = making->event ? given.block : NULL;
    creator->own = NULL; /* the task keeps the variables as they are */
    if (creator->group)
        atomic_fetch_add(&creator->group->tasks, 1);
    if (event)
        duet__child_hold(event->parent);
    creator->waits = true;
    if (!atomic_load_explicit(&team->deferred, memory_order_relaxed))
        atomic_store(&team->deferred, true);
    /* before the task can run to its end, so that those who come after it wait for the event */
    if (event)
        atomic_fetch_add(&event->left, 1);
    if (duet_expand_submit(creator->expansion, &desc))
        duet__omp_die("a task cannot be created");
    if (event && count)
        event_uses(event, accesses, count);
    if (event)
        event_step(event);
    if (accesses != few)
        free(accesses);
}

/* A task whose creator waits for it. */
struct awaited {
    void (*run)(void *data);
    void *data;
    struct omp_team *team;
    atomic_bool ended;
};

static bool awaited_over(void *arg)
{
    return atomic_load(&((struct awaited *)arg)->ended);
}

static void run_awaited(void *data)
{
    struct awaited *awaited = *(struct awaited **)data;
    struct omp_team *team = awaited->team;
    awaited->run(awaited->data);
    atomic_store(&awaited->ended, true); /* and its memory may be gone */
    duet__omp_call(team);
}

/* Creates a task that comes after others, and waits for it. */
static void defer_and_wait(struct omp_task *creator, struct making *making)
{
    void *block = making->copy ? allocate(making->align, making->size) : NULL;
    struct awaited awaited = {.run = making->run,
                              .data = block ? block : making->data,
                              .team = creator->team};
    struct awaited *at = &awaited;
    if (block)
        making->copy(block, making->data);
    making->run = run_awaited;
    making->copy = NULL;
    making->data = &at;
    making->size = sizeof at;
    making->align = sizeof at;
    defer(creator, making);
    duet__omp_wait(creator, awaited_over, &awaited);
    making->data = NULL;
    free(block);
}

/*
 * True if a task is better executed at once: a wait for it would need more of the stack than its
 * own calls do. Looked at where tasks are on top of each other.
 */
static bool runs_deep(const struct omp_task *creator)
{
    static _Thread_local const char *half __attribute__((tls_model("initial-exec")));
    const char *here = __builtin_frame_address(0);
    if (!half)
        half = duet__stack_part(2);
    if (here >= half)
        return false;
    if (here < duet__stack_part(16))
        duet__omp_die(
            "tasks within tasks have used up the stack of their thread: ulimit -s is that "
            "of the first one, OMP_STACKSIZE that of others");
    return true;
}

/* Creates a task without event. */
static void make_task(struct omp_task *creator, struct making *making, bool deferred)
{
    if (making->depend && creator->events)
        wait_for_events(creator);
    if (!creator->expansion ||
        (!making->depend && (!deferred || has_many(creator) || runs_deep(creator))))
        run_now(making);
    else if (deferred)
        defer(creator, making);
    else
        defer_and_wait(creator, making);
}

/* Creates a task that ends with its event. */
static void make_detached(struct omp_task *creator, struct making *making, bool deferred)
{
    const struct event event = {.left = 2,
                                .team = creator->team,
                                .parent = creator->expansion,
                                .group = creator->group};
    if (creator->expansion && deferred) {
        making->event = &event;
        defer(creator, making);
        return;
    }
    struct event *own =
        making->block ? (struct event *)making->block - 1 : allocate(ALIGNED, sizeof *own);
    *own = (struct event){.left = 1, .team = creator->team, .awaited = true};
    *making->handle = own;
    if (making->size)
        *(void **)making->data = own;
    if (making->block) { /* it is freed with its event */
        making->data = making->block;
        making->block = NULL;
    }
    make_task(creator, making, false);
    own->next = creator->events;
    creator->events = own;
}

/* Creates a task, whose priority may be above the largest one. */
static void create(struct making *making, bool deferred)
{
    struct omp_task *creator = omp_now();
    const int most = duet__omp_settings()->priority;
    making->priority = making->priority < 0 ? 0 : making->priority < most ? making->priority : most;
    if (making->flags & DETACH)
        make_detached(creator, making, deferred);
    else
        make_task(creator, making, deferred);
}

DUET__ABI(void, GOMP_task, void (*run)(void *), void *data, void (*copy)(void *, void *), long size,
          long align, bool deferred, unsigned flags, void **depend, int priority, void **handle)
{
    struct making making = {.run = run,
                            .kernel = run,
                            .data = data,
                            .copy = copy,
                            .size = (size_t)size,
                            .align = (size_t)align,
                            .flags = flags,
                            .depend = flags & DEPEND ? depend : NULL,
                            .priority = flags & PRIORITY ? priority : 0,
                            .handle = handle};
    if (!is_cancelled(omp_now()->team, omp_now()->group))
        create(&making, deferred);
}

void *duet__omp_block_new(size_t bytes, bool detached)
{
    struct event *event = NULL;
    if (!detached)
        return allocate(2 * sizeof(void *), bytes);
    event = allocate(ALIGNED, sizeof *event + bytes);
    return event + 1;
}

void *duet__omp_event_of(void *block)
{
    return (struct event *)block - 1;
}

void duet__omp_task_new(void (*run)(void *), void (*kernel)(void *), void *block,
                        const struct omp_task_traits *traits)
{
    void *handle;
    struct making making = {.run = run,
                            .kernel = kernel,
                            .block = block,
                            .flags = (traits->final ? FINAL : 0) | (traits->detached ? DETACH : 0),
                            .depend = traits->depend,
                            .priority = traits->priority,
                            .handle = &handle};
    if (!is_cancelled(omp_now()->team, omp_now()->group))
        create(&making, !traits->undeferred);
    else
        free(traits->detached ? duet__omp_event_of(block) : block);
}

/* ------------------------------------------------------------------------------------------- */
/* Waiting                                                                                      */

DUET__ABI(void, GOMP_taskwait, void)
{
    struct omp_task *task = omp_now();
    if (task->waits || task->events)
        duet__omp_children(task);
}

static void nothing(void *data)
{
    (void)data;
}

DUET__ABI(void, GOMP_taskwait_depend, void **depend)
{
    struct omp_task *task = omp_now();
    struct making making = {.run = nothing, .kernel = nothing, .depend = depend};
    if (task->events)
        wait_for_events(task);
    if (task->expansion && task->waits && !is_cancelled(task->team, task->group))
        defer_and_wait(task, &making);
}

/* A task of duet is not left before its end: threads look for other tasks where they wait. */
CALL(GOMP_taskyield, , void)

/* ------------------------------------------------------------------------------------------- */
/* Groups                                                                                       */

static struct omp_group *group_start(struct omp_task *task)
{
    struct omp_group *group = calloc(1, sizeof *group);
    if (!group)
        duet__omp_die("there is no memory left for a taskgroup");
    group->up = task->group;
    group->reductions = task->group ? task->group->reductions : NULL;
    group->alone = !task->waits && !task->shares;
    task->group = group;
    return group;
}

CALL(GOMP_taskgroup_start, (void)group_start(omp_now()), void)

static bool group_over(void *arg)
{
    const struct omp_group *group = arg;
    return atomic_load(&group->tasks) == 0;
}

DUET__ABI(void, GOMP_taskgroup_end, void)
{
    struct omp_task *task = omp_now();
    struct omp_group *group = task->group;
    if (group->alone || task->events)
        duet__omp_wait_children(task);
    duet__omp_wait(task, group_over, group);
    task->group = group->up;
    free(group);
}

/* ------------------------------------------------------------------------------------------- */
/* Loops of tasks                                                                               */

void duet__omp_loop_cut(struct omp_loop *loop, bool grainsize, bool strict, uint64_t wanted)
{
    wanted = wanted ? wanted : grainsize ? 1 : omp_now()->team->size;
    loop->tasks = wanted;
    loop->longer = 0;
    if (grainsize && strict) {
        loop->tasks = loop->count / wanted + (loop->count % wanted != 0);
        loop->chunk = wanted;
        return;
    }
    if (grainsize)
        loop->tasks = loop->count / wanted;
    loop->tasks = loop->tasks > loop->count ? loop->count : loop->tasks ? loop->tasks : 1;
    loop->chunk = loop->count / loop->tasks;
    loop->longer = loop->count % loop->tasks;
}

/* Creates the tasks of a loop, whose data begins with the bounds of each. */
static void make_loop(struct making *making, const struct omp_loop *loop, unsigned flags)
{
    struct omp_task *creator = omp_now();
    uintptr_t *reductions = flags & REDUCTION ? ((uintptr_t **)making->data)[2] : NULL;
    uint64_t first = 0;
    if (!(flags & NOGROUP))
        GOMP_taskgroup_start();
    if (!(flags & NOGROUP) && reductions) {
        duet__omp_reductions(reductions, creator->group->reductions, NULL, creator->team->size);
        creator->group->reductions = reductions;
    }
    for (uint64_t i = 0; i < loop->tasks && !is_cancelled(creator->team, creator->group); i++) {
        uint64_t end = first + loop->chunk + (i < loop->longer);
        end = end < loop->count ? end : loop->count;
        const uint64_t range[] = {loop->start + first * loop->step, loop->start + end * loop->step};
        making->range = range;
        make_task(creator, making, flags & IF);
        making->range = NULL;
        first = end;
    }
    if (!(flags & NOGROUP))
        GOMP_taskgroup_end();
}

static void taskloop(struct making *making, struct omp_loop *loop, uint64_t wanted)
{
    const unsigned flags = making->flags;
    const int most = duet__omp_settings()->priority;
    if (!loop->count) {
        if ((flags & (NOGROUP | REDUCTION)) == REDUCTION)
            ((uintptr_t **)making->data)[2][2] = 0; /* nothing was registered */
        return;
    }
    making->priority = !(flags & PRIORITY) || making->priority < 0 ? 0
                       : making->priority < most                   ? making->priority
                                                                   : most;
    duet__omp_loop_cut(loop, flags & GRAINSIZE, flags & STRICT, wanted);
    make_loop(making, loop, flags);
}

#define TASKLOOP(name, type)                                                                       \
    DUET__ABI(void, name, void (*run)(void *), void *data, void (*copy)(void *, void *),           \
              long size, long align, unsigned flags, unsigned long tasks, int priority,            \
              type start, type end, type step)                                                     \
    {                                                                                              \
        struct omp_values values;                                                                  \
        struct making making = {.run = run,                                                        \
                                .kernel = run,                                                     \
                                .data = data,                                                      \
                                .copy = copy,                                                      \
                                .size = (size_t)size,                                              \
                                .align = (size_t)align,                                            \
                                .flags = flags,                                                    \
                                .priority = priority};                                             \
        duet__omp_loop_set(&values, (type)-1 < (type)1, flags & UP, (uint64_t)start,               \
                           (uint64_t)end, (uint64_t)step, OMP_STATIC, 0);                          \
        struct omp_loop loop = {.start = values.start,                                             \
                                .step = values.step,                                               \
                                .count = values.count};                                            \
        taskloop(&making, &loop, tasks);                                                           \
    }

TASKLOOP(GOMP_taskloop, long)
TASKLOOP(GOMP_taskloop_ull, unsigned long long)

/* ------------------------------------------------------------------------------------------- */
/*
 * Reductions of tasks. A program registers an array of words: the number of variables, the bytes of
 * a thread's copies, their alignment (afterwards their address), an allocator, the next array, two
 * words that are ours (true for the first of the arrays that were registered together, and the end
 * of the copies), then for each variable its address, its offset among the copies, and a word of
 * ours.
 */

enum { COUNT, BYTES, COPIES, ALLOCATOR, NEXT, BEGINS, END, VARIABLES, WORDS = 3 };

void duet__omp_reductions(uintptr_t *data, const uintptr_t *old, const uintptr_t *as,
                          unsigned threads)
{
    uintptr_t *array = data;
    for (;; array = (uintptr_t *)array[NEXT]) {
        if (as) {
            array[COPIES] = as[COPIES];
            array[END] = as[END];
            as = (const uintptr_t *)as[NEXT];
        } else {
            size_t bytes = array[BYTES] * threads;
            void *copies = allocate(array[COPIES], bytes);
            memset(copies, 0, bytes);
            array[COPIES] = (uintptr_t)copies;
            array[END] = array[COPIES] + bytes;
        }
        array[BEGINS] = array == data;
        if (!array[NEXT])
            break;
    }
    array[NEXT] = (uintptr_t)old;
}

DUET__ABI(void, GOMP_taskgroup_reduction_register, uintptr_t *data)
{
    struct omp_task *task = omp_now();
    struct omp_group *group = task->group ? task->group : group_start(task);
    duet__omp_reductions(data, group->reductions, NULL, task->team->size);
    group->reductions = data;
}

DUET__ABI(void, GOMP_taskgroup_reduction_unregister, uintptr_t *data)
{
    do {
        free((void *)data[COPIES]);
        data = (uintptr_t *)data[NEXT];
    } while (data && !data[BEGINS]);
}

DUET__ABI(void, GOMP_workshare_task_reduction_unregister, bool cancelled)
{
    struct omp_task *task = omp_now();
    uintptr_t *data = task->group->reductions;
    GOMP_taskgroup_end();
    if (task->thread == 0)
        GOMP_taskgroup_reduction_unregister(data);
    if (!cancelled)
        (void)duet__omp_barrier(false);
}

/* Finds the array of a variable by its address or by that in a thread's copy; *offset: its place
 * among the copies. NULL: there is none. */
static const uintptr_t *reduction_find(const uintptr_t *array, uintptr_t address, uintptr_t *offset)
{
    for (; array; array = (const uintptr_t *)array[NEXT]) {
        for (size_t i = 0; i < array[COUNT]; i++)
            if (array[VARIABLES + WORDS * i] == address) {
                *offset = array[VARIABLES + WORDS * i + 1];
                return array;
            }
        if (address >= array[COPIES] && address < array[END]) {
            *offset = (address - array[COPIES]) % array[BYTES];
            return array;
        }
    }
    return NULL;
}

/* Returns the address of the variable whose copies are at an offset; 0: there is none. */
static uintptr_t reduction_original(const uintptr_t *array, uintptr_t offset)
{
    for (size_t i = 0; i < array[COUNT]; i++)
        if (array[VARIABLES + WORDS * i + 1] == offset)
            return array[VARIABLES + WORDS * i];
    return 0;
}

DUET__ABI(void, GOMP_task_reduction_remap, size_t count, size_t originals, void **addresses)
{
    const struct omp_task *task = omp_now();
    for (size_t i = 0; i < count; i++) {
        uintptr_t offset;
        const uintptr_t *array = reduction_find(task->group ? task->group->reductions : NULL,
                                                (uintptr_t)addresses[i], &offset);
        if (!array)
            duet__omp_die("a task's in_reduction has no reduction around it");
        addresses[i] = (void *)(array[COPIES] + task->thread * array[BYTES] + offset);
        if (i < originals)
            addresses[count + i] = (void *)reduction_original(array, offset);
    }
}
