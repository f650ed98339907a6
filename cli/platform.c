/* SPDX-License-Identifier: Apache-2.0 */
/* `duet platform check`: whether what a platform says is likely to be meant. */
#include "cli/command.h"

#include <stdio.h>
#include <string.h>

#include "platforms/platform.h"

/* Prints what is suspicious of one platform. DUET__FAILED if anything is. */
static int check(const char *name)
{
    struct duet_message message = {""};
    struct duet__platform *platform = NULL;
    char **found;
    int status = DUET__DONE;

    if (duet__platform_load(name, &platform, &message))
        return duet__complain(DUET__MISUSED, "%s", message.text);
    found = duet__platform_suspicions(platform);
    for (char **at = found; *at; at++) {
        printf("%s: %s\n", name, *at);
        status = DUET__FAILED;
    }
    if (status == DUET__DONE)
        printf("%s: nothing is suspicious\n", name);
    g_strfreev(found);
    duet__platform_free(platform);
    return status;
}

static int work(struct duet__job *job, int argc, char **argv)
{
    int status = DUET__DONE, ended;

    if (argc < 2 || strcmp(argv[1], "check") != 0)
        return duet__complain(DUET__MISUSED, "what about a platform? duet platform check PLATFORM");
    if (argc < 3)
        return duet__complain(DUET__MISUSED, "which platform? a name or a file");
    for (int i = 2; i < argc && status != DUET__MISUSED; i++) {
        int own = check(argv[i]);

        status = own == DUET__DONE ? status : own;
    }
    ended = duet__finish_output();
    return ended == DUET__DONE ? status : ended;
}

const struct duet__command duet__platform_command = {
    .name = "platform",
    .description = "checks the figures of a platform",
    .arguments = "check PLATFORM...",
    .summary =
        "Warns of what can be read and is hardly meant: latencies and costs of seconds, kernels "
        "faster\nthan the machine, times far off the neighbouring sizes, kernels that lack times "
        "on one of the\nmachine's architectures (a misspelt name).",
    .notes = "A platform is a name (duet list platforms) or a file. Exit status: 1 if something is "
             "suspicious.",
    .work = work,
};
