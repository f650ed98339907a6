/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tool of OpenMP (OMPT, OpenMP 5.1 section 4) that records the tasks of the program that loads it
 * and writes them as a graph when the program ends.
 */
#include "openmp/recording.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    BLOCK_BYTES = 1 << 18,
    LEAST_LOOP_NS = 10000 /* more than a team takes to begin and meet */
};

/* Constructs that a graph cannot express: reported in one line at the end. */
enum { TARGET = 1, DETACH = 2, CANCEL = 4, ALL_MEMORY = 8, INOUTSET = 16, ROOT = 32, LOCKS = 64 };

static struct duet__omp_recording recording;
static ompt_get_task_info_t get_task_info;
static const char *output; /* path; NULL: PROGRAM.PID.json */
static pid_t process;
static uint64_t clock_ns; /* time that a reading of the clock adds between two readings */
static atomic_uint unsupported;
static atomic_bool out_of_memory;
static atomic_int regions; /* number of regions that have begun and not ended */
/* in loops that could be cut, and in possible loops of gcc's */
static _Atomic(uint64_t) loops_ns, static_ns;

static _Thread_local struct {
    char *at;
    size_t left;
} block;

/* Time to subtract from later ones, where the clock's steps made one shorter than reading it
 * takes. */
static _Thread_local uint64_t owed_ns;
static _Thread_local const void *waits_at; /* code at which the thread began to wait last */

