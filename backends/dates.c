/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion from a device's time to the engine's. */
#include "backends/dates.h"

/*
 * Seconds per second by which the two clocks may drift apart. Quartz is within 100 ppm of true time
 * over all temperatures, and there are two of them.
 */
static const double drift = 2e-4;

static double at_least(double value, double bound)
{
    return value < bound ? bound : value;
}

static double at_most(double value, double bound)
{
    return value > bound ? bound : value;
}

void duet__dates_init(struct dates *dates, double launched_s, double seen_s)
{
    *dates = (struct dates){.low_s = launched_s,
                            .high_s = at_least(seen_s, launched_s),
                            .offset_s = launched_s + 0.5 * at_least(seen_s - launched_s, 0),
                            .at_s = seen_s};
}

/* Widens the bounds by the drift since they were set. */
static void widen(struct dates *dates, const struct measured *measured)
{
    double age_s = at_least(measured->seen_s - dates->at_s, 0);
    double slack_s = drift * age_s + measured->unsure_s;
    dates->low_s -= slack_s;
    dates->high_s += slack_s;
    dates->at_s = at_least(dates->at_s, measured->seen_s);
}

/*
 * Narrows the bounds by one command. Its length may differ on the two clocks, so that the bound at
 * its start is one at its end only within that. If nothing fits, its end is taken as the moment at
 * which it was seen.
 */
static void narrow(struct dates *dates, const struct measured *measured)
{
    double length_s = measured->end_s - measured->start_s;
    double high_s = measured->seen_s - measured->end_s + measured->unsure_s;
    double low_s = measured->launched_s - measured->start_s - drift * length_s - measured->unsure_s;
    low_s = at_least(low_s, measured->asked_s - measured->end_s - measured->unsure_s);
    low_s = at_most(low_s, high_s);
    dates->low_s = at_least(dates->low_s, low_s);
    dates->high_s = at_most(dates->high_s, high_s);
    if (dates->low_s > dates->high_s) { /* a clock was set, or drifts more: the new bounds are
                                           right */
        dates->low_s = low_s;
        dates->high_s = high_s;
    }
    dates->offset_s = at_most(at_least(dates->offset_s, dates->low_s), dates->high_s);
}

void duet__dates_place(struct dates *dates, const struct measured *measured, double *start_s,
                       double *end_s)
{
    widen(dates, measured);
    narrow(dates, measured);
    double first_s = at_least(measured->launched_s, measured->stream_s);
    *start_s = at_least(measured->start_s + dates->offset_s, first_s);
    *start_s = at_most(*start_s, measured->seen_s);
    *end_s = at_most(measured->end_s + dates->offset_s, measured->seen_s);
    *end_s = at_least(at_least(*end_s, measured->asked_s), *start_s);
}
