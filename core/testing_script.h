/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the core as text, on the passive engine: what is submitted, what each worker is told to
 * do next, and what comes of it. Statements are separated by semicolons, and "{x|y}" makes two runs
 * of a script, one with x and one with y. Memories are host, gpu0 ...; workers cpu0 ..., gpu0 ...;
 * data has a letter, its parts and blocks a letter and a digit; tasks have their numbers. An error
 * behind a call is what it returns; none is success.
 *
 *     data a b*3               registers data of one block, and of three
 *     temporary a              registers 10 x 10 numbers without an address
 *     cut a 2                  cuts a into a0 and a1
 *     gpu@card1!5=2 a:rw b:r   submits a task: its kernel (any, cpu, gpu), where it may run, its
 *                              priority, milliseconds on a core (1; a tenth of it on a device), and
 *                              accesses: r, w, rw, c (commute), s (scratch), + (reduce)
 *     5 gpu                    the statement behind the number, five times
 *     any>f, any<f<g           a task with a reference f, and one after those of f and g
 *     await f, drop f          waits for the task, and gives its reference up
 *     inside gpu0 any          the kernel that this worker has begun submits the task
 *     plan p cut 2, gpu p1:w, EIO     a task that expands cuts its first access into p0 and p1,
 *                              submits children as above, and fails; "free gpu" is no child
 *     split p a:rw             submits such a task
 *     gpu0 run 3               the worker is told to run task 3, or any of the kernel "run split";
 *                              it stays begun
 *     gpu0 copy a host>gpu0    ... to copy, or to "evict", which is to write back and give up
 *     gpu0 idle, gpu0 exit     ... has nothing to do, or has to go
 *     gpu0 work 2              ... does all there is for it, which are two tasks
 *     done 3 ELOST, done a, done b>gpu0, done gpu0     the end of what was begun
 *     lost 3                   the same with ELOST; then its worker has nothing to do
 *     go 2, drain              all that are woken, or all workers, do what there is: two tasks
 *     copied a host>gpu1       the next copy that work and go have made; "copies 2": so many more
 *     wait, acquire a:r, release a, unregister a, leave a (without a wait), uncut a, recover,
 *     cancel, prefetch a gpu0, unused a, invalidate a, reset, stop      the application's calls
 *     lose gpu0, wake gpu0, hush gpu0      its device is gone; it is woken, or is not any more
 *     us 100                   what is begun takes so long from here on (1)
 *     route gpu0>gpu1 2000     data can go this way, at so many MB/s (usually 1000)
 *
 * and checked are
 *
 *     valid a host gpu0        where the data is valid: nowhere else
 *     good a b, bad c          contents that the application may use, or may not
 *     woken gpu0, unwoken gpu0, gpu0 ran 2, gpu0 lists 3, gpu0 takes 1, gpu0 copies 1
 *     order 1 4 2              these tasks have run, in this order, without failing
 *     ended f, pending f       whether the task of a reference has ended
 *     expanded p 1, differ p0 q0, address a 0, failures 1 2 (failed, cancelled)
 *     error ELOST, says TEXT   of the run, and its last message
 *     evictions 3              a number of struct duet_stats, or see stage_figure
 *     end ELOST TEXT           the run ends so, and nothing is left (otherwise: "end"); "fini"
 *                              closes at once
 */
#ifndef DUET_CORE_TESTING_SCRIPT_H
#define DUET_CORE_TESTING_SCRIPT_H

#include <duet/failure.h>
#include <duet/hint.h>

#include "core/testing_expand.h"
#include "core/testing_lost.h"
#include "core/testing_variant.h"

struct script {
    const char *name;
    const char *machine; /* "cpus=1 gpus=2 kinds=2 blocks=4 no-peer ws", see stage_open */
    const char *steps;
};

struct stage;

/* Statements and a policy that only the scripts of one file have. */
struct stage_more {
    const struct duet_policy *policy; /* NULL: by name */
    /* Does a statement; false: it is none of the file's. May be NULL. */
    bool (*step)(struct stage *stage, char **words);
};

enum { STAGE_DATA = 26 * 11, STAGE_BEGUN = 16, STAGE_PLANS = 4 };

