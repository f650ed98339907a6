/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one table of settings: options of the command, variables of the environment and --duet-*
 * arguments. A new one is a line here, its use, and its place in the documentation.
 */
#include "runtime/settings.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "platforms/model/effects.h"
#include "platforms/platform.h"
#include "base/units.h"
#include "nodes/nodes.h"

enum {
    ENVIRONMENT = DUET__IN_ENVIRONMENT,
    SIMULATE = DUET__IN_SIMULATE,
    RUN = DUET__IN_RUN,
    ALL = SIMULATE | RUN,
    INFO = DUET__IN_INFO,
    VALIDATE = DUET__IN_VALIDATE,
    CALIBRATE = DUET__IN_CALIBRATE,
    COMPARE = DUET__IN_COMPARE,
    IN_LIST = DUET__IN_LIST,
    PLATFORM = DUET__IN_PLATFORM,
    RECORD = DUET__IN_RECORD,
    EXPORT = DUET__IN_EXPORT,
    STUDY = DUET__IN_STUDY,
    TUNE = DUET__IN_TUNE,
    FACTOR = DUET__FACTOR | STUDY | TUNE, /* a factor of simulations */
    RUN_FACTOR = DUET__FACTOR,
    EXPLAIN = DUET__IN_EXPLAIN,
    OPENMP = DUET__IN_OPENMP,
    CASE = DUET__CASE | VALIDATE,
};

/* Kinds of values, by how they are read. */
enum {
    FLAG,
    TEXT,
    NAME,    /* a text that may be empty: none */
    LIST,    /* a repeatable list of texts */
    NODES,   /* "4" or "2x2" */
    NETWORK, /* a network's notation, which has commas */
    PAIRS,   /* a text "NAME=VALUE,..." that is one value */
    COUNT,   /* a whole number from `low` to `high` */
    COUNTS,  /* several COUNTs, separated by commas */
    REAL,    /* a number from `low` to below `high` */
    SCALE,   /* a factor of times, from a millionth to below a million */
    SECONDS, /* a time; this and the rest by base/units.h */
    PERCENT,
    SHARE, /* a PERCENT whose sign may be left out */
    MEMORY,
    PIN,
    WATCHDOG,
    EFFECTS, /* a list of effects of simulations */
    VERIFY,  /* nothing, or a word */
};

/* A member of struct duet__values and its width; a configuration's members by their own name. */
#define OWN(field)                                                                                 \
    offsetof(struct duet__values, field), sizeof(((struct duet__values *)NULL)->field)
#define AT(field) OWN(config.field)

_Static_assert(offsetof(struct duet__values, config) == 0, "a configuration is set like values");

