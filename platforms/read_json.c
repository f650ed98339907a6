/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a machine description (README.md documents its keys): types, ranges and references. */
#include <limits.h>
#include <string.h>

#include "platforms/description.h"
#include "platforms/json.h"

/* Ranges of what a machine can be: wide enough for any, narrow enough to catch a wrong unit. */
static const double LEAST_BPS = 1e3;
static const double MOST_BPS = 1e15;
static const double MOST_SECONDS = 1e3;
static const uint64_t MOST_BYTES = UINT64_C(1) << 50;
static const unsigned NOWHERE = UINT_MAX;

int duet__check_origin(const struct duet__json *at)
{
    struct duet__json origin = duet__json_member(at, "origin");
    const char *text; /* for readers */

    return duet__json_string(&origin, &text);
}

/* Reads member `key` if it is there; otherwise leaves `value` alone. */
static int read_optional(const struct duet__json *at, const char *key, double least, double most,
                         double *value)
{
    struct duet__json member = duet__json_member(at, key);

    return duet__json_present(&member) ? duet__json_number(&member, least, most, value) : DUET_OK;
}

static int read_figure(const struct duet__json *parent, const char *key,
                       struct duet__figure *figure)
{
    static const char *const known[] = {"bandwidth_Bps", "latency_s", NULL};
    struct duet__json at = duet__json_member(parent, key);
    struct duet__json member;
    int error = duet__json_keys(&at, known);

    if (error != DUET_OK)
        return error;
    member = duet__json_member(&at, "bandwidth_Bps");
    error = duet__json_number(&member, LEAST_BPS, MOST_BPS, &figure->bandwidth_Bps);
    if (error != DUET_OK)
        return error;
    member = duet__json_member(&at, "latency_s");
    return duet__json_number(&member, 0, MOST_SECONDS, &figure->latency_s);
}

static int read_arch(const struct duet__json *at, struct duet__description *d, unsigned index)
{
    static const char *const known[] = {"name", "backend", NULL};
    struct duet_arch *arch = &d->archs[index];
    struct duet__json member;
    int error = duet__json_keys(at, known);

    if (error != DUET_OK)
        return error;
    member = duet__json_member(at, "name");
    error = duet__json_name(&member, arch->name, sizeof(arch->name));
    for (unsigned i = 0; i < index && error == DUET_OK; i++)
        if (strcmp(d->archs[i].name, arch->name) == 0)
            error =
                duet__json_fail(&member, DUET_EPARSE, "architecture %s is there twice", arch->name);
    if (error != DUET_OK)
        return error;
    member = duet__json_member(at, "backend");
    return duet__json_name(&member, arch->backend, sizeof(arch->backend));
}

/* Reads the name of an architecture that must be a CPU's (`cpu`) or must not. */
static int read_arch_name(const struct duet__json *parent, const struct duet__description *d,
                          bool cpu, unsigned *index)
{
    struct duet__json at = duet__json_member(parent, "architecture");
    char name[DUET_NAME_MAX];
    int error = duet__json_name(&at, name, sizeof(name));

    if (error != DUET_OK)
        return error;
    for (unsigned i = 0; i < d->arch_count; i++) {
        if (strcmp(d->archs[i].name, name) == 0) {
            if ((strcmp(d->archs[i].backend, "cpu") == 0) != cpu)
                return duet__json_fail(&at, DUET_EPARSE, "%s has backend %s, expected %s", name,
                                       d->archs[i].backend, cpu ? "cpu" : "another than cpu");
            *index = i;
            return DUET_OK;
        }
    }
    return duet__json_fail(&at, DUET_EPARSE, "no architecture is named %s", name);
}

static int read_socket(const struct duet__json *at, struct duet__description *d, unsigned index)
{
    static const char *const known[] = {"architecture", "cores", "origin", NULL};
    struct duet__socket *socket = &d->sockets[index];
    struct duet__json member;
    int error = duet__json_keys(at, known);

    if (error == DUET_OK)
        error = duet__check_origin(at);
    if (error == DUET_OK)
        error = read_arch_name(at, d, true, &socket->arch);
    if (error != DUET_OK)
        return error;
    member = duet__json_member(at, "cores");
    return duet__json_unsigned(&member, 1, DUET__MAX_SOCKET_CORES, &socket->cores);
}

