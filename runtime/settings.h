/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings, as one table of all that can be set from outside: how each is called, where it applies,
 * what it takes, what it does. The environment, --duet-* arguments, the command line, its help and
 * its manual are made from it.
 */
#ifndef DUET_RUNTIME_SETTINGS_H
#define DUET_RUNTIME_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

#include <duet/duet.h>

/* Places where a setting applies, as a set. */
enum {
    DUET__IN_SIMULATE = 1, /* an option of `duet simulate`; IN_X: of `duet X` */
    DUET__IN_RUN = 2,
    DUET__IN_INFO = 4,
    DUET__IN_CALIBRATE = 8,
    DUET__IN_VALIDATE = 16,
    DUET__IN_COMPARE = 64,
    DUET__IN_LIST = 128,
    DUET__IN_PLATFORM = 256,
    DUET__IN_RECORD = 512,
    DUET__IN_EXPORT = 1024,
    DUET__IN_STUDY = 2048,
    DUET__FACTOR = 4096, /* a factor: each of several values makes a run of its own */
    DUET__IN_EXPLAIN = 8192,
    DUET__IN_TUNE = 16384,
    DUET__CASE = 32768, /* a case of `duet validate`: each of several values makes a case */
    DUET__IN_OPENMP = 65536,
    DUET__IN_ENVIRONMENT = 32, /* a variable DUET_NAME, and the argument --duet-NAME */
};

/* Runs that are judged, and the way it is done. */
enum duet__verified {
    DUET__VERIFY_NONE,
    DUET__VERIFY_EACH,
    DUET__VERIFY_LAST,  /* the last run of each policy */
    DUET__VERIFY_EXACT, /* each run, factors multiplied out */
};

/* Numbers of a list "A,B,C". */
struct duet__numbers {
    uint64_t *items;
    size_t count;
};

/* Values of all settings: a field for each line of the table. */
struct duet__values {
    struct duet_config config; /* first member, so that a configuration is set like this */
    GPtrArray *kept;           /* memory of the command's lists, for g_free */
    const char *platform, *cases, *precision, *name, *format;
    const char *starpu_models; /* "DIR:HOST" */
    const char *out, *trace, *gantt, *schedule_out, *html,
        *machine_xml;                                       /* files to write; NULL: not wanted */
    char **links, **params, **args, **speeds, **gpu_groups; /* NULL-ended; NULL: none */
    const char *sockets;                                    /* "2x32:NAME" */
    const char *fraction, *shard, *best, *env, *svg, *table;
    struct duet__numbers sizes, tiles;
    uint64_t n, tile, reps, warmups, rounds, sim_reps, jobs, pcie_switches, threads, bytes, loops,
        verified;
    double until, fail_over; /* shares of 1 */
    double case_time_s, calibrate_time_s, budget_s, improve_s;
    bool json, csv, quiet, verbose, wall;
    int verify; /* enum duet__verified */
    bool calibrate, no_noise, follow_speed, keep_disturbed;
    bool nodes, from, replace, merge, no_costs, no_copies, nvlink, nvswitch, openmp, static_loops;
    bool on_duet;
    bool show, retry, no_what_if, no_verify;
};

struct duet__option {
    unsigned where;       /* DUET__IN_... */
    const char *name;     /* "gpu-memory" */
    char letter;          /* the short option's letter; 0: none */
    int kind;             /* way to read its value: one of settings.c */
    size_t offset, bytes; /* place and size of its member of struct duet__values */
    uint64_t low, high;
    const char *help;  /* one line of text */
    const char *value; /* form of its value, "SIZE|P%"; "F.json" for files only; NULL: none */
};

/* Returns a line of the table, NULL after the last. A name has a line for each meaning. */
const struct duet__option *duet__option_at(size_t index);

/* Returns the setting of a name which applies in all of `where`; NULL: there is none. */
const struct duet__option *duet__option_find(const char *name, unsigned where);

/*
 * Sets the field of a setting. `values` is a struct duet__values, or a struct duet_config for what
 * applies in the environment; `label` is what a message calls the setting. The text is borrowed,
 * but for lists. DUET_EINVAL.
 */
DUET_MUST_CHECK int duet__option_set(const struct duet__option *setting, void *values,
                                     const char *label, const char *text,
                                     struct duet_message *message);

/*
 * Adds the values that a text of a factor stands for to `values` (char *, of g_malloc), each of
 * them a text for duet__option_set: "480,960", "1..8", see duet__parse_list. Values of a repeatable
 * option have one name, which all begin with: "pcie=1x,2x" is "pcie=1x" and "pcie=2x". An option
 * whose value is a list itself has that one value. DUET_EINVAL.
 */
DUET_MUST_CHECK int duet__option_values(const struct duet__option *setting, const char *label,
                                        const char *text, GPtrArray *values,
                                        struct duet_message *message);

/* True if the option may be given without a value or with this one: "--verify", "--verify last". */
bool duet__option_takes(const struct duet__option *setting, const char *word);

/* True if a setting can be repeated, each time with a name: "pcie=1x". */
bool duet__option_named(const struct duet__option *setting);

/*
 * Returns the text by which duet__option_set gives a member of a configuration its value, for
 * settings of the environment; NULL: that is the default. Free with g_free.
 */
char *duet__option_text(const struct duet__option *setting, const struct duet_config *config);

/*
 * Returns the settings that change what a simulated run does and are not the default, as in a
 * trace: "set-arch=1; gpu-window=4"; without what a trace has besides: numbers of workers, their
 * memory, the policy, the seed. NULL: none. Free with g_free.
 */
char *duet__settings_text(const struct duet_config *config);

/* Takes a text of duet__settings_text, NULL: none. DUET_EINVAL, also for an unknown setting. */
DUET_MUST_CHECK int duet__settings_read(const char *text, struct duet_config *config,
                                        struct duet_message *message);

/*
 * Returns an environment, for g_strfreev, from which duet_config_environment reads this
 * configuration, as far as there are variables. Takes over `environment`, of g_get_environ.
 */
char **duet__config_environment(const struct duet_config *config, char **environment);

/*
 * Takes the configuration of a program, which may have been compiled with an older duet, into a
 * whole one. DUET_EINVAL with a message: duet_config_init has not set it, or a newer duet has.
 */
DUET_MUST_CHECK int duet__config_take(struct duet_config *own, const struct duet_config *given,
                                      struct duet_message *message);

/* Reads nodes in rows and columns, 1 to 4096 in all: "2x3", or "6", which is as square as possible;
   NULL is one. */
DUET_MUST_CHECK int duet__parse_nodes(const char *option, const char *text, struct duet_grid *out,
                                      struct duet_message *message);

/* Returns the nodes of a checked configuration, or of one that names none or wrong ones: one. */
struct duet_grid duet__nodes_wanted(const struct duet_config *config);

#endif