static const struct duet__option settings[] = {
    {ENVIRONMENT, "simulate", 0, NAME, AT(simulate), 0, 0, "Simulate this machine: name or file",
     "P"},
    {ENVIRONMENT, "links", 0, TEXT, AT(links), 0, 0,
     "Bandwidths of kinds of links, \"pcie=12GB/s,qpi=2x\"", "LIST"},
    {ENVIRONMENT, "context", 0, NAME, AT(context), 0, 0, "Workload whose kernel times are meant",
     "NAME"},
    {ENVIRONMENT | OPENMP, "trace", 0, NAME, AT(trace), 0, 0,
     "Write a Perfetto trace when the runtime is closed", "F.json"},
    {ENVIRONMENT, "figures", 0, FLAG, AT(figures), 0, 0,
     "Write a trace without kernels and copies, of figures of the run", NULL},
    {ENVIRONMENT | OPENMP, "calibrate", 0, NAME, AT(calibrate), 0, 0,
     "Add what kernels took to this platform file when the runtime is closed", "F.json"},
    {ENVIRONMENT | OPENMP, "report", 0, FLAG, AT(report), 0, 0,
     "Print a summary when the runtime is closed", NULL},
    {SIMULATE | FACTOR, "platform", 'p', TEXT, OWN(platform), 0, 0, "Machine: name or file", "P"},
    {VALIDATE | STUDY, "cases", 0, TEXT, OWN(cases), 0, 0, "Read the cases from a file", "F.json"},
    {VALIDATE, "platform", 'p', TEXT, OWN(platform), 0, 0,
     "What to predict from; default: HOSTNAME.json here, or the emulated one", "P"},
    {RUN | RUN_FACTOR | INFO | VALIDATE | CALIBRATE | ENVIRONMENT, "emulate", 0, NAME, AT(emulate),
     0, 0, "GPUs that are emulated: as fast as it goes, or at a platform's pace", "free|P"},
    {RUN | INFO | VALIDATE | CALIBRATE | ENVIRONMENT, "devices", 0, NAME, AT(devices), 0, 0,
     "How the GPUs of this machine are programmed; default: cuda", "cuda|opencl"},
    {RUN | RUN_FACTOR | INFO | VALIDATE | CALIBRATE | ENVIRONMENT, "scale", 0, SCALE, AT(scale), 0,
     0, "Factor of an emulated platform's times; default: 1", "X"},
    {VALIDATE, "openmp", 0, FLAG, OWN(openmp), 0, 0,
     "A program with OpenMP's tasks, behind --, in place of workloads", NULL},
    {VALIDATE, "on-duet", 0, FLAG, OWN(on_duet), 0, 0,
     "With --openmp: the measured runs are on duet, not on LLVM's runtime", NULL},
    {ALL | FACTOR | CASE | EXPORT, "n", 'n', COUNT, OWN(n), 1, UINT32_MAX, "Size of the problem",
     "N"},
    {ALL | FACTOR | CASE | EXPORT, "tile", 't', COUNT, OWN(tile), 1, UINT32_MAX,
     "Edge of a tile, in elements", "T"},
    {ALL | FACTOR | CASE | EXPORT, "precision", 0, TEXT, OWN(precision), 0, 0, "s or d (default)",
     "s|d"},
    {ALL | FACTOR | CASE | INFO | CALIBRATE | EXPORT | ENVIRONMENT, "cpus", 0, COUNT, AT(cpus), 0,
     1000000, "Computing cores; default: all that feed no GPU", "C"},
    {ALL | FACTOR | CASE | INFO | CALIBRATE | EXPORT | ENVIRONMENT, "gpus", 0, COUNT, AT(gpus), 0,
     1000000, "GPUs; default: all", "G"},
    {ALL | FACTOR | CASE, "policy", 0, TEXT, AT(policy), 0, 0,
     "Policies, by name, shared object or schedule, with parameters; default: ws",
     "A:x=1,B,...|all|help"},
    {ENVIRONMENT | OPENMP, "policy", 0, TEXT, AT(policy), 0, 0,
     "Policy, by name, shared object or schedule, with parameters; default: ws", "NAME:x=1"},
    {SIMULATE | STUDY, "reps", 0, COUNT, OWN(reps), 1, 100000, "Runs of each policy; default: 1",
     "R"},
    {RUN, "reps", 0, COUNT, OWN(reps), 1, 100000, "Measured runs of each policy; default: 5", "R"},
    {VALIDATE, "reps", 0, COUNT, OWN(reps), 1, 100000,
     "Measured runs of each case; default: --until 1%; paced: 3", "R"},
    {VALIDATE, "until", 0, PERCENT, OWN(until), 0, 0,
     "As many as make the median certain to +-P % within rounds; at least --reps, or 5", "P%"},
    {VALIDATE, "case-time", 0, SECONDS, OWN(case_time_s), 0, 0,
     "With --until, no further run of a case after so long; default: 3s", "TIME"},
    {VALIDATE, "rounds", 0, COUNT, OWN(rounds), 1, 100000,
     "Rounds in which they are made; default: 10, with --reps 5", "K"},
    {VALIDATE, "sim-reps", 0, COUNT, OWN(sim_reps), 1, 100000,
     "Simulated runs of each case, at most; default: 15", "S"},
    {VALIDATE, "calibrate", 0, FLAG, OWN(calibrate), 0, 0,
     "Calibrate before, between and after the rounds, and predict from that", NULL},
    {VALIDATE, "calibrate-time", 0, SECONDS, OWN(calibrate_time_s), 0, 0,
     "Time for that; default: what the measured runs take, at least 20s", "TIME"},
    {VALIDATE, "out", 'o', TEXT, OWN(out), 0, 0, "Write that calibration here, too", "F.json"},
    {VALIDATE, "warmup", 0, COUNT, OWN(warmups), 0, 100000,
     "Runs before those of a round; default: 1", "W"},
    {VALIDATE, "budget", 0, SECONDS, OWN(budget_s), 0, 0, "Begin no round after so long, \"90s\"",
     "TIME"},
    {RUN, "warmup", 0, COUNT, OWN(warmups), 0, 100000, "Runs before these; default: 1", "W"},
    {VALIDATE, "seed", 0, COUNT, AT(seed), 0, UINT64_MAX,
     "Seed of the data and of the first runs; default: 1", "S"},
    {RUN | CALIBRATE | ENVIRONMENT | OPENMP, "seed", 0, COUNT, AT(seed), 0, UINT64_MAX,
     "Seed of the data and of every choice; default: 1", "S"},
    {SIMULATE | STUDY | TUNE, "seed", 0, COUNT, AT(seed), 0, UINT64_MAX,
     "Seed of the first run; default: 1", "S"},
    {RUN, "verify", 0, VERIFY, OWN(verify), 0, 0,
     "Judge every measured result; last: of the last run only; exact: multiply factors out", NULL},
    {ALL | FACTOR | CASE | ENVIRONMENT, "nodes", 0, NODES, AT(nodes), 0, 0,
     "Nodes of a cluster, or rows and columns of them; default: 1", "N|RxC"},
    {SIMULATE | FACTOR | VALIDATE | EXPLAIN | ENVIRONMENT, "network", 0, NETWORK, AT(network), 0, 0,
     "What joins simulated nodes, \"fat-tree:100Gbps,1us\"; default: the platform's",
     "KIND:BW,LAT"},
    {SIMULATE | FACTOR | ENVIRONMENT, "network-engine", 0, TEXT, AT(network_engine), 0, 0,
     "What carries simulated copies and messages; default: fluid", "fluid|simgrid"},
    {ALL | FACTOR | CASE | ENVIRONMENT, "set-arch", 0, FLAG, AT(set_arch), 0, 0,
     "Kernels that GPUs have run on GPUs only", NULL},
    {ENVIRONMENT, "keep-going", 0, FLAG, AT(keep_going), 0, 0,
     "After a task has failed, run what does not need its result", NULL},
    {ALL | FACTOR | CASE | ENVIRONMENT, "hold", 0, FLAG, AT(hold), 0, 0,
     "Begin when all tasks are submitted: when the program waits", NULL},
    {ALL | FACTOR | CASE | ENVIRONMENT, "priorities", 0, TEXT, AT(priorities), 0, 0,
     "Priorities of tasks: none, workload (default), or bottom-level, which holds them",
     "none|workload|bottom-level"},
    {ENVIRONMENT, "jitter", 0, FLAG, AT(jitter), 0, 0,
     "Draw the latencies of simulated threads, a tenth more or less", NULL},
    {SIMULATE | FACTOR | ENVIRONMENT, "noise", 0, FLAG, AT(noise), 0, 0,
     "Draw kernel times from the measured distribution", NULL},
    {SIMULATE | FACTOR | EXPLAIN | ENVIRONMENT, "interval", 0, TEXT, AT(interval), 0, 0,
     "Draw what is uncertain of the machine; the interval of 90 % of later runs, or medians",
     "run|median:K"},
    {ALL | FACTOR | VALIDATE | ENVIRONMENT, "extrapolate", 0, FLAG, AT(extrapolate), 0, 0,
     "Allow kernel sizes beyond the measured ones", NULL},
    {SIMULATE | FACTOR | ENVIRONMENT, "no-costs", 0, FLAG, AT(no_costs), 0, 0,
     "The runtime's own operations take no time", NULL},
    {ALL | FACTOR | PLATFORM | EXPORT | IN_LIST, "starpu-models", 0, TEXT, OWN(starpu_models), 0, 0,
     "What StarPU has measured, for its records; default: where StarPU has it", "DIR[:HOST]"},
    {SIMULATE | FACTOR | ENVIRONMENT, "costs", 0, PAIRS, AT(costs), 0, 0,
     "Times of the runtime's own operations, \"submit=1us,steal=2us\"", "LIST"},
    {ALL | FACTOR | INFO | PLATFORM, "link", 0, LIST, OWN(links), 0, 0,
     "Bandwidth of a kind of links, \"pcie=12GB/s\", or \"all=2x\" (repeatable)", "NAME=BW"},
    {ALL | FACTOR | INFO | ENVIRONMENT, "gpu-memory", 0, MEMORY, AT(gpu_memory_bytes), 0, 0,
     "Memory of each GPU, \"6GiB\", or a part of what there is, \"80%\"", "SIZE|P%"},
    {ALL | FACTOR | INFO | ENVIRONMENT, "gpu-window", 0, COUNT, AT(gpu_window), 1,
     UNITS_GPU_WINDOW_MAX, "Tasks in preparation or in flight per GPU; default: 2", "K"},
    {ALL | FACTOR | INFO | ENVIRONMENT, "gpu-window-short", 0, COUNT, AT(gpu_window_short), 1,
     UNITS_GPU_WINDOW_MAX,
     "The same, or more, while they are short (100 us together); default: 8 or --gpu-window", "K"},
    {RUN | RUN_FACTOR | INFO | ENVIRONMENT, "gpu-streams", 0, COUNT, AT(gpu_streams), 1,
     UNITS_GPU_STREAMS_MAX, "Kernels that may run at once on a GPU; default: 1", "K"},
    {RUN | RUN_FACTOR | ENVIRONMENT, "gpu-untimed", 0, FLAG, AT(gpu_untimed), 0, 0,
     "GPUs measure no times: dates are those at which the host saw things end", NULL},
    {RUN | ENVIRONMENT, "no-cuda-graphs", 0, FLAG, AT(no_cuda_graphs), 0, 0,
     "Launch the kernels of a graph one by one", NULL},
    {RUN | INFO | VALIDATE | CALIBRATE | ENVIRONMENT, "pin", 0, PIN, AT(pin_bytes), 0, 0,
     "Host memory that may be page-locked; default: three quarters of it", "SIZE|none"},
    {ALL | FACTOR | INFO | ENVIRONMENT, "no-peer", 0, FLAG, AT(no_peer), 0, 0,
     "No direct copies between GPUs", NULL},
    {ALL | FACTOR | ENVIRONMENT, "nearest-source", 0, FLAG, AT(nearest_source), 0, 0,
     "Copy from the nearest replica, whatever copies are under way", NULL},
    {RUN | INFO | ENVIRONMENT, "no-bind", 0, FLAG, AT(no_bind), 0, 0,
     "Leave threads where the operating system puts them", NULL},
    {ALL | FACTOR | ENVIRONMENT, "window", 0, COUNT, AT(window), 1, UINT32_MAX,
     "Submitted, unfinished tasks at most; default: 65536", "W"},
    {ALL | FACTOR, "model", 0, TEXT, AT(model), 0, 0, "Performance model; default: history",
     "M|help"},
    {ENVIRONMENT | OPENMP, "model", 0, TEXT, AT(model), 0, 0, "Performance model; default: history",
     "M"},
    {ALL | FACTOR | ENVIRONMENT, "model-error", 0, REAL, AT(model_error), 0, 1,
     "Relative error put into what policies believe, 0 to below 1", "E"},
    {ALL | FACTOR | ENVIRONMENT, "perturbation", 0, REAL, AT(perturbation), 0, 1,
     "The same as a factor of each prediction's logarithm, 0 to below 1", "H"},
    {ALL | FACTOR | ENVIRONMENT, "learn", 0, FLAG, AT(learn), 0, 0,
     "Performance models know nothing at first", NULL},
    {ALL | FACTOR | CASE | EXPORT, "param", 0, LIST, OWN(params), 0, 0,
     "Parameter of the workload (repeatable)", "NAME=VALUE"},
    {FACTOR, "arg", 0, LIST, OWN(args), 0, 0,
     "Values for {NAME} in the arguments of a program (repeatable)", "NAME=LIST"},
    {ALL | FACTOR, "speed", 0, LIST, OWN(speeds), 0, 0,
     "Of a file's task graph: how much faster than its times (repeatable)", "[KERNEL@]ARCH=X"},
    {RUN | INFO | ENVIRONMENT, "lose", 0, NAME, AT(lose), 0, 0,
     "Lose emulated GPUs, \"gpu1@100\": at its 100th kernel or copy", "LIST"},
    {RUN | ENVIRONMENT, "watchdog", 0, WATCHDOG, AT(watchdog_s), 0, 0,
     "Seconds without any event after which a run is given up; default: 10", "S|never"},
    {ALL | INFO | VALIDATE | COMPARE | EXPLAIN | TUNE, "json", 0, FLAG, OWN(json), 0, 0,
     "Print JSON", NULL},
    {SIMULATE | FACTOR | VALIDATE | ENVIRONMENT, "without", 0, EFFECTS, AT(without), 0, 0,
     "Simulate without these effects, \"caches,neighbours\"", "LIST"},
    {VALIDATE, "no-noise", 0, FLAG, OWN(no_noise), 0, 0,
     "Simulate once, each kernel at its mean time", NULL},
    {VALIDATE, "follow-speed", 0, FLAG, OWN(follow_speed), 0, 0,
     "Divide predictions by the speed of the machine since its calibration", NULL},
    {VALIDATE, "keep-disturbed", 0, FLAG, OWN(keep_disturbed), 0, 0,
     "Keep runs of rounds in which other processes used the cores", NULL},
    {VALIDATE, "fail-over", 0, PERCENT, OWN(fail_over), 0, 0,
     "Exit status 1 if an error is larger, \"5%\"", "P%"},
    {VALIDATE | COMPARE, "verbose", 'v', FLAG, OWN(verbose), 0, 0,
     "Explain every case, not only the worst", NULL},
    {VALIDATE | COMPARE, "csv", 0, FLAG, OWN(csv), 0, 0, "Print CSV, one line a case", NULL},
    {ALL | STUDY, "csv", 0, FLAG, OWN(csv), 0, 0, "Print CSV, one line a run", NULL},
    {SIMULATE, "wall", 0, FLAG, OWN(wall), 0, 0, "Print how long the simulations took, too", NULL},
    {ALL, "trace", 0, TEXT, OWN(trace), 0, 0, "Write a trace for Perfetto, or for ViTE",
     "F.json|F.paje"},
    {ALL, "gantt", 0, TEXT, OWN(gantt), 0, 0, "Write a Gantt chart, or its bars as CSV",
     "F.svg|F.csv"},
    {SIMULATE, "improve", 0, SECONDS, OWN(improve_s), 0, 0,
     "Search so long for a schedule better than those of the policies", "TIME"},
    {ALL, "schedule-out", 0, TEXT, OWN(schedule_out), 0, 0,
     "Write which worker ran each task, and in which order: a policy of later runs", "F.json"},
    {ALL | VALIDATE | COMPARE | STUDY | EXPLAIN, "html", 0, TEXT, OWN(html), 0, 0,
     "Write a page with all of it", "F.html"},
    {STUDY, "svg", 0, TEXT, OWN(svg), 0, 0,
     "Write charts into a folder, each as SVG and its numbers as CSV", "DIR"},
    {STUDY, "table", 0, TEXT, OWN(table), 0, 0, "Form of the table; default: text", "text|latex"},
    {SIMULATE, "machine-xml", 0, TEXT, OWN(machine_xml), 0, 0,
     "Write the machine as a SimGrid platform, and its kernel times beside it", "F.xml"},
    {INFO, "machine-xml", 0, TEXT, OWN(machine_xml), 0, 0,
     "Write the machine as a SimGrid platform, without kernel times", "F.xml"},
    {VALIDATE, "jobs", 'j', COUNT, OWN(jobs), 1, 1000,
     "Simulations at a time; default: one a core of this machine", "J"},
    {SIMULATE | STUDY | TUNE, "jobs", 'j', COUNT, OWN(jobs), 1, 1000,
     "Runs at a time; default: one a core of this machine", "J"},
    {ALL | VALIDATE | CALIBRATE | STUDY | EXPLAIN | TUNE, "quiet", 'q', FLAG, OWN(quiet), 0, 0,
     "No progress bar, no note of links that --link leaves as they are", NULL},
    {RECORD, "out", 'o', TEXT, OWN(out), 0, 0, "Write the graph here; default: PROGRAM.json",
     "F.json"},
    {RECORD | OPENMP, "threads", 0, COUNT, OWN(threads), 1, 100000,
     "Threads of the program; default: OMP_NUM_THREADS, or all cores", "N"},
    {RECORD, "bytes", 0, COUNT, OWN(bytes), 1, UINT32_MAX,
     "Size of what each depend clause names; default: not known", "N"},
    {RECORD | VALIDATE, "loops", 0, COUNT, OWN(loops), 1, UINT16_MAX,
     "Cut each loop of an OpenMP program into so many equal parts, which run anywhere", "PARTS"},
    {RECORD | VALIDATE, "static-loops", 0, FLAG, OWN(static_loops), 0, 0,
     "With --loops: cut what may be a static loop compiled by gcc, too", NULL},
    {CALIBRATE, "from", 0, FLAG, OWN(from), 0, 0,
     "Read traces that are there, F.json..., and run nothing", NULL},
    {CALIBRATE, "out", 'o', TEXT, OWN(out), 0, 0, "Write the description here; default: NAME.json",
     "F.json"},
    {CALIBRATE, "nodes", 0, FLAG, OWN(nodes), 0, 0,
     "Measure messages between the processes of mpirun, for the file that is there", NULL},
    {CALIBRATE, "replace", 0, FLAG, OWN(replace), 0, 0, "Replace the file if it is there", NULL},
    {CALIBRATE, "merge", 0, FLAG, OWN(merge), 0, 0,
     "Replace it, but keep those of its kernel times that are not measured now", NULL},
    {CALIBRATE, "name", 0, TEXT, OWN(name), 0, 0,
     "Name of the machine; default: that of F, or of the host", "NAME"},
    {CALIBRATE, "budget", 'b', SECONDS, OWN(budget_s), 0, 0,
     "Time that measuring may take, \"120s\"; default: 60s", "T"},
    {CALIBRATE, "n", 'n', COUNTS, OWN(sizes), 1, UINT32_MAX,
     "Sizes of the problems; default: some in caches, some beyond", "N,...|default"},
    {CALIBRATE, "tile", 't', COUNTS, OWN(tiles), 1, UINT32_MAX,
     "Edges of tiles; default: three a workload", "T,..."},
    {CALIBRATE, "precision", 0, TEXT, OWN(precision), 0, 0, "s, d (default), or both: sd",
     "s|d|sd"},
    {CALIBRATE, "reps", 0, COUNT, OWN(reps), 1, 100000,
     "Rounds over all that is to be measured, whatever time they take", "R"},
    {CALIBRATE, "policy", 0, TEXT, AT(policy), 0, 0,
     "Policy of the runs; default: ws and eager in turn", "P"},
    {CALIBRATE, "no-costs", 0, FLAG, OWN(no_costs), 0, 0,
     "Measure none of the runtime's own operations", NULL},
    {CALIBRATE, "no-copies", 0, FLAG, OWN(no_copies), 0, 0, "Measure no copies to and from GPUs",
     NULL},
    {CALIBRATE, "json", 0, FLAG, OWN(json), 0, 0, "Print the report as JSON", NULL},
    {IN_LIST, "platform", 'p', TEXT, OWN(platform), 0, 0,
     "Platforms and kernels: only of this machine, a name or a file", "P"},
    {IN_LIST, "json", 0, FLAG, OWN(json), 0, 0, "Of a task graph's file: print JSON", NULL},
    {PLATFORM, "cpus", 0, TEXT, OWN(sockets), 0, 0,
     "CPUs, \"2x32:epyc-9654\": sockets, cores of each, device (without: a current EPYC)", "SxC:D"},
    {PLATFORM, "gpus", 0, LIST, OWN(gpu_groups), 0, 0,
     "GPUs of a kind, \"4:a100\" (repeatable); default: none", "N:D"},
    {PLATFORM, "nvlink", 0, FLAG, OWN(nvlink), 0, 0,
     "The GPUs' own links join each two of them (NVLink, Infinity Fabric)", NULL},
    {PLATFORM, "nvswitch", 0, FLAG, OWN(nvswitch), 0, 0,
     "The GPUs' own links go to switches: full speed to any other", NULL},
    {PLATFORM, "pcie-switches", 0, COUNT, OWN(pcie_switches), 1, 4096,
     "Switches of PCI Express that the GPUs share; default: one each", "K"},
    {PLATFORM, "name", 0, TEXT, OWN(name), 0, 0, "Name of the machine; default: that of F", "NAME"},
    {PLATFORM, "out", 'o', TEXT, OWN(out), 0, 0, "Write the description here", "F.json"},
    {PLATFORM, "replace", 0, FLAG, OWN(replace), 0, 0, "Replace the file if it is there", NULL},
    {EXPLAIN, "platform", 'p', TEXT, OWN(platform), 0, 0,
     "Machine that changes are simulated on; default: the trace's", "P"},
    {EXPLAIN, "policy", 0, TEXT, AT(policy), 0, 0,
     "Simulate with this policy; default: the trace's, unless that is a shared object", "A"},
    {EXPLAIN, "no-what-if", 0, FLAG, OWN(no_what_if), 0, 0, "Simulate nothing", NULL},
    {EXPLAIN, "jobs", 'j', COUNT, OWN(jobs), 1, 1000,
     "Simulations at a time; default: one a core of this machine", "J"},
    {EXPORT, "platform", 'p', TEXT, OWN(platform), 0, 0,
     "Machine of a workload's kernel times: name or file", "P"},
    {EXPORT, "format", 'f', TEXT, OWN(format), 0, 0, "Format; default: json",
     "json|dot|stg|wfformat"},
    {EXPORT, "out", 'o', TEXT, OWN(out), 0, 0, "Write a file; default, and \"-\": standard output",
     "F"},
    {STUDY, "out", 'o', TEXT, OWN(out), 0, 0, "The file of results; default: study.db", "F.db"},
    {STUDY, "show", 0, FLAG, OWN(show), 0, 0, "Only show what is in the file", NULL},
    {STUDY, "best", 0, TEXT, OWN(best), 0, 0,
     "What the best is looked for of; default: policy, tile, and what else one is free to choose",
     "LIST"},
    {STUDY, "verbose", 'v', FLAG, OWN(verbose), 0, 0, "Show every case", NULL},
    {STUDY, "fraction", 0, TEXT, OWN(fraction), 0, 0,
     "Only a part of all combinations, spread evenly", "A/B"},
    {STUDY, "shard", 0, TEXT, OWN(shard), 0, 0, "Only the I-th of K parts, for K jobs side by side",
     "I/K"},
    {STUDY, "merge", 0, FLAG, OWN(merge), 0, 0, "Put the results of other files into this one",
     NULL},
    {STUDY, "retry", 0, FLAG, OWN(retry), 0, 0, "Try again what has failed before", NULL},
    {TUNE, "budget", 'b', SECONDS, OWN(budget_s), 0, 0,
     "Time that simulations may take, \"2min\"; default: 30s", "T"},
    {TUNE, "verify", 0, COUNT, OWN(verified), 1, 1000,
     "How many of the best are run, where the machine is this one; default: 3", "K"},
    {TUNE, "no-verify", 0, FLAG, OWN(no_verify), 0, 0, "Run nothing", NULL},
    {TUNE, "env", 0, TEXT, OWN(env), 0, 0,
     "Write the choice here, as variables that programs read; default, and \"-\": standard output",
     "F"},
    {TUNE, "out", 'o', TEXT, OWN(out), 0, 0, "Keep the simulations in a file, as duet study does",
     "F.db"},
    {COMPARE, "policy", 0, TEXT, AT(policy), 0, 0, "Only the runs of this policy, of reports",
     "NAME"},
    {COMPARE, "fail-over", 0, SHARE, OWN(fail_over), 0, 0,
     "Exit status 1 if a difference is larger, \"5%\"", "P%"},
};

