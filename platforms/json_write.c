/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and strings as JSON has them. */
#include "platforms/description.h"

const char *duet__digits(double value, char buffer[G_ASCII_DTOSTR_BUF_SIZE])
{
    static const char *const formats[] = {"%.15g", "%.16g", "%.17g"};

    for (unsigned i = 0; i < G_N_ELEMENTS(formats); i++) {
        g_ascii_formatd(buffer, G_ASCII_DTOSTR_BUF_SIZE, formats[i], value);
        if (g_ascii_strtod(buffer, NULL) == value)
            break; /* 17 digits are always enough */
    }
    return buffer;
}

void duet__append_string(GString *out, const char *text)
{
    g_string_append_c(out, '"');
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            g_string_append_printf(out, "\\%c", *c);
        else if ((unsigned char)*c < ' ')
            g_string_append_printf(out, "\\u%04x", (unsigned char)*c);
        else
            g_string_append_c(out, *c);
    }
    g_string_append_c(out, '"');
}
