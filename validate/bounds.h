/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lower bounds on the makespan of a task graph: no schedule that takes the expected times can be
 * shorter. Communication costs nothing in them, and a task may be split between architectures.
 */
#ifndef DUET_BOUNDS_H
#define DUET_BOUNDS_H

struct duet_runtime;

struct duet__bounds {
    double critical_path_s; /* longest chain, each task where it is fastest */
    double area_s;          /* all work, ideally shared among all workers; 0: no task */
};

/*
 * Both bounds for the tasks submitted to `runtime`, with the mean time of each class on each
 * architecture: what the engine knows for sure, else the mean of the run, else what its models
 * expect (so that times drawn at random around them may beat the bounds by a little). Restrictions
 * of single tasks to some architectures (SetArch) are not looked at: they can only lengthen a
 * schedule. Call when no task is in flight.
 *
 * The area bound is the smallest T such that n_ca >= 0 exist with
 *     sum over a of n_ca = tasks_c                   for each class c of tasks, and
 *     sum over c of n_ca * expected_ca <= T * workers_a    for each architecture a,
 * exactly for two architectures that have workers, for more within 10^-11 of it, or as near as 3 x
 * 10^8 products of a time and a price come. (The area bound
 * of Agullo, Beaumont, Eyraud-Dubois, Kumar, "Are static schedules so bad? A case study on Cholesky
 * factorization", IPDPS 2016.) The value returned is computed from a dual solution, so that
 * whatever is rounded, it is a bound. 20,000 classes of different times take 20 ms with two
 * architectures, 40 ms with three, 90 ms with four.
 *
 * Both are 0, not known, where some tasks have no time on any architecture that has workers, and
 * where one of them is no finite number. Nothing else can go wrong, whatever the times are.
 */
struct duet__bounds duet__bounds(const struct duet_runtime *runtime);

#endif
