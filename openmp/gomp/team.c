/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parallel regions. A region takes a runtime of duet with as many workers as it has threads, and
 * leaves it for later ones: a smaller region on a larger runtime would have tasks run by threads
 * that are not of its team. Regions inside of others, and those of several threads of the program,
 * have runtimes of their own while they last.
 */
#include "openmp/gomp/gomp.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/engine.h"
#include "real/real.h"

_Thread_local struct omp_task *duet__omp_now;

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct omp_runtime *) runtimes; /* list of all runtimes, the oldest first */
static _Thread_local struct omp_runtime *last; /* the last runtime that this thread took */

void duet__omp_die(const char *format, ...)
{
    va_list arguments;
    char line[DUET_MESSAGE_MAX];
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    (void)fprintf(stderr, "duet: OpenMP: %s\n", line);
    (void)fflush(stdout);
    _exit(2);
}

void duet__omp_refuse(const char *name)
{
    duet__omp_die("this program uses %s, which duet does not have: run it without duet", name);
}

void duet__omp_rest(unsigned tries)
{
    enum { PAUSES = 200, YIELDS = 1000 };
    if (tries < PAUSES)
        duet__rest_now(0);
    else if (tries < PAUSES + YIELDS) /* more threads than cores: the others' turns are short */
        (void)sched_yield();
    else
        duet__rest_now(tries - PAUSES - YIELDS);
}

/* ------------------------------------------------------------------------------------------- */
/* Threads without a region                                                                     */

struct omp_task *duet__omp_first(void)
{
    static _Thread_local struct {
        struct omp_team team;
        struct omp_member member;
        struct omp_task task;
        _Atomic(unsigned) used;
    } first;
    first.team.size = 1;
    first.team.icv = duet__omp_settings()->icv;
    first.team.icv.team = &first.team;
    atomic_init(&first.used, 1);
    first.team.icv.used = first.team.icv.limit < INT_MAX ? &first.used : NULL;
    first.team.members = &first.member;
    duet__omp_shares_reset(&first.team);
    first.task =
        (struct omp_task){.team = &first.team, .member = &first.member, .icv = &first.team.icv};
    return duet__omp_now = &first.task;
}

struct omp_icv *duet__omp_own_icv(struct omp_task *task)
{
    struct omp_team *team = task->team;
    if (!task->up && !team->on) /* the initial task: no other has these variables */
        return &team->icv;
    struct omp_icv *own = task->own;
    if (own)
        return own;
    own = malloc(sizeof *own);
    if (!own)
        duet__omp_die("there is no memory left");
    *own = *task->icv;
    own->next = atomic_load(&team->icvs);
    while (!atomic_compare_exchange_weak(&team->icvs, &own->next, own))
        ;
    task->icv = task->own = own;
    return own;
}

