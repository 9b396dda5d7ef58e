/* test_special.c: everything that is not a regular file in a readable directory: links, loops,
 * FIFOs, sockets, devices, directories without permission, vanishing entries, I/O errors, and the
 * run's own files.
 *
 * readdir() is wrapped so that a test can remove a file after it was listed and before it is read,
 * can make a read fail, and can hide the types of entries, as some file systems do. */
#include "test_walk.h"

#include <dirent.h>
#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

static const char *const here[] = {"tree"};

static struct {
    const char *vanishing; /* removed as soon as it is listed */
    unsigned fail_after;   /* number of entries before EIO; 0: never */
    bool hide_types;
    struct stop *stop; /* requested after stop_after entries */
    unsigned stop_after;
    unsigned listed;
} trick;

struct dirent *readdir(DIR *stream)
{
    static struct dirent *(*real)(DIR *);
    if (!real) {
        *(void **)&real = dlsym(RTLD_NEXT, "readdir64");
        if (!real)
            *(void **)&real = dlsym(RTLD_NEXT, "readdir");
    }
    if (trick.fail_after && trick.listed == trick.fail_after) {
        trick.listed++;
        errno = EIO;
        return NULL;
    }
    struct dirent *entry = real(stream);
    if (!entry)
        return NULL;
    trick.listed++;
    if (trick.hide_types)
        entry->d_type = DT_UNKNOWN;
    if (trick.vanishing && strcmp(entry->d_name, trick.vanishing) == 0 &&
        unlinkat(dirfd(stream), entry->d_name, 0) != 0)
        unlinkat(dirfd(stream), entry->d_name, AT_REMOVEDIR);
    if (trick.stop && trick.listed == trick.stop_after)
        stop_request(trick.stop, STOP_SIGNAL);
    return entry;
}

static int setup(void **state)
{
    memset(&trick, 0, sizeof trick);
    int result = scratch_setup(state);
    put_directory("tree");
    return result;
}

#define special_test(function) cmocka_unit_test_setup_teardown(function, setup, scratch_teardown)

static void put_link(const char *target, const char *path)
{
    assert_int_equal(symlink(target, path), 0);
}

/* --- no files -------------------------------------------------------------------------------- */

static void put_special(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "tree/socket.png"};
    put_file("tree/file.jpg", "x");
    assert_int_equal(mkfifo("tree/fifo.jpg", 0666), 0);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
    put_link("/dev/null", "tree/null.jpg");
    put_link("fifo.jpg", "tree/to-fifo.jpg");
    put_link("file.jpg", "tree/to-file");
}

static void test_special_files(void **state)
{
    (void)state;
    put_special();
    struct walk_config config = config_for(here);
    for (int i = 0; i < 2; i++) {
        assert_walks(&config, "fifo.jpg not-an-image\nfile.jpg\nnull.jpg not-an-image\n"
                              "socket.png not-an-image\nto-fifo.jpg not-an-image\nto-file\n");
        trick.hide_types = true;
    }
    struct walk *walk = open_walk(&config);
    assert_non_null(strstr(item_at(walk, 0).entry.failure.message, "FIFO"));
    assert_non_null(strstr(item_at(walk, 1).entry.failure.message, "device"));
    assert_non_null(strstr(item_at(walk, 0).entry.failure.message, "socket"));
    walk_close(&walk);

    /* The same entries given as SOURCEs have the same results. */
    const char *sources[] = {"tree/fifo.jpg", "tree/to-file", "/dev/null"};
    config = config_for(sources);
    config.options.source_count = 3;
    assert_walks(&config, "fifo.jpg not-an-image\nto-file\nnull not-an-image\n");

    /* A FIFO that has replaced a file does not block the reader. */
    walk = open_walk(&config);
    int fd = open_member(walk, 0, "fifo.jpg");
    assert_true(fd >= 0);
    close(fd);
    walk_close(&walk);
}

/* --- links ----------------------------------------------------------------------------------- */