/* Allocates from the thread's block, zeroed. Never freed: records live as long as the process. */
static void *allocate(size_t bytes)
{
    void *got = NULL;
    bytes = (bytes + 15) & ~(size_t)15;
    if (bytes > block.left) {
        size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        block.at = calloc(1, size);
        block.left = block.at ? size : 0;
    }
    if (bytes > block.left) {
        atomic_store(&out_of_memory, true);
        return NULL;
    }
    got = block.at;
    block.at += bytes;
    block.left -= bytes;
    return got;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static struct duet__omp_task *task_of(const ompt_data_t *data)
{
    return data ? data->ptr : NULL;
}

static void stop(struct duet__omp_task *task, uint64_t now)
{
    if (task && task->since_ns) {
        uint64_t ns = now - task->since_ns, read_ns = clock_ns + owed_ns;
        task->own_ns += ns > read_ns ? ns - read_ns : 0;
        owed_ns = ns > read_ns ? 0 : read_ns - ns;
        task->since_ns = 0;
    }
}

/* Reads the clock last, so that the time of recording belongs to nobody. */
static void go_on(struct duet__omp_task *task)
{
    if (task && !task->waits)
        task->since_ns = now_ns();
}

static struct duet__omp_step *add_step(struct duet__omp_task *task, enum duet__step_kind kind)
{
    struct duet__omp_step *step = allocate(sizeof *step);
    if (!step)
        return NULL;
    step->kind = kind;
    step->before_ns = task->own_ns;
    task->own_ns = 0;
    if (task->last)
        task->last->next = step;
    else
        task->first = step;
    task->last = step;
    return step;
}

/* ------------------------------------------------------------------------------------------- */
/* Callbacks of the runtime */

/*
 * Returns the place of a construct. In a task that a thread runs while it waits, LLVM's runtime
 * gives for calls of gcc's code the place of the wait; but the frame of the call has its return
 * address.
 */
static const void *place_of(const ompt_frame_t *frame, const void *code)
{
    void *const *at = frame ? frame->enter_frame.ptr : NULL;
    const void *module;
    if (code != waits_at || !at || !(frame->enter_frame_flags & ompt_frame_framepointer))
        return code;
    module = duet__omp_module(at[1]);
    return module && module != recording.runtime_module ? at[1] : code;
}

/* Begins a thread's share of a loop. Loops of inner regions are not cut. */
static struct duet__omp_step *add_loop(struct duet__omp_task *task, uint64_t iterations,
                                       const void *code)
{
    struct duet__omp_step *step = add_step(task, DUET__STEP_LOOP);
    uint64_t parts = iterations < recording.loop_parts ? iterations : recording.loop_parts;
    if (step) {
        step->code = code ? code : task->code; /* gcc's sections have no known place */
        step->parts = task->team ? (parts + task->team - 1) / task->team : 0;
    }
    return step;
}

/* Notes what a thread of gcc's has computed since a barrier or a loop, without calls. */
static void end_phase(struct duet__omp_task *task)
{
    const struct duet__omp_step *last = task ? task->last : NULL;
    uint64_t ns = task ? task->own_ns : 0;
    struct duet__omp_step *step;
    if (ns < LEAST_LOOP_NS || !task->team || !task->region->of_gcc ||
        (last && last->kind != DUET__STEP_BARRIER && (last->kind != DUET__STEP_LOOP || !last->ns)))
        return;
    atomic_fetch_add(&static_ns, ns);
    if (!recording.static_loops)
        return;
    task->own_ns = 0;
    step = add_loop(task, UINT64_MAX, task->region->code);
    if (step)
        step->ns = ns;
}

static void on_parallel_begin(ompt_data_t *creator, const ompt_frame_t *frame, ompt_data_t *region,
                              unsigned requested, int flags, const void *code)
{
    uint64_t now = now_ns();
    struct duet__omp_task *task = task_of(creator);
    struct duet__omp_region *made;
    struct duet__omp_step *step;
    if (atomic_fetch_add(&regions, 1) == 0 && !recording.begin_ns)
        recording.begin_ns = now;
    if (!task || recording.only_makespan)
        return;
    if (!task->parent && !task->region && task != recording.initial)
        atomic_fetch_or(&unsupported, ROOT);
    stop(task, now);
    made = allocate(sizeof *made);
    step = add_step(task, DUET__STEP_REGION);
    if (!made || !step)
        return;
    if (flags & ompt_parallel_invoker_program)
        atomic_store(&recording.of_gcc, true);
    /* for a construct at the end of another one, the runtime calls itself */
    *made = (struct duet__omp_region){.code = duet__omp_module(code) == recording.runtime_module
                                                  ? task->code
                                                  : code,
                                      .creator = task,
                                      .of_gcc = flags & ompt_parallel_invoker_program};
    step->region = made;
    region->ptr = made;
}

static void on_parallel_end(ompt_data_t *region, ompt_data_t *creator, int flags, const void *code)
{
    if (atomic_fetch_sub(&regions, 1) == 1)
        recording.end_ns = now_ns();
    go_on(task_of(creator));
}

static void on_implicit_task(ompt_scope_endpoint_t endpoint, ompt_data_t *region, ompt_data_t *data,
                             unsigned team, unsigned index, int flags)
{
    struct duet__omp_region *of = region ? region->ptr : NULL;
    struct duet__omp_task *task;
    if (endpoint == ompt_scope_end) {
        stop(task_of(data), now_ns());
        end_phase(task_of(data));
        /* the thread's own memory, where a `taskwait depend` of LLVM 14 asserts NULL */
        if (data)
            data->ptr = NULL;
        return;
    }
    task = allocate(sizeof *task);
    data->ptr = task;
    if (!task)
        return;
    task->flags = flags;
    if (of) { /* true: a thread of a team, or a team of a league */
        task->code = of->code;
        task->region = of;
        task->index = index;
        task->team = of->creator->parent || of->creator->region ? 0 : team;
        task->sibling = atomic_load(&of->team);
        while (!atomic_compare_exchange_weak(&of->team, &task->sibling, task))
            ;
    } else if (!recording.initial) {
        recording.initial = task;
    }
    go_on(task);
}

static void on_task_create(ompt_data_t *creator, const ompt_frame_t *frame, ompt_data_t *data,
                           int flags, int has_dependences, const void *code)
{
    uint64_t now = now_ns();
    struct duet__omp_task *parent = task_of(creator), *task;
    struct duet__omp_step *step;
    if (flags & ompt_task_target)
        atomic_fetch_or(&unsupported, TARGET);
    if (!parent || !(flags & (ompt_task_explicit | ompt_task_taskwait)))
        return;
    stop(parent, now);
    task = allocate(sizeof *task);
    step = add_step(parent, flags & ompt_task_taskwait ? DUET__STEP_DEPEND : DUET__STEP_CREATE);
    if (!task || !step)
        return;
    task->parent = parent;
    task->flags = flags;
    task->code = place_of(frame, code);
    task->created_under = parent->hint;
    task->undeferred = (flags & ompt_task_undeferred) && (parent->flags & ompt_task_final);
    step->task = task;
    data->ptr = task;
    if (flags & ompt_task_taskwait) {
        parent->hint = code;
        parent->waits = true;
    }
    go_on(parent);
}

static void on_mutex(ompt_mutex_t kind, unsigned hint, unsigned implementation, ompt_wait_id_t lock,
                     const void *code)
{
    if (kind != ompt_mutex_atomic)
        atomic_fetch_or(&unsupported, LOCKS);
}

static void on_dependences(ompt_data_t *data, const ompt_dependence_t *dependences, int count)
{
    uint64_t now = now_ns();
    struct duet__omp_task *task = task_of(data);
    ompt_dependence_t *kept;
    if (!task || count <= 0)
        return;
    if (!task->parent) { /* of iterations of an ordered loop */
        atomic_fetch_or(&unsupported, LOCKS);
        return;
    }
    stop(task->parent, now);
    kept = allocate((size_t)count * sizeof *kept);
    for (int i = 0; kept && i < count; i++) {
        kept[i] = dependences[i];
        if ((int)kept[i].dependence_type == ompt_dependence_type_inoutset)
            atomic_fetch_or(&unsupported, INOUTSET);
        if (!kept[i].variable.ptr || (int)kept[i].dependence_type > ompt_dependence_type_inoutset)
            atomic_fetch_or(&unsupported, ALL_MEMORY);
    }
    if (kept) {
        task->dependences = kept;
        task->dependence_count = (uint32_t)count;
    }
    go_on(task->parent);
}

/*
 * True if a task is run by its creator's own code. A team of one thread runs all tasks at once, and
 * calls them all undeferred. Tasks that are undeferred by the program (an if clause that is false)
 * run from the frame in which their creator called the runtime; others run from a frame of the
 * runtime.
 */
static bool runs_inside(void)
{
    ompt_frame_t *own = NULL, *creator = NULL;
    ompt_data_t *data;
    int flags;
    return get_task_info(0, &flags, &data, &own, NULL, NULL) == 2 &&
           get_task_info(1, &flags, &data, &creator, NULL, NULL) == 2 && own && creator &&
           own->exit_frame.ptr && own->exit_frame.ptr == creator->enter_frame.ptr;
}

static void on_task_schedule(ompt_data_t *prior, ompt_task_status_t status, ompt_data_t *next)
{
    uint64_t now = now_ns();
    struct duet__omp_task *task = task_of(prior);
    if (status == ompt_taskwait_complete) {
        if (task && task->parent) {
            task->parent->waits = false;
            go_on(task->parent);
        }
        return;
    }
    if (status == ompt_task_detach || status == ompt_task_early_fulfill ||
        status == ompt_task_late_fulfill)
        atomic_fetch_or(&unsupported, DETACH);
    if (status == ompt_task_early_fulfill || status == ompt_task_late_fulfill)
        return;
    if (status == ompt_task_cancel)
        atomic_fetch_or(&unsupported, CANCEL);
    stop(task, now);
    if (status == ompt_task_complete && task && (task->flags & ompt_task_undeferred) &&
        runs_inside())
        task->undeferred = true;
    go_on(task_of(next));
}

static void on_sync_region(ompt_sync_region_t kind, ompt_scope_endpoint_t endpoint,
                           ompt_data_t *region, ompt_data_t *data, const void *code)
{
    uint64_t now = now_ns();
    struct duet__omp_task *task = task_of(data);
    bool begins = endpoint == ompt_scope_begin;
    /* the threads of a team leave its last barrier when they are needed again */
    if (!task || kind == ompt_sync_region_reduction || (!begins && !region))
        return;
    stop(task, now);
    if (kind == ompt_sync_region_taskgroup) {
        add_step(task, begins ? DUET__STEP_GROUP : DUET__STEP_UNGROUP);
    } else {
        if (begins && kind != ompt_sync_region_taskwait)
            end_phase(task);
        if (begins)
            add_step(task,
                     kind == ompt_sync_region_taskwait ? DUET__STEP_WAIT : DUET__STEP_BARRIER);
        task->waits = begins;
    }
    go_on(task);
}

/* Called for all waits, including that at the end of a taskgroup. */
static void on_sync_wait(ompt_sync_region_t kind, ompt_scope_endpoint_t endpoint,
                         ompt_data_t *region, ompt_data_t *data, const void *code)
{
    struct duet__omp_task *task = task_of(data);
    if (endpoint == ompt_scope_begin)
        waits_at = code;
    if (!task || kind != ompt_sync_region_taskgroup)
        return;
    stop(task, now_ns());
    task->waits = endpoint == ompt_scope_begin;
    go_on(task);
}

/* Finds the place of a taskloop, for whose tasks LLVM's runtime gives a place inside itself. */
static const void *find_taskloop(const void *code)
{
    void *frames[16];
    bool inside = false, was_inside;
    int count = backtrace(frames, sizeof frames / sizeof frames[0]);
    for (int i = 0; i < count && duet__omp_module(code) == recording.runtime_module; i++) {
        was_inside = inside;
        inside = duet__omp_module(frames[i]) == recording.runtime_module;
        if (was_inside && !inside)
            return frames[i];
    }
    return code;
}

/* Cuts a loop if its thread only computes in it. Sections are a loop, as in gcc. */
static void on_work(ompt_work_t kind, ompt_scope_endpoint_t endpoint, ompt_data_t *region,
                    ompt_data_t *data, uint64_t iterations, const void *code)
{
    uint64_t now = now_ns();
    struct duet__omp_task *task = task_of(data);
    /* LLVM reports loops by schedule (10 and above, OpenMP 5.2), which omp-tools.h of LLVM 14
     * lacks */
    bool is_loop = kind == ompt_work_loop || kind == ompt_work_sections || (int)kind >= 10;
    struct duet__omp_step *loop;
    if (!task || (kind == ompt_work_taskloop && endpoint != ompt_scope_begin))
        return;
    stop(task, now);
    loop = task->last;
    if (kind == ompt_work_taskloop) {
        task->hint = find_taskloop(code);
    } else if (endpoint == ompt_scope_begin) {
        add_loop(task, is_loop ? iterations : 0, code);
    } else if (loop && loop->kind == DUET__STEP_LOOP && is_loop && task->team) {
        atomic_fetch_add(&loops_ns, task->own_ns);
        if (loop->parts) {
            loop->ns += task->own_ns;
            task->own_ns = 0;
        }
    }
    go_on(task);
}

static void on_cancel(ompt_data_t *data, int flags, const void *code)
{
    atomic_fetch_or(&unsupported, CANCEL);
}

/* ------------------------------------------------------------------------------------------- */
/*
 * Finds functions that a program, mostly one of gcc, calls and LLVM's runtime lacks or has with
 * another meaning.
 */

/* As found with LLVM 14, 16 and 19: calls go to libgomp's own, or end the program at times. */
static const char *const beyond[] = {"GOMP_target",   "GOMP_scope",         "GOMP_cancel",
                                     "GOMP_doacross", "GOMP_loop_doacross", "omp_fulfill_event"};

static bool is_runtime(const char *module)
{
    return strstr(module, "/libgomp") || strstr(module, "/libomp");
}

/* Looks through the names that a module imports and exports. */
static int look_at_module(struct dl_phdr_info *module, size_t size, void *found)
{
    const ElfW(Dyn) *entry = NULL;
    const char *names = NULL, *at;
    size_t bytes = 0;
    for (size_t i = 0; i < module->dlpi_phnum; i++)
        if (module->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const void *)(module->dlpi_addr + module->dlpi_phdr[i].p_vaddr);
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_STRTAB) /* some machines do not relocate it */
            names = (const void *)(entry->d_un.d_ptr +
                                   (entry->d_un.d_ptr < module->dlpi_addr ? module->dlpi_addr : 0));
        else if (entry->d_tag == DT_STRSZ)
            bytes = entry->d_un.d_val;
    }
    if (!names || is_runtime(module->dlpi_name))
        return 0;
    for (at = names; at < names + bytes; at += strlen(at) + 1)
        for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++)
            if (strncmp(at, beyond[i], strlen(beyond[i])) == 0)
                *(const char **)found = at;
    return 0;
}

