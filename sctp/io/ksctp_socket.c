/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ksctp_socket.c - a socket of the kernel's SCTP: its options, its addresses. */
#include "sctp/io/ksctp_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sctp.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "sctp/io/ksctp.h"
#include "loop/udp.h"

static const char udp_switch[] = "/proc/sys/net/sctp/udp_port";

/* --- is it there? -------------------------------------------------------------------------------------------- */

/* Without a UDP port of its own the kernel neither sends nor takes SCTP in UDP (RFC 6951). */
static bool has_udp(void)
{
    char text[8] = "0";
    int fd = open(udp_switch, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return errno == EMFILE || errno == ENFILE; /* unknown: opening the socket tells that */
    if (read(fd, text, sizeof(text) - 1) < 0)
        text[0] = '0';
    close(fd);
    return text[0] != '0';
}

/* Returns the reason as a sentence; NULL: nothing is missing. */
static const char *ksctp_socket_missing(const struct sctp_attr *attr)
{
    int fd = socket(AF_INET, SOCK_SEQPACKET | SOCK_CLOEXEC, IPPROTO_SCTP);

    if (fd < 0 && (errno == EPROTONOSUPPORT || errno == ESOCKTNOSUPPORT))
        return "this kernel has no SCTP (modprobe sctp), or may not load it";
    if (fd >= 0)
        close(fd);
    if (!attr->raw && !has_udp())
        return "this kernel has SCTP over UDP switched off: set the sysctl net.sctp.udp_port to 9899, or ask for UDP "
               "port 0, which is plain IP";
    return NULL;
}

/* --- options ------------------------------------------------------------------------------------------------- */

static int set(int fd, int option, const void *value, socklen_t length)
{
    return setsockopt(fd, IPPROTO_SCTP, option, value, length) ? -errno : 0;
}

static int set_events(int fd)
{
    static const uint16_t types[] = {SCTP_ASSOC_CHANGE, SCTP_ADAPTATION_INDICATION, SCTP_SHUTDOWN_EVENT};
    struct sctp_event event = {.se_assoc_id = SCTP_FUTURE_ASSOC, .se_on = 1};
    int error = 0;

    for (unsigned i = 0; !error && i < sizeof(types) / sizeof(types[0]); i++) {
        event.se_type = types[i];
        error = set(fd, SCTP_EVENT, &event, sizeof(event));
    }
    return error;
}

/* The path's MTU is the caller's word: the kernel looks for none. */
static int set_path(int fd, sa_family_t family, const struct sctp_attr *attr)
{
    struct sctp_paddrparams path = {.spp_flags = SPP_PMTUD_DISABLE};
    struct sctp_udpencaps udp = {.sue_assoc_id = SCTP_FUTURE_ASSOC};
    struct sockaddr_storage any = {.ss_family = family};
    int error;

    path.spp_address = any;
    path.spp_pathmtu = attr->mtu ? attr->mtu : SCTP_MTU;
    error = set(fd, SCTP_PEER_ADDR_PARAMS, &path, sizeof(path));
    if (error || attr->raw)
        return error;
    udp.sue_address = any;
    udp.sue_port = htons(attr->udp_port ? attr->udp_port : SCTP_PORT_UDP);
    return set(fd, SCTP_REMOTE_UDP_ENCAPS_PORT, &udp, sizeof(udp));
}

static void set_buffers(int fd)
{
    int octets = KSCTP_BUFFER;

    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &octets, sizeof(octets)))
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &octets, sizeof(octets));
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &octets, sizeof(octets)))
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &octets, sizeof(octets));
}

static int ksctp_socket_set(int fd, sa_family_t family, const struct sctp_attr *attr)
{
    struct sctp_setadaptation adaptation = {.ssb_adaptation_ind = attr->indication};
    struct sctp_initmsg init = {.sinit_num_ostreams = SCTP_STREAMS_MAX, .sinit_max_instreams = SCTP_STREAMS_MAX};
    int on = 1, error = set_events(fd);

    if (attr->connect_ms) {
        init.sinit_max_attempts = (uint16_t)(attr->connect_ms / SCTP_INIT_EACH_MS + 1);
        init.sinit_max_init_timeo = SCTP_INIT_EACH_MS;
    }
    if (!error)
        error = set(fd, SCTP_RECVRCVINFO, &on, sizeof(on));
    if (!error && attr->indication)
        error = set(fd, SCTP_ADAPTATION_LAYER, &adaptation, sizeof(adaptation));
    if (!error)
        error = set_path(fd, family, attr);
    if (!error)
        error = set(fd, SCTP_INITMSG, &init, sizeof(init));
    if (!error)
        error = set(fd, SCTP_DISABLE_FRAGMENTS, &on, sizeof(on));
    if (!error)
        error = set(fd, SCTP_NODELAY, &on, sizeof(on));
    set_buffers(fd);
    return error;
}

int ksctp_socket_open(sa_family_t family, const struct sctp_attr *attr, const char **why)
{
    int fd, error;

    if (family != AF_INET && family != AF_INET6)
        return -EAFNOSUPPORT;
    *why = ksctp_socket_missing(attr);
    if (*why)
        return -EPROTONOSUPPORT;
    fd = socket(family, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_SCTP);
    if (fd < 0)
        return -errno;
    error = ksctp_socket_set(fd, family, attr);
    if (!error)
        return fd;
    close(fd);
    return error;
}

/* --- addresses ----------------------------------------------------------------------------------------------- */

int ksctp_socket_bind(int fd, const struct sockaddr_storage *address, uint32_t addresses, uint16_t port)
{
    socklen_t length = sctp_address_length(address->ss_family);

    for (uint32_t i = 0; i < addresses; i++) {
        struct sockaddr_storage own = address[i];

        if (own.ss_family != address->ss_family || sctp_is_wildcard(&own))
            return -EADDRNOTAVAIL;
        sctp_set_port(&own, i ? 0 : port); /* of the others it is the same */
        if (i ? set(fd, SCTP_SOCKOPT_BINDX_ADD, &own, length) : bind(fd, (struct sockaddr *)&own, length))
            return -errno;
    }
    return 0;
}

int ksctp_socket_source(const struct sockaddr *peer, struct sockaddr_storage *source)
{
    struct sockaddr_storage to = {0};
    int error;

    memcpy(&to, peer, sctp_address_length(peer->sa_family));
    sctp_set_port(&to, SCTP_PORT_UDP);
    error = udp_source(&to, source);
    if (!error)
        sctp_set_port(source, 0);
    return error;
}
