/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes that tell the compiler how often functions are called. */
#ifndef DUET_CORE_HOT_H
#define DUET_CORE_HOT_H

/*
 * HOT: every task calls it; it is inlined at each call, which the compiler does by itself only as
 * long as there are few calls. RARE: hardly any task calls it, and it is placed apart from the
 * others.
 */
#define HOT inline __attribute__((always_inline))
#define RARE __attribute__((cold, noinline))

#endif
