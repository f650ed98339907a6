/* SPDX-License-Identifier: Apache-2.0 */
/* Names places in a program in the same way in every run. */
#include "openmp/names.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NAME_BYTES = 512, MOST = 31 /* most bytes of a kernel's name */ };

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Offset in the module's file: of the call, not of the return address. */
static size_t offset_in(const Dl_info *module, const void *code)
{
    const ElfW(Ehdr) *header = module->dli_fbase;
    size_t base = header && header->e_type != ET_EXEC ? (size_t)(uintptr_t)header : 0;
    return (size_t)(uintptr_t)code - base - 1;
}

static char *module_name(const struct duet__omp_place *place)
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

const void *duet__omp_module(const void *code)
{
    Dl_info module;

    return code && dladdr(code, &module) ? module.dli_fbase : NULL;
}

/* Returns the answers of binutils' addr2line to the lines of `input`, from a module's debugging
 * information. */
static FILE *run_addr2line(const char *module, int input)
{
    char *const arguments[] = {(char[]){"addr2line"}, (char[]){"-fe"}, (char *)(uintptr_t)module,
                               NULL};
    int output = memfd_create("names", MFD_CLOEXEC);
    posix_spawn_file_actions_t actions;
    pid_t child;
    lseek(input, 0, SEEK_SET);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (!posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environ))
        waitpid(child, NULL, 0);
    posix_spawn_file_actions_destroy(&actions);
    close(input);
    lseek(output, 0, SEEK_SET);
    return fdopen(output, "r");
}

/* Reads a line, whose first NAME_BYTES - 1 bytes `line` gets. Returns false at the end. */
static bool get_line(char *line, FILE *from)
{
    const bool there = fgets(line, NAME_BYTES, from) != NULL;
    for (int c = there && !strchr(line, '\n') ? 0 : EOF; c != '\n' && c != EOF;)
        c = getc(from);
    return there;
}

/*
 * Names all places from `first` on that are in the same module, as far as addr2line knows. Places
 * of one construct get equal keys. gcc gives several constructs one line, so each of its places is
 * a construct.
 */
static void name_module(struct duet__omp_place *places, size_t first, size_t count, bool of_gcc)
{
    char function[NAME_BYTES], line[NAME_BYTES];
    Dl_info module;
    FILE *lines;
    int input;
    if (!places[first].code || !dladdr(places[first].code, &module))
        return;
    input = memfd_create("places", MFD_CLOEXEC);
    for (size_t i = first; i < count; i++)
        if (duet__omp_module(places[i].code) == module.dli_fbase)
            dprintf(input, "0x%zx\n", offset_in(&module, places[i].code));
    /* argv[0] may be relative to an earlier directory */
    snprintf(line, sizeof line, "/proc/%ld/exe", (long)getpid());
    if (strcmp(module.dli_fname, program_invocation_name) == 0)
        module.dli_fname = line;
    lines = run_addr2line(module.dli_fname, input);
    for (size_t i = first; i < count; i++) {
        char *colon = NULL;
        bool known;
        if (duet__omp_module(places[i].code) != module.dli_fbase)
            continue;
        if (lines && get_line(function, lines) && get_line(line, lines))
            colon = strrchr(line, ':');
        known = colon && colon[1] >= '1' && colon[1] <= '9' && line[0] != '?';
        if (asprintf(&places[i].key, "%s%s%s%p", places[i].kind, known ? function : "",
                     known ? line : "", known && !of_gcc ? NULL : places[i].code) < 0)
            places[i].key = NULL;
        if (!known)
            continue;
        colon[1 + strspn(colon + 1, "0123456789")] = '\0';
        snprintf(places[i].name, NAME_BYTES, "%s%s", places[i].kind, base_name(line));
    }
    if (lines)
        fclose(lines);
}

/* Shortens a name that is too long for a kernel of a graph: kind and end are kept, without parts of
 * a character of UTF-8. */
static void shorten_name(const struct duet__omp_place *place, size_t most)
{
    char *name = place->name;
    size_t kind = strlen(place->kind), length = strlen(name), from = kind;
    if (length > most)
        from += length - most;
    while (from > kind && ((unsigned char)name[from] & 0xc0) == 0x80)
        from++;
    memmove(name + kind, name + from, length - from + 1);
}

/* Numbers constructs of one line, which some compilers make of several lines. */
static void number_names(struct duet__omp_place *places, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; places[i].name && k < count; k++)
            places[i].rank += places[k].code < places[i].code && places[k].name &&
                              strcmp(places[k].name, places[i].name) == 0;
    for (size_t i = 0; i < count; i++)
        if (places[i].rank) {
            char suffix[24];
            int length = snprintf(suffix, sizeof suffix, ".%zu", places[i].rank + 1);
            shorten_name(&places[i], MOST - (size_t)length);
            memcpy(places[i].name + strlen(places[i].name), suffix, (size_t)length + 1);
        }
}

/* Numbers the constructs, and leaves the name to the first place of each. */
static void number_kernels(struct duet__omp_place *places, size_t count)
{
    uint32_t kernels = 0;
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < i && !(places[i].key && places[k].key && !strcmp(places[k].key, places[i].key)))
            k++;
        places[i].kernel = k < i ? places[k].kernel : kernels++;
        if (k < i) {
            free(places[i].name);
            places[i].name = NULL;
        }
    }
}

bool duet__omp_names(struct duet__omp_place *places, size_t count, bool of_gcc)
{
    for (size_t i = 0; i < count; i++)
        if (!(places[i].name = module_name(&places[i])))
            return false;
    for (size_t i = 0; i < count; i++)
        if (!places[i].key)
            name_module(places, i, count, of_gcc);
    for (size_t i = 0; i < count; i++)
        shorten_name(&places[i], MOST);
    number_kernels(places, count);
    number_names(places, count);
    return true;
}
