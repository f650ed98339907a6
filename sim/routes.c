/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links are numbered: cards by node, then the cables of each level. A link of an even number leads
 * away from its node, switch or router of the lower number; the next one leads back.
 */
#include "sim/routes.h"

#include <stdbool.h>

enum { OUT, IN }; /* direction of a card */

/* A route that is being written. */
struct path {
    const struct duet__routes *routes;
    unsigned *links, count;
};

static void add(struct path *path, unsigned level, size_t cable, unsigned back)
{
    path->links[path->count++] = (unsigned)(path->routes->first[level] + 2 * cable + back);
}

static unsigned product(const unsigned *factors, unsigned count)
{
    unsigned result = 1;
    for (unsigned i = 0; i < count; i++)
        result *= factors[i];
    return result;
}

/* ------------------------------------------------------------------------------------------- */
/* Fat tree: level l joins nodes (l = 0) or switches of level l to switches of level l + 1. A node
 * or switch of level l has a digit for each level i: below up[i] for i < l, else below down[i].
 * Parents and children differ in digit l alone. A node's card is its link to its switches. */

/* Returns the number of nodes (level 0) or switches of a level. */
static size_t tree_width(const struct duet__network *n, unsigned level)
{
    return (size_t)product(n->up, level) * product(n->down + level, n->levels - level);
}

/* Returns the number of the node or switch of a level whose digits below that level are `climbed`,
 * and whose others are those of node `to`. */
static size_t tree_place(const struct duet__network *n, unsigned level, const unsigned *climbed,
                         unsigned to)
{
    size_t place = 0, unit = 1;
    for (unsigned i = 0; i < level; unit *= n->up[i++])
        place += climbed[i] * unit;
    return place + to / product(n->down, level) * unit;
}

/* Adds the link between node or switch `child` of a level and its parent. */
static void add_tree(struct path *path, unsigned level, size_t child, unsigned port, unsigned back)
{
    const struct duet__network *n = path->routes->network;
    add(path, level, child * n->up[level] * n->cables[level] + port, back);
}

/*
 * The way up is chosen by the destination (D-mod-k: Zahavi, CCIT report 776, 2010). On the way down
 * the only choice is between parallel cables, which is SimGrid's: the ports of a switch are looked
 * through from the source's number of cable on, and those of the switch below it from there on.
 */
