/* SPDX-License-Identifier: Apache-2.0 */
/* Connections between NVIDIA GPUs. */
#ifndef DUET_CUDA_TOPOLOGY_H
#define DUET_CUDA_TOPOLOGY_H

#include "backends/backend.h"

/*
 * The backend's slot `links`: direct where CUDA gives access to peers; NVLink where NVML knows of
 * it, else "pcie". DUET_EIO for calls of CUDA, DUET_ENOMEM.
 */
int duet__cuda_links(unsigned count, struct backend_link *links, struct duet_message *message);

#endif
