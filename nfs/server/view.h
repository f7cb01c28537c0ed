/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* view.h - a file as memory: its pages in the page cache, mapped for reading as long as somebody uses them, so that
 * they are sent from where they are. Threads may use it at once.
 *
 * Others may cut the file meanwhile. The first view installs a handler of SIGBUS: pages that have gone read as zeros
 * from then on, and the view is spoilt. A fault elsewhere goes to the handler that was there before. */
#ifndef RDDP_NFS_SERVER_VIEW_H
#define RDDP_NFS_SERVER_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VIEWS_MAX = 256, VIEW_ROUND = 64 << 20 };

struct view;

/* A view with one user, of a file that has `size` octets now and may grow. NULL: it is on a file system whose files
 * others change behind the back of the page cache, it cannot be mapped, or there are enough. */
struct view *view_open(int fd, uint64_t size);
struct view *view_get(struct view *view);
/* NULL is nobody's. */
void view_put(struct view *view);

/* It shows `size` octets, and no page of it is gone. */
bool view_is_good(const struct view *view, uint64_t size);

/* All of it is in memory, as far as the system tells the calling thread: it does so if that may write the file, or owns
 * it. What is there can be read without waiting. offset + n: within the size that view_is_good() was asked for. */
bool view_is_resident(const struct view *view, uint64_t offset, size_t n);
/* To be read as long as the view has its user. Octets that are beyond the end of the file by then are zeros. */
const uint8_t *view_at(const struct view *view, uint64_t offset);

/* Octets that all views may show: more would be page tables for nothing. */
uint64_t view_span_max(void);

#endif
