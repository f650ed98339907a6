/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are either whole or not there; JSON, XML and number writers without a locale. */
#include "report/output.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NUMBER_MAX = 400 }; /* bytes of the longest double in %f */

static void output_close(struct duet_output *output)
{
    free(output->path);
    free(output->temporary);
    *output = (struct duet_output){0};
}

/* Where a file named `path` really goes: the target of a link, else `path`. Caller frees. */
static char *output_target(const char *path)
{
    char *target = realpath(path, NULL);

    return target ? target : strdup(path);
}

static bool is_special(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

/* Opens the temporary file, whose name holds the process so that two runs do not meet. */
static int open_temporary(struct duet_output *output)
{
    size_t size = strlen(output->path) + 32;
    int fd;

    output->temporary = malloc(size);
    if (!output->temporary) {
        errno = ENOMEM;
        return -1;
    }
    snprintf(output->temporary, size, "%s.%ld.tmp", output->path, (long)getpid());
    fd = open(output->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        free(output->temporary);
        output->temporary = NULL;
    }
    return fd;
}

int duet_output_open(struct duet_output *output, const char *path, struct duet_message *message)
{
    int fd;

    *output = (struct duet_output){0};
    output->path = output_target(path);
    if (!output->path)
        return duet_fail(message, DUET_ENOMEM, "out of memory opening %s", path);
    if (is_special(output->path))
        fd = open(output->path, O_WRONLY | O_CLOEXEC);
    else
        fd = open_temporary(output);
    if (fd >= 0)
        output->stream = fdopen(fd, "w");
    if (!output->stream) {
        int error = errno;

        if (fd >= 0)
            close(fd);
        if (output->temporary)
            unlink(output->temporary);
        output_close(output);
        return duet_fail(message, DUET_EIO, "cannot write %s: %s", path, strerror(error));
    }
    return 0;
}

int duet_output_commit(struct duet_output *output, struct duet_message *message)
{
    int result = 0;
    bool bad = ferror(output->stream) != 0;

    errno = 0;
    if (fclose(output->stream) != 0)
        bad = true;
    if (!bad && output->temporary && rename(output->temporary, output->path) != 0)
        bad = true;
    if (bad) {
        result = duet_fail(message, DUET_EIO, "cannot write %s: %s", output->path,
                           strerror(errno ? errno : EIO));
        if (output->temporary)
            unlink(output->temporary);
    }
    output_close(output);
    return result;
}

void duet_output_discard(struct duet_output *output)
{
    if (!output->stream)
        return;
    fclose(output->stream);
    if (output->temporary)
        unlink(output->temporary);
    output_close(output);
}

void duet_write_json_string(FILE *stream, const char *text)
{
    putc('"', stream);
    for (const char *at = text; *at; at++) {
        unsigned char c = (unsigned char)*at;

        if (c == '"' || c == '\\')
            fprintf(stream, "\\%c", c);
        else if (c < 0x20 || c == '<' || c == 0x7f)
            fprintf(stream, "\\u%04x", c);
        else
            putc(c, stream);
    }
    putc('"', stream);
}

/* The only character of a printed double that depends on the locale is the point. */
static void put_number(FILE *stream, char *text)
{
    size_t digits = strspn(text, "-0123456789");

    if (text[digits] && text[digits] != 'e') {
        size_t point = 1;

        while (text[digits + point] && !strchr("0123456789", text[digits + point]))
            point++;
        text[digits] = '.';
        memmove(text + digits + 1, text + digits + point, strlen(text + digits + point) + 1);
    }
    fputs(text, stream);
}

void duet_write_json_number(FILE *stream, double value)
{
    char text[NUMBER_MAX];

    if (!isfinite(value)) {
        fputs("null", stream);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    put_number(stream, text);
}

void duet_write_fixed(FILE *stream, double value, int digits)
{
    char text[NUMBER_MAX];

    snprintf(text, sizeof(text), "%.*f", digits, value);
    put_number(stream, text);
}

void duet_write_xml_text(FILE *stream, const char *text)
{
    for (const char *at = text; *at; at++) {
        switch (*at) {
        case '<':
            fputs("&lt;", stream);
            break;
        case '>':
            fputs("&gt;", stream);
            break;
        case '&':
            fputs("&amp;", stream);
            break;
        case '"':
            fputs("&quot;", stream);
            break;
        default:
            /* XML has no way to write other control characters */
            putc((unsigned char)*at < 0x20 && *at != '\n' && *at != '\t' ? ' ' : *at, stream);
        }
    }
}
