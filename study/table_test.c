/* SPDX-License-Identifier: Apache-2.0 */
/* Factors and their values, good and bad; cells, their commands and their order; files. */
#include "study/table.h"

#include <string.h>

#include <glib/gstdio.h>

#include "report/testing_mutate.h"

static int add(struct duet__study *study, const char *name, const char *text,
               struct duet_message *message)
{
    return duet__study_add(study->products->pdata[0],
                           name ? duet__option_find(name, DUET__IN_STUDY) : NULL, text, message);
}

/* Returns a study of pairs of names and texts, NULL-ended. */
static struct duet__study *make(const char *const *pairs)
{
    struct duet__study *study = duet__study_new();
    for (; *pairs; pairs += 2)
        WORKS(add(study, strcmp(*pairs, "workload") ? *pairs : NULL, pairs[1], hear()));
    WORKS(duet__study_number(study, hear()));
    return study;
}

/* Texts stand for values, shown with blanks between them. */
static void test_values(void)
{
    static const char *const cases[][3] = {
        {"n", "7", "7"},
        {"n", "480,960", "480 960"},
        {"n", "1..4", "1 2 3 4"},
        {"n", "5..5", "5"},
        {"n", "9600..38400:9600", "9600 19200 28800 38400"},
        {"n", "1..10:4", "1 5 9"},
        {"n", "1..64*4,100000..100001", "1 4 16 64 100000 100001"},
        {"model-error", "0..0.3:0.1", "0 0.1 0.2 0.3"},
        {"gpu-memory", "1GiB..3GiB", "1GiB 2GiB 3GiB"},
        {"gpu-memory", "1..3GiB:0.5,50%", "1GiB 1.5GiB 2GiB 2.5GiB 3GiB 50%"},
        {"link", "pcie=1x,2x", "pcie=1x pcie=2x"},
        {"link", "pcie=1x..8x*2", "pcie=1x pcie=2x pcie=4x pcie=8x"},
        {"link", "pcie=1x,qpi=2x", "pcie=1x,qpi=2x"},
        {"costs", "submit=1us,steal=2us", "submit=1us,steal=2us"},
        {"without", "caches,neighbours", "caches,neighbours"},
        {"nodes", "1,2x2", "1 2x2"},
        {"network", "torus,switch:1Gbps,1us,eager=1,fat-tree",
         "torus switch:1Gbps,1us,eager=1 fat-tree"},
        {"set-arch", "", "1"},
        {"set-arch", "0,1", "0 1"},
        {"platform", "idgraf,../my/machine.json", "idgraf ../my/machine.json"},
        {"policy", "ws,w-rand:cpu=1:gpu=20", "ws w-rand:cpu=1:gpu=20"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const char *const pairs[] = {cases[i][0], cases[i][1], NULL};
        struct duet__study *study = make(pairs);
        const struct duet__product *product = study->products->pdata[0];
        const struct duet__factor *factor = product->factors->pdata[0];
        g_autofree char *text = NULL;
        g_assert_cmpuint(product->factors->len, ==, 1);
        g_assert_cmpuint(study->count, ==, factor->values->len);
        g_ptr_array_add(factor->values, NULL);
        text = g_strjoinv(" ", (char **)factor->values->pdata);
        g_assert_cmpstr(text, ==, cases[i][2]);
        duet__study_free(study);
    }
}

static void test_bad_values(void)
{
    static const char *const cases[][3] = {
        {"n", "0", "--n takes a whole number from 1"},
        {"n", "", "not ''"},
        {"n", "1,,2", "not ''"},
        {"n", "1,x", "not 'x'"},
        {"n", "1,2,1", "--n names 1 twice"},
        {"n", "1..3,2", "--n names 2 twice"},
        {"n", "3..1", "'3..1' is no range"},
        {"n", "1..9:0", "is no range"},
        {"n", "1..9*1", "is no range"},
        {"n", "0..9*2", "is no range"},
        {"n", "1..x", "is no range"},
        {"n", "1..", "is no range"},
        {"n", "1..2..3", "is no range"},
        {"n", "1..9:2:3", "is no range"},
        {"n", "1..9:2x", "is no range"},
        {"n", "1..2:0.5", "not '1.5'"},
        {"n", "0x1..9", "is no range"},
        {"n", "1..1000000000", "at most 100000 values"},
        {"gpu-memory", "1GiB..2MiB", "is no range"},
        {"gpu-memory", "0..1GiB", "--gpu-memory"},
        {"set-arch", "2", "--set-arch takes 1 or 0"},
        {"policy", "ws,none", "none"},
        {"policy", "ws,ws", "twice"},
        {"model-error", "0,1", "--model-error"},
    };
    struct duet__study *study;
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        study = duet__study_new();
        if (!add(study, cases[i][0], cases[i][1], hear()))
            g_error("%s is taken", cases[i][1]);
        SAYS(cases[i][2]);
        duet__study_free(study);
    }
    study = duet__study_new();
    WORKS(add(study, "tile", "1..3", hear()));
    WORKS(add(study, "tile", "7,9", hear()));
    g_assert_cmpint(add(study, "tile", "11,9", hear()), ==, DUET_EINVAL);
    WORKS(add(study, "n", "1..100000", hear()));
    WORKS(add(study, "gpus", "0..1000", hear()));
    g_assert_cmpint(duet__study_number(study, hear()), ==, DUET_EINVAL);
    duet__study_free(study);
}

