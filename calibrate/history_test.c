/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of programs leave their kernel times in a platform file of this machine. */
#include "runtime/open.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "platforms/platform.h"
#include "platforms/testing.h"
#include "base/stats.h"
#include "runtime/testing.h"

enum { TASKS = 60, THREADS = 4 };

static char *folder, *path;

static int compute(const struct duet_call *call)
{
    volatile double sum = 0;
    for (int i = 0; i < 20000; i++)
        sum = sum + i;
    return DUET_OK;
}

static double flops(const void *args)
{
    return 20000;
}

static struct duet_config configuration(void)
{
    struct duet_config config = testing_config(NULL, 1, 0);
    config.no_bind = true;
    config.context = "history/test"; /* not valid as a name */
    config.calibrate = path;
    return config;
}

static struct duet_runtime *run(const struct duet_config *config)
{
    const struct duet_implementation on[] = {{"cpu", compute}};
    const struct duet_codelet_desc desc = {.name = "compute",
                                           .implementations = on,
                                           .implementation_count = 1,
                                           .flops = flops};
    struct duet_runtime *duet = testing_open(config);
    struct duet_codelet *codelet;
    g_assert_cmpint(duet_register_codelet(duet, &desc, &codelet), ==, DUET_OK);
    for (int i = 0; i < TASKS; i++)
        g_assert_cmpint(duet_submit(duet, &(struct duet_task_desc){.codelet = codelet}), ==,
                        DUET_OK);
    return duet;
}

static void run_once(void)
{
    const struct duet_config config = configuration();
    g_assert_cmpint(duet_close(run(&config)), ==, DUET_OK);
}

static void *run_twice(void *data)
{
    run_once();
    run_once();
    return data;
}

/* Loads the file, the only one in the folder, whose one point is of so many runs. */
static struct duet__platform *load_runs(uint64_t runs)
{
    struct duet__platform *platform = load(path);
    const struct duet__curve *curve = platform->calibration.curves;
    g_autoptr(GDir) all = g_dir_open(folder, 0, NULL);
    g_assert_cmpuint(platform->calibration.count, ==, 1);
    g_assert_cmpstr(curve->kernel, ==, "compute");
    g_assert_cmpstr(curve->context, ==, "test");
    g_assert_cmpuint(curve->count, ==, 1);
    g_assert_cmpuint(curve->points->samples + curve->points->rejected, ==, runs * TASKS);
    g_assert_cmpfloat(curve->points->mean_s, >, 0);
    g_assert_nonnull(g_dir_read_name(all));
    g_assert_null(g_dir_read_name(all));
    return platform;
}

static void test_adds_up(void)
{
    struct duet__platform *platform;
    run_once();
    platform = load_runs(1);
    g_assert_nonnull(strstr(platform->origin, "kept by DUET_CALIBRATE"));
    g_assert_cmpfloat(platform->calibration.curves->points->median_s, >, 0);
    duet__platform_free(platform);
    run_twice(NULL);
    duet__platform_free(load_runs(3));
}

/* Runtimes of one process that are closed at the same time, too, and by way of a link. */
static void test_threads(void)
{
    g_autofree char *link = g_build_filename(folder, "link.json", NULL), *file = path;
    GThread *threads[THREADS];
    run_once();
    g_assert_cmpint(symlink(path, link), ==, 0);
    path = link;
    for (int i = 0; i < THREADS; i++)
        threads[i] = g_thread_new("program", run_twice, NULL);
    for (int i = 0; i < THREADS; i++)
        g_thread_join(threads[i]);
    g_assert_true(g_file_test(link, G_FILE_TEST_IS_SYMLINK));
    g_unlink(link);
    path = g_steal_pointer(&file);
    duet__platform_free(load_runs(1 + 2 * THREADS));
}

/* The file's description of the machine, and the origins of its figures, stay. */
static void test_machine_stays(void)
{
    struct duet__platform *platform;
    run_once();
    platform = load(path);
    g_free(platform->origin);
    platform->origin = g_strdup("somewhere");
    platform->costs.pop_s = 1e-7;
    platform->sharing.bandwidth_Bps = 1e10;
    platform->calibration.curves->points->work *= 2;
    g_assert_cmpint(duet__platform_write(platform, path, DUET_WRITE_REPLACE, NULL), ==, DUET_OK);
    duet__platform_free(platform);
    for (int i = 0; i < 2; i++) {
        const struct duet__point *points;
        run_once();
        platform = load(path);
        points = platform->calibration.curves->points;
        g_assert_cmpfloat(platform->costs.pop_s, ==, 1e-7);
        g_assert_cmpfloat(platform->sharing.bandwidth_Bps, ==, 1e10);
        g_assert_cmpstr(platform->origin, ==, "somewhere");
        g_assert_cmpuint(platform->calibration.curves->count, ==, 2);
        g_assert_cmpstr(points[0].origin, ==, "runs kept by DUET_CALIBRATE");
        g_assert_cmpuint(points[0].samples + points[0].rejected, ==, (i + 1) * TASKS);
        g_assert_cmpuint(points[1].samples + points[1].rejected, ==, TASKS);
        g_assert_null(points[1].origin);
        duet__platform_free(platform);
    }
}

