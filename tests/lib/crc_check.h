/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* crc_check.h - checks that any CRC based on base/crc.h must pass, against bitwise arithmetic. */
#ifndef TESTS_LIB_CRC_CHECK_H
#define TESTS_LIB_CRC_CHECK_H

#include "base/crc.h"

/* A CRC under test. */
struct crc_subject {
    const struct crc_poly *poly;
    const struct crc_variant *variants;
    uint32_t (*crc)(uint32_t crc, const void *p, size_t n);
    uint32_t (*copy)(uint32_t crc, void *dst, const void *src, size_t n);
    const char *(*name)(void);
};

/* Each is a cmocka test whose *state is a struct crc_subject. */
void crc_first_calls_together(void **state);
void crc_constants(void **state);
void crc_tables(void **state);
void crc_calls_use_first_variant_that_runs(void **state);
void crc_every_length_and_alignment(void **state);
void crc_copy_at_every_length_and_alignment(void **state);
void crc_nothing_outside_is_touched(void **state);
void crc_source_may_change(void **state);
void crc_chaining(void **state);
void crc_big(void **state);

/* The start of a test table, in this order: crc_first_calls_together must run first. */
#define CRC_CHECKS(subject) \
    cmocka_unit_test_prestate(crc_first_calls_together, subject), cmocka_unit_test_prestate(crc_constants, subject), \
        cmocka_unit_test_prestate(crc_tables, subject), \
        cmocka_unit_test_prestate(crc_calls_use_first_variant_that_runs, subject), \
        cmocka_unit_test_prestate(crc_every_length_and_alignment, subject), \
        cmocka_unit_test_prestate(crc_copy_at_every_length_and_alignment, subject), \
        cmocka_unit_test_prestate(crc_nothing_outside_is_touched, subject), \
        cmocka_unit_test_prestate(crc_source_may_change, subject), cmocka_unit_test_prestate(crc_chaining, subject), \
        cmocka_unit_test_prestate(crc_big, subject)

/* xorshift: the same seed, which must not be 0, always gives the same numbers. */
uint32_t crc_random(uint32_t *seed);
void crc_fill(uint8_t *p, size_t n, uint32_t seed);

/* Returns x^k mod P in the register's form: bit 31 is x^0. */
uint32_t crc_power_of_x(const struct crc_poly *poly, unsigned k);

#endif
