/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* container.h - finds the struct around a member, and counts the elements of an array. */
#ifndef RDDP_BASE_CONTAINER_H
#define RDDP_BASE_CONTAINER_H

#include <stddef.h>

#define container_of(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))
#define countof(array) (sizeof(array) / sizeof((array)[0]))

#endif
