/* Prints each line of its input that came before, in this run or in one that kept its state in the same file: what a cache
 * would store, of the URLs that a log has.
 *
 *     second_sights STATE ["objects=10M age=50h rate=0.001 hits=2"] <urls
 */
#include <reprise/admission.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

static int complain(const char *what, const reprise_error *error) {
    fprintf(stderr, "second_sights: %s: %s\n", what, error->text);
    return 1;
}

int main(int count, char **arguments) {
    reprise_error error = REPRISE_ERROR_INIT;
    reprise_admission_options options = REPRISE_ADMISSION_OPTIONS_INIT;
    reprise_admission_figures figures = REPRISE_ADMISSION_FIGURES_INIT;
    reprise_admission *gate = NULL;
    char line[4096];

    if (count < 2 || count > 3) {
        fprintf(stderr, "usage: second_sights STATE [OPTIONS] <urls\n");
        return 2;
    }
    options.state = arguments[1];
    if (count == 3 && reprise_admission_parse(&options, arguments[2], &error) != REPRISE_OK) {
        return complain("options", &error);
    }
    if (reprise_admission_open(&options, (int64_t)time(NULL), &gate, &error) != REPRISE_OK) {
        return complain("open", &error);
    }
    if (error.code != REPRISE_OK) { /* opened, but it remembers nothing of before */
        complain("state", &error);
    }
    while (fgets(line, sizeof line, stdin) != NULL) {
        const size_t length = strcspn(line, "\n");
        const reprise_key key = reprise_admission_key(gate, line, length);
        const unsigned before = reprise_admission_note(gate, key, (int64_t)time(NULL));
        if (reprise_admission_wanted(gate, before)) {
            printf("%.*s\n", (int)length, line);
        }
    }
    if (reprise_admission_read(gate, (int64_t)time(NULL), &figures) == REPRISE_OK) {
        fprintf(stderr,
                "%llu first sights, %llu others; %llu bytes for %llu keys\n",
                (unsigned long long)figures.first_sights,
                (unsigned long long)figures.repeats,
                (unsigned long long)figures.memory,
                (unsigned long long)figures.objects);
    }
    if (reprise_admission_save(gate, NULL, &error) != REPRISE_OK) {
        complain("save", &error);
    }
    reprise_admission_close(gate);
    return error.code == REPRISE_OK ? 0 : 1;
}
