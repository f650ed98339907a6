/* SPDX-License-Identifier: Apache-2.0 */
/* Being written. */
#include "backends/backend.h"

const struct duet_backend duet__backend_emulated = {.name = "emulated"};
