/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for the best settings of one problem on one machine: by simulations, which become
 * larger and fewer, then by runs. Every function returns 0, a negative error with tune->message,
 * or above 0 the number of the signal that came.
 */
#ifndef DUET_STUDY_TUNE_H
#define DUET_STUDY_TUNE_H

#include "runs/request.h"
#include "study/study.h"

/* Fidelities of runs, a product each: a setting of the space has the same number in all, but the
   usual ones have one cell. */
enum duet__fidelity {
    DUET__EIGHTH, /* a simulation of an eighth of n */
    DUET__QUARTER,
    DUET__HALF,
    DUET__WHOLE,
    DUET__DRAWN,     /* the whole problem, on drawn machines (--interval run) */
    DUET__USUAL,     /* the setting that one gets who chooses nothing, on drawn machines */
    DUET__RUN,       /* a run on this machine */
    DUET__USUAL_RUN, /* a run of the usual setting */
    DUET__FIDELITIES,
};

/* A setting, and what is known of it. */
struct duet__tuned {
    uint64_t setting, cell; /* numbers: in the space; of the last simulations' cell */
    uint64_t reps;          /* machines drawn; 0: one simulation without draws */
    double predicted_s;     /* mean; NAN: not known */
    double low_s, high_s;   /* interval of 90 % of later runs (duet__predictive); NAN: not known */
    double flops, best_s;   /* the problem's work; lower bound of the makespan */
    double measured_s;      /* median of real runs; NAN: there is none */
    bool explored;          /* its neighbours were simulated */
};

/* A search: space, simulations and results. The caller sets the first members and owns what they
   point to; duet__tune_fini frees the others, and request, platform and calibrated. */
struct duet__tune {
    /* at first one product, the space, whose factors are the options given; then a product for each
       fidelity */
    struct duet__study *study;
    struct duet__plan *plan;      /* plan of its simulations */
    struct duet__store *store;    /* has the rows of its runs */
    struct duet__request request; /* the first setting's; no workload: a program or graph */
    char *platform;               /* name or file of the simulated one; NULL: yet to be measured */
    char *calibrated;             /* says what was measured for this search; NULL: nothing was */
    bool here;                    /* the platform is this machine */
    bool quiet;                   /* no progress is shown */
    double start_s, budget_s;
    unsigned verified; /* number of the best that are run */
    /* the space */
    bool lists;        /* options have several values, which are all that is chosen among */
    double low, high;  /* edges of tiles between which all kernels were measured; 0: not known */
    bool blocks;       /* the workload has --param block, of an edge within tiles */
    bool offered;      /* the search offers its values, but for those that need extrapolation */
    uint64_t repeated; /* number of settings left out, as they are others in other words */
    uint64_t barred;   /* number of settings left out, as their blocks need extrapolation */
    uint64_t usual_tile, settings;
    uint32_t *order;   /* settings in the order in which they are tried */
    GPtrArray *varied; /* struct duet__factor, borrowed: those with several values */
    unsigned levels;   /* number of sizes that are simulated */
    /* results */
    struct duet_message message;
    GHashTable *results; /* plan->results */
    double search_s;
    uint64_t made[DUET__FIDELITIES]; /* number of runs */
    GArray *found;                   /* struct duet__tuned, the best first */
    struct duet__tuned usual;
    const struct duet__tuned *chosen;
    double lead, lead_half; /* lead of the best to the second on drawn machines, parts of 1, and
                               half its 95 % interval; NAN: not known */
    uint64_t draws, wins;   /* machines drawn for the lead; those on which the first is the best */
    bool estimated;         /* some kernel times were never measured */
    bool cut;               /* the budget ended before all simulations were made */
    char *left_out;         /* error of the first simulation that did not end; NULL: all did */
    char *refusal;          /* error of the first real run that did not end; NULL: all did */
    uint64_t failed;        /* simulations that did not end */
    size_t run_reps;        /* real runs of each setting; 0: none were made */
};

void duet__tune_fini(struct duet__tune *tune); /* safe on a half-built one */

/* Checks that there is one problem on one machine, and that the options may be chosen. */
DUET_MUST_CHECK int duet__tune_check(struct duet__tune *tune);

/*
 * Completes the problem of the request, and the space with tiles and policies that may be worth
 * trying. *missing: edges, uint64_t, that this machine was not measured with, for g_array_unref.
 */
DUET_MUST_CHECK int duet__tune_tiles(struct duet__tune *tune, GArray **missing);

/* Completes the space with the platform, which has all tiles by now, and with blocks, windows,
   workers and what these may run. */
DUET_MUST_CHECK int duet__tune_space(struct duet__tune *tune);

/* Finds the best settings by simulations: tune->found; none: no simulation is possible. */
DUET_MUST_CHECK int duet__tune_search(struct duet__tune *tune);

/* Runs the best few and the usual one in turn, by a plan and a store that are of real runs by now;
   the best by their medians is the choice. */
DUET_MUST_CHECK int duet__tune_run(struct duet__tune *tune);

/* Returns a setting that was found; behind the last one, the setting that one gets unasked. */
static inline struct duet__tuned *duet__tune_at(struct duet__tune *tune, guint place)
{
    return place < tune->found->len ? &g_array_index(tune->found, struct duet__tuned, place)
                                    : &tune->usual;
}

/* Returns a factor of the space, by its name; NULL: it has none. */
const struct duet__factor *duet__tune_factor(const struct duet__tune *tune, const char *name);

/* True if the one who runs a program chooses this factor. */
bool duet__tune_chosen(const char *factor);

/* True if tiles of this edge, or their blocks ("block=320", NULL: none), or the rests that these
   leave of n and of tiles, are beyond what was measured. */
bool duet__tune_beyond(const struct duet__tune *tune, const char *tile, const char *block);

#endif
