/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* doctor.c - `rddp doctor`: says why a program made for verbs would not work here, and what to do. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <link.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/lib/tool.h"
#include "tools/verbs/libraries.h"

static int faults;

/* A line for each fact; `mend` NULL: all is well. */
static void doctor_say(const char *what, const char *fact, const char *mend)
{
    printf("%-4s %s: %s\n", mend ? "BAD" : "ok", what, fact);
    if (mend)
        printf("     %s\n", mend);
    faults += mend != NULL;
}

static void doctor_note(const char *what, const char *fact)
{
    printf("note %s: %s\n", what, fact);
}

/* Loads the libraries as a program would, and asks for the device. */
static void check_libraries(const char *folder, bool is_there)
{
    void **(*list)(int *) = NULL;
    char path[PATH_MAX + SMALL_TEXT];
    void *library;
    int n = 0;

    if (!is_there) {
        doctor_say("libraries", folder,
                   "they are not there: install libibverbs-dev and librdmacm-dev, and build again");
        return;
    }
    doctor_say("libraries", folder, NULL);
    snprintf(path, sizeof(path), "%s/libibverbs.so.1", folder);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        doctor_say("libibverbs.so.1", dlerror(), "build again with `make`");
        return;
    }
    *(void **)&list = dlsym(library, "ibv_get_device_list");
    if (list)
        free(list(&n));
    doctor_say("devices",
               n == 2 ? "rddpe0 (RoCE version 2), rddp0 (iWARP)"
               : n    ? getenv("RDDP_DEVICE")
                      : "none",
               n ? NULL : "RDDP_DEVICE names neither rddpe0 nor rddp0");
}

/* A connection over loopback is what everything else needs. */
static void check_tcp(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
        client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool works = listener >= 0 && client >= 0 && !bind(listener, (struct sockaddr *)&address, length) &&
                 !listen(listener, 1) && !getsockname(listener, (struct sockaddr *)&address, &length) &&
                 !connect(client, (struct sockaddr *)&address, length);

    doctor_say("TCP over 127.0.0.1", works ? "works" : error_text(errno),
               works ? NULL : "bring the loopback interface up: ip link set lo up");
    if (listener >= 0)
        close(listener);
    if (client >= 0)
        close(client);
}

/* Where peers of another make look for rddpe0. Those of this make find it all the same. */
static void check_port(void)
{
    enum { ROCE_PORT = 4791 };
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(ROCE_PORT)};
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1;
    bool is_free = fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) &&
                   !bind(fd, (struct sockaddr *)&address, sizeof(address));

    if (is_free)
        doctor_say("UDP port 4791", "free, or of this user's processes; a firewall must let it in", NULL);
    else
        doctor_note("UDP port 4791", "another user or the kernel's rxe has it: only peers that are rddp reach rddpe0");
    if (fd >= 0)
        close(fd);
}

static void check_addresses(void)
{
    struct ifaddrs *all = NULL;
    bool found = false;

    if (!getifaddrs(&all)) {
        for (const struct ifaddrs *i = all; i; i = i->ifa_next)
            found = found || (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && !(i->ifa_flags & IFF_LOOPBACK));
        freeifaddrs(all);
    }
    if (found)
        doctor_say("addresses", "there are others than loopback's", NULL);
    else
        doctor_note("addresses", "loopback's alone, which libfabric does not use; rdma_cm programs do");
}

/* Whether the loader takes our libraries for this program, as it lists them itself: nothing runs the program. */
static void check_loaded(const char *program, const char *loader, const char *folder)
{
    char line[2 * PATH_MAX], command[3 * PATH_MAX + 128];
    bool is_ours = false, is_named = false;
    FILE *out;

    snprintf(command, sizeof(command), "LD_LIBRARY_PATH='%s' '%s' --list '%s' 2>&1", folder, loader, program);
    out = popen(command, "r");
    while (out && fgets(line, sizeof(line), out)) {
        const char *name = strstr(line, "libibverbs.so.1 => ");
        if (!name)
            name = strstr(line, "librdmacm.so.1 => ");
        is_named = is_named || name;
        is_ours = is_ours || (name && strstr(name, folder));
    }
    if (out)
        pclose(out);
    if (is_ours)
        doctor_say(program, "takes our libraries", NULL);
    else if (is_named)
        doctor_say(program, "takes other libraries",
                   "it has an RPATH of its own: remove that, or run it with LD_PRELOAD");
    else
        doctor_note(program,
                    "is not linked with libibverbs or librdmacm; it may load them, or plug-ins that need them, later");
}

