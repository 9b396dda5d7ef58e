/* test_tree.c: which files are found in directories and in which order, for all names, depths and
 * numbers of files. */
#include "test_walk.h"

#include <dirent.h>
#include <pthread.h>

static const char *const here[] = {"tree"};

static void test_order(void **state)
{
    (void)state;
    put_directory("tree");
    put_directory("tree/a");
    put_directory("tree/a/b");
    put_directory("tree/empty");
    static const char *const files[] = {"a0",   "a/z",  "a/b/c", "a.c",      "a-b",
                                        "a/b!", "a/b0", "B",     "\xc3\xa4", "b"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[64];
        snprintf(path, sizeof path, "tree/%s", files[i]);
        put_file(path, "12");
    }
    struct walk_config config = config_for(here);
    const char *expected = "B\na-b\na.c\na/b!\na/b/c\na/b0\na/z\na0\nb\n\xc3\xa4\n";
    assert_walks(&config, expected);

    /* Trailing slashes, a link to the directory and a path with ".." have the same meaning. */
    assert_int_equal(symlink("tree", "link"), 0);
    static const char *const same[] = {"tree//", "link", "./tree/../tree/."};
    for (int i = 0; i < 3; i++) {
        config = config_for(&same[i]);
        assert_walks(&config, expected);
    }
}

static void test_attributes(void **state)
{
    (void)state;
    put_directory("tree");
    put_file("tree/x", "four");
    struct timespec times[2] = {{.tv_sec = 1000000000, .tv_nsec = 123456789},
                                {.tv_sec = -5, .tv_nsec = 250000000}};
    assert_int_equal(utimensat(AT_FDCWD, "tree/x", times, 0), 0);
    struct stat st;
    assert_int_equal(stat("tree/x", &st), 0);
    struct walk_config config = config_for(here);
    struct walk *walk = open_walk(&config);
    assert_int_equal(walk_bytes(walk), 4);
    struct walk_item item = item_at(walk, 0);
    assert_int_equal(item.entry.bytes, 4);
    assert_int_equal(item.entry.mtime_ns, -5 * INT64_C(1000000000) + 250000000);
    assert_int_equal(item.source, 0);

    int fd = open_member(walk, 0, item.path);
    assert_true(fd >= 0);
    int flags = fcntl(fd, F_GETFL);
    assert_int_equal(flags & O_ACCMODE, O_RDONLY);
    assert_true(flags & O_NONBLOCK);
    assert_true(flags & O_NOATIME); /* we own the file */
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    close(fd);
    walk_close(&walk);
}

static void test_names(void **state)
{
    (void)state;
    char longest[256], path[300];
    memset(longest, 'n', 255);
    longest[255] = 0;
    const char *names[] = {" ",  "a b",  "line\nbreak", "\xff\xfe\x80", "\x01\x1b[31m",
                           "~",  "-rf",  "@list",       "*?[]",         longest,
                           "\\", "a\tb", "\"'",         "caf\xe9.jpg"};
    const unsigned count = sizeof names / sizeof names[0];
    put_directory("tree");
    for (unsigned i = 0; i < count; i++) {
        snprintf(path, sizeof path, "tree/%s", names[i]);
        put_file(path, names[i]);
    }
    put_file("tree/.dot", "");
    put_directory("tree/.hidden");
    put_file("tree/.hidden/x", "");
    put_file("tree/..two", "");

    struct walk_config config = config_for(here);
    struct walk *walk = open_walk(&config);
    assert_int_equal(walk_count(walk), count);
    struct walk_item item;
    struct error err = ERROR_INIT;
    unsigned seen = 0;
    char last[256] = "";
    while (walk_next(walk, &item, &err) == STATUS_OK) {
        assert_true(strcmp(last, item.path) < 0);
        strcpy(last, item.path);
        for (unsigned i = 0; i < count; i++)
            seen += strcmp(item.path, names[i]) == 0;
        char content[300] = "";
        int fd = open_member(walk, 0, item.path);
        assert_true(fd >= 0);
        assert_int_equal(read(fd, content, sizeof content - 1), item.entry.bytes);
        assert_string_equal(content, item.path);
        close(fd);
    }
    assert_int_equal(seen, count);
    walk_close(&walk);

    config.options.hidden = true;
    const char *dots[] = {".*", "..*", "x"};
    config.options.include = dots;
    config.options.include_count = 3;
    assert_walks(&config, "..two\n.dot\n.hidden/x\n");
    const char *dotted[] = {"tree/.hidden"}; /* a SOURCE itself is never hidden */
    config = config_for(dotted);
    assert_walks(&config, "x\n");
}

/* --- a random tree against qsort ------------------------------------------------------------- */

#define TREE_FILES 1500

