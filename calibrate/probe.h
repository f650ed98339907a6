/* SPDX-License-Identifier: Apache-2.0 */
/* A reference kernel: how fast the cores of this machine are at the moment. */
#ifndef DUET_CALIBRATE_PROBE_H
#define DUET_CALIBRATE_PROBE_H

/*
 * Seconds of a fixed piece of double precision work, which needs no memory beyond a core's caches,
 * on `threads` threads at once (0: one): the lower quartile over threads and repetitions. Takes
 * some hundredths of a second. To be compared with other calls by the same duet: a machine whose
 * clock or whose neighbours have changed gives another figure, and one with less memory bandwidth
 * does not.
 */
double duet__probe_seconds(unsigned threads);

#endif
