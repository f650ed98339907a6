/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs random programs on the core and the same programs in order by one thread: contents must be
 * equal, or the run have failed as it was made to.
 *
 * DUET_TEST_LONG=N multiplies the number of programs by N.
 */
#ifndef DUET_CORE_TESTING_RANDOM_H
#define DUET_CORE_TESTING_RANDOM_H

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "core/testing_program.h"

enum { WATCHDOG_S = 100 };

struct run {
    const struct setting *setting;
    struct engine *engine;
    struct duet_codelet *codelets[KINDS], *add;
    size_t words[HANDLES];
    uint64_t real[HANDLES][WORDS_MAX], expected[HANDLES][WORDS_MAX];
    uint64_t real_sums[SUMS][SUM_WORDS], expected_sums[SUMS][SUM_WORDS];
    struct duet_handle *handles[HANDLES], *sums[SUMS];
    struct step *steps;   /* those of submitter s begin at s * setting->steps */
    _Atomic(int) refused; /* the first error of a submission */
};

/* ------------------------------------------------------------------------------------------- */
/* Nested tasks: they add, so that their order does not matter                                  */

/* What an adding task carries. */
struct addition {
    struct run *run;
    uint64_t salt;
    unsigned deeper; /* tasks that it submits in turn */
};

static inline unsigned sum_of(uint64_t salt)
{
    return (unsigned)(salt % SUMS);
}

static inline void add_to(uint64_t *words, uint64_t salt)
{
    for (uint64_t j = 0; j < SUM_WORDS; j++)
        words[j] += mix(salt + j);
}

static inline void check_submit(struct run *run, const struct duet_task_desc *desc)
{
    int none = DUET_OK, error = duet_submit(run->engine->core, desc);
    if (error)
        (void)atomic_compare_exchange_strong(&run->refused, &none, error);
}

static inline void submit_addition(struct run *run, uint64_t salt, unsigned deeper)
{
    struct addition addition = {.run = run, .salt = salt, .deeper = deeper};
    struct duet_access access = {run->sums[sum_of(salt)], DUET_RW};
    struct duet_task_desc desc = {.codelet = run->add,
                                  .accesses = &access,
                                  .access_count = 1,
                                  .args = &addition,
                                  .args_bytes = sizeof addition};
    check_submit(run, &desc);
}

static inline void submit_nested(struct run *run, uint64_t salt, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        submit_addition(run, mix(salt + 1000 + i), (unsigned)(salt >> i) % 3);
}

static inline void replay_addition(struct run *run, uint64_t salt, unsigned deeper)
{
    add_to(run->expected_sums[sum_of(salt)], salt);
    if (deeper)
        replay_addition(run, mix(salt + 2000), deeper - 1);
}

static inline void replay_nested(struct run *run, uint64_t salt, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        replay_addition(run, mix(salt + 1000 + i), (unsigned)(salt >> i) % 3);
}

/* ------------------------------------------------------------------------------------------- */
/* What tasks do                                                                                */

static inline void note_turn(struct engine *engine, const struct argument *argument)
{
    struct step *step = argument->step;
    if (argument->number)
        return;
    TESTING_MUST(step->turn == 0 || engine->setting->losses);
    step->turn = atomic_fetch_add(&engine->turn, 1) + 1;
}

static inline int run_task(struct engine *engine, struct duet_task *task, unsigned worker,
                           uint64_t *const *buffers, const size_t *words, const uint8_t *modes)
{
    struct run *run = engine->data;
    if (task->klass->codelet == run->add) {
        struct addition addition;
        memcpy(&addition, task->args, sizeof addition);
        add_to(buffers[0], addition.salt);
        if (addition.deeper)
            submit_addition(run, mix(addition.salt + 2000), addition.deeper - 1);
        return DUET_OK;
    }
    struct argument argument;
    memcpy(&argument, task->args, sizeof argument);
    note_turn(engine, &argument);
    if (argument.number == 0)
        submit_nested(run, argument.salt, argument.step->nested);
    argument.step->results[argument.number] =
        compute(argument.salt, buffers, words, modes, task->access_count);
    return DUET_OK;
}

static inline int submit_child(struct run *run, struct duet_expansion *expansion,
                               const struct family *family, struct duet_handle *const *blocks,
                               const struct argument *parent, unsigned c)
{
    struct argument carried = child_argument(family, parent, c);
    struct duet_access accesses[EXPAND_ACCESSES];
    for (unsigned a = 0; a < family->children[c].count; a++)
        accesses[a] = (struct duet_access){blocks[family->children[c].blocks[a]],
                                           (enum duet_mode)family->children[c].modes[a]};
    struct duet_task_desc desc = {.codelet = run->codelets[family->children[c].kind],
                                  .accesses = accesses,
                                  .access_count = family->children[c].count,
                                  .args = &carried,
                                  .args_bytes = sizeof carried,
                                  .priority = family->children[c].priority};
    return duet_expand_submit(expansion, &desc);
}

