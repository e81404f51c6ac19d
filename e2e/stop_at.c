/*
 * Preloaded into a Cassandra: the process stops itself (SIGSTOP) at a step of a compaction's commit, which is a line of its transaction's log.
 *
 *   HALCYON_STOP_AT names a file. In it "before TEXT PATH" or "after TEXT PATH": around the write of a line that begins so, into the log of
 *   a compaction whose path has this in it. It is removed then, and SIGCONT has the process go on. Without the file nothing is different.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_in(int file, const char *place)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    return strstr(path, "_txn_compaction_") && strstr(path, place);
}

static void stop_if_wanted(const char *when, int file, const char *line)
{
    const char *control = getenv("HALCYON_STOP_AT");
    FILE *wanted = control ? fopen(control, "r") : NULL;
    char at[16] = "", text[16] = "", place[64] = "";
    if (!wanted)
        return;
    int words = fscanf(wanted, "%15s %15s %63s", at, text, place);
    fclose(wanted);
    if (words != 3 || strcmp(at, when) || strncmp(line, text, strlen(text)) || !is_in(file, place))
        return;
    unlink(control);
    /* To this thread: it would run on while another took the signal. */
    raise(SIGSTOP);
}

ssize_t write(int file, const void *bytes, size_t length)
{
    static ssize_t (*real)(int, const void *, size_t);
    if (!real)
        real = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    /* Few other writes begin so: the file is looked for at these alone. */
    int is_step = length > 16 && (!memcmp(bytes, "REMOVE:[", 8) || !memcmp(bytes, "COMMIT:[", 8));
    if (is_step)
        stop_if_wanted("before", file, bytes);
    ssize_t written = real(file, bytes, length);
    if (is_step && written > 0)
        stop_if_wanted("after", file, bytes);
    return written;
}
