/* SPDX-License-Identifier: Apache-2.0 */
/* XML as a document of the kind that json.h reads, so that tables of fields read it, too. */
#ifndef DUET_PLATFORMS_XML_H
#define DUET_PLATFORMS_XML_H

#include "base/fields.h"

/*
 * xml_document.c: an element becomes an object of its attributes, all of them texts, of arrays of
 * the elements inside it, by their names, and of its properties that begin with "duet.": the
 * property duet.cost.pop_s is the member pop_s of the member cost of the member duet. Properties
 * that end in numbers, from 0 in order, are the elements of an array. What is not of this kind is
 * refused with its line, as is the root element if it is not called `name`. No DTD, entity or
 * network is ever loaded. *root, on success only, is to be closed.
 */
DUET_MUST_CHECK int duet__xml_parse(const char *text, size_t length, const char *path,
                                    const char *name, struct duet_message *message,
                                    struct duet__json *root);

/*
 * xml_document.c: whether a text is a number followed by one of SimGrid's units ("125MBps",
 * "1Gbps", "10us"), and how many bytes a second, or seconds, that is. It may be infinite.
 */
bool duet__xml_quantity(const char *text, bool bandwidth, double *out);

#endif
