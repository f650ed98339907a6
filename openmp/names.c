/* SPDX-License-Identifier: Apache-2.0 */
/* Names for places in a program that are the same in every run. */
#include "openmp/recording.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NAME_BYTES = 512, MOST = 31 /* of a kernel's name */, ASKED = 512 /* at a time */ };

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Offset as the file of a module has it: of the call, not of what it returns to. */
static size_t offset_in(const Dl_info *module, const void *code)
{
    const ElfW(Ehdr) *header = module->dli_fbase;
    size_t base = header->e_type == ET_EXEC ? 0 : (size_t)(uintptr_t)module->dli_fbase;

    return (size_t)(uintptr_t)code - base - 1;
}

static char *module_name(const struct duet__place *place)
{
    Dl_info module;
    char *name = malloc(NAME_BYTES);

    if (name && place->code && dladdr(place->code, &module))
        snprintf(name, NAME_BYTES, "%s%s+0x%zx", place->kind, base_name(module.dli_fname),
                 offset_in(&module, place->code));
    else if (name)
        snprintf(name, NAME_BYTES, "%s", *place->kind ? place->kind : "unknown");
    return name;
}

/* The program's debugging information, as binutils' addr2line reads it: a line for each argument
   behind the module. NULL where it cannot be started. */
static FILE *start(char *const *arguments, pid_t *child)
{
    posix_spawn_file_actions_t actions;
    int ends[2], error;

    if (pipe(ends))
        return NULL;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    error = posix_spawnp(child, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (!error)
        return fdopen(ends[0], "r");
    close(ends[0]);
    return NULL;
}

static void read_lines(char *const *arguments, const struct duet__place *places, char **names,
                       const size_t *asked, size_t count)
{
    char line[NAME_BYTES];
    pid_t child;
    FILE *lines = start(arguments, &child);

    if (!lines)
        return;
    for (size_t i = 0; i < count && fgets(line, sizeof line, lines); i++) {
        char *colon = strrchr(line, ':');

        if (!colon || colon[1] < '1' || colon[1] > '9' || line[0] == '?')
            continue;
        colon[1 + strspn(colon + 1, "0123456789")] = '\0';
        snprintf(names[asked[i]], NAME_BYTES, "%s%s", places[asked[i]].kind, base_name(line));
    }
    fclose(lines);
    waitpid(child, NULL, 0);
}

/* Asks about all places from `first` on that are in the same module and were not asked about. */
static void ask(const struct duet__place *places, char **names, bool *done, size_t first,
                size_t count)
{
    char self[NAME_BYTES], offsets[ASKED][20], *arguments[ASKED + 4];
    size_t asked[ASKED], found = 0;
    Dl_info module, other;
    ssize_t length = -1;

    if (!places[first].code || !dladdr(places[first].code, &module))
        return;
    /* the program itself is called as it was, which may be relative to where it no longer is */
    if (strcmp(module.dli_fname, program_invocation_name) == 0)
        length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    for (size_t i = first; i < count && found < ASKED; i++) {
        if (done[i] || !places[i].code || !dladdr(places[i].code, &other) ||
            other.dli_fbase != module.dli_fbase)
            continue;
        done[i] = true;
        snprintf(offsets[found], sizeof offsets[0], "0x%zx", offset_in(&module, places[i].code));
        arguments[3 + found] = offsets[found];
        asked[found++] = i;
    }
    arguments[0] = (char[]){"addr2line"};
    arguments[1] = (char[]){"-e"};
    arguments[2] = length > 0 ? self : (char *)(uintptr_t)module.dli_fname;
    arguments[3 + found] = NULL;
    read_lines(arguments, places, names, asked, found);
}

/* Of a name that is too long for a kernel of a graph the kind and the end are kept, without a part
   of a character of UTF-8. */
static void shorten(const struct duet__place *place, char *name, size_t most)
{
    size_t kind = strlen(place->kind), length = strlen(name), from = kind;

    if (length > most)
        from += length - most;
    while (from > kind && ((unsigned char)name[from] & 0xc0) == 0x80)
        from++;
    memmove(name + kind, name + from, length - from + 1);
}

/* Several constructs of one line, which some compilers make of several lines, are numbered. */
static void number(const struct duet__place *places, char **names, size_t count, size_t *ranks)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++)
            ranks[i] += places[k].code < places[i].code && strcmp(names[k], names[i]) == 0;
    for (size_t i = 0; i < count; i++)
        if (ranks[i]) {
            char suffix[24];
            int length = snprintf(suffix, sizeof suffix, ".%zu", ranks[i] + 1);

            shorten(&places[i], names[i], MOST - (size_t)length);
            memcpy(names[i] + strlen(names[i]), suffix, (size_t)length + 1);
        }
}

char **duet__omp_names(const struct duet__place *places, size_t count)
{
    char **names = calloc(count, sizeof *names);
    bool *done = calloc(count, sizeof *done);
    size_t *ranks = calloc(count, sizeof *ranks), named = 0;

    if (names && done && ranks) {
        while (named < count && (names[named] = module_name(&places[named])) != NULL)
            named++;
        for (size_t i = 0; i < count && named == count; i++)
            if (!done[i])
                ask(places, names, done, i, count);
    }
    for (size_t i = 0; i < count && named == count; i++)
        shorten(&places[i], names[i], MOST);
    if (named == count && ranks)
        number(places, names, count, ranks);
    free(done);
    free(ranks);
    if (names && named == count)
        return names;
    for (size_t i = 0; i < named; i++)
        free(names[i]);
    free(names);
    return NULL;
}
