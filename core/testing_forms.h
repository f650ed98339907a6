/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Part of random programs: the state of one that runs, and the forms in which matrices are
 * registered.
 */
#ifndef DUET_CORE_TESTING_FORMS_H
#define DUET_CORE_TESTING_FORMS_H

#include <duet/layout.h>

#include "core/testing_program.h"

/* Forms: duet_register_matrix; two arrays, of the first and the last columns; an own type. */
enum form { FORM_MATRIX, FORM_ARRAYS, FORM_OBJECT };

/* Contents of an own type: its matrix. */
struct object {
    size_t rows, cols, ld;
    uint64_t *words;
    uint64_t stamp; /* the first word, for whoever writes it */
};

/* A matrix, or a part of one, is cut. */
struct cutting {
    unsigned whole, first, count; /* numbers: of what is cut, of the parts */
    struct duet_part parts[CUT_PARTS];
};

struct run {
    struct setting setting;
    struct cutting cuts[PARTS_MAX];
    unsigned cut_count, part_count;
    const struct cutting *cut_by[VIEWS_MAX]; /* that made this part; NULL: it is a matrix */
    struct duet_runtime *duet;
    void *own;                                     /* the world's */
    struct duet_codelet *codelets[KINDS], *add[2]; /* add: anywhere, on CPUs */
    struct duet_codelet *waits;                    /* kernel of half of the tasks that expand */
    struct duet_codelet *clear, *add_up;           /* contributions to sums; NULL: none */
    struct duet_buffer real[VIEWS_MAX], expected[VIEWS_MAX];
    uint64_t real_words[HANDLES_MAX][WORDS_MAX], expected_words[HANDLES_MAX][WORDS_MAX];
    uint64_t real_sums[SUMS][SUM_WORDS], expected_sums[SUMS][SUM_WORDS];
    struct duet_handle *handles[VIEWS_MAX], *sums[SUMS];
    struct step *steps; /* those of submitter s begin at s * setting.steps */
    uint64_t tasks;     /* that the oracle has carried out */
    _Atomic(uint64_t) turn, kernels, copies, real_bare;
    uint64_t expected_bare;
    unsigned behind;         /* tasks submitted together with the last one, and after it */
    _Atomic(int) refused;    /* the first error of a submission */
    _Atomic(bool) must_fail; /* it was made to, and did */
    _Atomic(bool) over;      /* observers are to end */
    bool pinned;             /* the matrices */
    /* the run has failed: the oracle ignores what tasks have read */
    bool lenient;
    bool valid[HANDLES_MAX]; /* at the end */
    uint8_t form[VIEWS_MAX]; /* enum form */
    struct object objects[HANDLES_MAX];
};

/* ------------------------------------------------------------------------------------------- */
/* Own types                                                                                    */

static inline size_t object_bytes(const void *from)
{
    const struct object *object = from;
    return object->rows * object->cols * sizeof(uint64_t);
}

static inline void object_place(void *to, void *memory)
{
    struct object *object = to;
    object->words = memory;
    object->ld = object->rows;
}

static inline void object_copy(const void *from, void *to, struct duet_pieces *pieces)
{
    const struct object *source = from;
    struct object *object = to;
    object->stamp = source->stamp;
    for (size_t j = 0; j < object->cols; j++)
        duet_add_piece(pieces, object->words + j * object->ld, source->words + j * source->ld,
                       object->rows * sizeof(uint64_t));
}

static const struct duet_type object_type = {.name = "object",
                                             .object_bytes = sizeof(struct object),
                                             .bytes = object_bytes,
                                             .place = object_place,
                                             .copy = object_copy};

/*
 * Returns the matrix of a kernel's buffer, where an object has it. A kernel that wrote an object
 * must have said so.
 */
static inline struct duet_buffer matrix_in(const struct duet_buffer *buffer, uint8_t mode)
{
    if (buffer->element_bytes == sizeof(uint64_t))
        return *buffer;
    const struct object *object = buffer->data;
    if (mode & DUET_R)
        g_assert_cmphex(object->stamp, ==, *object->words);
    return (struct duet_buffer){.data = object->words,
                                .rows = object->rows,
                                .cols = object->cols,
                                .ld = object->ld,
                                .element_bytes = sizeof(uint64_t)};
}

