/* SPDX-License-Identifier: Apache-2.0 */
/* Cores that may be used, as the operating system and control groups say. */
#include <glib/gstdio.h>
#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/backend.h"
#include "real/machine.h"
#include "real/real.h"
#include "real/testing_machine.h"

static void write_file(const char *folder, const char *name, const char *contents)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_assert_true(g_file_set_contents(path, contents, -1, NULL));
}

/* The smallest quota on the way from the process's group to the root. */
static void test_quota(void)
{
    const struct {
        const char *root, *inner, *membership;
        unsigned cores;
    } cases[] = {
        {"max 100000\n", "max 100000\n", "0::/inner\n", UINT_MAX},
        {"max 100000\n", "200000 100000\n", "0::/inner\n", 2},
        {"max 100000\n", "150000 100000\n", "0::/inner\n", 2},
        {"50000 100000\n", "200000 100000\n", "0::/inner\n", 1},
        {"400000 100000\n", "200000 100000\n", "0::/\n", 4},
        {"max 100000\n", "200000 100000\n", "4:cpu:/x\n0::/inner\n", 2},
        {"max 100000\n", "200000 100000\n", "0::/elsewhere/deep\n", UINT_MAX},
        {"what?", "", "0::/inner\n", UINT_MAX},
        {"-1 100000\n", "100000 0\n", "0::/inner\n", UINT_MAX},
        {"100000 100000\n", "max", "", 1},
    };
    g_autofree char *root = new_folder();
    g_autofree char *inner = g_build_filename(root, "inner", NULL);
    g_autofree char *membership = g_build_filename(root, "membership", NULL);
    g_assert_cmpint(g_mkdir(inner, 0700), ==, 0);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        write_file(root, "cpu.max", cases[i].root);
        write_file(inner, "cpu.max", cases[i].inner);
        write_file(root, "membership", cases[i].membership);
        g_assert_cmpuint(duet__quota(root, membership), ==, cases[i].cores);
    }
    remove_tree(root);
    g_assert_cmpuint(duet__quota(root, membership), ==, UINT_MAX);
}

/* A memory limit is found, whichever version of control groups sets it. */
static void test_memory_limit(void)
{
    const struct {
        const char *root, *inner, *older, *older_inner, *membership;
        uint64_t bytes;
    } cases[] = {
        {"max\n", "max\n", "9223372036854771712\n", "9223372036854771712\n", "0::/inner\n",
         9223372036854771712U},
        {"max\n", "1048576\n", "", "", "0::/inner\n", 1048576},
        {"1024\n", "1048576\n", "", "", "0::/inner\n", 1024},
        {"max\n", "1048576\n", "", "", "0::/\n", UINT64_MAX},
        {"max\n", "max\n", "4096\n", "2048\n", "3:cpu,memory:/inner\n0::/inner\n", 2048},
        {"max\n", "max\n", "4096\n", "2048\n", "3:cpu,memory2:/inner\n0::/\n", 4096},
        {"max\n", "max\n", "4096\n", "8192\n", "9:memory:/inner/deep\n0::/inner\n", 4096},
        {"what?", "-5", "", "", "0::/inner\n", UINT64_MAX},
    };
    static const char *const files[] = {"memory.max", "inner/memory.max",
                                        "memory/memory.limit_in_bytes",
                                        "memory/inner/memory.limit_in_bytes", "membership"};
    static const char *const folders[] = {"inner", "memory", "memory/inner"};
    g_autofree char *root = new_folder();
    g_autofree char *membership = g_build_filename(root, "membership", NULL);
    for (unsigned f = 0; f < G_N_ELEMENTS(folders); f++) {
        g_autofree char *folder = g_build_filename(root, folders[f], NULL);
        g_assert_cmpint(g_mkdir(folder, 0700), ==, 0);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        write_file(root, files[0], cases[i].root);
        write_file(root, files[1], cases[i].inner);
        write_file(root, files[2], cases[i].older);
        write_file(root, files[3], cases[i].older_inner);
        write_file(root, files[4], cases[i].membership);
        g_assert_cmpuint(duet__memory_limit(root, membership), ==, cases[i].bytes);
    }
    remove_tree(root);
    g_assert_cmpuint(duet__memory_limit(root, membership), ==, UINT64_MAX);
    g_assert_cmpuint(duet__real_memory_bytes(), >, 0);
}

/* Two ways of counting. */
static void test_places(void)
{
    struct places *places;
    const struct duet__backend *cpu = duet__backend_find("cpu");
    struct backend_info info;
    g_assert_cmpint(duet__places_new(&places), ==, DUET_OK);
    unsigned cores = duet__places_cores(places);
    g_assert_cmpuint(cores, >, 0);
    g_assert_cmpuint(cores, <=, duet__places_count(places));
    g_assert_cmpuint(cores, ==, duet__real_cores());
    g_assert_cmpuint(cores, <=, cpu->count(hear())); /* which knows of no quota */
    for (unsigned i = 0; i < duet__places_count(places); i++) {
        g_assert_cmpuint(duet__places_socket(places, i), <, 1024);
        duet__places_bind(places, i);
    }
    duet__places_free(places);
    WORKS(cpu->describe(0, &info, hear()));
    g_assert_cmpstr(info.arch, ==, "cpu");
    g_assert_cmpstr(info.description, !=, "");
    g_assert_cmpint(cpu->describe(100000, &info, hear()), ==, DUET_EINVAL);
}

