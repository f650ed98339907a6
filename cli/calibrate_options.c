/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `duet calibrate`: from texts to a checked struct duet__wish. */
#include "cli/calibrate.h"

#include <string.h>

#include "cli/command.h"
#include "world/units.h"

static const char summary[] =
    "Measures this machine and writes its description and kernel times, with which duet simulate\n"
    "--platform ./FILE predicts runs on it. What is measured are the workloads themselves: with "
    "data in\ncaches and beyond them, on one core and on all of them; and beside them what the "
    "runtime's own\noperations, copies and memory's bandwidth are.";

static const char notes[] =
    "Workloads: those named, else cholesky, lu, gemm, jacobi2d and saxpy. A machine is predicted "
    "best\nfor workloads, tiles and precisions that it was calibrated with. F.json is "
    "written\nin one step, at the very end. An interrupt (Ctrl-C) leaves what was there. While it "
    "measures, the machine should have nothing else to "
    "do.\n\n"
    "Examples:\n"
    "  duet calibrate\n"
    "  duet calibrate cholesky lu --tile 256,512 --budget 120s --out mine.json\n"
    "  duet calibrate gemm --tile 384 --out mine.json --merge\n"
    "  duet simulate cholesky --platform ./mine.json --n 8192 --tile 256";

static const char *const usual[] = {"cholesky", "lu", "gemm", "jacobi2d", "saxpy"};

/* What only this subcommand has. */
struct own {
    char *out, *name, *budget;
    gboolean replace, merge, no_copies, compare_models;
};

static bool parse(struct duet__texts *texts, struct own *own, int *argc, char ***argv)
{
    const GOptionArg text = G_OPTION_ARG_STRING, flag = G_OPTION_ARG_NONE;
    const GOptionEntry entries[] = {
        {"out", 'o', 0, G_OPTION_ARG_FILENAME, &own->out,
         "Write the description here; default: NAME.json", "F.json"},
        {"replace", 0, 0, flag, &own->replace, "Replace the file if it is there", NULL},
        {"merge", 0, 0, flag, &own->merge,
         "Replace it, but keep those of its kernel times that are not measured now", NULL},
        {"name", 0, 0, text, &own->name, "Name of the machine; default: that of F, or of the host",
         "NAME"},
        {"budget", 'b', 0, text, &own->budget,
         "Time that measuring may take, \"120s\"; default: 60s", "T"},
        {"n", 'n', 0, text, &texts->n,
         "Sizes of the problems; default: some in caches, some beyond", "N,...|default"},
        {"tile", 't', 0, text, &texts->tile, "Edges of tiles; default: three a workload", "T,..."},
        {"precision", 0, 0, text, &texts->precision, "s, d (default), or both: sd", "s|d|sd"},
        {"cpus", 0, 0, text, &texts->cpus, "Computing cores; default: all that feed no GPU", "C"},
        {"gpus", 0, 0, text, &texts->gpus, "GPUs; default: all", "G"},
        {"emulate", 0, 0, text, &texts->emulate,
         "GPUs that are emulated: as fast as it goes, or at a platform's pace", "free|P"},
        {"scale", 0, 0, text, &texts->scale, "Factor of an emulated platform's times; default: 1",
         "X"},
        {"reps", 0, 0, text, &texts->reps,
         "Rounds over all that is to be measured, whatever time they take", "R"},
        {"policy", 0, 0, text, &texts->policy, "Policy of the runs; default: ws and eager in turn",
         "P"},
        {"seed", 0, 0, text, &texts->seed, "Seed of the data and of every choice; default: 1", "S"},
        {"no-costs", 0, 0, flag, &texts->no_costs, "Measure none of the runtime's own operations",
         NULL},
        {"no-copies", 0, 0, flag, &own->no_copies, "Measure no copies to and from GPUs", NULL},
        {"compare-models", 0, 0, flag, &own->compare_models,
         "Also try simpler models of kernel times on the same runs, and report what each errs",
         NULL},
        {"json", 0, 0, flag, &texts->json, "Print the report as JSON", NULL},
        {"quiet", 'q', 0, flag, &texts->quiet, "No progress bar", NULL},
        {0},
    };

    return duet__parse_options("calibrate", "[WORKLOAD...]", summary, notes, entries, argc, argv);
}

/* ------------------------------------------------------------------------------------------- */
/* Lists                                                                                        */

static int read_numbers(const char *option, const char *text, GArray *out,
                        struct duet_message *message)
{
    char **parts = g_strsplit(text ? text : "", ",", -1);
    int result = 0;

