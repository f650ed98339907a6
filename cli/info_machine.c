/* SPDX-License-Identifier: Apache-2.0 */
/* `duet info` for people: the machine that a run is made on. Workers, memories, links, routes. */
#include <string.h>

#include "cli/info.h"
#include "report/table.h"
#include "report/report.h"

enum {
    FEW = 4,   /* GPUs, up to which every pair has a line of its own */
    MANY = 16, /* beyond which a table of all pairs is too wide */
    AT = 16,   /* column of texts */
};

static void add_gigabytes(struct duet__table *table, double bandwidth_Bps)
{
    duet__table_print(table, "%.3g", bandwidth_Bps / 1e9);
}

static void put_table(struct duet__table *table, FILE *stream)
{
    putc('\n', stream);
    duet__table_put(table, stream, 2);
}

/* ------------------------------------------------------------------------------------------- */
/* Workers                                                                                      */

/* CPU workers that differ in nothing but their number have one line. */
static bool alike(const struct duet_worker *a, const struct duet_worker *b)
{
    return a->node == DUET_HOST && b->node == DUET_HOST && a->arch == b->arch &&
           a->socket == b->socket && a->window == b->window;
}

/* "0-3,7", or "any" where they are not bound. */
static char *ranges(const int *numbers, unsigned count)
{
    GString *text = g_string_new(NULL);

    for (unsigned i = 0; i < count; i++) {
        unsigned last = i;

        if (numbers[i] < 0)
            continue;
        while (last + 1 < count && numbers[last + 1] == numbers[last] + 1)
            last++;
        g_string_append_printf(text, "%s%d", text->len ? "," : "", numbers[i]);
        if (last > i)
            g_string_append_printf(text, "-%d", numbers[last]);
        i = last;
    }
    if (!text->len)
        g_string_append(text, "any");
    return g_string_free(text, FALSE);
}

static void add_workers(const struct duet__info *info, struct duet__table *table, unsigned first,
                        unsigned count)
{
    const struct duet_machine *machine = &info->machine;
    const struct duet_worker *worker = &machine->workers[first];

    if (count > 1)
        duet__table_print(table, "%s ... %s", worker->name,
                          machine->workers[first + count - 1].name);
    else
        duet__table_say(table, worker->name);
    duet__table_say(table, machine->archs[worker->arch].name);
    duet__table_say(table, machine->nodes[worker->node].name);
    duet__table_print(table, "%u", worker->socket);
    duet__table_add(table, ranges(info->processors + first, count));
    if (worker->window_short > worker->window)
        duet__table_print(table, "%u (short tasks: %u)", worker->window, worker->window_short);
    else
        duet__table_print(table, "%u", worker->window);
}

static void put_workers(const struct duet__info *info, FILE *stream)
{
    const struct duet_machine *machine = &info->machine;
    struct duet__table table;

    duet__table_init(&table, "lllrll");
    duet__table_row(&table, "worker", "architecture", "memory", "socket", "bound to", "window",
                    NULL);
    for (unsigned w = 0, next; w < machine->worker_count; w = next) {
        for (next = w + 1; next < machine->worker_count; next++)
            if (!alike(&machine->workers[w], &machine->workers[next]))
                break;
        add_workers(info, &table, w, next - w);
    }
    duet__table_put(&table, stream, 2);
}

/* ------------------------------------------------------------------------------------------- */
/* Memories                                                                                     */

static void put_nodes(const struct duet_machine *machine, FILE *stream)
{
    struct duet__table table;

    duet__table_init(&table, "lr");
    duet__table_row(&table, "memory", "for data", NULL);
    for (unsigned n = 0; n < machine->node_count; n++) {
        uint64_t bytes = machine->nodes[n].capacity_bytes;

        duet__table_say(&table, machine->nodes[n].name);
        duet__table_add(&table, bytes ? duet__size_text(bytes) : g_strdup("all there is"));
    }
    put_table(&table, stream);
}

/* ------------------------------------------------------------------------------------------- */
/* Links                                                                                        */

static bool crosses(const struct duet_route *route, unsigned link)
{
    for (unsigned i = 0; i < route->count; i++)
        if (route->links[i] == link)
            return true;
    return false;
}

/* "to gpu0 gpu1": the GPUs whose copies from the host (or to it) go over a link; NULL: none. */
static char *carried(const struct duet_machine *machine, unsigned link, bool out)
{
    GString *list = g_string_new(out ? "to" : "from");
    size_t empty = list->len;

    for (unsigned n = 1; n < machine->node_count; n++)
        if (crosses(duet_machine_route(machine, out ? DUET_HOST : n, out ? n : DUET_HOST), link))
            g_string_append_printf(list, " %s", machine->nodes[n].name);
    return g_string_free(list, list->len == empty);
}

/* What goes over a link: "to gpu0 gpu1", "from gpu0", "between GPUs". */
static char *carries(const struct duet_machine *machine, unsigned link)
{
    char *text = carried(machine, link, true);

    if (!text)
        text = carried(machine, link, false);
    return text ? text : g_strdup("between GPUs");
}

static void put_links(const struct duet_machine *machine, FILE *stream)
{
    struct duet__table table;

    duet__table_init(&table, "lrll");
    duet__table_row(&table, "link", "GB/s", "", "copies", NULL);
    for (unsigned l = 0; l < machine->link_count; l++) {
        const struct duet_link *link = &machine->links[l];

        duet__table_say(&table, link->name);
        add_gigabytes(&table, link->bandwidth_Bps);
        duet__table_say(&table, link->per_copy ? "for each" : "shared");
        duet__table_add(&table, carries(machine, l));
    }
    put_table(&table, stream);
}

