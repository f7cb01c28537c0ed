/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* deferred.h - whether posted requests wait for their doorbell. */
#ifndef TESTS_SUITE_LIB_DEFERRED_H
#define TESTS_SUITE_LIB_DEFERRED_H

#include "endpoint/objects.h"

static inline bool has_deferred(struct rddp_qp *qp)
{
    bool deferred;

    spin_lock(&qp->spin);
    deferred = qp->deferred;
    spin_unlock(&qp->spin);
    return deferred;
}

#endif
