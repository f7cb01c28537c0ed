/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* raw_udp.h - what UDP in batches carries between two processes that poll, without any transport. */
#ifndef RDDP_BENCH_RAW_UDP_H
#define RDDP_BENCH_RAW_UDP_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Answers each batch that arrives at `own` with one of `packets` packets of `octets`, until *over. Calls ready() when
 * it listens. */
void raw_udp_answer(const struct sockaddr_in *own, uint32_t octets, uint32_t packets, void (*ready)(void),
                    const _Atomic bool *over);

/* Sends batches of `packets` packets of `octets`, with at most `ahead` of them unanswered, for `seconds`. Returns how
 * many packets came as answers. The packets lie in `walk` octets of memory, one behind the other, or all in one place
 * (0). */
double raw_udp_batches(const struct sockaddr_in *own, const struct sockaddr_in *to, uint32_t octets, uint32_t packets,
                       int ahead, size_t walk, double seconds);

/* The same of one packet a call, by send() and recv() of sockets that are connected to each other: raw_udp_echo() until
 * *over; raw_udp_ping() has one of `octets`, at most 64, on its way at a time. Returns how many came back. */
void raw_udp_echo(const struct sockaddr_in *own, const struct sockaddr_in *peer, void (*ready)(void),
                  const _Atomic bool *over);
double raw_udp_ping(const struct sockaddr_in *own, const struct sockaddr_in *peer, uint32_t octets, double seconds);

/* Polls for the answer to what was sent at `since_ns`. Returns false if it was lost. */
bool raw_udp_await(int fd, uint8_t *buffer, size_t space, uint64_t since_ns);

#endif
