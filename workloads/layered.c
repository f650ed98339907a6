/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random layered task graphs: every task writes one block of its own and reads the blocks of some
 * tasks of the layer before. For tests and for studies of schedulers beyond linear algebra.
 *
 * Everything is drawn from the seed, one independent stream a task, so that a graph is the same on
 * every machine, whatever the order in which it is asked about:
 * - predecessors: uniformly 1 to 2 * degree - 1 different tasks of the layer before (at most all);
 * - kernel: one of `kernels` kinds; work: 1/4 to 7/4 of the mean in steps of 1/4;
 * - block: the mean is tile x tile elements; "uniform": 1/2, 1 or 3/2 of it; "bimodal": one in ten
 *   is 5.5 times the mean, the others half of it;
 * - seconds: a CPU does 10^9 flops a second; another architecture is faster by a factor drawn
 *   from [1, speedup] for each kind of kernel and name of architecture;
 * - restriction: `cpu_only` and `gpu_only` percent of the tasks; one that the machine cannot honour
 *   is dropped, so that the graph runs on every machine.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include <duet/random.h>
#include <duet/trace.h>

#include "workloads/tiles.h"

enum {
    KERNELS_MAX = 64,
    DEGREE_MAX = 64,
    CPU_ARCHS_MAX = 4, /* names of CPU architectures in a task's arguments */
    TASKS_MAX = 100000000,
};

static const double cpu_flops_per_s = 1e9;

static const struct duet__parameter parameters[] = {
    {"layers", "1..1000000", "n/width", "layers; replaces the number of tasks n by layers * width"},
    {"width", "1..1000000", "32", "tasks of a layer (the last one may have fewer)"},
    {"degree", "0..64", "3", "mean number of predecessors; 0: independent tasks"},
    {"sizes", "fixed|uniform|bimodal", "uniform", "distribution of the blocks' sizes"},
    {"kernels", "1..64", "4", "kinds of kernels, each with a speed-up of its own"},
    {"work", "1.0..1e15", "1e7", "mean flops of a task (a CPU does 1e9 a second)"},
    {"speedup", "1.0..1e6", "20", "largest speed-up over a CPU"},
    {"cpu_only", "0..100", "0", "percent of tasks that run on CPUs only"},
    {"gpu_only", "0..100", "0", "percent of tasks that run on GPUs only"},
    {0},
};

/* No kernels that a calibration could know: "layered0" and on time themselves. */
static const char *const kernels[] = {NULL};

/* The graph's shape, by the problem. */
struct shape {
    uint64_t seed, tasks, width, degree, kernels, cpu_only, gpu_only, elements;
    double work, speedup;
    char sizes; /* first letter of its value */
};

/* Arguments of a task: all that its duration depends on. */
struct arguments {
    uint64_t seed;
    double work, speedup;
    uint32_t kernel;
    uint32_t cpu_archs[CPU_ARCHS_MAX]; /* hashes of the names of the machine's CPUs; 0: none */
};

/* Properties of a task, drawn at random before any task is submitted. */
struct draft {
    uint32_t kernel;
    double work;
    uint64_t elements;
    char where; /* 'c': CPUs only, 'g': GPUs only, 0: anywhere */
};

/* ------------------------------------------------------------------------------------------- */
/* Random numbers                                                                               */

/* Returns the state of the stream (major, minor) of a seed. */
static uint64_t stream(uint64_t seed, uint64_t major, uint64_t minor)
{
    uint64_t state = seed;
    state = duet_random_next(&state) + major;
    state = duet_random_next(&state) + minor;
    return duet_random_next(&state);
}

/* Draws uniformly from 0..count-1. The bias, count / 2^64, does not matter here. */
static uint64_t draw_below(uint64_t *state, uint64_t count)
{
    return duet_random_next(state) % count;
}

/* Purposes of streams. */
enum { STREAM_TASK, STREAM_PREDECESSORS, STREAM_SPEEDUP };

/* Returns the FNV-1a hash of a name, never 0. */
static uint32_t hash_name(const char *name)
{
    uint32_t hash = UINT32_C(2166136261);
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT32_C(16777619);
    return hash ? hash : 1;
}

/* ------------------------------------------------------------------------------------------- */
/* The graph                                                                                    */

static double setting_real(const struct duet__problem *problem, const char *name)
{
    return g_ascii_strtod(duet__setting(problem, parameters, name), NULL);
}

