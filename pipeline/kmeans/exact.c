/* exact.c: chooses where the canonical distance is evaluated. */
#include "kmeans/exact.h"

enum status exact_open(struct exact **out, struct filter *filter, struct error *err)
{
    return (filter->lane->host_exact ? &exact_host : &exact_device)->open(out, filter, err);
}

void exact_close(struct exact **exact)
{
    if (*exact)
        (*exact)->ops->close(*exact);
    *exact = NULL;
}
