/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparison of the levels of one setting over all cases: a case of such a comparison is a
 * combination of all other settings that vary, so that only this one differs in it.
 */
#ifndef DUET_STUDY_RANK_H
#define DUET_STUDY_RANK_H

#include "study/results.h"

struct duet__ranking {
    size_t levels;          /* number of the setting's levels */
    size_t cases, left_out; /* cases with all levels, and cases without */
    double *ranks;          /* mean rank of each level; 1: the shortest makespan */
    double *ratios;         /* geometric mean of each level's makespan to that of all levels of a
                               case */
    size_t *order;          /* levels by ascending rank */
    /* Share of the variance of logarithms of makespans that the setting explains, without its
       interactions (eta squared), problems (workload, n, precision) each around their own mean: 0
       to 1. */
    double share;
    double p;        /* Friedman's test that all levels are alike; NAN: fewer than two cases */
    double distance; /* significant one between mean ranks (Nemenyi, 5 %) */
    /* The level that is compared with each other one: of files, as one's own policies are, that
       with the best mean rank; without any, of all. */
    size_t own;
    double
        *against; /* Wilcoxon's test of `own` against each level, adjusted by Holm; NAN: itself */
};

/* Compares the levels of the `varied`-th setting that varies. duet__ranking_fini frees the
   result. */
void duet__rank(const struct duet__results *results, guint varied, struct duet__ranking *ranking);
void duet__ranking_fini(struct duet__ranking *ranking);

/*
 * Friedman's test that `levels` > 1 things are alike, from `cases` rows of one value of each:
 * writes their mean ranks, equal values sharing theirs, and returns the probability of ranks as
 * different as these by chance; NAN for fewer than two cases. The statistic is that of Iman and
 * Davenport (Communications in Statistics A9, 1980) with ties as in Conover, Practical
 * Nonparametric Statistics, 5.8; see Demsar (Journal of Machine Learning Research 7, 2006).
 */
double duet__friedman(const double *values, size_t cases, size_t levels, double *ranks);

/*
 * Returns the least significant difference of mean ranks of `levels` things over `cases` cases, in
 * 95 % of all such comparisons together: Nemenyi's critical difference (Demsar, 3.2.2).
 */
double duet__nemenyi(size_t levels, size_t cases);

/*
 * Returns the p-quantile of the range of `count` > 1 independent values of the standard normal
 * distribution (the studentized range with infinitely many degrees of freedom), 0 < p < 1:
 * bisection of its distribution function, count * integral of phi(z) (Phi(z) - Phi(z - q))^(count -
 * 1) dz, by the trapezoidal rule, which for such integrands is exact but for rounding.
 */
double duet__range_quantile(double p, size_t count);

#endif
