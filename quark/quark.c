/* SPDX-License-Identifier: Apache-2.0 */
/*
 * QUARK's interface over duet. A task of QUARK is a task of duet, whose argument is its record
 * here; an address is a handle, which stands for the data and has no memory of its own: the task's
 * function gets the address itself. Tasks are inserted by one thread and never inside of tasks, as
 * QUARK has it, so that records and data need no lock.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <glib.h>

#include <duet/duet.h>
#include <duet/trace.h>

#include "quark/quark.h"

enum {
    NAME_MOST = 31, /* bytes of a kernel's name */
    REGIONS = 8,    /* parts that a datum can have */
    USE_BITS = 16,  /* top bits of a task's number: uses of its record; the rest: its address */
    PATIENCE_US = 10000, /* wait for the workers of a task, before threads stand in for them */
};

static const uintptr_t FIRST_ADDRESS = (uintptr_t)1 << 44; /* made-up address of handles' data */

/* Phases of a task, in the lowest bits of `state`; the others count uses of its record. */
enum phase { WAITS, RUNS, CANCELLED, ENDED, PHASES };

struct argument {
    size_t bytes; /* rounded to 8 */
    char value[];
};

/* An argument that orders tasks, or scratch. */
struct need {
    void *address;
    struct datum *datum; /* NULL: an earlier need of the task has the same datum */
    int bytes, flags;
    size_t at; /* SCRATCH: offset of its argument */
};

struct quark_task_s {
    Quark *quark;
    Quark_Task *next, *older; /* free records; all records */
    void (*function)(Quark *);
    Quark_Task_Flags flags; /* the label is interned */
    Quark_Sequence *sequence;
    _Atomic(uint64_t) state;
    atomic_int joined, left; /* team: threads that have begun; tasks of duet that have to end */
    int threads;
    size_t used, room; /* bytes of `arguments` in use, and allocated */
    char *arguments;
    unsigned need_count, need_room;
    struct need *needs;
};

struct Quark_sequence_s {
    atomic_bool cancelled;
    atomic_int unfinished;
};

/* Last users of a part. All but ORDERED may run beside others of the same kind. */
enum users { ORDERED, READERS, GATHERERS, TEAM };

/* A set of a datum's regions that all tasks so far have used together. */
struct part {
    struct duet_handle *handle;
    int regions;
    enum users users;
};

struct datum {
    uint64_t task; /* last task that named it, and its need */
    unsigned need, parts;
    struct part part[REGIONS];
};

/* A list of accesses that grows. */
struct accesses {
    struct duet_access *list;
    unsigned count, room;
};

struct quark_s {
    struct duet_runtime *duet;
    int threads, ranks; /* number of workers; of threads that may call QUARK_Worker_Loop */
    pthread_t master;
    cpu_set_t cores;     /* those of the application, for threads that stand in */
    GHashTable *data;    /* address: struct datum */
    GHashTable *kernels; /* label or function: struct duet_codelet */
    uintptr_t address;   /* made-up address of the next handle's data */
    struct duet_codelet *order;
    struct duet_handle *team; /* tasks of several threads, one after another */
    struct accesses needed, ordered;
    Quark_Task *newest, *unused; /* records */
    _Atomic(Quark_Task *) ended; /* records of tasks that have ended */
    uint64_t inserted;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool *leave; /* threads of the application that are to return from QUARK_Worker_Loop */
};

static _Thread_local struct {
    Quark_Task *task; /* task that this thread runs */
    int rank;         /* among the threads of the task */
} current;

G_GNUC_PRINTF(2, 3)
static _Noreturn void refuse(const char *function, const char *format, ...)
{
    char text[DUET_MESSAGE_MAX];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "duet: %s: %s\n", function, text);
    exit(2);
}

static void check(const Quark *quark, const char *function, int error)
{
    if (error)
        refuse(function, "%s",
               *duet_last_message(quark->duet) ? duet_last_message(quark->duet)
                                               : duet_strerror(error));
}

/* ------------------------------------------------------------------------------------------- */
/* Running tasks                                                                                */

