! SPDX-License-Identifier: Apache-2.0
! tiled_cholesky.c in Fortran, with the kernels of BLAS and LAPACK: factorises a matrix by tiles,
! reads the result, changes the matrix, and factorises again, on this machine or simulated, on one
! node or on several, by the same options.
module tiles
    use, intrinsic :: iso_c_binding
    use duet
    implicit none

    ! The matrix has 6 x 6 tiles of 320 x 320 elements, for which idgraf's times are known.
    integer, parameter :: count = 6, edge = 320
    external :: dpotrf, dtrsm, dsyrk, dgemm

contains

    ! --------------------------------------------------------------------------------------------
    ! Kernels: a matrix that LAPACK gets is passed without a copy, as tiles have no gaps.

    integer(c_int) function run_gemm(call) result(error) bind(c, name='')
        type(duet_call), intent(in) :: call
        real(c_double), pointer :: a(:, :), b(:, :), c(:, :)
        call duet_get(call, 1, a)
        call duet_get(call, 2, b)
        call duet_get(call, 3, c)
        call dgemm('N', 'T', edge, edge, edge, -1d0, a, edge, b, edge, 1d0, c, edge)
        error = 0
    end function

    integer(c_int) function run_syrk(call) result(error) bind(c, name='')
        type(duet_call), intent(in) :: call
        real(c_double), pointer :: a(:, :), c(:, :)
        call duet_get(call, 1, a)
        call duet_get(call, 2, c)
        call dsyrk('L', 'N', edge, edge, -1d0, a, edge, 1d0, c, edge)
        error = 0
    end function

    integer(c_int) function run_trsm(call) result(error) bind(c, name='')
        type(duet_call), intent(in) :: call
        real(c_double), pointer :: l(:, :), b(:, :)
        call duet_get(call, 1, l)
        call duet_get(call, 2, b)
        call dtrsm('R', 'L', 'T', 'N', edge, edge, 1d0, l, edge, b, edge)
        error = 0
    end function

    integer(c_int) function run_potrf(call) result(error) bind(c, name='')
        type(duet_call), intent(in) :: call
        real(c_double), pointer :: a(:, :)
        integer :: info
        call duet_get(call, 1, a)
        call dpotrf('L', edge, a, edge, info)
        error = 0
        if (info /= 0) error = duet_failed(call, 'the matrix is not positive definite')
    end function

    ! The value of every task is its amount of work, by which kernel times are looked up.
    real(c_double) function flops(args) bind(c, name='')
        type(c_ptr), value :: args
        real(c_double), pointer :: work
        call c_f_pointer(args, work)
        flops = work
    end function

    ! Fills a tile of a matrix of exp(-|row - column|), with `noise` added on the diagonal.
    subroutine fill(tile, first_row, first_col, noise)
        real(c_double), intent(out) :: tile(:, :)
        integer, intent(in) :: first_row, first_col
        real(c_double), intent(in) :: noise
        integer :: row, col
        do col = 1, edge
            do row = 1, edge
                tile(row, col) = exp(-abs(real(first_row + row - first_col - col, c_double)))
                if (first_row + row == first_col + col) tile(row, col) = 1 + noise
            end do
        end do
    end subroutine
end module

program tiled_cholesky
    use tiles
    implicit none
    interface
        subroutine openblas_set_num_threads(threads) bind(c) ! as duet has a thread for each core
            import :: c_int
            integer(c_int), value :: threads
        end subroutine
    end interface
    real(c_double), parameter :: n = edge
    type(duet_runtime) :: rt
    type(duet_codelet) :: potrf, trsm, syrk, gemm
    type(duet_handle) :: a(count, count) ! on and below the diagonal
    real(c_double), allocatable, target :: data(:, :, :, :)
    real(c_double), pointer :: last(:, :)
    integer :: i, j, k, step, owner
    logical :: here

    call openblas_set_num_threads(1)
    call rt%open()
    ! There is no code for GPUs yet, but simulated ones need none; potrf stays on CPUs.
    call rt%codelet('dpotrf', potrf, run_potrf, flops=flops)
    call rt%codelet('dtrsm', trsm, run_trsm, cuda=duet_simulated, flops=flops)
    call rt%codelet('dsyrk', syrk, run_syrk, cuda=duet_simulated, flops=flops)
    call rt%codelet('dgemm', gemm, run_gemm, cuda=duet_simulated, flops=flops)

    ! Each node registers all tiles, and has its own ones in memory.
    allocate (data(edge, edge, count, count))
    do i = 1, count
        do j = 1, i
            owner = duet_node_at(rt%c, i - 1_c_int64_t, j - 1_c_int64_t)
            if (duet_node_here(rt%c, owner)) then
                call rt%register(data(:, :, i, j), a(i, j))
            else
                call rt%register(edge, edge, 8, a(i, j), c_null_ptr)
            end if
            call rt%check(duet_own(rt%c, a(i, j)%c, owner))
        end do
    end do

    do step = 1, 2
        do i = 1, count
            do j = 1, i ! waits, on the tile's node, for the tasks that use it
                call rt%acquire(a(i, j), duet_w, duet_owner(a(i, j)%c), here)
                if (here) call fill(data(:, :, i, j), i * edge, j * edge, 0.1d0 * step)
                call rt%release(a(i, j))
            end do
        end do
        do k = 1, count ! in the order of a sequential program
            call rt%submit(potrf, [duet_access(a(k, k), duet_rw)], n**3 / 3 + n**2 / 2 + n / 6)
            do i = k + 1, count
                call rt%submit(trsm, [duet_access(a(k, k), duet_r), &
                    duet_access(a(i, k), duet_rw)], n**3)
            end do
            do i = k + 1, count
                call rt%submit(syrk, [duet_access(a(i, k), duet_r), &
                    duet_access(a(i, i), duet_rw)], n**2 * (n + 1))
                do j = k + 1, i - 1
                    call rt%submit(gemm, [duet_access(a(i, k), duet_r), &
                        duet_access(a(j, k), duet_r), duet_access(a(i, j), duet_rw)], 2 * n**3)
                end do
            end do
        end do
        call tell('submitted at', duet_now(rt%c), 's')
        call rt%wait()
        call tell('factorised at', duet_now(rt%c), 's')
        call rt%acquire(a(count, count), duet_r, 0, here)
        call tell('result read at', duet_now(rt%c), 's')
        if (.not. duet_computes(rt%c)) here = .false.
        if (here) then
            call c_f_pointer(duet_address(a(count, count)%c), last, [edge, edge])
            call tell('last pivot', last(edge, edge), '')
        end if
        call rt%release(a(count, count))
    end do
    call rt%close()
    deallocate (data)

contains

    ! Reports on node 0 that something was done.
    subroutine tell(what, value, unit)
        character(*), intent(in) :: what, unit
        real(c_double), intent(in) :: value
        character(24) :: text
        write (text, merge('(f24.6) ', '(f24.12)', unit == 's')) value
        if (duet_node(rt%c) == 0) print '(a, i0, 6a)', 'round ', step, ': ', what, ' ', &
            trim(adjustl(text)), repeat(' ', len(unit)), unit
    end subroutine
end program
