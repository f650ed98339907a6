/* SPDX-License-Identifier: Apache-2.0 */
/* NVLink as NVML tells of it: machines as they are known, on a made-up NVML. */
#include <stdlib.h>
#include <string.h>

#include <glib/gstdio.h>

#include <glib.h>

#include "backends/cuda/nvml.h"

enum { GPUS = 8, NOT_FOUND = 6, NOT_SUPPORTED = 3, INVALID = 2 };

/* Ends of links that are no GPU of the machine. */
enum { SWITCH = -1, PROCESSOR = -2, DOWN = -3, HIDDEN = -4 };

struct nvml_device {
    unsigned links;
    int to[NVML_LINKS]; /* a GPU's number, or one of the above */
    unsigned speed_MBps, version, partition;
};

/* The GPUs of one test at a time: NVML's functions have no argument that could carry them. */
static struct nvml_device gpus[GPUS];
static unsigned gpu_count;

/* GPU g is at bus 10, 20, 30 ... */
static int by_address(const char *address, struct nvml_device **device)
{
    const char *colon = strchr(address, ':');
    unsigned long bus = colon ? strtoul(colon + 1, NULL, 16) : 0;
    if (bus % 0x10 || bus / 0x10 < 1 || bus / 0x10 > gpu_count)
        return NOT_FOUND;
    *device = &gpus[bus / 0x10 - 1];
    return NVML_SUCCESS;
}

static int link_state(struct nvml_device *device, unsigned link, unsigned *state)
{
    if (link >= device->links)
        return device->links ? INVALID : NOT_SUPPORTED;
    *state = device->to[link] != DOWN;
    return NVML_SUCCESS;
}

static int link_version(struct nvml_device *device, unsigned link, unsigned *version)
{
    g_assert_cmpuint(link, <, device->links);
    *version = device->version;
    return NVML_SUCCESS;
}

static int link_remote(struct nvml_device *device, unsigned link, struct nvml_pci *pci)
{
    g_assert_cmpuint(link, <, device->links);
    int to = device->to[link];
    pci->domain = 0;
    pci->bus = to >= 0 ? 0x10 * ((unsigned)to + 1) : 0xc0 + link % 4;
    pci->device = 0;
    (void)g_snprintf(pci->address, sizeof pci->address, "00000000:%02X:00.0", pci->bus);
    return NVML_SUCCESS;
}

static int link_remote_type(struct nvml_device *device, unsigned link, unsigned *type)
{
    int to = device->to[link];
    *type = to >= 0 ? 0 : to == SWITCH ? NVML_DEVICE_TYPE_SWITCH : 1;
    if (to == HIDDEN)
        *type = NVML_DEVICE_TYPE_UNKNOWN;
    return to == HIDDEN && link % 2 ? NOT_SUPPORTED : NVML_SUCCESS;
}

static int peer_status(struct nvml_device *one, struct nvml_device *other, unsigned what,
                       unsigned *status)
{
    g_assert_cmpuint(what, ==, NVML_P2P_CAPS_INDEX_NVLINK);
    *status = one->partition == other->partition ? NVML_P2P_STATUS_OK : 5;
    return NVML_SUCCESS;
}

static int fields(struct nvml_device *device, int count, struct nvml_field *field)
{
    g_assert_cmpint(count, ==, 1);
    g_assert_cmpuint(field->field, ==, 90);
    field->status = device->speed_MBps ? NVML_SUCCESS : NOT_SUPPORTED;
    field->type = NVML_VALUE_TYPE_UNSIGNED_INT;
    field->value.number = device->speed_MBps;
    return NVML_SUCCESS;
}

static const struct nvml all_of_it = {.by_address = by_address,
                                      .link_state = link_state,
                                      .link_version = link_version,
                                      .link_remote = link_remote,
                                      .link_remote_type = link_remote_type,
                                      .peer_status = peer_status,
                                      .fields = fields};

/* Begins with `count` GPUs without links. */
static void begin(unsigned count, unsigned speed_MBps, unsigned version)
{
    memset(gpus, 0, sizeof gpus);
    gpu_count = count;
    for (unsigned g = 0; g < count; g++) {
        gpus[g].speed_MBps = speed_MBps;
        gpus[g].version = version;
    }
}

static void add_links(unsigned gpu, unsigned count, int to)
{
    for (unsigned i = 0; i < count; i++)
        gpus[gpu].to[gpus[gpu].links++] = to;
}