const struct duet__option *duet__option_at(size_t index)
{
    return index < sizeof(settings) / sizeof(settings[0]) ? &settings[index] : NULL;
}

const struct duet__option *duet__option_find(const char *name, unsigned where)
{
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        if ((settings[i].where & where) == where && !strcmp(settings[i].name, name))
            return &settings[i];
    return NULL;
}

static int set_flag(const char *label, const char *text, bool *out, struct duet_message *message)
{
    if (!strcmp(text, "1") || !strcmp(text, "yes") || !strcmp(text, ""))
        *out = true;
    else if (!strcmp(text, "0") || !strcmp(text, "no"))
        *out = false;
    else
        return duet_fail(message, DUET_EINVAL, "%s takes 1 or 0, not '%s'", label, text);
    return DUET_OK;
}

static const char *const verified[] = {"0", "", "last", "exact"}; /* by enum duet__verified */

static int set_verify(const char *label, const char *text, int *out, struct duet_message *message)
{
    for (size_t i = 0; i < G_N_ELEMENTS(verified); i++) {
        *out = (int)i;
        if (!strcmp(text, verified[i]))
            return DUET_OK;
    }
    return duet_fail(message, DUET_EINVAL, "%s takes nothing, 'last' or 'exact', not '%s'", label,
                     text);
}