void *QUARK_Args_List(Quark *quark)
{
    return current.task;
}

void *QUARK_Args_Pop(void *args_list, void **last_arg)
{
    Quark_Task *task = args_list;
    struct argument *last = *last_arg;
    char *next = last ? last->value + last->bytes : task->arguments;
    bool more = next < task->arguments + task->used;
    *last_arg = more ? next : NULL;
    return more ? ((struct argument *)(void *)next)->value : NULL;
}

/* Decides whether a task runs or is cancelled. The first of its threads decides for all. */
static bool begins(Quark_Task *task)
{
    uint64_t use = atomic_load(&task->state) / PHASES * PHASES, waits = use + WAITS;
    bool cancelled = task->sequence && atomic_load(&task->sequence->cancelled);
    (void)atomic_compare_exchange_strong(&task->state, &waits,
                                         use + (cancelled ? CANCELLED : RUNS));
    return atomic_load(&task->state) == use + RUNS;
}

/* Allocates, or frees, the scratch that its program has not given. */
static void scratch(Quark_Task *task, bool allocate)
{
    for (unsigned i = 0; i < task->need_count; i++) {
        struct need *need = &task->needs[i];
        if (need->flags != SCRATCH || need->address)
            continue;
        void **place = (void **)(void *)(task->arguments + need->at);
        if (!allocate)
            free(*place);
        else if (!(*place = malloc((size_t)need->bytes)))
            refuse("SCRATCH", "no memory left for %d bytes", need->bytes);
    }
}

static void call(Quark_Task *task, int rank)
{
    current.task = task;
    current.rank = rank;
    task->function(task->quark);
    current.task = NULL;
}

/* Leaves the record to the thread that inserts tasks. */
static void task_end(Quark_Task *task)
{
    if (task->threads > 1 && atomic_fetch_sub(&task->left, 1) > 1)
        return;
    Quark *quark = task->quark;
    scratch(task, false);
    atomic_store(&task->state, (atomic_load(&task->state) / PHASES + 1) * PHASES + ENDED);
    if (task->sequence)
        atomic_fetch_sub(&task->sequence->unfinished, 1);
    task->next = atomic_load(&quark->ended);
    while (!atomic_compare_exchange_weak(&quark->ended, &task->next, task))
        ;
}

static void *join(void *argument)
{
    Quark_Task *task = argument;
    int rank = atomic_fetch_add(&task->joined, 1);
    if (rank < task->threads)
        call(task, rank);
    return NULL;
}

/*
 * Runs a task as one of several threads, which wait for each other in its function. A policy may
 * have given two of them to one worker, or a worker may be long at something else: threads of their
 * own are made for those that do not join, and the workers find nothing left to do.
 */
static void run_team(Quark_Task *task)
{
    const gint64 patience = g_get_monotonic_time() + PATIENCE_US;
    const int rank = atomic_fetch_add(&task->joined, 1);
    int missing = 0;
    if (rank >= task->threads)
        return;
    while (!rank && (missing = task->threads - atomic_load(&task->joined)) > 0 &&
           g_get_monotonic_time() < patience)
        sched_yield();
    pthread_t *threads = g_new(pthread_t, (size_t)MAX(missing, 0));
    pthread_attr_t attributes; /* not the core of this worker */
    pthread_attr_init(&attributes);
    pthread_attr_setaffinity_np(&attributes, sizeof task->quark->cores, &task->quark->cores);
    for (int i = 0; i < missing; i++)
        if (pthread_create(&threads[i], &attributes, join, task))
            refuse("TASK_THREAD_COUNT", "the system allows no more threads");
    pthread_attr_destroy(&attributes);
    call(task, rank);
    for (int i = 0; i < missing; i++)
        pthread_join(threads[i], NULL);
    g_free(threads);
}

static int run(const struct duet_call *duet)
{
    Quark_Task *task = *(Quark_Task *const *)duet->args;
    if (begins(task)) {
        if (task->threads > 1) {
            run_team(task);
        } else {
            scratch(task, true);
            call(task, 0);
        }
    }
    task_end(task);
    return DUET_OK;
}

