/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `duet calibrate`: from options to the checked request. */
#include "cli/calibrate.h"

#include <string.h>

#include "cli/command.h"

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
/* What is measured                                                                             */

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

/* Adds one that was named. */
static int add_workload(struct duet__calibrate_options *options, const char *name,
                        struct duet_message *message)
{
    const struct duet_workload *workload;
    int error = duet__job_find_workload(&options->job, name, &workload, message);

    if (error)
        return error;
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

static int read_out(struct duet__calibrate_options *options, struct duet_message *message)
{
    const struct duet__values *values = &options->job.values;
    int error = duet__exclude(&options->job, "replace", "merge", message);

    options->how = values->replace ? DUET_WRITE_REPLACE
                   : values->merge ? DUET_WRITE_MERGE
                                   : DUET_WRITE_NEW;
    options->out = g_strdup(values->out);
    return error ? error : duet__calibrate_options_name(options, values->name, message);
}

/* ------------------------------------------------------------------------------------------- */

static int read_own(struct duet__calibrate_options *options, struct duet_message *message)
{
    const struct duet__values *values = &options->job.values;
    struct duet__calibrate_request *request = &options->request;
    int error;

    request->budget_s = values->budget_s;
    request->rounds = values->reps;
    request->no_costs = values->no_costs;
    request->no_copies = values->no_copies;
    request->compare_models = values->compare_models;
    g_array_append_vals(request->sizes, values->sizes.items, (guint)values->sizes.count);
    g_array_append_vals(request->tiles, values->tiles.items, (guint)values->tiles.count);
    if (!(values->budget_s >= 0.1))
        return duet_fail(message, DUET_EINVAL,
                         "--budget takes 0.1s or more, such as 120s, not '%gs'", values->budget_s);
    error = read_precisions(options, values->precision, message);
    return error ? error : read_out(options, message);
}

static int read_policy(struct duet__calibrate_options *options, struct duet_message *message)
{
    struct duet_request *runs = &options->job.request;
    int error;

    if (!options->job.values.config.policy)
        return 0; /* several in turn */
    error = duet__job_find_policies(&options->job, message);
    if (!error && runs->policy_count != 1)
        error = duet_fail(message, DUET_EINVAL, "--policy: calibration takes one policy");
    if (!error)
        runs->config.policy = runs->policies[0];
    return error;
}

/* All that is left once the options are read. */
static int read_all(struct duet__calibrate_options *options, int argc, char *const *argv,
                    struct duet_message *message)
{
    struct duet__job *job = &options->job;
    int error = duet__job_check_run(job, message);

    if (!error)
        error = read_own(options, message);
    if (!error)
        error = duet__job_check_emulation(job, message);
    options->request.paced = duet_request_paced(&job->request);
    if (!error)
        error = read_workloads(options, argc, argv, message);
    if (!error)
        error = read_policy(options, message);
    if (!error)
        error = duet__job_check_machine(job, message);
    if (!error && job->request.config.cpus == 0)
        error = duet_fail(message, DUET_EINVAL,
                          "--cpus 0: a machine is calibrated with one CPU worker or more");
    return error;
}

int duet__calibrate_options_parse(struct duet__calibrate_options *options, int argc, char **argv)
{
    struct duet_message message = {""};
    struct duet__job *job = &options->job;
    int status, error;

    duet__job_init(job, "calibrate", DUET__IN_CALIBRATE, argc, argv);
    duet__calibrate_request_init(&options->request, &job->request);
    job->values.budget_s = 60;
    status = duet__job_parse(job, "[WORKLOAD...]", summary, notes, &argc, &argv);
    error = status < 0 ? read_all(options, argc, argv, &message) : 0;
    return error ? duet__job_refuse(error, &message) : status;
}

void duet__calibrate_options_fini(struct duet__calibrate_options *options)
{
    duet__calibrate_request_fini(&options->request);
    duet__job_fini(&options->job);
    g_clear_pointer(&options->out, g_free);
}