    for (char **part = parts; *part && !result; part++) {
        uint64_t number = 0;

        result = duet__parse_count(option, *part, 1, UINT32_MAX, &number, message);
        for (guint i = 0; !result && i < out->len; i++)
            if (g_array_index(out, uint64_t, i) == number)
                result = duet_fail(message, DUET_EINVAL, "%s names %s twice", option, *part);
        if (!result)
            g_array_append_val(out, number);
    }
    if (!result && text && !*parts)
        result =
            duet_fail(message, DUET_EINVAL, "%s takes a list of whole numbers, not ''", option);
    g_strfreev(parts);
    return result;
}

static int read_precisions(struct duet__wish *wish, const char *text, struct duet_message *message)
{
    static const char *const known[][2] = {{"d", "d"},   {"s", "s"},    {"sd", "sd"},
                                           {"ds", "sd"}, {"s,d", "sd"}, {"d,s", "sd"}};

    wish->precisions = "d";
    if (!text)
        return 0;
    for (size_t i = 0; i < G_N_ELEMENTS(known); i++) {
        if (strcmp(text, known[i][0]) == 0) {
            wish->precisions = known[i][1];
            return 0;
        }
    }
    return duet_fail(message, DUET_EINVAL,
                     "--precision is s (single), d (double), or sd for both, not '%s'", text);
}

static int unknown(const char *name, struct duet_message *message)
{
    GString *known = g_string_new(NULL);
    int result;

    for (size_t i = 0; duet_workload_at(i); i++)
        g_string_append_printf(known, "%s%s", i ? ", " : "", duet_workload_at(i)->name);
    result = duet_fail(message, DUET_ENOTFOUND, "unknown workload '%s', known are: %s", name,
                       known->str);
    g_string_free(known, TRUE);
    return result;
}

/* Adds one that was named. */
static int add_workload(struct duet__wish *wish, const char *name, struct duet_message *message)
{
    const struct duet_workload *workload = duet_workload_find(name);

    if (!workload)
        return unknown(name, message);
    for (guint i = 0; i < wish->workloads->len; i++)
        if (duet__wish_workload(wish, i) == workload)
            return duet_fail(message, DUET_EINVAL, "'%s' is named twice", name);
    if (!workload->generate || !workload->retrieve)
        return duet_fail(message, DUET_EINVAL,
                         "%s has no kernels that compute%s: it has nothing to be measured", name,
                         workload->kernels[0] ? " in this duet" : "");
    g_array_append_val(wish->workloads, workload);
    return 0;
}

static int read_workloads(struct duet__wish *wish, int argc, char *const *argv,
                          struct duet_message *message)
{
    int result = 0;

    wish->chosen = argc > 1;
    for (int i = 1; i < argc && !result; i++)
        result = add_workload(wish, argv[i], message);
    for (size_t i = 0; i < G_N_ELEMENTS(usual) && !wish->chosen; i++) {
        const struct duet_workload *workload = duet_workload_find(usual[i]);

        if (workload && workload->generate && workload->retrieve)
            g_array_append_val(wish->workloads, workload);
    }
    if (!result && !wish->workloads->len)
        result = duet_fail(message, DUET_EINVAL,
                           "no workload has kernels that compute in this duet, which is without "
                           "BLAS: nothing can be measured");
    return result;
}

/* ------------------------------------------------------------------------------------------- */
/* The file                                                                                     */