static int set_count(const struct duet__option *setting, const char *label, const char *text,
                     void *field, struct duet_message *message)
{
    uint64_t value = 0;
    int error = duet__parse_count(label, text, setting->low, setting->high, &value, message);
    if (!error && setting->bytes == sizeof(unsigned))
        *(unsigned *)field = (unsigned)value;
    else if (!error)
        *(uint64_t *)field = value;
    return error;
}

/* Reads a list; none for a "default" that the option offers. */
static int set_counts(const struct duet__option *option, struct duet__values *values,
                      const char *label, const char *text, struct duet_message *message)
{
    struct duet__numbers *field = (void *)((char *)values + option->offset);
    g_autoptr(GPtrArray) parts = g_ptr_array_new_with_free_func(g_free);
    bool none = g_str_has_suffix(option->value, "|default") && strcmp(text, "default") == 0;
    int error = none    ? 0
                : *text ? duet__parse_list(label, text, parts, message)
                        : duet_fail(message, DUET_EINVAL,
                                    "%s takes a list of whole numbers, not ''", label);
    uint64_t *items = g_new0(uint64_t, parts->len + 1);
    g_ptr_array_add(values->kept, items);
    for (guint i = 0; i < parts->len && !error; i++)
        error = duet__parse_count(label, parts->pdata[i], option->low, option->high, &items[i],
                                  message);
    *field = (struct duet__numbers){items, error ? 0 : parts->len};
    return error;
}

