/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of the whole library: carries a random program out, by several threads of the
 * application, and compares what it leaves with the same program carried out in order by one.
 */
#ifndef DUET_REAL_TESTING_RANDOM_RUN_H
#define DUET_REAL_TESTING_RANDOM_RUN_H

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include <duet/trace.h>

#include "real/testing_random_tasks.h"

/* How many times as many programs as usual: DUET_TEST_LONG. */
static inline unsigned testing_repetitions(void)
{
    const char *text = g_getenv("DUET_TEST_LONG");
    unsigned times = text ? (unsigned)g_ascii_strtoull(text, NULL, 10) : 1;
    return times ? times : 1;
}

/* Then they are longer, too. */
static inline unsigned testing_length(void)
{
    return testing_repetitions() > 1 ? 10 : 1;
}

enum { WATCHDOG_S = 200 };

/* A run may fail as it was made to, and in no other way. */
static inline bool expected(const struct setting *setting, int error)
{
    return error == DUET_OK || (error == DUET_ELOST && losing(setting)) ||
           (error == DUET_EIO && setting->fail_kernel) ||
           (error == DUET_ETASK && setting->breaks) ||
           (error == DUET_ECANCELED && (setting->cancel_at || setting->cancel_step));
}

static inline void check_error(const struct run *run, int error)
{
    if (!expected(&run->setting, error))
        g_error("program %" G_GUINT64_FORMAT ": %s (%s)", run->setting.seed, duet_strerror(error),
                duet_last_message(run->duet));
}

/* ------------------------------------------------------------------------------------------- */
/* The oracle                                                                                   */

static inline void replay_task(const struct argument *argument, bool expands,
                               const struct duet_buffer *buffers, unsigned count)
{
    struct run *run = argument->step->run;
    if (!expands) {
        uint64_t result = compute(argument->salt, buffers, argument->modes, count);
        g_assert_cmphex(argument->step->results[argument->number], ==, result);
        run->tasks++;
        return;
    }
    struct family family;
    make_family(&family, argument, buffers, count);
    for (unsigned c = 0; c < family.child_count; c++) {
        struct argument child = child_argument(&family, argument, c);
        struct duet_buffer parts[EXPAND_ACCESSES];
        for (unsigned a = 0; a < family.children[c].count; a++) {
            const struct block *block = &family.blocks[family.children[c].blocks[a]];
            parts[a] = buffers[block->access];
            parts[a].data = word(&parts[a], block->row, block->col);
            parts[a].rows = block->rows;
            parts[a].cols = block->cols;
        }
        replay_task(&child, family.children[c].kind == EXPANDS, parts, family.children[c].count);
    }
}

/* What the application does to a matrix it has acquired, or unregistered. */
static inline uint64_t touch(const struct step *step, const struct duet_buffer *buffer)
{
    return compute(step->salt, buffer, step->modes, 1);
}

static inline void replay(struct run *run, struct step *step)
{
    struct duet_buffer buffers[ACCESSES];
    struct argument argument = step_argument(step);
    for (unsigned i = 0; i < step->count; i++)
        buffers[i] = run->expected[step->handles[i]];
    if (step->kind < KINDS) {
        replay_task(&argument, step->kind == EXPANDS, buffers, step->count);
        replay_nested(run, step->salt, step->nested);
    } else if (step->kind != WAIT) {
        g_assert_cmphex(step->results[0], ==, touch(step, buffers));
    }
}

/* ------------------------------------------------------------------------------------------- */
/* The application                                                                              */

static inline void attach(struct run *run, unsigned h)
{
    const struct duet_buffer *buffer = &run->real[h];
    g_assert_cmpint(duet_matrix(run->duet, buffer->data, buffer->rows, buffer->cols, buffer->ld,
                                sizeof(uint64_t), &run->handles[h]),
                    ==, DUET_OK);
}

static inline void submit_step(struct run *run, struct step *step)
{
    struct argument carried = step_argument(step);
    struct duet_access accesses[ACCESSES];
    for (unsigned a = 0; a < step->count; a++)
        accesses[a] =
            (struct duet_access){run->handles[step->handles[a]], (enum duet_mode)step->modes[a]};
    const struct duet_task_desc desc = {
        .codelet = run->codelets[step->kind],
        .accesses = accesses,
        .access_count = step->count,
        .args = &carried,
        .args_bytes = sizeof carried,
        .priority = step->priority,
        .where = step->on_device ? duet_where(run->duet, run->setting.device.arch) : 0,
    };
    submit_task(run, &desc);
}

