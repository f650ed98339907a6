/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs on the machine of sim/testing.h as text: what is submitted, and what comes of it. Statements
 * are separated by semicolons; dates and durations are in ms, data is in MB and named by a letter.
 * Submitted are
 *
 *     a 5                  data
 *     gpu0 10 a:r b:rw     a task on that worker, or on any, for so long, with these accesses
 *     wait                 the application waits for all tasks
 *     acquire a:rw, release a, unregister a
 *     now 7, done 2        the application's date, and the number of tasks that have ended
 *
 * and expected are, of the second task and of the first and the third copy of a,
 *
 *     2 gpu0 6 16          it ran there, from one date to the other
 *     a host>gpu0 0 6      it went from one memory to the other between these dates
 *     2 submit 10          (or ready) the date when it was submitted, or could begin
 *     2 copy a#3           it was released by that: submission, task, copy, room, worker, outside
 *     tasks 2, copies 3    numbers of records
 *     steals 1             a number of struct duet_stats
 *     busy_s 12            a date or a duration there
 *
 * A scene whose machine lacks some effects is played with them first, then without: "{6|5}" is 6
 * first, then 5.
 */
#ifndef DUET_SIM_TESTING_SCENE_H
#define DUET_SIM_TESTING_SCENE_H

#include "core/testing_variant.h"
#include "sim/testing.h"

struct scene {
    const char *name;
    struct lab_options machine;
    const char *submitted, *expected;
};

/* A run of a scene. */
struct play {
    struct lab lab;
    struct duet_handle *data[26]; /* by letter */
    uint64_t ids[26];
    unsigned count;
};

/* Calls a function with the words of each statement. */
static inline void play_each(struct play *play, const char *text,
                             void (*statement)(struct play *play, char **words))
{
    g_auto(GStrv) statements = g_strsplit(text, ";", -1);
    for (unsigned i = 0; statements[i]; i++) {
        g_auto(GStrv) words = g_strsplit(g_strstrip(statements[i]), " ", -1);
        if (words[0])
            statement(play, words);
    }
}

static inline double ms(const char *text)
{
    return g_ascii_strtod(text, NULL) * 1e-3;
}

static inline uint64_t whole(const char *text)
{
    return g_ascii_strtoull(text, NULL, 10);
}

/* An access such as "a:rw". */
static inline struct duet_access play_access(const struct play *play, const char *text)
{
    unsigned mode = (strchr(text + 2, 'r') ? DUET_R : 0) | (strchr(text + 2, 'w') ? DUET_W : 0);
    g_assert_true(play->data[text[0] - 'a'] && mode);
    return (struct duet_access){play->data[text[0] - 'a'], (enum duet_mode)mode};
}

static inline void play_task(struct play *play, char **words)
{
    struct duet_access accesses[8];
    const struct lab_seconds seconds = {ms(words[1]), ms(words[1])};
    unsigned count = g_strv_length(words) - 2;
    for (unsigned i = 0; i < count; i++)
        accesses[i] = play_access(play, words[2 + i]);
    const char *where = strcmp(words[0], "any") ? words[0] : NULL;
    g_assert_cmpint(lab_try_all(&play->lab, seconds, where, accesses, count), ==, DUET_OK);
}

static inline void play_submit(struct play *play, char **words)
{
    struct duet_runtime *duet = play->lab.duet;
    const char *what = words[0];
    int error = DUET_OK;
    if (what[1] == '\0') {
        play->data[what[0] - 'a'] =
            lab_data(&play->lab, (uint64_t)(1e6 * g_ascii_strtod(words[1], NULL)));
        play->ids[what[0] - 'a'] = ++play->count;
    } else if (!strcmp(what, "wait")) {
        error = duet_wait(duet);
    } else if (!strcmp(what, "acquire")) {
        const struct duet_access access = play_access(play, words[1]);
        error = duet_acquire(duet, access.handle, access.mode);
    } else if (!strcmp(what, "release")) {
        error = duet_release(duet, play->data[words[1][0] - 'a']);
    } else if (!strcmp(what, "unregister")) {
        error = duet_unregister(duet, play->data[words[1][0] - 'a']);
    } else if (!strcmp(what, "done")) {
        g_assert_cmpuint(duet_tasks_done(duet), ==, whole(words[1]));
    } else if (!strcmp(what, "now")) {
        assert_seconds(duet_now(duet), ms(words[1]));
    } else {
        play_task(play, words);
    }
    g_assert_cmpint(error, ==, DUET_OK);
}

/* The record of a task ("2") or of a copy ("a", "a#3"). */
static inline const struct duet_event *play_event(const struct play *play, const char *text)
{
    bool copy = g_ascii_isalpha(text[0]);
    unsigned number = copy && text[1] == '#' ? (unsigned)whole(text + 2) : 1;
    const struct duet_event *event =
        copy ? lab_find(&play->lab, DUET_EVENT_COPY, play->ids[text[0] - 'a'], number)
             : lab_find(&play->lab, DUET_EVENT_TASK, whole(text), 1);
    if (!event)
        g_error("there is no %s", text);
    return event;
}

