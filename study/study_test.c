/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of runs into a file: whatever ends them, none is lost or there twice; and of other
   files. */
#include "study/study.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "study/answer.h"

enum { SIZES = 12, GPUS = 4, CELLS = SIZES * GPUS };

static char *folder;
static int begun[2]; /* a pipe with a byte for each begun run, if it is "told" */

static char *path_of(const char *name)
{
    return g_build_filename(folder, name, NULL);
}

static struct duet__study *make(void)
{
    static const char *const pairs[][2] = {{"n", "1..12"}, {"gpus", "1..4"}};
    struct duet__study *study = duet__study_new();
    for (size_t i = 0; i < G_N_ELEMENTS(pairs); i++)
        WORKS(duet__study_add(study->products->pdata[0],
                              duet__option_find(pairs[i][0], DUET__IN_STUDY), pairs[i][1], hear()));
    WORKS(duet__study_number(study, hear()));
    return study;
}

/* Writes the row of a run that nobody simulates; `data` names what is odd in it. */
static void execute(uint64_t job, FILE *result, void *data)
{
    const char *odd = data;
    const int cell = (int)(job % CELLS), rep = (int)(job / CELLS);
    if (!strcmp(odd, "dies") && cell == 7)
        raise(SIGKILL);
    if (!strcmp(odd, "ends") && cell == 7)
        _exit(3);
    if (!strcmp(odd, "told"))
        g_assert_cmpint(write(begun[1], "", 1), ==, 1);
    if (!strcmp(odd, "fails") && cell == 7)
        fputs("{\"status\": 1, \"error\": \"it has failed\"}", result);
    else if (!strcmp(odd, "refuses"))
        fputs("{\"status\": 2, \"error\": \"it is none\"}", result);
    else if (!strcmp(odd, "room") && cell == 7)
        fputs("{\"status\": 3, \"error\": \"no room\"}", result);
    else
        fprintf(result,
                "{\"seed\": %d, \"makespan_s\": %d.5, \"gflops\": null, \"best_s\": 1, \"held\": "
                "true}\n",
                rep + 1, cell + rep);
}

static struct duet__plan plan_of(const struct duet__study *study, const char *odd)
{
    return (struct duet__plan){.study = study,
                               .command = "simulate",
                               .version = "1",
                               .seed = 1,
                               .reps = 2,
                               .part = 1,
                               .parts = 1,
                               .shards = 1,
                               .jobs = 3,
                               .execute = execute,
                               .data = (char *)(uintptr_t)odd};
}

/* Makes the runs of a plan into a file. */
static int make_runs(const struct duet__plan *plan, const char *path, struct duet__outcome *outcome,
                     struct duet_message *message)
{
    struct duet__progress progress = {0};
    struct duet__store store;
    int error = duet__store_open(&store, path, DUET__STORE_WRITE, message), closed;
    *outcome = (struct duet__outcome){0};
    if (!error)
        error = duet__study_make(plan, &store, &progress, outcome, message);
    closed = duet__store_close(&store, message);
    return error ? error : closed;
}

static void make_all(const struct duet__plan *plan, const char *path, struct duet__outcome *outcome)
{
    WORKS(make_runs(plan, path, outcome, hear()));
    g_free(outcome->example);
}

static int64_t ask(const char *path, const char *text)
{
    struct duet__store store;
    sqlite3_stmt *statement;
    int64_t number;
    WORKS(duet__store_open(&store, path, DUET__STORE_SHOW, hear()));
    statement = duet__store_ask(&store, hear(), "%s", text);
    g_assert_nonnull(statement);
    g_assert_cmpint(sqlite3_step(statement), ==, SQLITE_ROW);
    number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    WORKS(duet__store_close(&store, hear()));
    return number;
}

