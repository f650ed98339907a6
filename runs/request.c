/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and copies requests, and builds the machine that they are simulated on. */
#include "runs/request.h"

#include <string.h>

#include <duet/policy.h>

#include "core/engine.h"
#include "runtime/open.h"
#include "base/units.h"

void duet__request_init(struct duet__request *request)
{
    *request = (struct duet__request){
        .problem = {.precision = 'd'},
        .reps = 1,
        .seed = 1,
        .jobs = 1,
        .kept = g_ptr_array_new_with_free_func(g_free),
    };
    duet_config_init(&request->config);
}

void duet__request_fini(struct duet__request *request)
{
    g_strfreev(request->policies);
    g_free(request->platform_name);
    g_free(request->estimated);
    duet_machine_fini(&request->machine);
    g_clear_pointer(&request->kept, g_ptr_array_unref);
    *request = (struct duet__request){0};
}

void duet__request_copy(struct duet__request *to, const struct duet__request *from)
{
    *to = *from;
    to->policies = g_strdupv(from->policies);
    to->kept = g_ptr_array_ref(from->kept);
    to->machine = (struct duet_machine){0};
    to->platform_name = to->estimated = NULL;
}

void *duet__request_keep(struct duet__request *request, void *memory)
{
    if (memory)
        g_ptr_array_add(request->kept, memory);
    return memory;
}

int duet__request_set_params(struct duet__request *request, char *const *params,
                             struct duet_message *message)
{
    const size_t count = params ? g_strv_length((char **)(uintptr_t)params) : 0;
    struct duet__setting *settings =
        duet__request_keep(request, g_new0(struct duet__setting, count + 1));
    for (size_t i = 0; i < count; i++) {
        char *name = duet__request_keep(request, g_strdup(params[i]));
        char *equals = strchr(name, '=');
        if (!equals || equals == name)
            return duet_fail(message, DUET_EINVAL, "--param takes NAME=VALUE, not '%s'", name);
        *equals = 0;
        settings[i] = (struct duet__setting){name, equals + 1};
        for (size_t k = 0; k < i; k++)
            if (strcmp(settings[k].name, name) == 0)
                return duet_fail(message, DUET_EINVAL, "--param gives '%s' twice", name);
    }
    request->problem.settings = settings;
    request->problem.setting_count = count;
    return 0;
}

int duet__request_set_priorities(struct duet__request *request, const char *text,
                                 struct duet_message *message)
{
    enum duet__priorities ignored;
    request->config.priorities = duet__request_keep(request, g_strdup(text));
    return duet__priorities_read(text, &ignored, message);
}

const char *duet__request_priorities(const struct duet__request *request)
{
    return request->config.priorities ? request->config.priorities : "workload";
}

char *duet__request_settings(const struct duet__request *request)
{
    const struct duet__problem *problem = &request->problem;
    GString *text;
    if (request->workload && request->workload->program)
        return g_strjoinv(" ", request->workload->program + 1);
    text = g_string_new(NULL);

    for (size_t i = 0; i < problem->setting_count; i++)
        g_string_append_printf(text, "%s%s=%s", i ? ", " : "", problem->settings[i].name,
                               problem->settings[i].value);
    return g_string_free(text, FALSE);
}

unsigned duet__request_nodes(const struct duet__request *request)
{
    const struct duet_grid grid = duet__nodes_wanted(&request->config);
    return grid.rows * grid.cols;
}

char *duet__request_facts(const struct duet__request *request)
{
    const struct duet_grid grid = duet__nodes_wanted(&request->config);
    g_autofree char *own = duet__request_settings(request);
    if (grid.rows * grid.cols == 1)
        return g_steal_pointer(&own);
    return g_strdup_printf("nodes=%ux%u%s%s", grid.rows, grid.cols, *own ? ", " : "", own);
}

/* True if a policy can run: on several nodes none tries others, or plans a simulation's graph. */
static bool runs_on_nodes(const struct duet_policy *policy, const struct duet__request *request)
{
    return !request || duet__request_nodes(request) == 1 ||
           !(policy->candidates || (policy->plan && request->config.simulate));
}

/* Adds the policies that one element of a list stands for, if they are there. */
static int add_policies(GPtrArray *names, const char *element, const struct duet__request *request,
                        struct duet_message *message)
{
    const struct duet_policy *policy;
    if (strcmp(element, "all") != 0) {
        g_ptr_array_add(names, g_strdup(element));
        return duet__policy_load(element, &policy, NULL, message);
    }
    for (size_t i = 0; (policy = duet_policy_at(i)); i++)
        if (runs_on_nodes(policy, request))
            g_ptr_array_add(names, g_strdup(policy->name));
    return 0;
}

