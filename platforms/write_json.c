/* SPDX-License-Identifier: Apache-2.0 */
/* Machines and kernel times as text: by the tables of tables.c, one line for each part. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "platforms/description.h"
#include "platforms/tables.h"

static void write_part(struct duet__json_writer *w, const char *key,
                       const struct duet__field *fields, const void *from)
{
    duet__json_begin(w, key, '{');
    duet__fields_write(w, fields, from);
    duet__json_end(w, '}');
}

/* An array of objects, each with the members that `write` writes. */
static void write_array(struct duet__json_writer *w, const struct duet_platform *p, const char *key,
                        size_t count,
                        void (*write)(struct duet__json_writer *w, const struct duet_platform *p,
                                      size_t index))
{
    duet__json_begin(w, key, '[');
    for (size_t i = 0; i < count; i++) {
        duet__json_begin(w, NULL, '{');
        write(w, p, i);
        duet__json_end(w, '}');
    }
    duet__json_end(w, ']');
}

static void write_arch(struct duet__json_writer *w, const struct duet_platform *p, size_t index)
{
    duet__fields_write(w, duet__arch_fields, &p->archs[index]);
}

static void write_socket(struct duet__json_writer *w, const struct duet_platform *p, size_t index)
{
    duet__json_put_string(w, "architecture", p->archs[p->sockets[index].arch].name);
    duet__fields_write(w, duet__socket_fields, &p->sockets[index]);
}

static void write_head(struct duet__json_writer *w, const struct duet_platform *p)
{
    duet__json_begin(w, NULL, '{');
    duet__json_put_integer(w, "schema", DUET__MAX_SCHEMA);
    duet__fields_write(w, duet__root_fields, p);
    duet__json_put_string(w, "description", p->description);
    duet__json_put_string(w, "origin", p->origin);
    write_array(w, p, "architectures", p->arch_count, write_arch);
    if (p->host_memory_bytes > 0)
        write_part(w, "host", duet__host_fields, p);
    write_array(w, p, "sockets", p->socket_count, write_socket);
}

static void write_kind(struct duet__json_writer *w, const struct duet_platform *p, size_t index)
{
    duet__fields_write(w, duet__link_fields, &p->kinds[index]);
}

static void write_peers(struct duet__json_writer *w, const struct duet_platform *p)
{
    duet__json_begin(w, "peers", '[');
    for (unsigned i = 0; i < DUET_REACHES; i++) {
        if (p->peers[i].name[0] == '\0')
            continue;
        duet__json_begin(w, NULL, '{');
        duet__json_put_string(w, "reach", duet__reach_name(i));
        duet__fields_write(w, duet__peer_fields, &p->peers[i]);
        duet__json_end(w, '}');
    }
    duet__json_end(w, ']');
}

/* What a switch has like its kind of link is left out. */
static void write_switch(struct duet__json_writer *w, const struct duet_platform *p, size_t index)
{
    struct duet_platform_switch sw = p->switches[index];
    const struct duet_platform_link *kind = &p->kinds[sw.kind];

    if (sw.to_device_Bps == kind->to_device.bandwidth_Bps)
        sw.to_device_Bps = 0;
    if (sw.to_host_Bps == kind->to_host.bandwidth_Bps)
        sw.to_host_Bps = 0;
    duet__json_put_string(w, "link", kind->name);
    duet__fields_write(w, duet__switch_fields, &sw);
    duet__json_begin(w, "gpus", '[');
    for (unsigned i = 0; i < p->gpu_count; i++)
        if (p->gpus[i].position == index)
            duet__json_put_integer(w, NULL, i);
    duet__json_end(w, ']');
}

