/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a machine as a SimGrid platform. A stock SimGrid (network model CM02) sees each copy alone
 * take latency + bytes/bandwidth; properties hold what SimGrid has no notion of. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "platforms/internal.h"

/* Bandwidth of links that only add latency: wider than any other, they never limit a copy. */
static const char *const WIDE = "1e18";

struct writer {
    const struct duet_machine *machine;
    GString *text;
    GHashTable *latencies; /* latency (double) -> index of the link that carries it */
};

static void add_text(struct writer *w, const char *format, ...) DUET_PRINTF(2, 3);

/* Adds formatted text, whose arguments are escaped. */
static void add_text(struct writer *w, const char *format, ...)
{
    g_autofree char *part = NULL;
    va_list args;
    va_start(args, format);
    part = g_markup_vprintf_escaped(format, args);
    va_end(args);
    g_string_append(w->text, part);
}

/* Formats the value of a property; empty if it need not be written. */
static void print_value(const struct duet__field *field, const void *value, bool needed,
                        char text[DUET__DIGITS_MAX])
{
    text[0] = '\0';
    if (field->kind == DUET__NUMBER &&
        (*(const double *)value > 0 || (needed && field->when == DUET__NEEDED)))
        duet__digits(*(const double *)value, text);
    else if (field->kind == DUET__INTEGER && *(const uint64_t *)value > 0)
        g_snprintf(text, DUET__DIGITS_MAX, "%" G_GUINT64_FORMAT, *(const uint64_t *)value);
    else if (field->kind == DUET__UNSIGNED && *(const unsigned *)value > 0)
        g_snprintf(text, DUET__DIGITS_MAX, "%u", *(const unsigned *)value);
    else if (field->kind == DUET__BOOLEAN && *(const bool *)value)
        g_strlcpy(text, "true", DUET__DIGITS_MAX);
}

/* Writes properties PREFIX.KEY of the members that are not 0, and of those a file must have if
 * `needed`. */
static void write_members(struct writer *w, const char *prefix, const struct duet__field *fields,
                          const void *from, bool needed)
{
    char value[DUET__DIGITS_MAX];
    for (; fields->key != NULL; fields++) {
        print_value(fields, duet__field_at(fields, from), needed, value);
        if (value[0] != '\0')
            add_text(w, "    <prop id=\"%s.%s\" value=\"%s\"/>\n", prefix, fields->key, value);
    }
}

static void write_props(struct writer *w, const char *calibration)
{
    const struct duet_machine *m = w->machine;
    const struct duet__platform rest = {.cores = m->cores, .first_waits = m->first_waits};
    add_text(w, "    <prop id=\"duet.schema\" value=\"1\"/>\n");
    if (calibration != NULL)
        add_text(w, "    <prop id=\"duet.calibration\" value=\"%s\"/>\n", calibration);
    write_members(w, "duet.cost", duet__cost_fields, &m->costs, true);
    write_members(w, "duet.sharing", duet__sharing_fields, &m->sharing, false);
    write_members(w, "duet", duet__platform_fields, &rest, false);
    for (unsigned i = 0; i < m->arch_count; i++)
        add_text(w, "    <prop id=\"duet.arch.%u\" value=\"%s %s\"/>\n", i, m->archs[i].name,
                 m->archs[i].backend);
    for (unsigned i = 0; i < m->worker_count; i++) {
        const struct duet_worker *worker = &m->workers[i];
        add_text(w, "    <prop id=\"duet.worker.%u\" value=\"%s %s %s %u %u", i, worker->name,
                 m->archs[worker->arch].name, m->nodes[worker->node].name, worker->socket,
                 worker->window);
        if (worker->window_short > 0)
            add_text(w, " %u", worker->window_short);
        add_text(w, "\"/>\n");
    }
}

static void write_hosts(struct writer *w, const struct duet__calibration *calibration)
{
    const struct duet_machine *m = w->machine;
    char digits[DUET__DIGITS_MAX];
    for (unsigned i = 0; i < m->node_count; i++) {
        unsigned cores = 0;
        double speed = 0; /* peak flops a second: of dgemm where it is known, else of any kernel */
        for (unsigned j = m->worker_count; j-- > 0;) {
            const char *arch = m->archs[m->workers[j].arch].name;
            if (m->workers[j].node != i)
                continue;
            cores++;
            speed = duet__best_rate(calibration, "dgemm", arch);
            if (speed == 0)
                speed = duet__best_rate(calibration, NULL, arch);
        }
        add_text(w,
                 "    <host id=\"%s\" speed=\"%sf\" core=\"%u\">\n"
                 "      <prop id=\"duet.kind\" value=\"%s\"/>\n",
                 m->nodes[i].name, duet__digits(speed > 0 ? speed : 1e9, digits), MAX(cores, 1),
                 i == DUET_HOST ? "host" : "device");
        if (i != DUET_HOST)
            add_text(w,
                     "      <prop id=\"duet.capacity_bytes\" value=\"%" G_GUINT64_FORMAT "\"/>\n",
                     m->nodes[i].capacity_bytes);
        add_text(w, "    </host>\n");
    }
}