static unsigned random_number(unsigned *state, unsigned limit)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % limit;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Appends the relative paths of all files below `directory` to the list, as a simple program
 * would. */
static unsigned list_files(char **list, unsigned count, const char *directory, const char *prefix)
{
    DIR *stream = opendir(directory);
    assert_non_null(stream);
    const struct dirent *entry;
    while ((entry = readdir(stream))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        char *path, *relative;
        struct stat st;
        assert_true(asprintf(&path, "%s/%s", directory, entry->d_name) > 0);
        assert_true(asprintf(&relative, "%s%s", prefix, entry->d_name) > 0);
        assert_int_equal(lstat(path, &st), 0);
        if (S_ISDIR(st.st_mode)) {
            char *below;
            assert_true(asprintf(&below, "%s/", relative) > 0);
            count = list_files(list, count, path, below);
            free(below);
            free(relative);
        } else {
            assert_true(count < TREE_FILES);
            list[count++] = relative;
        }
        free(path);
    }
    closedir(stream);
    return count;
}

static void test_random_tree(void **state)
{
    (void)state;
    unsigned random = 7, count = 0;
    char directories[100][200] = {"tree"};
    put_directory("tree");
    for (unsigned i = 0, made = 1; i < TREE_FILES; i++) {
        unsigned at = random_number(&random, made);
        /* Few different bytes, including those next to '/'. */
        static const char bytes[] = ".-0ab\n\xff ";
        char path[256];
        size_t length = (size_t)snprintf(path, sizeof path, "%s/", directories[at]);
        unsigned name_length = 1 + random_number(&random, 12);
        for (unsigned j = 0; j < name_length; j++) {
            char byte = bytes[random_number(&random, sizeof bytes - 1)];
            path[length++] = byte;
        }
        path[length] = 0;
        struct stat st;
        if (lstat(path, &st) == 0)
            continue;
        if (made < 100 && length < 150 && random_number(&random, 8) == 0) {
            put_directory(path);
            strcpy(directories[made++], path);
        } else {
            put_file(path, "");
        }
    }
    static char *list[TREE_FILES];
    count = list_files(list, 0, "tree", "");
    assert_true(count > 1000);
    qsort(list, count, sizeof list[0], by_bytes);

    struct walk_config config = config_for(here);
    config.options.hidden = true;
    struct walk *walk = open_walk(&config);
    assert_int_equal(walk_count(walk), count);
    for (unsigned i = 0; i < count; i++) {
        assert_string_equal(item_at(walk, 0).path, list[i]);
        free(list[i]);
    }
    walk_close(&walk);
}

/* --- depth ----------------------------------------------------------------------------------- */

/* Makes a chain of `depth` directories called `name` below `top`, with one file in each. */
static void put_chain(const char *top, const char *name, unsigned depth)
{
    put_directory(top);
    int at = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; i < depth; i++) {
        put_file_at(at, "file", name);
        assert_int_equal(mkdirat(at, name, 0777), 0);
        int next = openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        close(at);
        at = next;
    }
    put_file_at(at, "last", name);
    close(at);
}

static void *open_again_and_again(void *context)
{
    struct walk *walk = context;
    char *path = malloc(100 * 256);
    assert_non_null(path);
    size_t length = 0;
    for (int i = 0; i < 100; i++) {
        memset(path + length, 'd', 200);
        length += 200;
        path[length++] = '/';
    }
    strcpy(path + length, "last");
    for (int i = 0; i < 20; i++) {
        int fd = open_member(walk, 0, path);
        assert_true(fd >= 0);
        close(fd);
    }
    free(path);
    return NULL;
}

/* Paths of 20,000 bytes or more, opened by several threads, for a source that is kept open and for
 * one that is not. */
static void test_beyond_path_max(void **state)
{
    (void)state;
    char name[201];
    memset(name, 'd', 200);
    name[200] = 0;
    put_chain("tree", name, 100);
    put_chain("other", name, 30);
    enum { SOURCES = 70 };
    const char *sources[SOURCES];
    for (int i = 0; i < SOURCES; i++)
        sources[i] = i ? "other" : "tree";
    struct walk_config config = config_for(sources);
    config.options.source_count = SOURCES;
    struct walk *walk = open_walk(&config);
    assert_int_equal(walk_count(walk), 101 + (SOURCES - 1) * 31);
    struct walk_item item;
    struct error err = ERROR_INIT;
    while (walk_next(walk, &item, &err) == STATUS_OK) {
        assert_int_equal(item.entry.failure.reason, REASON_NONE);
        /* The deepest file is first, because "ddd.../" sorts before "file" and "last". */
        if (item.path_length != (item.source ? 30 * 201 : 100 * 201) + 4u)
            continue;
        assert_string_equal(strrchr(item.path, '/'), "/last");
        struct stat st;
        int fd = open_member(walk, item.source, item.path);
        assert_true(fd >= 0);
        assert_int_equal(fstat(fd, &st), 0);
        assert_int_equal(clock_file_time(&st.st_mtim), item.entry.mtime_ns);
        close(fd);
    }
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_again_and_again, walk), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    walk_close(&walk);
}

