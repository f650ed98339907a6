/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Support for tests of the simulated engine: a small machine with round figures, kernels whose
 * times the test gives, and the records of the run.
 *
 * The machine: CPU workers "cpu0", ...; GPU workers "gpu0", ..., two behind each switch. Every
 * worker has an architecture of its own name, so that a test can say where a task runs.
 *
 *     from - to                        links                        latency      bandwidth
 *     host - GPU of switch s           in<s>                        1 ms         1 GB/s, shared
 *     GPU of switch s - host           out<s>                       1 ms         1 GB/s, shared
 *     GPUs of one switch               peer                         2 ms         2 GB/s a copy
 *     GPU of switch s - of switch t    out<s>, cross, in<t>         3 ms         0.5 GB/s a copy
 */
#ifndef DUET_SIM_TESTING_H
#define DUET_SIM_TESTING_H

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib.h>

#include <duet/duet.h>
#include <duet/machine.h>
#include <duet/trace.h>

#include "core/engine.h"
#include "core/testing_released.h"
#include "sim/sim.h"

/* Options of a test's machine and run; zero: the default in brackets. */
struct lab_options {
    unsigned cpus, gpus;
    unsigned sockets;          /* [1] CPU workers are on one after another, GPUs on the first */
    unsigned gpu_window;       /* [2] */
    unsigned gpu_window_short; /* [gpu_window] */
    uint64_t gpu_memory_bytes; /* [1 GB] */
    bool no_peer;
    struct duet_costs costs;
    struct duet_sharing sharing;
    unsigned cores;
    bool first_waits, emulated;       /* emulated: the GPUs are */
    unsigned without;                 /* bits of enum duet__effect */
    const char *policy;               /* [eager] */
    const struct duet_policy *custom; /* [of that name] */
    size_t window;
    uint64_t seed;
    bool set_arch, keep_going, noise, extrapolate;
    const struct duet__calibration *calibration; /* [empty] */
};

struct lab {
    struct duet_machine machine;
    struct duet_runtime *duet;
    struct duet_codelet *kernel; /* takes the seconds its arguments say */
    struct duet_event *events;   /* after lab_finish */
    size_t event_count;
};

/* Arguments of a task: seconds on a CPU and on a GPU; 0: it cannot run there. */
struct lab_seconds {
    double cpu, gpu;
};

/* ------------------------------------------------------------------------------------------- */
/* Processes: one can simulate once                                                             */

/*
 * A test case, which runs in a process of its own: that is this executable again, so that whatever
 * it leaks is reported at its end.
 */
struct lab_case {
    void (*run)(void);
    void (*run_on)(const void *argument); /* if the other one is NULL */
    const void *argument;
};

