/* Preloaded (x86-64): what a program sees of a device that falls off the bus. After LOST_AFTER
 * calls of the CUDA driver each further call returns the status LOST_STATUS. Where NO_LIBRARY is
 * set, a library with that in its name cannot be opened. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static volatile int64_t left;
static volatile int32_t status;
static uint8_t *stubs;
static void *(*real_dlsym)(void *, const char *);

#define STUB 48
#define STUBS 4096

__attribute__((constructor)) static void start(void) {
    const char *after = getenv("LOST_AFTER");
    left = after ? atoll(after) : INT64_MAX;
    const char *code = getenv("LOST_STATUS");
    status = code ? atoi(code) : 999;
    real_dlsym = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    void *page = mmap(0, STUB * STUBS, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stubs = page == MAP_FAILED ? 0 : page;
}

/* Counts the call down, then jumps to the real function or returns the status. */
static void *stub(void *real) {
    static int made;
    int i = __atomic_fetch_add(&made, 1, __ATOMIC_SEQ_CST);
    if (!stubs || i >= STUBS)
        return real;
    uint8_t *code = stubs + i * STUB, *p = code;
    const volatile void *counter = &left, *result = &status;
    memcpy(p, "\x48\xb8", 2), memcpy(p + 2, &counter, 8), p += 10; /* mov rax, &left */
    memcpy(p, "\xf0\x48\x83\x28\x01", 5), p += 5;                  /* lock sub qword [rax], 1 */
    memcpy(p, "\x78\x0c", 2), p += 2;                              /* js to the status */
    memcpy(p, "\x48\xb8", 2), memcpy(p + 2, &real, 8), p += 10;    /* mov rax, real */
    memcpy(p, "\xff\xe0", 2), p += 2;                              /* jmp rax */
    memcpy(p, "\x48\xb8", 2), memcpy(p + 2, &result, 8), p += 10;  /* mov rax, &status */
    memcpy(p, "\x8b\x00\xc3", 3);                                  /* mov eax, [rax]; ret */
    return code;
}

void *dlsym(void *library, const char *name) {
    if (!real_dlsym)
        real_dlsym = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    void *real = real_dlsym(library, name);
    /* The driver's functions are cuSomething, the libraries' cublasSomething; what makes text of
     * a status stays. */
    if (!real || strncmp(name, "cu", 2) || name[2] < 'A' || name[2] > 'Z' || strstr(name, "cuGetError"))
        return real;
    return stub(real);
}

void *dlopen(const char *path, int flags) {
    static void *(*real)(const char *, int);
    if (!real) {
        if (!real_dlsym)
            real_dlsym = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
        real = real_dlsym(RTLD_NEXT, "dlopen");
    }
    const char *none = getenv("NO_LIBRARY");
    if (path && none && strstr(path, none))
        return 0;
    return real(path, flags);
}
