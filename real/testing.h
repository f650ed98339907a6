/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Support for tests of the real engine: a core on it, and kernels that leave traces of their order.
 */
#ifndef DUET_REAL_TESTING_H
#define DUET_REAL_TESTING_H

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <glib.h>

#include <duet/duet.h>
#include <duet/trace.h>

#include "core/engine.h"
#include "real/real.h"

enum { TESTING_ALARM_S = 600 }; /* a test that hangs is killed */

/* Settings of a test; zero: as usual. */
struct testing {
    unsigned cpus, gpus; /* emulated GPUs */
    const char *policy;
    const struct duet_policy *own_policy; /* instead */
    double watchdog_s;                    /* 0: never */
    size_t window;
    uint64_t gpu_memory_bytes;
    bool no_peer, record, hold;
    bool real; /* without emulated GPUs, as on a machine that has none */
    const char *lose;
    uint64_t pin_bytes;
    double scale; /* > 0: paced, kernels take testing_seconds */
    double seconds;
    struct duet_message message; /* message of the opening */
};

/* A paced emulation's time: the same for all kernels. */
static inline double testing_seconds(void *pace, const struct duet__class *klass, unsigned arch)
{
    const struct testing *t = pace;
    return t->seconds;
}

/* A core on a real engine, or NULL with the error in *error and the reason in t->message. */
static inline struct duet_runtime *testing_try(struct testing *t, int *error)
{
    const struct duet_config wanted = {
        .cpus = (int)t->cpus,
        .gpus = (int)t->gpus,
        .gpu_memory_bytes = t->gpu_memory_bytes ? t->gpu_memory_bytes : 1 << 20,
        .emulate = t->real ? NULL : "free",
        .no_peer = t->no_peer,
        .watchdog_s = t->watchdog_s > 0 ? t->watchdog_s : INFINITY,
        .lose = t->lose,
        .pin_bytes = t->pin_bytes,
        .no_pin = !t->pin_bytes,
    };
    const struct real_pace pace = {.scale = t->scale, .seconds = testing_seconds, .times = t};
    struct duet_machine machine;
    struct duet_runtime *core = NULL;
    (void)alarm(TESTING_ALARM_S);
    *error = duet__real_machine(&machine, NULL, &wanted, NULL, &t->message);
    if (*error)
        return NULL;
    struct duet__core_config config = {
        .machine = &machine,
        .policy = t->own_policy ? t->own_policy : duet_policy_find(t->policy ? t->policy : "ws"),
        .model = duet_model_at(0),
        .window = t->window,
        .record = t->record,
        .hold = t->hold,
        .ops = duet__real_ops(),
    };
    *error = duet__real_new(&config.engine, &machine, &wanted, NULL, &pace, &t->message);
    if (!*error) {
        *error = duet__core_new(&core, &config, &t->message);
        if (*error)
            config.ops->destroy(config.engine);
    }
    if (!*error)
        *error = duet__real_attach(config.engine, core, &t->message);
    if (*error) {
        duet__core_free(core);
        core = NULL;
    }
    duet_machine_fini(&machine);
    return core;
}

/* Ends what testing_open has opened: as the attribute OWNED(testing_close) of a variable. */
static inline void testing_close(struct duet_runtime **core)
{
    duet__core_free(*core);
}

/* Opens the engine, which must succeed. The caller ends it with duet__core_free. */
static inline struct duet_runtime *testing_open(struct testing *t)
{
    int error;
    struct duet_runtime *core = testing_try(t, &error);
    if (!core)
        g_error("%s: %s", duet_strerror(error), t->message.text);
    return core;
}

