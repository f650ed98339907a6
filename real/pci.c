/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of PCI Express as Linux's sysfs shows them. */
#include "real/pci.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Share of a link's bytes that copies reach. Packets of 128 or 256 bytes carry 20 to 28 bytes of
 * framing, header and checksum (0.83 to 0.92 of it is data), and acknowledgements and credits go
 * the same way. Measured, of 16 lanes: 0.75 to 0.81 (second generation; idgraf, mirage and attila
 * in platforms/), 0.67 (third; sirocco there), 0.70 to 0.76 (third, by NVIDIA's forum).
 */
static const double PAYLOAD = 0.8;

/*
 * Speed that ports without a real link claim: those of virtual machines, and tunnels (Thunderbolt).
 */
static const double CLAIMED_GTPS = 2.5;

/* ------------------------------------------------------------------------------------------- */
/* Reading                                                                                      */

/*
 * Reads the first line of FOLDER/NAME, without its end. Returns false, and "", if it is not there
 * or too long.
 */
static bool read_line(const char *folder, const char *name, char *to, size_t size)
{
    char path[PATH_MAX];
    *to = '\0';
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= sizeof path)
        return false;
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    bool whole = fgets(to, (int)size, file) && (strchr(to, '\n') || feof(file));
    (void)fclose(file);
    if (!whole)
        *to = '\0';
    to[strcspn(to, "\n")] = '\0';
    return whole;
}

/* Reads "8.0 GT/s PCIe" or "2.5 GT/s": 8 or 2.5, whatever the locale's decimal point is. */
static double read_speed(const char *folder, const char *name)
{
    char text[64], *end;
    if (!read_line(folder, name, text, sizeof text) || !isdigit((unsigned char)*text))
        return 0;
    unsigned long whole = strtoul(text, &end, 10);
    double speed = (double)whole;
    if (*end == '.' && isdigit((unsigned char)end[1])) {
        speed += (end[1] - '0') / 10.0;
        end += 2;
    }
    return whole < 1000 && strstr(end, "GT/s") ? speed : 0;
}

/* Reads 1 to 32 lanes; 0: not known. Sleeping ports claim 63, or 255. */
static unsigned read_lanes(const char *folder, const char *name)
{
    char text[64];
    if (!read_line(folder, name, text, sizeof text) || !isdigit((unsigned char)*text))
        return 0;
    unsigned long lanes = strtoul(text, NULL, 10);
    return lanes <= 32 ? (unsigned)lanes : 0;
}

static unsigned hex_digits(const char *text)
{
    unsigned count = 0;
    while (isxdigit((unsigned char)text[count]))
        count++;
    return count;
}

/* True for DOMAIN:BUS:DEVICE.FUNCTION; a domain has four digits or more. */
static bool is_address(const char *text)
{
    unsigned domain = hex_digits(text);
    if (domain < 4 || domain > 8 || text[domain] != ':')
        return false;
    text += domain + 1;
    return hex_digits(text) == 2 && text[2] == ':' && hex_digits(text + 3) == 2 && text[5] == '.' &&
           hex_digits(text + 6) == 1 && text[7] == '\0';
}

static void read_port(const char *folder, const char *address, struct pci_port *port)
{
    (void)snprintf(port->address, sizeof port->address, "%s", address);
    port->speed_GTps = read_speed(folder, "max_link_speed");
    port->speed_now_GTps = read_speed(folder, "current_link_speed");
    port->lanes = read_lanes(folder, "max_link_width");
    port->lanes_now = read_lanes(folder, "current_link_width");
}

/*
 * Reads the ports on a path like /sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0, by splitting
 * it. Everything before the last root ("pci...") is a parent of a root that is no processor's own.
 */
static void read_ports(char *folder, struct pci_path *path)
{
    for (char *slash = strchr(folder, '/'); slash;) {
        char *name = slash + 1, *next = strchr(name, '/');
        if (next)
            *next = '\0';
        if (!strncmp(name, "pci", strlen("pci"))) {
            path->count = 0;
        } else if (is_address(name)) {
            if (path->count < PCI_PORTS)
                read_port(folder, name, &path->ports[path->count]);
            path->count++;
        }
        if (next)
            *next = '/';
        slash = next;
    }
    if (path->count > PCI_PORTS)
        path->count = 0;
}

void duet__pci_read(const char *root, const char *address, struct pci_path *path)
{
    char link[PATH_MAX], folder[PATH_MAX];
    memset(path, 0, sizeof *path);
    int length = snprintf(link, sizeof link, "%s/bus/pci/devices/%s", root, address);
    if (!is_address(address) || length < 0 || (size_t)length >= sizeof link ||
        !realpath(link, folder))
        return;
    (void)read_line(folder, "local_cpulist", path->processors, sizeof path->processors);
    read_ports(folder, path);
}

/* ------------------------------------------------------------------------------------------- */
/* Links                                                                                        */

/* Returns false if a port says nothing, or less than the device behind it can do by generations. */
static bool believed(const struct pci_path *path, const struct pci_port *port)
{
    const struct pci_port *device = &path->ports[path->count - 1];
    return port->speed_GTps > 0 && port->lanes > 0 &&
           (port->speed_GTps > CLAIMED_GTPS || device->speed_GTps <= CLAIMED_GTPS);
}

/* Returns the bytes per second of a lane with its code: 8 bits in 10, 128 in 130, and the packets
   of 64 GT/s. */
static double lane_Bps(double speed_GTps)
{
    double code = speed_GTps <= 5 ? 0.8 : speed_GTps < 64 ? 128.0 / 130 : 242.0 / 256;
    return speed_GTps * 1e9 / 8 * code;
}

double duet__pci_Bps(const struct pci_path *path, unsigned port)
{
    const struct pci_port *lower = &path->ports[port];
    if (!believed(path, lower))
        return 0;
    double speed = lower->speed_GTps;
    unsigned lanes = lower->lanes;
    /* a card may have more lanes than its slot; the number in use does not vary like the speed */
    if (lower->lanes_now > 0 && lower->lanes_now < lanes)
        lanes = lower->lanes_now;
    if (port > 0) {
        const struct pci_port *upper = lower - 1;
        /* a virtual port may claim less than what runs through it */
        bool real = believed(path, upper) && lower->lanes_now <= upper->lanes &&
                    lower->speed_now_GTps <= upper->speed_GTps;
        if (real && upper->lanes < lanes)
            lanes = upper->lanes;
        if (real && upper->speed_GTps < speed)
            speed = upper->speed_GTps;
    }
    return lane_Bps(speed) * lanes * PAYLOAD;
}

/*
 * Links and the insides of switches alternate on a path: a device, or a switch's upper port, is at
 * the end of a link; a switch's lower port is on the bus inside. A port at the processor itself has
 * no link.
 */
bool duet__pci_up(const struct pci_path *path, unsigned *port)
{
    if (*port < 3)
        return false;
    *port -= 2;
    return true;
}
