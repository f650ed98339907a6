/* SPDX-License-Identifier: Apache-2.0 */
/* Plans the runs of `duet calibrate`: problems, their sizes, and their workers. */
#include "calibrate/calibrate.h"

#include <string.h>

#include "workloads/tiles.h"

enum {
    TILES_MIN = 4,         /* a side: fewer leave no tasks for several workers */
    TILES_WARM = 12,       /* a side: more repeat what the first have told */
    TILES_PACED = 10,      /* a side, if nothing is computed and no cache matters */
    TASKS_MAX = 20000,     /* of a run, whose records are kept */
    TILES_DEFAULT = 3,     /* number of tiles a workload */
    CACHE_USUAL = 1 << 25, /* bytes, if the size is not known */
};

/* Tiles of vectors. Other workloads are tried with half, once and twice their own tile. */
static const uint64_t vector_tiles[TILES_DEFAULT] = {1 << 16, 1 << 18, 1 << 20};

/* Tiles for devices, which want larger ones than cores do. */
static const uint64_t device_tiles[] = {1024, 2048};

/* A pass over vectors in caches ends too soon: several are made. */
static const struct duet__setting passes[] = {{"iterations", "8"}};

/* Tasks of uneven work would each have a size of their own: work is made even. */
static const struct duet__setting even[] = {{"sizes", "fixed"}};

static bool is_uneven(const struct duet__workload *workload)
{
    const struct duet__parameter *p = workload->parameters;
    while (p && p->name && strcmp(p->name, even->name) != 0)
        p++;
    return p && p->name;
}

static bool on_vectors(const struct duet__workload *workload)
{
    return strcmp(workload->name, "saxpy") == 0;
}

static double shared_bytes(const struct duet__calibrating *c)
{
    return c->known.shared_bytes ? (double)c->known.shared_bytes : CACHE_USUAL;
}

/* ------------------------------------------------------------------------------------------- */
/* Sizes                                                                                        */

/* Most tiles a side with which the data fits in a quarter of the shared cache. */
static uint64_t warm_size(const struct duet__calibrating *c, const struct duet__workload *workload,
                          struct duet__problem problem)
{
    uint64_t chosen = TILES_MIN * problem.tile;
    for (uint64_t tiles = TILES_MIN; tiles <= TILES_WARM; tiles++) {
        problem.n = tiles * problem.tile;
        if (workload->check(&problem, NULL) ||
            (double)duet__tiled_bytes(workload, &problem) > shared_bytes(c) / 4)
            break;
        chosen = problem.n;
    }
    return chosen;
}

/* Least tiles a side of a problem that is to be larger than the one that fits into caches. */
static uint64_t least_tiles(const struct duet__setup *setup)
{
    return (3 * setup->warmup_n / setup->problem.tile + 1) / 2;
}

/* Flops of a turn with one run, including the warm-up. */
static double effort(const struct duet__setup *setup)
{
    struct duet__problem warmup = setup->problem, problem = setup->problem;
    warmup.n = setup->warmup_n;
    if (!problem.n)
        problem.n = least_tiles(setup) * problem.tile;
    return setup->workload->flops(&warmup) + setup->workload->flops(&problem);
}

double duet__setup_seconds(const struct duet__calibrating *c, const struct duet__setup *setup)
{
    const struct duet__setup *nearest = NULL;
    for (guint i = 0; i < c->setups->len; i++) {
        const struct duet__setup *other = duet__setup_at(c, i);
        if (other->runs && other->workload == setup->workload &&
            other->problem.precision == setup->problem.precision && other->cpus == setup->cpus &&
            other->devices == setup->devices && (!nearest || effort(other) > effort(nearest)))
            nearest = other;
    }
    return nearest ? nearest->turn_s * effort(setup) / effort(nearest) : 0;
}

