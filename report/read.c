/* SPDX-License-Identifier: Apache-2.0 */
/* Reads JSON of reports and validations, and detects the kind of a file. */
#include "report/compare.h"

#include <string.h>

#include "base/fields.h"
#include "report/report.h"

enum {
    SCHEMA = 1,
    MOST_TEXT = 4096, /* most bytes of a name */
    MOST_MIB = 512,   /* most of a file */
};

#define AT(member) .offset = offsetof(struct duet__read_run, member)
#define WHOLE .most = (double)INT64_MAX

/* Members that tell the problem of a run. */
static const struct duet__field run_fields[] = {
    {"cpus", DUET__UNSIGNED, DUET__OPTIONAL, AT(problem.cpus), .most = UINT32_MAX},
    {"gpus", DUET__UNSIGNED, DUET__OPTIONAL, AT(problem.gpus), .most = UINT32_MAX},
    {"n", DUET__INTEGER, AT(problem.n), WHOLE},
    {"tile", DUET__INTEGER, AT(problem.tile), WHOLE},
    {"workload", DUET__TEXT, AT(problem.workload), .room = MOST_TEXT},
    {"policy", DUET__TEXT, AT(problem.policy), .room = MOST_TEXT},
    {"settings", DUET__TEXT, DUET__OPTIONAL, AT(problem.settings)},
    {"platform", DUET__TEXT, DUET__OPTIONAL, AT(problem.platform)},
    {"set_arch", DUET__BOOLEAN, DUET__OPTIONAL, AT(problem.set_arch)},
    {"hold", DUET__BOOLEAN, DUET__OPTIONAL, AT(problem.hold)},
    {"priorities", DUET__TEXT, DUET__OPTIONAL, AT(problem.priorities)},
    {"world", DUET__TEXT, DUET__OPTIONAL, AT(world)},
    DUET__OTHER_KEYS,
};

/* ------------------------------------------------------------------------------------------- */
/* Runs                                                                                         */

/* Makespans of a side, and the number of them in each round, as they are read. */
struct arrays {
    unsigned count, round_count;
    double *makespans_s;
    uint64_t *rounds;
};

#define LIST(number, elements)                                                                     \
    &(const struct duet__list)                                                                     \
    {                                                                                              \
        .count = offsetof(struct arrays, number), .array = offsetof(struct arrays, elements),      \
        .size = sizeof *((struct arrays *)NULL)->elements, .most = G_MAXINT                        \
    }
#define SIDE(key)                                                                                  \
    {key, DUET__VALUES, DUET__OPTIONAL, .list = LIST(count, makespans_s), .fields = &a_makespan},  \
        {"rounds", DUET__VALUES, DUET__OPTIONAL, .list = LIST(round_count, rounds),                \
         .fields = &a_round},                                                                      \
        DUET__OTHER_KEYS

static const struct duet__field a_makespan = {.kind = DUET__NUMBER,
                                              .least = 1e-12,
                                              .most = DUET__MAKESPAN_MOST_S},
                                a_round = {.kind = DUET__INTEGER, .least = 1, .most = G_MAXINT};
static const struct duet__field of_report[] = {SIDE("values")}, of_case[] = {SIDE("makespans_s")};

/* Reads one end of a prediction's interval; one that is null, or not there, stays 0. */
static int read_end(const struct duet__json *makespans, const char *key, double *end_s)
{
    struct duet__json at = duet__json_member(makespans, key);
    return duet__json_present(&at) && !duet__json_is_null(&at)
               ? duet__json_number(&at, 1e-12, DUET__MAKESPAN_MOST_S, end_s)
               : 0;
}

/* Reads one side, if it is there. */
static int read_side(struct duet__file_runs *file, const struct duet__json *at,
                     const struct duet__field *fields, struct duet__side *side)
{
    struct arrays arrays = {0};
    uint64_t sum = 0;
    int error = duet__json_present(at) ? duet__fields_read(at, fields, &arrays) : 0;
    g_ptr_array_add(file->arrays, arrays.makespans_s);
    g_ptr_array_add(file->arrays, arrays.rounds);
    *side = (struct duet__side){.makespans_s = arrays.makespans_s,
                                .count = arrays.count,
                                .rounds = arrays.rounds,
                                .round_count = arrays.round_count};
    for (unsigned i = 0; i < arrays.round_count; i++)
        sum += arrays.rounds[i];
    if (!error && arrays.round_count && sum != arrays.count)
        error = duet__json_fail(at, DUET_EPARSE, "the rounds have %" G_GUINT64_FORMAT " runs of %u",
                                sum, arrays.count);
    return error;
}

/* Adds the network between nodes to the place of the run. */
static void add_network(struct duet__file_runs *file, struct duet__case *problem,
                        const char *network)
{
    g_ptr_array_add(file->arrays, g_strconcat(problem->platform, ", ", network, NULL));
    problem->platform = file->arrays->pdata[file->arrays->len - 1];
}

/* Reads a run of a report, or one side of a case, whose makespans are in the member `side` with
 * these fields; a run without makespans is left out. `world`: of a side; NULL: it is a member. */
