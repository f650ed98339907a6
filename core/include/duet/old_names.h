/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of calls in duet 0.1, which 0.2 still takes and 0.3 will not. Their successors are on the
 * right.
 */
#ifndef DUET_OLD_NAMES_H
#define DUET_OLD_NAMES_H

struct duet_runtime;

#define duet_matrix(...) duet_register_matrix(__VA_ARGS__)
#define duet_vector(...) duet_register_vector(__VA_ARGS__)
#define duet_temporary(...) duet_register_temporary(__VA_ARGS__)
#define duet_block(...) duet_register_block(__VA_ARGS__)
#define duet_arrays(...) duet_register_arrays(__VA_ARGS__)
#define duet_data(...) duet_register_object(__VA_ARGS__)
#define duet_piece(...) duet_add_piece(__VA_ARGS__)
#define duet_codelet(...) duet_register_codelet(__VA_ARGS__)
#define duet_reduction(...) duet_set_reduction(__VA_ARGS__)
#define duet_cut_rows(runtime, whole, count, out) duet_cut_blocks(runtime, whole, count, 1, out)
#define duet_cut_cols(runtime, whole, count, out) duet_cut_blocks(runtime, whole, 1, count, out)
#define duet_own_at(runtime, handle, row, col)                                                     \
    duet_own(runtime, handle, duet_node_at(runtime, row, col))
#define duet_worker_busy(runtime, worker) duet_worker_stats(runtime, worker).busy_s
#define duet_worker_tasks(runtime, worker) duet_worker_stats(runtime, worker).tasks
#define duet_view_transfer_alone_seconds(view, worker, task)                                       \
    duet_view_transfer_seconds(view, worker, task, true)

#endif
