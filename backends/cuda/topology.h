/* SPDX-License-Identifier: Apache-2.0 */
/* How NVIDIA GPUs are connected with each other. */
#ifndef DUET_CUDA_TOPOLOGY_H
#define DUET_CUDA_TOPOLOGY_H

#include "backends/backend.h"

/*
 * The backend's slot `links`: direct where CUDA gives access to peers; NVLink where NVML knows of
 * some, else "pcie". DUET_EIO of calls of CUDA, DUET_ENOMEM.
 */
int duet__cuda_links(unsigned count, struct backend_link *links, struct duet_message *message);

#endif