static const char *used; /* function of `beyond` that the program uses */

static struct sigaction before; /* the program's own handling of faults */

/* Handles a fault in a runtime of OpenMP; other faults come again, to the program's own handler. */
static void on_fault(int number)
{
    enum { HANDLER, TRAMPOLINE, FAULT, FRAMES };
    void *frames[FRAMES];
    Dl_info module;

    if (backtrace(frames, FRAMES) < FRAMES || !dladdr(frames[FAULT], &module) ||
        !is_runtime(module.dli_fname)) {
        (void)sigaction(number, &before, NULL);
        return;
    }
    dprintf(STDERR_FILENO,
            "duet: OpenMP tasks: LLVM's runtime cannot run this program, as it uses %s (loops with "
            "ordered(n) need teams of two threads, --threads 2)\n",
            used);
    _exit(2);
}

/*
 * Returns a function that the program calls and LLVM's runtime lacks, or has with another meaning;
 * or NULL. From then on a fault (SIGSEGV) of such a program in LLVM's or gcc's runtime ends it with
 * a line on standard error and exit status 2.
 */
static const char *find_beyond(void)
{
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};
    void *frame;
    dl_iterate_phdr(look_at_module, &used);
    /* the first call of backtrace loads a library, which a handler must not do */
    if (used && backtrace(&frame, 1) > 0)
        (void)sigaction(SIGSEGV, &action, &before);
    return used;
}

