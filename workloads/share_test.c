/* SPDX-License-Identifier: Apache-2.0 */
/* All of a shared work is done, and once. */
#include <glib.h>
#include "workloads/data.h"

enum { COUNT = 1000 };

static void mark(void *self, uint64_t first, uint64_t end)
{
    unsigned *marks = self;
    g_assert_cmpuint(first, <=, end);
    for (uint64_t i = first; i < end; i++)
        marks[i]++;
}

static void test_all_of_it(void)
{
    const uint64_t elements[] = {0, 1, COUNT, 1 << 20, 1 << 24, UINT64_C(1) << 40};
    for (size_t e = 0; e < G_N_ELEMENTS(elements); e++) {
        for (unsigned count = 0; count <= COUNT; count += count < 10 ? 1 : 330) {
            unsigned marks[COUNT + 1] = {0};
            duet__share(count, elements[e], mark, marks);
            for (unsigned i = 0; i <= COUNT; i++)
                g_assert_cmpuint(marks[i], ==, i < count);
        }
    }
}

TEST_MAIN(test_all_of_it)
