/* SPDX-License-Identifier: Apache-2.0 */
/* The files that the subcommands write beside what they print: names, checks, writing. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <duet/policy.h>

#include "cli/job.h"
#include "report/gantt.h"
#include "base/files.h"
#include "base/table.h"
#include "report/page/page.h"
#include "trace/trace.h"
#include "runtime/open.h"
#include "runtime/schedule.h"

/* The data that a file is made from. */
struct source {
    const struct duet__report *report;
    const struct duet__series *series; /* runs of the policy that the file is about */
    const char *path;
    const struct duet__schedule *schedule; /* theirs, for the file of one */
};

static void write_trace(FILE *stream, const void *data)
{
    const struct source *source = data;
    const struct duet__request *request = source->report->request;
    g_autofree char *settings = duet__request_facts(request);
    g_autofree char *options = duet__settings_text(&request->config);
    const char *file = request->platform ? request->platform->file : NULL;
    const double scale = duet__request_scale(request);
    const struct duet__trace trace = {
        .run = source->series->runs[0],
        .world = (char *)(uintptr_t)duet__report_world(source->report),
        .workload = (char *)(uintptr_t)request->workload->name,
        .policy = (char *)(uintptr_t)source->series->policy,
        .settings = *settings ? settings : NULL,
        .n = request->problem.n,
        .tile = request->problem.graph ? 0 : request->problem.tile,
        .scale = scale == 1 ? 0 : scale,
        .estimated = request->estimated,
        .options = options,
        .platform_file = file ? (char *)(uintptr_t)file : NULL,
        .platform_digest = file ? (char *)(uintptr_t)request->platform->digest : NULL,
        .paje = duet__trace_is_paje(source->path),
    };
    duet__trace_write(stream, &trace);
}

/* Returns the name of a policy, "mine:a=1" of "./own/mine.so:a=1". The caller frees it. */
static char *short_name(const char *policy)
{
    char *name = g_strdup(policy);
    duet__names_shorten(&name, 1, 0);
    return name;
}

static void write_gantt(FILE *stream, const void *data)
{
    const struct source *source = data;
    const struct duet__report *report = source->report;
    const struct duet__recording *recording = duet__series_recording(source->series);
    g_autofree char *resources = duet__report_resources(&report->request->machine);
    g_autofree char *problem = duet__report_problem(report);
    g_autofree char *place = duet__request_place(report->request);
    g_autofree char *policy = short_name(source->series->policy);
    g_autofree char *title =
        g_strdup_printf("%s on %s: %s, %.4g s", report->request->workload->name, place, policy,
                        recording->makespan_s);
    g_autofree char *subtitle =
        g_strdup_printf("%s; %s%s%s", problem, resources,
                        duet__request_nodes(report->request) > 1 ? " a node" : "",
                        report->request->estimated ? "; estimated kernel times" : "");
    if (g_str_has_suffix(source->path, ".csv") || g_str_has_suffix(source->path, ".csv.gz"))
        duet__gantt_write_csv(stream, recording);
    else
        duet__gantt_write_svg(stream, recording, title, subtitle);
}

static void write_schedule(FILE *stream, const void *data)
{
    const struct source *source = data;
    duet__schedule_write(stream, source->schedule, source->report->request->machine.name);
}

static void write_html(FILE *stream, const void *data)
{
    struct duet__report report = *((const struct source *)data)->report;
    struct duet__run_plan *plans = g_new0(struct duet__run_plan, report.series_count);
    for (size_t i = 0; i < report.series_count; i++)
        duet__run_plan_make(report.series[i].policy, duet__series_recording(&report.series[i]),
                            duet__request_scale(report.request), &plans[i]);
    report.plans = plans;
    duet__page_write_report(stream, &report);
    for (size_t i = 0; i < report.series_count; i++)
        g_free(plans[i].tasks.events);
    g_free(plans);
}

/* The options that name a file to be written. */
static const struct output {
    const char *option;
    size_t offset;        /* offset of its value in struct duet__values */
    bool each;            /* one file for each policy */
    const char *form;     /* ending of its name; NULL: any */
    duet__file_fn *write; /* writes a struct source; NULL: others write the file */
} outputs[] = {
    {"--trace", offsetof(struct duet__values, trace), true, "json", write_trace},
    {"--gantt", offsetof(struct duet__values, gantt), true, "svg", write_gantt},
    {"--schedule-out", offsetof(struct duet__values, schedule_out), true, "json", write_schedule},
    {"--html", offsetof(struct duet__values, html), false, "html", write_html},
    {"--out", offsetof(struct duet__values, out), false, NULL, NULL},
    {"--env", offsetof(struct duet__values, env), false, NULL, NULL},
    {"--machine-xml", offsetof(struct duet__values, machine_xml), false, "xml", NULL},
};

static const char *path_of(const struct duet__job *job, const struct output *output)
{
    return *(const char *const *)(const void *)((const char *)&job->values + output->offset);
}

