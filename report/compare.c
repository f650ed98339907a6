/* SPDX-License-Identifier: Apache-2.0 */
/* Which run of one file is compared with which of the other. */
#include "report/compare.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "report/report.h"

enum {
    MOST_NOTES = 20, /* about runs that are in one file only */
    MOST_MIB = 512,  /* of a file that is read */
};

static void note(struct duet_comparison *comparison, char *text)
{
    g_ptr_array_add(comparison->notes, text);
}

static const char *keep(struct duet_comparison *comparison, char *text)
{
    g_ptr_array_add(comparison->texts, text);
    return text;
}

/* Two names that are mostly one. */
static const char *both(struct duet_comparison *comparison, const char *first, const char *second)
{
    if (strcmp(first, second) == 0)
        return first;
    return keep(comparison, g_strdup_printf("%s / %s", first, second));
}

/* ------------------------------------------------------------------------------------------- */
/* Files                                                                                        */

/* A whole file, or what a pipe gives. */
static int load(const char *path, GString *text, struct duet_message *message)
{
    FILE *file = fopen(path, "rb");
    int error = 0;
    size_t got;

    if (!file)
        return duet_fail(message, DUET_EIO, "%s: cannot open: %s", path, g_strerror(errno));
    do {
        gsize before = text->len;

        g_string_set_size(text, before + (1 << 16));
        got = fread(text->str + before, 1, 1 << 16, file);
        g_string_truncate(text, before + got);
        if (text->len > (gsize)MOST_MIB << 20)
            error = duet_fail(message, DUET_EIO, "%s: larger than %d MiB, the most that is read",
                              path, MOST_MIB);
    } while (got > 0 && !error);
    if (ferror(file))
        error = duet_fail(message, DUET_EIO, "%s: cannot read: %s", path, g_strerror(errno));
    fclose(file);
    return error;
}

static int read_trace(struct duet_compared_file *file, const GString *text, const char *path,
                      struct duet_message *message)
{
    struct duet_message why = {""};
    int error = duet_trace_file_parse(text->str, text->len, path, &file->trace, message);

    if (error)
        return error;
    file->makespan_s = file->trace.recording.makespan_s;
    error = duet_account_make(&file->trace.recording, &file->account, &why);
    if (error)
        return duet_fail(message, error, "%.300s: %s", path, why.text);
    if (!(file->makespan_s > 0))
        return duet_fail(message, DUET_EPARSE, "%.300s: its kernels take no time", path);
    return 0;
}

static int read_file(struct duet_compared_file *file, char letter, const char *path,
                     struct duet_message *message)
{
    GString *text = g_string_new(NULL);
    int error = load(path, text, message);

    file->name = g_strdup_printf("%c: %s", letter, path);
    if (!error) {
        file->kind = duet_file_kind(text->str, text->len);
        error = file->kind == DUET_FILE_TRACE
                    ? read_trace(file, text, path, message)
                    : duet_runs_file_parse(text->str, text->len, path, &file->runs, message);
    }
    g_string_free(text, TRUE);
    return error;
}

static char *place_of(const struct duet_compared_file *file)
{
    const struct duet_runs_file *runs = &file->runs;
    bool several = false;

    if (file->kind == DUET_FILE_TRACE) {
        g_autofree char *resources = duet_report_resources(&file->trace.machine);

        return g_strdup_printf("%s, %s", file->trace.machine.name, resources);
    }
    for (size_t i = 1; i < runs->count; i++)
        several |= strcmp(runs->runs[i].problem.platform, runs->runs[0].problem.platform) != 0;
    return g_strconcat(runs->runs[0].problem.platform, several ? " and others" : "", NULL);
}

char *duet_comparison_place(const struct duet_comparison *comparison)
{
    g_autofree char *first = place_of(&comparison->files[0]);
    g_autofree char *second = place_of(&comparison->files[1]);

    return strcmp(first, second) == 0 ? g_strdup(first)
                                      : g_strdup_printf("%s (A) and %s (B)", first, second);
}

/* ------------------------------------------------------------------------------------------- */
/* Traces                                                                                       */

