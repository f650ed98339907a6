/* SPDX-License-Identifier: Apache-2.0 */
/* One file that is compared: a trace with its account, or a report with its runs. */
#include <string.h>

#include "cli/compare.h"
#include "report/json_reader.h"
#include "report/report.h"

static int read_trace(struct duet__input *input, const char *text, size_t length, const char *path,
                      struct duet_message *message)
{
    struct duet_message why = {""};
    int error = duet_trace_file_parse(text, length, path, &input->trace, message);

    if (error)
        return error;
    input->makespan_s = input->trace.recording.makespan_s;
    error = duet_account_make(&input->trace.recording, &input->account, &why);
    if (error)
        return duet_fail(message, error, "%.300s: %s", path, why.text);
    if (!(input->makespan_s > 0))
        return duet_fail(message, DUET_EPARSE, "%.300s: its kernels take no time", path);
    return 0;
}

int duet__input_read(struct duet__input *input, char letter, const char *path,
                     struct duet_message *message)
{
    char *text = NULL;
    size_t length = 0;
    int error = duet__reader_load(path, &text, &length, message);

    if (error)
        return error;
    input->name = g_strdup_printf("%c: %s", letter, path);
    input->kind = duet_file_kind(text, length);
    if (input->kind == DUET_FILE_TRACE)
        error = read_trace(input, text, length, path, message);
    else
        error = duet_runs_file_parse(text, length, path, &input->runs, message);
    g_free(text);
    return error;
}

void duet__input_fini(struct duet__input *input)
{
    g_free(input->name);
    duet_runs_file_fini(&input->runs);
    duet_account_fini(&input->account);
    duet_trace_file_fini(&input->trace);
    *input = (struct duet__input){0};
}

char *duet__input_place(const struct duet__input *input)
{
    GString *text;

    if (input->kind == DUET_FILE_TRACE) {
        char *resources = duet_report_resources(&input->trace.machine);
        char *place = g_strdup_printf("%s, %s", input->trace.machine.name, resources);

        g_free(resources);
        return place;
    }
    text = g_string_new(input->runs.runs[0].platform);
    for (size_t i = 1; i < input->runs.count; i++)
        if (strcmp(input->runs.runs[i].platform, input->runs.runs[0].platform) != 0) {
            g_string_append(text, " and others");
            break;
        }
    return g_string_free(text, FALSE);
}
