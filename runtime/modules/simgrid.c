/* SPDX-License-Identifier: Apache-2.0 */
/* SimGrid's engine of networks, in its module: SimGrid is opened when it is asked for. */
#include "runtime/modules/module.h"

const struct network_engine *duet__network_simgrid(struct duet_message *message)
{
    const struct duet__simgrid_module *simgrid = duet__module_open("simgrid", message);
    return simgrid ? simgrid->engine(message) : NULL;
}
