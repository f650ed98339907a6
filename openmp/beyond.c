/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds functions that a program, mostly one of gcc, calls and LLVM's runtime lacks or has with
 * another meaning.
 */
#include "openmp/recording.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* As found with LLVM 14, 16 and 19: calls go to libgomp's own, or end the program at times. */
static const char *const beyond[] = {"GOMP_target",   "GOMP_scope",         "GOMP_cancel",
                                     "GOMP_doacross", "GOMP_loop_doacross", "omp_fulfill_event"};

static bool is_runtime(const char *module)
{
    return strstr(module, "/libgomp") || strstr(module, "/libomp");
}

/* Looks through the names that a module imports and exports. */
static int look_at_module(struct dl_phdr_info *module, size_t size, void *found)
{
    const ElfW(Dyn) *entry = NULL;
    const char *names = NULL, *at;
    size_t bytes = 0;

    for (size_t i = 0; i < module->dlpi_phnum; i++)
        if (module->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const void *)(module->dlpi_addr + module->dlpi_phdr[i].p_vaddr);
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_STRTAB) /* some machines do not relocate it */
            names = (const void *)(entry->d_un.d_ptr +
                                   (entry->d_un.d_ptr < module->dlpi_addr ? module->dlpi_addr : 0));
        else if (entry->d_tag == DT_STRSZ)
            bytes = entry->d_un.d_val;
    }
    if (!names || is_runtime(module->dlpi_name))
        return 0;
    for (at = names; at < names + bytes; at += strlen(at) + 1)
        for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++)
            if (strncmp(at, beyond[i], strlen(beyond[i])) == 0)
                *(const char **)found = at;
    return 0;
}

static const char *used; /* function of `beyond` that the program uses */

static struct sigaction before; /* the program's own handling of faults */

/* Handles a fault in a runtime of OpenMP; other faults come again, to the program's own handler. */
static void on_fault(int number)
{
    enum { HANDLER, TRAMPOLINE, FAULT, FRAMES };
    void *frames[FRAMES];
    Dl_info module;

    if (backtrace(frames, FRAMES) < FRAMES || !dladdr(frames[FAULT], &module) ||
        !is_runtime(module.dli_fname)) {
        (void)sigaction(number, &before, NULL);
        return;
    }
    dprintf(STDERR_FILENO,
            "duet: OpenMP tasks: LLVM's runtime cannot run this program, as it uses %s (loops with "
            "ordered(n) need teams of two threads, --threads 2)\n",
            used);
    _exit(2);
}

const char *duet__omp_beyond(void)
{
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};
    void *frame;

    dl_iterate_phdr(look_at_module, &used);
    /* the first call of backtrace loads a library, which a handler must not do */
    if (used && backtrace(&frame, 1) > 0)
        (void)sigaction(SIGSEGV, &action, &before);
    return used;
}
