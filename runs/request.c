/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be run: its parts, copies, and the machine it is simulated on. */
#include "runs/request.h"

#include <string.h>

#include "world/open.h"

void duet_request_init(struct duet_request *request)
{
    *request = (struct duet_request){
        .problem = {.precision = 'd'},
        .reps = 1,
        .seed = 1,
        .jobs = 1,
        .settings = g_array_new(FALSE, FALSE, sizeof(struct duet_setting)),
        .strings = g_ptr_array_new_with_free_func(g_free),
    };
    duet_config_init(&request->config);
}

void duet_request_fini(struct duet_request *request)
{
    g_strfreev(request->policies);
    g_free(request->platform_name);
    duet_machine_fini(&request->machine);
    g_clear_pointer(&request->settings, g_array_unref);
    g_clear_pointer(&request->strings, g_ptr_array_unref);
    *request = (struct duet_request){0};
}

void duet_request_copy(struct duet_request *to, const struct duet_request *from)
{
    *to = *from;
    to->policies = g_strdupv(from->policies);
    to->settings = g_array_ref(from->settings);
    to->strings = g_ptr_array_ref(from->strings);
    to->machine = (struct duet_machine){0};
    to->platform_name = NULL;
}

const char *duet_request_keep(struct duet_request *request, char *text)
{
    if (text)
        g_ptr_array_add(request->strings, text);
    return text;
}

void duet_request_add_setting(struct duet_request *request, const char *name, const char *value)
{
    const struct duet_setting setting = {
        .name = duet_request_keep(request, g_strdup(name)),
        .value = duet_request_keep(request, g_strdup(value)),
    };

    g_array_append_val(request->settings, setting);
    request->problem.settings = (const struct duet_setting *)(void *)request->settings->data;
    request->problem.setting_count = request->settings->len;
}

bool duet_request_paced(const struct duet_request *request)
{
    return request->config.emulate && strcmp(request->config.emulate, "free") != 0;
}

const char *duet_request_platform(const struct duet_request *request)
{
    return duet_request_paced(request) ? request->config.emulate : request->config.simulate;
}

uint64_t duet_request_tasks(const struct duet_request *request)
{
    return request->workload->tasks(&request->problem);
}

int duet_request_build(struct duet_request *request, struct duet_message *message)
{
    struct duet_machine machine;
    int error = duet__open_platform(request->platform, request->config.simulate, &request->config,
                                    NULL, &machine, message);

    if (error)
        return error;
    duet_machine_fini(&request->machine);
    request->machine = machine;
    g_free(request->platform_name);
    request->platform_name = g_strdup(machine.name);
    return 0;
}
