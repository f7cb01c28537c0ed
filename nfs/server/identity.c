/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* identity.c - the file system identity of the calling thread. */
#include <assert.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nfs/server/export.h"

enum { NOBODY_ID = 65534, OWN_GROUPS_MAX = 256 };

#define BIT(cap) (1u << ((cap)&31))

/* Some 32-bit kernels have two of each, of which the old ones take numbers of 16 bits. */
#ifdef SYS_setgroups32
enum { SYS_SETGROUPS = SYS_setgroups32, SYS_SETFSUID = SYS_setfsuid32, SYS_SETFSGID = SYS_setfsgid32 };
#else
enum { SYS_SETGROUPS = SYS_setgroups, SYS_SETFSUID = SYS_setfsuid, SYS_SETFSGID = SYS_setfsgid };
#endif

/* The capabilities that a user other than 0 must not have: those that the kernel itself removes from a thread whose
 * file system user changes from 0 (capabilities(7)), and the one to use the blocks that a file system reserves and to
 * exceed quotas. The second word holds CAP_MAC_OVERRIDE. */
static const uint32_t file_caps[2] = {BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH) |
                                          BIT(CAP_FOWNER) | BIT(CAP_FSETID) | BIT(CAP_LINUX_IMMUTABLE) |
                                          BIT(CAP_MKNOD) | BIT(CAP_SYS_RESOURCE),
                                      BIT(CAP_MAC_OVERRIDE)};

/* The kernel keeps these per thread. glibc's setgroups() would change all threads, so the system calls are made
 * directly. */
static _Thread_local struct {
    bool assumed, has_tried, may_set_groups;
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

/* The user namespace that a user makes forbids setgroups(2) even to its root (user_namespaces(7)), which can act as no
 * other user then. What a namespace allows stays as it is. */
static bool groups_can_change(void)
{
    if (!self.has_tried)
        self.may_set_groups = !syscall(SYS_SETGROUPS, (size_t)self.groups, self.group);
    self.has_tried = true;
    return self.may_set_groups;
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
    return self.groups >= 0 && groups_can_change();
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

/* Sets the capabilities of a thread that acts as user 0, or as another. */
static bool become_capable(bool root)
{
    struct __user_cap_data_struct caps[2];

    memcpy(caps, self.caps, sizeof(caps));
    if (!root) {
        caps[0].effective &= ~file_caps[0];
        caps[1].effective &= ~file_caps[1];
    }
    return set_caps(caps);
}

/* Changes what differs from `from` (NULL: everything), the user last but for its capabilities. */
static bool change(const struct identity *from, const struct identity *to)
{
    if (!(from && same_groups(from, to)) && syscall(SYS_SETGROUPS, (size_t)to->groups, to->group))
        return false;
    if (!(from && from->gid == to->gid) && !become(SYS_SETFSGID, to->gid))
        return false;
    if (!(from && from->uid == to->uid) && !become(SYS_SETFSUID, to->uid))
        return false;
    return (from && (from->uid == 0) == (to->uid == 0)) || become_capable(to->uid == 0);
}

bool identity_is_alone(void)
{
    FILE *map = fopen("/proc/self/uid_map", "re");
    unsigned long inside, outside, count = 0;
    bool more;

    if (!map)
        return false;
    more = fscanf(map, "%lu %lu %lu", &inside, &outside, &count) != 3 || fscanf(map, "%lu", &inside) == 1;
    fclose(map);
    return !more && count == 1;
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
    self.now = (struct identity){.uid = NOBODY_ID, .gid = NOBODY_ID};
    if (!change(NULL, &self.now))
        identity_drop();
    return -EPERM;
}

void identity_drop(void)
{
    bool done;

    if (!self.assumed)
        return;
    done = become(SYS_SETFSUID, self.user);
    done = become(SYS_SETFSGID, getegid()) && done;
    done = !syscall(SYS_SETGROUPS, (size_t)self.groups, self.group) && done;
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
