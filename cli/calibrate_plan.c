/* SPDX-License-Identifier: Apache-2.0 */
/* What `duet calibrate` runs: which problems on which workers, and how large they are. */
#include "cli/calibrate.h"

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
    const struct duet__wish *wish;
    struct duet__found *found;
};

static double shared_bytes(const struct duet__found *found)
{
    return found->known.shared_bytes ? (double)found->known.shared_bytes : CACHE_USUAL;
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
            (double)workload->bytes(&problem) > shared_bytes(plan->found) / 4)
            break;
        chosen = problem.n;
    }
    return chosen;
}

/* Flops a second of the first runs of the item's group; 0: there are none yet. */
static double group_rate(const struct duet__found *found, const struct duet__item *item)
{
    for (guint i = 0; i < found->items->len; i++) {
        const struct duet__item *other = &g_array_index(found->items, struct duet__item, i);

        if (other->group == item->group && other->runs && other->run_s > 0)
            return other->workload->flops(&other->problem) / other->run_s;
    }
    return 0;
}

/* The size that was chosen for others of its group; 0: none. */
static uint64_t group_size(const struct duet__found *found, const struct duet__item *item)
{
    for (guint i = 0; i < found->items->len; i++) {
        const struct duet__item *other = &g_array_index(found->items, struct duet__item, i);

        if (other->group == item->group && other->size == DUET__SIZE_COLD && other->problem.n)
            return other->problem.n;
    }
    return 0;
}

/* The least size of a problem that is to be larger than those before it. */
static uint64_t least_tiles(const struct duet__item *item)
{
    return (3 * item->warmup_n / item->problem.tile + 1) / 2;
}

/* Flops of a visit with one run, which the warm-up comes before. */
static double effort(const struct duet__item *item)
{
    struct duet_problem warmup = item->problem, problem = item->problem;

    warmup.n = item->warmup_n;
    if (!problem.n)
        problem.n = least_tiles(item) * problem.tile;
    return item->workload->flops(&warmup) + item->workload->flops(&problem);
}

double duet__item_seconds(const struct duet__found *found, const struct duet__item *item)
{
    const struct duet__item *nearest = NULL;

    for (guint i = 0; i < found->items->len; i++) {
        const struct duet__item *other = &g_array_index(found->items, struct duet__item, i);

        if (other->runs && other->workload == item->workload &&
            other->problem.precision == item->problem.precision && other->cpus == item->cpus &&
            other->devices == item->devices && (!nearest || effort(other) > effort(nearest)))
            nearest = other;
    }
    return nearest ? nearest->visit_s * effort(item) / effort(nearest) : 0;
}

