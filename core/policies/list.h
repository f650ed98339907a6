/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The built-in policies: POLICY(symbol), one line each, in the order of `duet list`. MEASURING for
 * those that only measurements use: they are found by name and offered nowhere.
 */
POLICY(duet__policy_eager)
POLICY(duet__policy_ws)
POLICY(duet__policy_data_aware)
POLICY(duet__policy_locality_aware)
POLICY(duet__policy_heft)
POLICY(duet__policy_no_prio)
POLICY(duet__policy_random)
POLICY(duet__policy_w_rand)
POLICY(duet__policy_fcrm)
POLICY(duet__policy_cp)
POLICY(duet__policy_static)
POLICY(duet__policy_heft_tm)
POLICY(duet__policy_dmda)
POLICY(duet__policy_dmdas)
POLICY(duet__policy_dmdar)
POLICY(duet__policy_lws)
POLICY(duet__policy_heteroprio)
POLICY(duet__policy_multreeprio)
POLICY(duet__policy_dada)
POLICY(duet__policy_darts)
POLICY(duet__policy_auto)
MEASURING(duet__policy_pinned)
