/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a machine (README.md documents its keys). Members of structs are read by the tables of
 * tables.c; here are the references between them, and what can only be checked of all.
 */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "platforms/description.h"
#include "platforms/tables.h"

static const unsigned NOWHERE = UINT_MAX;

static const char *const reaches[DUET_REACHES] = {"switch", "socket", "remote"};

const char *duet__reach_name(enum duet_reach reach)
{
    return reaches[reach];
}

/* Figures say where they come from: their object does, or the whole file. */
static int check_origin(const struct duet__json *at, const struct duet_platform *p)
{
    struct duet__json origin = duet__json_member(at, "origin");
    const char *text; /* for readers */

    if (p->origin != NULL && !duet__json_present(&origin))
        return DUET_OK;
    return duet__json_string(&origin, &text);
}

/* Reads an object by its table, with its origin. */
static int read_object(const struct duet__json *at, const struct duet_platform *p,
                       const struct duet__field *fields, void *into)
{
    int error = duet__fields_read(at, fields, into);

    return error == DUET_OK ? check_origin(at, p) : error;
}

static int twice(const struct duet__json *at, const char *what, const char *name)
{
    const struct duet__json member = duet__json_member(at, "name");

    return duet__json_fail(&member, DUET_EPARSE, "%s %s is there twice", what, name);
}

static int read_arch(const struct duet__json *at, struct duet_platform *p, unsigned index)
{
    int error = duet__fields_read(at, duet__arch_fields, &p->archs[index]);

    for (unsigned i = 0; i < index && error == DUET_OK; i++)
        if (strcmp(p->archs[i].name, p->archs[index].name) == 0)
            error = twice(at, "architecture", p->archs[index].name);
    return error;
}

/* Finds what the member `key` names among `count` structs of this size that begin with a name. */
static int read_reference(const struct duet__json *at, const char *what, size_t room,
                          const void *structs, unsigned count, size_t size, unsigned *index)
{
    char name[DUET_NAME_MAX];
    int error = duet__json_name(at, name, room);

    if (error != DUET_OK)
        return error;
    for (*index = 0; *index < count; ++*index)
        if (strcmp((const char *)structs + *index * size, name) == 0)
            return DUET_OK;
    return duet__json_fail(at, DUET_EPARSE, "no %s is named %s", what, name);
}

/* Reads the name of an architecture that must be a CPU's (`cpu`) or must not. */
static int read_arch_name(const struct duet__json *parent, const struct duet_platform *p, bool cpu,
                          unsigned *index)
{
    struct duet__json at = duet__json_member(parent, "architecture");
    const struct duet_arch *arch;
    int error = read_reference(&at, "architecture", sizeof(arch->name), p->archs, p->arch_count,
                               sizeof(*arch), index);

    if (error != DUET_OK)
        return error;
    arch = &p->archs[*index];
    if ((strcmp(arch->backend, "cpu") == 0) != cpu)
        return duet__json_fail(&at, DUET_EPARSE, "%s has backend %s, expected %s", arch->name,
                               arch->backend, cpu ? "cpu" : "another than cpu");
    return DUET_OK;
}

static int read_socket(const struct duet__json *at, struct duet_platform *p, unsigned index)
{
    struct duet_platform_socket *socket = &p->sockets[index];
    int error = read_object(at, p, duet__socket_fields, socket);

    return error == DUET_OK ? read_arch_name(at, p, true, &socket->arch) : error;
}

/* Whether a kind of link has this name, those before `count` and of peers. */
static bool has_kind(const struct duet_platform *p, unsigned count, const char *name)
{
    for (unsigned i = 0; i < count; i++)
        if (strcmp(p->kinds[i].name, name) == 0)
            return true;
    for (unsigned i = 0; i < DUET_REACHES; i++)
        if (strcmp(p->peers[i].name, name) == 0)
            return true;
    return false;
}

