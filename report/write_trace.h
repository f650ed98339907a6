/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Export to the JSON trace event format, which Perfetto (ui.perfetto.dev) and Chrome's
 * about:tracing open. One process for the CPUs and one a device; in a device, one thread for
 * kernels, one for copies coming in and one for copies going out (more where records of one thread
 * overlap).
 */
#ifndef DUET_PERFETTO_H
#define DUET_PERFETTO_H

#include <stdio.h>

#include "runs/recording.h"

/*
 * Writes the trace to `stream` in one pass: memory does not grow with the number of events. Write
 * errors are left for the one who closes the stream. A copy from device to device stands with the
 * one that receives it.
 */
void duet__trace_write(FILE *stream, const struct duet__recording *recording);

#endif
