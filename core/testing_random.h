/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Support for tests in all worlds: runs random programs, several runtimes at once if need be, and
 * compares their results with those of the same programs run in order by one thread. A program is
 * made of its number alone, which is printed before it is run.
 *
 * DUET_TEST_SEED=N: only the program number N. DUET_TEST_LONG=N: programs ten times as long, until
 * N tasks have been run. DUET_TEST_SECONDS=N: programs until N seconds have passed.
 */
#ifndef DUET_CORE_TESTING_RANDOM_H
#define DUET_CORE_TESTING_RANDOM_H

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <duet/trace.h>

#include "core/testing_graph.h"
#include "core/testing_released.h"

enum {
    WATCHDOG_S = 600,
    RUNS_MAX = 4,    /* most runtimes at once */
    EXIT_STATUS = 7, /* exit status of programs that close nothing */
};

/* ------------------------------------------------------------------------------------------- */
/* The application                                                                              */

static inline void attach(struct run *run, unsigned h)
{
    if (run->setting.world->attach) {
        run->setting.world->attach(run, h);
        return;
    }
    g_assert_cmpint(register_matrix(run, h), ==, DUET_OK);
    cut_matrix(run, h);
}

/* Ends the cuts of a matrix, in which order ever, and cuts it again. */
static inline void cut_anew(struct run *run, unsigned h)
{
    for (unsigned i = 0; i < run->cut_count; i++)
        if (run->cuts[i].whole == h)
            check_error(run, duet_uncut(run->duet, run->handles[run->cuts[i].first]));
    cut_matrix(run, h);
}

static inline void submit_step(struct run *run, struct step *step)
{
    struct carried carried;
    struct duet_access accesses[ACCESSES_MAX + 1];
    struct duet_handle *temporary = step->chain ? make_temporary(run, step) : NULL;
    accesses[step->count] = (struct duet_access){temporary, DUET_W};
    struct duet_ref *after[AFTER_MAX] = {NULL};
    for (unsigned i = 0; i < AFTER_MAX; i++)
        if (step->after[i])
            after[i] = (step - step->after[i])->ref;
    struct duet_task_extra extra = {.ref = step->refers ? &step->ref : NULL,
                                    .after = after,
                                    .after_count = AFTER_MAX,
                                    .done = tell_end,
                                    .done_arg = step,
                                    .name = step->salt >> 60 & 1 ? "named" : NULL,
                                    .iteration = step->salt >> 61 & 1};
    struct duet_task_desc desc = describe_step(run, step, &carried, accesses);
    desc.access_count += temporary != NULL;
    if (step->tells)
        desc.extra = &extra;
    give_hints(run, step);
    if (run->setting.world->before)
        run->setting.world->before(run, step, &extra);
    int error = submitted(run, duet_submit(run->duet, &desc), &desc);
    g_assert_true(error || !step->refers == !step->ref);
    if (temporary)
        submit_chain(run, step, temporary);
    if (!error && step->waits) {
        check_error(run, duet_ref_wait(run->duet, step->ref));
        g_assert_true(duet_ref_ended(step->ref) && atomic_load(&step->ended));
    }
}

/* The application has the matrix of a step for itself. */
static inline void touch_own(struct run *run, struct step *step)
{
    step->turn = atomic_fetch_add(&run->turn, 1) + 1;
    if (run->setting.world->touched)
        run->setting.world->touched(run, step);
    else
        step->results[0] = touch(step, &run->real[step->handles[0]]);
    if (step->kind != LOOK || (step->modes[0] & DUET_W)) /* devices may be reading what it reads */
        stamp(run, step->handles[0]);
}

