/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hindrance.h - options of a kernel socket that its connection would lose outside of the kernel. */
#ifndef RDDP_TCP_IO_HINDRANCE_H
#define RDDP_TCP_IO_HINDRANCE_H

/* Returns the name of the first such option of a connected TCP socket, or NULL. The network device of a link-local
 * address is none. */
const char *hindrance_of(int fd);

#endif
