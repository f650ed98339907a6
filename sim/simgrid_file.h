// SPDX-License-Identifier: Apache-2.0
// A user's network description, made safe for SimGrid.
#ifndef DUET_SIM_SIMGRID_FILE_H
#define DUET_SIM_SIMGRID_FILE_H

namespace duet
{

// Reads a SimGrid platform (XML, versions 4 and 4.1) of at most 64 MiB and 65536 hosts out of a
// regular file, and returns the descriptor of a nameless file that says the same in version 4.1.
// The caller closes it. Only zones, hosts, links, routers and routes are written; properties are
// left out. SimGrid acts on other elements (it loads plug-ins, and writes, includes or replays
// other files), so these are refused. Throws std::runtime_error with the line and what is wrong
// there.
int network_file_copy(const char *path);

} // namespace duet

#endif
