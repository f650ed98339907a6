/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs on several nodes with emulated GPUs, with every distribution of their data, tasks
 * that say where they run, and data that the application fetches, gives away and acquires on one
 * node or on all. What the nodes have read and left is put together and compared bit by bit with
 * the same programs carried out in order by one thread. See core/testing_random.h for the
 * environment.
 */
#ifndef DUET_NODES_TESTING_RANDOM_H
#define DUET_NODES_TESTING_RANDOM_H

#include "core/testing_random.h"
#include "nodes/testing_transport.h"

enum { COMMON = 3 };

/* Common data of a program's nodes. */
struct cluster {
    struct world world;
    struct setting setting;
    struct fabric *fabric;
    struct duet_grid grid;
    pthread_barrier_t opened;
    unsigned dealing; /* how data is dealt out */
    bool sparse;      /* memory is where the owner is, only */
};

/* A node: what run->own points to. */
struct member {
    struct cluster *cluster;
    struct node node;
    struct run *run;
    unsigned owners[HANDLES_MAX];
    bool here; /* the application's own access is */
    /* sums that tasks of all nodes add to */
    struct duet_handle *common[COMMON];
    uint64_t words[COMMON][SUM_WORDS], expected[COMMON][SUM_WORDS];
    int error;
};

static _Thread_local struct member *opening; /* on whose thread the run is made */

static inline struct member *member_of(const struct run *run)
{
    return run->own;
}

static inline uint64_t drawn(const struct run *run, uint64_t salt)
{
    return mix(run->setting.config.seed + mix(salt));
}

static inline unsigned count_of(const struct run *run)
{
    return member_of(run)->cluster->fabric->count;
}

/* ------------------------------------------------------------------------------------------- */
/* Data                                                                                         */

static inline unsigned owner_of_common(const struct run *run, unsigned i)
{
    return (unsigned)(drawn(run, 77 + i) % count_of(run));
}

static inline void make_common(struct run *run)
{
    struct member *member = member_of(run);
    for (unsigned i = 0; i < COMMON; i++) {
        unsigned owner = owner_of_common(run, i);
        uint64_t *memory = owner == member->node.number ? member->words[i] : NULL;
        g_assert_cmpint(duet_register_vector(run->duet, memory, SUM_WORDS, sizeof(uint64_t),
                                             &member->common[i]),
                        ==, DUET_OK);
        g_assert_cmpint(duet_own(run->duet, member->common[i], owner), ==, DUET_OK);
        if (reduces(run))
            g_assert_cmpint(duet_set_reduction(run->duet, member->common[i], run->clear,
                                               run->add_up),
                            ==, DUET_OK);
    }
}

static inline unsigned first_owner(const struct run *run, unsigned h)
{
    const struct cluster *cluster = member_of(run)->cluster;
    return cluster->dealing == 0 ? duet_node_at(run->duet, h / 6, h % 6)
                                 : (unsigned)(drawn(run, 1000 + h) % count_of(run));
}

static inline void attach_matrix(struct run *run, unsigned h)
{
    struct member *member = member_of(run);
    const struct duet_buffer matrix = run->real[h];
    if (h == 0 && !member->common[0])
        make_common(run);
    if (run->form[h] == FORM_OBJECT) /* only the data that it points to is sent */
        run->form[h] = FORM_MATRIX;
    if (!run->handles[h])
        member->owners[h] = first_owner(run, h);
    if (member->cluster->sparse && run->form[h] == FORM_MATRIX &&
        member->owners[h] != member->node.number)
        run->real[h].data = NULL;
    g_assert_cmpint(register_matrix(run, h), ==, DUET_OK);
    run->real[h] = matrix;
    if (duet_own(run->duet, run->handles[h], member->owners[h]))
        g_error("%s", duet_last_message(run->duet));
}

static inline void own_temporary(struct run *run, struct duet_handle *handle, uint64_t salt)
{
    unsigned owner = (unsigned)(drawn(run, salt) % count_of(run));
    g_assert_cmpint(duet_own(run->duet, handle, owner), ==, DUET_OK);
}

