/* jpeg_stream.c: from the header and the scan of a JPEG file to the payload of decode/stream.h.
 *
 * Files that might cause a libjpeg warning are refused here or by the stream decoder and then go to
 * the library. Bytes between the scan's last block and the next marker are ignored. */
#include "decode/jpeg_stream.h"

#include <string.h>

static bool has_tables(const struct jpeg_decompress_struct *info,
                       const jpeg_component_info *component)
{
    const int quantization = component->quant_tbl_no;
    const int dc = component->dc_tbl_no, ac = component->ac_tbl_no;
    return quantization >= 0 && quantization < NUM_QUANT_TBLS &&
           info->quant_tbl_ptrs[quantization] && dc >= 0 && dc < NUM_HUFF_TBLS &&
           info->dc_huff_tbl_ptrs[dc] && ac >= 0 && ac < NUM_HUFF_TBLS &&
           info->ac_huff_tbl_ptrs[ac];
}

bool jpeg_stream_begin(struct stream_head *head, const struct jpeg_decompress_struct *info,
                       const struct dct_layout *layout)
{
    const jpeg_component_info *first = &info->comp_info[0];
    /* A single block per MCU, whatever the factors; the layout assumes 1 x 1. */
    if (layout->colour == DCT_GREY && (first->h_samp_factor != 1 || first->v_samp_factor != 1))
        return false;
    if (info->comps_in_scan != info->num_components)
        return false;
    stream_begin(head, layout, info->restart_interval);
    for (int c = 0; c < info->num_components; c++) {
        const jpeg_component_info *component = &info->comp_info[c];
        if (info->cur_comp_info[c] != component || !has_tables(info, component))
            return false;
        const JHUFF_TBL *dc = info->dc_huff_tbl_ptrs[component->dc_tbl_no];
        const JHUFF_TBL *ac = info->ac_huff_tbl_ptrs[component->ac_tbl_no];
        if (!stream_set_tables(head, (unsigned)c, dc->bits + 1, dc->huffval, ac->bits + 1,
                               ac->huffval))
            return false;
        for (unsigned i = 0; i < DCT_BLOCK; i++)
            head->quantization[c][i] = info->quant_tbl_ptrs[component->quant_tbl_no]->quantval[i];
    }
    return true;
}

bool jpeg_stream_read(void *payload, struct stream_head *head, uint64_t most, struct input *input)
{
    uint8_t *data = (uint8_t *)payload + head->data;
    uint32_t *border = (uint32_t *)(void *)((uint8_t *)payload + head->borders);
    size_t size = 0;
    uint32_t segment = 0;
    int code = 0;
    border[0] = 0;
    while (code == 0) {
        if (!input_fill(input))
            return false;
        const uint8_t *from = input->buffer + input->position;
        const size_t have = input->end - input->position;
        const uint8_t *marker = memchr(from, 0xff, have);
        const size_t run = marker ? (size_t)(marker - from) : have;
        if (run + 1 > most - size)
            return false;
        memcpy(data + size, from, run);
        size += run;
        input->position += run;
        if (!marker)
            continue;
        input->position++;
        code = input_byte(input);
        if (code == 0) {
            data[size++] = 0xff;
        } else if (code >= JPEG_RST0 && code <= JPEG_RST0 + 7) {
            if (code != (int)(JPEG_RST0 + segment % 8) || segment + 1 >= head->segments)
                return false;
            border[++segment] = (uint32_t)size * 8;
            code = 0;
        }
    }
    if (code < 0 || code == 0xff || segment + 1 != head->segments || size == 0)
        return false;
    head->bits = border[head->segments] = (uint32_t)size * 8;
    memset(data + size, 0, STREAM_PADDING);
    memcpy(payload, head, sizeof *head);
    return true;
}
