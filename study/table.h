/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An experiment as a table: factors and their values, and what they make together. A cell is one
 * combination, and is a command: a workload and options of `duet simulate`, as texts.
 */
#ifndef DUET_STUDY_TABLE_H
#define DUET_STUDY_TABLE_H

#include <stdint.h>

#include <glib.h>

#include <duet/error.h>

#include "runtime/settings.h"

/* One thing that is varied, or has one value in all cells. */
struct duet__factor {
    const struct duet__option *option; /* NULL: the workload, or the file of a task graph */
    char *name;        /* "workload", "gpu-memory", "link pcie": of a repeatable option one of each
                          name that its values begin with */
    char *column;      /* the same as a name in a data base: "gpu_memory", "link_pcie" */
    GPtrArray *values; /* char *: texts that the option takes; at least one */
    GHashTable *known; /* these, each once */
};

/* All combinations of some factors. */
struct duet__product {
    GPtrArray *factors; /* struct duet__factor, the workload first, then as in the options' table */
    uint64_t first, count; /* its cells */
};

/* A list of them, so that a cell has a number. duet__study_free frees it, half-built or not. */
struct duet__study {
    GPtrArray *products; /* struct duet__product */
    uint64_t count;      /* cells of all */
    char **program;      /* the words behind "--", borrowed: the workload of all cells. "{NAME}" in
                            them is replaced by the cell's value of --arg NAME. NULL: none */
};

enum { DUET__CELLS_MOST = 10000000 };

struct duet__study *duet__study_new(void); /* with one product, without factors */
struct duet__product *duet__product_new(void);
void duet__study_free(struct duet__study *study);

/*
 * Adds the values that a text stands for (duet__option_values) to the factor of this option (NULL:
 * the workload, one value, as it is) in a product; a flag without a text is "1". Each is checked as
 * far as the option alone says. DUET_EINVAL, also where one is there already; errors of policies
 * that are not there.
 */
DUET_MUST_CHECK int duet__study_add(struct duet__product *product,
                                    const struct duet__option *option, const char *text,
                                    struct duet_message *message);

/*
 * Reads products from a file: {"schema": 1, "cases": [{"workload": "cholesky", "n": [9600, 19200],
 * "link": {"pcie": "1x,2x"}, ...}, ...]}, of options that have all of `where`, each with what the
 * study's first product has and it has not itself. They take the place of that one. DUET_EIO,
 * DUET_EPARSE, DUET_EINVAL, with a message that names file and place.
 */
DUET_MUST_CHECK int duet__study_read(struct duet__study *study, const char *path, unsigned where,
                                     struct duet_message *message);

/* Numbers the cells, when all products are there. DUET_EINVAL: they are too many. */
DUET_MUST_CHECK int duet__study_number(struct duet__study *study, struct duet_message *message);

/* The product that a cell is of. */
const struct duet__product *duet__study_product(const struct duet__study *study, uint64_t cell);

/* The value that a cell of the product has of a factor. Borrowed. */
const char *duet__study_value(const struct duet__product *product, uint64_t cell, guint factor);

/* The value of a factor without the "NAME=" that values of repeatable options begin with.
   Borrowed. */
const char *duet__factor_value(const struct duet__factor *factor, const char *value);

/* The program of a cell, with its arguments; NULL: there is none. Free with g_strfreev. */
char **duet__cell_program(const struct duet__study *study, uint64_t cell);

/*
 * The command of a cell, which can be pasted into a shell: "duet simulate cholesky --n 9600 ...
 * --seed 1". The same cell gives the same text, however it was asked for. Free with g_free.
 */
char *duet__cell_command(const struct duet__study *study, const char *command, uint64_t cell,
                         uint64_t seed);

/* Words, NULL-ended, as one would type them. Free with g_free. */
char *duet__shell_text(const char *const *words);

/*
 * study->count numbers of cells, each once, in an order in which any beginning is spread over all
 * factors; of g_malloc. A cell of a product comes when a point of an additive recurrence (of powers
 * of the generalised golden ratio: M. Roberts, The unreasonable effectiveness of quasirandom
 * sequences, 2018) first lies in it; products take turns, in proportion to their sizes.
 */
uint32_t *duet__study_order(const struct duet__study *study);

#endif