static void find_tree(struct path *path, unsigned from, unsigned to)
{
    const struct duet__network *n = path->routes->network;
    unsigned climbed[DUET__NETWORK_LEVELS] = {0}, level = 0;
    for (; from / product(n->down, level) != to / product(n->down, level); level++) {
        unsigned port = to / product(n->up, level) % (n->up[level] * n->cables[level]);
        add_tree(path, level, tree_place(n, level, climbed, from), port, OUT);
        climbed[level] = port % n->up[level];
    }
    while (level > 0) {
        unsigned port = from % n->cables[level - 1] * n->down[level - 1];
        for (; level > 0 && port < n->down[level - 1] * n->cables[level - 1]; port++) {
            if (port % n->down[level - 1] != to / product(n->down, level - 1) % n->down[level - 1])
                continue;
            level--;
            add_tree(path, level, tree_place(n, level, climbed, to),
                     climbed[level] + n->up[level] * (port / n->down[level]), IN);
        }
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Torus: dimension after dimension, the shorter way round. Of two that are equally short, SimGrid
 * takes the one forward, but back to the first node of a ring. */

static void find_torus(struct path *path, unsigned from, unsigned to)
{
    const struct duet__network *n = path->routes->network;
    unsigned unit = 1;
    add(path, 0, from, OUT);
    for (unsigned i = 0; i < n->levels; unit *= n->down[i++]) {
        const unsigned length = n->down[i], target = to / unit % length;
        for (unsigned at; (at = from / unit % length) != target;) {
            const unsigned ahead = (target + length - at) % length;
            const bool forward = ahead <= length / 2 && (target || 2 * at != length);
            const unsigned next = (at + (forward ? 1 : length - 1)) % length;
            const unsigned other = from - at * unit + next * unit;
            add(path, 1 + i, forward ? from : other, forward ? OUT : IN);
            from = other;
        }
    }
    add(path, 0, to, IN);
}

/* ------------------------------------------------------------------------------------------- */
/* Dragonfly: minimal routes (Kim et al., ISCA 2008). Levels 1 to 3 are the cables between groups,
 * between chassis of a group, between routers of a chassis. Group g is reached from router g of
 * another group, counted chassis after chassis. SimGrid has the same routes where groups have one
 * chassis; where they have more, its routes jump from chassis to chassis without a cable. */

struct router {
    unsigned group, chassis, place;
};

/* Adds the cable between a and b of `count` that are all joined, of set number `set`. */
static void add_mesh(struct path *path, unsigned level, size_t set, unsigned count, unsigned a,
                     unsigned b)
{
    const unsigned low = a < b ? a : b, high = a < b ? b : a;
    add(path, level, (set * count + low) * count + high, a < b ? OUT : IN);
}

static void move_place(struct path *path, struct router *at, unsigned place)
{
    const unsigned *down = path->routes->network->down;
    if (at->place != place)
        add_mesh(path, 3, (size_t)at->group * down[1] + at->chassis, down[2], at->place, place);
    at->place = place;
}

static void move_chassis(struct path *path, struct router *at, unsigned chassis)
{
    const unsigned *down = path->routes->network->down;
    if (at->chassis != chassis)
        add_mesh(path, 2, (size_t)at->group * down[2] + at->place, down[1], at->chassis, chassis);
    at->chassis = chassis;
}

static void find_dragonfly(struct path *path, unsigned from, unsigned to)
{
    const unsigned *down = path->routes->network->down;
    const unsigned start = from / down[3], end = to / down[3];
    struct router at = {start / down[2] / down[1], start / down[2] % down[1], start % down[2]};
    const struct router goal = {end / down[2] / down[1], end / down[2] % down[1], end % down[2]};
    add(path, 0, from, OUT);
    if (at.group != goal.group) {
        move_place(path, &at, goal.group % down[2]);
        move_chassis(path, &at, goal.group / down[2]);
        add_mesh(path, 1, 0, down[0], at.group, goal.group);
        at = (struct router){goal.group, at.group / down[2], at.group % down[2]};
    }
    move_place(path, &at, goal.place);
    move_chassis(path, &at, goal.chassis);
    add(path, 0, to, IN);
}

/* ------------------------------------------------------------------------------------------- */
/* Any network                                                                                  */

static void find_switch(struct path *path, unsigned from, unsigned to)
{
    add(path, 0, from, OUT);
    add(path, 0, to, IN);
}

/* Returns the number of cables of a level. Level 0 has the cards, but in a fat tree. */
static size_t cables_of(const struct duet__routes *routes, unsigned level)
{
    const struct duet__network *n = routes->network;
    const size_t routers = (size_t)n->down[0] * n->down[1] * n->down[2];
    switch (n->kind) {
    case DUET__NETWORK_FAT_TREE:
        return level < n->levels ? tree_width(n, level) * n->up[level] * n->cables[level] : 0;
    case DUET__NETWORK_TORUS:
        return level == 0 || level <= n->levels ? product(n->down, n->levels) : 0;
    case DUET__NETWORK_DRAGONFLY:
        return level == 0   ? routers * n->down[3]
               : level == 1 ? (size_t)n->down[0] * n->down[0]
               : level < 4  ? routers * n->down[level - 1]
                            : 0;
    default:
        return level == 0 ? routes->nodes : 0;
    }
}

/* Returns the most links that a route has. */
static unsigned longest_of(const struct duet__network *n)
{
    unsigned links = 2;
    switch (n->kind) {
    case DUET__NETWORK_FAT_TREE:
        return 2 * n->levels;
    case DUET__NETWORK_TORUS:
        for (unsigned i = 0; i < n->levels; i++)
            links += n->down[i] / 2;
        return links;
    case DUET__NETWORK_DRAGONFLY:
        return 7;
    default:
        return links;
    }
}

void duet__routes_init(struct duet__routes *routes, const struct duet__network *network,
                       unsigned nodes)
{
    *routes = (struct duet__routes){
        .network = network,
        .nodes = nodes,
        .longest = longest_of(network),
    };
    for (unsigned level = 0; level <= DUET__NETWORK_LEVELS; level++) {
        routes->first[level] = routes->link_count;
        routes->link_count += 2 * cables_of(routes, level);
    }
}

double duet__routes_bandwidth(const struct duet__routes *routes, size_t number)
{
    const struct duet__network *n = routes->network;
    unsigned level = 0;
    if (n->kind != DUET__NETWORK_DRAGONFLY)
        return n->bandwidth_Bps;
    while (level < 3 && number >= routes->first[level + 1])
        level++;
    return level ? n->bandwidth_Bps * n->cables[level - 1] : n->bandwidth_Bps;
}

unsigned duet__routes_find(const struct duet__routes *routes, unsigned from, unsigned to,
                           unsigned *links)
{
    static void (*const found[])(struct path *, unsigned, unsigned) = {find_switch, find_tree,
                                                                       find_dragonfly, find_torus};
    struct path path = {.routes = routes};
    path.links = links;
    found[routes->network->kind](&path, from, to);
    return path.count;
}
