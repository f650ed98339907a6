/* SPDX-License-Identifier: Apache-2.0 */
/* Searches for the best settings, for `duet tune`: simulates ever larger problems, the whole one at
 * last on drawn machines, and runs the best on this machine. */
#include "study/tune.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/stats.h"

enum {
    PART = 8,             /* of each tile, one setting in so many goes on to the next size, */
    LEAST = 2,            /* and this many at least */
    TOPS = 2,             /* number of best settings whose neighbours are tried */
    DRAWN_MOST = 8,       /* settings that are simulated on drawn machines at first */
    DRAWN_REPS = 4,       /* drawn machines at first; each next level doubles them */
    DRAWN_REPS_MOST = 32, /* most machines that are drawn */
    RUN_REPS = 3,
    TASKS_PER_S = 50000, /* speed of a simulation, about */
};

static const double TIE = 0.03; /* settings within this part of the best get drawn machines */

/* ------------------------------------------------------------------------------------------- */
/* Products                                                                                     */

/* Returns true if runs on this machine have the factor: it is nothing supposed of a machine. */
static bool is_of_runs(const struct duet__factor *factor)
{
    static const char *const others[] = {"n", "precision", "gpu-memory", "speed", NULL};
    return !factor->option || duet__tune_chosen(factor->name) ||
           g_strv_contains(others, factor->option->name);
}

/* Returns the only value that a fidelity has of a factor, for g_free; NULL: all or none. */
static char *only_value(const struct duet__tune *tune, enum duet__fidelity fidelity, bool usual,
                        const struct duet__factor *factor)
{
    if (!strcmp(factor->name, "n") && fidelity < DUET__WHOLE)
        return g_strdup_printf("%" PRIu64,
                               MAX(tune->request.problem.n >> (DUET__WHOLE - fidelity), 1));
    if (usual && !strcmp(factor->name, "tile"))
        return g_strdup_printf("%" PRIu64, tune->usual_tile);
    if (usual && g_str_has_prefix(factor->name, "arg "))
        return g_strdup(factor->values->pdata[0]); /* the default is the first */
    return NULL;
}

/* Adds a copy of the space, or of what is the same in all of it, with these changes. */
static int add_product(struct duet__tune *tune, const struct duet__product *space,
                       enum duet__fidelity fidelity)
{
    struct duet__product *product = duet__product_new();
    bool beyond = fidelity < DUET__WHOLE;
    int error = 0;
    g_ptr_array_add(tune->study->products, product);
    for (guint f = 0; f < space->factors->len && !error; f++) {
        const struct duet__factor *factor = space->factors->pdata[f];
        const bool usual =
            (fidelity == DUET__USUAL || fidelity == DUET__USUAL_RUN) && factor->values->len > 1;
        g_autofree char *only = only_value(tune, fidelity, usual, factor);
        if ((usual && !only) || (fidelity >= DUET__RUN && !is_of_runs(factor)))
            continue;
        for (guint v = 0; v < (only ? 1 : factor->values->len) && !error; v++) {
            const char *value = only ? only : factor->values->pdata[v];
            beyond |= (!strcmp(factor->name, "tile") && duet__tune_beyond(tune, value, NULL)) ||
                      (tune->blocks && !tune->offered && !strcmp(factor->name, "param block"));
            error = duet__study_add(product, factor->option, value, &tune->message);
        }
    }
    if (!error && beyond && fidelity < DUET__RUN && duet__factor_place(product, "extrapolate") < 0)
        error = duet__study_add(product, duet__option_find("extrapolate", DUET__IN_TUNE), "",
                                &tune->message);
    if (!error && (fidelity == DUET__DRAWN || fidelity == DUET__USUAL))
        error = duet__study_add(product, duet__option_find("interval", DUET__IN_TUNE), "run",
                                &tune->message);
    return error;
}

static const struct duet__product *whole_of(const struct duet__tune *tune)
{
    return tune->study->products->pdata[DUET__WHOLE];
}

static guint values_of(const struct duet__tune *tune, guint factor)
{
    return ((const struct duet__factor *)whole_of(tune)->factors->pdata[factor])->values->len;
}

