/* SPDX-License-Identifier: Apache-2.0 */
/* Which run of one file is compared with which of the other. */
#include <string.h>

#include "cli/compare.h"
#include "report/report.h"
#include "report/validation_parts.h"

enum { MOST_NOTES = 20 };

static void note(struct duet__match *match, char *text)
{
    g_ptr_array_add(match->notes, text);
}

static const char *keep(struct duet__match *match, char *text)
{
    g_ptr_array_add(match->texts, text);
    return text;
}

/* Two names that are mostly one. */
static const char *both(struct duet__match *match, const char *first, const char *second)
{
    if (strcmp(first, second) == 0)
        return first;
    return keep(match, g_strdup_printf("%s / %s", first, second));
}

/* ------------------------------------------------------------------------------------------- */
/* Traces                                                                                       */

/* An explanation divides by the workers: it needs as many of them. */
static void match_traces(struct duet__match *match, const struct duet__input inputs[2])
{
    const struct duet_machine *first = &inputs[0].trace.machine;
    const struct duet_machine *second = &inputs[1].trace.machine;
    bool explained = inputs[0].account.workers == inputs[1].account.workers;
    struct duet_case the = {
        .workload = "trace",
        .settings = "",
        .platform = both(match, first->name, second->name),
        .policy = "-",
        .precision = '-',
        .cpus = duet_report_cpus(first),
        .gpus = duet_report_gpus(first),
    };
    struct duet_side *sides[2] = {&the.predicted, &the.measured};

    for (unsigned i = 0; i < 2; i++)
        *sides[i] = (struct duet_side){.makespans_s = &inputs[i].makespan_s,
                                       .count = 1,
                                       .account = explained ? &inputs[i].account : NULL,
                                       .recording = &inputs[i].trace.recording};
    if (!explained)
        note(match, g_strdup_printf("only the makespans are compared: A has %u workers, B has %u",
                                    inputs[0].account.workers, inputs[1].account.workers));
    g_array_append_val(match->cases, the);
}

/* ------------------------------------------------------------------------------------------- */
/* Reports                                                                                      */

/* A validation has runs of both kinds of one problem, and each is compared with its own kind. */
static bool is_predicted(const struct duet_file_run *run)
{
    return strcmp(run->world, "predicted") == 0 || strcmp(run->world, "simulated") == 0;
}

static bool same_problem(const struct duet_file_run *a, const struct duet_file_run *b)
{
    return strcmp(a->workload, b->workload) == 0 && strcmp(a->settings, b->settings) == 0 &&
           strcmp(a->policy, b->policy) == 0 && a->n == b->n && a->tile == b->tile &&
           a->cpus == b->cpus && a->gpus == b->gpus && a->precision == b->precision &&
           a->set_arch == b->set_arch;
}

static bool wanted(const struct duet_file_run *run, const char *policy)
{
    return !policy || strcmp(run->policy, policy) == 0;
}

static struct duet_side side_of(const struct duet_file_run *run)
{
    return (struct duet_side){.makespans_s = run->makespans_s,
                              .count = run->count,
                              .rounds = run->rounds,
                              .round_count = run->round_count};
}

static struct duet_case case_of(const struct duet_file_run *run)
{
    return (struct duet_case){.workload = run->workload,
                              .settings = run->settings,
                              .platform = run->platform,
                              .policy = run->policy,
                              .n = run->n,
                              .tile = run->tile,
                              .precision = run->precision,
                              .cpus = run->cpus,
                              .gpus = run->gpus,
                              .set_arch = run->set_arch};
}

/* "cholesky, n 3840, ..., simulated": free with g_free. */
static char *name_of(const struct duet_file_run *run)
{
    struct duet_case the = case_of(run);
    char *name = duet__case_name(&the);
    char *text = g_strdup_printf("%s, %s", name, run->world);

    g_free(name);
    return text;
}

static void add_pair(struct duet__match *match, const struct duet_file_run *first,
                     const struct duet_file_run *second, bool worlds)
{
    struct duet_case the = case_of(first);

    the.workload = both(match, first->workload, second->workload);
    the.settings = both(match, first->settings, second->settings);
    the.platform = both(match, first->platform, second->platform);
    the.policy = both(match, first->policy, second->policy);
    if (worlds) /* which of the two runs of the problem it is: policies are ranked among either */
        the.settings = keep(match, g_strdup_printf("%s%sworld=%s", the.settings,
                                                   *the.settings ? ", " : "", first->world));
    the.predicted = side_of(first);
    the.measured = side_of(second);
    g_array_append_val(match->cases, the);
}

/* The only run, or NULL. */
static const struct duet_file_run *only_run(const struct duet_runs_file *runs, const char *policy)
{
    const struct duet_file_run *found = NULL;

    for (size_t i = 0; i < runs->count; i++) {
        if (!wanted(&runs->runs[i], policy))
            continue;
        if (found)
            return NULL;
        found = &runs->runs[i];
    }
    return found;
}

