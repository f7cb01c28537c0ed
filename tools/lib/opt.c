/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* opt.c - parses options from a table, and prints the table for --help. */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/lib/packet_options.h"
#include "tools/lib/tool.h"

#define WIRE(field) offsetof(struct rddp_wire_attr, field)

static const struct opt wire_opts[] = {
    {0, "wire", "iwarp|rdmatcp|sctp|roce",
     "speak iWARP (MPA, DDP, RDMAP), RDMA/TCP segments, SCTP over UDP, or RoCE version 2; the same at both ends",
     OPT_CHOICE, WIRE(wire), 0, 0},
    {0, "sctp", "own|kernel", "SCTP stack: built-in over UDP (default), or the kernel's", OPT_CHOICE,
     WIRE(sctp_provider), 0, 0},
    {0, "udp-port", "N", "sctp: UDP port of the listener (default 9899); kernel: 0 for SCTP in IP", OPT_U16,
     WIRE(sctp_udp_port), 0, 65535},
    {0, "own-address", "ADDRESS", "sctp, kernel: one more address of this end for the peer; may be repeated",
     OPT_ADDRESS, 0, 0, 0},
    {0, "no-crc", NULL, "do not ask for CRC32c; it is still used if the peer asks", OPT_UNFLAG, WIRE(crc), 0, 0},
    {0, "markers", NULL, "ask the peer for MPA markers", OPT_FLAG, WIRE(markers), 0, 0},
    {0, "mpa-rev", "1|2", "initiator: MPA revision (default 2)", OPT_U8, WIRE(mpa_revision), 1, 2},
    {0, "p2p", NULL, "initiator: peer-to-peer mode, the responder may send first", OPT_FLAG, WIRE(peer_to_peer), 0, 0},
    {0, "immediate", NULL, "no start-up frames: markers and CRC always; both ends alike", OPT_FLAG, WIRE(immediate), 0,
     0},
    {0, "aligned", NULL, "pass each FPDU to TCP as a record; with --packet the peer does that, too", OPT_FLAG,
     WIRE(aligned), 0, 0},
    {0, "first-delay", "MS", NULL, OPT_U32, WIRE(first_delay_ms), 0, 60000},
    {0},
};

static uint32_t mtu; /* 0: not said */
static const struct opt both_opts[] = {
    {0, "mtu", "SIZE", "sctp, --packet: octets of the largest packet (default 1500)", OPT_U32, 0, 576, 65535},
    {0},
};

static const struct opt help_opts[] = {
    {'h', "help", NULL, "print this text", OPT_FLAG, 0, 0, 0},
    {0},
};

static const struct opt help_transport_opts[] = {
    {0, "help-transport", NULL, "print the options that choose how the two ends talk", OPT_FLAG, 0, 0, 0},
    {0},
};

enum { OPTS_MAX = 64, OWN_ADDRESSES = 7, SCTP_MTU_MAX = 64000, PACKET_MTU_MIN = 1280 };

/* The option tables of a subcommand in one: what getopt_long() needs, and where the value of each option goes. */
struct parser {
    struct option options[OPTS_MAX + 1];
    char letters[2 * OPTS_MAX + 2];
    const struct opt *opt[OPTS_MAX];
    void *into[OPTS_MAX];
    int count;
};

static void add_table(struct parser *parser, const struct opt *table, void *into)
{
    size_t letters = strlen(parser->letters);
    for (; table->name; table++) {
        int i = parser->count++;
        assert(i < OPTS_MAX);
        parser->opt[i] = table;
        parser->into[i] = into;
        parser->options[i] = (struct option){
            .name = table->name,
            .has_arg = table->argument ? required_argument : no_argument,
            .val = 256 + i,
        };
        if (table->letter) {
            parser->letters[letters++] = table->letter;
            if (table->argument)
                parser->letters[letters++] = ':';
        }
    }
}

static bool parse_choice(const char *choices, const char *text, int *index)
{
    size_t length = strlen(text);
    for (int i = 0; choices; i++) {
        const char *end = choices + strcspn(choices, "|");
        if ((size_t)(end - choices) == length && !memcmp(choices, text, length)) {
            *index = i;
            return true;
        }
        choices = *end ? end + 1 : NULL;
    }
    return false;
}

static bool parse_seconds(const char *text, double *seconds)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end || errno || !isfinite(value) || value < 0 || value > 1e6)
        return false;
    *seconds = value;
    return true;
}

