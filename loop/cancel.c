/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cancel.c - what each thread knows of its locks. */
#include "loop/cancel.h"

_Thread_local struct cancel cancel_mine;
