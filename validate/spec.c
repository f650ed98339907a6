/* SPDX-License-Identifier: Apache-2.0 */
/* Specs of cases: made, checked, and read from the file of `duet validate --cases`. */
#include "validate/spec.h"

#include <inttypes.h>
#include <string.h>

#include "platforms/fields.h"

enum { CASES_MOST = 10000, LIST_MOST = 1000, MOST_MIB = 64 /* of the file */ };

/* Each list: its key, which is its option's name, and the range of its elements. */
static const struct {
    const char *key;
    uint64_t least, most;
} lists[DUET_LISTS] = {
    [DUET_LIST_N] = {"n", 1, UINT32_MAX},
    [DUET_LIST_TILE] = {"tile", 1, UINT32_MAX},
    [DUET_LIST_CPUS] = {"cpus", 0, 1000000},
    [DUET_LIST_GPUS] = {"gpus", 0, 1000000},
};

struct duet__spec *duet__spec_new(const struct duet__request *base)
{
    struct duet__spec *spec = g_new0(struct duet__spec, 1);

    duet__request_copy(&spec->request, base);
    for (int i = 0; i < DUET_LISTS; i++)
        spec->lists[i] = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    return spec;
}

void duet__spec_free(void *data)
{
    struct duet__spec *spec = data;

    for (int i = 0; i < DUET_LISTS; i++)
        g_array_unref(spec->lists[i]);
    duet__request_fini(&spec->request);
    g_free(spec);
}

/* ------------------------------------------------------------------------------------------- */
/* Checks                                                                                       */

static int check_list(const struct duet__spec *spec, enum duet__spec_list which,
                      struct duet_message *message)
{
    const GArray *list = spec->lists[which];
    const char *key = lists[which].key;

    for (guint i = 0; i < list->len; i++) {
        uint64_t value = g_array_index(list, uint64_t, i);

        if (value < lists[which].least || value > lists[which].most)
            return duet_fail(message, DUET_EINVAL,
                             "--%s takes a whole number from %" PRIu64 " to %" PRIu64
                             ", not '%" PRIu64 "'",
                             key, lists[which].least, lists[which].most, value);
        for (guint k = 0; k < i; k++)
            if (value == g_array_index(list, uint64_t, k))
                return duet_fail(message, DUET_EINVAL, "--%s names %" PRIu64 " twice", key, value);
    }
    return 0;
}

