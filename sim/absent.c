/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for the simulated engine where duet is built without SimGrid. */
#include "sim/sim.h"

int duet__sim_new(void **out, const struct duet_machine *machine, const struct sim_options *options,
                  struct duet_message *message)
{
    *out = NULL;
    return duet_fail(message, DUET_EABSENT,
                     "this duet was built without SimGrid and cannot simulate: install "
                     "libsimgrid-dev and build again");
}

const struct duet__engine_ops *duet__sim_ops(void)
{
    return NULL;
}

const struct duet__transport *duet__sim_transport(void)
{
    return NULL;
}

void duet__sim_attach(void *engine, struct duet_runtime *core)
{
}
