/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rddp/stream.h - a TCP stream whose marked parts are placed in the reader's buffers as they arrive, in any order.
 *
 * The writer says which octets belong to a transfer. The TCP RDMA option (draft-csapuntz-tcprdma-00) carries that with
 * each segment; the stream is the same with and without it. The reader names buffers by the identifiers of transfers
 * (RIDs). It receives records in stream order: which octets were placed where, and the octets that belong to no
 * transfer. If the peer does not know the option, if no buffer has the RID, or if the option is wrong, the octets are
 * read as from any stream; none is lost.
 *
 * An observer of the packets sees in the option where data belong. TLS above TCP does not protect it; IPsec does.
 *
 * The TCP is the library's own, behind a TUN device with its own addresses. It needs the right to make such a device:
 * CAP_NET_ADMIN, which every user has inside `unshare -Urn`. A net and its streams belong to one thread at a time.
 * Calls return 0 (or a count) or a negative errno; calls that make an object return it, or NULL and set errno. Only
 * rddp_stream_progress() waits. */
#ifndef RDDP_STREAM_H
#define RDDP_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef RDDP_API
#define RDDP_API __attribute__((visibility("default")))
#endif

struct rddp_stream_net; /* a device, and the addresses behind it */
struct rddp_stream;     /* one connection */

/* --- the net ------------------------------------------------------------------------------------------------- */

struct rddp_stream_net_attr {
    const char *device; /* the TUN device's name; NULL: the kernel chooses */
    /* An address that is to be behind the device; NULL: any. The host must have a route for it to the device. */
    const struct sockaddr *address;
    /* The kernel's own address on the device, IPv4 or IPv6; NULL: it is configured already. */
    const struct sockaddr *neighbor;
    uint32_t prefix;     /* bits of that address that all addresses behind the device share */
    uint32_t mtu;        /* octets, 1280 to 65535, default 1500 */
    uint32_t window;     /* octets that a stream keeps for its reader: 4096 to 1 GiB, default 1 MiB */
    uint32_t window_max; /* the window grows up to here with what is read in a round trip; default 16 MiB; 0: never */
    uint32_t streams;    /* streams at once, default 1024 */
    bool no_option;      /* never offer the option */
    uint8_t option_kind; /* default 25; 253 and 254 are reserved for experiments (RFC 6994) */
    bool checksums;      /* compute and verify them here; otherwise the device does */
    /* For tests: lose this many of 100,000 packets each way, the same ones for the same seed. */
    uint32_t lose, lose_seed;
};

RDDP_API void rddp_stream_net_attr_init(struct rddp_stream_net_attr *attr);

/* Opens a TUN device. NULL: EPERM, EACCES (no permission to make one); EBUSY (another program uses it); EADDRINUSE
 * (`address` is the host's own, or behind another device, or the host refuses packets to it); EINVAL; ENOENT (no TUN
 * driver); ENOMEM; EMFILE; EAGAIN (no random number available). */
RDDP_API struct rddp_stream_net *rddp_stream_net_open(const struct rddp_stream_net_attr *attr);
RDDP_API int rddp_stream_net_close(struct rddp_stream_net *net); /* -EBUSY: it still has a stream */

/* Returns a descriptor that is readable while rddp_stream_progress() has work to do, or -ENOMEM, -ENOSPC, or -ENODEV
 * (the program has closed it). Do nothing else with it. Packets cost their sender more from this call on, because each
 * has to wake a sleeping thread. */
RDDP_API int rddp_stream_net_fd(struct rddp_stream_net *net);
/* Receives and sends packets. Waits up to `timeout_ms` milliseconds for the first (0: does not wait, -1: no limit), but
 * no longer than 10 s at a time. Where packets follow each other closely it looks for the next for 50 us before it
 * sleeps. Returns 0; -EINTR; -ENODEV: the device was removed, and nothing but timers is left to wait for, or the
 * program has closed the net's descriptors. */
RDDP_API int rddp_stream_progress(struct rddp_stream_net *net, int timeout_ms);

/* --- connections --------------------------------------------------------------------------------------------- */

/* Listens on this port, at every address behind the device, with up to `backlog` connections waiting for
 * rddp_stream_accept(). Returns 0. -EADDRINUSE; -ENOSPC: the net already listens on 16 ports; -EINVAL. */