/* A run of a script. */
struct stage {
    const struct script *script;
    const struct stage_more *more;
    const char *step; /* that is being done */
    struct testing *t;
    struct duet_handle *data[STAGE_DATA];
    struct duet__engine_command begun[STAGE_BEGUN];
    unsigned begun_count;
    struct testing_log log;
    unsigned copies_seen;
    struct duet_ref *refs[26]; /* by letter */
    double seconds;            /* for each command */
    bool ended;
    struct stage_plan {
        struct plan plan; /* first, as its function is given this one */
        struct stage *stage;
        char name;
        char **steps;
    } plans[STAGE_PLANS];
    unsigned plan_count;
};

#define stage_fail(stage, ...)                                                                     \
    do {                                                                                           \
        g_autofree char *why_ = g_strdup_printf(__VA_ARGS__);                                      \
        g_error("\"%s\", %s: %s", (stage)->script->name, (stage)->step, why_);                     \
    } while (0)

static inline void stage_same(const struct stage *stage, const char *what, int64_t is,
                              int64_t shall_be)
{
    if (is != shall_be)
        stage_fail(stage, "%s is %" G_GINT64_FORMAT ", not %" G_GINT64_FORMAT, what, is, shall_be);
}

static inline bool stage_is(char **words, const char *what)
{
    return !strcmp(words[0], what);
}

/* ------------------------------------------------------------------------------------------- */
/* Words                                                                                        */

static inline int64_t stage_number(const struct stage *stage, const char *word)
{
    char *end = NULL;
    int64_t number = word ? g_ascii_strtoll(word, &end, 10) : 0;
    if (!word || end == word || *end)
        stage_fail(stage, "a number is missing");
    return number;
}

/* An error by its name without DUET_; NULL: none. */
static inline int stage_error(const struct stage *stage, const char *word)
{
#define X(name, value, text) {#name, name},
    static const struct {
        const char *name;
        int error;
    } errors[] = {{"DUET_OK", DUET_OK}, DUET_ERRORS(X)};
#undef X
    for (size_t i = 0; word && i < G_N_ELEMENTS(errors); i++)
        if (!strcmp(errors[i].name + strlen("DUET_"), word))
            return errors[i].error;
    if (word)
        stage_fail(stage, "%s is no error", word);
    return DUET_OK;
}

static inline struct duet_handle **stage_place(struct stage *stage, const char *word)
{
    if (!word || !g_ascii_islower(word[0]))
        stage_fail(stage, "data is missing");
    unsigned part = g_ascii_isdigit(word[1]) ? 1 + (unsigned)(word[1] - '0') : 0;
    return &stage->data[11 * (unsigned)(word[0] - 'a') + part];
}

static inline struct duet_handle *stage_data(struct stage *stage, const char *word)
{
    struct duet_handle *handle = *stage_place(stage, word);
    if (!handle)
        stage_fail(stage, "there is no %s", word);
    return handle;
}

/* A memory by its name, up to `length` letters of it. */
static inline unsigned stage_node(const struct stage *stage, const char *word, size_t length)
{
    const struct duet_machine *machine = &stage->t->core->machine;
    for (unsigned n = 0; n < machine->node_count; n++)
        if (strlen(machine->nodes[n].name) == length &&
            !strncmp(machine->nodes[n].name, word, length))
            return n;
    stage_fail(stage, "%s is no memory", word);
    return 0;
}

/* A worker by its name, or -1. */
static inline int stage_worker(const struct stage *stage, const char *word)
{
    const struct duet_machine *machine = &stage->t->core->machine;
    for (unsigned w = 0; word && w < machine->worker_count; w++)
        if (!strcmp(machine->workers[w].name, word))
            return (int)w;
    return -1;
}

/* The end of a route such as "host>gpu0". */
static inline void stage_route(const struct stage *stage, const char *word, unsigned *source,
                               unsigned *destination)
{
    const char *to = word ? strchr(word, '>') : NULL;
    if (!to)
        stage_fail(stage, "a route is missing");
    *source = stage_node(stage, word, (size_t)(to - word));
    *destination = stage_node(stage, to + 1, strlen(to + 1));
}

/* An access such as "a:rw". */
static inline struct duet_access stage_access(struct stage *stage, const char *word)
{
    static const struct {
        const char *name;
        enum duet_mode mode;
    } modes[] = {{"r", DUET_R},       {"w", DUET_W},       {"rw", DUET_RW},
                 {"c", DUET_COMMUTE}, {"s", DUET_SCRATCH}, {"+", DUET_REDUCE}};
    const char *colon = word ? strchr(word, ':') : NULL;
    for (size_t i = 0; colon && i < G_N_ELEMENTS(modes); i++)
        if (!strcmp(modes[i].name, colon + 1))
            return (struct duet_access){stage_data(stage, word), modes[i].mode};
    stage_fail(stage, "an access is missing");
    return (struct duet_access){NULL, DUET_R};
}

