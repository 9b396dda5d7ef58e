/* places.c: which memory the tensors of a network share. */
#include "net/places.h"

void net_count_readers(struct net_reading *of, const struct net_model *model)
{
    for (uint32_t i = 0; i <= model->layer_count; i++)
        of[i] = (struct net_reading){.last = i};
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const struct net_fields *f = &model->layers[i].f;
        of[f->a].last = i + 1;
        of[f->a].count++;
        if (f->kind != NET_ADD && f->kind != NET_MULTIPLY)
            continue;
        of[f->b].last = i + 1;
        of[f->b].count++;
    }
    for (uint32_t i = 0; i < model->output_count; i++) {
        of[model->outputs[i].tensor].last = UINT32_MAX;
        of[model->outputs[i].tensor].count++;
    }
}

size_t net_find_places(size_t *place, const size_t *room, const struct net_reading *of,
                       uint32_t count)
{
    size_t bytes = 0;
    for (uint32_t t = 0; t < count; t++) {
        size_t at = 0;
        for (bool moved = true; moved;) {
            moved = false;
            for (uint32_t i = 0; i < t; i++) {
                const size_t end = place[i] + room[i];
                if (of[i].last >= t && place[i] < at + room[t] && at < end) {
                    at = end;
                    moved = true;
                }
            }
        }
        place[t] = at;
        bytes = at + room[t] > bytes ? at + room[t] : bytes;
    }
    return bytes;
}