/* Adds one text to those of a repeatable option. */
static int add_to_list(struct duet__values *values, char ***list, const char *text)
{
    const size_t count = *list ? g_strv_length(*list) : 0;
    char **longer = g_new0(char *, count + 2);
    if (count)
        memcpy(longer, *list, count * sizeof *longer);
    longer[count] = g_strdup(text);
    g_ptr_array_add(values->kept, longer[count]);
    g_ptr_array_add(values->kept, longer);
    *list = longer;
    return 0;
}

int duet__option_set(const struct duet__option *setting, void *values, const char *label,
                     const char *text, struct duet_message *message)
{
    void *field = (char *)values + setting->offset;
    struct duet_config *config = values;
    struct duet__network unused;
    struct duet_grid grid;
    unsigned ignored = 0;
    int error = DUET_OK;
    switch (setting->kind) {
    case FLAG:
        return set_flag(label, text, field, message);
    case VERIFY:
        return set_verify(label, text, field, message);
    case LIST:
        return add_to_list(values, field, text);
    case COUNTS:
        return set_counts(setting, values, label, text, message);
    case COUNT:
        return set_count(setting, label, text, field, message);
    case REAL:
        return duet__parse_real(label, text, (double)setting->low, (double)setting->high, field,
                                message);
    case SCALE:
        return duet__parse_real(label, text, 1e-6, 1e6, field, message);
    case SECONDS:
        return duet__parse_seconds(label, text, field, message);
    case PERCENT:
    case SHARE:
        return duet__parse_percent(label, text, setting->kind == PERCENT, field, message);
    case WATCHDOG:
        return duet__parse_watchdog(label, text, field, message);
    case MEMORY:
        return duet__parse_memory(label, text, &config->gpu_memory_bytes, &config->gpu_memory_share,
                                  message);
    case PIN:
        return duet__parse_pin(label, text, &config->pin_bytes, &config->no_pin, message);
    case EFFECTS:
        error = duet__effects_parse(label, text, &ignored, message);
        break;
    case NODES:
        error = duet__parse_nodes(label, text, &grid, message);
        break;
    case NETWORK: /* a platform may say the rest */
        error = duet__network_parse(label, text, &(struct duet__network){.bandwidth_Bps = 1},
                                    &unused, message);
        break;
    case NAME:
        text = *text ? text : NULL;
        break;
    default:
        break;
    }
    if (!error)
        *(const char **)field = text;
    return error;
}