/* ------------------------------------------------------------------------------------------- */
/* Submissions                                                                                  */

static inline struct plan *stage_plan(struct stage *stage, const char *word)
{
    for (unsigned i = 0; word && i < stage->plan_count; i++)
        if (stage->plans[i].name == word[0])
            return &stage->plans[i].plan;
    stage_fail(stage, "the plan is missing");
    return NULL;
}

static inline struct duet_ref **stage_ref(struct stage *stage, const char *word)
{
    if (!word || !g_ascii_islower(word[0]))
        stage_fail(stage, "a reference is missing");
    return &stage->refs[(word[0] - 'a') % 26];
}

/* Submits a task, or a child of one that expands (NULL: none does). */
static inline int stage_task(struct stage *stage, struct duet_expansion *expansion, char **words)
{
    struct duet_access accesses[8] = {{NULL, DUET_R}};
    struct duet_ref *after[4];
    struct duet_task_extra extra = {.after = after};
    double flops = 0;
    struct testing *t = stage->t;
    struct plan *plan = NULL;
    struct duet_task_desc desc = {.accesses = accesses, .args = &flops, .args_bytes = sizeof flops};
    if (!strcmp(words[0], "split")) {
        plan = stage_plan(stage, words[1]);
        desc = plan_desc(t, &plan, accesses, 0);
        words++;
    } else {
        g_auto(GStrv) parts = g_strsplit_set(words[0], "@!=<>", -1);
        desc.codelet = words[0][0] == 'a' ? t->any : words[0][0] == 'c' ? t->cpu : t->gpu;
        for (unsigned i = 1, at = 0; parts[i]; i++) {
            at += 1 + (unsigned)strlen(parts[i - 1]);
            if (words[0][at - 1] == '@')
                desc.where = duet_where(t->core, parts[i]);
            else if (words[0][at - 1] == '<')
                after[extra.after_count++] = *stage_ref(stage, parts[i]);
            else if (words[0][at - 1] == '>')
                extra.ref = stage_ref(stage, parts[i]);
            else if (words[0][at - 1] == '!')
                desc.priority = (int)stage_number(stage, parts[i]);
            else
                flops = 1e6 * g_ascii_strtod(parts[i], NULL);
        }
    }
    desc.extra = extra.ref || extra.after_count ? &extra : NULL;
    for (; words[1 + desc.access_count]; desc.access_count++)
        accesses[desc.access_count] = stage_access(stage, words[1 + desc.access_count]);
    return expansion ? duet_expand_submit(expansion, &desc) : duet_submit(t->core, &desc);
}

static inline int stage_expand(struct plan *plan, struct duet_expansion *expansion,
                               const struct duet_call *call)
{
    struct stage_plan *planned = (struct stage_plan *)(void *)plan;
    struct stage *stage = planned->stage;
    int error = DUET_OK;
    for (unsigned i = 0; planned->steps[i] && !error; i++) {
        g_auto(GStrv) words = g_strsplit(g_strstrip(planned->steps[i]), " ", -1);
        if (!strcmp(words[0], "cut")) {
            const char first[] = {planned->name, '0', '\0'};
            error = plan_cut(plan, expansion, 0, call->buffers[0].rows,
                             (unsigned)stage_number(stage, words[1]));
            memcpy(stage_place(stage, first), plan->blocks, 10 * sizeof(struct duet_handle *));
        } else if (stage_is(words, "free")) {
            error = stage_task(stage, NULL, words + 1);
        } else if (words[0][0] == 'E') {
            error = stage_error(stage, words[0]);
        } else {
            error = stage_task(stage, expansion, words);
        }
    }
    return error;
}

static inline void stage_add_plan(struct stage *stage, char **words)
{
    TESTING_MUST(stage->plan_count < STAGE_PLANS);
    struct stage_plan *planned = &stage->plans[stage->plan_count++];
    g_autofree char *steps = g_strjoinv(" ", words + 2);
    *planned = (struct stage_plan){.plan = {.expand = stage_expand, .t = stage->t},
                                   .stage = stage,
                                   .name = words[1][0],
                                   .steps = g_strsplit(steps, ",", -1)};
}

/* ------------------------------------------------------------------------------------------- */
/* Workers                                                                                      */

