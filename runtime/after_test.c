/* SPDX-License-Identifier: Apache-2.0 */
/* Children that come after what waits for them, in both worlds: refused, or the wait ends. */
#include <string.h>
#include <unistd.h>

#include "sim/testing.h"
#include "runtime/testing.h"

/* The case of this process: each case runs in one of its own. */
static struct duet_runtime *duet;
static struct duet_codelet *nothing, *inner, *outer;
static struct duet_ref *first, *between; /* references to tasks */
static int refusal;                      /* error of the child that comes after one of these */

static double cost(const void *args, const char *arch)
{
    return 2e-6;
}

static int do_nothing(const struct duet_call *call)
{
    return DUET_OK;
}

/* Has a child after the first task, or after the one in between, and waits for it. */
static int run_inner(struct duet_expansion *expansion, const struct duet_call *call)
{
    const struct duet_task_extra extra = {.after = between ? &between : &first, .after_count = 1};
    const struct duet_task_desc child = {.codelet = nothing, .extra = &extra};
    refusal = duet_expand_submit(expansion, &child);
    return refusal ? refusal : duet_expand_wait(expansion);
}

/* Has a child that has such a child. */
static int run_outer(struct duet_expansion *expansion, const struct duet_call *call)
{
    const struct duet_task_desc child = {.codelet = inner};
    int error = duet_expand_submit(expansion, &child);
    return error ? error : duet_expand_wait(expansion);
}

static struct duet_codelet *make(const char *name, duet_expand_fn expand)
{
    const struct duet_codelet_desc like = {.cost = cost, .expand = expand, .waits = expand != NULL};
    return testing_codelet(duet, name, do_nothing, like);
}

struct where {
    const char *simulate; /* NULL: this machine */
    int cpus;
};

static void begin(const struct where *where)
{
    struct duet_config config = testing_config(where->simulate, where->cpus, 0);
    config.watchdog_s = 0.5;
    duet = testing_open(&config);
    nothing = make("nothing", NULL);
    inner = make("inner", run_inner);
    outer = make("outer", run_outer);
}

/* A child that comes after its grandparent is refused, which is an error of its parent's. */
static void after_parent(const void *where, FILE *out)
{
    begin(where);
    const struct duet_task_extra extra = {.ref = &first};
    must(duet, duet_submit(duet, &(struct duet_task_desc){.codelet = outer, .extra = &extra}));
    g_assert_cmpint(duet_wait(duet), ==, DUET_EINVAL);
    g_assert_cmpint(refusal, ==, DUET_EINVAL);
    TOLD(duet, "a child comes after task 1 (outer), which ends only after that child");
    g_assert_cmpint(duet_close(duet), ==, DUET_EINVAL);
    duet_ref_free(first);
}

/* A cycle through another task is not seen then; nothing waits for ever all the same. */
static void after_itself(const void *where, FILE *out)
{
    static double words[8];
    struct duet_access access = {.mode = DUET_RW};
    begin(where);
    must(duet,
         duet_register_vector(duet, words, G_N_ELEMENTS(words), sizeof *words, &access.handle));
    must(duet, duet_acquire(duet, access.handle, DUET_RW)); /* delays the first task */
    const struct duet_task_extra extras[] = {{.ref = &first},
                                             {.ref = &between, .after = &first, .after_count = 1}};
    must(duet, duet_submit(duet, &(struct duet_task_desc){.codelet = outer,
                                                          .accesses = &access,
                                                          .access_count = 1,
                                                          .extra = &extras[0]}));
    must(duet,
         duet_submit(duet, &(struct duet_task_desc){.codelet = nothing, .extra = &extras[1]}));
    must(duet, duet_release(duet, access.handle));
    g_assert_cmpint(duet_wait(duet), ==, DUET_ESTUCK);
    g_assert_cmpint(refusal, ==, DUET_OK);
    TOLD(duet,
         "(nothing) comes after task 2 (nothing), which comes after task 1 (outer), which waits");
    g_assert_cmpint(duet_close(duet), ==, DUET_ESTUCK);
    duet_ref_free(first);
    duet_ref_free(between);
}

static void in_all_worlds(void (*run)(const void *where, FILE *out))
{
    for (unsigned i = 0; i < 4; i++) {
        const struct where where = {i / 2 ? "idgraf" : NULL, 1 + (int)i % 2};
        g_byte_array_unref(lab_fork(run, &where));
    }
}

static void test_parent(void)
{
    in_all_worlds(after_parent);
}

static void test_itself(void)
{
    in_all_worlds(after_itself);
}

TEST_MAIN(test_parent, test_itself)
