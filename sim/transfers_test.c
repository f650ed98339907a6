/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dates of copies and of the kernels that wait for them, against sums worked out by hand. Nothing
 * costs anything but kernels and copies, and everything is submitted at date 0.
 */
#include "sim/testing_scene.h"

static const struct scene scenes[] = {
    /* Latency 1 ms, then 5 MB at 1 GB/s: 6 ms; the kernel takes 10 ms more. */
    {"one", {.gpus = 1}, "a 5; gpu0 10 a:r", "a host>gpu0 0 6; 1 gpu0 6 16; tasks 1; copies 1"},

    /* Both latencies end at 1 ms; then 5 MB each at half of 1 GB/s take 10 ms. */
    {"shared",
     {.gpus = 2},
     "a 5; b 5; gpu0 1 a:r; gpu1 1 b:r",
     "a host>gpu0 0 11; b host>gpu1 0 11"},

    /* Two switches share nothing: each copy as if alone. */
    {"apart", {.gpus = 3}, "a 5; b 7; gpu0 1 a:r; gpu2 1 b:r", "a host>gpu0 0 6; b host>gpu2 0 8"},

    /*
     * Three phases. A (10 MB) flows alone from 1 ms; B (4 MB) is wanted at 4 ms, when a CPU has
     * written it, and flows from 5 ms. By then A has 6 MB left. Half of the bandwidth each: B needs
     * 8 ms more, until 13 ms, when A has 2 MB left, which take 2 ms alone: 15 ms.
     */
    {"staggered",
     {.cpus = 1, .gpus = 2},
     "a 10; b 4; gpu0 1 a:r; cpu0 4 b:rw; gpu1 1 b:r",
     "2 cpu0 0 4; a host>gpu0 0 15; b host>gpu1 4 13"},

    /*
     * gpu0 writes x until 2 ms, which then goes to the host (1 + 5 ms: until 8 ms) while a goes to
     * gpu1 behind the same switch (1 + 10 ms): neither notices the other.
     */
    {"opposite",
     {.cpus = 1, .gpus = 2},
     "a 10; x 5; gpu1 1 a:r; gpu0 2 x:w; cpu0 1 x:r",
     "a host>gpu1 0 11; 2 gpu0 0 2; x gpu0>host 2 8; 3 cpu0 8 9"},

    /*
     * Inside a switch: x (4 MB) from gpu0 and y (8 MB) from gpu1 cross each other from 2 ms on: 2
     * ms and 2 ms, 2 ms and 4 ms. The link limits each copy alone, so they do not share it.
     */
    {"peer",
     {.gpus = 2},
     "x 4; y 8; gpu0 2 x:w; gpu1 2 y:w; gpu1 1 x:r; gpu0 1 y:r",
     "x gpu0>gpu1 2 6; y gpu1>gpu0 2 8"},

    /*
     * Across switches a copy is limited to 0.5 GB/s: x (4 MB) goes by the host, where it is from 2
     * ms on its way out until 7 ms. a (10 MB) flows from the host to gpu2, behind the same switch
     * as x's destination gpu3, from 1 ms: 7 MB by 8 ms, when x's latency ends, then both have half
     * of the link. a arrives at 14 ms; x has then 1 MB left, alone: 15 ms.
     */
    {"across",
     {.gpus = 4},
     "x 4; a 10; gpu0 2 x:w; gpu3 1 x:r; gpu2 1 a:r",
     "x gpu0>host 2 7; x#2 host>gpu3 7 15; a host>gpu2 0 14"},

    /* Alone, x goes by the host as well: 12 ms, where a direct copy at 0.5 GB/s needs 13 ms. */
    {"limited", {.gpus = 3}, "x 4; gpu0 2 x:w; gpu2 1 x:r", "x gpu0>host 2 7; x#2 host>gpu2 7 12"},

    /* Data goes through the host without peer copies (4 MB): 2 + 5 = 7 ms, 5 ms more to gpu1. */
    {"staged",
     {.gpus = 2, .no_peer = true},
     "x 4; gpu0 2 x:w; gpu1 1 x:r",
     "x gpu0>host 2 7; x#2 host>gpu1 7 12; 2 gpu1 12 13; bytes_to_host 4000000;"
     "bytes_to_device 4000000; bytes_between 0"},

    /*
     * The second task's copy runs during the first one's kernel: a until 6 ms, b from 6 to 12 ms,
     * the kernels from 6 to 16 and from 16 to 26 ms.
     */
    {"overlap",
     {.gpus = 1},
     "a 5; b 5; gpu0 10 a:r; gpu0 10 b:r",
     "a host>gpu0 0 6; b host>gpu0 6 12; 1 gpu0 6 16; 2 gpu0 16 26"},

    /* A window of one task fetches b when the first task has ended: 16 to 22 ms. */
    {"no_overlap",
     {.gpus = 1, .gpu_window = 1},
     "a 5; b 5; gpu0 10 a:r; gpu0 10 b:r",
     "b host>gpu0 16 22; 2 gpu0 22 32"},

    /*
     * A GPU has one copy in a direction at a time. x leaves gpu0 for gpu1 from 2 to 6 ms (2 + 2 ms)
     * and only then for gpu2 behind the other switch, by the host (5 + 5 ms), as decided when gpu0
     * alone had it: 16 ms. a (5 MB) comes into gpu2 before that, from 3 to 9 ms.
     */
    {"engines",
     {.cpus = 1, .gpus = 3},
     "x 4; a 5; gpu0 2 x:w; gpu1 1 x:r; gpu2 1 x:r; cpu0 3 a:rw; gpu2 1 a:r",
     "x gpu0>gpu1 2 6; x#2 gpu0>host 6 11; x#3 host>gpu2 11 16; a host>gpu2 3 9; 5 gpu2 9 10"},

    /* Three that want a: one copy, until 6 ms, and one request merged into it. */
    {"merging",
     {.gpus = 1},
     "a 5; gpu0 10 a:r; gpu0 10 a:r; gpu0 10 a:r",
     "copies 1; 1 gpu0 6 16; 2 gpu0 16 26; 3 gpu0 26 36; reads_on_device 3; read_hits 2; merged 1"},

    /*
     * a and b are read on gpu0, a until 2 ms, b until 2 + 5 = 7 ms; then on gpu1. From the host 1
     * MB takes 1 + 1 = 2 ms, from gpu0 2 + 0.5 = 2.5 ms: the host. 4 MB: 1 + 4 = 5 ms against 2 + 2
     * = 4 ms: gpu0.
     */
    {"nearest",
     {.cpus = 1, .gpus = 2},
     "a 1; b 4; gpu0 1 a:r b:r; wait; gpu1 1 a:r b:r",
     "1 gpu0 7 8; a#2 host>gpu1 8 10; b#2 gpu0>gpu1 10 14; 2 gpu1 14 15"},
};

SCENES_MAIN(scenes, )
