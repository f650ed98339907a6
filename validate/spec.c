/* SPDX-License-Identifier: Apache-2.0 */
/* Specs of cases: made, checked, and read from the file of `duet validate --cases`. */
#include "validate/spec.h"

#include <inttypes.h>
#include <string.h>

#include "platforms/json.h"
#include "runs/request.h"

enum { CASES_MOST = 10000, LIST_MOST = 1000 };

static GArray *list_new(void)
{
    return g_array_new(FALSE, FALSE, sizeof(uint64_t));
}

struct duet_spec *duet_spec_new(void)
{
    struct duet_spec *spec = g_new0(struct duet_spec, 1);

    spec->precision = 'd';
    spec->n = list_new();
    spec->tile = list_new();
    spec->cpus = list_new();
    spec->gpus = list_new();
    spec->policies = g_new0(char *, 1);
    spec->params = g_new0(char *, 1);
    return spec;
}

void duet_spec_free(void *data)
{
    struct duet_spec *spec = data;

    g_array_unref(spec->n);
    g_array_unref(spec->tile);
    g_array_unref(spec->cpus);
    g_array_unref(spec->gpus);
    g_strfreev(spec->policies);
    g_strfreev(spec->params);
    g_free(spec);
}

/* ------------------------------------------------------------------------------------------- */
/* Checks                                                                                       */

static int check_list(const char *option, const GArray *list, uint64_t low, uint64_t high,
                      struct duet_message *message)
{
    for (guint i = 0; i < list->len; i++) {
        uint64_t value = g_array_index(list, uint64_t, i);

        if (value < low || value > high)
            return duet_fail(message, DUET_EINVAL,
                             "%s takes a whole number from %" PRIu64 " to %" PRIu64
                             ", not '%" PRIu64 "'",
                             option, low, high, value);
        for (guint k = 0; k < i; k++)
            if (value == g_array_index(list, uint64_t, k))
                return duet_fail(message, DUET_EINVAL, "%s names %" PRIu64 " twice", option, value);
    }
    return 0;
}

/* Checks the policies, and replaces "all". */
static int check_policies(struct duet_spec *spec, struct duet_message *message)
{
    char *text = *spec->policies ? g_strjoinv(",", spec->policies) : NULL;
    char **names = NULL;
    int error = duet_policies_read(text, &names, message);

    if (!error) {
        g_strfreev(spec->policies);
        spec->policies = names;
    }
    g_free(text);
    return error;
}

int duet_spec_check(struct duet_spec *spec, struct duet_message *message)
{
    struct duet_request params;
    int error;

    duet_request_init(&params);
    error = duet_request_set_params(&params, spec->params, message);
    duet_request_fini(&params);
    if (!error)
        error = check_list("--n", spec->n, 1, UINT32_MAX, message);
    if (!error)
        error = check_list("--tile", spec->tile, 1, UINT32_MAX, message);
    if (!error)
        error = check_list("--cpus", spec->cpus, 0, 1000000, message);
    if (!error)
        error = check_list("--gpus", spec->gpus, 0, 1000000, message);
    return error ? error : check_policies(spec, message);
}

/* ------------------------------------------------------------------------------------------- */
/* The file                                                                                     */

static const char *const root_keys[] = {"schema", "cases", NULL};
static const char *const case_keys[] = {"workload", "n",         "tile",   "policy",   "cpus",
                                        "gpus",     "precision", "params", "set_arch", NULL};

static int read_number(const struct duet__json *at, void *list)
{
    uint64_t value;
    int error = duet__json_integer(at, 0, UINT32_MAX, &value);

    if (!error)
        g_array_append_val((GArray *)list, value);
    return error;
}

static int read_text(const struct duet__json *at, void *list)
{
    const char *value;
    int error = duet__json_string(at, &value);

    if (!error)
        g_ptr_array_add(list, g_strdup(value));
    return error;
}

/* Adds one value, or those of an array, to a list; none where the key is absent. */
static int read_list(const struct duet__json *entry, const char *key,
                     int (*read)(const struct duet__json *at, void *list), void *list)
{
    const struct duet__json at = duet__json_member(entry, key);
    unsigned count = 0;
    int error;

    if (!duet__json_present(&at))
        return 0;
    if (!duet__json_is_array(&at))
        return read(&at, list);
    error = duet__json_array(&at, 1, LIST_MOST, &count);
    for (unsigned i = 0; i < count && !error; i++) {
        const struct duet__json element = duet__json_element(&at, i);

        error = read(&element, list);
    }
    return error;
}

/* The same of texts: those that are there become *out, which is freed before. */
static int read_texts(const struct duet__json *entry, const char *key, char ***out)
{
    GPtrArray *list = g_ptr_array_new();
    int error = read_list(entry, key, read_text, list);

    g_ptr_array_add(list, NULL);
    g_strfreev(*out);
    *out = (char **)g_ptr_array_free(list, FALSE);
    return error;
}

