/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversion from a device's time to the engine's. A device measures its own commands well (half a
 * microsecond) on a clock that begins anywhere and runs a little faster or slower than the host's.
 * The two are related by one certainty: no command begins before it was launched or ends after it
 * was seen to have ended. So host = device + offset, and every command bounds the offset from both
 * sides:
 *
 * launched - start <= offset <= seen - end
 *
 * and where its end was requested later than its start, from below once more:
 *
 * asked - end <= offset
 *
 * The tighter of these bounds come from commands launched to an idle device and from ends that were
 * queried just then; they are stored, and widened with time by the possible drift. The offset
 * itself only moves when a bound pushes it.
 */
#ifndef DUET_BACKENDS_DATES_H
#define DUET_BACKENDS_DATES_H

struct dates {
    double low_s, high_s; /* bounds of the offset at date at_s of the engine */
    double offset_s, at_s;
};

/* A measured command. All in seconds. */
struct measured {
    double start_s, end_s; /* on the device's clock; start <= end */
    double unsure_s;       /* largest error of both together: >= 0 */
    double launched_s;     /* engine's clock: it began later */
    double asked_s;        /* the event at its end was recorded later than this; 0: not known */
    double seen_s;         /* engine's clock: it had ended; >= launched_s and asked_s */
    double stream_s;       /* end of the previous command of its stream, as placed */
};

/* Initialises: date 0 of the device's clock lies between these two dates of the engine's. */
void duet__dates_init(struct dates *dates, double launched_s, double seen_s);

/*
 * Places a command on the engine's clock. For any measurement, launched <= *start <= *end <= seen,
 * *start >= stream (which is <= seen), and *end >= asked.
 */
void duet__dates_place(struct dates *dates, const struct measured *measured, double *start_s,
                       double *end_s);

#endif