/* Merges a file into another one, which agree. Returns how many runs that has added. */
static uint64_t merge(const char *into, const char *from)
{
    struct duet__store store;
    uint64_t added, differing;
    WORKS(duet__store_open(&store, into, DUET__STORE_WRITE, hear()));
    WORKS(duet__store_merge(&store, from, &added, &differing, hear()));
    WORKS(duet__store_close(&store, hear()));
    g_assert_cmpuint(differing, ==, 0);
    return added;
}

/* Waits for a process that ends well. */
static void join(pid_t pid)
{
    int status;
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_cmpint(status, ==, 0);
}

/* Checks that all runs are in the file, each once and as it was made. */
static void check_whole(const char *path)
{
    g_assert_cmpint(ask(path, "SELECT count(*) FROM runs"), ==, 2 * CELLS);
    g_assert_cmpint(ask(path, "SELECT count(DISTINCT command) FROM runs"), ==, 2 * CELLS);
    g_assert_cmpint(ask(path, "SELECT count(*) FROM runs WHERE makespan_s = (n - 1) * 4 + gpus - 1 "
                              "+ seed - 0.5 AND held = 1 AND gflops IS NULL"),
                    ==, 2 * CELLS);
    g_assert_cmpint(ask(path, "SELECT count(*) FROM settings"), ==, 2);
}

/* True if the path is a file of results yet. */
static bool is_begun(const char *path)
{
    struct duet__store store;
    int error = duet__store_open(&store, path, DUET__STORE_SHOW, NULL);
    duet__store_close(&store, NULL);
    return !error;
}

/* A study is killed 20 times when some run has begun; then it makes only the missing runs. */
static void test_kill(const struct duet__study *study)
{
    g_autofree char *path = path_of("kill.db");
    const struct duet__plan plan = plan_of(study, ""), told = plan_of(study, "told");
    g_autoptr(GRand) random = g_rand_new_with_seed(20);
    struct duet__outcome outcome;
    int64_t before = 0, now;
    for (int i = 0; i < 20; i++) {
        int status, runs = g_rand_int_range(random, 0, 20);
        pid_t pid;
        char byte;
        g_assert_cmpint(pipe(begun), ==, 0);
        pid = fork();
        if (pid == 0) {
            make_all(&told, path, &outcome);
            _exit(0);
        }
        close(begun[1]);
        while (runs-- > 0 && read(begun[0], &byte, 1) == 1)
            continue;
        kill(pid, SIGKILL);
        g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
        close(begun[0]);
        now = is_begun(path) ? ask(path, "SELECT count(*) FROM runs") : 0;
        g_assert_cmpint(now, >=, before); /* no stored run is lost */
        before = now;
    }
    make_all(&plan, path, &outcome);
    g_assert_cmpuint(outcome.there, ==, before);
    g_assert_cmpuint(outcome.made, ==, 2 * CELLS - before);
    check_whole(path);
    make_all(&plan, path, &outcome);
    g_assert_true(outcome.there == 2 * CELLS && !outcome.made);
}

/* A disk that is full at some size of the file gives an error, and stored rows are whole. */
static void test_full(const struct duet__study *study)
{
    g_autofree char *path = path_of("full.db");
    const struct duet__plan plan = plan_of(study, "");
    const struct rlimit small = {60000, RLIM_INFINITY};
    struct duet__outcome outcome;
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &small);
        _exit(make_runs(&plan, path, &outcome, hear()) == DUET_EIO && *heard() ? 0 : 1);
    }
    join(pid);
    make_all(&plan, path, &outcome);
    g_assert_cmpuint(outcome.made, >, 0);
    g_assert_cmpuint(outcome.there + outcome.made, ==, 2 * CELLS);
    check_whole(path);
}

static bool always(void)
{
    return true;
}

/* A cell that fails costs only itself, also where it has ended a server that makes many; it is not
   tried again unless that is wished. */
