/* exact.c: chooses where the canonical distance is evaluated. */
#include "kmeans/exact.h"

static const struct exact_ops *const table[] = {&exact_device, &exact_host};

enum status exact_open(struct exact **out, struct filter *filter, struct error *err)
{
    const struct exact_ops *const *ops = table;
    while (!(*ops)->possible(filter->lane))
        ops++;
    return (*ops)->open(out, filter, err);
}

void exact_close(struct exact **exact)
{
    if (*exact)
        (*exact)->ops->close(*exact);
    *exact = NULL;
}