/* A deep and narrow tree: it would take too many descriptors to keep each level open, and too much
 * time to open each directory from the top. Twelve chains are more than the walk keeps open at a
 * time. */
static void test_many_levels(void **state)
{
    (void)state;
    char top[16];
    put_directory("tree");
    for (int i = 0; i < 12; i++) {
        snprintf(top, sizeof top, "tree/%02d", i);
        put_chain(top, "d", i ? 20 : 1000);
    }
    struct walk_config config = config_for(here);
    struct walk *walk = open_walk(&config);
    assert_int_equal(walk_count(walk), 12 + 1000 + 11 * 20);
    struct walk_item item = item_at(walk, 0);
    assert_int_equal(item.path_length, strlen("00/") + 2 * 1000 + strlen("last"));
    walk_close(&walk);
}

/* --- more than fits into memory -------------------------------------------------------------- */

static uint64_t digest_of_walk(struct walk *walk)
{
    struct walk_item item;
    struct error err = ERROR_INIT;
    uint64_t digest = UINT64_C(14695981039346656037);
    while (walk_next(walk, &item, &err) == STATUS_OK) {
        for (uint32_t i = item.path_length - 16; i < item.path_length; i++)
            digest = (digest ^ (unsigned char)item.path[i]) * UINT64_C(1099511628211);
        digest =
            (digest ^ (uint64_t)item.entry.mtime_ns ^ item.entry.bytes) * UINT64_C(1099511628211);
    }
    return digest;
}

/* Paths of 75,000 bytes, 20 MB in total: 1 MiB sorts them in about twenty runs and merges thirteen
 * of them at once. The result must be the same as with sufficient memory. */
static void test_runs_and_passes(void **state)
{
    (void)state;
    enum { LEVELS = 300, FILES = 120 };
    char name[251];
    memset(name, 'd', 250);
    name[250] = 0;
    put_chain("tree", name, LEVELS);
    int at = open("tree", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < LEVELS; i++) {
        int next = openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        close(at);
        at = next;
    }
    for (unsigned i = 0; i < FILES; i++) {
        char file[32];
        snprintf(file, sizeof file, "%016x", i * 2654435761u);
        int fd = openat(at, file, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        assert_true(fd >= 0);
        close(fd);
    }
    close(at);
    struct walk_config config = config_for(here);
    config.memory = 64 << 20;
    struct walk *walk = open_walk(&config);
    assert_int_equal(walk_count(walk), FILES + LEVELS + 1);
    uint64_t expected = digest_of_walk(walk);
    walk_close(&walk);
    config.memory = 0; /* the minimum of 1 MiB is used */
    walk = open_walk(&config);
    assert_int_equal(walk_count(walk), FILES + LEVELS + 1);
    assert_true(digest_of_walk(walk) == expected);
    walk_close(&walk);

    /* The spool files have no name, neither during nor after the walk. */
    assert_int_equal(rmdir("spool"), 0);
    put_directory("spool");
}

/* --- choosing -------------------------------------------------------------------------------- */

static void put_some(void)
{
    static const char *const files[] = {"tree/a.jpg",        "tree/b.png",     "tree/raw/a.jpg",
                                        "tree/raw/c.jpg",    "tree/raw/d.txt", "tree/old/raw/a.jpg",
                                        "tree/old/raw/e.jpg"};
    put_directory("tree");
    put_directory("tree/raw");
    put_directory("tree/old");
    put_directory("tree/old/raw");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        put_file(files[i], "123");
}

static void test_globs(void **state)
{
    (void)state;
    static const struct {
        const char *include, *exclude, *expected;
    } cases[] = {
        {"*.jpg", NULL, "a.jpg\nold/raw/a.jpg\nold/raw/e.jpg\nraw/a.jpg\nraw/c.jpg\n"},
        {"*.jpg", "raw", "a.jpg\n"},
        {NULL, "raw/", "a.jpg\nb.png\n"},
        {NULL, "/raw", "a.jpg\nb.png\nold/raw/a.jpg\nold/raw/e.jpg\n"},
        {"raw/*", NULL, "raw/a.jpg\nraw/c.jpg\nraw/d.txt\n"},
        {"**/raw/*.jpg", "old", "raw/a.jpg\nraw/c.jpg\n"},
        {"raw/", "[ac].*", "old/raw/e.jpg\nraw/d.txt\n"},
        {"raw", NULL, ""},
        {NULL, "*", ""},
    };
    put_some();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct walk_config config = config_for(here);
        config.options.include = &cases[i].include;
        config.options.include_count = cases[i].include != NULL;
        config.options.exclude = &cases[i].exclude;
        config.options.exclude_count = cases[i].exclude != NULL;
        assert_walks(&config, cases[i].expected);
    }

    /* Globs apply to the names of files that are given as SOURCEs, not to their directories. */
    const char *sources[] = {"tree/a.jpg", "tree/b.png", "tree/old"};
    const char *exclude[] = {"tree", "b.*"};
    struct walk_config config = config_for(sources);
    config.options.source_count = 3;
    config.options.exclude = exclude;
    config.options.exclude_count = 2;
    assert_walks(&config, "a.jpg\nraw/a.jpg\nraw/e.jpg\n");

    const char *nothing[] = {"/"};
    config.options.include = nothing;
    config.options.include_count = 1;
    fail_to_open(&config, STATUS_USAGE);
}

