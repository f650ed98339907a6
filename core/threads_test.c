/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core under threads: an engine with one thread a worker that really copies and really computes
 * (hash mixing, which no change of order leaves alone), on random programs and memories that are
 * much too small, against the same program run in order by one thread.
 *
 * DUET_TEST_LONG=N multiplies the number of programs by N.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

#include "core/testing.h"
#include "core/testing_program.h"

enum {
    FIFOS = 3,      /* of a worker: kernels, copies in, copies out */
    FIFO_MAX = 512, /* commands in flight */
    WATCHDOG_S = 100,
};

/* ------------------------------------------------------------------------------------------- */
/* The engine                                                                                   */

struct engine;

struct thread {
    struct engine *engine;
    unsigned worker;
    pthread_t id;
    uint64_t rng;
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    _Atomic(bool) woken;
    struct duet_command fifos[FIFOS][FIFO_MAX];
    unsigned first[FIFOS], count[FIFOS];
};

struct engine {
    struct duet_runtime *core;
    const struct setting *setting;
    unsigned workers;
    struct thread *threads;
    char **memories; /* by node; NULL for the host */
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    _Atomic(uint64_t) turn, kernels, copies;
};

static void engine_wake(void *self, unsigned worker)
{
    struct engine *engine = self;
    struct thread *thread = &engine->threads[worker];
    if (atomic_exchange(&thread->woken, true) || engine->setting->spin)
        return;
    (void)pthread_mutex_lock(&thread->mutex);
    (void)pthread_cond_signal(&thread->condition);
    (void)pthread_mutex_unlock(&thread->mutex);
}

static void engine_submitted(void *self, struct duet_task *task)
{
    struct engine *engine = self;
    struct duet_ops ops = {0};
    duet__link(engine->core, task, DUET_SUBMITTER, 0, &ops);
}

static int engine_wait(void *self, bool (*reached)(void *arg), void *arg)
{
    struct engine *engine = self;
    (void)pthread_mutex_lock(&engine->mutex);
    while (!reached(arg))
        (void)pthread_cond_wait(&engine->condition, &engine->mutex);
    (void)pthread_mutex_unlock(&engine->mutex);
    return DUET_OK;
}

static void engine_notify(void *self)
{
    struct engine *engine = self;
    (void)pthread_mutex_lock(&engine->mutex);
    (void)pthread_cond_broadcast(&engine->condition);
    (void)pthread_mutex_unlock(&engine->mutex);
}

static double engine_now(void *self)
{
    return 0;
}

static int engine_classify(void *self, const struct duet_class *klass, uint64_t *archs,
                           struct duet_message *message)
{
    return DUET_OK;
}

static void engine_destroy(void *self)
{
    struct engine *engine = self;
    for (unsigned w = 0; w < engine->workers; w++)
        (void)pthread_join(engine->threads[w].id, NULL);
    for (unsigned w = 0; w < engine->workers; w++) {
        (void)pthread_cond_destroy(&engine->threads[w].condition);
        (void)pthread_mutex_destroy(&engine->threads[w].mutex);
    }
    for (unsigned n = 0; n < engine->core->machine.node_count; n++)
        g_free(engine->memories[n]);
    (void)pthread_cond_destroy(&engine->condition);
    (void)pthread_mutex_destroy(&engine->mutex);
    g_free(engine->memories);
    g_free(engine->threads);
    g_free(engine);
}

static const struct duet_engine_ops engine_ops = {
    .wake = engine_wake,
    .submitted = engine_submitted,
    .wait = engine_wait,
    .notify = engine_notify,
    .now = engine_now,
    .classify = engine_classify,
    .destroy = engine_destroy,
};

/* ------------------------------------------------------------------------------------------- */
/* What a worker's thread does                                                                  */

static char *place(const struct engine *engine, unsigned node, const struct duet_handle *handle,
                   uint64_t offset)
{
    return node == DUET_HOST ? handle->data : engine->memories[node] + offset;
}

static int run_copy(struct engine *engine, const struct duet_copy *copy)
{
    uint64_t number = atomic_fetch_add(&engine->copies, 1) + 1;
    if (number == engine->setting->fail_copy)
        return DUET_EIO;
    memcpy(place(engine, copy->destination, copy->handle, copy->destination_offset),
           place(engine, copy->source, copy->handle, copy->source_offset), copy->bytes);
    return DUET_OK;
}

