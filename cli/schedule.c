/* SPDX-License-Identifier: Apache-2.0 */
/* `duet list` of a schedule, and `duet compare` of two. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/table.h"
#include "cli/job.h"
#include "runtime/open.h"
#include "runtime/schedule.h"
#include "trace/trace.h"

bool duet__schedule_in(const char *path)
{
    g_autofree char *text = NULL;
    struct duet_message message;
    size_t length = 0;
    return duet__schedule_is(path) &&
           !duet__read_all(path, DUET__TRACE_MOST_MIB, &text, &length, &message) &&
           g_strstr_len(text, (gssize)length, "\"schedule\"") &&
           !g_strstr_len(text, (gssize)length, "\"traceEvents\"") &&
           !g_strstr_len(text, (gssize)length, "\"schema\"");
}

static const char *name_of(const struct duet__schedule *schedule, size_t task)
{
    unsigned kernel = schedule->tasks[task].kernel;
    return kernel ? schedule->kernels.list->pdata[kernel - 1] : "?";
}

static const char *worker_of(const struct duet__schedule *schedule, size_t task)
{
    uint32_t worker = task < schedule->count ? schedule->tasks[task].worker : DUET__UNPLANNED;
    return worker == DUET__UNPLANNED ? "" : schedule->workers.list->pdata[worker];
}

/* Returns the planned seconds of a task; NAN: not known. */
static double seconds_of(const struct duet__schedule *schedule, size_t task)
{
    return schedule->tasks[task].end_s - schedule->tasks[task].start_s;
}

/* Returns the planned makespan: the file's, or else the last planned end; NAN: not known. */
static double makespan_of(const struct duet__schedule *schedule)
{
    double last_s = NAN;
    for (size_t i = 0; i < schedule->count; i++)
        last_s = fmax(last_s, schedule->tasks[i].end_s);
    return schedule->makespan_s > 0 ? schedule->makespan_s : last_s;
}

static void print_schedule(const struct duet__schedule *schedule)
{
    struct duet__table table;
    const double makespan_s = makespan_of(schedule);
    printf("%s: a schedule of %zu tasks", schedule->path, schedule->planned);
    printf(isnan(makespan_s) ? "\n\n" : ", planned makespan %.5g s\n\n", makespan_s);
    duet__table_init(&table, "lrrrr");
    duet__table_print(&table, "worker\ttasks\tkernels s\tfirst s\tlast s");
    for (unsigned w = 0; w < schedule->workers.list->len; w++) {
        const size_t first = schedule->first[w], end = schedule->first[w + 1];
        double busy_s = 0;
        for (size_t i = first; i < end; i++)
            busy_s += seconds_of(schedule, schedule->order[i]);
        duet__table_say(&table, schedule->workers.list->pdata[w]);
        duet__table_print(&table, "%zu\t%.5g\t%.5g\t%.5g", end - first, busy_s,
                          first < end ? schedule->tasks[schedule->order[first]].start_s : NAN,
                          first < end ? schedule->tasks[schedule->order[end - 1]].end_s : NAN);
    }
    duet__table_put(&table, stdout, 0);
}

int duet__list_schedule(const char *path)
{
    const struct duet__schedule *schedule;
    struct duet_message message;
    int error = duet__schedule_load(path, &schedule, &message);
    if (error)
        return duet__job_refuse(error, &message);
    print_schedule(schedule);
    return duet__finish_output();
}

void duet__run_plan_make(const char *policy, const struct duet__recording *recording, double scale,
                         struct duet__run_plan *out)
{
    double values[DUET_PARAMETERS_MAX];
    const struct duet_policy *found;
    const struct duet__schedule *schedule;
    struct duet_message message;
    if (!recording || duet__policy_load(policy, &found, values, &message))
        return;
    schedule = duet__followed(found);
    if (!schedule)
        return;
    duet__schedule_plan(schedule, recording, scale, out);
    out->may_move = values[0] >= 0;
    /* moved without slack: the file is not the one any more that the run followed */
    if ((out->moved && !out->may_move) || !(out->tasks.makespan_s > 0))
        out->tasks.event_count = 0;
}

/* Tasks of one kernel in both schedules. */
struct moved {
    size_t tasks, moved; /* all of them; those on another worker */
    double first_s, second_s;
};

static void print_moves(const struct duet__schedule *a, const struct duet__schedule *b)
{
    struct moved *kernels = g_new0(struct moved, a->kernels.list->len + 1);
    const double first_s = makespan_of(a), second_s = makespan_of(b);
    struct duet__table table;
    size_t moved = 0;
    for (size_t i = 0; i < a->count; i++) {
        struct moved *kernel = &kernels[a->tasks[i].kernel];
        const bool moves = strcmp(worker_of(a, i), worker_of(b, i)) != 0;
        if (a->tasks[i].worker == DUET__UNPLANNED)
            continue;
        kernel->tasks++;
        kernel->moved += moves;
        moved += moves;
        kernel->first_s += seconds_of(a, i);
        kernel->second_s += seconds_of(b, i);
    }
    printf("%zu of %zu tasks have another worker in B", moved, a->planned);
    if (first_s > 0 && second_s > 0)
        printf("; planned makespan: A %.5g s, B %.5g s (%+.2f %%)", first_s, second_s,
               100 * (second_s / first_s - 1));
    printf("\n\n");
    duet__table_init(&table, "lrrrr");
    duet__table_print(&table, "kernel\ttasks\tmoved\tA s\tB s");
    for (unsigned k = 0; k <= a->kernels.list->len; k++) {
        if (!kernels[k].tasks)
            continue;
        duet__table_say(&table, k ? a->kernels.list->pdata[k - 1] : "?");
        duet__table_print(&table, "%zu\t%zu\t%.5g\t%.5g", kernels[k].tasks, kernels[k].moved,
                          kernels[k].first_s, kernels[k].second_s);
    }
    g_free(kernels);
    duet__table_put(&table, stdout, 0);
}

int duet__compare_schedules(const char *const paths[2])
{
    const struct duet__schedule *a, *b;
    struct duet_message message = {""};
    int error = duet__schedule_load(paths[0], &a, &message);
    if (!error)
        error = duet__schedule_load(paths[1], &b, &message);
    if (!error && (a->planned != b->planned || a->count != b->count))
        error = duet_fail(&message, DUET_EINVAL,
                          "%s and %s are of different task graphs: %zu tasks, and %zu", a->path,
                          b->path, a->planned, b->planned);
    for (size_t i = 0; !error && i < a->count; i++)
        if (a->tasks[i].kernel && b->tasks[i].kernel && strcmp(name_of(a, i), name_of(b, i)) != 0)
            error = duet_fail(&message, DUET_EINVAL,
                              "%s and %s are of different task graphs: task %zu is a %s in A, and "
                              "a %s in B",
                              a->path, b->path, i + 1, name_of(a, i), name_of(b, i));
    if (error)
        return duet__job_refuse(error, &message);
    print_moves(a, b);
    return duet__finish_output();
}
