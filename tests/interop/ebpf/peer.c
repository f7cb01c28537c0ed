/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* peer.c - the kernel's TCP with the BPF program tcpopt.bpf.c, as one end of a connection.
 *
 * peer OBJECT CGROUP connect|listen send|receive|both ADDRESS PORT
 *
 * When the other end has sent an octet, it sends messages: a head of 48 octets, and data that belong to a transfer. It
 * checks the messages that it receives, and that the options of their segments describe exactly the data in them.
 * Nothing here comes from rddp. Exit code 77: it cannot run here. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/tcp.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "shared.h"

enum { MESSAGES = 200, HEAD = 48, FORMS_SHORT = 16, FORMS_LONG = 20 };

static struct flow *flow;
static struct section *sections;
static uint32_t starts[MESSAGES + 1]; /* of each message, in the stream */
static uint8_t *stream, *placed;
static uint32_t described, announced;

static _Noreturn void quit(int code, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    fprintf(stderr, "peer: ");
    vfprintf(stderr, format, list);
    fprintf(stderr, "\n");
    va_end(list);
    exit(code);
}

/* What both ends know of the messages. */
static uint32_t length_of(uint32_t i)
{
    return 1 + i * 7919 % 30011;
}

static uint64_t rid_of(uint32_t i)
{
    return (i + 1) * 0x9e3779b97f4a7c15ULL >> 18;
}

static uint32_t total_of(uint32_t i)
{
    return i % 2 ? length_of(i) : 0; /* 0: unknown */
}

static uint8_t octet_of(uint32_t i, uint32_t at)
{
    return (uint8_t)(i * 131 + at * 7 + at / 251);
}

static void lay_out(void)
{
    for (uint32_t i = 0; i < MESSAGES; i++)
        starts[i + 1] = starts[i] + HEAD + length_of(i);
    stream = malloc(starts[MESSAGES]);
    placed = calloc(1, starts[MESSAGES]);
    if (!stream || !placed)
        quit(1, "no memory");
}

static void fill_table(void)
{
    for (uint32_t i = 0; i < MESSAGES; i++) {
        sections[2 * i] = (struct section){.start = starts[i], .length = HEAD, .begins_message = 1};
        sections[2 * i + 1] = (struct section){
            .rid = rid_of(i), .start = starts[i] + HEAD, .length = length_of(i), .total = total_of(i), .has_rid = 1};
    }
    flow->sections = 2 * MESSAGES;
}

static void *map_of(struct bpf_object *object, const char *name, size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_object__find_map_fd_by_name(object, name), 0);

    if (at == MAP_FAILED)
        quit(1, "mmap of %s: %s", name, strerror(errno));
    return at;
}

static int be_quiet(enum libbpf_print_level level, const char *format, va_list list)
{
    return level == LIBBPF_WARN ? vfprintf(stderr, format, list) : 0;
}

/* The program works on the sockets of a control group. This process enters it. */
static struct bpf_object *load(const char *file, const char *cgroup)
{
    struct bpf_object *object;
    struct bpf_program *program;
    char procs[4096];
    int fd;

    libbpf_set_print(be_quiet);
    object = bpf_object__open_file(file, NULL);
    if (!object || bpf_object__load(object))
        quit(77, "the kernel does not take the BPF program: %s", strerror(errno));
    program = bpf_object__find_program_by_name(object, "tcpopt");
    fd = open(cgroup, O_RDONLY | O_DIRECTORY);
    if (fd < 0 || !bpf_program__attach_cgroup(program, fd))
        quit(77, "no BPF program can be attached to %s: %s", cgroup, strerror(errno));
    snprintf(procs, sizeof(procs), "%s/cgroup.procs", cgroup);
    fd = open(procs, O_WRONLY);
    if (fd < 0 || write(fd, "0", 1) != 1)
        quit(77, "cannot enter %s: %s", cgroup, strerror(errno));
    close(fd);
    flow = map_of(object, "flows", sizeof(*flow));
    sections = map_of(object, "sections", SECTIONS * sizeof(*sections));
    return object;
}

static int open_connection(bool listens, const char *address, uint16_t port)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

    if (fd < 0 || inet_pton(AF_INET, address, &name.sin_addr) != 1)
        quit(1, "socket, or the address %s", address);
    if (!listens) {
        if (connect(fd, (struct sockaddr *)&name, sizeof(name)))
            quit(1, "connect: %s", strerror(errno));
        return fd;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    /* The program looks into the SYN once more when the connection is established. */
    if (setsockopt(fd, IPPROTO_TCP, TCP_SAVE_SYN, &on, sizeof(on)) ||
        bind(fd, (struct sockaddr *)&name, sizeof(name)) || listen(fd, 1))
        quit(1, "listen: %s", strerror(errno));
    puts("ready");
    fflush(stdout);
    fd = accept(fd, NULL, NULL);
    if (fd < 0)
        quit(1, "accept: %s", strerror(errno));
    return fd;
}

/* The kernel joins what is sent, and writes one option for all of it; MSG_EOR makes each call a segment. Room for the
 * option is not in what TCP_INFO says. */
