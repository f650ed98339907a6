/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Max-min fair sharing by progressive filling (Bertsekas, Gallager, Data Networks, 1992, section
 * 6.5.2), as in SimGrid: the narrowest link, or a flow's own limit if that is narrower, fixes the
 * flows it concerns; then the rest is shared in the same way.
 */
#include "backends/emulated/shares.h"

#include <math.h>
#include <stdlib.h>

int duet__shares_init(struct shares *shares, const struct duet_machine *machine)
{
    size_t links = machine->link_count ? machine->link_count : 1;
    *shares = (struct shares){.machine = machine};
    shares->left_Bps = calloc(links, sizeof *shares->left_Bps);
    shares->open = calloc(links, sizeof *shares->open);
    return shares->left_Bps && shares->open ? DUET_OK : DUET_ENOMEM;
}

int duet__shares_reserve(struct shares *shares, size_t capacity)
{
    if (capacity <= shares->capacity)
        return DUET_OK;
    struct flow **flows = realloc(shares->flows, capacity * sizeof(struct flow *));
    if (!flows)
        return DUET_ENOMEM;
    shares->flows = flows;
    shares->capacity = capacity;
    return DUET_OK;
}

void duet__shares_fini(struct shares *shares)
{
    free(shares->left_Bps);
    free(shares->open);
    free(shares->flows);
    *shares = (struct shares){.count = 0};
}

static void prepare_shares(struct shares *shares)
{
    const struct duet_link *links = shares->machine->links;
    for (unsigned l = 0; l < shares->machine->link_count; l++) {
        shares->left_Bps[l] = links[l].bandwidth_Bps;
        shares->open[l] = 0;
    }
    for (size_t i = 0; i < shares->count; i++) {
        struct flow *flow = shares->flows[i];
        flow->state = FLOW_OPEN;
        flow->limit_Bps = INFINITY;
        for (unsigned k = 0; k < flow->route->count; k++) {
            unsigned l = flow->route->links[k];
            if (links[l].per_copy)
                flow->limit_Bps = fmin(flow->limit_Bps, links[l].bandwidth_Bps);
            else
                shares->open[l]++;
        }
    }
}

/* Returns the largest share that every flow not yet fixed can get. */
static double narrowest(const struct shares *shares)
{
    double least = INFINITY;
    for (unsigned l = 0; l < shares->machine->link_count; l++)
        if (shares->open[l])
            least = fmin(least, shares->left_Bps[l] / shares->open[l]);
    for (size_t i = 0; i < shares->count; i++)
        if (shares->flows[i]->state == FLOW_OPEN)
            least = fmin(least, shares->flows[i]->limit_Bps);
    return least;
}

/* True if the flow cannot get more than `share`: its own limit or a link of its route is
   reached. */
static bool stops(const struct shares *shares, const struct flow *flow, double share)
{
    if (flow->limit_Bps <= share)
        return true;
    for (unsigned k = 0; k < flow->route->count; k++) {
        unsigned l = flow->route->links[k];
        if (!shares->machine->links[l].per_copy && shares->left_Bps[l] / shares->open[l] <= share)
            return true;
    }
    return false;
}

/*
 * Fixes the flows found to stop, all at the same share, whatever their order. Returns their number.
 */
static size_t fix_flows(struct shares *shares, double share)
{
    size_t fixed = 0;
    for (size_t i = 0; i < shares->count; i++) {
        struct flow *flow = shares->flows[i];
        if (flow->state != FLOW_STOPS)
            continue;
        flow->state = FLOW_FIXED;
        flow->share_Bps = share;
        fixed++;
        for (unsigned k = 0; k < flow->route->count; k++) {
            unsigned l = flow->route->links[k];
            if (!shares->machine->links[l].per_copy) {
                shares->left_Bps[l] = fmax(0, shares->left_Bps[l] - share);
                shares->open[l]--;
            }
        }
    }
    return fixed;
}

void duet__shares_find(struct shares *shares)
{
    size_t fixed = 0;
    prepare_shares(shares);
    while (fixed < shares->count) {
        double share = narrowest(shares);
        for (size_t i = 0; i < shares->count; i++)
            if (shares->flows[i]->state == FLOW_OPEN && stops(shares, shares->flows[i], share))
                shares->flows[i]->state = FLOW_STOPS;
        fixed += fix_flows(shares, share);
    }
}
