/* SPDX-License-Identifier: Apache-2.0 */
/* The report of `duet tune`. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/job.h"
#include "study/tune.h"
#include "base/files.h"
#include "base/json.h"
#include "base/table.h"

enum { SHOWN = 5 };

static const char *const levels[DUET__RUN] = {"n/8", "n/4", "n/2", "n", "drawn", "default"};

/* Returns the value that a setting has of a factor, by its name; NULL: none. */
static const char *value_of(const struct duet__tune *tune, const struct duet__tuned *tuned,
                            const char *factor)
{
    const struct duet__product *product = duet__study_product(tune->study, tuned->cell);
    const int place = duet__factor_place(product, factor);
    return place < 0 ? NULL : duet__study_value(product, tuned->cell, (guint)place);
}

/* Returns the variables of the choice, "DUET_POLICY=dmdas", NULL-ended. */
static char **environment_of(const struct duet__tune *tune)
{
    const struct duet__product *product = duet__study_product(tune->study, tune->chosen->cell);
    const char *tile = value_of(tune, tune->chosen, "tile");
    struct duet_config config;
    char **variables;
    duet_config_init(&config);
    for (guint f = 0; f < product->factors->len; f++) {
        const struct duet__factor *factor = product->factors->pdata[f];
        const struct duet__option *option =
            duet__tune_chosen(factor->name) ? duet__option_find(factor->name, DUET__IN_ENVIRONMENT)
                                            : NULL;
        /* each value was checked when it was taken */
        if (option && duet__option_set(option, &config, factor->name,
                                       duet__study_value(product, tune->chosen->cell, f), NULL))
            continue;
    }
    variables = duet__config_environment(&config, g_new0(char *, 1));
    return tile ? g_environ_setenv(variables, "DUET_TILE", tile, TRUE) : variables;
}

static double error_of(const struct duet__tuned *tuned)
{
    return tuned->predicted_s / tuned->measured_s - 1;
}

/* Returns the number of best settings that are shown. */
static guint shown(const struct duet__tune *tune)
{
    return MIN(tune->found->len, MAX(SHOWN, tune->verified));
}

/* True if it is not known which kernel times are extrapolated: sizes of kernels are not known of
   programs and of task graphs. */
static bool is_unsure(const struct duet__tune *tune)
{
    return !tune->request.workload &&
           duet__factor_place(duet__study_product(tune->study, tune->usual.cell), "extrapolate") >=
               0;
}

/* True if some kernel times of the setting are extrapolated. */
static bool is_beyond(const struct duet__tune *tune, const struct duet__tuned *tuned)
{
    return duet__tune_beyond(tune, value_of(tune, tuned, "tile"),
                             value_of(tune, tuned, "param block"));
}

/* ------------------------------------------------------------------------------------------- */
/* For people                                                                                   */

/* Returns the value of a factor for people. */
static const char *shown_value(const struct duet__tune *tune, const struct duet__tuned *tuned,
                               const struct duet__factor *factor)
{
    const char *value = value_of(tune, tuned, factor->name);
    return value ? duet__factor_value(factor, value) : !strcmp(factor->name, "policy") ? "ws" : "-";
}

/* True if a setting is the default in all that is shown of it. */
static bool is_usual(const struct duet__tune *tune, const struct duet__tuned *tuned)
{
    for (guint i = 0; i < tune->varied->len; i++)
        if (strcmp(shown_value(tune, tuned, tune->varied->pdata[i]),
                   shown_value(tune, &tune->usual, tune->varied->pdata[i])) != 0)
            return false;
    return true;
}

static void put_row(struct duet__table *table, const struct duet__tune *tune,
                    const struct duet__tuned *tuned)
{
    const double s = tuned->predicted_s, rate = tuned->flops > 0 ? tuned->flops / s / 1e9 : NAN;
    const bool usual = is_usual(tune, tuned);
    duet__table_say(table, tuned != tune->chosen ? usual ? "default" : ""
                           : usual               ? "best, default"
                                                 : "best");
    for (guint i = 0; i < tune->varied->len; i++)
        duet__table_say(table, shown_value(tune, tuned, tune->varied->pdata[i]));
    duet__table_print(table, "%.*f%s\t%.*f\t%.*f\t%.*f\t%.1f", duet__decimals(s, 5), s,
                      is_beyond(tune, tuned) ? "*" : "", duet__decimals(s, 5), tuned->low_s,
                      duet__decimals(s, 5), tuned->high_s, duet__decimals(rate, 5), rate,
                      tuned->best_s > 0 ? 100 * tuned->best_s / s : NAN);
    if (tune->run_reps)
        duet__table_print(table, "%.*f\t%+.1f", duet__decimals(tuned->measured_s, 5),
                          tuned->measured_s, 100 * error_of(tuned));
}

