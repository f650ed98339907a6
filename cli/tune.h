/* SPDX-License-Identifier: Apache-2.0 */
/* `duet tune`: its space, its search and its report. */
#ifndef DUET_CLI_TUNE_H
#define DUET_CLI_TUNE_H

#include "cli/tables.h"
#include "study/halving.h"

/* Fidelities of simulations, a product each: a setting of the space has the same number in all but
   the last, which has one cell. */
enum duet__fidelity {
    DUET__EIGHTH, /* an eighth of n */
    DUET__QUARTER,
    DUET__HALF,
    DUET__WHOLE,
    DUET__NOISE, /* the whole, kernel times drawn */
    DUET__USUAL, /* with noise, too: the setting that one gets who chooses nothing */
    DUET__FIDELITIES,
};

/* A setting, and what is known of it. */
struct duet__tuned {
    uint64_t setting, cell; /* numbers: in the space; of the last simulations' cell */
    uint64_t reps;          /* simulations with noise; 0: one without */
    double predicted_s;     /* mean, and half its 95 % interval; NAN: not known */
    double half_s;
    double flops, best_s; /* the problem's work; lower bound of the makespan */
    double measured_s;    /* median of real runs; NAN: there is none */
};

/* A search: space, simulations and results. */
struct duet__tune {
    struct duet__job *job;
    struct duet__study *space;  /* one product: all settings */
    struct duet__tables tables; /* the simulations of settings */
    GPtrArray *varied;          /* struct duet__factor, borrowed: those with several values */
    struct duet__request
        request;      /* request of the first setting; unset for programs and task graphs */
    char *platform;   /* name or file of the simulated one */
    char *measured;   /* a file with the measurements for this search, to be removed */
    char *calibrated; /* describes `measured` for people; NULL: nothing was measured */
    bool here;        /* the platform is this machine */
    double low, high; /* edges of tiles between which all kernels were measured; 0: not
                         known */
    bool blocks;      /* the workload has --param block, of an edge within tiles */
    uint64_t usual_tile;
    unsigned levels;
    double start_s, budget_s, search_s;
    uint64_t made[DUET__FIDELITIES]; /* number of simulations */
    GArray *found;                   /* struct duet__tuned, the best first */
    struct duet__tuned usual;
    double lead, lead_half; /* lead of the best to the second with noise, parts of 1; or NAN */
    bool estimated;         /* some kernel times were never measured */
    bool cut;               /* the budget ended before all simulations were made */
    struct duet_message message;
    char *refusal;   /* error of the first real run that did not end; NULL: all did */
    char *left_out;  /* error of the first simulation that did not end; NULL: all did */
    uint64_t failed; /* simulations that did not end */
    unsigned last;   /* times that settings were measured at the last level */
    size_t run_reps; /* real runs of each setting; 0: none were made */
    const struct duet__tuned *chosen;
};

/*
 * Completes the space: if no option has several values, with tiles, policies, windows and workers
 * that may be worth trying. Finds the platform, and measures if it is this machine and has not been
 * measured with these tiles. Returns DUET_EINVAL and other errors with a message, or above 0 the
 * number of the signal that came.
 */
DUET_MUST_CHECK int duet__tune_space(struct duet__tune *tune, struct duet_message *message);

/* Returns a setting that was found; behind the last one, the setting that one gets unasked. */
static inline struct duet__tuned *duet__tune_at(struct duet__tune *tune, guint place)
{
    return place < tune->found->len ? &g_array_index(tune->found, struct duet__tuned, place)
                                    : &tune->usual;
}

/* True if the one who runs a program chooses this factor. */
bool duet__tune_chosen(const char *factor);

/* True if tiles of this edge, or their blocks ("block=320", NULL: none), or the rests that they
   leave of n and of tiles, are beyond what was measured. */
bool duet__tune_beyond(const struct duet__tune *tune, const char *tile, const char *block);

/* True if real runs have the factor, too: it is nothing that is supposed of a machine. */
bool duet__tune_runs(const struct duet__factor *factor);

/* Prints what was found, and writes the variables of the choice. Exit status. */
int duet__tune_report(const struct duet__tune *tune);

#endif