/* The data of a step is sent somewhere, or given away: its memory is everywhere, then. */
static inline void move(struct run *run, const struct step *step, bool gives)
{
    struct member *member = member_of(run);
    const unsigned h = step->handles[0], node = (unsigned)(step->salt >> 32) % count_of(run);
    if (gives && (!member->cluster->sparse || run->form[h] != FORM_MATRIX)) {
        check_error(run, duet_migrate(run->duet, run->handles[h], node));
        member->owners[h] = node;
    } else {
        check_error(run, duet_fetch(run->duet, run->handles[h], node));
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Steps                                                                                        */

static inline void add_to_common(struct run *run, uint64_t salt)
{
    struct member *member = member_of(run);
    const unsigned node = (unsigned)(salt >> 40) % count_of(run);
    const struct addition addition = {.run = run, .salt = salt};
    const struct duet_access access = {member->common[salt % COMMON], adding_mode(run, salt)};
    const struct duet_task_extra extra = {.node = &node};
    const struct duet_task_desc desc = {.codelet = run->add[0],
                                        .accesses = &access,
                                        .access_count = 1,
                                        .args = &addition,
                                        .args_bytes = sizeof addition,
                                        .priority = (int)(salt >> 50) % 3,
                                        .extra = salt >> 60 & 1 ? &extra : NULL};
    (void)submitted(run, duet_submit(run->duet, &desc), &desc);
    add_to(member->expected[salt % COMMON], salt);
}

static inline void before_step(struct run *run, struct step *step, struct duet_task_extra *extra)
{
    static _Thread_local unsigned node;
    const uint64_t salt = drawn(run, step->salt);
    if (step->count && salt % 8 < 2 && step->kind != EXPANDS)
        move(run, step, salt & 1);
    if (!extra)
        return;
    for (unsigned i = 0; i < (salt >> 8) % 4; i++)
        add_to_common(run, mix(salt + i));
    node = (unsigned)(salt >> 16) % count_of(run);
    if (step->count + step->chain == 0 || (salt >> 24) % 4 == 0)
        extra->node = &node;
}

static inline int acquire_somewhere(struct run *run, struct step *step)
{
    struct member *member = member_of(run);
    struct duet_handle *handle = run->handles[step->handles[0]];
    const enum duet_mode mode = (enum duet_mode)step->modes[0];
    const uint64_t salt = drawn(run, step->salt);
    member->here = true;
    return salt & 1 ? duet_acquire(run->duet, handle, mode)
                    : duet_acquire_on(run->duet, handle, mode,
                                      (unsigned)(salt >> 8) % count_of(run), &member->here);
}

static inline void touched(struct run *run, struct step *step)
{
    struct member *member = member_of(run);
    const unsigned h = step->handles[0];
    struct duet_buffer buffer = run->real[h];
    const bool owns = member->owners[h] == member->node.number;
    if (step->kind == LOOK ? !member->here : !owns)
        return;
    if (!owns && member->cluster->sparse && run->form[h] == FORM_MATRIX) {
        buffer.data = duet_address(run->handles[h]);
        buffer.ld = buffer.rows;
    }
    if (buffer.data) /* a run that has failed may have no place for it */
        step->results[0] = touch(step, &buffer);
}

/* ------------------------------------------------------------------------------------------- */
/* A node                                                                                       */

static inline int open_node(struct run *run, struct duet_message *message)
{
    struct member *member = opening;
    int error = duet_open(&member->node.duet, &run->setting.config, message);
    if (error)
        return error;
    run->own = member;
    run->duet = member->node.duet;
    fabric_join(member->cluster->fabric, member->node.number, &run->duet, 1, member->cluster->grid);
    (void)pthread_barrier_wait(&member->cluster->opened);
    return DUET_OK;
}

/* The program of the one that is opening, but for its end. */
static inline void run_node_program(struct member *member)
{
    opening = member;
    struct run *run = member->run = run_new(&member->cluster->setting);
    submit_all(run);
    check_error(run, duet_wait(run->duet));
    check_error(run, atomic_load(&run->refused));
    if (run->setting.abrupt)
        return;
    for (unsigned h = 0; h < handle_count(&run->setting) + SUMS; h++)
        check_error(run, duet_unregister(run->duet, any_handle(run, h)));
    for (unsigned i = 0; i < COMMON; i++)
        check_error(run, duet_unregister(run->duet, member->common[i]));
}

static inline void *run_member(void *argument)
{
    struct member *member = argument;
    run_node_program(member);
    node_close(&member->node);
    return NULL;
}

/* ------------------------------------------------------------------------------------------- */
/* All of them                                                                                  */

/* Merges the results of one node: the others have zeros there. */
static inline void merge_step(struct step *into, const struct step *from)
{
    const bool many = into->kind == EXPANDS || into->chain;
    for (unsigned i = 0; i < (many ? RESULTS : 1); i++)
        into->results[i] = into->results[i] ? into->results[i] : from->results[i];
    atomic_fetch_add(&into->ended, atomic_load(&from->ended));
}

static inline void merge(struct member *into, const struct member *member)
{
    struct run *run = into->run;
    const struct run *from = member->run;
    for (unsigned i = 0; i < run->setting.steps; i++)
        merge_step(&run->steps[i], &from->steps[i]);
    for (unsigned i = 0; i < SUMS; i++)
        for (unsigned j = 0; j < SUM_WORDS; j++)
            run->real_sums[i][j] += from->real_sums[i][j];
    for (unsigned h = 0; h < handle_count(&run->setting); h++)
        if (member->owners[h] == member->node.number)
            memcpy(run->real_words[h], from->real_words[h], sizeof run->real_words[h]);
    for (unsigned i = 0; i < COMMON; i++)
        if (owner_of_common(run, i) == member->node.number)
            memcpy(into->words[i], member->words[i], sizeof into->words[i]);
    atomic_fetch_add(&run->real_bare, atomic_load(&from->real_bare));
}

/* Checks the merged results of all. Bytes between the columns stay as they were with the owner, who
   may have changed. */
static inline void check(const struct member *member)
{
    struct run *run = member->run;
    for (unsigned i = 0; i < run->setting.steps; i++) {
        g_assert_cmpuint(atomic_load(&run->steps[i].ended), ==, run->steps[i].kind < KINDS);
        replay(run, &run->steps[i]);
    }
    g_assert_cmphex(atomic_load(&run->real_bare), ==, run->expected_bare);
    if (run->setting.abrupt)
        return;
    check_contents(run);
    g_assert_cmpmem(member->words, sizeof member->words, member->expected, sizeof member->expected);
}

static inline void run_cluster(struct cluster *cluster, struct tally *tally)
{
    const unsigned count = cluster->fabric->count;
    struct member *members = g_new0(struct member, count);
    pthread_barrier_init(&cluster->opened, NULL, count);
    for (unsigned n = 0; n < count; n++) {
        members[n].cluster = cluster;
        members[n].node = (struct node){.fabric = cluster->fabric, .number = n};
        g_assert_cmpint(pthread_create(&members[n].node.thread, NULL, run_member, &members[n]), ==,
                        0);
    }
    for (unsigned n = 0; n < count; n++)
        (void)pthread_join(members[n].node.thread, NULL);
    for (unsigned n = 0; n < count; n++)
        g_assert_true(!members[n].node.closed == !cluster->fabric->error);
    for (unsigned n = 1; n < count; n++)
        merge(&members[0], &members[n]);
    if (!cluster->fabric->error)
        check(&members[0]);
    tally->runs++;
    tally->good += !cluster->fabric->error;
    tally->tasks += members[0].run->tasks;
    for (unsigned n = 0; n < count; n++)
        run_free(members[n].run);
    pthread_barrier_destroy(&cluster->opened);
    g_free(members);
}

static inline void draw(struct cluster *cluster, uint64_t number)
{
    struct setting *setting = &cluster->setting;
    uint64_t rng = duet_random_stream(number, 7);
    cluster->world = (struct world){.arch = "emulated",
                                    .work = work,
                                    .add = add,
                                    .open = open_node,
                                    .touched = touched,
                                    .attach = attach_matrix,
                                    .made = own_temporary,
                                    .before = before_step,
                                    .acquire = acquire_somewhere};
    duet_config_init(&setting->config);
    setting->config.seed = number;
    setting->world = &cluster->world;
    draw_machine(setting, &rng);
    setting->config.cpus %= 3;
    setting->config.gpus = setting->config.cpus ? setting->config.gpus % 3 : 1;
    draw_program(setting, &rng, 150);
    if (strcmp(setting->config.policy, "auto") == 0)
        setting->config.policy = "eager";
    setting->config.emulate = "free";
    setting->config.watchdog_s = WATCHDOG_S / 4.0;
    setting->config.keep_going = setting->cut = setting->shared = false;
    setting->submitters = 1;
    setting->fail_copy = 0;
    const unsigned count = 2 + duet_random_below(&rng, 7), rows = duet_random_below(&rng, 3);
    cluster->grid = rows == 0   ? (struct duet_grid){1, count}
                    : rows == 1 ? (struct duet_grid){count, 1}
                                : duet__grid_square(count);
    cluster->dealing = duet_random_below(&rng, 2);
    cluster->sparse = duet_random_below(&rng, 2);
    cluster->fabric = fabric_new(count, number);
}

#endif
