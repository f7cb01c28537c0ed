/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_transport.h - RoCE as a transport. */
#ifndef RDDP_ROCE_IO_ROCE_TRANSPORT_H
#define RDDP_ROCE_IO_ROCE_TRANSPORT_H

#include "endpoint/transport.h"

extern const struct transport transport_roce;

#endif
