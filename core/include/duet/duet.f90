! SPDX-License-Identifier: Apache-2.0
! duet for applications in Fortran 2008: the C interface of duet/duet.h with derived types, in one
! file that a program compiles with its own. Arrays are registered as they are, sections of matrices
! with their leading dimension. What is not here is called in C, with the component c of these
! types, which is the address that C knows.
!
! Subroutines with `stat` and `errmsg` set them as ALLOCATE does: stat to 0 or a negative error
! code, errmsg to duet's message if there is an error. Without stat an error ends the program, with
! the message on the error unit and exit status 1, or 2 if the runtime could not be opened. Threads,
! and what waits for what, are as in C.
module duet
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: error_unit, int32, int64, real32, real64
    implicit none
    private
    public :: duet_get, duet_failed, duet_simulated, duet_now, duet_computes, duet_recover, &
        duet_set_reduction, duet_address, duet_uncut, duet_ref_wait, duet_ref_ended, &
        duet_ref_free, duet_own, duet_owner, duet_node, duet_node_at, duet_node_here

    ! Modes of accesses and codes of errors, as in duet/handles.h and duet/error.h.
    integer(c_int), parameter, public :: duet_r = 1, duet_w = 2, duet_rw = 3, duet_commute = 7, &
        duet_reduce = 10, duet_scratch = 18
    integer(c_int), parameter, public :: duet_enomem = -1, duet_einval = -2, duet_enoworker = -3, &
        duet_etoobig = -4, duet_enomodel = -5, duet_enotfound = -6, duet_eio = -7, &
        duet_eparse = -8, duet_estuck = -9, duet_etask = -10, duet_eabsent = -11, &
        duet_ecanceled = -12, duet_ebusy = -13, duet_elost = -14, duet_edata = -15

    integer, parameter :: config_words = 37 ! of 8 bytes, in struct duet_config
    integer, parameter :: message_bytes = 512
    integer, parameter :: args_words = 64 ! most that a task's arguments have, of 8 bytes
    character(kind=c_char), target, save :: backends(16) = transfer('cpu' // c_null_char // &
        'cuda' // c_null_char // 'opencl' // c_null_char, [c_null_char])

    ! ------------------------------------------------------------------------------------------
    ! Types. Their components c are addresses of C.

    type, bind(c), public :: duet_handle ! registered data, temporary data, or a part
        type(c_ptr) :: c = c_null_ptr
    end type
    type, bind(c), public :: duet_access ! an access of a task: duet_access(a, duet_rw)
        type(duet_handle) :: handle
        integer(c_int) :: mode
    end type
    type, bind(c), public :: duet_codelet ! a kernel with its implementations
        type(c_ptr) :: c = c_null_ptr
    end type
    type, bind(c), public :: duet_ref ! a reference to a task, which duet_ref_free ends
        type(c_ptr) :: c = c_null_ptr
    end type
    type, bind(c), public :: duet_call ! what a kernel gets; args: the address of the task's value
        type(c_ptr) :: runtime, args, buffers
        integer(c_size_t) :: buffer_count
        type(c_ptr) :: stream, status, message
    end type
    type, bind(c), public :: duet_buffer ! a replica of data in the memory of a worker
        type(c_ptr) :: data
        integer(c_size_t) :: rows, cols, ld, element_bytes, planes, plane
    end type

    type, bind(c) :: c_implementation
        type(c_ptr) :: arch
        type(c_funptr) :: run
    end type
    type, bind(c) :: c_codelet
        type(c_ptr) :: name, implementations
        integer(c_size_t) :: count
        type(c_funptr) :: flops = c_null_funptr, cost = c_null_funptr, expand = c_null_funptr
        logical(c_bool) :: waits = .false.
        logical(c_bool) :: capturable = .false.
    end type
    type, bind(c) :: c_task
        type(c_ptr) :: codelet, accesses
        integer(c_size_t) :: access_count
        type(c_ptr) :: args = c_null_ptr
        integer(c_size_t) :: args_bytes = 0
        integer(c_int) :: priority = 0
        integer(c_int64_t) :: where = 0
        real(c_double) :: complexity = 0
        type(c_ptr) :: extra = c_null_ptr
    end type
    type, bind(c) :: c_extra
        type(c_ptr) :: ref = c_null_ptr, after = c_null_ptr
        integer(c_size_t) :: after_count = 0
        type(c_funptr) :: done = c_null_funptr
        type(c_ptr) :: done_arg = c_null_ptr, name = c_null_ptr
        integer(c_int32_t) :: iteration = 0
        type(c_ptr) :: node = c_null_ptr
    end type

    type, public :: duet_runtime ! in a kernel, rt%c = call%runtime stands for its own
        type(c_ptr) :: c = c_null_ptr
        character(kind=c_char), pointer, private :: words(:) => null() ! of its options
    contains
        procedure :: open => runtime_open
        procedure :: close => runtime_close
        procedure :: wait => runtime_wait
        procedure :: check => runtime_check
        procedure, private :: register_vector, register_matrix, register_shape
        generic :: register => register_vector, register_matrix, register_shape
        procedure :: unregister => runtime_unregister
        procedure :: cut => runtime_cut
        procedure :: acquire => runtime_acquire
        procedure :: release => runtime_release
        procedure :: codelet => runtime_codelet
        procedure :: submit => runtime_submit
    end type

    ! Gives a kernel the matrix of its access number `index`, from 1, as it lies in the memory of
    ! its worker: call duet_get(call, 1, a). A vector is a matrix of one column. A kernel that takes
    ! an access that is not there, or elements of another size, ends the program with a message.
    interface duet_get
        procedure get_i4, get_i8, get_r4, get_r8, get_c4, get_c8
    end interface

    ! ------------------------------------------------------------------------------------------
    ! Functions of programs, then those of C, whose contracts are in its headers

    abstract interface
        ! A kernel. Its result is 0, duet_failed(call, text), or another negative error code.
        integer(c_int) function duet_kernel(call) bind(c)
            import; type(duet_call), intent(in) :: call
        end function
        ! Returns the flops of a task, by the address of its value.
        real(c_double) function duet_work(args) bind(c)
            import; type(c_ptr), value :: args
        end function
        ! Returns the seconds expected of a task on an architecture, a text of C; 0: not known.
        real(c_double) function duet_cost(args, arch) bind(c)
            import; type(c_ptr), value :: args, arch
        end function

        ! Functions of C that take so many addresses, and return an error or a number.
        integer(c_int) function of_one(a) bind(c)
            import; type(c_ptr), value :: a; end function
        integer(c_int) function of_two(a, b) bind(c)
            import; type(c_ptr), value :: a, b; end function
        integer(c_int) function of_three(a, b, c) bind(c)
            import; type(c_ptr), value :: a, b, c; end function
        integer(c_int) function of_four(a, b, c, d) bind(c)
            import; type(c_ptr), value :: a, b, c, d; end function
    end interface

    procedure(of_one), bind(c) :: duet_close, duet_wait, duet_recover, duet_node, duet_owner
    procedure(of_two), bind(c) :: duet_submit, duet_ref_wait, duet_unregister, duet_uncut, &
        duet_release, duet_config_environment
    procedure(of_three), bind(c) :: duet_open, duet_register_codelet
    procedure(of_four), bind(c) :: duet_config_arguments, duet_set_reduction

    interface
        integer(c_int) function duet_acquire(runtime, handle, mode) bind(c)
            import; type(c_ptr), value :: runtime, handle; integer(c_int), value :: mode
        end function
        integer(c_int) function duet_own(runtime, handle, node) bind(c)
            import; type(c_ptr), value :: runtime, handle; integer(c_int), value :: node
        end function
        logical(c_bool) function duet_computes(runtime) bind(c)
            import; type(c_ptr), value :: runtime; end function
        logical(c_bool) function duet_ref_ended(ref) bind(c)
            import; type(c_ptr), value :: ref; end function
        type(c_ptr) function duet_last_message(runtime) bind(c)
            import; type(c_ptr), value :: runtime; end function
        type(c_ptr) function duet_address(handle) bind(c)
            import; type(c_ptr), value :: handle; end function
        subroutine duet_ref_free(ref) bind(c)
            import; type(c_ptr), value :: ref; end subroutine
        subroutine duet_config_init_size(config, bytes) bind(c)
            import; type(c_ptr), value :: config; integer(c_size_t), value :: bytes; end subroutine
        real(c_double) function duet_now(runtime) bind(c)
            import; type(c_ptr), value :: runtime; end function
        type(c_ptr) function duet_strerror(code) bind(c)
            import; integer(c_int), value :: code; end function
        integer(c_int64_t) function duet_where(runtime, name) bind(c)
            import; type(c_ptr), value :: runtime; character(kind=c_char), intent(in) :: name(*)
        end function
        integer(c_int) function duet_register_matrix(runtime, at, m, n, ld, bytes, out) bind(c)
            import; type(c_ptr), value :: runtime, at; integer(c_size_t), value :: m, n, ld, bytes
            type(c_ptr), intent(out) :: out; end function
        integer(c_int) function duet_register_temporary(runtime, rows, cols, bytes, out) bind(c)
            import; type(c_ptr), value :: runtime; integer(c_size_t), value :: rows, cols, bytes
            type(c_ptr), intent(out) :: out; end function
        integer(c_int) function duet_cut_blocks(runtime, whole, rows, cols, out) bind(c)
            import; type(c_ptr), value :: runtime, whole; integer(c_size_t), value :: rows, cols
            type(duet_handle), intent(inout) :: out(*); end function
        integer(c_int) function duet_acquire_on(runtime, handle, mode, node, here) bind(c)
            import; type(c_ptr), value :: runtime, handle; integer(c_int), value :: mode, node
            logical(c_bool), intent(inout) :: here; end function
        integer(c_int) function duet_node_at(runtime, row, col) bind(c) ! row and col from 0
            import; type(c_ptr), value :: runtime; integer(c_int64_t), value :: row, col
        end function
        logical(c_bool) function duet_node_here(runtime, node) bind(c)
            import; type(c_ptr), value :: runtime; integer(c_int), value :: node; end function
        integer(c_size_t) function strlen(text) bind(c)
            import; type(c_ptr), value :: text; end function
        subroutine c_exit(status) bind(c, name='exit')
            import; integer(c_int), value :: status; end subroutine
    end interface

contains

    ! ------------------------------------------------------------------------------------------
    ! Errors

    ! Says how something ended. Without `stat` an error ends the program, with an exit status.
    recursive subroutine conclude(code, text, status, stat, errmsg)
        integer(c_int), intent(in) :: code, status
        character(*), intent(in) :: text
        integer, intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
        if (present(stat)) stat = code
        if (present(errmsg) .and. code /= 0) errmsg = text
        if (present(stat) .or. code == 0) return
        write (error_unit, '(2a)') 'duet: ', trim(text)
        call c_exit(status)
    end subroutine

    ! Ends a call of a function in C, whose result is `code`, as the subroutines here end:
    ! call rt%check(duet_recover(rt%c), stat).
    recursive subroutine runtime_check(this, code, stat, errmsg)
        class(duet_runtime), intent(in) :: this
        integer(c_int), intent(in) :: code
        integer, intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
        type(c_ptr) :: text
        if (code == 0) then
            if (present(stat)) stat = 0
            return
        end if
        text = duet_strerror(code)
        if (c_associated(this%c)) text = duet_last_message(this%c)
        call conclude(code, text_of(text), 1, stat, errmsg)
    end subroutine

    ! Returns the address of a runtime for C. Without one the program ends.
    recursive function opened(this) result(c)
        class(duet_runtime), intent(in) :: this
        type(c_ptr) :: c
        c = this%c
        if (.not. c_associated(c)) call conclude(duet_einval, 'this runtime is not open: call ' // &
            'its open, or in a kernel set its c to call%runtime', 1)
    end function

    recursive function text_of(at) result(text)
        type(c_ptr), intent(in) :: at
        character(:), allocatable :: text
        character(kind=c_char), pointer :: letters(:)
        call c_f_pointer(at, letters, [strlen(at)])
        text = transfer(letters, repeat(' ', size(letters)))
    end function

    ! ------------------------------------------------------------------------------------------
    ! The runtime

    ! Opens a runtime by the environment, then by options ("--duet-cpus=2 --duet-policy=ws"), then
    ! by the arguments of the program; the last one that sets something counts.
    subroutine runtime_open(this, options, stat, errmsg)
        class(duet_runtime), target, intent(out) :: this
        character(*), intent(in), optional :: options
        integer, intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
        integer(int64), target :: config(config_words)
        character(kind=c_char), target :: message(message_bytes)
        character(:), allocatable :: text, word
        type(c_ptr), allocatable, target :: list(:)
        integer(c_int), target :: count
        integer(c_int) :: code
        integer :: i, length
        text = 'program '
        if (present(options)) text = text // options // ' '
        do i = 1, len(text)
            if (text(i:i) == ' ') text(i:i) = c_null_char
        end do
        do i = 1, command_argument_count()
            call get_command_argument(i, length=length)
            word = repeat(' ', length)
            call get_command_argument(i, word)
            text = text // word // c_null_char
        end do
        allocate (this%words(len(text)), list(len(text)))
        this%words = transfer(text, this%words)
        count = 0
        do i = 1, size(list) ! each word that begins here
            list(i) = c_null_ptr
            if (i > 1 .and. this%words(max(i, 2) - 1) /= c_null_char) cycle
            count = count + 1
            list(count) = c_loc(this%words(i))
        end do
        message(1) = c_null_char
        call duet_config_init_size(c_loc(config), 8_c_size_t * config_words)
        code = duet_config_environment(c_loc(config), c_loc(message))
        if (code == 0) code = duet_config_arguments(c_loc(config), c_loc(count), c_loc(list), &
            c_loc(message))
        if (code == 0) code = duet_open(c_loc(this%c), c_loc(config), c_loc(message))
        if (code /= 0) deallocate (this%words)
        call conclude(code, text_of(c_loc(message)), 2, stat, errmsg)
    end subroutine

    subroutine runtime_close(this, stat, errmsg)
        class(duet_runtime), intent(inout) :: this
        integer, intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
        integer(c_int) :: code
        code = duet_close(this%c)
        this%c = c_null_ptr
        if (associated(this%words)) deallocate (this%words)
        call this%check(code, stat, errmsg)
    end subroutine

    subroutine runtime_wait(this, stat, errmsg)
        class(duet_runtime), intent(in) :: this
        integer, intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
        call this%check(duet_wait(opened(this)), stat, errmsg)
    end subroutine

    ! ------------------------------------------------------------------------------------------
    ! Data

    ! Registers an array, which has the attribute TARGET, or a section of it without gaps.
    subroutine register_vector(this, a, handle, stat, errmsg)
        class(duet_runtime), intent(in) :: this
        class(*), target, intent(inout) :: a(:)
        type(duet_handle), intent(out) :: handle
        integer, intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
        class(*), pointer :: column(:, :)
        column(1:size(a, kind=c_size_t), 1:1) => a
        call this%register_matrix(column, handle, stat, errmsg)
    end subroutine

    ! Registers a matrix, which has the attribute TARGET, or a section with columns without gaps.
    subroutine register_matrix(this, a, handle, stat, errmsg)
        class(duet_runtime), intent(in) :: this
        class(*), target, intent(inout) :: a(:, :)
        type(duet_handle), intent(out) :: handle
        integer, intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
        type(c_ptr) :: at(3)
        integer :: n(2)
        at = c_null_ptr
        n = min(2, shape(a))
        if (all(n > 0)) then
            select type (a)
            type is (integer(int32)); at = [c_loc(a(1, 1)), c_loc(a(n(1), 1)), c_loc(a(1, n(2)))]
            type is (integer(int64)); at = [c_loc(a(1, 1)), c_loc(a(n(1), 1)), c_loc(a(1, n(2)))]
            type is (real(real32)); at = [c_loc(a(1, 1)), c_loc(a(n(1), 1)), c_loc(a(1, n(2)))]
            type is (real(real64)); at = [c_loc(a(1, 1)), c_loc(a(n(1), 1)), c_loc(a(1, n(2)))]
            type is (complex(real32)); at = [c_loc(a(1, 1)), c_loc(a(n(1), 1)), c_loc(a(1, n(2)))]
            type is (complex(real64)); at = [c_loc(a(1, 1)), c_loc(a(n(1), 1)), c_loc(a(1, n(2)))]
            end select
        end if
        call register_places(this, at, shape(a, c_size_t), storage_size(a) / 8, handle, stat, &
            errmsg)
    end subroutine

    ! Registers n(1) x n(2) elements by the addresses of the first, the one below and the one to the
    ! right of it.
    subroutine register_places(this, at, n, bytes, handle, stat, errmsg)
        class(duet_runtime), intent(in) :: this
        type(c_ptr), intent(in) :: at(3)
        integer(c_size_t), intent(in) :: n(2)
        integer, intent(in) :: bytes
        type(duet_handle), intent(out) :: handle
        integer, intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
        integer(c_size_t) :: step(3), ld, size
        character(160) :: text
        step = transfer(at, step) - transfer(at(1), ld)
        size = bytes
        ld = n(1)
        if (n(2) > 1) ld = step(3) / size
        text = ''
        if (ld < n(1) .or. modulo(step(3), size) /= 0) write (text, '(2(a, i0))') 'cannot ' // &
            'register columns that are ', step(3), ' bytes apart: they have to be, in whole ' // &
            'elements, at least ', n(1) * size
        if (n(1) > 1 .and. step(2) /= size) write (text, '(2(a, i0))') 'cannot register ' // &
            'elements that are ', step(2), ' bytes apart in a column: they have to be ', size
        if (product(n) > 0 .and. .not. c_associated(at(1))) &
            text = 'cannot register an array of this type, whose address and shape have to ' // &
                'be given, or one that is not allocated'
        if (text /= '') then
            call conclude(duet_einval, text, 1, stat, errmsg)
        else
            call this%check(duet_register_matrix(opened(this), at(1), n(1), n(2), ld, size, &
                handle%c), stat, errmsg)
        end if
    end subroutine

    ! Makes temporary data of rows x cols elements of so many bytes or, with an address, registers
    ! what is there, with the leading dimension `ld` (rows). c_null_ptr stands for data that another
    ! node has, or a simulation.
    recursive subroutine register_shape(this, rows, cols, bytes, handle, address, ld, stat, errmsg)
        class(duet_runtime), intent(in) :: this
        integer, intent(in) :: rows, cols, bytes
        type(duet_handle), intent(out) :: handle
        type(c_ptr), intent(in), optional :: address
        integer, intent(in), optional :: ld
        integer, intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
        integer(c_size_t) :: m, n, size, step
        integer(c_int) :: code
        m = rows
        n = cols
        size = bytes
        step = m
        if (present(ld)) step = ld
        if (present(address)) then
            code = duet_register_matrix(opened(this), address, m, n, step, size, handle%c)
        else
            code = duet_register_temporary(opened(this), m, n, size, handle%c)
        end if
        call this%check(code, stat, errmsg)
    end subroutine

    ! Ends a registration: it waits, and brings the data back to its array.
    subroutine runtime_unregister(this, handle, stat, errmsg)
        class(duet_runtime), intent(in) :: this
        type(duet_handle), intent(inout) :: handle
        integer, intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
        call this%check(duet_unregister(opened(this), handle%c), stat, errmsg)
        handle%c = c_null_ptr
    end subroutine

    ! Cuts data into blocks: parts(i, j) is the i-th from above and the j-th from the left.
    subroutine runtime_cut(this, whole, rows, cols, parts, stat, errmsg)
        class(duet_runtime), intent(in) :: this
        type(duet_handle), intent(in) :: whole
        integer, intent(in) :: rows, cols
        type(duet_handle), allocatable, intent(out) :: parts(:, :)
        integer, intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
        allocate (parts(rows, cols))
        call this%check(duet_cut_blocks(opened(this), whole%c, int(rows, c_size_t), &
            int(cols, c_size_t), parts), stat, errmsg)
    end subroutine

    ! Waits until the program may read or change data in its own memory, until release. With `node`
    ! on that node only, which is this one if `here`.
    subroutine runtime_acquire(this, handle, mode, node, here, stat, errmsg)
        class(duet_runtime), intent(in) :: this
        type(duet_handle), intent(in) :: handle
        integer(c_int), intent(in) :: mode
        integer, intent(in), optional :: node
        logical, intent(out), optional :: here
        integer, intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
        logical(c_bool) :: is_here
        integer(c_int) :: code
        is_here = .true.
        if (present(node)) then
            code = duet_acquire_on(opened(this), handle%c, mode, node, is_here)
        else
            code = duet_acquire(opened(this), handle%c, mode)
        end if
        if (present(here)) here = is_here
        call this%check(code, stat, errmsg)
    end subroutine

    subroutine runtime_release(this, handle, stat, errmsg)
        class(duet_runtime), intent(in) :: this
        type(duet_handle), intent(in) :: handle
        integer, intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
        call this%check(duet_release(opened(this), handle%c), stat, errmsg)
    end subroutine

    ! ------------------------------------------------------------------------------------------
    ! Tasks

    ! Declares a kernel by its functions for CPUs, CUDA and OpenCL. duet_simulated stands for none:
    ! such devices are simulated and emulated alone. flops and cost are functions of tasks' values.
    subroutine runtime_codelet(this, name, codelet, cpu, cuda, opencl, flops, cost, stat, errmsg)
        class(duet_runtime), intent(in) :: this
        character(*), intent(in) :: name
        type(duet_codelet), target, intent(out) :: codelet
        procedure(duet_kernel), optional :: cpu, cuda, opencl
        procedure(duet_work), optional :: flops
        procedure(duet_cost), optional :: cost
        integer, intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
        type(c_implementation), target :: list(3)
        character(:), allocatable, target :: text
        type(c_codelet), target :: desc
        text = trim(name) // c_null_char
        desc = c_codelet(c_loc(text(1:1)), c_loc(list), 0)
        if (present(cpu)) call add(1, cpu)
        if (present(cuda)) call add(5, cuda)
        if (present(opencl)) call add(10, opencl)
        if (present(flops)) desc%flops = c_funloc(flops)
        if (present(cost)) desc%cost = c_funloc(cost)
        call this%check(duet_register_codelet(opened(this), c_loc(desc), c_loc(codelet)), stat, &
            errmsg)
    contains
        subroutine add(at, run)
            integer, intent(in) :: at
            procedure(duet_kernel) :: run
            type(c_funptr) :: code
            code = c_funloc(run) ! in a variable: gfortran misplaces it as an argument
            if (c_associated(code, c_funloc(duet_simulated))) code = c_null_funptr
            desc%count = desc%count + 1
            list(desc%count) = c_implementation(c_loc(backends(at)), code)
        end subroutine
    end subroutine

    integer(c_int) function duet_simulated(call) bind(c, name='')
        type(duet_call), intent(in) :: call
        duet_simulated = duet_failed(call, 'there is no code for this device')
    end function

    ! Submits a task: call rt%submit(scale, [duet_access(a, duet_rw)], 2.0). The value `args`, a
    ! number or a derived type of at most 512 bytes, is copied. `where` names architectures
    ! (SetArch), `name` is that of the task in traces.
    recursive subroutine runtime_submit(this, codelet, accesses, args, priority, where, name, &
            node, ref, after, stat, errmsg)
        class(duet_runtime), intent(in) :: this
        type(duet_codelet), intent(in) :: codelet
        type(duet_access), contiguous, target, intent(in) :: accesses(:)
        class(*), intent(in), optional :: args
        integer, intent(in), optional :: priority, node
        character(*), intent(in), optional :: where, name
        type(duet_ref), target, intent(inout), optional :: ref
        type(duet_ref), contiguous, target, intent(in), optional :: after(:)
        integer, intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
        type(c_task), target :: task
        type(c_extra), target :: extra
        integer(int64), target :: copy(args_words)
        integer(c_int), target :: on_node
        character(:), allocatable, target :: text
        task = c_task(codelet%c, c_loc(accesses), size(accesses))
        if (present(args)) then
            task%args = c_loc(copy)
            task%args_bytes = storage_size(args) / 8
            if (task%args_bytes <= 8 * args_words) &
                copy(:(task%args_bytes + 7) / 8) = transfer(args, copy, (task%args_bytes + 7) / 8)
        end if
        if (present(priority)) task%priority = priority
        if (present(where)) task%where = duet_where(opened(this), trim(where) // c_null_char)
        if (present(name) .or. present(node) .or. present(ref) .or. present(after)) then
            extra = c_extra()
            task%extra = c_loc(extra)
            if (present(name)) then
                text = trim(name) // c_null_char
                extra%name = c_loc(text(1:1))
            end if
            if (present(node)) then
                on_node = node
                extra%node = c_loc(on_node)
            end if
            if (present(ref)) extra%ref = c_loc(ref)
            if (present(after)) extra%after = c_loc(after)
            if (present(after)) extra%after_count = size(after)
        end if
        if (task%args_bytes > 8 * args_words) then
            call conclude(duet_einval, 'a task has a value of more than 512 bytes', 1, stat, errmsg)
        else if (present(where) .and. task%where == 0) then
            call conclude(duet_enoworker, 'this machine has no ' // where, 1, stat, errmsg)
        else
            call this%check(duet_submit(opened(this), c_loc(task)), stat, errmsg)
        end if
    end subroutine

    ! ------------------------------------------------------------------------------------------
    ! Kernels

    ! Says why a kernel fails, for its result: duet_etask.
    recursive function duet_failed(call, text) result(code)
        type(duet_call), intent(in) :: call
        character(*), intent(in) :: text
        integer(c_int) :: code
        character(kind=c_char), pointer :: message(:)
        code = duet_etask
        if (.not. c_associated(call%message)) return
        call c_f_pointer(call%message, message, [message_bytes])
        message = transfer(text // repeat(c_null_char, message_bytes), message, message_bytes)
        message(message_bytes) = c_null_char
    end function

    ! Returns the buffer of access `index`. If it is not there, or its elements do not have so many
    ! bytes, the program ends with a message.
    recursive function buffer_of(call, index, bytes) result(buffer)
        type(duet_call), intent(in) :: call
        integer, intent(in) :: index, bytes
        type(duet_buffer) :: buffer
        type(duet_buffer), pointer :: all(:)
        character(100) :: text
        call c_f_pointer(call%buffers, all, [call%buffer_count])
        if (index < 1 .or. index > size(all)) then
            write (text, '(2(a, i0), a)') 'a kernel takes access ', index, ' of a task with ', &
                size(all), ' accesses, which are counted from 1'
        else
            buffer = all(index)
            if (buffer%element_bytes == bytes) return
            write (text, '(4(a, i0))') 'a kernel takes elements of ', bytes, &
                ' bytes, and access ', index, ' of ', size(all), ' has elements of ', &
                buffer%element_bytes
        end if
        call conclude(duet_einval, text, 1)
    end function

    recursive subroutine get_i4(call, index, a)
        type(duet_call), intent(in) :: call; integer, intent(in) :: index; type(duet_buffer) :: b
        integer(int32), pointer, intent(out) :: a(:, :)
        b = buffer_of(call, index, storage_size(a) / 8)
        call c_f_pointer(b%data, a, [b%ld, b%cols])
        a => a(:b%rows, :)
    end subroutine
    recursive subroutine get_i8(call, index, a)
        type(duet_call), intent(in) :: call; integer, intent(in) :: index; type(duet_buffer) :: b
        integer(int64), pointer, intent(out) :: a(:, :)
        b = buffer_of(call, index, storage_size(a) / 8)
        call c_f_pointer(b%data, a, [b%ld, b%cols])
        a => a(:b%rows, :)
    end subroutine
    recursive subroutine get_r4(call, index, a)
        type(duet_call), intent(in) :: call; integer, intent(in) :: index; type(duet_buffer) :: b
        real(real32), pointer, intent(out) :: a(:, :)
        b = buffer_of(call, index, storage_size(a) / 8)
        call c_f_pointer(b%data, a, [b%ld, b%cols])
        a => a(:b%rows, :)
    end subroutine
    recursive subroutine get_r8(call, index, a)
        type(duet_call), intent(in) :: call; integer, intent(in) :: index; type(duet_buffer) :: b
        real(real64), pointer, intent(out) :: a(:, :)
        b = buffer_of(call, index, storage_size(a) / 8)
        call c_f_pointer(b%data, a, [b%ld, b%cols])
        a => a(:b%rows, :)
    end subroutine
    recursive subroutine get_c4(call, index, a)
        type(duet_call), intent(in) :: call; integer, intent(in) :: index; type(duet_buffer) :: b
        complex(real32), pointer, intent(out) :: a(:, :)
        b = buffer_of(call, index, storage_size(a) / 8)
        call c_f_pointer(b%data, a, [b%ld, b%cols])
        a => a(:b%rows, :)
    end subroutine
    recursive subroutine get_c8(call, index, a)
        type(duet_call), intent(in) :: call; integer, intent(in) :: index; type(duet_buffer) :: b
        complex(real64), pointer, intent(out) :: a(:, :)
        b = buffer_of(call, index, storage_size(a) / 8)
        call c_f_pointer(b%data, a, [b%ld, b%cols])
        a => a(:b%rows, :)
    end subroutine
end module
