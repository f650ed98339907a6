/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coroutines: functions that run on a stack of their own, and can be paused and resumed. One
 * thread.
 */
#ifndef DUET_SIM_COROUTINE_H
#define DUET_SIM_COROUTINE_H

struct coroutine;

/*
 * Creates a coroutine that will call run(argument) when it is first resumed, on one of the stacks
 * in *kept if there is one (NULL at first). NULL: no memory, or more stacks than the system allows.
 * Its stack is 1 MiB, of which only the used part takes memory; an overrun ends the process by a
 * signal.
 */
struct coroutine *duet__coroutine_new(struct coroutine **kept, void (*run)(void *argument),
                                      void *argument);

/* Runs the coroutine until it pauses or its function returns. Not from inside a coroutine. */
void duet__coroutine_resume(struct coroutine *coroutine);

/*
 * Pauses the coroutine that calls it: duet__coroutine_resume returns, and this does when that is
 * called again.
 */
void duet__coroutine_pause(struct coroutine *coroutine);

/*
 * Frees the coroutine, whose function has returned or will never be resumed. A stack whose function
 * has returned is kept in *kept for reuse.
 */
void duet__coroutine_free(struct coroutine **kept, struct coroutine *coroutine);

/* Frees all stacks in *kept. */
void duet__coroutines_fini(struct coroutine **kept);

#endif
