/* isolate_wire.c: messages with file descriptors. */
#include "decode/isolate_wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(DECODE_AHEAD_MAX * sizeof(int))];
};

int wire_send(int socket, const void *message, size_t size, const int *fds, unsigned fd_count)
{
    struct iovec part = {.iov_base = (void *)(uintptr_t)message, .iov_len = size};
    union control control;
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd_count > 0) {
        memset(&control, 0, sizeof control);
        header.msg_control = control.bytes;
        header.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
        struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
        memcpy(CMSG_DATA(rights), fds, fd_count * sizeof(int));
    }
    ssize_t sent;
    do
        sent = sendmsg(socket, &header, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent >= 0 ? 0 : errno == ECONNRESET ? EPIPE : errno;
}

/* Stores the received descriptors and closes unexpected ones. */
static void take_fds(struct msghdr *header, int *fds, unsigned fd_count)
{
    for (struct cmsghdr *at = CMSG_FIRSTHDR(header); at; at = CMSG_NXTHDR(header, at)) {
        if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(at) + i * sizeof fd, sizeof fd);
            if (i < fd_count && fds[i] < 0)
                fds[i] = fd;
            else
                close(fd);
        }
    }
}

int wire_receive(int socket, void *message, size_t size, int *fds, unsigned fd_count)
{
    struct iovec part = {.iov_base = message, .iov_len = size};
    union control control;
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    for (unsigned i = 0; i < fd_count; i++)
        fds[i] = -1;
    if (fd_count > 0) {
        header.msg_control = control.bytes;
        header.msg_controllen = sizeof control.bytes;
    }
    ssize_t got;
    do
        got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return errno == ECONNRESET ? EPIPE : errno;
    if (fd_count > 0)
        take_fds(&header, fds, fd_count);
    if (got == 0)
        return EPIPE;
    return (size_t)got == size && !(header.msg_flags & MSG_TRUNC) ? 0 : EPROTO;
}
