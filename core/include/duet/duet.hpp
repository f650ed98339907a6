/* SPDX-License-Identifier: Apache-2.0 */
/*
 * duet for applications in C++17: the C interface of duet/duet.h with types. Runtimes, data, parts
 * and references are objects that end what they began, and a task has a signature, so that a wrong
 * argument or access does not compile. All of it is inline, and nothing is allocated for a task.
 * What is not here is called in C, with get() of these objects.
 *
 * Functions throw duet::error; those named try_ return its code, 0 or a negative enum duet_error.
 * Destructors wait as the functions in C do, and print errors that nothing has thrown. An object
 * that was moved from is empty: it may be assigned to and destroyed, and its get() is NULL. Threads
 * as in C.
 */
#ifndef DUET_DUET_HPP
#define DUET_DUET_HPP

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <duet/duet.h>

namespace duet
{

/* An error: what() is duet's message, one line; `code` is one of enum duet_error. */
struct error : std::runtime_error {
    error(int which, const char *text)
        : std::runtime_error(*text ? text : duet_strerror(which)), code(which)
    {
    }
    int code;
};

/* A vector as a body sees it, in the memory of its worker: a range, of which std::span can be made.
   On a device, `data` is an address of the device. */
template <typename T> struct span {
    T *data;
    std::size_t size; /* elements */

    static span of(const duet_buffer &b) noexcept
    {
        return {static_cast<T *>(b.data), b.rows * b.cols};
    }
    T &operator[](std::size_t i) const noexcept
    {
        return data[i];
    }
    T *begin() const noexcept
    {
        return data;
    }
    T *end() const noexcept
    {
        return data + size;
    }
};
template <typename T> span(T *, std::size_t) -> span<T>;

/* A matrix as a body sees it, in column-major order: element (i, j) is data[i + j * ld]. */
template <typename T> struct view {
    T *data;
    std::size_t rows, cols, ld; /* elements */

    static view of(const duet_buffer &b) noexcept
    {
        return {static_cast<T *>(b.data), b.rows, b.cols, b.ld};
    }
    T &operator()(std::size_t i, std::size_t j) const noexcept
    {
        return data[i + j * ld];
    }
    span<T> column(std::size_t j) const noexcept
    {
        return {data + j * ld, rows};
    }
};

/* ------------------------------------------------------------------------------------------- */
/* Passing of tasks' parameters; no part of the interface                                       */

class data;
class graph;

namespace detail
{

struct none { /* no body or function is given */
};

/* Where a parameter lies: the first of its buffers, and the bytes before its value. */
struct place {
    std::size_t buffer, offset;
};

/* An access; for one that `Reads`, the body's elements are const. */
template <typename Data, duet_mode Mode, bool Reads, bool Const = Reads> struct access {
    static_assert(std::is_base_of_v<data, Data>,
                  "an access is to duet's matrix<T>, vector<T> or arrays<T...>");
    using argument = std::conditional_t<Const, const Data &, Data &>;
    static constexpr std::size_t accesses = 1, buffers = Data::buffers, bytes = 0, align = 1;
    static auto get(const duet_call &call, place at) noexcept
    {
        return Data::template look<Reads>(&call.buffers[at.buffer]);
    }
    static std::tuple<> value(const void *, place) noexcept
    {
        return {};
    }
    static void put(duet_access *&to, unsigned char *, place, argument data) noexcept
    {
        *to++ = {data.get(), Mode};
    }
};

/* A value, which is copied with the task. */
template <typename T, typename = void> struct param {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= alignof(std::max_align_t),
                  "a task's value is copied as bytes: give a trivially copyable type, such as a "
                  "number, a pointer, or a lambda that captures such values by copy; or, of data, "
                  "its access: R<vector<T>>");
    using argument = const T &;
    static constexpr std::size_t accesses = 0, buffers = 0, bytes = sizeof(T), align = alignof(T);
    static std::tuple<const T &> value(const void *args, place at) noexcept
    {
        const void *where = static_cast<const unsigned char *>(args) + at.offset;
        return *static_cast<const T *>(where);
    }
    static const T &get(const duet_call &call, place at) noexcept
    {
        return std::get<0>(value(call.args, at));
    }
    static void put(duet_access *&, unsigned char *to, place at, const T &value) noexcept
    {
        std::memcpy(to + at.offset, &value, sizeof value);
    }
};
template <typename P> struct param<P, std::enable_if_t<(P::accesses > 0)>> : P {
};
template <typename P> using argument = typename param<P>::argument;

/* The one object of a lambda without captures, of which C++17 makes no second one. */
template <typename F> const F &stateless() noexcept
{
    static_assert(std::is_empty_v<F> && std::is_trivially_copyable_v<F>,
                  "the functions of a task capture nothing: what a body needs is a value in the "
                  "signature, and a function is given as duet::function<f>");
    static constexpr unsigned char nothing[sizeof(F)] = {};
    return *std::launder(static_cast<const F *>(static_cast<const void *>(nothing)));
}

/* The parameters of a task, and the functions by which C calls its own. */
template <typename... P> struct signature {
    static constexpr std::array<place, sizeof...(P) + 1> lay()
    {
        std::array<place, sizeof...(P) + 1> out = {};
        std::size_t i = 0, end = 0;
        ((out[i].offset = (end + param<P>::align - 1) / param<P>::align * param<P>::align,
          end = out[i].offset + param<P>::bytes,
          out[i + 1].buffer = out[i].buffer + param<P>::buffers, i++),
         ...);
        out[i].offset = end;
        return out;
    }
    static constexpr std::size_t accesses = (0 + ... + param<P>::accesses);
    static constexpr std::array<place, sizeof...(P) + 1> places = lay();
    static constexpr std::size_t bytes = places[sizeof...(P)].offset;
    using indices = std::index_sequence_for<P...>;

    template <typename F, typename... Args> static int status(Args &&...args)
    {
        static_assert(std::is_invocable_v<const F &, Args...>,
                      "a body's parameters are not those of the task's signature, in order: a "
                      "view<T> of a matrix, a span<T> of a vector (const T of R), or a value");
        using result = std::invoke_result_t<const F &, Args...>;
        static_assert(std::is_void_v<result> || std::is_same_v<result, int>,
                      "a body returns nothing, or an int: 0 or a negative enum duet_error");
        if constexpr (std::is_void_v<result>)
            return stateless<F>()(std::forward<Args>(args)...), DUET_OK;
        else
            return stateless<F>()(std::forward<Args>(args)...);
    }
    template <typename F, std::size_t... I>
    static int body(const duet_call &call, std::index_sequence<I...>)
    {
        if constexpr (std::is_invocable_v<const F &, const duet_call &,
                                          decltype(param<P>::get(call, places[I]))...>)
            return status<F>(call, param<P>::get(call, places[I])...);
        else
            return status<F>(param<P>::get(call, places[I])...);
    }
    template <typename F> static int run(const duet_call *call) noexcept
    {
        try {
            return body<F>(*call, indices());
        } catch (const error &e) {
            return duet_fail(call->message, e.code < 0 ? e.code : DUET_ETASK, "%s", e.what());
        } catch (const std::exception &e) {
            return duet_fail(call->message, DUET_ETASK, "%s", e.what());
        } catch (...) {
            return duet_fail(call->message, DUET_ETASK, "the body threw no std::exception");
        }
    }
    /* Calls a function with the values alone, then `more`. */
    template <typename F, std::size_t... I, typename... More>
    static double count(const void *args, std::index_sequence<I...>, More... more) noexcept
    {
        return with<F>(std::tuple_cat(param<P>::value(args, places[I])..., std::tuple(more...)));
    }
    template <typename F, typename... V> static double with(const std::tuple<V...> &values) noexcept
    {
        static_assert(std::is_invocable_r_v<double, const F &, V...>,
                      "a function for flops takes the task's values, in order, one for cost a "
                      "const char * behind them; they return a double");
        return std::apply(stateless<F>(), values);
    }
};

/* Sets each element of a matrix or vector to what a function makes of those at its place. */
template <typename F, typename T, typename... From> void each(const F &f, span<T> a, From... from)
{
    for (std::size_t i = 0; i < a.size; i++)
        a[i] = f(from[i]...);
}
template <typename F, typename T, typename... From> void each(const F &f, view<T> a, From... from)
{
    for (std::size_t j = 0; j < a.cols; j++)
        each(f, a.column(j), from.column(j)...);
}
template <typename T> struct zero {
    T operator()() const
    {
        return T();
    }
};

template <auto F> struct function_of {
    template <typename... Args>
    auto operator()(Args &&...args) const -> decltype(F(std::forward<Args>(args)...))
    {
        return F(std::forward<Args>(args)...);
    }
};

template <typename> inline constexpr char key = 0; /* its address stands for the type */

/* A runtime and the kernels that are registered in it, which its data share. */
struct state {
    struct kernel {
        std::atomic<const void *> type; /* NULL: none; the others are written before it */
        const char *name;
        duet_codelet *codelet;
    };
    duet_runtime *runtime = nullptr; /* NULL: closed */
    std::mutex lock;                 /* of those who add a kernel */
    std::size_t count = 0;
    std::array<kernel, 1024> kernels = {}; /* by type, open addressing */

