/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are either whole or not there; text for XML. */
#include "report/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
