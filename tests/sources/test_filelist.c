/* test_filelist.c: lists of paths: separators, order, duplicates, permitted paths, standard input
 * and FIFOs. */
#include "sources/filelist.h"
#include "test_walk.h"

#include <pthread.h>

static const char *const list[] = {"@list"};
static const char *const standard_input[] = {"-"};

static void put_list(const char *bytes, size_t size)
{
    int fd = open("list", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), size);
    close(fd);
}

static void put_files(void)
{
    static const char *const files[] = {"b.jpg", "a.jpg", "d/c.jpg", " x ", "new\nline", ".dot"};
    put_directory("d");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        put_file(files[i], "12");
}

#define check_list(bytes, expected)                                                                \
    do {                                                                                           \
        struct walk_config config_ = config_for(list);                                             \
        put_list(bytes, sizeof bytes - 1);                                                         \
        assert_walks(&config_, expected);                                                          \
    } while (0)

static void test_lines(void **state)
{
    (void)state;
    put_files();
    check_list("", "");
    check_list("\n\n\n", "");
    check_list("b.jpg\na.jpg\n", "b.jpg\na.jpg\n");
    check_list("\nb.jpg\n\n\na.jpg", "b.jpg\na.jpg\n");
    check_list(" x \nd/c.jpg\n.dot\n", " x \nd/c.jpg\n.dot\n");
    check_list("a.jpg\0b.jpg\0", "a.jpg\nb.jpg\n");
    check_list("new\nline\0\0b.jpg", "new\nline\nb.jpg\n");
    check_list("a.jpg\nb.jpg\0", "a.jpg\nb.jpg unreadable\n"); /* one path with a newline in it */
    check_list("\0", "");
}

static void test_windows_lines(void **state)
{
    (void)state;
    put_files();
    check_list("\xef\xbb\xbf"
               "b.jpg\r\n\r\na.jpg\r\n",
               "b.jpg\na.jpg\n");
    check_list("b.jpg\r\na.jpg", "b.jpg\na.jpg\n");
    check_list("b.jpg\r\na.jpg\nd/c.jpg\r", "b.jpg\na.jpg\nd/c.jpg\n");
    check_list("\xef\xbb\xbf"
               "b.jpg\na.jpg\n",
               "b.jpg\na.jpg\n");
    check_list("a.jpg\r\0b.jpg\0", "a.jpg\r unreadable\nb.jpg\n");
}

static void test_utf16(void **state)
{
    (void)state;
    static const char little[] = "\xff\xfe"
                                 "a\0.\0",
                      big[] = "\xfe\xff\0a\0.";
    struct walk_config config = config_for(list);
    put_list(little, sizeof little - 1);
    assert_non_null(strstr(fail_to_open(&config, STATUS_FAILED).sentence, "UTF-16"));
    put_list(big, sizeof big - 1);
    assert_non_null(strstr(fail_to_open(&config, STATUS_FAILED).sentence, "UTF-16"));
}

static void test_duplicates(void **state)
{
    (void)state;
    put_files();
    check_list("b.jpg\na.jpg\nb.jpg\nd/c.jpg\na.jpg\n", "b.jpg\na.jpg\nd/c.jpg\n");
    check_list("./b.jpg\nb.jpg\n.//.///b.jpg\nd//c.jpg\nd/c.jpg\n", "b.jpg\nd/c.jpg\n");
    check_list("gone\ngone\n", "gone unreadable\n");
    check_list("d/../a.jpg\na.jpg\n",
               "d/../a.jpg\na.jpg\n"); /* only names are compared, not files */
}

static void test_normalize(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"a", "a"},         {"./a", "a"},         {"././a", "a"},   {".//a", "a"},
        {"//a//b", "/a/b"}, {"a/", "a/"},         {"a//", "a/"},    {"./", "./"},
        {".", "."},         {"..", ".."},         {"../a", "../a"}, {".a", ".a"},
        {"a/./b", "a/./b"}, {"./../a", "../a"},   {"/", "/"},       {"/./a", "/./a"},
        {"./.a", ".a"},     {".././a", ".././a"}, {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[64];
        strcpy(path, cases[i][0]);
        size_t length = filelist_normalize(path, strlen(path));
        assert_int_equal(length, strlen(cases[i][1]));
        assert_memory_equal(path, cases[i][1], length);
    }
}

