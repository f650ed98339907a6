# SPDX-License-Identifier: Apache-2.0
"""tiled_cholesky.c in Python: factorises a matrix by tiles with NumPy's kernels, reads the result,
changes the matrix, and factorises again.

    PYTHONPATH=python python3 examples/tiled_cholesky.py
"""

import numpy
from duet import R, RW, Runtime

TILES, EDGE = 6, 320


def potrf(a):
    a[...] = numpy.linalg.cholesky(a)


def trsm(a, b):  # B := B / A'
    b[...] = numpy.linalg.solve(a, b.T).T


def gemm(a, b, c):
    c -= a @ b.T


def submit(runtime, a):
    """Submits the factorisation in the order of a sequential program."""
    for k in range(TILES):
        runtime.task(potrf, RW(a[k, k]))
        for i in range(k + 1, TILES):
            runtime.task(trsm, R(a[k, k]), RW(a[i, k]))
        for i in range(k + 1, TILES):
            for j in range(k + 1, i):
                runtime.task(gemm, R(a[i, k]), R(a[j, k]), RW(a[i, j]))
            runtime.task(gemm, R(a[i, k]), R(a[i, k]), RW(a[i, i]), name="syrk")


def main():
    """Fills the matrix with exp(-|row - column|), and more on the diagonal in each round."""
    n = TILES * EDGE
    distance = numpy.abs(numpy.subtract.outer(numpy.arange(n), numpy.arange(n)))
    for number in 1, 2:
        whole = numpy.exp(-distance) + 0.1 * number * numpy.eye(n)
        with Runtime() as runtime:
            a = {(i, j): runtime.array(whole[i * EDGE:(i + 1) * EDGE, j * EDGE:(j + 1) * EDGE])
                 for i in range(TILES) for j in range(i + 1)}
            submit(runtime, a)
        print(f"round {number}: last pivot {whole[-1, -1]:.12g}")


if __name__ == "__main__":
    main()