/* The package near a device, by the processors that Linux lists for it. */
static void test_near(void)
{
    const struct {
        const char *list;
        int socket;
    } cases[] = {
        {"0-5", 0},   {"6-11", 1},
        {"7", 1},     {"6,8-9,200", 1},
        {"0-11", -1}, {"5-6", -1},
        {"", -1},     {"12-40", -1},
        {"none", -1}, {"-3", -1},
        {"11-6", -1}, {"3,", 0},
        {"3,x", 0},   {"0-99999999999999999999", -1},
    };
    struct places *places;
    g_assert_cmpint(duet__places_synthetic(&places, "pack:2 core:6 pu:1"), ==, DUET_OK);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++)
        g_assert_cmpint(duet__places_near(places, cases[i].list), ==, cases[i].socket);
    duet__places_free(places);
    g_assert_cmpint(duet__places_synthetic(&places, "what?"), ==, DUET_EINVAL);
    g_assert_null(places);
}

/* Deals, and checks the processors that workers get, CPUs first; "-" is unbound. */
static void deal(const char *processors, unsigned cpus, const int *near, unsigned devices,
                 const char *expected)
{
    struct places *places;
    g_autofree int *place = g_new0(int, cpus + devices + 1);
    g_autoptr(GString) dealt = g_string_new("");
    g_assert_cmpint(duet__places_synthetic(&places, processors), ==, DUET_OK);
    g_assert_cmpint(duet__places_deal(places, cpus, devices, near, place), ==, DUET_OK);
    for (unsigned w = 0; w < cpus + devices; w++) {
        const char *space = w ? " " : "";
        if (place[w] < 0)
            g_string_append_printf(dealt, "%s-", space);
        else
            g_string_append_printf(dealt, "%s%u", space,
                                   duet__places_processor(places, (unsigned)place[w]));
    }
    g_assert_cmpstr(dealt->str, ==, expected);
    duet__places_free(places);
}

static void test_deal(void)
{
    static const int idgraf[] = {0, 0, 0, 0, 1, 1, 1, 1}, far[] = {1, 1, 1}, nowhere[] = {-1, -1},
                     missing[] = {7};
    /* as the papers use Idgraf: what feeds a GPU is on its socket, two cores are left on each */
    deal("pack:2 core:6 pu:1", 4, idgraf, 8, "0 1 6 7 5 4 3 2 11 10 9 8");
    deal("pack:2 core:6 pu:1", 4, NULL, 0, "0 1 6 7");
    deal("pack:2 core:6 pu:1", 1, idgraf + 4, 1, "0 11");
    /* more on one socket than it has cores */
    deal("pack:2 core:2 pu:1", 1, far, 3, "0 3 2 1");
    deal("pack:2 core:2 pu:1", 1, nowhere, 2, "0 1 3");
    deal("pack:2 core:2 pu:1", 0, missing, 1, "1");
    /* second hardware threads come after all cores, and not for devices */
    deal("pack:1 core:2 pu:2", 3, NULL, 0, "0 2 1");
    deal("pack:2 core:2 pu:2", 2, far, 2, "0 2 6 4");
    deal("pack:2 core:1 pu:2", 4, NULL, 0, "0 1 2 3");
    deal("pack:2 core:1 pu:2", 3, NULL, 0, "0 1 2");
    deal("pack:1 core:2 pu:2", 2, nowhere, 1, "0 2 -");
    deal("pack:1 core:2 pu:2", 1, nowhere, 2, "0 2 -");
    deal("pack:1 core:2 pu:2", 4, nowhere, 1, "0 2 1 3 -");
    deal("pack:1 core:2 pu:2", 5, nowhere, 1, "- - - - - -");
}

enum { MANY = 48, PACKS = 4 };

/* A machine of so many packages, cores and hardware threads, and how it was dealt. */
struct dealt {
    unsigned packs, cores, threads, cpus, devices;
    int near[MANY], place[MANY];
    unsigned left[PACKS]; /* cores of a package that feed no device */
    struct testing_parts t;
};

static void draw(GRand *random, struct dealt *d)
{
    memset(d, 0, sizeof *d);
    d->packs = (unsigned)g_rand_int_range(random, 1, PACKS);
    d->cores = (unsigned)g_rand_int_range(random, 1, 6);
    d->threads = (unsigned)g_rand_int_range(random, 1, 3);
    unsigned places = d->packs * d->cores * d->threads;
    d->cpus = (unsigned)g_rand_int_range(random, 1, (int)places + 3);
    d->devices = (unsigned)g_rand_int_range(random, 0, 9);
    g_autofree char *processors =
        g_strdup_printf("pack:%u core:%u pu:%u", d->packs, d->cores, d->threads);
    testing_parts(&d->t, processors, d->cpus, d->devices);
    for (unsigned i = 0; i < d->devices; i++) {
        d->near[i] = g_rand_int_range(random, -1, (int)d->packs);
        if (d->near[i] >= 0)
            (void)g_snprintf(d->t.parts.ends[i].path.processors, PCI_LIST, "%u",
                             (unsigned)d->near[i] * d->cores * d->threads);
    }
    g_assert_cmpint(duet__places_deal(d->t.parts.places, d->cpus, d->devices, d->near, d->place),
                    ==, DUET_OK);
}