static void write_links(struct writer *w)
{
    char digits[DUET__DIGITS_MAX];
    for (unsigned i = 0; i < w->machine->link_count; i++) {
        const struct duet_link *link = &w->machine->links[i];
        add_text(w,
                 "    <link id=\"%s\" bandwidth=\"%sBps\" latency=\"0s\" sharing_policy=\"%s\"/>\n",
                 link->name, duet__digits(link->bandwidth_Bps, digits),
                 link->per_copy ? "FATPIPE" : "SHARED");
    }
}

/* Returns the index of the link that carries a latency, one for all routes with that latency. */
static unsigned latency_link(struct writer *w, double latency_s)
{
    unsigned index = g_hash_table_size(w->latencies);
    char digits[DUET__DIGITS_MAX];
    gpointer found = NULL;
    if (g_hash_table_lookup_extended(w->latencies, &latency_s, NULL, &found))
        return GPOINTER_TO_UINT(found);
    g_hash_table_insert(w->latencies, g_memdup2(&latency_s, sizeof(latency_s)),
                        GUINT_TO_POINTER(index));
    add_text(w,
             "    <link id=\"latency~%u\" bandwidth=\"%sBps\" latency=\"%ss\" "
             "sharing_policy=\"FATPIPE\">\n"
             "      <prop id=\"duet.kind\" value=\"latency\"/>\n"
             "    </link>\n",
             index, WIDE, duet__digits(latency_s, digits));
    return index;
}

/* Writes the links that carry latencies, then the routes. */
static void write_routes(struct writer *w)
{
    const struct duet_machine *m = w->machine;
    struct writer routes = {.text = g_string_new(NULL)};
    for (unsigned i = 0; i < m->node_count; i++) {
        for (unsigned j = 0; j < m->node_count; j++) {
            const struct duet_route *route = duet_machine_route(m, i, j);
            if (i == j || !route->direct)
                continue;
            add_text(&routes,
                     "    <route src=\"%s\" dst=\"%s\" symmetrical=\"NO\">"
                     "<link_ctn id=\"latency~%u\"/>",
                     m->nodes[i].name, m->nodes[j].name, latency_link(w, route->latency_s));
            for (unsigned k = 0; k < route->count; k++)
                add_text(&routes, "<link_ctn id=\"%s\"/>", m->links[route->links[k]].name);
            add_text(&routes, "</route>\n");
        }
    }
    g_string_append(w->text, routes.text->str);
    g_string_free(routes.text, TRUE);
}

static char *format_xml(const struct duet_machine *machine,
                        const struct duet__calibration *calibration, const char *times)
{
    struct writer w = {.machine = machine,
                       .text = g_string_new(NULL),
                       .latencies =
                           g_hash_table_new_full(g_double_hash, g_double_equal, g_free, NULL)};
    add_text(&w,
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
    add_text(&w, "  </zone>\n</platform>\n");
    g_hash_table_unref(w.latencies);
    return g_string_free(w.text, FALSE);
}

/* Checks that the text can be read back; otherwise it is not written. */
static int check_text(const char *text, const char *path, struct duet_message *message)
{
    struct duet__platform again = {.name = ""};
    struct duet_message why = {""};
    g_autofree char *times = NULL;
    int error = duet__read_xml(&again, text, strlen(text), path, &times, &why);
    duet__platform_fini(&again);
    return error ? duet_fail(message, DUET_EINVAL, "the machine cannot be written: %s", why.text)
                 : DUET_OK;
}

int duet__platform_write_xml(const struct duet_machine *machine, const struct duet__platform *from,
                             const char *path, struct duet_message *message)
{
    const struct duet__calibration *calibration = from ? &from->calibration : NULL;
    bool timed = calibration != NULL && calibration->count > 0;
    /* machine.xml.kernels.json: machine.kernels.json may be the times of machine.json */
    g_autofree char *times_path = g_strconcat(path, ".kernels.json", NULL);
    g_autofree char *times_name = g_path_get_basename(times_path), *text = NULL;
    int error = duet_machine_check(machine, message);
    if (error)
        return error;
    if (!g_str_has_suffix(path, ".xml"))
        return duet_fail(message, DUET_EINVAL,
                         "%s: the name must end in .xml, so that it can be read again", path);
    if (timed && !duet__good_name(times_name, NAME_MAX))
        return duet_fail(message, DUET_EINVAL,
                         "%s: the file's name must have letters, digits or _-.:+ only", path);
    text = format_xml(machine, calibration, timed ? times_name : NULL);
    error = check_text(text, path, message);
    if (!error && timed) { /* times first: a platform that is there finds them */
        char *times = duet__format_times(from);
        error = duet__write_file(times_path, times, message);
        free(times);
    }
    return error ? error : duet__write_file(path, text, message);
}
