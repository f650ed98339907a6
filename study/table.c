/* SPDX-License-Identifier: Apache-2.0 */
/* Factors, their products, and the cells of these. */
#include "study/table.h"

#include <inttypes.h>
#include <string.h>

#include "runs/request.h"

static void factor_free(void *data)
{
    struct duet__factor *factor = data;

    g_free(factor->name);
    g_free(factor->column);
    g_hash_table_unref(factor->known);
    g_ptr_array_unref(factor->values);
    g_free(factor);
}

static void product_free(void *data)
{
    struct duet__product *product = data;

    g_ptr_array_unref(product->factors);
    g_free(product);
}

struct duet__product *duet__product_new(void)
{
    struct duet__product *product = g_new0(struct duet__product, 1);

    product->factors = g_ptr_array_new_with_free_func(factor_free);
    return product;
}

struct duet__study *duet__study_new(void)
{
    struct duet__study *study = g_new0(struct duet__study, 1);

    study->products = g_ptr_array_new_with_free_func(product_free);
    g_ptr_array_add(study->products, duet__product_new());
    return study;
}

void duet__study_free(struct duet__study *study)
{
    if (study)
        g_ptr_array_unref(study->products);
    g_free(study);
}

/* ------------------------------------------------------------------------------------------- */
/* Factors                                                                                      */

/* Compares factors by the order of their options, however they were given. */
static int compare_factors(const void *first, const void *second)
{
    const struct duet__factor *a = *(struct duet__factor *const *)first;
    const struct duet__factor *b = *(struct duet__factor *const *)second;

    if (a->option == b->option)
        return strcmp(a->name, b->name);
    return !a->option ? -1 : !b->option ? 1 : a->option < b->option ? -1 : 1;
}

/* Returns the factor of an option; for a repeatable option the one of the name before the value. */
static struct duet__factor *factor_of(struct duet__product *product,
                                      const struct duet__option *option, const char *value)
{
    g_autofree char *name =
        !option ? g_strdup("workload")
        : !duet__option_named(option)
            ? g_strdup(option->name)
            : g_strdup_printf("%s %.*s", option->name, (int)strcspn(value, "="), value);
    struct duet__factor *factor;

    for (guint i = 0; i < product->factors->len; i++) {
        factor = product->factors->pdata[i];
        if (!strcmp(factor->name, name))
            return factor;
    }
    factor = g_new0(struct duet__factor, 1);
    factor->option = option;
    /* small letters: data bases do not tell "a" from "A" */
    factor->column = g_strcanon(g_ascii_strdown(name, -1), G_CSET_a_2_z G_CSET_DIGITS, '_');
    factor->name = g_steal_pointer(&name);
    factor->values = g_ptr_array_new_with_free_func(g_free);
    factor->known = g_hash_table_new(g_str_hash, g_str_equal);
    g_ptr_array_add(product->factors, factor);
    return factor;
}

/* Checks that the option takes this value at all. */
static int check(const struct duet__option *option, const char *label, const char *value,
                 struct duet_message *message)
{
    struct duet__values ignored = {.kept = g_ptr_array_new_with_free_func(g_free)};
    int error = duet__option_set(option, &ignored, label, value, message);

    g_ptr_array_unref(ignored.kept);
    return error;
}

/* Returns true if a factor is of --arg, or of a list in the program's arguments. */
static bool is_argument(const struct duet__factor *factor)
{
    return factor->option && !strcmp(factor->option->name, "arg");
}

/* Reads values; "all" policies are several. */
static int read_values(const struct duet__option *option, const char *label, const char *text,
                       GPtrArray *values, struct duet_message *message)
{
    char **policies = NULL;
    int error;

    if (strcmp(option->name, "policy") != 0)
        return duet__option_values(option, label, text, values, message);
    error = duet__policies_read(text, NULL, &policies, message);
    for (char **policy = policies; policy && *policy; policy++)
        g_ptr_array_add(values, *policy);
    g_free(policies);
    return error;
}

