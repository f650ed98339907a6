/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tiled_cholesky.c in C++17: factorises a matrix by tiles, reads the result, changes the matrix,
 * and factorises again. Options, platforms, and several nodes as there:
 *
 *     tiled_cholesky_cpp --duet-simulate=idgraf --duet-gpus=4
 *
 * Only <duet/duet.hpp> is needed; link with -lduet -lm.
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
/* Kernels: a real program calls BLAS here. There is no code for GPUs yet, but simulated ones need
 * none: cuda(). Kernel times are looked up by the flops of the tile's edge, a value of each task.
 */

/* C := C - A B', for gemm and syrk. */
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

void factorise_tile(view<double> a)
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
                           .cpu([](view<double> a, double) { factorise_tile(a); })
                           .flops([](double n) { return n * n * n / 3 + n * n / 2 + n / 6; });
constexpr auto trsm = duet::task<R<matrix>, RW<matrix>, double>("dtrsm")
                          .cpu([](auto l, view<double> b, double) { solve(l, b); })
                          .cuda()
                          .flops([](double n) { return n * n * n; });
constexpr auto syrk = duet::task<R<matrix>, RW<matrix>, double>("dsyrk")
                          .cpu([](auto a, view<double> c, double) { update(a, a, c); })
                          .cuda()
                          .flops([](double n) { return n * n * (n + 1); });
constexpr auto gemm = duet::task<R<matrix>, R<matrix>, RW<matrix>, double>("dgemm")
                          .cpu([](auto a, auto b, view<double> c, double) { update(a, b, c); })
                          .cuda()
                          .flops([](double n) { return 2 * n * n * n; });

/* ------------------------------------------------------------------------------------------- */
/* The program                                                                                  */

class program
{
  public:
    explicit program(const duet::config &config)
        : duet_(&config), data_(tiles * tiles * edge * edge)
    {
        for (std::size_t i = 0; i < tiles; i++)
            for (std::size_t j = 0; j <= i; j++) {
                const unsigned node = duet_node_at(duet_.get(), i, j);
                const bool here = duet_node_here(duet_.get(), node);
                a_.emplace_back(duet_, here ? &data_[a_.size() * edge * edge] : nullptr, edge,
                                edge);
                duet_.check(duet_own(duet_.get(), a_.back().get(), node));
            }
    }

    /* One round: fill, factorise, wait, read the result. */
    void run(int round)
    {
        for (std::size_t i = 0; i < tiles; i++)
            for (std::size_t j = 0; j <= i; j++)
                fill(i, j, 0.1 * round);
        factorise();
        tell(round, "submitted");
        duet_.wait();
        tell(round, "factorised");
        double pivot = 0;
        {
            const auto last = a(tiles - 1, tiles - 1).read(0); /* on node 0 */
            if (last.here && duet_computes(duet_.get()))
                pivot = last(edge - 1, edge - 1);
        }
        tell(round, "result read");
        if (duet_computes(duet_.get()) && duet_node(duet_.get()) == 0)
            std::printf("round %d: last pivot %.12g\n", round, pivot);
    }
    void close()
    {
        a_.clear();
        duet_.close();
    }

  private:
    /* Tiles on and below the diagonal, by rows. */
    matrix &a(std::size_t i, std::size_t j)
    {
        return a_[i * (i + 1) / 2 + j];
    }
    /* One tile of exp(-|row - column|), with `noise` added on the diagonal. */
    void fill(std::size_t i, std::size_t j, double noise)
    {
        const auto tile = a(i, j).write(static_cast<int>(duet_node_at(duet_.get(), i, j)));
        for (std::size_t col = 0; tile.here && col < edge; col++)
            for (std::size_t row = 0; row < edge; row++) {
                const double distance = std::fabs(static_cast<double>(i * edge + row) -
                                                  static_cast<double>(j * edge + col));
                tile(row, col) = std::exp(-distance) + (distance > 0 ? 0 : noise);
            }
    }
    /* Submits the factorisation in the order of a sequential program. */
    void factorise()
    {
        for (std::size_t k = 0; k < tiles; k++) {
            duet_.spawn(potrf, a(k, k), edge);
            for (std::size_t i = k + 1; i < tiles; i++)
                duet_.spawn(trsm, a(k, k), a(i, k), edge);
            for (std::size_t i = k + 1; i < tiles; i++) {
                duet_.spawn(syrk, a(i, k), a(i, i), edge);
                for (std::size_t j = k + 1; j < i; j++)
                    duet_.spawn(gemm, a(i, k), a(j, k), a(i, j), edge);
            }
        }
    }
    void tell(int round, const char *what)
    {
        if (duet_node(duet_.get()) == 0)
            std::printf("round %d: %s at %.6f s\n", round, what, duet_now(duet_.get()));
    }

    duet::runtime duet_;
    std::vector<double> data_;
    std::vector<matrix> a_; /* last: ends before its memory and the runtime */
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
        all.close();
        return 0;
    } catch (const std::exception &e) {
        std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
        return status;
    }
}