static void put_table(FILE *stream, const struct duet__tune *tune)
{
    g_autoptr(GString) sides = g_string_new("l");
    struct duet__table table;
    for (guint i = 0; i < tune->varied->len; i++)
        g_string_append_c(sides, duet__factor_is_number(tune->varied->pdata[i]) ? 'r' : 'l');
    g_string_append(sides, tune->run_reps ? "rrrrrrr" : "rrrrr");
    duet__table_init(&table, sides->str);
    table.page = DUET__WIDE_PAGE;
    duet__table_say(&table, "");
    for (guint i = 0; i < tune->varied->len; i++)
        duet__table_say(&table, ((const struct duet__factor *)tune->varied->pdata[i])->name);
    duet__table_print(&table, "predicted s\tlow s\thigh s\tGFlop/s\tbound %%");
    if (tune->run_reps)
        duet__table_print(&table, "measured s\terror %%");
    for (guint i = 0; i < shown(tune); i++) {
        const struct duet__tuned *one = &g_array_index(tune->found, struct duet__tuned, i);
        if (one == tune->chosen || !is_usual(tune, one))
            put_row(&table, tune, one);
    }
    if (tune->chosen == &tune->usual || !is_usual(tune, tune->chosen))
        put_row(&table, tune, &tune->usual);
    duet__table_put(&table, stream, 0);
}

/* Prints what was tried, "1344 settings: 1344 simulations of n/8, 168 of n/4, ... in 25 s". */
static void put_tried(FILE *stream, const struct duet__tune *tune)
{
    const uint64_t settings = tune->settings - tune->repeated;
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_append_printf(text, "%" PRIu64 " %s; simulations:", settings,
                           settings == 1 ? "setting" : "settings");
    for (int i = 0; i < DUET__RUN; i++)
        if (tune->made[i])
            g_string_append_printf(text, " %" PRIu64 " (%s)", tune->made[i], levels[i]);
    g_string_append_printf(text, " in %.1f s", tune->search_s);
    if (tune->cut)
        g_string_append(text, ": cut short, a longer --budget may find better");
    if (tune->barred)
        g_string_append_printf(text,
                               "; left out: %" PRIu64 " whose blocks have no measured times "
                               "(--extrapolate includes them)",
                               tune->barred);
    if (tune->left_out)
        g_string_append_printf(text, "; not possible: %" PRIu64 ", such as %s", tune->failed,
                               tune->left_out);
    duet__put_wrapped(stream, text->str, 4);
}

/* Prints how sure the choice is. */
static void put_verdict(FILE *stream, const struct duet__tune *tune)
{
    const struct duet__tuned *chosen = tune->chosen, *usual = &tune->usual;
    const bool runs = chosen->measured_s > 0;
    const double own = runs ? chosen->measured_s : chosen->predicted_s;
    bool beyond = is_beyond(tune, usual);
    const double other = runs ? usual->measured_s : usual->predicted_s;
    if (is_usual(tune, chosen))
        fprintf(stream, "nothing was found that is faster than the default\n");
    else if (other > 0)
        fprintf(stream, "%s %.1f %% %s time than the default\n",
                runs ? "measured:" : "predicted:", 100 * fabs(1 - own / other),
                own > other ? "more" : "less");
    if (usual->high_s >= 0)
        fprintf(stream, "low to high: interval of later runs (%" PRIu64 " drawn machines)\n",
                usual->reps);
    if (tune->lead >= 0 && isnan(tune->lead_half))
        fprintf(stream, "on each drawn machine the first is %.2f %% before the second\n",
                100 * tune->lead);
    else if (tune->lead >= 0)
        fprintf(stream,
                "on %" PRIu64 " of %" PRIu64 " drawn machines the first is the best, by %.2f "
                "+-%.2f %% before the second: %s\n",
                tune->wins, tune->draws, 100 * tune->lead, 100 * tune->lead_half,
                tune->lead > tune->lead_half ? "settled" : "not settled");
    if (runs)
        fprintf(stream, "measured: medians of %zu runs; error: of the prediction\n",
                tune->run_reps);
    else if (!tune->here)
        fprintf(stream, "not verified: %s is not this machine\n", tune->platform);
    for (guint i = 0; i < shown(tune); i++)
        beyond |= is_beyond(tune, &g_array_index(tune->found, struct duet__tuned, i));
    if (beyond)
        fprintf(stream, "*: kernel times are extrapolated beyond what was measured\n");
    if (is_unsure(tune))
        fprintf(stream, "--extrapolate: some kernel times may be extrapolated\n");
    if (tune->estimated)
        duet__put_wrapped(stream, "estimated, not measured: some kernel times (duet list kernels)",
                          4);
}

/* Prints the workload's parameters that have no values to choose among. */
static void put_unsearched(FILE *stream, const struct duet__tune *tune)
{
    const struct duet__workload *workload = tune->request.workload;
    const struct duet__parameter *one = workload ? workload->parameters : NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    for (; one && one->name; one++) {
        g_autofree char *factor = g_strconcat("param ", one->name, NULL);
        if (duet__factor_place(tune->study->products->pdata[DUET__WHOLE], factor) < 0)
            g_string_append_printf(text, "%s%s", text->len ? ", " : "not searched: --param ",
                                   one->name);
    }
    if (text->len)
        fprintf(stream, "%s (NAME=A,B compares values; duet list workloads)\n", text->str);
}

