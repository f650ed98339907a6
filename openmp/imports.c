/* SPDX-License-Identifier: Apache-2.0 */
/* What programs call, of gcc above all, that LLVM's runtime does not have, or not as they mean it.
 */
#include "openmp/recording.h"

#include <link.h>
#include <string.h>

/* As found with LLVM 14, 16 and 19: calls go to libgomp's own, or end the program now and then. */
static const char *const beyond[] = {"GOMP_target",   "GOMP_scope",         "GOMP_cancel",
                                     "GOMP_doacross", "GOMP_loop_doacross", "omp_fulfill_event"};

/* Looks through the names that a module takes from others, and has for others. */
static int look(struct dl_phdr_info *module, size_t size, void *found)
{
    const ElfW(Dyn) *entry = NULL;
    const char *names = NULL, *at;
    size_t bytes = 0;

    for (size_t i = 0; i < module->dlpi_phnum; i++)
        if (module->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const void *)(module->dlpi_addr + module->dlpi_phdr[i].p_vaddr);
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_STRTAB) /* which some machines do not relocate */
            names = (const void *)(entry->d_un.d_ptr +
                                   (entry->d_un.d_ptr < module->dlpi_addr ? module->dlpi_addr : 0));
        else if (entry->d_tag == DT_STRSZ)
            bytes = entry->d_un.d_val;
    }
    if (!names || strstr(module->dlpi_name, "/libgomp") || strstr(module->dlpi_name, "/libomp"))
        return 0;
    for (at = names; at < names + bytes; at += strlen(at) + 1)
        for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++)
            if (strncmp(at, beyond[i], strlen(beyond[i])) == 0)
                *(const char **)found = at;
    return 0;
}

const char *duet__omp_beyond(void)
{
    const char *found = NULL;

    dl_iterate_phdr(look, &found);
    return found;
}
