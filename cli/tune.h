/* SPDX-License-Identifier: Apache-2.0 */
/* `duet tune`: what is chosen among, what came of it, and its report. */
#ifndef DUET_CLI_TUNE_H
#define DUET_CLI_TUNE_H

#include "cli/tables.h"
#include "study/halving.h"

/* What is simulated, a product each: a setting of the space has the same number in all but the
   last, which has one cell. */
enum duet__fidelity {
    DUET__EIGHTH, /* of n */
    DUET__QUARTER,
    DUET__HALF,
    DUET__WHOLE,
    DUET__NOISE, /* the whole, kernel times drawn */
    DUET__USUAL, /* the same of what one gets who chooses nothing */
    DUET__FIDELITIES,
};

/* What is known of a setting. */
struct duet__tuned {
    uint64_t setting, cell; /* in the space; of its last simulations */
    uint64_t reps;          /* simulations with noise; 0: one without */
    double predicted_s;     /* mean, and half its 95 % interval; NAN: not known */
    double half_s;
    double flops, best_s; /* of the problem; lower bound of the makespan */
    double measured_s;    /* median of real runs; NAN: there is none */
};

/* All of a search. */
struct duet__tune {
    struct duet__job *job;
    struct duet__study *space;    /* one product: all settings */
    struct duet__tables tables;   /* simulations of them */
    GPtrArray *varied;            /* struct duet__factor, borrowed: those with several values */
    struct duet__request request; /* of the first setting; not of programs and task graphs */
    char *platform;               /* name or file, that is simulated */
    char *measured;               /* a file with what was measured for this, to be removed */
    char *calibrated;             /* what that is, for people; NULL: nothing */
    bool here;                    /* the platform is this machine */
    double low, high;             /* edges of tiles between which all was measured; 0: not known */
    bool blocks;                  /* the workload has --param block, of an edge within tiles */
    uint64_t usual_tile;
    unsigned levels;
    double start_s, budget_s, search_s;
    uint64_t made[DUET__FIDELITIES]; /* simulations */
    GArray *found;                   /* struct duet__tuned, the best first */
    struct duet__tuned usual;
    double lead, lead_half; /* of the best to the second by noise, parts of 1; or NAN */
    bool estimated;         /* some kernel times were never measured */
    bool cut;               /* there was no time for all simulations */
    struct duet_message message;
    char *refusal;   /* what the first run that did not end said; NULL: all did */
    char *left_out;  /* the same of simulations */
    uint64_t failed; /* simulations that did not end */
    unsigned last;   /* how often the last level was measured */
    size_t run_reps; /* real runs of each; 0: none were made */
    const struct duet__tuned *chosen;
};

/*
 * Completes the space: where no option has several values, with tiles, policies, windows and
 * workers that may be worth trying. Finds the platform; where it is this machine and has not been
 * measured with these tiles, measures. DUET_EINVAL with a message, and what else refuses it; above
 * 0 the number of the signal that came meanwhile.
 */
DUET_MUST_CHECK int duet__tune_space(struct duet__tune *tune, struct duet_message *message);

/* One of those that were found, or behind them what one gets unasked. */
static inline struct duet__tuned *duet__tune_at(struct duet__tune *tune, guint place)
{
    return place < tune->found->len ? &g_array_index(tune->found, struct duet__tuned, place)
                                    : &tune->usual;
}

/* Whether it is for the one who runs a program to choose. */
bool duet__tune_chosen(const char *factor);

/* Whether tiles of this edge, by blocks ("block=320", NULL: none), or what these leave of n and of
   tiles, are beyond what was measured. */
bool duet__tune_beyond(const struct duet__tune *tune, const char *tile, const char *block);

/* Whether real runs have it, too: not what is supposed of a machine. */
bool duet__tune_runs(const struct duet__factor *factor);

/* Prints what was found, and writes the variables of the choice. Exit status. */
int duet__tune_report(const struct duet__tune *tune);

#endif
