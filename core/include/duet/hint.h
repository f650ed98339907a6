/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hints: what a program knows of its data that the runtime cannot see. Each is in turn with the
 * tasks that are submitted before and after it, and nobody waits for it. All of them may change
 * when something happens, and none changes what is computed, but for what duet_invalidate says.
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
#pragma GCC visibility push(default) /* exported by libduet, as nothing else is */

/*
 * A task will read this data on memory node `node`: 0 is the host's, 1 that of the first device,
 * and so on (the `node` of duet_runtime_machine's workers). It is brought there when the tasks
 * before that write it have ended, without waiting for whoever reads it to be taken; on a device
 * only into room that is unused, or that of data which is valid elsewhere too and used by nobody.
 */
int duet_prefetch(struct duet_runtime *runtime, struct duet_handle *handle, unsigned node);

/*
 * No task will use this data soon: when those submitted so far that write it have ended, it is
 * brought back to the host's memory, and its places on devices are the first to be used again. A
 * task after this that writes it waits for that copy.
 */
int duet_wont_use(struct duet_runtime *runtime, struct duet_handle *handle);

/*
 * The contents are not needed any more: the next task that uses this data writes all of it
 * (DUET_W), or it is unregistered. When the tasks submitted so far have ended nothing of it is
 * copied any more. What it holds until it is written is not defined.
 */
int duet_invalidate(struct duet_runtime *runtime, struct duet_handle *handle);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
