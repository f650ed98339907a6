/* SPDX-License-Identifier: Apache-2.0 */
/* Implements duet/nodes.h, on one node and on several. */
#include <duet/nodes.h>

#include "nodes/model.h"

/* Note of data with an owner if there is one node. */
static char owned_alone;

unsigned duet_node(const struct duet_runtime *runtime)
{
    const struct duet__nodes *nodes = duet__nodes_of(runtime);
    return nodes ? nodes->first : 0;
}

unsigned duet_node_count(const struct duet_runtime *runtime)
{
    const struct duet__nodes *nodes = duet__nodes_of(runtime);
    return nodes ? nodes->count : 1;
}

bool duet_node_here(const struct duet_runtime *runtime, unsigned node)
{
    const struct duet__nodes *nodes = duet__nodes_of(runtime);
    return nodes ? duet__nodes_core(nodes, node) != NULL : node == 0;
}

struct duet_grid duet_node_grid(const struct duet_runtime *runtime)
{
    const struct duet__nodes *nodes = duet__nodes_of(runtime);
    return nodes ? nodes->grid : (struct duet_grid){1, 1};
}

unsigned duet_node_at(const struct duet_runtime *runtime, uint64_t row, uint64_t col)
{
    const struct duet_grid grid = duet_node_grid(runtime);
    return (unsigned)(row % grid.rows * grid.cols + col % grid.cols);
}

/* Refuses `function`'s call if the handle is a part, or the node does not exist. */
static int check_call(struct duet_runtime *runtime, struct duet_handle *handle, unsigned node,
                      const char *function)
{
    int error = duet__not_forked(runtime, function);
    if (error)
        return error;
    if (!handle || duet__handle_is_part(handle))
        return duet__refuse(runtime, DUET_EINVAL, "%s needs a handle that is no part of another",
                            function);
    if (node >= duet_node_count(runtime))
        return duet__refuse(runtime, DUET_EINVAL, "%s was called with node %u: this run has %u",
                            function, node, duet_node_count(runtime));
    return DUET_OK;
}

/* Refuses `function`'s call also if the data has no owner. */
static int check_owned(struct duet_runtime *runtime, struct duet_handle *handle, unsigned node,
                       const char *function)
{
    int error = check_call(runtime, handle, node, function);
    if (!error && duet_owner(handle) == DUET_NOBODY)
        return duet__refuse(runtime, DUET_EINVAL, "%s needs data with an owner: call duet_own",
                            function);
    return error;
}

int duet_own(struct duet_runtime *runtime, struct duet_handle *handle, unsigned node)
{
    int error = check_call(runtime, handle, node, "duet_own");
    if (error)
        return error;
    struct duet__nodes *nodes = duet__nodes_of(runtime);
    void **note = duet__handle_note(handle);
    if (*note && duet_owner(handle) == DUET_NOBODY)
        return duet__refuse(runtime, DUET_EINVAL,
                            "duet_own was called with data that tasks, or duet_set_reduction, have "
                            "used already");
    if (*note)
        return duet__refuse(runtime, DUET_EINVAL,
                            "duet_own was called with data that has an "
                            "owner already: duet_migrate changes it");
    if (nodes)
        return duet__datum_own(nodes, handle, node);
    *note = &owned_alone;
    return DUET_OK;
}

unsigned duet_owner(const struct duet_handle *handle)
{
    void *note = *duet__handle_note((struct duet_handle *)(uintptr_t)handle);
    if (!note || note == &owned_alone)
        return note ? 0 : DUET_NOBODY;
    return ((const struct duet__datum *)note)->owner;
}

static int fetch_data(struct duet_runtime *runtime, struct duet_handle *handle, unsigned node,
                      const char *function, bool owns)
{
    struct duet__nodes *nodes = duet__nodes_of(runtime);
    int error = check_owned(runtime, handle, node, function);
    return error || !nodes ? error : duet__data_fetch(nodes, handle, node, owns);
}

int duet_fetch(struct duet_runtime *runtime, struct duet_handle *handle, unsigned node)
{
    return fetch_data(runtime, handle, node, "duet_fetch", false);
}

int duet_migrate(struct duet_runtime *runtime, struct duet_handle *handle, unsigned node)
{
    return fetch_data(runtime, handle, node, "duet_migrate", true);
}

int duet_acquire_on(struct duet_runtime *runtime, struct duet_handle *handle, enum duet_mode mode,
                    unsigned node, bool *here)
{
    struct duet__nodes *nodes = duet__nodes_of(runtime);
    int error = check_owned(runtime, handle, node, "duet_acquire_on");
    if (here)
        *here = !error;
    if (error || !nodes)
        return error ? error : duet_acquire(runtime, handle, mode);
    if (mode != DUET_R && mode != DUET_W && mode != DUET_RW)
        return duet__refuse(runtime, DUET_EINVAL,
                            "duet_acquire_on needs a mode of DUET_R, DUET_W or DUET_RW");
    error = duet__may_wait(runtime, "duet_acquire_on");
    return error ? error : duet__data_acquire(nodes, handle, mode, node, here);
}
