/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of the machine at hand without opening a runtime. */
#ifndef DUET_WORLD_HERE_H
#define DUET_WORLD_HERE_H

/* Cores that this process may use: at least 1. */
unsigned duet__here_cores(void);

#endif
