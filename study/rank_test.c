/* SPDX-License-Identifier: Apache-2.0 */
/* Rankings against published values, and effects that are known. */
#include "study/answer.h"

#include <math.h>
#include <string.h>

static void set(struct duet__product *product, const char *option, const char *values)
{
    WORKS(duet__study_add(product, duet__option_find(option, DUET__IN_STUDY), values, hear()));
}

/* Critical values are q_0.05 / sqrt(2): Demsar, Table 5(a). With two levels it is the normal
   distribution's. */
static void test_critical_values(void)
{
    static const double known[] = {1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164};
    for (size_t i = 0; i < G_N_ELEMENTS(known); i++)
        g_assert_cmpfloat_with_epsilon(duet__range_quantile(0.95, i + 2) / sqrt(2), known[i], 1e-3);
    g_assert_cmpfloat_with_epsilon(duet__range_quantile(0.95, 2) / sqrt(2), 1.959963985, 1e-8);
    g_assert_cmpfloat_with_epsilon(duet__range_quantile(0.99, 2) / sqrt(2), 2.575829304, 1e-8);
    /* tables of the studentized range: 20 and 30 groups */
    g_assert_cmpfloat_with_epsilon(duet__range_quantile(0.95, 20), 5.01, 5e-3);
    g_assert_cmpfloat_with_epsilon(duet__range_quantile(0.95, 30), 5.30, 5e-3);
    /* Demsar, 3.2.2: four classifiers on 14 data sets */
    g_assert_cmpfloat_with_epsilon(duet__nemenyi(4, 14), 1.25, 5e-3);
}

/* Friedman's test on the AUC of Demsar's Table 6, with the sign of makespans: less is better. The
   last two values of the row before the last are printed alike there, and have different ranks. */
static void test_friedman(void)
{
    static const double auc[][4] = {
        {.763, .768, .771, .798},  {.599, .591, .590, .569},
        {.954, .971, .968, .967},  {.628, .661, .654, .657},
        {.882, .888, .886, .898},  {.936, .931, .916, .931},
        {.661, .668, .609, .685},  {.583, .583, .563, .625},
        {.775, .838, .866, .875},  {1, 1, 1, 1},
        {.940, .962, .965, .962},  {.619, .666, .614, .669},
        {.972, .981, .9751, .975}, {.957, .978, .946, .970},
    };
    static const double ranks[] = {3.143, 2.000, 2.893, 1.964};
    double values[G_N_ELEMENTS(auc)][4], own[4], p;
    for (size_t c = 0; c < G_N_ELEMENTS(auc); c++)
        for (size_t i = 0; i < 4; i++)
            values[c][i] = -auc[c][i];
    p = duet__friedman(values[0], G_N_ELEMENTS(auc), 4, own);
    for (size_t i = 0; i < 4; i++)
        g_assert_cmpfloat_with_epsilon(own[i], ranks[i], 5e-4);
    /* F is 3.69 in the paper, which ignores ties: P(F > 3.69) = 0.0198; with them it is 4.185 */
    g_assert_cmpfloat_with_epsilon(p, 0.0116207, 1e-6);
    g_assert_cmpfloat(duet__friedman((double[]){1, 2, 1, 2}, 2, 2, own), ==, 0);
    g_assert_cmpfloat_with_epsilon(duet__friedman((double[]){1, 2, 2, 1}, 2, 2, own), 1, 1e-12);
    g_assert_cmpfloat(duet__friedman((double[]){3, 3, 3, 3}, 2, 2, own), ==, 1);
    g_assert_true(isnan(duet__friedman((double[]){1, 2}, 1, 2, own)));
}

/* Returns a makespan for each cell, by its values of n, GPUs, tile and policy; 0: it has failed. */
typedef double makespan_fn(unsigned n, unsigned gpus, unsigned tile, bool heft);

static double product_of(unsigned n, unsigned gpus, unsigned tile, bool heft)
{
    return 1e-3 * n / gpus * (heft ? 1 : 1.2) * (tile == 480 ? 1 : 1.05);
}

static double without_some(unsigned n, unsigned gpus, unsigned tile, bool heft)
{
    return n == 960 && gpus == 2 && heft ? 0 : product_of(n, gpus, tile, heft);
}