static void send_all(int fd)
{
    struct tcp_info info;
    socklen_t length = sizeof(info);
    uint32_t most;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length))
        quit(1, "TCP_INFO: %s", strerror(errno));
    most = info.tcpi_snd_mss - OPTION_MAX;
    for (uint32_t i = 0; i < MESSAGES; i++) {
        for (uint32_t at = 0; at < HEAD + length_of(i); at++)
            stream[at] = octet_of(i, at);
        for (uint32_t at = 0, n; at < HEAD + length_of(i); at += n) {
            n = HEAD + length_of(i) - at < most ? HEAD + length_of(i) - at : most;
            if (send(fd, stream + at, n, MSG_EOR | MSG_NOSIGNAL) != (ssize_t)n)
                quit(1, "send: %s", strerror(errno));
        }
    }
    if (shutdown(fd, SHUT_WR))
        quit(1, "shutdown: %s", strerror(errno));
}

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void check_piece(const struct event *e, uint32_t i, uint32_t from, uint32_t to)
{
    const uint8_t *o = e->option;
    uint64_t rid = ((uint64_t)o[2] << 40 | (uint64_t)o[3] << 32 | get32(o + 4)) & 0x3fffffffffffULL;
    uint32_t data = starts[i] + HEAD;

    if (e->option_length != (total_of(i) ? FORMS_LONG : FORMS_SHORT))
        quit(1, "segment at %u: data of message %u, and an option of %u octets", e->position, i, e->option_length);
    if (rid != rid_of(i) || (total_of(i) && get32(o + 16) != total_of(i)) || o[2] & 0x40)
        quit(1, "segment at %u: wrong RID, total or U", e->position);
    if (e->position + (o[12] << 8 | o[13]) != from || (uint32_t)(o[14] << 8 | o[15]) != to - from)
        quit(1, "segment at %u: data are %u..%u and were described otherwise", e->position, from, to);
    if (get32(o + 8) != from - data)
        quit(1, "segment at %u: wrong buffer offset", e->position);
    memcpy(placed + data + get32(o + 8), stream + from, to - from);
    described++;
}

/* A segment has data of one transfer at most, and its option names exactly these (sections 3.1.8 and 3.3). */
static int check_event(void *user, void *data, size_t size)
{
    struct event event = *(const struct event *)data, *e = &event;
    uint32_t end, pieces = 0;
    bool aligned = false;

    (void)user;
    (void)size;
    e->position--; /* the octet that says "ready" is no part of the messages */
    end = e->position + e->length;
    if (e->position > starts[MESSAGES] || e->length > starts[MESSAGES] - e->position)
        return 0; /* no part of the messages */
    for (uint32_t i = 0; i < MESSAGES; i++) {
        uint32_t from = starts[i] + HEAD > e->position ? starts[i] + HEAD : e->position;
        uint32_t to = starts[i + 1] < end ? starts[i + 1] : end;

        aligned |= starts[i] == e->position;
        if (from >= to)
            continue;
        if (pieces++)
            quit(1, "segment at %u: data of two transfers", e->position);
        check_piece(e, i, from, to);
    }
    if (!pieces && e->option_length > 4)
        quit(1, "segment at %u: an option, and no data", e->position);
    if (e->option_length && aligned != (e->option[2] >> 7))
        quit(1, "segment at %u: wrong A", e->position);
    announced += e->option_length && aligned;
    return 0;
}

static void receive_all(int fd, struct bpf_object *object)
{
    struct ring_buffer *ring =
        ring_buffer__new(bpf_object__find_map_fd_by_name(object, "events"), check_event, NULL, NULL);
    uint32_t position = 0;
    uint8_t one;
    ssize_t n;

    while (position < starts[MESSAGES] && (n = recv(fd, stream + position, starts[MESSAGES] - position, 0)) > 0)
        position += (uint32_t)n;
    if (position < starts[MESSAGES] || recv(fd, &one, 1, 0) != 0)
        quit(1, "the stream ended after %u of %u octets, or did not end", position, starts[MESSAGES]);
    if (!ring || ring_buffer__consume(ring) < 0 || flow->events_lost)
        quit(1, "events were lost");
    for (uint32_t i = 0; i < MESSAGES; i++)
        for (uint32_t at = 0; at < HEAD + length_of(i); at++) {
            if (stream[starts[i] + at] != octet_of(i, at))
                quit(1, "message %u: wrong octet %u in the stream", i, at);
            if (at >= HEAD && placed[starts[i] + at] != octet_of(i, at))
                quit(1, "message %u: octet %u was not placed, or wrongly", i, at);
        }
    ring_buffer__free(ring);
}

int main(int argc, char **argv)
{
    struct bpf_object *object;
    bool sends, receives;
    pid_t sender = 0;
    struct linger patience = {1, 60};
    uint8_t octet;
    int fd, status = 0;

    if (argc != 7)
        quit(2, "usage: peer OBJECT CGROUP connect|listen send|receive|both ADDRESS PORT");
    sends = strcmp(argv[4], "receive") != 0;
    receives = strcmp(argv[4], "send") != 0;
    object = load(argv[1], argv[2]);
    lay_out();
    if (sends)
        fill_table();
    fd = open_connection(!strcmp(argv[3], "listen"), argv[5], (uint16_t)atoi(argv[6]));
    if (!flow->negotiated)
        quit(1, "the other end did not offer the option");
    if (recv(fd, &octet, 1, 0) != 1)
        quit(1, "the other end is not ready");
    if (sends && (sender = fork()) == 0) {
        send_all(fd);
        _exit(0);
    }
    if (!sends)
        shutdown(fd, SHUT_WR);
    if (receives)
        receive_all(fd, object);
    else if (recv(fd, &octet, 1, 0) != 0)
        quit(1, "the stream did not end");
    if (sender && (waitpid(sender, &status, 0) != sender || status))
        quit(1, "the sender failed");
    /* The program goes with this process, and is needed until the last segment has arrived. */
    if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &patience, sizeof(patience)) || close(fd))
        quit(1, "close: %s", strerror(errno));
    printf("options written=%u no_room=%u read=%u aligned=%u\n", flow->written, flow->without_space, described,
           announced);
    return 0;
}