RDDP_API int rddp_stream_listen(struct rddp_stream_net *net, uint16_t port, uint32_t backlog);
/* Returns the oldest connection that was not accepted. NULL: EAGAIN (there is none). */
RDDP_API struct rddp_stream *rddp_stream_accept(struct rddp_stream_net *net);
/* Connects from an address behind the device; port 0 in `from`: any free port. NULL: EADDRINUSE, EINVAL, ENOMEM, EMFILE
 * (too many streams), ENODEV (the device was removed, or the descriptors closed). */
RDDP_API struct rddp_stream *rddp_stream_connect(struct rddp_stream_net *net, const struct sockaddr *from,
                                                 const struct sockaddr *to);

enum rddp_stream_state {
    RDDP_STREAM_CONNECTING,
    RDDP_STREAM_OPEN,  /* octets flow in at least one direction */
    RDDP_STREAM_ENDED, /* both sides have finished, and everything was acknowledged */
};

/* Returns the state, or why the stream failed: -ECONNREFUSED, -ECONNRESET, -ETIMEDOUT, -ECONNABORTED,
 * -ENODEV (the device was removed, or the descriptors closed). */
RDDP_API int rddp_stream_state(const struct rddp_stream *stream);
RDDP_API bool rddp_stream_has_option(const struct rddp_stream *stream); /* did both sides offer it? */

/* Stores the address and port of the peer. */
RDDP_API void rddp_stream_peer(const struct rddp_stream *stream, struct sockaddr_storage *peer);

/* Frees the stream. Octets that were not acknowledged are lost; the peer gets a reset unless the stream has ended. */
RDDP_API void rddp_stream_close(struct rddp_stream *stream);

/* --- writing ------------------------------------------------------------------------------------------------- */

enum rddp_stream_flag {
    RDDP_STREAM_MESSAGE = 1 << 0, /* a message of the upper protocol begins here (the option's A) */
    RDDP_STREAM_MORE = 1 << 1,    /* another write follows immediately: do not send for this one alone */
};

/* The transfer that octets belong to. All octets of a transfer have the same rid and, if it is known, the same
 * total. */
struct rddp_stream_mark {
    uint64_t rid;           /* 46 bits */
    uint32_t buffer_offset; /* of the first of these octets */
    uint32_t total;         /* octets of the whole transfer, with has_total */
    bool has_total;         /* the length of the transfer is known */
    bool unsolicited;       /* the reader did not ask for it (the option's U) */
};

/* Return the RIDs of NFS, HTTP/1.1 and CIFS (draft-csapuntz-tcprdma-00, section 5). */
static inline uint64_t rddp_rid_nfs(uint32_t xid, uint8_t operation) /* operation: 0 in NFS versions 2 and 3 */
{
    return (uint64_t)operation << 32 | xid;
}

static inline uint64_t rddp_rid_http(uint32_t request) /* the connection's first request is 0 */
{
    return request;
}

static inline uint64_t rddp_rid_cifs(uint16_t pid, uint16_t mid, uint8_t operation)
{
    return (uint64_t)operation << 32 | (uint64_t)pid << 16 | mid;
}

/* Appends octets to the stream. They are not copied: they stay the caller's, who must not change them until
 * rddp_stream_unacked() has fallen below the number of octets written after them. `mark` NULL: they belong to no
 * transfer. Returns 0. -EAGAIN: 1024 pieces are waiting; -EPIPE: finished or failed; -EINVAL. */
RDDP_API int rddp_stream_write(struct rddp_stream *stream, const void *octets, size_t length, unsigned flags,
                               const struct rddp_stream_mark *mark);
/* Ends the outgoing stream. Returns 0. -EPIPE: the stream has failed or ended. */
RDDP_API int rddp_stream_finish(struct rddp_stream *stream);
/* Returns the number of octets that were written and not yet acknowledged. */
RDDP_API uint64_t rddp_stream_unacked(const struct rddp_stream *stream);
/* Returns the number of octets that were written and not sent yet: the path or the peer's window has no room for them.
 */
RDDP_API uint64_t rddp_stream_unsent(const struct rddp_stream *stream);

/* --- reading ------------------------------------------------------------------------------------------------- */

/* Places octets of the transfer `rid` of this stream in this buffer, until rddp_stream_forget(). Buffers in use must
 * not overlap. Each octet of a buffer is placed once: what a peer sends to a place that is taken is read as plain
 * octets. The content of a buffer is undefined except for octets that records have named: a packet may be read into it
 * before it is known which packet it is. Until rddp_stream_forget() the reader writes to it only what
 * rddp_stream_fill() has announced. A second call with the same buffer and a greater length extends it. Returns 0.
 * -EEXIST: the RID has another buffer, or one as long; -EINVAL; -ENOSPC: 1024 buffers are in use. */
