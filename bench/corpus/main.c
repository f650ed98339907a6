/* SPDX-License-Identifier: Apache-2.0 */
/* The command line, and names of cases. bench/corpus.py calls it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/corpus/corpus.h"

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