static void refused(const struct duet_config *config, int expected, const char *fragment)
{
    struct duet_runtime *duet;
    g_autofree char *before = NULL, *after = NULL;
    (void)g_file_get_contents(path, &before, NULL, NULL);
    g_assert_cmpint(duet_open(&duet, config, hear()), ==, expected);
    g_assert_null(duet);
    SAYS(fragment);
    (void)g_file_get_contents(path, &after, NULL, NULL);
    g_assert_cmpstr(before, ==, after);
}

static void test_refused(void)
{
    struct duet_config config = configuration();
    config.simulate = "idgraf";
    refused(&config, DUET_EINVAL, "nothing is measured in it");
    config.simulate = NULL;
    config.emulate = "idgraf";
    refused(&config, DUET_EINVAL, "nothing is measured in it");
    config.emulate = NULL;
    config.calibrate = "/nonesuch/mine.json";
    refused(&config, DUET_EIO, "there is no folder /nonesuch");
    config.calibrate = "mine.txt";
    refused(&config, DUET_EINVAL, "the name must end in .json");
    config.calibrate = path;
    g_assert_true(g_file_set_contents(path, "{\"schema\": 2, ", -1, NULL));
    refused(&config, DUET_EPARSE, "mine.json:1: ");
    g_unlink(path);
}

enum change { MEMORY, PROCESSOR, ARCHITECTURE, CORES, CHANGES };

/* A file is refused if one thing in it is not as on this machine. */
static void test_other_machine(void)
{
    static const char *const says[] = {"GiB of memory, but this has",
                                       "which is described as 'some others', but this has",
                                       "is of another machine, which has no cpu",
                                       "with 1 cores, but this has"};
    for (int change = 0; change < CHANGES; change++) {
        const struct duet_config config = configuration();
        struct duet__platform *there;
        run_once();
        there = load(path);
        bool known = change == CORES       ? there->cores > 1
                     : change == MEMORY    ? there->host_memory_bytes > 0
                     : change == PROCESSOR ? strchr(there->description, '(') != NULL
                                           : true;
        there->host_memory_bytes *= change == MEMORY ? 2 : 1;
        there->cores = change == CORES ? 1 : there->cores;
        if (change == PROCESSOR) {
            g_free(there->description);
            there->description = g_strdup("some others");
        }
        if (change == ARCHITECTURE) {
            g_strlcpy(there->archs->name, "x5650", DUET_NAME_MAX);
            duet__calibration_fini(&there->calibration);
        }
        g_assert_cmpint(duet__platform_write(there, path, DUET_WRITE_REPLACE, NULL), ==, DUET_OK);
        if (known)
            refused(&config, DUET_EINVAL, says[change]);
        duet__platform_free(there);
        g_unlink(path);
    }
}

/* A file that has become invalid meanwhile stays, and the program has its result. */
static void test_bad_at_the_end(void)
{
    const struct duet_config config = configuration();
    struct duet_runtime *duet = run(&config);
    g_autofree char *after = NULL;
    g_assert_true(g_file_set_contents(path, "{}", -1, NULL));
    g_assert_cmpint(duet_close(duet), ==, DUET_OK);
    g_assert_true(g_file_get_contents(path, &after, NULL, NULL));
    g_assert_cmpstr(after, ==, "{}");
}

/* A run without a task, or all of whose tasks have failed, adds nothing, and is no error. */
static void test_nothing(void)
{
    const struct duet_config config = configuration();
    struct duet_event events[] = {{.kind = DUET_EVENT_TASK, .failed = true},
                                  {.kind = DUET_EVENT_COPY}};
    const struct duet__recording recording = {.events = events, .event_count = 2};
    struct duet__history *history;
    WORKS(duet__history_open(&history, &config, hear()));
    WORKS(duet__history_add(history, &recording, "test", hear()));
    g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
    duet__history_free(history);
}

