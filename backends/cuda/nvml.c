/* SPDX-License-Identifier: Apache-2.0 */
/* Opening NVML. */
#include "backends/cuda/nvml.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

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
