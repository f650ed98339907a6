/* SPDX-License-Identifier: Apache-2.0 */
/* Policies by name or from shared objects. */
#ifndef DUET_WORLD_PLUGIN_H
#define DUET_WORLD_PLUGIN_H

#include <duet/policy.h>

/*
 * The policy `name`: a built-in one, or, if the name contains a '/' or ends in .so, the symbol
 * `duet_policy` of that shared object, which stays loaded until the process ends. DUET_ENOTFOUND
 * (the message lists the known names), DUET_EINVAL (not a policy); *out is constant.
 */
DUET_MUST_CHECK int duet__policy_load(const char *name, const struct duet_policy **out,
                                      struct duet_message *message);

#endif
