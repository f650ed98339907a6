/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a machine description, and the check of everything that machine.h promises about one.
 */
#include <duet/machine.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

int duet_machine_init(struct duet_machine *machine, unsigned arch_count, unsigned node_count,
                      unsigned worker_count, unsigned link_count)
{
    memset(machine, 0, sizeof(*machine));
    if (arch_count == 0 || node_count == 0 || worker_count == 0 || link_count > UINT16_MAX + 1U)
        return DUET_EINVAL;
    if ((size_t)node_count > SIZE_MAX / sizeof(struct duet_route) / node_count)
        return DUET_ENOMEM;
    machine->archs = calloc(arch_count, sizeof(*machine->archs));
    machine->nodes = calloc(node_count, sizeof(*machine->nodes));
    machine->workers = calloc(worker_count, sizeof(*machine->workers));
    machine->links = calloc(link_count > 0 ? link_count : 1, sizeof(*machine->links));
    machine->routes = calloc((size_t)node_count * node_count, sizeof(*machine->routes));
    if (machine->archs == NULL || machine->nodes == NULL || machine->workers == NULL ||
        machine->links == NULL || machine->routes == NULL) {
        duet_machine_fini(machine);
        return DUET_ENOMEM;
    }
    machine->arch_count = arch_count;
    machine->node_count = node_count;
    machine->worker_count = worker_count;
    machine->link_count = link_count;
    return DUET_OK;
}

int duet_machine_copy(struct duet_machine *to, const struct duet_machine *from)
{
    int error = duet_machine_init(to, from->arch_count, from->node_count, from->worker_count,
                                  from->link_count);
    if (error)
        return error;
    memcpy(to->name, from->name, sizeof(to->name));
    memcpy(to->archs, from->archs, from->arch_count * sizeof(*to->archs));
    memcpy(to->nodes, from->nodes, from->node_count * sizeof(*to->nodes));
    memcpy(to->workers, from->workers, from->worker_count * sizeof(*to->workers));
    if (from->link_count > 0)
        memcpy(to->links, from->links, from->link_count * sizeof(*to->links));
    memcpy(to->routes, from->routes,
           (size_t)from->node_count * from->node_count * sizeof(*to->routes));
    to->costs = from->costs;
    to->sharing = from->sharing;
    to->cores = from->cores;
    to->first_waits = from->first_waits;
    return DUET_OK;
}

void duet_machine_fini(struct duet_machine *machine)
{
    free(machine->archs);
    free(machine->nodes);
    free(machine->workers);
    free(machine->links);
    free(machine->routes);
    memset(machine, 0, sizeof(*machine));
}

/* True for a positive normal number: others have lost digits, and not all programs read them. */
static bool positive(double value)
{
    return isnormal(value) && value > 0;
}

static bool not_negative(double value)
{
    return isfinite(value) && value >= 0;
}

static bool ended(const char name[DUET_NAME_MAX])
{
    return memchr(name, '\0', DUET_NAME_MAX) != NULL;
}

static int by_name(const void *a, const void *b)
{
    const char *const *left = a;
    const char *const *right = b;
    return strcmp(*left, *right);
}

/*
 * Checks `count` names that lie `stride` bytes apart: terminated, not empty, all different. They
 * are sorted rather than compared pairwise, since a large machine has thousands of links.
 */
