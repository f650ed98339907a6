/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of ranks without MPI: a run that kills every worker, a rank that can do nothing, and sound
   ones. */
#include "study/study.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib/gstdio.h>

enum { CELLS = 200, RANKS = 4, FATAL = 7 };

static int ends[2]; /* in place of MPI */
static int gone[2]; /* a pipe that ends when the rank that can do nothing has ended */

int duet__mpi_share(unsigned count, void *data, size_t bytes, unsigned *near,
                    struct duet_message *message)
{
    bool good = message || duet__receive(ends[0], data, bytes);
    *near = count;
    for (unsigned i = 1; i < count && message; i++) /* rank 0 wants one */
        good &= duet__send(ends[1], data, bytes);
    return good ? 0 : DUET_EIO;
}

static void execute(uint64_t job, FILE *result, void *data)
{
    char nothing;
    if (job == FATAL)
        raise(SIGKILL);
    if (!job)
        g_assert_cmpint(read(gone[0], &nothing, 1), ==, 0);
    fprintf(result, "{\"seed\": 1, \"makespan_s\": %d.5}\n", (int)job);
}

static struct duet__study *make(void)
{
    struct duet__study *study = duet__study_new();
    g_assert_cmpint(duet__study_add(study->products->pdata[0],
                                    duet__option_find("n", DUET__IN_STUDY), "1..200", NULL),
                    ==, 0);
    g_assert_cmpint(duet__study_number(study, NULL), ==, 0);
    return study;
}

int main(int argc, char **argv)
{
    g_autofree char *path = g_strdup_printf("%s/duet-ranks-%d.db", g_get_tmp_dir(), (int)getpid());
    struct duet__study *study = make();
    struct duet__ranks ranks = {.count = RANKS};
    const struct duet__plan plan = {.study = study,
                                    .command = "simulate",
                                    .version = "1",
                                    .seed = 1,
                                    .reps = 1,
                                    .part = 1,
                                    .parts = 1,
                                    .shards = 1,
                                    .execute = execute,
                                    .ranks = &ranks};
    struct duet__progress progress = {0};
    struct duet__outcome outcome;
    struct duet__store store;
    struct duet_message trouble = {""}, message = {""};
    int status;
    g_assert_cmpint(pipe(ends) + pipe(gone), ==, 0);
    g_strlcpy(trouble.text, "it has no file", sizeof trouble.text);
    for (ranks.rank = 1; ranks.rank < RANKS; ranks.rank++) {
        if (!fork()) {
            duet__ranks_serve(&plan, &trouble);
            _exit(EXIT_SUCCESS);
        }
        *trouble.text = 0;
        close(gone[1]);
    }
    ranks.rank = 0;
    g_assert_cmpint(duet__ranks_meet(&ranks, &message), ==, 0);
    g_assert_cmpint(duet__store_open(&store, path, DUET__STORE_WRITE, &message), ==, 0);
    if (duet__study_make(&plan, &store, &progress, &outcome, &message))
        g_error("%s", message.text);
    g_assert_cmpuint(outcome.made, ==, CELLS);
    g_assert_cmpuint(outcome.failed, ==, 1);
    g_assert_nonnull(strstr(outcome.example, "its process has died: killed by signal 9"));
    g_assert_cmpuint(outcome.lost, <=, 2);
    g_assert_cmpstr(ranks.trouble.text, ==, "rank 1: it has no file");
    close(ranks.listening);
    while (wait(&status) > 0) /* the ranks end by themselves */
        g_assert_cmpint(status, ==, 0);
    g_assert_cmpint(duet__store_close(&store, &message), ==, 0);
    g_free(outcome.example);
    duet__study_free(study);
    g_remove(path);
    return 0;
}
