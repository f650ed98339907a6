/* SPDX-License-Identifier: Apache-2.0 */
/* One table of options: which subcommand has them, where their texts go, what --help says. */
#include "cli/options.h"

#include <stddef.h>

#include "cli/command.h"

enum {
    SIMULATE = DUET__FOR_SIMULATE,
    RUN = DUET__FOR_RUN,
    ALL = DUET__FOR_ALL,
    INFO = DUET__FOR_INFO,
    VALIDATE = DUET__FOR_VALIDATE,
};

enum {
    TEXT = G_OPTION_ARG_STRING,
    LIST = G_OPTION_ARG_STRING_ARRAY, /* may be repeated */
    FILENAME = G_OPTION_ARG_FILENAME,
    FLAG = G_OPTION_ARG_NONE,
};

struct option {
    int commands;
    const char *name;
    char letter; /* 0: none */
    int kind;
    size_t offset; /* of its field in struct duet__texts */
    const char *description, *value;
};

#define AT(field) offsetof(struct duet__texts, field)

static const struct option options[] = {
    {SIMULATE, "platform", 'p', TEXT, AT(platform), "Machine: name or file", "P"},
    {VALIDATE, "cases", 0, FILENAME, AT(cases), "Read the cases from a file", "F.json"},
    {VALIDATE, "platform", 'p', TEXT, AT(platform),
     "What to predict from; default: HOSTNAME.json here, or the emulated one", "P"},
    {RUN | INFO | VALIDATE, "emulate", 0, TEXT, AT(emulate),
     "GPUs that are emulated: as fast as it goes, or at a platform's pace", "free|P"},
    {RUN | INFO | VALIDATE, "scale", 0, TEXT, AT(scale),
     "Factor of an emulated platform's times; default: 1", "X"},
    {VALIDATE, "n", 'n', TEXT, AT(n), "Sizes of the problem", "LIST"},
    {VALIDATE, "tile", 't', TEXT, AT(tile), "Edges of a tile, in elements", "LIST"},
    {VALIDATE, "cpus", 0, TEXT, AT(cpus), "Computing cores; default: all that feed no GPU", "LIST"},
    {VALIDATE, "gpus", 0, TEXT, AT(gpus), "GPUs; default: all", "LIST"},
    {ALL, "n", 'n', TEXT, AT(n), "Size of the problem", "N"},
    {ALL, "tile", 't', TEXT, AT(tile), "Edge of a tile, in elements", "T"},
    {ALL | VALIDATE, "precision", 0, TEXT, AT(precision), "s or d (default)", "s|d"},
    {ALL | INFO, "cpus", 0, TEXT, AT(cpus), "Computing cores; default: all that feed no GPU", "C"},
    {ALL | INFO, "gpus", 0, TEXT, AT(gpus), "GPUs; default: all", "G"},
    {ALL | VALIDATE, "policy", 0, TEXT, AT(policy),
     "Policies, by name or shared object; default: ws", "A,B,...|all|help"},
    {SIMULATE, "reps", 0, TEXT, AT(reps), "Runs of each policy; default: 1", "R"},
    {RUN, "reps", 0, TEXT, AT(reps), "Measured runs of each policy; default: 5", "R"},
    {VALIDATE, "reps", 0, TEXT, AT(reps),
     "Measured runs of each case; default: --until 1%; paced: 3", "R"},
    {VALIDATE, "until", 0, TEXT, AT(until),
     "As many as make the median certain to +-P % within rounds; at least --reps, or 5", "P%"},
    {VALIDATE, "case-time", 0, TEXT, AT(case_time),
     "With --until, no further run of a case after so long; default: 3s", "TIME"},
    {VALIDATE, "rounds", 0, TEXT, AT(rounds),
     "Rounds in which they are made; default: 10, with --reps 5", "K"},
    {VALIDATE, "sim-reps", 0, TEXT, AT(sim_reps),
     "Simulated runs of each case, at most; default: 15", "S"},
    {VALIDATE, "calibrate", 0, FLAG, AT(calibrate),
     "Calibrate before, between and after the rounds, and predict from that", NULL},
    {VALIDATE, "calibrate-time", 0, TEXT, AT(calibrate_time),
     "Time for that; default: what the measured runs take, at least 20s", "TIME"},
    {VALIDATE, "out", 'o', FILENAME, AT(out), "Write that calibration here, too", "F.json"},
    {VALIDATE, "warmup", 0, TEXT, AT(warmup), "Runs before those of a round; default: 1", "W"},
    {VALIDATE, "budget", 0, TEXT, AT(budget), "Begin no round after so long, \"90s\"", "TIME"},
    {RUN, "warmup", 0, TEXT, AT(warmup), "Runs before these; default: 1", "W"},
    {VALIDATE, "seed", 0, TEXT, AT(seed), "Seed of the data and of the first runs; default: 1",
     "S"},
    {RUN, "seed", 0, TEXT, AT(seed), "Seed of the data and of every choice; default: 1", "S"},
    {SIMULATE, "seed", 0, TEXT, AT(seed), "Seed of the first run; default: 1", "S"},
    {RUN, "verify", 0, FLAG, AT(verify), "Judge the result of every measured run", NULL},
    {ALL | VALIDATE, "set-arch", 0, FLAG, AT(set_arch), "Kernels that GPUs have run on GPUs only",
     NULL},
    {SIMULATE, "noise", 0, FLAG, AT(noise), "Draw kernel times from the measured distribution",
     NULL},
    {ALL | VALIDATE, "extrapolate", 0, FLAG, AT(extrapolate),
     "Allow kernel sizes beyond the measured ones", NULL},
    {SIMULATE, "no-costs", 0, FLAG, AT(no_costs), "The runtime's own operations take no time",
     NULL},
    {SIMULATE, "costs", 0, TEXT, AT(costs),
     "Times of the runtime's own operations, \"submit=1us,steal=2us\"", "LIST"},
    {ALL | INFO, "link", 0, LIST, AT(links),
     "Bandwidth of a kind of links, \"pcie=12GB/s\", or \"all=2x\" (repeatable)", "NAME=BW"},
    {ALL | INFO, "gpu-memory", 0, TEXT, AT(gpu_memory),
     "Memory of each GPU, \"6GiB\", or a part of what there is, \"80%\"", "SIZE|P%"},
    {ALL | INFO, "gpu-window", 0, TEXT, AT(gpu_window),
     "Tasks in preparation or in flight per GPU; default: 2", "K"},
    {ALL | INFO, "gpu-window-short", 0, TEXT, AT(gpu_window_short),
     "The same, or more, while they are short (100 us together); default: 8 or --gpu-window", "K"},
    {RUN | INFO, "gpu-streams", 0, TEXT, AT(gpu_streams),
     "Kernels that may run at once on a GPU; default: 1", "K"},
    {RUN | INFO, "pin", 0, TEXT, AT(pin),
     "Host memory that may be page-locked; default: three quarters of it", "SIZE|none"},
    {ALL | INFO, "no-peer", 0, FLAG, AT(no_peer), "No direct copies between GPUs", NULL},
    {RUN | INFO, "no-bind", 0, FLAG, AT(no_bind),
     "Leave threads where the operating system puts them", NULL},
    {ALL, "window", 0, TEXT, AT(window), "Submitted, unfinished tasks at most; default: 65536",
     "W"},
    {ALL, "model", 0, TEXT, AT(model), "Performance model; default: history", "M|help"},
    {ALL, "model-error", 0, TEXT, AT(model_error),
     "Relative error put into what policies believe, 0 to below 1", "E"},
    {ALL | VALIDATE, "param", 0, LIST, AT(params), "Parameter of the workload (repeatable)",
     "NAME=VALUE"},
    {RUN | INFO, "lose", 0, TEXT, AT(lose),
     "Lose emulated GPUs, \"gpu1@100\": at its 100th kernel or copy", "LIST"},
    {RUN, "watchdog", 0, TEXT, AT(watchdog),
     "Seconds without any event after which a run is given up; default: 10", "S|never"},
    {ALL | INFO | VALIDATE, "json", 0, FLAG, AT(json), "Print JSON", NULL},
    {SIMULATE | VALIDATE, "without", 0, TEXT, AT(without),
     "Simulate without these effects, \"caches,neighbours\"", "LIST"},
    {VALIDATE, "no-noise", 0, FLAG, AT(no_noise), "Simulate once, each kernel at its mean time",
     NULL},
    {VALIDATE, "follow-speed", 0, FLAG, AT(follow_speed),
     "Divide predictions by the speed of the machine since its calibration", NULL},
    {VALIDATE, "fail-over", 0, TEXT, AT(fail_over), "Exit status 1 if an error is larger, \"5%\"",
     "P%"},
    {VALIDATE, "verbose", 'v', FLAG, AT(verbose), "Explain every case, not only the worst", NULL},
    {VALIDATE, "csv", 0, FLAG, AT(csv), "Print CSV, one line a case", NULL},
    {ALL, "csv", 0, FLAG, AT(csv), "Print CSV, one line a run", NULL},
    {SIMULATE, "wall", 0, FLAG, AT(wall), "Print how long the simulations took, too", NULL},
    {ALL, "trace", 0, FILENAME, AT(trace), "Write a Perfetto trace", "F.json"},
    {ALL, "gantt", 0, FILENAME, AT(gantt), "Write a Gantt chart", "F.svg"},
    {ALL | VALIDATE, "html", 0, FILENAME, AT(html), "Write a page with all of it", "F.html"},
    {SIMULATE, "machine-xml", 0, FILENAME, AT(machine_xml),
     "Write the machine as a SimGrid platform, and its kernel times beside it", "F.xml"},
    {INFO, "machine-xml", 0, FILENAME, AT(machine_xml),
     "Write the machine as a SimGrid platform, without kernel times", "F.xml"},
    {VALIDATE, "jobs", 'j', TEXT, AT(jobs),
     "Simulations at a time; default: one a core of this machine", "J"},
    {SIMULATE, "jobs", 'j', TEXT, AT(jobs), "Runs at a time; default: one a core of this machine",
     "J"},
    {ALL | VALIDATE, "quiet", 'q', FLAG, AT(quiet), "No progress bar", NULL},
};

