/* SPDX-License-Identifier: Apache-2.0 */
/* What `duet calibrate` runs: which problems on which workers, and how large they are. */
#include "calibrate/calibrate.h"

#include <string.h>

enum {
    TILES_MIN = 4,         /* a side: fewer leave nothing to be done at the same time */
    TILES_WARM = 12,       /* a side: more of them repeat what the first have told */
    TILES_PACED = 10,      /* a side, where nothing is computed and no cache matters */
    TASKS_MAX = 20000,     /* of a run: their records are kept */
    TILES_DEFAULT = 3,     /* tiles a workload */
    CACHE_USUAL = 1 << 25, /* bytes, where it is not known how much there is */
};

/* Tiles that are usual for a workload; ended by 0. Others have half, once and twice their own. */
static const struct {
    const char *workload;
    uint64_t tiles[4];
} usual_tiles[] = {
    {"saxpy", {1 << 16, 1 << 18, 1 << 20}},
};

/* Tiles for devices, which want larger ones than cores do. */
static const uint64_t device_tiles[] = {1024, 2048};

/* In caches, one pass over the vectors is over before there is anything to see. */
static const struct duet_setting passes[] = {{"iterations", "8"}};

struct plan {
    const struct duet__calibrate_request *request;
    struct duet__calibrate_result *result;
};

static double shared_bytes(const struct duet__calibrate_result *result)
{
    return result->known.shared_bytes ? (double)result->known.shared_bytes : CACHE_USUAL;
}

/* ------------------------------------------------------------------------------------------- */
/* Sizes                                                                                        */

/* The most tiles a side with which the data fits in a quarter of the shared cache. */
static uint64_t warm_size(const struct plan *plan, const struct duet_workload *workload,
                          struct duet_problem problem)
{
    uint64_t chosen = TILES_MIN * problem.tile;

    for (uint64_t tiles = TILES_MIN; tiles <= TILES_WARM; tiles++) {
        problem.n = tiles * problem.tile;
        if (workload->check(&problem, NULL) ||
            (double)workload->bytes(&problem) > shared_bytes(plan->result) / 4)
            break;
        chosen = problem.n;
    }
    return chosen;
}

/* Flops a second of the first runs of the setup's group; 0: there are none yet. */
static double group_rate(const struct duet__calibrate_result *result,
                         const struct duet__setup *setup)
{
    for (guint i = 0; i < result->setups->len; i++) {
        const struct duet__setup *other = &g_array_index(result->setups, struct duet__setup, i);

        if (other->group == setup->group && other->runs && other->run_s > 0)
            return other->workload->flops(&other->problem) / other->run_s;
    }
    return 0;
}

/* The size that was chosen for others of its group; 0: none. */
static uint64_t group_size(const struct duet__calibrate_result *result,
                           const struct duet__setup *setup)
{
    for (guint i = 0; i < result->setups->len; i++) {
        const struct duet__setup *other = &g_array_index(result->setups, struct duet__setup, i);

        if (other->group == setup->group && other->size == DUET__SIZE_COLD && other->problem.n)
            return other->problem.n;
    }
    return 0;
}

/* The least size of a problem that is to be larger than those before it. */
static uint64_t least_tiles(const struct duet__setup *setup)
{
    return (3 * setup->warmup_n / setup->problem.tile + 1) / 2;
}

/* Flops of a turn with one run, which the warm-up comes before. */
static double effort(const struct duet__setup *setup)
{
    struct duet_problem warmup = setup->problem, problem = setup->problem;

    warmup.n = setup->warmup_n;
    if (!problem.n)
        problem.n = least_tiles(setup) * problem.tile;
    return setup->workload->flops(&warmup) + setup->workload->flops(&problem);
}

double duet__setup_seconds(const struct duet__calibrate_result *result,
                           const struct duet__setup *setup)
{
    const struct duet__setup *nearest = NULL;

    for (guint i = 0; i < result->setups->len; i++) {
        const struct duet__setup *other = &g_array_index(result->setups, struct duet__setup, i);

        if (other->runs && other->workload == setup->workload &&
            other->problem.precision == setup->problem.precision && other->cpus == setup->cpus &&
            other->devices == setup->devices && (!nearest || effort(other) > effort(nearest)))
            nearest = other;
    }
    return nearest ? nearest->turn_s * effort(setup) / effort(nearest) : 0;
}