/* ------------------------------------------------------------------------------------------- */
/* Begin and end                                                                                */

static void complain_about(const char *text, const char *of)
{
    fprintf(stderr, "duet: OpenMP tasks: %s%s\n", text, of);
}

/*
 * Measures the time that seems to pass between two calls of the recorder if a task does nothing. It
 * is the mean of many calls, as the least of a clock that counts in steps is a step too little, in
 * the batch that the system disturbed least.
 */
static uint64_t measure_clock(void)
{
    enum { BATCHES = 20, CALLS = 100 };
    const volatile ompt_callback_task_schedule_t call = on_task_schedule;
    struct duet__omp_task task = {0};
    ompt_data_t data = {.ptr = &task};
    uint64_t least = UINT64_MAX;
    go_on(&task);
    for (int i = 0; i < BATCHES; i++) {
        task.own_ns = 0;
        for (int k = 0; k < CALLS; k++)
            call(&data, ompt_task_switch, &data);
        least = task.own_ns < least ? task.own_ns : least;
    }
    return (least + CALLS / 2) / CALLS;
}

/* Reads a number, 0 if `text` is empty. false: it is none. */
static bool read_number(const char *text, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = *text ? strtoull(text, &end, 10) : 0;
    return !*text || (!*end && errno != ERANGE && *text >= '0' && *text <= '9');
}