static int run_kernel(struct engine *engine, unsigned worker, struct duet_task *task)
{
    struct argument argument;
    uint64_t *buffers[ACCESSES];
    size_t words[ACCESSES];
    uint8_t modes[ACCESSES];
    unsigned node = engine->core->workers[worker].node;
    uint64_t number = atomic_fetch_add(&engine->kernels, 1) + 1;
    memcpy(&argument, task->args, sizeof argument);
    g_assert_true(engine->core->masks[task->mask].kinds >> engine->core->workers[worker].kind & 1);
    g_assert_cmpuint(argument.step->turn, ==, 0);
    argument.step->turn = atomic_fetch_add(&engine->turn, 1) + 1;
    for (unsigned i = 0; i < task->access_count; i++) {
        const struct duet_handle *handle = task->accesses[i].handle;
        const struct slab_block *block = handle->replicas[node]->block;
        modes[i] = task->accesses[i].mode;
        words[i] = handle->bytes / sizeof(uint64_t);
        buffers[i] =
            (uint64_t *)(void *)place(engine, node, handle, node == DUET_HOST ? 0 : block->offset);
    }
    if (number == engine->setting->fail_kernel)
        return DUET_EIO;
    argument.step->result = compute(argument.salt, buffers, words, modes, task->access_count);
    return DUET_OK;
}

/* Carries out one command from the head of one of the queues, whichever. */
static void carry_out(struct engine *engine, struct thread *self)
{
    struct duet_ops ops = {0};
    unsigned f = duet_random_below(&self->rng, FIFOS);
    while (!self->count[f])
        f = (f + 1) % FIFOS;
    struct duet_command command = self->fifos[f][self->first[f]];
    self->first[f] = (self->first[f] + 1) % FIFO_MAX;
    self->count[f]--;
    for (unsigned i = duet_random_below(&self->rng, 4) ? 0 : 50; i > 0; i--)
        atomic_signal_fence(memory_order_seq_cst);
    if (!duet_random_below(&self->rng, 8))
        (void)sched_yield();
    struct duet_report report = {.start_s = 0, .end_s = 1e-6};
    report.status = command.kind == DUET_RUN ? run_kernel(engine, self->worker, command.task)
                                             : run_copy(engine, command.copy);
    duet__done(engine->core, &command, 0, &report, &ops);
}

/* Asks until the core says IDLE or EXIT. false: EXIT. */
static bool ask(struct engine *engine, struct thread *self)
{
    for (;;) {
        struct duet_ops ops = {0};
        struct duet_command command;
        duet__next(engine->core, self->worker, 0, &command, &ops);
        if (command.kind == DUET_IDLE || command.kind == DUET_EXIT)
            return command.kind == DUET_IDLE;
        unsigned f = command.kind == DUET_RUN ? 0 : 1 + (command.stream == DUET_STREAM_OUT);
        g_assert_cmpuint(self->count[f], <, FIFO_MAX);
        self->fifos[f][(self->first[f] + self->count[f]++) % FIFO_MAX] = command;
        /* some of the time, work starts before everything was asked for */
        if (!duet_random_below(&self->rng, 4))
            carry_out(engine, self);
    }
}

static void park(struct engine *engine, struct thread *self)
{
    if (engine->setting->spin) {
        atomic_store_explicit(&self->woken, false, memory_order_relaxed);
        (void)sched_yield();
        return;
    }
    (void)pthread_mutex_lock(&self->mutex);
    while (!atomic_load(&self->woken))
        (void)pthread_cond_wait(&self->condition, &self->mutex);
    (void)pthread_mutex_unlock(&self->mutex);
}

static void *work(void *argument)
{
    struct thread *self = argument;
    struct engine *engine = self->engine;
    for (;;) {
        atomic_store(&self->woken, false);
        if (!ask(engine, self)) {
            /* the core promises EXIT only once nothing is in flight */
            for (unsigned f = 0; f < FIFOS; f++)
                g_assert_cmpuint(self->count[f], ==, 0);
            return NULL;
        }
        if (self->count[0] + self->count[1] + self->count[2])
            carry_out(engine, self);
        else
            park(engine, self);
    }
}

