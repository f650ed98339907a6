/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that wait for their children: their results, times and records in both worlds, under all
 * policies, on one worker and several, and what ends when a child fails or the run is cancelled.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <duet/policy.h>
#include <duet/trace.h>

#include "sim/testing.h"
#include "runtime/testing.h"

enum { WORDS = 64, HALF = WORDS / 2, TASK_US = 2, PARTS = 3 };

/* A case, which runs in a process of its own. */
struct world {
    const char *simulate, *emulate, *policy;
    int cpus, gpus;
    bool plain; /* true if not recorded: workers keep short tasks to themselves */
    struct duet_runtime *duet;
};

static double cost(const void *args, const char *arch)
{
    return TASK_US * 1e-6;
}

static void open_world(struct world *world)
{
    struct duet_config config = testing_config(world->simulate, world->cpus, world->gpus);
    config.emulate = world->emulate;
    config.policy = world->policy;
    config.window = 1;
    config.record = !world->plain;
    config.no_costs = world->simulate != NULL;
    world->duet = testing_open(&config);
}

static void make(const struct world *world, const char *name, duet_expand_fn expand,
                 duet_kernel_fn run)
{
    const struct duet_codelet_desc like = {.cost = cost, .expand = expand, .waits = expand != NULL};
    (void)testing_codelet(world->duet, name, run, like);
}

static int submit(const struct world *world, const char *kernel, const struct duet_access *access,
                  const void *args, size_t bytes)
{
    const struct duet_task_desc task = testing_task(world->duet, kernel, access, args, bytes);
    return duet_submit(world->duet, &task);
}

/* Makes a child of the codelet of a name. */
static int expand(struct duet_expansion *expansion, const struct duet_call *call, const char *name,
                  const struct duet_access *access, const void *args, size_t bytes)
{
    const struct duet_task_desc child = testing_task(call->runtime, name, access, args, bytes);
    return duet_expand_submit(expansion, &child);
}

/* Runs a case in a process. */
static void apart(void (*run)(struct world *world), const struct world *like)
{
    g_test_message("%s, %s, %d CPUs", like->simulate ? like->simulate : "this machine",
                   like->policy ? like->policy : "ws", like->cpus);
    pid_t child = fork();
    int status = -1;
    g_assert_cmpint(child, >=, 0);
    if (child == 0) {
        struct world world = *like;
        (void)alarm(1200);
        run(&world);
        _exit(0);
    }
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_cmpint(status, ==, 0);
}

/* ------------------------------------------------------------------------------------------- */
/* A recursion whose children write into variables of their parent                              */

struct call {
    unsigned n;
    uint64_t *value;
    unsigned fails, cancels; /* tasks of this n fail, or cancel the run */
};

static int fibonacci(struct duet_expansion *expansion, const struct duet_call *call)
{
    const struct call *self = call->args;
    uint64_t values[2] = {0, 0};
    if (self->n < 2) {
        *self->value = self->n;
        if (self->fails)
            return duet_fail(call->message, DUET_EIO, "a leaf of the recursion");
        if (self->cancels)
            duet_cancel(call->runtime);
        return DUET_OK;
    }
    int error = DUET_OK;
    for (unsigned i = 0; i < 2 && !error; i++) {
        const struct call next = {self->n - 1 - i, &values[i], self->fails, self->cancels};
        error = expand(expansion, call, "fibonacci", NULL, &next, sizeof next);
    }
    /* a wait even if the second was refused: the first writes to this stack */
    const int waited = duet_expand_wait(expansion);
    *self->value = values[0] + values[1];
    return error ? error : waited;
}

/* Opens a world, and submits the root of a recursion. */
static void begin(struct world *world, const struct call *root)
{
    open_world(world);
    make(world, "fibonacci", fibonacci, NULL);
    must(world->duet, submit(world, "fibonacci", NULL, root, sizeof *root));
}

static uint64_t calls_of(unsigned n)
{
    return n < 2 ? 1 : 1 + calls_of(n - 1) + calls_of(n - 2);
}

