/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sysfs.c - a /sys/class/infiniband and a /dev/infiniband that show rddpe0 and rddp0, in user and mount namespaces of
 * this process.
 *
 * Nothing can be made in sysfs, nor by users in /dev, so a file system in memory lies over /sys/class and /dev, with
 * symbolic links to what was there, and the additions. What was there stays reachable below a directory of sysfs that
 * is empty for ordinary users. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/lib/tool.h"
#include "tools/verbs/libraries.h"

#define PLACE "/sys/kernel/debug"
#define LOOPBACK "lo"
#define CLASS "/class/infiniband/rddp0/"
#define PORT CLASS "ports/1/"
#define CLASS_IB "/class/infiniband/rddpe0/"
#define PORT_IB CLASS_IB "ports/1/"
#define VERBS "/class/infiniband_verbs/"

/* What programs are known to read. */
static const struct {
    const char *path, *text;
} view_files[] = {
    {CLASS "node_type", "4: RNIC"},
    {CLASS "fw_ver", RDDP_VERSION},
    {CLASS "device/numa_node", "-1"},
    {CLASS "device/local_cpus", ""},
    {PORT "state", "4: ACTIVE"},
    {PORT "phys_state", "5: LinkUp"},
    {PORT "link_layer", "Ethernet"},
    {PORT "rate", "40 Gb/sec (4X QDR)"},
    {PORT "lid", "0x0"},
    {PORT "gid_attrs/ndevs/0", LOOPBACK},
    {PORT "gid_attrs/types/0", "IB/RoCE v1"},
    {PORT "pkeys/0", "0xffff"},
    {CLASS_IB "node_type", "1: CA"},
    {CLASS_IB "fw_ver", RDDP_VERSION},
    {CLASS_IB "device/numa_node", "-1"},
    {CLASS_IB "device/local_cpus", ""},
    {PORT_IB "state", "4: ACTIVE"},
    {PORT_IB "phys_state", "5: LinkUp"},
    {PORT_IB "link_layer", "Ethernet"},
    {PORT_IB "rate", "40 Gb/sec (4X QDR)"},
    {PORT_IB "lid", "0x0"},
    {PORT_IB "pkeys/0", "0xffff"},
    {VERBS "abi_version", "6"},
    {VERBS "uverbs0/ibdev", "rddp0"},
    {VERBS "uverbs0/abi_version", "1"},
    {VERBS "uverbs1/ibdev", "rddpe0"},
    {VERBS "uverbs1/abi_version", "1"},
};

static int write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    size_t n = strlen(text);

    if (fd < 0)
        return -errno;
    if (write(fd, text, n) != (ssize_t)n) {
        close(fd);
        return -EIO;
    }
    return close(fd) ? -errno : 0;
}

/* Makes the directories of a path, and the file. */
static int make_file(const char *below, const char *text)
{
    char path[PATH_MAX], line[PATH_MAX];

    snprintf(path, sizeof(path), PLACE "%s", below);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0755) && errno != EEXIST && access(path, F_OK))
            return -errno;
        *slash = '/';
    }
    snprintf(line, sizeof(line), "%s\n", text);
    return write_text(path, line);
}

/* Makes PLACE/NAME, which has links to all in PLACE/old-NAME, but to what would be covered. */
static int link_old(const char *name)
{
    char old[PATH_MAX], from[PATH_MAX], to[2 * PATH_MAX];
    const struct dirent *entry;
    int error = 0;
    DIR *all;

    snprintf(old, sizeof(old), PLACE "/old-%s", name);
    all = opendir(old);
    if (!all)
        return -errno;
    while (!error && (entry = readdir(all))) {
        if (entry->d_name[0] == '.' || !strncmp(entry->d_name, "infiniband", strlen("infiniband")))
            continue;
        snprintf(from, sizeof(from), PLACE "/%s/%s", name, entry->d_name);
        snprintf(to, sizeof(to), "%s/%s", old, entry->d_name);
        if (symlink(to, from))
            error = -errno;
    }
    closedir(all);
    return error;
}

static int keep_old(const char *folder, const char *name)
{
    char old[PATH_MAX], now[PATH_MAX];

    snprintf(old, sizeof(old), PLACE "/old-%s", name);
    snprintf(now, sizeof(now), PLACE "/%s", name);
    if (mkdir(old, 0755) || mkdir(now, 0755) || mount(folder, old, NULL, MS_BIND | MS_REC, NULL))
        return -errno;
    return link_old(name);
}