static int read_kind(const struct duet__json *at, struct duet__description *d, unsigned index)
{
    static const char *const known[] = {"name", "to_device", "to_host", "origin", NULL};
    struct duet__link_kind *kind = &d->kinds[index];
    struct duet__json name;
    int error = duet__json_keys(at, known);

    if (error == DUET_OK)
        error = duet__check_origin(at);
    if (error != DUET_OK)
        return error;
    name = duet__json_member(at, "name");
    error = duet__json_name(&name, kind->name, sizeof(kind->name));
    for (unsigned i = 0; i < index && error == DUET_OK; i++)
        if (strcmp(d->kinds[i].name, kind->name) == 0)
            error = duet__json_fail(&name, DUET_EPARSE, "link kind %s is there twice", kind->name);
    if (error == DUET_OK)
        error = read_figure(at, "to_device", &kind->to_device);
    if (error == DUET_OK)
        error = read_figure(at, "to_host", &kind->to_host);
    return error;
}

static int read_reach(const struct duet__json *parent, unsigned *reach)
{
    static const char *const names[DUET__REACHES] = {"switch", "socket", "remote"};
    struct duet__json at = duet__json_member(parent, "reach");
    const char *text;
    int error = duet__json_string(&at, &text);

    if (error != DUET_OK)
        return error;
    for (unsigned i = 0; i < DUET__REACHES; i++) {
        if (strcmp(names[i], text) == 0) {
            *reach = i;
            return DUET_OK;
        }
    }
    return duet__json_fail(&at, DUET_EPARSE, "\"%.60s\", expected switch, socket or remote", text);
}

static int check_peer_name(const struct duet__json *at, const struct duet__description *d,
                           const char *name)
{
    for (unsigned i = 0; i < d->kind_count; i++)
        if (strcmp(d->kinds[i].name, name) == 0)
            return duet__json_fail(at, DUET_EPARSE, "link kind %s is there twice", name);
    for (unsigned i = 0; i < DUET__REACHES; i++)
        if (strcmp(d->peers[i].name, name) == 0)
            return duet__json_fail(at, DUET_EPARSE, "link kind %s is there twice", name);
    return DUET_OK;
}

static int read_peer(const struct duet__json *at, struct duet__description *d, unsigned index)
{
    static const char *const known[] = {"name", "reach", "up", "down", "own_link", "origin", NULL};
    struct duet__peer_kind peer = {.present = true};
    struct duet__json name;
    unsigned reach = 0;
    int error = duet__json_keys(at, known);

    (void)index;
    if (error == DUET_OK)
        error = duet__check_origin(at);
    if (error == DUET_OK)
        error = read_reach(at, &reach);
    if (error == DUET_OK && d->peers[reach].present)
        error = duet__json_fail(at, DUET_EPARSE, "a second kind of this reach");
    if (error != DUET_OK)
        return error;
    name = duet__json_member(at, "name");
    error = duet__json_name(&name, peer.name, sizeof(peer.name));
    if (error == DUET_OK)
        error = check_peer_name(&name, d, peer.name);
    if (error == DUET_OK)
        error = read_figure(at, "up", &peer.up);
    if (error == DUET_OK)
        error = read_figure(at, "down", &peer.down);
    if (error == DUET_OK)
        error = duet__read_flag(at, "own_link", &peer.own_link);
    if (error == DUET_OK)
        d->peers[reach] = peer;
    return error;
}

