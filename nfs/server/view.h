/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* view.h - mapped files: a view maps the pages of a file in the page cache for reading while it has users, so that data
 * are sent from where they are. Thread-safe.
 *
 * Another process may truncate the file meanwhile. The first view installs a SIGBUS handler: pages that have gone read
 * as zeros from then on, and the view counts as faulted. A fault at another address is passed to the previous handler.
 */
#ifndef RDDP_NFS_SERVER_VIEW_H
#define RDDP_NFS_SERVER_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VIEWS_MAX = 256, VIEW_ROUND = 64 << 20 };

struct view;

/* Maps a file that has `size` octets now and may grow; the view has one user. NULL: its file system may change files
 * behind the back of the page cache, it cannot be mapped, or there are too many views. */
struct view *view_open(int fd, uint64_t size);
struct view *view_get(struct view *view);
/* NULL is ignored. */
void view_put(struct view *view);

/* Whether the view covers `size` octets and none of its pages is gone. */
bool view_is_good(const struct view *view, uint64_t size);

/* Whether the range is in memory and can be read without blocking. The kernel tells this only to a thread that may
 * write the file or owns it; for others it returns false. That it does tell is asked once: all callers must have the
 * same rights. offset + n must lie within the size given to view_is_good(). */
bool view_is_resident(struct view *view, uint64_t offset, size_t n);
/* A pointer to read from while the caller uses the view. Octets beyond the end of the file read as zeros. */
const uint8_t *view_at(const struct view *view, uint64_t offset);

/* Octets that all views together may cover; more would cost page tables for nothing. */
uint64_t view_span_max(void);

#endif
