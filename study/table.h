/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An experiment as a table: factors and their values, and their combinations. A cell is one
 * combination, and is a command: a workload and options of `duet simulate`, as texts.
 */
#ifndef DUET_STUDY_TABLE_H
#define DUET_STUDY_TABLE_H

#include <stdint.h>

#include <glib.h>

#include <duet/error.h>

#include "runtime/settings.h"

/* A factor: an option that is varied, or has one value in all cells. */
struct duet__factor {
    const struct duet__option *option; /* NULL: the workload, or the file of a task graph */
    char *name;        /* "workload", "gpu-memory", "link pcie": a repeatable option has one for
                          each name that its values begin with */
    char *column;      /* `name` as a data base has it: "gpu_memory", "link_pcie" */
    GPtrArray *values; /* char *: texts that the option takes; at least one */
    GHashTable *known; /* set of `values` */
};

/* All combinations of some factors. */
struct duet__product {
    GPtrArray *factors; /* struct duet__factor, the workload first, then as in the options' table */
    uint64_t first, count; /* range of its cells */
};

/* A list of products, which numbers their cells. duet__study_free frees it, half-built or not. */
struct duet__study {
    GPtrArray *products; /* struct duet__product */
    uint64_t count;      /* number of cells of all products */
    char **program;      /* words behind "--", borrowed: the workload of all cells, with the cell's
                            value of --arg NAME in place of "{NAME}". NULL: none */
};

enum { DUET__CELLS_MOST = 10000000 };

struct duet__study *duet__study_new(void); /* has one product, without factors */
struct duet__product *duet__product_new(void);
void duet__study_free(struct duet__study *study);

/*
 * Adds the values that a text stands for (duet__option_values) to the factor of this option (NULL:
 * the workload, one value, as it is) in a product; a flag without a text is "1". Each is checked as
 * far as the option alone says. Returns DUET_EINVAL, also if a value is there already, or errors of
 * policies that do not exist.
 */
DUET_MUST_CHECK int duet__study_add(struct duet__product *product,
                                    const struct duet__option *option, const char *text,
                                    struct duet_message *message);

/*
 * Reads products from a file: {"schema": 1, "cases": [{"workload": "cholesky", "n": [9600, 19200],
 * "link": {"pcie": "1x,2x"}, ...}, ...]}. Their options have all of `where`, and each takes the
 * factors that it lacks from the study's first product, which they replace. Returns DUET_EIO,
 * DUET_EPARSE or DUET_EINVAL, with a message that names file and place.
 */
DUET_MUST_CHECK int duet__study_read(struct duet__study *study, const char *path, unsigned where,
                                     struct duet_message *message);

/* Numbers the cells, when all products are there. Returns DUET_EINVAL if there are too many. */
DUET_MUST_CHECK int duet__study_number(struct duet__study *study, struct duet_message *message);

/* Returns the product of a cell. */
const struct duet__product *duet__study_product(const struct duet__study *study, uint64_t cell);

/* Returns the value that a cell of the product has of a factor; borrowed. */
const char *duet__study_value(const struct duet__product *product, uint64_t cell, guint factor);

/* Returns the place of a factor in its product, by its name; -1: there is none. */
int duet__factor_place(const struct duet__product *product, const char *name);

/* Returns the value of a factor without the "NAME=" before values of repeatable options;
   borrowed. */
const char *duet__factor_value(const struct duet__factor *factor, const char *value);

/* True if the values of a factor are numbers, by the first. */
bool duet__factor_is_number(const struct duet__factor *factor);

/* Returns the program of a cell, with its arguments; NULL: there is none. Free with g_strfreev. */
char **duet__cell_program(const struct duet__study *study, uint64_t cell);

/*
 * Returns the command of a cell, which can be pasted into a shell: "duet simulate cholesky --n 9600
 * ... --seed 1". One cell always gives the same text, however it was asked for. Free with g_free.
 */
char *duet__cell_command(const struct duet__study *study, const char *command, uint64_t cell,
                         uint64_t seed);

/* Returns words, NULL-ended, as one would type them. Free with g_free. */
char *duet__shell_text(const char *const *words);

/*
 * Returns study->count numbers of cells, each once, in an order in which any beginning is spread
 * over all factors; of g_malloc. A cell of a product comes when a point of an additive recurrence
 * (of powers of the generalised golden ratio: M. Roberts, The unreasonable effectiveness of
 * quasirandom sequences, 2018) first lies in it; products take turns, in proportion to their sizes.
 */
uint32_t *duet__study_order(const struct duet__study *study);

#endif
