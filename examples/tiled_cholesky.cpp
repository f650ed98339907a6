/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tiled_cholesky.c in C++17: factorises a matrix by tiles, reads the result, changes the matrix,
 * and factorises again, with the same options, also simulated and on several nodes.
 *
 *     tiled_cholesky_cpp --duet-simulate=idgraf --duet-gpus=4
 */
#include <cmath>
#include <cstdio>
#include <vector>

#include <duet/duet.hpp>

using duet::R, duet::RW, duet::view;
using matrix = duet::matrix<double>;

namespace
{

/* The matrix has 6 x 6 tiles of 320 x 320 elements. */
constexpr std::size_t tiles = 6, edge = 320;

/* ------------------------------------------------------------------------------------------- */
/* Kernels; a real program calls BLAS here. There is no code for GPUs yet: cuda() is for simulated
 * ones. Each task has its tile's edge as a value, as kernel times are looked up by flops. */

/* C := C - A B' */
void update(view<const double> a, view<const double> b, view<double> c)
{
    for (std::size_t j = 0; j < c.cols; j++)
        for (std::size_t k = 0; k < a.cols; k++)
            for (std::size_t i = 0; i < c.rows; i++)
                c(i, j) -= a(i, k) * b(j, k);
}

void solve(view<const double> l, view<double> b)
{
    for (std::size_t j = 0; j < b.cols; j++) {
        for (std::size_t k = 0; k < j; k++)
            for (std::size_t i = 0; i < b.rows; i++)
                b(i, j) -= b(i, k) * l(j, k);
        for (double &x : b.column(j))
            x /= l(j, j);
    }
}

void factorise(view<double> a)
{
    for (std::size_t j = 0; j < a.cols; j++) {
        for (std::size_t k = 0; k < j; k++)
            for (std::size_t i = j; i < a.rows; i++)
                a(i, j) -= a(i, k) * a(j, k);
        if (!(a(j, j) > 0)) /* fails the task, and so the wait, with this text */
            throw duet::error(DUET_EINVAL, "the matrix is not positive definite");
        const double root = std::sqrt(a(j, j));
        for (std::size_t i = j; i < a.rows; i++)
            a(i, j) /= root;
    }
}

constexpr auto potrf = duet::task<RW<matrix>, double>("dpotrf")
                           .cpu([](view<double> a, double) { factorise(a); })
                           .flops([](double n) { return n * n * n / 3 + n * n / 2 + n / 6; });
constexpr auto trsm = duet::task<R<matrix>, RW<matrix>, double>("dtrsm")
                          .cpu([](auto l, auto b, double) { solve(l, b); })
                          .cuda()
                          .flops([](double n) { return n * n * n; });
constexpr auto syrk = duet::task<R<matrix>, RW<matrix>, double>("dsyrk")
                          .cpu([](auto a, auto c, double) { update(a, a, c); })
                          .cuda()
                          .flops([](double n) { return n * n * (n + 1); });
constexpr auto gemm = duet::task<R<matrix>, R<matrix>, RW<matrix>, double>("dgemm")
                          .cpu([](auto a, auto b, auto c, double) { update(a, b, c); })
                          .cuda()
                          .flops([](double n) { return 2 * n * n * n; });

/* ------------------------------------------------------------------------------------------- */
/* The program                                                                                  */

struct program {
    std::vector<double> data; /* first: it ends after what uses it */
    duet::runtime duet;
    std::vector<matrix> all; /* tiles on and below the diagonal, by rows */

    explicit program(const duet::config &config)
        : data(tiles * (tiles + 1) / 2 * edge * edge), duet(&config)
    {
        for (std::size_t i = 0; i < tiles; i++)
            for (std::size_t j = 0; j <= i; j++) {
                const unsigned owner = duet_node_at(duet.get(), i, j);
                double *at = &data[all.size() * edge * edge];
                all.emplace_back(duet, duet_node_here(duet.get(), owner) ? at : nullptr, edge,
                                 edge);
                duet.check(duet_own(duet.get(), all.back().get(), owner));
            }
    }
    matrix &a(std::size_t i, std::size_t j)
    {
        return all[i * (i + 1) / 2 + j];
    }
    /* Fills one tile of exp(-|row - column|), with `noise` added on the diagonal, on its node. */
    void fill(std::size_t i, std::size_t j, double noise)
    {
        const auto tile = a(i, j).write(duet_owner(a(i, j).get()));
        for (std::size_t col = 0; tile.here && col < edge; col++)
            for (std::size_t row = 0; row < edge; row++) {
                const double distance = std::fabs(static_cast<double>(i * edge + row) -
                                                  static_cast<double>(j * edge + col));
                tile(row, col) = std::exp(-distance) + (distance > 0 ? 0 : noise);
            }
    }
    /* Submits the factorisation in the order of a sequential program. */
    void submit()
    {
        for (std::size_t k = 0; k < tiles; k++) {
            duet.spawn(potrf, a(k, k), edge);
            for (std::size_t i = k + 1; i < tiles; i++)
                duet.spawn(trsm, a(k, k), a(i, k), edge);
            for (std::size_t i = k + 1; i < tiles; i++) {
                duet.spawn(syrk, a(i, k), a(i, i), edge);
                for (std::size_t j = k + 1; j < i; j++)
                    duet.spawn(gemm, a(i, k), a(j, k), a(i, j), edge);
            }
        }
    }
    void tell(int round, const char *what)
    {
        if (duet_node(duet.get()) == 0)
            std::printf("round %d: %s at %.6f s\n", round, what, duet_now(duet.get()));
    }
    /* One round: fill, factorise, wait, read the last pivot on node 0. */
    void run(int round)
    {
        for (std::size_t i = 0; i < tiles; i++)
            for (std::size_t j = 0; j <= i; j++)
                fill(i, j, 0.1 * round);
        submit();
        tell(round, "submitted");
        duet.wait();
        tell(round, "factorised");
        const auto last = a(tiles - 1, tiles - 1).read(0);
        tell(round, "result read");
        if (last.here && duet_computes(duet.get()))
            std::printf("round %d: last pivot %.12g\n", round, last(edge - 1, edge - 1));
    }
};

} // namespace

int main(int argc, char **argv)
{
    int status = 2; /* until the runtime is open */
    try {
        program all(duet::config(argc, argv));
        status = 1;
        for (int round = 1; round <= 2; round++)
            all.run(round);
        all.duet.close();
        return 0;
    } catch (const std::exception &e) {
        std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
        return status;
    }
}
