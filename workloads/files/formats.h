/* SPDX-License-Identifier: Apache-2.0 */
/* Readers and writers of task graphs, with the contract of struct duet__graph_format. */
#ifndef DUET_WORKLOADS_FILES_FORMATS_H
#define DUET_WORKLOADS_FILES_FORMATS_H

#include "workloads/files/graph.h"

/* Upper bounds of seconds and flops of a task, and of bytes of data. */
#define DUET__GRAPH_SECONDS_MAX 1e15
#define DUET__GRAPH_WORK_MAX 1e30
#define DUET__GRAPH_BYTES_MAX (UINT64_C(1) << 60)

int duet__graph_read_json(struct duet__graph *graph, const char *text, size_t length,
                          const char *path, struct duet_message *message);
void duet__graph_write_json(FILE *stream, const void *data);

bool duet__graph_is_starpu(const char *text, size_t length, const char *path);
int duet__graph_read_starpu(struct duet__graph *graph, const char *text, size_t length,
                            const char *path, struct duet_message *message);

bool duet__graph_is_trace(const char *text, size_t length, const char *path);
int duet__graph_read_trace(struct duet__graph *graph, const char *text, size_t length,
                           const char *path, struct duet_message *message);

bool duet__graph_is_stg(const char *text, size_t length, const char *path);
int duet__graph_read_stg(struct duet__graph *graph, const char *text, size_t length,
                         const char *path, struct duet_message *message);
void duet__graph_write_stg(FILE *stream, const void *data);

bool duet__graph_is_dot(const char *text, size_t length, const char *path);
int duet__graph_read_dot(struct duet__graph *graph, const char *text, size_t length,
                         const char *path, struct duet_message *message);
void duet__graph_write_dot(FILE *stream, const void *data);

bool duet__graph_is_wfformat(const char *text, size_t length, const char *path);
int duet__graph_read_wfformat(struct duet__graph *graph, const char *text, size_t length,
                              const char *path, struct duet_message *message);
void duet__graph_write_wfformat(FILE *stream, const void *data);

/* Makes the message "path:line: ...", without control characters. Returns DUET_EPARSE. */
int duet__graph_fail(struct duet_message *message, const char *path, unsigned line,
                     const char *format, ...) DUET_PRINTF(4, 5);

/* The architecture of times whose format names none: every machine's has its speed. */
#define DUET__GRAPH_REFERENCE "reference"

/* Returns "r", "w", "rw", "commute", "reduce", "scratch" for an enum duet_mode; NULL for others. */
const char *duet__graph_mode_name(unsigned mode);

#endif
