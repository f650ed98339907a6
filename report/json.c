/* SPDX-License-Identifier: Apache-2.0 */
/* The report for programs: JSON (schema 1) and CSV. */
#include "report/report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/output.h"

static void key(FILE *stream, const char *name)
{
    fprintf(stream, "\"%s\": ", name);
}

static void put_number(FILE *stream, const char *name, double value)
{
    key(stream, name);
    duet_write_json_number(stream, value);
}

static void put_string(FILE *stream, const char *name, const char *value)
{
    key(stream, name);
    duet_write_json_string(stream, value);
}

static void put_problem(FILE *stream, const struct duet_report *report,
                        const struct duet_policy_runs *policy, uint64_t tasks)
{
    const char precision[] = {report->precision, 0};

    put_string(stream, "world", report->world);
    fputs(", ", stream);
    put_string(stream, "workload", report->workload);
    fprintf(stream, ", \"n\": %" PRIu64 ", \"tile\": %" PRIu64 ", ", report->n, report->tile);
    put_string(stream, "precision", precision);
    fputs(", ", stream);
    put_string(stream, "settings", report->settings);
    fputs(",\n     ", stream);
    put_string(stream, "platform", report->platform);
    fprintf(stream, ", \"cpus\": %u, \"gpus\": %u, ", duet_report_cpus(report->machine),
            duet_report_gpus(report->machine));
    put_string(stream, "policy", policy->policy);
    fprintf(stream, ", \"set_arch\": %s, \"tasks\": %" PRIu64 ",\n     ",
            report->set_arch ? "true" : "false", tasks);
}

static void put_makespan(FILE *stream, const struct duet_policy_runs *policy,
                         const struct duet_policy_summary *summary)
{
    key(stream, "makespan_s");
    putc('{', stream);
    put_number(stream, "median", summary->makespan_s);
    fputs(", ", stream);
    put_number(stream, "mean", summary->mean_s);
    fputs(", ", stream);
    put_number(stream, "ci95_low", summary->ci95_low_s);
    fputs(", ", stream);
    put_number(stream, "ci95_high", summary->ci95_high_s);
    fputs(",\n      \"values\": [", stream);
    for (size_t i = 0; i < policy->run_count; i++) {
        if (i)
            fputs(", ", stream);
        duet_write_json_number(stream, policy->runs[i].stats.makespan_s);
    }
    fputs("]},\n     ", stream);
}

/* What only runs on this machine have. */
static void put_real(FILE *stream, const struct duet_report_real *real)
{
    fputs(",\n     \"emulation\": ", stream);
    if (real->emulation == DUET_EMULATION_FREE) {
        fputs("{\"kind\": \"free\"}", stream);
    } else if (real->emulation == DUET_EMULATION_PACED) {
        fputs("{\"kind\": \"paced\", ", stream);
        put_number(stream, "scale", real->scale);
        putc('}', stream);
    } else {
        fputs("null", stream);
    }
    fputs(", \"lose\": ", stream);
    if (real->lose)
        duet_write_json_string(stream, real->lose);
    else
        fputs("null", stream);
    fprintf(stream, ",\n     \"cores\": %u, \"warmups\": %zu, \"reps_wanted\": %zu, ", real->cores,
            real->warmups, real->reps);
    put_string(stream, "bounds_from",
               real->emulation == DUET_EMULATION_PACED ? "platform" : "measured");
}

static void put_verification(FILE *stream, const struct duet_report_real *real,
                             const struct duet_policy_runs *policy,
                             const struct duet_policy_summary *summary)
{
    fputs(",\n     \"verification\": ", stream);
    if (!real->formula) {
        fputs("null", stream);
        return;
    }
    putc('{', stream);
    put_string(stream, "formula", real->formula);
    fputs(", ", stream);
    put_number(stream, "threshold", real->threshold);
    fprintf(stream, ", \"passed\": %s,\n      \"residuals\": [",
            summary->failed ? "false" : "true");
    for (size_t i = 0; i < policy->run_count; i++) {
        if (i)
            fputs(", ", stream);
        duet_write_json_number(stream, policy->runs[i].residual);
    }
    fputs("]}", stream);
}

static void put_policy(FILE *stream, const struct duet_report *report,
                       const struct duet_policy_runs *policy,
                       const struct duet_policy_summary *summary)
{
    putc('{', stream);
    put_problem(stream, report, policy, summary->tasks);
    put_makespan(stream, policy, summary);
    put_number(stream, "gflops", summary->gflops);
    fprintf(stream,
            ",\n     \"bytes\": {\"host_to_device\": %" PRIu64 ", \"device_to_host\": %" PRIu64
            ", \"device_to_device\": %" PRIu64 "},\n     ",
            summary->bytes_to_device, summary->bytes_to_host, summary->bytes_between);
    put_number(stream, "cache_hit_ratio", summary->hit_ratio);
    fputs(", ", stream);
    put_number(stream, "idle_share", summary->idle_share);
    fputs(",\n     \"bounds_s\": {", stream);
    put_number(stream, "critical_path", summary->critical_path_s);
    fputs(", ", stream);
    put_number(stream, "area", summary->area_s);
    fputs("}, ", stream);
    key(stream, "wall_s");
    if (report->show_wall)
        duet_write_json_number(stream, summary->wall_s);
    else
        fputs("null", stream);
    if (report->real) {
        put_real(stream, report->real);
        put_verification(stream, report->real, policy, summary);
    } else if (report->without) {
        fputs(", ", stream);
        put_string(stream, "without", report->without);
    } else {
        fputs(", \"without\": null", stream);
    }
    putc('}', stream);
}

