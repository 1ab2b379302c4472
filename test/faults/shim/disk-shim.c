/*
 * Stands between a server and the files below one directory (LD_PRELOAD), so that tests can take the power away or have
 * single calls fail. Settings come by the environment:
 *
 *   SHIM_DIR      absolute path of the directory; calls on files elsewhere are passed on untouched
 *   SHIM_TRACE    file that every change is appended to, with its bytes, before it is made; every fsync when it starts
 *                 and when it has returned. test/support/disk-image.ts makes from it what a disk may hold after a cut.
 *   SHIM_CUT      file with a number N, which may come later: kills the process before the Nth change or fsync from the
 *                 one on that first finds it
 *   SHIM_FAIL     file with a `struct failing`, which is looked at before each call and may change at any time: which
 *                 call fails, and whether one has
 *   SHIM_STALL    file that may come and go: while it is there, no fsync begins
 *   SHIM_SLOW     milliseconds that each fsync takes longer
 *
 * Changes through a map (LMDB's lock file, whose content no restart reads) are not seen.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OPENED = 1, WRITE, WRITTEN, TRUNCATE, SYNC, SYNCED, MKDIR, RENAME, REMOVE };
enum { CREATED = 1, DIRECTORY = 2 };

/* Kinds of calls that can fail: FAIL_SHORT writes half and says so, FAIL_LATE writes all and says that it failed. */
enum { FAIL_NONE, FAIL_WRITE, FAIL_SHORT, FAIL_LATE, FAIL_SYNC, FAIL_OPEN };

/* Which call fails: the one number `at`, from 1, of a kind, with errno `error`; `calls` of it were counted. */
struct failing {
  uint32_t kind, at, error, calls, hit;
};

/* One entry of the trace, little-endian; then `paths` bytes of path (two of them parted by a NUL), then `bytes` of data. */
struct entry {
  uint64_t number;
  uint64_t file;   /* inode */
  uint64_t offset; /* of a write; length of a truncation; number of the entry that a WRITTEN or SYNCED ends */
  uint32_t bytes;
  uint16_t paths;
  uint8_t kind;
  uint8_t flags;
};

#define FILES 65536
static struct { uint64_t inode; int flags; } files[FILES];

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static const char *dir;
static size_t dir_length;
static int trace = -1;
static uint64_t entries, calls, cut_at;
static const char *cut_file;
static const char *stall_file;
static useconds_t slow_us;
static struct failing *failing;

static int (*real_open)(const char *, int, ...);
static int (*real_openat)(int, const char *, int, ...);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*real_writev)(int, const struct iovec *, int);
static ssize_t (*real_pwritev)(int, const struct iovec *, int, off_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_ftruncate)(int, off_t);
static int (*real_mkdir)(const char *, mode_t);
static int (*real_rename)(const char *, const char *);
static int (*real_unlink)(const char *);
static int (*real_rmdir)(const char *);
static int (*real_close)(int);

static struct failing *map_failing(const char *file) {
  int fd = real_open(file, O_RDWR | O_CLOEXEC);
  if (fd < 0) abort();
  void *map = mmap(NULL, sizeof *failing, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) abort();
  real_close(fd);
  return map;
}

__attribute__((constructor)) static void begin(void) {
  real_open = dlsym(RTLD_NEXT, "open");
  real_openat = dlsym(RTLD_NEXT, "openat");
  real_write = dlsym(RTLD_NEXT, "write");
  real_pwrite = dlsym(RTLD_NEXT, "pwrite");
  real_writev = dlsym(RTLD_NEXT, "writev");
  real_pwritev = dlsym(RTLD_NEXT, "pwritev");
  real_fsync = dlsym(RTLD_NEXT, "fsync");
  real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
  real_ftruncate = dlsym(RTLD_NEXT, "ftruncate");
  real_mkdir = dlsym(RTLD_NEXT, "mkdir");
  real_rename = dlsym(RTLD_NEXT, "rename");
  real_unlink = dlsym(RTLD_NEXT, "unlink");
  real_rmdir = dlsym(RTLD_NEXT, "rmdir");
  real_close = dlsym(RTLD_NEXT, "close");
  dir = getenv("SHIM_DIR");
  if (dir == NULL) return;
  dir_length = strlen(dir);
  cut_file = getenv("SHIM_CUT");
  stall_file = getenv("SHIM_STALL");
  const char *slow = getenv("SHIM_SLOW");
  if (slow != NULL) slow_us = 1000 * atoi(slow);
  const char *fail_file = getenv("SHIM_FAIL");
  if (fail_file != NULL) failing = map_failing(fail_file);
  const char *file = getenv("SHIM_TRACE");
  if (file != NULL) {
    trace = real_open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (trace < 0) abort();
  }
}

