/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* date.c - dates as HTTP writes them (RFC 9110, section 5.6.7). */
#include <stdio.h>
#include <string.h>

#include "http/codec.h"

enum { DAY_S = 86400, YEAR_MAX = 9999 };

static const char day_names[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
static const char month_names[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

struct date {
    int64_t year;
    int month, day, hour, minute, second; /* month: from 0 */
};

/* Days from 1970-01-01 to this one. A year begins in March here, so that the day of a leap year is its last. */
static int64_t days_of(const struct date *date)
{
    int64_t year = date->year - (date->month < 2), month = (date->month + 10) % 12;
    return 365 * year + year / 4 - year / 100 + year / 400 + (month * 306 + 5) / 10 + date->day - 719469;
}

static void civil_of(struct date *date, int64_t days)
{
    int64_t era_day = days + 719468, era = era_day / 146097, in_era = era_day % 146097;
    int64_t year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t in_year = in_era - (365 * year + year / 4 - year / 100), month = (5 * in_year + 2) / 153;
    date->day = (int)(in_year - (153 * month + 2) / 5) + 1;
    date->month = (int)((month + 2) % 12);
    date->year = 400 * era + year + (date->month < 2);
}

void http_format_date(char text[HTTP_DATE_MAX], int64_t seconds)
{
    static const struct date last = {YEAR_MAX, 11, 31, 0, 0, 0};
    int64_t most = (days_of(&last) + 1) * DAY_S - 1, at = seconds < 0 ? 0 : seconds > most ? most : seconds;
    int in_day = (int)(at % DAY_S);
    struct date date;
    civil_of(&date, at / DAY_S);
    snprintf(text, HTTP_DATE_MAX, "%s, %02d %s %04d %02d:%02d:%02d GMT", day_names[(at / DAY_S + 4) % 7], date.day,
             month_names[date.month], (int)date.year, in_day / 3600, in_day / 60 % 60, in_day % 60);
}

static int month_of(const char *name)
{
    for (int i = 0; i < 12; i++) {
        if (!strcmp(month_names[i], name))
            return i;
    }
    return -1;
}

static int month_days(const struct date *date)
{
    static const int days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = date->year % 4 == 0 && (date->year % 100 || date->year % 400 == 0);
    return days[date->month] + (date->month == 1 && leap);
}

/* The year of this century, or of the last if that is more than 50 years ahead. */
static int64_t whole_year(int64_t two_digits, int64_t now)
{
    struct date today;
    civil_of(&today, now / DAY_S);
    int64_t year = today.year - today.year % 100 + two_digits;
    return year > today.year + 50 ? year - 100 : year;
}

int64_t http_parse_date(struct http_words words, int64_t now)
{
    char text[HTTP_DATE_MAX + 8], month[4] = "";
    struct date date;
    int year, n = 0;
    if (words.n >= sizeof(text))
        return HTTP_NO_DATE;
    memcpy(text, words.at, words.n);
    text[words.n] = 0;
    const char *comma = strchr(text, ',');
    const char *rest = comma ? comma + 1 : text;
    if (comma && sscanf(rest, " %2d %3[A-Za-z] %4d %2d:%2d:%2d GMT%n", &date.day, month, &year, &date.hour,
                        &date.minute, &date.second, &n) == 6) {
        date.year = year;
    } else if (comma && sscanf(rest, " %2d-%3[A-Za-z]-%2d %2d:%2d:%2d GMT%n", &date.day, month, &year, &date.hour,
                               &date.minute, &date.second, &n) == 6) {
        date.year = whole_year(year, now);
    } else if (!comma && sscanf(rest, "%*3[A-Za-z] %3[A-Za-z] %2d %2d:%2d:%2d %4d%n", month, &date.day, &date.hour,
                                &date.minute, &date.second, &year, &n) == 6) {
        date.year = year;
    }
    if (!n || rest[n])
        return HTTP_NO_DATE;
    date.month = month_of(month);
    if (date.month < 0 || date.year < 1970 || date.day < 1 || date.day > month_days(&date) || date.hour < 0 ||
        date.hour > 23 || date.minute < 0 || date.minute > 59 || date.second < 0 || date.second > 60)
        return HTTP_NO_DATE;
    return days_of(&date) * DAY_S + date.hour * 3600 + date.minute * 60 + date.second;
}