static void test_broken_links(void **state)
{
    (void)state;
    put_link("nowhere", "tree/dangling.jpg");
    put_link("nowhere", "tree/dangling");
    put_link("itself.png", "tree/itself.png");
    put_link("b.txt", "tree/a.txt");
    put_link("a.txt", "tree/b.txt");
    put_file("tree/file", "");
    put_link("file/x", "tree/through.jpg");
    struct walk_config config = config_for(here);
    for (int i = 0; i < 4; i++) {
        trick.hide_types = i % 2;
        config.options.follow_symlinks = i >= 2;
        assert_walks(&config, "a.txt not-an-image\nb.txt not-an-image\ndangling not-an-image\n"
                              "dangling.jpg unreadable\nfile\nitself.png unreadable\n"
                              "through.jpg unreadable\n");
    }
    struct walk *walk = open_walk(&config);
    assert_int_equal(item_at(walk, 0).entry.failure.error_number, ELOOP);
    assert_int_equal(item_at(walk, 1).entry.failure.error_number, ENOENT);
    assert_int_equal(item_at(walk, 0).entry.failure.error_number, ENOENT);
    assert_int_equal(item_at(walk, 1).entry.failure.error_number, ELOOP);
    assert_int_equal(item_at(walk, 0).entry.failure.error_number, ENOTDIR);
    walk_close(&walk);

    /* As SOURCEs: a missing image, and a missing directory. */
    const char *image[] = {"tree/dangling.jpg"}, *other[] = {"tree/dangling"};
    config = config_for(image);
    assert_walks(&config, "dangling.jpg unreadable\n");
    config = config_for(other);
    struct error err = fail_to_open(&config, STATUS_USAGE);
    assert_non_null(strstr(err.sentence, "symbolic link"));
}

static void test_linked_directories(void **state)
{
    (void)state;
    put_directory("tree/d");
    put_file("tree/d/x.jpg", "");
    put_directory("outside");
    put_file("outside/y.jpg", "");
    put_directory("outside/sub");
    put_file("outside/sub/z.jpg", "");
    put_link("../outside", "tree/link");
    put_link("d", "tree/same");
    struct walk_config config = config_for(here);
    for (int i = 0; i < 2; i++) {
        config.options.follow_symlinks = false;
        assert_walks(&config, "d/x.jpg\n");
        config.options.follow_symlinks = true;
        assert_walks(&config, "d/x.jpg\nlink/sub/z.jpg\nlink/y.jpg\nsame/x.jpg\n");
        trick.hide_types = true;
    }
    const char *exclude[] = {"link/"};
    config.options.exclude = exclude;
    config.options.exclude_count = 1;
    assert_walks(&config, "d/x.jpg\nsame/x.jpg\n");

    /* Files that were found through links are opened through links. */
    config.options.exclude_count = 0;
    struct walk *walk = open_walk(&config);
    int fd = open_member(walk, 0, "link/sub/z.jpg");
    assert_true(fd >= 0);
    close(fd);
    walk_close(&walk);
}

static void test_loops(void **state)
{
    (void)state;
    put_directory("tree/a");
    put_directory("tree/a/b");
    put_directory("tree/c");
    put_file("tree/a/b/x", "");
    put_file("tree/c/y", "");
    put_link(".", "tree/a/self");
    put_link("..", "tree/a/b/up");
    put_link("../..", "tree/a/b/top");
    put_link("../c", "tree/a/to-c");
    put_link("../a", "tree/c/to-a");
    struct walk_config config = config_for(here);
    config.options.follow_symlinks = true;
    /* a/to-c/to-a is a, and c/to-a/to-c is c. */
    const char *expected = "a/b/x\na/to-c/y\nc/to-a/b/x\nc/y\n";
    assert_walks(&config, expected);
    trick.hide_types = true;
    assert_walks(&config, expected);

    /* A link leads out of the SOURCE and back in from above: the loop includes a plain
     * directory. */
    put_directory("tree/c/deep");
    put_file("tree/c/deep/w", "");
    put_link("../../..", "tree/c/deep/above");
    const char *deep[] = {"tree/c/deep"};
    config = config_for(deep);
    config.options.follow_symlinks = true;
    const char *exclude[] = {"spool", "to-*", "self", "up", "top"};
    config.options.exclude = exclude;
    config.options.exclude_count = 5;
    assert_walks(&config, "above/tree/a/b/x\nabove/tree/c/y\nw\n");
}