/* Makes the products of all fidelities in place of the space. */
static int make_products(struct duet__tune *tune)
{
    GPtrArray *products = tune->study->products;
    int error = 0;
    tune->settings = tune->study->count;
    tune->order = duet__study_order(tune->study);
    for (int i = 0; i < DUET__FIDELITIES && !error; i++)
        error = add_product(tune, products->pdata[0], i);
    if (error)
        return error;
    g_ptr_array_remove_index(products, 0);
    tune->varied = g_ptr_array_new();
    for (guint f = 0; f < whole_of(tune)->factors->len; f++)
        if (values_of(tune, f) > 1)
            g_ptr_array_add(tune->varied, whole_of(tune)->factors->pdata[f]);
    return duet__study_number(tune->study, &tune->message);
}

static uint32_t cell_of(const struct duet__tune *tune, enum duet__fidelity fidelity,
                        uint64_t setting)
{
    const struct duet__product *product = tune->study->products->pdata[fidelity];
    return (uint32_t)(product->first + setting);
}

/* ------------------------------------------------------------------------------------------- */
/* Simulations                                                                                  */

/* Makes runs of cells of a fidelity until then; 0: without end. */
static int make_runs(struct duet__tune *tune, enum duet__fidelity fidelity, const uint32_t *cells,
                     size_t count, uint64_t reps, double until_s)
{
    const bool real = fidelity == DUET__RUN;
    struct duet__progress progress;
    struct duet__outcome outcome = {0};
    char **said = real ? &tune->refusal : &tune->left_out;
    int error;
    tune->cut |= count && until_s > 0 && duet__clock_s() >= until_s;
    if (!count || (until_s > 0 && duet__clock_s() >= until_s))
        return 0;
    tune->plan->chosen = cells;
    tune->plan->chosen_count = count;
    tune->plan->reps = reps;
    tune->plan->until_s = until_s;
    duet__progress_init(&progress, !tune->quiet, 0, 0);
    error = duet__study_make(tune->plan, tune->store, &progress, &outcome, &tune->message);
    tune->cut |= until_s > 0 && duet__clock_s() >= until_s;
    tune->made[fidelity] += outcome.made;
    tune->failed += real ? 0 : outcome.failed + outcome.refused;
    if (!*said)
        *said = g_steal_pointer(&outcome.example);
    g_free(outcome.example);
    return error ? error : outcome.number;
}

/*
 * Simulates settings at one fidelity until a part of the budget has passed: half of it for sizes
 * before the last; the rest is for the last one, for neighbours, and for drawn machines. Something
 * is always simulated.
 */
static int simulate(struct duet__tune *tune, enum duet__fidelity fidelity, const GArray *settings)
{
    const double part = fidelity < DUET__WHOLE
                            ? 0.5 * (fidelity + tune->levels - DUET__WHOLE) / (tune->levels - 1)
                        : tune->found->len ? 0.85
                                           : 0.7;
    uint32_t *cells = g_new(uint32_t, settings->len + 1);
    bool some = tune->found->len > 0;
    int error;
    for (guint i = 0; i < settings->len; i++)
        cells[i] = cell_of(tune, fidelity, g_array_index(settings, uint32_t, i));
    error =
        make_runs(tune, fidelity, cells, settings->len, 1, tune->start_s + part * tune->budget_s);
    for (guint i = 0; i < settings->len && !error; i++)
        some |= duet__plan_result(tune->plan, cells[i], 0) != NULL;
    for (guint i = 0; i < settings->len && !some && !error; i++) {
        error = make_runs(tune, fidelity, &cells[i], 1, 1, 0);
        some = duet__plan_result(tune->plan, cells[i], 0) != NULL;
    }
    g_free(cells);
    return error;
}

/*
 * Returns the number of levels, each of half the size of the next: as many as it takes to simulate
 * all settings in a part of the budget, if the problem is large enough.
 */
