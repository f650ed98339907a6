/* SPDX-License-Identifier: Apache-2.0 */
/* The machine at hand, for the command. */
#include "world/here.h"

#include "real/real.h"

unsigned duet__here_cores(void)
{
    return duet__real_cores();
}