/* Pieces of a task follow each other, what is said of them is what is counted. */
static void check_records(const struct world *world, uint64_t tasks)
{
    g_autofree struct duet_event *events = NULL;
    struct duet_stats stats;
    size_t count, whole = 0;
    double busy_s = 0;
    duet_stats(world->duet, &stats);
    must(world->duet, duet_trace_events(world->duet, &events, &count));
    for (size_t i = 0; i < count; i++) {
        g_assert_false(events[i].failed);
        g_assert_cmpfloat(events[i].start_s, >=, events[i].ready_s);
        whole += !events[i].paused;
        busy_s += events[i].end_s - events[i].start_s;
        for (size_t j = i + 1; j < count && events[j].start_s < events[i].end_s; j++)
            g_assert_cmpint(events[i].worker, !=, events[j].worker);
    }
    g_assert_cmpuint(stats.tasks, ==, tasks);
    g_assert_cmpuint(whole, ==, tasks);
    if (world->simulate) {
        g_assert_cmpfloat_with_epsilon(stats.busy_s, TASK_US * 1e-6 * (double)tasks, 1e-12);
        g_assert_cmpfloat_with_epsilon(busy_s, stats.busy_s, 1e-12);
        double least_s = stats.busy_s / world->cpus;
        g_assert_cmpfloat(stats.makespan_s, >=, least_s * (1 - 1e-9));
        g_assert_cmpfloat(stats.makespan_s, <, 2 * least_s + 20e-6);
    }
}

static void recursion(struct world *world)
{
    enum { N = 10, VALUE = 55 };
    uint64_t value = 0;
    const struct call root = {N, &value, 0, 0};
    open_world(world);
    make(world, "fibonacci", fibonacci, NULL);
    for (unsigned i = 0; i < 2; i++) {
        value = 0;
        must(world->duet, submit(world, "fibonacci", NULL, &root, sizeof root));
        must(world->duet, duet_wait(world->duet));
        g_assert_cmpuint(value, ==, VALUE);
    }
    if (world->simulate || strcmp(world->policy, "ws") != 0)
        check_records(world, 2 * calls_of(N));
    must(world->duet, duet_close(world->duet));
}

static void test_recursion(void)
{
    const struct duet_policy *policy;
    for (unsigned p = 0; (policy = duet_policy_at(p)); p++) {
        const int cpus = 1 + (int)(p % 4);
        apart(recursion, &(struct world){.cpus = cpus, .policy = policy->name});
        apart(recursion,
              &(struct world){.simulate = "idgraf", .cpus = cpus, .policy = policy->name});
    }
}

/* Many short tasks, until they are known to be short and after. */
static void many(struct world *world)
{
    enum { N = 16, VALUE = 987 };
    uint64_t value = 0;
    struct duet_stats stats;
    const struct call root = {N, &value, 0, 0};
    open_world(world);
    make(world, "fibonacci", fibonacci, NULL);
    for (unsigned i = 0; i < 4; i++) {
        value = 0;
        must(world->duet, submit(world, "fibonacci", NULL, &root, sizeof root));
        must(world->duet, duet_wait(world->duet));
        g_assert_cmpuint(value, ==, VALUE);
    }
    duet_stats(world->duet, &stats);
    g_assert_cmpuint(stats.tasks, ==, 4 * calls_of(N));
    g_assert_cmpuint(duet_tasks_done(world->duet), >=, stats.tasks);
    g_assert_cmpfloat(stats.busy_s, <=, world->cpus * duet_now(world->duet));
    must(world->duet, duet_close(world->duet));
}

static void test_many(void)
{
    const char *const policies[] = {"ws", "locality-aware", "eager", "heft"};
    for (unsigned p = 0; p < G_N_ELEMENTS(policies); p++)
        for (int cpus = 1; cpus <= 4; cpus += 3)
            apart(many, &(struct world){.cpus = cpus, .plain = true, .policy = policies[p]});
}

