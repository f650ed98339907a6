/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a process. The CUDA runtime, which is linked statically, frees by atexit what its
 * functions use, though other threads may be in them, or call them until the process has ended. The
 * linker (--wrap=atexit) replaces atexit by this function: nothing is freed, as the system does
 * that.
 */
int duet__cuda_atexit(void (*function)(void)) __asm__("__wrap_atexit");

int duet__cuda_atexit(void (*function)(void))
{
    (void)function;
    return 0;
}
