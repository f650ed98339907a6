/* SPDX-License-Identifier: Apache-2.0 */
/* Reading, writing, arranging, and following on threads; cli.schedule tests whole commands. */
#include "runtime/schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <duet/failure.h>
#include <duet/handles.h>

#include "report/testing_mutate.h"
#include "runtime/testing.h"

static const char small[] =
    "{\"machine\": \"here\", \"makespan_s\": 4, \"schedule\": {\"cpu0\": [3, 1], \"gpu0\": [2]}, "
    "\"kernels\": [\"a\", null, \"b\"], \"bytes\": [8, 16, null], \"start_s\": [1, 0, 0.5], "
    "\"end_s\": [4, 1, 1]}";

static char *text_of(const struct duet__schedule *schedule)
{
    char *text;
    size_t length;
    FILE *stream = open_memstream(&text, &length);
    duet__schedule_write(stream, schedule, "here");
    fclose(stream);
    return text;
}

static void test_read(void)
{
    struct duet__schedule *schedule;
    WORKS(duet__schedule_read(small, strlen(small), "s.json", &schedule, hear()));
    g_assert_cmpuint(schedule->count, ==, 3);
    g_assert_cmpuint(schedule->planned, ==, 3);
    g_assert_cmpuint(schedule->order[0], ==, 2); /* in the order of the file, not of the dates */
    g_assert_cmpuint(schedule->tasks[0].place, ==, 1);
    g_assert_cmpuint(schedule->tasks[1].worker, ==, 1);
    g_assert_cmpuint(schedule->tasks[1].kernel, ==, 0);
    g_assert_cmpuint(schedule->tasks[1].bytes, ==, 16);
    g_assert_true(schedule->tasks[2].bytes == UINT64_MAX && schedule->tasks[2].start_s == 0.5);
    schedule->tasks[2].worker = 1;
    duet__schedule_arrange(schedule);
    g_assert_cmpuint(schedule->first[1], ==, 1);
    g_assert_cmpuint(schedule->order[1], ==, 1);
    g_assert_cmpuint(schedule->tasks[2].place, ==, 1);
    duet__schedule_free(schedule);
}

/* A schedule that is written is read again as it was. */
static void check_again(const struct duet__schedule *schedule)
{
    g_autofree char *text = text_of(schedule);
    struct duet__schedule *again;
    char *second;
    if (duet__schedule_read(text, strlen(text), "s.json", &again, hear()))
        g_error("%s: %s", heard(), text);
    second = text_of(again);
    g_assert_cmpstr(text, ==, second);
    free(second);
    duet__schedule_free(again);
}

/* A mutated text gives a schedule, or one message. DUET_TEST_LONG=1000000 tries so many. */
static void test_mutated(void)
{
    const char *wanted = g_getenv("DUET_TEST_LONG");
    const unsigned long rounds = wanted ? strtoul(wanted, NULL, 10) : 20000;
    g_autoptr(GRand) random = g_rand_new_with_seed(37);
    unsigned long good = 0;
    for (unsigned long i = 0; i < rounds; i++) {
        g_autoptr(GString) text = g_string_new(small);
        struct duet__schedule *schedule;
        int error;
        testing_mutate(text, random);
        error = duet__schedule_read(text->str, text->len, "s.json", &schedule, hear());
        g_assert_true(!error == !*heard() && !strchr(heard(), '\n'));
        if (error)
            continue;
        good++;
        g_assert_cmpuint(schedule->first[schedule->workers.list->len], ==, schedule->planned);
        check_again(schedule);
        duet__schedule_free(schedule);
    }
    g_assert_cmpuint(good, >, rounds / 100);
}

/* A plan has the tasks that ran and have planned dates, whatever numbers they have in the run, by
   planned date; what failed and was tried again began when it succeeded. */
static void test_plan(void)
{
    struct duet_worker workers[] = {{.name = "cpu0"}, {.name = "cpu1"}, {.name = "gpu0"}};
    struct duet_machine machine = {.workers = workers, .worker_count = G_N_ELEMENTS(workers)};
    struct duet_event events[] = {
        {.kind = DUET_EVENT_TASK, .id = 12, .worker = 1, .start_s = 0.5, .end_s = 2},
        {.kind = DUET_EVENT_COPY, .id = 1, .start_s = 1, .end_s = 2},
        {.kind = DUET_EVENT_TASK, .id = 11, .worker = 2, .failed = true, .start_s = 1, .end_s = 2},
        {.kind = DUET_EVENT_TASK, .id = 11, .kernel = 7, .start_s = 6, .end_s = 7},
        {.kind = DUET_EVENT_TASK, .id = 13, .start_s = 9, .end_s = 10},
        {.kind = DUET_EVENT_TASK, .id = 14, .start_s = 11, .end_s = 12},
    };
    const struct duet__recording recording = {.machine = &machine,
                                              .events = events,
                                              .event_count = G_N_ELEMENTS(events)};
    struct duet__schedule *schedule;
    struct duet__run_plan plan;
    struct duet_message message = {""};
    g_assert_cmpint(duet__schedule_read(small, strlen(small), "s.json", &schedule, &message), ==,
                    0);
    schedule->tasks[2].end_s = NAN;
    duet__schedule_plan(schedule, &recording, 2, &plan);
    g_assert_cmpuint(plan.tasks.event_count, ==, 2);
    g_assert_cmpfloat(plan.tasks.makespan_s, ==, 8);
    g_assert_true(plan.tasks.events[0].id == 12 && plan.tasks.events[0].worker == 2 &&
                  plan.tasks.events[0].start_s == 0 && plan.tasks.events[0].end_s == 2);
    g_assert_true(plan.tasks.events[1].id == 11 && plan.tasks.events[1].worker == 0 &&
                  plan.tasks.events[1].kernel == 7 && plan.tasks.events[1].start_s == 2);
    g_assert_cmpuint(plan.moved, ==, 1);
    g_assert_cmpuint(plan.latest, ==, 11);
    g_assert_cmpfloat(plan.late_s, ==, 4);
    g_free(plan.tasks.events);
    schedule->makespan_s = 0;                    /* not known: the last planned end */
    schedule->tasks[1].worker = DUET__UNPLANNED; /* the file was changed meanwhile */
    duet__schedule_plan(schedule, &recording, 1, &plan);
    g_assert_true(plan.tasks.event_count == 1 && plan.tasks.makespan_s == 4);
    g_free(plan.tasks.events);
    strcpy(workers[0].name, "cpu8");
    duet__schedule_plan(schedule, &recording, 1, &plan);
    g_assert_cmpuint(plan.tasks.event_count, ==, 0);
    g_free(plan.tasks.events);
    duet__schedule_free(schedule);
}

