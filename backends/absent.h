/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots of a backend that is not in this build. It has a name, a description and `count` of its
 * own, which says why there are no devices; the other slots are then never called.
 */
#ifndef DUET_BACKENDS_ABSENT_H
#define DUET_BACKENDS_ABSENT_H

#include "backends/backend.h"

int duet__absent_describe(unsigned index, struct backend_info *info, struct duet_message *message);
int duet__absent_attach(void **shared, const struct backend_setup *setup,
                        struct duet_message *message);
void duet__absent_detach(void *shared);
int duet__absent_open(struct backend_device **out, void *shared,
                      const struct backend_config *config, struct duet_message *message);
void duet__absent_close(struct backend_device *device);
void *duet__absent_base(const struct backend_device *device);
int duet__absent_launch(struct backend_device *device, const struct backend_kernel *kernel);
int duet__absent_copy(struct backend_device *device, const struct backend_copy *copy);
size_t duet__absent_poll(struct backend_device *device, struct backend_completion *out, size_t max);
bool duet__absent_lost(const struct backend_device *device);
double duet__absent_next_s(const struct backend_device *device);

/* Designated initialisers for struct duet__backend. */
#define DUET__ABSENT_SLOTS                                                                         \
    .describe = duet__absent_describe, .attach = duet__absent_attach,                              \
    .detach = duet__absent_detach, .open = duet__absent_open, .close = duet__absent_close,         \
    .base = duet__absent_base, .launch = duet__absent_launch, .copy = duet__absent_copy,           \
    .poll = duet__absent_poll, .lost = duet__absent_lost, .next_s = duet__absent_next_s

#endif
