/* part_types.h: types of the members of structs that the host and kernels share. */
#ifndef CLPIPE_KERNELS_PART_TYPES_H
#define CLPIPE_KERNELS_PART_TYPES_H

#ifdef __OPENCL_VERSION__
#define PART_U8  uchar
#define PART_U16 ushort
#define PART_U32 uint
#define PART_U64 ulong
#define PART_I32 int
#else
#include <stdint.h>
#define PART_U8  uint8_t
#define PART_U16 uint16_t
#define PART_U32 uint32_t
#define PART_U64 uint64_t
#define PART_I32 int32_t
#endif

#endif