static unsigned count_levels(const struct duet__tune *tune)
{
    enum { TILES_LEAST = 4 };
    const int place = duet__factor_place(whole_of(tune), "tile");
    const struct duet__factor *factor = place < 0 ? NULL : whole_of(tune)->factors->pdata[place];
    struct duet__problem problem = tune->request.problem;
    uint64_t largest = problem.tile;
    double tasks = 0, tiles = 0, seconds;
    unsigned levels = 1;
    if (!tune->request.workload)
        return 1;
    for (guint v = 0; factor && v < factor->values->len; v++) {
        problem.tile = g_ascii_strtoull(factor->values->pdata[v], NULL, 10);
        largest = MAX(largest, problem.tile);
        if (tune->request.workload->check(&problem, NULL))
            continue;
        tasks += (double)tune->request.workload->tasks(&problem);
        tiles++;
    }
    if (!(tiles > 0))
        tasks = (double)tune->request.workload->tasks(&problem);
    seconds =
        tasks / fmax(tiles, 1) * (double)tune->settings / TASKS_PER_S / duet__plan_jobs(tune->plan);
    for (; levels <= DUET__WHOLE && seconds > tune->budget_s / 4 &&
           problem.n >> levels >= TILES_LEAST * largest;
         levels++)
        seconds /= 8;
    return levels;
}

/* Takes the figures of a setting's simulations, as many as there are. Returns their number. */
static uint64_t take_runs(struct duet__tune *tune, struct duet__tuned *tuned, uint64_t cell,
                          uint64_t reps)
{
    const struct duet__figures *figures;
    double seconds[DRAWN_REPS_MOST];
    uint64_t count = 0;
    for (; count < reps && (figures = duet__plan_result(tune->plan, cell, count)); count++)
        seconds[count] = figures->makespan_s;
    if (!count)
        return 0;
    figures = duet__plan_result(tune->plan, cell, 0);
    tuned->cell = cell;
    tuned->flops = figures->gflops * 1e9 * figures->makespan_s;
    tuned->best_s = figures->best_s;
    tune->estimated |= figures->estimated;
    tuned->predicted_s = duet__summarise(seconds, count).mean;
    tuned->low_s = tuned->high_s = NAN;
    if (count > 1) {
        duet__sort(seconds, count);
        duet__predictive(seconds, count, &tuned->low_s, &tuned->high_s);
    }
    return count;
}

/* ------------------------------------------------------------------------------------------- */
/* Successive halving                                                                           */

/* A setting among those of its tile. */
struct rated {
    uint32_t setting, tile, rank;
    double seconds;
};

static gint compare_in_tiles(gconstpointer first, gconstpointer second)
{
    const struct rated *a = first, *b = second;
    if (a->tile != b->tile)
        return a->tile < b->tile ? -1 : 1;
    if (a->seconds < b->seconds || a->seconds > b->seconds)
        return a->seconds < b->seconds ? -1 : 1;
    return a->setting < b->setting ? -1 : a->setting > b->setting;
}

static gint compare_ranks(gconstpointer first, gconstpointer second)
{
    const struct rated *a = first, *b = second;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->tile > b->tile ? -1 : a->tile < b->tile;
}

/* Returns how far apart in number two settings are that are neighbours in this factor. */
static uint32_t stride_of(const struct duet__tune *tune, guint factor)
{
    uint32_t stride = 1;
    for (guint f = whole_of(tune)->factors->len; f-- > factor + 1;)
        stride *= values_of(tune, f);
    return stride;
}

static uint32_t value_of(const struct duet__tune *tune, uint32_t setting, guint factor)
{
    return setting / stride_of(tune, factor) % values_of(tune, factor);
}

/*
 * Leaves the best of each tile in `list`, as small problems favour small tiles: the best of all
 * tiles first (before these the largest tiles, which are simulated soonest), so that its beginning,
 * too, has something of each.
 */
static void keep_best(const struct duet__tune *tune, enum duet__fidelity fidelity, GArray *list)
{
    const int tile = duet__factor_place(whole_of(tune), "tile");
    g_autoptr(GArray) rated = g_array_new(FALSE, FALSE, sizeof(struct rated));
    struct rated *all;
    guint kept = 0;
    for (guint i = 0; i < list->len; i++) {
        const uint32_t setting = g_array_index(list, uint32_t, i);
        const struct duet__figures *figures =
            duet__plan_result(tune->plan, cell_of(tune, fidelity, setting), 0);
        struct rated one = {.setting = setting,
                            .tile = tile < 0 ? 0 : value_of(tune, setting, (guint)tile)};
        if (figures) {
            one.seconds = figures->makespan_s;
            g_array_append_val(rated, one);
        }
    }
    g_array_sort(rated, compare_in_tiles);
    all = (struct rated *)(void *)rated->data;
    for (guint first = 0, end; first < rated->len; first = end) {
        for (end = first; end < rated->len && all[end].tile == all[first].tile; end++)
            all[end].rank = end - first;
        for (guint i = first; i < MIN(end, first + MAX(LEAST, (end - first + PART - 1) / PART));
             i++)
            all[kept++] = all[i];
    }
    g_array_set_size(rated, kept);
    g_array_sort(rated, compare_ranks);
    g_array_set_size(list, kept);
    for (guint i = 0; i < kept; i++)
        g_array_index(list, uint32_t, i) = all[i].setting;
}