static int on_begin(ompt_function_lookup_t lookup, int device, ompt_data_t *data)
{
    ompt_set_callback_t set = (ompt_set_callback_t)lookup("ompt_set_callback");
    const char *only = getenv("DUET_OMPT_ONLY"), *bytes = getenv("DUET_OMPT_BYTES");
    const char *loops = getenv("DUET_OMPT_LOOPS"), *static_loops = getenv("DUET_OMPT_STATIC");
    const char *lacking;
    static const struct {
        ompt_callbacks_t event;
        ompt_callback_t call;
        bool needed, of_makespan;
    } calls[] = {
        {ompt_callback_parallel_begin, (ompt_callback_t)on_parallel_begin, true, true},
        {ompt_callback_parallel_end, (ompt_callback_t)on_parallel_end, true, true},
        {ompt_callback_implicit_task, (ompt_callback_t)on_implicit_task, true, false},
        {ompt_callback_task_create, (ompt_callback_t)on_task_create, true, false},
        {ompt_callback_task_schedule, (ompt_callback_t)on_task_schedule, true, false},
        {ompt_callback_dependences, (ompt_callback_t)on_dependences, true, false},
        {ompt_callback_sync_region, (ompt_callback_t)on_sync_region, true, false},
        {ompt_callback_sync_region_wait, (ompt_callback_t)on_sync_wait, true, false},
        {ompt_callback_work, (ompt_callback_t)on_work, false, false},
        {ompt_callback_cancel, (ompt_callback_t)on_cancel, false, false},
        {ompt_callback_mutex_acquire, (ompt_callback_t)on_mutex, false, false},
    };
    process = getpid();
    clock_ns = measure_clock();
    output = getenv("DUET_OMPT");
    get_task_info = (ompt_get_task_info_t)lookup("ompt_get_task_info");
    recording.runtime_module = duet__omp_module((const void *)lookup);
    if (only && *only && strcmp(only, "makespan") != 0) {
        complain_about("DUET_OMPT_ONLY can be makespan, and is ", only);
        return 0;
    }
    recording.only_makespan = only && *only;
    if (bytes && !read_number(bytes, &recording.bytes)) {
        complain_about("DUET_OMPT_BYTES takes a number of bytes, not ", bytes);
        return 0;
    }
    if (loops && !read_number(loops, &recording.loop_parts)) {
        complain_about("DUET_OMPT_LOOPS takes a number of parts, not ", loops);
        return 0;
    }
    recording.static_loops = recording.loop_parts && static_loops && *static_loops;
    lacking = recording.only_makespan ? NULL : find_beyond();
    if (lacking)
        complain_about("LLVM's runtime may go wrong, as this program uses ", lacking);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (recording.only_makespan && !calls[i].of_makespan)
            continue;
        if (set(calls[i].event, calls[i].call) != ompt_set_always && calls[i].needed) {
            complain_about("not all of them are told by ", recording.runtime);
            return 0;
        }
    }
    return 1;
}

