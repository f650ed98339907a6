/* SPDX-License-Identifier: Apache-2.0 */
/* The workloads there are, one line each: NAME stands for duet__workload_NAME in NAME.c. */
WORKLOAD(cholesky)
WORKLOAD(gemm)
WORKLOAD(jacobi2d)
WORKLOAD(layered)
WORKLOAD(lu)
WORKLOAD(lu_incremental)
WORKLOAD(lu_pivot)
WORKLOAD(nbody)
WORKLOAD(qr)
WORKLOAD(saxpy)
WORKLOAD(sort)
WORKLOAD(sparse_lu)