static inline void do_step(struct run *run, struct step *step)
{
    unsigned h = step->count ? step->handles[0] : 0;
    if (step->kind < KINDS) {
        submit_step(run, step);
    } else if (step->kind == LOOK) {
        check_error(run,
                    run->setting.world->acquire
                        ? run->setting.world->acquire(run, step)
                        : duet_acquire(run->duet, run->handles[h], (enum duet_mode)step->modes[0]));
        touch_own(run, step);
        g_assert_cmpint(duet_release(run->duet, run->handles[h]), ==, DUET_OK);
    } else if (step->kind == RENEW && run->part_count && (step->salt & 1)) {
        cut_anew(run, h);
        check_error(run, duet_acquire(run->duet, run->handles[h], DUET_RW));
        touch_own(run, step);
        g_assert_cmpint(duet_release(run->duet, run->handles[h]), ==, DUET_OK);
    } else if (step->kind == RENEW) {
        if (run->setting.world->before)
            run->setting.world->before(run, step, NULL);
        int error = duet_unregister(run->duet, run->handles[h]);
        check_error(run, error);
        step->anew = error;
        touch_own(run, step);
        attach(run, h);
    } else {
        check_error(run, duet_wait(run->duet));
        step->turn = atomic_fetch_add(&run->turn, 1) + 1;
    }
}

struct submitter {
    struct run *run;
    struct step *steps;
    pthread_t id;
};

/* Submits the steps of a graph, and its later rounds. */
static inline void do_graph(struct run *run, struct step *first)
{
    struct duet_graph *graph = NULL;
    g_assert_cmpint(duet_graph_begin(run->duet), ==, DUET_OK);
    for (unsigned i = 0; i < first->length; i++)
        do_step(run, &first[i]);
    g_assert_cmpint(duet_graph_end(run->duet, &graph), ==, DUET_OK);
    for (unsigned k = 1; k < first->rounds && !atomic_load(&run->refused); k++)
        submit_round(run, graph, first, k);
    duet_graph_free(graph); /* while its tasks run */
}

static inline void *submit(void *argument)
{
    const struct submitter *self = argument;
    struct run *run = self->run;
    for (unsigned i = 0; i < run->setting.steps; i++) {
        struct step *step = &self->steps[i];
        unsigned end = i + MAX(1, step->rounds * step->length);
        if (self->steps == run->steps && i < run->setting.cancel_step &&
            run->setting.cancel_step <= end) {
            atomic_store(&run->must_fail, true);
            duet_cancel(run->duet);
        }
        if (step->rounds)
            do_graph(run, step);
        else
            do_step(run, step);
        i = end - 1;
    }
    return NULL;
}

static inline void submit_all(struct run *run)
{
    struct submitter submitters[SUBMITTERS_MAX];
    for (unsigned s = 0; s < run->setting.submitters; s++) {
        submitters[s] =
            (struct submitter){.run = run, .steps = &run->steps[s * run->setting.steps]};
        if (run->setting.alone)
            (void)submit(&submitters[s]);
        else
            g_assert_cmpint(pthread_create(&submitters[s].id, NULL, submit, &submitters[s]), ==, 0);
    }
    for (unsigned s = 0; s < run->setting.submitters && !run->setting.alone; s++)
        (void)pthread_join(submitters[s].id, NULL);
}

/* A thread that asks for statistics all the time: finished tasks stay finished. */
static inline void *observe(void *argument)
{
    struct run *run = argument;
    const struct timespec pause = {.tv_nsec = 50000};
    struct duet_stats stats, before = {0};
    uint64_t steps;
    while (!atomic_load(&run->over)) {
        duet_stats(run->duet, &stats);
        g_assert_cmpuint(stats.tasks, >=, before.tasks);
        g_assert_cmpuint(stats.bytes_to_device, >=, before.bytes_to_device);
        before = stats;
        (void)duet_tasks_done(run->duet);
        (void)duet_worker_scheduling(run->duet, &steps);
        (void)nanosleep(&pause, NULL);
    }
    return NULL;
}

/* ------------------------------------------------------------------------------------------- */
/* Runs                                                                                         */