static void tell_unsupported(void)
{
    static const char *const names[] = {"target (a device's time is nobody's)",
                                        "detach (an event is nothing to wait for)",
                                        "cancel (what ran is recorded)",
                                        "dependences on all memory (none is recorded)",
                                        "inoutset (recorded as mutexinoutset)",
                                        "parallel regions of further threads",
                                        "locks, critical and ordered (nobody waits for them)"};
    unsigned found = atomic_load(&unsupported);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (found & 1U << i)
            complain_about("not recorded as the program means it: ", names[i]);
}

/* Reports assumptions about loops, and options for them. */
static void tell_loops(void)
{
    double much = 0.001 + 1e-10 * (double)(recording.end_ns - recording.begin_ns);
    double known = 1e-9 * (double)loops_ns, guessed = 1e-9 * (double)static_ns;
    static const char kept[] = "duet: %.3g s in %s stay with the threads that computed them (%s)\n";
    if (recording.loop_parts)
        fprintf(stderr, "duet: %.3g s in loops are cut, as if all parts of a loop took as long\n",
                known + (recording.static_loops ? guessed : 0));
    else if (known > much)
        fprintf(stderr, kept, known, "loops", "--loops");
    if (!recording.static_loops && guessed > much)
        fprintf(stderr, kept, guessed, "what may be gcc's static loops", "--static-loops");
}

static void on_end(ompt_data_t *data)
{
    const char *problem, *path = output;
    char own[64];
    if (getpid() != process) /* a child process without a parallel region of its own */
        return;
    if (!output || !*output) {
        snprintf(own, sizeof own, "%.40s.%ld.json", program_invocation_short_name, (long)process);
        path = own;
    }
    tell_unsupported();
    tell_loops();
    if (atomic_load(&out_of_memory))
        problem = "there is not enough memory for them";
    else if (!recording.begin_ns)
        problem = "the program has no parallel region";
    else if (atomic_load(&regions))
        problem = "the program ended in a parallel region";
    else
        problem = duet__omp_write(&recording, path);
    if (problem)
        fprintf(stderr, "duet: %s is not written: %s\n", path, problem);
}

/* Called by OpenMP's runtime, which looks for it in the libraries of OMP_TOOL_LIBRARIES. */
__attribute__((visibility("default"))) ompt_start_tool_result_t *ompt_start_tool(
    unsigned version, const char *runtime);

ompt_start_tool_result_t *ompt_start_tool(unsigned version, const char *runtime)
{
    static ompt_start_tool_result_t result = {.initialize = on_begin, .finalize = on_end};
    recording.runtime = runtime;
    return &result;
}
