/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main function of a program that holds several tests: it runs the test that it is called by
 * (build/tests/X.Y is a link to it), or that its first argument names. TESTS, defined by the file
 * that includes this one, lists the tests: TEST(name, renamed main).
 */
#include <stdio.h>
#include <string.h>

#define TEST(name, main) int main(int argc, char **argv);
TESTS
#undef TEST

static const struct test {
    const char *name;
    int (*run)(int argc, char **argv);
} tests[] = {
#define TEST(name, main) {name, main},
    TESTS
#undef TEST
};

static const struct test *find(const char *name)
{
    const char *slash = strrchr(name, '/');
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        if (!strcmp(tests[i].name, slash ? slash + 1 : name))
            return &tests[i];
    return NULL;
}

int main(int argc, char **argv)
{
    const struct test *test = find(argv[0]);
    if (test)
        return test->run(argc, argv);
    test = argc > 1 ? find(argv[1]) : NULL;
    if (test)
        return test->run(argc - 1, argv + 1);
    fprintf(stderr, "usage: %s TEST [ARGUMENT...], with one of these tests:\n", argv[0]);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        fprintf(stderr, "  %s\n", tests[i].name);
    return 2;
}
