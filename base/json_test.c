/* SPDX-License-Identifier: Apache-2.0 */
/* Valid JSON, refused JSON with its messages, and written JSON. */
#include "base/fields.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "platforms/testing.h"

static void test_strict(void)
{
    static const struct {
        const char *text, *fragment;
    } cases[] = {
        {"", "f.json:1: "},
        {"3", "f.json:1: "},
        {"{} {}", "f.json:1: end of file expected"},
        {"{\n\"a\": 1,\n\"a\": 2}", "f.json:3: duplicate object key"},
        {"{\"a\": 1e999}", "f.json:1: real number overflow near '1e999'"},
        {"{\"a\": 9223372036854775808}", "f.json:1: too big integer"},
        {"{\"a\": NaN}", "f.json:1: "},
        {"{\"a\": 01}", "f.json:1: "},
        {"{\"a\": 1,}", "f.json:1: "},
        {"{\"a\": 'x'}", "f.json:1: "},
        {"{ // no\n}", "f.json:1: "},
        {"{\"a\": \"\xff\"}", "f.json:1: "},
        {"{\"a\": \"\\ud800\"}", "f.json:1: "},
        {"{\"a\": \"\\u0000\"}", "f.json:1: "},
    };
    GString *deep = g_string_new(NULL);
    struct duet__json root;
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        FAILS(duet__json_parse(cases[i].text, strlen(cases[i].text), "f.json", hear(), &root),
              DUET_EPARSE, cases[i].fragment);
        duet__json_close(&root);
    }
    for (unsigned i = 0; i < 1000000; i++)
        g_string_append_c(deep, '[');
    FAILS(duet__json_parse(deep->str, deep->len, "f.json", hear(), &root), DUET_EPARSE, "depth");
    g_string_free(deep, TRUE);
}

static void test_values(void)
{
    static const char text[] = "{\"whole\": 9007199254740993, \"round\": 1e9, \"part\": 0.5,"
                               " \"list\": [{\"a\": \"x y\"}], \"none\": null}";
    struct duet__json root, at, element, member;
    char name[8];
    uint64_t value = 0;
    unsigned count = 0;
    g_assert_cmpint(duet__json_parse(text, strlen(text), "f.json", hear(), &root), ==, DUET_OK);
    at = duet__json_member(&root, "whole");
    g_assert_cmpint(duet__json_integer(&at, 0, UINT64_C(1) << 60, &value), ==, DUET_OK);
    g_assert_cmpuint(value, ==, UINT64_C(9007199254740993));
    g_assert_cmpint(duet__json_integer(&at, 0, UINT64_C(9007199254740992), &value), ==,
                    DUET_EPARSE);
    at = duet__json_member(&root, "round");
    g_assert_cmpint(duet__json_integer(&at, 0, UINT64_MAX, &value), ==, DUET_OK);
    g_assert_cmpuint(value, ==, 1000000000);
    at = duet__json_member(&root, "part");
    g_assert_cmpint(duet__json_integer(&at, 0, 9, &value), ==, DUET_EPARSE);
    g_assert_cmpstr(heard(), ==, "f.json: part: 0.5 is not a whole number below 2^53");
    at = duet__json_member(&root, "none");
    g_assert_true(duet__json_present(&at) && duet__json_is_null(&at));
    at = duet__json_member(&root, "list");
    g_assert_cmpint(duet__json_array(&at, 1, 1, &count), ==, DUET_OK);
    element = duet__json_element(&at, 0);
    g_assert_cmpint(duet__json_keys(&element, NULL), ==, DUET_OK);
    member = duet__json_member(&element, "a");
    g_assert_cmpint(duet__json_name(&member, name, sizeof(name)), ==, DUET_EPARSE);
    SAYS("f.json: list[0].a: \"x y\" is no name");
    duet__json_close(&root);
}

/* Adds up the numbers in "list" and "head". */
static int add_value(const struct duet__json *at, const char *key, void *sum)
{
    double value = 0;
    int error = DUET_OK;
    if (strcmp(key, "list") == 0 || strcmp(key, "head") == 0)
        error = duet__json_number(at, 0, 100, &value);
    *(double *)sum += value;
    return error;
}