static int read_gpu(const struct duet__json *at, struct duet__description *d, unsigned index)
{
    static const char *const known[] = {"architecture",
                                        "memory_bytes",
                                        "to_device_limit_Bps",
                                        "to_host_limit_Bps",
                                        "to_device_latency_s",
                                        "to_host_latency_s",
                                        "origin",
                                        NULL};
    struct duet__gpu *gpu = &d->gpus[index];
    struct duet__json memory;
    int error = duet__json_keys(at, known);

    gpu->position = NOWHERE;
    gpu->to_device.latency_s = -1; /* replaced by the kind's where the file has none */
    gpu->to_host.latency_s = -1;
    if (error == DUET_OK)
        error = duet__check_origin(at);
    if (error == DUET_OK)
        error = read_arch_name(at, d, false, &gpu->arch);
    if (error != DUET_OK)
        return error;
    memory = duet__json_member(at, "memory_bytes");
    error = duet__json_integer(&memory, 1, MOST_BYTES, &gpu->memory_bytes);
    if (error == DUET_OK)
        error = read_optional(at, "to_device_limit_Bps", LEAST_BPS, MOST_BPS,
                              &gpu->to_device.bandwidth_Bps);
    if (error == DUET_OK)
        error = read_optional(at, "to_host_limit_Bps", LEAST_BPS, MOST_BPS,
                              &gpu->to_host.bandwidth_Bps);
    if (error == DUET_OK)
        error =
            read_optional(at, "to_device_latency_s", 0, MOST_SECONDS, &gpu->to_device.latency_s);
    if (error == DUET_OK)
        error = read_optional(at, "to_host_latency_s", 0, MOST_SECONDS, &gpu->to_host.latency_s);
    return error;
}

/* The GPUs of a switch, each of which must exist and be on no other. */
static int read_switch_gpus(const struct duet__json *parent, struct duet__description *d,
                            unsigned index)
{
    struct duet__switch *sw = &d->switches[index];
    const struct duet__link_kind *kind = &d->kinds[sw->kind];
    struct duet__json at = duet__json_member(parent, "gpus");
    unsigned count = 0;
    int error = duet__json_array(&at, 1, DUET__MAX_GPUS, &count);

    if (error != DUET_OK)
        return error;
    sw->gpus = g_new0(unsigned, count);
    for (unsigned i = 0; i < count; i++) {
        struct duet__json element = duet__json_element(&at, i);
        struct duet__gpu *gpu;

        error = duet__json_unsigned(&element, 0, DUET__MAX_GPUS, &sw->gpus[i]);
        if (error != DUET_OK)
            return error;
        if (sw->gpus[i] >= d->gpu_count)
            return duet__json_fail(&element, DUET_EPARSE, "no GPU %u (there are %u, from 0)",
                                   sw->gpus[i], d->gpu_count);
        gpu = &d->gpus[sw->gpus[i]];
        if (gpu->position != NOWHERE)
            return duet__json_fail(&element, DUET_EPARSE, "GPU %u is behind switch %u already",
                                   sw->gpus[i], gpu->position);
        gpu->position = index;
        if (gpu->to_device.latency_s < 0)
            gpu->to_device.latency_s = kind->to_device.latency_s;
        if (gpu->to_host.latency_s < 0)
            gpu->to_host.latency_s = kind->to_host.latency_s;
        sw->gpu_count = i + 1;
    }
    return DUET_OK;
}

static int read_link_name(const struct duet__json *parent, const struct duet__description *d,
                          unsigned *kind)
{
    struct duet__json at = duet__json_member(parent, "link");
    char name[DUET__KIND_MAX];
    int error = duet__json_name(&at, name, sizeof(name));

    if (error != DUET_OK)
        return error;
    for (unsigned i = 0; i < d->kind_count; i++) {
        if (strcmp(d->kinds[i].name, name) == 0) {
            *kind = i;
            return DUET_OK;
        }
    }
    return duet__json_fail(&at, DUET_EPARSE, "no link kind is named %s", name);
}

static int read_switch(const struct duet__json *at, struct duet__description *d, unsigned index)
{
    static const char *const known[] = {"socket",      "link",   "gpus", "to_device_Bps",
                                        "to_host_Bps", "origin", NULL};
    struct duet__switch *sw = &d->switches[index];
    struct duet__json member;
    int error = duet__json_keys(at, known);

    if (error == DUET_OK)
        error = duet__check_origin(at);
    if (error == DUET_OK)
        error = read_link_name(at, d, &sw->kind);
    if (error != DUET_OK)
        return error;
    member = duet__json_member(at, "socket");
    error = duet__json_unsigned(&member, 0, DUET__MAX_SOCKETS, &sw->socket);
    if (error == DUET_OK && sw->socket >= d->socket_count)
        error = duet__json_fail(&member, DUET_EPARSE, "no socket %u (there are %u, from 0)",
                                sw->socket, d->socket_count);
    if (error != DUET_OK)
        return error;
    sw->to_device_Bps = d->kinds[sw->kind].to_device.bandwidth_Bps;
    sw->to_host_Bps = d->kinds[sw->kind].to_host.bandwidth_Bps;
    error = read_optional(at, "to_device_Bps", LEAST_BPS, MOST_BPS, &sw->to_device_Bps);
    if (error == DUET_OK)
        error = read_optional(at, "to_host_Bps", LEAST_BPS, MOST_BPS, &sw->to_host_Bps);
    return error == DUET_OK ? read_switch_gpus(at, d, index) : error;
}