static void print(FILE *stream, const struct duet__tune *tune)
{
    g_autofree char *command =
        duet__cell_command(tune->study, "simulate", tune->chosen->cell, tune->plan->seed);
    if (tune->calibrated)
        fprintf(stream, "%s\n", tune->calibrated);
    put_tried(stream, tune);
    putc('\n', stream);
    put_table(stream, tune);
    putc('\n', stream);
    put_verdict(stream, tune);
    put_unsearched(stream, tune);
    if (!tune->calibrated) /* nobody has that file afterwards */
        fprintf(stream, "%s\n", command);
    putc('\n', stream);
}

/* ------------------------------------------------------------------------------------------- */
/* For programs                                                                                 */

static void put_tuned(struct duet__json_writer *json, const char *key,
                      const struct duet__tune *tune, const struct duet__tuned *tuned)
{
    const struct duet__product *product = duet__study_product(tune->study, tuned->cell);
    duet__json_begin(json, key, '{');
    duet__json_begin(json, "settings", '{');
    for (guint f = 0; f < product->factors->len; f++) {
        const struct duet__factor *factor = product->factors->pdata[f];
        if (duet__tune_chosen(factor->name))
            duet__json_print(json, "%s: %s", factor->column,
                             duet__factor_value(factor,
                                                duet__study_value(product, tuned->cell, f)));
    }
    duet__json_print(json,
                     "}\n   predicted_s: %g, low_s: %g, high_s: %g, reps: %" PRIu64
                     ", gflops: %g, bound_s: %g",
                     tuned->predicted_s, tuned->low_s, tuned->high_s, tuned->reps,
                     tuned->flops > 0 ? tuned->flops / tuned->predicted_s / 1e9 : NAN,
                     tuned->best_s > 0 ? tuned->best_s : NAN);
    duet__json_put_digits(json, "extrapolated",
                          is_unsure(tune)          ? NULL
                          : is_beyond(tune, tuned) ? "true"
                                                   : "false");
    duet__json_print(json, "measured_s: %g, error: %g}", tuned->measured_s, error_of(tuned));
}

static void print_json(FILE *stream, const struct duet__tune *tune, const char *line)
{
    g_auto(GStrv) variables = environment_of(tune);
    struct duet__json_writer json = {.stream = stream};
    duet__json_print(&json,
                     "{schema: 1\n command: %s\n platform: %s, here: %d, calibrated: %s, "
                     "estimated: %d, cut: %d\n settings: %" PRIu64 ", wall_s: %g, simulations: {",
                     line, tune->platform, tune->here, tune->calibrated, tune->estimated, tune->cut,
                     tune->settings - tune->repeated, tune->search_s);
    for (int i = 0; i < DUET__RUN; i++)
        if (tune->made[i])
            duet__json_print(&json, "%s: %" PRIu64, levels[i], tune->made[i]);
    duet__json_print(&json,
                     "}\n lead: %g, lead_half_width: %g, draws: %" PRIu64 ", wins: %" PRIu64
                     ", run_reps: %zu\n best: [",
                     tune->lead, tune->lead_half, tune->draws, tune->wins, tune->run_reps);
    for (guint i = 0; i < shown(tune); i++)
        put_tuned(&json, NULL, tune, &g_array_index(tune->found, struct duet__tuned, i));
    duet__json_print(&json, "]\n ");
    put_tuned(&json, "default", tune, &tune->usual);
    duet__json_print(&json, "\n ");
    put_tuned(&json, "chosen", tune, tune->chosen);
    duet__json_print(&json, "\n environment: {");
    for (char **variable = variables; *variable; variable++) {
        g_auto(GStrv) parts = g_strsplit(*variable, "=", 2);
        duet__json_print(&json, "%s: %s", parts[0], parts[1]);
    }
    duet__json_print(&json, "}}");
    putc('\n', stream);
}

/* ------------------------------------------------------------------------------------------- */

static void put_environment(FILE *stream, const void *data)
{
    g_auto(GStrv) variables = environment_of(data);
    for (char **variable = variables; *variable; variable++)
        fprintf(stream, "%s\n", *variable);
}

int duet__tune_report(const struct duet__tune *tune, const struct duet__job *job)
{
    const struct duet__values *values = &job->values;
    struct duet_message message = {""};
    int status;
    if (values->json)
        print_json(stdout, tune, job->line);
    else
        print(stdout, tune);
    if (!values->json && !values->env)
        put_environment(stdout, tune);
    status = duet__finish_output();
    if (values->env && duet__file_write(values->env, put_environment, tune, &message))
        status = duet__complain(DUET__FAILED, "%s", message.text);
    return status;
}