/*
 * Returns the path of a policy's file: "out/run.json" becomes "out/run-mine:a=1.json" for the
 * policy "./mine.so:a=1", and "run.json.gz" becomes "run-mine:a=1.json.gz". The caller frees it.
 */
static char *path_for(const char *path, const char *policy)
{
    g_autofree char *name = short_name(policy);
    const char *file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    const char *dot = strrchr(file, '.');
    if (dot && strcmp(dot, ".gz") == 0 && g_strrstr_len(file, dot - file, "."))
        dot = g_strrstr_len(file, dot - file, ".");
    if (!dot || dot == file)
        dot = path + strlen(path);
    return g_strdup_printf("%.*s-%s%s", (int)(dot - path), path, name, dot);
}

/* Returns the names of an output, NULL-ended: one, or one for each policy; for g_strfreev. */
static char **paths_of(const struct duet__job *job, const struct output *output)
{
    const size_t count = output->each ? job->request.policy_count : 1;
    const char *path = path_of(job, output);
    GPtrArray *paths = g_ptr_array_new();
    for (size_t i = 0; path && i < count; i++)
        g_ptr_array_add(paths,
                        count > 1 ? path_for(path, job->request.policies[i]) : g_strdup(path));
    g_ptr_array_add(paths, NULL);
    return (char **)g_ptr_array_free(paths, FALSE);
}

int duet__files_check(const struct duet__job *job)
{
    const char *xml = job->values.machine_xml;
    struct duet_message message;
    if (xml && !g_str_has_suffix(xml, ".xml"))
        return duet__complain(DUET__MISUSED,
                              "--machine-xml %s: the name must end in .xml, so that the file can "
                              "be read again",
                              xml);
    for (size_t i = 0; i < G_N_ELEMENTS(outputs); i++) {
        g_auto(GStrv) paths = paths_of(job, &outputs[i]);
        for (char **path = paths; *path; path++)
            if (duet__file_check(*path, &message))
                return duet__complain(DUET__MISUSED, "%s", message.text);
    }
    return DUET__DONE;
}

/* Returns the runs of a policy whose first run was recorded; NULL if there are none. */
static const struct duet__series *recorded(const struct duet__report *report, const char *policy)
{
    for (size_t i = 0; report->series && i < report->series_count; i++)
        if (strcmp(report->series[i].policy, policy) == 0)
            return duet__series_recording(&report->series[i]) ? &report->series[i] : NULL;
    return NULL;
}

int duet__files_write(const struct duet__job *job, const struct duet__report *report)
{
    struct duet_message message;
    int status = DUET__DONE;
    for (const struct output *output = outputs; output < outputs + G_N_ELEMENTS(outputs);
         output++) {
        g_auto(GStrv) paths = paths_of(job, output);
        /* a file that fails does not keep the others from being written */
        for (size_t i = 0; paths[i] && report->series_count && output->write; i++) {
            const bool improved =
                job->improved && output->each && i + 1 == job->request.policy_count;
            struct duet__schedule *schedule = NULL;
            struct source source = {.report = report,
                                    .series = output->each
                                                  ? recorded(report, job->request.policies[i])
                                                  : report->series,
                                    .path = paths[i]};
            const struct duet__recording *recording =
                source.series ? duet__series_recording(source.series) : NULL;
            int error = 0;
            if (recording && output->write == write_schedule && !improved)
                error = duet__schedule_take(paths[i], recording, &schedule, &message);
            if (schedule)
                duet__schedule_unscale(schedule, duet__request_scale(report->request));
            source.schedule = improved ? job->improved : schedule;
            if (source.series && !error)
                error = duet__file_write(paths[i], output->write, &source, &message);
            if (error)
                status = duet__complain(DUET__FAILED, "%s", message.text);
            duet__schedule_free(schedule);
        }
    }
    return status;
}

/* ------------------------------------------------------------------------------------------- */
/* Checks that all files are different ones                                                     */

