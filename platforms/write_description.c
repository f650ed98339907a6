/* SPDX-License-Identifier: Apache-2.0 */
/* A measured machine as a description: what a switch or GPU has like the others is left out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "platforms/description.h"
#include "platforms/json.h"

/* The kind of all links between the host and switches, and those of direct copies. */
static const char *const LINK = "pcie";
static const char *const reaches[DUET__REACHES] = {"switch", "socket", "remote"};

/*
 * A direct copy that is this much faster than the links to the host between two GPUs does not cross
 * them; one that is hardly faster was measured on a better day.
 */
static const double OWN_LINK = 1.1;

struct writer {
    const struct duet_draft *draft;
    GString *text;
    const char *bad;                           /* a key whose value is no number, NULL: none yet */
    struct duet_draft_switch *switches;        /* with bandwidths that are known */
    struct duet_draft_link to_device, to_host; /* of the kind */
};

static void number(struct writer *w, const char *key, double value)
{
    char digits[DUET__DIGITS_MAX];

    if (!isfinite(value) && w->bad == NULL)
        w->bad = key;
    g_string_append_printf(w->text, "\"%s\": %s, ", key, duet__digits(value, digits));
}

/* For what a switch or GPU has of its own. */
static void unlike(struct writer *w, const char *key, double value, double usual)
{
    if (value != usual)
        number(w, key, value);
}

static void integer(struct writer *w, const char *key, uint64_t value)
{
    g_string_append_printf(w->text, "\"%s\": %" G_GUINT64_FORMAT ", ", key, value);
}

static void string(struct writer *w, const char *key, const char *value)
{
    g_string_append_printf(w->text, "\"%s\": ", key);
    duet__append_string(w->text, value);
    g_string_append(w->text, ", ");
}

static void figure(struct writer *w, const char *key, const struct duet_draft_link *link)
{
    g_string_append_printf(w->text, "\"%s\": {", key);
    number(w, "bandwidth_Bps", link->bandwidth_Bps);
    number(w, "latency_s", link->latency_s);
    g_string_truncate(w->text, w->text->len - strlen(", "));
    g_string_append(w->text, "}, ");
}

/* Ends an object whose last key is the origin. */
static void end(struct writer *w)
{
    g_string_append(w->text, "\"origin\": ");
    duet__append_string(w->text, w->draft->origin);
    g_string_append_c(w->text, '}');
}

/* Begins element `index` of a list, or the list of this key. */
static void element(struct writer *w, const char *list, bool first)
{
    if (first)
        g_string_append_printf(w->text, ",\n  \"%s\": [\n    {", list);
    else
        g_string_append(w->text, ",\n    {");
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;

    return (left > right) - (left < right);
}

/* The middle one: a figure that was measured, unlike a mean. Sorts `values`. */
static double middle(double *values, unsigned count)
{
    qsort(values, count, sizeof(*values), by_value);
    return values[(count - 1) / 2];
}

/* A switch whose link was not measured is as fast as the best of its GPUs. */
static void find_switches(struct writer *w)
{
    const struct duet_draft *d = w->draft;

    w->switches = g_new0(struct duet_draft_switch, d->switch_count + 1);
    for (unsigned i = 0; i < d->switch_count; i++)
        w->switches[i] = d->switches[i];
    for (unsigned i = 0; i < d->gpu_count; i++) {
        const struct duet_draft_gpu *gpu = &d->gpus[i];
        const struct duet_draft_switch *given = &d->switches[gpu->position];
        struct duet_draft_switch *sw = &w->switches[gpu->position];

        if (!(given->to_device_Bps > 0))
            sw->to_device_Bps = fmax(sw->to_device_Bps, gpu->to_device.bandwidth_Bps);
        if (!(given->to_host_Bps > 0))
            sw->to_host_Bps = fmax(sw->to_host_Bps, gpu->to_host.bandwidth_Bps);
    }
}

static void find_kind(struct writer *w)
{
    const struct duet_draft *d = w->draft;
    double *values = g_new0(double, MAX(d->switch_count, d->gpu_count) + 1);

    for (unsigned i = 0; i < d->switch_count; i++)
        values[i] = w->switches[i].to_device_Bps;
    w->to_device.bandwidth_Bps = middle(values, d->switch_count);
    for (unsigned i = 0; i < d->switch_count; i++)
        values[i] = w->switches[i].to_host_Bps;
    w->to_host.bandwidth_Bps = middle(values, d->switch_count);
    for (unsigned i = 0; i < d->gpu_count; i++)
        values[i] = d->gpus[i].to_device.latency_s;
    w->to_device.latency_s = middle(values, d->gpu_count);
    for (unsigned i = 0; i < d->gpu_count; i++)
        values[i] = d->gpus[i].to_host.latency_s;
    w->to_host.latency_s = middle(values, d->gpu_count);
    g_free(values);
}