/* The worker's next command, which is of this kind; it stays begun. */
static inline const struct duet__engine_command *stage_begin(struct stage *stage, int worker,
                                                             enum duet__engine_command_kind kind)
{
    TESTING_MUST(stage->begun_count < STAGE_BEGUN);
    struct duet__engine_command *command = &stage->begun[stage->begun_count];
    *command = testing_next(stage->t, (unsigned)worker);
    stage_same(stage, "the kind of the command", command->kind, kind);
    stage_same(stage, "the worker of the command", command->worker, worker);
    stage->begun_count += kind == DUET_RUN || kind == DUET_COPY;
    return command;
}

/* It was a copy of this data along this route: "a host>gpu0". */
static inline void stage_same_copy(struct stage *stage, const struct duet__copy *copy, char **words)
{
    unsigned source, destination;
    stage_route(stage, words[1], &source, &destination);
    /* either may be freed by now */
    stage_same(stage, "its data", copy->handle == stage_data(stage, words[0]), true);
    stage_same(stage, "its source", copy->source, source);
    stage_same(stage, "its destination", copy->destination, destination);
}

static inline void stage_copy(struct stage *stage, int worker, char **words)
{
    const struct duet__engine_command *command = stage_begin(stage, worker, DUET_COPY);
    const struct duet__copy *copy = command->copy;
    stage_same_copy(stage, copy, words + 2);
    stage_same(stage, "its stream", command->stream,
               copy->destination == DUET_HOST ? DUET_STREAM_OUT : DUET_STREAM_IN);
    stage_same(stage, "that it is evicted", copy->write_back, words[1][0] == 'e');
    stage_same(stage, "its size", (int64_t)copy->bytes, (int64_t)copy->handle->bytes);
}

static inline void stage_of_worker(struct stage *stage, int worker, char **words)
{
    const struct worker *of = &stage->t->core->workers[worker];
    const char *const what = words[1];
    int64_t is = -1;
    if (!strcmp(what, "run")) {
        const struct duet_task *task = stage_begin(stage, worker, DUET_RUN)->task;
        if (g_ascii_isdigit(words[2][0]))
            stage_same(stage, "the task", (int64_t)task->id, stage_number(stage, words[2]));
        else
            g_assert_cmpstr(duet_task_kernel(task), ==, words[2]);
    } else if (!strcmp(what, "copy") || !strcmp(what, "evict")) {
        stage_copy(stage, worker, words);
    } else if (!strcmp(what, "idle") || !strcmp(what, "exit")) {
        (void)stage_begin(stage, worker, what[0] == 'i' ? DUET_IDLE : DUET_EXIT);
    } else {
        if (!strcmp(what, "work"))
            is = testing_work(stage->t, (unsigned)worker, &stage->log);
        else if (!strcmp(what, "ran"))
            is = (int64_t)duet_worker_stats(stage->t->core, (unsigned)worker).tasks;
        else if (!strcmp(what, "lists"))
            is = (int64_t)duet_list_length(&of->list);
        else if (!strcmp(what, "takes"))
            is = of->taken;
        else if (!strcmp(what, "copies"))
            is = (int64_t)atomic_load(&of->copies);
        stage_same(stage, what, is, stage_number(stage, words[2]));
    }
}

/* Takes what was begun: a task "3", what a worker does "gpu0", a copy of data "a" or "a>gpu0". */
static inline struct duet__engine_command stage_take(struct stage *stage, const char *word)
{
    if (!word)
        stage_fail(stage, "it is not said what ends");
    const char *to = strchr(word, '>');
    const int worker = stage_worker(stage, word);
    for (unsigned i = 0; i < stage->begun_count; i++) {
        const struct duet__engine_command command = stage->begun[i];
        bool found;
        if (worker >= 0)
            found = command.worker == (unsigned)worker;
        else if (g_ascii_isdigit(word[0]))
            found =
                command.kind == DUET_RUN && (int64_t)command.task->id == stage_number(stage, word);
        else
            found = command.kind == DUET_COPY && command.copy->handle == stage_data(stage, word) &&
                    (!to || command.copy->destination == stage_node(stage, to + 1, strlen(to + 1)));
        if (found) {
            stage->begun[i] = stage->begun[--stage->begun_count];
            return command;
        }
    }
    stage_fail(stage, "it was not begun");
    return (struct duet__engine_command){.kind = DUET_IDLE};
}

