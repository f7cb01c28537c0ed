/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cubic.c - the window grows as a cubic function of the time since its last reduction, at least as fast as Reno's. */
#include "tcp/cubic.h"

enum { BETA_NUMERATOR = 7, BETA_DENOMINATOR = 10 };   /* RFC 9438 4.6 */
enum { C_NUMERATOR = 4, C_DENOMINATOR = 10 };         /* segments per cubic second, 5.1 */
enum { ALPHA_NUMERATOR = 9, ALPHA_DENOMINATOR = 17 }; /* 3 (1 - beta) / (1 + beta), 4.3 */
enum { CUBE_TICKS_MAX = 32768 };                      /* 32 s: beyond this the cube would overflow */
enum { START_MIN_US = 4000, START_MAX_US = 16000 };   /* RFC 9406 4.3 */
enum { START_SAMPLES = 8, START_CSS_ROUNDS = 5, START_CSS_DIVISOR = 4 };

void utcp_cubic_init(struct utcp_cubic *c, uint32_t mss)
{
    *c = (struct utcp_cubic){.cwnd = (uint64_t)UTCP_INITIAL_WINDOW * mss, .ssthresh = UINT64_MAX, .mss = mss};
    c->start.min_us = c->start.last_min_us = UINT64_MAX;
}

/* Returns the largest integer whose cube is at most x. */
static uint32_t cube_root(uint64_t x)
{
    uint64_t root = 0;

    for (int bit = 20; bit >= 0; bit--) {
        uint64_t t = root | 1ULL << bit;

        if (t * t * t <= x)
            root = t;
    }
    return (uint32_t)root;
}

/* Returns C * ticks^3 in octets; a tick is 1/1024 s. */
static uint64_t cube(const struct utcp_cubic *c, uint64_t ticks)
{
    if (ticks > CUBE_TICKS_MAX)
        ticks = CUBE_TICKS_MAX;
    return (ticks * ticks * ticks >> 10) * c->mss * C_NUMERATOR / C_DENOMINATOR >> 20;
}

static void begin_epoch(struct utcp_cubic *c, uint64_t now_us)
{
    uint64_t segments = c->w_max > c->cwnd ? (c->w_max - c->cwnd) / c->mss : 0;

    if (segments > 1 << 24)
        segments = 1 << 24;
    c->epoch_us = now_us;
    c->k_1024 = cube_root((segments * C_DENOMINATOR / C_NUMERATOR) << 30);
    if (!segments)
        c->w_max = c->cwnd;
    c->w_est = c->cwnd;
}

/* W_cubic(t), RFC 9438 figure 1. */
static uint64_t w_cubic(const struct utcp_cubic *c, uint64_t t_us)
{
    uint64_t ticks = t_us * 1024 / 1000000, less;

    if (ticks >= c->k_1024)
        return c->w_max + cube(c, ticks - c->k_1024);
    less = cube(c, c->k_1024 - ticks);
    return c->w_max > less ? c->w_max - less : 0;
}

static void avoid(struct utcp_cubic *c, uint64_t octets, uint64_t srtt_us, uint64_t now_us)
{
    uint64_t target, est;

    if (!c->epoch_us)
        begin_epoch(c, now_us);
    est = octets * c->mss / c->cwnd;
    c->w_est += c->w_est < c->cwnd_prior ? est * ALPHA_NUMERATOR / ALPHA_DENOMINATOR : est;
    target = w_cubic(c, now_us - c->epoch_us + srtt_us);
    if (target > c->cwnd + c->cwnd / 2)
        target = c->cwnd + c->cwnd / 2;
    if (target > c->cwnd) {
        c->rest += (target - c->cwnd) * octets;
        c->cwnd += c->rest / c->cwnd;
        c->rest %= c->cwnd;
    }
    if (w_cubic(c, now_us - c->epoch_us) < c->w_est && c->cwnd < c->w_est)
        c->cwnd = c->w_est;
}