static void engine_start(struct engine *engine)
{
    for (unsigned n = 1; n < engine->core->machine.node_count; n++)
        engine->memories[n] = g_malloc0(engine->core->machine.nodes[n].capacity_bytes);
    for (unsigned w = 0; w < engine->workers; w++)
        g_assert_cmpint(pthread_create(&engine->threads[w].id, NULL, work, &engine->threads[w]), ==,
                        0);
}

static struct engine *engine_new(const struct setting *setting)
{
    struct engine *engine = g_new0(struct engine, 1);
    struct duet_message message = {""};
    struct duet_machine machine;
    testing_machine(&machine, &setting->machine);
    engine->setting = setting;
    engine->workers = machine.worker_count;
    engine->threads = g_new0(struct thread, engine->workers);
    engine->memories = g_new0(char *, machine.node_count);
    (void)pthread_mutex_init(&engine->mutex, NULL);
    (void)pthread_cond_init(&engine->condition, NULL);
    for (unsigned w = 0; w < engine->workers; w++) {
        struct thread *thread = &engine->threads[w];
        thread->engine = engine;
        thread->worker = w;
        thread->rng = duet_random_stream(setting->seed, 1000 + w);
        (void)pthread_mutex_init(&thread->mutex, NULL);
        (void)pthread_cond_init(&thread->condition, NULL);
    }
    struct duet_core_config config = {.machine = &machine,
                                      .policy = duet_policy_find(setting->policy),
                                      .model = duet_model_at(setting->seed % 2),
                                      .seed = setting->seed,
                                      .window = 64,
                                      .record = true,
                                      .ops = &engine_ops,
                                      .engine = engine};
    int error = duet__core_new(&engine->core, &config, &message);
    if (error)
        g_error("%s", message.text);
    duet_machine_fini(&machine);
    return engine;
}

/* ------------------------------------------------------------------------------------------- */
/* Running a program and its oracle                                                             */

struct run {
    const struct setting *setting;
    struct engine *engine;
    struct duet_codelet *codelets[3];
    size_t words[HANDLES];
    uint64_t real[HANDLES][WORDS_MAX], expected[HANDLES][WORDS_MAX];
    struct duet_handle *handles[HANDLES];
    struct step *steps; /* those of submitter s begin at s * setting->steps */
};

static struct duet_runtime *volatile watched;

/* Waits for the alarm, which all threads block. */
static void *watch(void *argument)
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

static void replay(struct run *run, const struct step *step)
{
    uint8_t modes[ACCESSES];
    uint64_t *buffers[ACCESSES];
    size_t words[ACCESSES];
    effective(step, modes);
    for (unsigned i = 0; i < step->count; i++) {
        buffers[i] = run->expected[step->handles[i]];
        words[i] = run->words[step->handles[i]];
    }
    uint64_t result = compute(step->salt, buffers, words, modes, step->count);
    g_assert_cmphex(step->result, ==, result);
}

static void attach(struct run *run, unsigned h)
{
    g_assert_cmpint(duet_vector(run->engine->core, run->real[h], run->words[h], sizeof(uint64_t),
                                &run->handles[h]),
                    ==, DUET_OK);
}

/* The application looks at a handle, which it may not do while tasks use it. */
static void look_at(struct run *run, uint64_t *rng)
{
    struct duet_runtime *core = run->engine->core;
    unsigned h = duet_random_below(rng, HANDLES);
    uint64_t kind = duet_random_below(rng, 4);
    if (kind == 0) {
        g_assert_cmpint(duet_unregister(core, run->handles[h]), ==, DUET_OK);
        run->real[h][0] = mix(run->real[h][0]);
        attach(run, h);
        return;
    }
    enum duet_mode mode = (enum duet_mode)kind;
    g_assert_cmpint(duet_acquire(core, run->handles[h], mode), ==, DUET_OK);
    if (mode & DUET_W)
        for (size_t j = 0; j < run->words[h]; j++)
            run->real[h][j] = mode == DUET_W ? j : mix(run->real[h][j]);
    g_assert_cmpint(duet_release(core, run->handles[h]), ==, DUET_OK);
}

/* The same in the oracle; draws the same numbers. */
static void replay_look_at(struct run *run, uint64_t *rng)
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

