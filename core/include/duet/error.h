/* SPDX-License-Identifier: Apache-2.0 */
/* Error codes of duet: one list, negative values, and their texts. */
#ifndef DUET_ERROR_H
#define DUET_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, value, text). Values never change once released; new ones are added at the end. */
#define DUET_ERRORS(X)                                                                             \
    X(DUET_ENOMEM, -1, "out of memory")                                                            \
    X(DUET_EINVAL, -2, "invalid argument")                                                         \
    X(DUET_ENOWORKER, -3, "no worker can run this task")                                           \
    X(DUET_ETOOBIG, -4, "task data larger than the memory of every device that can run it")        \
    X(DUET_ENOMODEL, -5, "no time known for this kernel, size and architecture")                   \
    X(DUET_ENOTFOUND, -6, "unknown name")                                                          \
    X(DUET_EIO, -7, "cannot read or write")                                                        \
    X(DUET_EPARSE, -8, "malformed input")                                                          \
    X(DUET_ESTUCK, -9, "nothing left to happen, yet tasks are unfinished")                         \
    X(DUET_ETASK, -10, "a task failed")                                                            \
    X(DUET_EABSENT, -11, "not built into this duet")                                               \
    X(DUET_ECANCELED, -12, "cancelled")                                                            \
    X(DUET_EBUSY, -13, "in use")                                                                   \
    X(DUET_ELOST, -14, "the device was lost")                                                      \
    X(DUET_EDATA, -15, "data without valid contents")

enum duet_error {
    DUET_OK = 0,
#define X(name, value, text) name = value,
    DUET_ERRORS(X)
#undef X
};

/* A function that libduet exports, whatever else is hidden where it is compiled. */
#define DUET_EXPORT __attribute__((visibility("default")))
/* A function whose result must be looked at. */
#define DUET_MUST_CHECK __attribute__((warn_unused_result))
/* A function that formats as printf does. */
#define DUET_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/*
 * Text of an error code: a constant string without a full stop, never NULL.
 * 0 gives "success"; a value that is no error code gives "unknown error".
 */
DUET_EXPORT const char *duet_strerror(int error);

/*
 * A message that travels beside an error code, so that the person who reads it learns what was
 * wrong, where, and what to do. Functions that take a `struct duet_message *` accept NULL. On
 * error they write one line without a newline; on success they leave it alone.
 */
enum { DUET_MESSAGE_MAX = 512 };

struct duet_message {
    char text[DUET_MESSAGE_MAX];
};

/*
 * Writes a formatted line into `message` (may be NULL; cut at DUET_MESSAGE_MAX - 1 bytes), with `?`
 * for control characters, and returns `error`, so that a failing function ends in one statement.
 */
DUET_EXPORT int duet_fail(struct duet_message *message, int error, const char *format, ...)
    DUET_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif
#endif
