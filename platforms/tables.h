/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of tables.c, each of the struct that its name says. */
#ifndef DUET_PLATFORMS_TABLES_H
#define DUET_PLATFORMS_TABLES_H

#include "platforms/fields.h"

extern const struct duet__field duet__root_fields[], duet__host_fields[], duet__probe_fields[];
extern const struct duet__field duet__arch_fields[], duet__socket_fields[];
extern const struct duet__field duet__link_fields[], duet__peer_fields[];
extern const struct duet__field duet__switch_fields[], duet__gpu_fields[];
extern const struct duet__field duet__cost_fields[], duet__sharing_fields[];
extern const struct duet__field duet__times_fields[], duet__curve_fields[];
extern const struct duet__field duet__point_fields[];
extern const struct duet__field duet__work_field;

#endif
