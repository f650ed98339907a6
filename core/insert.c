/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks given as a list of arguments, and the values that they carry: a head with their sizes, then
 * the values, each at a multiple of 16 bytes, so that it is aligned for every type.
 */
#include "core/internal.h"

enum {
    ACCESSES_MAX = 64,
    VALUES_MAX = 32,
    AFTER_MAX = 16,
    MODES_END = 256,   /* first keyword; smaller words are modes */
    PACKED_FEW = 1024, /* bytes of values up to which no allocation is needed */
    STEP = 16,
    MAGIC = 0x76616c73,
};

/* Head of the values of a task. */
struct head {
    uint32_t magic, count;
    uint64_t bytes[];
};

struct value {
    const void *at;
    size_t bytes;
};

/* A task as its list describes it. */
struct insertion {
    struct duet_task_desc desc;
    struct duet_task_extra extra;
    struct duet_access accesses[ACCESSES_MAX];
    struct duet_ref *after[AFTER_MAX];
    struct value values[VALUES_MAX];
    unsigned value_count, node;
    unsigned item; /* number of the item, from 1: for messages */
    struct duet_message *message;
};

static size_t rounded(size_t bytes)
{
    return (bytes + STEP - 1) / STEP * STEP;
}

static size_t head_bytes(size_t count)
{
    return rounded(sizeof(struct head) + count * sizeof(uint64_t));
}

/* ------------------------------------------------------------------------------------------- */
/* Reading the list                                                                             */

static int too_many(struct insertion *all, const char *what, int most)
{
    return duet_fail(all->message, DUET_EINVAL,
                     "item %u of the list for a %s task is one of more than %d %s: duet_submit "
                     "takes any number",
                     all->item, all->desc.codelet->name, most, what);
}

static int add_access(struct insertion *all, int mode, struct duet_handle *handle)
{
    if (all->desc.access_count == ACCESSES_MAX)
        return too_many(all, "accesses", ACCESSES_MAX);
    all->accesses[all->desc.access_count++] = (struct duet_access){handle, (enum duet_mode)mode};
    return DUET_OK;
}

static int add_value(struct insertion *all, const void *at, size_t bytes)
{
    if (all->value_count == VALUES_MAX)
        return too_many(all, "values", VALUES_MAX);
    if (!at || bytes == 0 || bytes > SIZE_MAX / 2 / VALUES_MAX)
        return duet_fail(all->message, DUET_EINVAL,
                         "item %u of the list for a %s task is a value of %zu bytes at %p: "
                         "DUET_VALUE is followed by an address and a size_t",
                         all->item, all->desc.codelet->name, bytes, at);
    all->values[all->value_count++] = (struct value){at, bytes};
    return DUET_OK;
}

static int add_after(struct insertion *all, struct duet_ref *ref)
{
    if (all->extra.after_count == AFTER_MAX)
        return too_many(all, "tasks to come after", AFTER_MAX);
    all->after[all->extra.after_count++] = ref;
    return DUET_OK;
}

static int unknown_item(struct insertion *all, int word)
{
    return duet_fail(all->message, DUET_EINVAL,
                     "item %u of the list for a %s task begins with %d, which is no mode and no "
                     "keyword: does an item before it lack a part, or the list its 0?",
                     all->item, all->desc.codelet->name, word);
}