static inline void look(struct run *run, struct step *step)
{
    unsigned h = step->handles[0];
    check_error(run, duet_acquire(run->duet, run->handles[h], (enum duet_mode)step->modes[0]));
    step->turn = atomic_fetch_add(&run->turn, 1) + 1;
    step->results[0] = touch(step, &run->real[h]);
    g_assert_cmpint(duet_release(run->duet, run->handles[h]), ==, DUET_OK);
}

static inline void renew(struct run *run, struct step *step)
{
    unsigned h = step->handles[0];
    check_error(run, duet_unregister(run->duet, run->handles[h]));
    step->turn = atomic_fetch_add(&run->turn, 1) + 1;
    step->results[0] = touch(step, &run->real[h]);
    attach(run, h);
}

struct submitter {
    struct run *run;
    struct step *steps;
    pthread_t id;
};

static inline void *submit(void *argument)
{
    const struct submitter *self = argument;
    struct run *run = self->run;
    for (unsigned i = 0; i < run->setting.steps; i++) {
        struct step *step = &self->steps[i];
        if (self->steps == run->steps && i + 1 == run->setting.cancel_step)
            duet_cancel(run->duet);
        if (step->kind < KINDS)
            submit_step(run, step);
        else if (step->kind == LOOK)
            look(run, step);
        else if (step->kind == RENEW)
            renew(run, step);
        else
            check_error(run, duet_wait(run->duet));
        if (step->kind == WAIT)
            step->turn = atomic_fetch_add(&run->turn, 1) + 1;
    }
    return NULL;
}

static inline void submit_all(struct run *run)
{
    struct submitter submitters[SUBMITTERS_MAX];
    for (unsigned s = 0; s < run->setting.submitters; s++) {
        submitters[s] =
            (struct submitter){.run = run, .steps = &run->steps[s * run->setting.steps]};
        g_assert_cmpint(pthread_create(&submitters[s].id, NULL, submit, &submitters[s]), ==, 0);
    }
    for (unsigned s = 0; s < run->setting.submitters; s++)
        (void)pthread_join(submitters[s].id, NULL);
}

/*
 * Steps of several submitters on the same matrices have no order of their own: any in which they
 * ran is right, if data was coherent in that order.
 */
static inline void check_steps(struct run *run)
{
    unsigned total = run->setting.steps * run->setting.submitters;
    for (unsigned s = 0; s < run->setting.submitters; s++)
        check_order(&run->steps[s * run->setting.steps], run->setting.steps);
    if (run->setting.shared)
        qsort(run->steps, total, sizeof *run->steps, by_turn);
    for (unsigned i = 0; i < total; i++)
        replay(run, &run->steps[i]);
    g_assert_cmphex(atomic_load(&run->real_bare), ==, run->expected_bare);
}

static inline void check_contents(const struct run *run)
{
    for (unsigned h = 0; h < HANDLES; h++) /* what lies between the columns included */
        g_assert_cmpmem(run->real_words[h], sizeof run->real_words[h], run->expected_words[h],
                        sizeof run->expected_words[h]);
    g_assert_cmpmem(run->real_sums, sizeof run->real_sums, run->expected_sums,
                    sizeof run->expected_sums);
}

/* ------------------------------------------------------------------------------------------- */
/* A run                                                                                        */

/* Where it has code for both, devices run the one that the setting names. */
static inline struct duet_codelet *codelet(struct run *run, const char *name, duet_kernel_fn kernel,
                                           duet_kernel_fn on_device, bool cpu, bool gpu)
{
    const struct device_code *device = &run->setting.device;
    struct duet_codelet *made = NULL;
    struct duet_implementation implementations[2];
    size_t count = 0;
    if (kernel && cpu)
        implementations[count++] = (struct duet_implementation){.arch = "cpu", .run = kernel};
    if (kernel && gpu)
        implementations[count++] =
            (struct duet_implementation){.arch = device->arch, .run = on_device};
    const struct duet_codelet_desc desc = {.name = name,
                                           .implementations = count ? implementations : NULL,
                                           .implementation_count = count,
                                           .expand = kernel ? NULL : expand};
    int error = duet_codelet(run->duet, &desc, &made);
    if (error)
        g_error("%s", duet_last_message(run->duet));
    return made;
}

static inline void make_codelets(struct run *run)
{
    const struct device_code *device = &run->setting.device;
    bool cpus = run->setting.config.cpus > 0, gpus = run->setting.config.gpus > 0;
    run->codelets[ANY] = codelet(run, "any", work, device->work, cpus, gpus);
    run->codelets[CPUS] = codelet(run, "cpus", work, device->work, cpus, !cpus);
    run->codelets[DEVICES] = codelet(run, "devices", work, device->work, !gpus, gpus);
    run->codelets[EXPANDS] = codelet(run, "expands", NULL, NULL, false, false);
    run->add[0] = codelet(run, "add", add, device->add, cpus, gpus);
    run->add[1] = codelet(run, "add_on_cpu", add, device->add, cpus, !cpus);
}

