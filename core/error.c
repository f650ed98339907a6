/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of the error codes, and the function that writes messages. */
#include <duet/error.h>

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

const char *duet_strerror(int error)
{
    switch (error) {
    case DUET_OK:
        return "success";
#define X(name, value, text)                                                                       \
    case name:                                                                                     \
        return text;
        DUET_ERRORS(X)
#undef X
    default:
        return "unknown error";
    }
}

int duet_fail(struct duet_message *message, int error, const char *format, ...)
{
    if (message != NULL) {
        va_list args;
        va_start(args, format);
        if (vsnprintf(message->text, sizeof(message->text), format, args) < 0)
            message->text[0] = '\0';
        va_end(args);
        /* names in files may hold control characters */
        for (char *at = message->text; *at != '\0'; at++)
            if (((unsigned char)*at < ' ' && *at != '\n') || *at == '\177')
                *at = '?';
    }
    return error;
}
