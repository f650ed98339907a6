/* SPDX-License-Identifier: Apache-2.0 */
/* The options of the subcommands that make runs or show what they would be made on, as texts. */
#ifndef DUET_CLI_OPTIONS_H
#define DUET_CLI_OPTIONS_H

#include <stdbool.h>

#include <glib.h>

#include "world/settings.h"

/* Which subcommands have an option. */
enum {
    DUET__FOR_SIMULATE = DUET__IN_SIMULATE,
    DUET__FOR_RUN = DUET__IN_RUN,
    DUET__FOR_ALL = DUET__FOR_SIMULATE | DUET__FOR_RUN,
    DUET__FOR_INFO = DUET__IN_INFO,
    DUET__FOR_CALIBRATE = DUET__IN_CALIBRATE,
    DUET__FOR_VALIDATE = DUET__IN_VALIDATE,
};

/* Options as texts; NULL: not given. Zero-initialise; duet__texts_fini frees them. */
struct duet__texts {
    char *platform, *emulate, *scale, *n, *tile, *precision, *cpus, *gpus, *policy;
    char *reps, *warmup, *seed, *jobs, *lose, *watchdog;
    char *gpu_memory, *gpu_window, *gpu_window_short, *gpu_streams, *pin, *window, *model,
        *model_error, *costs;
    char *trace, *gantt, *html, *machine_xml;
    char *cases, *rounds, *sim_reps, *without, *budget, *fail_over;
    char *until, *case_time, *calibrate_time, *out;
    char **links, **params;
    gboolean set_arch, noise, extrapolate, no_costs, no_peer, no_bind, verify;
    gboolean json, csv, wall, quiet, no_noise, follow_speed, verbose, calibrate;
    gboolean keep_disturbed;
    char *name;
    gboolean replace, merge, no_copies, compare_models;
};

/*
 * Reads the options of one subcommand (`command`: DUET__FOR_...). As duet__parse_options; texts is
 * to be freed even if it returns false.
 */
bool duet__texts_parse(struct duet__texts *texts, int command, const char *name,
                       const char *summary, const char *notes, int *argc, char ***argv);

void duet__texts_fini(struct duet__texts *texts);

#endif
