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

/* What has been read so far. After an error nothing more is read: the first one stays. */
struct loader {
    int error;
    GArray *runs;     /* struct duet_file_run */
    GPtrArray *owned; /* what they point to */
};

/* ------------------------------------------------------------------------------------------- */
/* Makespans                                                                                    */

/* Takes over what runs point to. */
static void *keep(struct loader *loader, void *memory)
{
    g_ptr_array_add(loader->owned, memory);
    return memory;
}

static unsigned length_of(struct loader *loader, const struct duet__json *at)
{
    unsigned count = 0;

    if (!loader->error)
        loader->error = duet__json_array(at, 0, G_MAXINT, &count);
    return count;
}

/* How many makespans each round has, or null: together all of those that are there. */
static void read_rounds(struct loader *loader, const struct duet__json *at, struct duet_side *side)
{
    unsigned count = length_of(loader, at);
    size_t *rounds = keep(loader, g_new(size_t, count + 1)), left = side->count;

    side->rounds = rounds;
    side->round_count = count;
    for (unsigned i = 0; i < count && !loader->error; i++) {
        struct duet__json element = duet__json_element(at, i);
        uint64_t size = 0;

        loader->error = duet__json_integer(&element, 0, INT64_MAX, &size);
        if (!loader->error && size == 0)
            loader->error =
                duet__json_fail(&element, DUET_EPARSE, "a round of no run makes no sense");
        if (!loader->error && size > left)
            loader->error = duet__json_fail(at, DUET_EPARSE,
                                            "the rounds have more than the %zu runs", side->count);
        rounds[i] = (size_t)size;
        left -= (size_t)size;
    }
    if (!loader->error && count && left)
        loader->error = duet__json_fail(at, DUET_EPARSE, "the rounds have %zu of the %zu runs",
                                        side->count - left, side->count);
}

/* An object, if it is there, that has the makespans under `key`. */
static void read_makespans(struct loader *loader, const struct duet__json *at, const char *key,
                           struct duet_side *side)
{
    struct duet__json values = duet__json_member(at, key), rounds = duet__json_member(at, "rounds");
    double *makespans_s;

    if (loader->error || !duet__json_present(at))
        return;
    loader->error = duet__json_keys(at, NULL);
    side->count = duet__json_present(&values) ? length_of(loader, &values) : 0;
    side->makespans_s = makespans_s = keep(loader, g_new(double, side->count + 1));
    for (unsigned i = 0; i < side->count && !loader->error; i++) {
        struct duet__json element = duet__json_element(&values, i);
        double seconds = 0;

        loader->error = duet__json_number(&element, -DBL_MAX, DBL_MAX, &seconds);
        if (!loader->error && !(seconds > 0))
            loader->error = duet__json_fail(&element, DUET_EPARSE,
                                            "a makespan of %g s makes no sense", seconds);
        makespans_s[i] = seconds;
    }
    if (duet__json_present(&rounds) && !duet__json_is_null(&rounds))
        read_rounds(loader, &rounds, side);
}

/* ------------------------------------------------------------------------------------------- */
/* Problems                                                                                     */

/* A text, "" where it is not there. */
static const char *text_of(struct loader *loader, const struct duet__json *at, const char *key)
{
    struct duet__json member = duet__json_member(at, key);
    const char *text = "";

    if (!loader->error && duet__json_present(&member))
        loader->error = duet__json_string(&member, &text);
    return keep(loader, g_strdup(text));
}

/* 0 where it is not there. */
static uint64_t count_of(struct loader *loader, const struct duet__json *at, const char *key,
                         uint64_t most)
{
    struct duet__json member = duet__json_member(at, key);
    uint64_t count = 0;

    if (!loader->error && duet__json_present(&member))
        loader->error = duet__json_integer(&member, 0, most, &count);
    return count;
}

/* What says which problem it is. */
static void read_problem(struct loader *loader, const struct duet__json *at,
                         struct duet_case *problem)
{
    struct duet__json set_arch = duet__json_member(at, "set_arch");

