/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hints: knowledge of a program about its data that the runtime cannot see. Each is ordered with
 * the tasks submitted before and after it, and nobody waits for it. Hints may change when something
 * happens, but not what is computed, except duet_invalidate.
 *
 * They return 0, or DUET_EINVAL (no such handle or node), DUET_ENOMEM. Inside a kernel or an
 * expansion, and in a run that has failed, they do nothing, with success.
 */
#ifndef DUET_HINT_H
#define DUET_HINT_H

#include <duet/handles.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Says that a task will read this data on memory node `node`: 0 is the host's, 1 that of the first
 * device, and so on (the `node` of duet_runtime_machine's workers). It is brought there as soon as
 * the tasks before that write it have ended, before its reader is taken; on a device only into room
 * that is unused, or holds unused data that is valid elsewhere too.
 */
DUET_EXPORT int duet_prefetch(struct duet_runtime *runtime, struct duet_handle *handle,
                              unsigned node);

/*
 * Says that no task will use this data soon: when the tasks submitted so far that write it have
 * ended, it is brought back to the host's memory, and its places on devices are the first to be
 * evicted. A task that is submitted later and writes it waits for that copy.
 */
DUET_EXPORT int duet_wont_use(struct duet_runtime *runtime, struct duet_handle *handle);

/*
 * Says that the contents are not needed any more: the next task that uses this data writes all of
 * it (DUET_W), or it is unregistered. It is not copied any more when the tasks submitted so far
 * have ended. Its contents are undefined until it is written.
 */
DUET_EXPORT int duet_invalidate(struct duet_runtime *runtime, struct duet_handle *handle);

#ifdef __cplusplus
}
#endif
#endif
