/* SPDX-License-Identifier: Apache-2.0 */
/* Support for tests: machines recorded, or made up, as files like those of Linux's sysfs. */
#ifndef DUET_REAL_TESTING_PCI_H
#define DUET_REAL_TESTING_PCI_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>
#include <glib/gstdio.h>

/* An empty tree in a folder of its own, for OWNED(drop_folder). */
static inline char *testing_tree(void)
{
    char *root = new_folder();
    g_autofree char *devices = g_build_filename(root, "bus/pci/devices", NULL);
    g_assert_cmpint(g_mkdir_with_parents(devices, 0700), ==, 0);
    return root;
}

/*
 * Writes one line of a file of a port; NULL: no such file. (GLib's way to write files waits for
 * disks.)
 */
static inline void testing_write(const char *folder, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    FILE *file = text ? fopen(path, "w") : NULL;
    g_assert_true(!text == !file);
    if (file)
        g_assert_true(fprintf(file, "%s\n", text) > 0 && !fclose(file));
}

/* A port at "pci0000:00/0000:00:03.0/..." and what its files say: able to do, does. */
struct testing_port {
    const char *path;
    const char *speed, *lanes, *speed_now, *lanes_now, *processors;
};

/* Adds a port to the tree. Bridges come before what is below them. */
static inline void testing_port(const char *root, const struct testing_port *port)
{
    g_autofree char *folder = g_build_filename(root, "devices", port->path, NULL);
    g_autofree char *address = g_path_get_basename(port->path);
    g_autofree char *link = g_build_filename(root, "bus/pci/devices", address, NULL);
    g_assert_cmpint(g_mkdir_with_parents(folder, 0700), ==, 0);
    g_assert_cmpint(symlink(folder, link), ==, 0);
    testing_write(folder, "max_link_speed", port->speed);
    testing_write(folder, "max_link_width", port->lanes);
    testing_write(folder, "current_link_speed", port->speed_now);
    testing_write(folder, "current_link_width", port->lanes_now);
    testing_write(folder, "local_cpulist", port->processors);
}

/* Makes a port that gives only its abilities, or nothing at all. */
static inline void testing_plain(const char *root, const char *path, const char *speed,
                                 const char *lanes)
{
    testing_port(root, &(struct testing_port){.path = path, .speed = speed, .lanes = lanes});
}

/*
 * A switch with `count` devices below a root port: bus numbers are root + 1 (its upper port),
 * root + 2 (its lower ports) and root + 3 on (the devices). All have 16 lanes of that speed, which
 * the devices do not use at the moment.
 */
static inline void testing_switch(const char *root, unsigned bus, unsigned count, const char *speed,
                                  const char *processors)
{
    g_autofree char *port = g_strdup_printf("pci0000:%02x/0000:%02x:00.0", bus, bus);
    g_autofree char *upper = g_strdup_printf("%s/0000:%02x:00.0", port, bus + 1);
    testing_port(root, &(struct testing_port){port, speed, "16", speed, "16", processors});
    testing_port(root, &(struct testing_port){upper, speed, "16", speed, "16", processors});
    for (unsigned i = 0; i < count; i++) {
        g_autofree char *lower = g_strdup_printf("%s/0000:%02x:%02x.0", upper, bus + 2, 4 * i);
        g_autofree char *device = g_strdup_printf("%s/0000:%02x:00.0", lower, bus + 3 + i);
        testing_port(root,
                     &(struct testing_port){lower, speed, "16", "2.5 GT/s PCIe", "16", processors});
        testing_port(root, &(struct testing_port){device, speed, "16", "2.5 GT/s PCIe", "16",
                                                  processors});
    }
}

#endif
