/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lower bounds on the makespan of a task graph: no schedule that takes the expected times can be
 * shorter. A task may be split between architectures in all but the critical path.
 */
#ifndef DUET_TRACE_BOUNDS_H
#define DUET_TRACE_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>

struct duet_runtime;

/* Bounds in seconds; 0: not known, or no task. */
struct duet__bounds {
    double critical_path_s; /* longest chain, each task where it is fastest */
    double area_s;          /* all work, ideally shared by all workers */
    double mixed_s;         /* paths and area together: at least either of them */
    double links_s;         /* area and copies to devices: at least the area */
};

/*
 * The bounds for the tasks submitted to `runtime`, which is one node, with the mean time of each
 * class on each architecture: what the engine knows for sure, else the mean of the run, else what
 * its models expect (so that times drawn at random around them may beat the bounds by a little).
 * Restrictions of single tasks to some architectures (SetArch) are not looked at: they can only
 * lengthen a schedule. Call when no task is in flight. `links`: the machine's figures hold, as they
 * do in a simulation, so that links_s may be computed.
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
 * The mixed bound is the largest p + area + s, where the area is that of the tasks before which
 * there is a path of at least p seconds, and after which there is one of s: none of them begins
 * before p, and all have ended when s seconds are left, so that the workers have T - p - s for
 * them. (On one machine, and on equal ones, it is that of Carlier, "The one-machine sequencing
 * problem", EJOR 11, 1982, and "Scheduling jobs with release dates and tails on identical machines
 * to minimize makespan", EJOR 29, 1987; paths as the mixed bound of IPDPS 2016 has them for
 * Cholesky.) All p and s that are the ends of 512 slices are compared, at the prices of the area
 * bound of all tasks, which make a bound of any. It needs duet__keep_entered before the first task,
 * else it is the larger of area and path, as also where tasks have failed.
 *
 * The bound with links adds a resource to the area bound, what data comes to devices by: sum over c
 * of n_cd * seconds_c <= T, over the architectures d of devices. It is one of three: the links from
 * the host's memory to all devices together, by the least bandwidth of a set of links that is found
 * on every such way; and the devices' engines, of which each makes one copy after another, with its
 * latency, from the host or from anywhere. What a task needs of it is one of two: of the data that
 * was in the host's memory alone when it was first used its part, a datum's bytes shared evenly by
 * the tasks that read its first version (wherever any of them is on a device, it has come once); or
 * what has to come again and again where the devices' memories are small (reuse.h), of the class of
 * most tasks. The largest of the four, and the area, counts; results count nothing.
 *
 * All are 0, not known, where some tasks have no time on any architecture that has workers, and
 * where one of them is no finite number. Nothing else can go wrong, whatever the times are.
 */
struct duet__bounds duet__bounds(const struct duet_runtime *runtime, bool links);

/*
 * Figures of a node's core for bounds, in rows of 1 + arch_count. The first row has, behind 0, the
 * workers of each architecture, the second those with memories of their own. Each class has a row:
 * its tasks that have ended, and the seconds expected on each architecture (0: cannot run).
 */
struct duet__node_classes {
    unsigned arch_count;
    size_t count; /* number of classes */
    double *rows; /* owned: g_free */
};

/* Returns the figures of a core. Call when no task is in flight. */
struct duet__node_classes duet__node_classes(const struct duet_runtime *core);

/*
 * Returns bounds of several nodes, whose architectures are the same (else nothing is known):
 * `path_s`, the longest path over nodes, and the area of all tasks on all workers. That area lets
 * any task run on any node, so it holds however the data is dealt out; a task takes what tasks of
 * its class take on the node where it has run.
 */
struct duet__bounds duet__bounds_of_nodes(const struct duet__node_classes *nodes, unsigned count,
                                          double path_s);

/* Returns the name of the largest bound, the simplest of equal ones; *best_s: its seconds. */
const char *duet__bounds_best(const struct duet__bounds *bounds, double *best_s);

#endif
