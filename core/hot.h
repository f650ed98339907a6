/* SPDX-License-Identifier: Apache-2.0 */
/* How often functions are called, for the compiler. */
#ifndef DUET_CORE_HOT_H
#define DUET_CORE_HOT_H

/*
 * HOT: every task goes through it, and it is put inline wherever it is called, which the compiler
 * does by itself only as long as few call it. RARE: hardly any task does, and it stays out of the
 * way of the others.
 */
#define HOT inline __attribute__((always_inline))
#define RARE __attribute__((cold, noinline))

#endif
