/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* input.h - reads an input from its front. After its end all values are 0. */
#ifndef FUZZ_LIB_INPUT_H
#define FUZZ_LIB_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct input {
    const uint8_t *at, *end;
};

static inline size_t input_left(const struct input *in)
{
    return (size_t)(in->end - in->at);
}

static inline uint8_t input8(struct input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

static inline uint16_t input16(struct input *in)
{
    uint8_t high = input8(in);

    return (uint16_t)(high << 8 | input8(in));
}

/* Copies the next octets, at most `most`. Returns their number. */
static inline size_t input_octets(struct input *in, uint8_t *to, size_t most)
{
    size_t n = input_left(in) < most ? input_left(in) : most;

    memcpy(to, in->at, n);
    in->at += n;
    return n;
}

#endif