void utcp_cubic_acked(struct utcp_cubic *c, uint64_t octets, uint64_t srtt_us, uint64_t now_us)
{
    if (c->cwnd < c->ssthresh) {
        uint64_t space = c->ssthresh - c->cwnd, growth = c->start.css_rounds ? octets / START_CSS_DIVISOR : octets;

        if (growth <= space) {
            c->cwnd += growth;
            return;
        }
        c->cwnd = c->ssthresh;
        octets -= space < octets ? space : octets;
    }
    avoid(c, octets, srtt_us, now_us);
}

static void next_round(struct utcp_cubic *c, uint64_t next)
{
    struct utcp_hystart *s = &c->start;

    s->round_end = next;
    s->last_min_us = s->min_us;
    s->min_us = UINT64_MAX;
    s->samples = 0;
    if (s->css_rounds && ++s->css_rounds > START_CSS_ROUNDS) {
        c->ssthresh = c->cwnd;
        s->css_rounds = 0;
    }
}

void utcp_cubic_round_trip(struct utcp_cubic *c, uint64_t rtt_us, uint64_t una, uint64_t next)
{
    struct utcp_hystart *s = &c->start;
    uint64_t slack_us;

    if (c->cwnd >= c->ssthresh)
        return;
    if (una >= s->round_end)
        next_round(c, next);
    s->samples++;
    if (rtt_us < s->min_us)
        s->min_us = rtt_us;
    if (s->samples < START_SAMPLES || s->last_min_us == UINT64_MAX)
        return;
    slack_us = s->last_min_us / 8;
    slack_us = slack_us < START_MIN_US ? START_MIN_US : slack_us > START_MAX_US ? START_MAX_US : slack_us;
    if (!s->css_rounds && s->min_us >= s->last_min_us + slack_us) {
        s->baseline_us = s->min_us;
        s->css_rounds = 1;
    } else if (s->css_rounds && s->min_us < s->baseline_us) {
        s->css_rounds = 0; /* the longer round-trip time was not caused by our own queue */
    }
}

static uint64_t cubic_at_least(uint64_t octets, uint64_t least)
{
    return octets < least ? least : octets;
}

void utcp_cubic_congested(struct utcp_cubic *c, uint64_t flight)
{
    uint64_t window = flight < c->cwnd ? flight : c->cwnd;

    /* Fast convergence (RFC 9438 4.7). */
    c->w_max = c->cwnd < c->w_max ? c->cwnd * (BETA_DENOMINATOR + BETA_NUMERATOR) / (2 * BETA_DENOMINATOR) : c->cwnd;
    c->cwnd_prior = c->cwnd;
    c->ssthresh = cubic_at_least(window * BETA_NUMERATOR / BETA_DENOMINATOR, 2 * c->mss);
    c->epoch_us = 0;
    c->start.css_rounds = 0;
}

void utcp_cubic_idle(struct utcp_cubic *c)
{
    uint64_t restart = UTCP_INITIAL_WINDOW * c->mss;

    c->ssthresh = cubic_at_least(c->ssthresh, c->cwnd / 4 * 3);
    if (c->cwnd > restart)
        c->cwnd = restart;
    c->epoch_us = 0;
}

uint64_t utcp_prr_window(struct utcp_prr *p, const struct utcp_cubic *c, uint64_t delivered, uint64_t flight,
                         bool progress)
{
    uint64_t send = 0, limit;

    p->delivered += delivered;
    if (flight > c->ssthresh) {
        uint64_t due = (p->delivered * c->ssthresh + p->flight - 1) / p->flight;

        send = due > p->out ? due - p->out : 0;
    } else {
        limit = cubic_at_least(p->delivered > p->out ? p->delivered - p->out : 0, delivered) + (progress ? c->mss : 0);
        send = c->ssthresh - flight < limit ? c->ssthresh - flight : limit;
    }
    return flight + send;
}