static inline void lab_case_run(const void *data)
{
    const struct lab_case *the = data;
    if (!g_test_subprocess()) {
        g_test_trap_subprocess(NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
        g_test_trap_assert_passed();
    } else if (the->run) {
        the->run();
    } else {
        the->run_on(the->argument);
    }
}

/* Adds a case; `name` is its path in GLib's manner. */
static inline void lab_add_case(const char *name, struct lab_case the)
{
    static struct lab_case cases[128];
    static unsigned count;
    g_assert_cmpuint(count, <, G_N_ELEMENTS(cases));
    cases[count] = the;
    g_test_add_data_func(name, &cases[count++], lab_case_run);
}

static inline void lab_add(const char *name, void (*run)(void))
{
    lab_add_case(name, (struct lab_case){.run = run});
}

static inline void lab_add_on(const char *name, const void *argument,
                              void (*run)(const void *argument))
{
    lab_add_case(name, (struct lab_case){.run_on = run, .argument = argument});
}

/* The main function of a file whose tests are these functions, each run in a child. */
#define LAB_MAIN(...) TEST_MAIN_BY(lab_add, #__VA_ARGS__, __VA_ARGS__)

/*
 * Returns the output of `body`, run in a child of this process, which must not have simulated
 * itself.
 */
static inline GByteArray *lab_fork(void (*body)(const void *argument, FILE *out),
                                   const void *argument)
{
    int ends[2], status = 0;
    g_assert_cmpint(pipe(ends), ==, 0);
    fflush(NULL);
    pid_t child = fork();
    g_assert_cmpint(child, >=, 0);
    if (child == 0) {
        close(ends[0]);
        FILE *out = fdopen(ends[1], "w");
        body(argument, out);
        fclose(out);
        _exit(0);
    }
    close(ends[1]);
    GByteArray *bytes = g_byte_array_new();
    guint8 buffer[4096];
    ssize_t count;
    while ((count = read(ends[0], buffer, sizeof buffer)) > 0)
        g_byte_array_append(bytes, buffer, (guint)count);
    close(ends[0]);
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_cmpint(status, ==, 0);
    return bytes;
}

/* ------------------------------------------------------------------------------------------- */
/* The machine                                                                                  */

static inline unsigned lab_link(struct duet_machine *m, unsigned *count, const char *name,
                                unsigned number, double bandwidth, bool per_copy)
{
    struct duet_link *link = &m->links[*count];
    g_snprintf(link->name, sizeof link->name, "%s%u", name, number);
    link->bandwidth_Bps = bandwidth;
    link->per_copy = per_copy;
    return (*count)++;
}

static inline void lab_route(struct duet_machine *m, unsigned from, unsigned to, double latency,
                             double bandwidth, const unsigned *links, unsigned count)
{
    struct duet_route *route = &m->routes[from * m->node_count + to];
    *route = (struct duet_route){.direct = true,
                                 .count = (uint8_t)count,
                                 .latency_s = latency,
                                 .bandwidth_Bps = bandwidth};
    for (unsigned i = 0; i < count; i++)
        route->links[i] = (uint16_t)links[i];
}

static inline void lab_routes(struct duet_machine *m, const struct lab_options *o)
{
    unsigned count = 0, switches = (o->gpus + 1) / 2;
    unsigned peer = lab_link(m, &count, "peer", 0, 2e9, true);
    unsigned cross = lab_link(m, &count, "cross", 0, 0.5e9, true);
    for (unsigned s = 0; s < switches; s++) {
        (void)lab_link(m, &count, "in", s, 1e9, false);
        (void)lab_link(m, &count, "out", s, 1e9, false);
    }
    for (unsigned g = 0; g < o->gpus; g++) {
        unsigned in = 2 + g / 2 * 2, out = in + 1;
        lab_route(m, DUET_HOST, g + 1, 1e-3, 1e9, &in, 1);
        lab_route(m, g + 1, DUET_HOST, 1e-3, 1e9, &out, 1);
        for (unsigned h = 0; h < o->gpus && !o->no_peer; h++) {
            const unsigned far[] = {out, cross, 2 + h / 2 * 2};
            if (h != g && h / 2 == g / 2)
                lab_route(m, g + 1, h + 1, 2e-3, 2e9, &peer, 1);
            else if (h != g)
                lab_route(m, g + 1, h + 1, 3e-3, 0.5e9, far, 3);
        }
    }
}

static inline void lab_worker(struct duet_machine *m, unsigned index, bool gpu, unsigned number,
                              unsigned window)
{
    struct duet_worker *worker = &m->workers[index];
    struct duet_arch *arch = &m->archs[index];
    g_snprintf(worker->name, sizeof worker->name, "%s%u", gpu ? "gpu" : "cpu", number);
    g_strlcpy(arch->name, worker->name, sizeof arch->name);
    g_strlcpy(arch->backend, gpu ? "cuda" : "cpu", sizeof arch->backend);
    worker->arch = index;
    worker->node = gpu ? number + 1 : DUET_HOST;
    worker->window = window;
}

static inline struct duet_machine lab_machine(const struct lab_options *o)
{
    struct duet_machine m;
    g_assert_cmpint(duet_machine_init(&m, o->cpus + o->gpus, 1 + o->gpus, o->cpus + o->gpus,
                                      2 + (o->gpus + 1) / 2 * 2),
                    ==, DUET_OK);
    g_strlcpy(m.name, "lab", sizeof m.name);
    g_strlcpy(m.nodes[DUET_HOST].name, "host", sizeof m.nodes[DUET_HOST].name);
    for (unsigned c = 0; c < o->cpus; c++)
        lab_worker(&m, c, false, c, 1);
    for (unsigned c = 0; c < o->cpus && o->sockets; c++)
        m.workers[c].socket = c % o->sockets;
    for (unsigned g = 0; g < o->gpus; g++) {
        lab_worker(&m, o->cpus + g, true, g, o->gpu_window ? o->gpu_window : 2);
        m.workers[o->cpus + g].window_short = o->gpu_window_short;
        g_strlcpy(m.nodes[g + 1].name, m.workers[o->cpus + g].name, sizeof m.nodes[g + 1].name);
        m.nodes[g + 1].capacity_bytes = o->gpu_memory_bytes ? o->gpu_memory_bytes : 1000000000;
    }
    for (unsigned g = 0; g < o->gpus && o->emulated; g++) { /* as duet calibrate describes them */
        m.workers[o->cpus + g].arch = o->cpus;
        g_strlcpy(m.archs[o->cpus].name, "emulated", sizeof m.archs[0].name);
    }
    lab_routes(&m, o);
    m.costs = o->costs;
    m.sharing = o->sharing;
    m.cores = o->cores;
    m.first_waits = o->first_waits;
    WORKS(duet_machine_check(&m, hear()));
    return m;
}

/* ------------------------------------------------------------------------------------------- */
/* The run                                                                                      */

static inline double lab_cost(const void *args, const char *arch)
{
    const struct lab_seconds *seconds = args;
    return strncmp(arch, "gpu", 3) ? seconds->cpu : seconds->gpu;
}

/* A figure that tells tasks of different times apart, as flops of a real kernel would. */
static inline double lab_work(const void *args)
{
    const struct lab_seconds *seconds = args;
    return 1 + 1e6 * seconds->cpu + 1e12 * seconds->gpu;
}

static inline struct duet_codelet *lab_codelet(struct lab *lab, const char *name,
                                               double (*flops)(const void *args),
                                               double (*cost)(const void *args, const char *arch))
{
    const struct duet_implementation where[] = {{"cpu", NULL}, {"cuda", NULL}, {"emulated", NULL}};
    const struct duet_codelet_desc desc = {.name = name,
                                           .implementations = where,
                                           .implementation_count = 3,
                                           .flops = flops,
                                           .cost = cost};
    struct duet_codelet *codelet = NULL;
    if (duet_register_codelet(lab->duet, &desc, &codelet))
        g_error("%s", duet_last_message(lab->duet));
    return codelet;
}

static inline struct lab lab_open(const struct lab_options *o)
{
    static const struct duet__calibration empty;
    struct lab lab = {.machine = lab_machine(o)};
    struct sim_options options = {.calibration = o->calibration ? o->calibration : &empty,
                                  .noise = o->noise,
                                  .extrapolate = o->extrapolate,
                                  .seed = o->seed,
                                  .effects = DUET__EFFECTS & ~o->without};
    struct duet__core_config config = {
        .machine = &lab.machine,
        .policy = o->custom ? o->custom : duet_policy_find(o->policy ? o->policy : "eager"),
        .model = duet_model_at(0),
        .seed = o->seed,
        .window = o->window,
        .set_arch = o->set_arch,
        .keep_going = o->keep_going,
        .record = true,
        .ops = duet__sim_ops(),
    };
    if (duet__sim_new(&config.engine, &lab.machine, &options, hear()) ||
        duet__core_new(&lab.duet, &config, hear()))
        g_error("%s", heard());
    duet__sim_attach(config.engine, lab.duet);
    lab.kernel = lab_codelet(&lab, "work", lab_work, lab_cost);
    return lab;
}

static inline struct duet_handle *lab_data(struct lab *lab, uint64_t bytes)
{
    struct duet_handle *handle = NULL;
    if (duet_register_vector(lab->duet, NULL, bytes, 1, &handle))
        g_error("%s", duet_last_message(lab->duet));
    return handle;
}

static inline int lab_try_all(struct lab *lab, struct lab_seconds seconds, const char *where,
                              const struct duet_access *accesses, size_t count)
{
    const struct duet_task_desc task = {.codelet = lab->kernel,
                                        .accesses = accesses,
                                        .access_count = count,
                                        .args = &seconds,
                                        .args_bytes = sizeof seconds,
                                        .where = where ? duet_where(lab->duet, where) : 0};
    return duet_submit(lab->duet, &task);
}

/* Submits a task; `count` accesses follow, each a handle and an enum duet_mode. */
static inline int lab_try(struct lab *lab, struct lab_seconds seconds, const char *where,
                          unsigned count, ...)
{
    struct duet_access accesses[8];
    va_list rest;
    g_assert_cmpuint(count, <=, 8);
    va_start(rest, count);
    for (unsigned i = 0; i < count; i++) {
        accesses[i].handle = va_arg(rest, struct duet_handle *);
        accesses[i].mode = (enum duet_mode)va_arg(rest, int);
    }
    va_end(rest);
    return lab_try_all(lab, seconds, where, accesses, count);
}

/* Submits a task of `seconds` wherever it runs, which must be accepted. */
#define lab_task(lab, where, seconds, ...)                                                         \
    g_assert_cmpint(lab_try((lab), (struct lab_seconds){(seconds), (seconds)}, (where),            \
                            __VA_ARGS__),                                                          \
                    ==, DUET_OK)

/* Waits for all tasks and gets the records. */
static inline void lab_finish(struct lab *lab)
{
    if (duet_wait(lab->duet))
        g_error("%s", duet_last_message(lab->duet));
    free(lab->events);
    g_assert_cmpint(duet_trace_events(lab->duet, &lab->events, &lab->event_count), ==, DUET_OK);
    testing_check_released(lab->events, lab->event_count, 0);
}

static inline void lab_close(struct lab *lab)
{
    free(lab->events);
    duet__core_free(lab->duet);
    duet_machine_fini(&lab->machine);
}

/* ------------------------------------------------------------------------------------------- */
/* The records                                                                                  */

/* The number-th record (from 1) of a task or of copies of a handle, or NULL. */
static inline const struct duet_event *lab_find(const struct lab *lab, enum duet_event_kind kind,
                                                uint64_t id, unsigned number)
{
    for (size_t i = 0; i < lab->event_count; i++)
        if (lab->events[i].kind == kind && lab->events[i].id == id && --number == 0)
            return &lab->events[i];
    return NULL;
}

static inline size_t lab_count(const struct lab *lab, enum duet_event_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < lab->event_count; i++)
        count += lab->events[i].kind == kind;
    return count;
}