static int sum_stream(const char *text, double *sum, struct duet_message *message)
{
    return duet__json_each(text, strlen(text), "t.json", NULL, add_value, sum, message);
}

static void test_stream(void)
{
    static const char good[] =
        "\n{\"list\": [1, 2\n, 3], \"other\": {\"x\": [1, 2]}, \"head\": 10, "
        "\"more\": [],\n\"last\": 7}\n";
    static const struct {
        const char *text, *fragment;
    } cases[] = {
        {"", "t.json:1: expected an object, but the text ends"},
        {"[]", "t.json:1: expected an object"},
        {"{\"list\": {}}", "t.json:1: expected a number"},
        {"{\"list\": [1 2]}", "t.json:1: expected ',' or ']'"},
        {"{\"list\": [1,\n\"x\"]}", "t.json:2: expected a number"},
        {"{\"list\": [1,\n{\n\"x\"}]}", "t.json:3: "},
        {"{\"head\": 1 \"x\": 2}", "t.json:1: expected ',' or '}'"},
        {"{\"head\": 1,\n\n\"head\": 2}", "t.json:3: the key \"head\" is there twice"},
        {"{\"head\" 1}", "t.json:1: expected ':'"},
        {"{head: 1}", "t.json:1: expected a name in quotes"},
        {"{\"other\": [1, {]}", "t.json:1: "},
        {"{\"head\": 1} x", "t.json:1: expected one object and nothing behind it"},
        {"{\"head\": 1", "t.json:1: expected ',' or '}', but the text ends"},
        {"{\"list\": [1,", "t.json:1: "},
    };
    double sum = 0;
    WORKS(sum_stream(good, &sum, hear()));
    g_assert_cmpfloat(sum, ==, 16);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        FAILS(sum_stream(cases[i].text, &sum, hear()), DUET_EPARSE, cases[i].fragment);
    }
}

static void test_writing(void)
{
    g_autofree char *text = NULL;
    size_t length = 0;
    struct duet__json_writer w = {.stream = open_memstream(&text, &length)};
    duet__json_begin(&w, NULL, '{');
    duet__json_put_string(&w, "text", "a\"\\\n<\xc3\xa9");
    duet__json_put_string(&w, "no text", NULL);
    duet__json_break(&w, 1);
    duet__json_put_number(&w, "tenth", 0.1);
    duet__json_put_number(&w, "third", 1.0 / 3);
    duet__json_put_number(&w, "small", -1e300);
    duet__json_begin(&w, "list", '[');
    duet__json_put_integer(&w, NULL, UINT64_MAX);
    duet__json_put_boolean(&w, NULL, true);
    duet__json_begin(&w, NULL, '{');
    duet__json_end(&w, '}');
    duet__json_end(&w, ']');
    duet__json_put_number(&w, "nan", NAN);
    duet__json_put_number(&w, "inf", INFINITY);
    duet__json_break(&w, 0);
    duet__json_end(&w, '}');
    fclose(w.stream);
    g_assert_cmpstr(text, ==,
                    "{\"text\": \"a\\\"\\\\\\u000a\\u003c\xc3\xa9\", \"no text\": null,\n"
                    " \"tenth\": 0.1, \"third\": 0.3333333333333333, \"small\": -1e+300, "
                    "\"list\": [18446744073709551615, true, {}], \"nan\": null, \"inf\": null\n}");
}

/* A text of several members writes what single calls do. */
static void test_print(void)
{
    static const double values[] = {0.5, 2};
    const char *volatile none = NULL; /* compilers object to one that they see */
    g_autofree char *text = NULL;
    size_t length = 0;
    struct duet__json_writer w = {.stream = open_memstream(&text, &length)};
    duet__json_print(&w, "{schema: 1, n: %u, size: %zu, all: %" PRIu64 ",\n  part: {mean: %g", 2U,
                     sizeof(char), UINT64_MAX, 0.25);
    DUET__ARRAY_WRITE(&w, "values", DUET__NUMBER, values, G_N_ELEMENTS(values));
    duet__json_print(&w, "}, %s: %s, none: %s, list: [%d, %d, {}], rounds: null\n}", "a b", "{%u}",
                     none, true, false);
    fclose(w.stream);
    g_assert_cmpstr(text, ==,
                    "{\"schema\": 1, \"n\": 2, \"size\": 1, \"all\": 18446744073709551615,\n"
                    "  \"part\": {\"mean\": 0.25, \"values\": [0.5, 2]}, \"a b\": \"{%u}\", "
                    "\"none\": null, \"list\": [true, false, {}], \"rounds\": null\n}");
}