/* A cell is one command in whatever order its options were given. */
static void test_commands(void)
{
    static const char *const pairs[] = {"link",     "qpi=2x",     "policy",   "ws,heft",
                                        "link",     "pcie=1x,3x", "set-arch", "0,1",
                                        "platform", "a b.json",   "workload", "lu",
                                        "workload", "qr",         NULL};
    static const char *const again[] = {"workload", "lu",       "workload", "qr",     "set-arch",
                                        "0,1",      "platform", "a b.json", "link",   "pcie=1x,3x",
                                        "policy",   "ws,heft",  "link",     "qpi=2x", NULL};
    struct duet__study *first = make(pairs), *second = make(again);
    g_autoptr(GHashTable) known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    char *command = duet__cell_command(first, "simulate", 0, 7);
    g_assert_cmpuint(first->count, ==, 16);
    g_assert_cmpstr(command, ==,
                    "duet simulate lu --platform 'a b.json' --policy ws --link pcie=1x --link "
                    "qpi=2x --seed 7");
    g_free(command);
    for (uint64_t i = 0; i < first->count; i++) {
        g_autofree char *other = duet__cell_command(second, "simulate", i, 1);
        command = duet__cell_command(first, "simulate", i, 1);
        g_assert_cmpstr(command, ==, other);
        g_assert_true(g_hash_table_add(known, command));
    }
    command = duet__cell_command(first, "simulate", 15, 1);
    g_assert_cmpstr(command, ==,
                    "duet simulate qr --platform 'a b.json' --policy heft --set-arch --link "
                    "pcie=3x --link qpi=2x --seed 1");
    g_free(command);
    duet__study_free(first);
    duet__study_free(second);
}

/* Every cell comes once; among the first of a large table, each value has about its share. */
static void test_order(void)
{
    static const char *const pairs[] = {"n",        "1..7", "tile",  "1..2",   "gpus",
                                        "0..4",     "cpus", "1..12", "window", "1..3",
                                        "workload", "lu",   NULL};
    static const char *const one[] = {"n", "5", NULL};
    struct duet__study *study = make(pairs);
    const struct duet__product *product = study->products->pdata[0];
    g_autofree uint32_t *order = duet__study_order(study), *single = NULL;
    g_autofree bool *seen = g_new0(bool, study->count);
    const uint64_t part = study->count / 10;
    g_assert_cmpuint(study->count, ==, 7 * 2 * 5 * 12 * 3);
    for (uint64_t i = 0; i < study->count; i++) {
        g_assert_cmpuint(order[i], <, study->count);
        g_assert_false(seen[order[i]]);
        seen[order[i]] = true;
    }
    for (guint f = 0; f < product->factors->len; f++) {
        const struct duet__factor *factor = product->factors->pdata[f];
        for (guint v = 0; v < factor->values->len; v++) {
            double share = (double)part / factor->values->len, count = 0;
            for (uint64_t i = 0; i < part; i++)
                count += duet__study_value(product, order[i], f) == factor->values->pdata[v];
            g_assert_cmpfloat(count, >, 0.7 * share);
            g_assert_cmpfloat(count, <, 1.3 * share);
        }
    }
    duet__study_free(study);
    study = make(one);
    single = duet__study_order(study);
    g_assert_true(study->count == 1 && single[0] == 0);
    duet__study_free(study);
}

