/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ksctp.c - the kernel's SCTP played by the test: what becomes of errors, of a lack of memory, and of files that a
 * child of fork() keeps open. */
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include <linux/sctp.h>

#include "sctp/io/ksctp.h"

enum { ASSOC_ID = 7 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_CALLOC 0
#elif defined(__has_feature)
#define OWN_CALLOC (!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer))
#else
#define OWN_CALLOC 1
#endif

/* The kernel: an SCTP socket is one end of a pair, and `far` the other end of the last. */
static int far = -1, send_errno, aborts, peeled = -1;
static bool comes_up, no_memory;

#if OWN_CALLOC
void *__libc_calloc(size_t n, size_t size);
void *calloc(size_t n, size_t size)
{
    return no_memory ? NULL : __libc_calloc(n, size);
}
#endif

static int new_pair(void)
{
    int ends[2];

    if (syscall(SYS_socketpair, AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends))
        return -1;
    if (far >= 0)
        close(far);
    far = ends[1];
    return ends[0];
}

int socket(int family, int type, int protocol)
{
    return protocol == IPPROTO_SCTP ? new_pair() : (int)syscall(SYS_socket, family, type, protocol);
}

int setsockopt(int fd, int level, int option, const void *value, socklen_t length)
{
    (void)fd, (void)level, (void)option, (void)value, (void)length;
    return 0;
}

int getsockopt(int fd, int level, int option, void *restrict value, socklen_t *restrict length)
{
    (void)fd, (void)level, (void)length;
    if (option == SCTP_SOCKOPT_PEELOFF_FLAGS)
        ((sctp_peeloff_flags_arg_t *)value)->p_arg.sd = peeled = new_pair();
    return 0;
}

int bind(int fd, const struct sockaddr *address, socklen_t length)
{
    (void)fd, (void)address, (void)length;
    return 0;
}

int listen(int fd, int backlog)
{
    (void)fd, (void)backlog;
    return 0;
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
    struct sctp_sndinfo info;

    (void)fd, (void)flags;
    memcpy(&info, CMSG_DATA(CMSG_FIRSTHDR(m)), sizeof(info));
    aborts += info.snd_flags == SCTP_ABORT && info.snd_assoc_id == ASSOC_ID;
    errno = send_errno;
    return send_errno ? -1 : 0;
}

ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
    struct sctp_assoc_change up = {
        .sac_type = SCTP_ASSOC_CHANGE, .sac_state = SCTP_COMM_UP, .sac_length = sizeof(up), .sac_assoc_id = ASSOC_ID};

    (void)fd, (void)flags;
    errno = EAGAIN;
    if (!comes_up)
        return -1;
    comes_up = false;
    memcpy(m->msg_iov[0].iov_base, &up, sizeof(up));
    m->msg_flags = MSG_NOTIFICATION | MSG_EOR;
    return sizeof(up);
}

/* --- tests --------------------------------------------------------------------------------------------------- */

static struct sctp_socket *open_listener(void)
{
    const struct sctp_attr attr = {.indication = 4, .raw = true};
    struct sockaddr_in local = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sctp_socket *listener = NULL;
    const char *why;

    assert_int_equal(ksctp.open((const struct sockaddr *)&local, sizeof(local), &attr, &listener, &why), 0);
    assert_int_equal(ksctp.listen(listener, 5001), 0);
    return listener;
}

/* An association comes up at the listener. */
static void come_up(struct sctp_socket *listener)
{
    comes_up = true;
    assert_int_equal(send(far, "", 1, 0), 1);
    ksctp.drive(listener);
    assert_false(comes_up);
}

/* Only what an event follows is worth waiting for: otherwise the association would stand still without a word. */
static void errors(void **state)
{
    static const struct {
        int kernel, ours;
    } rows[] = {{0, 0},
                {EAGAIN, -EAGAIN},
                {EPIPE, -EAGAIN},
                {ECONNRESET, -EAGAIN},
                {EINVAL, -EINVAL},
                {ENOMEM, -ENOMEM},
                {EMSGSIZE, -EMSGSIZE},
                {ENOBUFS, -ENOBUFS}};
    struct sctp_socket *listener = open_listener();
    const struct span span = {(const uint8_t *)"a", 1};
    struct sctp_assoc *assoc;

    (void)state;
    come_up(listener);
    assoc = ksctp.accept(listener);
    assert_non_null(assoc);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        send_errno = rows[i].kernel;
        assert_int_equal(ksctp.submit(assoc, &span, 1, 0, 0, false), rows[i].ours);
    }
    send_errno = 0;
    ksctp.close(assoc);
    ksctp.close_socket(listener);
}

/* The file of a closed association lives on in a child: the peer is told all the same, and no event of the file
 * reaches us. */
static void inherited(void **state)
{
    struct sctp_socket *listener = open_listener();
    struct sctp_assoc *assoc;
    int child, told = aborts;

    (void)state;
    come_up(listener);
    child = dup(peeled);
    assoc = ksctp.accept(listener);
    assert_non_null(assoc);
    assoc->owner = &far;
    assert_ptr_equal(ksctp.ready(listener), &far);
    ksctp.close(assoc);
    assert_int_equal(aborts, told + 1);
    assert_int_equal(send(far, "", 1, 0), 1);
    ksctp.drive(listener);
    assert_null(ksctp.ready(listener));
    close(child);
    ksctp.close_socket(listener);
}

/* No memory for an association: its descriptor is closed. */
static void starved(void **state)
{
    struct sctp_socket *listener;

    (void)state;
    if (!OWN_CALLOC)
        skip();
    listener = open_listener();
    no_memory = true;
    come_up(listener);
    no_memory = false;
    assert_null(ksctp.accept(listener));
    assert_int_equal(close(peeled), -1);
    assert_int_equal(errno, EBADF);
    ksctp.close_socket(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors),
        cmocka_unit_test(inherited),
        cmocka_unit_test(starved),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
