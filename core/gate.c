/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the application's own threads that a gate takes over from the core. */
#include "core/internal.h"

void duet__core_gate(struct duet_runtime *core, const struct duet__gate *gate, void *arg)
{
    core->gate_arg = arg;
    core->gate = gate;
}

void *duet__core_gate_arg(const struct duet_runtime *core)
{
    return core->gate ? core->gate_arg : NULL;
}

/*
 * Returns the gate for a call of the application's own thread; NULL: there is none, or the call
 * comes from inside the core.
 */
const struct duet__gate *duet__gate_of(const struct duet_runtime *core)
{
    return core->gate && duet__caller(core) == DUET_OUTSIDE ? core->gate : NULL;
}

RARE int duet__gate_submit(struct duet_runtime *core, const struct duet_task_desc *desc)
{
    const struct duet__gate *gate = duet__gate_of(core);
    if (desc && desc->codelet && desc->codelet->core != core)
        gate = NULL; /* the core refuses the task */
    for (size_t i = 0; gate && desc && desc->accesses && i < desc->access_count; i++) {
        const struct duet_access *access = &desc->accesses[i];
        if (access->mode != DUET_SCRATCH && (!access->handle || access->handle->core != core))
            gate = NULL;
    }
    return gate ? gate->submit(core->gate_arg, desc) : duet__submit_here(core, desc);
}

/* Tells the gate that the run has failed, for the first time. */
void duet__gate_failed(struct duet_runtime *core)
{
    struct duet_message why;
    if (!core->gate || !core->gate->failed)
        return;
    spin_lock(&core->message_lock);
    why = core->run_message;
    spin_unlock(&core->message_lock);
    core->gate->failed(core->gate_arg, atomic_load(&core->error), why.text);
}
