/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* identity.c - the file system identity of the calling thread. */
#include <assert.h>
#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nfs/server/export.h"

enum { NOBODY = 65534, OWN_GROUPS_MAX = 256 };

#define BIT(cap) (1u << ((cap)&31))

/* The capabilities that the kernel itself removes from a thread whose file system user changes from 0: capabilities(7).
 * The second word holds CAP_MAC_OVERRIDE. */
static const uint32_t file_caps[2] = {BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH) |
                                          BIT(CAP_FOWNER) | BIT(CAP_FSETID) | BIT(CAP_LINUX_IMMUTABLE) | BIT(CAP_MKNOD),
                                      BIT(CAP_MAC_OVERRIDE)};

/* The kernel keeps these per thread. glibc's setgroups() would change all threads, so the system calls are made
 * directly. */
static _Thread_local struct {
    bool assumed;
    struct identity now;
    uid_t user; /* the server's own, as are `caps` and `group` */
    struct __user_cap_data_struct caps[2];
    int groups;
    gid_t group[OWN_GROUPS_MAX];
} self;

static bool set_caps(const struct __user_cap_data_struct *caps)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

    return !syscall(SYS_capset, &header, caps);
}

/* Whether the thread may change its identity. If so, stores what it needs to change back. */
static bool identity_prepare(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const uint32_t needed = BIT(CAP_SETUID) | BIT(CAP_SETGID);

    if (syscall(SYS_capget, &header, self.caps) || (self.caps[0].effective & needed) != needed)
        return false;
    self.user = geteuid();
    self.groups = getgroups(OWN_GROUPS_MAX, self.group);
    return self.groups >= 0;
}

/* setfsuid() and setfsgid() return the previous ID and do not report success. An ID of -1 queries without a change. */
static bool become(long call, unsigned id)
{
    syscall(call, id);
    return (unsigned)syscall(call, -1) == id;
}

static bool same_groups(const struct identity *a, const struct identity *b)
{
    return a->groups == b->groups && !memcmp(a->group, b->group, a->groups * sizeof(*a->group));
}

/* Changes what differs from `from` (NULL: everything), the user last. The kernel would leave its capabilities to a
 * server that has them with a user other than 0, so they are dropped here. */
static bool change(const struct identity *from, const struct identity *to)
{
    struct __user_cap_data_struct caps[2];

    if (!(from && same_groups(from, to)) && syscall(SYS_setgroups, to->groups, to->group))
        return false;
    if (!(from && from->gid == to->gid) && !become(SYS_setfsgid, to->gid))
        return false;
    if (!(from && from->uid == to->uid) && !become(SYS_setfsuid, to->uid))
        return false;
    if (self.user == 0 || to->uid == 0)
        return true;
    memcpy(caps, self.caps, sizeof(caps));
    caps[0].effective &= ~file_caps[0];
    caps[1].effective &= ~file_caps[1];
    return set_caps(caps);
}

bool identity_can_change(void)
{
    return self.assumed || identity_prepare();
}

int identity_assume(const struct identity *identity)
{
    const struct identity *from = self.assumed ? &self.now : NULL;

    assert(identity->groups <= RPC_GROUPS_MAX);
    if (from && from->uid == identity->uid && from->gid == identity->gid && same_groups(from, identity))
        return 0;
    if (!from && !identity_prepare())
        return 0;
    self.assumed = true;
    if (change(from, identity)) {
        self.now = *identity;
        return 0;
    }
    self.now = (struct identity){.uid = NOBODY, .gid = NOBODY};
    if (!change(NULL, &self.now))
        identity_drop();
    return -EPERM;
}

void identity_drop(void)
{
    bool done;

    if (!self.assumed)
        return;
    done = become(SYS_setfsuid, self.user);
    done = become(SYS_setfsgid, getegid()) && done;
    done = !syscall(SYS_setgroups, self.groups, self.group) && done;
    done = set_caps(self.caps) && done;
    assert(done);
    self.assumed = false;
}

bool identity_pause(struct identity *was)
{
    if (!self.assumed)
        return false;
    *was = self.now;
    /* A thread with the server's full rights needs no group change: only the user is set to 0, which is cheaper. */
    if (self.user == 0 && self.caps[0].effective & BIT(CAP_DAC_OVERRIDE)) {
        struct identity root = *was;

        root.uid = 0;
        if (!identity_assume(&root))
            return true;
    }
    identity_drop();
    return true;
}
