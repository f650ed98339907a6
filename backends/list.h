/* SPDX-License-Identifier: Apache-2.0 */
/* The backends, one line each: NAME stands for duet__backend_NAME in NAME/. */
BACKEND(cpu)
BACKEND(emulated)
BACKEND(cuda)
BACKEND(opencl)