/* Does a statement about what workers do; false: it is none. */
static inline bool stage_engine(struct stage *stage, char **words)
{
    struct testing *t = stage->t;
    const int worker = words[1] ? stage_worker(stage, words[1]) : -1;
    if (stage_is(words, "done") || stage_is(words, "lost")) {
        const struct duet__engine_command command = stage_take(stage, words[1]);
        const bool lost = words[0][0] == 'l';
        testing_done(t, &command, stage->seconds, lost ? DUET_ELOST : stage_error(stage, words[2]));
        if (lost)
            stage_same(stage, "the next command", testing_next(t, command.worker).kind, DUET_IDLE);
    } else if (stage_is(words, "lose")) {
        lose(t, (unsigned)worker);
    } else if (stage_is(words, "wake") || stage_is(words, "hush")) {
        t->woken[worker] = words[0][0] == 'w';
    } else if (stage_is(words, "woken") || stage_is(words, "unwoken")) {
        stage_same(stage, words[1], t->woken[worker], words[0][0] == 'w');
    } else if (stage_is(words, "go")) {
        stage_same(stage, "the number of tasks", go(t, &stage->log), stage_number(stage, words[1]));
    } else if (stage_is(words, "drain")) {
        testing_drain(t);
    } else if (stage_is(words, "us")) {
        stage->seconds = 1e-6 * (double)stage_number(stage, words[1]);
    } else if (stage_is(words, "copies")) {
        stage_same(stage, "the number of copies", stage->log.count - stage->copies_seen,
                   stage_number(stage, words[1]));
        stage->copies_seen = stage->log.count;
    } else if (stage_is(words, "copied")) {
        if (stage->copies_seen == stage->log.count)
            stage_fail(stage, "there was no more copy");
        stage_same_copy(stage, &stage->log.copies[stage->copies_seen++], words + 1);
    } else if (stage_is(words, "route")) {
        struct duet_machine *machine = &t->core->machine;
        unsigned source, destination;
        stage_route(stage, words[1], &source, &destination);
        struct duet_route *route = &machine->routes[source * machine->node_count + destination];
        route->direct = true;
        route->bandwidth_Bps = 1e6 * (double)stage_number(stage, words[2]);
    } else {
        return false;
    }
    return true;
}

/* ------------------------------------------------------------------------------------------- */
/* The application                                                                              */

/* Does a call with the data of the next word, and an error behind that; false: it is none. */
static inline bool stage_call(struct stage *stage, char **words)
{
    static const struct {
        const char *name;
        int (*call)(struct duet_runtime *core, struct duet_handle *handle);
    } calls[] = {{"release", duet_release}, {"unregister", duet_unregister},
                 {"uncut", duet_uncut},     {"leave", duet_unregister_submit},
                 {"unused", duet_wont_use}, {"invalidate", duet_invalidate}};
    struct duet_runtime *core = stage->t->core;
    int error = DUET_OK;
    unsigned next = 2;
    if (stage_is(words, "wait") || stage_is(words, "recover")) {
        error = words[0][0] == 'w' ? duet_wait(core) : duet_recover(core);
        next = 1;
    } else if (stage_is(words, "acquire")) {
        const struct duet_access access = stage_access(stage, words[1]);
        error = duet_acquire(core, access.handle, access.mode);
    } else if (stage_is(words, "await")) {
        error = duet_ref_wait(core, *stage_ref(stage, words[1]));
    } else if (stage_is(words, "temporary")) {
        error = duet_register_temporary(core, 10, 10, 8, stage_place(stage, words[1]));
    } else if (stage_is(words, "prefetch")) {
        error = duet_prefetch(core, stage_data(stage, words[1]),
                              stage_node(stage, words[2], strlen(words[2])));
        next = 3;
    } else if (stage_is(words, "cut")) {
        struct duet_handle **place = stage_place(stage, words[1]);
        error = duet_cut_blocks(core, *place, (size_t)stage_number(stage, words[2]), 1, place + 1);
        next = 3;
    } else {
        size_t i = 0;
        while (i < G_N_ELEMENTS(calls) && !stage_is(words, calls[i].name))
            i++;
        if (i == G_N_ELEMENTS(calls))
            return false;
        error = calls[i].call(core, stage_data(stage, words[1]));
    }
    stage_same(stage, "its result", error, stage_error(stage, words[next]));
    return true;
}

