/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for SimGrid's engine of networks where duet is built without SimGrid. */
#include "sim/network.h"

const struct network_engine *duet__network_simgrid(struct duet_message *message)
{
    (void)duet_fail(message, DUET_EABSENT,
                    "this duet was built without SimGrid, which networks of files and "
                    "the network engine simgrid need: install libsimgrid-dev and build duet again");
    return NULL;
}
