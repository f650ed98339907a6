/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing structs by tables of their members. */
#include "platforms/fields.h"

#include <math.h>
#include <string.h>

#include <glib.h>

enum { MOST_FIELDS = 32 };

static int read_number(const struct duet__json *at, const struct duet__field *field, double *value)
{
    double number = 0;
    int error = duet__json_number(at, field->or_zero ? 0 : field->least, field->most, &number);

    if (error == DUET_OK && field->or_zero && number > 0 && number < field->least)
        error = duet__json_fail(at, DUET_EPARSE, "%g is out of range, expected 0 or %g to %g",
                                number, field->least, field->most);
    if (error == DUET_OK)
        *value = number;
    return error;
}

static int read_numbers(const struct duet__json *at, const struct duet__field *field,
                        double *values)
{
    unsigned count = 0;
    int error =
        duet__json_array(at, field->kind == DUET__ALL ? field->room : 0, field->room, &count);

    for (unsigned i = 0; i < count && error == DUET_OK; i++) {
        struct duet__json element = duet__json_element(at, i);

        error = read_number(&element, field, &values[i]);
    }
    return error;
}

static int read_text(const struct duet__json *at, const struct duet__field *field,
                     const char **value)
{
    const char *text = "";
    int error = duet__json_string(at, &text);

    if (error == DUET_OK && field->room && (!*text || strlen(text) >= field->room))
        error = duet__json_fail(at, DUET_EPARSE, "'%.60s' is no name: 1 to %u bytes", text,
                                field->room - 1);
    if (error == DUET_OK)
        *value = text;
    return error;
}

static int read_field(const struct duet__json *at, const struct duet__field *field, void *into)
{
    switch (field->kind) {
    case DUET__NUMBER:
        return read_number(at, field, into);
    case DUET__INTEGER:
        return duet__json_integer(at, (uint64_t)field->least, (uint64_t)field->most, into);
    case DUET__UNSIGNED:
        return duet__json_unsigned(at, (unsigned)field->least, (unsigned)field->most, into);
    case DUET__BOOLEAN:
        return duet__json_boolean(at, into);
    case DUET__NAME:
        return duet__json_name(at, into, field->room);
    case DUET__TEXT:
        return read_text(at, field, into);
    case DUET__NUMBERS:
    case DUET__ALL:
        return read_numbers(at, field, into);
    case DUET__OBJECT:
        return duet__fields_read(at, field->fields, into);
    case DUET__ELSEWHERE:
        break;
    }
    return DUET_OK;
}

int duet__fields_read(const struct duet__json *at, const struct duet__field *fields, void *into)
{
    const char *known[MOST_FIELDS + 1] = {NULL};
    unsigned count = 0;
    int error;

    for (; fields[count].key != NULL && count < MOST_FIELDS; count++)
        known[count] = fields[count].key;
    error = duet__json_keys(at, fields[count].when == DUET__OPTIONAL ? NULL : known);
    for (; fields->key != NULL && error == DUET_OK; fields++) {
        struct duet__json member = duet__json_member(at, fields->key);
        void *value = duet__field_at(fields, into);

        if (fields->when == DUET__NEEDED || duet__json_present(&member))
            error = read_field(&member, fields, value);
        else if (fields->kind == DUET__NUMBER)
            *(double *)value = fields->unsaid;
    }
    return error;
}

/* Elements up to the last that is not 0. */
static unsigned count_known(const struct duet__field *field, const double *values)
{
    unsigned count = field->room;

    while (count > 0 && !(values[count - 1] > 0))
        count--;
    return count;
}

static void write_numbers(struct duet__json_writer *writer, const struct duet__field *field,
                          const double *values)
{
    duet__json_put_numbers(writer, field->key, values,
                           field->kind == DUET__ALL ? field->room : count_known(field, values));
}

/* Whether an optional member has nothing to say. */
static bool is_unsaid(const struct duet__field *field, const void *value)
{
    switch (field->kind) {
    case DUET__NUMBER: {
        double number = *(const double *)value;

        return number == field->unsaid || (isnan(number) && isnan(field->unsaid));
    }
    case DUET__INTEGER:
        return *(const uint64_t *)value == 0;
    case DUET__UNSIGNED:
        return *(const unsigned *)value == 0;
    case DUET__BOOLEAN:
        return !*(const bool *)value;
    case DUET__NAME:
        return *(const char *)value == '\0';
    case DUET__TEXT:
        return *(const char *const *)value == NULL;
    case DUET__NUMBERS:
    case DUET__ALL:
        return count_known(field, value) == 0;
    case DUET__OBJECT:
    case DUET__ELSEWHERE:
        break;
    }
    return false;
}

void duet__fields_write(struct duet__json_writer *writer, const struct duet__field *fields,
                        const void *from)
{
    for (; fields->key != NULL; fields++) {
        const void *value = duet__field_at(fields, from);

        if (fields->when == DUET__OPTIONAL && is_unsaid(fields, value))
            continue;
        switch (fields->kind) {
        case DUET__NUMBER:
            duet__json_put_number(writer, fields->key, *(const double *)value);
            break;
        case DUET__INTEGER:
            duet__json_put_integer(writer, fields->key, *(const uint64_t *)value);
            break;
        case DUET__UNSIGNED:
            duet__json_put_integer(writer, fields->key, *(const unsigned *)value);
            break;
        case DUET__BOOLEAN:
            duet__json_put_boolean(writer, fields->key, *(const bool *)value);
            break;
        case DUET__NAME:
            duet__json_put_string(writer, fields->key, value);
            break;
        case DUET__TEXT:
            duet__json_put_string(writer, fields->key, *(const char *const *)value);
            break;
        case DUET__NUMBERS:
        case DUET__ALL:
            write_numbers(writer, fields, value);
            break;
        case DUET__OBJECT:
            duet__json_begin(writer, fields->key, '{');
            duet__fields_write(writer, fields->fields, value);
            duet__json_end(writer, '}');
            break;
        case DUET__ELSEWHERE:
            break;
        }
    }
}