/* Makes a codelet: devices run the one that the world names, if it has code for both. */
static inline struct duet_codelet *codelet(struct run *run, const char *name, duet_kernel_fn kernel,
                                           duet_kernel_fn on_device, bool cpu, bool gpu)
{
    struct duet_codelet *made = NULL;
    struct duet_implementation implementations[2];
    size_t count = 0;
    const bool sums = kernel == clear_sum || kernel == add_up; /* kernels without arguments */
    if (kernel && cpu)
        implementations[count++] = (struct duet_implementation){.arch = "cpu", .run = kernel};
    if (kernel && gpu)
        implementations[count++] =
            (struct duet_implementation){.arch = run->setting.world->arch, .run = on_device};
    const struct duet_codelet_desc desc = {.name = name,
                                           .implementations = count ? implementations : NULL,
                                           .implementation_count = count,
                                           .flops =
                                               run->setting.varied && !sums ? varied_flops : NULL,
                                           .cost = sums ? sums_cost : cost,
                                           .expand = kernel ? NULL : expand};
    int error = duet_register_codelet(run->duet, &desc, &made);
    if (error)
        g_error("%s", duet_last_message(run->duet));
    return made;
}

/* The kernel of tasks that wait for their children. */
static inline struct duet_codelet *waiting_codelet(struct run *run)
{
    struct duet_codelet *made = NULL;
    const struct duet_codelet_desc desc = {.name = "waits",
                                           .flops = run->setting.varied ? varied_flops : NULL,
                                           .cost = cost,
                                           .expand = expand,
                                           .waits = true};
    if (duet_register_codelet(run->duet, &desc, &made))
        g_error("%s", duet_last_message(run->duet));
    return made;
}

static inline void make_codelets(struct run *run)
{
    const struct world *world = run->setting.world;
    bool cpus = run->setting.config.cpus > 0, gpus = run->setting.config.gpus > 0;
    run->codelets[ANY] = codelet(run, "any", work, world->work, cpus, gpus);
    run->codelets[CPUS] = codelet(run, "cpus", work, world->work, cpus, !cpus);
    run->codelets[DEVICES] = codelet(run, "devices", work, world->work, !gpus, gpus);
    run->codelets[EXPANDS] = codelet(run, "expands", NULL, NULL, false, false);
    run->waits = waiting_codelet(run);
    run->add[0] = codelet(run, "add", add, world->add, cpus, gpus);
    run->add[1] = codelet(run, "add_on_cpu", add, world->add, cpus, !cpus);
    if (is_simulated(&run->setting) || world->add == add) {
        run->clear = codelet(run, "clear", clear_sum, clear_sum, cpus, gpus);
        run->add_up = codelet(run, "add_up", add_up, add_up, cpus, gpus);
    }
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
    if (run->setting.cut && h < HANDLES_FEW)
        draw_cuts(run, h, rng);
    draw_form(run, h, is_simulated(&run->setting) || run->setting.world->work == work);
    attach(run, h);
}

static inline struct run *run_new(const struct setting *setting)
{
    struct run *run = g_new0(struct run, 1);
    struct duet_message message = {""};
    uint64_t rng = duet_random_stream(setting->config.seed, 5);
    run->setting = *setting;
    int error = setting->world->open(run, &message);
    if (error)
        g_error("program %" G_GUINT64_FORMAT ": %s", setting->config.seed, message.text);
    make_codelets(run);
    if (setting->pin)
        run->pinned = !duet_pin(run->duet, run->real_words, sizeof run->real_words);
    for (unsigned h = 0; h < handle_count(setting); h++)
        make_matrix(run, h, &rng);
    for (unsigned i = 0; i < SUMS; i++)
        g_assert_cmpint(duet_register_vector(run->duet, run->real_sums[i], SUM_WORDS,
                                             sizeof(uint64_t), &run->sums[i]),
                        ==, DUET_OK);
    for (unsigned i = 0; i < SUMS && reduces(run); i++)
        g_assert_cmpint(duet_set_reduction(run->duet, run->sums[i], run->clear, run->add_up), ==,
                        DUET_OK);
    run->steps = g_new0(struct step, (size_t)setting->steps * setting->submitters);
    for (unsigned s = 0; s < setting->submitters; s++)
        for (unsigned i = 0; i < setting->steps; i++) {
            struct step *step = &run->steps[s * setting->steps + i];
            make_step(run, &run->setting, s, &rng, step);
        }
    uint64_t drawn = mix(rng);
    for (unsigned s = 0; s < setting->submitters; s++) {
        struct step *steps = &run->steps[s * setting->steps];
        if (setting->graphs && !setting->world->attach)
            make_graph(run, steps, s, &drawn);
        for (unsigned i = 0; i < setting->steps; i++)
            make_after(&steps[i], i);
    }
    return run;
}

