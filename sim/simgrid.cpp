// SPDX-License-Identifier: Apache-2.0
// The engine of networks by SimGrid, which offers what is used to C++ only. No actor: alarms are
// kernel timers, copies are communications started from the main thread. Written for SimGrid 3.32;
// the names that changed later are chosen by its version.
#include "sim/network.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libxml/parser.h>
#include <libxml/tree.h>

#include <simgrid/forward.h>
#include <simgrid/version.h>

#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>

#if SIMGRID_VERSION < 33300
// SimGrid 3.32 lists the activities of the main thread, and searches all of the list whenever one
// ends: with the thousands of copies of a large cluster that takes most of the time. The list is
// needed for actors that end, and the main thread is none. This function replaces the one of
// SimGrid that adds to the list and marks the added activity, and does neither: unmarked activities
// are not searched for. Its class is in no header of SimGrid's.
namespace simgrid::kernel::activity
{
class CommImpl
{
  public:
    __attribute__((visibility("default"))) CommImpl &detach();
};

CommImpl &CommImpl::detach()
{
    return *this;
}
} // namespace simgrid::kernel::activity
#endif

namespace sg4 = simgrid::s4u;
using simgrid::kernel::routing::NetPoint;
using simgrid::kernel::timer::Timer;

namespace
{

// Reading of a user's network description, by an allow-list of elements and attributes
// (simgrid.dtd, version 4.1): what was read is written into a nameless file.

constexpr off_t MOST_BYTES = 64 << 20;
constexpr unsigned long MOST_HOSTS = 65536;

struct KnownElement {
    const char *name;
    const char *known_as;   // name in version 4.1
    const char *attributes; // each with a blank on either side
};

constexpr const char *cluster_attributes =
    " id prefix suffix radical speed bw lat core topology topo_parameters sharing_policy bb_bw"
    " bb_lat bb_sharing_policy limiter_link loopback_bw loopback_lat router_id ";
constexpr const char *zone_route_attributes = " src dst gw_src gw_dst symmetrical ";

const KnownElement elements[] = {
    {"platform", "platform", " version "},
    {"zone", "zone", " id routing "},
    {"AS", "zone", " id routing "},
    {"host", "host", " id speed core pstate coordinates "},
    {"peer", "peer", " id speed bw_in bw_out lat coordinates "},
    {"router", "router", " id coordinates "},
    {"link", "link", " id bandwidth latency sharing_policy "},
    {"backbone", "backbone", " id bandwidth latency "},
    {"host_link", "host_link", " id up down "},
    {"cluster", "cluster", cluster_attributes},
    {"cabinet", "cabinet", " id prefix suffix radical speed bw lat "},
    {"route", "route", " src dst symmetrical "},
    {"bypassRoute", "bypassRoute", " src dst "},
    {"zoneRoute", "zoneRoute", zone_route_attributes},
    {"ASroute", "zoneRoute", zone_route_attributes},
    {"bypassZoneRoute", "bypassZoneRoute", " src dst gw_src gw_dst "},
    {"bypassASroute", "bypassZoneRoute", " src dst gw_src gw_dst "},
    {"link_ctn", "link_ctn", " id direction "},
};

struct FreeDocument {
    void operator()(xmlDoc *document) const
    {
        xmlFreeDoc(document);
    }
};

const char *text_of(const xmlChar *text)
{
    return reinterpret_cast<const char *>(text);
}

[[noreturn]] void refuse(xmlNode const *node, std::string const &why)
{
    throw std::runtime_error("line " + std::to_string(xmlGetLineNo(node)) + ": <" +
                             text_of(node->name) + ">" + why);
}

// Returns the number of hosts in a list as "0-15,20".
unsigned long radical_count(xmlNode const *node, const char *radical)
{
    unsigned long count = 0;
    for (const char *at = radical; *at && count <= MOST_HOSTS; at += *at == ',') {
        char *end = nullptr;
        const unsigned long first = std::strtoul(at, &end, 10);
        const unsigned long last = *end == '-' ? std::strtoul(end + 1, &end, 10) : first;
        if (!std::strchr("0123456789", *at) || (*end && *end != ',') || last < first)
            refuse(node, std::string(": radical=\"") + radical + "\" is no list as \"0-15,20\"");
        // not the plain sum, which may wrap to 0
        count += last - first < MOST_HOSTS ? last - first + 1 : MOST_HOSTS + 1;
        at = end;
    }
    return count;
}

struct Reader {
    unsigned long hosts = 0;

