/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In how many ways n queens can stand on a board of n x n squares without attacking each other: a
 * task for each place of the first queens, which waits for those of the next row and adds up. Rows
 * below the first ones are counted without tasks.
 *
 * queens [n] [rows] [--duet-cpus=2]       counts on this machine
 *     queens --duet-simulate=idgraf           counts in simulated time
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <duet/duet.h>
#include <duet/trace.h>

enum { SIDE_MAX = 16 };

/* A board: its first rows have queens; bits of the next row that these attack. */
struct board {
    unsigned side, row, rows; /* rows: those with tasks */
    uint32_t columns, left, right;
    uint64_t *ways;
};

static struct board with_queen(const struct board *board, uint32_t bit)
{
    struct board next = *board;
    next.row++;
    next.columns |= bit;
    next.left = (board->left | bit) << 1;
    next.right = (board->right | bit) >> 1;
    return next;
}

static uint32_t free_squares(const struct board *board)
{
    return ((1U << board->side) - 1) & ~(board->columns | board->left | board->right);
}

static uint64_t count(const struct board *board)
{
    uint64_t ways = board->row == board->side;
    for (uint32_t squares = free_squares(board); squares; squares &= squares - 1) {
        const struct board next = with_queen(board, squares & -squares);
        ways += count(&next);
    }
    return ways;
}

static int queens(struct duet_expansion *expansion, const struct duet_call *call)
{
    const struct board *board = call->args;
    uint64_t ways[SIDE_MAX] = {0}, *next_ways = ways;
    int error = DUET_OK;
    if (board->row >= board->rows) {
        *board->ways = count(board);
        return DUET_OK;
    }
    for (uint32_t squares = free_squares(board); squares && !error; squares &= squares - 1) {
        struct board next = with_queen(board, squares & -squares);
        next.ways = next_ways++;
        const struct duet_task_desc task = {.codelet = duet_codelet_find(call->runtime, "queens"),
                                            .args = &next,
                                            .args_bytes = sizeof next};
        error = duet_expand_submit(expansion, &task);
    }
    /* Waits in any case: a child submitted before an error writes to this function's ways. */
    const int waited = duet_expand_wait(expansion);
    error = error ? error : waited;
    *board->ways = 0;
    for (unsigned i = 0; i < SIDE_MAX && !error; i++)
        *board->ways += ways[i];
    return error;
}

/* Rough time of a task by itself: three squares of each row are free. */
static double seconds(const void *args, const char *arch)
{
    const struct board *board = args;
    double boards = 1;
    for (unsigned row = board->row; board->row >= board->rows && row + 3 < board->side; row++)
        boards *= 3;
    return 0.5e-6 + 10e-9 * boards;
}

static int compute(struct duet_runtime *duet, unsigned side, unsigned rows)
{
    const struct duet_codelet_desc desc = {.name = "queens",
                                           .cost = seconds,
                                           .expand = queens,
                                           .waits = true};
    struct duet_codelet *codelet;
    struct duet_stats stats;
    uint64_t ways = 0;
    const struct board board = {.side = side, .rows = rows, .ways = &ways};
    int error = duet_register_codelet(duet, &desc, &codelet);
    const struct duet_task_desc task = {.codelet = codelet,
                                        .args = &board,
                                        .args_bytes = sizeof board};
    if (!error)
        error = duet_submit(duet, &task);
    if (!error)
        error = duet_wait(duet);
    if (error)
        return error;
    duet_stats(duet, &stats);
    printf("%u queens: %" PRIu64 " ways by %" PRIu64 " tasks in %.3f ms\n", side, ways, stats.tasks,
           1e3 * stats.makespan_s);
    return ways == count(&board) ? DUET_OK : DUET_EIO;
}

static unsigned number(int argc, char **argv, int index, unsigned otherwise)
{
    return argc > index ? (unsigned)strtoul(argv[index], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    struct duet_message message = {""};
    struct duet_config config;
    struct duet_runtime *duet = NULL;
    duet_config_init(&config);
    int error = duet_config_environment(&config, &message);
    if (!error)
        error = duet_config_arguments(&config, &argc, argv, &message);
    unsigned side = number(argc, argv, 1, 10), rows = number(argc, argv, 2, 3);
    if (!error && (side < 1 || side > SIDE_MAX || rows > side))
        error = duet_fail(&message, DUET_EINVAL, "1 to %d queens, and no more rows", SIDE_MAX);
    if (!error)
        error = duet_open(&duet, &config, &message);
    if (error) {
        fprintf(stderr, "queens: %s\n", message.text);
        return 2;
    }
    error = compute(duet, side, rows);
    if (error)
        fprintf(stderr, "queens: %s: %s\n", duet_strerror(error), duet_last_message(duet));
    return duet_close(duet) || error;
}