static const char file[] =
    "{\"schema\": 1, \"cases\": [\n"
    " {\"workload\": [\"cholesky\", \"lu\"], \"n\": [3840, \"5760..9600:1920\"], \"tile\": 480,\n"
    "  \"policy\": \"ws,heft\", \"params\": {\"variant\": [\"left\", \"right\"]}, \"set_arch\": "
    "[true, false]},\n"
    " {\"workload\": \"qr\", \"gpus\": 1, \"link\": {\"pcie\": \"1x,2x\", \"qpi\": [\"2x\"]}},\n"
    " {\"workload\": \"lu\", \"gpu-memory\": \"1GiB\"}]}";

static int read_text(struct duet__study *study, const char *text, struct duet_message *message)
{
    g_autofree char *name = NULL;
    int handle = g_file_open_tmp("study-XXXXXX.json", &name, NULL), error;
    g_close(handle, NULL);
    g_assert_true(g_file_set_contents(name, text, -1, NULL));
    error = duet__study_read(study, name, DUET__FACTOR | DUET__IN_STUDY, message);
    g_unlink(name);
    return error ? error : duet__study_number(study, message);
}

/* Products of a file take turns, and take missing factors from the command line. */
static void test_file(void)
{
    struct duet__study *study = duet__study_new();
    g_autofree uint32_t *order = NULL;
    g_autofree char *command = NULL;
    uint64_t large = 0;
    WORKS(add(study, "gpus", "2..3", hear()));
    g_assert_cmpint(read_text(study, file, hear()), ==, DUET_OK);
    g_assert_cmpuint(study->products->len, ==, 3);
    g_assert_cmpuint(study->count, ==, 2 * 4 * 2 * 2 * 2 * 2 + 2 + 2);
    command = duet__cell_command(study, "simulate", study->count - 3, 1);
    g_assert_cmpstr(command, ==, "duet simulate qr --gpus 1 --link pcie=2x --link qpi=2x --seed 1");
    order = duet__study_order(study);
    for (uint64_t i = 0; i < study->count / 2; i++)
        large += order[i] < study->count - 4;
    g_assert_cmpuint(large, ==, (study->count - 4) / 2);
    duet__study_free(study);
}

static void test_bad_files(void)
{
    static const char *const cases[][2] = {
        {"{\"schema\": 2, \"cases\": [{}]}", "schema"},
        {"{\"schema\": 1, \"cases\": []}", "cases"},
        {"{\"schema\": 1, \"cases\": [{\"m\": 1}]}", "cases[0].m: is no option"},
        {"{\"schema\": 1, \"cases\": [{\"jobs\": 1}]}", "cases[0].jobs: is no option"},
        {"{\"schema\": 1, \"cases\": [{\"n\": 0.5}]}", "cases[0].n: --n takes a whole number"},
        {"{\"schema\": 1, \"cases\": [{\"n\": [1, 1]}]}", "is given 1 twice"},
        {"{\"schema\": 1, \"cases\": [{\"n\": []}]}", "cases[0].n"},
        {"{\"schema\": 1, \"cases\": [{\"n\": {\"a\": 1}}]}", "cases[0].n"},
        {"{\"schema\": 1, \"cases\": [{\"link\": {\"pcie\": {}}}]}", "cases[0].link.pcie"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct duet__study *study = duet__study_new();
        g_assert_cmpint(read_text(study, cases[i][0], hear()), !=, 0);
        SAYS(cases[i][1]);
        duet__study_free(study);
    }
}

/* Any file gives a study, or an error with a message. */
static void test_fuzz(void)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(1);
    for (int i = 0; i < 3000; i++) {
        struct duet__study *study = duet__study_new();
        GString *text = g_string_new(file);
        testing_mutate(text, random);
        if (read_text(study, text->str, hear()))
            g_assert_cmpstr(heard(), !=, "");
        else
            g_assert_cmpuint(study->count, >, 0);
        g_string_free(text, TRUE);
        duet__study_free(study);
    }
}

int main(int argc, char **argv)
{
    test_values();
    test_bad_values();
    test_commands();
    test_order();
    test_file();
    test_bad_files();
    test_fuzz();
    return 0;
}