bool duet__option_takes(const struct duet__option *setting, const char *word)
{
    return setting->kind == VERIFY && (!strcmp(word, verified[DUET__VERIFY_LAST]) ||
                                       !strcmp(word, verified[DUET__VERIFY_EXACT]));
}

bool duet__option_named(const struct duet__option *setting)
{
    return setting->kind == LIST;
}

int duet__option_values(const struct duet__option *setting, const char *label, const char *text,
                        GPtrArray *values, struct duet_message *message)
{
    const char *equals = strchr(text, '=');
    const guint first = values->len;
    int error;
    if (setting->kind == NETWORK) { /* a kind begins the next one, a file with a colon */
        char **networks =
            g_regex_split_simple(",(?=[a-z-]+:|(?:switch|fat-tree|dragonfly|torus)(?:,|$))", text,
                                 0, 0);
        for (char **network = networks; *network; network++)
            g_ptr_array_add(values, *network);
        g_free(networks);
        return 0;
    }
    if (setting->kind == EFFECTS || setting->kind == PAIRS ||
        (setting->kind == LIST && (!equals || strchr(equals + 1, '=')))) {
        g_ptr_array_add(values, g_strdup(text));
        return 0;
    }
    if (setting->kind != LIST)
        return duet__parse_list(label, *text || setting->value ? text : "1", values, message);
    error = duet__parse_list(label, equals + 1, values, message);
    for (guint i = first; i < values->len; i++) {
        char *value = values->pdata[i];
        values->pdata[i] = g_strdup_printf("%.*s%s", (int)(equals + 1 - text), text, value);
        g_free(value);
    }
    return error;
}

