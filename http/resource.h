/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* resource.h - what a path below the served directory names, and which version of it is there. */
#ifndef RDDP_HTTP_RESOURCE_H
#define RDDP_HTTP_RESOURCE_H

#include <sys/stat.h>

#include "http/codec.h"

/* Opens a file or a directory to be read. Returns a descriptor or a negative errno; -EACCES: it is neither. */
int http_source_open(int root, const char *path, struct stat *st);
/* The version of the file that `st` tells of; NULL: there is none. */
void http_source_version(struct http_version *version, const struct stat *st);

#endif