/* Submits a task from a kernel that has begun: a device's is linked once the kernel ends. */
static inline void stage_inside(struct stage *stage, int worker, char **words)
{
    struct testing *t = stage->t;
    t->hold = true;
    stage_same(stage, "its result", stage_task(stage, NULL, words), DUET_OK);
    t->hold = false;
    if ((unsigned)worker < t->cpus) {
        duet__link(t->core, t->held, worker, t->now, &t->ops);
        return;
    }
    for (unsigned i = 0; i < stage->begun_count; i++)
        if (stage->begun[i].worker == (unsigned)worker)
            duet__link_after(stage->begun[i].task, t->held);
}

/* Does a call that cannot fail, or registers data; false: it is none. */
static inline bool stage_application(struct stage *stage, char **words)
{
    if (stage_is(words, "data")) {
        while (*++words) {
            const char *times = strchr(*words, '*');
            const int64_t blocks = times ? stage_number(stage, times + 1) : 1;
            *stage_place(stage, *words) = testing_handle(stage->t, (size_t)blocks * SLAB_ALIGN);
        }
    } else if (stage_is(words, "plan")) {
        stage_add_plan(stage, words);
    } else if (stage_is(words, "drop")) {
        duet_ref_free(*stage_ref(stage, words[1]));
        *stage_ref(stage, words[1]) = NULL;
    } else if (stage_is(words, "inside")) {
        stage_inside(stage, stage_worker(stage, words[1]), words + 2);
    } else if (stage_is(words, "reset")) {
        duet_stats_reset(stage->t->core);
    } else if (stage_is(words, "cancel")) {
        duet_cancel(stage->t->core);
    } else if (stage_is(words, "stop")) {
        duet__core_stop(stage->t->core);
    } else {
        return stage_call(stage, words);
    }
    return true;
}

/* ------------------------------------------------------------------------------------------- */
/* Checks                                                                                       */

static inline void stage_order(struct stage *stage, char **words)
{
    uint64_t ids[64];
    const unsigned count = plan_order(stage->t, ids, G_N_ELEMENTS(ids));
    stage_same(stage, "the number of tasks", count, g_strv_length(words + 1));
    for (unsigned i = 0; i < count; i++)
        stage_same(stage, "the next one", (int64_t)ids[i], stage_number(stage, words[1 + i]));
}

/* Checks what is no number of the core; false: the statement is none of these. */
static inline bool stage_check(struct stage *stage, char **words)
{
    struct duet_runtime *core = stage->t->core;
    g_autofree char *text = words[1] ? g_strjoinv(" ", words + 1) : NULL;
    if (stage_is(words, "valid")) {
        const struct duet_handle *handle = stage_data(stage, words[1]);
        for (unsigned n = 0; n < core->machine.node_count; n++)
            stage_same(stage, core->machine.nodes[n].name, bit_test(handle->valid, n),
                       g_strv_contains((const char *const *)(words + 2),
                                       core->machine.nodes[n].name));
    } else if (stage_is(words, "good") || stage_is(words, "bad")) {
        for (unsigned i = 1; words[i]; i++)
            stage_same(stage, words[i], duet_valid(core, stage_data(stage, words[i])),
                       words[0][0] == 'g');
    } else if (stage_is(words, "address")) {
        stage_same(stage, "its address", duet_address(stage_data(stage, words[1])) != NULL,
                   stage_number(stage, words[2]));
    } else if (stage_is(words, "ended") || stage_is(words, "pending")) {
        for (unsigned i = 1; words[i]; i++)
            stage_same(stage, words[i], duet_ref_ended(*stage_ref(stage, words[i])),
                       words[0][0] == 'e');
    } else if (stage_is(words, "expanded")) {
        stage_same(stage, "its calls", stage_plan(stage, words[1])->calls,
                   stage_number(stage, words[2]));
    } else if (stage_is(words, "differ")) {
        g_assert_true(stage_data(stage, words[1]) != stage_data(stage, words[2]));
    } else if (stage_is(words, "error")) {
        stage_same(stage, "its error", atomic_load(&core->error), stage_error(stage, words[1]));
    } else if (stage_is(words, "says")) {
        TOLD(core, text);
    } else if (stage_is(words, "order")) {
        stage_order(stage, words);
    } else if (stage_is(words, "failures")) {
        struct duet_failures failures;
        duet_failures(core, &failures);
        stage_same(stage, "failed", (int64_t)failures.failed, stage_number(stage, words[1]));
        stage_same(stage, "cancelled", (int64_t)failures.cancelled, stage_number(stage, words[2]));
    } else if (stage_is(words, "end")) {
        stage_same(stage, "what is begun still", stage->begun_count, 0);
        const char *why = text ? strchr(text, ' ') : NULL;
        lost_end(stage->t, stage_error(stage, words[1]), why ? why + 1 : NULL);
        stage->ended = true;
    } else if (stage_is(words, "fini")) {
        testing_fini(stage->t);
        stage->ended = true;
    } else {
        return false;
    }
    return true;
}

