/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* field_words.c - the value of a field without the blanks around it, and its members between commas. */
#include <string.h>

#include "http/codec.h"

void http_trim_words(struct http_words *w)
{
    while (w->n && (w->at[0] == ' ' || w->at[0] == '\t')) {
        w->at++;
        w->n--;
    }
    while (w->n && (w->at[w->n - 1] == ' ' || w->at[w->n - 1] == '\t'))
        w->n--;
}

bool http_next_member(struct http_words *list, struct http_words *member)
{
    const char *comma = list->n ? memchr(list->at, ',', list->n) : NULL;
    if (!list->n)
        return false;
    *member = (struct http_words){list->at, comma ? (size_t)(comma - list->at) : list->n};
    list->at += member->n + (comma != NULL);
    list->n -= member->n + (comma != NULL);
    http_trim_words(member);
    return true;
}
