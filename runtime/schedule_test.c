/* SPDX-License-Identifier: Apache-2.0 */
/* Reading, writing and arranging of schedules; what they do, cli.schedule tests. */
#include "runtime/schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/testing_mutate.h"

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
    struct duet_message message = {""};

    g_assert_cmpint(duet__schedule_read(small, strlen(small), "s.json", &schedule, &message), ==,
                    0);
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

/* What is written is read again. */
static void check_again(const struct duet__schedule *schedule)
{
    g_autofree char *text = text_of(schedule);
    struct duet__schedule *again;
    struct duet_message message = {""};
    char *second;

    if (duet__schedule_read(text, strlen(text), "s.json", &again, &message))
        g_error("%s: %s", message.text, text);
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
    GRand *random = g_rand_new_with_seed(37);
    unsigned long good = 0;

    for (unsigned long i = 0; i < rounds; i++) {
        g_autoptr(GString) text = g_string_new(small);
        struct duet__schedule *schedule;
        struct duet_message message = {""};
        int error;

        testing_mutate(text, random);
        error = duet__schedule_read(text->str, text->len, "s.json", &schedule, &message);
        g_assert_true(!error == !*message.text && !strchr(message.text, '\n'));
        if (error)
            continue;
        good++;
        g_assert_cmpuint(schedule->first[schedule->workers.list->len], ==, schedule->planned);
        check_again(schedule);
        duet__schedule_free(schedule);
    }
    g_assert_cmpuint(good, >, rounds / 100);
    g_rand_free(random);
}

TEST_MAIN(test_read, test_mutated)
