/* SPDX-License-Identifier: Apache-2.0 */
/* Counts memory functions that the compiler leaves to the C library: linked with
 * -Wl,--wrap=memset,--wrap=memcpy. */

#include "bench/contention/contention.h"

void *__real_memset(void *to, int byte, size_t bytes);
void *__wrap_memset(void *to, int byte, size_t bytes);
void *__wrap_memset(void *to, int byte, size_t bytes)
{
    lines_touch(to, bytes, __builtin_return_address(0), true);
    return __real_memset(to, byte, bytes);
}

void *__real_memcpy(void *to, const void *from, size_t bytes);
void *__wrap_memcpy(void *to, const void *from, size_t bytes);
void *__wrap_memcpy(void *to, const void *from, size_t bytes)
{
    lines_touch(from, bytes, __builtin_return_address(0), false);
    lines_touch(to, bytes, __builtin_return_address(0), true);
    return __real_memcpy(to, from, bytes);
}
