/* Two caches share the lines of the input between them, and a third one asks their digests which of them holds each.
 *
 *     two_siblings <lines
 */
#include <reprise/digest.h>

#include <stdio.h>
#include <string.h>

static reprise_error error = REPRISE_ERROR_INIT;

static int complain(const char *what) {
    fprintf(stderr, "two_siblings: %s: %s\n", what, error.text);
    return 1;
}

/* Where the network would be. */
struct link {
    reprise_siblings *to;
    unsigned from;
};
static int arrive(void *context, const void *piece, size_t bytes) {
    const struct link *link = context;
    printf("sibling %u sends %lu bytes\n", link->from, (unsigned long)bytes);
    return reprise_siblings_take(link->to, link->from, piece, bytes, &error);
}

int main(void) {
    const unsigned char seed[32] = "of a fleet: 32 random bytes";
    reprise_source_options options = REPRISE_SOURCE_OPTIONS_INIT;
    reprise_siblings_options others = REPRISE_SIBLINGS_OPTIONS_INIT;
    reprise_source *holds[2] = { NULL, NULL };
    struct link link = { NULL, 0 };
    reprise_siblings_reader *reader = NULL;
    static reprise_key keys[100000];
    unsigned long count = 0, found = 0, i;
    char line[4096];

    options.seed = others.seed = seed;
    options.keys = 10000;
    if (reprise_siblings_open(&others, &link.to, &error) != REPRISE_OK ||
        reprise_siblings_reader_open(link.to, &reader, &error) != REPRISE_OK ||
        reprise_source_open(&options, &holds[0], &error) != REPRISE_OK ||
        reprise_source_open(&options, &holds[1], &error) != REPRISE_OK) {
        return complain("open");
    }
    for (; count < 100000 && fgets(line, sizeof line, stdin) != NULL; ++count) {
        keys[count] = reprise_siblings_key(link.to, line, strcspn(line, "\n"));
        reprise_source_came(holds[count % 2], keys[count], 0);
    }
    for (; link.from < 2; ++link.from) {
        if (reprise_source_publish(holds[link.from], &error) != REPRISE_OK ||
            reprise_source_serve(holds[link.from], 0, 0, arrive, &link, &error) != REPRISE_OK) {
            return complain("exchange");
        }
    }
    for (i = 0; i < count; ++i) {
        found += reprise_siblings_ask(reader, keys[i]) >> i % 2 & 1;
    }
    printf("%lu of %lu found where they are\n", found, count);
    reprise_siblings_reader_close(reader);
    reprise_siblings_close(link.to);
    reprise_source_close(holds[0]);
    reprise_source_close(holds[1]);
    return found == count ? 0 : 1;
}