static void test_failures(const struct duet__study *study, duet__fresh_fn *fresh)
{
    static const char *const odd[] = {"dies", "ends", "fails", "room"};
    static const char *const said[] = {"signal 9", "status 3", "it has failed", "no room"};
    for (size_t i = 0; i < G_N_ELEMENTS(odd); i++) {
        g_autofree char *name = g_strconcat(odd[i], fresh ? "-fresh.db" : ".db", NULL);
        g_autofree char *path = path_of(name);
        struct duet__plan plan = plan_of(study, odd[i]);
        const bool noted = strcmp(odd[i], "room") != 0;
        struct duet__outcome outcome;
        plan.fresh = fresh;
        WORKS(make_runs(&plan, path, &outcome, hear()));
        g_assert_cmpuint(outcome.failed, ==, 2);
        g_assert_nonnull(strstr(outcome.example, said[i]));
        g_free(outcome.example);
        g_assert_cmpint(ask(path, "SELECT count(*) FROM runs WHERE error IS NULL"), ==,
                        2 * CELLS - 2);
        plan.data = (char *)(uintptr_t) "";
        make_all(&plan, path, &outcome);
        g_assert_cmpuint(outcome.made, ==, noted ? 0 : 2);
        g_assert_cmpuint(outcome.failed, ==, noted ? 2 : 0);
        plan.retry = true;
        make_all(&plan, path, &outcome);
        g_assert_cmpuint(outcome.made, ==, noted ? 2 : 0);
        check_whole(path);
    }
}

/* Parts in files of their own make the whole together; a fraction is its beginning. */
static void test_shards(const struct duet__study *study)
{
    g_autofree char *all = path_of("all.db");
    struct duet__outcome outcome;
    struct duet__plan plan = plan_of(study, "");
    for (plan.shards = 3; plan.shard < plan.shards; plan.shard++) {
        g_autofree char *name = g_strdup_printf("part-%d.db", (int)plan.shard),
                        *path = path_of(name);
        make_all(&plan, path, &outcome);
        g_assert_cmpuint(outcome.made, ==, duet__plan_runs(&plan));
        g_assert_cmpuint(merge(all, path), ==, outcome.made);
        g_assert_cmpuint(merge(all, path), ==, 0);
    }
    check_whole(all);
    plan = plan_of(study, "");
    plan.parts = 8;
    g_assert_cmpuint(duet__plan_runs(&plan), ==, 2 * CELLS / 8);
}

/* Two processes make runs into one file. */
static void test_together(const struct duet__study *study)
{
    g_autofree char *path = path_of("together.db");
    struct duet__plan plan = plan_of(study, "slow");
    struct duet__outcome outcome;
    pid_t pid = fork();
    plan.shards = 2;
    plan.shard = pid == 0;
    make_all(&plan, path, &outcome);
    if (pid == 0)
        _exit(0);
    join(pid);
    check_whole(path);
}

/* Rows of failed runs give way to those of others that have not failed. */
static void test_merge_failed(const struct duet__study *study)
{
    g_autofree char *bad = path_of("fails-2.db"), *good = path_of("good.db");
    struct duet__plan plan = plan_of(study, "fails");
    struct duet__outcome outcome;
    make_all(&plan, bad, &outcome);
    plan.data = (char *)(uintptr_t) "";
    make_all(&plan, good, &outcome);
    g_assert_cmpuint(merge(good, bad), ==, 0);
    g_assert_cmpuint(merge(bad, good), ==, 2);
    check_whole(bad);
    check_whole(good);
}

/* A file in which no run has a result differs in none. */
static void test_merge_nothing(const struct duet__study *study)
{
    g_autofree char *none = path_of("none.db"), *whole = path_of("good.db");
    const struct duet__plan plan = plan_of(study, "refuses");
    struct duet__outcome outcome;
    make_all(&plan, none, &outcome);
    g_assert_cmpuint(merge(whole, none), ==, 0);
    check_whole(whole);
}

