/* methods.c: the table of k-means methods. */
#include "kmeans/method.h"

const struct kmeans_method *const kmeans_methods[] = {&lloyd_method, &minibatch_method, NULL};
