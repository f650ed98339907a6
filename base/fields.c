/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes structs by tables of their members. */
#include "base/fields.h"

#include <math.h>
#include <string.h>

#include <glib.h>

#include <duet/machine.h>

enum { MOST_FIELDS = 32 };

static int read_number(const struct duet__json *at, const struct duet__field *field, double *value)
{
    double number = NAN;
    int error =
        field->when == DUET__NEEDED && isnan(field->unsaid) && duet__json_is_null(at)
            ? DUET_OK
            : duet__json_number(at, field->or_zero ? 0 : field->least, field->most, &number);
    if (!error && field->or_zero && number > 0 && number < field->least)
        error = duet__json_fail(at, DUET_EPARSE, "%g is out of range, expected 0 or %g to %g",
                                number, field->least, field->most);
    if (!error)
        *value = number;
    return error;
}

static int read_text(const struct duet__json *at, const struct duet__field *field, void *value)
{
    const char *text = "";
    int error = duet__json_string(at, &text);
    if (!error && field->room > 0 && (*text == '\0' || strlen(text) >= field->room))
        error = duet__json_fail(at, DUET_EPARSE, "'%.60s' is not of 1 to %u bytes", text,
                                field->room - 1);
    if (!error && field->kind == DUET__WORDS)
        (void)g_strlcpy(value, text, field->room);
    else if (!error)
        *(const char **)value = text;
    return error;
}

static int read_copy(const struct duet__json *at, char **copy)
{
    const char *text = NULL;
    int error = duet__json_string(at, &text);
    if (!error)
        *copy = g_strdup(text);
    return error;
}

static int read_digits(const struct duet__json *at, uint64_t *value)
{
    const char *text = "";
    int error = duet__json_string(at, &text);
    if (!error && !duet__scan_whole(text, 0, UINT64_MAX, value))
        error = duet__json_fail(at, DUET_EPARSE, "'%.40s' is no whole number", text);
    return error;
}

static int read_choice(const struct duet__json *at, const struct duet__field *field,
                       unsigned *choice)
{
    const char *text = NULL;
    char *known;
    int error = duet__json_string(at, &text);
    if (error)
        return error;
    for (*choice = 0; field->choices[*choice] != NULL; ++*choice)
        if (g_ascii_strcasecmp(field->choices[*choice], text) == 0)
            return DUET_OK;
    known = g_strjoinv(", ", (char **)(uintptr_t)field->choices);
    duet__json_fail(at, DUET_EPARSE, "\"%.60s\", expected one of %s", text, known);
    g_free(known);
    return DUET_EPARSE;
}

static void *member_at(const void *from, size_t offset)
{
    return (char *)(uintptr_t)from + offset;
}

static unsigned length_of(const struct duet__list *list, const void *from)
{
    return list->inside ? list->most : *(const unsigned *)member_at(from, list->count);
}

static char *element_of(const struct duet__list *list, const void *from, size_t index)
{
    char **array = member_at(from, list->array);
    return (list->inside ? (char *)array : *array) + index * list->size;
}

/* Returns the name of an element of the root's list; NULL: there is none. */
static const char *name_of(const struct duet__list *list, const void *root, unsigned index)
{
    return index < length_of(list, root) ? element_of(list, root, index) : NULL;
}

static int read_index(const struct duet__json *at, const struct duet__list *list, void *root,
                      unsigned *index)
{
    char name[DUET_NAME_MAX], **array = member_at(root, list->array);
    const unsigned count = length_of(list, root);
    int error = duet__json_name(at, name, sizeof(name));
    if (error)
        return error;
    for (*index = 0; *index < count; ++*index)
        if (strcmp(name_of(list, root, *index), name) == 0)
            return DUET_OK;
    if (!list->grows || count == list->most)
        return duet__json_fail(at, DUET_EPARSE, "no %s is named %s", list->what, name);
    *(unsigned *)member_at(root, list->count) = count + 1;
    *array = g_realloc_n(*array, count + 1, list->size);
    memset(element_of(list, root, count), 0, list->size);
    (void)g_strlcpy(element_of(list, root, count), name, sizeof(name));
    return DUET_OK;
}

static int read_field(const struct duet__json *at, const struct duet__field *field, void *into,
                      void *root);

/* Reads an object for each element or, with a `value`, that member of it. Elements are made by
 * their first member; others have to be as many. */