static gint compare_tuned(gconstpointer first, gconstpointer second)
{
    const struct duet__tuned *a = first, *b = second;
    if (a->reps != b->reps)
        return a->reps > b->reps ? -1 : 1;
    if (a->predicted_s < b->predicted_s || a->predicted_s > b->predicted_s)
        return a->predicted_s < b->predicted_s ? -1 : 1;
    return a->setting < b->setting ? -1 : a->setting > b->setting;
}

/* Simulates the whole problem with those of some settings that were not yet, and adds them to
   tune->found. */
static int simulate_whole(struct duet__tune *tune, const GArray *list, bool *seen)
{
    g_autoptr(GArray) new = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    int error;
    for (guint i = 0; i < list->len; i++) {
        const uint32_t setting = g_array_index(list, uint32_t, i);
        if (!seen[setting])
            g_array_append_val(new, setting);
        seen[setting] = true;
    }
    error = simulate(tune, DUET__WHOLE, new);
    for (guint i = 0; i < new->len && !error; i++) {
        const uint32_t setting = g_array_index(new, uint32_t, i);
        struct duet__tuned tuned = {.setting = setting, .measured_s = NAN};
        if (take_runs(tune, &tuned, cell_of(tune, DUET__WHOLE, setting), 1))
            g_array_append_val(tune->found, tuned);
    }
    g_array_sort(tune->found, compare_tuned);
    return error;
}

/* Adds the settings that differ from one in one factor: numbers by one step, names by any. */
static void add_neighbours(const struct duet__tune *tune, uint32_t setting, GArray *list)
{
    for (guint f = 0; f < whole_of(tune)->factors->len; f++) {
        const bool ordered = duet__factor_is_number(whole_of(tune)->factors->pdata[f]);
        const uint32_t own = value_of(tune, setting, f), stride = stride_of(tune, f);
        for (uint32_t value = 0; value < values_of(tune, f); value++) {
            const uint32_t other = setting + (value - own) * stride; /* modulo 2^32 */
            if (value != own && (!ordered || value + 1 == own || value == own + 1))
                g_array_append_val(list, other);
        }
    }
}

/* Returns the value of a setting; NULL: there is no such factor. */
static const char *setting_value(const struct duet__tune *tune, uint32_t setting,
                                 const char *factor)
{
    const int place = duet__factor_place(whole_of(tune), factor);
    return place < 0 ? NULL
                     : duet__study_value(whole_of(tune), cell_of(tune, DUET__WHOLE, setting),
                                         (guint)place);
}

/* True if a setting's blocks, which nobody has asked for, need times beyond what was measured. */
static bool is_barred(const struct duet__tune *tune, uint32_t setting)
{
    const char *tile = setting_value(tune, setting, "tile");
    return tune->offered && !duet__tune_beyond(tune, tile, NULL) &&
           duet__tune_beyond(tune, tile, setting_value(tune, setting, "param block"));
}

/* True if a factor makes no difference to a setting: it is of GPUs where there are none, or says
   what CPUs leave to GPUs where there are none of them. */
static bool is_idle(const struct duet__tune *tune, uint32_t setting, const char *factor)
{
    static const char *const of_gpus[] = {"set-arch", "gpu-window",     "gpu-window-short",
                                          "no-peer",  "nearest-source", NULL};
    return (g_strv_contains(of_gpus, factor) &&
            !g_strcmp0(setting_value(tune, setting, "gpus"), "0")) ||
           (!strcmp(factor, *of_gpus) && !g_strcmp0(setting_value(tune, setting, "cpus"), "0"));
}

/* True if a tile is not divided into such blocks ("block=320"). */
static bool is_whole(const char *block, const char *tile)
{
    const double edge = g_ascii_strtod(strchr(block, '=') + 1, NULL);
    return edge <= 0 || (tile && edge >= g_ascii_strtod(tile, NULL));
}