/* A number of the core, or of a memory ("pinned gpu0 2"). */
static inline void stage_figure(struct stage *stage, char **words)
{
    struct duet_stats stats;
    const struct duet_runtime *core = stage->t->core;
    const bool of_node = words[1] && words[2];
    const struct node *node =
        &core->nodes[of_node ? stage_node(stage, words[1], strlen(words[1])) : DUET_HOST];
    uint64_t handles = 0;
    for (const struct duet_handle *h = core->handles; h; h = h->next)
        handles++;
    duet_stats(core, &stats);
    const struct {
        const char *name;
        uint64_t is;
    } figures[] = {{"tasks", stats.tasks},
                   {"accesses", stats.accesses},
                   {"bytes_to_device", stats.bytes_to_device},
                   {"bytes_between", stats.bytes_between},
                   {"copies_to_device", stats.copies_to_device},
                   {"copies_to_host", stats.copies_to_host},
                   {"evictions", stats.evictions},
                   {"write_backs", stats.write_backs},
                   {"reads_on_device", stats.reads_on_device},
                   {"read_hits", stats.read_hits},
                   {"merged", stats.merged},
                   {"pops", stats.pops},
                   {"steals", stats.steals},
                   {"revocations", stats.revocations},
                   {"busy_us", (uint64_t)(1e6 * stats.busy_s + 0.5)},
                   {"critical_us", (uint64_t)(1e6 * stats.critical_path_s + 0.5)},
                   {"submissions", stage->t->ops.submissions},
                   {"unfinished", unfinished(core)},
                   {"finished", duet_tasks_done(core)},
                   {"handles", handles},
                   {"registered_bytes", duet__registered_bytes(core)},
                   {"spare_bytes", core->spare_bytes},
                   {"forgotten", stage->t->forgotten},
                   {"pinned", atomic_load(&node->pinned)},
                   {"blocked", atomic_load(&node->blocked)},
                   {"used", node->slab.used_bytes / SLAB_ALIGN}};
    for (size_t i = 0; i < G_N_ELEMENTS(figures); i++)
        if (stage_is(words, figures[i].name)) {
            stage_same(stage, words[0], (int64_t)figures[i].is,
                       stage_number(stage, words[1 + of_node]));
            return;
        }
    stage_fail(stage, "the statement is not known");
}

/* ------------------------------------------------------------------------------------------- */
/* Scripts                                                                                      */

static inline void stage_step(struct stage *stage, char **words)
{
    static const char *const kernels[] = {"any", "cpu", "gpu", "split", NULL};
    for (int64_t n = g_ascii_isdigit(words[0][0]) ? stage_number(stage, words[0]) : 0; n > 1; n--)
        stage_step(stage, words + 1);
    words += g_ascii_isdigit(words[0][0]);
    const int worker = stage_worker(stage, words[0]);
    g_autofree char *kernel = g_strdelimit(g_strdup(words[0]), "@!=<>", '\0');
    if (stage->more->step && stage->more->step(stage, words))
        return;
    if (worker >= 0)
        stage_of_worker(stage, worker, words);
    else if (g_strv_contains(kernels, kernel))
        stage_same(stage, "its result", stage_task(stage, NULL, words), DUET_OK);
    else if (!stage_engine(stage, words) && !stage_application(stage, words) &&
             !stage_check(stage, words))
        stage_figure(stage, words);
}

/*
 * Makes the machine, of which the words say: cpus=1, gpus=2, kinds=2 of them, blocks=4 of memory
 * each, window=2, short=6, no-peer, peers=4 (copies between devices are so many times as fast as
 * usual, and share no link), keep-going, computes, unasked (else all workers have been idle
 * before), and the policy, if it is not eager.
 */
