/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of GPUs by NVLink, direct or through switches, and their speeds, by NVML. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dlfcn.h>

#include "backends/cuda/nvml.h"
#include "backends/cuda/internal.h"

/*
 * Bytes per second of one link, one way, of the first version (NVIDIA's white paper on the P100: 4
 * links, 160 GB/s in both directions), and at least of the others (V100: 6 links, 300 GB/s; A100:
 * 12, 600; H100: 18, 900; the fifth version has twice that). NVML's version number is not exact:
 * some drivers call an H100's links the fifth.
 */
static const double FIRST_BPS = 20e9, LATER_BPS = 25e9;

struct gpu {
    struct nvml_device *device; /* NULL: unknown to NVML */
    unsigned domain, bus, slot;
    double link_Bps;
    unsigned to_switches; /* active links to switches */
};

/* Parses "0000:3B:00.0". Returns false for other texts. */
static bool parse_address(const char *address, struct gpu *gpu)
{
    char *end;
    gpu->domain = (unsigned)strtoul(address, &end, 16);
    if (end == address || *end != ':')
        return false;
    gpu->bus = (unsigned)strtoul(end + 1, &end, 16);
    if (*end != ':')
        return false;
    gpu->slot = (unsigned)strtoul(end + 1, &end, 16);
    return *end == '.';
}

static void identify(const struct nvml *nvml, const char *address, struct gpu *gpu)
{
    if (!parse_address(address, gpu) || nvml->by_address(address, &gpu->device) != NVML_SUCCESS)
        gpu->device = NULL;
}

/* Returns the speed of a device's links by the driver, or else by their version. */
static double link_Bps(const struct nvml *nvml, const struct gpu *gpu, unsigned link)
{
    struct nvml_field field = {.field = NVML_FI_DEV_NVLINK_SPEED_COMMON};
    unsigned version;
    if (nvml->fields && nvml->fields(gpu->device, 1, &field) == NVML_SUCCESS &&
        field.status == NVML_SUCCESS && field.type == NVML_VALUE_TYPE_UNSIGNED_INT &&
        field.value.number > 0)
        return field.value.number * 1e6;
    if (nvml->link_version(gpu->device, link, &version) != NVML_SUCCESS || version <= 1)
        return FIRST_BPS;
    return LATER_BPS;
}

static bool is_active(const struct nvml *nvml, const struct gpu *gpu, unsigned link)
{
    unsigned state;
    return nvml->link_state(gpu->device, link, &state) == NVML_SUCCESS &&
           state == NVML_FEATURE_ENABLED;
}

/*
 * True if a link ends at a switch. If the driver does not say, as in a virtual machine that sees
 * GPUs and no switches, everything that is no GPU of NVML counts as a switch.
 */
static bool ends_at_switch(const struct nvml *nvml, const struct gpu *gpu, unsigned link,
                           const struct nvml_pci *remote)
{
    struct nvml_device *device;
    unsigned type = NVML_DEVICE_TYPE_UNKNOWN;
    if (nvml->link_remote_type && nvml->link_remote_type(gpu->device, link, &type) != NVML_SUCCESS)
        type = NVML_DEVICE_TYPE_UNKNOWN;
    if (type != NVML_DEVICE_TYPE_UNKNOWN)
        return type == NVML_DEVICE_TYPE_SWITCH;
    return nvml->by_address(remote->address, &device) != NVML_SUCCESS;
}

/* Counts one link of gpus[number]: to a switch, or in to_gpus[the GPU at its other end]. */
static void count_link(const struct nvml *nvml, struct gpu *gpus, unsigned count, unsigned number,
                       unsigned link, unsigned *to_gpus)
{
    struct gpu *gpu = &gpus[number];
    struct nvml_pci remote;
    memset(&remote, 0, sizeof remote);
    if (!is_active(nvml, gpu, link))
        return;
    if (gpu->link_Bps <= 0)
        gpu->link_Bps = link_Bps(nvml, gpu, link);
    if (nvml->link_remote(gpu->device, link, &remote) != NVML_SUCCESS)
        return;
    remote.address[sizeof remote.address - 1] = '\0';
    for (unsigned other = 0; other < count; other++) {
        if (other != number && gpus[other].domain == remote.domain &&
            gpus[other].bus == remote.bus && gpus[other].slot == remote.device) {
            to_gpus[other]++;
            return;
        }
    }
    gpu->to_switches += ends_at_switch(nvml, gpu, link, &remote);
}

/* False for GPUs in different partitions of the switches, which do not reach each other. */
static bool may_reach(const struct nvml *nvml, const struct gpu *one, const struct gpu *other)
{
    unsigned status = NVML_P2P_STATUS_OK;
    if (!nvml->peer_status ||
        nvml->peer_status(one->device, other->device, NVML_P2P_CAPS_INDEX_NVLINK, &status) !=
            NVML_SUCCESS)
        return true;
    return status == NVML_P2P_STATUS_OK;
}

static void join_gpus(const struct nvml *nvml, const struct gpu *from, const struct gpu *to,
                      unsigned between, struct backend_link *link)
{
    double out = from->to_switches * from->link_Bps, in = to->to_switches * to->link_Bps;
    const char *kind = NULL;
    if (between > 0) {
        kind = "nvlink";
        link->bandwidth_Bps = between * from->link_Bps;
    } else if (out > 0 && in > 0 && may_reach(nvml, from, to)) {
        kind = "nvswitch";
        link->bandwidth_Bps = out < in ? out : in;
    }
    if (kind)
        (void)snprintf(link->kind, sizeof link->kind, "%s", kind);
}