static int read_list(const struct duet__json *at, const struct duet__list *list,
                     const struct duet__field *value, void *into, void *root)
{
    const bool made = list->inside || (value != NULL && value->offset > 0);
    const unsigned length = length_of(list, into);
    unsigned count = 0;
    int error = value != NULL && duet__json_is_null(at)
                    ? DUET_OK
                    : duet__json_array(at, made && !list->inside ? length : list->least,
                                       made ? length : list->most, &count);
    if (error)
        return error;
    if (!made) {
        *(unsigned *)member_at(into, list->count) = count;
        *(void **)member_at(into, list->array) = g_malloc0_n(count + 1, list->size);
    }
    for (unsigned i = 0; i < count && !error; i++) {
        struct duet__json element = duet__json_element(at, i);
        if (value != NULL)
            error = read_field(&element, value, element_of(list, into, i), root);
        else
            error = duet__xml_record(&element, list->fields);
        if (!error && value == NULL)
            error = duet__part_read(&element, list->fields, element_of(list, into, i), root);
        if (!error && list->check != NULL)
            error = list->check(&element, root, i);
    }
    return error;
}

static int read_members(const struct duet__json *at, const struct duet__field *fields, void *into,
                        void *root, bool partial);

static int read_field(const struct duet__json *at, const struct duet__field *field, void *into,
                      void *root)
{
    void *value = duet__field_at(field, into);
    const char *text;
    switch (field->kind) {
    case DUET__NUMBER:
    case DUET__MICROS:
        return read_number(at, field, value);
    case DUET__DIGITS:
        return read_digits(at, value);
    case DUET__INTEGER:
        return duet__json_integer(at, (uint64_t)field->least, (uint64_t)field->most, value);
    case DUET__UNSIGNED:
        return duet__json_unsigned(at, (unsigned)field->least, (unsigned)field->most, value);
    case DUET__BOOLEAN:
        return duet__json_boolean(at, value);
    case DUET__NAME:
        return duet__json_name(at, value, field->room);
    case DUET__WORDS:
    case DUET__TEXT:
        return read_text(at, field, value);
    case DUET__COPY:
        return read_copy(at, value);
    case DUET__CHOICE:
        return read_choice(at, field, value);
    case DUET__INDEX:
        return read_index(at, field->list, root, value);
    case DUET__OBJECT:
        return read_members(at, field->fields, value, root, field->partial);
    case DUET__LIST:
    case DUET__VALUES:
        return read_list(at, field->list, field->fields, into, root);
    case DUET__ORIGIN:
        return duet__json_string(at, &text);
    case DUET__CUSTOM:
        return field->read != NULL ? field->read(at, into, root) : DUET_OK;
    }
    return DUET_OK;
}

static bool is_needed(const struct duet__field *field, const void *root)
{
    if (field->kind == DUET__ORIGIN)
        return *(char *const *)duet__field_at(field, root) == NULL;
    return field->when == DUET__NEEDED;
}

static int read_members(const struct duet__json *at, const struct duet__field *fields, void *into,
                        void *root, bool partial)
{
    const char *known[MOST_FIELDS + 1] = {NULL};
    unsigned count = 0;
    int error;
    for (; fields[count].key != NULL && count < MOST_FIELDS; count++)
        known[count] = fields[count].key;
    error = duet__json_keys(at, fields[count].when == DUET__OPTIONAL ? NULL : known);
    for (; fields->key != NULL && !error; fields++) {
        struct duet__json member = duet__json_member(at, fields->key);
        if (fields->kind == DUET__NUMBER && fields->when == DUET__OPTIONAL)
            *(double *)duet__field_at(fields, into) = fields->unsaid;
        if (!duet__json_present(&member) && (partial || !is_needed(fields, root)))
            continue;
        error = duet__xml_value(&member, fields);
        if (!error)
            error = read_field(&member, fields, into, root);
    }
    return error;
}

int duet__part_read(const struct duet__json *at, const struct duet__field *fields, void *into,
                    void *root)
{
    return read_members(at, fields, into, root, false);
}

int duet__fields_read(const struct duet__json *at, const struct duet__field *fields, void *into)
{
    return read_members(at, fields, into, into, false);
}

int duet__field_read(const struct duet__json *at, const struct duet__field *fields, const char *key,
                     void *into)
{
    for (; fields->key != NULL; fields++)
        if (strcmp(fields->key, key) == 0)
            return read_field(at, fields, into, into);
    return duet__json_fail(at, DUET_EPARSE, "unknown key \"%.60s\"", key);
}

