/* SPDX-License-Identifier: Apache-2.0 */
/* The file of `duet validate --cases`: a list of cross products, docs/validate.md. */
#include <string.h>

#include "cli/validate.h"
#include "platforms/json.h"

enum { CASES_MOST = 10000, LIST_MOST = 1000 };

static const char *const root_keys[] = {"schema", "cases", NULL};
static const char *const case_keys[] = {"workload", "n",         "tile",   "policy",   "cpus",
                                        "gpus",     "precision", "params", "set_arch", NULL};

typedef int (*read_fn)(const struct duet__json *at, char **text);

static int read_number(const struct duet__json *at, char **text)
{
    uint64_t value;
    int error = duet__json_integer(at, 0, UINT32_MAX, &value);

    if (!error)
        *text = g_strdup_printf("%" G_GUINT64_FORMAT, value);
    return error;
}

static int read_text(const struct duet__json *at, char **text)
{
    const char *value;
    int error = duet__json_string(at, &value);

    if (!error)
        *text = g_strdup(value);
    return error;
}

/* One value or an array of them; none where the key is absent. */
static int read_list(const struct duet__json *entry, const char *key, read_fn read, char ***list)
{
    const struct duet__json at = duet__json_member(entry, key);
    unsigned count = 1;
    int error = 0;

    if (!duet__json_present(&at)) {
        *list = g_new0(char *, 1);
        return 0;
    }
    if (!duet__json_is_array(&at)) {
        *list = g_new0(char *, 2);
        return read(&at, *list);
    }
    error = duet__json_array(&at, 1, LIST_MOST, &count);
    *list = g_new0(char *, count + 1);
    for (unsigned i = 0; i < count && !error; i++) {
        const struct duet__json element = duet__json_element(&at, i);

        error = read(&element, *list + i);
    }
    return error;
}

static int read_param(const struct duet__json *params, const char *name, GPtrArray *list)
{
    const struct duet__json at = duet__json_member(params, name);
    char *text = NULL;
    int error = 0;

    if (!duet__json_present(&at))
        return 0;
    if (duet__json_is_string(&at))
        error = read_text(&at, &text);
    else
        error = read_number(&at, &text);
    if (!error)
        g_ptr_array_add(list, g_strdup_printf("%s=%s", name, text));
    g_free(text);
    return error;
}

/* The parameters of the workload that are there, and none else. */
static int read_params(const struct duet__json *entry, const struct duet_workload *workload,
                       char ***params)
{
    const struct duet_parameter *parameter = workload->parameters;
    const struct duet__json at = duet__json_member(entry, "params");
    GPtrArray *list = g_ptr_array_new();
    const char **known;
    size_t count = 0;
    int error = 0;

    while (parameter && parameter[count].name)
        count++;
    known = g_new0(const char *, count + 1);
    for (size_t i = 0; i < count; i++)
        known[i] = parameter[i].name;
    if (duet__json_present(&at)) {
        error = duet__json_keys(&at, known);
        for (size_t i = 0; i < count && !error; i++)
            error = read_param(&at, known[i], list);
    }
    g_ptr_array_add(list, NULL);
    *params = (char **)g_ptr_array_free(list, FALSE);
    g_free(known);
    return error;
}

static int read_workload(const struct duet__json *entry, struct duet__spec *spec)
{
    const struct duet__json at = duet__json_member(entry, "workload");
    int error = read_text(&at, &spec->workload);

    if (!error && !duet_workload_find(spec->workload))
        error = duet__json_fail(&at, DUET_EINVAL, "unknown workload '%s' (duet list workloads)",
                                spec->workload);
    return error;
}

static int read_rest(const struct duet__json *entry, struct duet__spec *spec)
{
    const struct duet__json precision = duet__json_member(entry, "precision");
    const struct duet__json set_arch = duet__json_member(entry, "set_arch");
    int error = read_params(entry, duet_workload_find(spec->workload), &spec->params);

    if (!error && duet__json_present(&precision))
        error = read_text(&precision, &spec->precision);
    if (!error && duet__json_present(&set_arch))
        error = duet__json_boolean(&set_arch, &spec->set_arch);
    return error;
}

static int read_entry(const struct duet__json *entry, struct duet__spec *spec)
{
    const struct {
        const char *key;
        read_fn read;
        char ***list;
    } lists[] = {
        {"n", read_number, &spec->n},           {"tile", read_number, &spec->tile},
        {"cpus", read_number, &spec->cpus},     {"gpus", read_number, &spec->gpus},
        {"policy", read_text, &spec->policies},
    };
    struct duet_message message = {""};
    int error = duet__json_keys(entry, case_keys);

    if (!error)
        error = read_workload(entry, spec);
    for (size_t i = 0; i < G_N_ELEMENTS(lists) && !error; i++)
        error = read_list(entry, lists[i].key, lists[i].read, lists[i].list);
    if (!error)
        error = read_rest(entry, spec);
    if (error)
        return error;
    error = duet__spec_check(spec, &message);
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
        struct duet__spec *spec = g_new0(struct duet__spec, 1);

        g_ptr_array_add(specs, spec);
        error = read_entry(&entry, spec);
    }
    return error;
}

int duet__specs_from_file(GPtrArray *specs, const char *path, struct duet_message *message)
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
