/* SPDX-License-Identifier: Apache-2.0 */
/* SimGrid itself loads the written platforms, and sees the same routes: their figures, and copies
 * alone. It is loaded at run time, so that this builds without it (and is skipped, status 77). */
#include <dlfcn.h>
#include <stdio.h>

#include <glib/gstdio.h>

#include "platforms/testing.h"

enum { BYTES = 10000000, SKIPPED = 77 };

/* The functions of SimGrid's C interface in use, by their names there. */
struct simgrid {
    void (*init)(int *argc, char **argv);
    void (*load_platform)(const char *file);
    void (*run)(void);
    double (*clock)(void);
    size_t (*host_count)(void);
    void *(*host_by_name)(const char *name);
    double (*route_latency)(const void *from, const void *to);
    double (*route_bandwidth)(const void *from, const void *to);
    void (*send)(void *from, void *to, double bytes);
    void *(*actor_init)(const char *name, void *host);
    void (*actor_start)(void *actor, void (*code)(int, char **), int argc, char *const *argv);
};

static struct simgrid open_simgrid(void *library)
{
    struct simgrid s;
    const struct {
        const char *name;
        void *place;
    } symbols[] = {
        {"simgrid_init", &s.init},
        {"simgrid_load_platform", &s.load_platform},
        {"simgrid_run", &s.run},
        {"simgrid_get_clock", &s.clock},
        {"sg_host_count", &s.host_count},
        {"sg_host_by_name", &s.host_by_name},
        {"sg_host_get_route_latency", &s.route_latency},
        {"sg_host_get_route_bandwidth", &s.route_bandwidth},
        {"sg_host_sendto", &s.send},
        {"sg_actor_init", &s.actor_init},
        {"sg_actor_start_", &s.actor_start},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(symbols); i++) {
        void *function = dlsym(library, symbols[i].name);
        if (function == NULL && g_str_equal(symbols[i].name, "sg_actor_start_"))
            function = dlsym(library, "sg_actor_start");
        if (function == NULL)
            g_error("SimGrid has no %s", symbols[i].name);
        memcpy(symbols[i].place, &function, sizeof(function)); /* POSIX says that they have one
                                                                  size */
    }
    return s;
}

struct test {
    struct simgrid simgrid;
    struct duet_machine machine;
    unsigned copies;
};

/* Copies between every pair, one after the other; each must take its time alone. */
static void copy_all(struct test *test)
{
    const struct simgrid *s = &test->simgrid;
    const struct duet_machine *m = &test->machine;
    for (unsigned i = 0; i < m->node_count; i++) {
        for (unsigned j = 0; j < m->node_count; j++) {
            const struct duet_route *r = duet_machine_route(m, i, j);
            double start = s->clock();
            double alone = r->latency_s + BYTES / r->bandwidth_Bps;
            if (!r->direct)
                continue;
            s->send(s->host_by_name(m->nodes[i].name), s->host_by_name(m->nodes[j].name), BYTES);
            g_assert_cmpfloat_with_epsilon((s->clock() - start) / alone, 1, 1e-9);
            test->copies++;
        }
    }
}

/* SimGrid gives an actor only texts: one holds the test's address. */
static void actor(int argc, char **argv)
{
    void *test = NULL;
    g_assert_cmpint(argc, ==, 1);
    g_assert_cmpint(sscanf(argv[0], "%p", &test), ==, 1);
    copy_all(test);
}

static void check_figures(const struct test *test)
{
    const struct simgrid *s = &test->simgrid;
    const struct duet_machine *m = &test->machine;
    g_assert_cmpuint(s->host_count(), ==, m->node_count);
    for (unsigned i = 0; i < m->node_count; i++) {
        const void *from = s->host_by_name(m->nodes[i].name);
        for (unsigned j = 0; j < m->node_count; j++) {
            const struct duet_route *r = duet_machine_route(m, i, j);
            const void *to = s->host_by_name(m->nodes[j].name);
            if (!r->direct)
                continue;
            g_assert_cmpfloat(s->route_latency(from, to), ==, r->latency_s);
            g_assert_cmpfloat(s->route_bandwidth(from, to), ==, r->bandwidth_Bps);
        }
    }
}

/* Writes the machine to a file of its own, which SimGrid loads. */
static void load_into_simgrid(const struct test *test)
{
    OWNED(drop_folder) char *directory = new_folder();
    g_autofree char *path = g_build_filename(directory, "idgraf.xml", NULL);
    WORKS(duet__platform_write_xml(&test->machine, NULL, path, hear()));
    test->simgrid.load_platform(path);
}

int main(int argc, char **argv)
{
    char *arguments[] = {g_strdup("xml_simgrid_test"),
                         g_strdup("--cfg=network/model:CM02"),
                         g_strdup("--cfg=network/TCP-gamma:0"),
                         g_strdup("--cfg=network/crosstraffic:0"),
                         g_strdup("--cfg=surf/precision:1e-12"),
                         g_strdup("--cfg=contexts/factory:thread"), /* sanitizers know threads */
                         g_strdup("--log=root.thres:warning"),
                         NULL};
    char *all[G_N_ELEMENTS(arguments)];
    int count = G_N_ELEMENTS(arguments) - 1;
    void *library = dlopen("libsimgrid.so", RTLD_NOW);
    struct duet__platform *p;
    struct test test = {.copies = 0};
    char address[64];
    char *actor_arguments[] = {address, NULL};
    memcpy(all, arguments, sizeof(all)); /* SimGrid removes the arguments that it understood */
    if (library != NULL) {
        test.simgrid = open_simgrid(library);
        p = load("idgraf");
        test.machine = build(p, 4, 8);
        test.simgrid.init(&count, arguments);
        load_into_simgrid(&test);
        check_figures(&test);
        (void)g_snprintf(address, sizeof(address), "%p", (void *)&test);
        test.simgrid.actor_start(test.simgrid.actor_init("copies",
                                                         test.simgrid.host_by_name("host")),
                                 actor, 1, actor_arguments);
        test.simgrid.run();
        g_assert_cmpuint(test.copies, ==, 72);
        duet_machine_fini(&test.machine);
        duet__platform_free(p);
    }
    for (size_t i = 0; all[i] != NULL; i++)
        g_free(all[i]);
    return library != NULL ? 0 : SKIPPED;
}