/* Calls a function that must not fail, and prints the reason if it does. */
#define testing_must(core, call)                                                                   \
    do {                                                                                           \
        int testing_error = (call);                                                                \
        if (testing_error)                                                                         \
            g_error("%s: %s (%s)", #call, duet_strerror(testing_error), duet_last_message(core));  \
    } while (0)

/* A kernel for CPUs and emulated GPUs; `where` limits it to one ("cpu", "cuda"), NULL: both. */
static inline struct duet_codelet *testing_codelet(struct duet_runtime *core, const char *name,
                                                   duet_kernel_fn run, const char *where)
{
    const struct duet_implementation both[] = {{"cpu", run}, {"cuda", NULL}, {"emulated", run}};
    const struct duet_implementation gpu[] = {{"cuda", NULL}, {"emulated", run}};
    bool only_cpu = where && !strcmp(where, "cpu"), only_gpu = where && !only_cpu;
    const struct duet_codelet_desc desc = {.name = name,
                                           .implementations = only_gpu ? gpu : both,
                                           .implementation_count = only_cpu   ? 1
                                                                   : only_gpu ? 2
                                                                              : 3};
    struct duet_codelet *codelet = NULL;
    testing_must(core, duet_register_codelet(core, &desc, &codelet));
    return codelet;
}

static inline struct duet_handle *testing_cells(struct duet_runtime *core, uint64_t *cells,
                                                size_t count)
{
    struct duet_handle *handle = NULL;
    testing_must(core, duet_register_vector(core, cells, count, sizeof *cells, &handle));
    return handle;
}

/* Submits a task on up to `count` handles, whose arguments are `bytes` at args. */
static inline void testing_submit(struct duet_runtime *core, const struct duet_codelet *codelet,
                                  const struct duet_access *accesses, size_t count,
                                  const void *args, size_t bytes)
{
    const struct duet_task_desc desc = {.codelet = codelet,
                                        .accesses = accesses,
                                        .access_count = count,
                                        .args = args,
                                        .args_bytes = bytes};
    testing_must(core, duet_submit(core, &desc));
}

static inline void testing_sleep(double seconds)
{
    const struct timespec time = {.tv_sec = (time_t)seconds,
                                  .tv_nsec = (long)(fmod(seconds, 1) * 1e9)};
    (void)nanosleep(&time, NULL);
}

/* Waits, without duet's help, until a counter that kernels change has this value. */
static inline void testing_until(_Atomic(int) *counter, int value)
{
    while (atomic_load(counter) != value)
        testing_sleep(1e-4);
}

/* A pipe for what is written to standard error from testing_listen to testing_hear_last. */
struct testing_ear {
    int from, before; /* a pipe's end; standard error as it was */
};

static inline struct testing_ear testing_listen(void)
{
    struct testing_ear ear = {.before = dup(STDERR_FILENO)};
    int ends[2];
    g_assert_cmpint(pipe(ends), ==, 0);
    g_assert_cmpint(dup2(ends[1], STDERR_FILENO), ==, STDERR_FILENO);
    close(ends[1]);
    ear.from = ends[0];
    return ear;
}

/* Waits for a line that says this, and passes on what came until then. */
static inline void testing_hear(const struct testing_ear *ear, const char *says)
{
    char line[1000];
    size_t length;
    do {
        for (length = 0; length == 0 || line[length - 1] != '\n';)
            length += read(ear->from, line + length, length + 1 < sizeof line) == 1;
        line[length] = '\0';
        g_assert_cmpint(write(ear->before, line, length), ==, (ssize_t)length);
    } while (!strstr(line, says));
}

/* Waits as testing_hear does, then gives standard error back and closes the pipe. */
static inline void testing_hear_last(const struct testing_ear *ear, const char *says)
{
    testing_hear(ear, says);
    g_assert_cmpint(dup2(ear->before, STDERR_FILENO), ==, STDERR_FILENO);
    close(ear->before);
    close(ear->from);
}

/* A kernel that counts its calls in the _Atomic(int) that its argument points to. */
static inline int testing_count(const struct duet_call *call)
{
    _Atomic(int) *counter;
    memcpy(&counter, call->args, sizeof counter);
    atomic_fetch_add(counter, 1);
    return DUET_OK;
}

#endif