/* More consecutive links than the kernel follows in one path: the walk reports an entry that could
 * not be opened by its path later. */
static void test_many_links_in_a_row(void **state)
{
    (void)state;
    enum { LINKS = 60 };
    char path[64], target[64];
    put_directory("dirs");
    for (int i = 0; i < LINKS; i++) {
        snprintf(path, sizeof path, "dirs/%d", i);
        put_directory(path);
        snprintf(path, sizeof path, "dirs/%d/f.jpg", i);
        put_file(path, "");
    }
    for (int i = 0; i + 1 < LINKS; i++) {
        snprintf(path, sizeof path, "dirs/%d/n", i);
        snprintf(target, sizeof target, "../%d", i + 1);
        put_link(target, path);
    }
    const char *first[] = {"dirs/0"};
    struct walk_config config = config_for(first);
    config.options.follow_symlinks = true;
    struct walk *walk = open_walk(&config);
    struct walk_item item;
    struct error err = ERROR_INIT;
    unsigned unreadable = 0;
    while (walk_next(walk, &item, &err) == STATUS_OK) {
        if (item.entry.failure.reason == REASON_NONE) {
            int fd = open_member(walk, 0, item.path);
            assert_true(fd >= 0);
            close(fd);
        } else {
            assert_int_equal(item.entry.failure.reason, REASON_UNREADABLE);
            assert_int_equal(item.entry.failure.error_number, ELOOP);
            assert_int_equal(item.path[item.path_length - 1], '/');
            unreadable++;
        }
    }
    assert_int_equal(unreadable, 1);
    assert_true(walk_count(walk) > 30);
    walk_close(&walk);
}

/* --- permissions and errors ------------------------------------------------------------------ */

static void walk_without_permission(void)
{
    struct walk_config config = config_for(here);
    assert_walks(&config, "a.jpg\nclosed/ unreadable\nlisted/b.jpg unreadable\n"
                          "listed/sub/ unreadable\nunread.jpg\n");
    struct walk *walk = open_walk(&config);
    assert_int_equal(item_at(walk, 1).entry.failure.error_number, EACCES);
    assert_int_equal(open_member(walk, 0, "unread.jpg"), -1);
    assert_int_equal(errno, EACCES);
    int fd = open_member(
        walk, 0, "a.jpg"); /* if we are root, the file belongs to another user: no O_NOATIME */
    assert_true(fd >= 0);
    close(fd);
    walk_close(&walk);

    /* An include glob does not hide directories that could not be read. */
    const char *include[] = {"a.*"};
    config.options.include = include;
    config.options.include_count = 1;
    assert_walks(&config, "a.jpg\nclosed/ unreadable\nlisted/sub/ unreadable\n");

    const char *closed[] = {"tree/closed"};
    config = config_for(closed);
    struct error err = fail_to_open(&config, STATUS_FAILED);
    assert_int_equal(err.native, EACCES);
    assert_non_null(strstr(err.sentence, "tree/closed"));

    const char *inside[] = {"tree/closed/c.jpg"};
    config = config_for(inside);
    err = fail_to_open(&config, STATUS_FAILED);
    assert_int_equal(err.native, EACCES);
}