/* Links of all pairs, each of which CUDA calls direct, as "pcie". End with g_free. */
static struct backend_link *find(const struct nvml *nvml)
{
    char addresses[GPUS][CUDA_ADDRESS];
    struct backend_link *links = g_new0(struct backend_link, (size_t)gpu_count * gpu_count);
    for (unsigned s = 0; s < gpu_count; s++) {
        (void)g_snprintf(addresses[s], CUDA_ADDRESS, "0000:%02X:00.0", 0x10 * (s + 1));
        for (unsigned d = 0; d < gpu_count; d++)
            if (s != d)
                links[s * gpu_count + d] = (struct backend_link){.direct = true, .kind = "pcie"};
    }
    g_assert_cmpint(duet__nvlink_find(nvml, addresses, gpu_count, links), ==, DUET_OK);
    return links;
}

static void is(const struct backend_link *links, unsigned source, unsigned destination,
               const char *kind, double bandwidth_Bps)
{
    const struct backend_link *link = &links[source * gpu_count + destination];
    g_assert_cmpstr(link->kind, ==, kind);
    g_assert_cmpfloat(link->bandwidth_Bps, ==, bandwidth_Bps);
    g_assert_true(link->direct);
}

/* Eight V100: a cube with one or two links an edge (the first four GPUs are shown here). */
static void test_dgx1(void)
{
    begin(8, 25781, 2);
    const struct {
        unsigned a, b, count;
    } edges[] = {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1}, {1, 5, 2}};
    for (unsigned e = 0; e < G_N_ELEMENTS(edges); e++) {
        add_links(edges[e].a, edges[e].count, (int)edges[e].b);
        add_links(edges[e].b, edges[e].count, (int)edges[e].a);
    }
    g_autofree struct backend_link *links = find(&all_of_it);
    for (unsigned e = 0; e < G_N_ELEMENTS(edges); e++) {
        is(links, edges[e].a, edges[e].b, "nvlink", edges[e].count * 25781e6);
        is(links, edges[e].b, edges[e].a, "nvlink", edges[e].count * 25781e6);
    }
    is(links, 0, 7, "pcie", 0);
    is(links, 2, 3, "pcie", 0);
}

/* H100s and their like: all links go to switches. One has lost six of its eighteen. */
static void test_switches(void)
{
    begin(4, 26562, 6);
    for (unsigned g = 0; g < 4; g++)
        add_links(g, 18, SWITCH);
    for (unsigned l = 0; l < 6; l++)
        gpus[3].to[3 * l] = DOWN;
    g_autofree struct backend_link *links = find(&all_of_it);
    is(links, 0, 1, "nvswitch", 18 * 26562e6);
    is(links, 2, 3, "nvswitch", 12 * 26562e6);
    is(links, 3, 0, "nvswitch", 12 * 26562e6);
    gpus[3].partition = 1;
    g_autofree struct backend_link *divided = find(&all_of_it);
    is(divided, 0, 1, "nvswitch", 18 * 26562e6);
    is(divided, 2, 3, "pcie", 0);
}

/* In a virtual machine that does not see the switches, what is at the links' ends is not told. */
static void test_hidden_switches(void)
{
    begin(3, 26562, 6);
    add_links(0, 18, HIDDEN);
    add_links(1, 18, HIDDEN);
    g_autofree struct backend_link *links = find(&all_of_it);
    is(links, 0, 1, "nvswitch", 18 * 26562e6);
    is(links, 1, 2, "pcie", 0);
}

/* Drivers that know less: neither speeds nor what is at a link's end. */
static void test_old_driver(void)
{
    struct nvml old = all_of_it;
    old.fields = NULL;
    old.link_remote_type = NULL;
    old.peer_status = NULL;
    begin(3, 0, 1);
    add_links(0, 4, 1);
    add_links(1, 4, 0);
    g_autofree struct backend_link *p100 = find(&old);
    is(p100, 0, 1, "nvlink", 4 * 20e9);
    is(p100, 0, 2, "pcie", 0);
    begin(3, 0, 2);
    add_links(0, 6, SWITCH);
    add_links(1, 6, SWITCH);
    g_autofree struct backend_link *v100 = find(&old);
    is(v100, 1, 0, "nvswitch", 6 * 25e9);
    is(v100, 1, 2, "pcie", 0);
    /* the field is known, but not of this device */
    g_autofree struct backend_link *same = find(&all_of_it);
    is(same, 1, 0, "nvswitch", 6 * 25e9);
}

/* Links to processors (POWER9) join no GPUs; a GPU that NVML does not know, and pairs that CUDA
 * does not call direct, stay as they are. */