void duet__setup_size(const struct duet__calibrating *c, struct duet__setup *setup, double fair_s)
{
    const struct duet__workload *workload = setup->workload;
    double cache = shared_bytes(c), memory = (double)c->info.survey.memory_bytes / 4;
    double rate = 0; /* flops a second of the first runs of its group; 0: none yet */
    struct duet__problem problem = setup->problem;
    uint64_t least;
    if (setup->problem.n || setup->workload->program)
        return;
    least = least_tiles(setup);
    for (guint i = 0; i < c->setups->len; i++) {
        const struct duet__setup *other = duet__setup_at(c, i);
        if (other->group != setup->group)
            continue;
        if (!(rate > 0) && other->runs && other->run_s > 0)
            rate = workload->flops(&other->problem) / other->run_s;
        if (!setup->problem.n && other->size == DUET__SIZE_COLD)
            setup->problem.n = other->problem.n;
    }
    for (uint64_t tiles = least; !setup->problem.n; tiles++) {
        double seconds, bytes;
        problem.n = tiles * problem.tile;
        seconds = rate > 0 ? workload->flops(&problem) / rate : 0;
        bytes = (double)duet__tiled_bytes(workload, &problem);
        /* the size before was the last that is possible, or affordable */
        if (tiles > least &&
            (workload->check(&problem, NULL) || workload->tasks(&problem) > TASKS_MAX ||
             (memory > 0 && bytes > memory) || seconds > 3 * fair_s ||
             (seconds > fair_s && bytes > 1.5 * cache)))
            setup->problem.n = (tiles - 1) * problem.tile;
        else if (bytes >= 4 * cache)
            setup->problem.n = problem.n;
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Setups                                                                                       */

/* Adds runs of one problem on all kinds of workers, or on devices alone. */
static void add_setups(struct duet__calibrating *c, struct duet__setup setup, bool devices)
{
    setup.group = c->groups;
    setup.cpus = 1;
    if (!devices)
        g_array_append_val(c->setups, setup);
    setup.cpus = (int)c->cpus;
    if (!devices && c->cpus > 1)
        g_array_append_val(c->setups, setup);
    setup.gpus = (int)c->gpus;
    setup.devices = true;
    if (c->gpus)
        g_array_append_val(c->setups, setup);
}

/* Adds the default sizes: one in caches, or as near to that as tiles allow, and one beyond. */
static void add_usual(struct duet__calibrating *c, struct duet__setup setup, bool devices)
{
    struct duet__setup cold = setup;
    setup.problem.n = setup.warmup_n = warm_size(c, setup.workload, setup.problem);
    setup.size = DUET__SIZE_WARM;
    if (on_vectors(setup.workload)) {
        setup.problem.settings = passes;
        setup.problem.setting_count = G_N_ELEMENTS(passes);
    }
    add_setups(c, setup, devices);
    cold.problem.n = c->request->paced ? TILES_PACED * setup.problem.tile : 0;
    cold.warmup_n = setup.warmup_n;
    cold.size = DUET__SIZE_COLD;
    add_setups(c, cold, devices);
}

/* Adds the setups of one workload with one tile. DUET_EINVAL: it cannot have a size. */
static int add_subject(struct duet__calibrating *c, const struct duet__setup *subject,
                       bool optional, struct duet_message *message)
{
    const struct duet__numbers *sizes = &c->request->sizes;
    struct duet__setup setup = {.workload = subject->workload,
                                .problem = subject->problem,
                                .optional = optional};
    struct duet_message why = {""};
    uint64_t least = TILES_MIN * subject->problem.tile;
    guint before = c->setups->len;
    int error = 0;
    setup.problem.settings = even;
    setup.problem.setting_count = is_uneven(subject->workload);
    setup.problem.seed = c->request->runs->seed;
    for (size_t i = 0; i < MAX(sizes->count, 1) && !error; i++) {
        setup.problem.n = sizes->count ? sizes->items[i] : least;
        error = setup.workload->check(&setup.problem, &why);
        setup.warmup_n = MIN(setup.problem.n, least);
        if (!error && (sizes->count || setup.workload->program))
            add_setups(c, setup, subject->devices);
        else if (!error)
            add_usual(c, setup, subject->devices);
    }
    c->groups += c->setups->len > before;
    return error ? duet_fail(message, error, "%s: %s", subject->workload->name, why.text) : 0;
}

/* Returns the tile of a workload at this place of its list; 0: the list is shorter. */
static uint64_t tile_at(const struct duet__calibrate_request *request,
                        const struct duet__workload *workload, size_t place)
{
    uint64_t own = workload->real_tile ? workload->real_tile : workload->default_tile;
    if (request->tiles.count)
        return request->tiles.items[place];
    if (request->paced)
        return place ? 0 : workload->default_tile;
    if (is_uneven(workload)) /* one size for all its pieces */
        return (own << 2 * place) / 8;
    return on_vectors(workload) ? vector_tiles[place] : (own << place) / 2;
}

/* Adds all workloads in all their precisions with their tile at this place; or all workloads on
 * squares with a tile for devices alone. */
static void list_tiles(const struct duet__calibrate_request *request, size_t place,
                       uint64_t device_tile, GArray *subjects)
{
    for (const char *precision = request->precisions; *precision; precision++) {
        for (guint i = 0; i < request->workloads->len; i++) {
            const struct duet__workload *workload = request->workloads->pdata[i];
            const struct duet__setup subject =
                {.workload = workload,
                 .problem = {.tile = device_tile ? device_tile : tile_at(request, workload, place),
                             .precision = *precision},
                 .devices = device_tile > 0};
            if (subject.problem.tile && !(device_tile && on_vectors(workload)))
                g_array_append_val(subjects, subject);
        }
    }
}

/* Lists subjects, quick ones first: large tiles for devices, then each workload's first (smallest)
 * tile, then its second, so that a short budget leaves out only large ones. */
static GArray *list_subjects(const struct duet__calibrating *c)
{
    const struct duet__calibrate_request *request = c->request;
    GArray *subjects = g_array_new(FALSE, FALSE, sizeof(struct duet__setup));
    size_t places = request->tiles.count ? request->tiles.count : TILES_DEFAULT;
    bool devices =
        c->gpus && !request->runs->config.emulate && !request->tiles.count && !request->sizes.count;
    for (size_t i = 0; devices && i < G_N_ELEMENTS(device_tiles); i++)
        list_tiles(request, 0, device_tiles[i], subjects);
    for (size_t place = 0; place < places; place++)
        list_tiles(request, place, 0, subjects);
    return subjects;
}

int duet__plan_make(struct duet__calibrating *c, struct duet_message *message)
{
    const struct duet__calibrate_request *request = c->request;
    bool listed = request->subjects != NULL;
    bool optional = !listed && !request->tiles.count && !request->sizes.count;
    /* given sizes need not suit workloads that were not named */
    bool all = request->chosen && !listed;
    g_autoptr(GArray) subjects = listed ? g_array_ref(request->subjects) : list_subjects(c);
    int error = 0;
    c->setups = g_array_new(FALSE, TRUE, sizeof(struct duet__setup));
    for (guint i = 0; i < subjects->len && !(error && all); i++)
        error = add_subject(c, &g_array_index(subjects, struct duet__setup, i), optional, message);
    return c->setups->len && !all ? 0 : error;
}

const char *duet__setup_workers(const struct duet__setup *setup)
{
    if (setup->devices)
        return "gpus";
    return setup->cpus == 1 ? "alone" : "busy";
}

const char *duet__setup_size_name(const struct duet__setup *setup)
{
    static const char *const names[] = {"given", "warm", "cold"};
    return names[setup->size];
}