/* The order of use: each GPU once. Without the key, the order of the device numbers. */
static int read_order(const struct duet__json *root, struct duet__description *d)
{
    struct duet__json at = duet__json_member(root, "order");
    bool *seen;
    unsigned count = 0;
    int error;

    d->order = g_new0(unsigned, d->gpu_count + 1);
    for (unsigned i = 0; i < d->gpu_count; i++)
        d->order[i] = i;
    if (!duet__json_present(&at))
        return DUET_OK;
    error = duet__json_array(&at, d->gpu_count, d->gpu_count, &count);
    if (error != DUET_OK)
        return error;
    seen = g_new0(bool, count + 1);
    for (unsigned i = 0; i < count && error == DUET_OK; i++) {
        struct duet__json element = duet__json_element(&at, i);

        error = duet__json_unsigned(&element, 0, d->gpu_count - 1, &d->order[i]);
        if (error == DUET_OK && seen[d->order[i]])
            error = duet__json_fail(&element, DUET_EPARSE, "GPU %u is there twice", d->order[i]);
        if (error == DUET_OK)
            seen[d->order[i]] = true;
    }
    g_free(seen);
    return error;
}

static int read_host(const struct duet__json *root, struct duet__description *d)
{
    static const char *const known[] = {"memory_bytes", "origin", NULL};
    struct duet__json at = duet__json_member(root, "host");
    struct duet__json member;
    int error;

    if (!duet__json_present(&at))
        return DUET_OK;
    error = duet__json_keys(&at, known);
    if (error == DUET_OK)
        error = duet__check_origin(&at);
    if (error != DUET_OK)
        return error;
    member = duet__json_member(&at, "memory_bytes");
    return duet__json_integer(&member, 1, MOST_BYTES, &d->host_memory_bytes);
}

/* Length of an array of the description; 0 where it is absent and may be (least = 0). */
static int count_list(const struct duet__json *root, const char *key, unsigned least, unsigned most,
                      unsigned *count)
{
    struct duet__json at = duet__json_member(root, key);

    *count = 0;
    if (least == 0 && !duet__json_present(&at))
        return DUET_OK;
    return duet__json_array(&at, least, most, count);
}

/* Counts everything and makes room for it, so that a half-read description can be freed. */
static int make_room(const struct duet__json *root, struct duet__description *d, unsigned *peers)
{
    int error = count_list(root, "architectures", 1, DUET__MAX_ARCHS, &d->arch_count);

    if (error == DUET_OK)
        error = count_list(root, "sockets", 1, DUET__MAX_SOCKETS, &d->socket_count);
    if (error == DUET_OK)
        error = count_list(root, "links", 0, DUET__MAX_LINK_KINDS, &d->kind_count);
    if (error == DUET_OK)
        error = count_list(root, "peers", 0, DUET__REACHES, peers);
    if (error == DUET_OK)
        error = count_list(root, "gpus", 0, DUET__MAX_GPUS, &d->gpu_count);
    if (error == DUET_OK)
        error = count_list(root, "switches", 0, DUET__MAX_GPUS, &d->switch_count);
    if (error != DUET_OK)
        return error;
    d->archs = g_new0(struct duet_arch, d->arch_count);
    d->sockets = g_new0(struct duet__socket, d->socket_count);
    d->kinds = g_new0(struct duet__link_kind, d->kind_count);
    d->gpus = g_new0(struct duet__gpu, d->gpu_count);
    d->switches = g_new0(struct duet__switch, d->switch_count);
    return DUET_OK;
}

