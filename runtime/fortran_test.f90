! SPDX-License-Identifier: Apache-2.0
! The Fortran interface, on this machine and simulated: what is registered and what is refused, what
! kernels get, reductions, parts, errors.
module kernels
    use, intrinsic :: iso_c_binding
    use duet
    implicit none

    type :: scaling ! a value of a task
        integer :: count
        real(c_double) :: by
    end type
    type :: holder ! a value that is too large
        real(c_double) :: all(65)
    end type
    character(300) :: message
    integer :: stat

contains

    subroutine expect(is, what)
        logical, intent(in) :: is
        character(*), intent(in) :: what
        if (is) return
        print '(2a)', 'not as expected: ', what
        stop 1
    end subroutine

    ! Checks the last error: its code, and a part of its message.
    subroutine refused(code, part)
        integer, intent(in) :: code
        character(*), intent(in) :: part
        if (stat /= code .or. index(message, part) == 0) print '(i0, 2a)', stat, ' ', trim(message)
        call expect(stat == code .and. index(message, part) > 0, part)
    end subroutine

    ! Adds 1 to elements of the kind that the task's value says.
    integer(c_int) function add(call) result(error) bind(c, name='')
        type(duet_call), intent(in) :: call
        integer(c_int), pointer :: kind, i4(:, :)
        integer(c_int64_t), pointer :: i8(:, :)
        real(c_float), pointer :: r4(:, :)
        real(c_double), pointer :: r8(:, :)
        complex(c_float), pointer :: c4(:, :)
        complex(c_double), pointer :: c8(:, :)
        error = 0
        call c_f_pointer(call%args, kind)
        select case (kind)
        case (1); call duet_get(call, 1, i4); i4 = i4 + 1
        case (2); call duet_get(call, 1, i8); i8 = i8 + 1
        case (3); call duet_get(call, 1, r4); r4 = r4 + 1
        case (4); call duet_get(call, 1, r8); r8 = r8 + 1
        case (5); call duet_get(call, 1, c4); c4 = c4 + 1
        case (6); call duet_get(call, 1, c8); c8 = c8 + 1
        case default; call duet_get(call, 2, r8)
        end select
    end function

    ! Multiplies all elements, of which the task knows the number.
    integer(c_int) function multiply(call) result(error) bind(c, name='')
        type(duet_call), intent(in) :: call
        real(c_double), pointer :: a(:, :)
        type(scaling), pointer :: value
        error = 0
        call duet_get(call, 1, a)
        call c_f_pointer(call%args, value)
        a = a * value%by
        if (size(a) /= value%count) error = duet_failed(call, 'the count is wrong')
    end function
    real(c_double) function three_seconds(args, arch) bind(c, name='')
        type(c_ptr), value :: args, arch
        type(scaling), pointer :: value
        three_seconds = 1
        if (.not. c_associated(args)) return ! a task without a value
        call c_f_pointer(args, value)
        three_seconds = merge(value%by, 0d0, c_associated(arch))
    end function

    ! A sum: the task, and how contributions begin and are added.
    integer(c_int) function total(call) result(error) bind(c, name='')
        type(duet_call), intent(in) :: call
        real(c_double), pointer :: x(:, :), s(:, :)
        error = 0
        call duet_get(call, 1, x)
        call duet_get(call, 2, s)
        s(2, 1) = s(2, 1) + sum(x)
    end function
    integer(c_int) function zero(call) result(error) bind(c, name='')
        type(duet_call), intent(in) :: call
        real(c_double), pointer :: s(:, :)
        error = 0
        call duet_get(call, 1, s)
        s = 0
    end function
    integer(c_int) function plus(call) result(error) bind(c, name='')
        type(duet_call), intent(in) :: call
        real(c_double), pointer :: s(:, :), more(:, :)
        error = 0
        call duet_get(call, 1, s)
        call duet_get(call, 2, more)
        s = s + more
    end function

    ! Submits a task itself, on the data that its value names.
    integer(c_int) function outer(call) result(error) bind(c, name='')
        type(duet_call), intent(in) :: call
        type(duet_runtime) :: rt
        type(duet_codelet) :: inner
        type(duet_handle), pointer :: x
        call c_f_pointer(call%args, x)
        rt%c = call%runtime
        call rt%codelet('inner', inner, add, stat=error)
        call rt%submit(inner, [duet_access(x, duet_commute)], 4, stat=error)
    end function
end module

program fortran_test
    use kernels
    implicit none
    character(200) :: program, argument
    call get_command_argument(0, program)
    call get_command_argument(1, argument)
    if (argument /= '') call end_by_error(argument)
    call test_arrays('--duet-cpus=2')
    call test_arrays('--duet-cpus=1 --duet-emulate=free  --duet-gpus=1 --duet-no-bind')
    call test_refusals()
    call test_tasks()
    call test_reductions()
    call test_failures()
    call test_simulated()