int duet__nvlink_find(const struct nvml *nvml, char (*addresses)[CUDA_ADDRESS], unsigned count,
                      struct backend_link *links)
{
    struct gpu *gpus = calloc(count ? count : 1, sizeof *gpus);
    unsigned *between = calloc(count ? (size_t)count * count : 1, sizeof *between);
    if (!gpus || !between) {
        free(gpus);
        free(between);
        return DUET_ENOMEM;
    }
    for (unsigned g = 0; g < count; g++)
        identify(nvml, addresses[g], &gpus[g]);
    for (unsigned g = 0; g < count; g++)
        for (unsigned link = 0; link < NVML_LINKS && gpus[g].device; link++)
            count_link(nvml, gpus, count, g, link, &between[(size_t)g * count]);
    for (size_t i = 0; i < (size_t)count * count; i++)
        if (links[i].direct && gpus[i / count].device && gpus[i % count].device)
            join_gpus(nvml, &gpus[i / count], &gpus[i % count], between[i], &links[i]);
    free(gpus);
    free(between);
    return DUET_OK;
}

/* ------------------------------------------------------------------------------------------- */
/* Opening NVML. */

/* Name of a function, and offset of its pointer in struct nvml. */
struct entry {
    const char *name;
    size_t offset;
    bool needed;
};

static const struct entry entries[] = {
    {"nvmlInit_v2", offsetof(struct nvml, init), true},
    {"nvmlShutdown", offsetof(struct nvml, shutdown), true},
    {"nvmlDeviceGetHandleByPciBusId_v2", offsetof(struct nvml, by_address), true},
    {"nvmlDeviceGetNvLinkState", offsetof(struct nvml, link_state), true},
    {"nvmlDeviceGetNvLinkVersion", offsetof(struct nvml, link_version), true},
    {"nvmlDeviceGetNvLinkRemotePciInfo_v2", offsetof(struct nvml, link_remote), true},
    {"nvmlDeviceGetNvLinkRemoteDeviceType", offsetof(struct nvml, link_remote_type), false},
    {"nvmlDeviceGetP2PStatus", offsetof(struct nvml, peer_status), false},
    {"nvmlDeviceGetFieldValues", offsetof(struct nvml, fields), false},
};

/*
 * Finds all functions. POSIX says that a function's address fits a pointer to data, which C does
 * not.
 */
static bool find_functions(struct nvml *nvml)
{
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        void *function = dlsym(nvml->library, entries[i].name);
        if (!function && entries[i].needed)
            return false;
        memcpy((char *)nvml + entries[i].offset, &function, sizeof function);
    }
    return true;
}

bool duet__nvml_open(struct nvml *nvml, const char *library)
{
    *nvml = (struct nvml){.library = dlopen(library, RTLD_NOW | RTLD_LOCAL)};
    if (!nvml->library)
        return false;
    if (find_functions(nvml) && nvml->init() == NVML_SUCCESS)
        return true;
    (void)dlclose(nvml->library);
    return false;
}

void duet__nvml_close(struct nvml *nvml)
{
    (void)nvml->shutdown();
    (void)dlclose(nvml->library);
}

/* ------------------------------------------------------------------------------------------- */
/* Connections between NVIDIA GPUs, by CUDA and, where it is installed, NVML. */

static int fail_links(struct duet_message *message, const struct failure *failure)
{
    char text[FAILURE_TEXT];
    return duet_fail(message, duet__cuda_status(failure->error, DUET_EIO),
                     "how GPUs are connected: %s", duet__cuda_text(text, failure));
}

/*
 * Asks CUDA for access: the destination makes a copy between two devices, and needs access to the
 * source.
 */
static int ask_cuda(unsigned source, unsigned destination, struct backend_link *link,
                    struct duet_message *message)
{
    struct failure failure = {0};
    int access = 0;
    if (duet__cuda_failed(&failure, "cudaDeviceCanAccessPeer",
                          cudaDeviceCanAccessPeer(&access, (int)destination, (int)source)))
        return fail_links(message, &failure);
    link->direct = access != 0;
    (void)snprintf(link->kind, sizeof link->kind, "pcie");
    return DUET_OK;
}

static int ask_nvml(unsigned count, struct backend_link *links, struct duet_message *message)
{
    struct nvml nvml;
    char(*addresses)[CUDA_ADDRESS] = calloc(count, sizeof *addresses);
    if (!addresses)
        return duet_fail(message, DUET_ENOMEM, "how GPUs are connected: no memory left");
    struct failure failure = {0};
    int error = DUET_OK;
    for (unsigned g = 0; g < count && !error; g++)
        if (duet__cuda_failed(&failure, "cudaDeviceGetPCIBusId",
                              cudaDeviceGetPCIBusId(addresses[g], CUDA_ADDRESS, (int)g)))
            error = fail_links(message, &failure);
    if (!error && duet__nvml_open(&nvml, "libnvidia-ml.so.1")) {
        error = duet__nvlink_find(&nvml, addresses, count, links);
        if (error)
            (void)duet_fail(message, error, "how GPUs are connected: no memory left");
        duet__nvml_close(&nvml);
    }
    free(addresses);
    return error;
}

int duet__cuda_links(unsigned count, struct backend_link *links, struct duet_message *message)
{
    bool direct = false;
    for (unsigned s = 0; s < count; s++) {
        for (unsigned d = 0; d < count; d++) {
            struct backend_link *link = &links[(size_t)s * count + d];
            int error = s == d ? DUET_OK : ask_cuda(s, d, link, message);
            if (error)
                return error;
            direct = direct || link->direct;
        }
    }
    return direct ? ask_nvml(count, links, message) : DUET_OK;
}