static inline void run_free(struct run *run)
{
    for (unsigned i = 0; i < run->setting.steps * run->setting.submitters; i++)
        step_free(&run->steps[i]);
    g_free(run->steps);
    if (run->setting.world->closed)
        run->setting.world->closed(run);
    g_free(run);
}

/* Numbers of ends of runs. */
struct tally {
    unsigned runs, good, lost, lost_well;
    uint64_t tasks;
};

/* Checks what released the recorded events; dates of devices are as good as CUDA's events. */
static inline void check_released(const struct run *run)
{
    struct duet_event *events = NULL;
    size_t count = 0;
    if (run->setting.config.record)
        g_assert_cmpint(duet_trace_events(run->duet, &events, &count), ==, DUET_OK);
    testing_check_released(events, count, 1e-6);
    free(events);
}

/* Waits for a run, brings all data back, looks at it and closes. */
static inline int finish(struct run *run)
{
    struct duet_stats stats;
    int error = duet_wait(run->duet);
    check_error(run, error);
    check_error(run, atomic_load(&run->refused));
    bool recovered = error && recover(run);
    int first = error;
    for (unsigned h = 0; h < handle_count(&run->setting) + SUMS; h++) {
        int end = duet_unregister(run->duet, any_handle(run, h));
        check_error(run, end);
        if (recovered)
            g_assert_cmpint(end, ==, DUET_OK);
        else if (!run->setting.config.keep_going)
            g_assert_true(!error || end == error); /* the first one stays */
        error = error ? error : end;
    }
    duet_stats(run->duet, &stats);
    check_released(run);
    if (!error) {
        if (is_simulated(&run->setting))
            run->setting.world->carry_out(run);
        check_steps(run);
        check_contents(run);
        /* stats.tasks also counts tasks that clear and add up contributions */
        bool more = run->setting.nested && reduces(run);
        g_assert_true(stats.tasks == run->tasks || (more && stats.tasks > run->tasks));
    }
    if (first)
        check_valid(run);
    run->tasks = stats.tasks;
    if (run->pinned)
        g_assert_cmpint(duet_unpin(run->duet, run->real_words), ==, DUET_OK);
    int last = duet_close(run->duet);
    /* a run that goes on has errors of data beside its own */
    bool differs = run->setting.config.keep_going && error;
    g_assert_true(differs ? recovered == !last : last == (recovered ? DUET_OK : error));
    return error;
}

/* Closes a run at once, which waits for the tasks; data on devices stays there. */
static inline int finish_abruptly(struct run *run)
{
    int error = duet_close(run->duet);
    g_assert_true(expected(&run->setting, error));
    if (!error && !is_simulated(&run->setting))
        check_steps(run);
    return error;
}

static inline void run_finish(struct run *run, struct tally *tally)
{
    const struct setting *setting = &run->setting;
    int error = setting->abrupt ? finish_abruptly(run) : finish(run);
    /* nobody need have heard of a failure on a device that was lost then */
    g_assert_true(error || setting->loses || !atomic_load(&run->must_fail));
    tally->runs++;
    tally->good += !error;
    tally->lost += setting->loses;
    tally->lost_well += !error && setting->loses;
    tally->tasks += run->tasks;
    run_free(run);
}

