/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of keys.c: the keys of platform files. */
#ifndef DUET_PLATFORMS_KEYS_H
#define DUET_PLATFORMS_KEYS_H

#include "base/fields.h"

extern const struct duet__list duet__archs;
extern const struct duet__field duet__platform_fields[], duet__times_fields[];
extern const struct duet__field duet__cost_fields[], duet__sharing_fields[];
extern const struct duet__field duet__curve_fields[], duet__point_fields[];
extern const struct duet__field duet__work_field;

#endif
