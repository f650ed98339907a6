/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auto: no policy by itself. The core tries these by simulation on what is submitted, and goes on
 * with the best one. They are few, and each is the best by far somewhere: the critical path first
 * (cp, and dmdas by the program's own priorities); where the place of data matters more than the
 * load (static); where batches are better left in order (dmda); where workers are alike, whoever is
 * idle first (eager: of unlike ones the last tasks are often with the slowest). None draws: the
 * luck of a draw in a trial says nothing of the run. None looks through all ready tasks for each
 * decision (darts), which trials do not count, and which would make them long where many tasks are
 * ready.
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
