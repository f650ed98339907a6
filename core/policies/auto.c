/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auto: no policy by itself. The core tries these candidates by simulation on the submitted tasks,
 * and goes on with the best one. They are few, and each is the best by far somewhere: the critical
 * path first (cp, and dmdas by the program's own priorities); where the place of data matters more
 * than the load (static); where batches are better left in order (dmda); where workers are alike,
 * the first idle one (eager: among unlike workers the last tasks are often with the slowest). None
 * is random, as the luck of a trial says nothing of the run. None searches all ready tasks for each
 * decision (darts): trials do not count that time, and would take long where many tasks are ready.
 */
#include <stddef.h>

#include <duet/policy.h>

static const struct duet_candidate candidates[] = {
    {.policy = "cp"},
    {.policy = "dmdas"},
    {.policy = "static"},
    {.policy = "dmda"},
    {.policy = "eager", .alike = true},
    {.policy = NULL},
};

static const struct duet_policy_parameter parameters[] = {
    {"tasks", 65536, 1, 1e9, "on how many tasks the candidates are tried at most"},
    {NULL},
};

const struct duet_policy duet__policy_auto = {
    .name = "auto",
    .description = "the best of a few others, by simulation of what is submitted",
    .source = "docs/policies.md",
    .parameters = parameters,
    .candidates = candidates,
};