/* Runs one runtime: opens it, gives it its tasks, checks it meanwhile, finishes. */
static inline void execute(const struct setting *setting, struct tally *tally)
{
    struct run *run = run_new(setting);
    pthread_t observer;
    if (setting->observed)
        g_assert_cmpint(pthread_create(&observer, NULL, observe, run), ==, 0);
    submit_all(run);
    if (setting->exits)
        exit(EXIT_STATUS);
    if (setting->observed) {
        if (!setting->abrupt)
            check_error(run, duet_wait(run->duet));
        atomic_store(&run->over, true);
        (void)pthread_join(observer, NULL);
    }
    run_finish(run, tally);
}

/* ------------------------------------------------------------------------------------------- */
/* Programs                                                                                     */

/* The runtimes of one program, the way they are run, and their ends. */
struct program {
    struct setting settings[RUNS_MAX];
    unsigned count;
    bool threads; /* each has an application's thread; else they share it, and overlap */
    struct tally tallies[RUNS_MAX];
};

static char again[200]; /* text to be printed after a failure */

static inline void failed(int number)
{
    if (write(STDERR_FILENO, again, strlen(again)) < 0 || number == SIGALRM)
        _exit(1);
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

/* Says which program comes, now and if it fails. */
static inline void announce(uint64_t number, const struct program *program)
{
    const struct setting *setting = &program->settings[0];
    g_snprintf(again, sizeof again, "again: DUET_TEST_SEED=%" G_GUINT64_FORMAT " %s -p %s\n",
               number, g_get_prgname(), g_test_get_path());
    for (unsigned i = 0; i < 3; i++)
        (void)signal((int[]){SIGABRT, SIGTRAP, SIGALRM}[i], failed);
    g_test_message("DUET_TEST_SEED=%" G_GUINT64_FORMAT
                   ": %u x %s, %d + %d, %u x %u steps%s%s%s%s%s%s%s%s%s, lost: %s",
                   number, program->count, setting->config.policy, setting->config.cpus,
                   setting->config.gpus, setting->submitters, setting->steps,
                   setting->shared ? ", shared" : "", setting->expand ? ", expand" : "",
                   setting->nested ? ", nested" : "", setting->look ? ", look" : "",
                   setting->wide ? ", wide" : "", setting->cut ? ", cut" : "",
                   setting->varied ? ", varied" : "", setting->abrupt ? ", abrupt" : "",
                   setting->exits ? ", exits" : "",
                   setting->loses ? *setting->lose ? setting->lose : "some" : "none");
}

struct execution {
    const struct setting *setting;
    struct tally *tally;
    pthread_t id;
};

static inline void *execute_one(void *argument)
{
    const struct execution *one = argument;
    execute(one->setting, one->tally);
    return NULL;
}

static inline void run_in_threads(struct program *program)
{
    struct execution executions[RUNS_MAX];
    for (unsigned i = 0; i < program->count; i++) {
        executions[i] = (struct execution){&program->settings[i], &program->tallies[i], 0};
        g_assert_cmpint(pthread_create(&executions[i].id, NULL, execute_one, &executions[i]), ==,
                        0);
    }
    for (unsigned i = 0; i < program->count; i++)
        (void)pthread_join(executions[i].id, NULL);
}

/* Runs several runtimes on one thread, all of which have tasks before it waits for any. */
static inline void run_overlapping(struct program *program, unsigned i)
{
    struct run *run = run_new(&program->settings[i]);
    submit_all(run);
    if (i + 1 < program->count)
        run_overlapping(program, i + 1);
    else if (program->settings[0].exits)
        exit(EXIT_STATUS);
    run_finish(run, &program->tallies[i]);
}

static inline void run_program(struct program *program)
{
    (void)alarm(WATCHDOG_S);
    if (program->count == 1)
        execute(&program->settings[0], &program->tallies[0]);
    else if (program->threads)
        run_in_threads(program);
    else
        run_overlapping(program, 0);
    (void)alarm(0);
}

/* Runs the program in a process of its own, which leaves its counts in shared memory. */
static inline void run_in_child(struct program *program)
{
    int ends[2], status = 0;
    g_assert_cmpint(pipe(ends), ==, 0);
    (void)fflush(NULL);
    pid_t child = fork();
    g_assert_cmpint(child, >=, 0);
    if (child == 0) {
        run_program(program);
        if (write(ends[1], program->tallies, sizeof program->tallies) < 0)
            _exit(1);
        exit(0);
    }
    (void)close(ends[1]);
    ssize_t bytes = read(ends[0], program->tallies, sizeof program->tallies);
    (void)close(ends[0]);
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    bool exits = program->settings[0].exits;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != (exits ? EXIT_STATUS : 0))
        g_error("a process ended with status %#x instead of %d", (unsigned)status,
                exits ? EXIT_STATUS : 0);
    g_assert_cmpint(bytes, ==, exits ? 0 : (int)sizeof program->tallies);
}