    void read_attribute(xmlNode const *node, KnownElement const &element, xmlAttr const *attribute)
    {
        const std::string name = text_of(attribute->name);
        if (!std::strstr(element.attributes, (" " + name + " ").c_str()))
            refuse(node, " has an attribute that is not read: " + name);
        if (attribute->children &&
            (attribute->children->next || attribute->children->type != XML_TEXT_NODE))
            refuse(node, ": entities are not read: " + name);
        if (name == "radical" && attribute->children)
            hosts += radical_count(node, text_of(attribute->children->content));
    }

    // Checks an element with everything inside, and gives it its name of version 4.1.
    void read(xmlNode *node)
    {
        const KnownElement *known = nullptr;
        for (KnownElement const &element : elements)
            if (!std::strcmp(element.name, text_of(node->name)))
                known = &element;
        if (!known)
            refuse(node, " is not read: a network has zones, hosts, links, routers and routes");
        for (xmlAttr const *attribute = node->properties; attribute; attribute = attribute->next)
            read_attribute(node, *known, attribute);
        hosts += !std::strcmp(known->name, "host") || !std::strcmp(known->name, "peer");
        if (hosts > MOST_HOSTS)
            refuse(node, ": more than " + std::to_string(MOST_HOSTS) + " hosts");
        for (xmlNode *child = node->children, *next; child; child = next) {
            next = child->next;
            if (child->type == XML_ELEMENT_NODE && std::strcmp(text_of(child->name), "prop") != 0) {
                read(child);
                continue;
            }
            if (child->type != XML_ELEMENT_NODE && child->type != XML_COMMENT_NODE &&
                child->type != XML_PI_NODE && !xmlIsBlankNode(child))
                refuse(node, ": text or entities inside an element are not read");
            xmlUnlinkNode(child);
            xmlFreeNode(child);
        }
        xmlNodeSetName(node, reinterpret_cast<const xmlChar *>(known->known_as));
    }
};

// Reads the document of a regular file.
std::unique_ptr<xmlDoc, FreeDocument> parse(const char *path)
{
    struct stat status;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a FIFO has no writer
    if (file < 0)
        throw std::runtime_error(std::string("cannot open: ") + strerror(errno));
    std::unique_ptr<xmlDoc, FreeDocument> document;
    const char *why = nullptr;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
        why = "not a regular file";
    else if (status.st_size > MOST_BYTES)
        why = "larger than 64 MiB, the most that is read";
    else
        document.reset(xmlReadFd(file, nullptr, nullptr,
                                 XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING));
    close(file);
    if (why)
        throw std::runtime_error(why);
    const xmlError *last = xmlGetLastError();
    if (!document && last && last->message)
        throw std::runtime_error("line " + std::to_string(last->line) + ": " +
                                 std::string(last->message, std::strcspn(last->message, "\n")));
    if (!document)
        throw std::runtime_error("not XML");
    return document;
}

// Reads a SimGrid platform (XML, versions 4 and 4.1) of at most 64 MiB and 65536 hosts out of a
// regular file, and returns the descriptor of a nameless file that says the same in version 4.1.
// The caller closes it. Only zones, hosts, links, routers and routes are written; properties are
// left out. SimGrid acts on other elements (it loads plug-ins, and writes, includes or replays
// other files), so these are refused. Throws std::runtime_error with the line and what is wrong
// there.
int network_file_copy(const char *path)
{
    const auto document = parse(path);
    xmlNode *root = xmlDocGetRootElement(document.get());
    if (document->intSubset && document->intSubset->children)
        throw std::runtime_error("declarations inside <!DOCTYPE> are not read");
    const std::unique_ptr<xmlChar, decltype(xmlFree)>
        version(xmlGetProp(root, reinterpret_cast<const xmlChar *>("version")), xmlFree);
    const std::string given = version ? text_of(version.get()) : "none";
    if (std::strcmp(text_of(root->name), "platform") != 0)
        refuse(root, ": expected <platform>");
    if (given != "4" && given != "4.0" && given != "4.1")
        refuse(root, ": version " + given + " is not read, only 4 and 4.1");
    Reader().read(root);
    xmlSetProp(root, reinterpret_cast<const xmlChar *>("version"),
               reinterpret_cast<const xmlChar *>("4.1"));

    const std::unique_ptr<xmlBuffer, decltype(&xmlBufferFree)> buffer(xmlBufferCreate(),
                                                                      xmlBufferFree);
    xmlNodeDump(buffer.get(), document.get(), root, 0, 0);
    std::string text = "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM "
                       "\"https://simgrid.org/simgrid.dtd\">\n";
    text += text_of(xmlBufferContent(buffer.get()));
    const int copy = memfd_create("duet-network", MFD_CLOEXEC);
    size_t done = 0;
    for (ssize_t some = 1; copy >= 0 && some > 0 && done<text.size(); done += some> 0 ? some : 0)
        some = write(copy, text.data() + done, text.size() - done);
    if (copy >= 0 && done == text.size())
        return copy;
    const std::string why = strerror(errno);
    if (copy >= 0)
        close(copy);
    throw std::runtime_error("no memory for a copy: " + why);
}

struct Flow {
    void *tag;
    Flow *next;
};

// Thrown out of an alarm to end a run at its exact date.
struct Stop {
};

struct Network {
    sg4::Engine *engine = nullptr;
    unsigned node_count = 0, memory_count = 0;               // memories: of each node
    std::vector<sg4::Host *> memories;                       // node after node
    std::vector<sg4::Host *> cards;                          // by node, if there are several
    std::unordered_map<sg4::Link const *, double> latencies; // of the links of a user's file
    network_calls calls = {};
    void *owner = nullptr;
    Flow *pool = nullptr;
    // 3.32 still uses an activity after its completion callback: it is released at the next one
    sg4::Activity *finished = nullptr;
    Timer *running = nullptr;
    std::vector<double> alarms; // dates of timers that have not gone off, latest first
};

// The only network: SimGrid is a singleton that cannot be started twice.
Network *network;

// Makes sure that a timer goes off at the date of the owner's next event.
void arm()
{
    const double date = network->owner ? network->calls.next(network->owner) : INFINITY;
    if (std::isinf(date) || (!network->alarms.empty() && network->alarms.back() <= date))
        return;
    network->alarms.push_back(date);
    auto *self = new Timer *;
    *self = Timer::set(std::max(date, sg4::Engine::get_clock()), [self] {
        network->running = *self;
        delete self;
        const double rung = std::max(network->alarms.back(), sg4::Engine::get_clock());
        network->alarms.pop_back();
        const bool stops = network->owner && network->calls.alarm(network->owner, rung);
        arm();
        if (stops)
            throw Stop();
    });
}

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
    arm();
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

// Keeps the program's signal handlers, since SimGrid installs its own.
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

// ---------------------------------------------------------------------------------------------
// The platform. It is created by calls, since reading XML takes SimGrid four times as long. Its
// latencies are 0: the engine adds them, since SimGrid's shares would depend on them.

using Netpoints = std::pair<NetPoint *, NetPoint *>;
using Coordinates = std::vector<unsigned long>;

void add_route(sg4::NetZone *zone, sg4::Host *source, sg4::Host *destination,
               std::vector<sg4::Link *> const &links)
{
    const std::vector<sg4::LinkInRoute> in_route(links.begin(), links.end());
    zone->add_route(source->get_netpoint(), destination->get_netpoint(), nullptr, nullptr, in_route,
                    false);
}

// Returns the narrowest limit of a route on each single copy, 0 if none binds: one no narrower than
// a shared link of the same route changes no date, and leaving it out saves a third of the cost of
// a copy.
double limit_of(const duet_machine *machine, const duet_route *route)
{
    double limit = HUGE_VAL, shared = HUGE_VAL;
    for (unsigned i = 0; i < route->count; i++) {
        const duet_link *link = &machine->links[route->links[i]];
        double *narrowest = link->per_copy ? &limit : &shared;
        *narrowest = std::fmin(*narrowest, link->bandwidth_Bps);
    }
    return limit < shared ? limit : 0;
}

// Links of each route, by source and destination.
using Routes = std::vector<std::vector<sg4::Link *>>;

// Creates the links of a node: each direction of a shared one, and a limit for each route of its
// own. A limit that many routes have in common would tie the equations of all their flows together,
// although they share nothing. They are created before there are zones of nodes: SimGrid searches
// all zones for the name of a new link.
Routes make_links(sg4::NetZone *zone, const duet_machine *machine, unsigned number)
{
    const std::string name = "duet" + std::to_string(number);
    const unsigned count = machine->node_count;
    std::vector<sg4::Link *> links(machine->link_count);
    Routes routes(size_t(count) * count);
    for (unsigned l = 0; l < machine->link_count; l++)
        if (!machine->links[l].per_copy)
            links[l] =
                zone->create_link(name + ".l" + std::to_string(l), machine->links[l].bandwidth_Bps);
    for (unsigned i = 0; i < routes.size(); i++) {
        const duet_route *route = &machine->routes[i];
        const double limit = limit_of(machine, route);
        if (i / count == i % count || !route->direct)
            continue;
        for (unsigned l = 0; l < route->count; l++)
            if (links[route->links[l]])
                routes[i].push_back(links[route->links[l]]);
        if (limit > 0) {
            routes[i].push_back(zone->create_link(name + ".c" + std::to_string(i), limit));
            routes[i].back()->set_sharing_policy(sg4::Link::SharingPolicy::FATPIPE);
        }
    }
    return routes;
}

// Creates a node, whose memories are hosts.
void make_node(sg4::NetZone *parent, const duet_machine *machine, unsigned number,
               Routes const &routes)
{
    const std::string name = "duet" + std::to_string(number);
    const unsigned count = machine->node_count;
    const size_t first = network->memories.size();
    sg4::NetZone *zone = sg4::create_full_zone(name);
    zone->set_parent(parent);
    for (unsigned n = 0; n < count; n++)
        network->memories.push_back(zone->create_host(name + ".n" + std::to_string(n), 1e9));
    for (unsigned i = 0; i < routes.size(); i++)
        if (i / count != i % count && machine->routes[i].direct)
            add_route(zone, network->memories[first + i / count],
                      network->memories[first + i % count], routes[i]);
    zone->seal();
}

sg4::Host *make_card(sg4::NetZone *zone, unsigned long number)
{
    sg4::Host *card = zone->create_host("duet.card" + std::to_string(number), 1e9);
    if (network->cards.size() < network->node_count)
        network->cards.push_back(card);
    return card;
}

// Creates a card on a link of its own; all that it sends shares one direction, all that it receives
// the other.
sg4::Host *make_linked_card(sg4::NetZone *star, unsigned long number, double bandwidth_Bps)
{
    sg4::Host *card = make_card(star, number);
    sg4::SplitDuplexLink *link =
        star->create_split_duplex_link("duet.link" + std::to_string(number), bandwidth_Bps);
    star->add_route(card->get_netpoint(), nullptr, nullptr, nullptr,
                    {{link, sg4::LinkInRoute::Direction::UP}}, true);
    return card;
}

void make_switch(sg4::NetZone *parent, const duet__network *how)
{
    sg4::NetZone *star = sg4::create_star_zone("duet.network");
    star->set_parent(parent);
    for (unsigned n = 0; n < network->node_count; n++)
        make_linked_card(star, n, how->bandwidth_Bps);
    star->seal();
}

// Creates a torus. SimGrid's has a link to each neighbour of a node and no card, which therefore
// gets a zone of its own.
void make_torus(sg4::NetZone *parent, const duet__network *how)
{
    auto leaf = [how](sg4::NetZone *torus, Coordinates const &, unsigned long number) {
        const std::string name = "duet.torus" + std::to_string(number);
        sg4::NetZone *star = sg4::create_star_zone(name);
        star->set_parent(torus);
        make_linked_card(star, number, how->bandwidth_Bps);
        NetPoint *router = star->create_router(name + ".router");
        star->seal();
        return Netpoints(star->get_netpoint(), router);
    };
    sg4::create_torus_zone("duet.network", parent, {how->down, how->down + how->levels},
                           sg4::ClusterCallbacks(leaf), how->bandwidth_Bps, 0,
                           sg4::Link::SharingPolicy::SPLITDUPLEX)
        ->seal();
}

// Creates a card; its link is the one of the leaf to its switch or router.
Netpoints make_leaf(sg4::NetZone *zone, Coordinates const &, unsigned long number)
{
    return {make_card(zone, number)->get_netpoint(), nullptr};
}

void make_fat_tree(sg4::NetZone *parent, const duet__network *how)
{
    auto level = [how](const unsigned *of) { return std::vector<unsigned>(of, of + how->levels); };
    sg4::create_fatTree_zone("duet.network", parent,
                             {how->levels, level(how->down), level(how->up), level(how->cables)},
                             sg4::ClusterCallbacks(make_leaf), how->bandwidth_Bps, 0,
                             sg4::Link::SharingPolicy::SPLITDUPLEX)
        ->seal();
}

void make_dragonfly(sg4::NetZone *parent, const duet__network *how)
{
    // SimGrid looks for the cables of these routes behind the end of its arrays
    if (how->down[0] > how->down[2])
        throw std::runtime_error("it knows no dragonfly of more groups than routers in a chassis");
    auto level = [how](unsigned i) { return std::make_pair(how->down[i], how->cables[i]); };
    sg4::create_dragonfly_zone("duet.network", parent, {level(0), level(1), level(2), how->down[3]},
                               sg4::ClusterCallbacks(make_leaf), how->bandwidth_Bps, 0,
                               sg4::Link::SharingPolicy::SPLITDUPLEX)
        ->seal();
}

bool in_natural_order(sg4::Host const *a, sg4::Host const *b)
{
    return strverscmp(a->get_cname(), b->get_cname()) < 0;
}

// Checks that cards have routes, without which SimGrid aborts at a message. Of many nodes only the
// routes of the first are checked, since each takes a microsecond.
void check_routes()
{
    const std::vector<sg4::Host *> &cards = network->cards;
    std::vector<sg4::Link *> links;
    for (size_t from = 0; from < cards.size(); from++)
        for (size_t to = 0; to < cards.size(); to++) {
            double latency_s = 0;
            if (from == to || (from && to && cards.size() > 64))
                continue;
            links.clear();
            cards[from]->route_to(cards[to], links, &latency_s);
            if (links.empty() && !(latency_s > 0))
                throw std::runtime_error("there is no route from " + cards[from]->get_name() +
                                         " to " + cards[to]->get_name());
        }
}

// Loads a user's network. The latencies between cards are kept here, and removed from SimGrid's
// links.
void load_file(const duet__network *how)
{
    // SimGrid would run a shared object, and act on more of a file than its network
    const int copy = network_file_copy(how->file);
    const std::string name = "/proc/self/fd/" + std::to_string(copy);
    try {
        network->engine->load_platform(name);
    } catch (std::exception const &e) {
        close(copy);
        // the copy's name and line mean nothing to the author of the file
        const std::string why = e.what();
        const size_t place = why.find(name);
        const size_t end = place == std::string::npos ? place : why.find(": ", place);
        throw std::runtime_error(end == std::string::npos ? why : why.substr(end + 2));
    }
    close(copy);
    network->cards = network->engine->get_all_hosts();
    std::sort(network->cards.begin(), network->cards.end(), in_natural_order);
    if (network->cards.size() < network->node_count)
        throw std::runtime_error("it has " + std::to_string(network->cards.size()) + " hosts for " +
                                 std::to_string(network->node_count) + " nodes");
    network->cards.resize(network->node_count);
    for (sg4::Link *link : network->engine->get_all_links()) {
        if (!(link->get_bandwidth() > 0 && link->get_latency() >= 0))
            throw std::runtime_error("link " + link->get_name() +
                                     " needs a bandwidth above 0 and a latency of at least 0");
        network->latencies[link] = link->get_latency();
        link->set_latency(0);
    }
}

void make_platform(const duet_machine *machine, const duet__network *how)
{
    static void (*const made[])(sg4::NetZone *,
                                const duet__network *) = {make_switch, make_fat_tree,
                                                          make_dragonfly, make_torus};
    if (how && how->kind == DUET__NETWORK_FILE)
        load_file(how);
    sg4::NetZone *all = sg4::create_empty_zone("duet");
    if (network->engine->get_netzone_root() != all)
        all->set_parent(network->engine->get_netzone_root());
    std::vector<Routes> routes;
    for (unsigned n = 0; n < network->node_count; n++)
        routes.push_back(make_links(all, machine, n));
    for (unsigned n = 0; n < network->node_count; n++)
        make_node(all, machine, n, routes[n]);
    if (how && how->kind != DUET__NETWORK_FILE)
        made[how->kind](all, how);
    all->seal();
    if (how && how->kind == DUET__NETWORK_FILE) {
        network->engine->get_netzone_root()->seal(); // routes are not known before
        check_routes();
    }
}

void start(const duet_machine *machine, const duet__network *how)
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
    // its own shutdown crashes on activities in flight when the program exits
    static char shutdown[] = "--cfg=debug/clean-atexit:no";
    static char *arguments[] = {name, model, gamma, cross, log, precision, shutdown, nullptr};
    int count = 7;
    network->engine = new sg4::Engine(&count, arguments);
    make_platform(machine, how);
    listen();
}

