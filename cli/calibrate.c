/* SPDX-License-Identifier: Apache-2.0 */
/* `duet calibrate`: reads the command line, measures, writes files and report. */
#include "cli/calibrate.h"

#include "runtime/history.h"
#include "cli/command.h"

void duet__warn_of_load(void)
{
    struct duet__disturbance load = duet__load_look();
    g_autofree char *text = duet__load_text(&load);

    if (load.disturbed)
        (void)duet__complain(DUET__DONE, "%s: what is measured now is slower than the machine is",
                             text);
}

int duet__calibrate_complain(const struct duet__calibrating *c)
{
    int status = DUET__DONE;

    for (guint i = 0; i < c->failures->len; i++) {
        const struct duet__failure *failure = &g_array_index(c->failures, struct duet__failure, i);

        status = duet__job_complain(failure->what, failure->error, failure->message.text);
    }
    if (!c->runs->len && !c->failures->len)
        status = duet__complain(DUET__MISUSED,
                                "a calibration of %gs has no time to run anything: give it more",
                                c->request->budget_s);
    return status;
}

/* Writes the file, then the report. Returns the exit status. */
static int finish(const struct duet__calibrate_options *options, const struct duet__calibrating *c)
{
    struct duet__platform platform;
    struct duet_message message = {""};
    const bool shared = options->how == DUET_WRITE_MERGE; /* programs may add to it meanwhile */
    int locked = shared ? duet__history_lock(options->out, &message) : 0;
    int error = locked < 0 ? locked : 0, status;

    duet__describe_machine(c, &platform);
    if (!error)
        error = duet__platform_write(&platform, options->out, options->how, &message);
    if (shared && locked >= 0)
        duet__history_unlock(options->out, locked);
    if (error) {
        status = duet__complain(DUET__FAILED, "%s", message.text);
    } else {
        if (options->job->values.json)
            duet__calibrate_put_json(options, c, &platform, stdout);
        else
            duet__calibrate_put_text(options, c, &platform, stdout);
        status = duet__finish_output();
    }
    duet__platform_fini(&platform);
    return status;
}

/* Measures, then writes what could be measured and reports the rest. Returns the exit status. */
static int measure(const struct duet__calibrate_options *options, struct duet__calibrating *c)
{
    struct duet__monitor monitor = {0};
    int number, status;

    c->monitor = &monitor;
    duet__monitor_start(&monitor, false, 0, 0);
    duet__warn_of_load();
    duet__progress_init(&c->bar, !options->job->values.quiet, 0, 0);
    duet__calibrating_all(c);
    duet__progress_clear(&c->bar);
    duet__monitor_stop(&monitor);
    number = duet__monitor_signal(&monitor);
    if (number) /* nothing has changed */
        return duet__complain(DUET__SIGNALLED + number, "interrupted: %s %s", options->out,
                              g_file_test(options->out, G_FILE_TEST_EXISTS) ? "stays as it was"
                                                                            : "was not written");
    status = duet__calibrate_complain(c);
    if (!c->model.quality_count)
        return status;
    return finish(options, c) || status ? DUET__FAILED : DUET__DONE;
}

static int calibrate(struct duet__calibrate_options *options)
{
    struct duet__calibrating c = {.request = &options->request};
    struct duet_message message = {""};
    int status, error;

    if (duet__platform_may_write(options->out, options->how, &message))
        return duet__complain(DUET__MISUSED, "%s", message.text);
    error = duet__calibrating_look(&c, &message);
    if (!error)
        error = duet__plan_make(&c, &message);
    if (!error)
        error = duet__calibrating_read(&c, &options->job->request, &message);
    status = error ? duet__job_refuse(error, &message) : measure(options, &c);
    duet__calibrating_fini(&c);
    return status;
}

static int work(struct duet__job *job, int argc, char **argv)
{
    struct duet__calibrate_options options = {.job = job};
    struct duet_message message = {""};
    int error = duet__calibrate_read(&options, argc, argv, &message), status;

    status = error               ? duet__job_refuse(error, &message)
             : job->values.nodes ? duet__calibrate_nodes(&options)
                                 : calibrate(&options);
    duet__calibrate_request_fini(&options.request);
    g_free(options.out);
    return status;
}

const struct duet__command duet__calibrate_command = {
    .name = "calibrate",
    .description = "measures this machine, so that it can be simulated",
    .where = DUET__IN_CALIBRATE,
    .arguments = "[WORKLOAD... | --from F.json... | -- PROGRAM ARGUMENT...]",
    .summary =
        "Measures this machine and writes its description and kernel times, with which duet "
        "simulate\n--platform ./FILE predicts runs on it. What is measured are the workloads "
        "themselves: with data in\ncaches and beyond them, on one core and on all of them; and "
        "beside them what the runtime's own\noperations, copies and memory's bandwidth are.",
    .notes = "Workloads: those named, else cholesky, lu, gemm, jacobi2d and saxpy. A machine is "
             "predicted best\nfor workloads, tiles and precisions that it was calibrated with. "
             "F.json is written\nin one step, at the very end. An interrupt (Ctrl-C) leaves what "
             "was there. While it measures, the machine should have nothing else to do.\n\n"
             "Examples:\n"
             "  duet calibrate\n"
             "  duet calibrate cholesky lu --tile 256,512 --budget 120s --out mine.json\n"
             "  duet calibrate gemm --tile 384 --out mine.json --merge\n"
             "  duet simulate cholesky --platform ./mine.json --n 8192 --tile 256",
    .work = work,
};