static struct duet_side side_of_trace(const struct duet_compared_file *file, bool explained)
{
    return (struct duet_side){.makespans_s = &file->makespan_s,
                              .count = 1,
                              .account = explained ? &file->account : NULL,
                              .recording = &file->trace.recording};
}

/* An explanation divides by the workers: it needs as many of them. */
static void match_traces(struct duet_comparison *comparison)
{
    const struct duet_compared_file *files = comparison->files;
    const struct duet_machine *machine = &files[0].trace.machine;
    bool explained = files[0].account.workers == files[1].account.workers;
    struct duet_case the = {
        .workload = "trace",
        .settings = "",
        .platform = both(comparison, machine->name, files[1].trace.machine.name),
        .policy = "-",
        .precision = '-',
        .cpus = duet_report_cpus(machine),
        .gpus = duet_report_gpus(machine),
        .predicted = side_of_trace(&files[0], explained),
        .measured = side_of_trace(&files[1], explained),
    };

    if (!explained)
        note(comparison,
             g_strdup_printf("only the makespans are compared: A has %u workers, B has %u",
                             files[0].account.workers, files[1].account.workers));
    g_array_append_val(comparison->cases, the);
}

/* ------------------------------------------------------------------------------------------- */
/* Reports                                                                                      */

static bool is_predicted(const struct duet_file_run *run)
{
    return strcmp(run->world, "predicted") == 0 || strcmp(run->world, "simulated") == 0;
}

static bool same_problem(const struct duet_case *a, const struct duet_case *b)
{
    return strcmp(a->workload, b->workload) == 0 && strcmp(a->settings, b->settings) == 0 &&
           strcmp(a->policy, b->policy) == 0 && a->n == b->n && a->tile == b->tile &&
           a->cpus == b->cpus && a->gpus == b->gpus && a->precision == b->precision &&
           a->set_arch == b->set_arch;
}

static bool wanted(const struct duet_file_run *run, const char *policy)
{
    return !policy || strcmp(run->problem.policy, policy) == 0;
}

/* "cholesky, n 3840, ..., simulated": free with g_free. */
static char *name_of(const struct duet_file_run *run)
{
    g_autofree char *name = duet__case_name(&run->problem);

    return g_strdup_printf("%s, %s", name, run->world);
}