static void test_permissions(void **state)
{
    (void)state;
    put_file("tree/a.jpg", "");
    put_file("tree/unread.jpg", "");
    put_directory("tree/closed");
    put_file("tree/closed/c.jpg", "");
    put_directory("tree/listed");
    put_file("tree/listed/b.jpg", "");
    put_directory("tree/listed/sub");
    assert_int_equal(chmod("spool", 0777), 0);
    assert_int_equal(chmod("tree/unread.jpg", 0), 0);
    assert_int_equal(chmod("tree/closed", 0), 0);
    assert_int_equal(chmod("tree/listed", 0444), 0);
    as_unprivileged(walk_without_permission);
    assert_int_equal(chmod("tree/closed", 0700), 0);
    assert_int_equal(chmod("tree/listed", 0700), 0);
}

/* Running out of descriptors is an error of the run, not a failure of a directory. */
static void walk_without_descriptors(void)
{
    int next = dup(STDERR_FILENO);
    assert_true(next >= 0);
    close(next);
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = (rlim_t)next + 2; /* room for the working directory and the source */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    struct walk_config config = config_for(here);
    struct error err = fail_to_open(&config, STATUS_FAILED);
    assert_int_equal(err.native, EMFILE);
    assert_non_null(strstr(err.sentence, "open the directory"));
}

static void test_no_descriptors(void **state)
{
    (void)state;
    put_directory("tree/d");
    put_file("tree/d/a.jpg", "");
    as_unprivileged(walk_without_descriptors);
}

static void test_vanishing(void **state)
{
    (void)state;
    struct walk_config config = config_for(here);
    put_file("tree/a.jpg", "");
    put_file("tree/gone.jpg", "");
    trick.vanishing = "gone.jpg";
    assert_walks(&config, "a.jpg\ngone.jpg vanished\n");
    put_link("a.jpg", "tree/gone.jpg");
    assert_walks(&config, "a.jpg\ngone.jpg vanished\n");
    put_directory("tree/gone.jpg");
    assert_walks(&config, "a.jpg\ngone.jpg/ vanished\n");
    trick.hide_types = true;
    put_directory("tree/gone.jpg");
    assert_walks(&config, "a.jpg\ngone.jpg vanished\n");
}

static void test_read_error(void **state)
{
    (void)state;
    put_directory("tree/d");
    for (int i = 0; i < 9; i++) {
        char path[32];
        snprintf(path, sizeof path, "tree/%d.jpg", i);
        put_file(path, "");
    }
    struct walk_config config = config_for(here);
    trick.fail_after = 6; /* of 12 entries, including "." and ".." */
    struct walk *walk = open_walk(&config);
    assert_in_range(walk_count(walk), 4, 7);
    struct walk_item item = item_at(walk, 0);
    assert_string_equal(item.path, "./");
    assert_int_equal(item.entry.failure.reason, REASON_UNREADABLE);
    assert_int_equal(item.entry.failure.error_number, EIO);
    assert_int_equal(item_at(walk, 0).entry.failure.reason, REASON_NONE);
    walk_close(&walk);
}

static void test_stop(void **state)
{
    (void)state;
    for (int i = 0; i < 3000; i++) {
        char path[32];
        snprintf(path, sizeof path, "tree/%d", i);
        put_file(path, "");
    }
    struct stop stop = {0};
    struct walk_config config = config_for(here);
    config.watch.stop = &stop;
    trick.stop = &stop;
    trick.stop_after = 500;
    fail_to_open(&config, STATUS_INTERRUPTED);
    assert_in_range(trick.listed, 500, 1500);
}

/* --- the run's own files --------------------------------------------------------------------- */

