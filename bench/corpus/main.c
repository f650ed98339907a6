/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the command line and names of cases, and records runs, for bench/corpus.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/corpus/corpus.h"
#include "calibrate/calibrate.h"
#include "runs/rounds.h"

/* ------------------------------------------------------------------------------------------- */
/* Records runs of all cases, round after round. */

enum { RUNS_MOST = 3 };           /* of a case in a round */
static const double TURN_S = 0.1; /* after this time no further run is made */

/* A recording of a corpus under way. */
struct work {
    struct duet__monitor monitor;
    struct duet__rounds rounds;
    GHashTable *known; /* problems that were written */
};

/* Makes the problem of a case, with its data. */
static int make_problem(struct work *work, const struct corpus_case *of,
                        struct duet__problem *problem, struct duet_message *message)
{
    const struct duet__workload *workload = duet__workload_find(of->workload);
    int error;
    if (!workload || !workload->generate)
        return duet_fail(message, DUET_EINVAL, "no workload '%s' that computes", of->workload);
    *problem = (struct duet__problem){.n = of->n, .tile = of->tile, .precision = 'd', .seed = 1};
    error = workload->check(problem, message);
    return error ? error : duet__rounds_data(&work->rounds, 0, workload, problem, message);
}

static void put(struct work *work, const struct corpus_run *run)
{
    const struct corpus_case *of = &run->of;
    g_autofree char *name = g_strdup_printf("%s:%" G_GUINT64_FORMAT ":%" G_GUINT64_FORMAT,
                                            of->workload, of->n, of->tile);
    if (!g_hash_table_contains(work->known, name)) {
        corpus_put_problem(stdout, of, &run->recording);
        g_hash_table_add(work->known, g_steal_pointer(&name));
    }
    corpus_put_run(stdout, run);
}

/* Makes a warm-up, then some runs. */
static int take_turn(struct work *work, const struct corpus_case *of, struct duet_message *message)
{
    struct duet__request request;
    struct duet__run runs[RUNS_MOST] = {0};
    struct corpus_run run = {.of = *of, .round = (unsigned)work->rounds.round};
    struct duet__session session = {.request = &request,
                                    .policy = of->policy,
                                    .monitor = &work->monitor,
                                    .quiet = true};
    struct duet__disturbance load;
    size_t count = 0;
    double start_s;
    int error = make_problem(work, of, &session.problem, message);
    duet__request_init(&request);
    request.workload = duet__workload_find(of->workload);
    request.records = DUET_RECORDS_ACCESSES;
    request.config.cpus = (int)of->cpus;
    request.config.gpus = 0;
    request.seed = 1 + work->rounds.round;
    if (!error)
        error = duet__session_run(&session, NULL, DUET_RECORDS_NONE, message);
    duet__rounds_look(&work->rounds);
    start_s = duet__clock_s();
    while (!error && count < RUNS_MOST && (!count || duet__clock_s() - start_s < TURN_S)) {
        error = duet__session_run(&session, &runs[count], DUET_RECORDS_ACCESSES, message);
        count += !error;
    }
    load = duet__rounds_load(&work->rounds);
    duet__session_close(&session);
    run.at_s = (double)g_get_real_time() * 1e-6 - (duet__clock_s() - start_s);
    run.others = load.others;
    run.stolen = load.stolen;
    for (size_t i = 0; i < count; i++) {
        run.recording = runs[i].recording;
        run.recording.makespan_s = runs[i].stats.makespan_s;
        put(work, &run);
        duet__run_fini(&runs[i]);
    }
    duet__request_fini(&request);
    return error;
}

static int corpus_record(unsigned rounds, char **cases)
{
    struct work work = {0};
    struct duet_message message = {""};
    int error = 0;
    work.known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    corpus_put_head(stdout, duet__cache_find());
    duet__monitor_start(&work.monitor, false, 0, 0);
    duet__rounds_init(&work.rounds);
    work.rounds.cases = g_strv_length(cases);
    while (work.rounds.cases && work.rounds.round < rounds && !error) {
        const char *text = cases[duet__rounds_begin(&work.rounds)];
        struct corpus_case of;
        error = corpus_case_read(text, &of)
                    ? take_turn(&work, &of, &message)
                    : duet_fail(&message, DUET_EINVAL,
                                "'%s' is no case: WORKLOAD:N:TILE:WORKERS:POLICY", text);
        (void)duet__rounds_next(&work.rounds);
    }
    duet__rounds_fini(&work.rounds);
    duet__monitor_stop(&work.monitor);
    g_hash_table_unref(work.known);
    if (!error && (fflush(stdout) || ferror(stdout)))
        error = duet_fail(&message, DUET_EIO, "the runs cannot be written");
    if (error)
        (void)fprintf(stderr, "corpus: %s\n", message.text);
    return error == DUET_EINVAL ? 2 : error != 0;
}

/* ------------------------------------------------------------------------------------------- */
/* The command line, and names of cases                                                         */

bool corpus_case_read(const char *text, struct corpus_case *out)
{
    g_auto(GStrv) words = g_strsplit(text, ":", -1);
    guint64 cpus = 0;
    bool read = g_strv_length(words) == 5 &&
                g_ascii_string_to_unsigned(words[1], 10, 1, G_MAXUINT32, &out->n, NULL) &&
                g_ascii_string_to_unsigned(words[2], 10, 1, G_MAXUINT32, &out->tile, NULL) &&
                g_ascii_string_to_unsigned(words[3], 10, 1, 1024, &cpus, NULL) &&
                g_strlcpy(out->workload, words[0], DUET_NAME_MAX) < DUET_NAME_MAX &&
                g_strlcpy(out->policy, words[4], DUET_NAME_MAX) < DUET_NAME_MAX;
    out->cpus = (unsigned)cpus;
    return read;
}

int main(int argc, char **argv)
{
    guint64 rounds = 0, simulations = 0;
    if (argc > 3 && !strcmp(argv[1], "record") &&
        g_ascii_string_to_unsigned(argv[2], 10, 1, 1000, &rounds, NULL))
        return corpus_record((unsigned)rounds, argv + 3);
    const bool intervals = argc > 1 && !strcmp(argv[1], "intervals");
    if (argc == 5 && (intervals || !strcmp(argv[1], "compare")) &&
        g_ascii_string_to_unsigned(argv[2], 10, 1, CORPUS_SIMULATIONS, &simulations, NULL))
        return corpus_compare((unsigned)simulations, intervals, argv[3], argv[4]);
    (void)fprintf(stderr,
                  "usage: corpus record ROUNDS WORKLOAD:N:TILE:WORKERS:POLICY...\n"
                  "       corpus compare|intervals SIMULATIONS PLATFORM.json WORKLOAD <RUNS\n");
    return 2;
}