static int read_param(const struct duet__json *params, const char *name, GPtrArray *list)
{
    const struct duet__json at = duet__json_member(params, name);
    const char *text = NULL;
    uint64_t number = 0;
    int error = 0;

    if (!duet__json_present(&at))
        return 0;
    if (duet__json_is_string(&at))
        error = duet__json_string(&at, &text);
    else
        error = duet__json_integer(&at, 0, UINT32_MAX, &number);
    if (!error)
        g_ptr_array_add(list, text ? g_strdup_printf("%s=%s", name, text)
                                   : g_strdup_printf("%s=%" PRIu64, name, number));
    return error;
}

/* The parameters of the workload that are there, and none else. */
static int read_params(const struct duet__json *entry, struct duet_spec *spec)
{
    const struct duet_parameter *parameter = spec->workload->parameters;
    const struct duet__json at = duet__json_member(entry, "params");
    GPtrArray *known = g_ptr_array_new(), *list = g_ptr_array_new();
    int error = 0;

    for (; parameter && parameter->name; parameter++)
        g_ptr_array_add(known, (char *)(uintptr_t)parameter->name);
    g_ptr_array_add(known, NULL);
    if (duet__json_present(&at)) {
        error = duet__json_keys(&at, (const char *const *)known->pdata);
        for (guint i = 0; i + 1 < known->len && !error; i++)
            error = read_param(&at, known->pdata[i], list);
    }
    g_ptr_array_add(list, NULL);
    g_strfreev(spec->params);
    spec->params = (char **)g_ptr_array_free(list, FALSE);
    g_ptr_array_free(known, TRUE);
    return error;
}

static int read_workload(const struct duet__json *entry, struct duet_spec *spec)
{
    const struct duet__json at = duet__json_member(entry, "workload");
    const char *name;
    int error = duet__json_string(&at, &name);

    if (error)
        return error;
    spec->workload = duet_workload_find(name);
    if (!spec->workload)
        error =
            duet__json_fail(&at, DUET_EINVAL, "unknown workload '%s' (duet list workloads)", name);
    return error;
}

static int read_precision(const struct duet__json *entry, struct duet_spec *spec)
{
    const struct duet__json at = duet__json_member(entry, "precision");
    const char *text;
    int error = duet__json_present(&at) ? duet__json_string(&at, &text) : -1;

    if (error)
        return duet__json_present(&at) ? error : 0;
    error = duet_precision_read(text, &spec->precision, NULL);
    return error ? duet__json_fail(&at, error, "is s (single) or d (double), not '%s'", text) : 0;
}

static int read_entry(const struct duet__json *entry, struct duet_spec *spec)
{
    const struct duet__json set_arch = duet__json_member(entry, "set_arch");
    struct duet_message message = {""};
    int error = duet__json_keys(entry, case_keys);

    if (!error)
        error = read_workload(entry, spec);
    if (!error)
        error = read_list(entry, "n", read_number, spec->n);
    if (!error)
        error = read_list(entry, "tile", read_number, spec->tile);
    if (!error)
        error = read_list(entry, "cpus", read_number, spec->cpus);
    if (!error)
        error = read_list(entry, "gpus", read_number, spec->gpus);
    if (!error)
        error = read_texts(entry, "policy", &spec->policies);
    if (!error)
        error = read_params(entry, spec);
    if (!error)
        error = read_precision(entry, spec);
    if (!error && duet__json_present(&set_arch))
        error = duet__json_boolean(&set_arch, &spec->set_arch);
    if (error)
        return error;
    error = duet_spec_check(spec, &message);
    return error ? duet__json_fail(entry, error, "%s", message.text) : 0;
}

static int read_root(const struct duet__json *root, GPtrArray *specs)
{
    struct duet__json schema, cases;
    unsigned number, count = 0;
    int error = duet__json_keys(root, root_keys);

    if (error)
        return error;
    schema = duet__json_member(root, "schema");
    cases = duet__json_member(root, "cases");
    error = duet__json_unsigned(&schema, 1, 1, &number);
    if (!error)
        error = duet__json_array(&cases, 1, CASES_MOST, &count);
    for (unsigned i = 0; i < count && !error; i++) {
        const struct duet__json entry = duet__json_element(&cases, i);
        struct duet_spec *spec = duet_spec_new();

        g_ptr_array_add(specs, spec);
        error = read_entry(&entry, spec);
    }
    return error;
}

int duet_specs_read(GPtrArray *specs, const char *path, struct duet_message *message)
{
    struct duet__json root;
    GError *problem = NULL;
    char *text = NULL;
    gsize length = 0;
    int error;

    if (!g_file_get_contents(path, &text, &length, &problem)) {
        error = duet_fail(message, DUET_EIO, "--cases: %s", problem->message);
        g_error_free(problem);
        return error;
    }
    error = duet__json_parse(text, length, path, message, &root);
    if (!error)
        error = read_root(&root, specs);
    duet__json_close(&root);
    g_free(text);
    return error;
}
