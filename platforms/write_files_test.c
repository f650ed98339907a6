/* SPDX-License-Identifier: Apache-2.0 */
/* Writing platforms over older ones: kept times, refusals, and files after errors. */
#include <string.h>

#include "platforms/testing_draft.h"

static const struct duet__calibration nothing = {0};

static struct duet__point simple_point(double work, double mean_s)
{
    return (struct duet__point){.work = work, .mean_s = mean_s, .samples = 7};
}

static char *contents(const char *path)
{
    char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL))
        return g_strdup("(nothing)");
    return text;
}

/* Writing must fail, say why, and leave the file as it is and no other one. */
static void refused(const struct duet__platform *draft, const struct duet__calibration *times,
                    const struct folder *folder, enum duet__write how, int expected,
                    const char *fragment)
{
    char *json = contents(folder->json), *after;
    FAILS(try_write(draft, times, folder->json, how, hear()), expected, fragment);
    g_assert_cmpint(try_write(draft, times, folder->json, how, NULL), ==, expected);
    after = contents(folder->json);
    g_assert_cmpstr(after, ==, json);
    g_free(after);
    g_free(json);
}

static void test_new(void)
{
    OWNED(remove_folder) struct folder folder = make_folder();
    struct duet__platform draft = make_draft();
    WORKS(duet__platform_may_write(folder.json, DUET_WRITE_NEW, hear()));
    write_draft(&draft, &nothing, folder.json, DUET_WRITE_NEW);
    refused(&draft, &nothing, &folder, DUET_WRITE_NEW, DUET_EINVAL,
            "mine.json is there already: --replace writes over it, --merge keeps");
    g_assert_cmpint(duet__platform_may_write(folder.json, DUET_WRITE_NEW, hear()), ==, DUET_EINVAL);
    WORKS(duet__platform_may_write(folder.json, DUET_WRITE_MERGE, hear()));
    write_draft(&draft, &nothing, folder.json, DUET_WRITE_REPLACE);
}

static void test_replace(void)
{
    OWNED(remove_folder) struct folder folder = make_folder();
    struct duet__platform draft = make_draft();
    OWNED(duet__calibration_fini) struct duet__calibration times = any_calibration(1);
    struct duet__platform *p;
    g_assert_true(g_file_set_contents(folder.json, "no platform", -1, NULL));
    refused(&draft, &times, &folder, DUET_WRITE_MERGE, DUET_EPARSE, "mine.json:1: ");
    write_draft(&draft, &times, folder.json, DUET_WRITE_REPLACE);
    draft.cores = 7;
    write_draft(&draft, &nothing, folder.json, DUET_WRITE_REPLACE);
    p = load(folder.json);
    g_assert_cmpuint(p->calibration.count, ==, 0);
    duet__platform_free(p);
}

static const struct duet__curve *curve_of(const struct duet__platform *p, const char *kernel,
                                          const char *arch, const char *context)
{
    const struct duet__calibration *c = &p->calibration;
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->curves[i].kernel, kernel) == 0 && strcmp(c->curves[i].arch, arch) == 0 &&
            strcmp(c->curves[i].context, context) == 0)
            return &c->curves[i];
    g_error("no %s on %s in \"%s\"", kernel, arch, context);
}