static int below(const char *path) {
  return dir != NULL && strncmp(path, dir, dir_length) == 0 && (path[dir_length] == 0 || path[dir_length] == '/');
}

/* Whether a descriptor is one of a file below the directory. A number can have been closed and given away unseen. */
static int tracked(int fd, struct stat *about) {
  if (fd < 0 || fd >= FILES || files[fd].inode == 0) return 0;
  if (fstat(fd, about) == 0 && about->st_ino == files[fd].inode) return 1;
  files[fd].inode = 0;
  return 0;
}

static uint64_t note(struct entry entry, const char *paths, const struct iovec *data, int parts) {
  struct iovec all[3 + 64];
  if (trace < 0) return 0;
  if (parts > 64) abort();
  pthread_mutex_lock(&mutex);
  entry.number = ++entries;
  all[0] = (struct iovec){&entry, sizeof entry};
  all[1] = (struct iovec){(void *)paths, entry.paths};
  for (int part = 0; part < parts; part++) all[2 + part] = data[part];
  size_t length = sizeof entry + entry.paths + entry.bytes;
  if (syscall(SYS_writev, trace, all, 2 + parts) != (ssize_t)length) abort();
  pthread_mutex_unlock(&mutex);
  return entry.number;
}

/* Counts a call that is about to be made; the power goes before the one that was asked for. */
static void count(void) {
  if (cut_file == NULL) return;
  pthread_mutex_lock(&mutex);
  if (cut_at == 0) {
    char text[16] = "";
    int fd = real_open(cut_file, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, text, sizeof text - 1) > 0) cut_at = strtoull(text, NULL, 10);
    if (fd >= 0) real_close(fd);
  }
  if (cut_at != 0 && ++calls == cut_at) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
  }
  pthread_mutex_unlock(&mutex);
}

/* Whether this call of that kind is the one that is to fail. */
static int fails(uint32_t kind) {
  if (failing == NULL || __atomic_load_n(&failing->kind, __ATOMIC_SEQ_CST) != kind) return 0;
  if (__atomic_add_fetch(&failing->calls, 1, __ATOMIC_SEQ_CST) != failing->at) return 0;
  __atomic_store_n(&failing->hit, 1, __ATOMIC_SEQ_CST);
  errno = (int)failing->error;
  return 1;
}

static int opened(int fd, const char *path, int flags, int existed) {
  struct stat about;
  if (fd < 0 || fd >= FILES || fstat(fd, &about) != 0) return fd;
  files[fd].flags = flags;
  files[fd].inode = about.st_ino;
  int is_directory = S_ISDIR(about.st_mode);
  note((struct entry){.file = about.st_ino,
                      .kind = OPENED,
                      .paths = strlen(path),
                      .flags = (existed ? 0 : CREATED) | (is_directory ? DIRECTORY : 0)},
       path, NULL, 0);
  if (existed && (flags & O_TRUNC))
    note((struct entry){.file = about.st_ino, .kind = TRUNCATE}, "", NULL, 0);
  return fd;
}

static int open_below(int at, const char *path, int flags, mode_t mode) {
  if (!below(path)) return real_openat(at, path, flags, mode);
  /* Reading a file or a directory changes nothing; failing it is asked for all the same. */
  if (flags & (O_CREAT | O_TRUNC)) count();
  if (fails(FAIL_OPEN)) return -1;
  int existed = access(path, F_OK) == 0;
  return opened(real_openat(at, path, flags, mode), path, flags, existed);
}

