/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* drivers.h - the versions of the calls that rdma-core has for its drivers, which programs link, too: libmlx5 and
 * libefa are such. They change with the release: 34 is that of rdma-core 34 to 56, 57 and 59 of those behind it, and
 * 65 of 65. A driver does not load without its own, nor does a program that links it. */
#ifndef VERBS_DRIVERS_H
#define VERBS_DRIVERS_H

#define PRIVATE_OF(call, version) __asm__(".symver " call "," call "@" version);

/* Exports a call of this file under each of the versions; libibverbs.map need not name it. */
#define PRIVATE(call) \
    PRIVATE_OF(#call, "@IBVERBS_PRIVATE_34") \
    PRIVATE_OF(#call, "IBVERBS_PRIVATE_57") \
    PRIVATE_OF(#call, "IBVERBS_PRIVATE_59") \
    PRIVATE_OF(#call, "IBVERBS_PRIVATE_65")

#endif
