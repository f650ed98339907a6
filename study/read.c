/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of experiments from a file. */
#include <string.h>

#include "base/json.h"
#include "study/table.h"

enum { CASES_MOST = 100000, LIST_MOST = 100000, MOST_MIB = 64 };

/* Returns the option of a key, "gpu_memory" or "gpu-memory"; NULL: none. "params" is --param. */
static const struct duet__option *option_of(const char *key, unsigned where)
{
    g_autofree char *name = g_strdelimit(g_strdup(strcmp(key, "params") ? key : "param"), "_", '-');

    return duet__option_find(name, where);
}

/* Reads one value, as the option takes it behind "NAME=", or NULL. */
static int read_value(const struct duet__json *at, struct duet__product *product,
                      const struct duet__option *option, const char *name)
{
    char digits[DUET__DIGITS_MAX];
    struct duet_message message = {""};
    const char *text = digits;
    g_autofree char *whole = NULL;
    double number = 0;
    bool flag = false;
    int error = 0;

    if (duet__json_is_string(at))
        error = duet__json_string(at, &text);
    else if (!duet__json_boolean(at, &flag))
        text = flag ? "1" : "0";
    else if (!(error = duet__json_number(at, -1e15, 1e15, &number)))
        duet__digits(number, digits);
    if (error)
        return error;
    whole = name ? g_strconcat(name, "=", text, NULL) : g_strdup(text);
    error = duet__study_add(product, option, whole, &message);
    return error ? duet__json_fail(at, error, "%s", message.text) : 0;
}

/* Reads one value, those of an array, or those of each member of an object. */
static int read_values(const struct duet__json *at, struct duet__product *product,
                       const struct duet__option *option, const char *name)
{
    unsigned count = 0;
    int error = 0;

    if (duet__json_is_array(at)) {
        error = duet__json_array(at, 1, LIST_MOST, &count);
        for (unsigned i = 0; i < count && !error; i++) {
            const struct duet__json one = duet__json_element(at, i);

            error = read_value(&one, product, option, name);
        }
        return error;
    }
    if (name || !option || !duet__option_named(option) || duet__json_is_string(at))
        return read_value(at, product, option, name);
    error = duet__json_keys(at, NULL);
    for (const char *key = NULL; !error && (key = duet__json_next(at, key));) {
        const struct duet__json one = duet__json_member(at, key);

        error = read_values(&one, product, option, key);
    }
    return error;
}

static int read_case(const struct duet__json *at, struct duet__product *product, unsigned where)
{
    int error = duet__json_keys(at, NULL);

    for (const char *key = NULL; !error && (key = duet__json_next(at, key));) {
        const struct duet__json one = duet__json_member(at, key);
        const struct duet__option *option = option_of(key, where);

        if (!option && strcmp(key, "workload") != 0)
            return duet__json_fail(&one, DUET_EINVAL, "is no option that can be given values here");
        error = read_values(&one, product, option, NULL);
    }
    return error;
}

/* Takes the factors that a product lacks from another one. */
static void inherit(struct duet__product *product, const struct duet__product *from)
{
    for (guint f = 0; f < from->factors->len; f++) {
        const struct duet__factor *factor = from->factors->pdata[f];
        bool own = false;

        for (guint k = 0; k < product->factors->len; k++)
            own |= !strcmp(((struct duet__factor *)product->factors->pdata[k])->name, factor->name);
        for (guint v = 0; v < factor->values->len && !own; v++)
            if (duet__study_add(product, factor->option, factor->values->pdata[v], NULL))
                return; /* impossible: it was taken before */
    }
}

static int read_cases(const struct duet__json *root, struct duet__study *study, unsigned where)
{
    static const char *const keys[] = {"schema", "cases", NULL};
    struct duet__product *base = study->products->pdata[0];
    struct duet__json schema, cases;
    unsigned count = 0;
    int error = duet__json_keys(root, keys);

    if (error)
        return error;
    schema = duet__json_member(root, "schema");
    cases = duet__json_member(root, "cases");
    error = duet__json_unsigned(&schema, 1, 1, &count);
    if (!error)
        error = duet__json_array(&cases, 1, CASES_MOST, &count);
    for (unsigned i = 0; i < count && !error; i++) {
        const struct duet__json one = duet__json_element(&cases, i);
        struct duet__product *product = duet__product_new();

        g_ptr_array_add(study->products, product);
        error = read_case(&one, product, where);
        if (!error)
            inherit(product, base);
    }
    g_ptr_array_remove_index(study->products, 0);
    return error;
}

int duet__study_read(struct duet__study *study, const char *path, unsigned where,
                     struct duet_message *message)
{
    g_autofree char *text = NULL;
    struct duet__json root = {.node = NULL};
    size_t length;
    int error = duet__read_all(path, MOST_MIB, &text, &length, message);

    if (!error)
        error = duet__json_parse(text, length, path, message, &root);
    if (!error)
        error = read_cases(&root, study, where);
    duet__json_close(&root);
    return error;
}
