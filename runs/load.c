/* SPDX-License-Identifier: Apache-2.0 */
/* Finds whether others compute on this machine, by its system's counters. */
#include "runs/load.h"

#include <math.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <glib.h>

#include "base/clock.h"

static const double LOOK_S = 0.2;
/* Cores: an idle system takes less of one core; of many, it may take a little of each. */
static const double LEAST = 0.1, SHARE = 0.01;
/* The system counts in ticks, mostly of 10 ms, and one more or less tells nothing. */
static const double COUNTED_S = 0.03;

/* Fields as in proc(5): guests are users as well. */
enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, FIELDS };

bool duet__load_read(const char *text, double tick_s, const bool cores[DUET__CORES_MOST],
                     struct duet__load *out)
{
    double busy = 0, stolen = 0;
    out->busy_s = out->stolen_s = NAN;
    out->cores = 0;
    for (const char *at = text; (at = strstr(at, "\ncpu")); at++) {
        double fields[FIELDS];
        char *end;
        guint64 core = g_ascii_strtoull(at + 4, &end, 10);
        if (end == at + 4 || core >= DUET__CORES_MOST || (cores && !cores[core]))
            continue;
        for (int i = 0; i < FIELDS; i++) {
            const char *field = end;
            fields[i] = g_ascii_strtod(field, &end);
            if (end == field)
                return false;
        }
        busy += fields[USER] + fields[NICE] + fields[SYSTEM] + fields[IRQ] + fields[SOFTIRQ];
        stolen += fields[STEAL];
        out->cores++;
    }
    if (!out->cores || !g_str_has_prefix(text, "cpu "))
        return false;
    out->busy_s = busy * tick_s;
    out->stolen_s = stolen * tick_s;
    return true;
}

struct duet__load duet__load_now(void)
{
    struct duet__load now = {.at_s = duet__clock_s()};
    struct timespec own;
    struct rusage children = {0};
    g_autofree char *text = NULL;
    cpu_set_t allowed;
    bool cores[DUET__CORES_MOST] = {false};
    bool known = sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
    for (size_t i = 0; known && i < DUET__CORES_MOST; i++)
        cores[i] = CPU_ISSET(i, &allowed);
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
    (void)getrusage(RUSAGE_CHILDREN, &children);
    now.own_s = (double)(own.tv_sec + children.ru_utime.tv_sec + children.ru_stime.tv_sec) +
                (double)own.tv_nsec * 1e-9 +
                (double)(children.ru_utime.tv_usec + children.ru_stime.tv_usec) * 1e-6;
    (void)g_file_get_contents("/proc/stat", &text, NULL, NULL);
    (void)duet__load_read(text ? text : "", 1.0 / (double)sysconf(_SC_CLK_TCK),
                          known ? cores : NULL, &now);
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
    /* counts of ticks are inexact, unlike our own time */
    result.stolen = stolen_s / wall_s;
    result.others = fmin(fmax(others_s / wall_s, 0) + result.stolen, after->cores);
    result.disturbed =
        result.others > fmax(LEAST, SHARE * after->cores) && result.others * wall_s > COUNTED_S;
    result.by_processes =
        result.disturbed && result.others - result.stolen > fmax(LEAST, SHARE * after->cores);
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
