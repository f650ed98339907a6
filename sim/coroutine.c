/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks that are switched by libc's contexts. Sanitizers are told of every switch if they are
 * linked; otherwise their functions are NULL.
 */
#include "sim/internal.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { STACK_BYTES = 1 << 20, GUARD_BYTES = 1 << 14 };

/*
 * Declared in LLVM's sanitizer/common_interface_defs.h and tsan_interface.h; GCC's sanitizers have
 * the same.
 */
__attribute__((weak)) void __sanitizer_start_switch_fiber(void **save, const void *bottom,
                                                          size_t size);
__attribute__((weak)) void __sanitizer_finish_switch_fiber(void *save, const void **bottom,
                                                           size_t *size);
__attribute__((weak)) void *__tsan_create_fiber(unsigned flags);
__attribute__((weak)) void __tsan_destroy_fiber(void *fiber);
__attribute__((weak)) void __tsan_switch_to_fiber(void *fiber, unsigned flags);
__attribute__((weak)) void *__tsan_get_current_fiber(void);

struct coroutine {
    struct coroutine *next; /* next kept coroutine */
    ucontext_t own, caller;
    void (*run)(void *argument);
    void *argument;
    char *memory; /* the guard, then the stack */
    bool ended;
    /* the sanitizers' state of this stack, and of its caller's */
    void *own_fake, *caller_fake, *own_fiber, *caller_fiber;
    const void *caller_bottom;
    size_t caller_bytes;
};

/* ------------------------------------------------------------------------------------------- */
/* Switching                                                                                    */

static void enter_stack(struct coroutine *coroutine)
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

/* Tells the sanitizers, on the coroutine's own stack, that it has just been entered. */
static void note_entered(struct coroutine *coroutine)
{
    if (__sanitizer_finish_switch_fiber)
        __sanitizer_finish_switch_fiber(coroutine->own_fake, &coroutine->caller_bottom,
                                        &coroutine->caller_bytes);
}

static void leave_stack(struct coroutine *coroutine)
{
    if (__sanitizer_start_switch_fiber)
        __sanitizer_start_switch_fiber(&coroutine->own_fake, coroutine->caller_bottom,
                                       coroutine->caller_bytes);
    if (__tsan_switch_to_fiber)
        __tsan_switch_to_fiber(coroutine->caller_fiber, 0);
    (void)swapcontext(&coroutine->own, &coroutine->caller);
    note_entered(coroutine);
}

/* Runs on the new stack. The pointer comes in two halves: makecontext passes ints. */
static void begin_coroutine(unsigned high, unsigned low)
{
    struct coroutine *coroutine = (void *)((uintptr_t)high << 16 << 16 | low);
    note_entered(coroutine);
    for (;;) { /* the stack is reused */
        coroutine->run(coroutine->argument);
        coroutine->ended = true;
        leave_stack(coroutine);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Making                                                                                       */

static void destroy_coroutine(struct coroutine *coroutine)
{
    if (__tsan_destroy_fiber && coroutine->own_fiber)
        __tsan_destroy_fiber(coroutine->own_fiber);
    (void)munmap(coroutine->memory, GUARD_BYTES + STACK_BYTES);
    free(coroutine);
}

/*
 * Prepares the context. A function of its own that changes no variable: getcontext may return
 * twice.
 */
static bool prepare_context(struct coroutine *coroutine)
{
    uintptr_t address = (uintptr_t)coroutine;
    if (getcontext(&coroutine->own))
        return false;
    coroutine->own.uc_stack.ss_sp = coroutine->memory + GUARD_BYTES;
    coroutine->own.uc_stack.ss_size = STACK_BYTES;
    coroutine->own.uc_link = NULL;
    makecontext(&coroutine->own, (void (*)(void))(void *)begin_coroutine, 2,
                (unsigned)(address >> 16 >> 16), (unsigned)address);
    return true;
}

static struct coroutine *make_coroutine(void)
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
    if (mprotect(coroutine->memory, GUARD_BYTES, PROT_NONE) || !prepare_context(coroutine)) {
        destroy_coroutine(coroutine);
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
        coroutine = make_coroutine();
    if (!coroutine)
        return NULL;
    coroutine->run = run;
    coroutine->argument = argument;
    coroutine->ended = false;
    return coroutine;
}

void duet__coroutine_resume(struct coroutine *coroutine)
{
    enter_stack(coroutine);
}

void duet__coroutine_pause(struct coroutine *coroutine)
{
    leave_stack(coroutine);
}

void duet__coroutine_free(struct coroutine **kept, struct coroutine *coroutine)
{
    if (!coroutine->ended) { /* its stack is still in use */
        destroy_coroutine(coroutine);
        return;
    }
    coroutine->next = *kept;
    *kept = coroutine;
}

void duet__coroutines_fini(struct coroutine **kept)
{
    while (*kept) {
        struct coroutine *next = (*kept)->next;
        destroy_coroutine(*kept);
        *kept = next;
    }
}
