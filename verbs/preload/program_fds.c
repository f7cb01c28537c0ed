/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* program_fds.c - the table of descriptors that are rsockets, and the calls of the C library. */
#include "verbs/preload/program_fds.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

enum { FDS = 65536, LIBRARIES = 3 }; /* descriptors beyond are the kernel's alone */

static pthread_once_t real_once = PTHREAD_ONCE_INIT;
static struct real real_calls;
static const void *library_of[LIBRARIES]; /* where each begins */

static _Atomic int held_by[FDS];    /* the rsocket of a descriptor, plus 1 */
static _Atomic int held_count[FDS]; /* descriptors of an rsocket */

#define REAL(name) \
    { \
#name, offsetof(struct real, name) \
    }
static const struct real_name {
    const char *name;
    size_t at;
} real_names[] = {
    REAL(socket),     REAL(bind),       REAL(listen), REAL(accept4), REAL(accept),      REAL(connect),
    REAL(shutdown),   REAL(close),      REAL(dup2),   REAL(read),    REAL(readv),       REAL(recv),
    REAL(recvfrom),   REAL(recvmsg),    REAL(write),  REAL(writev),  REAL(send),        REAL(sendto),
    REAL(sendmsg),    REAL(sendfile),   REAL(poll),   REAL(select),  REAL(getpeername), REAL(getsockname),
    REAL(getsockopt), REAL(setsockopt), REAL(fcntl),  REAL(dup),     REAL(dup3),        REAL(ioctl),
};

static const void *library_with(const char *symbol)
{
    const void *code = dlsym(RTLD_DEFAULT, symbol);
    Dl_info info;

    return code && dladdr(code, &info) ? info.dli_fbase : NULL;
}

static void real_find(void)
{
    for (size_t i = 0; i < sizeof(real_names) / sizeof(real_names[0]); i++) {
        void *call = dlsym(RTLD_NEXT, real_names[i].name);
        memcpy((char *)&real_calls + real_names[i].at, &call, sizeof(call));
    }
    library_of[0] = library_with("rsocket");
    library_of[1] = library_with("ibv_open_device");
    library_of[2] = library_with("rddp_open");
}

const struct real *real(void)
{
    pthread_once(&real_once, real_find);
    return &real_calls;
}

bool held_is_ours(const void *code)
{
    Dl_info info;

    real();
    if (!dladdr(code, &info))
        return false;
    for (int i = 0; i < LIBRARIES; i++)
        if (library_of[i] == info.dli_fbase)
            return true;
    return false;
}

int held(int fd)
{
    return fd < 0 || fd >= FDS ? -1 : atomic_load_explicit(&held_by[fd], memory_order_acquire) - 1;
}

void held_share(int fd, int rs)
{
    if (fd < 0 || fd >= FDS)
        return;
    atomic_fetch_add(&held_count[rs], 1);
    atomic_store(&held_by[fd], rs + 1);
}

int held_open(int rs)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    int error = fd < 0 ? errno : fd >= FDS || rs >= FDS ? EMFILE : 0;

    if (!error) {
        held_share(fd, rs);
        return fd;
    }
    if (fd >= 0)
        real()->close(fd);
    rclose(rs);
    errno = error;
    return -1;
}

/* A descriptor of it is gone. */
static void held_release(int rs)
{
    if (rs >= 0 && atomic_fetch_sub(&held_count[rs], 1) == 1)
        rclose(rs);
}

void held_replace(int fd, int rs)
{
    if (fd >= FDS)
        return;
    if (rs >= 0)
        atomic_fetch_add(&held_count[rs], 1);
    held_release(atomic_exchange(&held_by[fd], rs + 1) - 1);
}

int held_close(int fd)
{
    int rs = fd < 0 || fd >= FDS ? -1 : atomic_exchange(&held_by[fd], 0) - 1, error = real()->close(fd);

    held_release(rs);
    return error;
}
