/* SPDX-License-Identifier: Apache-2.0 */
/* Who else computes on this machine, by the counts of its system. */
#include "calibrate/load.h"

#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <glib.h>

#include "world/clock.h"

static const double LOOK_S = 0.2;
/* In cores: an idle system takes less of one core; of many, it may take a little of each. */
static const double LEAST = 0.1, SHARE = 0.01;
/* The system counts in ticks, of 10 ms on most, and one more or less says nothing. */
static const double COUNTED_S = 0.03;

/* The count of a line begins after its name. Fields as in proc(5): guests are users as well. */
enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, FIELDS };

static bool read_fields(const char *at, double fields[FIELDS])
{
    for (int i = 0; i < FIELDS; i++) {
        char *end;

        fields[i] = g_ascii_strtod(at, &end);
        if (end == at || !isfinite(fields[i]))
            return false;
        at = end;
    }
    return true;
}

/* Lines "cpu0 ...", "cpu1 ..." */
static unsigned count_cores(const char *text)
{
    unsigned count = 0;

    for (const char *at = text; (at = strstr(at, "\ncpu")); at += 4)
        count += g_ascii_isdigit(at[4]);
    return count;
}

bool duet__load_read(const char *text, double tick_s, struct duet__load *out)
{
    double fields[FIELDS];

    out->all_s = out->busy_s = out->stolen_s = NAN;
    out->cores = count_cores(text);
    if (!out->cores || !g_str_has_prefix(text, "cpu ") || !read_fields(text + 4, fields))
        return false;
    out->busy_s =
        (fields[USER] + fields[NICE] + fields[SYSTEM] + fields[IRQ] + fields[SOFTIRQ]) * tick_s;
    out->stolen_s = fields[STEAL] * tick_s;
    out->all_s = out->busy_s + out->stolen_s + (fields[IDLE] + fields[IOWAIT]) * tick_s;
    return true;
}

struct duet__load duet__load_now(void)
{
    struct duet__load now = {.at_s = duet__clock_s()};
    struct timespec own;
    char *text = NULL;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
    now.own_s = (double)own.tv_sec + (double)own.tv_nsec * 1e-9;
    (void)g_file_get_contents("/proc/stat", &text, NULL, NULL);
    (void)duet__load_read(text ? text : "", 1.0 / (double)sysconf(_SC_CLK_TCK), &now);
    g_free(text);
    return now;
}

struct duet__disturbance duet__load_between(const struct duet__load *before,
                                            const struct duet__load *after)
{
    double wall_s = after->at_s - before->at_s;
    double stolen_s = after->stolen_s - before->stolen_s;
    double others_s = after->busy_s - before->busy_s - (after->own_s - before->own_s);
    struct duet__disturbance result = {.others = NAN, .stolen = NAN, .cores = after->cores};

    if (!(wall_s > 0) || !isfinite(others_s) || !isfinite(stolen_s))
        return result;
    /* the counts of ticks are not exact, our own time is */
    result.stolen = stolen_s / wall_s;
    result.others = fmin(fmax(others_s / wall_s, 0) + result.stolen, after->cores);
    result.disturbed =
        result.others > fmax(LEAST, SHARE * after->cores) && result.others * wall_s > COUNTED_S;
    return result;
}

struct duet__disturbance duet__load_look(void)
{
    struct duet__load before = duet__load_now(), after;

    g_usleep((gulong)(LOOK_S * G_USEC_PER_SEC));
    after = duet__load_now();
    return duet__load_between(&before, &after);
}

char *duet__load_text(const struct duet__disturbance *disturbance)
{
    return g_strdup_printf("other processes use %.1f of %u core%s%s", disturbance->others,
                           disturbance->cores, disturbance->cores == 1 ? "" : "s",
                           disturbance->stolen > disturbance->others / 2
                               ? ", most of it on other virtual machines"
                               : "");
}