int duet_report_write_json(FILE *stream, const struct duet_report *report,
                           struct duet_message *message)
{
    fputs("{\"schema\": 1,\n ", stream);
    put_string(stream, "command", report->command);
    if (report->real)
        fprintf(stream, ",\n \"interrupted\": %s", report->real->interrupted ? "true" : "false");
    fputs(",\n \"runs\": [", stream);
    for (size_t i = 0; i < report->policy_count; i++) {
        struct duet_policy_summary summary;
        int result = duet_report_summarise(report, &report->policies[i], &summary, message);

        if (result)
            return result;
        fputs(i ? ",\n    " : "\n    ", stream);
        put_policy(stream, report, &report->policies[i], &summary);
    }
    fputs("\n ]}\n", stream);
    return 0;
}

/* A text cell: quoted where it has to be (RFC 4180). */
static void put_text(FILE *stream, const char *text)
{
    if (!text[strcspn(text, ",\"\r\n")]) {
        fputs(text, stream);
        return;
    }
    putc('"', stream);
    for (const char *at = text; *at; at++) {
        if (*at == '"')
            putc('"', stream);
        putc(*at, stream);
    }
    putc('"', stream);
}

/* A number cell after a comma; empty where there is no number. */
static void put_value(FILE *stream, double value)
{
    putc(',', stream);
    if (!isnan(value))
        duet_write_json_number(stream, value);
}

static void put_real_cells(FILE *stream, const struct duet_report_real *real,
                           const struct duet_run *run)
{
    static const char *const emulations[] = {"", "free", "paced"};

    fprintf(stream, ",%s", emulations[real->emulation]);
    put_value(stream, real->emulation == DUET_EMULATION_PACED ? real->scale : NAN);
    putc(',', stream);
    put_text(stream, real->lose ? real->lose : "");
    fprintf(stream, ",%u,%zu,%s", real->cores, real->warmups, real->interrupted ? "true" : "false");
    if (real->formula && !isfinite(run->residual))
        fputs(",inf", stream); /* an empty cell is a run that was not verified */
    else
        put_value(stream, real->formula ? run->residual : NAN);
    put_value(stream, real->formula ? real->threshold : NAN);
}

static void put_run(FILE *stream, const struct duet_report *report,
                    const struct duet_policy_runs *policy, size_t rep)
{
    const struct duet_run *run = &policy->runs[rep];

    put_text(stream, report->world);
    putc(',', stream);
    put_text(stream, report->workload);
    fprintf(stream, ",%" PRIu64 ",%" PRIu64 ",%c,", report->n, report->tile, report->precision);
    put_text(stream, report->platform);
    fprintf(stream, ",%u,%u,", duet_report_cpus(report->machine),
            duet_report_gpus(report->machine));
    put_text(stream, policy->policy);
    fprintf(stream, ",%s,%zu,%" PRIu64 ",%" PRIu64, report->set_arch ? "true" : "false", rep,
            run->seed, run->stats.tasks);
    put_value(stream, run->stats.makespan_s);
    put_value(stream, duet_run_gflops(report, run));
    fprintf(stream, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, run->stats.bytes_to_device,
            run->stats.bytes_to_host, run->stats.bytes_between);
    put_value(stream, duet_run_hit_ratio(run));
    put_value(stream, duet_run_idle_share(report, run));
    put_value(stream, run->critical_path_s);
    put_value(stream, run->area_s);
    if (report->show_wall)
        put_value(stream, run->wall_s);
    if (report->real)
        put_real_cells(stream, report->real, run);
    putc('\n', stream);
}

int duet_report_write_csv(FILE *stream, const struct duet_report *report,
                          struct duet_message *message)
{
    (void)message;
    fprintf(stream,
            "world,workload,n,tile,precision,platform,cpus,gpus,policy,set_arch,rep,seed,tasks,"
            "makespan_s,gflops,host_to_device_bytes,device_to_host_bytes,device_to_device_bytes,"
            "cache_hit_ratio,idle_share,critical_path_s,area_s%s%s\n",
            report->show_wall ? ",wall_s" : "",
            report->real ? ",emulation,scale,lose,cores,warmups,interrupted,residual,threshold"
                         : "");
    for (size_t i = 0; i < report->policy_count; i++)
        for (size_t rep = 0; rep < report->policies[i].run_count; rep++)
            put_run(stream, report, &report->policies[i], rep);
    return 0;
}
