/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a machine as a SimGrid platform. A stock SimGrid (network model CM02) sees each copy
 * alone take latency + bytes/bandwidth; properties hold what SimGrid has no notion of.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "platforms/description.h"
#include "platforms/json.h"
#include "platforms/tables.h"
#include "platforms/xml.h"

/* Wider than any link, so that a link which only adds latency never limits a copy. */
static const char *const WIDE = "1e18";

struct writer {
    const struct duet_machine *machine;
    GString *text;
    GHashTable *latencies; /* double -> index of the link that has it */
};

/* The first name that is not plain, of structs of this size that begin with it; `bad` where set. */
static const char *find_bad(const char *bad, const void *structs, unsigned count, size_t size)
{
    const char *name = structs;

    for (unsigned i = 0; i < count && bad == NULL; i++, name += size)
        if (!duet__good_name(name, DUET_NAME_MAX))
            bad = name;
    return bad;
}

/* Every name goes into an attribute as it is, so each must be of the plain kind. */
static int check_names(const struct duet_machine *m, struct duet_message *message)
{
    const char *bad = find_bad(NULL, m->name, 1, 0);

    bad = find_bad(bad, m->archs, m->arch_count, sizeof(*m->archs));
    bad = find_bad(bad, m->archs->backend, m->arch_count, sizeof(*m->archs));
    bad = find_bad(bad, m->nodes, m->node_count, sizeof(*m->nodes));
    bad = find_bad(bad, m->workers, m->worker_count, sizeof(*m->workers));
    bad = find_bad(bad, m->links, m->link_count, sizeof(*m->links));
    if (bad != NULL)
        return duet_fail(message, DUET_EINVAL,
                         "\"%s\" cannot be written: names have letters, digits or _-.:+", bad);
    return DUET_OK;
}

static void write_props(struct writer *w, const char *calibration)
{
    const struct duet_machine *m = w->machine;
    char name[DUET_NAME_MAX];
    char value[3 * DUET_NAME_MAX + 32];
    const struct duet_platform rest = {.cores = m->cores, .first_waits = m->first_waits};

    duet__prop_write(w->text, "    ", "duet.schema", "1");
    if (calibration != NULL)
        duet__prop_write(w->text, "    ", "duet.calibration", calibration);
    duet__props_write(w->text, "duet.cost", duet__cost_fields, &m->costs, true);
    duet__props_write(w->text, "duet.sharing", duet__sharing_fields, &m->sharing, false);
    duet__props_write(w->text, "duet", duet__root_fields, &rest, false);
    for (unsigned i = 0; i < m->arch_count; i++) {
        g_snprintf(name, sizeof(name), "duet.arch.%u", i);
        g_snprintf(value, sizeof(value), "%s %s", m->archs[i].name, m->archs[i].backend);
        duet__prop_write(w->text, "    ", name, value);
    }
    for (unsigned i = 0; i < m->worker_count; i++) {
        const struct duet_worker *worker = &m->workers[i];

        g_snprintf(name, sizeof(name), "duet.worker.%u", i);
        g_snprintf(value, sizeof(value), "%s %s %s %u %u", worker->name,
                   m->archs[worker->arch].name, m->nodes[worker->node].name, worker->socket,
                   worker->window);
        if (worker->window_short > 0)
            g_snprintf(value + strlen(value), sizeof(value) - strlen(value), " %u",
                       worker->window_short);
        duet__prop_write(w->text, "    ", name, value);
    }
}

/* Flops a second of an architecture at its best: of dgemm where it is known, else of any kernel. */
static double speed_of(const struct duet_calibration *calibration, const char *arch)
{
    double best = 0;

    for (size_t i = 0; calibration != NULL && i < calibration->count; i++) {
        const struct duet_curve *curve = &calibration->curves[i];

        if (strcmp(curve->arch, arch) != 0)
            continue;
        if (strcmp(curve->kernel, "dgemm") == 0)
            best = 0;
        for (size_t j = 0; j < curve->count; j++)
            best = MAX(best, curve->points[j].work / curve->points[j].mean_s);
        if (strcmp(curve->kernel, "dgemm") == 0)
            break;
    }
    return best > 0 ? best : 1e9;
}

static void write_hosts(struct writer *w, const struct duet_calibration *calibration)
{
    const struct duet_machine *m = w->machine;
    char digits[DUET__DIGITS_MAX];

    for (unsigned i = 0; i < m->node_count; i++) {
        const char *arch = NULL;
        unsigned cores = 0;

        for (unsigned j = 0; j < m->worker_count; j++) {
            if (m->workers[j].node == i) {
                cores++;
                arch = arch != NULL ? arch : m->archs[m->workers[j].arch].name;
            }
        }
        g_string_append_printf(w->text, "    <host id=\"%s\" speed=\"%sf\" core=\"%u\">\n",
                               m->nodes[i].name,
                               duet__digits(arch != NULL ? speed_of(calibration, arch) : 1e9,
                                            digits),
                               MAX(cores, 1));
        duet__prop_write(w->text, "      ", "duet.kind", i == DUET_HOST ? "host" : "device");
        if (i != DUET_HOST) {
            g_snprintf(digits, sizeof(digits), "%" G_GUINT64_FORMAT, m->nodes[i].capacity_bytes);
            duet__prop_write(w->text, "      ", "duet.capacity_bytes", digits);
        }
        g_string_append(w->text, "    </host>\n");
    }
}