int simgrid_open(struct ::network **out, const duet_machine *machine, unsigned count,
                 const duet__network *how, const network_calls *calls, void *owner,
                 duet_message *message)
{
    *out = nullptr;
    if (network)
        return duet_fail(message, DUET_EBUSY,
                         "SimGrid can be started once in a process, and was started before");
    try {
        KeepSignals keep;
        network = new Network;
        network->node_count = count;
        network->memory_count = machine->node_count;
        start(machine, how);
        network->calls = *calls;
        network->owner = owner;
        *out = reinterpret_cast<struct ::network *>(network);
    } catch (std::exception const &e) {
        bool file = how && how->kind == DUET__NETWORK_FILE;
        return duet_fail(message, file ? DUET_EINVAL : DUET_EIO,
                         file ? "the network of %s: %s" : "SimGrid refuses the platform of %s: %s",
                         file ? how->file : machine->name, e.what());
    }
    return DUET_OK;
}

void simgrid_run(struct ::network *)
{
    arm();
    try {
        network->engine->run();
    } catch (Stop const &) {
        // the timer that threw was taken off SimGrid's heap, but not freed
        delete network->running;
    }
}

void simgrid_close(struct ::network *of)
{
    network->owner = nullptr;
    // pending activities end without a callback, and are freed
    simgrid_run(of);
}