    ~state()
    {
        (void)duet_close(runtime);
    }
    void check(int code) const
    {
        if (code)
            throw error(code, duet_last_message(runtime));
    }
    static state &open(const std::shared_ptr<state> &of)
    {
        if (!of || !of->runtime)
            throw error(DUET_EINVAL, "the runtime is closed, or the object was moved from");
        return *of;
    }
    /* Finds the kernel of a task, or registers it. */
    template <typename Task> int find(const Task &task, duet_codelet **out) noexcept
    {
        std::unique_lock<std::mutex> hold(lock, std::defer_lock);
        const auto first = reinterpret_cast<std::uintptr_t>(&key<Task>);
        for (auto i = first;; i++) {
            kernel &at = kernels[i % kernels.size()];
            const void *type = at.type.load(std::memory_order_acquire);
            if (type == &key<Task> && (at.name == task.name || !std::strcmp(at.name, task.name)))
                return *out = at.codelet, DUET_OK;
            if (!type && hold)
                return add(task, at, out);
            if (!type)
                hold.lock(), i = first - 1; /* again, without other threads */
        }
    }
    template <typename Task> int add(const Task &task, kernel &at, duet_codelet **out) noexcept
    {
        int code = count + 1 < kernels.size() ? task.register_in(runtime, out) : DUET_ENOMEM;
        if (code)
            return code;
        at.name = task.name;
        at.codelet = *out;
        at.type.store(&key<Task>, std::memory_order_release);
        count++;
        return DUET_OK;
    }
};

} // namespace detail

