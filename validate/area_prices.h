/* SPDX-License-Identifier: Apache-2.0 */
/* What the two files of the area bound share: the question, and the prices that prove an answer. */
#ifndef DUET_AREA_PRICES_H
#define DUET_AREA_PRICES_H

#include <stdbool.h>
#include <stddef.h>

#include <duet/error.h>

/* Classes of equal times, merged. */
struct duet__area_group {
    double tasks;
    const double *expected_s; /* that of one of the classes */
    const char *name;
    size_t arch_count; /* for the comparison */
    double ratio;      /* of the times on the two architectures, where there are two */
};

struct duet__area {
    struct duet__area_group *groups;
    size_t group_count;
    const unsigned *workers; /* by architecture */
    size_t arch_count;
    double unit_s; /* all work, each task where it is fastest: the bound's order of magnitude */
};

static inline bool duet__area_can_run(const struct duet__area *area,
                                      const struct duet__area_group *group, size_t arch)
{
    return area->workers[arch] && group->expected_s[arch] > 0;
}

/*
 * Solves the linear program (area_prices.c, with Clp). *optimum_s is its value, and prices[a] what
 * a second of an architecture's workers is worth in it, 0 or more: from these follows the bound.
 * DUET_ENOMEM, DUET_ESTUCK (the solver gave up), DUET_EABSENT (it is missing), with a message.
 */
DUET_MUST_CHECK int duet__area_prices(const struct duet__area *area, double *prices,
                                      double *optimum_s, struct duet_message *message);

#endif