static int check_names(const char *what, const char *first, size_t stride, unsigned count,
                       struct duet_message *message)
{
    const char **names = malloc((count > 0 ? count : 1) * sizeof(*names));
    int error = DUET_OK;
    if (names == NULL)
        return duet_fail(message, DUET_ENOMEM, "machine: out of memory checking names");
    for (unsigned i = 0; i < count && !error; i++) {
        names[i] = first + i * stride;
        if (!ended(names[i]) || names[i][0] == '\0')
            error = duet_fail(message, DUET_EINVAL, "%s %u: the name must have 1 to %d bytes", what,
                              i, DUET_NAME_MAX - 1);
    }
    if (!error)
        qsort(names, count, sizeof(*names), by_name);
    for (unsigned i = 1; i < count && !error; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            error = duet_fail(message, DUET_EINVAL, "two %ss are named %s", what, names[i]);
    free(names);
    return error;
}

static int check_all_names(const struct duet_machine *m, struct duet_message *message)
{
    int error;
    if (!ended(m->name))
        return duet_fail(message, DUET_EINVAL, "machine: the name must have at most %d bytes",
                         DUET_NAME_MAX - 1);
    error =
        check_names("architecture", m->archs[0].name, sizeof(m->archs[0]), m->arch_count, message);
    if (!error)
        error = check_names("node", m->nodes[0].name, sizeof(m->nodes[0]), m->node_count, message);
    if (!error)
        error = check_names("worker", m->workers[0].name, sizeof(m->workers[0]), m->worker_count,
                            message);
    if (!error && m->link_count > 0)
        error = check_names("link", m->links[0].name, sizeof(m->links[0]), m->link_count, message);
    for (unsigned i = 0; i < m->arch_count && !error; i++)
        if (!ended(m->archs[i].backend) || m->archs[i].backend[0] == '\0')
            error = duet_fail(message, DUET_EINVAL,
                              "architecture %s: the backend must have 1 to %d bytes",
                              m->archs[i].name, DUET_NAME_MAX - 1);
    return error;
}

static int check_nodes(const struct duet_machine *m, struct duet_message *message)
{
    if (m->nodes[DUET_HOST].capacity_bytes != 0)
        return duet_fail(message, DUET_EINVAL,
                         "node %s: node 0 is the host's memory and has no slab (capacity 0)",
                         m->nodes[DUET_HOST].name);
    for (unsigned i = 1; i < m->node_count; i++)
        if (m->nodes[i].capacity_bytes == 0)
            return duet_fail(message, DUET_EINVAL, "node %s: a device needs a capacity",
                             m->nodes[i].name);
    return DUET_OK;
}

static int check_workers(const struct duet_machine *m, struct duet_message *message)
{
    bool devices = false;
    for (unsigned i = 0; i < m->worker_count; i++) {
        const struct duet_worker *w = &m->workers[i];
        if (w->arch >= m->arch_count)
            return duet_fail(message, DUET_EINVAL, "worker %s: no architecture %u", w->name,
                             w->arch);
        if (w->node >= m->node_count)
            return duet_fail(message, DUET_EINVAL, "worker %s: no node %u", w->name, w->node);
        if (w->window == 0)
            return duet_fail(message, DUET_EINVAL, "worker %s: the window must be at least 1",
                             w->name);
        if (w->window_short > 0 && w->window_short < w->window)
            return duet_fail(message, DUET_EINVAL,
                             "worker %s: the window of short tasks must be 0 (as the window) or at "
                             "least the window, %u, not %u",
                             w->name, w->window, w->window_short);
        if (duet_worker_slots(w) > DUET_WINDOW_MAX)
            return duet_fail(message, DUET_EINVAL,
                             "worker %s: a window of %u, at most %d is possible", w->name,
                             duet_worker_slots(w), DUET_WINDOW_MAX);
        if (devices && w->node == DUET_HOST)
            return duet_fail(message, DUET_EINVAL, "worker %s: CPU workers come before GPU workers",
                             w->name);
        devices = w->node != DUET_HOST;
    }
    return DUET_OK;
}

static int check_route(const struct duet_machine *m, unsigned source, unsigned destination,
                       struct duet_message *message)
{
    const struct duet_route *r = duet_machine_route(m, source, destination);
    const char *from = m->nodes[source].name;
    const char *to = m->nodes[destination].name;
    double smallest = INFINITY;
    if (!r->direct) {
        if (source != destination && (source == DUET_HOST || destination == DUET_HOST))
            return duet_fail(message, DUET_EINVAL,
                             "route %s to %s: every node needs a direct route from and to the host",
                             from, to);
        return DUET_OK;
    }
    if (r->count == 0 || r->count > DUET_ROUTE_LINKS)
        return duet_fail(message, DUET_EINVAL, "route %s to %s: crosses %u links, must be 1 to %d",
                         from, to, r->count, DUET_ROUTE_LINKS);
    for (unsigned i = 0; i < r->count; i++) {
        if (r->links[i] >= m->link_count)
            return duet_fail(message, DUET_EINVAL, "route %s to %s: no link %u", from, to,
                             r->links[i]);
        smallest = fmin(smallest, m->links[r->links[i]].bandwidth_Bps);
    }
    if (!not_negative(r->latency_s))
        return duet_fail(message, DUET_EINVAL,
                         "route %s to %s: the latency must be finite and not negative", from, to);
    if (!(fabs(r->bandwidth_Bps - smallest) <= 1e-12 * smallest))
        return duet_fail(message, DUET_EINVAL,
                         "route %s to %s: bandwidth %g, but its narrowest link has %g", from, to,
                         r->bandwidth_Bps, smallest);
    return DUET_OK;
}

static int check_costs(const struct duet_costs *c, struct duet_message *message)
{
    const struct {
        const char *name;
        double value;
    } costs[] = {
        {"submit_s", c->submit_s},
        {"push_s", c->push_s},
        {"pop_s", c->pop_s},
        {"steal_s", c->steal_s},
        {"kernel_launch_s", c->kernel_launch_s},
        {"copy_launch_s", c->copy_launch_s},
        {"event_s", c->event_s},
        {"wake_s", c->wake_s},
        {"spin_s", c->spin_s},
        {"foreign_s", c->foreign_s},
    };
    for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++)
        if (!not_negative(costs[i].value))
            return duet_fail(message, DUET_EINVAL, "cost %s: must be finite and not negative",
                             costs[i].name);
    return DUET_OK;
}

int duet_machine_check(const struct duet_machine *machine, struct duet_message *message)
{
    int error;
    if (machine->arch_count == 0 || machine->node_count == 0 || machine->worker_count == 0 ||
        machine->archs == NULL || machine->nodes == NULL || machine->workers == NULL ||
        machine->routes == NULL || (machine->link_count > 0 && machine->links == NULL))
        return duet_fail(message, DUET_EINVAL,
                         "machine: needs at least one architecture, node and worker");
    error = check_all_names(machine, message);
    if (!error)
        error = check_nodes(machine, message);
    if (!error)
        error = check_workers(machine, message);
    if (!error)
        error = check_costs(&machine->costs, message);
    if (!error && !not_negative(machine->sharing.bandwidth_Bps))
        error = duet_fail(message, DUET_EINVAL,
                          "sharing: the bandwidth must be finite and not negative");
    for (unsigned i = 0; i < machine->link_count && !error; i++)
        if (!positive(machine->links[i].bandwidth_Bps))
            error = duet_fail(message, DUET_EINVAL,
                              "link %s: the bandwidth must be finite and positive",
                              machine->links[i].name);
    for (unsigned i = 0; i < machine->node_count; i++)
        for (unsigned j = 0; j < machine->node_count && !error; j++)
            error = check_route(machine, i, j, message);
    return error;
}
