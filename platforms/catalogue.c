/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the catalogue of devices (README.md documents its keys). */
#include "platforms/catalogue.h"

#include <string.h>

#include "platforms/internal.h"

#define AT(type, member) .offset = offsetof(struct type, member)
#define RANGE(from, to) .least = (from), .most = (to)

#define NUMBER(type, member, from, to) #member, DUET__NUMBER, AT(type, member), RANGE(from, to)
#define TEXT(type, member) #member, DUET__COPY, AT(type, member)
#define COUNT(member, to)                                                                          \
#member, DUET__UNSIGNED, DUET__OPTIONAL, AT(duet__device, member), RANGE(1, to)
#define BYTES(member)                                                                              \
#member, DUET__INTEGER, DUET__OPTIONAL, AT(duet__device, member), RANGE(1, 0x1p50)
#define RATE(member) NUMBER(duet__device, member, 1e6, 1e18)
#define NAME(type, member)                                                                         \
#member, DUET__NAME, AT(type, member), .room = sizeof(((struct type *)NULL)->member)

static const struct duet__field device_fields[] = {
    {NAME(duet__device, name)},
    {TEXT(duet__device, title)},
    {NAME(duet__device, backend)},
    {"year", DUET__UNSIGNED, AT(duet__device, year), RANGE(1990, 2100)},
    {COUNT(cores, DUET__MAX_SOCKET_CORES)},
    {RATE(clock_Hz), .when = DUET__OPTIONAL},
    {NUMBER(duet__device, flops_per_cycle, 1, 1024), .when = DUET__OPTIONAL},
    {RATE(d_flops), .when = DUET__OPTIONAL},
    {RATE(s_flops), .when = DUET__OPTIONAL},
    {RATE(d_matrix_flops), .when = DUET__OPTIONAL},
    {RATE(s_matrix_flops), .when = DUET__OPTIONAL},
    {NUMBER(duet__device, d_ratio, 0.01, 10), .when = DUET__OPTIONAL},
    {NUMBER(duet__device, s_ratio, 0.01, 10), .when = DUET__OPTIONAL},
    {BYTES(cache_bytes)},
    {BYTES(memory_bytes)},
    {RATE(memory_Bps)},
    {"pcie", DUET__UNSIGNED, AT(duet__device, pcie), RANGE(1, 6)},
    {RATE(gpu_link_Bps), .when = DUET__OPTIONAL},
    {"no_peer", DUET__BOOLEAN, DUET__OPTIONAL, AT(duet__device, no_peer)},
    {TEXT(duet__device, fabric), .when = DUET__OPTIONAL},
    {COUNT(links, 1024)},
    {RATE(link_Bps), .when = DUET__OPTIONAL},
    {"one_each", DUET__BOOLEAN, DUET__OPTIONAL, AT(duet__device, one_each)},
    {COUNT(die_links, 1024)},
    {TEXT(duet__device, origin)},
    {TEXT(duet__device, unconfirmed), .when = DUET__OPTIONAL},
    {NULL},
};

static const char *const kinds[] = {"cpu", "gpu", NULL};

#define FACTOR(member) NUMBER(duet__kernel_shape, member, -1e3, 1e3), .when = DUET__OPTIONAL

static const struct duet__field shape_fields[] = {
    {NAME(duet__kernel_shape, kernel)},
    {"on", DUET__CHOICE, AT(duet__kernel_shape, on_gpu), .choices = kinds},
    {NUMBER(duet__kernel_shape, share, 1e-6, 1)},
    {NUMBER(duet__kernel_shape, half_s, 0, 1), .when = DUET__OPTIONAL},
    {FACTOR(b3)},
    {FACTOR(b2)},
    {FACTOR(b1)},
    {NUMBER(duet__kernel_shape, tiles, 0, 1e3), .when = DUET__OPTIONAL},
    {NUMBER(duet__kernel_shape, elements, 0, 1e3), .when = DUET__OPTIONAL},
    {"rounds", DUET__BOOLEAN, DUET__OPTIONAL, AT(duet__kernel_shape, rounds)},
    {.key = "origin", .kind = DUET__CUSTOM}, /* a text for readers of the file */
    {NULL},
};

#define LIST(name, count, array, type, table)                                                      \
    name, offsetof(struct duet__catalogue, count), offsetof(struct duet__catalogue, array),        \
        sizeof(struct type), 1, DUET__MAX_CURVES, .fields = (table)

static const struct duet__list devices = {
    LIST("device", device_count, devices, duet__device, device_fields)};
static const struct duet__list shapes = {
    LIST("kernel", shape_count, shapes, duet__kernel_shape, shape_fields)};

#define RULE(member, from, to)                                                                     \
#member, DUET__NUMBER, AT(duet__catalogue, rules.member), RANGE(from, to)

static const struct duet__field rule_fields[] = {
    {RULE(pcie_share, 0.01, 1)},
    {RULE(fabric_share, 0.01, 1)},
    {RULE(copy_latency_s, 0, 1)},
    {RULE(peer_latency_s, 0, 1)},
    {RULE(peer_socket_share, 0.01, 1)},
    {RULE(peer_remote_share, 0.01, 1)},
    {RULE(gpu_start_s, 0, 1)},
    {"origin", DUET__COPY, AT(duet__catalogue, rules.origin)},
    {NULL},
};

static const struct duet__field catalogue_fields[] = {
    {.key = "schema", .kind = DUET__CUSTOM},
    {"rules", DUET__OBJECT, .fields = rule_fields},
    {"devices", DUET__LIST, .list = &devices},
    {"kernels", DUET__LIST, .list = &shapes},
    {NULL},
};

int duet__catalogue_read(struct duet__catalogue *out, const char *text, size_t length,
                         const char *path, struct duet_message *message)
{
    struct duet__json root;
    int error;
    memset(out, 0, sizeof(*out));
    error = duet__json_parse(text, length, path, message, &root);
    if (!error)
        error = duet__fields_read(&root, catalogue_fields, out);
    duet__json_close(&root);
    return error;
}

int duet__catalogue_load(struct duet__catalogue *out, struct duet_message *message)
{
    g_auto(GStrv) directories = duet__platform_directories();
    g_autofree char *text = NULL;
    size_t length = 0;
    memset(out, 0, sizeof(*out));
    for (char **directory = directories; *directory != NULL; directory++) {
        g_autofree char *path = g_build_filename(*directory, "devices", "catalogue.json", NULL);
        int error;
        if (!g_file_test(path, G_FILE_TEST_IS_REGULAR))
            continue;
        error = duet__read_file(path, &text, &length, message);
        if (!error)
            error = duet__catalogue_read(out, text, length, path, message);
        out->path = g_steal_pointer(&path);
        return error;
    }
    return duet_fail(message, DUET_ENOTFOUND,
                     "devices/catalogue.json is not where the built-in platforms are");
}

void duet__catalogue_fini(struct duet__catalogue *catalogue)
{
    for (unsigned i = 0; i < catalogue->device_count; i++) {
        g_free(catalogue->devices[i].title);
        g_free(catalogue->devices[i].origin);
        g_free(catalogue->devices[i].unconfirmed);
        g_free(catalogue->devices[i].fabric);
    }
    g_free(catalogue->devices);
    g_free(catalogue->shapes);
    g_free(catalogue->rules.origin);
    g_free(catalogue->path);
    memset(catalogue, 0, sizeof(*catalogue));
}
