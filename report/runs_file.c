/* SPDX-License-Identifier: Apache-2.0 */
/* Reading back reports and validations. */
#include "report/runs_file.h"

#include <string.h>

#include <glib.h>

#include "report/json_reader.h"

enum { SCHEMA = 1 };

enum duet_file_kind duet_file_kind(const char *text, size_t length)
{
    enum duet_file_kind kind = DUET_FILE_UNKNOWN;
    struct duet__reader json;
    const char *key;

    duet__reader_begin(&json, text, length, "", NULL);
    duet__reader_object(&json);
    while (kind == DUET_FILE_UNKNOWN && duet__reader_key(&json, &key)) {
        if (strcmp(key, "traceEvents") == 0)
            kind = DUET_FILE_TRACE;
        else if (strcmp(key, "runs") == 0)
            kind = DUET_FILE_REPORT;
        else if (strcmp(key, "cases") == 0)
            kind = DUET_FILE_VALIDATION;
        else
            duet__reader_skip(&json);
    }
    /* the rest is not looked at: whether it is good, its reader says */
    if (duet__reader_end(&json) && kind == DUET_FILE_UNKNOWN)
        return DUET_FILE_UNKNOWN;
    return kind;
}

static void run_clear(struct duet_file_run *run)
{
    g_free(run->world);
    g_free(run->workload);
    g_free(run->settings);
    g_free(run->platform);
    g_free(run->policy);
    g_free(run->makespans_s);
    g_free(run->rounds);
    *run = (struct duet_file_run){0};
}

static void read_text(struct duet__reader *json, char **to)
{
    const char *text;

    if (duet__reader_text(json, &text)) {
        g_free(*to);
        *to = g_strdup(text);
    }
}

static void read_unsigned(struct duet__reader *json, unsigned *to)
{
    uint64_t value;

    if (duet__reader_count(json, UINT32_MAX, &value))
        *to = (unsigned)value;
}

/* An array of makespans; it replaces what was there. */
static void read_values(struct duet__reader *json, struct duet_file_run *run)
{
    GArray *values = g_array_new(FALSE, FALSE, sizeof(double));
    double value = 0;

    duet__reader_array(json);
    while (duet__reader_next(json)) {
        if (duet__reader_number(json, &value) && !(value > 0))
            duet__reader_wrong(json, "a makespan of %g s makes no sense", value);
        g_array_append_val(values, value);
    }
    g_free(run->makespans_s);
    run->count = values->len;
    run->makespans_s = (double *)(void *)g_array_free(values, FALSE);
}

/* How many makespans each round has, or null. */
static void read_rounds(struct duet__reader *json, struct duet_file_run *run)
{
    GArray *sizes;
    uint64_t size = 0;

    if (duet__reader_null(json))
        return;
    sizes = g_array_new(FALSE, FALSE, sizeof(size_t));
    duet__reader_array(json);
    while (duet__reader_next(json)) {
        size_t own;

        if (duet__reader_count(json, SIZE_MAX / 2, &size) && size == 0)
            duet__reader_wrong(json, "a round of no run makes no sense");
        own = (size_t)size;
        g_array_append_val(sizes, own);
    }
    g_free(run->rounds);
    run->round_count = sizes->len;
    run->rounds = (size_t *)(void *)g_array_free(sizes, FALSE);
}

/* The rounds are those of the makespans that are there. */
static void check_rounds(struct duet__reader *json, const struct duet_file_run *run)
{
    size_t left = run->count;

    for (size_t i = 0; i < run->round_count && !json->error; i++) {
        if (run->rounds[i] > left)
            duet__reader_wrong(json, "the rounds have more than the %zu runs", run->count);
        left -= MIN(left, run->rounds[i]);
    }
    if (run->round_count && left && !json->error)
        duet__reader_wrong(json, "the rounds have %zu of the %zu runs", run->count - left,
                           run->count);
}

/* An object that has the makespans under the key `wanted`. */
static void read_makespans(struct duet__reader *json, const char *wanted, struct duet_file_run *run)
{
    const char *key;

    duet__reader_object(json);
    while (duet__reader_key(json, &key)) {
        if (strcmp(key, wanted) == 0)
            read_values(json, run);
        else if (strcmp(key, "rounds") == 0)
            read_rounds(json, run);
        else
            duet__reader_skip(json);
    }
    check_rounds(json, run);
}

/* What says which problem it is; false: the key is another one. */
static bool read_problem(struct duet__reader *json, const char *key, struct duet_file_run *run)
{
    const char *text;

    if (strcmp(key, "workload") == 0)
        read_text(json, &run->workload);
    else if (strcmp(key, "settings") == 0)
        read_text(json, &run->settings);
    else if (strcmp(key, "platform") == 0)
        read_text(json, &run->platform);
    else if (strcmp(key, "policy") == 0)
        read_text(json, &run->policy);
    else if (strcmp(key, "world") == 0)
        read_text(json, &run->world);
    else if (strcmp(key, "n") == 0)
        duet__reader_count(json, UINT64_MAX, &run->n);
    else if (strcmp(key, "tile") == 0)
        duet__reader_count(json, UINT64_MAX, &run->tile);
    else if (strcmp(key, "cpus") == 0)
        read_unsigned(json, &run->cpus);
    else if (strcmp(key, "gpus") == 0)
        read_unsigned(json, &run->gpus);
    else if (strcmp(key, "set_arch") == 0)
        duet__reader_flag(json, &run->set_arch);
    else if (strcmp(key, "precision") == 0 && duet__reader_text(json, &text))
        run->precision = text[0];
    else
        return strcmp(key, "precision") == 0;
    return true;
}

