/* SPDX-License-Identifier: Apache-2.0 */
/* Support for tests of copies: machines with random links and routes. */
#ifndef DUET_CORE_TESTING_LINKS_H
#define DUET_CORE_TESTING_LINKS_H

#include <glib.h>

#include <duet/machine.h>
#include <duet/random.h>

/* Random figures of a machine and its copies; `round`: many of them are equal. */
struct figures {
    uint64_t random;
    bool round;
};

/* Returns a number in [0, 1). */
static inline double figure(struct figures *figures)
{
    return figures->round ? duet_random_below(&figures->random, 4) / 4.0
                          : duet_random_unit(&figures->random);
}

/*
 * Fills a machine. `tree`: its GPUs are behind switches, GPUs and switches have a link each way or
 * one for both ways, and copies from switch to switch share another one. Otherwise each route
 * crosses one to three of all links. Some links limit each copy alone.
 */
static inline void random_machine(struct duet_machine *m, unsigned nodes, bool tree,
                                  struct figures *figures)
{
    enum { SWITCHES = 3, LINKS_MAX = 64 };
    const unsigned links = 6 * ((nodes + SWITCHES + 2) / 3); /* end e has 2 e up, 2 e + 1 down */
    uint16_t way[LINKS_MAX];
    g_assert_cmpuint(links, <=, LINKS_MAX);
    g_assert_cmpint(duet_machine_init(m, 1, nodes, 1, links), ==, DUET_OK);
    for (unsigned l = 0; l < links; l++) {
        g_snprintf(m->links[l].name, sizeof m->links[l].name, "link%u", l);
        m->links[l].bandwidth_Bps = 1e8 * (1 + 20 * figure(figures));
        m->links[l].per_copy = tree ? duet_random_below(&figures->random, 4) == 0 : l % 2;
        way[l] = (uint16_t)(l % 2 && duet_random_below(&figures->random, 3) == 0 ? l - 1 : l);
    }
    for (unsigned i = 0; i < nodes * nodes; i++) {
        struct duet_route *route = &m->routes[i];
        const unsigned from = i / nodes, to = i % nodes;
        const unsigned up = nodes + from % SWITCHES, down = nodes + to % SWITCHES;
        route->direct = from != to;
        route->latency_s = 1e-3 * figure(figures);
        if (tree && from)
            route->links[route->count++] = way[2 * from];
        if (tree && from && (!to || up != down))
            route->links[route->count++] = way[2 * up];
        if (tree && from && to && up != down)
            route->links[route->count++] = 0;
        if (tree && to && (!from || up != down))
            route->links[route->count++] = way[2 * down + 1];
        if (tree && to)
            route->links[route->count++] = way[2 * to + 1];
        for (unsigned k = 1 + duet_random_below(&figures->random, 3); !tree && k > 0; k--)
            route->links[route->count++] =
                (uint16_t)(duet_random_below(&figures->random, links / 3) * 3 + k - 1);
    }
}

#endif