static void icvs_free(struct omp_team *team)
{
    struct omp_icv *own = atomic_exchange(&team->icvs, NULL);
    while (own) {
        struct omp_icv *next = own->next;
        free(own);
        own = next;
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Runtimes                                                                                     */

/*
 * Closes all runtimes at the end of the program, which writes what was asked for, but those whose
 * region has called exit(). They stay in memory: another thread may look for one.
 */
__attribute__((destructor)) static void close_all(void)
{
    for (struct omp_runtime *on = atomic_load(&runtimes); on; on = atomic_load(&on->next)) {
        if (atomic_exchange(&on->busy, true))
            continue;
        if (on->records)
            duet__omp_rename(on);
        duet__team_leave(on->engine);
        (void)duet_close(on->core); /* duet_close itself says what went wrong */
    }
}

/* Forgets all runtimes, in a child made by fork, where their threads are not. */
static void forget_all(void)
{
    atomic_store(&runtimes, NULL);
    last = NULL;
    (void)pthread_mutex_init(&opening, NULL);
    if (duet__omp_now && duet__omp_now->team->on)
        duet__omp_now = NULL;
}

static void configure(struct duet_config *config, unsigned size, bool first)
{
    const struct omp_settings *settings = duet__omp_settings();
    struct duet_message message;
    duet_config_init(config);
    if (duet_config_environment(config, &message))
        duet__omp_die("%s", message.text);
    if (config->simulate || config->emulate || config->nodes)
        duet__omp_die("a program computes as it runs, on this machine: DUET_SIMULATE, DUET_EMULATE "
                      "and DUET_NODES are for programs of duet. Record it (DUET_TRACE=trace.json) "
                      "and simulate the trace");
    if (!config->policy && settings->priority) /* ws looks at none */
        config->policy = "eager";
    config->cpus = (int)size;
    config->gpus = 0;
    config->quiet = true;
    config->no_bind = !settings->binds;
    if (!getenv("DUET_WATCHDOG"))
        config->watchdog_s = -1;
    if (!first) /* trace, calibration and report are of the first runtime */
        config->trace = config->calibrate = NULL, config->report = false;
}

static struct omp_runtime *runtime_new(unsigned size, bool first)
{
    struct omp_runtime *on = aligned_alloc(OMP_LINE, sizeof *on);
    struct omp_member *members = aligned_alloc(OMP_LINE, size * sizeof *members);
    const struct omp_settings *settings = duet__omp_settings();
    struct duet_config config;
    struct duet_message message;
    if (!on || !members)
        duet__omp_die("there is no memory for a team of %u threads", size);
    memset(on, 0, sizeof *on);
    memset(members, 0, size * sizeof *members);
    configure(&config, size, first);
    if (duet_open(&on->core, &config, &message))
        duet__omp_die("a team of %u threads cannot be had: %s", size, message.text);
    on->size = size;
    on->spare = calloc(size, sizeof *on->spare);
    on->kernels = duet__omp_kernels_new();
    if (!on->spare || !on->kernels)
        duet__omp_die("there is no memory for a team of %u threads", size);
    on->engine = duet__engine_of(on->core);
    on->records = (config.trace && !config.figures) || config.calibrate;
    on->team.on = on;
    on->team.size = size;
    on->team.members = members;
    /* what spins would keep others from a core */
    duet__team_keep(on->engine, size > settings->cores ? 0 : settings->spin_s);
    return on;
}

static bool runtime_try(struct omp_runtime *on, unsigned size)
{
    return on->size == size && !atomic_load(&on->busy) && !atomic_exchange(&on->busy, true);
}

/* Adds a runtime for a team of this size, which is busy. */
static struct omp_runtime *runtime_add(unsigned size)
{
    static bool prepared;
    _Atomic(struct omp_runtime *) *end = &runtimes;
    (void)pthread_mutex_lock(&opening);
    if (!prepared)
        (void)pthread_atfork(NULL, NULL, forget_all);
    prepared = true;
    while (atomic_load(end))
        end = &atomic_load(end)->next;
    struct omp_runtime *on = runtime_new(size, end == &runtimes);
    atomic_store(&on->busy, true);
    atomic_store(end, on);
    (void)pthread_mutex_unlock(&opening);
    return on;
}

/*
 * Takes a runtime for a team of this size: for an outermost region the thread's last one if it has
 * that size, so that the team's threads keep their data (threadprivate); else the oldest that is
 * free; else a new one.
 */
static struct omp_runtime *runtime_take(unsigned size)
{
    const bool outermost = omp_now()->team->level == 0;
    struct omp_runtime *on = outermost ? last : NULL;
    if (!on || !runtime_try(on, size)) {
        on = atomic_load(&runtimes);
        while (on && !runtime_try(on, size))
            on = atomic_load(&on->next);
    }
    on = on ? on : runtime_add(size);
    if (outermost)
        last = on;
    return on;
}

/* ------------------------------------------------------------------------------------------- */
/* Waiting for each other                                                                       */

void duet__omp_wait(struct omp_task *task, bool (*reached)(void *arg), void *arg)
{
    struct omp_team *team = task->team;
    unsigned tries = 0;
    while (!reached(arg)) {
        if (!task->expansion) {
            duet__omp_rest(tries++);
            continue;
        }
        atomic_fetch_add(&team->asleep, 1);
        duet__team_wait(team->on->engine, reached, arg);
        atomic_fetch_sub(&team->asleep, 1);
        if (duet__failed(team->on->core))
            duet__omp_die("a task failed: %s", duet_last_message(team->on->core));
    }
}

void duet__omp_call(struct omp_team *team)
{
    if (team->on && atomic_load(&team->asleep))
        duet__team_call(team->on->engine);
}

/* A phase of a barrier that a member waits to end. */
struct phase {
    const _Atomic(uint64_t) *now;
    uint64_t before;
    const _Atomic(bool) *cancelled; /* NULL: only the others end it */
};

static bool phase_over(void *arg)
{
    const struct phase *phase = arg;
    return atomic_load(phase->now) != phase->before ||
           (phase->cancelled && atomic_load(phase->cancelled));
}

/* Waits for a moment, as others arrive soon if no thread has tasks. */
static void spin_at_barrier(const struct omp_team *team, struct phase *phase)
{
    enum { SPINS = 600, CROWDED = 20 };
    int spins = team->size <= duet__omp_settings()->cores ? SPINS : CROWDED;
    if (team->on->records)
        return;
    while (spins-- > 0 && !phase_over(phase) &&
           !atomic_load_explicit(&team->deferred, memory_order_relaxed))
        omp_pause();
}

bool duet__omp_barrier(bool ends)
{
    struct omp_task *task = omp_now();
    struct omp_team *team = task->team;
    _Atomic(unsigned) *arrived = ends ? &team->cancel_arrived : &team->arrived;
    _Atomic(uint64_t) *phase = ends ? &team->cancel_phase : &team->phase;
    struct phase wanted = {phase, atomic_load(phase), ends ? &team->cancelled : NULL};
    duet__omp_wait_children(task);
    if (team->size == 1 || (ends && atomic_load(&team->cancelled)))
        return ends && atomic_load(&team->cancelled);
    if (atomic_fetch_add(arrived, 1) + 1 == team->size) {
        atomic_store_explicit(arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&team->deferred, false, memory_order_relaxed);
        atomic_store(phase, wanted.before + 1);
        duet__omp_call(team);
    } else {
        spin_at_barrier(team, &wanted);
        duet__omp_wait(task, phase_over, &wanted);
    }
    return ends && atomic_load(&team->cancelled);
}

CALL(GOMP_barrier, (void)duet__omp_barrier(false), void)
GIVE(bool, GOMP_barrier_cancel, duet__omp_barrier(true), void)

/* ------------------------------------------------------------------------------------------- */
/* Regions                                                                                      */

/* Returns the number of threads that a region gets, of which all but one are its own. */
static unsigned size_take(unsigned wanted)
{
    const struct omp_task *task = omp_now();
    const struct omp_icv *icv = task->icv;
    unsigned size = wanted ? wanted : icv->threads, used, left;
    if (task->team->active_level >= icv->levels)
        return 1;
    if (!icv->used)
        return size;
    used = atomic_load(icv->used);
    do {
        left = used < icv->limit ? icv->limit - used : 0;
        size = size - 1 < left ? size : left + 1;
    } while (!atomic_compare_exchange_weak(icv->used, &used, used + size - 1));
    return size;
}

static void size_leave(unsigned size)
{
    const struct omp_icv *icv = omp_now()->icv;
    if (icv->used && size > 1)
        atomic_fetch_sub(icv->used, size - 1);
}

/* Sets up the first construct of a region that is one. */
static void share_first(struct omp_team *team, const struct omp_values *shared)
{
    struct omp_share *share = &team->shares[0];
    team->shared_first = shared != NULL;
    if (!shared)
        return;
    share->loop = *shared;
    atomic_store_explicit(&share->next, 0, memory_order_relaxed);
    atomic_store_explicit(&share->ordered, 0, memory_order_relaxed);
    atomic_store_explicit(&share->cancelled, false, memory_order_relaxed);
    atomic_store_explicit(&share->claimed, true, memory_order_relaxed);
    atomic_store_explicit(&share->turn, 1, memory_order_relaxed);
}

static void team_begin(struct omp_team *team, struct omp_task *up, void (*run)(void *), void *data,
                       const struct omp_values *shared, struct omp_group *group)
{
    const struct omp_settings *settings = duet__omp_settings();
    team->up = up;
    team->level = up->team->level + 1;
    team->active_level = up->team->active_level + (team->size > 1);
    team->run = run;
    team->data = data;
    team->icv = *up->icv;
    team->icv.team = team;
    team->icv.next = NULL;
    if (team->level < settings->depth) /* of the list OMP_NUM_THREADS */
        team->icv.threads = settings->threads[team->level];
    team->group = group;
    if (settings->allocator)
        team->allocator = settings->allocator();
    atomic_store_explicit(&team->open, false, memory_order_relaxed);
    atomic_store_explicit(&team->cancelled, false, memory_order_relaxed);
    atomic_store_explicit(&team->cancel_arrived, 0, memory_order_relaxed);
    atomic_store_explicit(&team->singles, 0, memory_order_relaxed);
    duet__omp_shares_reset(team);
    share_first(team, shared);
}

/* Begins the calling thread's implicit task. */
static void member_begin(struct omp_task *task, struct omp_team *team, unsigned thread,
                         struct duet_expansion *expansion)
{
    struct omp_member *member = &team->members[thread];
    *task = (struct omp_task){.up = duet__omp_now,
                              .team = team,
                              .member = member,
                              .thread = thread,
                              .expansion = expansion,
                              .group = team->group,
                              .icv = &team->icv};
    member->constructs = member->singles = 0;
    member->share = NULL;
    if (team->shared_first) {
        member->share = &team->shares[0];
        member->constructs = 1;
        member->trips = member->first = member->end = 0;
    }
    duet__omp_now = task;
    if (thread && duet__omp_settings()->allocator)
        duet__omp_settings()->set_allocator(team->allocator);
    if (duet__omp_shows_affinity && !member->shown)
        omp_display_affinity(NULL);
    member->shown = true;
}

static void member_end(struct omp_task *task)
{
    duet__omp_children(task);
    (void)duet__omp_barrier(false);
    duet__omp_now = task->up;
}

int duet__omp_run_member(struct duet_expansion *expansion, const struct duet_call *call)
{
    struct omp_team *team = *(struct omp_team *const *)call->args;
    struct omp_task task;
    unsigned tries = 0;
    duet__expand_any_data(expansion);
    if (duet__expand_worker(expansion) == 0)
        atomic_store_explicit(&team->open, true, memory_order_release);
    while (!atomic_load_explicit(&team->open, memory_order_acquire))
        duet__omp_rest(tries++);
    member_begin(&task, team, duet__expand_worker(expansion), expansion);
    team->run(team->data);
    member_end(&task);
    return DUET_OK;
}

/* The tasks of a region of one thread run at once. */
void duet__omp_alone_begin(struct omp_alone *alone, void (*run)(void *), void *data,
                           const struct omp_values *shared, struct omp_group *group)
{
    memset(alone, 0, sizeof *alone);
    alone->team.size = 1;
    alone->team.members = &alone->member;
    team_begin(&alone->team, omp_now(), run, data, shared, group);
    member_begin(&alone->task, &alone->team, 0, NULL);
}

void duet__omp_alone_end(struct omp_alone *alone)
{
    member_end(&alone->task);
    icvs_free(&alone->team);
}

void duet__omp_apart(void (*run)(void *), void *data, const struct omp_icv *icv, unsigned limit)
{
    struct omp_alone alone;
    _Atomic(unsigned) used = 1;
    duet__omp_alone_begin(&alone, run, data, NULL, NULL);
    alone.team.level = alone.team.active_level = 0;
    alone.team.icv = *icv;
    alone.team.icv.team = &alone.team;
    alone.team.icv.next = NULL;
    if (limit && limit < alone.team.icv.limit)
        alone.team.icv.limit = limit;
    alone.team.icv.used = alone.team.icv.limit < INT_MAX ? &used : NULL;
    run(data);
    duet__omp_alone_end(&alone);
}

static void region_of(unsigned size, void (*kernel)(void *), void (*run)(void *), void *data,
                      const struct omp_values *shared, struct omp_group *group)
{
    struct omp_runtime *on = runtime_take(size);
    struct omp_team *team = &on->team;
    struct omp_task *up = omp_now();
    const struct duet_task_desc member = {.codelet = duet__omp_kernel(on, kernel, "parallel:"),
                                          .args = &team,
                                          .args_bytes = sizeof team};
    struct duet_message message;
    icvs_free(team);
    team_begin(team, up, run, data, shared, group);
    if (duet__team_run(on->engine, &member, &message))
        duet__omp_die("a parallel region: %s", message.text);
    if (duet__failed(on->core))
        duet__omp_die("a parallel region: %s", duet_last_message(on->core));
    duet__omp_now = up;
    atomic_store(&on->busy, false);
}

/* Executes a region of so many threads; one that has one, in others, is not duet's. */
static void region_sized(void (*kernel)(void *), void (*run)(void *), void *data, unsigned size,
                         const struct omp_values *shared, struct omp_group *group)
{
    struct omp_alone alone;
    if (size == 1 && omp_now()->team->level) {
        duet__omp_alone_begin(&alone, run, data, shared, group);
        run(data);
        duet__omp_alone_end(&alone);
    } else {
        region_of(size, kernel, run, data, shared, group);
    }
    size_leave(size);
}

void duet__omp_region(void (*run)(void *), void *data, unsigned wanted,
                      const struct omp_values *shared, struct omp_group *group)
{
    region_sized(run, run, data, size_take(wanted), shared, group);
}

void duet__omp_region_as(void (*kernel)(void *), void (*run)(void *), void *data, unsigned wanted)
{
    region_sized(kernel, run, data, size_take(wanted), NULL, NULL);
}

CALL(GOMP_parallel, duet__omp_region(run, data, threads, NULL, NULL), void (*run)(void *),
     void *data, unsigned threads, unsigned flags)

DUET__ABI(unsigned, GOMP_parallel_reductions, void (*run)(void *), void *data, unsigned threads,
          unsigned flags)
{
    uintptr_t *reductions = *(uintptr_t **)data;
    struct omp_group group = {.reductions = reductions};
    unsigned size = size_take(threads);
    duet__omp_reductions(reductions, NULL, NULL, size);
    region_sized(run, run, data, size, NULL, &group);
    return size;
}

CALL(GOMP_parallel_start, duet__omp_refuse("GOMP_parallel_start (of gcc before 4.9)"), void)
CALL(GOMP_parallel_end, duet__omp_refuse("GOMP_parallel_end (of gcc before 4.9)"), void)

/* ------------------------------------------------------------------------------------------- */
/* Cancellation                                                                                 */

enum { CANCEL_PARALLEL = 1, CANCEL_LOOP = 2, CANCEL_SECTIONS = 4, CANCEL_TASKGROUP = 8 };

DUET__ABI(bool, GOMP_cancellation_point, int which)
{
    const struct omp_task *task = omp_now();
    const struct omp_group *group = task->group;
    if (!duet__omp_settings()->cancellation)
        return false;
    if ((which & (CANCEL_LOOP | CANCEL_SECTIONS)) && task->member && task->member->share &&
        atomic_load(&task->member->share->cancelled))
        return true;
    if ((which & CANCEL_TASKGROUP) && group && atomic_load(&group->cancelled))
        return true;
    return atomic_load(&task->team->cancelled);
}

DUET__ABI(bool, GOMP_cancel, int which, bool wanted)
{
    struct omp_task *task = omp_now();
    if (!duet__omp_settings()->cancellation)
        return false;
    if (!wanted)
        return GOMP_cancellation_point(which);
    if ((which & (CANCEL_LOOP | CANCEL_SECTIONS)) && task->member && task->member->share)
        atomic_store(&task->member->share->cancelled, true);
    if ((which & CANCEL_TASKGROUP) && task->group) {
        struct omp_group *up = task->group->workshare ? task->group->up : NULL;
        atomic_store(&task->group->cancelled, true);
        if (up) /* that of the program */
            atomic_store(&up->cancelled, true);
    }
    if (which & CANCEL_PARALLEL) {
        atomic_store(&task->team->cancelled, true);
        duet__omp_call(task->team);
    }
    return true;
}
