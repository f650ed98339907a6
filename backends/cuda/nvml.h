/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of NVML, the library that comes with NVIDIA's driver, that tells which GPUs are joined
 * by NVLink. It is opened when it is needed, and declared here because its header is not part of
 * every CUDA toolkit. Names, layouts and constants are those of nvml.h, whose ABI is versioned by
 * function names.
 */
#ifndef DUET_CUDA_NVML_H
#define DUET_CUDA_NVML_H

#include <stdbool.h>

#include "backends/backend.h"

enum {
    NVML_SUCCESS = 0,
    NVML_FEATURE_ENABLED = 1,             /* nvmlEnableState_t */
    NVML_DEVICE_TYPE_SWITCH = 2,          /* nvmlIntNvLinkDeviceType_t */
    NVML_DEVICE_TYPE_UNKNOWN = 255,       /* nvmlIntNvLinkDeviceType_t */
    NVML_P2P_CAPS_INDEX_NVLINK = 2,       /* nvmlGpuP2PCapsIndex_t */
    NVML_P2P_STATUS_OK = 0,               /* nvmlGpuP2PStatus_t */
    NVML_FI_DEV_NVLINK_SPEED_COMMON = 90, /* field: MB/s of a link, one way */
    NVML_VALUE_TYPE_UNSIGNED_INT = 1,     /* nvmlValueType_t */
    NVML_LINKS = 36, /* most links of a device: 18 until now, others are refused */
};

struct nvml_device; /* nvmlDevice_t points to it */

/* nvmlPciInfo_t */
struct nvml_pci {
    char legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char address[32];
};

/* nvmlFieldValue_t */
struct nvml_field {
    unsigned field, scope;
    long long timestamp, latency_us;
    unsigned type;
    int status;
    union {
        unsigned number;
        unsigned long long space;
    } value;
};

/* Functions of NVML, without "nvmlDevice" and version. Those marked "may be NULL" are optional. */
struct nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    int (*by_address)(const char *address, struct nvml_device **device);
    int (*link_state)(struct nvml_device *device, unsigned link, unsigned *state);
    int (*link_version)(struct nvml_device *device, unsigned link, unsigned *version);
    int (*link_remote)(struct nvml_device *device, unsigned link, struct nvml_pci *pci);
    int (*link_remote_type)(struct nvml_device *device, unsigned link,
                            unsigned *type); /* may be NULL */
    int (*peer_status)(struct nvml_device *one, struct nvml_device *other, unsigned what,
                       unsigned *status); /* may be NULL */
    int (*fields)(struct nvml_device *device, int count,
                  struct nvml_field *fields); /* may be NULL */
};

enum { CUDA_ADDRESS = 20 }; /* bytes of a PCI address */

/*
 * Opens and starts NVML ("libnvidia-ml.so.1"). Returns false, with nothing to close, if there is
 * none.
 */
bool duet__nvml_open(struct nvml *nvml, const char *library);
void duet__nvml_close(struct nvml *nvml);

/*
 * Adds NVLink to the direct links between `count` devices of these PCI addresses. A pair unknown to
 * NVML stays unchanged. DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__nvlink_find(const struct nvml *nvml, char (*addresses)[CUDA_ADDRESS],
                                      unsigned count, struct backend_link *links);

/* ------------------------------------------------------------------------------------------- */
/* Connections between NVIDIA GPUs. */

/*
 * The backend's slot `links`: direct where CUDA gives access to peers; NVLink where NVML knows of
 * it, else "pcie". DUET_EIO for calls of CUDA, DUET_ENOMEM.
 */
int duet__cuda_links(unsigned count, struct backend_link *links, struct duet_message *message);

#endif