int duet__wish_name(struct duet__wish *wish, const char *name, struct duet_message *message)
{
    char *base;

    if (wish->out && !g_str_has_suffix(wish->out, ".json"))
        return duet_fail(message, DUET_EINVAL,
                         "--out %s: the name must end in .json, so that the file can be read again",
                         wish->out);
    if (name) {
        wish->name = g_strdup(name);
    } else if (wish->out) {
        base = g_path_get_basename(wish->out);
        wish->name = g_strndup(base, strlen(base) - strlen(".json"));
        g_free(base);
    } else {
        /* a fully qualified host is known to its user by the first part */
        wish->name = g_strndup(g_get_host_name(), strcspn(g_get_host_name(), "."));
    }
    if (!*wish->name || strlen(wish->name) >= DUET_NAME_MAX ||
        wish->name[strspn(wish->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789_-.:+")])
        return duet_fail(message, DUET_EINVAL,
                         "'%s' cannot be the name of a machine, which has 1 to %d letters, digits "
                         "and _-.:+ (%s)",
                         wish->name, DUET_NAME_MAX - 1, wish->out ? "--out" : "--name");
    if (!wish->out)
        wish->out = g_strconcat(wish->name, ".json", NULL);
    return 0;
}

static int read_out(struct duet__wish *wish, const struct own *own, struct duet_message *message)
{
    if (own->replace && own->merge)
        return duet_fail(message, DUET_EINVAL, "--replace and --merge exclude each other");
    wish->how = own->replace ? DUET_WRITE_REPLACE : own->merge ? DUET_WRITE_MERGE : DUET_WRITE_NEW;
    wish->out = g_strdup(own->out);
    return duet__wish_name(wish, own->name, message);
}

/* ------------------------------------------------------------------------------------------- */

static int read_own(struct duet__wish *wish, const struct duet__texts *texts, const struct own *own,
                    struct duet_message *message)
{
    bool usual_sizes = !texts->n || strcmp(texts->n, "default") == 0;
    int result = 0;

    wish->budget_s = 60;
    if (own->budget)
        result = duet__parse_seconds("--budget", own->budget, &wish->budget_s, message);
    if (!result && !(wish->budget_s >= 0.1))
        result = duet_fail(message, DUET_EINVAL,
                           "--budget takes 0.1s or more, such as 120s, not "
                           "'%s'",
                           own->budget);
    if (!result)
        result = duet__count_option("--reps", texts->reps, 1, 100000, &wish->rounds, message);
    if (!result && !usual_sizes)
        result = read_numbers("--n", texts->n, wish->sizes, message);
    if (!result && texts->tile)
        result = read_numbers("--tile", texts->tile, wish->tiles, message);
    if (!result)
        result = read_precisions(wish, texts->precision, message);
    wish->no_costs = texts->no_costs;
    wish->no_copies = own->no_copies;
    wish->compare_models = own->compare_models;
    return result ? result : read_out(wish, own, message);
}

static int read_policy(struct duet__wish *wish, const struct duet__texts *texts,
                       struct duet_message *message)
{
    int result;

    if (!texts->policy)
        return 0; /* several in turn */
    result = duet__job_read_policies(&wish->job, texts, message);
    if (!result && wish->job.request.policy_count != 1)
        result = duet_fail(message, DUET_EINVAL, "--policy: calibration takes one policy");
    if (!result)
        wish->job.request.config.policy = wish->job.request.policies[0];
    return result;
}

/* All that is left once the options are texts. */
static int read_all(struct duet__wish *wish, const struct duet__texts *texts, const struct own *own,
                    int argc, char *const *argv, struct duet_message *message)
{
    struct duet__job *job = &wish->job;
    int result = duet__job_read_run(job, texts, 1, message);

    job->request.config.seed = job->request.seed;
    if (!result)
        result = read_own(wish, texts, own, message);
    if (!result)
        result = duet__job_read_emulation(job, texts, message);
    wish->paced = duet_request_platform(&job->request) != NULL;
    if (!result)
        result = read_workloads(wish, argc, argv, message);
    if (!result)
        result = read_policy(wish, texts, message);
    if (!result)
        result = duet__job_read_machine(job, texts, message);
    if (!result && job->request.config.cpus == 0)
        result = duet_fail(message, DUET_EINVAL,
                           "--cpus 0: a machine is calibrated with one CPU worker or more");
    return result;
}

int duet__wish_parse(struct duet__wish *wish, int argc, char **argv)
{
    struct duet_message message = {""};
    struct duet__texts texts = {0};
    struct own own = {0};
    int status = DUET__MISUSED;

    duet__job_init(&wish->job, "calibrate", argc, argv);
    wish->workloads = g_array_new(FALSE, FALSE, sizeof(const struct duet_workload *));
    wish->sizes = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    wish->tiles = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    if (parse(&texts, &own, &argc, &argv)) {
        status = duet__job_help(&texts);
        if (status < 0) {
            int result = read_all(wish, &texts, &own, argc, argv, &message);

            if (result)
                status = duet__job_refuse(result, &message);
        }
    }
    duet__texts_fini(&texts);
    g_free(own.out);
    g_free(own.name);
    g_free(own.budget);
    return status;
}

void duet__wish_fini(struct duet__wish *wish)
{
    duet__job_fini(&wish->job);
    if (wish->workloads)
        g_array_free(wish->workloads, TRUE);
    if (wish->sizes)
        g_array_free(wish->sizes, TRUE);
    if (wish->tiles)
        g_array_free(wish->tiles, TRUE);
    if (wish->subjects)
        g_array_free(wish->subjects, TRUE);
    g_free(wish->name);
    g_free(wish->out);
    *wish = (struct duet__wish){0};
}
