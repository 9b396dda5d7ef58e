/* unnamed_file.c: O_TMPFILE, or a name that is removed at once. */
#include "base/unnamed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int unnamed_file(const char *directory)
{
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    /* File systems without O_TMPFILE return EOPNOTSUPP, kernels without it EISDIR or EINVAL; real
     * errors recur below. */
    static const char name[] = "/.clpipe-XXXXXX";
    const size_t length = strlen(directory);
    char *path = malloc(length + sizeof name);
    if (!path)
        return -1;
    memcpy(path, directory, length);
    memcpy(path + length, name, sizeof name);
    fd = mkostemp(path, O_CLOEXEC);
    const int number = errno;
    if (fd >= 0)
        unlink(path);
    free(path);
    errno = number;
    return fd;
}
