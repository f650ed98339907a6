/* SPDX-License-Identifier: Apache-2.0 */
/* Writes machines and kernel times as text, by the tables of keys.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "platforms/internal.h"
#include "platforms/keys.h"

/* Returns an origin, or NULL if it is that of the curve or of all the file. */
static const char *own_origin(const char *own, const char *common)
{
    return g_strcmp0(own, common) != 0 ? own : NULL;
}

static void write_curve(struct duet__json_writer *w, const struct duet__platform *p,
                        struct duet__curve curve)
{
    const char *origin = curve.origin != NULL ? curve.origin : p->origin != NULL ? p->origin : "";

    curve.origin = own_origin(origin, p->origin);
    duet__json_begin(w, NULL, '{');
    duet__fields_write(w, duet__curve_fields, &curve, p);
    duet__json_begin(w, "points", '[');
    for (size_t i = 0; i < curve.count; i++) {
        struct duet__point point = curve.points[i];

        point.samples = MAX(point.samples, 1); /* a point without samples was given, not measured */
        point.origin = own_origin(point.origin, origin);
        duet__json_print(w, "\n    {work: %g", point.work);
        duet__fields_write(w, duet__point_fields, &point, p);
        duet__json_end(w, '}');
    }
    duet__json_print(w, "]}");
}

/* Writes the members of a table, then the kernel times. */
static char *format_json(const struct duet__platform *p, const struct duet__field *fields)
{
    char *text = NULL;
    size_t length = 0;
    struct duet__json_writer w = {.stream = open_memstream(&text, &length), .indented = true};

    duet__json_print(&w, "{schema: %u", (unsigned)DUET__MAX_SCHEMA);
    duet__fields_write(&w, fields, p, p);
    duet__json_begin(&w, "curves", '[');
    for (size_t i = 0; i < p->calibration.count; i++)
        write_curve(&w, p, p->calibration.curves[i]);
    duet__json_print(&w, "]}");
    fclose(w.stream);
    return text;
}

/* Leaves out figures that switches and GPUs share with their kind of link, and limits without
 * effect. */
static void leave_out_defaults(struct duet__platform *p)
{
    for (unsigned i = 0; i < p->gpu_count; i++) {
        struct duet__platform_gpu *gpu = &p->gpus[i];
        const struct duet__platform_switch *sw;
        const struct duet__platform_link *kind;

        if (gpu->position >= p->switch_count || p->switches[gpu->position].kind >= p->kind_count)
            continue; /* the reader refuses this text */
        sw = &p->switches[gpu->position];
        kind = &p->kinds[sw->kind];
        if (gpu->to_device.latency_s == kind->to_device.latency_s)
            gpu->to_device.latency_s = NAN;
        if (gpu->to_host.latency_s == kind->to_host.latency_s)
            gpu->to_host.latency_s = NAN;
        if (gpu->to_device.bandwidth_Bps >= sw->to_device_Bps)
            gpu->to_device.bandwidth_Bps = 0;
        if (gpu->to_host.bandwidth_Bps >= sw->to_host_Bps)
            gpu->to_host.bandwidth_Bps = 0;
    }
    for (unsigned i = 0; i < p->switch_count; i++) {
        struct duet__platform_switch *sw = &p->switches[i];

        if (sw->kind >= p->kind_count)
            continue;
        if (sw->to_device_Bps == p->kinds[sw->kind].to_device.bandwidth_Bps)
            sw->to_device_Bps = 0;
        if (sw->to_host_Bps == p->kinds[sw->kind].to_host.bandwidth_Bps)
            sw->to_host_Bps = 0;
    }
}

char *duet__platform_text(const struct duet__platform *platform)
{
    struct duet__platform p = *platform;
    char *text;

    if (duet__is_fixed(platform))
        return NULL;
    p.switches = g_memdup2(p.switches, p.switch_count * sizeof(*p.switches));
    p.gpus = g_memdup2(p.gpus, p.gpu_count * sizeof(*p.gpus));
    leave_out_defaults(&p);
    text = format_json(&p, duet__platform_fields);
    g_free(p.switches);
    g_free(p.gpus);
    return text;
}

char *duet__format_times(const struct duet__platform *from)
{
    static char origin[] = "copied from the platform it was made from";
    const struct duet__platform p = {.origin = from->origin ? from->origin : origin,
                                     .calibration = from->calibration};

    return format_json(&p, duet__times_fields);
}