/* Other files, and files of a later version, are refused and stay as they are. */
static void test_others(void)
{
    static const char *const statements[] = {
        "CREATE TABLE a(b)",
        "CREATE TABLE a(b); PRAGMA application_id = 0x64756574; PRAGMA user_version = 3",
        NULL, /* a text */
    };
    static const char *const said[] = {"no file of results", "another version",
                                       "no file of results"};
    g_autofree char *path = path_of("other.db");
    for (size_t i = 0; i < G_N_ELEMENTS(statements); i++) {
        g_autofree char *before = NULL, *after = NULL;
        struct duet__store store;
        gsize length, left;
        sqlite3 *database;
        g_unlink(path);
        if (statements[i]) {
            g_assert_cmpint(sqlite3_open(path, &database), ==, SQLITE_OK);
            g_assert_cmpint(sqlite3_exec(database, statements[i], NULL, NULL, NULL), ==, SQLITE_OK);
            sqlite3_close(database);
        } else {
            g_assert_true(g_file_set_contents(path, "a text of somebody", -1, NULL));
        }
        g_assert_true(g_file_get_contents(path, &before, &length, NULL));
        for (int use = DUET__STORE_SHOW; use <= DUET__STORE_WRITE; use++) {
            FAILS(duet__store_open(&store, path, use, hear()), DUET_EINVAL, said[i]);
            duet__store_close(&store, NULL);
        }
        g_assert_true(g_file_get_contents(path, &after, &left, NULL));
        g_assert_cmpmem(before, length, after, left);
    }
}

/* The table tells the lead from makespans of two policies with three seeds. */
static void test_answer(void)
{
    static const double spans[2][3] = {{1.0, 2.0, 3.0}, {1.1, 2.1, 3.4}};
    struct duet__study *study = duet__study_new();
    struct duet__store store;
    g_autofree char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);
    WORKS(duet__study_add(study->products->pdata[0], duet__option_find("policy", DUET__IN_STUDY),
                          "ws,heft", hear()));
    WORKS(duet__study_number(study, hear()));
    WORKS(duet__store_open(&store, NULL, DUET__STORE_WRITE, hear()));
    for (uint64_t cell = 0; cell < 2; cell++)
        for (uint64_t i = 0; i < 6; i++) { /* each run is made by two commands: it counts once */
            const uint64_t rep = i % 3;
            const char *name = i < 3 ? "simulate" : "simulate --gpus 8";
            g_autofree char *command = duet__cell_command(study, name, cell, rep + 1);
            const struct duet__run_key key = {command, 0, "1", "", "", "a", NULL};
            g_autofree char *row = g_strdup_printf(
                "{\"seed\": %d, \"makespan_s\": %g, \"gflops\": %g, \"best_s\": %g}", (int)rep + 1,
                spans[cell][rep], 10 / spans[cell][rep], spans[cell][rep] / 2);
            WORKS(duet__store_put(&store, &key, study->products->pdata[0], cell, row, hear()));
        }
    WORKS(duet__study_show(stream, &store, NULL, false, hear()));
    g_assert_cmpint(duet__study_show(stream, &store, "tile", false, hear()), ==, DUET_EINVAL);
    fclose(stream);
    /* differences of 5, 5 and 20 % of the mean: 10 % and t(0.975, 2) = 4.303 times 5 % */
    g_assert_nonnull(strstr(text, "ws          2.0000"));
    g_assert_nonnull(strstr(text, "10.00 +-21.51  heft    1 within noise"));
    g_assert_nonnull(strstr(text, "-10.00 +-21.51  ws      within noise"));
    g_assert_nonnull(strstr(text, "5.0000     50.0"));
    WORKS(duet__store_close(&store, hear()));
    duet__study_free(study);
}

int main(int argc, char **argv)
{
    struct duet__study *study = make();
    folder = new_folder();
    test_kill(study);
    test_full(study);
    test_failures(study, NULL);
    test_failures(study, always);
    test_shards(study);
    test_together(study);
    test_merge_failed(study);
    test_merge_nothing(study);
    test_others();
    test_answer();
    duet__study_free(study);
    drop_folder(&folder);
    return 0;
}
