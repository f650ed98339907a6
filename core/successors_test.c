/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what comes directly after a task, as far as it was submitted. */
#include "core/testing_script.h"

/* "after 2 1 1/3": task 2, which is begun, has 1 successor, and a third of one by its part. */
static bool successors_step(struct stage *stage, char **words)
{
    if (!stage_is(words, "after"))
        return false;
    unsigned i = 0;
    while (i < stage->begun_count &&
           (int64_t)duet_task_id(stage->begun[i].task) != stage_number(stage, words[1]))
        i++;
    g_assert_cmpuint(i, <, stage->begun_count);
    const struct duet_successors found = duet_task_successors(stage->begun[i].task);
    const char *over = strchr(words[3], '/');
    stage_same(stage, "their number", (int64_t)found.count, stage_number(stage, words[2]));
    g_assert_cmpfloat_with_epsilon(found.normalised * (over ? g_ascii_strtod(over + 1, NULL) : 1),
                                   g_ascii_strtod(words[3], NULL), 1e-12);
    return true;
}

static const struct script scripts[] = {
    {"the writer after three readers is a third of each, and a half when one has ended", "cpus=3",
     "data a; cpu a:w; cpu0 run 1; after 1 0 0; 3 cpu a:r; after 1 3 3; cpu a:rw; after 1 3 3;"
     "done 1; cpu0 run 2; cpu1 run 3; cpu2 run 4; after 2 1 1/3; after 3 1 1/3; after 4 1 1/3;"
     "done 2; after 3 1 1/2; done 3; done 4"},
    {"one that waits for two accesses of a task counts twice, and is all of that task's", "cpus=2",
     "data a b; cpu a:rw b:rw; cpu a:rw b:r; cpu0 run 1; after 1 2 1; done 1; cpu0 work 1"},
    {"one of two tasks is half of each, until one has ended", "cpus=2",
     "data b c; cpu b:rw; cpu c:rw; cpu b:r c:r; cpu0 run 1; cpu1 run 2; after 1 1 1/2;"
     "after 2 1 1/2; done 1; after 2 1 1; done 2"},
    {"commuting tasks come together, references count, what the application does is no task",
     "cpus=1",
     "data a b; cpu>f a:rw; 2 cpu a:c; cpu<f b:rw; cpu0 run 1; after 1 3 3; done 1; drain; drop f;"
     "cpu a:rw; unused a; cpu0 run 5; after 5 0 0; done 5"},
};

static void test_scripts(void)
{
    scripts_play_with(scripts, G_N_ELEMENTS(scripts), &(struct stage_more){NULL, successors_step});
}

TEST_MAIN(test_scripts)