static int check_kind_name(const struct duet__json *at, const struct duet_platform *p,
                           unsigned count, const char *name)
{
    struct duet__json member = duet__json_member(at, "name");

    if (strcmp(name, DUET__ALL_LINKS) == 0)
        return duet__json_fail(&member, DUET_EPARSE, "%s means all kinds of links: choose another",
                               name);
    return has_kind(p, count, name) ? twice(at, "link kind", name) : DUET_OK;
}

static int read_kind(const struct duet__json *at, struct duet_platform *p, unsigned index)
{
    int error = read_object(at, p, duet__link_fields, &p->kinds[index]);

    return error == DUET_OK ? check_kind_name(at, p, index, p->kinds[index].name) : error;
}

static int read_reach(const struct duet__json *parent, unsigned *reach)
{
    struct duet__json at = duet__json_member(parent, "reach");
    const char *text;
    int error = duet__json_string(&at, &text);

    if (error != DUET_OK)
        return error;
    for (*reach = 0; *reach < DUET_REACHES; ++*reach)
        if (strcmp(reaches[*reach], text) == 0)
            return DUET_OK;
    return duet__json_fail(&at, DUET_EPARSE, "\"%.60s\", expected switch, socket or remote", text);
}

static int read_peer(const struct duet__json *at, struct duet_platform *p, unsigned index)
{
    struct duet_platform_peer peer = {.name = ""};
    unsigned reach = 0;
    int error = read_object(at, p, duet__peer_fields, &peer);

    (void)index;
    if (error == DUET_OK)
        error = read_reach(at, &reach);
    if (error == DUET_OK && p->peers[reach].name[0] != '\0')
        error = duet__json_fail(at, DUET_EPARSE, "a second kind of this reach");
    if (error == DUET_OK)
        error = check_kind_name(at, p, p->kind_count, peer.name);
    if (error == DUET_OK)
        p->peers[reach] = peer;
    return error;
}

static int read_gpu(const struct duet__json *at, struct duet_platform *p, unsigned index)
{
    struct duet_platform_gpu *gpu = &p->gpus[index];
    int error = read_object(at, p, duet__gpu_fields, gpu);

    gpu->position = NOWHERE;
    return error == DUET_OK ? read_arch_name(at, p, false, &gpu->arch) : error;
}

/* The GPUs of a switch, each of which must exist and be on no other. */
static int read_switch_gpus(const struct duet__json *parent, struct duet_platform *p,
                            unsigned index)
{
    const struct duet_platform_link *kind = &p->kinds[p->switches[index].kind];
    struct duet__json at = duet__json_member(parent, "gpus");
    unsigned count = 0, device = 0;
    int error = duet__json_array(&at, 1, DUET__MAX_GPUS, &count);

    for (unsigned i = 0; i < count && error == DUET_OK; i++) {
        struct duet__json element = duet__json_element(&at, i);
        struct duet_platform_gpu *gpu;

        error = duet__json_unsigned(&element, 0, DUET__MAX_GPUS, &device);
        if (error != DUET_OK)
            return error;
        if (device >= p->gpu_count)
            return duet__json_fail(&element, DUET_EPARSE, "no GPU %u (there are %u, from 0)",
                                   device, p->gpu_count);
        gpu = &p->gpus[device];
        if (gpu->position != NOWHERE)
            return duet__json_fail(&element, DUET_EPARSE, "GPU %u is behind switch %u already",
                                   device, gpu->position);
        gpu->position = index;
        if (isnan(gpu->to_device.latency_s))
            gpu->to_device.latency_s = kind->to_device.latency_s;
        if (isnan(gpu->to_host.latency_s))
            gpu->to_host.latency_s = kind->to_host.latency_s;
    }
    return error;
}

