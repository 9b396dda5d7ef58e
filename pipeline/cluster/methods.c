/* methods.c: the table of k-means methods. */
#include "cluster/method.h"

const struct kmeans_method *const kmeans_methods[] = {&lloyd_method, &minibatch_method, NULL};
