/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of lists of a policy's own and of duet_pop_best: against a plain search in an array. */
#include <math.h>

#include "core/testing.h"

enum { MOST = 300, STEPS = 4000, CPU = 0, GPU = 2 };

/* A policy of three lists, one of each order, which tests use by hand. */
struct own {
    struct duet_list *lists[3];
};

static int make_lists(void *self, struct duet_view *view)
{
    struct own *own = self;
    for (unsigned order = DUET_DEQUE; order <= DUET_SORTED; order++)
        own->lists[order] = duet_view_new_list(view, (enum duet_order)order);
    return own->lists[DUET_SORTED] ? 0 : DUET_ENOMEM;
}

static unsigned pushes_to = DUET_DEQUE;

static void push(void *self, struct duet_view *view, struct duet_task **batch, size_t count, int by,
                 double now)
{
    const struct own *own = self;
    for (size_t i = 0; i < count; i++)
        duet_push_tail(view, own->lists[pushes_to], batch[i]);
}

static bool declined;

static struct duet_task *pop(void *self, struct duet_view *view, unsigned worker, double now)
{
    const struct own *own = self;
    bool refuses = policy_of(view->core)->may_decline && worker < GPU;
    declined = declined || refuses;
    return refuses ? NULL : duet_pop_head(view, own->lists[pushes_to], worker);
}

static const struct duet_policy policy = {
    .name = "own",
    .description = "lists of its own",
    .source = "this test",
    .state_size = sizeof(struct own),
    .init = make_lists,
    .push = push,
    .pop = pop,
};

static const struct testing_machine machine = {.cpus = 2, .gpus = 2};

/* ------------------------------------------------------------------------------------------- */

struct entry {
    struct duet_task *task;
    int64_t place; /* in order of what was pushed at the tail; before that, at the head */
};

struct lists {
    struct testing *t;
    struct duet_view view;
    struct duet_list *list;
    unsigned order, count, scored;
    struct entry entries[MOST];
    uint64_t rng, salt;
    double least; /* least priority and note: NAN below */
    const struct duet_task *first;
};

static double key(const struct lists *l, const struct duet_task *task)
{
    return l->order == DUET_HEAP ? task->priority : l->order == DUET_SORTED ? task->note : 0;
}

static bool comes_before(const struct lists *l, const struct entry *a, const struct entry *b)
{
    double of_a = key(l, a->task), of_b = key(l, b->task);
    return of_a != of_b ? of_a > of_b : a->place < b->place;
}

/* Returns one of ten scores, the same for a task during a search. */
static double score_of(const struct lists *l, const struct duet_task *task)
{
    uint64_t state = task->id ^ l->salt;
    unsigned drawn = duet_random_below(&state, 10);
    if (key(l, task) < l->least)
        return NAN;
    return drawn == 0 ? -INFINITY : drawn == 9 && l->salt % 3 == 0 ? INFINITY : drawn;
}

static double score(void *context, const struct duet_view *view, const struct duet_task *task)
{
    struct lists *l = context;
    if (!l->scored++)
        l->first = task;
    return score_of(l, task);
}

static void sort(struct lists *l)
{
    for (unsigned i = 1; i < l->count; i++) {
        for (unsigned k = i; k && comes_before(l, &l->entries[k], &l->entries[k - 1]); k--) {
            struct entry swap = l->entries[k];
            l->entries[k] = l->entries[k - 1];
            l->entries[k - 1] = swap;
        }
    }
}

/* Returns the index of the expected task, or -1. *first: the first task that the worker can run. */
static int search(struct lists *l, unsigned worker, const struct duet_task **first)
{
    int best = -1;
    double most = -INFINITY;
    *first = NULL;
    sort(l);
    for (unsigned i = 0; i < l->count; i++) {
        const struct duet_task *task = l->entries[i].task;
        if (!duet_view_can_run(&l->view, worker, task))
            continue;
        *first = *first ? *first : task;
        double value = score_of(l, task);
        if (isnan(value))
            break;
        if (value > most) {
            most = value;
            best = (int)i;
        }
    }
    return best;
}

static void forget(struct lists *l, unsigned index)
{
    for (l->count--; index < l->count; index++)
        l->entries[index] = l->entries[index + 1];
}