/* Each has a core, on its package while one is left there. */
static void check_devices(struct dealt *d)
{
    for (unsigned p = 0; p < d->packs; p++)
        d->left[p] = d->cores;
    for (unsigned i = 0; i < d->devices; i++) {
        int at = d->place[d->cpus + i];
        g_assert_cmpint(at >= 0, ==, d->cpus + i < d->packs * d->cores);
        if (at < 0)
            continue;
        unsigned socket = duet__places_socket(d->t.parts.places, (unsigned)at);
        if (d->near[i] >= 0 && d->left[d->near[i]] > 0)
            g_assert_cmpint((int)socket, ==, d->near[i]);
        g_assert_cmpuint(d->left[socket]--, >, 0);
    }
}

/* Checks that no workers share a place, and packages are balanced as long as there are cores. */
static void check_cpus(const struct dealt *d)
{
    unsigned used[PACKS] = {0}, workers = d->cpus + d->devices;
    for (unsigned w = 0; w < workers; w++)
        for (unsigned other = 0; other < w; other++)
            g_assert_true(d->place[w] < 0 || d->place[w] != d->place[other]);
    for (unsigned w = 0; w < d->cpus; w++) {
        g_assert_cmpint(d->place[w] >= 0, ==, d->cpus <= d->packs * d->cores * d->threads);
        if (d->place[w] >= 0)
            used[duet__places_socket(d->t.parts.places, (unsigned)d->place[w])]++;
    }
    for (unsigned p = 0; p < d->packs && workers <= d->packs * d->cores; p++)
        for (unsigned q = 0; q < d->packs; q++)
            g_assert_true(used[p] + 1 >= used[q] || used[p] == d->left[p]);
}

/* The machine says what is near a device, and the engine deals the same from the machine alone. */
static void check_machine(struct dealt *d)
{
    OWNED(duet_machine_fini) struct duet_machine machine;
    unsigned workers = d->cpus + d->devices;
    int again[MANY];
    testing_make(&d->t, &machine);
    g_assert_cmpint(duet__places_of(d->t.parts.places, &machine, again), ==, DUET_OK);
    g_assert_cmpmem(d->place, workers * sizeof *again, again, workers * sizeof *again);
    for (unsigned w = 0; w < workers; w++) {
        unsigned socket = machine.workers[w].socket;
        if (w >= d->cpus && d->near[w - d->cpus] >= 0)
            g_assert_cmpint((int)socket, ==, d->near[w - d->cpus]);
        else if (d->place[w] >= 0)
            g_assert_cmpuint(socket, ==,
                             duet__places_socket(d->t.parts.places, (unsigned)d->place[w]));
    }
}

static void test_deal_random(void)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(20261121);
    for (unsigned round = 0; round < 300; round++) {
        struct dealt d;
        draw(random, &d);
        check_devices(&d);
        check_cpus(&d);
        check_machine(&d);
        testing_end(&d.t);
    }
}

/* In a process of its own, which is bound then: the part's first processor. */
static unsigned processor_of_part(unsigned part, unsigned parts)
{
    unsigned processor;
    int ends[2], status;
    g_assert_cmpint(pipe(ends), ==, 0);
    pid_t child = fork();
    if (child == 0) {
        struct places *places;
        unsigned cores = duet__real_take_cores(part, parts, true);
        if (duet__places_new(&places) || !cores || cores > duet__places_cores(places))
            _exit(1);
        processor = duet__places_processor(places, 0);
        _exit(write(ends[1], &processor, sizeof processor) != sizeof processor);
    }
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_cmpint(status, ==, 0);
    g_assert_cmpint(read(ends[0], &processor, sizeof processor), ==, sizeof processor);
    close(ends[0]);
    close(ends[1]);
    return processor;
}

/* Each process has cores of its own, where there are enough. */
static void test_parts(void)
{
    const unsigned cores = duet__real_cores(), parts = MIN(cores, 4);
    unsigned all = 0;
    for (unsigned part = 0; part < parts; part++) {
        all += duet__real_take_cores(part, parts, false);
        for (unsigned other = 0; other < part; other++)
            g_assert_cmpint(processor_of_part(part, parts), !=, processor_of_part(other, parts));
    }
    g_assert_cmpuint(all, >=, parts);
    g_assert_cmpuint(all, <=, cores);
    g_assert_cmpuint(duet__real_take_cores(cores, cores + 1, true), ==, 0);
    g_assert_cmpuint(duet__real_cores(), ==, cores);
}

TEST_MAIN(test_quota, test_memory_limit, test_places, test_near, test_deal, test_deal_random,
          test_parts)
