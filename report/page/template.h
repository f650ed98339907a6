/* SPDX-License-Identifier: Apache-2.0 */
/* The page without its data: page.html with style sheet, d3 and scripts, put together and made an
 * object by cmake/page.cmake. The data belongs where it says @REPORT@ and @EXTRA@. */
#ifndef DUET_PAGE_TEMPLATE_H
#define DUET_PAGE_TEMPLATE_H

extern const char duet__page_template[];

#endif