static void push_one(struct lists *l, int64_t place)
{
    struct duet_codelet *kinds[] = {l->t->any, l->t->cpu, l->t->gpu};
    struct duet_task *task = testing_create(l->t, kinds[duet_random_below(&l->rng, 3)], NULL, 0,
                                            NULL, 0, (int)duet_random_below(&l->rng, 5));
    bool at_head = l->order == DUET_DEQUE && duet_random_below(&l->rng, 3) == 0;
    l->entries[l->count++] = (struct entry){task, at_head ? -place : place};
    if (l->order == DUET_SORTED)
        duet_push_sorted(&l->view, l->list, task, duet_random_below(&l->rng, 40) / 8.0);
    else if (at_head)
        duet_push_head(&l->view, l->list, task);
    else
        duet_push_tail(&l->view, l->list, task);
}

static void pop_one(struct lists *l)
{
    unsigned worker = duet_random_below(&l->rng, 4);
    const struct duet_task *first;
    l->salt = duet_random_next(&l->rng);
    l->scored = 0;
    l->least = l->order != DUET_DEQUE && l->salt % 5 == 0 ? 2 : -INFINITY;
    int index = search(l, worker, &first);
    struct duet_task *task = duet_pop_best(&l->view, l->list, worker, score, l);
    if (first)
        g_assert_true(l->first == first);
    g_assert_true(task == (index < 0 ? NULL : l->entries[index].task));
    if (task) {
        g_assert_cmpint(task->state, ==, TASK_CREATED);
        forget(l, (unsigned)index);
    }
    g_assert_cmpuint(duet_list_length(l->list), ==, l->count);
}

static void check(unsigned order, uint64_t seed)
{
    g_autofree struct lists *l = g_new0(struct lists, 1);
    l->t = testing_init_policy(&machine, &policy, seed);
    l->view = testing_view(l->t, DUET_SUBMITTER);
    l->list = ((struct own *)l->t->core->policy_state)->lists[order];
    l->order = order;
    l->rng = seed;
    for (int64_t i = 1; i < STEPS; i++) {
        bool full = l->count == MOST, grows = i / 500 % 2 == 0;
        unsigned drawn = duet_random_below(&l->rng, 10);
        if (!full && drawn < (grows ? 6 : 4))
            push_one(l, i);
        else
            pop_one(l);
    }
    for (sort(l); l->count; forget(l, 0)) {
        struct duet_task *task = NULL;
        for (unsigned w = 0; w < 4 && !task; w++)
            if (duet_view_can_run(&l->view, w, l->entries[0].task))
                task = duet_pop_head(&l->view, l->list, w);
        g_assert_true(task == l->entries[0].task);
    }
    testing_fini(l->t);
}

static void test_search(void)
{
    for (unsigned order = DUET_DEQUE; order <= DUET_SORTED; order++)
        for (uint64_t seed = 1; seed <= 3; seed++)
            check(order, seed);
}

/* A heap as deep as it has tasks is searched without as much stack. */
static void test_deep(void)
{
    enum { DEEP = 50000 };
    OWNED(testing_end) struct testing *t = testing_init_policy(&machine, &policy, 1);
    struct duet_view view = testing_view(t, DUET_SUBMITTER);
    struct duet_list *list = ((struct own *)t->core->policy_state)->lists[DUET_HEAP];
    struct lists l = {.order = DUET_HEAP, .least = -INFINITY, .salt = 1};
    for (int i = 0; i < DEEP; i++)
        duet_push_tail(&view, list, testing_create(t, t->any, NULL, 0, NULL, 0, i));
    struct duet_task *task = duet_pop_best(&view, list, CPU, score, &l);
    g_assert_cmpuint(l.scored, ==, DEEP);
    g_assert_cmpfloat(score_of(&l, task), ==, 9);
}

/* ------------------------------------------------------------------------------------------- */

/* Whoever can run it is called, one of them. */
static void test_called(void)
{
    OWNED(testing_end) struct testing *t = testing_init_policy(&machine, &policy, 1);
    for (unsigned w = 0; w < t->workers; w++)
        g_assert_cmpint(testing_next(t, w).kind, ==, DUET_IDLE);
    (void)testing_submit(t, t->gpu, NULL, 0, NULL, 0, 0);
    g_assert_true(t->woken[GPU] != t->woken[GPU + 1]);
    g_assert_false(t->woken[CPU] || t->woken[CPU + 1]);
    g_assert_cmpuint(testing_work(t, t->woken[GPU] ? GPU : GPU + 1, NULL), ==, 1);
}