static void *submit(void *argument)
{
    const struct submitter *self = argument;
    struct run *run = self->run;
    struct duet_runtime *core = run->engine->core;
    uint64_t rng = duet_random_stream(run->setting->seed, 77);
    for (unsigned i = 0; i < run->setting->steps; i++) {
        struct step *step = &run->steps[self->number * run->setting->steps + i];
        struct argument carried = {step, step->salt};
        struct duet_access accesses[ACCESSES];
        for (unsigned a = 0; a < step->count; a++)
            accesses[a] = (struct duet_access){run->handles[step->handles[a]],
                                               (enum duet_mode)step->modes[a]};
        struct duet_task_desc desc = {.codelet = run->codelets[step->codelet],
                                      .accesses = accesses,
                                      .access_count = step->count,
                                      .args = &carried,
                                      .args_bytes = sizeof carried,
                                      .priority = step->priority,
                                      .where = duet_where(core, step->where)};
        int error = duet_submit(core, &desc);
        if (error)
            g_error("%s", duet_last_message(core));
        if (run->setting->acquire && i % 16 == 15)
            look_at(run, &rng);
    }
    return NULL;
}

static void submit_all(struct run *run)
{
    struct submitter submitters[4];
    unsigned count = run->setting->submitters;
    for (unsigned s = 0; s < count; s++) {
        submitters[s] = (struct submitter){.run = run, .number = s};
        g_assert_cmpint(pthread_create(&submitters[s].id, NULL, submit, &submitters[s]), ==, 0);
    }
    for (unsigned s = 0; s < count; s++)
        (void)pthread_join(submitters[s].id, NULL);
}

/*
 * Tasks of several submitters on the same handles have no order of their own: any in which they
 * ran is right, if data was coherent in that order.
 */
static void check_contents(struct run *run)
{
    unsigned total = run->setting->steps * run->setting->submitters;
    uint64_t rng = duet_random_stream(run->setting->seed, 77);
    for (unsigned s = 0; s < run->setting->submitters; s++)
        check_order(run->setting, &run->steps[s * run->setting->steps]);
    if (run->setting->submitters > 1)
        qsort(run->steps, total, sizeof *run->steps, by_turn);
    for (unsigned i = 0; i < total; i++) {
        replay(run, &run->steps[i]);
        if (run->setting->acquire && i % 16 == 15)
            replay_look_at(run, &rng);
    }
    for (unsigned h = 0; h < HANDLES; h++)
        g_assert_cmpmem(run->real[h], run->words[h] * sizeof(uint64_t), run->expected[h],
                        run->words[h] * sizeof(uint64_t));
}

static struct run *run_new(const struct setting *setting)
{
    struct run *run = g_new0(struct run, 1);
    uint64_t rng = duet_random_stream(setting->seed, 5);
    run->setting = setting;
    run->engine = engine_new(setting);
    run->steps = g_new0(struct step, (size_t)setting->steps * setting->submitters);
    for (unsigned c = 0; c < 3; c++) {
        char name[] = {(char)('a' + c), '\0'};
        struct duet_implementation implementations[] = {{.arch = c == 2 ? "cuda" : "cpu"},
                                                        {.arch = "cuda"}};
        struct duet_codelet_desc desc = {.name = name,
                                         .implementations = implementations,
                                         .implementation_count = c == 0 ? 2 : 1};
        g_assert_cmpint(duet_codelet(run->engine->core, &desc, &run->codelets[c]), ==, DUET_OK);
    }
    for (unsigned h = 0; h < HANDLES; h++) {
        run->words[h] = 1 + duet_random_below(&rng, WORDS_MAX);
        for (size_t j = 0; j < run->words[h]; j++)
            run->real[h][j] = run->expected[h][j] = duet_random_next(&rng);
        attach(run, h);
    }
    for (unsigned s = 0; s < setting->submitters; s++)
        for (unsigned i = 0; i < setting->steps; i++)
            make_step(setting, s, &rng, &run->steps[s * setting->steps + i]);
    return run;
}