static inline int expand_task(struct duet_expansion *expansion, const struct duet_call *call)
{
    struct engine *engine = duet__core_engine(call->runtime);
    struct argument argument;
    struct family family;
    struct duet_handle *blocks[BLOCKS];
    size_t words[EXPAND_ACCESSES];
    memcpy(&argument, call->args, sizeof argument);
    note_turn(engine, &argument);
    if (argument.number == 0)
        submit_nested(engine->data, argument.salt, argument.step->nested);
    for (size_t i = 0; i < call->buffer_count; i++)
        words[i] = call->buffers[i].rows;
    make_family(&family, &argument, words, call->buffer_count);
    int error = DUET_OK;
    for (unsigned b = 0; b < family.block_count && !error; b++)
        error = duet_expand_block(expansion, family.blocks[b].access, family.blocks[b].first, 0,
                                  family.blocks[b].words, 1, &blocks[b]);
    for (unsigned c = 0; c < family.child_count && !error; c++)
        error = submit_child(engine->data, expansion, &family, blocks, &argument, c);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* The oracle                                                                                   */

static inline void replay_family(const struct argument *argument, uint64_t *const *buffers,
                                 const size_t *words, unsigned count);

static inline void replay_task(const struct argument *argument, bool expands,
                               uint64_t *const *buffers, const size_t *words, unsigned count)
{
    if (expands) {
        replay_family(argument, buffers, words, count);
        return;
    }
    uint64_t result = compute(argument->salt, buffers, words, argument->modes, count);
    g_assert_cmphex(argument->step->results[argument->number], ==, result);
}

static inline void replay_family(const struct argument *argument, uint64_t *const *buffers,
                                 const size_t *words, unsigned count)
{
    struct family family;
    make_family(&family, argument, words, count);
    for (unsigned c = 0; c < family.child_count; c++) {
        struct argument child = child_argument(&family, argument, c);
        uint64_t *parts[EXPAND_ACCESSES];
        size_t lengths[EXPAND_ACCESSES];
        for (unsigned a = 0; a < family.children[c].count; a++) {
            unsigned b = family.children[c].blocks[a];
            parts[a] = buffers[family.blocks[b].access] + family.blocks[b].first;
            lengths[a] = family.blocks[b].words;
        }
        replay_task(&child, family.children[c].kind == EXPANDS, parts, lengths,
                    family.children[c].count);
    }
}

static inline void replay(struct run *run, struct step *step)
{
    uint64_t *buffers[ACCESSES];
    size_t words[ACCESSES];
    struct argument argument = step_argument(step);
    for (unsigned i = 0; i < step->count; i++) {
        buffers[i] = run->expected[step->handles[i]];
        words[i] = run->words[step->handles[i]];
    }
    replay_task(&argument, step->kind == EXPANDS, buffers, words, step->count);
    replay_nested(run, step->salt, step->nested);
}

/* ------------------------------------------------------------------------------------------- */
/* The application                                                                              */

static struct duet_runtime *volatile watched;

/* Waits for the alarm, which all threads block. */
static inline void *watch(void *argument)
{
    const sigset_t *alarms = argument;
    struct duet_message message = {""};
    int number;
    while (sigwait(alarms, &number)) {
    }
    duet__explain(watched, &message);
    g_printerr("no end after %d s: %s\n", WATCHDOG_S, message.text);
    _exit(1);
}

/* Starts the watchdog of all runs of the program. */
static inline void watch_start(void)
{
    static sigset_t alarms;
    pthread_t watchdog;
    (void)sigemptyset(&alarms);
    (void)sigaddset(&alarms, SIGALRM);
    (void)pthread_sigmask(SIG_BLOCK, &alarms, NULL);
    g_assert_cmpint(pthread_create(&watchdog, NULL, watch, &alarms), ==, 0);
    (void)pthread_detach(watchdog);
}

static inline void attach(struct run *run, unsigned h)
{
    g_assert_cmpint(duet_vector(run->engine->core, run->real[h], run->words[h], sizeof(uint64_t),
                                &run->handles[h]),
                    ==, DUET_OK);
}

/* A call of a run that may fail as it was made to, and in no other way. */
static inline void check_error(const struct run *run, int error)
{
    const struct engine_setting *engine = &run->setting->engine;
    const char *message = error ? duet_last_message(run->engine->core) : "";
    bool expected = error == DUET_OK || (error == DUET_ELOST && engine->losses) ||
                    (error == DUET_EIO && (engine->fail_kernel || engine->fail_copy)) ||
                    (error == DUET_ECANCELED && engine->cancel_at);
    if (!expected || (error && !*message))
        g_error("%s, seed %" G_GUINT64_FORMAT ": %s (%s)", engine->policy, engine->seed,
                duet_strerror(error), message);
}

/* The application looks at a handle, which it may not do while tasks use it. */
static inline void look_at(struct run *run, uint64_t *rng)
{
    struct duet_runtime *core = run->engine->core;
    unsigned h = duet_random_below(rng, HANDLES);
    uint64_t kind = duet_random_below(rng, 4);
    if (kind == 0) {
        check_error(run, duet_unregister(core, run->handles[h]));
        run->real[h][0] = mix(run->real[h][0]);
        attach(run, h);
        return;
    }
    enum duet_mode mode = (enum duet_mode)kind;
    check_error(run, duet_acquire(core, run->handles[h], mode));
    if (mode & DUET_W)
        for (size_t j = 0; j < run->words[h]; j++)
            run->real[h][j] = mode == DUET_W ? j : mix(run->real[h][j]);
    g_assert_cmpint(duet_release(core, run->handles[h]), ==, DUET_OK);
}

/* The same in the oracle; draws the same numbers. */
static inline void replay_look_at(struct run *run, uint64_t *rng)
{
    unsigned h = duet_random_below(rng, HANDLES);
    uint64_t kind = duet_random_below(rng, 4);
    if (kind == 0)
        run->expected[h][0] = mix(run->expected[h][0]);
    for (size_t j = 0; (kind & DUET_W) && j < run->words[h]; j++)
        run->expected[h][j] = kind == DUET_W ? j : mix(run->expected[h][j]);
}

struct submitter {
    struct run *run;
    unsigned number;
    pthread_t id;
};

static inline void submit_step(struct run *run, struct step *step)
{
    struct argument carried = step_argument(step);
    struct duet_access accesses[ACCESSES];
    for (unsigned a = 0; a < step->count; a++)
        accesses[a] =
            (struct duet_access){run->handles[step->handles[a]], (enum duet_mode)step->modes[a]};
    struct duet_task_desc desc = {.codelet = run->codelets[step->kind],
                                  .accesses = accesses,
                                  .access_count = step->count,
                                  .args = &carried,
                                  .args_bytes = sizeof carried,
                                  .priority = step->priority,
                                  .where = duet_where(run->engine->core, step->where)};
    check_submit(run, &desc);
}

static inline void *submit(void *argument)
{
    const struct submitter *self = argument;
    struct run *run = self->run;
    uint64_t rng = duet_random_stream(run->setting->engine.seed, 77);
    for (unsigned i = 0; i < run->setting->steps; i++) {
        submit_step(run, &run->steps[self->number * run->setting->steps + i]);
        if (run->setting->acquire && i % 8 == 7)
            look_at(run, &rng);
    }
    return NULL;
}

static inline void submit_all(struct run *run)
{
    struct submitter submitters[4];
    unsigned count = run->setting->submitters;
    for (unsigned s = 0; s < count; s++) {
        submitters[s] = (struct submitter){.run = run, .number = s};
        if (run->setting->engine.alone)
            (void)submit(&submitters[s]);
        else
            g_assert_cmpint(pthread_create(&submitters[s].id, NULL, submit, &submitters[s]), ==, 0);
    }
    for (unsigned s = 0; s < count && !run->setting->engine.alone; s++)
        (void)pthread_join(submitters[s].id, NULL);
}

/* ------------------------------------------------------------------------------------------- */
/* A run                                                                                        */

/*
 * Tasks of several submitters on the same handles have no order of their own: any in which they
 * ran is right, if data was coherent in that order.
 */
static inline void check_contents(struct run *run)
{
    unsigned total = run->setting->steps * run->setting->submitters;
    uint64_t rng = duet_random_stream(run->setting->engine.seed, 77);
    for (unsigned s = 0; s < run->setting->submitters; s++)
        check_order(run->setting, &run->steps[s * run->setting->steps]);
    if (run->setting->submitters > 1)
        qsort(run->steps, total, sizeof *run->steps, by_turn);
    for (unsigned i = 0; i < total; i++) {
        replay(run, &run->steps[i]);
        if (run->setting->acquire && i % 8 == 7)
            replay_look_at(run, &rng);
    }
    for (unsigned h = 0; h < HANDLES; h++)
        g_assert_cmpmem(run->real[h], run->words[h] * sizeof(uint64_t), run->expected[h],
                        run->words[h] * sizeof(uint64_t));
    g_assert_cmpmem(run->real_sums, sizeof run->real_sums, run->expected_sums,
                    sizeof run->expected_sums);
}

static inline struct duet_codelet *codelet_of(struct run *run, const char *name, bool cpu, bool gpu)
{
    struct duet_codelet *codelet = NULL;
    struct duet_implementation implementations[] = {{.arch = cpu ? "cpu" : "cuda"},
                                                    {.arch = "cuda"}};
    struct duet_codelet_desc desc = {.name = name,
                                     .implementations = implementations,
                                     .implementation_count = 1 + (cpu && gpu)};
    struct duet_codelet_desc expanding = {.name = name, .expand = expand_task};
    g_assert_cmpint(duet_codelet(run->engine->core, cpu || gpu ? &desc : &expanding, &codelet), ==,
                    DUET_OK);
    return codelet;
}

static inline void make_codelets(struct run *run)
{
    const struct testing_machine *machine = &run->setting->engine.machine;
    run->codelets[ANY] = codelet_of(run, "any", true, true);
    run->codelets[CPUS] = machine->cpus ? codelet_of(run, "cpus", true, false) : NULL;
    run->codelets[DEVICES] =
        machine->gpus ? codelet_of(run, "devices", false, true) : run->codelets[ANY];
    run->codelets[EXPANDS] = codelet_of(run, "expands", false, false);
    run->add = codelet_of(run, "add", true, true);
}

static inline struct run *run_new(const struct setting *setting)
{
    struct run *run = g_new0(struct run, 1);
    uint64_t rng = duet_random_stream(setting->engine.seed, 5);
    run->setting = setting;
    run->engine = engine_new(&setting->engine);
    run->engine->data = run;
    run->steps = g_new0(struct step, (size_t)setting->steps * setting->submitters);
    make_codelets(run);
    for (unsigned h = 0; h < HANDLES; h++) {
        run->words[h] = 1 + duet_random_below(&rng, WORDS_MAX);
        for (size_t j = 0; j < run->words[h]; j++)
            run->real[h][j] = run->expected[h][j] = duet_random_next(&rng);
        attach(run, h);
    }
    for (unsigned i = 0; i < SUMS; i++)
        g_assert_cmpint(duet_vector(run->engine->core, run->real_sums[i], SUM_WORDS,
                                    sizeof(uint64_t), &run->sums[i]),
                        ==, DUET_OK);
    for (unsigned s = 0; s < setting->submitters; s++)
        for (unsigned i = 0; i < setting->steps; i++)
            make_step(setting, s, &rng, &run->steps[s * setting->steps + i]);
    return run;
}

static inline void run_free(struct run *run)
{
    for (unsigned i = 0; i < run->setting->steps * run->setting->submitters; i++)
        g_free(run->steps[i].results);
    g_free(run->steps);
    g_free(run);
}

/* Runs a program to its end and checks what there is to check. true: it has not failed. */
static inline bool execute(const struct setting *setting)
{
    struct run *run = run_new(setting);
    struct duet_runtime *core = run->engine->core;
    watched = core;
    (void)alarm(WATCHDOG_S);
    engine_start(run->engine);
    submit_all(run);
    int error = duet_wait(core);
    check_error(run, error);
    check_error(run, atomic_load(&run->refused));
    g_assert_cmpuint(unfinished(core), ==, 0);
    for (unsigned h = 0; h < HANDLES + SUMS; h++) {
        int end = duet_unregister(core, h < HANDLES ? run->handles[h] : run->sums[h - HANDLES]);
        check_error(run, end);
        g_assert_true(!error || end == error); /* the first one stays */
        error = end;
    }
    if (!error)
        check_contents(run);
    duet__core_stop(core);
    (void)alarm(0);
    duet__core_free(core);
    run_free(run);
    return !error;
}

/* ------------------------------------------------------------------------------------------- */
/* Settings                                                                                     */

static inline unsigned repetitions(void)
{
    const char *text = g_getenv("DUET_TEST_LONG");
    unsigned long times = text ? strtoul(text, NULL, 10) : 1;
    return times ? (unsigned)times : 1;
}

/* The same setting with every policy and several seeds. How many of the runs have not failed. */
static inline unsigned all(struct setting setting, unsigned seeds)
{
    unsigned good = 0;
    setting.engine.compute = run_task;
    for (unsigned seed = 0; seed < seeds * repetitions(); seed++) {
        for (size_t p = 0; duet_policy_at(p); p++) {
            setting.engine.policy = duet_policy_at(p)->name;
            setting.engine.seed = seed * 100 + p;
            setting.engine.spin = seed % 2;
            good += execute(&setting);
        }
    }
    return good;
}

#endif
