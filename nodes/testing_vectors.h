/* SPDX-License-Identifier: Apache-2.0 */
/* Support for tests of several nodes: vectors of equal numbers, and tasks on them. */
#ifndef DUET_NODES_TESTING_VECTORS_H
#define DUET_NODES_TESTING_VECTORS_H

#include "nodes/testing_transport.h"

enum { WORDS = 100, BYTES = WORDS * sizeof(uint64_t) };

struct codelets {
    struct duet_codelet *set, *add, *look, *init, *combine;
};

static inline uint64_t argument(const struct duet_call *call)
{
    return *(const uint64_t *)call->args;
}

/* Writes its argument; adds it; adds what the second buffer has to the first. */
static inline int set(const struct duet_call *call)
{
    uint64_t *words = call->buffers[0].data;
    for (unsigned i = 0; i < WORDS; i++)
        words[i] = argument(call);
    return DUET_OK;
}

static inline int add(const struct duet_call *call)
{
    uint64_t *words = call->buffers[0].data;
    for (unsigned i = 0; i < WORDS; i++)
        words[i] += argument(call);
    return DUET_OK;
}

static inline int look(const struct duet_call *call)
{
    const uint64_t *words = call->buffers[0].data;
    for (unsigned i = 0; i < WORDS; i++)
        if (words[i] != argument(call))
            return duet_fail(call->message, DUET_EDATA, "%u instead of %u", (unsigned)words[i],
                             (unsigned)argument(call));
    return DUET_OK;
}

static inline int clear(const struct duet_call *call)
{
    memset(call->buffers[0].data, 0, BYTES);
    return DUET_OK;
}

static inline int combine(const struct duet_call *call)
{
    uint64_t *into = call->buffers[0].data;
    const uint64_t *from = call->buffers[1].data;
    for (unsigned i = 0; i < WORDS; i++)
        into[i] += from[i];
    return DUET_OK;
}

static inline struct duet_codelet *codelet(struct duet_runtime *duet, const char *name,
                                           duet_kernel_fn kernel)
{
    struct duet_codelet *made;
    const struct duet_implementation cpu = {.arch = "cpu", .run = kernel};
    const struct duet_codelet_desc desc = {.name = name,
                                           .implementations = &cpu,
                                           .implementation_count = 1};
    g_assert_cmpint(duet_register_codelet(duet, &desc, &made), ==, DUET_OK);
    return made;
}

static inline struct codelets make_codelets(struct duet_runtime *duet)
{
    return (struct codelets){codelet(duet, "set", set), codelet(duet, "add", add),
                             codelet(duet, "look", look), codelet(duet, "init", clear),
                             codelet(duet, "combine", combine)};
}

/* A vector that this node owns, or another one. */
static inline struct duet_handle *vector(struct node *node, unsigned owner, uint64_t *words)
{
    struct duet_handle *handle;
    uint64_t *memory = node->number == owner ? words : NULL;
    g_assert_cmpint(duet_register_vector(node->duet, memory, WORDS, sizeof *words, &handle), ==,
                    DUET_OK);
    g_assert_cmpint(duet_own(node->duet, handle, owner), ==, DUET_OK);
    g_assert_cmpuint(duet_owner(handle), ==, owner);
    return handle;
}

static inline void submit(struct node *node, struct duet_codelet *kernel, enum duet_mode mode,
                          struct duet_handle *handle, uint64_t value, unsigned where)
{
    const struct duet_access access = {handle, mode};
    const struct duet_task_extra extra = {.node = &where};
    const struct duet_task_desc desc = {.codelet = kernel,
                                        .accesses = &access,
                                        .access_count = 1,
                                        .args = &value,
                                        .args_bytes = sizeof value,
                                        .extra = where == DUET_NOBODY ? NULL : &extra};
    if (duet_submit(node->duet, &desc))
        g_error("%s", duet_last_message(node->duet));
}

static inline void ok(const struct node *node, int error)
{
    if (error)
        g_error("%s: %s", duet_strerror(error), duet_last_message(node->duet));
}

#endif
