/* SPDX-License-Identifier: Apache-2.0 */
/* `duet calibrate`: reads the command line, measures, writes files and report. */
#include "cli/calibrate.h"

#include "cli/command.h"
#include "cli/signals.h"

/* Writes the file, which a signal is not to keep from happening. Exit status. */
static int write_file(const struct duet__wish *wish, struct duet_platform *platform)
{
    struct duet_message message = {""};
    sigset_t before;
    int error;

    duet__signals_hold(&before);
    error = duet_platform_write(platform, wish->out, wish->how, &message);
    duet__signals_release(&before);
    return error ? duet__complain(DUET__FAILED, "%s", message.text) : DUET__DONE;
}

/* One line that says that nothing has changed. Exit status. */
static int say_interrupted(const struct duet__wish *wish, int number)
{
    bool there = g_file_test(wish->out, G_FILE_TEST_EXISTS);

    return duet__complain(DUET__SIGNALLED + number, "interrupted: %s %s", wish->out,
                          there ? "stays as it was" : "was not written");
}

static int finish(const struct duet__wish *wish, const struct duet__found *found)
{
    struct duet_platform platform;
    int status;

    duet__describe_machine(wish, found, &platform);
    status = write_file(wish, &platform);
    if (status == DUET__DONE) {
        if (wish->job.json)
            duet__calibrate_put_json(wish, found, &platform, stdout);
        else
            duet__calibrate_put_text(wish, found, &platform, stdout);
        status = duet__finish_output();
    }
    duet_platform_fini(&platform);
    return status;
}

static int calibrate(const struct duet__wish *wish)
{
    struct duet__found found = {0};
    struct duet_message message = {""};
    int status;

    if (duet_platform_may_write(wish->out, wish->how, &message))
        return duet__complain(DUET__MISUSED, "%s", message.text);
    status = duet__measure(wish, &found);
    if (status == DUET__DONE && found.number)
        status = say_interrupted(wish, found.number);
    else if (status == DUET__DONE)
        status = finish(wish, &found);
    duet__found_fini(&found);
    return status;
}

static int calibrate_command(int argc, char **argv)
{
    struct duet__wish wish = {0};
    int status = duet__wish_parse(&wish, argc, argv);

    if (status < 0)
        status = calibrate(&wish);
    duet__wish_fini(&wish);
    return status;
}

const struct duet__command duet__calibrate_command = {
    .name = "calibrate",
    .description = "measures this machine, so that it can be simulated",
    .run = calibrate_command,
};
