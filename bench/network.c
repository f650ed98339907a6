/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What SimGrid itself costs: alarms, and copies that share the links of a machine with eight GPUs
 * behind four switches, four under way at a time, with nothing else around them. The share of a
 * simulation's time that is not ours.
 *
 * Usage: network [COPIES]
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench/timing.h"
#include "sim/network.h"

enum { GPUS = 8, FLYING = 4 };

struct load {
    size_t alarms, copies, started;
    unsigned next;
};

static void start_copy(struct load *load)
{
    if (load->started == load->copies)
        return;
    load->started++;
    load->next = load->next % GPUS + 1;
    duet__network_flow(0, load->next, 1000000 + 1000 * load->next, load);
}

/* Each alarm sets the next; the copies begin when all alarms are through. */
static bool ring(void *context)
{
    struct load *load = context;
    if (load->alarms > 0) {
        load->alarms--;
        duet__network_alarm(duet__network_clock() + 1e-3);
        return load->alarms == 0;
    }
    for (unsigned i = 0; i < FLYING; i++)
        start_copy(load);
    return false;
}

static void arrived(void *context, void *tag)
{
    start_copy(context);
}

/* A host and its GPUs, two behind each switch, both directions apart. */
static int build(struct duet_machine *machine)
{
    int error = duet_machine_init(machine, 1, GPUS + 1, 1, GPUS);
    if (error)
        return error;
    for (unsigned l = 0; l < GPUS; l++)
        machine->links[l].bandwidth_Bps = 6e9;
    for (unsigned g = 1; g <= GPUS; g++) {
        struct duet_route *in = &machine->routes[g];
        struct duet_route *out = &machine->routes[(size_t)g * machine->node_count];
        *in = (struct duet_route){.direct = true, .count = 1, .bandwidth_Bps = 6e9};
        *out = *in;
        in->links[0] = (uint16_t)((g - 1) / 2);
        out->links[0] = (uint16_t)(GPUS / 2 + (g - 1) / 2);
    }
    return DUET_OK;
}

int main(int argc, char **argv)
{
    struct load load = {.alarms = 200000, .copies = argc > 1 ? strtoul(argv[1], NULL, 10) : 200000};
    const struct network_calls calls = {.alarm = ring, .arrived = arrived};
    struct duet_machine machine;
    struct duet_message message = {""};
    int error = build(&machine);
    if (!error)
        error = duet__network_open(&machine, &calls, &load, &message);
    if (error) {
        fprintf(stderr, "network: %s\n", *message.text ? message.text : duet_strerror(error));
        return 1;
    }
    size_t alarms = load.alarms;
    double start = seconds();
    duet__network_alarm(1e-3);
    duet__network_run();
    double middle = seconds();
    duet__network_run();
    double end = seconds();
    printf("alarm_ns %.0f copy_ns %.0f\n", 1e9 * (middle - start) / (double)alarms,
           1e9 * (end - middle) / (double)load.copies);
    duet_machine_fini(&machine);
    return 0;
}