/* ------------------------------------------------------------------------------------------- */
/* Tasks                                                                                        */

/* Accesses in a signature. Only R and scratch take const data. */
template <typename Data> using R = detail::access<Data, DUET_R, true>;  /* elements are const */
template <typename Data> using W = detail::access<Data, DUET_W, false>; /* undefined at first */
template <typename Data> using RW = detail::access<Data, DUET_RW, false>;
template <typename Data> using commute = detail::access<Data, DUET_COMMUTE, false>;
template <typename Data> using reduce = detail::access<Data, DUET_REDUCE, false>;
template <typename Data> using scratch = detail::access<Data, DUET_SCRATCH, false, true>;

/* A function as a body: .cuda(duet::function<launch>). */
template <auto F> inline constexpr detail::function_of<F> function = {};

/*
 * A task as it is declared, once: name, bodies, amount of work. duet::task makes it; it is
 * constant, and each function returns another one with more. A body is a lambda without captures,
 * or duet::function. Its arguments are the parameters of the signature in order: views, spans and
 * values; or a const duet_call & (for the stream of a device) before these. It returns nothing, or
 * 0 or a negative enum duet_error. An exception that it throws fails the task: the error of the run
 * has its what() and, of a duet::error, its code, else DUET_ETASK.
 */
template <typename Signature, typename Flops, typename Cost, typename... Bodies> struct definition {
    const char *name;
    std::array<const char *, sizeof...(Bodies)> archs;

    /* The body for an architecture ("c2050"), a backend, or "emulated". Without a body, simulations
       and emulations use this entry, and what computes on such a worker does not. */
    template <typename F = detail::none> constexpr auto on(const char *arch, F = {}) const
    {
        return std::apply(
            [this, arch](auto... all) {
                return definition<Signature, Flops, Cost, Bodies..., F>{name, {{all..., arch}}};
            },
            archs);
    }
    template <typename F> constexpr auto cpu(F body) const
    {
        return on("cpu", body);
    }
    template <typename F = detail::none> constexpr auto cuda(F body = {}) const
    {
        return on("cuda", body);
    }
    template <typename F = detail::none> constexpr auto opencl(F body = {}) const
    {
        return on("opencl", body);
    }
    /* The flops of a task with these values: f(values...). It may not throw. */
    template <typename F> constexpr auto flops(F) const
    {
        return definition<Signature, F, Cost, Bodies...>{name, archs};
    }
    /* The seconds expected on an architecture: f(values..., const char *arch), as flops. */
    template <typename F> constexpr auto cost(F) const
    {
        return definition<Signature, Flops, F, Bodies...>{name, archs};
    }

    /* Registers it in C; runtime::spawn does. */
    int register_in(duet_runtime *runtime, duet_codelet **out) const noexcept
    {
        std::array<duet_implementation, sizeof...(Bodies)> list = {
            {{nullptr, kernel<Bodies>()}...}};
        for (std::size_t i = 0; i < list.size(); i++)
            list[i].arch = archs[i];
        duet_codelet_desc desc = {};
        desc.name = name;
        desc.implementations = list.data();
        desc.implementation_count = list.size();
        if constexpr (!std::is_same_v<Flops, detail::none>)
            desc.flops = [](const void *args) {
                return Signature::template count<Flops>(args, typename Signature::indices());
            };
        if constexpr (!std::is_same_v<Cost, detail::none>)
            desc.cost = [](const void *args, const char *arch) {
                return Signature::template count<Cost>(args, typename Signature::indices(), arch);
            };
        return duet_register_codelet(runtime, &desc, out);
    }

  private:
    template <typename F> static constexpr duet_kernel_fn kernel() noexcept
    {
        if constexpr (std::is_same_v<F, detail::none>)
            return nullptr;
        else
            return Signature::template run<F>;
    }
};