static void write_head(struct writer *w, const char *times, const struct duet_arch *archs,
                       unsigned arch_count)
{
    const struct duet_draft *d = w->draft;

    g_string_append(w->text, "{\n  \"schema\": 1,\n  \"name\": ");
    duet__append_string(w->text, d->name);
    g_string_append(w->text, ",\n  \"description\": ");
    duet__append_string(w->text, d->description);
    g_string_append_printf(w->text, ",\n  \"calibration\": \"%s\"", times);
    for (unsigned i = 0; i < arch_count; i++) {
        element(w, "architectures", i == 0);
        string(w, "name", archs[i].name);
        string(w, "backend", archs[i].backend);
        g_string_truncate(w->text, w->text->len - strlen(", "));
        g_string_append_c(w->text, '}');
    }
    g_string_append(w->text, "\n  ]");
    if (d->host_memory_bytes > 0) {
        g_string_append(w->text, ",\n  \"host\": {");
        integer(w, "memory_bytes", d->host_memory_bytes);
        end(w);
    }
    for (unsigned i = 0; i < d->socket_count; i++) {
        element(w, "sockets", i == 0);
        string(w, "architecture", d->archs[d->sockets[i].arch].name);
        integer(w, "cores", d->sockets[i].cores);
        end(w);
    }
    g_string_append(w->text, "\n  ]");
    if (d->cores > 0)
        g_string_append_printf(w->text, ",\n  \"cores\": %u", d->cores);
    if (d->first_waits)
        g_string_append(w->text, ",\n  \"first_waits\": true");
}

static unsigned reach_between(const struct duet_draft *d, unsigned a, unsigned b)
{
    unsigned place_a = d->gpus[a].position;
    unsigned place_b = d->gpus[b].position;

    if (place_a == place_b)
        return DUET__REACH_SWITCH;
    return d->switches[place_a].socket == d->switches[place_b].socket ? DUET__REACH_SOCKET
                                                                      : DUET__REACH_REMOTE;
}

/* Are the direct copies of this reach too fast for the links to the host between any two GPUs? */
static bool is_own(const struct writer *w, unsigned reach)
{
    const struct duet_draft *d = w->draft;

    for (unsigned a = 0; reach != DUET__REACH_SWITCH && a < d->gpu_count; a++) {
        for (unsigned b = 0; b < d->gpu_count; b++) {
            double direct =
                a < b ? d->peers_up[reach].bandwidth_Bps : d->peers_down[reach].bandwidth_Bps;

            if (a != b && reach_between(d, a, b) == reach &&
                direct > OWN_LINK * fmin(w->switches[d->gpus[a].position].to_host_Bps,
                                         w->switches[d->gpus[b].position].to_device_Bps))
                return true;
        }
    }
    return false;
}

static void write_peers(struct writer *w)
{
    const struct duet_draft *d = w->draft;
    bool first = true;

    for (unsigned reach = 0; reach < DUET__REACHES; reach++) {
        if (d->peers_up[reach].bandwidth_Bps == 0)
            continue;
        element(w, "peers", first);
        g_string_append_printf(w->text, "\"name\": \"peer_%s\", \"reach\": \"%s\", ",
                               reaches[reach], reaches[reach]);
        figure(w, "up", &d->peers_up[reach]);
        figure(w, "down", &d->peers_down[reach]);
        if (is_own(w, reach))
            g_string_append(w->text, "\"own_link\": true, ");
        end(w);
        first = false;
    }
    if (!first)
        g_string_append(w->text, "\n  ]");
}

static void write_switches(struct writer *w)
{
    const struct duet_draft *d = w->draft;

    for (unsigned i = 0; i < d->switch_count; i++) {
        bool first = true;

        element(w, "switches", i == 0);
        integer(w, "socket", d->switches[i].socket);
        string(w, "link", LINK);
        g_string_append(w->text, "\"gpus\": [");
        for (unsigned j = 0; j < d->gpu_count; j++) {
            if (d->gpus[j].position != i)
                continue;
            g_string_append_printf(w->text, "%s%u", first ? "" : ", ", j);
            first = false;
        }
        g_string_append(w->text, "], ");
        unlike(w, "to_device_Bps", w->switches[i].to_device_Bps, w->to_device.bandwidth_Bps);
        unlike(w, "to_host_Bps", w->switches[i].to_host_Bps, w->to_host.bandwidth_Bps);
        end(w);
    }
    g_string_append(w->text, "\n  ]");
}

static void write_gpus(struct writer *w)
{
    const struct duet_draft *d = w->draft;

    for (unsigned i = 0; i < d->gpu_count; i++) {
        const struct duet_draft_gpu *gpu = &d->gpus[i];
        const struct duet_draft_switch *sw = &w->switches[gpu->position];

        element(w, "gpus", i == 0);
        string(w, "architecture", d->archs[gpu->arch].name);
        integer(w, "memory_bytes", gpu->memory_bytes);
        unlike(w, "to_device_latency_s", gpu->to_device.latency_s, w->to_device.latency_s);
        unlike(w, "to_host_latency_s", gpu->to_host.latency_s, w->to_host.latency_s);
        if (!(gpu->to_device.bandwidth_Bps >= sw->to_device_Bps))
            number(w, "to_device_limit_Bps", gpu->to_device.bandwidth_Bps);
        if (!(gpu->to_host.bandwidth_Bps >= sw->to_host_Bps))
            number(w, "to_host_limit_Bps", gpu->to_host.bandwidth_Bps);
        end(w);
    }
    g_string_append(w->text, "\n  ]");
}

