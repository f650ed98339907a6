// SPDX-License-Identifier: Apache-2.0
// SimGrid's clock and network behind a C interface. No actor: alarms are kernel timers, copies are
// communications started from the main thread. Written for SimGrid 3.32; the names that changed
// later are chosen by its version.
#include "sim/network.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include <simgrid/forward.h>
#include <simgrid/version.h>

#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>

#include <sys/mman.h>
#include <unistd.h>

namespace sg4 = simgrid::s4u;
using simgrid::kernel::timer::Timer;

namespace
{

struct Flow {
    void *tag;
    Flow *next;
};

// Thrown out of an alarm to end a run at its exact date.
struct Stop {
};

struct Network {
    sg4::Engine *engine = nullptr;
    std::vector<sg4::Host *> hosts;
    network_calls calls = {};
    void *owner = nullptr;
    Flow *pool = nullptr;
    // 3.32 still uses an activity after its completion callback: it is released at the next one
    sg4::Activity *finished = nullptr;
    Timer *running = nullptr;
};

// SimGrid is a singleton that cannot be started twice, and so is what stands for it.
Network *network;

void complete(sg4::Activity &activity, Flow *flow)
{
    if (network->finished)
        network->finished->unref();
    network->finished = &activity;
    void *tag = flow->tag;
    flow->next = network->pool;
    network->pool = flow;
    if (network->owner)
        network->calls.arrived(network->owner, tag);
}

void listen()
{
#if SIMGRID_VERSION < 33300
    sg4::Activity::on_completion_cb([](sg4::Activity const &a) {
        if (auto *flow = a.get_data<Flow>())
            complete(const_cast<sg4::Activity &>(a), flow);
    });
#else
    sg4::Comm::on_completion_cb([](sg4::Comm const &a) {
        if (auto *flow = a.get_data<Flow>())
            complete(const_cast<sg4::Comm &>(a), flow);
    });
#endif
}

// SimGrid installs handlers of its own, which are not wanted in somebody else's program.
class KeepSignals
{
    static constexpr int signals[] = {SIGINT, SIGSEGV, SIGABRT, SIGBUS, SIGTERM};
    struct sigaction actions[sizeof signals / sizeof signals[0]];

  public:
    KeepSignals()
    {
        int i = 0;
        for (int number : signals)
            sigaction(number, nullptr, &actions[i++]);
    }
    ~KeepSignals()
    {
        int i = 0;
        for (int number : signals)
            sigaction(number, &actions[i++], nullptr);
    }
    KeepSignals(KeepSignals const &) = delete;
    KeepSignals &operator=(KeepSignals const &) = delete;
};

// A file in memory that SimGrid can open by name.
int memory_file(const char *text)
{
    int file = memfd_create("duet-platform", MFD_CLOEXEC);
    size_t length = strlen(text), written = 0;
    while (file >= 0 && written < length) {
        ssize_t n = write(file, text + written, length - written);
        if (n <= 0) {
            close(file);
            return -1;
        }
        written += static_cast<size_t>(n);
    }
    return file;
}

void start(const duet_machine *machine, int file)
{
    static char name[] = "duet";
    static char model[] = "--cfg=network/model:CM02";
    static char gamma[] = "--cfg=network/TCP-gamma:0";
    static char cross[] = "--cfg=network/crosstraffic:0";
    static char log[] = "--log=root.thres:warning";
#if SIMGRID_VERSION < 33400
    static char precision[] = "--cfg=surf/precision:1e-12";
#else
    static char precision[] = "--cfg=precision/timing:1e-12";
#endif
    // its own shutdown falls over what is in flight when the program exits
    static char shutdown[] = "--cfg=debug/clean-atexit:no";
    static char *arguments[] = {name, model, gamma, cross, log, precision, shutdown, nullptr};
    int count = 7;
    network->engine = new sg4::Engine(&count, arguments);
    network->engine->load_platform("/proc/self/fd/" + std::to_string(file));
    for (unsigned n = 0; n < machine->node_count; n++)
        network->hosts.push_back(network->engine->host_by_name("n" + std::to_string(n)));
    listen();
}

} // namespace

int duet__network_open(const struct duet_machine *machine, const struct network_calls *calls,
                       void *owner, struct duet_message *message)
{
    if (network)
        return duet_fail(message, DUET_EBUSY,
                         "a process can simulate once: SimGrid's engine was started before");
    char *platform = duet__network_platform(machine);
    int file = platform ? memory_file(platform) : -1;
    free(platform);
    if (file < 0)
        return duet_fail(message, DUET_EIO, "cannot hand the platform of %s to SimGrid",
                         machine->name);
    int error = DUET_OK;
    try {
        KeepSignals keep;
        network = new Network;
        start(machine, file);
        network->calls = *calls;
        network->owner = owner;
    } catch (std::exception const &e) {
        error = duet_fail(message, DUET_EIO, "SimGrid refuses the platform of %s: %s",
                          machine->name, e.what());
    }
    close(file);
    return error;
}

void duet__network_close(void)
{
    network->owner = nullptr;
    // what is pending ends for nobody, and is freed
    duet__network_run();
}

double duet__network_clock(void)
{
    return sg4::Engine::get_clock();
}

void duet__network_alarm(double date)
{
    auto *self = new Timer *;
    *self = Timer::set(date, [self] {
        network->running = *self;
        delete self;
        if (network->owner && network->calls.alarm(network->owner))
            throw Stop();
    });
}

void duet__network_flow(unsigned source, unsigned destination, uint64_t bytes, void *tag)
{
    Flow *flow = network->pool;
    if (flow)
        network->pool = flow->next;
    else
        flow = new Flow;
    flow->tag = tag;
    auto comm = sg4::Comm::sendto_init();
    comm->add_ref(); // ours, dropped after completion
    comm->set_data(flow);
    comm->set_payload_size(bytes);
    comm->set_source(network->hosts[source]);
    comm->set_destination(network->hosts[destination]); // this starts it
}

void duet__network_run(void)
{
    try {
        network->engine->run();
    } catch (Stop const &) {
        // the timer that threw was taken off SimGrid's heap, but not freed
        delete network->running;
    }
}