/* Declares a task by its signature, such as <R<matrix<double>>, RW<matrix<double>>, double>. Its
   name is a string literal, and that of no other task. */
template <typename... P, std::size_t N> constexpr auto task(const char (&name)[N])
{
    static_assert(N <= 32, "a kernel's name has at most 31 bytes");
    return definition<detail::signature<P...>, detail::none, detail::none>{name, {}};
}

/* A reduction: the task that sets a contribution, <W<Data>>, and the one that adds a second one to
   a first, <RW<Data>, R<Data>>. */
template <typename Init, typename Combine> struct reducer {
    Init init;
    Combine combine;
};
template <typename Init, typename Combine> reducer(Init, Combine) -> reducer<Init, Combine>;

/*
 * Makes a reduction on CPUs (and GPUs that are no real ones) of the elements of a matrix or vector
 * by an operator, a = op(a, b), that is associative and commutative: std::plus<>(), or a lambda.
 * `init` and `combine` name its tasks. Contributions begin as identity(), by default as T(). Where
 * no calibration knows the tasks, each takes 1 us.
 */
template <typename Data, std::size_t N, std::size_t M, typename Op,
          typename Identity = detail::zero<typename Data::element>>
constexpr auto reduction(const char (&init)[N], const char (&combine)[M], Op, Identity = {})
{
    using detail::each, detail::stateless;
    const auto microsecond = [](const char *) { return 1e-6; };
    const auto set = [](auto a) { each(stateless<Identity>(), a); };
    const auto add = [](auto a, auto b) { each(stateless<Op>(), a, a, b); };
    return reducer{task<W<Data>>(init).cpu(set).cuda().cost(microsecond),
                   task<RW<Data>, R<Data>>(combine).cpu(add).cuda().cost(microsecond)};
}

