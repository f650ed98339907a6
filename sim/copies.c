/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies: each waits for the DMA engines of its devices, pays its latency, then flows through the
 * network.
 */
#include <stdlib.h>

#include "sim/internal.h"

static struct transfer *new_transfer(struct sim *sim)
{
    struct transfer *transfer = sim->pool;
    if (transfer) {
        sim->pool = transfer->next[0];
        *transfer = (struct transfer){.started = false};
        return transfer;
    }
    return calloc(1, sizeof *transfer);
}

static unsigned place_on(const struct transfer *transfer, const struct dma *engine)
{
    return transfer->engine[0] == engine ? 0 : 1;
}

static void join_queue(struct dma *engine, struct transfer *transfer)
{
    transfer->engine[transfer->engines++] = engine;
    if (engine->tail)
        engine->tail->next[place_on(engine->tail, engine)] = transfer;
    else
        engine->head = transfer;
    engine->tail = transfer;
}

/* Starts the copy if it is the first one on all its engines: its latency begins. */
static void try_start(struct sim *sim, struct transfer *transfer)
{
    if (!transfer || transfer->started)
        return;
    for (unsigned i = 0; i < transfer->engines; i++)
        if (transfer->engine[i]->head != transfer)
            return;
    const struct duet__copy *copy = transfer->command.copy;
    const struct duet_route *route =
        duet_machine_route(&sim->machine, copy->source, copy->destination);
    transfer->started = true;
    transfer->start_s =
        transfer->launched_s > sim->cluster->now ? transfer->launched_s : sim->cluster->now;
    duet__sim_event(sim, transfer->start_s + route->latency_s, EVENT_FLOW_START,
                    transfer->command.worker, transfer);
}

/* Accepts a copy that the worker's thread launches at launched_s. */
void duet__sim_copy(struct sim *sim, const struct duet__engine_command *command, double launched_s)
{
    struct transfer *transfer = new_transfer(sim);
    if (!transfer) {
        duet__fail_run(sim->core, DUET_ENOMEM, "no memory left for another copy");
        return;
    }
    transfer->flow = (struct flow){.sim = sim, .end = EVENT_COPY_END, .worker = command->worker};
    transfer->command = *command;
    transfer->launched_s = launched_s;
    if (command->copy->source != DUET_HOST)
        join_queue(&sim->outgoing[command->copy->source], transfer);
    if (command->copy->destination != DUET_HOST)
        join_queue(&sim->incoming[command->copy->destination], transfer);
    try_start(sim, transfer);
}

/* Starts the flow of the bytes, when the latency has passed. */
void duet__sim_flow(struct sim *sim, struct transfer *transfer)
{
    const struct duet__copy *copy = transfer->command.copy;
    const struct cluster *cluster = sim->cluster;
    duet__sim_flows(&transfer->flow,
                    cluster->engine->copy(cluster->network, sim->number, copy->source,
                                          copy->destination, copy->bytes, transfer));
}

/* Frees the engines for the next copies: all bytes have arrived. */
void duet__sim_copy_end(struct sim *sim, struct transfer *transfer)
{
    struct transfer *next[2] = {NULL, NULL};
    transfer->end_s = sim->cluster->now;
    for (unsigned i = 0; i < transfer->engines; i++) {
        struct dma *engine = transfer->engine[i];
        engine->head = next[i] = transfer->next[i];
        if (!engine->head)
            engine->tail = NULL;
    }
    for (unsigned i = 0; i < transfer->engines; i++)
        try_start(sim, next[i]);
}

/* Tells the core that the copy has ended, when the worker's thread knows it. */
void duet__sim_copy_done(struct sim *sim, struct transfer *transfer, struct duet__ops *ops)
{
    struct duet__completion report = {.start_s = transfer->start_s, .end_s = transfer->end_s};
    duet__done(sim->core, &transfer->command, sim->cluster->now, &report, ops);
    transfer->next[0] = sim->pool;
    sim->pool = transfer;
}

static void free_queue(struct dma *engine)
{
    /* a copy on two engines is freed with its incoming one, or with its only one */
    while (engine->head) {
        struct transfer *transfer = engine->head;
        unsigned place = place_on(transfer, engine);
        engine->head = transfer->next[place];
        if (place == transfer->engines - 1)
            free(transfer);
    }
}

void duet__sim_copies_fini(struct sim *sim)
{
    for (unsigned n = 0; n < sim->machine.node_count; n++) {
        if (sim->outgoing)
            free_queue(&sim->outgoing[n]);
    }
    for (unsigned n = 0; n < sim->machine.node_count; n++) {
        if (sim->incoming)
            free_queue(&sim->incoming[n]);
    }
    while (sim->pool) {
        struct transfer *next = sim->pool->next[0];
        free(sim->pool);
        sim->pool = next;
    }
    free(sim->incoming);
    free(sim->outgoing);
}