contains

    ! All kinds, sections with gaps between their columns, and what lies in the gaps.
    subroutine test_arrays(options)
        character(*), intent(in) :: options
        type(duet_runtime) :: rt
        type(duet_codelet) :: one
        type(duet_handle) :: h(9)
        integer(c_int), target :: i4(3)
        integer(c_int64_t), target :: i8(2, 2)
        real(c_float), target :: r4(8, 9)
        real(c_double), target, allocatable :: r8(:, :)
        complex(c_float), target :: c4(5)
        complex(c_double), target :: c8(4, 3)
        real(c_double), pointer :: section(:, :)
        integer :: i
        allocate (r8(0:7, 9))
        i4 = 1
        i8 = 1
        r4 = 1
        r8 = 1
        c4 = (1, 2)
        c8 = (1, 2)
        section => r8(1:4, 3:7)
        call rt%open(options, stat, message)
        call expect(stat == 0, 'open: ' // message)
        call rt%codelet('one', one, add)
        call rt%register(i4, h(1))
        call rt%register(i8, h(2))
        call rt%register(r4(2:5, 3:7), h(3))
        call rt%register(section, h(4))
        call rt%register(c4(2:4), h(5))
        call rt%register(c8(:, 2:), h(6))
        call rt%register(r8(6:6, ::4), h(7)) ! a row of every fourth column
        call rt%register(r8(0, 1:1), h(8))
        call rt%register(1, 1, 8, h(9), c_loc(r8(0, 9)), 8)
        do i = 1, 9
            call rt%submit(one, [duet_access(h(i), duet_rw)], min(i, merge(i, 4, i < 7)))
            call rt%unregister(h(i))
        end do
        call rt%close()
        call expect(all(i4 == 2) .and. all(i8 == 2), 'integers')
        call expect(sum(r4) == 72 + 20 .and. all(r4(2:5, 3:7) == 2), 'real(4)')
        call expect(sum(r8) == 72 + 20 + 5 .and. all(section == 2), 'real(8)')
        call expect(all(r8(6, ::4) == 2) .and. r8(0, 1) == 2 .and. r8(0, 9) == 2, 'a row')
        call expect(sum(c4) == (8, 10) .and. all(c4(2:4) == (2, 2)), 'complex(4)')
        call expect(sum(c8) == (20, 24) .and. all(c8(:, 2:) == (2, 2)), 'complex(8)')
    end subroutine

    subroutine test_refusals()
        type(duet_runtime) :: rt
        type(duet_codelet) :: one, other
        type(duet_handle) :: h
        real(c_double), target :: a(6, 4), large(65)
        character, target :: text(3)
        a = 1
        large = 1
        text = 'x'
        call rt%open('--duet-policy=nobody', stat, message)
        call refused(duet_enotfound, 'known are')
        call rt%open('--duet-cpus=2')
        call rt%codelet('one', one, add)
        call rt%codelet('one', other, add, stat=stat, errmsg=message)
        call refused(duet_einval, 'one')
        call rt%register(a(::2, :), h, stat, message)
        call refused(duet_einval, '16 bytes apart in a column: they have to be 8')
        call rt%register(a(:, 4:1:-1), h, stat, message)
        call refused(duet_einval, '-48 bytes apart: they have to be, in whole elements, at least')
        call rt%register(a(1, :), h, stat, message)
        call refused(duet_einval, '48 bytes apart in a column: they have to be 8')
        call rt%register(a(3:2, :), h, stat, message)
        call refused(duet_einval, '0 x 4 elements')
        call rt%register(large(::2), h, stat, message)
        call refused(duet_einval, '16 bytes apart in a column: they have to be 8')
        call rt%register(text, h, stat, message)
        call refused(duet_einval, 'an array of this type')
        call rt%register(a, h, stat, message)
        call expect(stat == 0, 'stat is 0 without an error')
        call rt%submit(one, [duet_access(h, duet_rw)], where='cuda', stat=stat, errmsg=message)
        call refused(duet_enoworker, 'has no cuda')
        call rt%submit(one, [duet_access(h, duet_rw)], holder(large), stat=stat, errmsg=message)
        call refused(duet_einval, '512 bytes')
        call rt%close()
    end subroutine

    ! Parts, options, temporary data, and a task that submits one.
    subroutine test_tasks()
        type(duet_runtime) :: rt
        type(duet_codelet) :: times, nested
        type(duet_handle) :: a, t
        type(duet_handle), allocatable :: parts(:, :)
        type(duet_ref) :: first(1)
        real(c_double), target :: x(3, 4)
        real(c_double), pointer :: y
        x = 1
        call rt%open('--duet-cpus=2')
        call rt%codelet('times', times, multiply, cuda=duet_simulated)
        call rt%codelet('outer', nested, outer)
        call rt%register(x, a)
        call rt%cut(a, 2, 2, parts)
        call rt%submit(times, [duet_access(parts(2, 1), duet_rw)], scaling(2, 3d0), priority=2, &
            where='cpu', name='first', node=0, ref=first(1))
        call rt%check(duet_ref_wait(rt%c, first(1)%c))
        call expect(logical(duet_ref_ended(first(1)%c)), 'a task that was waited for has ended')
        call rt%submit(times, [duet_access(a, duet_rw)], scaling(12, 2d0), after=first)
        call duet_ref_free(first(1)%c)
        call rt%acquire(parts(2, 1), duet_r)
        call expect(all(x(3, :2) == 6), 'a part')
        call rt%release(parts(2, 1))
        call rt%check(duet_uncut(rt%c, parts(1, 1)%c))
        call rt%submit(nested, [duet_access :: ], a)
        call rt%wait()
        call rt%unregister(a)
        call expect(sum(x) == 12 * 2 + 2 * 4 + 12, 'a task that submits one')
        call rt%register(1, 1, 8, t)
        call rt%acquire(t, duet_w)
        call c_f_pointer(duet_address(t%c), y)
        y = 5
        call rt%release(t)
        call rt%submit(times, [duet_access(t, duet_rw)], scaling(1, 2d0))
        call rt%acquire(t, duet_r)
        call c_f_pointer(duet_address(t%c), y)
        if (y /= 10) print *, y, c_associated(duet_address(t%c))
        call expect(y == 10, 'temporary data')
        call rt%close()
    end subroutine

    subroutine test_reductions()
        type(duet_runtime) :: rt
        type(duet_codelet) :: adding, init, combine
        type(duet_handle) :: hx, hs
        type(duet_handle), allocatable :: parts(:, :)
        real(c_double), target :: x(1000), s(2)
        integer :: i
        x = [(i, i=1, 1000)]
        s = 5
        call rt%open('--duet-cpus=2')
        call rt%codelet('adding', adding, total)
        call rt%codelet('zero', init, zero)
        call rt%codelet('plus', combine, plus)
        call rt%register(x, hx)
        call rt%register(s, hs)
        call rt%check(duet_set_reduction(rt%c, hs%c, init%c, combine%c))
        call rt%cut(hx, 20, 1, parts)
        do i = 1, 20
            call rt%submit(adding, [duet_access(parts(i, 1), duet_r), duet_access(hs, duet_reduce)])
        end do
        call rt%unregister(hs)
        call expect(s(1) == 5 .and. s(2) == 5 + 500500, 'a sum')
        call rt%close()
    end subroutine

    ! Kernels that fail, a wait that says so, and programs that end by an error.
    subroutine test_failures()
        type(duet_runtime) :: rt
        type(duet_codelet) :: times
        type(duet_handle) :: h
        real(c_double), target :: x(4)
        call rt%open('--duet-cpus=2')
        call rt%codelet('times', times, multiply)
        call rt%register(x, h)
        call rt%submit(times, [duet_access(h, duet_w)], scaling(5, 1d0))
        call rt%wait(stat, message)
        call refused(duet_etask, 'the count is wrong')
        call rt%check(duet_recover(rt%c))
        call rt%close(stat)
        call ends_by(' --duet-cpus=many', 2, 'takes a whole number')
        call ends_by(' --duet-cpus=1', 1, 'takes elements of 16 bytes, and access 1 of 1')
        call ends_by(' --duet-cpus=2', 1, 'access 2 of a task with 1 accesses')
        call ends_by(' closed', 1, 'this runtime is not open')
    end subroutine

    ! Checks how this program ends with an argument: with which status and message.
    subroutine ends_by(argument, expected, part)
        character(*), intent(in) :: argument, part
        integer, intent(in) :: expected
        character(400) :: command
        integer :: failed
        write (command, '(4a, i0, 3a)') 'text=$(', trim(program), argument, ' 2>&1); [ $? = ', &
            expected, ' ] && case $text in *"', part, '"*) ;; *) false; esac'
        call execute_command_line(command, exitstat=failed)
        call expect(failed == 0, argument // ': ' // part)
    end subroutine

    ! What ends the program without `stat`: an option, and kernels that take what is not there.
    subroutine end_by_error(argument)
        character(*), intent(in) :: argument
        type(duet_runtime) :: rt
        type(duet_codelet) :: one
        type(duet_handle) :: h
        real(c_double), target :: x(4)
        if (argument /= 'closed') call rt%open()
        call rt%codelet('one', one, add)
        call rt%register(x, h)
        call rt%submit(one, [duet_access(h, duet_w)], merge(6, 7, argument == '--duet-cpus=1'))
        call rt%wait()
    end subroutine

    ! Tasks whose time is known from their value alone, and from its absence.
    subroutine test_simulated()
        type(duet_runtime) :: rt
        type(duet_codelet) :: times
        type(duet_handle) :: h
        real(c_double), target :: x(4)
        real(c_double) :: now
        call rt%open('--duet-simulate=idgraf', stat, message)
        call expect(stat == 0, message)
        call rt%codelet('times', times, multiply, cost=three_seconds)
        call rt%register(x, h)
        call rt%submit(times, [duet_access(h, duet_rw)], scaling(4, 3d0))
        call rt%wait()
        now = duet_now(rt%c)
        call expect(now > 3 .and. now < 3.01d0, 'a task of 3 s')
        call rt%submit(times, [duet_access(h, duet_rw)])
        call rt%wait()
        now = duet_now(rt%c)
        call expect(now > 4 .and. now < 4.02d0, 'a task without a value')
        call rt%close()
    end subroutine
end program