int duet__policies_read(const char *list, const struct duet__request *request, char ***policies,
                        struct duet_message *message)
{
    GPtrArray *names = g_ptr_array_new();
    g_auto(GStrv) parts = g_strsplit(list ? list : "ws", ",", -1);
    int error =
        *parts ? 0 : duet_fail(message, DUET_EINVAL, "--policy names no policy (--policy help)");
    for (size_t i = 0; parts[i] && !error; i++)
        error = add_policies(names, parts[i], request, message);
    g_ptr_array_add(names, NULL);
    *policies = (char **)g_ptr_array_free(names, FALSE);
    for (char **name = *policies; *name && !error; name++)
        if (g_strv_contains((const char *const *)name + 1, *name))
            error = duet_fail(message, DUET_EINVAL, "--policy names '%s' twice", *name);
    if (error)
        g_clear_pointer(policies, g_strfreev);
    return error;
}

int duet__request_set_policies(struct duet__request *request, const char *list,
                               struct duet_message *message)
{
    g_strfreev(request->policies);
    int error = duet__policies_read(list, request, &request->policies, message);
    request->policy_count = error ? 0 : g_strv_length(request->policies);
    return error;
}

int duet__precision_read(const char *text, char *precision, struct duet_message *message)
{
    if (strcmp(text, "s") != 0 && strcmp(text, "d") != 0)
        return duet_fail(message, DUET_EINVAL, "--precision is s (single) or d (double), not '%s'",
                         text);
    *precision = text[0];
    return 0;
}

bool duet__request_paced(const struct duet__request *request)
{
    return duet__open_paced(&request->config);
}

const char *duet__request_platform(const struct duet__request *request)
{
    return duet__request_paced(request) ? request->config.emulate : request->config.simulate;
}

char *duet__request_place(const struct duet__request *request)
{
    const unsigned nodes = duet__request_nodes(request);
    const char *network = request->config.network;
    char *one = duet__place(&request->config, request->platform_name), *all = one;
    if (nodes > 1) {
        all =
            g_strdup_printf("%s x %u%s%s", one, nodes, network ? ", " : "", network ? network : "");
        g_free(one);
    }
    return all;
}

enum duet__recorded duet__request_records(const struct duet__request *request, size_t rep)
{
    const enum duet__recorded records = request->records;
    if (rep && (records == DUET_RECORDS_FIRST || records == DUET_RECORDS_TRACE))
        return DUET_RECORDS_NONE;
    return records == DUET_RECORDS_TRACE ? DUET_RECORDS_ACCESSES : records;
}

double duet__request_scale(const struct duet__request *request)
{
    return duet__request_paced(request) && request->config.scale > 0 ? request->config.scale : 1;
}

uint64_t duet__request_tasks(const struct duet__request *request)
{
    return request->workload->tasks(&request->problem);
}

/*
 * Returns the kernels of the workload whose times the platform calls estimated; NULL: none. Kernels
 * of programs and of task graphs from files are not known here: an estimated machine has all.
 */
static char *estimated_of(const struct duet__request *request,
                          const struct duet__platform *platform, const struct duet_machine *machine)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    if (!*request->workload->kernels && platform->origin && strstr(platform->origin, "estimated"))
        return g_strdup_printf("all kernels of %s", machine->name);
    for (const char *const *kernel = request->workload->kernels; *kernel; kernel++) {
        g_autofree char *name = g_strdup_printf("%c%s", request->problem.precision, *kernel);
        bool estimated = false;
        for (unsigned a = 0; a < machine->arch_count; a++) {
            g_autofree char *origin = duet__platform_origin(platform, name, machine->archs[a].name);
            estimated |= strstr(origin, "estimated") != NULL;
        }
        if (estimated)
            g_ptr_array_add(names, g_steal_pointer(&name));
    }
    g_ptr_array_add(names, NULL);
    return names->len > 1 ? g_strjoinv(", ", (char **)names->pdata) : NULL;
}

int duet__request_build(struct duet__request *request, struct duet_message *message)
{
    const struct duet__platform *platform = request->platform;
    struct duet__platform *loaded = NULL;
    struct duet_machine machine;
    char *estimated = NULL;
    int error = platform ? 0 : duet__platform_load(request->config.simulate, &loaded, message);
    platform = platform ? platform : loaded;
    if (!error)
        error = duet__open_platform(platform, NULL, &request->config, NULL, &machine, message);
    if (!error)
        estimated = estimated_of(request, platform, &machine);
    duet__platform_free(loaded);
    if (error)
        return error;
    g_free(request->estimated);
    request->estimated = estimated;
    duet_machine_fini(&request->machine);
    request->machine = machine;
    g_free(request->platform_name);
    request->platform_name = g_strdup(machine.name);
    return 0;
}

char *duet__own_options(const char *message)
{
    static const char *const names[][2] = {{"--duet-links", "--link"}, {"--duet-", "--"}};
    char *text = g_strdup(message);
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_auto(GStrv) parts = g_strsplit(text, names[i][0], -1);
        g_free(text);
        text = g_strjoinv(names[i][1], parts);
    }
    return text;
}