/* Whether it can be compared: complains where it cannot. */
static bool complete(struct duet__reader *json, struct duet_file_run *run)
{
    if (json->error)
        return false;
    if (!run->workload || !run->policy || !run->precision)
        return duet__reader_wrong(json, "a run needs workload, n, tile, precision and policy, as "
                                        "duet simulate, run, validate and compare print it");
    if (!run->settings)
        run->settings = g_strdup("");
    if (!run->platform)
        run->platform = g_strdup("");
    return true;
}

static void read_run(struct duet__reader *json, GArray *runs)
{
    struct duet_file_run run = {0};
    const char *key;

    duet__reader_object(json);
    while (duet__reader_key(json, &key)) {
        if (strcmp(key, "makespan_s") == 0)
            read_makespans(json, "values", &run);
        else if (!read_problem(json, key, &run))
            duet__reader_skip(json);
    }
    if (complete(json, &run) && !run.world)
        duet__reader_wrong(json, "a run needs its world");
    if (!json->error && run.count)
        g_array_append_val(runs, run);
    else
        run_clear(&run);
}

/* One side of a case, which takes over the makespans. */
static void add_side(GArray *runs, const struct duet_file_run *problem, const char *world,
                     struct duet_file_run *side)
{
    struct duet_file_run run = *problem;

    if (!side->count)
        return;
    run.world = g_strdup(world);
    run.workload = g_strdup(problem->workload);
    run.settings = g_strdup(problem->settings);
    run.platform = g_strdup(problem->platform);
    run.policy = g_strdup(problem->policy);
    run.makespans_s = g_steal_pointer(&side->makespans_s);
    run.count = side->count;
    run.rounds = g_steal_pointer(&side->rounds);
    run.round_count = side->round_count;
    g_array_append_val(runs, run);
}

static void read_case(struct duet__reader *json, GArray *runs)
{
    struct duet_file_run problem = {0}, predicted = {0}, measured = {0};
    const char *key;

    duet__reader_object(json);
    while (duet__reader_key(json, &key)) {
        if (strcmp(key, "predicted") == 0)
            read_makespans(json, "makespans_s", &predicted);
        else if (strcmp(key, "measured") == 0)
            read_makespans(json, "makespans_s", &measured);
        else if (!read_problem(json, key, &problem))
            duet__reader_skip(json);
    }
    if (complete(json, &problem)) {
        add_side(runs, &problem, "predicted", &predicted);
        add_side(runs, &problem, "measured", &measured);
    }
    run_clear(&problem);
    run_clear(&predicted);
    run_clear(&measured);
}

static void read_all(struct duet__reader *json, GArray *runs, enum duet_file_kind *kind)
{
    uint64_t schema = 0;
    const char *key;

    duet__reader_object(json);
    while (duet__reader_key(json, &key)) {
        bool report = strcmp(key, "runs") == 0;

        if (strcmp(key, "schema") == 0) {
            if (duet__reader_count(json, UINT64_MAX, &schema) && schema != SCHEMA)
                duet__reader_wrong(json, "schema %g, only %d is known", (double)schema, SCHEMA);
        } else if (*kind == DUET_FILE_UNKNOWN && (report || strcmp(key, "cases") == 0)) {
            *kind = report ? DUET_FILE_REPORT : DUET_FILE_VALIDATION;
            duet__reader_array(json);
            while (duet__reader_next(json)) {
                if (report)
                    read_run(json, runs);
                else
                    read_case(json, runs);
            }
        } else {
            duet__reader_skip(json);
        }
    }
    if (!json->error && schema != SCHEMA)
        duet__reader_wrong(json, "no \"schema\": not a report of duet's");
}

int duet_runs_file_parse(const char *text, size_t length, const char *path,
                         struct duet_runs_file *out, struct duet_message *message)
{
    GArray *runs = g_array_new(FALSE, FALSE, sizeof(struct duet_file_run));
    struct duet__reader json;
    int error;

    *out = (struct duet_runs_file){0};
    duet__reader_begin(&json, text, length, path, message);
    read_all(&json, runs, &out->kind);
    error = duet__reader_end(&json);
    if (!error && !runs->len)
        error = duet_fail(message, DUET_EPARSE,
                          "%.300s: there is no run in this file, which should be a trace or the "
                          "JSON of duet simulate, run, validate or compare",
                          path);
    out->count = runs->len;
    out->runs = (struct duet_file_run *)(void *)g_array_free(runs, FALSE);
    if (error)
        duet_runs_file_fini(out);
    return error;
}

void duet_runs_file_fini(struct duet_runs_file *file)
{
    for (size_t i = 0; i < file->count; i++)
        run_clear(&file->runs[i]);
    g_free(file->runs);
    *file = (struct duet_runs_file){0};
}