/* A reference to a task, for options::reference and options::after, runtime::wait, and
   duet_ref_ended. */
using ref = std::unique_ptr<duet_ref, detail::function_of<duet_ref_free>>;

/* Options that few tasks need, of duet_task_desc and duet_task_extra. In C++20 {.priority = 3}. */
struct options {
    int priority = 0;
    std::uint64_t where = 0; /* SetArch, of duet_where; 0: anywhere */
    double complexity = 0;
    ref *reference = nullptr; /* gets a reference to the task; empty if the task is refused */
    std::array<duet_ref *, 4> after = {}; /* tasks that end before it begins */
    duet_done_fn done = nullptr;
    void *done_arg = nullptr;
    const char *name = nullptr; /* in traces, beside the kernel's; copied */
    std::uint32_t iteration = 0;
    unsigned node = DUET_NOBODY; /* node that runs it; DUET_NOBODY: chosen by its data */
};

/* ------------------------------------------------------------------------------------------- */
/* The runtime                                                                                  */

/* Options of a runtime: the defaults, or what the environment and the arguments say. */
struct config : duet_config {
    config() noexcept
    {
        duet_config_init(this);
    }
    /* Takes --duet-NAME=VALUE out of the arguments. */
    config(int &argc, char **argv) : config()
    {
        duet_message message = {""};
        int code = duet_config_environment(this, &message);
        if (!code)
            code = duet_config_arguments(this, &argc, argv, &message);
        if (code)
            throw error(code, message.text);
    }
};

/* An open runtime. It is closed when this and all of its data have ended. */
class runtime
{
  public:
    /* Opens it by a duet::config; NULL: by the defaults and the environment. */
    explicit runtime(const duet_config &config) : runtime(&config)
    {
    }
    explicit runtime(const duet_config *config = nullptr)
        : state_(std::make_shared<detail::state>())
    {
        duet_message message = {""};
        if (int code = duet_open(&state_->runtime, config, &message))
            throw error(code, message.text);
    }
    duet_runtime *get() const noexcept
    {
        return state_ ? state_->runtime : nullptr;
    }
    /* Closes it now: duet_close. Its data is not brought back to the host, and ends. */
    void close()
    {
        if (int code = get() ? duet_close(std::exchange(state_->runtime, nullptr)) : DUET_OK)
            throw error(code, "");
    }
    /* Throws if a function in C returned an error: rt.check(duet_pin(rt.get(), data, bytes)). */
    void check(int code) const
    {
        if (code)
            detail::state::open(state_).check(code);
    }

    /* Submits a task, as duet_submit. The first one of a declaration registers its kernel. */
    template <typename... P, typename... More>
    void spawn(const definition<detail::signature<P...>, More...> &task,
               detail::argument<P>... args)
    {
        check(submit<P...>(task, nullptr, args...));
    }
    template <typename... P, typename... More>
    void spawn(const definition<detail::signature<P...>, More...> &task, const options &options,
               detail::argument<P>... args)
    {
        check(submit<P...>(task, &options, args...));
    }
    template <typename... P, typename... More>
    [[nodiscard]] int try_spawn(const definition<detail::signature<P...>, More...> &task,
                                const options &options, detail::argument<P>... args) noexcept
    {
        return submit<P...>(task, &options, args...);
    }
    /* Submits a task for CPUs that is written in place: spawn_cpu<RW<vector<double>>>("scale",
       [=](auto x) { ... }, x). What the lambda captures travels with the task, as a value. */
    template <typename... P, std::size_t N, typename F>
    void spawn_cpu(const char (&name)[N], const F &body, detail::argument<P>... args)
    {
        const auto call = [](const F &f, auto... all) -> decltype(f(all...)) { return f(all...); };
        spawn(task<F, P...>(name).cpu(call), body, args...);
    }