static void test_others(void)
{
    char addresses[2][CUDA_ADDRESS] = {"0000:10:00.0", "0000:20:00.0"};
    struct backend_link links[4] = {{.direct = false}};
    begin(2, 25781, 2);
    add_links(0, 3, PROCESSOR);
    add_links(1, 3, PROCESSOR);
    g_autofree struct backend_link *power = find(&all_of_it);
    is(power, 0, 1, "pcie", 0);
    add_links(0, 3, 1);
    add_links(1, 3, 0);
    g_assert_cmpint(duet__nvlink_find(&all_of_it, addresses, 2, links), ==, DUET_OK);
    g_assert_cmpstr(links[1].kind, ==, "");
    g_assert_false(links[1].direct);
    links[1].direct = links[2].direct = true;
    strcpy(addresses[1], "0000:77:00.0");
    g_assert_cmpint(duet__nvlink_find(&all_of_it, addresses, 2, links), ==, DUET_OK);
    g_assert_cmpstr(links[1].kind, ==, "");
    g_assert_cmpint(duet__nvlink_find(&all_of_it, addresses, 0, links), ==, DUET_OK);
}

/* Compiles a library in this folder. Its path; free it with g_free. */
static char *make_library(const char *folder, const char *source)
{
    g_autofree char *from = g_build_filename(folder, "nvml.c", NULL);
    char *to = g_build_filename(folder, "libnvml.so", NULL);
    const char *compiler = g_getenv("DUET_CC");
    g_autofree char *command =
        g_strdup_printf("'%s' -shared -fPIC -o '%s' '%s'", compiler ? compiler : "cc", to, from);
    int status = -1;
    g_assert_true(g_file_set_contents(from, source, -1, NULL));
    g_assert_true(g_spawn_command_line_sync(command, NULL, NULL, &status, NULL));
    g_assert_cmpint(status, ==, 0);
    (void)g_remove(from);
    return to;
}

/* Every function is found by its name, and a missing one is noticed. */
static void test_open(void)
{
    static const char *const names[] = {"nvmlInit_v2",
                                        "nvmlDeviceGetHandleByPciBusId_v2",
                                        "nvmlDeviceGetNvLinkState",
                                        "nvmlDeviceGetNvLinkVersion",
                                        "nvmlDeviceGetNvLinkRemotePciInfo_v2",
                                        "nvmlShutdown",
                                        "nvmlDeviceGetNvLinkRemoteDeviceType",
                                        "nvmlDeviceGetP2PStatus",
                                        "nvmlDeviceGetFieldValues"};
    enum { NEEDED = 6 };
    struct nvml nvml;
    g_assert_false(duet__nvml_open(&nvml, "libno-such-library.so.1"));
    for (unsigned there = NEEDED - 1; there <= G_N_ELEMENTS(names); there++) {
        g_autofree char *folder = g_dir_make_tmp("duet-nvml-XXXXXX", NULL);
        g_autoptr(GString) source = g_string_new("");
        for (unsigned i = 0; i < there; i++)
            g_string_append_printf(source, "int %s(void) { return %u; }\n", names[i],
                                   i ? 100 + i : 0);
        g_autofree char *library = make_library(folder, source->str);
        g_assert_cmpint(duet__nvml_open(&nvml, library), ==, there >= NEEDED);
        if (there >= NEEDED) {
            g_assert_cmpint(nvml.by_address("", NULL), ==, 101);
            g_assert_cmpint(nvml.link_state(NULL, 0, NULL), ==, 102);
            g_assert_cmpint(nvml.link_version(NULL, 0, NULL), ==, 103);
            g_assert_cmpint(nvml.link_remote(NULL, 0, NULL), ==, 104);
            g_assert_cmpint(nvml.shutdown(), ==, 105);
            g_assert_cmpint(nvml.link_remote_type != NULL, ==, there > 6);
            g_assert_cmpint(nvml.peer_status != NULL, ==, there > 7);
            g_assert_cmpint(nvml.fields != NULL, ==, there > 8);
            if (there > 8)
                g_assert_cmpint(nvml.fields(NULL, 0, NULL), ==, 108);
            duet__nvml_close(&nvml);
        }
        g_assert_cmpint(g_remove(library), ==, 0);
        g_assert_cmpint(g_remove(folder), ==, 0);
    }
}

/* The sizes of nvml.h's structs are those that NVML writes. */
static void test_layout(void)
{
    g_assert_cmpuint(sizeof(struct nvml_pci), ==, 16 + 5 * 4 + 32);
    g_assert_cmpuint(sizeof(struct nvml_field), ==, 40);
    g_assert_cmpuint(offsetof(struct nvml_field, value), ==, 32);
}

TEST_MAIN(test_dgx1, test_switches, test_hidden_switches, test_old_driver, test_others, test_open,
          test_layout)
