/* SPDX-License-Identifier: Apache-2.0 */
/* Costs of the thread that feeds a device: the first one. From records of chains of tasks. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calibrate/costs_parts.h"
#include "validate/stats.h"

enum {
    CHAIN = 200, /* tasks */
    COPIES = 100,
    COPY_BYTES = 4096,
    BLOCK_BYTES = 65536, /* of device memory */
    PIN_MIB = 64,
    PINS = 5,
    MIB = 1 << 20,
};

static const double NOTHING_S = 1e-6; /* a MiB page-locked in less was not page-locked */

struct feeding {
    struct duet__costing *costing;
    struct duet__lab lab;
    unsigned device; /* worker */
    struct duet_handle *link, *block;
};

static int vector(struct feeding *feeding, void *data, size_t bytes, struct duet_handle **out)
{
    int error = duet_vector(feeding->lab.runtime, data, bytes, 1, out);
    return error ? duet__lab_fail(&feeding->lab, error) : DUET_OK;
}

/*
 * A chain of empty kernels; each also writes blocks[i], or what block is if there are none. Adds
 * what launches and, if not NULL, events took.
 */
static int run_chain(struct feeding *feeding, struct duet_handle *const *blocks,
                     struct duet__values *launches, struct duet__values *events)
{
    struct duet_event *records = NULL;
    size_t count = 0;
    int error = duet__lab_stop(&feeding->costing->budget, feeding->costing->message);
    duet_stats_reset(feeding->lab.runtime);
    for (unsigned i = 0; i < CHAIN && !error; i++) {
        const struct duet_access accesses[] = {{feeding->link, DUET_RW},
                                               {blocks ? blocks[i] : feeding->block, DUET_W}};
        error = duet__lab_submit(&feeding->lab, feeding->lab.empty, feeding->device, accesses, 2,
                                 NULL, 0);
    }
    int waited = duet__lab_events(&feeding->lab, &records, &count);
    error = error ? error : waited;
    const struct duet_event *before = NULL;
    for (size_t i = 0; i < count && !error; i++) {
        const struct duet_event *task = &records[i];
        if (task->kind != DUET_EVENT_TASK)
            continue;
        if (before)
            duet__values_add(launches, task->start_s - task->ready_s);
        if (before && events)
            duet__values_add(events, task->ready_s - before->end_s);
        before = task;
    }
    free(records);
    return error;
}

/* Blocks that no device has memory for yet against one that has. */
static int measure_allocate(struct feeding *feeding, struct duet__values *launches)
{
    struct duet_handle *blocks[CHAIN];
    struct duet__values with = {0};
    double base_s = duet_median(launches->values, launches->count);
    unsigned made = 0;
    int error = DUET_OK;
    char *data = calloc(CHAIN, BLOCK_BYTES);
    if (!data)
        return DUET_ENOMEM;
    for (; made < CHAIN && !error; made += !error)
        error = vector(feeding, data + (size_t)made * BLOCK_BYTES, BLOCK_BYTES, &blocks[made]);
    if (!error)
        error = run_chain(feeding, blocks, &with, NULL);
    for (unsigned i = 0; i < made; i++) {
        int freed = duet_unregister(feeding->lab.runtime, blocks[i]);
        if (freed && !error)
            error = duet__lab_fail(&feeding->lab, freed);
    }
    free(data);
    for (size_t i = 0; i < with.count; i++)
        with.values[i] -= base_s;
    duet_sort(with.values, with.count);
    if (!error && with.count && with.values[with.count / 4] > 0)
        duet__values_report(&with, &feeding->costing->costs[DUET__COST_ALLOCATE]);
    else
        duet__costing_why(feeding->costing, DUET__COST_ALLOCATE,
                          "it takes less than launches differ by themselves");
    duet__values_fini(&with);
    return error;
}

static int measure_launches(struct feeding *feeding)
{
    struct duet__values launches = {0}, events = {0}, cold = {0};
    struct duet__measured *costs = feeding->costing->costs;
    int error = run_chain(feeding, NULL, &cold, NULL); /* finds no memory prepared */
    if (!error)
        error = run_chain(feeding, NULL, &launches, &events);
    if (!error)
        error = measure_allocate(feeding, &launches);
    if (!error)
        duet__values_report(&launches, &costs[DUET__COST_KERNEL_LAUNCH]);
    if (!error)
        duet__values_report(&events, &costs[DUET__COST_EVENT]);
    duet__values_fini(&launches);
    duet__values_fini(&events);
    duet__values_fini(&cold);
    return error;
}