static void write_links(struct writer *w)
{
    char digits[DUET__DIGITS_MAX];

    for (unsigned i = 0; i < w->machine->link_count; i++) {
        const struct duet_link *link = &w->machine->links[i];

        g_string_append_printf(
            w->text,
            "    <link id=\"%s\" bandwidth=\"%sBps\" latency=\"0s\" sharing_policy=\"%s\"/>\n",
            link->name, duet__digits(link->bandwidth_Bps, digits),
            link->per_copy ? "FATPIPE" : "SHARED");
    }
}

/* The index of the link that carries a latency, one for all routes that have the same. */
static unsigned latency_link(struct writer *w, double latency_s)
{
    unsigned index = g_hash_table_size(w->latencies);
    char digits[DUET__DIGITS_MAX];
    gpointer found = NULL;

    if (g_hash_table_lookup_extended(w->latencies, &latency_s, NULL, &found))
        return GPOINTER_TO_UINT(found);
    g_hash_table_insert(w->latencies, g_memdup2(&latency_s, sizeof(latency_s)),
                        GUINT_TO_POINTER(index));
    g_string_append_printf(w->text,
                           "    <link id=\"latency~%u\" bandwidth=\"%sBps\" latency=\"%ss\" "
                           "sharing_policy=\"FATPIPE\">\n",
                           index, WIDE, duet__digits(latency_s, digits));
    duet__prop_write(w->text, "      ", "duet.kind", "latency");
    g_string_append(w->text, "    </link>\n");
    return index;
}

/* Routes follow the links that carry their latencies. */
static void write_routes(struct writer *w)
{
    const struct duet_machine *m = w->machine;
    GString *routes = g_string_new(NULL);

    for (unsigned i = 0; i < m->node_count; i++) {
        for (unsigned j = 0; j < m->node_count; j++) {
            const struct duet_route *route = duet_machine_route(m, i, j);

            if (i == j || !route->direct)
                continue;
            g_string_append_printf(routes,
                                   "    <route src=\"%s\" dst=\"%s\" symmetrical=\"NO\">"
                                   "<link_ctn id=\"latency~%u\"/>",
                                   m->nodes[i].name, m->nodes[j].name,
                                   latency_link(w, route->latency_s));
            for (unsigned k = 0; k < route->count; k++)
                g_string_append_printf(routes, "<link_ctn id=\"%s\"/>",
                                       m->links[route->links[k]].name);
            g_string_append(routes, "</route>\n");
        }
    }
    g_string_append(w->text, routes->str);
    g_string_free(routes, TRUE);
}

static GString *format_xml(const struct duet_machine *machine,
                           const struct duet_calibration *calibration, const char *times)
{
    struct writer w = {.machine = machine,
                       .text = g_string_new(NULL),
                       .latencies =
                           g_hash_table_new_full(g_double_hash, g_double_equal, g_free, NULL)};

    g_string_append_printf(
        w.text,
        "<?xml version='1.0'?>\n"
        "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
        "<!-- A machine written by duet. Hosts are memories; load with\n"
        "     network/model:CM02 network/TCP-gamma:0 network/crosstraffic:0 -->\n"
        "<platform version=\"4.1\">\n"
        "  <zone id=\"%s\" routing=\"Full\">\n",
        machine->name);
    write_props(&w, times);
    write_hosts(&w, calibration);
    write_links(&w);
    write_routes(&w);
    g_string_append(w.text, "  </zone>\n</platform>\n");
    g_hash_table_unref(w.latencies);
    return w.text;
}

int duet_platform_write_xml(const struct duet_machine *machine,
                            const struct duet_calibration *calibration, const char *path,
                            struct duet_message *message)
{
    bool timed = calibration != NULL && calibration->count > 0;
    char *times_path = NULL, *times_name = NULL, *times = NULL;
    GString *text = NULL;
    int error = duet_machine_check(machine, message);

    if (error == DUET_OK)
        error = check_names(machine, message);
    if (error != DUET_OK)
        return error;
    if (!g_str_has_suffix(path, ".xml"))
        return duet_fail(message, DUET_EINVAL,
                         "%s: the name must end in .xml, so that it can be read again", path);
    if (timed) {
        /* machine.xml.kernels.json: machine.kernels.json may be the times of machine.json */
        times_path = g_strconcat(path, ".kernels.json", NULL);
        times_name = g_path_get_basename(times_path);
        if (!duet__good_name(times_name, NAME_MAX)) {
            error = duet_fail(message, DUET_EINVAL,
                              "%s: the file's name must have letters, digits or _-.:+ only", path);
            goto named;
        }
        /* Times first: a platform that is there always finds its times. */
        times = duet__format_times(calibration);
        error = duet__write_file(times_path, times, strlen(times), message);
    }
    if (error == DUET_OK) {
        text = format_xml(machine, calibration, times_name);
        error = duet__write_file(path, text->str, text->len, message);
        g_string_free(text, TRUE);
    }
named:
    free(times);
    g_free(times_name);
    g_free(times_path);
    return error;
}