static void read_made(makespan_fn *makespan, struct duet__store *store,
                      struct duet__results *results)
{
    struct duet__study *study = duet__study_new();
    struct duet__product *product = study->products->pdata[0];
    set(product, "n", "960,1920,2880");
    set(product, "gpus", "1,2,4");
    set(product, "tile", "480,960");
    set(product, "policy", "ws,heft");
    WORKS(duet__study_number(study, hear()));
    WORKS(duet__store_open(store, NULL, DUET__STORE_WRITE, hear()));
    for (uint64_t cell = 0; cell < study->count; cell++) {
        g_autofree char *command = duet__cell_command(study, "simulate", cell, 1), *row = NULL;
        const struct duet__run_key key = {command, 0, "1", "", "", "a", NULL};
        unsigned values[4] = {0};
        for (guint f = 0; f < 4; f++) {
            const struct duet__factor *factor = product->factors->pdata[f];
            const char *value = duet__study_value(product, cell, f);
            const char *names[] = {"n", "gpus", "tile", "policy"};
            for (size_t i = 0; i < 4; i++)
                if (!strcmp(factor->name, names[i]))
                    values[i] = i == 3 ? !strcmp(value, "heft")
                                       : (unsigned)g_ascii_strtoull(value, NULL, 10);
        }
        double span_s = makespan(values[0], values[1], values[2], values[3]);
        row = span_s > 0 ? g_strdup_printf("{\"seed\": 1, \"makespan_s\": %.17g, \"gflops\": 1, "
                                           "\"best_s\": 1}",
                                           span_s)
                         : g_strdup("{\"status\": 1, \"error\": \"it has failed\"}");
        WORKS(duet__store_put(store, &key, product, cell, row, hear()));
    }
    WORKS(duet__results_read(results, store, NULL, hear()));
    duet__study_free(study);
}

static guint find(const struct duet__results *results, const char *name)
{
    for (guint i = 0; i < results->varied->len; i++)
        if (!strcmp(duet__varied(results, i)->name, name))
            return i;
    g_assert_not_reached();
}

static guint level(const struct duet__results *results, const char *name, const char *value)
{
    const struct duet__varied *varied = duet__varied(results, find(results, name));
    guint place = 0;
    g_assert_true(
        g_ptr_array_find_with_equal_func(varied->levels.list, value, g_str_equal, &place));
    return place;
}

/* Effects that multiply each explain their own part, and all together the whole. */
static void test_effects(void)
{
    static const char *const names[] = {"gpus", "tile", "policy"};
    struct duet__store store;
    struct duet__results results;
    struct duet__ranking ranking;
    double whole = 0, share = 0, step = log(1.2) / 2, other = log(1.05) / 2, gpus = log(2);
    read_made(product_of, &store, &results);
    g_assert_cmpuint(results.case_count, ==, 9);
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        duet__rank(&results, find(&results, names[i]), &ranking);
        g_assert_cmpuint(ranking.cases, ==, i ? 18 : 12);
        g_assert_cmpuint(ranking.left_out, ==, 0);
        whole += ranking.share;
        share = ranking.share;
        if (i < 2)
            duet__ranking_fini(&ranking);
    }
    g_assert_cmpfloat_with_epsilon(whole, 1, 1e-12);
    g_assert_cmpfloat_with_epsilon(share,
                                   step * step /
                                       (step * step + other * other + gpus * gpus * 2 / 3),
                                   1e-12);
    const guint heft = level(&results, "policy", "heft"), ws = level(&results, "policy", "ws");
    g_assert_cmpfloat_with_epsilon(ranking.ratios[heft], 1 / sqrt(1.2), 1e-12);
    g_assert_cmpfloat_with_epsilon(ranking.ratios[ws], sqrt(1.2), 1e-12);
    g_assert_true(ranking.order[0] == heft && ranking.order[1] == ws);
    g_assert_cmpfloat(ranking.ranks[heft], ==, 1);
    g_assert_cmpfloat(ranking.p, ==, 0);
    g_assert_true(ranking.own == heft && isnan(ranking.against[heft]));
    g_assert_cmpfloat_with_epsilon(ranking.against[ws], ldexp(1, 1 - (int)ranking.cases), 1e-15);
    duet__ranking_fini(&ranking);
    duet__results_fini(&results);
    g_assert_cmpint(duet__store_close(&store, NULL), ==, 0);
}

/* Cases without all levels are left out, and change nothing of the other cases. */
static void test_missing(void)
{
    struct duet__store store;
    struct duet__results results;
    struct duet__ranking ranking;
    read_made(without_some, &store, &results);
    duet__rank(&results, find(&results, "policy"), &ranking);
    g_assert_cmpuint(ranking.cases, ==, 16);
    g_assert_cmpuint(ranking.left_out, ==, 2);
    g_assert_cmpfloat_with_epsilon(ranking.ratios[level(&results, "policy", "ws")], sqrt(1.2),
                                   1e-12);
    g_assert_cmpfloat_with_epsilon(ranking.distance, 1.959963985 / 4, 1e-8);
    duet__ranking_fini(&ranking);
    duet__rank(&results, find(&results, "gpus"), &ranking);
    g_assert_cmpuint(ranking.cases, ==, 10);
    g_assert_cmpuint(ranking.left_out, ==, 2);
    duet__ranking_fini(&ranking);
    duet__results_fini(&results);
    g_assert_cmpint(duet__store_close(&store, NULL), ==, 0);
}

TEST_MAIN(test_critical_values, test_friedman, test_effects, test_missing)
