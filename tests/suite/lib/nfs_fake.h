/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_fake.h - an NFS server for tests of clients: a directory in memory, and whatever can go wrong at a server, from a
 * late answer to a lie. */
#ifndef RDDP_TESTS_SUITE_NFS_FAKE_H
#define RDDP_TESTS_SUITE_NFS_FAKE_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nfs/mount3.h"
#include "nfs/nfs3.h"
#include "rpc/responder.h"

enum { FAKE_ROOT = 1, FAKE_FILES = 512, FAKE_DATA_MAX = 32 << 20, FAKE_RANGES = 256, FAKE_IO = 65536 };

enum fake_lie {
    LIE_NONE,
    LIE_CIRCLE,     /* READDIRPLUS: the same cookies again and again */
    LIE_NO_NAMES,   /* ... no names, and not the end */
    LIE_NO_ATTR,    /* ... neither attributes nor handles: no lie, and rare */
    LIE_NO_OCTETS,  /* READ: no octets, and not the end */
    LIE_EARLY_END,  /* ... the end is in the middle of the file */
    LIE_SHORT,      /* ... and WRITE: less than was asked for, which is allowed */
    LIE_COUNT,      /* READ: says more than it gave */
    LIE_TAKES_NONE, /* WRITE: takes no octets */
    LIE_TAKES_MORE, /* ... more than there were */
    LIE_GARBAGE,    /* the results are none */
    LIE_NO_HANDLE,  /* CREATE does not tell the handle: no lie, and rare */
};

struct fake_file {
    char name[NFS3_NAME_MAX + 64];
    uint32_t length; /* of the name */
    bool removed;
    enum nfs3_type type;
    const char *target;
    uint8_t *data;
    uint64_t size, said_size; /* the latter, if not 0, is what the server says */
    uint32_t mode;
    struct nfs3_time mtime;
    struct {
        uint64_t offset, length;
    } unstable[FAKE_RANGES]; /* not committed */
    unsigned ranges;
};

struct fake {
    struct responder *responder;
    pthread_t thread, mount_thread;
    int port, mount_port, mount_fd;
    struct fake_file *file; /* handle n is the file n - 2; 1 is the directory they are all in */
    unsigned files;
    atomic_int lie;
    atomic_bool stop;
    atomic_uint jukebox; /* so many calls get NFS3ERR_JUKEBOX */
    atomic_uint refuse;  /* so many get `refusal` */
    atomic_int refusal;  /* enum rpc_result */
    atomic_uint drop;    /* so many are not answered */
    atomic_uint cut;     /* so many are not answered, and the server starts again: connections are lost */
    atomic_uint
        writes_to_live;        /* after so many WRITEs (0: never) it starts again, and what was not committed is lost */
    atomic_uint every_write;   /* it starts again at each WRITE */
    atomic_uint forget_rename; /* so many RENAMEs are done, and the server starts again in place of an answer */
    atomic_uint calls[NFS3_PROCS];
    pthread_mutex_t lock; /* on everything that is not atomic: held while a call is served */
    bool restart;
    uint64_t verifier;
};

void fake_open(struct fake *f);
/* Before the server is called, and when it is at rest again: what this thread and the server's did to the files is seen
 * by the other from now on. */
void fake_sync(struct fake *f);
void fake_close(struct fake *f);
struct fake_file *fake_add(struct fake *f, const char *name, size_t length, enum nfs3_type type);
/* A regular file with fake_octet()s in it. */
struct fake_file *fake_add_file(struct fake *f, const char *name, uint64_t size);
struct fake_file *fake_find(struct fake *f, const char *name);
uint8_t fake_octet(uint64_t at);
struct nfs3_fh fake_handle(uint32_t id);
/* Its thread; `user` is the fake. */
void *fake_run_mount(void *user);
bool fake_is_whole(const struct fake_file *file, uint64_t size);

#endif
