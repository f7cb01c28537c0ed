/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* unsupported.h - the answers of calls that are not supported. The macros stand for whole functions, without arguments,
 * since no answer depends on one; a file that uses them includes no header that declares the call. */
#ifndef VERBS_UNSUPPORTED_H
#define VERBS_UNSUPPORTED_H

#include <errno.h>
#include <stddef.h>

/* An errno. */
#define ANSWER_CODE(call) \
    int call(void); \
    int call(void) \
    { \
        return EOPNOTSUPP; \
    }
/* No object, with errno. */
#define ANSWER_NO_OBJECT(call) \
    void *call(void); \
    void *call(void) \
    { \
        errno = EOPNOTSUPP; \
        return NULL; \
    }
/* -1, with errno. */
#define ANSWER_MINUS_ONE(call) \
    int call(void); \
    int call(void) \
    { \
        errno = EOPNOTSUPP; \
        return -1; \
    }
/* The same, of a call that returns a size or an offset. */
#define ANSWER_MINUS_ONE_LONG(call) \
    long call(void); \
    long call(void) \
    { \
        errno = EOPNOTSUPP; \
        return -1; \
    }
/* Nothing happens. */
#define ANSWER_NOTHING(call) \
    void call(void); \
    void call(void) \
    { \
    }

#endif