static void add_pair(struct duet_comparison *comparison, const struct duet_file_run *first,
                     const struct duet_file_run *second, bool worlds)
{
    struct duet_case the = first->problem;
    const struct duet_case *other = &second->problem;

    the.workload = both(comparison, the.workload, other->workload);
    the.settings = both(comparison, the.settings, other->settings);
    the.platform = both(comparison, the.platform, other->platform);
    the.policy = both(comparison, the.policy, other->policy);
    if (worlds) /* which of the two runs of the problem it is: policies are ranked among either */
        the.settings = keep(comparison, g_strdup_printf("%s%sworld=%s", the.settings,
                                                        *the.settings ? ", " : "", first->world));
    the.predicted = first->side;
    the.measured = second->side;
    g_array_append_val(comparison->cases, the);
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

static void note_unmatched(struct duet_comparison *comparison, const struct duet_runs_file *runs,
                           const bool *matched, const char *policy, char letter)
{
    size_t left = 0;

    for (size_t i = 0; i < runs->count; i++) {
        char *name;

        if (matched[i] || !wanted(&runs->runs[i], policy) || left++ >= MOST_NOTES)
            continue;
        name = name_of(&runs->runs[i]);
        note(comparison, g_strdup_printf("only in %c: %s", letter, name));
        g_free(name);
    }
    if (left > MOST_NOTES)
        note(comparison, g_strdup_printf("only in %c: %zu more", letter, left - MOST_NOTES));
}

/* Each run of the first with the first one of the second that is left. A validation has runs of
   both kinds of one problem, and each is compared with its own kind. */
static void match_runs(struct duet_comparison *comparison, const char *policy, bool *matched[2])
{
    const struct duet_compared_file *files = comparison->files;
    const struct duet_runs_file *a = &files[0].runs, *b = &files[1].runs;
    bool worlds = files[0].kind == DUET_FILE_VALIDATION || files[1].kind == DUET_FILE_VALIDATION;

    for (size_t i = 0; i < a->count; i++) {
        if (!wanted(&a->runs[i], policy))
            continue;
        for (size_t j = 0; j < b->count && !matched[0][i]; j++) {
            if (matched[1][j] || !same_problem(&a->runs[i].problem, &b->runs[j].problem) ||
                (worlds && is_predicted(&a->runs[i]) != is_predicted(&b->runs[j])))
                continue;
            matched[0][i] = matched[1][j] = true;
            add_pair(comparison, &a->runs[i], &b->runs[j], worlds);
        }
    }
}

static int match_reports(struct duet_comparison *comparison, const char *policy,
                         struct duet_message *message)
{
    const struct duet_runs_file *a = &comparison->files[0].runs, *b = &comparison->files[1].runs;
    const struct duet_file_run *only[2] = {only_run(a, policy), only_run(b, policy)};
    bool *matched[2] = {g_new0(bool, a->count), g_new0(bool, b->count)};
    int error = 0;

    match_runs(comparison, policy, matched);
    if (comparison->cases->len) {
        note_unmatched(comparison, a, matched[0], policy, 'A');
        note_unmatched(comparison, b, matched[1], policy, 'B');
    } else if (only[0] && only[1]) {
        char *names[2] = {name_of(only[0]), name_of(only[1])};

        note(comparison,
             g_strdup_printf("different problems: A is %s; B is %s", names[0], names[1]));
        g_free(names[0]);
        g_free(names[1]);
        add_pair(comparison, only[0], only[1], false);
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

static int match_mixed(struct duet_comparison *comparison, const char *policy,
                       struct duet_message *message)
{
    unsigned trace = comparison->files[0].kind == DUET_FILE_TRACE ? 0 : 1;
    const struct duet_compared_file *other = &comparison->files[!trace];
    const struct duet_file_run *run = only_run(&other->runs, policy);
    struct duet_side sides[2];
    struct duet_case the;

    if (!run)
        return duet_fail(message, DUET_EINVAL, "which run of %.200s is compared with the trace? %s",
                         other->name,
                         policy ? "none, or several, have that policy" : "--policy NAME chooses");
    sides[trace] = side_of_trace(&comparison->files[trace], true);
    sides[!trace] = run->side;
    the = run->problem;
    the.predicted = sides[0];
    the.measured = sides[1];
    note(comparison,
         g_strdup("only the makespans are compared: a report does not say where the time went, "
                  "--trace F.json writes what does"));
    g_array_append_val(comparison->cases, the);
    return 0;
}

int duet_comparison_make(struct duet_comparison *comparison, const char *const paths[2],
                         const char *policy, struct duet_message *message)
{
    bool traces[2];

    comparison->cases = g_array_new(FALSE, FALSE, sizeof(struct duet_case));
    comparison->texts = g_ptr_array_new_with_free_func(g_free);
    comparison->notes = g_ptr_array_new_with_free_func(g_free);
    for (unsigned i = 0; i < 2; i++) {
        int error = read_file(&comparison->files[i], (char)('A' + i), paths[i], message);

        if (error)
            return error;
        traces[i] = comparison->files[i].kind == DUET_FILE_TRACE;
    }
    if (traces[0] && traces[1] && policy)
        return duet_fail(message, DUET_EINVAL, "--policy chooses runs of reports, not of traces");
    if (!traces[0] && !traces[1])
        return match_reports(comparison, policy, message);
    if (traces[0] != traces[1])
        return match_mixed(comparison, policy, message);
    match_traces(comparison);
    return 0;
}

void duet_comparison_fini(struct duet_comparison *comparison)
{
    for (unsigned i = 0; i < 2; i++) {
        struct duet_compared_file *file = &comparison->files[i];

        g_free(file->name);
        duet_runs_file_fini(&file->runs);
        duet_account_fini(&file->account);
        duet_trace_file_fini(&file->trace);
    }
    if (comparison->cases) {
        g_array_free(comparison->cases, TRUE);
        g_ptr_array_free(comparison->texts, TRUE);
        g_ptr_array_free(comparison->notes, TRUE);
    }
    *comparison = (struct duet_comparison){0};
}
