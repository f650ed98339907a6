/* SPDX-License-Identifier: Apache-2.0 */
/* `duet calibrate`: reads the command line, measures, writes files and report. */
#include "cli/calibrate.h"

#include "cli/command.h"

void duet__warn_of_load(void)
{
    struct duet__disturbance load = duet__load_look();
    char *text = duet__load_text(&load);

    if (load.disturbed)
        (void)duet__complain(DUET__DONE, "%s: what is measured now is slower than the machine is",
                             text);
    g_free(text);
}

/* Measures into a zeroed result. Exit status; *number: of the signal that came, 0: none. */
static int measure(const struct duet__calibrate_options *options,
                   struct duet__calibrate_result *result, int *number)
{
    struct duet_monitor monitor = {0};
    struct duet__measuring measuring = {.request = &options->request,
                                        .result = result,
                                        .monitor = &monitor};
    int error = duet__measure_look(&options->request, result, &measuring.message);

    if (!error)
        error = duet__plan_make(&options->request, result, &measuring.message);
    if (error)
        return duet__job_refuse(error, &measuring.message);
    duet_monitor_start(&monitor, false, 0, 0);
    duet__warn_of_load();
    duet_progress_init(&measuring.bar, !options->job.values.quiet, 0, 0);
    duet__measuring_go_on(&measuring);
    error = duet__measure_all(&measuring);
    duet_progress_clear(&measuring.bar);
    duet_monitor_stop(&monitor);
    *number = duet_monitor_signal(&monitor);
    return error ? duet__job_complain(measuring.what, error, measuring.message.text) : DUET__DONE;
}

/* Writes the file. Exit status. */
static int write_file(const struct duet__calibrate_options *options, struct duet_platform *platform)
{
    struct duet_message message = {""};
    int error = duet_platform_write(platform, options->out, options->how, &message);
    return error ? duet__complain(DUET__FAILED, "%s", message.text) : DUET__DONE;
}

static int finish(const struct duet__calibrate_options *options,
                  const struct duet__calibrate_result *result)
{
    struct duet_platform platform;
    int status;

    duet__describe_machine(&options->request, result, &platform);
    status = write_file(options, &platform);
    if (status == DUET__DONE) {
        if (options->job.values.json)
            duet__calibrate_put_json(options, result, &platform, stdout);
        else
            duet__calibrate_put_text(options, result, &platform, stdout);
        status = duet__finish_output();
    }
    duet_platform_fini(&platform);
    return status;
}

/* One line that says that nothing has changed. Exit status. */
static int say_interrupted(const struct duet__calibrate_options *options, int number)
{
    bool there = g_file_test(options->out, G_FILE_TEST_EXISTS);

    return duet__complain(DUET__SIGNALLED + number, "interrupted: %s %s", options->out,
                          there ? "stays as it was" : "was not written");
}

static int calibrate(const struct duet__calibrate_options *options)
{
    struct duet__calibrate_result result = {0};
    struct duet_message message = {""};
    int status, number = 0;

    if (duet_platform_may_write(options->out, options->how, &message))
        return duet__complain(DUET__MISUSED, "%s", message.text);
    status = measure(options, &result, &number);
    if (status == DUET__DONE && number)
        status = say_interrupted(options, number);
    else if (status == DUET__DONE)
        status = finish(options, &result);
    duet__calibrate_result_fini(&result);
    return status;
}

static int calibrate_command(int argc, char **argv)
{
    struct duet__calibrate_options options = {0};
    int status = duet__calibrate_options_parse(&options, argc, argv);

    if (status < 0)
        status = calibrate(&options);
    duet__calibrate_options_fini(&options);
    return status;
}

const struct duet__command duet__calibrate_command = {
    .name = "calibrate",
    .description = "measures this machine, so that it can be simulated",
    .run = calibrate_command,
};
