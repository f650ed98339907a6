/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lower bounds on the makespan of a task graph: no schedule that takes the expected times can be
 * shorter. A task may be split between architectures in all but the critical path.
 */
#ifndef DUET_TRACE_BOUNDS_H
#define DUET_TRACE_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/engine.h"

struct duet_runtime;

/* Bounds in seconds; 0: not known, or no task. */
struct duet__bounds {
    double critical_path_s; /* longest chain, each task where it is fastest */
    double area_s;          /* all work, ideally shared by all workers */
    double mixed_s;         /* paths and area together: at least either of them */
    double links_s;         /* area, or paths, with copies: at least the area */
};

/*
 * The bounds for the tasks submitted to `runtime`, which is one node, with the mean time of each
 * class on each architecture: what the engine knows for sure, else the mean of the run, else what
 * its models expect (so that times drawn at random around them may beat the bounds by a little).
 * An architecture on which no task of a class may run (SetArch, `where`) does not count for that
 * class. Restrictions of single tasks are not looked at otherwise: they can only lengthen a
 * schedule. Call when no task is in flight. `links`: the machine's figures hold, as they do in a
 * simulation, so that links_s may be computed.
 *
 * The area bound is the smallest T such that n_ca >= 0 exist with
 *     sum over a of n_ca = tasks_c                   for each class c of tasks, and
 *     sum over c of n_ca * expected_ca <= T * workers_a    for each architecture a,
 * exactly for two architectures that have workers, for more within 10^-11 of it, or as near as 3 x
 * 10^8 products of a time and a price come. (The area bound of Agullo, Beaumont, Eyraud-Dubois,
 * Kumar, "Are static schedules so bad? A case study on Cholesky factorization", IPDPS 2016.) The
 * value returned is computed from a dual solution, so that whatever is rounded, it is a bound.
 * 20,000 classes of different times take 20 ms with two architectures, 40 ms with three, 90 ms with
 * four.
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
 * what has to come again and again where the devices' memories are small (struct duet__reuse), of
 * the class of most tasks. The largest of the four, and the area, counts; results count nothing.
 *
 * It is at least the longest path in which each task takes the time of the fastest architecture of
 * the host, or of devices, and data that was written in the one place and is read in the other is
 * copied by the fastest route, whichever of both places ends it first.
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

/* ------------------------------------------------------------------------------------------- */
/* The area bound of any of a runtime's tasks, and what tasks then are worth. */

/* Classes of a runtime's tasks, and the workers of its machine. */
struct duet__classes {
    size_t count, arch_count; /* architectures that have workers */
    unsigned *workers;        /* number of workers, by architecture */
    bool *device;             /* true if its workers have memories of their own */
    double *tasks;            /* number of tasks that have ended, by class */
    double *times_s; /* seconds by class, then architecture, times 2^-exponent: at most 1; INFINITY:
                        cannot run */
    double *best_s;  /* least of times_s, by class; 0: no task has ended */
    int exponent;
};

/*
 * Makes the classes of nodes that have the same architectures: the workers of all are shared, the
 * tasks of each node take what they take there. Returns false if a class that has tasks can run
 * nowhere. The caller frees *classes (duet__classes_free) in either case.
 */
bool duet__classes_make(struct duet__classes *classes, const struct duet__node_classes *nodes,
                        unsigned node_count);
void duet__classes_free(struct duet__classes *classes);

/* Tasks that take the same times, also of the links where their data has to be copied. */
struct duet__area_tasks {
    double tasks, link_s;
    const double *times_s; /* times of one task, by architecture */
};

/* A multiset of tasks, on the workers and perhaps the links of the machine. */
struct duet__area {
    const struct duet__classes *of;
    struct duet__area_tasks *groups;
    size_t group_count;
    bool link;      /* true if links count, as one more architecture, of one worker */
    double spare_s; /* part of the groups' link times that links need not be busy */
    double *prices; /* best prices found so far, by architecture */
};

/* Returns an area of no task so far; `link`: links count. Free with duet__area_fini. */
struct duet__area duet__area_new(const struct duet__classes *classes, bool link);

/* Takes so many tasks of each class, as groups. */
void duet__area_fill(struct duet__area *area, const double *counts);

/* Returns what a task costs where it is cheapest; *where: that architecture. */
double duet__area_cost(const struct duet__area *area, const double *times_s, double link_s,
                       const double *prices, size_t *where);

/*
 * The bound, and the prices, of which all workers (and links) earn 1 a second: what all tasks cost
 * where each is cheapest. For more than two architectures, links among them, it ends after so many
 * products of a time and a price; links need two architectures.
 */
double duet__area_bound(struct duet__area *area, double most_products);

void duet__area_fini(struct duet__area *area);

/* ------------------------------------------------------------------------------------------- */
/* Finds how much tasks can do with few data: what has to come again where memory is small. */

/*
 * A limit of reuse: among `tasks` tasks of a class no more than factor * m^1.5 use nothing but m
 * data, each of at least `bytes`, whatever data these are. All 0: nothing is known.
 */
struct duet__reuse {
    double tasks, factor, bytes;
};

/* The least factor: 3^-1.5, of three planes without a datum in common, one task at a place. */
#define DUET__REUSE_LEAST 0.19245008972987526

/*
 * Looks at tasks as points in space, of which each datum that they read is the shadow on a plane:
 * c(i,j) += a(i,k) b(k,j). So many points have no smaller shadows than by Loomis and Whitney, "An
 * inequality related to the isoperimetric inequality", Bulletin of the AMS 55, 1949: at most
 * sqrt(|A| |B| |C|). (For products of matrices Irony, Toledo, Tiskin, "Communication lower bounds
 * for distributed-memory matrix multiplication", JPDC 64, 2004.) Coordinates are found: what shares
 * an A or a C has the same i, and so on, for each three of the first four data that the tasks of
 * class `klass` use; where several tasks are at one point, they count as often. A datum that is in
 * two of the planes takes part in both, which the factor says; where the planes are one, as in
 * Cholesky's, points are triangles of data (as by Ballard, Demmel, Holtz, Schwartz, "Minimizing
 * communication in numerical linear algebra", SIAM J. Matrix Anal. 32, 2011).
 *
 * `bytes`: by datum, 0 of those that may be in a memory without having been copied there.
 */
struct duet__reuse duet__reuse_find(const struct duet__entered *entered, uint32_t klass,
                                    const double *bytes);

/*
 * Copies into memories that hold `room` bytes each, which so many tasks need: at least the value
 * returned times their number, less *spare. Between one moment and another, when c copies have
 * arrived in a memory of room for r data, no more tasks can run there than r + c data are enough
 * for, so that n of them need c (n / that - 1); the c for which that is most.
 */
double duet__reuse_copies(const struct duet__reuse *reuse, double room, double memories,
                          double *spare);

#endif