/* Stores the loader that a binary names. Returns false if it names none. */
static bool find_loader(int fd, const ElfW(Ehdr) * header, char loader[PATH_MAX])
{
    ElfW(Phdr) part = {.p_type = PT_NULL};

    for (unsigned i = 0; i < header->e_phnum && part.p_type != PT_INTERP; i++) {
        const off_t at = (off_t)(header->e_phoff + (size_t)i * sizeof(part));
        if (pread(fd, &part, sizeof(part), at) != sizeof(part))
            return false;
    }
    if (part.p_type != PT_INTERP || !part.p_filesz || part.p_filesz > PATH_MAX ||
        pread(fd, loader, part.p_filesz, (off_t)part.p_offset) != (ssize_t)part.p_filesz)
        return false;
    loader[part.p_filesz - 1] = '\0';
    return !strchr(loader, '\'');
}

static void check_binary(const char *path, int fd, const char *folder)
{
    static const unsigned char wanted[] = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3,
                                           sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32};
    ElfW(Ehdr) header;
    char loader[PATH_MAX];

    if (pread(fd, &header, sizeof(header), 0) != sizeof(header) || memcmp(header.e_ident, wanted, SELFMAG))
        doctor_note(path, "is no binary: it may start others, which inherit the environment");
    else if (memcmp(header.e_ident, wanted, sizeof(wanted)))
        doctor_say(path, "has another word size than our libraries", "build rddp for it");
    else if (!find_loader(fd, &header, loader))
        doctor_say(path, "is linked statically: no loader looks for libraries", "link it dynamically");
    else
        check_loaded(path, loader, folder);
}

static bool is_regular(const char *path, struct stat *status)
{
    return !stat(path, status) && S_ISREG(status->st_mode);
}

/* A name without a slash is looked for in PATH, as `rddp run` does. */
static bool find_program(const char *name, char path[PATH_MAX], struct stat *status)
{
    const char *folders = getenv("PATH");
    char joined[2 * PATH_MAX];

    if (strchr(name, '/'))
        return realpath(name, path) && is_regular(path, status);
    while (folders) {
        int length = (int)strcspn(folders, ":");
        snprintf(joined, sizeof(joined), "%.*s/%s", length, length ? folders : ".", name);
        if (!access(joined, X_OK) && realpath(joined, path) && is_regular(path, status))
            return true;
        folders = folders[length] ? folders + length + 1 : NULL;
    }
    return false;
}

static void check_program(const char *program, const char *folder)
{
    char path[PATH_MAX];
    struct stat status;
    int fd;

    if (!find_program(program, path, &status)) {
        doctor_say(program, strchr(program, '/') ? "is no file" : "is not in PATH", "give the path of the program");
        return;
    }
    if (strchr(path, '\'') || strchr(folder, '\'')) {
        doctor_note(program, "not examined: a quote is in its path");
        return;
    }
    if (status.st_mode & (S_ISUID | S_ISGID))
        doctor_say(path, "runs with the rights of another user, and the loader ignores LD_LIBRARY_PATH",
                   "use a copy of it");
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        doctor_say(path, error_text(errno), "make it readable");
        return;
    }
    check_binary(path, fd, folder);
    close(fd);
}

static void check_kernel(void)
{
    if (!access("/sys/class/infiniband", F_OK))
        doctor_note("/sys/class/infiniband",
                    "this host has RDMA devices: programs under `rddp run` see rddp0 instead of them");
    else if (verbs_can_view())
        doctor_note("/sys/class/infiniband", "not there; few programs look: `rddp run --sysfs` shows them one");
    else
        doctor_note("/sys/class/infiniband",
                    "not there, and programs that look cannot be shown one without user namespaces: " VERBS_NAMESPACES);
    doctor_note("ulimit -l", "any: no memory is pinned");
}

static int doctor_run(const struct command *command, int argc, char **argv)
{
    int first = opt_parse(command, argc, argv, NULL, NULL);
    char folder[PATH_MAX];
    bool is_there = verbs_folder(folder);

    check_libraries(folder, is_there);
    check_tcp();
    check_port();
    check_addresses();
    check_kernel();
    for (int i = first; i < argc && is_there; i++)
        check_program(argv[i], folder);
    return faults ? EXIT_FAILED : EXIT_OK;
}

const struct command doctor_command = {
    .name = "doctor",
    .summary = "say why a program made for verbs would not work here, and the mend",
    .usage = "[PROGRAM ...]",
    .text =
        "Prints a line for each thing that such programs need. A line that begins with BAD is followed by what to do.",
    .run = doctor_run,
};
