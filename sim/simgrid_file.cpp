// SPDX-License-Identifier: Apache-2.0
// Reads a SimGrid platform by an allow-list of elements and attributes (simgrid.dtd, version 4.1),
// and writes what was read into a nameless file.
#include "sim/simgrid_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libxml/parser.h>
#include <libxml/tree.h>

namespace
{

constexpr off_t MOST_BYTES = 64 << 20;
constexpr unsigned long MOST_HOSTS = 65536;

struct Element {
    const char *name;
    const char *known_as;   // name in version 4.1
    const char *attributes; // each with a blank on either side
};

constexpr const char *cluster_attributes =
    " id prefix suffix radical speed bw lat core topology topo_parameters sharing_policy bb_bw"
    " bb_lat bb_sharing_policy limiter_link loopback_bw loopback_lat router_id ";
constexpr const char *zone_route_attributes = " src dst gw_src gw_dst symmetrical ";

const Element elements[] = {
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

    void read_attribute(xmlNode const *node, Element const &element, xmlAttr const *attribute)
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
        const Element *known = nullptr;
        for (Element const &element : elements)
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

} // namespace

int duet::network_file_copy(const char *path)
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