static void note_unmatched(struct duet__match *match, const struct duet_runs_file *runs,
                           const bool *matched, const char *policy, char letter)
{
    size_t left = 0;

    for (size_t i = 0; i < runs->count; i++) {
        char *name;

        if (matched[i] || !wanted(&runs->runs[i], policy) || left++ >= MOST_NOTES)
            continue;
        name = name_of(&runs->runs[i]);
        note(match, g_strdup_printf("only in %c: %s", letter, name));
        g_free(name);
    }
    if (left > MOST_NOTES)
        note(match, g_strdup_printf("only in %c: %zu more", letter, left - MOST_NOTES));
}

/* Each run of the first with the first one of the second that is left. */
static void match_runs(struct duet__match *match, const struct duet__input inputs[2],
                       const char *policy, bool *matched[2])
{
    const struct duet_runs_file *a = &inputs[0].runs, *b = &inputs[1].runs;
    bool worlds = inputs[0].kind == DUET_FILE_VALIDATION || inputs[1].kind == DUET_FILE_VALIDATION;

    for (size_t i = 0; i < a->count; i++) {
        if (!wanted(&a->runs[i], policy))
            continue;
        for (size_t j = 0; j < b->count && !matched[0][i]; j++) {
            if (matched[1][j] || !same_problem(&a->runs[i], &b->runs[j]) ||
                (worlds && is_predicted(&a->runs[i]) != is_predicted(&b->runs[j])))
                continue;
            matched[0][i] = matched[1][j] = true;
            add_pair(match, &a->runs[i], &b->runs[j], worlds);
        }
    }
}

static int match_reports(struct duet__match *match, const struct duet__input inputs[2],
                         const char *policy, struct duet_message *message)
{
    const struct duet_file_run *only[2] = {only_run(&inputs[0].runs, policy),
                                           only_run(&inputs[1].runs, policy)};
    bool *matched[2] = {g_new0(bool, inputs[0].runs.count), g_new0(bool, inputs[1].runs.count)};
    int error = 0;

    match_runs(match, inputs, policy, matched);
    if (match->cases->len) {
        for (unsigned i = 0; i < 2; i++)
            note_unmatched(match, &inputs[i].runs, matched[i], policy, (char)('A' + i));
    } else if (only[0] && only[1]) {
        char *names[2] = {name_of(only[0]), name_of(only[1])};

        note(match, g_strdup_printf("different problems: A is %s; B is %s", names[0], names[1]));
        g_free(names[0]);
        g_free(names[1]);
        add_pair(match, only[0], only[1], false);
    } else {
        error =
            duet_fail(message, DUET_EINVAL,
                      "no run of A%s%s is in B: workload, parameters, n, tile, precision, cpus, "
                      "gpus, policy and set_arch have to be the same",
                      policy ? " with policy " : "", policy ? policy : "");
    }
    g_free(matched[0]);
    g_free(matched[1]);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* One of each                                                                                  */

static int match_mixed(struct duet__match *match, const struct duet__input inputs[2],
                       const char *policy, struct duet_message *message)
{
    unsigned trace = inputs[0].kind == DUET_FILE_TRACE ? 0 : 1;
    const struct duet_file_run *run = only_run(&inputs[!trace].runs, policy);
    struct duet_side sides[2];
    struct duet_case the;

    if (!run)
        return duet_fail(message, DUET_EINVAL, "which run of %.200s is compared with the trace? %s",
                         inputs[!trace].name,
                         policy ? "none, or several, have that policy" : "--policy NAME chooses");
    the = case_of(run);
    sides[trace] = (struct duet_side){.makespans_s = &inputs[trace].makespan_s,
                                      .count = 1,
                                      .account = &inputs[trace].account,
                                      .recording = &inputs[trace].trace.recording};
    sides[!trace] = side_of(run);
    the.predicted = sides[0];
    the.measured = sides[1];
    note(match, g_strdup("only the makespans are compared: a report does not say where the time "
                         "went, --trace F.json writes what does"));
    g_array_append_val(match->cases, the);
    return 0;
}

int duet__match_make(struct duet__match *match, const struct duet__input inputs[2],
                     const char *policy, struct duet_message *message)
{
    bool traces[2] = {inputs[0].kind == DUET_FILE_TRACE, inputs[1].kind == DUET_FILE_TRACE};

    match->cases = g_array_new(FALSE, FALSE, sizeof(struct duet_case));
    match->texts = g_ptr_array_new_with_free_func(g_free);
    match->notes = g_ptr_array_new_with_free_func(g_free);
    if (traces[0] && traces[1] && policy)
        return duet_fail(message, DUET_EINVAL, "--policy chooses runs of reports, not of traces");
    if (!traces[0] && !traces[1])
        return match_reports(match, inputs, policy, message);
    if (traces[0] != traces[1])
        return match_mixed(match, inputs, policy, message);
    match_traces(match, inputs);
    return 0;
}

void duet__match_fini(struct duet__match *match)
{
    if (match->cases)
        g_array_free(match->cases, TRUE);
    if (match->texts)
        g_ptr_array_free(match->texts, TRUE);
    if (match->notes)
        g_ptr_array_free(match->notes, TRUE);
    *match = (struct duet__match){0};
}