static void *field_of(struct duet__texts *texts, const struct option *option)
{
    return (char *)texts + option->offset;
}

bool duet__texts_parse(struct duet__texts *texts, int command, const char *name,
                       const char *summary, const char *notes, int *argc, char ***argv)
{
    GOptionEntry entries[G_N_ELEMENTS(options) + 1] = {{0}};
    size_t count = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(options); i++) {
        const struct option *option = &options[i];

        if (option->commands & command)
            entries[count++] = (GOptionEntry){.long_name = option->name,
                                              .short_name = option->letter,
                                              .arg = (GOptionArg)option->kind,
                                              .arg_data = field_of(texts, option),
                                              .description = option->description,
                                              .arg_description = option->value};
    }
    return duet__parse_options(name,
                               command == INFO       ? NULL
                               : command == VALIDATE ? "[WORKLOAD...]"
                                                     : "WORKLOAD",
                               summary, notes, entries, argc, argv);
}

void duet__texts_fini(struct duet__texts *texts)
{
    for (size_t i = 0; i < G_N_ELEMENTS(options); i++) {
        void *field = field_of(texts, &options[i]);

        if (options[i].kind == LIST)
            g_clear_pointer((char ***)field, g_strfreev);
        else if (options[i].kind != FLAG)
            g_clear_pointer((char **)field, g_free);
    }
}
