/* SPDX-License-Identifier: Apache-2.0 */
/* Loads, builds and compares machines in the tests of platforms/. */
#ifndef DUET_PLATFORMS_TESTING_H
#define DUET_PLATFORMS_TESTING_H

#include <string.h>

#include <glib.h>

#include "platforms/platform.h"

static const char *const built_ins[] = {"attila", "idgraf", "mirage", "sirocco"};

static inline struct duet__platform *load(const char *name)
{
    struct duet__platform *platform = NULL;
    WORKS(duet__platform_load(name, &platform, hear()));
    return platform;
}

static inline void free_platform(struct duet__platform **platform)
{
    duet__platform_free(*platform);
}

static inline struct duet_machine build_with(const struct duet__platform *platform,
                                             const struct duet__platform_options *options)
{
    struct duet_machine machine;
    WORKS(duet__platform_build(platform, options, &machine, hear()));
    WORKS(duet_machine_check(&machine, hear()));
    return machine;
}

static inline struct duet_machine build(const struct duet__platform *platform, int cpus, int gpus)
{
    const struct duet__platform_options options = {.cpus = cpus, .gpus = gpus};
    return build_with(platform, &options);
}

static inline void assert_contains(const char *text, const char *fragment)
{
    if (strstr(text, fragment) == NULL)
        g_error("\"%s\" does not contain \"%s\"", text, fragment);
    g_assert_null(strchr(text, '\n'));
}

static inline void assert_origin(const struct duet__platform *platform, const char *kernel,
                                 const char *arch, const char *expected)
{
    g_autofree char *origin = duet__platform_origin(platform, kernel, arch);
    g_assert_cmpstr(origin, ==, expected);
}

/* Returns the index of the node of this name. */
static inline unsigned node_of(const struct duet_machine *m, const char *name)
{
    for (unsigned i = 0; i < m->node_count; i++)
        if (strcmp(m->nodes[i].name, name) == 0)
            return i;
    g_error("no node %s", name);
}

static inline const struct duet_route *route_of(const struct duet_machine *m, const char *from,
                                                const char *to)
{
    return duet_machine_route(m, node_of(m, from), node_of(m, to));
}

/* Compares routes field by field, as bytes between fields mean nothing. */
static inline void assert_equal_routes(const struct duet_machine *a, const struct duet_machine *b)
{
    for (size_t i = 0; i < (size_t)a->node_count * a->node_count; i++) {
        const struct duet_route *r = &a->routes[i], *s = &b->routes[i];
        g_assert_cmpint(r->direct, ==, s->direct);
        g_assert_cmpuint(r->count, ==, s->count);
        g_assert_cmpfloat(r->latency_s, ==, s->latency_s);
        g_assert_cmpfloat(r->bandwidth_Bps, ==, s->bandwidth_Bps);
        for (unsigned k = 0; k < r->count; k++)
            g_assert_cmpuint(r->links[k], ==, s->links[k]);
    }
}

static inline void assert_equal_machines(const struct duet_machine *a, const struct duet_machine *b)
{
    g_assert_cmpstr(a->name, ==, b->name);
    g_assert_cmpuint(a->arch_count, ==, b->arch_count);
    g_assert_cmpuint(a->node_count, ==, b->node_count);
    g_assert_cmpuint(a->worker_count, ==, b->worker_count);
    g_assert_cmpuint(a->link_count, ==, b->link_count);
    for (unsigned i = 0; i < a->arch_count; i++) {
        g_assert_cmpstr(a->archs[i].name, ==, b->archs[i].name);
        g_assert_cmpstr(a->archs[i].backend, ==, b->archs[i].backend);
    }
    for (unsigned i = 0; i < a->node_count; i++) {
        g_assert_cmpstr(a->nodes[i].name, ==, b->nodes[i].name);
        g_assert_cmpuint(a->nodes[i].capacity_bytes, ==, b->nodes[i].capacity_bytes);
    }
    for (unsigned i = 0; i < a->worker_count; i++) {
        g_assert_cmpstr(a->workers[i].name, ==, b->workers[i].name);
        g_assert_cmpuint(a->workers[i].arch, ==, b->workers[i].arch);
        g_assert_cmpuint(a->workers[i].node, ==, b->workers[i].node);
        g_assert_cmpuint(a->workers[i].socket, ==, b->workers[i].socket);
        g_assert_cmpuint(a->workers[i].window, ==, b->workers[i].window);
        g_assert_cmpuint(a->workers[i].window_short, ==, b->workers[i].window_short);
    }
    for (unsigned i = 0; i < a->link_count; i++) {
        g_assert_cmpstr(a->links[i].name, ==, b->links[i].name);
        g_assert_cmpfloat(a->links[i].bandwidth_Bps, ==, b->links[i].bandwidth_Bps);
        g_assert_cmpint(a->links[i].per_copy, ==, b->links[i].per_copy);
    }
    g_assert_cmpmem(&a->costs, sizeof a->costs, &b->costs, sizeof b->costs); /* all are doubles */
    g_assert_cmpuint(a->sharing.shared_bytes, ==, b->sharing.shared_bytes);
    g_assert_cmpfloat(a->sharing.bandwidth_Bps, ==, b->sharing.bandwidth_Bps);
    g_assert_cmpuint(a->cores, ==, b->cores);
    g_assert_cmpint(a->first_waits, ==, b->first_waits);
    assert_equal_routes(a, b);
}

#endif
