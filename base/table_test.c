/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that are too narrow for their names show what differs. */
#include "base/table.h"

#include <string.h>

#include "tests/main.h"

static void test_names(void)
{
    static const struct {
        const char *names, *expected;
        size_t width;
    } cases[] = {
        {"./own/best.so|heft|480 ./own/second.so:x=1.5", "best|heft|480 second:x=1.5", 0},
        {"./a/best.so|./b/best.so|./c/other.v2.so", "./a/best.so|./b/best.so|other.v2", 0},
        {"./heft.so|heft|own/|./.so", "./heft.so|heft|own/|.so", 0},
        {"choose_best|choose_second|heft", "~best|~second|heft", 6},
        {"choose_best|choose_second|heft", "choose_best|~second|heft", 11},
        {"w-rand|w-random", "w-rand|~om", 6},
        {"aX\xc3\xa4|aX\xc3\xb6 long", "aX\xc3\xa4|~\xc3\xb6 long", 4},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(GStrv) names = g_strsplit(cases[i].names, "|", -1);
        g_autofree char *made = NULL;
        duet__names_shorten(names, g_strv_length(names), cases[i].width);
        made = g_strjoinv("|", names);
        g_assert_cmpstr(made, ==, cases[i].expected);
    }
}

/* Paths are shortened where the page is too narrow, and cut to what differs where it still is. */
static void test_table(void)
{
    static const char *const names[] = {"./own/choose_best.so", "./own/choose_second.so", "heft"};
    static const struct {
        unsigned page;
        const char *expected;
    } pages[] = {
        {0, "policy                  s\n./own/choose_best.so    1\n./own/choose_second.so  1\n"
            "heft                    1\n"},
        {16, "policy        s\nchoose_best   1\nchoose_second 1\nheft          1\n"},
        {8, "policy s\n~best  1\n~seco~ 1\nheft   1\n"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(pages); i++) {
        g_autofree char *text = NULL;
        size_t size = 0;
        FILE *stream = open_memstream(&text, &size);
        struct duet__table table;
        duet__table_init(&table, "tr");
        table.page = pages[i].page;
        duet__table_print(&table, "policy\ts");
        for (size_t k = 0; k < G_N_ELEMENTS(names); k++)
            duet__table_print(&table, "%s\t1", names[k]);
        duet__table_put(&table, stream, 0);
        fclose(stream);
        g_assert_cmpstr(text, ==, pages[i].expected);
    }
}

TEST_MAIN(test_names, test_table)