/* UCX takes none but a character device that it may read and write for a device that is there. */
static int show_node(const char *below)
{
    char path[PATH_MAX];
    int error = make_file(below, "");

    snprintf(path, sizeof(path), PLACE "%s", below);
    if (!error && mount("/dev/null", path, NULL, MS_BIND, NULL))
        error = -errno;
    return error;
}

/* Both devices are where there is an address: programs take that of the first interface below device/net. */
static int show_interface(const char *name)
{
    static const char *const of[] = {PLACE CLASS "device/net", PLACE CLASS_IB "device/net"};
    char from[PATH_MAX], to[PATH_MAX];
    int error = 0;

    snprintf(to, sizeof(to), "/sys/class/net/%s", name);
    for (size_t i = 0; !error && i < sizeof(of) / sizeof(of[0]); i++) {
        snprintf(from, sizeof(from), "%s/%s", of[i], name);
        if ((mkdir(of[i], 0755) && errno != EEXIST) || (symlink(to, from) && errno != EEXIST))
            error = -errno;
    }
    return error;
}

/* The GIDs of rddpe0, under the indexes that libibverbs.so.1 gives them: it says so itself. */
static int show_gids(void)
{
    int (*get)(unsigned index, uint8_t gid[16], unsigned *interface) = NULL;
    char folder[PATH_MAX], path[PATH_MAX + 64], name[IF_NAMESIZE], text[8 * 5];
    unsigned interface = 0, end = 0;
    bool is_alone = true;               /* loopback */
    _Alignas(uint64_t) uint8_t gid[16]; /* a union ibv_gid, which has words */
    void *library;
    int error = 0;

    if (!verbs_folder(folder))
        return 0;
    snprintf(path, sizeof(path), "%s/libibverbs.so.1", folder);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library)
        *(void **)&get = dlsym(library, "verbs_gid_get");
    for (unsigned i = 0; get && !error && (end = (unsigned)get(i, gid, &interface)) != EINVAL; i++) {
        if (end || !if_indextoname(interface, name))
            continue;
        if (strcmp(name, LOOPBACK)) {
            error = show_interface(name);
            is_alone = false;
        }
        snprintf(path, sizeof(path), PORT_IB "gid_attrs/ndevs/%u", i);
        if (!error)
            error = make_file(path, name);
        snprintf(path, sizeof(path), PORT_IB "gid_attrs/types/%u", i);
        if (!error)
            error = make_file(path, "RoCE v2");
        for (int at = 0; at < 8; at++)
            snprintf(text + 5 * at, sizeof(text) - 5 * (size_t)at, at < 7 ? "%02x%02x:" : "%02x%02x", gid[2 * at],
                     gid[2 * at + 1]);
        snprintf(path, sizeof(path), PORT_IB "gids/%u", i);
        if (!error)
            error = make_file(path, text);
    }
    return error || !is_alone ? error : show_interface(LOOPBACK);
}

static int show_devices(void)
{
    int error;

    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("rddp", PLACE, "tmpfs", 0, "mode=755"))
        return -errno;
    /* Links inside of the classes lead two levels up to the devices. */
    error = symlink("/sys/devices", PLACE "/devices") ? -errno : keep_old("/sys/class", "class");
    if (!error)
        error = keep_old("/dev", "dev");
    for (size_t i = 0; !error && i < sizeof(view_files) / sizeof(view_files[0]); i++)
        error = make_file(view_files[i].path, view_files[i].text);
    if (!error)
        error = show_node("/dev/infiniband/uverbs0");
    if (!error)
        error = show_node("/dev/infiniband/uverbs1");
    if (!error)
        error = show_gids();
    if (!error && (mount(PLACE "/class", "/sys/class", NULL, MS_BIND | MS_REC, NULL) ||
                   mount(PLACE "/dev", "/dev", NULL, MS_BIND | MS_REC, NULL)))
        error = -errno;
    return error;
}

int verbs_view(void)
{
    int error = verbs_enter_namespaces();

    if (error)
        return fail(EXIT_FAILED, "--sysfs: this system allows no user namespaces (%s): " VERBS_NAMESPACES,
                    error_text(error));
    error = show_devices();
    if (error)
        return fail(EXIT_FAILED, "--sysfs: cannot make a private /sys/class/infiniband: %s", error_text(error));
    return 0;
}