void duet__item_size(struct duet__found *found, struct duet__item *item, double fair_s)
{
    const struct duet_workload *workload = item->workload;
    double cache = shared_bytes(found), rate = group_rate(found, item);
    double memory = (double)found->info.survey.memory_bytes / 4;
    struct duet_problem problem = item->problem;
    uint64_t least = least_tiles(item);

    if (item->problem.n)
        return;
    item->problem.n = group_size(found, item);
    for (uint64_t tiles = least; !item->problem.n; tiles++) {
        double seconds, bytes;

        problem.n = tiles * problem.tile;
        seconds = rate > 0 ? workload->flops(&problem) / rate : 0;
        bytes = (double)workload->bytes(&problem);
        /* the one before was the last that is possible, or that there is time for */
        if (tiles > least &&
            (workload->check(&problem, NULL) || workload->tasks(&problem) > TASKS_MAX ||
             (memory > 0 && bytes > memory) || seconds > 3 * fair_s ||
             (seconds > fair_s && bytes > 1.5 * cache)))
            item->problem.n = (tiles - 1) * problem.tile;
        else if (bytes >= 4 * cache)
            item->problem.n = problem.n;
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Items                                                                                        */

/* Adds runs of one problem, on all kinds of workers that there are. */
static void add_items(const struct plan *plan, struct duet__item item, bool devices_only)
{
    const struct duet__found *found = plan->found;

    item.group = found->groups;
    item.cpus = 1;
    if (!devices_only)
        g_array_append_val(found->items, item);
    item.cpus = (int)found->cpus;
    if (!devices_only && found->cpus > 1)
        g_array_append_val(found->items, item);
    item.gpus = (int)found->gpus;
    item.devices = true;
    if (found->gpus)
        g_array_append_val(found->items, item);
}

/* Sizes by default: one in caches, or as near to that as tiles allow, and one beyond. */
static void add_usual(const struct plan *plan, struct duet__item item, bool devices_only)
{
    item.problem.n = warm_size(plan, item.workload, item.problem);
    item.warmup_n = item.problem.n;
    item.size = DUET__SIZE_WARM;
    if (strcmp(item.workload->name, "saxpy") == 0) {
        item.problem.settings = passes;
        item.problem.setting_count = G_N_ELEMENTS(passes);
    }
    add_items(plan, item, devices_only);
    item.problem.settings = NULL;
    item.problem.setting_count = 0;
    item.problem.n = plan->wish->paced ? TILES_PACED * item.problem.tile : 0;
    item.size = DUET__SIZE_COLD;
    add_items(plan, item, devices_only);
}

/* The item with this tile in all sizes. DUET_EINVAL: it cannot have them. */
static int add_sizes(const struct plan *plan, struct duet__item item, bool devices_only,
                     struct duet_message *message)
{
    const GArray *sizes = plan->wish->sizes;
    int error = 0;

    item.problem.n = TILES_MIN * item.problem.tile;
    if (!sizes->len) {
        error = item.workload->check(&item.problem, message);
        if (!error) {
            add_usual(plan, item, devices_only);
            plan->found->groups++;
        }
        return error;
    }
    for (guint i = 0; i < sizes->len && !error; i++) {
        struct duet__item sized = item;

        sized.problem.n = g_array_index(sizes, uint64_t, i);
        sized.warmup_n = MIN(sized.problem.n, TILES_MIN * item.problem.tile);
        error = item.workload->check(&sized.problem, message);
        if (!error)
            add_items(plan, sized, devices_only);
    }
    plan->found->groups++;
    return error;
}

/* Tiles of a workload, to be freed as an array of uint64_t ended by 0. */
static uint64_t *default_tiles(const struct plan *plan, const struct duet_workload *workload)
{
    uint64_t own = workload->real_tile ? workload->real_tile : workload->default_tile;
    uint64_t *tiles = g_new0(uint64_t, 4);

    if (plan->wish->paced) {
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
    return plan->found->gpus && !plan->wish->job.request.config.emulate &&
           !plan->wish->tiles->len && !plan->wish->sizes->len &&
           strcmp(workload->name, "saxpy") != 0;
}

/* Adds what is to be measured of one workload with one tile. Says of which workload an error is. */
static int add_subject(const struct plan *plan, const struct duet__subject *subject,
                       bool devices_only, bool optional, struct duet_message *message)
{
    struct duet__item item = {.workload = subject->workload,
                              .optional = optional,
                              .problem = {.tile = subject->tile,
                                          .precision = subject->precision,
                                          .seed = plan->wish->job.request.seed}};
    struct duet_message why = {""};
    int error = add_sizes(plan, item, devices_only, &why);

    return error ? duet_fail(message, error, "%s: %s", subject->workload->name, why.text) : 0;
}

/* The tile of a workload at this place of its list; 0: the list is shorter. */
static uint64_t tile_at(const struct plan *plan, const struct duet_workload *workload, guint place)
{
    const GArray *given = plan->wish->tiles;
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
    const struct duet__wish *wish = plan->wish;
    guint places = wish->tiles->len ? wish->tiles->len : TILES_DEFAULT;

    for (guint place = 0; place < places; place++) {
        for (const char *precision = wish->precisions; *precision; precision++) {
            for (guint i = 0; i < wish->workloads->len; i++) {
                const struct duet_workload *workload = duet__wish_workload(wish, i);
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
    const struct duet__wish *wish = plan->wish;
    int error = 0;

    for (const char *precision = wish->precisions; *precision; precision++) {
        for (guint i = 0; i < wish->workloads->len; i++) {
            const struct duet_workload *workload = duet__wish_workload(wish, i);

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

int duet__plan_make(const struct duet__wish *wish, struct duet__found *found,
                    struct duet_message *message)
{
    const struct plan plan = {wish, found};
    GArray *subjects = g_array_new(FALSE, FALSE, sizeof(struct duet__subject));
    bool listed = wish->subjects != NULL;
    int error = 0;

    found->items = g_array_new(FALSE, TRUE, sizeof(struct duet__item));
    if (listed)
        g_array_append_vals(subjects, wish->subjects->data, wish->subjects->len);
    else
        list_subjects(&plan, subjects);
    /* sizes that are given need not suit the workloads that nobody has named */
    for (guint i = 0; i < subjects->len && (!error || listed || !wish->chosen); i++)
        error = add_subject(&plan, &g_array_index(subjects, struct duet__subject, i), false,
                            !listed && !wish->tiles->len && !wish->sizes->len, message);
    if (!error && !listed)
        error = add_device_tiles(&plan, message);
    g_array_free(subjects, TRUE);
    return found->items->len && (!error || listed || !wish->chosen) ? 0 : error;
}

const char *duet__item_workers(const struct duet__item *item)
{
    if (item->devices)
        return "gpus";
    return item->cpus == 1 ? "alone" : "busy";
}

const char *duet__item_size_name(const struct duet__item *item)
{
    static const char *const names[] = {"given", "warm", "cold"};

    return names[item->size];
}
