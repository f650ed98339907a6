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
    GArray *ordered;       /* the same, by index */
};

static void prop(GString *text, const char *indent, const char *name, const char *value)
{
    g_string_append_printf(text, "%s<prop id=\"%s\" value=\"%s\"/>\n", indent, name, value);
}

/* Every name goes into an attribute as it is, so each must be of the plain kind. */
static int check_names(const struct duet_machine *m, struct duet_message *message)
{
    const char *bad = !duet__good_name(m->name, sizeof(m->name)) ? m->name : NULL;

    for (unsigned i = 0; i < m->arch_count && bad == NULL; i++)
        if (!duet__good_name(m->archs[i].name, DUET_NAME_MAX) ||
            !duet__good_name(m->archs[i].backend, DUET_NAME_MAX))
            bad = m->archs[i].name;
    for (unsigned i = 0; i < m->node_count && bad == NULL; i++)
        if (!duet__good_name(m->nodes[i].name, DUET_NAME_MAX))
            bad = m->nodes[i].name;
    for (unsigned i = 0; i < m->worker_count && bad == NULL; i++)
        if (!duet__good_name(m->workers[i].name, DUET_NAME_MAX))
            bad = m->workers[i].name;
    for (unsigned i = 0; i < m->link_count && bad == NULL; i++)
        if (!duet__good_name(m->links[i].name, DUET_NAME_MAX))
            bad = m->links[i].name;
    if (bad != NULL)
        return duet_fail(message, DUET_EINVAL,
                         "\"%s\" cannot be written: names have letters, digits or _-.:+", bad);
    return DUET_OK;
}

/* Properties PREFIX.KEY for the members of a struct that are not 0, or have to be there. */
static void write_members(struct writer *w, const char *prefix, const struct duet__field *fields,
                          const void *from, bool needed)
{
    for (; fields->key != NULL; fields++) {
        const void *value = duet__field_at(fields, from);
        char id[2 * DUET_NAME_MAX], text[DUET__DIGITS_MAX] = "";

        if (fields->kind == DUET__NUMBER &&
            (*(const double *)value > 0 || (needed && fields->when == DUET__NEEDED)))
            duet__digits(*(const double *)value, text);
        else if (fields->kind == DUET__INTEGER && *(const uint64_t *)value > 0)
            g_snprintf(text, sizeof(text), "%" G_GUINT64_FORMAT, *(const uint64_t *)value);
        else if (fields->kind == DUET__UNSIGNED && *(const unsigned *)value > 0)
            g_snprintf(text, sizeof(text), "%u", *(const unsigned *)value);
        else if (fields->kind == DUET__BOOLEAN && *(const bool *)value)
            g_strlcpy(text, "true", sizeof(text));
        if (text[0] == '\0')
            continue;
        g_snprintf(id, sizeof(id), "%s.%s", prefix, fields->key);
        prop(w->text, "    ", id, text);
    }
}

static void write_props(struct writer *w, const char *calibration)
{
    const struct duet_machine *m = w->machine;
    char name[DUET_NAME_MAX];
    char value[3 * DUET_NAME_MAX + 32];
    const struct duet_platform rest = {.cores = m->cores, .first_waits = m->first_waits};

    prop(w->text, "    ", "duet.schema", "1");
    if (calibration != NULL)
        prop(w->text, "    ", "duet.calibration", calibration);
    write_members(w, "duet.cost", duet__cost_fields, &m->costs, true);
    write_members(w, "duet.sharing", duet__sharing_fields, &m->sharing, false);
    write_members(w, "duet", duet__root_fields, &rest, false);
    for (unsigned i = 0; i < m->arch_count; i++) {
        g_snprintf(name, sizeof(name), "duet.arch.%u", i);
        g_snprintf(value, sizeof(value), "%s %s", m->archs[i].name, m->archs[i].backend);
        prop(w->text, "    ", name, value);
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
        prop(w->text, "    ", name, value);
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
        prop(w->text, "      ", "duet.kind", i == DUET_HOST ? "host" : "device");
        if (i != DUET_HOST) {
            g_snprintf(digits, sizeof(digits), "%" G_GUINT64_FORMAT, m->nodes[i].capacity_bytes);
            prop(w->text, "      ", "duet.capacity_bytes", digits);
        }
        g_string_append(w->text, "    </host>\n");
    }
}

/* One link for each different latency: routes that have the same share it. */
static void collect_latencies(struct writer *w)
{
    const struct duet_machine *m = w->machine;

    for (size_t i = 0; i < (size_t)m->node_count * m->node_count; i++) {
        const struct duet_route *route = &m->routes[i];
        double *key;

        if (!route->direct || g_hash_table_contains(w->latencies, &route->latency_s))
            continue;
        key = g_new(double, 1);
        *key = route->latency_s;
        g_hash_table_insert(w->latencies, key, GUINT_TO_POINTER(w->ordered->len));
        g_array_append_val(w->ordered, route->latency_s);
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
    for (unsigned i = 0; i < w->ordered->len; i++) {
        g_string_append_printf(w->text,
                               "    <link id=\"latency~%u\" bandwidth=\"%sBps\" latency=\"%ss\" "
                               "sharing_policy=\"FATPIPE\">\n",
                               i, WIDE, duet__digits(g_array_index(w->ordered, double, i), digits));
        prop(w->text, "      ", "duet.kind", "latency");
        g_string_append(w->text, "    </link>\n");
    }
}

static void write_routes(struct writer *w)
{
    const struct duet_machine *m = w->machine;

    for (unsigned i = 0; i < m->node_count; i++) {
        for (unsigned j = 0; j < m->node_count; j++) {
            const struct duet_route *route = duet_machine_route(m, i, j);

            if (i == j || !route->direct)
                continue;
            g_string_append_printf(w->text,
                                   "    <route src=\"%s\" dst=\"%s\" symmetrical=\"NO\">"
                                   "<link_ctn id=\"latency~%u\"/>",
                                   m->nodes[i].name, m->nodes[j].name,
                                   GPOINTER_TO_UINT(
                                       g_hash_table_lookup(w->latencies, &route->latency_s)));
            for (unsigned k = 0; k < route->count; k++)
                g_string_append_printf(w->text, "<link_ctn id=\"%s\"/>",
                                       m->links[route->links[k]].name);
            g_string_append(w->text, "</route>\n");
        }
    }
}

static GString *format_xml(const struct duet_machine *machine,
                           const struct duet_calibration *calibration, const char *times)
{
    struct writer w = {.machine = machine,
                       .text = g_string_new(NULL),
                       .latencies =
                           g_hash_table_new_full(g_double_hash, g_double_equal, g_free, NULL),
                       .ordered = g_array_new(FALSE, FALSE, sizeof(double))};

    g_string_append_printf(
        w.text,
        "<?xml version='1.0'?>\n"
        "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
        "<!-- A machine written by duet. Hosts are memories; load with\n"
        "     network/model:CM02 network/TCP-gamma:0 network/crosstraffic:0 -->\n"
        "<platform version=\"4.1\">\n"
        "  <zone id=\"%s\" routing=\"Full\">\n",
        machine->name);
    collect_latencies(&w);
    write_props(&w, times);
    write_hosts(&w, calibration);
    write_links(&w);
    write_routes(&w);
    g_string_append(w.text, "  </zone>\n</platform>\n");
    g_hash_table_unref(w.latencies);
    g_array_unref(w.ordered);
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
