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

#include "platforms/signals.h"

/* A file being written. */
struct output {
    FILE *stream;    /* write here */
    char *path;      /* what it is going to be */
    char *temporary; /* what it is meanwhile; NULL where `path` is no ordinary file (/dev/stdout) */
};

static void output_close(struct output *output)
{
    free(output->path);
    free(output->temporary);
    *output = (struct output){0};
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
static int open_temporary(struct output *output)
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

/* On error it is closed. */
static int output_open(struct output *output, const char *path, struct duet_message *message)
{
    int fd;

    *output = (struct output){0};
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

/* Ends the file and gives it its name; an older one stays on error. Closed in both cases. */
static int output_commit(struct output *output, struct duet_message *message)
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

static void output_discard(struct output *output)
{
    fclose(output->stream);
    if (output->temporary)
        unlink(output->temporary);
    output_close(output);
}

static int write_all(const char *path, duet_output_fn *contents, const void *data,
                     struct duet_message *message)
{
    struct output output;
    int error = output_open(&output, path, message);

    if (error)
        return error;
    error = contents(output.stream, data, message);
    if (!error)
        return output_commit(&output, message);
    output_discard(&output);
    return error;
}

int duet_output_write(const char *path, duet_output_fn *contents, const void *data,
                      struct duet_message *message)
{
    sigset_t before;
    int error;

    duet__signals_hold(&before);
    error = write_all(path, contents, data, message);
    duet__signals_release(&before);
    return error;
}

int duet_output_check(const char *path, struct duet_message *message)
{
    struct output output;
    int error = output_open(&output, path, message);

    if (!error)
        output_discard(&output);
    return error;
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
