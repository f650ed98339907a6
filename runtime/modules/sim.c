/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated engine, in its module: SimGrid is opened when something is to be simulated. */
#include "runtime/modules/module.h"

int duet__sim_new(void **out, const struct duet_machine *machine, const struct sim_options *options,
                  struct duet_message *message)
{
    const struct duet__sim_module *sim = duet__module_open("sim", message);
    *out = NULL;
    return sim ? sim->make(out, machine, options, message) : DUET_EABSENT;
}

const struct duet__engine_ops *duet__sim_ops(void)
{
    const struct duet__sim_module *sim = duet__module_open("sim", NULL);
    return sim ? sim->ops() : NULL;
}

const struct duet__transport *duet__sim_transport(void)
{
    const struct duet__sim_module *sim = duet__module_open("sim", NULL);
    return sim ? sim->transport() : NULL;
}

void duet__sim_attach(void *engine, struct duet_runtime *core)
{
    const struct duet__sim_module *sim = duet__module_open("sim", NULL);
    if (sim)
        sim->attach(engine, core);
}