static char *count_text(const struct duet__option *setting, const void *field, const void *initial)
{
    if (!memcmp(field, initial, setting->bytes))
        return NULL;
    return g_strdup_printf("%" PRIu64, setting->bytes == sizeof(unsigned)
                                           ? *(const unsigned *)field
                                           : *(const uint64_t *)field);
}

char *duet__option_text(const struct duet__option *setting, const struct duet_config *config)
{
    struct duet_config usual;
    char digits[DUET__DIGITS_MAX];
    duet_config_init(&usual);
    const void *field = (const char *)config + setting->offset;
    const void *initial = (const char *)&usual + setting->offset;
    switch (setting->kind) {
    case FLAG:
        return *(const bool *)field ? g_strdup("1") : NULL;
    case COUNT:
        return count_text(setting, field, initial);
    case PIN:
        return config->no_pin ? g_strdup("none") : count_text(setting, field, initial);
    case MEMORY:
        return config->gpu_memory_share > 0
                   ? g_strdup_printf("%s%%", duet__digits(100 * config->gpu_memory_share, digits))
                   : count_text(setting, field, initial);
    case REAL:
    case SCALE:
    case WATCHDOG: {
        double value = *(const double *)field;
        return value < 0   ? g_strdup("never")
               : value > 0 ? g_strdup(duet__digits(value, digits))
                           : NULL;
    }
    default:
        return g_strdup(*(const char *const *)field);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Lists of values, ranges of numbers in them, and numbers of nodes                             */

enum { VALUES_MOST = 100000, NODES_MOST = 4096 };

/* Reads a number and the unit behind it, which ends before one of `ends`; false: no number. */
static bool read_number(const char **at, const char *ends, double *value, char **unit)
{
    char *end = NULL;
    size_t length;
    if (!g_ascii_isdigit(**at) || g_str_has_prefix(*at, "0x"))
        return false;
    *value = g_ascii_strtod(*at, &end);
    length = strcspn(end, ends);
    *unit = g_strndup(end, length);
    *at = end + length;
    return isfinite(*value) && strcspn(*unit, "0123456789.:*") == length;
}

/* "A", "A..B", "A..B:STEP", "A..B*FACTOR"; a unit that one of them lacks is that of the others. */
struct range {
    double from, to, step;
    char sign; /* ':' or '*' */
    char *unit;
};

/* false: it is something else that begins with a digit. */
static bool read_range(const char *element, const char *dots, struct range *range)
{
    g_autofree char *first = g_strndup(element, (size_t)(dots - element)), *unit = NULL;
    g_autofree char *last = NULL, *step = NULL;
    const char *at = first, *rest = dots + 2;
    bool good =
        read_number(&at, "", &range->from, &unit) && read_number(&rest, ":*", &range->to, &last);
    range->sign = ':';
    range->step = 1;
    if (good && *rest) {
        range->sign = *rest++;
        good = read_number(&rest, "", &range->step, &step);
    }
    if (!good)
        return false;
    range->unit = g_strdup(*last ? last : unit);
    return (!*unit || !strcmp(unit, range->unit)) &&
           (!step || !*step || (range->sign == ':' && !strcmp(step, range->unit))) &&
           range->from <= range->to &&
           (range->sign == ':' ? range->step > 0 : range->step > 1 && range->from > 0);
}

static int values_add(const char *option, char *value, GPtrArray *values,
                      struct duet_message *message)
{
    g_ptr_array_add(values, value);
    if (values->len > VALUES_MOST)
        return duet_fail(message, DUET_EINVAL, "%s takes at most %d values", option, VALUES_MOST);
    return 0;
}

static int add_range(const char *option, const struct range *range, GPtrArray *values,
                     struct duet_message *message)
{
    static const double rounding = 1e-9;
    int error = 0;
    for (guint i = 0; !error; i++) {
        char digits[G_ASCII_DTOSTR_BUF_SIZE];
        double value =
            range->sign == ':' ? range->from + i * range->step : range->from * pow(range->step, i);
        if (value > range->to * (1 + rounding))
            break;
        if (value < 1e15 && fabs(value - round(value)) <= rounding * value)
            error =
                values_add(option, g_strdup_printf("%.0f%s", value, range->unit), values, message);
        else
            error = values_add(option,
                               g_strconcat(g_ascii_formatd(digits, sizeof digits, "%.12g", value),
                                           range->unit, NULL),
                               values, message);
    }
    return error;
}

int duet__parse_list(const char *option, const char *text, GPtrArray *values,
                     struct duet_message *message)
{
    g_auto(GStrv) parts = g_strsplit(text, ",", -1);
    g_autoptr(GHashTable) known = g_hash_table_new(g_str_hash, g_str_equal);
    const guint first = values->len;
    int error = *text ? 0 : values_add(option, g_strdup(""), values, message);
    for (char **part = parts; *part && !error; part++) {
        const char *dots = g_ascii_isdigit(**part) ? strstr(*part, "..") : NULL;
        struct range range = {.unit = NULL};
        if (!dots)
            error = values_add(option, g_strdup(*part), values, message);
        else if (read_range(*part, dots, &range))
            error = add_range(option, &range, values, message);
        else
            error = duet_fail(message, DUET_EINVAL,
                              "%s: '%s' is no range: A..B, A..B:STEP or A..B*FACTOR, with A up to "
                              "B, a step above 0 or a factor above 1",
                              option, *part);
        g_free(range.unit);
    }
    for (guint i = first; i < values->len && !error; i++) {
        char *key = values->pdata[i];
        while (*key == '0' && g_ascii_isdigit(key[1])) /* 0960 is 960 */
            key++;
        if (!g_hash_table_add(known, key) && *key)
            error = duet_fail(message, DUET_EINVAL, "%s names %s twice", option, key);
    }
    return error;
}

int duet__parse_nodes(const char *option, const char *text, struct duet_grid *out,
                      struct duet_message *message)
{
    g_auto(GStrv) words = g_strsplit(text ? text : "1", "x", 2);
    uint64_t first = 0, second = 1;
    bool good = words[0] && duet__scan_whole(words[0], 1, NODES_MOST, &first) &&
                (!words[1] || duet__scan_whole(words[1], 1, NODES_MOST / first, &second));
    if (!good)
        return duet_fail(
            message, DUET_EINVAL,
            "%s takes a number of nodes, or rows and columns of them, up to %d in all, "
            "such as 4 or 2x2, not '%s'",
            option, NODES_MOST, text);
    *out = words[1] ? (struct duet_grid){(unsigned)first, (unsigned)second}
                    : duet__grid_square((unsigned)first);
    return 0;
}

struct duet_grid duet__nodes_wanted(const struct duet_config *config)
{
    struct duet_grid grid;
    struct duet_message ignored;
    return duet__parse_nodes("", config->nodes, &grid, &ignored) ? (struct duet_grid){1, 1} : grid;
}
