/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of tasks that are given as lists, of their values, and of what is refused. */
#include "core/testing_expand.h"
#include "core/testing_lost.h"

enum { BLOCK = SLAB_ALIGN };

/* The task that was inserted last, as its kernel would see it. */
static struct duet_call call_of(struct testing *t, struct duet_message *message)
{
    message->text[0] = '\0';
    return (
        struct duet_call){.runtime = t->core, .args = duet__task_args(t->held), .message = message};
}

/* Values of all sizes arrive, aligned for their type; a kernel that asks for others is told. */
static void test_values(void)
{
    const char letter = 'd', text[] = "carried whole";
    const double many[300] = {1, 2, 3}, flops = 1e6;
    char got_letter, got_text[sizeof text];
    double got_many[300], got_flops;
    OWNED(testing_end)
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 1}, "eager", 1);
    t->hold = true;
    struct duet_codelet_desc desc = {.name = "plain",
                                     .implementations =
                                         &(struct duet_implementation){.arch = "cpu"},
                                     .implementation_count = 1};
    struct duet_codelet *plain;
    g_assert_cmpint(duet_register_codelet(t->core, &desc, &plain), ==, DUET_OK);
    g_assert_cmpint(duet_insert(t->core, plain, DUET_VALUE, &letter, sizeof letter, DUET_VALUE,
                                many, sizeof many, DUET_VALUE, text, sizeof text, DUET_VALUE,
                                &flops, sizeof flops, 0),
                    ==, DUET_OK);
    struct duet_call call = call_of(t, hear());
    g_assert_cmpint(duet_values(&call, &got_letter, sizeof got_letter, got_many, sizeof got_many,
                                got_text, sizeof got_text, &got_flops, sizeof got_flops, NULL),
                    ==, DUET_OK);
    g_assert_cmpint(got_letter, ==, letter);
    g_assert_cmpmem(got_many, sizeof got_many, many, sizeof many);
    g_assert_cmpstr(got_text, ==, text);
    g_assert_cmpfloat(got_flops, ==, flops);
    g_assert_cmpuint((uintptr_t)duet_value(call.args, 1, sizeof many) % 16, ==, 0);
    g_assert_null(duet_value(call.args, 1, 8));
    g_assert_null(duet_value(call.args, 4, 8));
    FAILS(duet_values(&call, &got_letter, sizeof got_letter, NULL), DUET_EINVAL,
          "asks for 1 of the 4 values");
    FAILS(duet_values(&call, &got_flops, sizeof got_flops, NULL), DUET_EINVAL,
          "value 0 of the task has 1 bytes, and the kernel asks for 8");
    g_assert_cmpint(duet_insert(t->core, plain, DUET_VALUE, &flops, sizeof flops, 0), ==, DUET_OK);
    call = call_of(t, hear());
    FAILS(duet_values(&call, &got_flops, sizeof got_flops, &got_flops, sizeof got_flops, NULL),
          DUET_EINVAL, "more than the 1 values");
    (void)testing_submit(t, plain, NULL, 0, NULL, 0, 0);
    call = call_of(t, hear());
    FAILS(duet_values(&call, &got_flops, sizeof got_flops, NULL), DUET_EINVAL, "was not given any");
}

/* A list says what a description would. */
static void test_items(void)
{
    struct duet_ref *ref = NULL;
    OWNED(testing_end)
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 1, .gpus = 1}, "eager", 1);
    struct duet_handle *a = testing_handle(t, BLOCK), *b = testing_handle(t, BLOCK);
    double flops[1] = {1e6};
    t->hold = true;
    g_assert_cmpint(duet_insert(t->core, t->any, DUET_R, a, DUET_RW, b, DUET_VALUE, flops,
                                sizeof flops, DUET_PRIORITY, -7, DUET_REF, &ref, DUET_WHERE,
                                duet_where(t->core, "cuda"), DUET_AFTER, NULL, 0),
                    ==, DUET_OK);
    const struct duet_task *task = t->held;
    g_assert_cmpuint(task->access_count, ==, 2);
    g_assert_true(task->accesses[0].handle == a && task->accesses[0].mode == DUET_R);
    g_assert_true(task->accesses[1].handle == b && task->accesses[1].mode == DUET_RW);
    g_assert_cmpint(task->priority, ==, -7);
    g_assert_nonnull(ref);
    struct duet_view view = testing_view(t, DUET_SUBMITTER);
    g_assert_false(duet_view_can_run(&view, 0, task));
    g_assert_true(duet_view_can_run(&view, 1, task));
    duet_ref_free(ref);
}

static int insert_child(struct plan *plan, struct duet_expansion *expansion,
                        const struct duet_call *call)
{
    const double flops = 1e6;
    int error = plan_cut(plan, expansion, 0, BLOCK, 1);
    if (!error)
        error = duet_expand_insert(expansion, plan->t->cpu, DUET_RW, plan->blocks[0], DUET_VALUE,
                                   &flops, sizeof flops, 0);
    return error ? error : duet_expand_insert(expansion, plan->t->cpu, 1000, 0);
}

static void test_children(void)
{
    struct plan plan = {.expand = insert_child};
    struct testing *t = lost_start(&(struct testing_machine){.cpus = 1}, "eager");
    (void)plan_submit(t, &plan, testing_handle(t, BLOCK), DUET_RW, NULL, 0);
    (void)go(t, NULL);
    lost_end(t, DUET_EINVAL, "item 1 of the list for a for_cpus task begins with 1000");
}

/* After a refusal nothing is submitted, no reference is left, and the message gives the reason. */
static void test_refusals(void)
{
    OWNED(testing_end)
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 1}, "eager", 1);
    struct duet_ref *ref = (struct duet_ref *)(void *)t;
    const double flops = 1e6;
    struct duet_handle *h = testing_handle(t, BLOCK);
    REFUSED(t->core, duet_insert(t->core, NULL, 0), DUET_EINVAL, "needs a codelet");
    REFUSED(t->core, duet_insert(t->core, t->any, DUET_REF, &ref, DUET_R, h, 4711, 0), DUET_EINVAL,
            "item 3 of the list for a for_cpus task begins with 4711");
    g_assert_null(ref);
    g_assert_cmpint(duet_insert(t->core, t->any, DUET_VALUE, NULL, sizeof flops, 0), ==,
                    DUET_EINVAL);
    REFUSED(t->core, duet_insert(t->core, t->any, DUET_VALUE, &flops, (size_t)0, 0), DUET_EINVAL,
            "value of 0 bytes");
    REFUSED(t->core, duet_insert(t->core, t->any, DUET_R, NULL, 0), DUET_EINVAL, "no handle");
    g_assert_cmpuint(atomic_load(&t->core->submitted), ==, 0);
}

TEST_MAIN(test_values, test_items, test_children, test_refusals)
