/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that run on a stack of their own, and can be left and gone on with. One thread. */
#ifndef DUET_SIM_COROUTINE_H
#define DUET_SIM_COROUTINE_H

struct coroutine;

/*
 * One that will call run(argument) when it is first gone on with, on one of the stacks in *kept if
 * there is one (NULL at first). NULL: no memory, or more stacks
 * than the system allows. Its stack is 1 MiB, of which only what is used takes memory; what
 * overruns it ends the process by a signal.
 */
struct coroutine *duet__coroutine_new(struct coroutine **kept, void (*run)(void *argument),
                                      void *argument);

/* Goes on with it, until it pauses or its function returns. Not from inside one. */
void duet__coroutine_resume(struct coroutine *coroutine);

/* Called inside of it: returns from duet__coroutine_resume, and here when that is called again. */
void duet__coroutine_pause(struct coroutine *coroutine);

/* Keeps its stack in *kept for another one. Its function has returned, or will never go on. */
void duet__coroutine_free(struct coroutine **kept, struct coroutine *coroutine);

/* Gives back all stacks in *kept. */
void duet__coroutines_fini(struct coroutine **kept);

#endif
