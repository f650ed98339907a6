/* SPDX-License-Identifier: Apache-2.0 */
/* Showing where threads run: OMP_DISPLAY_AFFINITY and OMP_AFFINITY_FORMAT (OpenMP 5.1, 6.4). */
#include "openmp/gomp/gomp.h"

#include <ctype.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char *format; /* mutex */

static const struct {
    char letter;
    const char *name;
} fields[] = {{'t', "team_num"},       {'T', "num_teams"},   {'L', "nesting_level"},
              {'n', "thread_num"},     {'N', "num_threads"}, {'a', "ancestor_tnum"},
              {'H', "host"},           {'P', "process_id"},  {'i', "native_thread_id"},
              {'A', "thread_affinity"}};

/* Writes the cores that the thread may run on: "0-3,6". */
static void write_cores(FILE *out)
{
    cpu_set_t cores;
    bool any = false;
    CPU_ZERO(&cores);
    (void)sched_getaffinity(0, sizeof cores, &cores);
    for (int first = 0; first < CPU_SETSIZE; first++) {
        int last = first;
        if (!CPU_ISSET(first, &cores))
            continue;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &cores))
            last++;
        (void)fprintf(out, last > first ? "%s%d-%d" : "%s%d", any ? "," : "", first, last);
        any = true;
        first = last;
    }
}

static void write_field(FILE *out, char letter)
{
    const struct omp_task *task = omp_now();
    const int level = (int)task->team->level;
    char host[256] = "";
    switch (letter) {
    case 't':
        (void)fprintf(out, "%d", omp_get_team_num());
        break;
    case 'T':
        (void)fprintf(out, "%d", omp_get_num_teams());
        break;
    case 'L':
        (void)fprintf(out, "%d", level);
        break;
    case 'n':
        (void)fprintf(out, "%u", task->thread);
        break;
    case 'N':
        (void)fprintf(out, "%u", task->team->size);
        break;
    case 'a':
        (void)fprintf(out, "%d", omp_get_ancestor_thread_num(level - 1));
        break;
    case 'H':
        (void)gethostname(host, sizeof host - 1);
        (void)fputs(host, out);
        break;
    case 'P':
        (void)fprintf(out, "%ld", (long)getpid());
        break;
    case 'i':
        (void)fprintf(out, "%ld", syscall(SYS_gettid));
        break;
    case 'A':
        write_cores(out);
        break;
    default:
        (void)fputs("undefined", out);
    }
}

/* Reads the letter, or the name in braces, at *text. */
static char read_field(const char **text)
{
    const char *end = **text == '{' ? strchr(*text, '}') : NULL;
    char letter = **text;
    if (!letter)
        return '\0';
    if (!end) {
        ++*text;
        return letter;
    }
    size_t length = (size_t)(end - *text) - 1;
    letter = '\0';
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strlen(fields[i].name) == length && !strncmp(*text + 1, fields[i].name, length))
            letter = fields[i].letter;
    *text = end + 1;
    return letter;
}

/* Writes a field of the format, "%0.8n", whose text begins behind the percent sign. */
static void write_padded(FILE *out, const char **text)
{
    bool zeros = **text == '0', right = false;
    char *value = NULL;
    size_t size = 0, width = 0;
    FILE *own = open_memstream(&value, &size);
    *text += zeros;
    right = **text == '.';
    *text += right;
    while (isdigit((unsigned char)**text))
        width = 10 * width + (size_t)(*(*text)++ - '0');
    if (!own)
        return;
    write_field(own, read_field(text));
    (void)fclose(own);
    const size_t pad = width > size ? width - size : 0;
    const char *digits = value + (*value == '-');
    const bool fills = zeros && right && isdigit((unsigned char)*digits);
    if (fills && digits > value)
        (void)fputc('-', out);
    for (size_t i = 0; right && i < pad; i++)
        (void)fputc(fills ? '0' : ' ', out);
    (void)fputs(fills ? digits : value, out);
    for (size_t i = 0; !right && i < pad; i++)
        (void)fputc(' ', out);
    free(value);
}

/* Returns a copy of the format; the caller owns it. NULL: no memory. */
static char *own_format(void)
{
    (void)pthread_mutex_lock(&mutex);
    char *own = strdup(format ? format : "level %L thread %i affinity %A");
    (void)pthread_mutex_unlock(&mutex);
    return own;
}

/* Returns the line that a format makes; the caller owns it. NULL: no memory. */
static char *make_line(const char *text, size_t length)
{
    char *own = text && length ? strndup(text, length) : own_format(), *line = NULL;
    size_t size;
    FILE *out = own ? open_memstream(&line, &size) : NULL;
    for (const char *at = own; out && *at;) {
        if (*at == '%' && at[1] != '%') {
            at++;
            write_padded(out, &at);
        } else {
            at += *at == '%';
            (void)fputc(*at++, out);
        }
    }
    if (out)
        (void)fclose(out);
    free(own);
    return line;
}

/* Copies a text to a program's buffer, with an end or, for Fortran, spaces; returns its length. */
static size_t hand_over(char *line, char *buffer, size_t size, bool fortran)
{
    size_t length = line ? strlen(line) : 0, copied = length < size ? length : size;
    if (size && copied)
        memcpy(buffer, line, copied);
    if (fortran && size > copied)
        memset(buffer + copied, ' ', size - copied);
    if (!fortran && size)
        buffer[copied < size ? copied : size - 1] = '\0';
    free(line);
    return length;
}

static size_t trimmed(const char *text, size_t length)
{
    while (length && text[length - 1] == ' ')
        length--;
    return length;
}

static void set_format(const char *text, size_t length)
{
    char *own = strndup(text, length);
    (void)pthread_mutex_lock(&mutex);
    free(format);
    format = own;
    (void)pthread_mutex_unlock(&mutex);
}

CALL(omp_set_affinity_format_, set_format(text, trimmed(text, length)), const char *text,
     size_t length)
CALL(omp_set_affinity_format, set_format(text, strlen(text)), const char *text)

GIVE(size_t, omp_get_affinity_format, hand_over(own_format(), buffer, size, false), char *buffer,
     size_t size)
GIVE(int32_t, omp_get_affinity_format_, (int32_t)hand_over(own_format(), buffer, size, true),
     char *buffer, size_t size)
GIVE(size_t, omp_capture_affinity,
     hand_over(make_line(text, text ? strlen(text) : 0), buffer, size, false), char *buffer,
     size_t size, const char *text)
GIVE(int32_t, omp_capture_affinity_,
     (int32_t)hand_over(make_line(text, trimmed(text, length)), buffer, size, true), char *buffer,
     const char *text, size_t size, size_t length)

DUET__ABI(void, omp_display_affinity_, const char *text, size_t length)
{
    char *line = make_line(text, text ? trimmed(text, length) : 0);
    (void)fprintf(stderr, "%s\n", line ? line : "");
    free(line);
}

CALL(omp_display_affinity, omp_display_affinity_(text, text ? strlen(text) : 0), const char *text)

bool duet__omp_shows_affinity;

__attribute__((constructor)) static void begin(void)
{
    const char *shown = getenv("OMP_DISPLAY_AFFINITY"), *text = getenv("OMP_AFFINITY_FORMAT");
    duet__omp_shows_affinity = shown && !strcasecmp(shown, "true");
    if (text && *text)
        omp_set_affinity_format(text);
}