static bool add_word(struct opt_list *list, const char *text)
{
    if (list->count == OPT_LIST_MAX)
        return false;
    list->word[list->count++] = text;
    return true;
}

static bool add_address(struct rddp_wire_attr *wire, const char *text)
{
    static struct sockaddr_storage addresses[OWN_ADDRESSES];
    struct sockaddr_storage *address = &addresses[wire->sctp_address_count];

    if (wire->sctp_address_count == OWN_ADDRESSES)
        return false;
    if (inet_pton(AF_INET, text, &((struct sockaddr_in *)address)->sin_addr) == 1)
        address->ss_family = AF_INET;
    else if (inet_pton(AF_INET6, text, &((struct sockaddr_in6 *)address)->sin6_addr) == 1)
        address->ss_family = AF_INET6;
    else
        return false;
    wire->sctp_addresses = addresses;
    wire->sctp_address_count++;
    return true;
}

/* Returns false if `text` is not a number in the range of the option. */
static bool store_number(const struct opt *opt, void *field, const char *text)
{
    uint64_t value;
    if (!(opt->kind == OPT_SIZE ? parse_size(text, &value) : parse_u64(text, &value)))
        return false;
    if (value < opt->min || value > opt->max)
        return false;
    uint8_t u8 = (uint8_t)value;
    uint16_t u16 = (uint16_t)value;
    uint32_t u32 = (uint32_t)value;
    switch (opt->kind) {
    case OPT_U8:
        memcpy(field, &u8, sizeof(u8));
        break;
    case OPT_U16:
        memcpy(field, &u16, sizeof(u16));
        break;
    case OPT_U32:
        memcpy(field, &u32, sizeof(u32));
        break;
    default:
        memcpy(field, &value, sizeof(value));
    }
    return true;
}

static bool opt_store(const struct opt *opt, void *into, const char *text)
{
    void *field = (char *)into + opt->at;
    switch (opt->kind) {
    case OPT_FLAG:
    case OPT_UNFLAG:
        *(bool *)field = opt->kind == OPT_FLAG;
        return true;
    case OPT_TEXT:
        *(const char **)field = text;
        return true;
    case OPT_LIST:
        return add_word(field, text);
    case OPT_ADDRESS:
        return add_address(into, text);
    case OPT_CHOICE:
        return parse_choice(opt->argument, text, field);
    case OPT_SECONDS:
        return parse_seconds(text, field);
    default:
        return store_number(opt, field, text);
    }
}

static void opt_help_transport(const struct command *command, FILE *out);

_Noreturn static void opt_refuse(const struct opt *opt, const char *text)
{
    bool ranged = opt->kind <= OPT_SIZE && opt->max;
    if (ranged)
        usage_error("--%s %s: not a number from %" PRIu64 " to %" PRIu64, opt->name, text, opt->min, opt->max);
    if (opt->kind == OPT_CHOICE)
        usage_error("--%s %s: not one of %s", opt->name, text, opt->argument);
    if (opt->kind == OPT_LIST)
        usage_error("--%s: more than %d of them", opt->name, OPT_LIST_MAX);
    if (opt->kind == OPT_ADDRESS)
        usage_error("--%s %s: not an address in numbers, or more than %d of them", opt->name, text, OWN_ADDRESSES);
    usage_error("--%s %s: not a number of seconds", opt->name, text);
}

static int find_option(const struct parser *parser, int found)
{
    if (found >= 256)
        return found - 256;
    for (int i = 0; i < parser->count; i++) {
        if (parser->opt[i]->letter == found)
            return i;
    }
    return -1;
}

static void add_tables(struct parser *parser, const struct command *command, void *options, struct rddp_wire_attr *wire)
{
    if (command->opts)
        add_table(parser, command->opts, options);
    if (command->wire)
        add_table(parser, wire_opts, wire);
    if (command->packet)
        add_table(parser, packet_opts, &packet_options);
    if (command->wire || command->packet)
        add_table(parser, both_opts, &mtu);
    if (command->wire || command->packet)
        add_table(parser, help_transport_opts, NULL);
    add_table(parser, help_opts, NULL);
}

