/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_object_search.c - test the search without kernel handles: the hints of a handle lead to its object, a known
 * object is found without a search, and the server does not repeat a search that failed. */
#include "tests/unit/nfs_object.h"

#include <limits.h>

#include "nfs/server/object_in.h"

/* Look up the handle of a path and return its contents. */
static struct handle look_into(const char *path, struct nfs3_fh *fh)
{
    struct handle h;

    *fh = look(path);
    assert_true(handle_get(objects->key, fh, &h));
    return h;
}

static enum nfs3_status status_of(const struct nfs3_fh *fh)
{
    struct object *object;
    enum nfs3_status status = object_get(objects, fh, &object);

    object_put(objects, object);
    return status;
}

/* Return true if the server must search for the object of this handle. */
static bool is_searched(const struct nfs3_fh *fh)
{
    struct object *object;
    bool search = false;
    enum nfs3_status status = object_find(objects, fh, &search, &object);

    assert_true(!search || status == NFS3ERR_JUKEBOX);
    object_put(objects, object);
    return search;
}

static void expect_path(const struct handle *h, const char *want)
{
    char path[PATH_MAX];
    bool known = names_path(objects->names, export.id, objects->place->inode, h->inode, path, sizeof(path));

    assert_int_equal(known, want != NULL);
    if (want)
        assert_string_equal(path, want);
}

/* A file has a name in each of several directories. Only the hints tell under which name look() saw the file. */
static void test_hints(void **state)
{
    static const char *const name[] = {"a/x", "b/x", "c/x", "d/x", "d/e/f/g/x"};
    struct nfs3_fh fh;

    (void)state;
    assert_int_equal(mkdir("in/a", 0755) | mkdir("in/b", 0755) | mkdir("in/c", 0755) | mkdir("in/d", 0755), 0);
    assert_int_equal(mkdir("in/d/e", 0755) | mkdir("in/d/e/f", 0755) | mkdir("in/d/e/f/g", 0755), 0);
    assert_int_equal(close(open("in/a/x", O_CREAT | O_WRONLY, 0600)), 0);
    assert_int_equal(link("in/a/x", "in/b/x") | link("in/a/x", "in/c/x") | link("in/a/x", "in/d/x"), 0);
    assert_int_equal(link("in/a/x", "in/d/e/f/g/x"), 0);
    for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++) {
        struct handle h;

        restart();
        h = look_into(name[i], &fh);
        assert_int_equal(h.count, strlen(name[i]) / 2 + 1);
        expect_path(&h, name[i]);
        restart();
        expect_path(&h, NULL);
        assert_int_equal(status_of(&fh), NFS3_OK);
        expect_path(&h, name[i]);
    }
}

/* Look up paths with one name fewer than a handle has hints, as many names, one more and two more. */
static void test_deep(void **state)
{
    char path[200] = "in";
    struct nfs3_fh fh[4];
    struct handle h;

    (void)state;
    for (unsigned i = 0; i < HANDLE_HINTS_MAX + 2; i++) {
        strcat(path, "/d");
        assert_int_equal(mkdir(path, 0755), 0);
        if (i + 3 > HANDLE_HINTS_MAX) {
            h = look_into(path + 3, &fh[i + 3 - HANDLE_HINTS_MAX - 1]);
            assert_int_equal(h.count, i + 1 < HANDLE_HINTS_MAX ? i + 1 : HANDLE_HINTS_MAX);
        }
    }
    for (unsigned i = 0; i < 4; i++) {
        restart();
        assert_int_equal(status_of(&fh[i]), NFS3_OK);
    }
}

static void test_miss(void **state)
{
    struct nfs3_fh fh, again;

    (void)state;
    assert_int_equal(close(open("in/file", O_CREAT | O_WRONLY, 0600)), 0);
    fh = look("file");
    assert_int_equal(rename("in/file", "file"), 0);
    assert_true(is_searched(&fh));
    assert_int_equal(status_of(&fh), NFS3ERR_STALE);
    assert_false(is_searched(&fh));
    assert_int_equal(rename("file", "in/moved"), 0);
    assert_int_equal(status_of(&fh), NFS3ERR_STALE); /* the server does not search again so soon */
    again = look("moved");
    assert_int_equal(status_of(&fh), NFS3_OK); /* look() has seen the file since then */
    assert_memory_equal(&fh, &again, sizeof(fh));
}