static void test_limit_and_sources(void **state)
{
    (void)state;
    put_some();
    const char *sources[] = {"tree/raw", "tree/b.png", "tree/raw/", "tree/old"};
    struct walk_config config = config_for(sources);
    config.options.source_count = 4;
    assert_walks(&config,
                 "a.jpg\nc.jpg\nd.txt\nb.png\na.jpg\nc.jpg\nd.txt\nraw/a.jpg\nraw/e.jpg\n");
    config.options.limit = 2;
    assert_walks(&config, "a.jpg\nc.jpg\n");
    config.options.limit = 3;
    assert_walks(&config, "a.jpg\nc.jpg\nd.txt\n");
    config.options.limit = 5;
    struct walk *walk = open_walk(&config);
    assert_int_equal(walk_count(walk), 5);
    assert_int_equal(walk_bytes(walk), 15);
    static const uint16_t expected[] = {0, 0, 0, 1, 2};
    for (int i = 0; i < 5; i++)
        assert_int_equal(item_at(walk, 0).source, expected[i]);
    int fd = open_member(walk, 1, "b.png");
    assert_true(fd >= 0);
    close(fd);
    walk_close(&walk);
    config.options.limit = 100;
    walk = open_walk(&config);
    assert_int_equal(walk_count(walk), 9);
    walk_close(&walk);

    /* A missing source is reported even if the limit is reached first. */
    sources[3] = "tree/new";
    config.options.limit = 1;
    struct error err = fail_to_open(&config, STATUS_USAGE);
    assert_non_null(strstr(err.sentence, "tree/new"));
    assert_int_equal(err.native, ENOENT);
}

struct progress {
    unsigned calls;
    uint64_t last;
};

static void note_progress(void *context, const char *phase, uint64_t found, uint64_t total)
{
    struct progress *progress = context;
    assert_string_equal(phase, "walking");
    assert_int_equal(total, 0);
    assert_in_range(found - progress->last, 1, 1000);
    progress->last = found;
    progress->calls++;
}

static void test_progress(void **state)
{
    (void)state;
    put_directory("tree");
    for (int i = 0; i < 1500; i++) {
        char path[32];
        snprintf(path, sizeof path, "tree/%d", i);
        put_file(path, "");
    }
    struct progress progress = {0, 0};
    struct walk_config config = config_for(here);
    config.watch = (struct watch){.show = note_progress, .context = &progress};
    struct walk *walk = open_walk(&config);
    walk_close(&walk);
    assert_in_range(progress.calls, 1, 100);
    assert_in_range(progress.last, 501, 1500);
}

/* The working directory may change after walk_open, and the source may be renamed. */
static void test_open_file_elsewhere(void **state)
{
    (void)state;
    put_some();
    const char *sources[] = {"tree/raw", "tree/b.png"};
    struct walk_config config = config_for(sources);
    config.options.source_count = 2;
    struct walk *walk = open_walk(&config);
    assert_int_equal(chdir("/"), 0);
    int fd = open_member(walk, 1, "b.png");
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(fchdir(((struct scratch *)*state)->home), 0);
    assert_int_equal(chdir(((struct scratch *)*state)->path), 0);
    assert_int_equal(rename("tree/raw", "tree/cooked"), 0);
    fd = open_member(walk, 0, "c.jpg");
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(open_member(walk, 0, "gone.jpg"), -1);
    assert_int_equal(errno, ENOENT);
    walk_close(&walk);
}

static const struct CMUnitTest tests[] = {
    walk_test(test_order),
    walk_test(test_attributes),
    walk_test(test_names),
    walk_test(test_random_tree),
    walk_test(test_beyond_path_max),
    walk_test(test_many_levels),
    walk_test(test_runs_and_passes),
    walk_test(test_globs),
    walk_test(test_limit_and_sources),
    walk_test(test_progress),
    walk_test(test_open_file_elsewhere),
};
TEST_GROUP(tree, NULL, NULL)