double simgrid_clock(const struct ::network *)
{
    return sg4::Engine::get_clock();
}

bool flow(sg4::Host *source, sg4::Host *destination, uint64_t bytes, void *tag)
{
    Flow *flow = network->pool;
    if (flow)
        network->pool = flow->next;
    else
        flow = new Flow;
    flow->tag = tag;
    auto comm = sg4::Comm::sendto_init();
    comm->add_ref(); // our reference, dropped after completion
    comm->set_data(flow);
    comm->set_payload_size(bytes);
    comm->set_source(source);
    comm->set_destination(destination); // this starts it
    return true;
}

bool simgrid_copy(struct ::network *, unsigned node, unsigned source, unsigned destination,
                  uint64_t bytes, void *tag)
{
    sg4::Host **memories = &network->memories[size_t(node) * network->memory_count];
    return flow(memories[source], memories[destination], bytes, tag);
}

bool simgrid_send(struct ::network *, unsigned from, unsigned to, uint64_t bytes, void *tag)
{
    return flow(network->cards[from], network->cards[to], bytes, tag);
}

double simgrid_latency(const struct ::network *, unsigned from, unsigned to)
{
    std::vector<sg4::Link *> links;
    double latency_s = 0, left_s;
    if (network->latencies.empty())
        return 0;
    network->cards[from]->route_to(network->cards[to], links, &left_s);
    for (sg4::Link const *link : links)
        latency_s += network->latencies.at(link);
    return latency_s;
}

const struct network_engine engine = {
    simgrid_open, simgrid_close,   simgrid_clock, simgrid_copy,
    simgrid_send, simgrid_latency, simgrid_run,
};

} // namespace

const struct network_engine *duet__network_simgrid(duet_message *)
{
    return &engine;
}