/* ------------------------------------------------------------------------------------------- */
/* Following, on threads                                                                        */

enum { TASKS = 16, DATA = 4 };

static int add_one(const struct duet_call *call)
{
    *(double *)call->buffers[0].data += 1;
    if ((unsigned)*(double *)call->buffers[0].data % 4 == 0)
        g_usleep(200);
    return 0;
}

struct followed {
    struct duet_runtime *runtime;
    struct duet_codelet *codelet;
    struct duet_handle *handles[DATA];
    double values[DATA];
};

/* Opens a runtime of two workers that follows a schedule in which each has every other task. */
static void follow(struct followed *t, const struct duet__schedule *schedule, const char *policy)
{
    struct duet_config config = testing_config(NULL, 2, 0);
    const struct duet_codelet_desc plain = {.expand = NULL};
    duet__schedule_offer("rounds.json", schedule);
    config.no_bind = true;
    config.policy = policy;
    t->runtime = testing_open(&config);
    t->codelet = testing_codelet(t->runtime, "add", add_one, plain);
    for (unsigned i = 0; i < DATA; i++)
        must(t->runtime,
             duet_register_vector(t->runtime, &t->values[i], 1, sizeof(double), &t->handles[i]));
}

static void submit(struct followed *t, unsigned from, unsigned to)
{
    int error = 0;
    for (unsigned i = from; i < to && !error; i++)
        error = duet_insert(t->runtime, t->codelet, DUET_RW, t->handles[i % DATA], 0);
}

/* Runs follow each other in one runtime: also after one that was cancelled, one with too many
   tasks, and where the first task is not the first that is ready. */
static void check_rounds(const struct duet__schedule *schedule, const char *policy)
{
    struct followed t = {NULL};
    follow(&t, schedule, policy);
    for (unsigned round = 0; round < 200; round++) {
        if (round % 40 == 20) {
            duet_stats_reset(t.runtime);
            submit(&t, 0, TASKS);
            duet_cancel(t.runtime);
            g_assert_cmpint(duet_wait(t.runtime), ==, DUET_ECANCELED);
            g_assert_cmpint(duet_recover(t.runtime), ==, 0);
            for (unsigned i = 0; i < DATA; i++)
                if (!duet_valid(t.runtime, t.handles[i])) {
                    g_assert_cmpint(duet_acquire(t.runtime, t.handles[i], DUET_W), ==, 0);
                    g_assert_cmpint(duet_release(t.runtime, t.handles[i]), ==, 0);
                }
        }
        duet_stats_reset(t.runtime);
        if (round % 2) {
            submit(&t, 0, TASKS);
        } else {
            g_assert_cmpint(duet_acquire(t.runtime, t.handles[0], DUET_RW), ==, 0);
            submit(&t, 0, 2);
            g_assert_cmpint(duet_release(t.runtime, t.handles[0]), ==, 0);
            submit(&t, 2, TASKS);
        }
        if (duet_wait(t.runtime))
            g_error("round %u of %s: %s", round, policy, duet_last_message(t.runtime));
    }
    duet_stats_reset(t.runtime);
    submit(&t, 0, TASKS + 1);
    REFUSED(t.runtime, duet_wait(t.runtime), DUET_EINVAL, "it has no task 17 (add)");
    duet_close(t.runtime);
    duet__schedule_offer("rounds.json", NULL);
}

static void test_rounds(void)
{
    static const char text[] = "{\"schedule\": {\"cpu0\": [1, 3, 5, 7, 9, 11, 13, 15], "
                               "\"cpu1\": [2, 4, 6, 8, 10, 12, 14, 16]}}";
    struct duet__schedule *schedule;
    WORKS(duet__schedule_read(text, strlen(text), "rounds.json", &schedule, hear()));
    check_rounds(schedule, "rounds.json");
    check_rounds(schedule, "rounds.json:slack=0");
    duet__schedule_free(schedule);
}

TEST_MAIN(test_read, test_mutated, test_plan, test_rounds)