static void test_skipped(void **state)
{
    (void)state;
    static const char *const files[] = {
        "tree/out.h5",         "tree/out.h5.tmp-123", "tree/out.h5.tmp-",
        "tree/out.h5.tmp",     "tree/out.h5.old",     "tree/d/out.h5",
        "tree/d/out.h5.tmp-1", "tree/x.jpg",          "tree/out.h5.partial/records"};
    put_directory("tree/d");
    put_directory("tree/out.h5.partial");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        put_file(files[i], "");
    assert_int_equal(link("tree/out.h5", "tree/d/hard.jpg"), 0);
    put_link("out.h5", "tree/soft.jpg");
    put_link("out.h5.partial", "tree/work");
    const char *skip[] = {"tree/d/../out.h5", "tree/out.h5.partial"};
    struct walk_config config = config_for(here);
    config.skip_paths = skip;
    config.skip_count = 2;
    config.options.follow_symlinks = true;
    const char *expected = "d/out.h5\nd/out.h5.tmp-1\nout.h5.old\nout.h5.tmp\nx.jpg\n";
    assert_walks(&config, expected);

    const char *source[] = {"tree/out.h5", "tree/x.jpg"};
    config.options.sources = source;
    config.options.source_count = 2;
    assert_walks(&config, "x.jpg\n");

    /* An output that does not exist yet is recognised by its name. */
    config.options.sources = here;
    config.options.source_count = 1;
    assert_int_equal(unlink("tree/d/hard.jpg"), 0);
    assert_int_equal(unlink("tree/soft.jpg"), 0);
    assert_int_equal(rename("tree/out.h5", "tree/d/later"), 0);
    assert_walks(&config, "d/later\nd/out.h5\nd/out.h5.tmp-1\nout.h5.old\nout.h5.tmp\nx.jpg\n");
    assert_int_equal(chdir("tree"), 0);
    const char *plain[] = {"out.h5", "out.h5.partial"}, *dot[] = {"."};
    config.options.sources = dot;
    config.skip_paths = plain;
    config.spool_directory = "../spool";
    assert_walks(&config, "d/later\nd/out.h5\nd/out.h5.tmp-1\nout.h5.old\nout.h5.tmp\nx.jpg\n");
    config.options.follow_symlinks = false; /* the work directory is recognised only by its name */
    config.skip_count = 1;
    assert_walks(&config, "d/later\nd/out.h5\nd/out.h5.tmp-1\nout.h5.old\nout.h5.tmp\nx.jpg\n");
}

/* --- invalid arguments ------------------------------------------------------------------------ */

static void test_bad_sources(void **state)
{
    (void)state;
    put_file("tree/x", "");
    static const struct {
        const char *source, *word;
        enum status status;
    } cases[] = {
        {"", "SOURCE", STATUS_USAGE},         {"nothing", "nothing", STATUS_USAGE},
        {"tree/x/", "tree/x/", STATUS_USAGE}, {"tree/x/y", "tree/x/y", STATUS_USAGE},
        {"@", "@FILE", STATUS_USAGE},         {"@nothing", "./@NAME", STATUS_USAGE},
        {"@tree", "@tree", STATUS_FAILED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct walk_config config = config_for(&cases[i].source);
        struct error err = fail_to_open(&config, cases[i].status);
        if (!strstr(err.sentence, cases[i].word))
            fail_msg("\"%s\": %s", cases[i].source, err.sentence);
    }
    const char *twice[] = {"-", "-"};
    struct walk_config config = config_for(twice);
    config.options.source_count = 2;
    fail_to_open(&config, STATUS_USAGE);

    const char **many = malloc(65536 * sizeof *many);
    assert_non_null(many);
    for (int i = 0; i < 65536; i++)
        many[i] = "tree";
    config = config_for(many);
    config.options.source_count = 65536;
    fail_to_open(&config, STATUS_USAGE);
    free(many);

    /* The spool directory does not exist. */
    config = config_for(here);
    config.spool_directory = "not/there";
    struct error err = fail_to_open(&config, STATUS_FAILED);
    assert_int_equal(err.native, ENOENT);
    assert_non_null(strstr(err.sentence, "not/there"));
}

static const struct CMUnitTest tests[] = {
    special_test(test_special_files),
    special_test(test_broken_links),
    special_test(test_linked_directories),
    special_test(test_loops),
    special_test(test_many_links_in_a_row),
    special_test(test_permissions),
    special_test(test_no_descriptors),
    special_test(test_vanishing),
    special_test(test_read_error),
    special_test(test_stop),
    special_test(test_skipped),
    special_test(test_bad_sources),
};
TEST_GROUP(special, NULL, NULL)