/* ------------------------------------------------------------------------------------------- */
/* Routes                                                                                       */

static void add_route(const struct duet_machine *machine, struct duet__table *table,
                      unsigned source, unsigned destination)
{
    const struct duet_route *route = duet_machine_route(machine, source, destination);
    GString *links = g_string_new(NULL);

    duet__table_print(table, "%s to %s", machine->nodes[source].name,
                      machine->nodes[destination].name);
    if (!route->direct) {
        duet__table_row(table, "", "", "through the host's memory", NULL);
    } else {
        for (unsigned i = 0; i < route->count; i++)
            g_string_append_printf(links, "%s%s", i ? ", " : "",
                                   machine->links[route->links[i]].name);
        add_gigabytes(table, route->bandwidth_Bps);
        duet__table_print(table, "%.3g", route->latency_s * 1e6);
        duet__table_say(table, links->str);
    }
    g_string_free(links, TRUE);
}

static void put_routes(const struct duet_machine *machine, FILE *stream)
{
    unsigned nodes = machine->node_count;
    struct duet__table table;

    duet__table_init(&table, "lrrl");
    duet__table_row(&table, "route", "GB/s", "us", "over", NULL);
    for (unsigned s = 0; s < nodes; s++)
        for (unsigned d = 0; d < nodes; d++)
            if (s != d && (s == DUET_HOST || d == DUET_HOST || nodes <= 1 + FEW))
                add_route(machine, &table, s, d);
    put_table(&table, stream);
}

/* With several GPUs, the bandwidths between them. */
static void put_matrix(const struct duet_machine *machine, FILE *stream)
{
    char *sides = g_strnfill(machine->node_count, 'r');
    struct duet__table table;

    sides[0] = 'l';
    duet__table_init(&table, sides);
    duet__table_say(&table, "GB/s from, to");
    for (unsigned d = 1; d < machine->node_count; d++)
        duet__table_say(&table, machine->nodes[d].name);
    for (unsigned s = 1; s < machine->node_count; s++) {
        duet__table_say(&table, machine->nodes[s].name);
        for (unsigned d = 1; d < machine->node_count; d++) {
            const struct duet_route *route = duet_machine_route(machine, s, d);

            if (route->direct)
                add_gigabytes(&table, route->bandwidth_Bps);
            else
                duet__table_say(&table, s == d ? "-" : "host");
        }
    }
    put_table(&table, stream);
    g_free(sides);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* How many pairs of GPUs have direct routes of each bandwidth, and how many none. */
static void put_summary(const struct duet_machine *machine, FILE *stream)
{
    GPtrArray *kinds = g_ptr_array_new_with_free_func(g_free);
    struct duet__table table;

    for (unsigned s = 1; s < machine->node_count; s++)
        for (unsigned d = 1; d < machine->node_count; d++) {
            const struct duet_route *route = duet_machine_route(machine, s, d);

            if (s != d)
                g_ptr_array_add(kinds, route->direct ? g_strdup_printf("%.3g GB/s",
                                                                       route->bandwidth_Bps / 1e9)
                                                     : g_strdup("through the host's memory"));
        }
    g_ptr_array_sort(kinds, by_name);
    duet__table_init(&table, "lr");
    duet__table_row(&table, "GPU to GPU", "pairs", NULL);
    for (unsigned i = 0, next; i < kinds->len; i = next) {
        for (next = i + 1; next < kinds->len; next++)
            if (strcmp(kinds->pdata[i], kinds->pdata[next]) != 0)
                break;
        duet__table_say(&table, kinds->pdata[i]);
        duet__table_print(&table, "%u", next - i);
    }
    put_table(&table, stream);
    g_ptr_array_free(kinds, TRUE);
}

/* What of the options is no part of the machine. */
static void put_conditions(const struct duet_config *config, FILE *stream)
{
    if (config->scale > 0)
        duet__put_field(stream, "times", AT,
                        "%g times those of %s (--scale); the table's are the platform's",
                        config->scale, config->emulate);
    if (config->gpu_streams > 1)
        duet__put_field(stream, "kernels", AT, "up to %u at once on a GPU (--gpu-streams)",
                        config->gpu_streams);
    if (config->lose)
        duet__put_field(stream, "to be lost", AT, "%s", config->lose);
    if (config->scale > 0 || config->gpu_streams > 1 || config->lose)
        putc('\n', stream);
}

/* ------------------------------------------------------------------------------------------- */

void duet__facts_put_machine(const struct duet__facts *facts, FILE *stream)
{
    const struct duet_machine *machine = &facts->info.machine;
    char *resources;

    if (facts->info.error) {
        fputs("\nno machine for a run\n", stream);
        duet__put_field(stream, "", 2, "%s", facts->info.why.text);
        return;
    }
    resources = duet_report_resources(machine);
    fprintf(stream, "\nmachine of a run%s%s: %s\n\n",
            facts->config->emulate ? " with --emulate " : "",
            facts->config->emulate ? facts->config->emulate : "", resources);
    g_free(resources);
    put_conditions(facts->config, stream);
    put_workers(&facts->info, stream);
    put_nodes(machine, stream);
    if (machine->node_count > 1) {
        put_links(machine, stream);
        put_routes(machine, stream);
        if (machine->node_count > 1 + MANY)
            put_summary(machine, stream);
        else if (machine->node_count > 1 + FEW)
            put_matrix(machine, stream);
    }
}