/* Prints what a simulated run was like. */
static void digest(const void *like, FILE *out)
{
    struct world own = *(const struct world *)like, *world = &own;
    uint64_t value;
    g_autofree struct duet_event *events = NULL;
    size_t count;
    double sum = 0;
    const struct call root = {.n = 12, .value = &value};
    begin(world, &root);
    must(world->duet, duet_wait(world->duet));
    must(world->duet, duet_trace_events(world->duet, &events, &count));
    for (size_t i = 0; i < count; i++)
        sum = fma(sum, 0.99, events[i].start_s + events[i].worker * (double)events[i].id);
    (void)fprintf(out, "%.17g", sum);
}

/* A second run is the same to the last digit. */
static void test_deterministic(void)
{
    const struct world world = {.simulate = "idgraf", .cpus = 4, .policy = "ws"};
    g_autoptr(GByteArray) first = lab_fork(digest, &world), again = lab_fork(digest, &world);
    g_assert_cmpmem(first->data, first->len, again->data, again->len);
}

/* ------------------------------------------------------------------------------------------- */
/* Data                                                                                         */

static int add_one(const struct duet_call *call)
{
    double *words = call->buffers[0].data;
    for (size_t i = 0; i < call->buffers[0].rows; i++)
        words[i]++;
    return DUET_OK;
}

/* Children change the halves, then the task itself all of it, several times. */
static int rounds(struct duet_expansion *expansion, const struct duet_call *call)
{
    struct duet_handle *halves[2];
    double *words = call->buffers[0].data;
    int error = DUET_OK;
    for (unsigned i = 0; i < 2 && !error; i++)
        error = duet_expand_block(expansion, 0, i * HALF, 0, HALF, 1, &halves[i]);
    for (unsigned round = 0; round < PARTS && !error; round++) {
        for (unsigned i = 0; i < 2 && !error; i++) {
            const struct duet_access access = {halves[i], DUET_RW};
            error = expand(expansion, call, "add_one", &access, NULL, 0);
        }
        if (!error)
            error = duet_expand_wait(expansion);
        for (unsigned i = 0; i < WORDS && words && !error; i++)
            words[i] *= 2;
    }
    /* one more child, without a wait of its own */
    const struct duet_access access = {halves[0], DUET_RW};
    return error ? error : expand(expansion, call, "add_one", &access, NULL, 0);
}

static void data(struct world *world)
{
    static double words[WORDS];
    struct duet_handle *handle;
    struct duet_stats stats;
    open_world(world);
    make(world, "rounds", rounds, NULL);
    make(world, "add_one", NULL, add_one);
    must(world->duet, duet_register_vector(world->duet, world->simulate ? NULL : words, WORDS,
                                           sizeof *words, &handle));
    const struct duet_access access = {handle, DUET_RW};
    must(world->duet, submit(world, "rounds", &access, NULL, 0));
    must(world->duet, submit(world, "add_one", &access, NULL, 0));
    must(world->duet, duet_unregister(world->duet, handle));
    duet_stats(world->duet, &stats);
    g_assert_cmpuint(stats.tasks, ==, 2 + 2 * PARTS + 1);
    for (unsigned i = 0; i < WORDS && !world->simulate; i++)
        g_assert_cmpfloat(words[i], ==, (1 << (PARTS + 1)) - 2 + (i < HALF) + 1);
    must(world->duet, duet_close(world->duet));
}