/* What the options for the transport say together. */
static void complete_transport(const struct command *command, struct rddp_wire_attr *wire)
{
    bool sctp = command->wire && wire->wire == RDDP_WIRE_SCTP;
    if (mtu && !sctp && !packet_options.address)
        usage_error("--mtu needs %s--packet", command->wire ? "--wire sctp or " : "");
    if (mtu && sctp && mtu > SCTP_MTU_MAX)
        usage_error("--mtu %" PRIu32 ": with --wire sctp at most %d", mtu, SCTP_MTU_MAX);
    if (mtu && !sctp && mtu < PACKET_MTU_MIN)
        usage_error("--mtu %" PRIu32 ": with --packet at least %d", mtu, PACKET_MTU_MIN);
    if (mtu && sctp)
        wire->sctp_mtu = (uint16_t)mtu;
    else if (mtu)
        packet_options.mtu = mtu;
    if (command->wire && wire->sctp_provider != RDDP_SCTP_KERNEL && (wire->sctp_address_count || !wire->sctp_udp_port))
        usage_error("--own-address and --udp-port 0 need --sctp kernel");
    if (command->wire && wire->wire == RDDP_WIRE_RDMATCP)
        wire->immediate = true; /* rdmatcp has no start-up frames either, and so no private data */
}

int opt_parse(const struct command *command, int argc, char **argv, void *options, struct rddp_wire_attr *wire)
{
    struct parser parser = {.letters = ":"};
    add_tables(&parser, command, options, wire);

    optind = 1;
    for (int found; (found = getopt_long(argc, argv, parser.letters, parser.options, NULL)) != -1;) {
        if (found == ':')
            usage_error("%s needs an argument", argv[optind - 1]);
        int i = find_option(&parser, found);
        if (i < 0 && optopt && optopt < 256)
            usage_error("unknown option -%c", optopt);
        if (i < 0)
            usage_error("unknown option %s", argv[optind - 1]);
        if (parser.opt[i] == help_opts || parser.opt[i] == help_transport_opts) {
            (parser.opt[i] == help_opts ? opt_help : opt_help_transport)(command, stdout);
            exit(EXIT_OK);
        }
        if (!opt_store(parser.opt[i], parser.into[i], optarg))
            opt_refuse(parser.opt[i], optarg);
    }
    complete_transport(command, wire);
    return optind;
}

static void help_table(const struct opt *table, const char *title, FILE *out)
{
    if (title)
        fprintf(out, "\n%s\n", title);
    for (; table->name; table++) {
        if (!table->help)
            continue;
        char left[64];
        snprintf(left, sizeof(left), "%c%c%c --%s%s%s", table->letter ? '-' : ' ', table->letter ? table->letter : ' ',
                 table->letter ? ',' : ' ', table->name, table->argument ? " " : "",
                 table->argument ? table->argument : "");
        fprintf(out, "  %-25s  %s\n", left, table->help);
    }
}

void opt_help(const struct command *command, FILE *out)
{
    const char *form = command->usage;
    for (const char *head = "usage:"; form; head = "      ") {
        const char *end = form + strcspn(form, "\n");
        fprintf(out, "%s rddp %s %.*s\n", head, command->name, (int)(end - form), form);
        form = *end ? end + 1 : NULL;
    }
    if (command->text)
        fprintf(out, "\n%s\n", command->text);
    if (command->opts)
        help_table(command->opts, "options:", out);
    help_table(help_opts, command->opts ? NULL : "options:", out);
    if (command->wire || command->packet)
        help_table(help_transport_opts, NULL, out);
}

static void opt_help_transport(const struct command *command, FILE *out)
{
    fprintf(out, "How the two ends of `rddp %s` talk; rddp-transport(7) explains it.\n", command->name);
    if (command->wire)
        help_table(wire_opts, "options:", out);
    if (command->packet)
        help_table(packet_opts, command->wire ? "over packets of our own:" : "options:", out);
    help_table(both_opts, NULL, out);
}

static bool is_in(const struct opt *table, const char *name, size_t n)
{
    for (; table && table->name; table++) {
        if (strlen(table->name) == n && !strncmp(table->name, name, n))
            return true;
    }
    return false;
}

bool opt_is_known(const struct command *command, const char *name, size_t n)
{
    return is_in(command->opts, name, n) || (command->wire && is_in(wire_opts, name, n)) ||
           (command->packet && is_in(packet_opts, name, n)) ||
           ((command->wire || command->packet) && is_in(both_opts, name, n));
}