/* True if several can write the file: it exists and is not ordinary, as /dev/null. */
static bool is_special(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

/*
 * Returns the one name that all names of a file have in common: without links, "." and "..", as far
 * as the file exists, which it need not. Follows `hops` links that point to nothing. The caller
 * frees it.
 */
static char *canonical(const char *path, unsigned hops)
{
    g_autofree char *folder = g_path_get_dirname(path), *name = g_path_get_basename(path);
    g_autofree char *target = hops ? g_file_read_link(path, NULL) : NULL;
    g_autofree char *real = realpath(path, NULL), *place = realpath(folder, NULL), *next = NULL;
    if (real)
        return g_steal_pointer(&real);
    if (!target)
        return g_build_filename(place ? place : folder, name, NULL);
    next = g_path_is_absolute(target) ? g_strdup(target) : g_build_filename(folder, target, NULL);
    return canonical(next, hops - 1);
}

enum { HOPS = 40 }; /* as many as the system follows */

bool duet__files_same(const char *first, const char *second)
{
    g_autofree char *one = canonical(first, HOPS), *other = canonical(second, HOPS);
    return !is_special(first) && !is_special(second) && strcmp(one, other) == 0;
}

/*
 * Notes a file in `files`, under its canonical name, with its description `what`, which it takes.
 * Returns DUET_EINVAL if the file is to be written and was noted before.
 */
static int claim(GHashTable *files, char *what, const char *path, bool output,
                 struct duet_message *message)
{
    char *file = canonical(path, HOPS);
    const char *other = g_hash_table_lookup(files, file);
    int error = 0;
    if (output && other)
        error = duet_fail(message, DUET_EINVAL, "%s and %s are one file, %s", other, what, path);
    if (!other && !is_special(path)) {
        g_hash_table_insert(files, file, what);
        return 0;
    }
    g_free(file);
    g_free(what);
    return error;
}

/* Notes the machine's file, and its kernel times where they lie beside it under a usual name. */
static int claim_platform(GHashTable *files, const char *option, const char *path,
                          struct duet_message *message)
{
    const char *dot = strrchr(path, '.');
    g_autofree char *stem = g_strndup(path, dot ? (size_t)(dot - path) : strlen(path));
    const char *const names[] = {path, stem};
    int error = 0;
    if (!strchr(path, '/') && !g_str_has_suffix(path, ".json") && !g_str_has_suffix(path, ".xml"))
        return 0;
    error = claim(files, g_strdup(option), path, false, message);
    for (size_t i = 0; i < G_N_ELEMENTS(names) && !error; i++) {
        g_autofree char *times = g_strconcat(names[i], ".kernels.json", NULL);
        if (g_file_test(times, G_FILE_TEST_EXISTS))
            error = claim(files, g_strdup_printf("the kernel times of %s", option), times, false,
                          message);
    }
    return error;
}

/* Refuses a name that promises another form than the file has: pictures that are not drawn here. */
static int check_form(const struct output *output, const char *path, struct duet_message *message)
{
    static const char *const others[] = {".png", ".pdf", ".jpg", ".jpeg", ".eps", ".ps", ".gif"};
    if (output->write == write_schedule && !duet__schedule_is(path))
        return duet_fail(message, DUET_EINVAL,
                         "%s %s: end the name in .json or .json.gz, as --policy takes it",
                         output->option, path);
    for (size_t i = 0; i < G_N_ELEMENTS(others) && output->form; i++)
        if (g_str_has_suffix(path, others[i]))
            return duet_fail(message, DUET_EINVAL,
                             "%s %s: what is written is %s, not %s: end the name in .%s",
                             output->option, path, output->form, others[i] + 1, output->form);
    return 0;
}

static int claim_output(GHashTable *files, const struct duet__job *job, const struct output *output,
                        struct duet_message *message)
{
    g_auto(GStrv) paths = paths_of(job, output);
    int error = 0;
    if (paths[0] && !*path_of(job, output))
        error =
            duet_fail(message, DUET_EINVAL, "%s takes the name of a file, not ''", output->option);
    if (paths[0] && !error)
        error = check_form(output, path_of(job, output), message);
    for (size_t i = 0; paths[i] && !error; i++)
        error =
            claim(files,
                  paths[1] ? g_strdup_printf("%s of %s", output->option, job->request.policies[i])
                           : g_strdup(output->option),
                  paths[i], true, message);
    return error;
}

int duet__files_distinct(const struct duet__job *job, struct duet_message *message)
{
    g_autoptr(GHashTable) files = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    const char *platform = duet__request_platform(&job->request), *xml = job->values.machine_xml;
    int error = 0;
    if (platform)
        error = claim_platform(files, job->platform_option, platform, message);
    if (job->graph_path && !error)
        error = claim(files, g_strdup("the task graph"), job->graph_path, false, message);
    if (job->values.cases && !error)
        error = claim(files, g_strdup("--cases"), job->values.cases, false, message);
    for (size_t i = 0; i < job->request.policy_count && !error; i++) {
        g_autofree char *base = duet__policy_base(job->request.policies[i]);
        if (!duet_policy_find(base))
            error = claim(files, g_strdup_printf("--policy %s", base), base, false, message);
    }
    for (size_t i = 0; job->program && job->program[i] && !error; i++) {
        g_autofree char *found = i ? NULL : g_find_program_in_path(job->program[i]);
        const char *path = found ? found : job->program[i];
        if (g_file_test(path, G_FILE_TEST_IS_REGULAR))
            error = claim(files, g_strdup(i ? "an argument of the program" : "the program"), path,
                          false, message);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(outputs) && !error; i++)
        error = claim_output(files, job, &outputs[i], message);
    if (xml && !error) {
        g_autofree char *times = g_strconcat(xml, ".kernels.json", NULL);
        error = claim(files, g_strdup("the kernel times of --machine-xml"), times, true, message);
    }
    return error;
}