/* Parts of a sample, pooled one after another, equal the whole, whatever their sizes. */
static void test_pool(void)
{
    static const size_t sizes[] = {1, 7, 2, 40};
    double all[50];
    OWNED(duet__platform_fini) struct duet__platform platform = {.origin = g_strdup("before")};
    size_t first = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(all); i++)
        all[i] = 1e-3 * (2 + sin((double)i));
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); first += sizes[i++]) {
        struct duet__summary part = duet__summarise(all + first, sizes[i]);
        struct duet__point point = {.work = 5,
                                    .mean_s = part.mean,
                                    .deviation_s = part.deviation,
                                    .median_s = part.median,
                                    .samples = part.count,
                                    .rejected = i,
                                    .base_s = part.mean,
                                    .busy_ratio = 1,
                                    .noise = part.deviation / part.mean};
        const struct duet__curve curve = {.kernel = "k",
                                          .arch = "cpu",
                                          .context = "c",
                                          .count = 1,
                                          .points = &point};
        OWNED(duet__calibration_fini) struct duet__calibration run = {0};
        g_assert_cmpint(duet__calibration_add(&run, &curve, NULL), ==, DUET_OK);
        g_assert_cmpint(duet__platform_pool(&platform, &run, "runs", NULL), ==, DUET_OK);
    }
    const struct duet__summary whole = duet__summarise(all, G_N_ELEMENTS(all));
    const struct duet__curve *curve = platform.calibration.curves;
    const struct duet__point *point = curve->points;
    g_assert_cmpuint(platform.calibration.count * curve->count, ==, 1);
    g_assert_cmpuint(point->samples, ==, G_N_ELEMENTS(all));
    g_assert_cmpuint(point->rejected, ==, 0 + 1 + 2 + 3);
    g_assert_cmpfloat_with_epsilon(point->mean_s, whole.mean, 1e-12);
    g_assert_cmpfloat_with_epsilon(point->deviation_s, whole.deviation, 1e-12);
    g_assert_cmpfloat_with_epsilon(point->base_s, whole.mean, 1e-12);
    g_assert_cmpfloat_with_epsilon(point->noise, whole.deviation / whole.mean, 1e-9);
    g_assert_cmpfloat(point->busy_ratio, ==, 1);
    g_assert_cmpfloat(point->median_s, ==, 0);
    g_assert_cmpstr(curve->origin, ==, "runs");
}

/* Figures that one of both has are kept; those that both have are weighted by samples. */
static void test_pool_parts(void)
{
    struct duet__point old = {.work = 5, .mean_s = 1, .samples = 3, .base_s = 1, .memory_s = 4};
    struct duet__point more = {.work = 5, .mean_s = 1, .samples = 1, .busy_ratio = 1.5};
    struct duet__curve curve = {.kernel = "k", .arch = "cpu", .count = 1, .points = &old};
    OWNED(duet__platform_fini) struct duet__platform platform = {.origin = g_strdup("before")};
    OWNED(duet__calibration_fini) struct duet__calibration run = {0};
    const struct duet__point *point;
    g_assert_cmpint(duet__calibration_add(&platform.calibration, &curve, NULL), ==, DUET_OK);
    curve.points = &more;
    g_assert_cmpint(duet__calibration_add(&run, &curve, NULL), ==, DUET_OK);
    g_assert_cmpint(duet__platform_pool(&platform, &run, "runs", NULL), ==, DUET_OK);
    point = platform.calibration.curves->points;
    g_assert_cmpfloat(point->base_s, ==, 1);
    g_assert_cmpfloat(point->memory_s, ==, 4);
    g_assert_cmpfloat(point->busy_ratio, ==, 1.5);
    g_assert_cmpstr(point->origin, ==, "before, and runs");
    run.curves->points->base_s = 2;
    g_assert_cmpint(duet__platform_pool(&platform, &run, "runs", NULL), ==, DUET_OK);
    point = platform.calibration.curves->points;
    g_assert_cmpfloat_with_epsilon(point->base_s, (1 * 4 + 2) / 5.0, 1e-12);
    g_assert_cmpfloat_with_epsilon(point->memory_s, 4 * 4 / 5.0, 1e-12);
    g_assert_cmpstr(point->origin, ==, "before, and runs");
}

static void within_folder(const void *test)
{
    folder = g_dir_make_tmp("duet-XXXXXX", NULL);
    path = g_build_filename(folder, "mine.json", NULL);
    ((void (*)(void))(uintptr_t)test)();
    g_unlink(path);
    g_assert_cmpint(g_rmdir(folder), ==, 0);
    g_free(path);
    g_free(folder);
}

static void add(const char *name, void (*test)(void))
{
    g_test_add_data_func(name, (const void *)(uintptr_t)test, within_folder);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("/calibrate/history/adds-up", test_adds_up);
    add("/calibrate/history/threads", test_threads);
    add("/calibrate/history/machine-stays", test_machine_stays);
    add("/calibrate/history/refused", test_refused);
    add("/calibrate/history/other-machine", test_other_machine);
    add("/calibrate/history/bad-at-the-end", test_bad_at_the_end);
    add("/calibrate/history/nothing", test_nothing);
    g_test_add_func("/calibrate/history/pool", test_pool);
    g_test_add_func("/calibrate/history/pool-parts", test_pool_parts);
    return g_test_run();
}
