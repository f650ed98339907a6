/* SPDX-License-Identifier: Apache-2.0 */
/* Orders the turns of cases, keeps data of one turn for those after it, and finds whether others
 * compute on this machine. */
#include "runs/rounds.h"

#include <math.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* ------------------------------------------------------------------------------------------- */
/* The load by others, by the system's counters                                                 */

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

/* ------------------------------------------------------------------------------------------- */
/* Rounds                                                                                       */

void duet__rounds_init(struct duet__rounds *rounds)
{
    *rounds = (struct duet__rounds){.disturbed = g_array_new(FALSE, FALSE, sizeof(size_t)),
                                    .opened = g_hash_table_new(NULL, NULL)};
}

void duet__rounds_fini(struct duet__rounds *rounds)
{
    duet__rounds_discard(rounds);
    g_clear_pointer(&rounds->disturbed, g_array_unref);
    g_clear_pointer(&rounds->opened, g_hash_table_unref);
}

size_t duet__rounds_begin(struct duet__rounds *rounds)
{
    duet__rounds_look(rounds);
    return rounds->round % 2 ? rounds->cases - 1 - rounds->turn : rounds->turn;
}

void duet__rounds_look(struct duet__rounds *rounds)
{
    rounds->before = duet__load_now();
}

struct duet__disturbance duet__rounds_load(struct duet__rounds *rounds)
{
    const struct duet__load now = duet__load_now();
    const struct duet__disturbance load = duet__load_between(&rounds->before, &now);
    const GArray *noted = rounds->disturbed;
    size_t number = rounds->round + 1;
    if (load.disturbed && (!noted->len || g_array_index(noted, size_t, noted->len - 1) != number))
        g_array_append_val(rounds->disturbed, number);
    return load;
}

bool duet__rounds_next(struct duet__rounds *rounds)
{
    if (++rounds->turn < rounds->cases)
        return true;
    rounds->turn = 0;
    rounds->round++;
    return false;
}

bool duet__rounds_opened(struct duet__rounds *rounds, int cpus, int gpus)
{
    enum { GPUS_MOST = 1 << 16 };
    return !g_hash_table_add(rounds->opened, GINT_TO_POINTER(cpus * GPUS_MOST + gpus));
}

static bool is_same(const struct duet__problem *one, const struct duet__problem *other)
{
    bool same = one->n == other->n && one->tile == other->tile && one->seed == other->seed &&
                one->precision == other->precision && one->nodes.rows == other->nodes.rows &&
                one->nodes.cols == other->nodes.cols && one->setting_count == other->setting_count;
    for (size_t i = 0; i < one->setting_count && same; i++)
        same = !strcmp(one->settings[i].name, other->settings[i].name) &&
               !strcmp(one->settings[i].value, other->settings[i].value);
    return same;
}

static void kept_discard(struct duet__rounds *rounds, size_t number)
{
    struct duet__problem *problem = &rounds->kept[number].problem;
    if (problem->data)
        rounds->kept[number].workload->discard(problem->data);
    problem->data = NULL;
}

int duet__rounds_data(struct duet__rounds *rounds, size_t number,
                      const struct duet__workload *workload, struct duet__problem *problem,
                      struct duet_message *message)
{
    struct duet__problem *kept = &rounds->kept[number].problem;
    int error = 0;
    if (!kept->data || rounds->kept[number].workload != workload || !is_same(kept, problem)) {
        kept_discard(rounds, number);
        rounds->kept[number].workload = workload;
        *kept = *problem;
        error = workload->generate(workload, problem, &kept->data, message);
        if (error)
            kept->data = NULL;
    }
    problem->data = kept->data;
    return error;
}

void duet__rounds_discard(struct duet__rounds *rounds)
{
    for (size_t i = 0; i < G_N_ELEMENTS(rounds->kept); i++)
        kept_discard(rounds, i);
}
