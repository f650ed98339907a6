/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `duet calibrate`: from texts to a checked the checked request. */
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

static int read_precisions(struct duet__calibrate_options *options, const char *text,
                           struct duet_message *message)
{
    static const char *const known[][2] = {{"d", "d"},   {"s", "s"},    {"sd", "sd"},
                                           {"ds", "sd"}, {"s,d", "sd"}, {"d,s", "sd"}};

    options->request.precisions = "d";
    if (!text)
        return 0;
    for (size_t i = 0; i < G_N_ELEMENTS(known); i++) {
        if (strcmp(text, known[i][0]) == 0) {
            options->request.precisions = known[i][1];
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
static int add_workload(struct duet__calibrate_options *options, const char *name,
                        struct duet_message *message)
{
    const struct duet_workload *workload = duet_workload_find(name);

    if (!workload)
        return unknown(name, message);
    for (guint i = 0; i < options->request.workloads->len; i++)
        if (g_array_index(options->request.workloads, const struct duet_workload *, i) == workload)
            return duet_fail(message, DUET_EINVAL, "'%s' is named twice", name);
    if (!workload->generate || !workload->retrieve)
        return duet_fail(message, DUET_EINVAL,
                         "%s has no kernels that compute%s: it has nothing to be measured", name,
                         workload->kernels[0] ? " in this duet" : "");
    g_array_append_val(options->request.workloads, workload);
    return 0;
}

static int read_workloads(struct duet__calibrate_options *options, int argc, char *const *argv,
                          struct duet_message *message)
{
    int result = 0;

    options->request.chosen = argc > 1;
    for (int i = 1; i < argc && !result; i++)
        result = add_workload(options, argv[i], message);
    for (size_t i = 0; i < G_N_ELEMENTS(usual) && !options->request.chosen; i++) {
        const struct duet_workload *workload = duet_workload_find(usual[i]);

        if (workload && workload->generate && workload->retrieve)
            g_array_append_val(options->request.workloads, workload);
    }
    if (!result && !options->request.workloads->len)
        result = duet_fail(message, DUET_EINVAL,
                           "no workload has kernels that compute in this duet, which is without "
                           "BLAS: nothing can be measured");
    return result;
}

/* ------------------------------------------------------------------------------------------- */
/* The file                                                                                     */

int duet__calibrate_options_name(struct duet__calibrate_options *options, const char *name,
                                 struct duet_message *message)
{
    char *base;

    if (options->out && !g_str_has_suffix(options->out, ".json"))
        return duet_fail(message, DUET_EINVAL,
                         "--out %s: the name must end in .json, so that the file can be read again",
                         options->out);
    if (name) {
        options->request.name = g_strdup(name);
    } else if (options->out) {
        base = g_path_get_basename(options->out);
        options->request.name = g_strndup(base, strlen(base) - strlen(".json"));
        g_free(base);
    } else {
        /* a fully qualified host is known to its user by the first part */
        options->request.name = g_strndup(g_get_host_name(), strcspn(g_get_host_name(), "."));
    }
    if (!*options->request.name || strlen(options->request.name) >= DUET_NAME_MAX ||
        options->request.name[strspn(options->request.name,
                                     "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "0123456789_-.:+")])
        return duet_fail(message, DUET_EINVAL,
                         "'%s' cannot be the name of a machine, which has 1 to %d letters, digits "
                         "and _-.:+ (%s)",
                         options->request.name, DUET_NAME_MAX - 1,
                         options->out ? "--out" : "--name");
    if (!options->out)
        options->out = g_strconcat(options->request.name, ".json", NULL);
    return 0;
}

static int read_out(struct duet__calibrate_options *options, const struct duet__texts *texts,
                    struct duet_message *message)
{
    if (texts->replace && texts->merge)
        return duet_fail(message, DUET_EINVAL, "--replace and --merge exclude each other");
    options->how = texts->replace ? DUET_WRITE_REPLACE
                   : texts->merge ? DUET_WRITE_MERGE
                                  : DUET_WRITE_NEW;
    options->out = g_strdup(texts->out);
    return duet__calibrate_options_name(options, texts->name, message);
}

/* ------------------------------------------------------------------------------------------- */

static int read_own(struct duet__calibrate_options *options, const struct duet__texts *texts,
                    struct duet_message *message)
{
    bool usual_sizes = !texts->n || strcmp(texts->n, "default") == 0;
    int result = 0;

    options->request.budget_s = 60;
    if (texts->budget)
        result =
            duet__parse_seconds("--budget", texts->budget, &options->request.budget_s, message);
    if (!result && !(options->request.budget_s >= 0.1))
        result = duet_fail(message, DUET_EINVAL,
                           "--budget takes 0.1s or more, such as 120s, not "
                           "'%s'",
                           texts->budget);
    if (!result)
        result =
            duet__count_option("--reps", texts->reps, 1, 100000, &options->request.rounds, message);
    if (!result && !usual_sizes)
        result = read_numbers("--n", texts->n, options->request.sizes, message);
    if (!result && texts->tile)
        result = read_numbers("--tile", texts->tile, options->request.tiles, message);
    if (!result)
        result = read_precisions(options, texts->precision, message);
    options->request.no_costs = texts->no_costs;
    options->request.no_copies = texts->no_copies;
    options->request.compare_models = texts->compare_models;
    return result ? result : read_out(options, texts, message);
}

static int read_policy(struct duet__calibrate_options *options, const struct duet__texts *texts,
                       struct duet_message *message)
{
    int result;

    if (!texts->policy)
        return 0; /* several in turn */
    result = duet__job_read_policies(&options->job, texts, message);
    if (!result && options->job.request.policy_count != 1)
        result = duet_fail(message, DUET_EINVAL, "--policy: calibration takes one policy");
    if (!result)
        options->job.request.config.policy = options->job.request.policies[0];
    return result;
}

/* All that is left once the options are texts. */
static int read_all(struct duet__calibrate_options *options, const struct duet__texts *texts,
                    int argc, char *const *argv, struct duet_message *message)
{
    struct duet__job *job = &options->job;
    int result = duet__job_read_run(job, texts, 1, message);

    job->request.config.seed = job->request.seed;
    if (!result)
        result = read_own(options, texts, message);
    if (!result)
        result = duet__job_read_emulation(job, texts, message);
    options->request.paced = duet_request_platform(&job->request) != NULL;
    if (!result)
        result = read_workloads(options, argc, argv, message);
    if (!result)
        result = read_policy(options, texts, message);
    if (!result)
        result = duet__job_read_machine(job, texts, message);
    if (!result && job->request.config.cpus == 0)
        result = duet_fail(message, DUET_EINVAL,
                           "--cpus 0: a machine is calibrated with one CPU worker or more");
    return result;
}

int duet__calibrate_options_parse(struct duet__calibrate_options *options, int argc, char **argv)
{
    struct duet_message message = {""};
    struct duet__texts texts = {0};
    int status = DUET__MISUSED;

    duet__job_init(&options->job, "calibrate", argc, argv);
    duet__calibrate_request_init(&options->request, &options->job.request);
    if (duet__texts_parse(&texts, DUET__FOR_CALIBRATE, "calibrate", summary, notes, &argc, &argv)) {
        status = duet__job_help(&texts);
        if (status < 0) {
            int result = read_all(options, &texts, argc, argv, &message);

            if (result)
                status = duet__job_refuse(result, &message);
        }
    }
    duet__texts_fini(&texts);
    return status;
}

void duet__calibrate_options_fini(struct duet__calibrate_options *options)
{
    duet__calibrate_request_fini(&options->request);
    duet__job_fini(&options->job);
    g_clear_pointer(&options->out, g_free);
}
