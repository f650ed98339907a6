/* SPDX-License-Identifier: Apache-2.0 */
/* A measured machine for tests, kernel times with every field, and a folder to write them into. */
#ifndef DUET_PLATFORMS_TESTING_DRAFT_H
#define DUET_PLATFORMS_TESTING_DRAFT_H

#include <math.h>

#include <glib/gstdio.h>

#include "platforms/testing.h"
#include "tests/main.h"

static const struct duet_arch draft_archs[] = {{"x5650", "cpu"}, {"m2070", "cuda"}};

/* Two sockets, three switches, four GPUs: 1 + 3 cores are left to compute. Limits of hub and host
 * are higher than those of their switches together. */
static const struct duet__platform_socket draft_sockets[] = {{0, 4, {60.5e9, 0}}, {0, 4, {0, 0}}};
static const struct duet__platform_switch draft_switches[] = {{0, 0, 24.3e9, 25.1e9},
                                                              {0, 0, 23.9e9, 24.7e9},
                                                              {1, 0, 26.25e9, 26.125e9}};
static const struct duet__platform_link draft_kinds[] = {
    {"pcie", {24.3e9, 9.1e-6}, {25.1e9, 8.7e-6}}};
static const struct duet__platform_gpu draft_gpus[] = {
    {1, 0, UINT64_C(80) << 30, {24.3e9, 9.1e-6}, {25.1e9, 8.7e-6}, 0, 0},
    {1, 0, UINT64_C(80) << 30, {24.1e9, 9.3e-6}, {25.1e9, 8.7e-6}, 0, 0},
    {1, 1, UINT64_C(40) << 30, {23.9e9, 9.1e-6}, {24.7e9, 8.8e-6}, 0, 0},
    {1, 2, UINT64_C(80) << 30, {26.25e9, 1.0 / 3 * 1e-5}, {20.5e9, 8.7e-6}, 350.5e9, 340.5e9},
};

#define BORROW(type, array) (struct type *)(uintptr_t)(array)

/* A platform that owns nothing; copy_of makes one that does. */
static inline struct duet__platform make_draft(void)
{
    static char description[] = "2 x \"Epyc\", 4 x H200 \xe2\x80\x94 measured\\";
    static char origin[] = "measured by duet calibrate on 2026-11-21";
    return (struct duet__platform){
        .name = "mine",
        .description = description,
        .origin = origin,
        .archs = BORROW(duet_arch, draft_archs),
        .arch_count = G_N_ELEMENTS(draft_archs),
        .sockets = BORROW(duet__platform_socket, draft_sockets),
        .socket_count = G_N_ELEMENTS(draft_sockets),
        .host_memory_bytes = UINT64_C(256) << 30,
        .host = {0, 90.5e9},
        .kinds = BORROW(duet__platform_link, draft_kinds),
        .kind_count = 1,
        .switches = BORROW(duet__platform_switch, draft_switches),
        .switch_count = G_N_ELEMENTS(draft_switches),
        .gpus = BORROW(duet__platform_gpu, draft_gpus),
        .gpu_count = G_N_ELEMENTS(draft_gpus),
        .peers = {{"peer_switch", false, {20.1e9, 1.1e-5}, {20.3e9, 1.2e-5}},
                  {"", false, {0, 0}, {0, 0}},
                  {"peer_remote", false, {18.7e9, 1.3e-5}, {17.9e9, 1.4e-5}}},
        .costs = {1.01e-6, 2.02e-7, 3.03e-7, 4.04e-7, 5.05e-6, 6.06e-6, 7.07e-6, 8.08e-6, 9.09e-5,
                  1.1e-8},
        .sharing = {36700160, 1.0 / 7 * 1e12},
        .cores = 6,
        .first_waits = true,
        .network = {.kind = DUET__NETWORK_FAT_TREE,
                    .bandwidth_Bps = 1.0 / 3 * 1e11,
                    .latency_s = 1.3e-6,
                    .overhead_s = 2.0 / 3 * 1e-6,
                    .rendezvous_s = 2.1e-6,
                    .eager_bytes = 16384,
                    .levels = 2,
                    .down = {16, 4},
                    .up = {1, 8},
                    .cables = {1, 2}},
        .probe_s = 1.0 / 30,
    };
}

/* Draws a time of any size, with all its digits. */
static inline double any_time(GRand *random)
{
    return pow(10, g_rand_double_range(random, -9, 3));
}

/* Draws a point with every field set. */
static inline struct duet__point any_point(GRand *random, double work)
{
    struct duet__point p = {.work = work,
                            .size = g_rand_int_range(random, 1, 5000),
                            .mean_s = any_time(random),
                            .deviation_s = any_time(random),
                            .samples = (uint64_t)g_rand_int(random) + 1,
                            .rejected = (uint64_t)g_rand_int(random) + 1,
                            .median_s = any_time(random),
                            .base_s = any_time(random),
                            .memory_s = any_time(random),
                            .busy_ratio = g_rand_double_range(random, 0.1, 1000),
                            .noise = g_rand_double_range(random, 0, 10),
                            .uncertainty = g_rand_double_range(random, 1e-3, 10)};
    return p;
}