static void test_data(void)
{
    for (int cpus = 1; cpus <= 2; cpus++) {
        apart(data, &(struct world){.cpus = cpus});
        apart(data, &(struct world){.emulate = "free", .cpus = cpus, .gpus = 2, .policy = "eager"});
        apart(data, &(struct world){.simulate = "idgraf", .cpus = cpus, .gpus = 2});
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Errors                                                                                       */

static void failing(struct world *world)
{
    uint64_t value;
    const struct call root = {.n = 16, .value = &value, .fails = 1};
    begin(world, &root);
    REFUSED(world->duet, duet_wait(world->duet), DUET_EIO, "a leaf of the recursion");
    g_assert_cmpint(duet_close(world->duet), ==, DUET_EIO);
}

static void cancelled(struct world *world)
{
    uint64_t value;
    const struct call root = {.n = 16, .value = &value, .cancels = 1};
    begin(world, &root);
    g_assert_cmpint(duet_wait(world->duet), ==, DUET_ECANCELED);
    g_assert_cmpint(duet_close(world->duet), ==, DUET_ECANCELED);
}

/* Closed at once, with tasks that wait. */
static void closing(struct world *world)
{
    uint64_t value = 0;
    const struct call root = {.n = 10, .value = &value};
    begin(world, &root);
    g_assert_cmpint(duet_close(world->duet), ==, DUET_OK);
    g_assert_cmpuint(value, ==, 55);
}

/* Waits for one child, which does so, too: a worker's stack does not suffice for so many. */
static int deeper(struct duet_expansion *expansion, const struct duet_call *call)
{
    unsigned depth = *(const unsigned *)call->args;
    volatile char room[2048]; /* so that the stack ends before a sanitizer's count of calls */
    room[0] = 0;
    if (depth == 0)
        return room[0];
    depth--;
    int error = expand(expansion, call, "deeper", NULL, &depth, sizeof depth);
    return error ? error : duet_expand_wait(expansion);
}

/* Waits as deeply as is possible, then deeper. */
static void wait_deeply(struct world *world, unsigned possible)
{
    const unsigned depths[] = {possible, 1000000};
    must(world->duet, submit(world, "deeper", NULL, &depths[0], sizeof *depths));
    must(world->duet, duet_wait(world->duet));
    must(world->duet, submit(world, "deeper", NULL, &depths[1], sizeof *depths));
    REFUSED(world->duet, duet_wait(world->duet), DUET_ENOMEM, "stack is used up");
}

static void too_deep(struct world *world)
{
    open_world(world);
    if (world->simulate)
        return;
    make(world, "deeper", deeper, NULL);
    wait_deeply(world, 1000);
    g_assert_cmpint(duet_close(world->duet), ==, DUET_ENOMEM);
}

static void *wait_on_thread(void *world)
{
    wait_deeply(world, 50);
    return NULL;
}

/* A thread of the application has a smaller stack than others, and runs the tasks. */
static void small_stack(struct world *world)
{
    pthread_attr_t attributes;
    pthread_t thread;
    open_world(world);
    if (world->simulate)
        return;
    make(world, "deeper", deeper, NULL);
    g_assert_cmpint(pthread_attr_init(&attributes), ==, 0);
    g_assert_cmpint(pthread_attr_setstacksize(&attributes, 4 << 20), ==, 0);
    g_assert_cmpint(pthread_create(&thread, &attributes, wait_on_thread, world), ==, 0);
    (void)pthread_join(thread, NULL);
    (void)pthread_attr_destroy(&attributes);
    g_assert_cmpint(duet_close(world->duet), ==, DUET_ENOMEM);
}

static struct fiber {
    ucontext_t own, caller;
    struct world *world;
} fiber;

static void wait_on_fiber(void)
{
    const unsigned depth = 3;
    must(fiber.world->duet, submit(fiber.world, "deeper", NULL, &depth, sizeof depth));
    must(fiber.world->duet, duet_wait(fiber.world->duet));
}

/* A thread of the application that waits is on another stack than its own. */
static void on_fiber(struct world *world)
{
    enum { BYTES = 1 << 20 };
    open_world(world);
    if (world->simulate)
        return;
    g_autofree char *stack = malloc(BYTES);
    make(world, "deeper", deeper, NULL);
    fiber.world = world;
    g_assert_cmpint(getcontext(&fiber.own), ==, 0);
    fiber.own.uc_stack.ss_sp = stack;
    fiber.own.uc_stack.ss_size = BYTES;
    fiber.own.uc_link = &fiber.caller;
    makecontext(&fiber.own, wait_on_fiber, 0);
    g_assert_cmpint(swapcontext(&fiber.caller, &fiber.own), ==, 0);
    g_assert_cmpint(duet_close(world->duet), ==, DUET_OK);
}

/* Waits for a child, which writes nowhere: it may run after a wait that is refused. */
static int wait_unasked(struct duet_expansion *expansion, const struct duet_call *call)
{
    const struct call *self = call->args, leaf = {.n = 0};
    if (!self->n)
        return DUET_OK;
    const int error = expand(expansion, call, "unasked", NULL, &leaf, sizeof leaf);
    return error ? error : duet_expand_wait(expansion);
}

static void refused(struct world *world)
{
    struct duet_codelet *codelet;
    const struct call root = {.n = 1};
    const struct duet_implementation where = {"cpu", add_one};
    open_world(world);
    const struct duet_codelet_desc kernel = {.name = "kernel",
                                             .implementations = &where,
                                             .implementation_count = 1,
                                             .waits = true};
    REFUSED(world->duet, duet_register_codelet(world->duet, &kernel, &codelet), DUET_EINVAL,
            "does not expand");
    const struct duet_codelet_desc silent = {.expand = wait_unasked};
    (void)testing_codelet(world->duet, "unasked", NULL, silent);
    must(world->duet, submit(world, "unasked", NULL, &root, sizeof root));
    REFUSED(world->duet, duet_wait(world->duet), DUET_EINVAL, "`waits`");
    g_assert_cmpint(duet_close(world->duet), ==, DUET_EINVAL);
}

static void test_errors(void)
{
    void (*const cases[])(struct world * world) = {failing,     cancelled, closing, too_deep,
                                                   small_stack, on_fiber,  refused};
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        for (int cpus = 1; cpus <= 2; cpus++) {
            apart(cases[i], &(struct world){.cpus = cpus});
            apart(cases[i], &(struct world){.cpus = cpus, .plain = true});
        }
        apart(cases[i], &(struct world){.simulate = "idgraf", .cpus = 2});
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Children without data of other kinds than those that wait, deep in a recursion               */

static _Atomic(unsigned) kernels_run, expansions_run;

static int count_kernel(const struct duet_call *call)
{
    kernels_run++;
    return DUET_OK;
}

static int count_expansion(struct duet_expansion *expansion, const struct duet_call *call)
{
    expansions_run++;
    return DUET_OK;
}

static int mixed(struct duet_expansion *expansion, const struct duet_call *call)
{
    unsigned left = *(const unsigned *)call->args - 1;
    static const char *const others[] = {"kernel", "expansion"};
    int error = left ? duet_expand_insert(expansion, duet_codelet_find(call->runtime, "kernel"), 0)
                     : DUET_OK;
    for (unsigned i = 0; i < 2 && left && !error; i++)
        error = expand(expansion, call, others[i], NULL, NULL, 0);
    if (left && !error)
        error = expand(expansion, call, "mixed", NULL, &left, sizeof left);
    return error ? error : duet_expand_wait(expansion);
}

/* Kernels are called where something computes, expansions are called as such. */
static void kinds(struct world *world)
{
    const unsigned depth = 200;
    open_world(world);
    make(world, "mixed", mixed, NULL);
    make(world, "kernel", NULL, count_kernel);
    const struct duet_codelet_desc expands = {.expand = count_expansion};
    (void)testing_codelet(world->duet, "expansion", NULL, expands);
    must(world->duet, submit(world, "mixed", NULL, &depth, sizeof depth));
    must(world->duet, duet_wait(world->duet));
    g_assert_cmpuint(expansions_run, ==, depth - 1);
    g_assert_cmpuint(kernels_run, ==, duet_computes(world->duet) ? 2 * (depth - 1) : 0);
    must(world->duet, duet_close(world->duet));
}

static void test_kinds(void)
{
    for (int cpus = 1; cpus <= 2; cpus++) {
        apart(kinds, &(struct world){.cpus = cpus, .plain = true});
        apart(kinds, &(struct world){.emulate = "idgraf", .cpus = cpus, .plain = true});
        apart(kinds, &(struct world){.simulate = "idgraf", .cpus = cpus, .plain = true});
    }
}

TEST_MAIN(test_recursion, test_many, test_deterministic, test_data, test_errors, test_kinds)