static void execute(const struct setting *setting)
{
    struct run *run = run_new(setting);
    struct duet_runtime *core = run->engine->core;
    watched = core;
    (void)alarm(WATCHDOG_S);
    engine_start(run->engine);
    submit_all(run);
    int error = duet_wait(core);
    if (setting->fail_kernel || setting->fail_copy) {
        g_assert_cmpint(error, ==, DUET_EIO);
        g_assert_cmpstr(duet_last_message(core), !=, "");
        g_assert_cmpint(duet_unregister(core, run->handles[0]), ==, DUET_EIO);
    } else {
        g_assert_cmpint(error, ==, DUET_OK);
        for (unsigned h = 0; h < HANDLES; h++)
            g_assert_cmpint(duet_unregister(core, run->handles[h]), ==, DUET_OK);
        check_contents(run);
    }
    duet__core_stop(core);
    (void)alarm(0);
    duet__core_free(core);
    g_free(run->steps);
    g_free(run);
}

/* ------------------------------------------------------------------------------------------- */
/* The tests                                                                                    */

static unsigned repetitions(void)
{
    const char *text = g_getenv("DUET_TEST_LONG");
    unsigned long times = text ? strtoul(text, NULL, 10) : 1;
    return times ? (unsigned)times : 1;
}

/* The same setting with every policy and several seeds. */
static void all(struct setting setting, unsigned seeds)
{
    for (unsigned seed = 0; seed < seeds * repetitions(); seed++) {
        for (size_t p = 0; duet_policy_at(p); p++) {
            setting.policy = duet_policy_at(p)->name;
            setting.seed = seed * 100 + p;
            setting.spin = seed % 2;
            execute(&setting);
        }
    }
}

static const struct testing_machine small = {.cpus = 4, .gpus = 3, .capacity_bytes = 6 << 10};

static void test_tiny_memory(void)
{
    all((struct setting){.machine = small, .steps = 200, .submitters = 1}, 3);
}

static void test_no_peer(void)
{
    struct setting setting = {.machine = small, .steps = 200, .submitters = 1};
    setting.machine.no_peer = true;
    setting.machine.gpu_archs = 2;
    all(setting, 3);
}

static void test_application(void)
{
    all((struct setting){.machine = small, .steps = 200, .submitters = 1, .acquire = true}, 3);
}

static void test_roomy(void)
{
    struct setting setting = {.machine = small, .steps = 200, .submitters = 1};
    setting.machine.capacity_bytes = 1 << 20;
    all(setting, 1);
}

static void test_submitters(void)
{
    struct setting setting = {.machine = small, .steps = 100, .submitters = 2};
    all(setting, 2);
    setting.shared = true;
    all(setting, 2);
    setting.submitters = 3;
    setting.machine.cpus = setting.machine.gpus = 8;
    all(setting, 1);
}

static void test_lopsided(void)
{
    struct setting setting = {.machine = small, .steps = 100, .submitters = 1};
    setting.machine.cpus = 0;
    all(setting, 1);
    setting.machine.gpus = 1;
    setting.machine.window = 4;
    all(setting, 1);
    setting.machine = (struct testing_machine){.cpus = 1};
    all(setting, 1);
    setting.machine.cpus = 6;
    all(setting, 1);
}

static void test_failures(void)
{
    struct setting setting = {.machine = small, .steps = 100, .submitters = 1};
    setting.fail_kernel = 40;
    all(setting, 2);
    setting.fail_kernel = 0;
    setting.fail_copy = 3;
    setting.machine.cpus = 1; /* or the devices may have nothing to do */
    all(setting, 2);
    setting.machine.no_peer = true;
    setting.submitters = 2;
    all(setting, 2);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    static sigset_t alarms;
    pthread_t watchdog;
    (void)sigemptyset(&alarms);
    (void)sigaddset(&alarms, SIGALRM);
    (void)pthread_sigmask(SIG_BLOCK, &alarms, NULL);
    g_assert_cmpint(pthread_create(&watchdog, NULL, watch, &alarms), ==, 0);
    (void)pthread_detach(watchdog);
    g_test_add_func("/threads/tiny_memory", test_tiny_memory);
    g_test_add_func("/threads/no_peer", test_no_peer);
    g_test_add_func("/threads/application", test_application);
    g_test_add_func("/threads/roomy", test_roomy);
    g_test_add_func("/threads/submitters", test_submitters);
    g_test_add_func("/threads/lopsided", test_lopsided);
    g_test_add_func("/threads/failures", test_failures);
    return g_test_run();
}