static void test_kinds_of_paths(void **state)
{
    (void)state;
    put_files();
    assert_int_equal(mkfifo("fifo.jpg", 0666), 0);
    assert_int_equal(symlink("nowhere", "dangling"), 0);
    assert_int_equal(symlink("a.jpg", "good"), 0);
    static const char bytes[] = "d\nmissing\nd/\nfifo.jpg\ndangling\ngood\na.jpg/x\na.jpg\r\n./d\n";
    struct walk_config config = config_for(list);
    put_list(bytes, sizeof bytes - 1);
    struct walk *walk = open_walk(&config);
    struct walk_item item = item_at(walk, 0);
    assert_string_equal(item.path, "d");
    assert_int_equal(item.entry.failure.reason, REASON_NOT_AN_IMAGE);
    assert_non_null(strstr(item.entry.failure.message, "SOURCE"));
    item = item_at(walk, 0);
    assert_string_equal(item.path, "missing");
    assert_int_equal(item.entry.failure.reason, REASON_UNREADABLE);
    assert_int_equal(item.entry.failure.error_number, ENOENT);
    assert_int_equal(item_at(walk, 0).entry.failure.reason, REASON_NOT_AN_IMAGE);
    assert_int_equal(item_at(walk, 0).entry.failure.reason, REASON_NOT_AN_IMAGE);
    item = item_at(walk, 0);
    assert_string_equal(item.path, "dangling");
    assert_int_equal(item.entry.failure.reason, REASON_UNREADABLE);
    item = item_at(walk, 0);
    assert_string_equal(item.path, "good");
    assert_int_equal(item.entry.failure.reason, REASON_NONE);
    assert_int_equal(item.entry.bytes, 2);
    item = item_at(walk, 0);
    assert_int_equal(item.entry.failure.reason, REASON_UNREADABLE);
    assert_int_equal(item.entry.failure.error_number, ENOTDIR);
    item = item_at(walk, 0);
    assert_string_equal(item.path, "a.jpg\r");
    assert_int_equal(item.entry.failure.reason, REASON_UNREADABLE);
    assert_non_null(strstr(item.entry.failure.message, "carriage return"));
    walk_close(&walk);
}

static void test_absolute_and_opening(void **state)
{
    const struct scratch *scratch = *state;
    put_files();
    char bytes[200], expected[200];
    int size = snprintf(bytes, sizeof bytes, "%s//d/c.jpg\na.jpg\n", scratch->path);
    snprintf(expected, sizeof expected, "%s/d/c.jpg", scratch->path);
    put_list(bytes, (size_t)size);
    struct walk_config config = config_for(list);
    struct walk *walk = open_walk(&config);
    assert_string_equal(item_at(walk, 0).path, expected);
    assert_int_equal(chdir("/"),
                     0); /* relative paths still refer to the directory where the walk started */
    int fd = open_member(walk, 0, expected);
    assert_true(fd >= 0);
    close(fd);
    fd = open_member(walk, 0, "a.jpg");
    assert_true(fd >= 0);
    close(fd);
    walk_close(&walk);
    assert_int_equal(chdir(scratch->path), 0);
}

static void test_choosing(void **state)
{
    (void)state;
    put_files();
    static const char bytes[] = "d/c.jpg\n.dot\nb.jpg\na.jpg\nmissing.jpg\n";
    put_list(bytes, sizeof bytes - 1);
    const char *glob[] = {"d/"};
    struct walk_config config = config_for(list);
    config.options.exclude = glob;
    config.options.exclude_count = 1;
    assert_walks(&config, ".dot\nb.jpg\na.jpg\nmissing.jpg unreadable\n");
    config.options.limit = 2;
    assert_walks(&config, ".dot\nb.jpg\n");
    config.options.exclude_count = 0;
    config.options.include = glob;
    config.options.include_count = 1;
    assert_walks(&config, "d/c.jpg\n");
    const char *skip[] = {"b.jpg"};
    config = config_for(list);
    config.skip_paths = skip;
    config.skip_count = 1;
    assert_walks(&config, "d/c.jpg\n.dot\na.jpg\nmissing.jpg unreadable\n");
}

/* --- where it comes from --------------------------------------------------------------------- */

struct feeder {
    const char *path; /* a FIFO to open, or NULL to use fd */
    int fd;
    const char *const *parts; /* NULL-terminated, each is written after a pause */
};

static void *feed(void *context)
{
    struct feeder *feeder = context;
    int fd = feeder->path ? open(feeder->path, O_WRONLY | O_CLOEXEC) : feeder->fd;
    for (const char *const *part = feeder->parts; *part; part++) {
        usleep(20000);
        assert_int_equal(write(fd, *part, strlen(*part)), strlen(*part));
    }
    close(fd);
    return NULL;
}

static const char *const parts[] = {"b.j", "pg\n", "\na.jpg\nd/c", ".jpg", NULL};

