/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* unload.c - a plug-in that uses librddp.so is unloaded while threads of the library run. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <rddp/rddp.h>

/* The call of the shared library, not the one of the static library in this program. */
static void *shared(void *library, const char *name)
{
    void *call = dlsym(library, name);

    assert_non_null(call);
    return call;
}

/* dlclose() leaves the library where it is, so that its thread goes on and the context still works. */
static void with_an_open_context(void **state)
{
    struct rddp_context *(*open)(const struct rddp_context_attr *), *context;
    int (*close)(struct rddp_context *);
    char path[4096];
    void *library;

    (void)state;
    snprintf(path, sizeof(path), "%s/librddp.so", getenv("RDDP_BUILD_DIR"));
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail_msg("%s", dlerror());
    *(void **)&open = shared(library, "rddp_open");
    *(void **)&close = shared(library, "rddp_close");
    context = open(NULL);
    assert_non_null(context);
    assert_int_equal(dlclose(library), 0);
    assert_non_null(dlopen(path, RTLD_NOW | RTLD_NOLOAD)); /* otherwise the next line ends the program */
    assert_int_equal(close(context), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(with_an_open_context)};

    if (!getenv("RDDP_BUILD_DIR")) {
        print_message("RDDP_BUILD_DIR is not set\n");
        return 77;
    }
    return cmocka_run_group_tests_name("unload", tests, NULL, NULL);
}
