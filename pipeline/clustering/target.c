/* target.c: whether clusters go into their input or into a file of their own. */
#include "clustering/target.h"
#include "base/path.h"
#include <sys/stat.h>

static bool same_path(const char *a, const char *b)
{
    struct stat one, two;
    return stat(a, &one) == 0 && stat(b, &two) == 0 && one.st_dev == two.st_dev &&
           one.st_ino == two.st_ino;
}

enum status choose_output(const char **output, const char **base, struct result **holder,
                          const struct matrix_input *input, const char *wanted, struct error *err)
{
    struct stat st;
    char shown[256];
    *holder = NULL;
    *base = NULL;
    if (!wanted || (input->result && same_path(wanted, input->path))) {
        *output = *base = input->path;
        return STATUS_OK;
    }
    *output = wanted;
    path_for_message(shown, sizeof shown, wanted);
    if (stat(wanted, &st) != 0 || !S_ISREG(st.st_mode))
        return STATUS_OK; /* what is wrong with it, output_open says */
    enum status status = result_open(holder, wanted, err);
    if (status != STATUS_OK)
        return error_set(err, STATUS_FAILED,
                         "%s exists and is not a clpipe file, so it is not overwritten; name "
                         "another file",
                         shown);
    if (result_images(*holder) > 0 || result_feature_count(*holder) > 0)
        return error_set(err, STATUS_USAGE,
                         "%s holds images of its own, so it is not overwritten; name another file",
                         shown);
    *base = wanted;
    return STATUS_OK;
}
