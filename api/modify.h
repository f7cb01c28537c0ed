/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* modify.h - numbers of queue pairs that are those on the wire, and what a queue pair grants its peer. */
#ifndef RDDP_API_MODIFY_H
#define RDDP_API_MODIFY_H

#include "endpoint/objects.h"

/* A slot with a number that no queue pair of the context has. qp_open_slot() returns 0 or a negative errno; the number
 * is then to be given back to context->qp_numbers. Both take the lock of a loop. */
int qp_open_slot(struct rddp_context *context, struct roce_slot **slot);
void qp_close_slot(struct roce_slot *slot);

/* Are these rights that a queue pair can grant? Those that it refuses then; and those that it grants now. */
bool qp_access_is_remote(unsigned access);
unsigned qp_access_refused(unsigned access);
unsigned qp_access_granted(const struct rddp_qp *qp);

#endif