static int read_switch(const struct duet__json *at, struct duet_platform *p, unsigned index)
{
    struct duet_platform_switch *sw = &p->switches[index];
    struct duet__json link = duet__json_member(at, "link");
    int error = read_object(at, p, duet__switch_fields, sw);

    if (error == DUET_OK)
        error = read_reference(&link, "link kind", DUET_KIND_MAX, p->kinds, p->kind_count,
                               sizeof(*p->kinds), &sw->kind);
    if (error != DUET_OK)
        return error;
    if (sw->socket >= p->socket_count) {
        struct duet__json member = duet__json_member(at, "socket");

        return duet__json_fail(&member, DUET_EPARSE, "no socket %u (there are %u, from 0)",
                               sw->socket, p->socket_count);
    }
    if (sw->to_device_Bps == 0)
        sw->to_device_Bps = p->kinds[sw->kind].to_device.bandwidth_Bps;
    if (sw->to_host_Bps == 0)
        sw->to_host_Bps = p->kinds[sw->kind].to_host.bandwidth_Bps;
    return read_switch_gpus(at, p, index);
}

/* The order of use: each GPU once. */
static int read_order(const struct duet__json *root, struct duet_platform *p)
{
    struct duet__json at = duet__json_member(root, "order");
    unsigned count = 0;
    bool *seen;
    int error;

    if (!duet__json_present(&at))
        return DUET_OK;
    error = duet__json_array(&at, p->gpu_count, p->gpu_count, &count);
    if (error != DUET_OK)
        return error;
    p->order = g_new0(unsigned, count + 1);
    seen = g_new0(bool, count + 1);
    for (unsigned i = 0; i < count && error == DUET_OK; i++) {
        struct duet__json element = duet__json_element(&at, i);

        error = duet__json_unsigned(&element, 0, count - 1, &p->order[i]);
        if (error == DUET_OK && seen[p->order[i]])
            error = duet__json_fail(&element, DUET_EPARSE, "GPU %u is there twice", p->order[i]);
        if (error == DUET_OK)
            seen[p->order[i]] = true;
    }
    g_free(seen);
    return error;
}

/* A list of the root: how long it may be, where its elements go, and who reads one. */
struct list {
    const char *key;
    unsigned least, most;
    size_t count, array; /* offsets of these members of struct duet_platform; the same: no array */
    size_t size;         /* of an element */
    int (*read)(const struct duet__json *at, struct duet_platform *p, unsigned index);
};

#define LIST(key, least, most, count, array, type, read)                                           \
    {                                                                                              \
        key, least, most, offsetof(struct duet_platform, count),                                   \
            offsetof(struct duet_platform, array), sizeof(struct type), read                       \
    }

/* Switches come after the GPUs and links that they name. */
static const struct list lists[] = {
    LIST("architectures", 1, DUET__MAX_ARCHS, arch_count, archs, duet_arch, read_arch),
    LIST("sockets", 1, DUET__MAX_SOCKETS, socket_count, sockets, duet_platform_socket, read_socket),
    LIST("links", 0, DUET__MAX_LINK_KINDS, kind_count, kinds, duet_platform_link, read_kind),
    {"peers", 0, DUET_REACHES, 0, 0, 0, read_peer},
    LIST("gpus", 0, DUET__MAX_GPUS, gpu_count, gpus, duet_platform_gpu, read_gpu),
    LIST("switches", 0, DUET__MAX_GPUS, switch_count, switches, duet_platform_switch, read_switch),
};

static int read_list(const struct duet__json *root, const struct list *list,
                     struct duet_platform *p)
{
    struct duet__json at = duet__json_member(root, list->key);
    unsigned count = 0;
    int error = DUET_OK;

    if (list->least > 0 || duet__json_present(&at))
        error = duet__json_array(&at, list->least, list->most, &count);
    if (error == DUET_OK && list->size > 0) {
        *(unsigned *)(void *)((char *)p + list->count) = count;
        *(void **)(void *)((char *)p + list->array) = g_malloc0_n(count + 1, list->size);
    }
    for (unsigned i = 0; i < count && error == DUET_OK; i++) {
        struct duet__json element = duet__json_element(&at, i);

        error = list->read(&element, p, i);
    }
    return error;
}

