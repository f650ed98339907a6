/* SPDX-License-Identifier: Apache-2.0 */
/* Tests what released tasks and copies, where that is known by hand. */
#include "sim/testing_scene.h"

static const struct scene scenes[] = {
    {"chain",
     {.cpus = 2},
     "a 1; cpu0 2 a:rw; cpu1 1 a:rw; cpu0 1 a:rw",
     "1 submission; 2 task 1; 3 task 2"},

    /* The second of three predecessors ends last; tasks in no order have no reason. */
    {"fan_in",
     {.cpus = 3},
     "a 1; b 1; c 1; cpu0 2 a:w; cpu1 5 b:w; cpu2 3 c:w; cpu0 1 a:r b:r c:r",
     "3 submission; 4 task 2"},

    /* A task waits for a copy, which its predecessor has let go on, and which goes behind a's. */
    {"copy",
     {.cpus = 1, .gpus = 1},
     "a 5; b 1; cpu0 4 a:rw; gpu0 1 a:r b:r",
     "a task 1; b task 1; 2 copy b"},

    /* A copy from device to device goes through the host: its second half follows the first. */
    {"halves",
     {.gpus = 2, .no_peer = true},
     "a 5; gpu0 4 a:w; gpu1 1 a:r",
     "a task 1; a#2 copy a; 2 copy a#2"},

    /* Copies asked for at once go one behind the other: the task waits for the last one. */
    {"link", {.gpus = 1}, "a 5; b 2; gpu0 1 a:r b:r", "b submission; b host>gpu0 6 9; 1 copy b"},

    /*
     * The worker is busy, so that it asks for the data of a task when it has a place for that. Task
     * 4 could have begun at its submission.
     */
    {"worker",
     {.cpus = 1, .gpus = 1, .gpu_window = 1},
     "a 5; gpu0 4; gpu0 1 a:r; cpu0 1; cpu0 1",
     "a worker 1; 2 copy a; 4 submission"},

    /* Memory for one of two: old data goes back first, after the task that has written it. */
    {"room",
     {.gpus = 1, .gpu_memory_bytes = 6000000},
     "a 5; b 4; gpu0 4 a:rw; gpu0 1 b:r; gpu0 1 b:rw",
     "a#2 room 1; b room a#2; 2 copy b; 3 task 2"},

    /* The application has the data until it gives it back. */
    {"outside", {.cpus = 1}, "a 1; acquire a:rw; cpu0 1 a:rw; release a", "1 outside"},
};

SCENES_MAIN(scenes, )