    loader->error = duet__json_keys(at, NULL);
    problem->workload = text_of(loader, at, "workload");
    problem->settings = text_of(loader, at, "settings");
    problem->platform = text_of(loader, at, "platform");
    problem->policy = text_of(loader, at, "policy");
    problem->precision = text_of(loader, at, "precision")[0];
    problem->n = count_of(loader, at, "n", INT64_MAX);
    problem->tile = count_of(loader, at, "tile", INT64_MAX);
    problem->cpus = (unsigned)count_of(loader, at, "cpus", UINT32_MAX);
    problem->gpus = (unsigned)count_of(loader, at, "gpus", UINT32_MAX);
    if (!loader->error && duet__json_present(&set_arch))
        loader->error = duet__json_boolean(&set_arch, &problem->set_arch);
}

/* ------------------------------------------------------------------------------------------- */
/* Files                                                                                        */

/*
 * A run of a report, or one side of a case, whose makespans are in the member `side` of it under
 * `values`; one without makespans is left out. `world`: of a side; NULL: it says that itself.
 */
static void read_run(struct loader *loader, const struct duet__json *at, const char *side,
                     const char *values, const char *world)
{
    struct duet__json makespans = duet__json_member(at, side);
    struct duet_file_run run = {0};

    if (loader->error)
        return;
    read_problem(loader, at, &run.problem);
    read_makespans(loader, &makespans, values, &run.side);
    if (!loader->error &&
        (!*run.problem.workload || !*run.problem.policy || !run.problem.precision))
        loader->error = duet__json_fail(at, DUET_EPARSE,
                                        "a run needs workload, n, tile, precision and policy, as "
                                        "duet simulate, run, validate and compare print it");
    run.world = world ? world : text_of(loader, at, "world");
    if (!loader->error && !*run.world)
        loader->error = duet__json_fail(at, DUET_EPARSE, "a run needs its world");
    if (!loader->error && run.side.count)
        g_array_append_val(loader->runs, run);
}

static void read_all(struct loader *loader, const struct duet__json *root,
                     enum duet_file_kind *kind)
{
    struct duet__json schema = duet__json_member(root, "schema"),
                      runs = duet__json_member(root, "runs"),
                      cases = duet__json_member(root, "cases");
    bool report = duet__json_present(&runs);
    const struct duet__json *all = report ? &runs : &cases;
    uint64_t number;
    unsigned count = 0;

    loader->error = duet__json_keys(root, NULL);
    if (!loader->error && !duet__json_present(&schema))
        loader->error = duet__json_fail(root, DUET_EPARSE, "no \"schema\": not a report of duet's");
    number = count_of(loader, root, "schema", INT64_MAX);
    if (!loader->error && number != SCHEMA)
        loader->error = duet__json_fail(root, DUET_EPARSE, "schema %g, only %d is known",
                                        (double)number, SCHEMA);
    if (!loader->error && duet__json_present(all)) {
        *kind = report ? DUET_FILE_REPORT : DUET_FILE_VALIDATION;
        count = length_of(loader, all);
    }
    for (unsigned i = 0; i < count && !loader->error; i++) {
        struct duet__json at = duet__json_element(all, i);

        if (report) {
            read_run(loader, &at, "makespan_s", "values", NULL);
        } else {
            read_run(loader, &at, "predicted", "makespans_s", "predicted");
            read_run(loader, &at, "measured", "makespans_s", "measured");
        }
    }
}

int duet_runs_file_parse(const char *text, size_t length, const char *path,
                         struct duet_runs_file *out, struct duet_message *message)
{
    struct loader loader = {.runs = g_array_new(FALSE, FALSE, sizeof(struct duet_file_run)),
                            .owned = g_ptr_array_new_with_free_func(g_free)};
    struct duet__json root = {0};
    int error = duet__json_parse(text, length, path, message, &root);

    *out = (struct duet_runs_file){0};
    if (!error) {
        read_all(&loader, &root, &out->kind);
        error = loader.error;
    }
    duet__json_close(&root);
    if (!error && !loader.runs->len)
        error = duet_fail(message, DUET_EPARSE,
                          "%.300s: there is no run in this file, which should be a trace or the "
                          "JSON of duet simulate, run, validate or compare",
                          path);
    out->owned = loader.owned;
    out->count = loader.runs->len;
    out->runs = (struct duet_file_run *)(void *)g_array_free(loader.runs, FALSE);
    if (error)
        duet_runs_file_fini(out);
    return error;
}

void duet_runs_file_fini(struct duet_runs_file *file)
{
    g_clear_pointer(&file->owned, g_ptr_array_unref);
    g_free(file->runs);
    *file = (struct duet_runs_file){0};
}
