/* SPDX-License-Identifier: Apache-2.0 */
/* How much of what a test could try is tried: all of it, or less where each run takes long. */
#ifndef DUET_CORE_TESTING_PART_H
#define DUET_CORE_TESTING_PART_H

#include <glib.h>

/* One in so many is tried: DUET_TEST_PART of the environment, which sanitized builds set, or 1. */
static inline unsigned testing_part(void)
{
    const char *text = g_getenv("DUET_TEST_PART");
    return text ? (unsigned)CLAMP(g_ascii_strtoull(text, NULL, 10), 1, 1000) : 1;
}

#endif
