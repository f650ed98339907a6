/* SPDX-License-Identifier: Apache-2.0 */
/* Reading back reports and validations. */
#include "report/runs_file.h"

#include <float.h>
#include <string.h>

#include <glib.h>

#include "platforms/json.h"

enum { SCHEMA = 1 };

enum duet_file_kind duet_file_kind(const char *text, size_t length)
{
    static const struct {
        const char *key;
        enum duet_file_kind kind;
    } kinds[] = {{"traceEvents", DUET_FILE_TRACE},
                 {"runs", DUET_FILE_REPORT},
                 {"cases", DUET_FILE_VALIDATION}};
    enum duet_file_kind kind = DUET_FILE_UNKNOWN;
    struct duet__json_stream stream;
    const char *key = NULL;
    int error = duet__json_stream_open(&stream, text, length, "", NULL);

    while (!error && !kind && !(error = duet__json_stream_key(&stream, &key)) && key)
        for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
            if (strcmp(key, kinds[i].key) == 0)
                kind = kinds[i].kind; /* whether the rest is good, its reader says */
    duet__json_stream_close(&stream);
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

/* ------------------------------------------------------------------------------------------- */
/* Makespans                                                                                    */

/* How many makespans each round has, or null: together all of those that are there. */
static int read_rounds(const struct duet__json *at, struct duet_file_run *run)
{
    size_t left = run->count;
    unsigned count = 0;
    int error = duet__json_array(at, 0, G_MAXINT, &count);

    if (error)
        return error;
    run->rounds = g_new(size_t, count + 1);
    run->round_count = count;
    for (unsigned i = 0; i < count; i++) {
        struct duet__json element = duet__json_element(at, i);
        uint64_t size = 0;

        error = duet__json_integer(&element, 0, INT64_MAX, &size);
        if (!error && size == 0)
            error = duet__json_fail(&element, DUET_EPARSE, "a round of no run makes no sense");
        if (!error && size > left)
            error = duet__json_fail(at, DUET_EPARSE, "the rounds have more than the %zu runs",
                                    run->count);
        if (error)
            return error;
        run->rounds[i] = (size_t)size;
        left -= (size_t)size;
    }
    if (count && left)
        return duet__json_fail(at, DUET_EPARSE, "the rounds have %zu of the %zu runs",
                               run->count - left, run->count);
    return 0;
}

/* An object, if it is there, that has the makespans under `key`. */
static int read_makespans(const struct duet__json *at, const char *key, struct duet_file_run *run)
{
    struct duet__json values = duet__json_member(at, key), rounds = duet__json_member(at, "rounds");
    unsigned count = 0;
    int error;

    if (!duet__json_present(at))
        return 0;
    error = duet__json_keys(at, NULL);
    if (!error && duet__json_present(&values))
        error = duet__json_array(&values, 0, G_MAXINT, &count);
    if (error)
        return error;
    run->makespans_s = g_new(double, count + 1);
    run->count = count;
    for (unsigned i = 0; i < count; i++) {
        struct duet__json element = duet__json_element(&values, i);

        error = duet__json_number(&element, -DBL_MAX, DBL_MAX, &run->makespans_s[i]);
        if (!error && !(run->makespans_s[i] > 0))
            error = duet__json_fail(&element, DUET_EPARSE, "a makespan of %g s makes no sense",
                                    run->makespans_s[i]);
        if (error)
            return error;
    }
    if (duet__json_present(&rounds) && !duet__json_is_null(&rounds))
        error = read_rounds(&rounds, run);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Problems                                                                                     */

/* A text, "" where it is not there. */
static int read_text(const struct duet__json *at, const char *key, char **to)
{
    struct duet__json member = duet__json_member(at, key);
    const char *text = "";
    int error = duet__json_present(&member) ? duet__json_string(&member, &text) : 0;

    *to = g_strdup(text);
    return error;
}

static int read_count(const struct duet__json *at, const char *key, uint64_t most, uint64_t *to)
{
    struct duet__json member = duet__json_member(at, key);

    return duet__json_present(&member) ? duet__json_integer(&member, 0, most, to) : 0;
}

/* What says which problem it is. */
static int read_problem(const struct duet__json *at, struct duet_file_run *run)
{
    struct {
        const char *key;
        char **to;
    } texts[] = {{"world", &run->world},
                 {"workload", &run->workload},
                 {"settings", &run->settings},
                 {"platform", &run->platform},
                 {"policy", &run->policy}};
    struct duet__json set_arch = duet__json_member(at, "set_arch");
    uint64_t cpus = 0, gpus = 0;
    char *precision = NULL;
    int error = duet__json_keys(at, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(texts) && !error; i++)
        error = read_text(at, texts[i].key, texts[i].to);
    if (!error)
        error = read_text(at, "precision", &precision);
    if (!error)
        error = read_count(at, "n", INT64_MAX, &run->n);
    if (!error)
        error = read_count(at, "tile", INT64_MAX, &run->tile);
    if (!error)
        error = read_count(at, "cpus", UINT32_MAX, &cpus);
    if (!error)
        error = read_count(at, "gpus", UINT32_MAX, &gpus);
    if (!error && duet__json_present(&set_arch))
        error = duet__json_boolean(&set_arch, &run->set_arch);
    run->cpus = (unsigned)cpus;
    run->gpus = (unsigned)gpus;
    run->precision = precision ? precision[0] : 0;
    g_free(precision);
    return error;
}

/* Whether it can be compared. */
static int check(const struct duet__json *at, const struct duet_file_run *run)
{
    if (!*run->workload || !*run->policy || !run->precision)
        return duet__json_fail(at, DUET_EPARSE,
                               "a run needs workload, n, tile, precision and policy, as duet "
                               "simulate, run, validate and compare print it");
    return 0;
}

/* ------------------------------------------------------------------------------------------- */
/* Files                                                                                        */

static int read_run(const struct duet__json *at, GArray *runs)
{
    struct duet__json makespans = duet__json_member(at, "makespan_s");
    struct duet_file_run run = {0};
    int error = read_problem(at, &run);

    if (!error)
        error = read_makespans(&makespans, "values", &run);
    if (!error)
        error = check(at, &run);
    if (!error && !*run.world)
        error = duet__json_fail(at, DUET_EPARSE, "a run needs its world");
    if (!error && run.count)
        g_array_append_val(runs, run);
    else
        run_clear(&run);
    return error;
}

/* One side of a case; one without values is left out. */
static int read_side(const struct duet__json *at, const char *world, GArray *runs)
{
    struct duet__json makespans = duet__json_member(at, world);
    struct duet_file_run run = {0};
    int error = read_problem(at, &run);

    if (!error)
        error = read_makespans(&makespans, "makespans_s", &run);
    if (!error)
        error = check(at, &run);
    if (!error && run.count) {
        g_free(run.world);
        run.world = g_strdup(world);
        g_array_append_val(runs, run);
    } else {
        run_clear(&run);
    }
    return error;
}

static int read_all(const struct duet__json *root, GArray *runs, enum duet_file_kind *kind)
{
    struct duet__json schema = duet__json_member(root, "schema"),
                      reports = duet__json_member(root, "runs"),
                      cases = duet__json_member(root, "cases");
    bool report = duet__json_present(&reports);
    const struct duet__json *all = report ? &reports : &cases;
    uint64_t number = 0;
    unsigned count = 0;
    int error = duet__json_keys(root, NULL);

    if (!error && !duet__json_present(&schema))
        error = duet__json_fail(root, DUET_EPARSE, "no \"schema\": not a report of duet's");
    if (!error)
        error = duet__json_integer(&schema, 0, INT64_MAX, &number);
    if (!error && number != SCHEMA)
        error = duet__json_fail(root, DUET_EPARSE, "schema %g, only %d is known", (double)number,
                                SCHEMA);
    if (!error && duet__json_present(all)) {
        *kind = report ? DUET_FILE_REPORT : DUET_FILE_VALIDATION;
        error = duet__json_array(all, 0, G_MAXINT, &count);
    }
    for (unsigned i = 0; i < count && !error; i++) {
        struct duet__json at = duet__json_element(all, i);

        if (report) {
            error = read_run(&at, runs);
        } else {
            error = read_side(&at, "predicted", runs);
            if (!error)
                error = read_side(&at, "measured", runs);
        }
    }
    return error;
}

int duet_runs_file_parse(const char *text, size_t length, const char *path,
                         struct duet_runs_file *out, struct duet_message *message)
{
    GArray *runs = g_array_new(FALSE, FALSE, sizeof(struct duet_file_run));
    struct duet__json root = {0};
    int error = duet__json_parse(text, length, path, message, &root);

    *out = (struct duet_runs_file){0};
    if (!error)
        error = read_all(&root, runs, &out->kind);
    duet__json_close(&root);
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