int duet__study_add(struct duet__product *product, const struct duet__option *option,
                    const char *text, struct duet_message *message)
{
    g_autofree char *label = option ? g_strconcat("--", option->name, NULL) : NULL;
    g_autoptr(GPtrArray) values = g_ptr_array_new_with_free_func(g_free);
    int error = 0;

    if (option)
        error = read_values(option, label, text, values, message);
    else
        g_ptr_array_add(values, g_strdup(text));
    for (guint i = 0; i < values->len && !error; i++) {
        char *value = g_strdup(values->pdata[i]);
        struct duet__factor *factor = factor_of(product, option, value);

        error = option ? check(option, label, value, message) : 0;
        if (!error && is_argument(factor) && (*value == '=' || !strchr(value, '=')))
            error = duet_fail(message, DUET_EINVAL, "--arg takes NAME=LIST, not '%s'", value);
        for (guint f = 0; f < product->factors->len && !error; f++) {
            const struct duet__factor *other = product->factors->pdata[f];

            if (other != factor && !strcmp(other->column, factor->column))
                error = duet_fail(message, DUET_EINVAL, "%s and %s would be one column, %s",
                                  other->name, factor->name, factor->column);
        }
        if (!error && g_hash_table_contains(factor->known, value))
            error = duet_fail(message, DUET_EINVAL, "%s is given %s twice", factor->name, value);
        g_ptr_array_add(factor->values, value);
        g_hash_table_add(factor->known, value);
    }
    g_ptr_array_sort(product->factors, compare_factors);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Cells                                                                                        */

int duet__study_number(struct duet__study *study, struct duet_message *message)
{
    study->count = 0;
    for (guint p = 0; p < study->products->len; p++) {
        struct duet__product *product = study->products->pdata[p];

        product->first = study->count;
        product->count = 1;
        for (guint f = 0; f < product->factors->len; f++) {
            const struct duet__factor *factor = product->factors->pdata[f];

            product->count *= factor->values->len;
            if (study->count + product->count > DUET__CELLS_MOST)
                return duet_fail(message, DUET_EINVAL,
                                 "the table has more than %d cells: give it fewer values",
                                 DUET__CELLS_MOST);
        }
        study->count += product->count;
    }
    return 0;
}

const struct duet__product *duet__study_product(const struct duet__study *study, uint64_t cell)
{
    guint low = 0, high = study->products->len - 1;

    while (low < high) {
        guint middle = (low + high + 1) / 2;
        const struct duet__product *product = study->products->pdata[middle];

        if (product->first <= cell)
            low = middle;
        else
            high = middle - 1;
    }
    return study->products->pdata[low];
}

const char *duet__study_value(const struct duet__product *product, uint64_t cell, guint factor)
{
    uint64_t index = cell - product->first;

    for (guint f = product->factors->len - 1; f > factor; f--)
        index /= ((const struct duet__factor *)product->factors->pdata[f])->values->len;
    const struct duet__factor *own = product->factors->pdata[factor];
    return own->values->pdata[index % own->values->len];
}

const char *duet__factor_value(const struct duet__factor *factor, const char *value)
{
    const char *equals =
        factor->option && duet__option_named(factor->option) ? strchr(value, '=') : NULL;

    return equals ? equals + 1 : value;
}

char **duet__cell_program(const struct duet__study *study, uint64_t cell)
{
    const struct duet__product *product = duet__study_product(study, cell);
    char **words = g_strdupv(study->program);

    for (guint f = 0; words && f < product->factors->len; f++) {
        const struct duet__factor *factor = product->factors->pdata[f];
        const char *value = duet__study_value(product, cell, f);
        const char *text = duet__factor_value(factor, value);
        g_autofree char *place = g_strdup_printf("{%.*s}", (int)strcspn(value, "="), value);

        for (char **word = words; is_argument(factor) && *word; word++) {
            g_auto(GStrv) parts = g_strsplit(*word, place, -1);

            g_free(*word);
            *word = g_strjoinv(text, parts);
        }
    }
    return words;
}

char *duet__shell_text(const char *const *words)
{
    GString *text = g_string_new(NULL);

    for (; *words; words++) {
        g_autofree char *valid = g_utf8_make_valid(*words, -1);
        g_autofree char *quoted =
            *valid && !valid[strspn(valid, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "_-+=./,:@%")]
                ? g_strdup(valid)
                : g_shell_quote(valid);

        g_string_append_printf(text, "%s%s", text->len ? " " : "", quoted);
    }
    return g_string_free(text, FALSE);
}

char *duet__cell_command(const struct duet__study *study, const char *command, uint64_t cell,
                         uint64_t seed)
{
    const struct duet__product *product = duet__study_product(study, cell);
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);
    g_auto(GStrv) program = duet__cell_program(study, cell);

    g_ptr_array_add(words, g_strdup("duet"));
    g_ptr_array_add(words, g_strdup(command));
    for (guint f = 0; f < product->factors->len; f++) {
        const struct duet__factor *factor = product->factors->pdata[f];
        const char *value = duet__study_value(product, cell, f);
        bool flag = factor->option && !factor->option->value;

        if (is_argument(factor) || (flag && (!strcmp(value, "0") || !strcmp(value, "no"))))
            continue;
        if (factor->option)
            g_ptr_array_add(words, g_strconcat("--", factor->option->name, NULL));
        if (!flag)
            g_ptr_array_add(words, g_strdup(value));
    }
    g_ptr_array_add(words, g_strdup("--seed"));
    g_ptr_array_add(words, g_strdup_printf("%" PRIu64, seed));
    if (program)
        g_ptr_array_add(words, g_strdup("--"));
    for (char **word = program; word && *word; word++)
        g_ptr_array_add(words, g_strdup(*word));
    g_ptr_array_add(words, NULL);
    return duet__shell_text((const char *const *)words->pdata);
}