static void shape_init(struct shape *shape, const struct duet__problem *problem)
{
    uint64_t layers = duet__setting_number(problem, parameters, "layers", 0);
    *shape = (struct shape){
        .seed = problem->seed,
        .width = duet__setting_number(problem, parameters, "width", 1),
        .degree = duet__setting_number(problem, parameters, "degree", 0),
        .kernels = duet__setting_number(problem, parameters, "kernels", 1),
        .cpu_only = duet__setting_number(problem, parameters, "cpu_only", 0),
        .gpu_only = duet__setting_number(problem, parameters, "gpu_only", 0),
        .elements = problem->tile * problem->tile,
        .work = setting_real(problem, "work"),
        .speedup = setting_real(problem, "speedup"),
        .sizes = *duet__setting(problem, parameters, "sizes"),
    };
    shape->tasks = layers ? layers * shape->width : problem->n;
}

static uint64_t draw_elements(const struct shape *shape, uint64_t *state)
{
    uint64_t draw = draw_below(state, 30), elements = shape->elements;
    if (shape->sizes == 'u')
        elements = elements * (draw % 3 + 1) / 2;
    else if (shape->sizes == 'b')
        elements = elements * (draw < 3 ? 11 : 1) / 2;
    return elements ? elements : 1;
}

static struct draft draw_task(const struct shape *shape, uint64_t task)
{
    uint64_t state = stream(shape->seed, STREAM_TASK, task);
    struct draft draft = {.kernel = (uint32_t)draw_below(&state, shape->kernels)};
    draft.work = shape->work * (double)(draw_below(&state, 7) + 1) / 4;
    draft.elements = draw_elements(shape, &state);
    uint64_t percent = draw_below(&state, 100);
    if (percent < shape->cpu_only)
        draft.where = 'c';
    else if (percent < shape->cpu_only + shape->gpu_only)
        draft.where = 'g';
    return draft;
}

/* Draws the predecessors of a task into `out` (room for 2 * DEGREE_MAX) and returns their number.
 * Floyd's algorithm for distinct draws (Bentley, CACM 30(9), 1987). */
static size_t draw_predecessors(const struct shape *shape, uint64_t task, uint64_t *out)
{
    uint64_t layer = task / shape->width;
    if (!layer || !shape->degree)
        return 0;
    uint64_t state = stream(shape->seed, STREAM_PREDECESSORS, task);
    uint64_t first = (layer - 1) * shape->width;
    uint64_t wanted = 1 + draw_below(&state, 2 * shape->degree - 1);
    if (wanted > shape->width)
        wanted = shape->width;
    size_t count = 0;
    for (uint64_t last = shape->width - wanted; last < shape->width; last++) {
        uint64_t pick = first + draw_below(&state, last + 1);
        for (size_t i = 0; i < count; i++) {
            if (out[i] == pick) {
                pick = first + last;
                break;
            }
        }
        out[count++] = pick;
    }
    return count;
}

/* ------------------------------------------------------------------------------------------- */
/* Kernels                                                                                      */

static double kernel_flops(const void *args)
{
    return ((const struct arguments *)args)->work;
}

static double kernel_cost(const void *args, const char *arch)
{
    const struct arguments *a = args;
    uint32_t hash = hash_name(arch);
    for (size_t i = 0; i < CPU_ARCHS_MAX; i++) {
        if (a->cpu_archs[i] == hash)
            return a->work / cpu_flops_per_s;
    }
    uint64_t state = stream(a->seed, STREAM_SPEEDUP, (uint64_t)a->kernel << 32 | hash);
    double fraction = duet_random_unit(&state);
    return a->work / (cpu_flops_per_s * (1 + fraction * (a->speedup - 1)));
}

