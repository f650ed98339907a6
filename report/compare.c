/* SPDX-License-Identifier: Apache-2.0 */
/* Matches the runs of one file with those of another. */
#include "report/compare.h"

#include "report/report.h"

enum { MOST_NOTES = 20 }; /* most notes about runs that are in one file only */

static void note(struct duet__comparison *comparison, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void note(struct duet__comparison *comparison, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_ptr_array_add(comparison->notes, g_strdup_vprintf(format, args));
    va_end(args);
}

static const char *keep(struct duet__comparison *comparison, char *text)
{
    g_ptr_array_add(comparison->texts, text);
    return text;
}

/* Returns a name for both, which mostly have the same. */
static const char *both(struct duet__comparison *comparison, const char *first, const char *second)
{
    if (strcmp(first, second) == 0)
        return first;
    return keep(comparison, g_strdup_printf("%s / %s", first, second));
}

static struct duet__read_run *run_at(const struct duet__file_runs *file, guint index)
{
    return &g_array_index(file->runs, struct duet__read_run, index);
}

static bool is_predicted(const struct duet__read_run *run)
{
    return strcmp(run->world, "predicted") == 0 || strcmp(run->world, "simulated") == 0;
}

/* "cholesky, n 3840, ..., simulated": free with g_free. */
static char *name_of(const struct duet__read_run *run)
{
    g_autofree char *name = duet__case_name(&run->problem);
    return g_strdup_printf("%s, %s", name, run->world);
}

/* Returns the place where the runs of a file were made; free with g_free. */
static char *place_of(const struct duet__file_runs *file)
{
    const char *platform = run_at(file, 0)->problem.platform;
    bool several = false;
    if (file->traced) {
        g_autofree char *resources = duet__report_resources(file->trace.run.recording.machine);
        return g_strdup_printf("%s, %s%s", platform, resources,
                               file->trace.estimated ? "; estimated kernel times" : "");
    }
    for (guint i = 1; i < file->runs->len; i++)
        several |= strcmp(run_at(file, i)->problem.platform, platform) != 0;
    return g_strconcat(platform, several ? " and others" : "", NULL);
}

static void add_pair(struct duet__comparison *comparison, const struct duet__read_run *first,
                     const struct duet__read_run *second, bool worlds)
{
    struct duet__case the = first->problem;
    const struct duet__case *other = &second->problem;
    the.workload = both(comparison, the.workload, other->workload);
    the.settings = both(comparison, the.settings, other->settings);
    the.platform = both(comparison, the.platform, other->platform);
    the.policy = both(comparison, the.policy, other->policy);
    if (worlds) /* number of this run among those of the problem: policies are ranked among
                   either */
        the.settings = keep(comparison, g_strdup_printf("%s%sworld=%s", the.settings,
                                                        *the.settings ? ", " : "", first->world));
    if (!is_predicted(first) || is_predicted(second) || !(the.high_s > 0))
        the.low_s = the.high_s = 0; /* only a measured run is compared with a predicted interval */
    the.predicted = first->side;
    the.measured = second->side;
    g_array_append_val(comparison->cases, the);
}

/* Matches each run of the first file with the first like it that is left in the second. A
 * validation has predicted and measured runs of a problem; each is compared with its own kind. */
static void match_same(struct duet__comparison *comparison)
{
    const struct duet__file_runs *a = &comparison->files[0], *b = &comparison->files[1];
    bool worlds = a->cases || b->cases;
    for (guint i = 0; i < a->runs->len; i++)
        for (guint j = 0; j < b->runs->len && !run_at(a, i)->matched; j++) {
            struct duet__read_run *first = run_at(a, i), *second = run_at(b, j);
            if (second->matched || !duet__case_alike(&first->problem, &second->problem) ||
                strcmp(first->problem.policy, second->problem.policy) != 0 ||
                (worlds && is_predicted(first) != is_predicted(second)))
                continue;
            first->matched = second->matched = true;
            add_pair(comparison, first, second, worlds);
        }
}

static void note_unmatched(struct duet__comparison *comparison, unsigned which)
{
    const struct duet__file_runs *file = &comparison->files[which];
    guint left = 0;
    for (guint i = 0; i < file->runs->len; i++) {
        g_autofree char *name = name_of(run_at(file, i));
        if (!run_at(file, i)->matched && left++ < MOST_NOTES)
            note(comparison, "only in %c: %s", 'A' + which, name);
    }
    if (left > MOST_NOTES)
        note(comparison, "only in %c: %u more", 'A' + which, left - MOST_NOTES);
}

/* Matches the only run of each file, whose problems may differ. */
static void match_only(struct duet__comparison *comparison)
{
    struct duet__file_runs *files = comparison->files;
    struct duet__read_run *runs[] = {run_at(&files[0], 0), run_at(&files[1], 0)};
    bool traces[] = {files[0].traced, files[1].traced};
    if (traces[0] != traces[1]) {
        runs[!traces[0]]->problem = runs[traces[0]]->problem;
        note(comparison,
             "only the makespans are compared: a report does not say where the time went, "
             "--trace F.json writes what does");
    } else if (!traces[0]) {
        g_autofree char *first = name_of(runs[0]), *second = name_of(runs[1]);
        note(comparison, "different problems: A is %s; B is %s", first, second);
    } else if (files[0].account.workers != files[1].account.workers) {
        /* an explanation divides by the workers: it needs as many of them */
        runs[0]->side.account = runs[1]->side.account = NULL;
        note(comparison, "only the makespans are compared: A has %u workers, B has %u",
             files[0].account.workers, files[1].account.workers);
    }
    add_pair(comparison, runs[0], runs[1], false);
}

static int match(struct duet__comparison *comparison, const char *const names[2],
                 const char *policy, struct duet_message *message)
{
    const struct duet__file_runs *files = comparison->files;
    bool trace = files[0].traced || files[1].traced;
    guint counts[] = {files[0].runs->len, files[1].runs->len};
    if (!trace)
        match_same(comparison);
    if (comparison->cases->len) {
        note_unmatched(comparison, 0);
        note_unmatched(comparison, 1);
    } else if (counts[0] == 1 && counts[1] == 1) {
        match_only(comparison);
    } else if (trace) {
        return duet_fail(message, DUET_EINVAL, "which run of %.200s is compared with the trace? %s",
                         names[counts[0] == 1],
                         policy ? "none, or several, have that policy" : "--policy NAME chooses");
    } else {
        return duet_fail(message, DUET_EINVAL,
                         "no run of A%s%s is in B: workload, parameters, n, tile, precision, cpus, "
                         "gpus, policy, set_arch, hold and priorities have to be the same",
                         policy ? " with policy " : "", policy ? policy : "");
    }
    return 0;
}

/* Keeps the runs of one policy. */
static void choose(struct duet__file_runs *file, const char *policy)
{
    for (guint i = file->runs->len; i-- > 0;)
        if (strcmp(run_at(file, i)->problem.policy, policy) != 0)
            g_array_remove_index(file->runs, i);
}

int duet__comparison_make(struct duet__comparison *comparison, const char *const paths[2],
                          const char *policy, struct duet_message *message)
{
    struct duet__file_runs *files = comparison->files;
    const char *names[2], *places[2];
    unsigned traces = 0;
    int error;
    comparison->cases = g_array_new(FALSE, FALSE, sizeof(struct duet__case));
    comparison->texts = g_ptr_array_new_with_free_func(g_free);
    comparison->notes = g_ptr_array_new_with_free_func(g_free);
    for (unsigned i = 0; i < 2; i++) {
        error = duet__read_runs(paths[i], &files[i], message);
        if (error)
            return error;
        names[i] = keep(comparison, g_strdup_printf("%c: %s", 'A' + i, paths[i]));
        places[i] = keep(comparison, place_of(&files[i]));
        traces += files[i].traced;
    }
    if (traces == 2 && policy)
        return duet_fail(message, DUET_EINVAL, "--policy chooses runs of reports, not of traces");
    for (unsigned i = 0; i < 2; i++)
        if (policy && !files[i].traced)
            choose(&files[i], policy);
    error = match(comparison, names, policy, message);
    comparison->validation = (struct duet__validation){
        .title = keep(comparison, g_strdup_printf("%s against %s", names[0], names[1])),
        .first_name = names[0],
        .second_name = names[1],
        .machine =
            strcmp(places[0], places[1]) == 0
                ? places[0]
                : keep(comparison, g_strdup_printf("%s (A) and %s (B)", places[0], places[1])),
        .calibration = "",
        .cases = (struct duet__case *)(void *)comparison->cases->data,
        .case_count = comparison->cases->len,
    };
    return error;
}

void duet__comparison_fini(struct duet__comparison *comparison)
{
    duet__validation_fini(&comparison->validation);
    for (unsigned i = 0; i < 2; i++)
        duet__read_fini(&comparison->files[i]);
    if (comparison->cases) {
        g_array_free(comparison->cases, TRUE);
        g_ptr_array_free(comparison->texts, TRUE);
        g_ptr_array_free(comparison->notes, TRUE);
    }
    *comparison = (struct duet__comparison){0};
}