static inline void add_curve(struct duet__calibration *calibration, const char *kernel,
                             const char *arch, const char *context,
                             const struct duet__point *points, size_t count)
{
    struct duet__curve curve = {.points = (struct duet__point *)(uintptr_t)points, .count = count};
    g_strlcpy(curve.kernel, kernel, sizeof(curve.kernel));
    g_strlcpy(curve.arch, arch, sizeof(curve.arch));
    g_strlcpy(curve.context, context != NULL ? context : "", sizeof(curve.context));
    WORKS(duet__calibration_add(calibration, &curve, hear()));
}

/* Makes curves with several points, contexts and architectures. */
static inline struct duet__calibration any_calibration(guint32 seed)
{
    static const char *const names[][3] = {{"dgemm", "x5650", "cholesky"},
                                           {"dgemm", "x5650", "gemm"},
                                           {"dgemm", "x5650", NULL},
                                           {"dgemm", "m2070", NULL},
                                           {"dsyrk", "x5650", "cholesky"}};
    struct duet__calibration calibration = {0};
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        struct duet__point points[5];
        for (unsigned j = 0; j < G_N_ELEMENTS(points); j++)
            points[j] = any_point(random, pow(7, 5 + j) / 3);
        add_curve(&calibration, names[i][0], names[i][1], names[i][2], points,
                  G_N_ELEMENTS(points));
    }
    calibration.states = (struct duet__states){.runs = seed,
                                               .drift = 1.0 / (1 + seed),
                                               .alone = 1,
                                               .busy = 1 + 0.01 * seed};
    for (unsigned i = 0; i < DUET__STATES; i++)
        calibration.states.factor[i] = 0.5 + i / 3.0;
    return calibration;
}

/* Compares two points bit by bit, except the origin: struct duet__point has no padding. */
static inline void assert_equal_point(const struct duet__point *a, const struct duet__point *b)
{
    g_assert_cmpmem(a, offsetof(struct duet__point, origin), b,
                    offsetof(struct duet__point, origin));
}

static inline void assert_equal_points(const struct duet__curve *a, const struct duet__curve *b)
{
    g_assert_cmpuint(a->count, ==, b->count);
    for (size_t i = 0; i < a->count; i++)
        assert_equal_point(&a->points[i], &b->points[i]);
}

static inline void assert_equal_calibrations(const struct duet__calibration *a,
                                             const struct duet__calibration *b)
{
    g_assert_cmpuint(a->count, ==, b->count);
    for (size_t i = 0; i < a->count; i++) {
        g_assert_cmpstr(a->curves[i].kernel, ==, b->curves[i].kernel);
        g_assert_cmpstr(a->curves[i].arch, ==, b->curves[i].arch);
        g_assert_cmpstr(a->curves[i].context, ==, b->curves[i].context);
        assert_equal_points(&a->curves[i], &b->curves[i]);
    }
    g_assert_cmpmem(&a->states, sizeof a->states, &b->states, sizeof b->states);
}

/* A folder with the file of a platform, and nothing else when it is removed. */
struct folder {
    char *path, *json;
};

static inline struct folder make_folder(void)
{
    struct folder folder = {.path = g_dir_make_tmp("duet-XXXXXX", NULL)};
    folder.json = g_build_filename(folder.path, "mine.json", NULL);
    return folder;
}

/* Removes a folder. Fails if a temporary file is left in it. */
static inline void remove_folder(struct folder *folder)
{
    (void)g_remove(folder->json);
    g_assert_cmpint(g_rmdir(folder->path), ==, 0);
    g_free(folder->path);
    g_free(folder->json);
}

/* Returns a draft with kernel times as a platform of its own, which duet__platform_fini frees. */
static inline struct duet__platform copy_of(const struct duet__platform *draft,
                                            const struct duet__calibration *times)
{
    struct duet__platform p = *draft;
    p.description = g_strdup(draft->description);
    p.origin = g_strdup(draft->origin);
    p.archs = g_memdup2(draft->archs, draft->arch_count * sizeof(*draft->archs));
    p.sockets = g_memdup2(draft->sockets, draft->socket_count * sizeof(*draft->sockets));
    p.kinds = g_memdup2(draft->kinds, draft->kind_count * sizeof(*draft->kinds));
    p.switches = g_memdup2(draft->switches, draft->switch_count * sizeof(*draft->switches));
    p.gpus = g_memdup2(draft->gpus, draft->gpu_count * sizeof(*draft->gpus));
    for (size_t i = 0; i < times->count; i++)
        add_curve(&p.calibration, times->curves[i].kernel, times->curves[i].arch,
                  times->curves[i].context, times->curves[i].points, times->curves[i].count);
    p.calibration.states = times->states;
    return p;
}

static inline int try_write(const struct duet__platform *draft,
                            const struct duet__calibration *times, const char *path,
                            enum duet__write how, struct duet_message *message)
{
    OWNED(duet__platform_fini) struct duet__platform p = copy_of(draft, times);
    int error = duet__platform_write(&p, path, how, message);
    return error;
}

static inline void write_draft(const struct duet__platform *draft,
                               const struct duet__calibration *times, const char *path,
                               enum duet__write how)
{
    WORKS(try_write(draft, times, path, how, hear()));
}

#endif
