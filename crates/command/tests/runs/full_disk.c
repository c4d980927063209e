/* Preloaded: after FULL_AFTER bytes written to regular files the disk is full, or the process is
 * killed where KILLED is set. From the moment that the file FULL_FROM exists, the folder FULL_IN is full
 * for a process that keeps an unlinked file with data in it. Where NO_LOCKS is set, no file can be locked. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_llong room;

__attribute__((constructor)) static void start(void) {
    const char *bytes = getenv("FULL_AFTER");
    room = bytes ? atoll(bytes) : 1LL << 60;
}

static int on_disk(int fd) {
    struct stat file;
    return fstat(fd, &file) == 0 && S_ISREG(file.st_mode);
}

static int lies_in(const char *folder, int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path);
    return length > (ssize_t)strlen(folder) && strncmp(path, folder, strlen(folder)) == 0;
}

static int in_full_folder(int fd) {
    const char *folder = getenv("FULL_IN"), *from = getenv("FULL_FROM");
    if (!folder || !from || access(from, F_OK) != 0 || !lies_in(folder, fd))
        return 0;
    for (int kept = 0; kept < 64; kept++) {
        struct stat file;
        if (fstat(kept, &file) == 0 && file.st_nlink == 0 && file.st_size > 0 && lies_in(folder, kept))
            return 1;
    }
    return 0;
}

ssize_t write(int fd, const void *bytes, size_t count) {
    ssize_t (*real)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    if (!on_disk(fd))
        return real(fd, bytes, count);
    if (in_full_folder(fd)) {
        errno = ENOSPC;
        return -1;
    }
    long long left = atomic_fetch_sub(&room, (long long)count);
    if (left >= (long long)count)
        return real(fd, bytes, count);
    if (left > 0)
        left = real(fd, bytes, left);
    if (getenv("KILLED"))
        kill(getpid(), SIGKILL);
    if (left > 0)
        return left;
    errno = ENOSPC;
    return -1;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    ssize_t (*real)(int, const struct iovec *, int) = dlsym(RTLD_NEXT, "writev");
    if (!on_disk(fd))
        return real(fd, parts, count);
    /* A caller goes on after what was written. */
    for (int i = 0; i < count; i++)
        if (parts[i].iov_len)
            return write(fd, parts[i].iov_base, parts[i].iov_len);
    return 0;
}

int flock(int fd, int how) {
    int (*real)(int, int) = dlsym(RTLD_NEXT, "flock");
    if (!getenv("NO_LOCKS"))
        return real(fd, how);
    errno = ENOLCK;
    return -1;
}

/* Whoever copies by these falls back on read and write. */
ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *to, size_t count, unsigned flags) {
    (void)in, (void)from, (void)out, (void)to, (void)count, (void)flags;
    errno = ENOSYS;
    return -1;
}

ssize_t sendfile64(int out, int in, off64_t *from, size_t count) {
    (void)out, (void)in, (void)from, (void)count;
    errno = ENOSYS;
    return -1;
}
ssize_t sendfile(int out, int in, off_t *from, size_t count) { return sendfile64(out, in, from, count); }
