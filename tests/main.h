/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included before everything else of a test: the prototype of its main function, which the build
 * renames, and a main function for tests that only call others.
 */
#ifndef DUET_TESTS_MAIN_H
#define DUET_TESTS_MAIN_H

#ifdef __cplusplus
extern "C" {
#endif
int main(int argc, char **argv);

/*
 * Runs functions as tests of GLib's. Returns the exit status. `names` lists the functions, with
 * commas between them: test_x is the test "/x", and subprocess_x is "/subprocess/x", which only
 * g_test_trap_subprocess runs. `add` adds a test to GLib's list; NULL: g_test_add_func.
 */
int run_tests(int argc, char **argv, const char *names, void (*const *functions)(void),
              void (*add)(const char *path, void (*function)(void)));

/* Returns an empty message for the call that is being tested, the only one of its thread. */
struct duet_message *hear(void);
/* Returns what was written to the message of hear(). */
const char *heard(void);
/*
 * Fails unless a call has returned the expected error and one line was said that has the words
 * (NULL: any): by the runtime as its last message, or (NULL) to hear().
 */
struct duet_runtime;
void check_call(const char *file, int line, const char *call, int error, int expected,
                const struct duet_runtime *runtime, const char *words);

/* Makes a folder. drop_folder, for OWNED, removes it with all that is in it, as remove_tree does.
 */
char *new_folder(void);
void remove_tree(const char *path);
void drop_folder(char **path);
#ifdef __cplusplus
}
#endif

/* A call with hear(): WORKS fails unless it succeeds and says nothing, FAILS unless it fails with
 * this error and says these words, and SAYS unless the last one said these words. */
#define WORKS(call) check_call(__FILE__, __LINE__, #call, call, 0, NULL, NULL)
#define FAILS(call, error, words) check_call(__FILE__, __LINE__, #call, call, error, NULL, words)
#define SAYS(words) check_call(__FILE__, __LINE__, "the call", 0, 0, NULL, words)
/* REFUSED fails unless a call fails with this error and these words are the runtime's last message,
 * TOLD unless the last message has these words. */
#define REFUSED(runtime, call, error, words)                                                       \
    check_call(__FILE__, __LINE__, #call, call, error, runtime, words)
#define TOLD(runtime, words) check_call(__FILE__, __LINE__, "the call", 0, 0, runtime, words)

/* Attribute of a variable: fini(&variable) is called at the end of its block. */
#define OWNED(fini) __attribute__((cleanup(fini)))

/* Defines the main function of a file whose tests are these functions without parameters. */
#define TEST_MAIN(...) TEST_MAIN_BY(0, #__VA_ARGS__, __VA_ARGS__)
#define TEST_MAIN_BY(add, names, ...) TEST_MAIN_OF(1, add, names, __VA_ARGS__)
/* As TEST_MAIN; without the condition all tests of the file are skipped. */
#define TEST_MAIN_IF(condition, ...) TEST_MAIN_OF(condition, 0, #__VA_ARGS__, __VA_ARGS__)
#define TEST_MAIN_OF(condition, add, names, ...)                                                   \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        static void (*const listed[])(void) = {__VA_ARGS__};                                       \
        return (condition) ? run_tests(argc, argv, names, listed, add) : 77;                       \
    }

#endif