int duet__spec_check(const struct duet__spec *spec, struct duet_message *message)
{
    int error = 0;

    for (int i = 0; i < DUET_LISTS && !error; i++)
        error = check_list(spec, i, message);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* The file                                                                                     */

/* How many values there are: one, or those of an array. */
static int count_values(const struct duet__json *at, unsigned *count)
{
    *count = 1;
    return duet__json_is_array(at) ? duet__json_array(at, 1, LIST_MOST, count) : 0;
}

static struct duet__json value_at(const struct duet__json *at, unsigned index)
{
    return duet__json_is_array(at) ? duet__json_element(at, index) : *at;
}

/* The list of the key at hand. */
static int read_numbers(const struct duet__json *at, void *into, void *root)
{
    const struct duet__spec *spec = into;
    unsigned count, which = 0;
    int error = count_values(at, &count);

    while (strcmp(lists[which].key, at->key) != 0)
        which++;
    for (unsigned i = 0; i < count && !error; i++) {
        const struct duet__json one = value_at(at, i);
        uint64_t value;

        error = duet__json_integer(&one, 0, UINT32_MAX, &value);
        if (!error)
            g_array_append_val(spec->lists[which], value);
    }
    return error;
}

/* The policies as the option takes them. */
static int read_policies(const struct duet__json *at, void *into, void *root)
{
    struct duet__request *request = &((struct duet__spec *)into)->request;
    g_autoptr(GString) names = g_string_new(NULL);
    struct duet_message message = {""};
    unsigned count;
    int error = count_values(at, &count);

    for (unsigned i = 0; i < count && !error; i++) {
        const struct duet__json one = value_at(at, i);
        const char *name = "";

        error = duet__json_string(&one, &name);
        g_string_append_printf(names, "%s%s", i ? "," : "", name);
    }
    if (error)
        return error;
    g_clear_pointer(&request->policies, g_strfreev);
    error = duet__policies_read(names->str, &request->policies, &message);
    return error ? duet__json_fail(at, error, "%s", message.text) : 0;
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
static int read_params(const struct duet__json *at, void *into, void *root)
{
    struct duet__request *request = &((struct duet__spec *)into)->request;
    const struct duet__parameter *parameter = request->workload->parameters;
    g_autoptr(GPtrArray) known = g_ptr_array_new(), list = g_ptr_array_new_with_free_func(g_free);
    struct duet_message message = {""};
    int error;

    for (; parameter && parameter->name; parameter++)
        g_ptr_array_add(known, (char *)(uintptr_t)parameter->name);
    g_ptr_array_add(known, NULL);
    error = duet__json_keys(at, (const char *const *)known->pdata);
    for (guint i = 0; i + 1 < known->len && !error; i++)
        error = read_param(at, known->pdata[i], list);
    g_ptr_array_add(list, NULL);
    return error ? error : duet__request_set_params(request, (char **)list->pdata, &message);
}

static int read_workload(const struct duet__json *at, void *into, void *root)
{
    struct duet__request *request = &((struct duet__spec *)into)->request;
    const char *name;
    int error = duet__json_string(at, &name);

    if (error)
        return error;
    request->workload = duet__workload_find(name);
    if (!request->workload)
        error =
            duet__json_fail(at, DUET_EINVAL, "unknown workload '%s' (duet list workloads)", name);
    return error;
}

static int read_precision(const struct duet__json *at, void *into, void *root)
{
    struct duet__request *request = &((struct duet__spec *)into)->request;
    const char *text;
    int error = duet__json_string(at, &text);

    if (!error && duet__precision_read(text, &request->problem.precision, NULL))
        error = duet__json_fail(at, DUET_EINVAL, "is s (single) or d (double), not '%s'", text);
    return error;
}

static int read_priorities(const struct duet__json *at, void *into, void *root)
{
    struct duet__request *request = &((struct duet__spec *)into)->request;
    struct duet_message message = {""};
    const char *text;
    int error = duet__json_string(at, &text);

    if (!error && (error = duet__request_set_priorities(request, text, &message)))
        duet__json_fail(at, error, "%s", message.text);
    return error;
}

/* In the order in which they are read: parameters are those of the workload. */
static const struct duet__field case_fields[] = {
    {"workload", DUET__CUSTOM, .read = read_workload},
    {"n", DUET__CUSTOM, DUET__OPTIONAL, .read = read_numbers},
    {"tile", DUET__CUSTOM, DUET__OPTIONAL, .read = read_numbers},
    {"cpus", DUET__CUSTOM, DUET__OPTIONAL, .read = read_numbers},
    {"gpus", DUET__CUSTOM, DUET__OPTIONAL, .read = read_numbers},
    {"policy", DUET__CUSTOM, DUET__OPTIONAL, .read = read_policies},
    {"params", DUET__CUSTOM, DUET__OPTIONAL, .read = read_params},
    {"precision", DUET__CUSTOM, DUET__OPTIONAL, .read = read_precision},
    {"set_arch", DUET__BOOLEAN, DUET__OPTIONAL,
     .offset = offsetof(struct duet__spec, request.config.set_arch)},
    {"hold", DUET__BOOLEAN, DUET__OPTIONAL,
     .offset = offsetof(struct duet__spec, request.config.hold)},
    {"priorities", DUET__CUSTOM, DUET__OPTIONAL, .read = read_priorities},
    {NULL},
};

/* What is read into: the specs, and what they have in common. */
struct specs {
    GPtrArray *specs;
    const struct duet__request *base;
};

static int read_cases(const struct duet__json *at, void *into, void *root)
{
    const struct specs *to = into;
    struct duet_message message = {""};
    unsigned count = 0;
    int error = duet__json_array(at, 1, CASES_MOST, &count);

    for (unsigned i = 0; i < count && !error; i++) {
        const struct duet__json one = duet__json_element(at, i);
        struct duet__spec *spec = duet__spec_new(to->base);

        g_ptr_array_add(to->specs, spec);
        error = duet__fields_read(&one, case_fields, spec);
        if (!error && (error = duet__spec_check(spec, &message)))
            duet__json_fail(&one, error, "%s", message.text);
    }
    return error;
}

static int read_schema(const struct duet__json *at, void *into, void *root)
{
    unsigned schema;

    return duet__json_unsigned(at, 1, 1, &schema);
}

static const struct duet__field root_fields[] = {
    {"schema", DUET__CUSTOM, .read = read_schema},
    {"cases", DUET__CUSTOM, .read = read_cases},
    {NULL},
};

int duet__specs_read(GPtrArray *specs, const struct duet__request *base, const char *path,
                     struct duet_message *message)
{
    g_autofree char *text = NULL;
    struct duet__json root = {.node = NULL};
    size_t length;
    int error = duet__read_all(path, MOST_MIB, &text, &length, message);

    if (!error)
        error = duet__json_parse(text, length, path, message, &root);
    if (!error)
        error = duet__fields_read(&root, root_fields, &(struct specs){specs, base});
    duet__json_close(&root);
    return error;
}