static void test_merge(void)
{
    char again[] = "measured again";
    OWNED(remove_folder) struct folder folder = make_folder();
    struct duet__platform draft = make_draft();
    struct duet__calibration old = any_calibration(1), new = {0};
    const struct duet__point points[] = {
        simple_point(old.curves[0].points[1].work * (1 + 5e-10), 1), /* the same work but for
                                                                        rounding */
        simple_point(old.curves[0].points[2].work * (1 + 5e-9), 2),  /* another work */
    };
    const struct duet__curve *curve;
    struct duet__platform *p;
    write_draft(&draft, &old, folder.json, DUET_WRITE_MERGE); /* there is no file yet */
    add_curve(&new, "dgemm", "x5650", "cholesky", points, G_N_ELEMENTS(points));
    add_curve(&new, "dpotrf", "x5650", NULL, points, 1);
    draft.origin = again;
    draft.cores = 5;
    write_draft(&draft, &new, folder.json, DUET_WRITE_MERGE);
    p = load(folder.json);
    g_assert_cmpuint(p->calibration.count, ==, old.count + 1);
    curve = curve_of(p, "dgemm", "x5650", "cholesky");
    g_assert_cmpuint(curve->count, ==, 6);
    assert_equal_point(&curve->points[0], &old.curves[0].points[0]);
    assert_equal_point(&curve->points[1], &points[0]);
    assert_equal_point(&curve->points[2], &old.curves[0].points[2]);
    assert_equal_point(&curve->points[3], &points[1]);
    for (size_t i = 1; i < old.count; i++) /* other contexts and architectures stay whole */
        assert_equal_points(&old.curves[i], curve_of(p, old.curves[i].kernel, old.curves[i].arch,
                                                     old.curves[i].context));
    g_assert_cmpuint(curve_of(p, "dpotrf", "x5650", "")->count, ==, 1);
    duet__platform_free(p);
    /* writing once more changes nothing */
    {
        char *once = contents(folder.json), *twice;
        write_draft(&draft, &new, folder.json, DUET_WRITE_MERGE);
        twice = contents(folder.json);
        g_assert_cmpstr(once, ==, twice);
        g_free(once);
        g_free(twice);
    }
    WORKS(duet__platform_may_write(folder.json, DUET_WRITE_MERGE, hear()));
    /* with other caches old points keep their means, but lose memory_s */
    draft.sharing.shared_bytes *= 2;
    write_draft(&draft, &new, folder.json, DUET_WRITE_MERGE);
    p = load(folder.json);
    curve = curve_of(p, "dsyrk", "x5650", "cholesky");
    g_assert_cmpfloat(curve->points[3].mean_s, ==, old.curves[4].points[3].mean_s);
    g_assert_cmpfloat(curve->points[3].base_s + curve->points[3].memory_s, ==, 0);
    duet__platform_free(p);
    duet__calibration_fini(&old);
    duet__calibration_fini(&new);
}

/* Each point has its own origin, however often it was merged. */
static void test_origins(void)
{
    OWNED(remove_folder) struct folder folder = make_folder();
    struct duet__platform draft = make_draft();
    struct duet__platform *p;
    for (unsigned day = 1; day <= 4; day++) {
        const struct duet__point points[] = {simple_point(100, day), simple_point(100 + day, day)};
        OWNED(duet__calibration_fini) struct duet__calibration times = {0};
        g_autofree char *origin = g_strdup_printf("\"day\" %u", day);
        add_curve(&times, "dgemm", "x5650", NULL, points, G_N_ELEMENTS(points));
        draft.origin = origin;
        write_draft(&draft, &times, folder.json, DUET_WRITE_MERGE);
    }
    p = load(folder.json);
    assert_origin(p, "dgemm", "x5650",
                  "\"day\" 4; at work 101: \"day\" 1; at work 102: \"day\" 2; at work 103: "
                  "\"day\" 3");
    g_assert_cmpfloat(curve_of(p, "dgemm", "x5650", "")->points[0].mean_s, ==, 4);
    duet__platform_free(p);
}

