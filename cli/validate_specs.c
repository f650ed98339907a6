/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be validated, from the command line: specs, and what is checked of every spec. */
#include <string.h>

#include "cli/validate.h"

void duet__spec_free(void *spec)
{
    struct duet__spec *s = spec;

    g_free(s->workload);
    g_free(s->precision);
    g_strfreev(s->n);
    g_strfreev(s->tile);
    g_strfreev(s->policies);
    g_strfreev(s->cpus);
    g_strfreev(s->gpus);
    g_strfreev(s->params);
    g_free(s);
}

/* The elements of "A,B,C"; none for NULL. */
static char **list_of(const char *text)
{
    return text && *text ? g_strsplit(text, ",", -1) : g_new0(char *, 1);
}

static int check_list(const char *option, char *const *list, uint64_t low, uint64_t high,
                      struct duet_message *message)
{
    for (size_t i = 0; list[i]; i++) {
        uint64_t value;
        int error = duet__count_option(option, list[i], low, high, &value, message);

        if (error)
            return error;
        for (size_t k = 0; k < i; k++)
            if (strcmp(list[i], list[k]) == 0)
                return duet_fail(message, DUET_EINVAL, "%s names %s twice", option, list[i]);
    }
    return 0;
}

/* Checks the policies, and replaces "all". */
static int check_policies(struct duet__spec *spec, struct duet_message *message)
{
    char *text = g_strjoinv(",", spec->policies);
    struct duet__texts texts = {.policy = *spec->policies ? text : NULL};
    struct duet__job job = {0};
    int error = duet__job_read_policies(&job, &texts, message);

    if (!error) {
        g_strfreev(spec->policies);
        spec->policies = g_steal_pointer(&job.request.policies);
    }
    g_strfreev(job.request.policies);
    g_free(text);
    return error;
}

/* As far as that can be said without sizes: a name and a value, each name once. */
static int check_params(char *const *params, struct duet_message *message)
{
    for (size_t i = 0; params[i]; i++) {
        size_t length = strcspn(params[i], "=");

        if (!length || !params[i][length])
            return duet_fail(message, DUET_EINVAL, "--param takes NAME=VALUE, not '%s'", params[i]);
        for (size_t k = 0; k < i; k++)
            if (strncmp(params[i], params[k], length + 1) == 0)
                return duet_fail(message, DUET_EINVAL, "--param gives '%.*s' twice", (int)length,
                                 params[i]);
    }
    return 0;
}

int duet__spec_check(struct duet__spec *spec, struct duet_message *message)
{
    struct duet__job job = {.name = "validate"};
    char command[] = "validate", *arguments[] = {command, spec->workload, NULL};
    const char *precision = spec->precision;
    int error = duet__job_read_workload(&job, spec->workload ? 2 : 1, arguments, message);

    if (!error && precision && strcmp(precision, "s") != 0 && strcmp(precision, "d") != 0)
        error = duet_fail(message, DUET_EINVAL, "--precision is s (single) or d (double), not '%s'",
                          precision);
    if (!error)
        error = check_list("--n", spec->n, 1, UINT32_MAX, message);
    if (!error)
        error = check_list("--tile", spec->tile, 1, UINT32_MAX, message);
    if (!error)
        error = check_list("--cpus", spec->cpus, 0, 1000000, message);
    if (!error)
        error = check_list("--gpus", spec->gpus, 0, 1000000, message);
    if (!error)
        error = check_params(spec->params, message);
    return error ? error : check_policies(spec, message);
}

static struct duet__spec *spec_of(const char *workload, const struct duet__texts *texts)
{
    struct duet__spec *spec = g_new0(struct duet__spec, 1);

    spec->workload = g_strdup(workload);
    spec->precision = g_strdup(texts->precision);
    spec->n = list_of(texts->n);
    spec->tile = list_of(texts->tile);
    spec->policies = list_of(texts->policy);
    spec->cpus = list_of(texts->cpus);
    spec->gpus = list_of(texts->gpus);
    spec->params = texts->params ? g_strdupv(texts->params) : g_new0(char *, 1);
    spec->set_arch = texts->set_arch;
    return spec;
}

/* An option with an empty value means no list, but somebody's mistake. */
static int check_empty(const struct duet__texts *texts, struct duet_message *message)
{
    const struct {
        const char *option, *text;
    } lists[] = {{"--n", texts->n},
                 {"--tile", texts->tile},
                 {"--policy", texts->policy},
                 {"--cpus", texts->cpus},
                 {"--gpus", texts->gpus}};

    for (size_t i = 0; i < G_N_ELEMENTS(lists); i++)
        if (lists[i].text && !*lists[i].text)
            return duet_fail(message, DUET_EINVAL, "%s takes a list, not ''", lists[i].option);
    return 0;
}

int duet__specs_from_texts(GPtrArray *specs, const struct duet__texts *texts, int argc,
                           char *const *argv, struct duet_message *message)
{
    int error = check_empty(texts, message);

    for (int i = 1; (i < argc || i == 1) && !error; i++) {
        struct duet__spec *spec = spec_of(i < argc ? argv[i] : NULL, texts);

        g_ptr_array_add(specs, spec);
        for (int k = 1; k < i && !error; k++)
            if (strcmp(argv[i], argv[k]) == 0)
                error = duet_fail(message, DUET_EINVAL, "%s is named twice", argv[i]);
        if (!error)
            error = duet__spec_check(spec, message);
    }
    return error;
}