    /* Waits for all tasks: duet_wait. */
    void wait()
    {
        check(try_wait());
    }
    [[nodiscard]] int try_wait() noexcept
    {
        return get() ? duet_wait(get()) : DUET_EINVAL;
    }

    /* Records the tasks that `body` spawns on this thread, which run as usual: duet_graph_begin. */
    template <typename F> [[nodiscard]] graph record(const F &body);

    /* Says how tasks with reduce<Data> add to the data, before the first: duet_set_reduction. */
    template <typename Data, typename Init, typename Combine>
    void set_reduction(Data &data, const reducer<Init, Combine> &by)
    {
        duet_codelet *init = nullptr, *combine = nullptr;
        detail::state &state = detail::state::open(state_);
        check(state.find(by.init, &init));
        check(state.find(by.combine, &combine));
        check(duet_set_reduction(get(), data.get(), init, combine));
    }

  private:
    friend class data;
    template <typename... P, typename Task>
    int submit(const Task &task, const options *options, detail::argument<P>... args) noexcept
    {
        using signature = detail::signature<P...>;
        duet_codelet *codelet = nullptr;
        if (int code = get() ? state_->find(task, &codelet) : DUET_EINVAL)
            return code;
        duet_access accesses[signature::accesses + 1], *access = accesses;
        alignas(std::max_align_t) unsigned char values[signature::bytes + 1];
        std::size_t i = 0;
        (detail::param<P>::put(access, values, signature::places[i++], args), ...);
        duet_task_desc desc = {};
        desc.codelet = codelet;
        desc.accesses = accesses;
        desc.access_count = signature::accesses;
        desc.args = signature::bytes ? values : nullptr;
        desc.args_bytes = signature::bytes;
        return options ? submit_with(*options, desc) : duet_submit(get(), &desc);
    }
    int submit_with(const options &options, duet_task_desc desc) noexcept
    {
        duet_ref *made = nullptr;
        duet_task_extra extra = {};
        extra.ref = options.reference ? &made : nullptr;
        extra.after = options.after.data();
        extra.after_count = options.after.size();
        extra.done = options.done;
        extra.done_arg = options.done_arg;
        extra.name = options.name;
        extra.iteration = options.iteration;
        extra.node = options.node == DUET_NOBODY ? nullptr : &options.node;
        desc.priority = options.priority;
        desc.where = options.where;
        desc.complexity = options.complexity;
        desc.extra = &extra;
        int code = duet_submit(get(), &desc);
        if (options.reference)
            options.reference->reset(made);
        return code;
    }
    std::shared_ptr<detail::state> state_;
};

/* ------------------------------------------------------------------------------------------- */
/* Data                                                                                         */

/* The base of all data. Its end unregisters the data, which brings it back to the host's memory:
   that is the application's, and has to live longer. */
class data
{
  public:
    duet_handle *get() const noexcept
    {
        return handle_.get();
    }
    /* Ends the registration now: duet_unregister. Not for parts. */
    void unregister()
    {
        state().check(duet_unregister(state().runtime, handle_.release()));
    }