/* Times of GPUs stay when the CPUs alone are measured again, and serve when GPUs are back. */
static void test_lost_architecture(void)
{
    OWNED(remove_folder) struct folder folder = make_folder();
    struct duet__platform draft = make_draft(), alone = make_draft();
    OWNED(duet__calibration_fini) struct duet__calibration old = any_calibration(1);
    struct duet__platform *p;
    struct duet_machine m;
    write_draft(&draft, &old, folder.json, DUET_WRITE_NEW);
    alone.arch_count = 1;
    alone.switch_count = alone.gpu_count = 0;
    write_draft(&alone, &nothing, folder.json, DUET_WRITE_MERGE);
    p = load(folder.json);
    assert_equal_points(&old.curves[3], curve_of(p, "dgemm", "m2070", ""));
    m = build(p, -1, -1);
    g_assert_cmpuint(m.worker_count, ==, 8);
    g_assert_cmpuint(m.arch_count, ==, 2);
    g_assert_cmpstr(m.archs[1].backend, ==, "cuda");
    duet_machine_fini(&m);
    duet__platform_free(p);
    write_draft(&alone, &nothing, folder.json, DUET_WRITE_REPLACE);
    p = load(folder.json);
    m = build(p, -1, -1);
    g_assert_cmpuint(m.arch_count, ==, 1);
    duet_machine_fini(&m);
    duet__platform_free(p);
}

static void test_names(void)
{
    static const struct {
        const char *path, *fragment;
        int error;
    } cases[] = {
        {"mine", "must end in .json", DUET_EINVAL},
        {"mine.xml", "must end in .json", DUET_EINVAL},
        {"mine.kernels.json", "names that end in .kernels.json", DUET_EINVAL},
        {".json", "the file's name must have", DUET_EINVAL},
        {"/nonexistent/.json", "the file's name must have", DUET_EINVAL},
        {"my machine.json", "the file's name must have", DUET_EINVAL},
        {"/nonexistent/mine.json", "/nonexistent", DUET_EIO},
    };
    struct duet__platform draft = make_draft();
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {

        FAILS(try_write(&draft, &nothing, cases[i].path, DUET_WRITE_NEW, hear()), cases[i].error,
              cases[i].fragment);
        FAILS(duet__platform_may_write(cases[i].path, DUET_WRITE_NEW, hear()), cases[i].error,
              cases[i].fragment);
    }
}

/* A folder in the place of the file. */
static void test_in_the_way(void)
{
    OWNED(remove_folder) struct folder folder = make_folder();
    struct duet__platform draft = make_draft();
    OWNED(duet__calibration_fini) struct duet__calibration times = any_calibration(1);
    g_assert_cmpint(g_mkdir(folder.json, 0700), ==, 0);
    refused(&draft, &times, &folder, DUET_WRITE_REPLACE, DUET_EIO, "cannot write ");
    g_assert_cmpint(g_rmdir(folder.json), ==, 0);
    write_draft(&draft, &times, folder.json, DUET_WRITE_NEW);
}