void duet__setup_size(struct duet__calibrate_result *result, struct duet__setup *setup,
                      double fair_s)
{
    const struct duet_workload *workload = setup->workload;
    double cache = shared_bytes(result), rate = group_rate(result, setup);
    double memory = (double)result->info.survey.memory_bytes / 4;
    struct duet_problem problem = setup->problem;
    uint64_t least = least_tiles(setup);

    if (setup->problem.n)
        return;
    setup->problem.n = group_size(result, setup);
    for (uint64_t tiles = least; !setup->problem.n; tiles++) {
        double seconds, bytes;

        problem.n = tiles * problem.tile;
        seconds = rate > 0 ? workload->flops(&problem) / rate : 0;
        bytes = (double)workload->bytes(&problem);
        /* the one before was the last that is possible, or that there is time for */
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

/* Adds runs of one problem, on all kinds of workers that there are. */
static void add_setups(const struct plan *plan, struct duet__setup setup, bool devices_only)
{
    const struct duet__calibrate_result *result = plan->result;

    setup.group = result->groups;
    setup.cpus = 1;
    if (!devices_only)
        g_array_append_val(result->setups, setup);
    setup.cpus = (int)result->cpus;
    if (!devices_only && result->cpus > 1)
        g_array_append_val(result->setups, setup);
    setup.gpus = (int)result->gpus;
    setup.devices = true;
    if (result->gpus)
        g_array_append_val(result->setups, setup);
}

/* Sizes by default: one in caches, or as near to that as tiles allow, and one beyond. */
static void add_usual(const struct plan *plan, struct duet__setup setup, bool devices_only)
{
    setup.problem.n = warm_size(plan, setup.workload, setup.problem);
    setup.warmup_n = setup.problem.n;
    setup.size = DUET__SIZE_WARM;
    if (strcmp(setup.workload->name, "saxpy") == 0) {
        setup.problem.settings = passes;
        setup.problem.setting_count = G_N_ELEMENTS(passes);
    }
    add_setups(plan, setup, devices_only);
    setup.problem.settings = NULL;
    setup.problem.setting_count = 0;
    setup.problem.n = plan->request->paced ? TILES_PACED * setup.problem.tile : 0;
    setup.size = DUET__SIZE_COLD;
    add_setups(plan, setup, devices_only);
}

/* The setup with this tile in all sizes. DUET_EINVAL: it cannot have them. */
static int add_sizes(const struct plan *plan, struct duet__setup setup, bool devices_only,
                     struct duet_message *message)
{
    const GArray *sizes = plan->request->sizes;
    int error = 0;

    setup.problem.n = TILES_MIN * setup.problem.tile;
    if (!sizes->len) {
        error = setup.workload->check(&setup.problem, message);
        if (!error) {
            add_usual(plan, setup, devices_only);
            plan->result->groups++;
        }
        return error;
    }
    for (guint i = 0; i < sizes->len && !error; i++) {
        struct duet__setup sized = setup;

        sized.problem.n = g_array_index(sizes, uint64_t, i);
        sized.warmup_n = MIN(sized.problem.n, TILES_MIN * setup.problem.tile);
        error = setup.workload->check(&sized.problem, message);
        if (!error)
            add_setups(plan, sized, devices_only);
    }
    plan->result->groups++;
    return error;
}

/* Tiles of a workload, to be freed as an array of uint64_t ended by 0. */
static uint64_t *default_tiles(const struct plan *plan, const struct duet_workload *workload)
{
    uint64_t own = workload->real_tile ? workload->real_tile : workload->default_tile;
    uint64_t *tiles = g_new0(uint64_t, 4);

    if (plan->request->paced) {
        tiles[0] = workload->default_tile;
        return tiles;
    }
    tiles[0] = own / 2;
    tiles[1] = own;
    tiles[2] = own * 2;
    for (size_t i = 0; i < G_N_ELEMENTS(usual_tiles); i++)
        if (strcmp(usual_tiles[i].workload, workload->name) == 0)
            memcpy(tiles, usual_tiles[i].tiles, sizeof usual_tiles[i].tiles);
    return tiles;
}

/* Whether devices of the machine are to be tried with tiles of their own, for squares only. */
static bool has_device_tiles(const struct plan *plan, const struct duet_workload *workload)
{
    return plan->result->gpus && !plan->request->runs->config.emulate &&
           !plan->request->tiles->len && !plan->request->sizes->len &&
           strcmp(workload->name, "saxpy") != 0;
}

/* Adds what is to be measured of one workload with one tile. Says of which workload an error is. */
static int add_subject(const struct plan *plan, const struct duet__subject *subject,
                       bool devices_only, bool optional, struct duet_message *message)
{
    struct duet__setup setup = {.workload = subject->workload,
                                .optional = optional,
                                .problem = {.tile = subject->tile,
                                            .precision = subject->precision,
                                            .seed = plan->request->runs->seed}};
    struct duet_message why = {""};
    int error = add_sizes(plan, setup, devices_only, &why);

    return error ? duet_fail(message, error, "%s: %s", subject->workload->name, why.text) : 0;
}

/* The tile of a workload at this place of its list; 0: the list is shorter. */
static uint64_t tile_at(const struct plan *plan, const struct duet_workload *workload, guint place)
{
    const GArray *given = plan->request->tiles;
    uint64_t *tiles, chosen;

    if (given->len)
        return place < given->len ? g_array_index(given, uint64_t, place) : 0;
    if (place >= TILES_DEFAULT)
        return 0;
    tiles = default_tiles(plan, workload);
    chosen = tiles[place];
    g_free(tiles);
    return chosen;
}

/* Lists the tiles of all workloads: the first of each, which are the lightest, then the second. */
static void list_subjects(const struct plan *plan, GArray *subjects)
{
    const struct duet__calibrate_request *request = plan->request;
    guint places = request->tiles->len ? request->tiles->len : TILES_DEFAULT;

    for (guint place = 0; place < places; place++) {
        for (const char *precision = request->precisions; *precision; precision++) {
            for (guint i = 0; i < request->workloads->len; i++) {
                const struct duet_workload *workload = duet__calibrate_workload(request, i);
                const struct duet__subject subject = {workload, tile_at(plan, workload, place),
                                                      *precision};

                if (subject.tile)
                    g_array_append_val(subjects, subject);
            }
        }
    }
}

/* Larger tiles for devices alone. */
static int add_device_tiles(const struct plan *plan, struct duet_message *message)
{
    const struct duet__calibrate_request *request = plan->request;
    int error = 0;

    for (const char *precision = request->precisions; *precision; precision++) {
        for (guint i = 0; i < request->workloads->len; i++) {
            const struct duet_workload *workload = duet__calibrate_workload(request, i);

            for (size_t k = 0;
                 !error && has_device_tiles(plan, workload) && k < G_N_ELEMENTS(device_tiles);
                 k++) {
                const struct duet__subject subject = {workload, device_tiles[k], *precision};

                error = add_subject(plan, &subject, true, true, message);
            }
        }
    }
    return error;
}

int duet__plan_make(const struct duet__calibrate_request *request,
                    struct duet__calibrate_result *result, struct duet_message *message)
{
    const struct plan plan = {request, result};
    GArray *subjects = g_array_new(FALSE, FALSE, sizeof(struct duet__subject));
    bool listed = request->subjects != NULL;
    int error = 0;

    result->setups = g_array_new(FALSE, TRUE, sizeof(struct duet__setup));
    if (listed)
        g_array_append_vals(subjects, request->subjects->data, request->subjects->len);
    else
        list_subjects(&plan, subjects);
    /* sizes that are given need not suit the workloads that nobody has named */
    for (guint i = 0; i < subjects->len && (!error || listed || !request->chosen); i++)
        error = add_subject(&plan, &g_array_index(subjects, struct duet__subject, i), false,
                            !listed && !request->tiles->len && !request->sizes->len, message);
    if (!error && !listed)
        error = add_device_tiles(&plan, message);
    g_array_free(subjects, TRUE);
    return result->setups->len && (!error || listed || !request->chosen) ? 0 : error;
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