static mode_t mode_of(int flags, va_list arguments) {
  return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

#define OPEN(name)                                    \
  int name(const char *path, int flags, ...) {        \
    va_list arguments;                                \
    va_start(arguments, flags);                       \
    mode_t mode = mode_of(flags, arguments);          \
    va_end(arguments);                                \
    return open_below(AT_FDCWD, path, flags, mode);   \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                  \
  int name(int at, const char *path, int flags, ...) { \
    va_list arguments;                                \
    va_start(arguments, flags);                       \
    mode_t mode = mode_of(flags, arguments);          \
    va_end(arguments);                                \
    return open_below(at, path, flags, mode);         \
  }
OPENAT(openat)
OPENAT(openat64)

static size_t length_of(const struct iovec *data, int parts) {
  size_t length = 0;
  for (int part = 0; part < parts; part++) length += data[part].iov_len;
  return length;
}

/* `at` below 0: where the descriptor stands. */
static ssize_t write_below(int fd, const struct iovec *data, int parts, off_t at) {
  struct stat about;
  if (!tracked(fd, &about)) return at < 0 ? real_writev(fd, data, parts) : real_pwritev(fd, data, parts, at);
  count();
  if (fails(FAIL_WRITE)) return -1;
  off_t offset = at;
  if (at < 0) offset = files[fd].flags & O_APPEND ? about.st_size : lseek(fd, 0, SEEK_CUR);
  if (fails(FAIL_SHORT)) {
    struct iovec half = {data[0].iov_base, data[0].iov_len / 2};
    return at < 0 ? real_writev(fd, &half, 1) : real_pwritev(fd, &half, 1, at);
  }
  if (fails(FAIL_LATE)) {
    ssize_t ignored = at < 0 ? real_writev(fd, data, parts) : real_pwritev(fd, data, parts, at);
    (void)ignored;
    errno = (int)failing->error;
    return -1;
  }
  size_t length = length_of(data, parts);
  uint64_t number = note((struct entry){.file = about.st_ino, .kind = WRITE, .offset = offset, .bytes = length}, "",
                         data, parts);
  ssize_t written = at < 0 ? real_writev(fd, data, parts) : real_pwritev(fd, data, parts, at);
  if (trace >= 0 && written != (ssize_t)length) abort();
  if (files[fd].flags & O_DSYNC)
    note((struct entry){.file = about.st_ino, .kind = WRITTEN, .offset = number}, "", NULL, 0);
  return written;
}

ssize_t writev(int fd, const struct iovec *data, int parts) { return write_below(fd, data, parts, -1); }
ssize_t pwritev(int fd, const struct iovec *data, int parts, off_t at) { return write_below(fd, data, parts, at); }
ssize_t pwritev64(int fd, const struct iovec *data, int parts, off64_t at) { return write_below(fd, data, parts, at); }

ssize_t write(int fd, const void *bytes, size_t length) {
  struct stat about;
  if (!tracked(fd, &about)) return real_write(fd, bytes, length);
  return write_below(fd, &(struct iovec){(void *)bytes, length}, 1, -1);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) {
  return write_below(fd, &(struct iovec){(void *)bytes, length}, 1, at);
}
ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) { return pwrite(fd, bytes, length, at); }

/* A disk that does not answer. */
static void stall(void) {
  while (stall_file != NULL && access(stall_file, F_OK) == 0) usleep(10000);
}

static int sync_below(int fd, int (*real)(int)) {
  struct stat about;
  if (!tracked(fd, &about)) return real(fd);
  stall();
  count();
  if (fails(FAIL_SYNC)) return -1;
  uint64_t number = note((struct entry){.file = about.st_ino, .kind = SYNC}, "", NULL, 0);
  usleep(slow_us);
  int result = real(fd);
  if (result == 0) note((struct entry){.file = about.st_ino, .kind = SYNCED, .offset = number}, "", NULL, 0);
  return result;
}

int fsync(int fd) { return sync_below(fd, real_fsync); }
int fdatasync(int fd) { return sync_below(fd, real_fdatasync); }

int ftruncate(int fd, off_t length) {
  struct stat about;
  if (!tracked(fd, &about)) return real_ftruncate(fd, length);
  count();
  if (fails(FAIL_WRITE)) return -1;
  note((struct entry){.file = about.st_ino, .kind = TRUNCATE, .offset = length}, "", NULL, 0);
  return real_ftruncate(fd, length);
}
int ftruncate64(int fd, off64_t length) { return ftruncate(fd, length); }

int mkdir(const char *path, mode_t mode) {
  if (!below(path)) return real_mkdir(path, mode);
  count();
  if (fails(FAIL_OPEN)) return -1;
  int result = real_mkdir(path, mode);
  if (result == 0) note((struct entry){.kind = MKDIR, .paths = strlen(path)}, path, NULL, 0);
  return result;
}

int rename(const char *from, const char *to) {
  if (!below(from)) return real_rename(from, to);
  count();
  if (fails(FAIL_WRITE)) return -1;
  int result = real_rename(from, to);
  if (result == 0) {
    char paths[2 * PATH_MAX + 2];
    int length = snprintf(paths, sizeof paths, "%s%c%s", from, 0, to);
    note((struct entry){.kind = RENAME, .paths = length}, paths, NULL, 0);
  }
  return result;
}

static int remove_below(const char *path, int (*real)(const char *)) {
  if (!below(path)) return real(path);
  count();
  int result = real(path);
  if (result == 0) note((struct entry){.kind = REMOVE, .paths = strlen(path)}, path, NULL, 0);
  return result;
}

int unlink(const char *path) { return remove_below(path, real_unlink); }
int rmdir(const char *path) { return remove_below(path, real_rmdir); }

int close(int fd) {
  if (fd >= 0 && fd < FILES) files[fd].inode = 0;
  return real_close(fd);
}
