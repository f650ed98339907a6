/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that expand into children on blocks of their data. */
#include "core/internal.h"

int duet_expand_block(struct duet_expansion *expansion, size_t index, size_t row, size_t col,
                      size_t rows, size_t cols, struct duet_handle **out)
{
    *out = NULL;
    return DUET_EABSENT;
}

int duet_expand_submit(struct duet_expansion *expansion, const struct duet_task_desc *task)
{
    return DUET_EABSENT;
}
