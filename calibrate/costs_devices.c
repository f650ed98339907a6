/* SPDX-License-Identifier: Apache-2.0 */
/* Costs of the thread that feeds a device: the first one. From records of chains of tasks. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

#include "calibrate/lab.h"
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

/*
 * A chain of empty kernels; each also writes blocks[i], or what block is if there are none. Adds
 * what launches and, if not NULL, events took.
 */
static void run_chain(struct feeding *feeding, struct duet_handle *const *blocks,
                      struct duet__values *launches, struct duet__values *events)
{
    const struct duet_event *before = NULL;
    struct duet__lab *lab = &feeding->lab;
    struct duet_event *records;
    size_t count;
    if (!duet__lab_goes_on(lab))
        return;
    duet_stats_reset(lab->runtime);
    for (unsigned i = 0; i < CHAIN; i++) {
        const struct duet_access accesses[] = {{feeding->link, DUET_RW},
                                               {blocks ? blocks[i] : feeding->block, DUET_W}};
        duet__lab_submit(lab, lab->empty, feeding->device, accesses, 2);
    }
    count = duet__lab_events(lab, &records);
    for (size_t i = 0; i < count; i++) {
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
}

/* Blocks that no device has memory for yet against one that has. */
static void measure_allocate(struct feeding *feeding, struct duet__values *launches)
{
    struct duet_handle *blocks[CHAIN];
    struct duet__values with = {0};
    double base_s = duet_median(launches->values, launches->count);
    char *data = g_malloc0_n(CHAIN, BLOCK_BYTES);
    for (unsigned i = 0; i < CHAIN; i++)
        blocks[i] = duet__lab_vector(&feeding->lab, data + (size_t)i * BLOCK_BYTES, BLOCK_BYTES);
    run_chain(feeding, blocks, &with, NULL);
    for (unsigned i = 0; i < CHAIN; i++)
        duet__lab_forget(&feeding->lab, blocks[i]);
    g_free(data);
    for (size_t i = 0; i < with.count; i++)
        with.values[i] -= base_s;
    duet_sort(with.values, with.count);
    if (with.count && with.values[with.count / 4] > 0)
        duet__values_report(&with, &feeding->costing->costs[DUET__COST_ALLOCATE]);
    else
        duet__costing_why(feeding->costing, DUET__COST_ALLOCATE,
                          "it takes less than launches differ by themselves");
    duet__values_fini(&with);
}

static void measure_launches(struct feeding *feeding)
{
    struct duet__values launches = {0}, events = {0}, cold = {0};
    struct duet__measured *costs = feeding->costing->costs;
    run_chain(feeding, NULL, &cold, NULL); /* finds no memory prepared */
    run_chain(feeding, NULL, &launches, &events);
    measure_allocate(feeding, &launches);
    if (!feeding->lab.error) {
        duet__values_report(&launches, &costs[DUET__COST_KERNEL_LAUNCH]);
        duet__values_report(&events, &costs[DUET__COST_EVENT]);
    }
    duet__values_fini(&launches);
    duet__values_fini(&events);
    duet__values_fini(&cold);
}

/* Data that the host changes and the device reads, in turn. */
static void measure_copies(struct feeding *feeding)
{
    const struct duet_access change = {feeding->link, DUET_RW}, read = {feeding->link, DUET_R};
    struct duet__lab *lab = &feeding->lab;
    struct duet__values launches = {0};
    struct duet_event *records;
    size_t count;
    if (!duet__lab_goes_on(lab))
        return;
    duet_stats_reset(lab->runtime);
    for (unsigned i = 0; i < COPIES; i++) {
        duet__lab_submit(lab, lab->empty, 0, &change, 1);
        duet__lab_submit(lab, lab->empty, feeding->device, &read, 1);
    }
    count = duet__lab_events(lab, &records);
    for (size_t i = 0; i < count; i++)
        if (records[i].kind == DUET_EVENT_COPY && records[i].source == DUET_HOST)
            duet__values_add(&launches, records[i].start_s - records[i].submit_s);
    if (!lab->error)
        duet__values_report(&launches, &feeding->costing->costs[DUET__COST_COPY_LAUNCH]);
    duet__values_fini(&launches);
    free(records);
}

/* ------------------------------------------------------------------------------------------- */

/* Page-locks and lets go: seconds of a MiB; 0: the system refuses. */
static double pin_once(struct feeding *feeding, void *memory)
{
    double begin_s = duet__clock_s(), seconds;
    int error = duet_pin(feeding->lab.runtime, memory, (size_t)PIN_MIB * MIB);
    seconds = error ? 0 : (duet__clock_s() - begin_s) / PIN_MIB;
    if (!error)
        error = duet_unpin(feeding->lab.runtime, memory);
    duet__lab_note(&feeding->lab, error == DUET_ENOMEM ? DUET_OK : error);
    return seconds;
}

static int measure_pin(struct feeding *feeding)
{
    struct duet__values samples = {0};
    const char *why = NULL;
    void *memory = aligned_alloc((size_t)sysconf(_SC_PAGESIZE), (size_t)PIN_MIB * MIB);
    if (!memory)
        return DUET_ENOMEM;
    memset(memory, 1, (size_t)PIN_MIB * MIB);
    for (unsigned i = 0; i < PINS && !feeding->lab.error && !why; i++) {
        double seconds = pin_once(feeding, memory);
        if (seconds == 0)
            why = "the system refuses to page-lock 64 MiB";
        else if (seconds < NOTHING_S)
            why = "devices here need no page-locked memory";
        else
            duet__values_add(&samples, seconds);
    }
    free(memory);
    if (why)
        duet__costing_why(feeding->costing, DUET__COST_PIN, why);
    else if (!feeding->lab.error)
        duet__values_report(&samples, &feeding->costing->costs[DUET__COST_PIN]);
    duet__values_fini(&samples);
    return DUET_OK;
}

/* ------------------------------------------------------------------------------------------- */

static void feed(struct feeding *feeding, char *data)
{
    feeding->device = feeding->lab.cpus;
    feeding->link = duet__lab_vector(&feeding->lab, data, COPY_BYTES);
    feeding->block = duet__lab_vector(&feeding->lab, data + COPY_BYTES, BLOCK_BYTES);
    measure_launches(feeding);
    measure_copies(feeding);
    if (!feeding->lab.error)
        duet__lab_note(&feeding->lab, measure_pin(feeding));
}

int duet__costs_devices(struct duet__costing *costing)
{
    struct duet_config config = duet__lab_devices(costing->config, 1);
    struct feeding feeding = {.costing = costing};
    char *data;
    int error;
    for (unsigned i = DUET__COST_KERNEL_LAUNCH; i < DUET__COSTS; i++)
        duet__costing_why(costing, i, "there is no device");
    if (config.gpus == 0)
        return DUET_OK;
    config.gpus = config.gpus > 0 ? 1 : config.gpus;
    data = g_malloc0(COPY_BYTES + BLOCK_BYTES);
    if (duet__lab_open(&feeding.lab, &config, &costing->budget, costing->message) &&
        feeding.lab.machine->node_count > 1)
        feed(&feeding, data);
    error = duet__lab_close(&feeding.lab);
    g_free(data);
    return error;
}