RDDP_API int rddp_stream_expect(struct rddp_stream *stream, uint64_t rid, void *buffer, size_t length);
/* Takes the buffer back, which may be freed or unmapped at once: nothing is written to it after the return, and no
 * record that is read afterwards names it. Octets in it that were not read are copied first, and read as plain ones.
 * Records that were read before the call still name it: rddp_stream_unread() gives back the rest of the last. Returns
 * 0. -ENOENT: the RID has no buffer. */
RDDP_API int rddp_stream_forget(struct rddp_stream *stream, uint64_t rid);
/* Announces that the reader writes these octets of the buffer of `rid` itself, because they came as plain octets:
 * nothing is written there any more. Returns 0. -EEXIST: something was placed there, and may not have been read;
 * -ENOENT: the RID has no buffer; -EINVAL: they are not all inside of it; -ENOSPC: its parts are too many. After an
 * error the reader writes there only after rddp_stream_forget(). */
RDDP_API int rddp_stream_fill(struct rddp_stream *stream, uint64_t rid, uint64_t offset, size_t length);
/* Offers a buffer for a transfer without a buffer, if it is marked as unsolicited and not longer than the buffer. A
 * peer cannot use more buffers than were offered. The record of the first octets has the RID; rddp_stream_forget()
 * ends the use of the buffer. Returns 0. -EINVAL; -ENOSPC: 64 buffers are on offer. */
RDDP_API int rddp_stream_offer(struct rddp_stream *stream, void *buffer, size_t length);

enum rddp_stream_kind {
    RDDP_STREAM_PLAIN,  /* the octets were copied to `to` */
    RDDP_STREAM_PLACED, /* the octets were placed in a buffer */
    RDDP_STREAM_FINISH, /* the peer has finished; nothing follows */
};

struct rddp_stream_record {
    enum rddp_stream_kind kind;
    size_t length;
    uint64_t position; /* stream position of the first octet */
    uint64_t rid;      /* PLACED: the transfer */
    void *at;          /* PLACED: the address */
    uint64_t buffer_offset;
};

/* Takes the next part of the stream, in order: up to `capacity` plain octets, which are copied to `to`, or a placed
 * part of any length. Returns 1, or 0 if nothing more has arrived. -EINVAL: plain octets are next and `capacity` is 0.
 * Once everything before it was read, the error of the stream: -ECONNREFUSED, -ECONNRESET, -ETIMEDOUT,
 * -ECONNABORTED. */
RDDP_API int rddp_stream_read(struct rddp_stream *stream, void *to, size_t capacity, struct rddp_stream_record *record);

/* Gives the last `length` octets of the record that rddp_stream_read() returned last back to the stream: they are read
 * again, as plain octets, and no longer from a buffer. Returns 0. -EINVAL: none, or more than it had; some were given
 * back before, or its buffer was forgotten. */
RDDP_API int rddp_stream_unread(struct rddp_stream *stream, size_t length);

/* Takes the next part of a message that has arrived whole although octets before it are missing. The peer marks only
 * where messages begin (RDDP_STREAM_MESSAGE), so several may look like one, and the last of a stream is not seen.
 * Stores in *rest how many octets of the message follow this part: take them, too, before any other call for the
 * stream. rddp_stream_read() leaves out what was taken here. For upper protocols whose messages may be processed in any
 * order (NFS and CIFS, not HTTP/1.1; draft-csapuntz-tcprdma-00, 3.1.6). Returns 1, or 0 if there is no such message.
 * -EINVAL: plain octets are next and `capacity` is 0. */
RDDP_API int rddp_stream_read_early(struct rddp_stream *stream, void *to, size_t capacity,
                                    struct rddp_stream_record *record, uint64_t *rest);

struct rddp_stream_counters {
    /* Early: placed before something in front of them had arrived. */
    uint64_t octets_in, octets_placed, octets_placed_early;
    uint64_t kept_max; /* the most octets that ever waited for the reader or behind a gap */
    /* Options that were wrong, named no known RID, went past the buffer, or had another total. */
    uint64_t options_bad, options_unknown, options_outside, options_total;
    uint64_t unsolicited_refused;
    uint64_t segments_in, segments_out, sent_again, timeouts;
    uint64_t octets_copied;     /* copies made in user space at the receiver, in octets */
    uint64_t octets_read_early; /* taken by rddp_stream_read_early() */
    uint64_t options_twice;     /* options that named a place which was taken */
};

RDDP_API void rddp_stream_count(const struct rddp_stream *stream, struct rddp_stream_counters *counters);

#ifdef __cplusplus
}
#endif

#endif