static void write_devices(struct writer *w)
{
    find_switches(w);
    find_kind(w);
    element(w, "links", true);
    string(w, "name", LINK);
    figure(w, "to_device", &w->to_device);
    figure(w, "to_host", &w->to_host);
    end(w);
    g_string_append(w->text, "\n  ]");
    write_peers(w);
    write_switches(w);
    write_gpus(w);
}

static void write_measured(struct writer *w)
{
    const struct duet_draft *d = w->draft;
    struct duet_costs costs = d->costs;

    if (d->sharing.private_bytes > 0 || d->sharing.shared_bytes > 0 ||
        d->sharing.bandwidth_Bps != 0) {
        g_string_append(w->text, ",\n  \"sharing\": {");
        integer(w, "private_bytes", d->sharing.private_bytes);
        integer(w, "shared_bytes", d->sharing.shared_bytes);
        number(w, "bandwidth_Bps", d->sharing.bandwidth_Bps);
        end(w);
    }
    g_string_append(w->text, ",\n  \"costs\": {");
    for (unsigned i = 0; i < DUET__COST_KINDS; i++)
        number(w, duet__cost_names[i], *duet__cost(&costs, i));
    end(w);
    if (d->probe_s != 0) {
        g_string_append(w->text, ",\n  \"probe\": {");
        number(w, "seconds", d->probe_s);
        end(w);
    }
    g_string_append(w->text, "\n}\n");
}

/* Switches without GPUs are nothing that the format knows. */
static int check_switches(const struct duet_draft *d, struct duet_message *message)
{
    for (unsigned i = 0; i < d->switch_count; i++) {
        bool used = false;

        if (d->switches[i].socket >= d->socket_count)
            return duet_fail(message, DUET_EINVAL, "switch %u: no socket %u", i,
                             d->switches[i].socket);
        if (!(d->switches[i].to_device_Bps >= 0) || !(d->switches[i].to_host_Bps >= 0))
            return duet_fail(message, DUET_EINVAL, "switch %u: a bandwidth is negative", i);
        for (unsigned j = 0; j < d->gpu_count && !used; j++)
            used = d->gpus[j].position == i;
        if (!used)
            return duet_fail(message, DUET_EINVAL, "switch %u: no GPU is behind it", i);
    }
    return DUET_OK;
}

/* Everything that is pointed to or counted from. */
static int check_draft(const struct duet_draft *d, struct duet_message *message)
{
    const char *const texts[] = {d->name, d->description, d->origin};

    for (unsigned i = 0; i < G_N_ELEMENTS(texts); i++)
        if (texts[i] == NULL || !g_utf8_validate(texts[i], -1, NULL))
            return duet_fail(message, DUET_EINVAL,
                             "the machine's name, description and origin must be texts in UTF-8");
    if (d->arch_count == 0 || d->socket_count == 0)
        return duet_fail(message, DUET_EINVAL, "a machine needs an architecture and a socket");
    for (unsigned i = 0; i < d->socket_count; i++)
        if (d->sockets[i].arch >= d->arch_count)
            return duet_fail(message, DUET_EINVAL, "socket %u: no architecture %u", i,
                             d->sockets[i].arch);
    for (unsigned i = 0; i < d->gpu_count; i++) {
        if (d->gpus[i].arch >= d->arch_count)
            return duet_fail(message, DUET_EINVAL, "GPU %u: no architecture %u", i,
                             d->gpus[i].arch);
        if (d->gpus[i].position >= d->switch_count)
            return duet_fail(message, DUET_EINVAL, "GPU %u: no switch %u", i, d->gpus[i].position);
        if (!(d->gpus[i].to_device.bandwidth_Bps > 0) || !(d->gpus[i].to_host.bandwidth_Bps > 0))
            return duet_fail(message, DUET_EINVAL, "GPU %u: no bandwidth", i);
    }
    for (unsigned i = 0; i < DUET__REACHES; i++)
        if ((d->peers_up[i].bandwidth_Bps == 0) != (d->peers_down[i].bandwidth_Bps == 0))
            return duet_fail(message, DUET_EINVAL,
                             "direct copies (%s) have a bandwidth in one direction only",
                             reaches[i]);
    return check_switches(d, message);
}

int duet__format_description(const struct duet_draft *draft, const char *times,
                             const struct duet_arch *archs, unsigned arch_count, char **text,
                             struct duet_message *message)
{
    struct writer w = {.draft = draft};
    int error = check_draft(draft, message);

    *text = NULL;
    if (error != DUET_OK)
        return error;
    w.text = g_string_new(NULL);
    write_head(&w, times, archs, arch_count);
    if (draft->gpu_count > 0)
        write_devices(&w);
    write_measured(&w);
    g_free(w.switches);
    *text = g_string_free(w.text, FALSE);
    if (w.bad == NULL)
        return DUET_OK;
    g_free(*text);
    *text = NULL;
    return duet_fail(message, DUET_EINVAL, "the machine's %s is not a finite number", w.bad);
}
