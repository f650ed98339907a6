/* SPDX-License-Identifier: Apache-2.0 */
/* Connections between NVIDIA GPUs, by CUDA and, where it is installed, NVML. */
#include "backends/cuda/topology.h"

#include <stdio.h>
#include <stdlib.h>

#include "backends/cuda/errors.h"
#include "backends/cuda/nvml.h"

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