/* Values that the format does not allow are found before anything is written. */
static void test_bad_drafts(void)
{
    static struct duet__platform_socket no_arch[] = {{2, 4, {0, 0}}, {0, 4, {0, 0}}},
                                        gpu_arch[] = {{1, 4, {0, 0}}, {0, 4, {0, 0}}},
                                        no_cores[] = {{0, 0, {0, 0}}, {0, 8, {0, 0}}},
                                        few[] = {{0, 1, {0, 0}}, {0, 2, {0, 0}}};
    static struct duet__platform_switch no_socket[] = {{0, 0, 1e9, 1e9},
                                                       {9, 0, 1e9, 1e9},
                                                       {1, 0, 1e9, 1e9}},
                                        negative[] = {{0, 0, -1, 1e9}, {0, 0, 0, 0}, {1, 0, 0, 0}},
                                        no_kind[] = {{0, 0, 1e9, 1e9}, {0, 1, 1, 1}, {1, 0, 1, 1}};
    static struct duet__platform_gpu lonely[] = {{1, 0, 1, {1e9, 0}, {1e9, 0}, 0, 0}},
                                     slow[] = {{1, 0, 1, {1, 0}, {1e9, 0}, 0, 0}},
                                     away[] = {{1, 3, 1, {1e9, 0}, {1e9, 0}, 0, 0}},
                                     late[] = {{1, 0, 1, {1e9, INFINITY}, {1e9, 0}, 0, 0}},
                                     odd[] = {{2, 0, 1, {1e9, 0}, {1e9, 0}, 0, 0}};
    OWNED(remove_folder) struct folder folder = make_folder();
    OWNED(duet__calibration_fini) struct duet__calibration times = any_calibration(1);
    const struct duet__point far = simple_point(1e30, 1);
    struct duet__platform d;
#define CHANGED(change, fragment)                                                                  \
    d = make_draft();                                                                              \
    change;                                                                                        \
    refused(&d, &times, &folder, DUET_WRITE_NEW, DUET_EINVAL, fragment)

    CHANGED(strcpy(d.name, "my machine"), "mine.json: name: \"my machine\" is no name");
    CHANGED(d.origin = NULL, "mine.json: host.origin: missing");
    CHANGED(d.socket_count = 0, "mine.json: sockets: has 0 elements");
    CHANGED((d.arch_count = d.socket_count = d.gpu_count = 0),
            "mine.json: architectures: has 0 elements");
    CHANGED(d.sockets = no_arch, "sockets[0].architecture: expected a string");
    CHANGED(d.sockets = gpu_arch, "sockets[0].architecture: m2070 has backend cuda");
    CHANGED(d.sockets = no_cores, "sockets[0].cores: 0 is out of range");
    CHANGED(d.sockets = few, "mine.json: 4 GPUs need a core each, mine has 3");
    CHANGED(d.switches = no_socket, "switches[1].socket: no socket 9");
    CHANGED(d.switches = negative, "switches[0].to_device_Bps: -1 is out of range");
    CHANGED(d.switches = no_kind, "switches[1].link: expected a string");
    CHANGED((d.gpus = lonely, d.gpu_count = 1), "switches[1].gpus: has 0 elements");
    CHANGED((d.gpus = slow, d.gpu_count = 1, d.switch_count = 1),
            "gpus[0].to_device_limit_Bps: 1 is out of range");
    CHANGED((d.gpus = away, d.gpu_count = 1), "switches[0].gpus: has 0 elements");
    CHANGED((d.gpus = odd, d.gpu_count = 1), "gpus[0].architecture: expected a string");
    CHANGED((d.gpus = late, d.gpu_count = 1, d.switch_count = 1),
            "gpus[0].to_device_latency_s: expected a number");
    CHANGED(strcpy(d.peers[1].name, "p"), "peers[1].up.bandwidth_Bps: 0 is out of range");
    CHANGED(d.costs.wake_s = INFINITY, "costs.wake_s: expected a number");
    CHANGED(d.costs.wake_s = -1, "costs.wake_s: -1 is out of range");
    CHANGED(d.sharing.bandwidth_Bps = 1, "sharing.bandwidth_Bps: 1 is out of range, expected 0 or");
    CHANGED(d.probe_s = -1, "probe.seconds: -1 is out of range");
    CHANGED(d.arch_count = 1, "gpus[0].architecture: expected a string");
    CHANGED((d.gpu_count = d.switch_count = 0, d.arch_count = 1),
            "curves[3].arch: mine has no architecture named m2070");
    add_curve(&times, "far", "x5650", NULL, &far, 1);
    CHANGED(d.cores = 1, "mine.json: curves[5].points[0].work: 1e+30 is out of range");
#undef CHANGED
}

/* Numbers have the digits that people would write. */
static void test_digits(void)
{
    OWNED(remove_folder) struct folder folder = make_folder();
    struct duet__platform draft = make_draft();
    g_autofree char *text = NULL;
    write_draft(&draft, &nothing, folder.json, DUET_WRITE_NEW);
    text = contents(folder.json);
    g_assert_nonnull(strstr(text, "\"submit_s\": 1.01e-06,\n  \"push_s\": 2.02e-07,"));
    g_assert_nonnull(strstr(text, "\"bandwidth_Bps\": 142857142857.14285}"));
    g_assert_nonnull(strstr(text, "\"2 x \\\"Epyc\\\", 4 x H200 \xe2\x80\x94 measured\\\\\""));
}

TEST_MAIN(test_new, test_replace, test_merge, test_origins, test_lost_architecture, test_names,
          test_in_the_way, test_bad_drafts, test_digits)
