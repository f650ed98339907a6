/* SPDX-License-Identifier: Apache-2.0 */
/* Names of places in an OpenMP program, the same in every run of it. */
#ifndef DUET_OPENMP_NAMES_H
#define DUET_OPENMP_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The code of a construct, or of a parallel region outside its tasks. It is a kernel, together with
 * the other copies that a compiler makes of a loop. */
struct duet__omp_place {
    const void *code; /* NULL: none */
    const char *kind; /* "", "parallel:", "loop:"; "serial" and "barrier" have no code */
    /* set by duet__omp_names */
    uint32_t kernel; /* its number in the file */
    char *name;      /* kernel's name; NULL: an earlier place has it */
    char *key;       /* equal for all places of a kernel; NULL: not known */
    size_t rank;     /* among the places of that name, by code */
};

/* Returns the begin of the program or library that has `code`; NULL: not known. */
const void *duet__omp_module(const void *code);

/*
 * Numbers the kernels of `count` places, and names the first place of each: its kind, and
 * "file.c:12" from the program's debugging information, else "module+0x1234", which is the same in
 * every run. Places of one line of one function are one kernel, but in programs of gcc. false: out
 * of memory.
 */
bool duet__omp_names(struct duet__omp_place *places, size_t count, bool of_gcc);

#endif
