/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a process. The CUDA runtime, which is linked statically, asks atexit to free what its
 * functions use, though other threads may be in them, or call them until the process is gone. The
 * linker (--wrap=atexit) has it ask this instead: nothing is freed, as the system does that.
 */
int duet__cuda_atexit(void (*function)(void)) __asm__("__wrap_atexit");

int duet__cuda_atexit(void (*function)(void))
{
    (void)function;
    return 0;
}