/* Each member and element has a line; the contents of an element stay on its line. */
static void test_lines(void)
{
    g_autofree char *text = NULL;
    size_t length = 0;
    struct duet__json_writer w = {.stream = open_memstream(&text, &length), .indented = true};
    duet__json_begin(&w, NULL, '{');
    duet__json_put_boolean(&w, "a", false);
    duet__json_begin(&w, "list", '[');
    for (unsigned i = 0; i < 2; i++) {
        duet__json_begin(&w, NULL, '{');
        duet__json_put_integer(&w, "b", i);
        duet__json_begin(&w, "c", '[');
        duet__json_put_string(&w, NULL, NULL);
        duet__json_end(&w, ']');
        duet__json_end(&w, '}');
    }
    duet__json_end(&w, ']');
    duet__json_end(&w, '}');
    fclose(w.stream);
    g_assert_cmpstr(text, ==,
                    "{\n \"a\": false,\n \"list\": [\n  {\"b\": 0, \"c\": [null]},\n"
                    "  {\"b\": 1, \"c\": [null]}]}\n");
}

/* Any bytes are written as JSON that can be read, and as themselves if they are UTF-8. */
static void test_bytes(void)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(32);
    for (unsigned i = 0; i < 20000; i++) {
        char bytes[7] = "", *text = NULL;
        const char *back = "";
        struct duet__json_writer w = {0};
        struct duet__json root, at;
        size_t length = 0;
        for (int k = g_rand_int_range(random, 0, 6); k >= 0; k--) /* leading bytes are rare else */
            bytes[k] = (char)(g_rand_boolean(random) ? g_rand_int_range(random, 0x80, 0xc0)
                                                     : g_rand_int_range(random, 1, 0x100));
        w.stream = open_memstream(&text, &length);
        duet__json_print(&w, "[%s]", bytes);
        fclose(w.stream);
        if (duet__json_parse(text, length, "f", hear(), &root))
            g_error("%s: %s", text, heard());
        at = duet__json_element(&root, 0);
        g_assert_cmpint(duet__json_string(&at, &back), ==, DUET_OK);
        if (g_utf8_validate(bytes, -1, NULL))
            g_assert_cmpstr(back, ==, bytes);
        else
            g_assert_cmpuint(strlen(back), ==, strlen(bytes));
        duet__json_close(&root);
        free(text);
    }
}

/* Every number that is written is read back as the same one, in a locale with commas, too. */
static void test_digits(void)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(7);
    struct duet__json root, at;
    char digits[DUET__DIGITS_MAX];
    (void)setlocale(LC_NUMERIC, "de_DE.UTF-8"); /* if installed */
    for (unsigned i = 0; i < 3000; i++) {
        double value = g_rand_double(random) * pow(10, g_rand_double_range(random, -300, 300));
        if (i % 3) { /* a decimal of few digits, written as by printf */
            char printed[DUET__DIGITS_MAX];
            const double unit = pow(10, g_rand_int_range(random, 0, 16));
            value = rint(g_rand_double(random) * pow(10, g_rand_int_range(random, 0, 16))) / unit;
            (void)g_ascii_formatd(printed, sizeof(printed), "%.15g", value);
            if (g_ascii_strtod(printed, NULL) == value)
                g_assert_cmpstr(duet__digits(value, digits), ==, printed);
        }
        g_autofree char *text = g_strdup_printf("[%s]", duet__digits(value, digits));
        double back = 0;
        g_assert_cmpint(duet__json_parse(text, strlen(text), "f", NULL, &root), ==, DUET_OK);
        at = duet__json_element(&root, 0);
        g_assert_cmpint(duet__json_number(&at, 0, INFINITY, &back), ==, DUET_OK);
        g_assert_cmpfloat(back, ==, value);
        duet__json_close(&root);
    }
    (void)setlocale(LC_NUMERIC, "C");
}

TEST_MAIN(test_strict, test_values, test_stream, test_writing, test_print, test_lines, test_digits,
          test_bytes)