/* The server searches only once for nearly every handle that has no object. After a restart the server still finds a
 * valid handle. */
static void test_misses(void **state)
{
    enum { MANY = SEARCH_MISSES / 8 };
    struct nfs3_fh fh, stale;
    struct handle h;
    unsigned again = 0;

    (void)state;
    assert_int_equal(close(open("in/file", O_CREAT | O_WRONLY, 0600)), 0);
    h = look_into("file", &fh);
    for (int turn = 0; turn < 2; turn++)
        for (uint64_t i = 0; i < MANY; i++) {
            h.inode = ((uint64_t)1 << 40) + i;
            handle_put(objects->key, &h, &stale);
            again += turn && is_searched(&stale);
            if (!turn)
                assert_int_equal(status_of(&stale), NFS3ERR_STALE);
        }
    /* The server forgets a few handles that share a place in its table with too many others. */
    assert_in_range(again, 0, MANY / 50);
    restart();
    assert_true(is_searched(&fh));
    assert_int_equal(status_of(&fh), NFS3_OK);
    assert_false(is_searched(&fh));
}

/* An object with the same inode number and another birth time is another object. */
static void test_birth(void **state)
{
    struct nfs3_fh fh;
    struct handle h;

    (void)state;
    assert_int_equal(close(open("in/file", O_CREAT | O_WRONLY, 0600)), 0);
    h = look_into("file", &fh);
    if (!h.birth)
        skip();
    h.birth++;
    handle_put(objects->key, &h, &fh);
    assert_int_equal(status_of(&fh), NFS3ERR_STALE);
    h.birth--;
    h.inode = UINT64_MAX;
    handle_put(objects->key, &h, &fh);
    assert_int_equal(status_of(&fh), NFS3ERR_STALE);
}

static void test_names(void **state)
{
    struct handle h = {.kind = HANDLE_INODE, .export = 1, .inode = 2, .birth = 3, .count = 1, .hint = {9}}, new = h;
    char path[8];

    (void)state;
    names_put(objects->names, &h, 1, "abc");
    assert_true(names_path(objects->names, 1, 1, 2, path, 8));
    assert_string_equal(path, "abc");
    assert_false(names_path(objects->names, 2, 1, 2, path, 8)); /* the number of another export */
    assert_false(names_path(objects->names, 1, 1, 3, path, 8));
    assert_false(names_path(objects->names, 1, 1, 1, path, 8)); /* the root has no name */
    new.hint[0] = 7;
    names_put(objects->names, &new, 1, "ab"); /* a moved object keeps its hint and thus its handle */
    assert_int_equal(new.hint[0], 9);
    new = h;
    new.birth = 4;
    new.hint[0] = 7;
    names_put(objects->names, &new, 1, "ab"); /* another birth time makes another object */
    assert_int_equal(new.hint[0], 7);
    new.inode = 5;
    names_put(objects->names, &new, 2, "cd");
    assert_true(names_path(objects->names, 1, 1, 5, path, 7));
    assert_string_equal(path, "ab/cd");
    assert_false(names_path(objects->names, 1, 1, 5, path, 6)); /* a removed final slash needs room as well */
    new.inode = 2;
    names_put(objects->names, &new, 5, "loop");
    assert_false(names_path(objects->names, 1, 1, 5, path, 8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_hints, setup, teardown),
        cmocka_unit_test_setup_teardown(test_deep, setup, teardown),
        cmocka_unit_test_setup_teardown(test_miss, setup, teardown),
        cmocka_unit_test_setup_teardown(test_misses, setup, teardown),
        cmocka_unit_test_setup_teardown(test_birth, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