static int run_order(const struct duet_call *duet)
{
    return DUET_OK;
}

static double order_seconds(const void *args, const char *arch)
{
    return 1e-7;
}

/* ------------------------------------------------------------------------------------------- */
/* Kernels and data                                                                             */

/* Names a kernel by its label, its function's symbol, or the place of its function. */
static void name_kernel(const char *label, void (*function)(Quark *), char out[NAME_MOST + 1])
{
    char text[DUET_MESSAGE_MAX];
    Dl_info info = {0};
    void *code = NULL;
    memcpy(&code, &function, sizeof code);
    bool known = dladdr(code, &info);
    g_autofree char *module = g_path_get_basename(known ? info.dli_fname : "?");
    if (label && *label)
        (void)snprintf(text, sizeof text, "%s", label);
    else if (known && info.dli_sname && info.dli_saddr == code)
        (void)snprintf(text, sizeof text, "%s", info.dli_sname);
    else
        (void)snprintf(text, sizeof text, "%s+0x%zx", module,
                       (size_t)((char *)code - (char *)info.dli_fbase));
    size_t length = strlen(g_strcanon(text, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_-.:+", '_'));
    memcpy(out, text + (length > NAME_MOST ? length - NAME_MOST : 0), NAME_MOST + 1);
    out[NAME_MOST] = '\0';
}

static struct duet_codelet *codelet(Quark *quark, const char *name, duet_kernel_fn run_it,
                                    double (*cost)(const void *, const char *))
{
    const struct duet_implementation on_cpus = {"cpu", run_it};
    const struct duet_codelet_desc desc = {name, &on_cpus, 1, .cost = cost};
    struct duet_codelet *found = duet_codelet_find(quark->duet, name);
    if (!found)
        check(quark, "QUARK_Insert_Task", duet_register_codelet(quark->duet, &desc, &found));
    return found;
}

static struct duet_codelet *codelet_of(Quark *quark, const Quark_Task *task)
{
    char name[NAME_MOST + 1];
    void *key = task->flags.task_label;
    if (!key)
        memcpy(&key, &task->function, sizeof key);
    struct duet_codelet *known = g_hash_table_lookup(quark->kernels, key);
    if (!known) {
        name_kernel(task->flags.task_label, task->function, name);
        known = codelet(quark, name, run, NULL);
        g_hash_table_insert(quark->kernels, key, known);
    }
    return known;
}

static struct duet_handle *handle_new(Quark *quark, int bytes)
{
    struct duet_handle *handle;
    const size_t size = bytes > 0 ? (size_t)bytes : 1;
    check(quark, "QUARK_Insert_Task",
          duet_register_vector(quark->duet, (void *)quark->address, size, 1, &handle));
    quark->address += (size + 63) / 64 * 64;
    return handle;
}

static void add(struct accesses *to, struct duet_handle *handle, enum duet_mode mode)
{
    if (to->count == to->room)
        to->list = g_renew(struct duet_access, to->list, to->room = 2 * to->room + 16);
    to->list[to->count++] = (struct duet_access){handle, mode};
}

/*
 * Parts a datum so that the regions of a task are whole parts. A new part begins after all that was
 * done with the old one; it is a byte of its own, so that the sizes of tasks hardly change.
 */
static void datum_part(Quark *quark, struct datum *datum, int regions)
{
    for (unsigned p = 0, parts = datum->parts; p < parts; p++) {
        struct part *part = &datum->part[p];
        const int rest = part->regions & ~regions;
        if (!(part->regions & regions) || !rest)
            continue;
        struct part *other = &datum->part[datum->parts++];
        *other = (struct part){handle_new(quark, 1), rest, ORDERED};
        part->regions &= regions;
        part->users = ORDERED;
        add(&quark->ordered, part->handle, DUET_RW);
        add(&quark->ordered, other->handle, DUET_RW);
    }
}

/* Adds the access of a task to a part, and where its users change, one that comes between. */
static void part_use(Quark *quark, struct part *part, int flags, bool team)
{
    const int direction = flags & QUARK_DIRECTION_BITMASK;
    enum duet_mode mode = direction == OUTPUT ? DUET_W : DUET_RW;
    enum users users = ORDERED;
    if (direction == INPUT)
        users = READERS;
    else if (team)
        users = TEAM;
    else if (flags & GATHERV)
        users = GATHERERS;
    else if (flags & ACCUMULATOR)
        mode = DUET_COMMUTE;
    if (users == TEAM || (users && part->users && users != part->users))
        add(&quark->ordered, part->handle, DUET_RW);
    add(&quark->needed, part->handle, users ? DUET_R : mode);
    part->users = users;
}

static void datum_use(Quark *quark, struct datum *datum, const struct need *need, bool team)
{
    const int regions = need->flags & QUARK_REGION_BITMASK;
    datum_part(quark, datum, regions);
    for (unsigned p = 0; p < datum->parts; p++)
        if (datum->part[p].regions & regions)
            part_use(quark, &datum->part[p], need->flags, team);
}

/* Returns a need's datum, made if new. NULL: an earlier need of the task has it, now for both. */
static struct datum *datum_of(Quark *quark, Quark_Task *task, unsigned n)
{
    struct need *need = &task->needs[n];
    struct datum *datum = g_hash_table_lookup(quark->data, need->address);
    if (!datum) {
        datum = g_new0(struct datum, 1);
        datum->parts = 1;
        datum->part[0] = (struct part){handle_new(quark, need->bytes), QUARK_REGION_ALL, ORDERED};
        g_hash_table_insert(quark->data, need->address, datum);
    }
    if (datum->task == quark->inserted) {
        struct need *earlier = &task->needs[datum->need];
        const int direction =
            MAX(need->flags & QUARK_DIRECTION_BITMASK, earlier->flags & QUARK_DIRECTION_BITMASK);
        earlier->flags = (earlier->flags & ~QUARK_DIRECTION_BITMASK) | direction |
                         (need->flags & QUARK_REGION_BITMASK);
        return NULL;
    }
    datum->task = quark->inserted;
    datum->need = n;
    return datum;
}

/* ------------------------------------------------------------------------------------------- */
/* Inserting tasks                                                                              */

/* Members of Quark_Task_Flags by their flags. */
static const struct {
    int flag;
    bool pointer;
    size_t at;
} members[] = {
    {TASK_PRIORITY, false, offsetof(Quark_Task_Flags, task_priority)},
    {TASK_LABEL, true, offsetof(Quark_Task_Flags, task_label)},
    {TASK_COLOR, true, offsetof(Quark_Task_Flags, task_color)},
    {TASK_SEQUENCE, true, offsetof(Quark_Task_Flags, task_sequence)},
    {TASK_THREAD_COUNT, false, offsetof(Quark_Task_Flags, task_thread_count)},
    {TASK_LOCK_TO_THREAD, false, offsetof(Quark_Task_Flags, task_lock_to_thread)},
    {TASK_LOCK_TO_THREAD_MASK, true, offsetof(Quark_Task_Flags, task_lock_to_thread_mask)},
    {THREAD_SET_TO_MANUAL_SCHEDULING, false,
     offsetof(Quark_Task_Flags, thread_set_to_manual_scheduling)},
    {TASK_START_CODE, false, offsetof(Quark_Task_Flags, start_code)},
    {TASK_STOP_CODE, false, offsetof(Quark_Task_Flags, stop_code)},
};

Quark_Task_Flags *QUARK_Task_Flag_Set(Quark_Task_Flags *flags, int flag, intptr_t val)
{
    for (size_t m = 0; m < G_N_ELEMENTS(members); m++) {
        char *at = (char *)flags + members[m].at;
        if (members[m].flag == flag && members[m].pointer)
            *(intptr_t *)(void *)at = val;
        else if (members[m].flag == flag)
            *(int *)(void *)at = (int)val;
        else
            continue;
        return flags;
    }
    refuse("QUARK_Task_Flag_Set", "there is no flag 0x%x", (unsigned)flag);
}

intptr_t QUARK_Task_Flag_Get(Quark *quark, int flag)
{
    for (size_t m = 0; m < G_N_ELEMENTS(members) && current.task; m++) {
        const char *at = (const char *)&current.task->flags + members[m].at;
        if (members[m].flag == flag)
            return members[m].pointer ? *(const intptr_t *)(const void *)at
                                      : *(const int *)(const void *)at;
    }
    return -9;
}

/* Looks at the properties that a task was given. */
static void check_flags(Quark_Task *task)
{
    static const char *const where = "duet's policies decide where tasks run";
    const Quark_Task_Flags *flags = &task->flags;
    if (flags->task_lock_to_thread >= 0)
        refuse("TASK_LOCK_TO_THREAD", "%s", where);
    if (flags->task_lock_to_thread_mask)
        refuse("TASK_LOCK_TO_THREAD_MASK", "%s", where);
    if (flags->thread_set_to_manual_scheduling > 0)
        refuse("THREAD_SET_TO_MANUAL_SCHEDULING", "%s", where);
    if (flags->task_thread_count > task->quark->threads)
        refuse("TASK_THREAD_COUNT", "a task of %d threads, of %d that there are",
               flags->task_thread_count, task->quark->threads);
    task->threads = MAX(flags->task_thread_count, 1);
    task->sequence = flags->task_sequence;
}

Quark_Task *QUARK_Task_Init(Quark *quark, void (*function)(Quark *), Quark_Task_Flags *task_flags)
{
    static const Quark_Task_Flags none = Quark_Task_Flags_Initializer;
    if (current.task)
        refuse("QUARK_Insert_Task", "called in a task: tasks are inserted outside of tasks");
    if (!quark->unused)
        quark->unused = atomic_exchange(&quark->ended, NULL);
    Quark_Task *task = quark->unused;
    if (task) {
        quark->unused = task->next;
    } else {
        task = g_new0(Quark_Task, 1);
        atomic_init(&task->state, ENDED);
        task->older = quark->newest;
        quark->newest = task;
    }
    task->quark = quark;
    task->function = function;
    task->flags = task_flags ? *task_flags : none;
    if (task->flags.task_label)
        task->flags.task_label = (char *)(uintptr_t)g_intern_string(task->flags.task_label);
    task->used = task->need_count = 0;
    return task;
}

/* Appends an argument, and returns its offset. */
static size_t append(Quark_Task *task, const void *value, size_t bytes)
{
    const size_t rounded = (bytes + 7) / 8 * 8;
    if (task->room - task->used < sizeof(struct argument) + rounded) {
        task->room = 2 * task->room + 64 + rounded;
        task->arguments = g_realloc(task->arguments, task->room);
    }
    struct argument *argument = (void *)(task->arguments + task->used);
    argument->bytes = rounded;
    memcpy(argument->value, value, bytes);
    task->used += sizeof *argument + rounded;
    return task->used - rounded;
}

/* Takes a property of the task that is given as an argument. */
static void take_property(Quark_Task *task, int bytes, void *value, int flag)
{
    if (flag & TASK_LABEL && !value)
        return;
    g_autofree char *text = flag & TASK_LABEL ? g_strndup(value, (size_t)bytes) : NULL;
    if (text)
        value = (char *)(uintptr_t)g_intern_string(text);
    else if (flag & TASK_SEQUENCE)
        value = *(void **)value;
    else if (!(flag & (TASK_COLOR | TASK_LOCK_TO_THREAD_MASK)))
        value = (void *)(intptr_t) * (int *)value;
    (void)QUARK_Task_Flag_Set(&task->flags, flag, (intptr_t)value);
}

void QUARK_Task_Pack_Arg(Quark *quark, Quark_Task *task, int arg_size, void *arg_ptr, int arg_flags)
{
    const int kind = arg_flags & QUARK_DIRECTION_BITMASK;
    if (kind == 0 || kind > SCRATCH)
        refuse("QUARK_Insert_Task", "argument flags 0x%x name no kind of argument",
               (unsigned)arg_flags);
    if ((kind == VALUE || (kind == SCRATCH && !arg_ptr)) && arg_size < 1)
        refuse("QUARK_Insert_Task", "a VALUE or SCRATCH of %d bytes", arg_size);
    if (kind == VALUE && arg_flags != VALUE) {
        take_property(task, arg_size, arg_ptr, arg_flags & ~QUARK_DIRECTION_BITMASK);
        return;
    }
    size_t at = kind == VALUE ? append(task, arg_ptr, (size_t)arg_size)
                              : append(task, &arg_ptr, sizeof arg_ptr);
    if (kind == VALUE || kind == NODEP)
        return;
    if (task->need_count == task->need_room)
        task->needs = g_renew(struct need, task->needs, task->need_room += 8);
    if (kind != SCRATCH && !(arg_flags & QUARK_REGION_BITMASK))
        arg_flags |= QUARK_REGION_ALL;
    task->needs[task->need_count++] =
        (struct need){arg_ptr, NULL, arg_size, kind == SCRATCH ? kind : arg_flags, at};
}

/* Submits what comes between the users of data, and the task, with what it needs. */
static void submit(Quark *quark, Quark_Task *task, struct duet_ref **ref)
{
    const struct duet_task_extra extra = {.ref = ref};
    const struct duet_task_desc order = {.codelet = quark->order,
                                         .accesses = quark->ordered.list,
                                         .access_count = quark->ordered.count,
                                         .priority = task->flags.task_priority};
    const struct duet_task_desc desc = {.codelet = codelet_of(quark, task),
                                        .accesses = quark->needed.list,
                                        .access_count = quark->needed.count,
                                        .args = &task,
                                        .args_bytes = sizeof task,
                                        .priority = task->flags.task_priority,
                                        .extra = ref && task->threads == 1 ? &extra : NULL};
    if (order.access_count)
        check(quark, "QUARK_Insert_Task", duet_submit(quark->duet, &order));
    for (int i = task->threads; i > 0; i--) /* the task may end once the last is submitted */
        check(quark, "QUARK_Insert_Task", duet_submit(quark->duet, &desc));
}

static unsigned long long insert(Quark *quark, Quark_Task *task, struct duet_ref **ref)
{
    check_flags(task);
    if (task->sequence && atomic_load(&task->sequence->cancelled)) {
        task->next = quark->unused;
        quark->unused = task;
        return (unsigned long long)QUARK_ERR;
    }
    const uint64_t use = atomic_load(&task->state) / PHASES;
    atomic_store_explicit(&task->state, use * PHASES + WAITS, memory_order_relaxed);
    if (task->sequence)
        atomic_fetch_add(&task->sequence->unfinished, 1);
    quark->inserted++;
    quark->needed.count = quark->ordered.count = 0;
    for (unsigned n = 0; n < task->need_count; n++)
        task->needs[n].datum = task->needs[n].flags == SCRATCH ? NULL : datum_of(quark, task, n);
    for (unsigned n = 0; n < task->need_count; n++)
        if (task->needs[n].datum)
            datum_use(quark, task->needs[n].datum, &task->needs[n], task->threads > 1);
    if (task->threads > 1) {
        add(&quark->ordered, quark->team, DUET_RW);
        add(&quark->needed, quark->team, DUET_R);
        atomic_store(&task->joined, 0);
        atomic_store(&task->left, task->threads);
        scratch(task, true);
    }
    submit(quark, task, ref);
    return use << (64 - USE_BITS) | (uintptr_t)task;
}

unsigned long long QUARK_Insert_Task_Packed(Quark *quark, Quark_Task *task)
{
    return insert(quark, task, NULL);
}

unsigned long long QUARK_Execute_Task_Packed(Quark *quark, Quark_Task *task)
{
    struct duet_ref *ref = NULL;
    (void)insert(quark, task, &ref);
    check(quark, "QUARK_Execute_Task",
          ref ? duet_ref_wait(quark->duet, ref) : duet_wait(quark->duet));
    duet_ref_free(ref);
    return 0;
}

static Quark_Task *pack(Quark *quark, void (*function)(Quark *), Quark_Task_Flags *flags,
                        va_list list)
{
    int bytes;
    Quark_Task *task = QUARK_Task_Init(quark, function, flags);
    while ((bytes = va_arg(list, int))) {
        void *address = va_arg(list, void *);
        QUARK_Task_Pack_Arg(quark, task, bytes, address, va_arg(list, int));
    }
    return task;
}

unsigned long long QUARK_Insert_Task(Quark *quark, void (*function)(Quark *),
                                     Quark_Task_Flags *task_flags, ...)
{
    va_list list;
    va_start(list, task_flags);
    Quark_Task *task = pack(quark, function, task_flags, list);
    va_end(list);
    return QUARK_Insert_Task_Packed(quark, task);
}

unsigned long long QUARK_Execute_Task(Quark *quark, void (*function)(Quark *),
                                      Quark_Task_Flags *task_flags, ...)
{
    va_list list;
    va_start(list, task_flags);
    Quark_Task *task = pack(quark, function, task_flags, list);
    va_end(list);
    return QUARK_Execute_Task_Packed(quark, task);
}

int QUARK_Cancel_Task(Quark *quark, unsigned long long taskid)
{
    const unsigned shift = 64 - USE_BITS;
    if (!taskid || taskid == (unsigned long long)QUARK_ERR)
        return -1;
    Quark_Task *task = (Quark_Task *)(uintptr_t)(taskid & (((uint64_t)1 << shift) - 1));
    uint64_t state = atomic_load(&task->state), use = state / PHASES;
    if (use << shift != (taskid >> shift) << shift)
        return -1;
    state = use * PHASES + WAITS;
    return atomic_compare_exchange_strong(&task->state, &state, use * PHASES + CANCELLED) ? 1 : -2;
}

/* ------------------------------------------------------------------------------------------- */
/* Opening, waiting, closing                                                                    */

Quark *QUARK_Setup(int num_threads)
{
    Quark *quark = g_new0(Quark, 1);
    struct duet_config config;
    struct duet_message message = {""};
    const char *text = num_threads < 1 ? getenv("QUARK_NUM_THREADS") : NULL;
    duet_config_init(&config);
    config.cpus = text ? (int)strtol(text, NULL, 10) : num_threads < 1 ? -1 : num_threads;
    if (text && config.cpus < 1)
        refuse("QUARK_NUM_THREADS", "'%s' is no number of threads", text);
    (void)sched_getaffinity(0, sizeof quark->cores, &quark->cores);
    int error = duet_config_environment(&config, &message);
    if (config.nodes)
        refuse("DUET_NODES", "a program of QUARK runs on one node");
    config.gpus = 0; /* addresses of handles are none of real data */
    if (!error)
        error = duet_open(&quark->duet, &config, &message);
    if (error)
        refuse("QUARK_Setup", "%s", *message.text ? message.text : duet_strerror(error));
    quark->threads = (int)duet_runtime_machine(quark->duet)->worker_count;
    quark->master = pthread_self();
    quark->data = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    quark->kernels = g_hash_table_new(NULL, NULL);
    quark->address = FIRST_ADDRESS;
    quark->order = codelet(quark, "quark..order", run_order, order_seconds);
    quark->team = handle_new(quark, 1);
    quark->ranks = MAX(quark->threads, num_threads);
    quark->leave = g_new0(bool, (size_t)quark->ranks);
    pthread_mutex_init(&quark->mutex, NULL);
    pthread_cond_init(&quark->changed, NULL);
    return quark;
}

Quark *QUARK_New(int num_threads)
{
    return QUARK_Setup(num_threads);
}

/* Blocks until all tasks have ended, and forgets their data: addresses may mean others now. */
void QUARK_Barrier(Quark *quark)
{
    GHashTableIter all;
    void *value;
    check(quark, "QUARK_Barrier", duet_wait(quark->duet));
    for (Quark_Task *task = quark->newest; task && !duet_computes(quark->duet); task = task->older)
        if (atomic_load(&task->state) % PHASES == WAITS) { /* nothing was called at its end */
            atomic_store(&task->left, 1);
            task_end(task);
        }
    g_hash_table_iter_init(&all, quark->data);
    while (g_hash_table_iter_next(&all, NULL, &value)) {
        struct datum *datum = value;
        for (unsigned p = 0; p < datum->parts; p++)
            check(quark, "QUARK_Barrier", duet_unregister(quark->duet, datum->part[p].handle));
    }
    g_hash_table_remove_all(quark->data);
    quark->address = FIRST_ADDRESS + 64; /* behind quark->team */
}

void QUARK_Waitall(Quark *quark)
{
    QUARK_Barrier(quark);
    pthread_mutex_lock(&quark->mutex);
    for (int i = 0; i < quark->ranks; i++)
        quark->leave[i] = true;
    pthread_cond_broadcast(&quark->changed);
    pthread_mutex_unlock(&quark->mutex);
}

void QUARK_Worker_Loop(Quark *quark, int thread_rank)
{
    pthread_mutex_lock(&quark->mutex);
    while (thread_rank < quark->ranks && !quark->leave[thread_rank])
        pthread_cond_wait(&quark->changed, &quark->mutex);
    if (thread_rank < quark->ranks)
        quark->leave[thread_rank] = false;
    pthread_mutex_unlock(&quark->mutex);
}

void QUARK_Free(Quark *quark)
{
    QUARK_Waitall(quark);
    (void)duet_close(quark->duet); /* which says what it could not write */
    for (Quark_Task *task = quark->newest, *older; task; task = older) {
        older = task->older;
        g_free(task->arguments);
        g_free(task->needs);
        g_free(task);
    }
    g_hash_table_unref(quark->kernels);
    g_hash_table_unref(quark->data);
    g_free(quark->needed.list);
    g_free(quark->ordered.list);
    g_free(quark->leave);
    pthread_cond_destroy(&quark->changed);
    pthread_mutex_destroy(&quark->mutex);
    g_free(quark);
}

void QUARK_Delete(Quark *quark)
{
    QUARK_Free(quark);
}

Quark_Sequence *QUARK_Sequence_Create(Quark *quark)
{
    return g_new0(Quark_Sequence, 1);
}

int QUARK_Sequence_Cancel(Quark *quark, Quark_Sequence *sequence)
{
    if (!quark || !sequence)
        return QUARK_ERR;
    atomic_store(&sequence->cancelled, true);
    return QUARK_SUCCESS;
}

int QUARK_Sequence_Wait(Quark *quark, Quark_Sequence *sequence)
{
    if (!quark || !sequence)
        return QUARK_ERR;
    if (atomic_load(&sequence->unfinished))
        QUARK_Barrier(quark);
    return QUARK_SUCCESS;
}

Quark_Sequence *QUARK_Sequence_Destroy(Quark *quark, Quark_Sequence *sequence)
{
    if (QUARK_Sequence_Cancel(quark, sequence) == QUARK_SUCCESS)
        (void)QUARK_Sequence_Wait(quark, sequence);
    g_free(sequence);
    return NULL;
}

/* ------------------------------------------------------------------------------------------- */
/* Questions of tasks                                                                           */

char *QUARK_Get_Task_Label(Quark *quark)
{
    return current.task ? current.task->flags.task_label : NULL;
}

Quark_Sequence *QUARK_Get_Sequence(Quark *quark)
{
    return current.task ? current.task->sequence : NULL;
}

int QUARK_Get_Priority(Quark *quark)
{
    return current.task ? current.task->flags.task_priority : 0;
}

int QUARK_Get_RankInTask(Quark *quark)
{
    return current.rank;
}

int QUARK_Thread_Rank(Quark *quark)
{
    const int worker = duet_worker_here(quark->duet);
    return worker >= 0 ? worker : pthread_equal(quark->master, pthread_self()) ? 0 : -1;
}

void QUARK_DOT_DAG_Enable(Quark *quark, int boolean_value)
{
    if (boolean_value)
        fprintf(stderr, "duet: QUARK_DOT_DAG_Enable draws no graph: DUET_TRACE=F.json writes a "
                        "trace, and duet export F.json --format dot the graph\n");
}