/* Reads the whole list: the first word of each item says which arguments follow. */
static int read_list(struct insertion *all, va_list list)
{
    struct duet_task_desc *desc = &all->desc;
    struct duet_task_extra *extra = &all->extra;
    int error = DUET_OK;
    for (int word; !error && (word = va_arg(list, int)); all->item++) {
        if (word >= DUET_REF) /* properties that few tasks have */
            desc->extra = extra;
        if (word > 0 && word < MODES_END) {
            error = add_access(all, word, va_arg(list, struct duet_handle *));
        } else if (word == DUET_VALUE) {
            const void *at = va_arg(list, const void *);
            error = add_value(all, at, va_arg(list, size_t));
        } else if (word == DUET_AFTER) {
            error = add_after(all, va_arg(list, struct duet_ref *));
        } else if (word == DUET_PRIORITY) {
            desc->priority = va_arg(list, int);
        } else if (word == DUET_WHERE) {
            desc->where = va_arg(list, uint64_t);
        } else if (word == DUET_REF) {
            extra->ref = va_arg(list, struct duet_ref **);
        } else if (word == DUET_NAME) {
            extra->name = va_arg(list, const char *);
        } else if (word == DUET_ITERATION) {
            extra->iteration = va_arg(list, uint32_t);
        } else if (word == DUET_NODE) {
            all->node = va_arg(list, unsigned);
            extra->node = &all->node;
        } else if (word == DUET_DONE) {
            extra->done = va_arg(list, duet_done_fn);
            extra->done_arg = va_arg(list, void *);
        } else {
            error = unknown_item(all, word);
        }
    }
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Values                                                                                       */

static size_t packed_bytes(const struct insertion *all)
{
    size_t bytes = head_bytes(all->value_count);
    for (unsigned i = 0; i < all->value_count; i++)
        bytes += rounded(all->values[i].bytes);
    return bytes;
}

static void pack_values(const struct insertion *all, char *to)
{
    struct head *head = (struct head *)(void *)to;
    *head = (struct head){.magic = MAGIC, .count = all->value_count};
    size_t offset = head_bytes(all->value_count);
    for (unsigned i = 0; i < all->value_count; i++) {
        head->bytes[i] = all->values[i].bytes;
        memcpy(to + offset, all->values[i].at, all->values[i].bytes);
        offset += rounded(all->values[i].bytes);
    }
}

bool duet__has_values(const void *args)
{
    const struct head *head = args;
    return head && head->magic == MAGIC;
}

const void *duet_value(const void *args, size_t index, size_t bytes)
{
    const struct head *head = args;
    if (!duet__has_values(args) || index >= head->count || head->bytes[index] != bytes)
        return NULL;
    size_t offset = head_bytes(head->count);
    for (size_t i = 0; i < index; i++)
        offset += rounded(head->bytes[i]);
    return (const char *)args + offset;
}

/* Says why a kernel does not get its values. */
static int mismatch(const struct duet_call *call, size_t index, size_t bytes)
{
    const struct head *head = call->args;
    if (!duet__has_values(head))
        return duet_fail(call->message, DUET_EINVAL,
                         "the kernel asks for values, and the task was not given any by "
                         "duet_insert");
    if (index >= head->count)
        return duet_fail(call->message, DUET_EINVAL,
                         "the kernel asks for more than the %u values that the task was given",
                         head->count);
    return duet_fail(call->message, DUET_EINVAL,
                     "value %zu of the task has %llu bytes, and the kernel asks for %zu", index,
                     (unsigned long long)head->bytes[index], bytes);
}

int duet_values(const struct duet_call *call, ...)
{
    const struct head *head = call->args;
    size_t index = 0;
    int error = DUET_OK;
    va_list list;
    va_start(list, call);
    for (void *to = va_arg(list, void *); to && !error; to = va_arg(list, void *)) {
        size_t bytes = va_arg(list, size_t);
        const void *from = duet_value(call->args, index, bytes);
        if (from)
            memcpy(to, from, bytes);
        else
            error = mismatch(call, index, bytes);
        index++;
    }
    va_end(list);
    if (!error && index && index < head->count)
        error = duet_fail(call->message, DUET_EINVAL,
                          "the kernel asks for %zu of the %u values that the task was given", index,
                          head->count);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Inserting                                                                                    */

static int too_large(const struct insertion *all, struct duet_runtime *runtime)
{
    (void)duet_fail(all->message, DUET_ENOMEM, "no memory left for the values of a %s task",
                    all->desc.codelet->name);
    if (runtime)
        duet__tell(runtime, all->message);
    return DUET_ENOMEM;
}

/* Submits the task, as a child if there is an expansion. */
static int submit_insertion(struct duet_runtime *runtime, struct duet_expansion *expansion,
                            struct insertion *all)
{
    _Alignas(STEP) char few[PACKED_FEW];
    char *packed = few;
    struct duet_task_desc desc = all->desc;
    desc.accesses = all->accesses;
    all->extra.after = all->after;
    if (all->value_count) {
        desc.args_bytes = packed_bytes(all);
        if (desc.args_bytes > sizeof few)
            packed = malloc(desc.args_bytes);
        if (!packed)
            return too_large(all, runtime);
        pack_values(all, packed);
        desc.args = packed;
    }
    int error = expansion ? duet_expand_submit(expansion, &desc) : duet_submit(runtime, &desc);
    if (packed != few)
        free(packed);
    return error;
}

/* Reads the whole list, then packs its values and submits the task. */
static int insert_list(struct duet_runtime *runtime, struct duet_expansion *expansion,
                       const struct duet_codelet *codelet, struct duet_message *message,
                       va_list list)
{
    struct insertion all;
    all.desc = (struct duet_task_desc){.codelet = codelet};
    all.extra = (struct duet_task_extra){NULL};
    all.value_count = 0;
    all.item = 1;
    all.message = message;
    int error = codelet ? DUET_OK : duet_fail(message, DUET_EINVAL, "a task needs a codelet");
    if (!error)
        error = read_list(&all, list);
    if (!error)
        return submit_insertion(runtime, expansion, &all);
    (void)duet__not_made(&all.desc, error);
    if (runtime)
        duet__tell(runtime, message);
    return error;
}

int duet_insert(struct duet_runtime *runtime, const struct duet_codelet *codelet, ...)
{
    va_list list;
    struct duet_message message;
    va_start(list, codelet);
    int error = insert_list(runtime, NULL, codelet, &message, list);
    va_end(list);
    return error;
}

int duet_expand_insert(struct duet_expansion *expansion, const struct duet_codelet *codelet, ...)
{
    va_list list;
    va_start(list, codelet);
    int error = insert_list(NULL, expansion, codelet, duet__expansion_message(expansion), list);
    va_end(list);
    return error;
}
