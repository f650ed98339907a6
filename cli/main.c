/* SPDX-License-Identifier: Apache-2.0 */
/* The `duet` command: finds the subcommand and hands over to it. */
#include "cli/command.h"

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <duet/duet.h>

static int print_help(void)
{
    puts("Usage:\n"
         "  duet COMMAND [OPTION...] [ARGUMENT...]\n"
         "\n"
         "A task runtime for machines with several CPUs and GPUs, and a simulator of itself.\n"
         "\n"
         "Commands:");
    for (size_t i = 0; duet__commands[i]; i++)
        printf("  %-10s %s\n", duet__commands[i]->name, duet__commands[i]->description);
    puts("\n"
         "  duet COMMAND --help   options of a command\n"
         "  duet --version        version\n"
         "\n"
         "Exit status: 0, 1 if something failed, 2 for bad usage or bad input.");
    return duet__finish_output();
}

static int unknown(const char *name)
{
    GString *known = g_string_new(NULL);
    int status;
    for (size_t i = 0; duet__commands[i]; i++)
        g_string_append_printf(known, "%s%s", i ? ", " : "", duet__commands[i]->name);
    status = duet__complain(DUET__MISUSED, "unknown command '%s', known are: %s (duet --help)",
                            name, known->str);
    g_string_free(known, TRUE);
    return status;
}

/* True if all processes of a launcher execute one command: a study, or one with --nodes, but not
   calibrate --nodes, which measures the messages between them. */
static bool is_of_ranks(const struct duet__command *command, int argc, char **argv)
{
    bool found = command == &duet__study_command;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        found |= command != &duet__calibrate_command && g_str_has_prefix(argv[i], "--nodes");
    return found;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    /* sets the terminal's characters, but leaves the point in numbers */
    setlocale(LC_CTYPE, "");
    if (!name)
        return duet__complain(DUET__MISUSED, "which command? duet --help lists them");
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return print_help();
    if (strcmp(name, "--version") == 0) {
        printf("duet %s\n", duet_version());
        return duet__finish_output();
    }
    for (const struct duet__command *const *at = duet__commands; *at; at++)
        if (strcmp(name, (*at)->name) == 0)
            return (is_of_ranks(*at, argc - 1, argv + 1)
                        ? duet__command_run_as_ranks
                        : duet__command_run)(*at, argc - 1, argv + 1);
    return unknown(name);
}
