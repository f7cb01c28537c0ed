/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* http_listing.c - all names of a directory, once, in order as far as the limits allow, and nothing in them that a
 * browser or a terminal would obey. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* The tool is a program: what is to be tested of it comes in by its source. */
#include "http/listing.c"
#include "http/target.c"
#include "tools/xfer/text.c"

/* Names of NAME octets: WHOLE of them and one of REST are as many octets as are sorted. */
enum { NAME = 254, WHOLE = HTTP_LISTING_MAX / (NAME + 2), REST = HTTP_LISTING_MAX % (NAME + 2) };

static char dir[] = "/tmp/rddp-listing-XXXXXX";

static void name_of(char name[NAME + 1], uint32_t i)
{
    memset(name, 'x', NAME);
    name[NAME] = 0;
    /* Made in an order that is not that of the names. */
    snprintf(name, 9, "%08x", i * 2654435761U);
    name[8] = 'x';
}

static void touch(const char *name)
{
    char path[sizeof(dir) + NAME + 8];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

    assert_true(fd >= 0);
    close(fd);
}

/* Lists; returns how many lines there are, and whether they are in order. */
static uint32_t list_all(struct http_listing *listing, bool *sorted)
{
    char lines[HTTP_LISTING_STEP + 1], last[XFER_TEXT] = "";
    uint32_t count = 0;
    size_t n;

    *sorted = true;
    while ((n = http_listing_lines(listing, lines, HTTP_LISTING_STEP))) {
        lines[n] = 0;
        for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n"), count++) {
            *sorted &= strcmp(line, last) > 0;
            snprintf(last, sizeof(last), "%.1000s", line);
        }
    }
    return count;
}

static uint32_t list_folder(bool *sorted)
{
    struct http_listing listing;

    assert_int_equal(http_listing_open(&listing, open(dir, O_RDONLY | O_DIRECTORY)), 0);
    uint32_t count = list_all(&listing, sorted);

    http_listing_close(&listing);
    http_listing_close(&listing); /* safe when nothing is open */
    return count;
}

/* As many octets of names as the limit has, and one more. */
static void many_names(void **state)
{
    char name[NAME + 1];
    bool sorted;

    (void)state;
    for (uint32_t i = 0; i + 1 < WHOLE; i++) {
        name_of(name, i);
        touch(name);
    }
    name_of(name, WHOLE);
    name[NAME - 1] = 0;
    assert_int_equal(REST, 0);
    touch(name); /* one octet less than the limit */
    assert_int_equal(list_folder(&sorted), WHOLE);
    assert_true(sorted);
    char old[sizeof(dir) + NAME + 8], new[sizeof(dir) + NAME + 8];
    snprintf(old, sizeof(old), "%s/%s", dir, name);
    strcat(strcpy(new, old), "y");
    assert_int_equal(rename(old, new), 0); /* the limit */
    assert_int_equal(list_folder(&sorted), WHOLE);
    assert_true(sorted);
    touch("y"); /* more */
    assert_int_equal(list_folder(&sorted), WHOLE + 1);
    assert_false(sorted);
}

/* Of listings at once as many are sorted as the limit says; the next one is sorted again when one of them is over. */
static void many_listings(void **state)
{
    static struct http_listing listing[HTTP_LISTING_SORTS + 1];
    char name[3] = "a";

    (void)state;
    for (; *name <= 'z'; ++*name)
        touch(name);
    for (int i = 0; i <= HTTP_LISTING_SORTS; i++) {
        assert_int_equal(http_listing_open(&listing[i], open(dir, O_RDONLY | O_DIRECTORY)), 0);
        assert_true((listing[i].text != NULL) == (i < HTTP_LISTING_SORTS));
    }
    for (int i = 0; i <= HTTP_LISTING_SORTS; i++) {
        bool sorted;

        assert_int_equal(list_all(&listing[i], &sorted), 26);
        assert_true(sorted || i == HTTP_LISTING_SORTS);
        http_listing_close(&listing[i]);
    }
    assert_int_equal(sorts, 0);
}

static void names_that_mean_more(void **state)
{
    static const char *const names[][2] = {
        {"\x1b[2J", "<a href=\"./%1B%5B2J\">\\x1b[2J</a><br>"},
        {"a\nb", "<a href=\"./a%0Ab\">a\\nb</a><br>"},
        {"<b>&\"", "<a href=\"./%3Cb%3E%26%22\">&lt;b&gt;&amp;\"</a><br>"},
        {"a&lt;b", "<a href=\"./a%26lt;b\">a&amp;lt;b</a><br>"}, /* a browser would ask for a<b */
        {"a:b", "<a href=\"./a:b\">a:b</a><br>"},
    };
    char line[HTTP_LISTING_STEP + 1];

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t n = put_entry(line, names[i][0], false);

        assert_int_equal(n, strlen(names[i][1]) + 1);
        assert_memory_equal(line, names[i][1], n - 1);
    }
    /* The longest line has space. */
    char longest[XFER_NAME + 1];
    memset(longest, '&', XFER_NAME);
    longest[XFER_NAME] = 0;
    assert_true(put_entry(line, longest, true) <= ENTRY_MAX);
    memset(longest, 1, XFER_NAME);
    assert_true(put_entry(line, longest, true) <= ENTRY_MAX);
}

static int listing_set_up(void **state)
{
    (void)state;
    strcpy(dir + sizeof(dir) - 7, "XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int listing_tear_down(void **state)
{
    char path[sizeof(dir) + XFER_NAME + 2];
    DIR *names = opendir(dir);
    const struct dirent *entry;

    (void)state;
    while (names && (entry = readdir(names))) {
        snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
        unlink(path);
    }
    if (names)
        closedir(names);
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(many_names, listing_set_up, listing_tear_down),
        cmocka_unit_test_setup_teardown(many_listings, listing_set_up, listing_tear_down),
        cmocka_unit_test(names_that_mean_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