  protected:
    using end_fn = int (*)(duet_runtime *, duet_handle *);
    struct ending {
        std::shared_ptr<detail::state> of;
        end_fn end; /* NULL: a part, which ends with its cut */
        void operator()(duet_handle *handle) const noexcept
        {
            if (!end || !of->runtime)
                return;
            duet_message told = {""};
            std::strncpy(told.text, duet_last_message(of->runtime), sizeof told.text - 1);
            if (end(of->runtime, handle) &&
                std::strcmp(told.text, duet_last_message(of->runtime)) != 0)
                std::fprintf(stderr, "duet: %s\n", duet_last_message(of->runtime));
        }
    };
    explicit data(const runtime &runtime) : handle_(nullptr, {runtime.state_, nullptr})
    {
    }
    data(const data &whole, duet_handle *part)
        : handle_(part, {whole.handle_.get_deleter().of, nullptr})
    {
    }
    const detail::state &state() const
    {
        return detail::state::open(handle_.get_deleter().of);
    }
    void reset(duet_handle *handle, end_fn end) noexcept
    {
        handle_.reset(handle);
        handle_.get_deleter().end = end;
    }
    /* Registers by a function in C, whose last argument is where the handle goes. */
    template <typename F, typename... Args> void make(F f, Args... args)
    {
        duet_handle *made = nullptr;
        state().check(f(state().runtime, args..., &made));
        reset(made, duet_unregister);
    }

  private:
    template <typename View> friend class acquired;
    std::unique_ptr<duet_handle, ending> handle_;
    mutable bool held_ = false;
};

/* Data that the application has in its own memory until this ends, as a view of it. The object of
   the data stays where it is meanwhile. */
template <typename View> class acquired : public View
{
  public:
    acquired(const data &of, duet_mode mode, unsigned node, const duet_buffer &shape)
        : View(View::of(shape)), of_(of)
    {
        duet_runtime *runtime = of.state().runtime;
        int code = node == DUET_NOBODY ? duet_acquire(runtime, of.get(), mode)
                                       : duet_acquire_on(runtime, of.get(), mode, node, &here);
        if (code) {
            const char *text = duet_last_message(runtime);
            if (!of.held_) /* after the failure of a task it is acquired in spite of the error */
                (void)duet_release(runtime, of.get());
            throw error(code, text);
        }
        of.held_ = true;
        this->data = static_cast<decltype(View::data)>(duet_address(of.get()));
    }
    acquired(const acquired &) = delete;
    ~acquired()
    {
        of_.held_ = false;
        if (duet_runtime *runtime = of_.handle_.get_deleter().of->runtime) /* is not closed */
            (void)duet_release(runtime, of_.get());
    }
    bool here = true; /* false: acquired on a node that is not this process's */

  private:
    const class data &of_;
};

/* Recorded tasks, to be submitted again: duet/graph.h. */
class graph
{
  public:
    duet_graph *get() const noexcept
    {
        return graph_.get();
    }
    /* Submits the tasks again: duet_graph_submit. */
    void submit()
    {
        detail::state &state = detail::state::open(of_);
        state.check(duet_graph_submit(state.runtime, get()));
    }
    /* Lets the tasks use `instead` from now on, where they used `recorded` in the recording. */
    void replace(const data &recorded, const data &instead)
    {
        detail::state::open(of_).check(duet_graph_set_handle(get(), recorded.get(), instead.get()));
    }

  private:
    friend class runtime;
    graph(std::shared_ptr<detail::state> of, duet_graph *made) : of_(std::move(of)), graph_(made)
    {
    }
    std::shared_ptr<detail::state> of_;
    std::unique_ptr<duet_graph, detail::function_of<duet_graph_free>> graph_;
};

template <typename F> graph runtime::record(const F &body)
{
    duet_graph *made = nullptr;
    const std::shared_ptr<detail::state> of = state_; /* `body` may close or move the runtime */
    detail::state &state = detail::state::open(of);
    state.check(duet_graph_begin(state.runtime));
    try {
        body();
    } catch (...) {
        if (state.runtime && !duet_graph_end(state.runtime, &made))
            duet_graph_free(made);
        throw;
    }
    detail::state::open(of).check(duet_graph_end(state.runtime, &made));
    return graph(of, made);
}

template <typename Part> class parts;