static void test_standard_input(void **state)
{
    (void)state;
    put_files();
    int ends[2], kept = dup(STDIN_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    close(ends[0]);
    struct feeder feeder = {NULL, ends[1], parts};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, feed, &feeder), 0);
    const char *sources[] = {"a.jpg", "-"};
    struct walk_config config = config_for(sources);
    config.options.source_count = 2;
    assert_walks(&config, "a.jpg\nb.jpg\na.jpg\nd/c.jpg\n");
    pthread_join(thread, NULL);

    /* A regular file of which one line was already read. */
    static const char bytes[] = "header\nb.jpg\n";
    put_list(bytes, sizeof bytes - 1);
    int fd = open("list", O_RDONLY | O_CLOEXEC);
    assert_int_equal(lseek(fd, 7, SEEK_SET), 7);
    assert_int_equal(dup2(fd, STDIN_FILENO), STDIN_FILENO);
    close(fd);
    config = config_for(standard_input);
    assert_walks(&config, "b.jpg\n");

    /* Standard input is closed. */
    close(STDIN_FILENO);
    struct error err = fail_to_open(&config, STATUS_FAILED);
    assert_int_equal(err.native, EBADF);
    assert_non_null(strstr(err.sentence, "standard input"));
    dup2(kept, STDIN_FILENO);
    close(kept);
}

static void test_fifo(void **state)
{
    (void)state;
    put_files();
    assert_int_equal(mkfifo("list", 0666), 0);
    struct feeder feeder = {"list", -1, parts};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, feed, &feeder), 0);
    struct walk_config config = config_for(list);
    assert_walks(&config, "b.jpg\na.jpg\nd/c.jpg\n");
    pthread_join(thread, NULL);
}

static void *request_stop(void *stop)
{
    usleep(50000);
    stop_request(stop, STOP_SIGNAL);
    return NULL;
}

/* Waiting for a FIFO without a writer can be interrupted. */
static void test_stop(void **state)
{
    (void)state;
    struct stop stop = {0};
    assert_int_equal(mkfifo("list", 0666), 0);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, request_stop, &stop), 0);
    struct walk_config config = config_for(list);
    config.watch.stop = &stop;
    fail_to_open(&config, STATUS_INTERRUPTED);
    pthread_join(thread, NULL);
}

/* --- large lists ----------------------------------------------------------------------------- */

struct counting {
    uint64_t count;
    unsigned next;
};

/* Checks that the paths are numbered 0, 1, 2, ... */
static enum status take_in_order(void *context, const char *path, size_t length, struct error *err)
{
    struct counting *counting = context;
    char expected[64];
    (void)err;
    snprintf(expected, sizeof expected, "directory/number%u.jpg", counting->next++);
    assert_int_equal(length, strlen(expected));
    assert_string_equal(path, expected);
    counting->count++;
    return STATUS_OK;
}

/* Lists each path three times, with the repetitions at other positions, using memory for a tenth of
 * the list. */
static void check_large(char separator)
{
    enum { PATHS = 8000 };
    FILE *out = fopen("list", "w");
    assert_non_null(out);
    for (unsigned i = 0; i < PATHS; i++) {
        fprintf(out, "directory/number%u.jpg%c", i, separator);
        fprintf(out, "./directory//number%u.jpg%c", i * 7919u % (i + 1), separator);
        fprintf(out, "directory/number%u.jpg%c", i / 2, separator);
    }
    fclose(out);
    static const uint64_t memories[] = {128 * 1024, 64 << 20};
    for (int i = 0; i < 2; i++) {
        struct counting counting = {0, 0};
        struct error err = ERROR_INIT;
        uint64_t repeated;
        assert_int_equal(filelist_read(&repeated, "@list", "spool", memories[i], NULL,
                                       take_in_order, &counting, &err),
                         STATUS_OK);
        assert_int_equal(counting.count, PATHS);
        assert_int_equal(repeated, 2 * PATHS);
    }
}

static void test_large(void **state)
{
    (void)state;
    check_large('\n');
    check_large(0);
}

static void test_not_a_list(void **state)
{
    (void)state;
    size_t size = 3 << 20;
    char *bytes = malloc(size);
    assert_non_null(bytes);
    memset(bytes, 'x', size);
    put_list(bytes, size);
    struct walk_config config = config_for(list);
    struct error err = fail_to_open(&config, STATUS_FAILED);
    assert_non_null(strstr(err.sentence, "1 MiB"));

    /* The longest permitted path is treated as a path. */
    bytes[FILELIST_PATH_MAX] = '\n';
    put_list(bytes, FILELIST_PATH_MAX + 1);
    struct walk *walk = open_walk(&config);
    struct walk_item item = item_at(walk, 0);
    assert_int_equal(item.path_length, FILELIST_PATH_MAX);
    assert_int_equal(item.entry.failure.reason, REASON_UNREADABLE);
    assert_int_equal(item.entry.failure.error_number, ENAMETOOLONG);
    walk_close(&walk);
    free(bytes);
}

static const struct CMUnitTest tests[] = {
    walk_test(test_lines),
    walk_test(test_windows_lines),
    walk_test(test_utf16),
    walk_test(test_duplicates),
    cmocka_unit_test(test_normalize),
    walk_test(test_kinds_of_paths),
    walk_test(test_absolute_and_opening),
    walk_test(test_choosing),
    walk_test(test_standard_input),
    walk_test(test_fifo),
    walk_test(test_stop),
    walk_test(test_large),
    walk_test(test_not_a_list),
};
TEST_GROUP(filelist, NULL, NULL)
