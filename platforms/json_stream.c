/* SPDX-License-Identifier: Apache-2.0 */
/* Long JSON documents, one value at a time. */
#include "platforms/json.h"

#include <string.h>

#include <glib.h>
#include <jansson.h>

int duet__json_stream_fail(struct duet__json_stream *stream, const char *format, ...)
{
    char *what;
    va_list args;

    va_start(args, format);
    what = g_strdup_vprintf(format, args);
    va_end(args);
    duet_fail(stream->message, DUET_EPARSE, "%.300s: %s", stream->place, duet__json_clean(what));
    g_free(what);
    return DUET_EPARSE;
}

/* From here on messages are about what begins at `at`. */
static void note_place(struct duet__json_stream *stream)
{
    g_free(stream->place);
    stream->place = g_strdup_printf("%s:%u", stream->path, stream->line);
}

static void move_to(struct duet__json_stream *stream, const char *to)
{
    for (; stream->at < to; stream->at++)
        stream->line += *stream->at == '\n';
}

static bool is_blank(char character)
{
    return character == ' ' || character == '\t' || character == '\r' || character == '\n';
}

/* Whether the next character that is no blank is this one, which is then read. */
static bool take(struct duet__json_stream *stream, char wanted)
{
    const char *at = stream->at;

    while (at < stream->end && is_blank(*at))
        at++;
    move_to(stream, at);
    if (at >= stream->end || *at != wanted)
        return false;
    stream->at++;
    return true;
}

/* Fails at the place that has been reached. */
static int expected(struct duet__json_stream *stream, const char *what)
{
    note_place(stream);
    return duet__json_stream_fail(stream,
                                  stream->at < stream->end ? "expected %s"
                                                           : "expected %s, but the text ends",
                                  what);
}

/* Reads a value of any kind; the one before it is freed. */
static int read_value(struct duet__json_stream *stream)
{
    json_error_t problem;

    (void)take(stream, ' ');
    json_decref(stream->node);
    note_place(stream);
    stream->node =
        json_loadb(stream->at, (size_t)(stream->end - stream->at),
                   JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, &problem);
    if (!stream->node) {
        stream->line += (unsigned)MAX(problem.line, 1) - 1;
        note_place(stream);
        return duet__json_stream_fail(stream, "%s", problem.text);
    }
    move_to(stream, stream->at + problem.position);
    return DUET_OK;
}

int duet__json_stream_open(struct duet__json_stream *stream, const char *text, size_t length,
                           const char *path, struct duet_message *message)
{
    *stream = (struct duet__json_stream){.path = path,
                                         .at = text,
                                         .end = text + length,
                                         .message = message,
                                         .line = 1,
                                         .keys = json_object()};
    return take(stream, '{') ? DUET_OK : expected(stream, "an object");
}

/* Passes over what remains of the last member. */
static int finish_value(struct duet__json_stream *stream)
{
    struct duet__json at;
    int error = DUET_OK;

    if (!stream->value_is_due)
        return DUET_OK;
    if (stream->elements == 0)
        return duet__json_stream_value(stream, &at);
    while (stream->value_is_due && error == DUET_OK)
        error = duet__json_stream_element(stream, &at);
    return error;
}

static int end_document(struct duet__json_stream *stream, const char **key)
{
    *key = NULL;
    (void)take(stream, ' ');
    return stream->at == stream->end ? DUET_OK
                                     : expected(stream, "one object and nothing behind it");
}

int duet__json_stream_key(struct duet__json_stream *stream, const char **key)
{
    int error = finish_value(stream);

    *key = NULL;
    if (error != DUET_OK)
        return error;
    if (take(stream, '}'))
        return end_document(stream, key);
    if (stream->begun && !take(stream, ','))
        return expected(stream, "',' or '}'");
    stream->begun = true;
    if (!take(stream, '"'))
        return expected(stream, "a name in quotes");
    stream->at--;
    error = read_value(stream);
    if (error != DUET_OK)
        return error;
    if (json_object_get(stream->keys, json_string_value(stream->node)))
        return duet__json_stream_fail(stream, "the key \"%.60s\" is there twice",
                                      json_string_value(stream->node));
    json_object_set_new(stream->keys, json_string_value(stream->node), json_null());
    *key = json_object_iter_key(json_object_iter_at(stream->keys, json_string_value(stream->node)));
    if (!take(stream, ':'))
        return expected(stream, "':'");
    stream->value_is_due = true;
    stream->elements = 0;
    return DUET_OK;
}

static struct duet__json place_of(const struct duet__json_stream *stream, json_t *node)
{
    return (struct duet__json){.node = node, .path = stream->place, .message = stream->message};
}

int duet__json_stream_value(struct duet__json_stream *stream, struct duet__json *at)
{
    int error = read_value(stream);

    stream->value_is_due = false;
    *at = place_of(stream, stream->node);
    return error;
}

int duet__json_stream_element(struct duet__json_stream *stream, struct duet__json *at)
{
    int error;

    *at = place_of(stream, NULL);
    if (stream->elements == 0 && !take(stream, '['))
        return expected(stream, "an array");
    if (take(stream, ']')) {
        stream->value_is_due = false;
        return DUET_OK;
    }
    if (stream->elements > 0 && !take(stream, ','))
        return expected(stream, "',' or ']'");
    stream->elements++;
    error = read_value(stream);
    *at = place_of(stream, stream->node);
    return error;
}

void duet__json_stream_close(struct duet__json_stream *stream)
{
    json_decref(stream->node);
    json_decref(stream->keys);
    g_free(stream->place);
    *stream = (struct duet__json_stream){.path = NULL};
}