/* True if a setting is, in other words, one with an earlier value of some factor. */
static bool is_repeated(const struct duet__tune *tune, uint32_t setting)
{
    const char *tile = setting_value(tune, setting, "tile");
    for (guint f = 0; f < whole_of(tune)->factors->len; f++) {
        const struct duet__factor *factor = whole_of(tune)->factors->pdata[f];
        const guint own = value_of(tune, setting, f);
        if (own && is_idle(tune, setting, factor->name))
            return true;
        for (guint v = 0; v < own && tune->blocks && !strcmp(factor->name, "param block"); v++)
            if (is_whole(factor->values->pdata[v], tile) &&
                is_whole(factor->values->pdata[own], tile))
                return true;
    }
    return false;
}

/*
 * Finds the best settings by simulations without noise, into tune->found: successive halving
 * (Jamieson, Talwalkar, Non-stochastic best arm identification, AISTATS 2016) over problems that
 * are small at first and whole at last; then neighbours of the best, until all were simulated.
 */
static int search(struct duet__tune *tune)
{
    bool *seen = g_new0(bool, tune->settings);
    g_autoptr(GArray) list = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    bool more = true;
    int error = 0;
    for (uint64_t i = 0; i < tune->settings; i++) {
        const bool repeated = is_repeated(tune, tune->order[i]);
        seen[tune->order[i]] = repeated || is_barred(tune, tune->order[i]);
        tune->repeated += repeated;
        if (!seen[tune->order[i]])
            g_array_append_val(list, tune->order[i]);
        else if (!repeated)
            tune->barred++;
    }
    for (int f = DUET__WHOLE + 1 - (int)tune->levels; f < DUET__WHOLE && !error; f++) {
        error = simulate(tune, f, list);
        keep_best(tune, f, list);
    }
    if (!error)
        error = simulate_whole(tune, list, seen);
    while (more && !error) {
        g_array_set_size(list, 0);
        more = false;
        for (guint i = 0; i < MIN(tune->found->len, TOPS); i++) {
            struct duet__tuned *one = duet__tune_at(tune, i);
            if (!one->explored)
                add_neighbours(tune, one->setting, list);
            more |= !one->explored;
            one->explored = true;
        }
        error = simulate_whole(tune, list, seen);
    }
    g_free(seen);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Drawn machines                                                                               */

/* Finds how far the best setting is before the second on the machines that were drawn for both, and
   on how many of these it is the best of all settings that were simulated as often. */
static void find_lead(struct duet__tune *tune)
{
    const struct duet__tuned *best = duet__tune_at(tune, 0);
    double differences[DRAWN_REPS_MOST];
    struct duet__summary summary;
    tune->lead = tune->lead_half = NAN;
    tune->draws = tune->wins = 0;
    if (tune->found->len < 2 || best->reps < 3 || duet__tune_at(tune, 1)->reps != best->reps)
        return;
    for (; tune->draws < best->reps; tune->draws++) {
        const double own_s = duet__plan_result(tune->plan, best->cell, tune->draws)->makespan_s;
        double next_s = INFINITY;
        for (guint i = 1; i < tune->found->len; i++) {
            const struct duet__tuned *other = duet__tune_at(tune, i);
            double other_s;
            if (other->reps != best->reps)
                break;
            other_s = duet__plan_result(tune->plan, other->cell, tune->draws)->makespan_s;
            next_s = fmin(next_s, other_s);
            if (i == 1)
                differences[tune->draws] = (other_s - own_s) / best->predicted_s;
        }
        tune->wins += own_s <= next_s;
    }
    summary = duet__summarise(differences, best->reps);
    tune->lead = summary.mean;
    if (duet__spreads(&summary))
        tune->lead_half = (summary.mean_high - summary.mean_low) / 2;
}

/* Judges the settings near the best by successive halving over drawn machines, the same for all,
   until the lead of the first is settled. */
static int judge_on_draws(struct duet__tune *tune)
{
    struct duet__tuned *found = (struct duet__tuned *)(void *)tune->found->data;
    const guint least = (guint)MIN(MAX(tune->verified, 2), DRAWN_MOST);
    const bool cut = tune->cut;
    guint count = 1;
    int error = 0;
    tune->cut = false;
    find_lead(tune);
    while (count < MIN(tune->found->len, DRAWN_MOST) &&
           (count < least || found[count].predicted_s < found->predicted_s * (1 + TIE)))
        count++;
    for (uint64_t reps = DRAWN_REPS; reps <= DRAWN_REPS_MOST && !error && !tune->cut; reps *= 2) {
        uint32_t cells[DRAWN_MOST];
        for (guint i = 0; i < count; i++)
            cells[i] = cell_of(tune, DUET__DRAWN, found[i].setting);
        error = make_runs(tune, DUET__DRAWN, cells, count, reps, tune->start_s + tune->budget_s);
        /* no setting is judged by draws unless there was time for all */
        for (guint i = 0; i < count && !error && !tune->cut; i++)
            found[i].reps = take_runs(tune, &found[i], cells[i], reps);
        g_array_sort(tune->found, compare_tuned);
        count = MAX(MIN(least, count), (count + 1) / 2);
        if (!error)
            find_lead(tune);
        if (reps > DRAWN_REPS && !(tune->lead <= tune->lead_half)) /* NAN, too: nothing spreads */
            break;
    }
    tune->cut = cut;
    return error;
}

/* Simulates the usual setting, which one gets who chooses nothing, regardless of the budget: as
   often as the best. */
static int simulate_usual(struct duet__tune *tune)
{
    const uint32_t cell = cell_of(tune, DUET__USUAL, 0);
    const uint64_t reps = MAX(DRAWN_REPS, duet__tune_at(tune, 0)->reps);
    int error = make_runs(tune, DUET__USUAL, &cell, 1, reps, 0);
    tune->usual = (struct duet__tuned){.cell = cell,
                                       .predicted_s = NAN,
                                       .low_s = NAN,
                                       .high_s = NAN,
                                       .measured_s = NAN};
    if (!error)
        tune->usual.reps = take_runs(tune, &tune->usual, cell, reps);
    return error;
}

int duet__tune_search(struct duet__tune *tune)
{
    int error = make_products(tune);
    tune->found = g_array_new(FALSE, FALSE, sizeof(struct duet__tuned));
    tune->results = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    tune->plan->results = tune->results;
    if (!error) {
        tune->levels = count_levels(tune);
        error = search(tune);
    }
    if (error || !tune->found->len)
        return error;
    error = judge_on_draws(tune);
    if (!error)
        error = simulate_usual(tune);
    tune->search_s = duet__clock_s() - tune->start_s;
    tune->chosen = duet__tune_at(tune, 0);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Real runs                                                                                    */

int duet__tune_run(struct duet__tune *tune)
{
    const guint count = MIN(tune->verified, tune->found->len);
    uint32_t *cells = g_new(uint32_t, count + 1);
    int error;
    for (guint i = 0; i < count; i++)
        cells[i] = cell_of(tune, DUET__RUN, duet__tune_at(tune, i)->setting);
    cells[count] = cell_of(tune, DUET__USUAL_RUN, 0);
    error = make_runs(tune, DUET__RUN, cells, count + 1, RUN_REPS, 0);
    for (guint i = 0; i <= count && !error; i++) {
        struct duet__tuned *one = duet__tune_at(tune, i < count ? i : tune->found->len);
        double seconds[RUN_REPS];
        size_t ended = 0;
        for (uint64_t r = 0; r < RUN_REPS; r++) {
            const struct duet__figures *figures = duet__plan_result(tune->plan, cells[i], r);
            if (figures)
                seconds[ended++] = figures->makespan_s;
        }
        one->measured_s = ended ? duet__summarise(seconds, ended).median : NAN;
        if (one->measured_s < tune->chosen->measured_s || isnan(tune->chosen->measured_s))
            tune->chosen = ended ? one : tune->chosen;
    }
    tune->run_reps = RUN_REPS;
    g_free(cells);
    return error;
}

void duet__tune_fini(struct duet__tune *tune)
{
    duet__request_fini(&tune->request);
    g_clear_pointer(&tune->varied, g_ptr_array_unref);
    g_clear_pointer(&tune->results, g_hash_table_unref);
    g_clear_pointer(&tune->found, g_array_unref);
    g_free(tune->order);
    g_free(tune->platform);
    g_free(tune->calibrated);
    g_free(tune->refusal);
    g_free(tune->left_out);
}
