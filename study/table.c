/* SPDX-License-Identifier: Apache-2.0 */
/* Factors, their products, the cells of these and their order; all of it from a file. */
#include "study/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runs/request.h"
#include "base/json.h"

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

int duet__factor_place(const struct duet__product *product, const char *name)
{
    for (guint f = 0; f < product->factors->len; f++)
        if (!strcmp(((const struct duet__factor *)product->factors->pdata[f])->name, name))
            return (int)f;
    return -1;
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
    const int place = duet__factor_place(product, name);
    struct duet__factor *factor;
    if (place >= 0)
        return product->factors->pdata[place];
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

bool duet__factor_is_number(const struct duet__factor *factor)
{
    return g_ascii_isdigit(*duet__factor_value(factor, factor->values->pdata[0]));
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

/* ------------------------------------------------------------------------------------------- */
/* The order of cells                                                                           */

enum { FACTORS_MOST = 64, LOOKS = 8 /* points a cell */ };

/* Writes the number of values of each factor that varies. Returns the number of such factors. */
static unsigned sizes_of(const struct duet__product *product, uint64_t sizes[FACTORS_MOST])
{
    unsigned count = 0;
    for (guint f = 0; f < product->factors->len; f++) {
        const struct duet__factor *factor = product->factors->pdata[f];
        if (factor->values->len == 1)
            continue;
        if (count < FACTORS_MOST)
            sizes[count++] = factor->values->len;
        else
            sizes[count - 1] *= factor->values->len;
    }
    return count;
}

static uint64_t divisor(uint64_t first, uint64_t second)
{
    while (second) {
        uint64_t rest = first % second;
        first = second;
        second = rest;
    }
    return first;
}

/* Puts the cells of a product into order[0..count). */
static void order_product(const struct duet__product *product, uint32_t *order)
{
    static const double golden = 0.6180339887498949;
    uint64_t sizes[FACTORS_MOST], count = product->count, found = 0, stride;
    double steps[FACTORS_MOST], root = 1.5;
    unsigned dimensions = sizes_of(product, sizes);
    g_autofree bool *seen = g_new0(bool, count);
    for (int i = 0; i < 100; i++) /* x^(d + 1) = x + 1 */
        root = pow(1 + root, 1.0 / (dimensions + 1));
    for (unsigned d = 0; d < dimensions; d++)
        steps[d] = pow(root, -(double)(d + 1));
    for (uint64_t i = 0; i < LOOKS * count + LOOKS && found < count; i++) {
        uint64_t cell = 0;
        for (unsigned d = 0; d < dimensions; d++) {
            double part = 0.5 + (double)i * steps[d];
            cell = cell * sizes[d] + (uint64_t)((part - floor(part)) * (double)sizes[d]);
        }
        if (!seen[cell])
            order[found++] = (uint32_t)(product->first + cell);
        seen[cell] = true;
    }
    stride = (uint64_t)((double)count * golden) + 1;
    while (divisor(stride, count) != 1)
        stride++;
    for (uint64_t i = 0, cell = 0; i < count; i++, cell = (cell + stride) % count)
        if (!seen[cell])
            order[found++] = (uint32_t)(product->first + cell);
}

/* A cell, and how far in its product it comes. */
struct turn {
    double part;
    uint32_t cell;
};

static int compare_turns(const void *first, const void *second)
{
    const struct turn *a = first, *b = second;
    if (a->part < b->part || a->part > b->part)
        return a->part < b->part ? -1 : 1;
    return a->cell < b->cell ? -1 : a->cell > b->cell;
}

uint32_t *duet__study_order(const struct duet__study *study)
{
    uint32_t *order = g_new0(uint32_t, study->count);
    struct turn *turns;
    for (guint p = 0; p < study->products->len; p++) {
        const struct duet__product *product = study->products->pdata[p];
        order_product(product, order + product->first);
    }
    if (study->products->len == 1)
        return order;
    turns = g_new(struct turn, study->count);
    for (uint64_t i = 0; i < study->count; i++) {
        const struct duet__product *product = duet__study_product(study, order[i]);
        turns[i] =
            (struct turn){((double)(i - product->first) + 0.5) / (double)product->count, order[i]};
    }
    qsort(turns, study->count, sizeof *turns, compare_turns);
    for (uint64_t i = 0; i < study->count; i++)
        order[i] = turns[i].cell;
    g_free(turns);
    return order;
}

/* ------------------------------------------------------------------------------------------- */
/* Reading a file                                                                               */

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
static int read_list(const struct duet__json *at, struct duet__product *product,
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
        error = read_list(&one, product, option, key);
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
        error = read_list(&one, product, option, NULL);
    }
    return error;
}

/* Takes the factors that a product lacks from another one. */
static void inherit(struct duet__product *product, const struct duet__product *from)
{
    for (guint f = 0; f < from->factors->len; f++) {
        const struct duet__factor *factor = from->factors->pdata[f];
        const bool own = duet__factor_place(product, factor->name) >= 0;
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
