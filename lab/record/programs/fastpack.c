/* Packs n bytes of text into `width` 32-bit token ids. The caller vouches for n. */
#include <stdint.h>
#include <stdlib.h>

int32_t *pack(const char *text, int n, int width) {
    int32_t *ids = calloc((size_t)width, sizeof *ids);
    for (int i = 0; i < n; i++)
        ids[i] = text[i] & 127;
    return ids;
}

void release(int32_t *ids) { free(ids); }
