/* SPDX-License-Identifier: Apache-2.0 */
/* Reads XML as a document of json.h, so that tables of fields read it, too. */
#ifndef DUET_PLATFORMS_XML_H
#define DUET_PLATFORMS_XML_H

#include "base/fields.h"

/*
 * xml_document.c: makes each element an object of its attributes, which are texts, of arrays of the
 * elements inside it, by their names, and of its properties that begin with "duet.":
 * duet.cost.pop_s is the member pop_s of the member cost of the member duet. Properties that end in
 * numbers, from 0 in order, are elements of an array. Anything else is refused with its line, as is
 * a root element not called `name`. No DTD, entity or network is ever loaded. *root, on success
 * only, is to be closed.
 */
DUET_MUST_CHECK int duet__xml_parse(const char *text, size_t length, const char *path,
                                    const char *name, struct duet_message *message,
                                    struct duet__json *root);

/* xml_document.c: returns true and the value, bytes a second or seconds, if a text is a number
 * followed by one of SimGrid's units ("125MBps", "1Gbps", "10us"). It may be infinite. */
bool duet__xml_quantity(const char *text, bool bandwidth, double *out);

#endif