/* If workers may decline, all are woken: the takers need no wake of their own. */
static void test_declined(void)
{
    struct duet_policy modest = policy;
    modest.may_decline = true;
    declined = false;
    OWNED(testing_end) struct testing *t = testing_init_policy(&machine, &modest, 1);
    for (unsigned w = 0; w < t->workers; w++)
        g_assert_cmpint(testing_next(t, w).kind, ==, DUET_IDLE);
    (void)testing_submit(t, t->any, NULL, 0, NULL, 0, 0);
    for (unsigned w = 0; w < t->workers; w++)
        g_assert_true(t->woken[w]);
    g_assert_cmpuint(testing_work(t, CPU, NULL), ==, 0);
    g_assert_cmpuint(testing_work(t, GPU, NULL), ==, 1);
    g_assert_true(declined);
}

/*
 * Tasks that no remaining worker can run end; a message about a stuck run counts these lists, too.
 */
static void test_lost(void)
{
    OWNED(testing_end) struct testing *t = testing_init_policy(&machine, &policy, 1);
    for (unsigned i = 0; i < 3; i++)
        (void)testing_submit(t, t->gpu, NULL, 0, NULL, 0, 0);
    duet__explain(t->core, hear());
    SAYS("3 are ready, and nobody");
    g_assert_cmpint(duet__worker_lost(t->core, GPU, 0, &t->ops), ==, DUET_OK);
    g_assert_cmpuint(duet_tasks_done(t->core), ==, 0);
    g_assert_cmpint(duet__worker_lost(t->core, GPU + 1, 0, &t->ops), ==, DUET_OK);
    g_assert_cmpuint(duet_tasks_done(t->core), ==, 3);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_ELOST);
}

static bool is_even(void *context, const struct duet_view *view, const struct duet_task *task)
{
    unsigned *asked = context;
    (*asked)++;
    return duet_task_id(task) % 2 == 0;
}

static bool is_any(void *context, const struct duet_view *view, const struct duet_task *task)
{
    return true;
}

/* Chosen tasks that the worker can run move, in order, with their load; the rest stays. */
static void test_move(void)
{
    OWNED(testing_end) struct testing *t = testing_init_policy(&machine, &policy, 1);
    struct duet_view view = testing_view(t, GPU);
    struct duet_list *from = ((struct own *)t->core->policy_state)->lists[DUET_DEQUE];
    struct duet_list *to = duet_view_list(&view, GPU);
    unsigned asked = 0;
    duet_move(&view, from, to, GPU, is_even, &asked); /* nothing is there */
    for (unsigned i = 0; i < 8; i++)
        duet_push_tail(&view, from,
                       testing_create(t, i < 4 ? t->gpu : t->cpu, NULL, 0, NULL, 0, 0));
    for (unsigned w = 0; w < t->workers; w++)
        t->woken[w] = testing_next(t, w).kind == DUET_RUN;
    duet_push_tail(&view, from, testing_create(t, t->gpu, NULL, 0, NULL, 0, 0)); /* 9 */
    duet_push_tail(&view, from, testing_create(t, t->gpu, NULL, 0, NULL, 0, 0)); /* 10 */
    size_t before = duet_list_length(from);
    duet_move(&view, from, to, GPU, is_even, &asked);
    g_assert_cmpuint(asked, ==, 4); /* 1 and 2 run */
    g_assert_cmpuint(duet_list_length(from), ==, before - 2);
    g_assert_cmpuint(duet_list_length(to), ==, 2);
    g_assert_cmpfloat_with_epsilon(duet_view_load(&view, GPU), 3e-4, 1e-9);
    duet_move(&view, to, from, GPU, is_any, NULL);
    g_assert_cmpuint(duet_list_length(to), ==, 0);
    const uint64_t expected[] = {3, 9, 4, 10};
    for (unsigned i = 0; i < 4; i++)
        g_assert_cmpuint(duet_task_id(duet_pop_head(&view, from, GPU)), ==, expected[i]);
}

/* Only init makes lists. */
static void test_late(void)
{
    OWNED(testing_end) struct testing *t = testing_init_policy(&machine, &policy, 1);
    struct duet_view view = testing_view(t, CPU);
    g_assert_null(duet_view_new_list(&view, DUET_HEAP));
    g_assert_cmpint(duet_wait(t->core), ==, DUET_EINVAL);
}

TEST_MAIN(test_search, test_deep, test_called, test_declined, test_lost, test_move, test_late)
