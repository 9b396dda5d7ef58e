/* methods.c: the table of k-means methods. */
#include "kmeans/method.h"

#define ROW(name, word) &name##_method,

const struct kmeans_method *const kmeans_methods[] = {KMEANS_METHODS(ROW) NULL};