static int read_run(struct duet__file_runs *file, const struct duet__json *at, const char *side,
                    const struct duet__field *fields, const char *world)
{
    struct duet__json makespans = duet__json_member(at, side),
                      precision = duet__json_member(at, "precision"),
                      nodes = duet__json_member(at, "nodes"),
                      network = duet__json_member(&nodes, "network");
    struct duet__read_run run = {.world = world,
                                 .problem = {.settings = "",
                                             .platform = "",
                                             .priorities = "workload"}};
    const char *letter = "", *joined = NULL;
    int error = duet__fields_read(at, run_fields, &run);
    if (!error && duet__json_is_string(&network))
        error = duet__json_string(&network, &joined);
    if (joined)
        add_network(file, &run.problem, joined);
    if (!error)
        error = duet__json_string(&precision, &letter);
    if (!error)
        error = read_side(file, &makespans, fields, &run.side);
    if (!error)
        error = read_end(&makespans, "low", &run.problem.low_s);
    if (!error)
        error = read_end(&makespans, "high", &run.problem.high_s);
    if (!error && !run.world)
        error = duet__json_fail(at, DUET_EPARSE, "a run needs its world");
    run.problem.precision = *letter;
    if (!error && run.side.count)
        g_array_append_val(file->runs, run);
    return error;
}

static int read_runs(struct duet__file_runs *file)
{
    const struct duet__json *root = &file->document;
    struct duet__json schema = duet__json_member(root, "schema"),
                      runs = duet__json_member(root, "runs"),
                      cases = duet__json_member(root, "cases");
    const struct duet__json *all = duet__json_present(&runs) ? &runs : &cases;
    unsigned version, count = 0;
    int error = duet__json_keys(root, NULL);
    if (!error)
        error = duet__json_unsigned(&schema, SCHEMA, SCHEMA, &version);
    if (!error && duet__json_present(all))
        error = duet__json_array(all, 0, G_MAXINT, &count);
    file->cases = all == &cases;
    for (unsigned i = 0; i < count && !error; i++) {
        struct duet__json at = duet__json_element(all, i);
        if (!file->cases) {
            error = read_run(file, &at, "makespan_s", of_report, NULL);
        } else {
            error = read_run(file, &at, "predicted", of_case, "predicted");
            if (!error)
                error = read_run(file, &at, "measured", of_case, "measured");
        }
    }
    if (!error && !file->runs->len)
        error = duet_fail(root->message, DUET_EPARSE,
                          "%.300s: there is no run in this file, which should be a trace or the "
                          "JSON of duet simulate, run, validate or compare",
                          root->path);
    return error;
}

/* Reads a trace: one run, of an unknown problem. */
static int read_traced(struct duet__file_runs *file, const char *text, size_t length,
                       const char *path, struct duet_message *message)
{
    struct duet__recording *recording = &file->trace.run.recording;
    struct duet_message why = {""};
    g_auto(GStrv) options = NULL;
    int error = duet__read_trace(text, length, path, &file->trace, message);
    struct duet__read_run run = {
        .world = "traced",
        .problem = {.workload = "trace",
                    .settings = "",
                    .policy = "-",
                    .precision = '-',
                    .priorities = "workload"},
        .side = {.makespans_s = &recording->makespan_s,
                 .count = 1,
                 .account = &file->account,
                 .recording = recording},
    };
    if (error)
        return error;
    error = duet__account_make(recording, &file->account, &why);
    if (error)
        return duet_fail(message, error, "%.300s: %s", path, why.text);
    if (!(recording->makespan_s > 0))
        return duet_fail(message, DUET_EPARSE, "%.300s: its kernels take no time", path);
    run.problem.platform = recording->machine->name;
    run.problem.cpus = duet__report_cpus(recording->machine);
    run.problem.gpus = duet__report_gpus(recording->machine);
    options = g_strsplit(file->trace.options ? file->trace.options : "", "; ", -1);
    for (char **option = options; *option; option++)
        if (g_str_has_prefix(*option, "network="))
            add_network(file, &run.problem, *option + strlen("network="));
    g_array_append_val(file->runs, run);
    return 0;
}

/* ------------------------------------------------------------------------------------------- */
/* Files                                                                                        */

int duet__read_text(const char *text, size_t length, const char *path, struct duet__file_runs *out,
                    struct duet_message *message)
{
    int error;
    *out = (struct duet__file_runs){
        .traced = g_strstr_len(text, (gssize)length, "\"traceEvents\"") != NULL,
        .runs = g_array_new(FALSE, FALSE, sizeof(struct duet__read_run)),
        .arrays = g_ptr_array_new_with_free_func(g_free),
    };
    if (out->traced)
        return read_traced(out, text, length, path, message);
    error = duet__json_parse(text, length, path, message, &out->document);
    return error ? error : read_runs(out);
}

int duet__read_runs(const char *path, struct duet__file_runs *out, struct duet_message *message)
{
    g_autofree char *text = NULL;
    size_t length;
    int error;
    *out = (struct duet__file_runs){0};
    error = duet__read_all(path, MOST_MIB, &text, &length, message);
    return error ? error : duet__read_text(text, length, path, out, message);
}

void duet__read_fini(struct duet__file_runs *file)
{
    g_clear_pointer(&file->arrays, g_ptr_array_unref);
    g_clear_pointer(&file->runs, g_array_unref);
    duet__json_close(&file->document);
    duet__account_fini(&file->account);
    duet__trace_fini(&file->trace);
    *file = (struct duet__file_runs){0};
}