/* What can only be checked when all is read. */
static int check_whole(const struct duet__json *root, const struct duet_platform *p)
{
    struct duet__json sockets = duet__json_member(root, "sockets");
    struct duet__json gpus = duet__json_member(root, "gpus");
    unsigned cores = duet_platform_cores(p);

    if (cores > DUET__MAX_CORES)
        return duet__json_fail(&sockets, DUET_EPARSE, "%u cores, the most is %u", cores,
                               DUET__MAX_CORES);
    for (unsigned i = 0; i < p->gpu_count; i++) {
        if (p->gpus[i].position == NOWHERE) {
            struct duet__json gpu = duet__json_element(&gpus, i);

            return duet__json_fail(&gpu, DUET_EPARSE, "GPU %u is behind no switch", i);
        }
    }
    return DUET_OK;
}

/* An object of the root, which may be missing. */
static int read_part(const struct duet__json *root, const char *key, bool needed,
                     const struct duet__field *fields, struct duet_platform *p, void *into)
{
    struct duet__json at = duet__json_member(root, key);

    return needed || duet__json_present(&at) ? read_object(&at, p, fields, into) : DUET_OK;
}

/* A copy of a text; free with g_free. */
static int read_text(const struct duet__json *root, const char *key, char **copy)
{
    struct duet__json at = duet__json_member(root, key);
    const char *text = NULL;
    int error = duet__json_string(&at, &text);

    if (error == DUET_OK)
        *copy = g_strdup(text);
    return error;
}

int duet__read_head(const struct duet__json *root, const struct duet__field *fields,
                    struct duet_platform *p)
{
    struct duet__json at = duet__json_member(root, "schema");
    struct duet__json origin = duet__json_member(root, "origin");
    unsigned schema = 0;
    int error = duet__json_keys(root, NULL);

    if (error == DUET_OK) /* first: another schema has other keys */
        error = duet__json_unsigned(&at, 1, DUET__MAX_SCHEMA, &schema);
    if (error == DUET_OK)
        error = duet__fields_read(root, fields, p);
    g_clear_pointer(&p->origin, g_free);
    if (error == DUET_OK && duet__json_present(&origin))
        error = read_text(root, "origin", &p->origin);
    return error;
}

/* Kernel times are here, or in a file beside this one: a name, not a path. */
static int read_times(const struct duet__json *root, struct duet_platform *p, char **calibration)
{
    struct duet__json name = duet__json_member(root, "calibration");
    struct duet__json curves = duet__json_member(root, "curves");
    char file[NAME_MAX + 1];
    int error;

    if (duet__json_present(&curves) && duet__json_present(&name))
        return duet__json_fail(&name, DUET_EPARSE, "the kernel times are in this file, too");
    if (duet__json_present(&curves))
        return duet__read_curves(&curves, p);
    if (!duet__json_present(&name))
        return duet__json_fail(&curves, DUET_EPARSE,
                               "missing, expected kernel times here, or under calibration the name "
                               "of a file that has them");
    error = duet__json_name(&name, file, sizeof(file));
    if (error == DUET_OK)
        *calibration = g_strdup(file);
    return error;
}

int duet__read_description(struct duet_platform *p, const char *text, size_t length,
                           const char *path, char **calibration, struct duet_message *message)
{
    struct duet__json root;
    int error = duet__json_parse(text, length, path, message, &root);

    if (error != DUET_OK)
        return error;
    error = duet__read_head(&root, duet__root_fields, p);
    if (error == DUET_OK)
        error = read_text(&root, "description", &p->description);
    for (unsigned i = 0; i < G_N_ELEMENTS(lists) && error == DUET_OK; i++)
        error = read_list(&root, &lists[i], p);
    if (error == DUET_OK)
        error = check_whole(&root, p);
    if (error == DUET_OK)
        error = read_order(&root, p);
    if (error == DUET_OK)
        error = read_part(&root, "host", false, duet__host_fields, p, p);
    if (error == DUET_OK)
        error = read_part(&root, "costs", true, duet__cost_fields, p, &p->costs);
    if (error == DUET_OK)
        error = read_part(&root, "sharing", false, duet__sharing_fields, p, &p->sharing);
    if (error == DUET_OK)
        error = read_part(&root, "probe", false, duet__probe_fields, p, p);
    if (error == DUET_OK)
        error = read_times(&root, p, calibration);
    duet__json_close(&root);
    return error;
}