/* True if a member is left out of the file: it has the value `unsaid`, or is empty. */
static bool is_unsaid(const struct duet__field *field, const void *from)
{
    const void *value = duet__field_at(field, from);
    bool unsaid = true;
    switch (field->kind) {
    case DUET__NUMBER:
    case DUET__MICROS: {
        double number = *(const double *)value;
        return number == field->unsaid || (isnan(number) && isnan(field->unsaid));
    }
    case DUET__INTEGER:
        return *(const uint64_t *)value == 0;
    case DUET__UNSIGNED:
    case DUET__CHOICE:
        return *(const unsigned *)value == 0;
    case DUET__BOOLEAN:
        return *(const bool *)value == (field->unsaid != 0);
    case DUET__NAME:
    case DUET__WORDS:
        return *(const char *)value == '\0';
    case DUET__TEXT:
    case DUET__COPY:
        return *(const char *const *)value == NULL;
    case DUET__OBJECT:
        for (const struct duet__field *member = field->fields; member->key != NULL; member++)
            unsaid = unsaid && is_unsaid(member, value);
        return unsaid;
    case DUET__LIST:
    case DUET__VALUES:
        return length_of(field->list, from) == 0;
    case DUET__ORIGIN:
        return true;
    case DUET__INDEX:
        return *(const unsigned *)value == UINT_MAX;
    case DUET__DIGITS:
    case DUET__CUSTOM:
        break;
    }
    return false;
}

static void write_field(struct duet__json_writer *writer, const struct duet__field *field,
                        const void *from, const void *root);

static void write_list(struct duet__json_writer *writer, const struct duet__field *field,
                       const void *from, const void *root)
{
    const struct duet__field whole = {.kind = DUET__OBJECT, .fields = field->list->fields},
                             *value = field->fields != NULL ? field->fields : &whole;
    duet__json_begin(writer, field->key, '[');
    for (unsigned i = 0; i < length_of(field->list, from); i++) {
        if (field->list->lines && value == &whole)
            duet__json_break(writer, 0);
        write_field(writer, value, element_of(field->list, from, i), root);
    }
    duet__json_end(writer, ']');
}

/* Writes a value of a kind that needs nothing else of its field; false: it is of another one. */
static bool write_value(struct duet__json_writer *writer, const char *key, enum duet__kind kind,
                        const void *value)
{
    char digits[DUET__DIGITS_MAX];
    switch (kind) {
    case DUET__NUMBER:
        duet__json_put_number(writer, key, *(const double *)value);
        return true;
    case DUET__MICROS:
        duet__json_put_thousandths(writer, key, llround(*(const double *)value * 1000));
        return true;
    case DUET__INTEGER:
        duet__json_put_integer(writer, key, *(const uint64_t *)value);
        return true;
    case DUET__DIGITS:
        (void)g_snprintf(digits, sizeof digits, "%" G_GUINT64_FORMAT, *(const uint64_t *)value);
        duet__json_put_string(writer, key, digits);
        return true;
    case DUET__UNSIGNED:
        duet__json_put_integer(writer, key, *(const unsigned *)value);
        return true;
    case DUET__BOOLEAN:
        duet__json_put_boolean(writer, key, *(const bool *)value);
        return true;
    case DUET__NAME:
    case DUET__WORDS:
        duet__json_put_string(writer, key, value);
        return true;
    case DUET__TEXT:
    case DUET__COPY:
        duet__json_put_string(writer, key, *(const char *const *)value);
        return true;
    default:
        return false;
    }
}

static void write_field(struct duet__json_writer *writer, const struct duet__field *field,
                        const void *from, const void *root)
{
    const void *value = duet__field_at(field, from);
    if (write_value(writer, field->key, field->kind, value))
        return;
    switch (field->kind) {
    case DUET__CHOICE:
        duet__json_put_string(writer, field->key, field->choices[*(const unsigned *)value]);
        break;
    case DUET__INDEX:
        duet__json_put_string(writer, field->key,
                              name_of(field->list, root, *(const unsigned *)value));
        break;
    case DUET__OBJECT:
        duet__json_begin(writer, field->key, '{');
        duet__fields_write(writer, field->fields, value, root);
        duet__json_end(writer, '}');
        break;
    case DUET__LIST:
    case DUET__VALUES:
        write_list(writer, field, from, root);
        break;
    default:
        if (field->write != NULL)
            field->write(writer, from, root);
    }
}

void duet__fields_write(struct duet__json_writer *writer, const struct duet__field *fields,
                        const void *from, const void *root)
{
    for (; fields->key != NULL; fields++)
        if (fields->when == DUET__NEEDED || !is_unsaid(fields, from))
            write_field(writer, fields, from, root);
}

void duet__values_write(struct duet__json_writer *writer, const char *key, enum duet__kind kind,
                        const void *first, size_t count, size_t size)
{
    duet__json_begin(writer, key, '[');
    for (size_t i = 0; i < count; i++)
        (void)write_value(writer, NULL, kind, (const char *)first + i * size);
    duet__json_end(writer, ']');
}
