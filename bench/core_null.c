/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler core alone: a Cholesky-shaped graph (three accesses a task) submitted and run on a
 * null engine, in which commands take no time. Prints nanoseconds a task for submitting with its
 * dependencies, for running, and bytes a task.
 *
 * Usage: core_null [TILES [REPEATS [WINDOW]]]; without WINDOW the whole graph is submitted first.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include <duet/duet.h>

#include "bench/timing.h"
#include "core/engine.h"

struct null_engine {
    struct duet_runtime *core;
    double date;
};

static void wake(void *engine, unsigned worker)
{
}

static void notify(void *engine)
{
}

static void submitted(void *engine, struct duet_task *task)
{
    struct null_engine *self = engine;
    struct duet_ops ops = {0};
    duet__link(self->core, task, DUET_SUBMITTER, self->date, &ops);
}

/* One worker does everything at once. */
static int wait_all(void *engine, bool (*reached)(void *arg), void *arg)
{
    struct null_engine *self = engine;
    while (!reached(arg)) {
        struct duet_command command;
        struct duet_ops ops = {0};
        duet__next(self->core, 0, self->date, &command, &ops);
        if (command.kind == DUET_IDLE)
            return DUET_ESTUCK;
        struct duet_report report = {.start_s = self->date, .end_s = self->date};
        duet__done(self->core, &command, self->date, &report, &ops);
    }
    return DUET_OK;
}

static double now(void *engine)
{
    struct null_engine *self = engine;
    return self->date;
}

static int classify(void *engine, const struct duet_class *klass, uint64_t *archs,
                    struct duet_message *message)
{
    return DUET_OK;
}

static void destroy(void *engine)
{
}

static const struct duet_engine_ops null_ops = {
    .wake = wake,
    .notify = notify,
    .submitted = submitted,
    .wait = wait_all,
    .now = now,
    .classify = classify,
    .destroy = destroy,
};

static void check(int error, const struct duet_runtime *core)
{
    if (!error)
        return;
    fprintf(stderr, "core_null: %s\n", core ? duet_last_message(core) : duet_strerror(error));
    exit(1);
}

static void submit(struct duet_runtime *core, const struct duet_codelet *codelet,
                   const struct duet_access *accesses, size_t count)
{
    struct duet_task_desc task = {.codelet = codelet, .accesses = accesses, .access_count = count};
    check(duet_submit(core, &task), core);
}

/* Right-looking tiled Cholesky with one codelet for all kernels. Returns the number of tasks. */
static size_t submit_cholesky(struct duet_runtime *core, const struct duet_codelet *codelet,
                              struct duet_handle **tiles, size_t n, size_t *accesses)
{
    size_t tasks = 0;
    for (size_t k = 0; k < n; k++) {
        submit(core, codelet, (struct duet_access[]){{tiles[k * n + k], DUET_RW}}, 1);
        for (size_t i = k + 1; i < n; i++)
            submit(core, codelet,
                   (struct duet_access[]){{tiles[k * n + k], DUET_R}, {tiles[i * n + k], DUET_RW}},
                   2);
        for (size_t i = k + 1; i < n; i++) {
            submit(core, codelet,
                   (struct duet_access[]){{tiles[i * n + k], DUET_R}, {tiles[i * n + i], DUET_RW}},
                   2);
            for (size_t j = k + 1; j < i; j++)
                submit(core, codelet,
                       (struct duet_access[]){{tiles[i * n + k], DUET_R},
                                              {tiles[j * n + k], DUET_R},
                                              {tiles[i * n + j], DUET_RW}},
                       3);
        }
        size_t below = n - k - 1;
        tasks += 1 + 2 * below + below * (below - 1) / 2;
        *accesses += 1 + 4 * below + 3 * (below * (below - 1) / 2);
    }
    return tasks;
}

static void run(size_t n, size_t window)
{
    struct duet_machine machine;
    check(duet_machine_init(&machine, 1, 1, 1, 0), NULL);
    snprintf(machine.name, sizeof machine.name, "null");
    snprintf(machine.archs[0].name, sizeof machine.archs[0].name, "cpu");
    snprintf(machine.archs[0].backend, sizeof machine.archs[0].backend, "cpu");
    snprintf(machine.nodes[0].name, sizeof machine.nodes[0].name, "host");
    snprintf(machine.workers[0].name, sizeof machine.workers[0].name, "cpu0");
    machine.workers[0].window = 1;
    struct null_engine engine = {0};
    struct duet_core_config config = {
        .machine = &machine,
        .policy = duet_policy_find("ws"),
        .model = duet_model_find("history"),
        .window = window,
        .ops = &null_ops,
        .engine = &engine,
    };
    check(duet__core_new(&engine.core, &config, NULL), NULL);
    struct duet_codelet *codelet = NULL;
    struct duet_codelet_desc desc = {
        .name = "null",
        .implementations = &(struct duet_implementation){.arch = "cpu"},
        .implementation_count = 1,
    };
    check(duet_codelet(engine.core, &desc, &codelet), engine.core);
    struct duet_handle **tiles = calloc(n * n, sizeof(struct duet_handle *));
    check(tiles ? DUET_OK : DUET_ENOMEM, NULL);
    for (size_t i = 0; i < n * n; i++)
        check(duet_vector(engine.core, NULL, 100, 8, &tiles[i]), engine.core);

    size_t accesses = 0;
    size_t heap = mallinfo2().uordblks + mallinfo2().hblkhd;
    double start = seconds();
    size_t tasks = submit_cholesky(engine.core, codelet, tiles, n, &accesses);
    double middle = seconds();
    size_t grown = mallinfo2().uordblks + mallinfo2().hblkhd - heap;
    check(duet_wait(engine.core), engine.core);
    double end = seconds();
    printf("tasks %zu accesses %zu submit_ns %.1f run_ns %.1f total_ns %.1f "
           "bytes_a_task %.1f (budget %.1f)\n",
           tasks, accesses, 1e9 * (middle - start) / (double)tasks,
           1e9 * (end - middle) / (double)tasks, 1e9 * (end - start) / (double)tasks,
           (double)grown / (double)tasks, 256 + 32 * (double)accesses / (double)tasks);
    free(tiles);
    duet__core_free(engine.core);
    duet_machine_fini(&machine);
}

int main(int argc, char **argv)
{
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 80;
    size_t repeats = argc > 2 ? strtoul(argv[2], NULL, 10) : 3;
    size_t window = argc > 3 ? strtoul(argv[3], NULL, 10) : SIZE_MAX / 2;
    for (size_t i = 0; i < repeats; i++)
        run(n, window);
    return 0;
}
