/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, the gate, waiting, and failures of several nodes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nodes/model.h"

#include <duet/nodes.h>

/* ------------------------------------------------------------------------------------------- */
/* Calls                                                                                        */

bool duet__begin(struct duet__nodes *nodes)
{
    if (atomic_load_explicit(&nodes->busy, memory_order_relaxed))
        return !duet__refuse(duet__front(nodes), DUET_EINVAL,
                             "two threads use a runtime of several nodes at once, in which the "
                             "order of all calls counts: let one of them make all calls");
    atomic_store_explicit(&nodes->busy, true, memory_order_relaxed);
    nodes->turn++;
    return true;
}

int duet__finish(struct duet__nodes *nodes, int error)
{
    atomic_store_explicit(&nodes->busy, false, memory_order_relaxed);
    return error;
}

static void charge_thread(struct duet__host *host, uint64_t turn)
{
    const struct duet__nodes *nodes = host->nodes;
    if (host->seen < turn && nodes->transport->passed)
        nodes->transport->passed(nodes->transport_of, host->number, turn - host->seen);
    if (host->seen < turn)
        host->seen = turn;
}

void duet__touch(struct duet__host *host)
{
    charge_thread(host, host->nodes->turn - 1);
    duet__log_task(&host->log, duet__numbered(host->core), host->nodes->turn);
}

void duet__catch_up(struct duet__nodes *nodes)
{
    for (unsigned h = 0; h < nodes->hosted; h++)
        charge_thread(&nodes->hosts[h], nodes->turn);
}

int duet__must(struct duet__host *host, int error)
{
    if (!error)
        return DUET_OK;
    const char *why = duet_last_message(host->core);
    if (error == DUET_ENOMEM || !*why)
        why = duet_strerror(error);
    duet__fail_run(host->core, error, "%s", why);
    return duet__refuse(duet__front(host->nodes), error, "%s", why);
}

int duet__waited(struct duet__host *host, int error)
{
    const bool others = host->nodes->hosted < host->nodes->count;
    return error == DUET_ESTUCK && others ? duet__must(host, error) : error;
}

/* ------------------------------------------------------------------------------------------- */
/* Waiting                                                                                      */

static int wait_all(struct duet__nodes *nodes)
{
    int error = DUET_OK;
    duet__catch_up(nodes);
    for (unsigned h = 0; h < nodes->hosted; h++) {
        struct duet__host *host = &nodes->hosts[h];
        int other = duet__waited(host, duet__wait_here(host->core));
        const char *why = duet_last_message(host->core);
        if (other && !error && strncmp(why, "node ", 5) != 0) /* the error is this node's own */
            (void)duet__refuse(duet__front(nodes), other, "node %u: %s", host->number, why);
        error = error ? error : other;
    }
    int met = nodes->transport->barrier(nodes->transport_of);
    if (error || !met)
        return error;
    /* the run has failed elsewhere, and the reason is known here by now */
    int other = duet__wait_here(duet__front(nodes));
    return other ? other : met;
}

static int gate_wait(void *gate)
{
    struct duet__nodes *nodes = ((struct duet__host *)gate)->nodes;
    return duet__begin(nodes) ? duet__finish(nodes, wait_all(nodes)) : DUET_EINVAL;
}

static int gate_recover(void *gate)
{
    return duet__refuse(((struct duet__host *)gate)->core, DUET_EINVAL,
                        "duet_recover is for one node: what other nodes have lost is not known");
}

static void gate_stats_reset(void *gate)
{
    struct duet__nodes *nodes = ((struct duet__host *)gate)->nodes;
    for (unsigned h = 0; h < nodes->hosted; h++) {
        duet__stats_reset_here(nodes->hosts[h].core);
        duet__log_reset(&nodes->hosts[h].log);
    }
    nodes->path_s = 0;
    for (struct duet__datum *datum = nodes->data; datum; datum = datum->next)
        datum->write_path_s = datum->change_path_s = 0;
}

/* ------------------------------------------------------------------------------------------- */
/* Failures                                                                                     */

/* Ends the run everywhere at the first failure of all. */
static void gate_failed(void *gate, int error, const char *why)
{
    const struct duet__host *host = gate;
    struct duet__nodes *nodes = host->nodes;
    struct duet_message message;
    if (atomic_exchange(&nodes->failed, true))
        return;
    (void)duet_fail(&message, error, "node %u: %s", host->number, why);
    nodes->transport->fail(nodes->transport_of, host->number, error, message.text);
}

void duet__nodes_failed(struct duet__nodes *nodes, int error, const char *why)
{
    atomic_store(&nodes->failed, true);
    for (unsigned h = 0; h < nodes->hosted; h++)
        duet__fail_run(nodes->hosts[h].core, error, "%s", why);
}