/* A matrix in column-major order. */
template <typename T, template <typename> class View = view> class matrix : public data
{
  public:
    static_assert(std::is_trivially_copyable_v<T>, "data is copied as bytes between memories");
    using element = T;
    static constexpr std::size_t buffers = 1;
    template <bool Reads> static auto look(const duet_buffer *buffer) noexcept
    {
        return View<std::conditional_t<Reads, const T, T>>::of(*buffer);
    }
    /* Registers rows x cols elements; `ld`, the elements from one column to the next, 0: rows. */
    matrix(const runtime &runtime, T *at, std::size_t rows, std::size_t cols = 1,
           std::size_t ld = 0)
        : data(runtime), shape_{at, rows, cols, ld ? ld : rows, sizeof(T), 1, 0}
    {
        make(duet_register_matrix, at, rows, cols, shape_.ld, sizeof(T));
    }
    /* Makes temporary data, without contents at first: duet_register_temporary. */
    matrix(const runtime &runtime, std::size_t rows, std::size_t cols = 1)
        : data(runtime), shape_{nullptr, rows, cols, rows, sizeof(T), 1, 0}
    {
        make(duet_register_temporary, rows, cols, sizeof(T));
    }
    /* Acquires the data, which waits for the tasks before: read() to look at it, write() to replace
       all of it, update() to change it. With `node`, on that node only (duet_acquire_on). */
    acquired<View<const T>> read(unsigned node = DUET_NOBODY) const
    {
        return {*this, DUET_R, node, shape_};
    }
    acquired<View<T>> write(unsigned node = DUET_NOBODY)
    {
        return {*this, DUET_W, node, shape_};
    }
    acquired<View<T>> update(unsigned node = DUET_NOBODY)
    {
        return {*this, DUET_RW, node, shape_};
    }
    /* Cuts it into rows x cols blocks, number i + j * rows being the i-th from above and the j-th
       from the left: duet_cut_blocks. */
    parts<matrix> cut(std::size_t rows, std::size_t cols = 1)
    {
        return parts<matrix>(*this, rows, cols);
    }

  private:
    friend class parts<matrix>;
    matrix(const matrix &whole, duet_handle *part, std::size_t rows, std::size_t cols)
        : data(whole, part), shape_{nullptr, rows, cols, whole.shape_.ld, sizeof(T), 1, 0}
    {
    }
    duet_buffer shape_;
};

/* A vector of contiguous elements, made as a matrix of one column. */
template <typename T> using vector = matrix<T, span>;

/* Several vectors as one piece of data, such as a sparse matrix; bodies get a tuple of spans. */
template <typename... T> class arrays : public data
{
  public:
    static constexpr std::size_t buffers = sizeof...(T);
    template <bool Reads> static auto look(const duet_buffer *buffer) noexcept
    {
        const auto next = [&buffer](auto reader) { return reader(buffer++); };
        return std::tuple{next(vector<T>::template look<Reads>)...}; /* in this order */
    }
    explicit arrays(const runtime &runtime, span<T>... all) : data(runtime)
    {
        const duet_array list[] = {{all.data, all.size, 1, all.size, sizeof(T)}...};
        make(duet_register_arrays, &list[0], sizeof...(T));
    }
};

/* The parts of a cut, which ends with this: duet_uncut. The whole has to live longer. */
template <typename Part> class parts : data, std::vector<Part>
{
  public:
    using std::vector<Part>::begin, std::vector<Part>::end, std::vector<Part>::size,
        std::vector<Part>::operator[];

    parts(Part &whole, std::size_t rows, std::size_t cols) : data(whole, nullptr)
    {
        const duet_buffer &all = whole.shape_;
        std::vector<duet_handle *> made(rows <= all.rows && cols <= all.cols ? rows * cols : 1);
        state().check(duet_cut_blocks(state().runtime, whole.get(), rows, cols, made.data()));
        reset(made[0], duet_uncut);
        for (std::size_t j = 0; j < cols; j++)
            for (std::size_t i = 0; i < rows; i++)
                this->push_back(Part(whole, made[i + j * rows],
                                     all.rows / rows + (i < all.rows % rows),
                                     all.cols / cols + (j < all.cols % cols)));
    }
};

} // namespace duet

#endif
