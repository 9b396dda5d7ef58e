/* words.h: words for clusters and pictures: the classes of a network (class_layer.h), or else the
 * folders, that distinguish a cluster from the others. docs/clustering.md defines them. */
#ifndef CLPIPE_RESULT_WORDS_H
#define CLPIPE_RESULT_WORDS_H

#include "result/result.h"

#define WORDS_MOST 3

/* The text is valid until words_close. share: of the class among all, or of the cluster's images that
 * lie in the folder. */
struct word {
    const char *text;
    double share, gain; /* the best gain comes first */
};
struct words;

/* For a clustering of the images of `result`, or for its pictures alone (clusters NULL). *out is NULL if
 * there are neither classes nor folders for words. The result must outlive it. */
enum status words_open(struct words **out, struct result *result,
                       const struct result_clusters *clusters, struct error *err);
void words_close(struct words **words);

/* Whether pictures have words. */
bool words_have_classes(const struct words *words);

/* The number of words of a cluster, the best first; 0: none fits, or `words` is NULL. */
unsigned words_of_cluster(struct word out[WORDS_MOST], struct words *words, uint32_t cluster);

/* The same for `count` pictures by row: the best classes of each. Never from folders. Unused words
 * have the text NULL. */
enum status words_of_pictures(struct word (*out)[WORDS_MOST], struct words *words,
                              const uint64_t *rows, uint64_t count, struct error *err);

/* The numbers of the clusters, the largest first; the caller frees them; NULL: no memory. */
uint32_t *clusters_by_size(const uint64_t *sizes, uint32_t k);

/* "daisy 94 %, bee 5 %"; "" if there are none. Returns text. */
char *words_text(char *text, size_t size, const struct word *word, unsigned count);

#endif