static int read_each(const struct duet__json *root, const char *key, unsigned count,
                     struct duet__description *d,
                     int (*read)(const struct duet__json *at, struct duet__description *d,
                                 unsigned index))
{
    struct duet__json at = duet__json_member(root, key);
    int error = DUET_OK;

    for (unsigned i = 0; i < count && error == DUET_OK; i++) {
        struct duet__json element = duet__json_element(&at, i);

        error = read(&element, d, i);
    }
    return error;
}

/* What can only be checked when all is read. */
static int check_whole(const struct duet__json *root, const struct duet__description *d)
{
    struct duet__json sockets = duet__json_member(root, "sockets");
    struct duet__json gpus = duet__json_member(root, "gpus");
    unsigned cores = 0;

    for (unsigned i = 0; i < d->socket_count; i++)
        cores += d->sockets[i].cores;
    if (cores > DUET__MAX_CORES)
        return duet__json_fail(&sockets, DUET_EPARSE, "%u cores, the most is %u", cores,
                               DUET__MAX_CORES);
    for (unsigned i = 0; i < d->gpu_count; i++) {
        if (d->gpus[i].position == NOWHERE) {
            struct duet__json gpu = duet__json_element(&gpus, i);

            return duet__json_fail(&gpu, DUET_EPARSE, "GPU %u is behind no switch", i);
        }
    }
    return DUET_OK;
}

static int read_machine(const struct duet__json *root, struct duet_platform *platform)
{
    struct duet__description *d = &platform->machine;
    unsigned peers = 0;
    int error = make_room(root, d, &peers);

    if (error == DUET_OK)
        error = read_each(root, "architectures", d->arch_count, d, read_arch);
    if (error == DUET_OK)
        error = read_each(root, "sockets", d->socket_count, d, read_socket);
    if (error == DUET_OK)
        error = read_each(root, "links", d->kind_count, d, read_kind);
    if (error == DUET_OK)
        error = read_each(root, "peers", peers, d, read_peer);
    if (error == DUET_OK)
        error = read_each(root, "gpus", d->gpu_count, d, read_gpu);
    if (error == DUET_OK)
        error = read_each(root, "switches", d->switch_count, d, read_switch);
    if (error == DUET_OK)
        error = check_whole(root, d);
    if (error == DUET_OK)
        error = read_order(root, d);
    if (error == DUET_OK)
        error = read_host(root, d);
    return error == DUET_OK ? duet__read_measured(root, platform) : error;
}

/* The file of kernel times lies beside the description: a name, not a path. */
static int read_calibration_name(const struct duet__json *root, char **calibration)
{
    struct duet__json at = duet__json_member(root, "calibration");
    char name[NAME_MAX + 1];
    int error = duet__json_name(&at, name, sizeof(name));

    if (error == DUET_OK)
        *calibration = g_strdup(name);
    return error;
}

static int read_head(const struct duet__json *root, struct duet_platform *platform)
{
    static const char *const known[] = {"schema",        "name",     "description", "calibration",
                                        "architectures", "host",     "sockets",     "links",
                                        "peers",         "switches", "gpus",        "order",
                                        "costs",         "sharing",  "cores",       "first_waits",
                                        "probe",         NULL};
    struct duet__json at;
    const char *description = NULL;
    unsigned schema = 0;
    int error = duet__json_keys(root, known);

    if (error != DUET_OK)
        return error;
    at = duet__json_member(root, "schema");
    error = duet__json_unsigned(&at, 1, DUET__MAX_SCHEMA, &schema);
    if (error != DUET_OK)
        return error;
    at = duet__json_member(root, "name");
    error = duet__json_name(&at, platform->name, sizeof(platform->name));
    if (error != DUET_OK)
        return error;
    at = duet__json_member(root, "description");
    error = duet__json_string(&at, &description);
    if (error == DUET_OK)
        platform->description = g_strdup(description);
    return error;
}

int duet__read_description(struct duet_platform *platform, const char *text, size_t length,
                           const char *path, char **calibration, struct duet_message *message)
{
    struct duet__json root;
    int error = duet__json_parse(text, length, path, message, &root);

    if (error != DUET_OK)
        return error;
    error = read_head(&root, platform);
    if (error == DUET_OK)
        error = read_machine(&root, platform);
    if (error == DUET_OK)
        error = read_calibration_name(&root, calibration);
    duet__json_close(&root);
    return error;
}