static inline void stage_open(struct stage *stage)
{
    g_auto(GStrv) words = g_strsplit(stage->script->machine, " ", -1);
    struct testing_machine make = {0};
    const char *policy = "eager";
    static const char *const names[] = {"cpus=",   "gpus=",  "kinds=", "blocks=",
                                        "window=", "short=", "peers="};
    static const char *const options[] = {"no-peer", "keep-going", "computes", "unasked"};
    unsigned blocks = 0, peers = 0;
    bool keep_going = false, computes = false, unasked = false;
    for (unsigned i = 0; words[i]; i++) {
        const char *equals = strchr(words[i], '=');
        const unsigned number = equals ? (unsigned)stage_number(stage, equals + 1) : 0;
        unsigned *const numbers[] = {&make.cpus,   &make.gpus,         &make.gpu_archs, &blocks,
                                     &make.window, &make.window_short, &peers};
        bool *const flags[] = {&make.no_peer, &keep_going, &computes, &unasked};
        size_t n = 0, f = 0;
        while (n < G_N_ELEMENTS(numbers) && !g_str_has_prefix(words[i], names[n]))
            n++;
        while (f < G_N_ELEMENTS(flags) && strcmp(words[i], options[f]) != 0)
            f++;
        if (n < G_N_ELEMENTS(numbers))
            *numbers[n] = number;
        else if (f < G_N_ELEMENTS(flags))
            *flags[f] = true;
        else if (*words[i])
            policy = words[i];
    }
    make.capacity_bytes = (uint64_t)blocks * SLAB_ALIGN;
    const struct duet_policy *with = stage->more->policy;
    struct testing *t = testing_init_policy(&make, with ? with : duet_policy_find(policy), 1);
    stage->t = t;
    for (unsigned w = 0; w < t->workers && !unasked; w++)
        stage_same(stage, "the first command", testing_next(t, w).kind, DUET_IDLE);
    for (unsigned i = 0; peers && i < (1 + make.gpus) * (1 + make.gpus); i++) {
        struct duet_route *route = &t->core->machine.routes[i];
        if (i > make.gpus && i % (1 + make.gpus)) {
            route->count = 0;
            route->bandwidth_Bps *= peers;
        }
    }
    stage->t->core->keep_going = keep_going;
    stage->t->core->computes = computes;
}

/* A core on such a machine, for a test that is no script. */
static inline struct testing *stage_of(const char *machine)
{
    struct stage stage = {.script = &(struct script){"a test", machine, ""},
                          .more = &(struct stage_more){NULL},
                          .step = machine};
    stage_open(&stage);
    return stage.t;
}

static inline void script_play_variant(const struct script *script, const struct stage_more *more,
                                       unsigned number, unsigned *count)
{
    struct stage *stage = g_new0(struct stage, 1);
    g_autofree char *machine = script_variant(script->machine, number, count);
    g_autofree char *text = script_variant(script->steps, number, count);
    g_autofree char *whole = g_strconcat(text, ";end", NULL);
    g_auto(GStrv) steps = g_strsplit(whole, ";", -1);
    const struct script variant = {script->name, machine, text};
    stage->script = &variant;
    stage->more = more;
    stage->seconds = 1e-6;
    stage->step = machine;
    stage_open(stage);
    for (unsigned i = 0; steps[i] && !stage->ended; i++) {
        g_auto(GStrv) words = g_strsplit(g_strstrip(steps[i]), " ", -1);
        stage->step = steps[i];
        if (words[0])
            stage_step(stage, words);
    }
    for (unsigned i = 0; i < stage->plan_count; i++)
        g_strfreev(stage->plans[i].steps);
    for (unsigned i = 0; i < G_N_ELEMENTS(stage->refs); i++)
        duet_ref_free(stage->refs[i]);
    g_free(stage);
}

/* Plays scripts, each in all its variants. */
static inline void scripts_play_with(const struct script *scripts, size_t count,
                                     const struct stage_more *more)
{
    for (size_t i = 0; i < count; i++) {
        unsigned variants = 1;
        for (unsigned number = 0; number < variants; number++)
            script_play_variant(&scripts[i], more, number, &variants);
    }
}

static inline void scripts_play(const struct script *scripts, size_t count)
{
    scripts_play_with(scripts, count, &(struct stage_more){NULL});
}

/* As TEST_MAIN, and defines test_scripts, one of them, which plays the file's scripts. */
#define SCRIPTS_MAIN(...)                                                                          \
    static void test_scripts(void)                                                                 \
    {                                                                                              \
        scripts_play(scripts, G_N_ELEMENTS(scripts));                                              \
    }                                                                                              \
    TEST_MAIN(__VA_ARGS__)

#endif