/* ------------------------------------------------------------------------------------------- */
/* Data of all nodes at node 0 */

void duet__nodes_keep_path(struct duet__nodes *nodes)
{
    nodes->keeps_path = true;
}

double duet__nodes_path_s(const struct duet__nodes *nodes)
{
    return nodes->path_s;
}

int duet__nodes_gather(struct duet__nodes *nodes, const void *mine, size_t bytes, void **all,
                       size_t *sizes)
{
    return nodes->transport->gather(nodes->transport_of, mine, bytes, all, sizes);
}

double duet__nodes_ahead(const struct duet__nodes *nodes)
{
    return nodes->transport->ahead ? nodes->transport->ahead(nodes->transport_of) : 0;
}

/* ------------------------------------------------------------------------------------------- */
/* Opening and closing                                                                          */

struct duet_grid duet__grid_square(unsigned count)
{
    unsigned rows = 1;
    for (unsigned r = 1; r <= count / r; r++)
        if (count % r == 0)
            rows = r;
    return (struct duet_grid){rows, count / rows};
}

int duet__nodes_new(struct duet__nodes **out, const struct duet__nodes_config *config,
                    struct duet_message *message)
{
    static const struct duet__gate gate = {.submit = duet__nodes_submit,
                                           .wait = gate_wait,
                                           .acquire = duet__nodes_acquire,
                                           .release = duet__nodes_release,
                                           .unregister = duet__nodes_unregister,
                                           .hint = duet__nodes_hint,
                                           .reduction = duet__nodes_reduction,
                                           .recover = gate_recover,
                                           .stats_reset = gate_stats_reset,
                                           .failed = gate_failed};
    *out = NULL;
    if (config->count < 2 || config->grid.rows * config->grid.cols != config->count ||
        config->first + config->hosted > config->count ||
        (config->hosted != 1 && config->hosted != config->count))
        return duet_fail(message, DUET_EINVAL,
                         "%u nodes in a grid of %u x %u, of which %u are hosted from number %u on",
                         config->count, config->grid.rows, config->grid.cols, config->hosted,
                         config->first);
    struct duet__nodes *nodes =
        calloc(1, sizeof *nodes + config->hosted * sizeof(struct duet__host));
    if (!nodes)
        return duet_fail(message, DUET_ENOMEM, "no memory left for %u nodes", config->count);
    nodes->count = config->count;
    nodes->first = config->first;
    nodes->hosted = config->hosted;
    nodes->grid = config->grid;
    nodes->transport = config->transport;
    nodes->transport_of = config->transport_of;
    for (unsigned h = 0; h < nodes->hosted; h++) {
        struct duet__host *host = &nodes->hosts[h];
        host->nodes = nodes;
        host->core = config->cores[h];
        host->number = nodes->first + h;
        duet__log_init(&host->log, duet__records(host->core));
        duet__core_gate(host->core, &gate, host);
    }
    *out = nodes;
    return DUET_OK;
}

void duet__nodes_free(struct duet__nodes *nodes)
{
    if (!nodes)
        return;
    if (nodes->transport->close)
        nodes->transport->close(nodes->transport_of);
    for (unsigned h = 0; h < nodes->hosted; h++) {
        duet__core_gate(nodes->hosts[h].core, NULL, NULL);
        duet__log_fini(&nodes->hosts[h].log);
    }
    while (nodes->data)
        duet__datum_free(nodes, nodes->data);
    for (size_t i = 0; i < nodes->codelet_count; i++)
        free(nodes->codelets[i]);
    free(nodes->codelets);
    free(nodes->touched);
    free(nodes->accesses);
    free(nodes);
}

struct duet__nodes *duet__nodes_of(const struct duet_runtime *front)
{
    const struct duet__host *host = duet__core_gate_arg(front);
    return host ? host->nodes : NULL;
}

struct duet_runtime *duet__nodes_core(const struct duet__nodes *nodes, unsigned node)
{
    return node - nodes->first < nodes->hosted ? nodes->hosts[node - nodes->first].core : NULL;
}

const struct duet__node_log *duet__nodes_log(const struct duet__nodes *nodes, unsigned node)
{
    return node - nodes->first < nodes->hosted ? &nodes->hosts[node - nodes->first].log : NULL;
}

/* ------------------------------------------------------------------------------------------- */
/* Implements duet/nodes.h, on one node and on several. */

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
    if (!error)
        error = duet__own_data(runtime, handle, function);
    if (error)
        return error;
    if (duet__handle_is_part(handle))
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
    void *note = handle ? *duet__handle_note((struct duet_handle *)(uintptr_t)handle) : NULL;
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
