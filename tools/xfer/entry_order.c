/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* entry_order.c - which entry may come next, so that a server cannot send something else than it was asked for. */
#include <string.h>

#include "tools/xfer/entry_order.h"

static bool admits_top(struct entry_order *order, enum xfer_type type, const char *path)
{
    if (*path)
        return false;
    if (type == XFER_DIRECTORY && order->asked == ORDER_TREE) {
        order->depth = 1;
        return true;
    }
    order->over = type == XFER_TROUBLE || (order->asked == ORDER_FILE && (type == XFER_FILE || type == XFER_SKIP));
    return order->over;
}

static bool order_leave(struct entry_order *order, const char *path)
{
    if (strcmp(path, order->directory) != 0)
        return false;
    char *slash = strrchr(order->directory, '/');
    *(slash ? slash : order->directory) = 0;
    order->over = --order->depth == 0;
    return true;
}

/* Whether `path` is a name in the innermost directory. */
static bool is_inside(const struct entry_order *order, const char *path)
{
    size_t n = strlen(order->directory);
    if (strncmp(path, order->directory, n) != 0 || (n && path[n] != '/'))
        return false;
    const char *name = path + n + (n > 0);
    return *name && !strchr(name, '/');
}

bool order_admits(struct entry_order *order, enum xfer_type type, const char *path)
{
    if (order->asked == ORDER_ANY)
        return true;
    if (order->over)
        return false;
    if (!order->depth)
        return admits_top(order, type, path);
    if (type == XFER_DIRECTORY_END)
        return order_leave(order, path);
    if (type == XFER_TROUBLE && !strcmp(path, order->directory)) /* the source cannot read all of the directory */
        return true;
    if (!is_inside(order, path))
        return false;
    if (type == XFER_DIRECTORY) {
        memcpy(order->directory, path, strlen(path) + 1);
        order->depth++;
    }
    return true;
}

bool order_may_end(const struct entry_order *order)
{
    return order->asked == ORDER_ANY || order->over;
}
