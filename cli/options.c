/* SPDX-License-Identifier: Apache-2.0 */
/* Options of the command: the settings that a subcommand has, and where their texts go. */
#include "cli/options.h"

#include <stddef.h>
#include <string.h>

#include "cli/command.h"
#include "world/settings.h"

/* Where the texts of an option go. */
static const struct place {
    const char *name;
    size_t offset;
} places[] = {
    {"platform", offsetof(struct duet__texts, platform)},
    {"cases", offsetof(struct duet__texts, cases)},
    {"emulate", offsetof(struct duet__texts, emulate)},
    {"scale", offsetof(struct duet__texts, scale)},
    {"n", offsetof(struct duet__texts, n)},
    {"tile", offsetof(struct duet__texts, tile)},
    {"cpus", offsetof(struct duet__texts, cpus)},
    {"gpus", offsetof(struct duet__texts, gpus)},
    {"precision", offsetof(struct duet__texts, precision)},
    {"policy", offsetof(struct duet__texts, policy)},
    {"reps", offsetof(struct duet__texts, reps)},
    {"until", offsetof(struct duet__texts, until)},
    {"case-time", offsetof(struct duet__texts, case_time)},
    {"rounds", offsetof(struct duet__texts, rounds)},
    {"sim-reps", offsetof(struct duet__texts, sim_reps)},
    {"calibrate", offsetof(struct duet__texts, calibrate)},
    {"calibrate-time", offsetof(struct duet__texts, calibrate_time)},
    {"out", offsetof(struct duet__texts, out)},
    {"warmup", offsetof(struct duet__texts, warmup)},
    {"budget", offsetof(struct duet__texts, budget)},
    {"seed", offsetof(struct duet__texts, seed)},
    {"verify", offsetof(struct duet__texts, verify)},
    {"set-arch", offsetof(struct duet__texts, set_arch)},
    {"noise", offsetof(struct duet__texts, noise)},
    {"extrapolate", offsetof(struct duet__texts, extrapolate)},
    {"no-costs", offsetof(struct duet__texts, no_costs)},
    {"costs", offsetof(struct duet__texts, costs)},
    {"link", offsetof(struct duet__texts, links)},
    {"gpu-memory", offsetof(struct duet__texts, gpu_memory)},
    {"gpu-window", offsetof(struct duet__texts, gpu_window)},
    {"gpu-window-short", offsetof(struct duet__texts, gpu_window_short)},
    {"gpu-streams", offsetof(struct duet__texts, gpu_streams)},
    {"pin", offsetof(struct duet__texts, pin)},
    {"no-peer", offsetof(struct duet__texts, no_peer)},
    {"no-bind", offsetof(struct duet__texts, no_bind)},
    {"window", offsetof(struct duet__texts, window)},
    {"model", offsetof(struct duet__texts, model)},
    {"model-error", offsetof(struct duet__texts, model_error)},
    {"param", offsetof(struct duet__texts, params)},
    {"lose", offsetof(struct duet__texts, lose)},
    {"watchdog", offsetof(struct duet__texts, watchdog)},
    {"json", offsetof(struct duet__texts, json)},
    {"without", offsetof(struct duet__texts, without)},
    {"no-noise", offsetof(struct duet__texts, no_noise)},
    {"follow-speed", offsetof(struct duet__texts, follow_speed)},
    {"keep-disturbed", offsetof(struct duet__texts, keep_disturbed)},
    {"fail-over", offsetof(struct duet__texts, fail_over)},
    {"verbose", offsetof(struct duet__texts, verbose)},
    {"csv", offsetof(struct duet__texts, csv)},
    {"wall", offsetof(struct duet__texts, wall)},
    {"trace", offsetof(struct duet__texts, trace)},
    {"gantt", offsetof(struct duet__texts, gantt)},
    {"html", offsetof(struct duet__texts, html)},
    {"machine-xml", offsetof(struct duet__texts, machine_xml)},
    {"jobs", offsetof(struct duet__texts, jobs)},
    {"quiet", offsetof(struct duet__texts, quiet)},
    {"replace", offsetof(struct duet__texts, replace)},
    {"merge", offsetof(struct duet__texts, merge)},
    {"name", offsetof(struct duet__texts, name)},
    {"no-copies", offsetof(struct duet__texts, no_copies)},
    {"compare-models", offsetof(struct duet__texts, compare_models)},
};

static void *field_of(struct duet__texts *texts, const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(places); i++)
        if (strcmp(places[i].name, name) == 0)
            return (char *)texts + places[i].offset;
    return NULL;
}

static GOptionArg argument_of(const struct duet__setting *setting)
{
    switch (setting->kind) {
    case DUET__KIND_FLAG:
        return G_OPTION_ARG_NONE;
    case DUET__KIND_LIST:
        return G_OPTION_ARG_STRING_ARRAY;
    case DUET__KIND_FILE:
        return G_OPTION_ARG_FILENAME;
    default:
        return G_OPTION_ARG_STRING;
    }
}

bool duet__texts_parse(struct duet__texts *texts, int command, const char *name,
                       const char *summary, const char *notes, int *argc, char ***argv)
{
    GArray *entries = g_array_new(TRUE, TRUE, sizeof(GOptionEntry));
    const struct duet__setting *setting;
    bool good;

    for (size_t i = 0; (setting = duet__setting_at(i)); i++) {
        const GOptionEntry entry = {.long_name = setting->name,
                                    .short_name = setting->letter,
                                    .arg = argument_of(setting),
                                    .arg_data = field_of(texts, setting->name),
                                    .description = setting->help,
                                    .arg_description = setting->value};

        if (setting->where & (unsigned)command)
            g_array_append_val(entries, entry);
    }
    good =
        duet__parse_options(name,
                            command == DUET__FOR_INFO                              ? NULL
                            : command & (DUET__FOR_VALIDATE | DUET__FOR_CALIBRATE) ? "[WORKLOAD...]"
                                                                                   : "WORKLOAD",
                            summary, notes, (const GOptionEntry *)(void *)entries->data, argc,
                            argv);
    g_array_free(entries, TRUE);
    return good;
}

void duet__texts_fini(struct duet__texts *texts)
{
    const struct duet__setting *setting;

    for (size_t i = 0; (setting = duet__setting_at(i)); i++) {
        void *field = field_of(texts, setting->name);

        if (field && setting->kind == DUET__KIND_LIST)
            g_clear_pointer((char ***)field, g_strfreev);
        else if (field && setting->kind != DUET__KIND_FLAG)
            g_clear_pointer((char **)field, g_free);
    }
}