static inline void make_matrix(struct run *run, unsigned h, uint64_t *rng)
{
    size_t rows = 1 + duet_random_below(rng, ROWS_MAX), cols = 1 + duet_random_below(rng, COLS_MAX);
    for (size_t i = 0; i < WORDS_MAX; i++)
        run->real_words[h][i] = run->expected_words[h][i] = duet_random_next(rng);
    run->real[h] = (struct duet_buffer){.data = run->real_words[h],
                                        .rows = rows,
                                        .cols = cols,
                                        .ld = rows + duet_random_below(rng, PADDING_MAX + 1),
                                        .element_bytes = sizeof(uint64_t)};
    run->expected[h] = run->real[h];
    run->expected[h].data = run->expected_words[h];
    attach(run, h);
}

static inline struct run *run_new(const struct setting *setting)
{
    struct run *run = g_new0(struct run, 1);
    struct duet_message message = {""};
    uint64_t rng = duet_random_stream(setting->seed, 5);
    run->setting = *setting;
    int error = duet_open(&run->duet, &setting->config, &message);
    if (error)
        g_error("program %" G_GUINT64_FORMAT ": %s", setting->seed, message.text);
    make_codelets(run);
    if (setting->pin)
        run->pinned = !duet_pin(run->duet, run->real_words, sizeof run->real_words);
    for (unsigned h = 0; h < HANDLES; h++)
        make_matrix(run, h, &rng);
    for (unsigned i = 0; i < SUMS; i++)
        g_assert_cmpint(duet_vector(run->duet, run->real_sums[i], SUM_WORDS, sizeof(uint64_t),
                                    &run->sums[i]),
                        ==, DUET_OK);
    run->steps = g_new0(struct step, (size_t)setting->steps * setting->submitters);
    for (unsigned s = 0; s < setting->submitters; s++)
        for (unsigned i = 0; i < setting->steps; i++)
            make_step(run, &run->setting, s, &rng, &run->steps[s * setting->steps + i]);
    return run;
}

static inline void run_free(struct run *run)
{
    for (unsigned i = 0; i < run->setting.steps * run->setting.submitters; i++)
        g_free(run->steps[i].results);
    g_free(run->steps);
    g_free(run);
}

/* How runs ended. */
struct tally {
    unsigned runs, good, lost, lost_well;
    uint64_t tasks;
};

/* Waits, brings everything back, looks at it and closes. */
static inline int finish(struct run *run, uint64_t *tasks)
{
    struct duet_stats stats;
    int error = duet_wait(run->duet);
    check_error(run, error);
    check_error(run, atomic_load(&run->refused));
    for (unsigned h = 0; h < HANDLES + SUMS; h++) {
        int end =
            duet_unregister(run->duet, h < HANDLES ? run->handles[h] : run->sums[h - HANDLES]);
        check_error(run, end);
        g_assert_true(!error || end == error); /* the first one stays */
        g_assert_true(!end || *duet_last_message(run->duet));
        error = end;
    }
    duet_stats(run->duet, &stats);
    if (!error) {
        check_steps(run);
        check_contents(run);
        g_assert_cmpuint(stats.tasks, ==, run->tasks);
    }
    if (run->pinned)
        g_assert_cmpint(duet_unpin(run->duet, run->real_words), ==, DUET_OK);
    g_assert_cmpint(duet_close(run->duet), ==, error);
    *tasks = stats.tasks;
    return error;
}

/* Closes at once, which waits for the tasks; what is on devices stays there. */
static inline int finish_abruptly(struct run *run, uint64_t *tasks)
{
    int error = duet_close(run->duet);
    g_assert_true(expected(&run->setting, error));
    if (!error)
        check_steps(run);
    *tasks = run->tasks;
    return error;
}

static inline void execute(const struct setting *setting, struct tally *tally)
{
    struct run *run = run_new(setting);
    uint64_t tasks = 0;
    (void)alarm(WATCHDOG_S);
    submit_all(run);
    int error = setting->abrupt ? finish_abruptly(run, &tasks) : finish(run, &tasks);
    (void)alarm(0);
    tally->runs++;
    tally->good += !error;
    tally->lost += losing(setting);
    tally->lost_well += !error && losing(setting);
    tally->tasks += tasks;
    run_free(run);
}

#endif
