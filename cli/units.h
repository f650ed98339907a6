/* SPDX-License-Identifier: Apache-2.0 */
/* Moved: include "lib/units.h" instead. */
#include "lib/units.h"