/* Draws a setting of a world of which all is zero but the number, which is its config's seed. */
typedef void (*draw_fn)(struct setting *setting);

static inline void make_program(struct program *program, uint64_t number, draw_fn draw,
                                unsigned most)
{
    uint64_t rng = duet_random_stream(number, 3);
    memset(program, 0, sizeof *program);
    program->count = one_of(&rng, 6) ? 1 + duet_random_below(&rng, most) : 1;
    program->threads = one_of(&rng, 2);
    bool exits = one_of(&rng, 12);
    for (unsigned i = 0; i < program->count; i++) {
        struct setting *setting = &program->settings[i];
        duet_config_init(&setting->config);
        setting->config.seed = number + ((uint64_t)i << 32);
        draw(setting);
        /* a process cannot end in two ways, or while others look at it */
        setting->exits =
            exits && (program->count == 1 || !program->threads) && !setting->world->stays;
        setting->observed = setting->observed && !setting->alone && !setting->exits;
    }
}

/*
 * Runs programs 0 to count - 1, or those that the environment asks for, of up to `most` runtimes at
 * once; in processes of their own where a process may run one only. Returns how they have ended
 * together. `count` is small, as X.random_long, which scripts/check runs, goes on longer.
 */
static inline struct tally run_programs(unsigned count, draw_fn draw, unsigned most, bool apart)
{
    const char *only = g_getenv("DUET_TEST_SEED"), *text = g_getenv("DUET_TEST_LONG");
    const char *seconds = g_getenv("DUET_TEST_SECONDS");
    uint64_t tasks = text ? g_ascii_strtoull(text, NULL, 10) : 0, first = tasks ? LONG_FIRST : 0;
    uint64_t number = only ? g_ascii_strtoull(only, NULL, 10) : first;
    struct program program;
    struct tally sum = {0};
    gint64 start = g_get_monotonic_time();
    gint64 end = seconds ? start + (gint64)(1e6 * g_ascii_strtod(seconds, NULL)) : 0;
    do {
        make_program(&program, number, draw, most);
        announce(number, &program);
        if (apart || program.settings[0].exits)
            run_in_child(&program);
        else
            run_program(&program);
        for (unsigned i = 0; i < program.count; i++) {
            sum.runs += program.tallies[i].runs;
            sum.good += program.tallies[i].good;
            sum.lost += program.tallies[i].lost;
            sum.lost_well += program.tallies[i].lost_well;
            sum.tasks += program.tallies[i].tasks;
        }
        number++;
    } while (!only && (tasks ? sum.tasks < tasks
                       : end ? g_get_monotonic_time() < end
                             : number < count));
    g_test_message("%" G_GUINT64_FORMAT " tasks of programs %" G_GUINT64_FORMAT
                   " to %" G_GUINT64_FORMAT " in %.1f s; %u of %u runs ended well, of %u with "
                   "losses %u",
                   sum.tasks, only ? number - 1 : first, number - 1,
                   (double)(g_get_monotonic_time() - start) * 1e-6, sum.good, sum.runs, sum.lost,
                   sum.lost_well);
    return sum;
}

#endif