static inline void play_expect_figure(struct play *play, char **words)
{
#define FIGURE(name)                                                                               \
    {                                                                                              \
#name, offsetof(struct duet_stats, name)                                                   \
    }
    static const struct {
        const char *name;
        size_t at;
    } figures[] = {FIGURE(bytes_to_device), FIGURE(bytes_to_host),
                   FIGURE(bytes_between),   FIGURE(evictions),
                   FIGURE(write_backs),     FIGURE(reads_on_device),
                   FIGURE(read_hits),       FIGURE(merged),
                   FIGURE(pushes),          FIGURE(pops),
                   FIGURE(steals),          FIGURE(steal_attempts),
                   FIGURE(first_submit_s),  FIGURE(makespan_s),
                   FIGURE(busy_s),          FIGURE(critical_path_s)};
#undef FIGURE
    struct duet_stats stats;
    unsigned i = 0;
    duet_stats(play->lab.duet, &stats);
    while (i < G_N_ELEMENTS(figures) && strcmp(figures[i].name, words[0]) != 0)
        i++;
    g_assert_cmpuint(i, <, G_N_ELEMENTS(figures));
    const char *figure = (const char *)&stats + figures[i].at;
    if (g_str_has_suffix(words[0], "_s"))
        assert_seconds(*(const double *)(const void *)figure, ms(words[1]));
    else
        g_assert_cmpuint(*(const uint64_t *)(const void *)figure, ==, whole(words[1]));
}

/* Checks what released an event: "submission", or "task", "copy", ... and the event that did. */
static inline void play_expect_release(const struct play *play, const struct duet_event *event,
                                       char **words)
{
    static const char *const names[] = {[DUET_RELEASE_SUBMISSION] = "submission",
                                        [DUET_RELEASE_TASK] = "task",
                                        [DUET_RELEASE_COPY] = "copy",
                                        [DUET_RELEASE_ROOM] = "room",
                                        [DUET_RELEASE_WORKER] = "worker",
                                        [DUET_RELEASE_OUTSIDE] = "outside"};
    g_assert_cmpuint(event->release, <, G_N_ELEMENTS(names));
    g_assert_cmpstr(names[event->release], ==, words[1]);
    if (words[2])
        g_assert_true(&play->lab.events[event->released_by - 1] == play_event(play, words[2]));
    else /* the first time that the application gives something back */
        g_assert_cmpuint(event->released_by, ==, event->release == DUET_RELEASE_OUTSIDE);
}

static inline void play_expect(struct play *play, char **words)
{
    const struct lab *lab = &play->lab;
    if (!strcmp(words[0], "tasks") || !strcmp(words[0], "copies")) {
        g_assert_cmpuint(lab_count(lab, words[0][0] == 't' ? DUET_EVENT_TASK : DUET_EVENT_COPY), ==,
                         whole(words[1]));
        return;
    }
    if (strlen(words[0]) > 3) {
        play_expect_figure(play, words);
        return;
    }
    const struct duet_event *event = play_event(play, words[0]);
    bool copy = event->kind == DUET_EVENT_COPY;
    if (g_strv_length(words) == 4) {
        g_autofree char *at = g_strconcat(lab->machine.nodes[event->source].name, ">",
                                          lab->machine.nodes[event->destination].name, NULL);
        const char *on = copy ? at : lab->machine.workers[event->worker].name;
        if (strcmp(on, words[1]) != 0 || !lab_near(event->start_s, ms(words[2])) ||
            !lab_near(event->end_s, ms(words[3])))
            g_error("%s is %s %.12g %.12g, not %s %s %s", words[0], on, event->start_s * 1e3,
                    event->end_s * 1e3, words[1], words[2], words[3]);
    } else if (!strcmp(words[1], "submit") || !strcmp(words[1], "ready")) {
        assert_seconds(words[1][0] == 's' ? event->submit_s : event->ready_s, ms(words[2]));
    } else {
        play_expect_release(play, event, words);
    }
}

static inline void play_variant(const struct scene *scene, bool without)
{
    unsigned count = 1;
    struct lab_options machine = scene->machine;
    g_autofree char *submitted = script_variant(scene->submitted, without, &count);
    g_autofree char *expected = script_variant(scene->expected, without, &count);
    machine.without = without ? machine.without : 0;
    struct play play = {.lab = lab_open(&machine)};
    play_each(&play, submitted, play_submit);
    lab_finish(&play.lab);
    play_each(&play, expected, play_expect);
    lab_close(&play.lab);
}

static inline void play_scene(const void *scene)
{
    play_variant(scene, false);
}

static inline void play_scene_without(const void *scene)
{
    play_variant(scene, true);
}

/* Adds each scene as a test of its name; called by SCENES_MAIN. */
static inline void add_scenes(const struct scene *scenes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        g_autofree char *path = g_strconcat("/", scenes[i].name, NULL);
        g_autofree char *other = g_strconcat("/without/", scenes[i].name, NULL);
        lab_add_on(path, &scenes[i], play_scene);
        if (scenes[i].machine.without)
            lab_add_on(other, &scenes[i], play_scene_without);
    }
}

/* The main function of a file with these scenes, and a call of lab_add for another test, or none.
 */
#define SCENES_MAIN(scenes, ...)                                                                   \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        g_test_init(&argc, &argv, NULL);                                                           \
        add_scenes(scenes, G_N_ELEMENTS(scenes));                                                  \
        __VA_ARGS__;                                                                               \
        return g_test_run();                                                                       \
    }

#endif