/* Data that the host changes and the device reads, in turn. */
static int measure_copies(struct feeding *feeding)
{
    const struct duet_access change = {feeding->link, DUET_RW}, read = {feeding->link, DUET_R};
    const struct duet__lab *lab = &feeding->lab;
    struct duet__values launches = {0};
    struct duet_event *records = NULL;
    size_t count = 0;
    int error = duet__lab_stop(&feeding->costing->budget, feeding->costing->message);
    duet_stats_reset(lab->runtime);
    for (unsigned i = 0; i < COPIES && !error; i++) {
        error = duet__lab_submit(lab, lab->empty, 0, &change, 1, NULL, 0);
        if (!error)
            error = duet__lab_submit(lab, lab->empty, feeding->device, &read, 1, NULL, 0);
    }
    int waited = duet__lab_events(lab, &records, &count);
    error = error ? error : waited;
    for (size_t i = 0; i < count && !error; i++)
        if (records[i].kind == DUET_EVENT_COPY && records[i].source == DUET_HOST)
            duet__values_add(&launches, records[i].start_s - records[i].submit_s);
    if (!error)
        duet__values_report(&launches, &feeding->costing->costs[DUET__COST_COPY_LAUNCH]);
    duet__values_fini(&launches);
    free(records);
    return error;
}

/* ------------------------------------------------------------------------------------------- */

/* Page-locks and lets go. *seconds: of a MiB; 0: the system refuses. */
static int pin_once(struct feeding *feeding, void *memory, double *seconds)
{
    double begin_s = duet__clock_s();
    int error = duet_pin(feeding->lab.runtime, memory, (size_t)PIN_MIB * MIB);
    *seconds = error ? 0 : (duet__clock_s() - begin_s) / PIN_MIB;
    if (!error)
        error = duet_unpin(feeding->lab.runtime, memory);
    return error == DUET_ENOMEM ? DUET_OK : error;
}

static int measure_pin(struct feeding *feeding)
{
    struct duet__values samples = {0};
    const char *why = NULL;
    long page = sysconf(_SC_PAGESIZE);
    void *memory = aligned_alloc((size_t)page, (size_t)PIN_MIB * MIB);
    if (!memory)
        return DUET_ENOMEM;
    memset(memory, 1, (size_t)PIN_MIB * MIB);
    int error = DUET_OK;
    for (unsigned i = 0; i < PINS && !error && !why; i++) {
        double seconds = 0;
        error = pin_once(feeding, memory, &seconds);
        if (seconds == 0)
            why = "the system refuses to page-lock 64 MiB";
        else if (seconds < NOTHING_S)
            why = "devices here need no page-locked memory";
        else if (!error)
            duet__values_add(&samples, seconds);
    }
    free(memory);
    if (why)
        duet__costing_why(feeding->costing, DUET__COST_PIN, why);
    else if (!error)
        duet__values_report(&samples, &feeding->costing->costs[DUET__COST_PIN]);
    duet__values_fini(&samples);
    return error;
}

/* ------------------------------------------------------------------------------------------- */

static void no_device(struct duet__costing *costing)
{
    for (unsigned i = DUET__COST_KERNEL_LAUNCH; i < DUET__COSTS; i++)
        duet__costing_why(costing, i, "there is no device");
}

static int feed(struct feeding *feeding, char *data)
{
    feeding->device = feeding->lab.cpus;
    int error = vector(feeding, data, COPY_BYTES, &feeding->link);
    if (!error)
        error = vector(feeding, data + COPY_BYTES, BLOCK_BYTES, &feeding->block);
    if (!error)
        error = measure_launches(feeding);
    if (!error)
        error = measure_copies(feeding);
    if (!error)
        error = measure_pin(feeding);
    return error;
}

int duet__costs_devices(struct duet__costing *costing)
{
    struct duet_config config = duet__lab_devices(costing->config, 1);
    struct feeding feeding = {.costing = costing};
    no_device(costing);
    if (config.gpus == 0)
        return DUET_OK;
    config.gpus = config.gpus > 0 ? 1 : config.gpus;
    char *data = calloc(1, COPY_BYTES + BLOCK_BYTES);
    if (!data)
        return DUET_ENOMEM;
    int error = duet__lab_open(&feeding.lab, &config, costing->message);
    if (!error) {
        if (feeding.lab.machine->node_count > 1)
            error = feed(&feeding, data);
        error = duet__lab_close(&feeding.lab, error);
    }
    free(data);
    return error;
}