/* Latencies like those of the kind of link are left out, and limits that are none. */
static void write_gpu(struct duet__json_writer *w, const struct duet_platform *p, size_t index)
{
    struct duet_platform_gpu gpu = p->gpus[index];
    const struct duet_platform_switch *sw = &p->switches[gpu.position];
    const struct duet_platform_link *kind = &p->kinds[sw->kind];

    if (gpu.to_device.latency_s == kind->to_device.latency_s)
        gpu.to_device.latency_s = NAN;
    if (gpu.to_host.latency_s == kind->to_host.latency_s)
        gpu.to_host.latency_s = NAN;
    if (gpu.to_device.bandwidth_Bps >= sw->to_device_Bps)
        gpu.to_device.bandwidth_Bps = 0;
    if (gpu.to_host.bandwidth_Bps >= sw->to_host_Bps)
        gpu.to_host.bandwidth_Bps = 0;
    duet__json_put_string(w, "architecture", p->archs[gpu.arch].name);
    duet__fields_write(w, duet__gpu_fields, &gpu);
}

static void write_devices(struct duet__json_writer *w, const struct duet_platform *p)
{
    write_array(w, p, "links", p->kind_count, write_kind);
    write_peers(w, p);
    write_array(w, p, "switches", p->switch_count, write_switch);
    write_array(w, p, "gpus", p->gpu_count, write_gpu);
    if (p->order == NULL)
        return;
    duet__json_begin(w, "order", '[');
    for (unsigned i = 0; i < p->gpu_count; i++)
        duet__json_put_integer(w, NULL, p->order[i]);
    duet__json_end(w, ']');
}

static void write_point(struct duet__json_writer *w, const struct duet_point *given)
{
    struct duet_point point = *given;

    point.samples = MAX(point.samples, 1); /* what has none was given, not measured */
    duet__json_put_number(w, "work", point.work);
    duet__fields_write(w, duet__point_fields, &point);
}

static void write_curve(struct duet__json_writer *w, const struct duet_platform *p, size_t index)
{
    const struct duet_curve *curve = &p->calibration.curves[index];
    const char *origin = duet__curve_origin(p, curve);

    duet__fields_write(w, duet__curve_fields, curve);
    if (p->origin == NULL || strcmp(origin, p->origin) != 0)
        duet__json_put_string(w, "origin", origin);
    duet__json_begin(w, "points", '[');
    for (size_t i = 0; i < curve->count; i++) {
        const char *own = duet__point_origin(p, curve, curve->points[i].work);

        duet__json_break(w, 4);
        duet__json_begin(w, NULL, '{');
        write_point(w, &curve->points[i]);
        if (strcmp(own, origin) != 0)
            duet__json_put_string(w, "origin", own);
        duet__json_end(w, '}');
    }
    duet__json_end(w, ']');
}

/* Ends the document with the kernel times, and its text. */
static void finish(struct duet__json_writer *w, const struct duet_platform *p)
{
    write_array(w, p, "curves", p->calibration.count, write_curve);
    duet__json_end(w, '}');
    fclose(w->stream);
}

char *duet__format_platform(const struct duet_platform *p, const char **not_finite)
{
    char *text = NULL;
    size_t length = 0;
    struct duet__json_writer w = {.stream = open_memstream(&text, &length), .indented = true};

    write_head(&w, p);
    if (p->gpu_count > 0)
        write_devices(&w, p);
    write_part(&w, "costs", duet__cost_fields, &p->costs);
    if (p->sharing.private_bytes > 0 || p->sharing.shared_bytes > 0 ||
        p->sharing.bandwidth_Bps != 0)
        write_part(&w, "sharing", duet__sharing_fields, &p->sharing);
    if (p->probe_s != 0)
        write_part(&w, "probe", duet__probe_fields, p);
    finish(&w, p);
    *not_finite = w.not_finite;
    return text;
}

char *duet__format_times(const struct duet_calibration *calibration)
{
    static char origin[] = "copied from the platform it was made from";
    const struct duet_platform p = {.origin = origin, .calibration = *calibration};
    char *text = NULL;
    size_t length = 0;
    struct duet__json_writer w = {.stream = open_memstream(&text, &length), .indented = true};

    duet__json_begin(&w, NULL, '{');
    duet__json_put_integer(&w, "schema", DUET__MAX_SCHEMA);
    duet__json_put_string(&w, "origin", origin);
    finish(&w, &p);
    return text;
}
