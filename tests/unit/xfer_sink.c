/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* xfer_sink.c - what a source may make a sink write: nothing but what was asked for, in the directory of the copy, and
 * each file whole. */
#include "tests/unit/xfer_sink.h"

/* --- what was asked for -------------------------------------------------------------------------------------- */

/* A step: a letter for the type of the entry, then its path. E is END. */
static enum xfer_result step(const char *text)
{
    static const enum xfer_type types[] = {
        ['d'] = XFER_DIRECTORY, ['e'] = XFER_DIRECTORY_END, ['l'] = XFER_LINK, ['t'] = XFER_TROUBLE};
    const char *path = text + 1;

    if (*text == 'E')
        return tell_end();
    if (*text == 'f')
        return tell_file(path, "x", 1, 0);
    if (*text == 's')
        return tell((struct xfer_record){
            .type = XFER_SKIP, .id = next_id(), .flags = XFER_SAME, .size = 1, .seconds = TIME, .path = path});
    return tell((struct xfer_record){.type = types[(unsigned char)*text],
                                     .id = next_id(),
                                     .mode = 0700,
                                     .result = *text == 't' ? XFER_NO_ACCESS : 0,
                                     .path = path,
                                     .name = "x"});
}

static void takes_what_was_asked_for(void **state)
{
    static const struct {
        enum order_asked asked;
        const char *steps[9];
        bool wrong; /* the last step must end the connection, and no other */
    } cases[] = {
        {ORDER_FILE, {"t", "E"}, false},
        {ORDER_FILE, {"E"}, true},
        {ORDER_FILE, {"d"}, true},
        {ORDER_FILE, {"l"}, true},
        {ORDER_FILE, {"fname"}, true},
        {ORDER_FILE, {"t", "t"}, true},
        {ORDER_FILE, {"t", "d"}, true},
        {ORDER_TREE, {"d", "e", "E"}, false},
        {ORDER_TREE, {"d", "fx", "dy", "fy/z", "dy/d", "ly/d/l", "ey/d", "ey", "sx"}, false},
        {ORDER_TREE, {"d", "ty", "t", "e", "E"}, false},
        {ORDER_TREE, {"t", "E"}, false},
        {ORDER_TREE, {"E"}, true},
        {ORDER_TREE, {"f"}, true},
        {ORDER_TREE, {"fname"}, true},
        {ORDER_TREE, {"d", "E"}, true},
        {ORDER_TREE, {"d", "dy", "e"}, true},
        {ORDER_TREE, {"d", "fy/z"}, true},
        {ORDER_TREE, {"d", "dy", "fz"}, true},
        {ORDER_TREE, {"d", "dy", "fyz"}, true},
        {ORDER_TREE, {"d", "dy", "fy"}, true},
        {ORDER_TREE, {"d", "d"}, true},
        {ORDER_TREE, {"d", "e", "fx"}, true},
        {ORDER_ANY, {"fx", "E"}, false},
        {ORDER_ANY, {"E"}, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin(cases[i].asked);
        for (int k = 0; k < 9 && cases[i].steps[k]; k++) {
            bool last = k == 8 || !cases[i].steps[k + 1];
            enum xfer_result result = step(cases[i].steps[k]);

            if ((result == XFER_PROTOCOL) != (last && cases[i].wrong))
                fail_msg("case %zu, step %d (%s): %s", i, k, cases[i].steps[k], the_link.trouble);
        }
    }
}

/* --- where it goes ------------------------------------------------------------------------------------------- */

static void links_stay_inside(void **state)
{
    static const struct {
        const char *path, *target;
        bool taken;
    } cases[] = {
        {"l", "x", true},          {"a/l", "../x", true},  {"a/b/l", "../../a/x", true}, {"l", "./x/./y", true},
        {"l", "x//y", true},       {"l", "..", false},     {"a/l", "../..", false},      {"a/b/l", "../../..", false},
        {"l", "a/../x", false},    {"l", "./../x", false}, {"a/l", "b/../x", false},     {"a/l", "..//./../x", false},
        {"l", "/etc/pass", false}, {"l", "", false},       {"l", "a/..", false},         {"a/l", "../a/b/..", false},
        {"l", "..x/...y", true},
    };

    (void)state;
    begin(ORDER_ANY);
    assert_int_equal(tell_directory("a"), XFER_OK);
    assert_int_equal(tell_directory("a/b"), XFER_OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        enum xfer_result result = tell_link(cases[i].path, cases[i].target);

        if (result != (cases[i].taken ? XFER_OK : XFER_LINK_OUT))
            fail_msg("%s -> %s: %s", cases[i].path, cases[i].target, xfer_result_text(result));
    }
}

/* Where a link lies must be what its path says: below a link to the top, ".." would lead out. */
static void entries_follow_no_link(void **state)
{
    (void)state;
    begin(ORDER_ANY);
    assert_int_equal(tell_directory("a"), XFER_OK);
    assert_int_equal(tell_directory("a/b"), XFER_OK);
    assert_int_equal(tell_link("a/b/up", "../.."), XFER_OK);
    assert_int_equal(tell_link("a/b/up/out", "../../secret"), XFER_LOOP);
    assert_int_equal(tell_file("a/b/up/file", "x", 1, 0), XFER_LOOP);
    assert_int_not_equal(tell_directory("a/b/up"), XFER_OK);
    assert_false(exists("copy/out"));
    assert_false(exists("copy/file"));
    /* A link is replaced, whatever it is. */
    assert_int_equal(tell_link("a/b/up", "b"), XFER_OK);
    assert_int_equal(tell_file("a/b/up", "x", 1, 0), XFER_OK);
}

/* --- what the sink has --------------------------------------------------------------------------------------- */

/* With --checksum only a digest shows that nothing needs to move. */
static void skips_what_it_compared(void **state)
{
    (void)state;
    begin(ORDER_ANY);
    assert_int_equal(tell_file("f", "abc", 3, 0), XFER_OK);
    assert_int_equal(tell_file("g", "abc", 3, 0), XFER_OK);
    assert_int_equal(tell_same("f", 3), XFER_OK);
    begin(ORDER_ANY);
    sink.checksum = true;
    assert_int_equal(tell_same("f", 3), XFER_PROTOCOL);
    begin(ORDER_ANY);
    sink.checksum = true;
    tell_offer("f", 3);
    assert_int_equal(said.type, XFER_HAVE);
    assert_int_equal(said.offset, 3);
    assert_int_equal(tell_same("f", 3), XFER_OK);
    tell_offer("f", 3);
    assert_int_equal(tell_same("g", 3), XFER_PROTOCOL); /* it is not the file that was compared */
    begin(ORDER_ANY);
    sink.checksum = true;
    tell_offer("f", 3);
    assert_int_equal(renameat(base, "copy/g", base, "copy/f"), 0);
    assert_int_equal(tell_same("f", 3), XFER_CHANGED); /* nor is this, by now */
}

/* Two files of one size and time: a part of the one is no part of the other. */
static void continues_what_was_offered(void **state)
{
    static uint8_t part[XFER_RESUMABLE + 1];
    struct xfer_record file = {.type = XFER_FILE, .mode = 0644, .size = sizeof(part), .seconds = TIME, .path = "f"};

    (void)state;
    memset(part, 'x', sizeof(part));
    begin(ORDER_ANY);
    file.id = 1;
    assert_int_equal(tell(file), XFER_OK);
    octets = part;
    assert_int_equal(tell((struct xfer_record){.type = XFER_DATA_HERE, .length = XFER_RESUMABLE}), XFER_OK);
    begin(ORDER_ANY); /* the connection was lost */
    for (int other = 1; other >= 0; other--) {
        begin(ORDER_ANY);
        tell_offer("f", sizeof(part));
        assert_int_equal(said.offset, XFER_RESUMABLE);
        file.offset = XFER_RESUMABLE;
        file.path = other ? "g" : "f";
        assert_int_equal(tell(file), other ? XFER_PROTOCOL : XFER_OK);
    }
    struct xfer_record end = {.type = XFER_FILE_END, .id = 1};

    digest_of_file(part, sizeof(part), 0, end.digest);
    assert_int_equal(tell((struct xfer_record){.type = XFER_DATA_HERE, .length = 1}), XFER_OK);
    assert_int_equal(tell(end), XFER_OK);
    assert_true(exists("copy/f"));
    assert_false(exists("copy/g"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(takes_what_was_asked_for, make_top, remove_top),
        cmocka_unit_test_setup_teardown(links_stay_inside, make_top, remove_top),
        cmocka_unit_test_setup_teardown(entries_follow_no_link, make_top, remove_top),
        cmocka_unit_test_setup_teardown(skips_what_it_compared, make_top, remove_top),
        cmocka_unit_test_setup_teardown(continues_what_was_offered, make_top, remove_top),
    };

    init_sink();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
