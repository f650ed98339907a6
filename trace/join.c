/* SPDX-License-Identifier: Apache-2.0 */
/* The machines of several nodes as one. */
#include <string.h>

#include "trace/merge.h"

/* "n3.gpu0"; of a name that is too long the end, which has its number. */
static void name_of(char out[DUET_NAME_MAX], unsigned node, const char *name)
{
    const int length = snprintf(out, DUET_NAME_MAX, "n%u.", node);
    const size_t room = (size_t)(DUET_NAME_MAX - 1 - length), own = strlen(name);

    (void)g_strlcpy(out + length, own > room ? name + own - room : name, room + 1);
}

static bool same_arch(const struct duet_arch *a, const struct duet_arch *b)
{
    return !strcmp(a->name, b->name) && !strcmp(a->backend, b->backend);
}

unsigned duet__arch_find(const struct duet_machine *machine, const struct duet_arch *arch)
{
    unsigned number = 0;

    while (number < machine->arch_count && !same_arch(&machine->archs[number], arch))
        number++;
    return number;
}

void duet__place_move(struct duet__place *place, const struct duet_machine *machine)
{
    unsigned sockets = 0;

    for (unsigned i = 0; i < machine->worker_count; i++)
        sockets = MAX(sockets, machine->workers[i].socket + 1);
    place->node++;
    place->memory += machine->node_count;
    place->worker += machine->worker_count;
    place->link += machine->link_count + 2; /* two more: to and from the network */
    place->socket += sockets;
}

/* The links are there before the routes. */
static void join_routes(struct duet_machine *out, const struct duet_machine *from,
                        const struct duet__place *place)
{
    for (unsigned i = 0; i < from->node_count; i++)
        for (unsigned k = 0; k < from->node_count; k++) {
            struct duet_route *route =
                &out->routes[(size_t)(place->memory + i) * out->node_count + place->memory + k];

            *route = *duet_machine_route(from, i, k);
            for (unsigned link = 0; link < route->count; link++)
                route->links[link] = (uint16_t)(route->links[link] + place->link);
        }
}

static void join_one(struct duet_machine *out, const struct duet_machine *from,
                     const struct duet__place *place, const struct duet__wires *wires)
{
    struct duet_link *network = &out->links[place->link + from->link_count];

    for (unsigned i = 0; i < from->arch_count; i++) {
        const unsigned number = duet__arch_find(out, &from->archs[i]);

        out->archs[number] = from->archs[i];
        out->arch_count = MAX(out->arch_count, number + 1);
    }
    for (unsigned i = 0; i < from->node_count; i++) {
        out->nodes[place->memory + i] = from->nodes[i];
        name_of(out->nodes[place->memory + i].name, place->node,
                i == DUET_HOST ? "host" : from->nodes[i].name);
    }
    for (unsigned i = 0; i < from->worker_count; i++) {
        struct duet_worker *worker = &out->workers[place->worker + i];

        *worker = from->workers[i];
        name_of(worker->name, place->node, from->workers[i].name);
        worker->arch = duet__arch_find(out, &from->archs[worker->arch]);
        worker->node += place->memory;
        worker->socket += place->socket;
    }
    for (unsigned i = 0; i < from->link_count; i++) {
        out->links[place->link + i] = from->links[i];
        name_of(out->links[place->link + i].name, place->node, from->links[i].name);
    }
    name_of(network[0].name, place->node, "to-network");
    name_of(network[1].name, place->node, "from-network");
    network[0].bandwidth_Bps = network[1].bandwidth_Bps = wires->bandwidth_Bps;
    out->cores += from->cores;
    join_routes(out, from, place);
}

/* Messages go from host to host. */
static void join_hosts(struct duet_machine *out, const struct duet_machine *const *machines,
                       unsigned count, const struct duet__wires *wires)
{
    struct duet__place from = {0};

    for (unsigned i = 0; i < count; i++) {
        struct duet__place to = {0};

        for (unsigned k = 0; k < count; k++) {
            struct duet_route *route =
                &out->routes[(size_t)from.memory * out->node_count + to.memory];

            if (i != k)
                *route =
                    (struct duet_route){.direct = true,
                                        .count = 2,
                                        .links = {(uint16_t)(from.link + machines[i]->link_count),
                                                  (uint16_t)(to.link + machines[k]->link_count +
                                                             1)},
                                        .latency_s = wires->latency_s,
                                        .bandwidth_Bps = wires->bandwidth_Bps};
            duet__place_move(&to, machines[k]);
        }
        duet__place_move(&from, machines[i]);
    }
}

int duet__memories_check(unsigned nodes, unsigned memories, struct duet_message *message)
{
    if (memories <= DUET_MEMORIES_MOST)
        return 0;
    return duet_fail(message, DUET_EINVAL,
                     "%u nodes have %u memories, and records (--trace, --gantt, --html) are of at "
                     "most %d: ask for a table, or for fewer nodes",
                     nodes, memories, DUET_MEMORIES_MOST);
}

int duet__machine_join(struct duet_machine *out, const struct duet_machine *const *machines,
                       unsigned count, const struct duet__wires *wires,
                       struct duet_message *message)
{
    struct duet__place all = {0}, place = {0};
    unsigned archs = 0;
    int error = 0;

    for (unsigned i = 0; i < count; i++) {
        duet__place_move(&all, machines[i]);
        archs += machines[i]->arch_count;
    }
    *out = (struct duet_machine){.name = ""};
    error = duet__memories_check(count, all.memory, message);
    if (!error && all.link > UINT16_MAX)
        error = duet_fail(message, DUET_EINVAL, "%u nodes have %u links, records at most %d", count,
                          all.link, UINT16_MAX);
    if (error)
        return error;
    error = duet_machine_init(out, archs, all.memory, all.worker, all.link);
    if (error)
        return duet_fail(message, error, "%s", duet_strerror(error));
    (void)snprintf(out->name, sizeof out->name, "%.*s_x%u", DUET__NODE_NAME, machines[0]->name,
                   count);
    out->arch_count = 0; /* only different ones are added */
    out->costs = machines[0]->costs;
    out->sharing = machines[0]->sharing;
    for (unsigned i = 0; i < count; i++) {
        join_one(out, machines[i], &place, wires);
        duet__place_move(&place, machines[i]);
    }
    join_hosts(out, machines, count, wires);
    return 0;
}
