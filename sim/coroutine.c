/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks that are switched by libc's contexts. Sanitizers are told of every switch where they are
 * linked; their functions are NULL elsewhere.
 */
#include "sim/coroutine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { STACK_BYTES = 1 << 20, GUARD_BYTES = 1 << 14 };

/* LLVM's sanitizer/common_interface_defs.h and tsan_interface.h, which GCC's have, too. */
__attribute__((weak)) void __sanitizer_start_switch_fiber(void **save, const void *bottom,
                                                          size_t size);
__attribute__((weak)) void __sanitizer_finish_switch_fiber(void *save, const void **bottom,
                                                           size_t *size);
__attribute__((weak)) void *__tsan_create_fiber(unsigned flags);
__attribute__((weak)) void __tsan_destroy_fiber(void *fiber);
__attribute__((weak)) void __tsan_switch_to_fiber(void *fiber, unsigned flags);
__attribute__((weak)) void *__tsan_get_current_fiber(void);

struct coroutine {
    struct coroutine *next; /* of those that are kept */
    ucontext_t own, caller;
    void (*run)(void *argument);
    void *argument;
    char *memory; /* the guard, then the stack */
    bool ended;
    /* the sanitizers': of this stack, and of the one that goes on with it */
    void *own_fake, *caller_fake, *own_fiber, *caller_fiber;
    const void *caller_bottom;
    size_t caller_bytes;
};

/* ------------------------------------------------------------------------------------------- */
/* Switching                                                                                    */

static void enter(struct coroutine *coroutine)
{
    if (__sanitizer_start_switch_fiber)
        __sanitizer_start_switch_fiber(&coroutine->caller_fake, coroutine->memory + GUARD_BYTES,
                                       STACK_BYTES);
    if (__tsan_switch_to_fiber) {
        coroutine->caller_fiber = __tsan_get_current_fiber();
        __tsan_switch_to_fiber(coroutine->own_fiber, 0);
    }
    (void)swapcontext(&coroutine->caller, &coroutine->own);
    if (__sanitizer_finish_switch_fiber)
        __sanitizer_finish_switch_fiber(coroutine->caller_fake, NULL, NULL);
}

/* On its own stack, when that has just been entered. */
static void entered(struct coroutine *coroutine)
{
    if (__sanitizer_finish_switch_fiber)
        __sanitizer_finish_switch_fiber(coroutine->own_fake, &coroutine->caller_bottom,
                                        &coroutine->caller_bytes);
}

static void leave(struct coroutine *coroutine)
{
    if (__sanitizer_start_switch_fiber)
        __sanitizer_start_switch_fiber(&coroutine->own_fake, coroutine->caller_bottom,
                                       coroutine->caller_bytes);
    if (__tsan_switch_to_fiber)
        __tsan_switch_to_fiber(coroutine->caller_fiber, 0);
    (void)swapcontext(&coroutine->own, &coroutine->caller);
    entered(coroutine);
}

/* The pointer comes in two halves: makecontext passes on ints. */
static void begin(unsigned high, unsigned low)
{
    struct coroutine *coroutine = (void *)((uintptr_t)high << 16 << 16 | low);
    entered(coroutine);
    for (;;) { /* the stack is used again */
        coroutine->run(coroutine->argument);
        coroutine->ended = true;
        leave(coroutine);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Making                                                                                       */

static void destroy(struct coroutine *coroutine)
{
    if (__tsan_destroy_fiber && coroutine->own_fiber)
        __tsan_destroy_fiber(coroutine->own_fiber);
    (void)munmap(coroutine->memory, GUARD_BYTES + STACK_BYTES);
    free(coroutine);
}

/* A function of its own, which changes no variable: getcontext may return twice. */
static bool prepare(struct coroutine *coroutine)
{
    uintptr_t address = (uintptr_t)coroutine;
    if (getcontext(&coroutine->own))
        return false;
    coroutine->own.uc_stack.ss_sp = coroutine->memory + GUARD_BYTES;
    coroutine->own.uc_stack.ss_size = STACK_BYTES;
    coroutine->own.uc_link = NULL;
    makecontext(&coroutine->own, (void (*)(void))(void *)begin, 2, (unsigned)(address >> 16 >> 16),
                (unsigned)address);
    return true;
}

static struct coroutine *make(void)
{
    struct coroutine *coroutine = calloc(1, sizeof *coroutine);
    if (!coroutine)
        return NULL;
    coroutine->memory = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (coroutine->memory == MAP_FAILED) {
        free(coroutine);
        return NULL;
    }
    if (mprotect(coroutine->memory, GUARD_BYTES, PROT_NONE) || !prepare(coroutine)) {
        destroy(coroutine);
        return NULL;
    }
    if (__tsan_create_fiber)
        coroutine->own_fiber = __tsan_create_fiber(0);
    return coroutine;
}

struct coroutine *duet__coroutine_new(struct coroutine **kept, void (*run)(void *argument),
                                      void *argument)
{
    struct coroutine *coroutine = *kept;
    if (coroutine)
        *kept = coroutine->next;
    else
        coroutine = make();
    if (!coroutine)
        return NULL;
    coroutine->run = run;
    coroutine->argument = argument;
    coroutine->ended = false;
    return coroutine;
}

void duet__coroutine_resume(struct coroutine *coroutine)
{
    enter(coroutine);
}

void duet__coroutine_pause(struct coroutine *coroutine)
{
    leave(coroutine);
}

void duet__coroutine_free(struct coroutine **kept, struct coroutine *coroutine)
{
    if (!coroutine->ended) { /* there is something on its stack */
        destroy(coroutine);
        return;
    }
    coroutine->next = *kept;
    *kept = coroutine;
}

void duet__coroutines_fini(struct coroutine **kept)
{
    while (*kept) {
        struct coroutine *next = (*kept)->next;
        destroy(*kept);
        *kept = next;
    }
}