/* Equal but for 1e-9 of the value, or 1e-15 s at zero. */
static inline bool lab_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b) + 1e-15;
}

#define assert_seconds(is, shall_be)                                                               \
    do {                                                                                           \
        double is_ = (is), shall_be_ = (shall_be);                                                 \
        if (!lab_near(is_, shall_be_))                                                             \
            g_error("%s:%d: %s is %.15g, not %.15g", __FILE__, __LINE__, #is, is_, shall_be_);     \
    } while (0)

/* Task `id` ran from start to end on that worker ("cpu0"). */
static inline void assert_kernel(const struct lab *lab, uint64_t id, const char *worker,
                                 double start, double end)
{
    const struct duet_event *event = lab_find(lab, DUET_EVENT_TASK, id, 1);
    g_assert_nonnull(event);
    const char *on = lab->machine.workers[event->worker].name;
    if (!lab_near(event->start_s, start) || !lab_near(event->end_s, end) || strcmp(on, worker) != 0)
        g_error("task %u ran on %s from %.12g to %.12g, not on %s from %.12g to %.12g",
                (unsigned)id, on, event->start_s, event->end_s, worker, start, end);
}

/* The number-th copy of the handle went between these nodes at these dates. */
static inline void assert_copy(const struct lab *lab, uint64_t handle, unsigned number,
                               const char *source, const char *destination, double start,
                               double end)
{
    const struct duet_event *event = lab_find(lab, DUET_EVENT_COPY, handle, number);
    if (!event)
        g_error("handle %u has no copy number %u", (unsigned)handle, number);
    const char *from = lab->machine.nodes[event->source].name;
    const char *to = lab->machine.nodes[event->destination].name;
    if (!lab_near(event->start_s, start) || !lab_near(event->end_s, end) ||
        strcmp(from, source) != 0 || strcmp(to, destination) != 0)
        g_error("copy %u of handle %u went from %s to %s from %.12g to %.12g, not from %s to %s "
                "from %.12g to %.12g",
                number, (unsigned)handle, from, to, event->start_s, event->end_s, source,
                destination, start, end);
}

#endif