/* `compute` of buffers that may be objects. */
static inline uint64_t compute_in(uint64_t salt, const struct duet_call *call, const uint8_t *modes)
{
    struct duet_buffer *seen = g_new(struct duet_buffer, call->buffer_count + 1);
    for (size_t i = 0; i < call->buffer_count; i++)
        seen[i] = matrix_in(&call->buffers[i], modes[i]);
    uint64_t result = compute(salt, seen, modes, call->buffer_count);
    for (size_t i = 0; i < call->buffer_count; i++)
        if (call->buffers[i].element_bytes != sizeof(uint64_t) && (modes[i] & DUET_W))
            ((struct object *)call->buffers[i].data)->stamp = *word(&seen[i], 0, 0);
    g_free(seen);
    return result;
}

/* ------------------------------------------------------------------------------------------- */
/* Forms                                                                                        */

/* Every sixth matrix that is not cut is of one of the others, where kernels know of these. */
static inline void draw_form(struct run *run, unsigned h, bool possible)
{
    if (!possible || h % 6 != 5)
        return;
    for (unsigned i = 0; i < run->cut_count; i++)
        if (run->cuts[i].whole == h)
            return;
    run->form[h] = h / 6 % 2 ? FORM_OBJECT : FORM_ARRAYS;
}

/* The columns of a matrix in its first array, or all of them. */
static inline size_t first_columns(const struct run *run, unsigned view, size_t cols)
{
    return run->form[view] == FORM_ARRAYS && cols > 1 ? cols / 2 : cols;
}

/* The buffers that kernels see of one. How many: 1 or 2. */
static inline unsigned show(const struct run *run, unsigned view, const struct duet_buffer *matrix,
                            struct duet_buffer *out)
{
    size_t first = first_columns(run, view, matrix->cols);
    out[0] = out[1] = *matrix;
    out[0].cols = first;
    out[1].cols -= first;
    out[1].data = word(matrix, 0, first);
    return first < matrix->cols ? 2 : 1;
}

static inline void show_modes(const struct run *run, struct step *step)
{
    unsigned n = 0;
    step->shown = g_new(uint8_t, 2 * step->count + 1);
    for (unsigned i = 0; i < step->count; i++) {
        const unsigned view = step->handles[i];
        const size_t cols = run->real[view].cols;
        for (unsigned k = first_columns(run, view, cols) < cols ? 2 : 1; k > 0; k--)
            step->shown[n++] = step->effective[i];
    }
    step->shown[n] = DUET_W; /* temporary data */
}

/* The application has written it itself. */
static inline void stamp(struct run *run, unsigned h)
{
    const struct duet_buffer *matrix = &run->real[h];
    if (run->form[h] != FORM_OBJECT)
        return;
    run->objects[h] =
        (struct object){matrix->rows, matrix->cols, matrix->ld, matrix->data, *word(matrix, 0, 0)};
}

static inline int register_matrix(struct run *run, unsigned h)
{
    const struct duet_buffer *matrix = &run->real[h];
    struct duet_buffer shown[2];
    struct duet_array arrays[2];
    const unsigned count = show(run, h, matrix, shown);
    for (unsigned i = 0; i < count; i++)
        arrays[i] = (struct duet_array){shown[i].data, shown[i].rows, shown[i].cols, shown[i].ld,
                                        sizeof(uint64_t)};
    stamp(run, h);
    if (run->form[h] == FORM_ARRAYS)
        return duet_register_arrays(run->duet, arrays, count, &run->handles[h]);
    if (run->form[h] == FORM_OBJECT)
        return duet_register_object(run->duet, &object_type, &run->objects[h], &run->handles[h]);
    return duet_register_matrix(run->duet, matrix->data, matrix->rows, matrix->cols, matrix->ld,
                                sizeof(uint64_t), &run->handles[h]);
}

#endif
