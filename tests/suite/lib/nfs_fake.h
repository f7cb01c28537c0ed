/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_fake.h - an NFS server for tests of clients: a directory in memory, and everything that can go wrong at a server,
 * from a late reply to a lie. */
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
    LIE_CIRCLE,     /* READDIRPLUS: the same cookies without end */
    LIE_COOKIE_0,   /* ... the cookie of the beginning for each entry */
    LIE_BAD_NAMES,  /* ... the same cookies without end, of names that cannot be */
    LIE_ENDLESS,    /* ... always new names and cookies, never the end; the first is a directory */
    LIE_COMMIT,     /* COMMIT: another verifier each time */
    LIE_NO_NAMES,   /* ... no names, and not the end */
    LIE_NO_ATTR,    /* ... neither attributes nor handles: legal, but rare */
    LIE_NO_OCTETS,  /* READ: no octets, and not the end */
    LIE_EARLY_END,  /* ... the end in the middle of the file */
    LIE_SHORT,      /* ... and WRITE: less than requested, which is legal */
    LIE_COUNT,      /* READ: reports more octets than it gave */
    LIE_TAKES_NONE, /* WRITE: accepts no octets */
    LIE_TAKES_MORE, /* ... more than there were */
    LIE_GARBAGE,    /* undecodable results */
    LIE_NO_HANDLE,  /* CREATE does not return the handle: legal, but rare */
};

struct fake_file {
    char name[NFS3_NAME_MAX + 64];
    uint32_t length; /* of the name */
    bool removed;
    enum nfs3_type type;
    const char *target;
    uint8_t *data;
    uint64_t size, said_size; /* said_size: if not 0, the size that the server reports */
    uint32_t mode;
    struct nfs3_time mtime;
    struct {
        uint64_t offset, length;
    } unstable[FAKE_RANGES]; /* not committed */
    atomic_uint ranges;
};

struct fake {
    struct responder *responder;
    pthread_t thread, mount_thread;
    int port, mount_port, mount_fd;
    struct fake_file *file; /* handle n is file n - 2; handle 1 is the directory of all files */
    unsigned files;
    atomic_int lie;
    atomic_bool stop;
    atomic_uint jukebox;        /* this many calls get NFS3ERR_JUKEBOX */
    atomic_uint refuse;         /* this many calls get `refusal` */
    atomic_int refusal;         /* enum rpc_result */
    atomic_uint drop;           /* this many calls are not answered */
    atomic_uint cut;            /* this many calls are not answered, and the server restarts: connections are lost */
    atomic_uint cut_proc;       /* if not 0, only calls of this procedure are cut */
    atomic_uint writes_to_live; /* restarts after this many WRITEs (0: never), and loses what was not committed */
    atomic_uint every_write;    /* restarts at each WRITE */
    atomic_uint forget_rename;  /* this many RENAMEs are executed, and the server restarts instead of replying */
    atomic_uint calls[NFS3_PROCS];
    pthread_mutex_t lock; /* guards everything that is not atomic; held while a call is served */
    bool restart;
    uint64_t verifier;
};

void fake_open(struct fake *f);
/* Orders this thread's and the server's accesses to the files. Call it before the server is called and when it is idle
 * again. */
void fake_sync(struct fake *f);
void fake_close(struct fake *f);
struct fake_file *fake_add(struct fake *f, const char *name, size_t length, enum nfs3_type type);
/* Adds a regular file of fake_octet()s. */
struct fake_file *fake_add_file(struct fake *f, const char *name, uint64_t size);
struct fake_file *fake_find(struct fake *f, const char *name);
uint8_t fake_octet(uint64_t at);
struct nfs3_fh fake_handle(uint32_t id);
/* The thread of the MOUNT service; `user` is the fake. */
void *fake_run_mount(void *user);
bool fake_is_whole(const struct fake_file *file, uint64_t size);

#endif