static int register_kernels(struct duet_runtime *runtime, const struct shape *shape,
                            struct duet_codelet **codelets)
{
    static const struct duet_implementation implementations[] = {
        {.arch = "cpu", .run = NULL},
        {.arch = "cuda", .run = NULL},
        {.arch = "opencl", .run = NULL},
    };
    int error = 0;
    for (unsigned k = 0; !error && k < shape->kernels; k++) {
        char name[DUET_NAME_MAX];
        snprintf(name, sizeof name, "layered%u", k);
        const struct duet_codelet_desc desc = {
            .name = name,
            .implementations = implementations,
            .implementation_count = sizeof implementations / sizeof *implementations,
            .flops = kernel_flops,
            .cost = kernel_cost,
        };
        error = duet_register_codelet(runtime, &desc, &codelets[k]);
    }
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* The workload                                                                                 */

static int layered_check(const struct duet__problem *problem, struct duet_message *message)
{
    struct shape shape;
    int error = duet__problem_check(problem, parameters, message);
    if (error)
        return error;
    shape_init(&shape, problem);
    if (shape.tasks > TASKS_MAX)
        return duet_fail(message, DUET_EINVAL, "%llu tasks are too many: at most %d are possible",
                         (unsigned long long)shape.tasks, TASKS_MAX);
    if (shape.cpu_only + shape.gpu_only > 100)
        return duet_fail(message, DUET_EINVAL,
                         "cpu_only = %llu and gpu_only = %llu are more than 100 percent together",
                         (unsigned long long)shape.cpu_only, (unsigned long long)shape.gpu_only);
    return 0;
}

static double layered_flops(const struct duet__problem *problem)
{
    struct shape shape;
    shape_init(&shape, problem);
    double sum = 0;
    for (uint64_t task = 0; task < shape.tasks; task++)
        sum += draw_task(&shape, task).work;
    return sum;
}

static uint64_t layered_tasks(const struct duet__problem *problem)
{
    struct shape shape;
    shape_init(&shape, problem);
    return shape.tasks;
}

/* One build under way. */
struct build {
    struct duet_runtime *runtime;
    struct shape shape;
    uint64_t where_cpu, where_gpu; /* restrictions; 0 if no worker can honour them */
    struct arguments args;         /* of a task; work and kernel vary */
    struct duet_codelet *codelets[KERNELS_MAX];
    struct duet_handle **blocks; /* by task; only those of the last two layers are still used */
};

static void find_architectures(struct build *b)
{
    const struct duet_machine *machine = duet_runtime_machine(b->runtime);
    unsigned count = 0;
    for (unsigned a = 0; a < machine->arch_count && count < CPU_ARCHS_MAX; a++) {
        if (!strcmp(machine->archs[a].backend, "cpu"))
            b->args.cpu_archs[count++] = hash_name(machine->archs[a].name);
    }
    b->where_cpu = duet_where(b->runtime, "cpu");
    b->where_gpu = duet_where(b->runtime, "cuda,opencl");
}

static int submit_task(struct build *b, uint64_t task, size_t element_bytes)
{
    uint64_t predecessors[2 * DEGREE_MAX];
    struct duet_access accesses[2 * DEGREE_MAX + 1];
    struct draft draft = draw_task(&b->shape, task);
    size_t count = draw_predecessors(&b->shape, task, predecessors);
    int error =
        duet_register_vector(b->runtime, NULL, draft.elements, element_bytes, &b->blocks[task]);
    if (error)
        return error;
    error = duet_own(b->runtime, b->blocks[task], (unsigned)(task % duet_node_count(b->runtime)));
    if (error)
        return error;
    for (size_t i = 0; i < count; i++)
        accesses[i] = (struct duet_access){b->blocks[predecessors[i]], DUET_R};
    /* the first tasks find their block in the host's memory, the others make theirs */
    accesses[count] = (struct duet_access){b->blocks[task], count ? DUET_W : DUET_RW};
    b->args.kernel = draft.kernel;
    b->args.work = draft.work;
    uint64_t where = 0;
    if (draft.where)
        where = draft.where == 'c' ? b->where_cpu : b->where_gpu;
    const struct duet_task_desc desc = {
        .codelet = b->codelets[draft.kernel],
        .accesses = accesses,
        .access_count = count + 1,
        .args = &b->args,
        .args_bytes = sizeof b->args,
        .where = where,
    };
    return duet_submit(b->runtime, &desc);
}

static int layered_build(const struct duet__workload *self, struct duet_runtime *runtime,
                         const struct duet__problem *problem, void **state,
                         struct duet_message *message)
{
    struct build b = {.runtime = runtime};
    *state = NULL;
    int error = layered_check(problem, message);
    if (error)
        return error;
    shape_init(&b.shape, problem);
    b.args.seed = b.shape.seed;
    b.args.speedup = b.shape.speedup;
    b.blocks = calloc(b.shape.tasks, sizeof *b.blocks);
    if (!b.blocks)
        return duet_fail(message, DUET_ENOMEM, "no memory for a graph of %llu tasks",
                         (unsigned long long)b.shape.tasks);
    find_architectures(&b);
    error = register_kernels(runtime, &b.shape, b.codelets);
    for (uint64_t task = 0; !error && task < b.shape.tasks; task++)
        error = submit_task(&b, task, duet__element_bytes(problem));
    free(b.blocks);
    return error;
}

static void layered_fini(void *state)
{
    (void)state; /* build keeps nothing */
}

const struct duet__workload duet__workload_layered = {
    .name = "layered",
    .description = "random layered graph of n tasks on blocks of about tile x tile elements",
    .source = "Tobita, Kasahara, A standard task graph set, Journal of Scheduling 5, 2002 (layered "
              "random graphs)",
    .parameters = parameters,
    .kernels = kernels,
    .default_n = 1000,
    .default_tile = 256,
    .check = layered_check,
    .flops = layered_flops,
    .tasks = layered_tasks,
    .build = layered_build,
    .fini = layered_fini,
};
