/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in platforms: what is loaded, spot values of the figures, and finding them. */
#include <glib/gstdio.h>

#include "platforms/testing.h"

static const struct duet__curve *curve(const struct duet__platform *p, const char *kernel,
                                       const char *arch)
{
    const struct duet__curve *c = duet__calibration_find(&p->calibration, kernel, arch);
    if (c == NULL)
        g_error("%s has no %s on %s", p->name, kernel, arch);
    return c;
}

static void test_names(void)
{
    g_auto(GStrv) names = duet__platform_names();
    g_assert_cmpuint(g_strv_length(names), ==, G_N_ELEMENTS(built_ins) + 1);
    g_assert_true(g_strv_contains((const char *const *)names, "cores")); /* no machine there is */
    for (unsigned i = 0; i < G_N_ELEMENTS(built_ins); i++) {
        OWNED(free_platform) struct duet__platform *p = load(built_ins[i]);
        g_assert_true(g_strv_contains((const char *const *)names, built_ins[i]));
        g_assert_cmpstr(p->name, ==, built_ins[i]);
        g_assert_cmpstr(p->description, !=, "");
    }
    duet__platform_free(NULL);
}

static void test_counts(void)
{
    static const unsigned counts[][2] = {{12, 3}, {12, 8}, {12, 3}, {24, 4}};
    for (unsigned i = 0; i < G_N_ELEMENTS(built_ins); i++) {
        OWNED(free_platform) struct duet__platform *p = load(built_ins[i]);
        g_assert_cmpuint(duet__platform_cores(p), ==, counts[i][0]);
        g_assert_cmpuint(duet__platform_gpus(p), ==, counts[i][1]);
        g_assert_cmpuint(p->host_memory_bytes, ==, i == 1 ? UINT64_C(72) << 30 : 0);
    }
}

static void test_kernel_times(void)
{
    static const struct {
        const char *platform, *kernel, *arch;
        double size, work, mean_s;
        uint64_t samples;
        const char *origin;
    } spots[] = {
        {"idgraf", "dgemm", "c2050", 960, 1769472000, 5.910256e-3, 35560, "measured on idgraf"},
        {"idgraf", "dgemm", "x5650", 320, 65536000, 6.892168e-3, 612, "measured on idgraf"},
        {"idgraf", "dgemm", "c2050", 0, 7077888000, 23.31693e-3, 755, "rectangular"},
        {"idgraf", "sgemm", "x5650", 960, 1769472000, 89.8752e-3, 232, "measured on idgraf"},
        {"idgraf", "spotrf", "x5650", 960, 295372960, 20.69576e-3, 21, "measured on idgraf"},
        {"idgraf", "strsm", "x5650", 640, 262144000, 14.82664e-3, 155, "measured on idgraf"},
        {"idgraf", "dpotrf", "x5650", 960, 295372960, 33.62389e-3, 306, "measured on mirage"},
        {"idgraf", "dsyrk", "x5650", 960, 885657600, 96.88974e-3, 3825, "measured on mirage"},
        {"idgraf", "dtrsm", "x5650", 320, 32768000, 3.496929e-3, 10578, "measured on mirage"},
        {"idgraf", "ssyrk", "x5650", 960, 885657600, 47.11101e-3, 7809, "measured on mirage"},
        {"mirage", "dtrsm_l", "x5650", 640, 262144000, 27.58e-3, 255, "measured on mirage"},
        {"idgraf", "dgetrf_nopiv", "x5650", 640, 174557760, 63.467e-3, 10, "measured on idgraf"},
        {"sirocco", "strsm_r", "e5-2680v3", 960, 884736000, 15.83302e-3, 251,
         "measured on sirocco"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(spots); i++) {
        OWNED(free_platform) struct duet__platform *p = load(spots[i].platform);
        const struct duet__curve *c = curve(p, spots[i].kernel, spots[i].arch);
        bool found = false;
        g_autofree char *origin = NULL;
        for (size_t j = 0; j < c->count; j++) {
            if (c->points[j].size != spots[i].size || c->points[j].work != spots[i].work)
                continue;
            found = true;
            g_assert_cmpfloat_with_epsilon(c->points[j].mean_s / spots[i].mean_s, 1, 1e-4);
            g_assert_cmpuint(c->points[j].samples, ==, spots[i].samples);
        }
        g_assert_true(found);
        origin = duet__platform_origin(p, spots[i].kernel, spots[i].arch);
        assert_contains(origin, spots[i].origin);
    }
}

/* Every machine has its workloads' kernels on both architectures, none of them from guessed
 * rows. */
static void test_kernel_sets(void)
{
    static const char *const kernels[] = {"dgemm",   "sgemm",        "spotrf",       "strsm",
                                          "dtrsm_l", "dtrsm_r",      "dgetrf_nopiv", "strsm_l",
                                          "strsm_r", "sgetrf_nopiv", "dpotrf",       "dtrsm",
                                          "dsyrk",   "ssyrk"};
    enum { STAND_INS = 10 }; /* kernels from here on were measured on mirage's chips only */
    for (unsigned i = 0; i < G_N_ELEMENTS(built_ins); i++) {
        OWNED(free_platform) struct duet__platform *p = load(built_ins[i]);
        OWNED(duet_machine_fini) struct duet_machine m = build(p, -1, -1);
        bool sirocco = strcmp(built_ins[i], "sirocco") == 0;
        for (unsigned j = 0; j < G_N_ELEMENTS(kernels); j++)
            for (unsigned k = 0; k < m.arch_count; k++)
                g_assert_cmpint(duet__calibration_find(&p->calibration, kernels[j],
                                                       m.archs[k].name) != NULL,
                                ==, !sirocco || j < STAND_INS);
    }
}

/* Times grow with work on every curve, so that interpolation never runs backwards. */
static void test_times_grow(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(built_ins); i++) {
        OWNED(free_platform) struct duet__platform *p = load(built_ins[i]);
        const struct duet__calibration *c = &p->calibration;
        for (size_t j = 0; j < c->count; j++)
            for (size_t k = 1; k < c->curves[j].count; k++)
                g_assert_cmpfloat(c->curves[j].points[k - 1].mean_s, <,
                                  c->curves[j].points[k].mean_s);
    }
}

static void test_not_found(void)
{
    struct duet__platform *p = NULL;
    FAILS(duet__platform_load("idgraph", &p, hear()), DUET_ENOTFOUND,
          "attila, cores, idgraf, mirage, sirocco");
    g_assert_null(p);
    FAILS(duet__platform_load("", &p, hear()), DUET_ENOTFOUND,
          "the name of the platform is empty (known: attila");
    FAILS(duet__platform_load("no/such.json", &p, hear()), DUET_EIO, "no/such.json: cannot open");
    FAILS(duet__platform_load("/", &p, hear()), DUET_EIO, "not a regular file");
    g_assert_cmpint(duet__platform_load("/dev/zero", &p, hear()), ==, DUET_EIO);
    g_assert_cmpint(duet__platform_load("nothing.xml", &p, NULL), ==, DUET_EIO);
}

TEST_MAIN(test_names, test_counts, test_kernel_times, test_kernel_sets, test_times_grow,
          test_not_found)
