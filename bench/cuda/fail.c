/* SPDX-License-Identifier: Apache-2.0 */
/* How the peers end when something is wrong, or missing. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/cuda/peers.h"

enum { TEXT = 512 };

static _Noreturn void end(int status, const char *what, const char *text)
{
    fflush(stdout);
    fprintf(stderr, "cuda_peers: %s%s\n", what, text);
    exit(status);
}

void peers_fail(const char *format, ...)
{
    char text[TEXT];
    va_list arguments;
    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it was started a line above */
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    end(EXIT_FAILURE, "", text);
}

void peers_skip(const char *format, ...)
{
    char text[TEXT];
    va_list arguments;
    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it was started a line above */
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    end(PEERS_SKIPPED, "skipped: ", text);
}
