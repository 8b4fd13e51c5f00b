// SPDX-License-Identifier: GPL-3.0-or-later
// Kernels for processors with AVX-512 (F, DQ, BW, VL) but without VNNI; compiled with their flags.
#include "kernels/cpu/kernel_table.h"

#include "kernels/cpu/isa/vec_avx512.h"

#include "kernels/cpu/isa/elementwise.inc.h"

#include "kernels/cpu/isa/kv_codes.inc.h"

#include "kernels/cpu/isa/kv_tiles.inc.h"

#include "kernels/cpu/isa/attention.inc.h"
#include "kernels/cpu/isa/matmul.inc.h"

#define KVSCOPE_TABLE avx512Kernels
#define KVSCOPE_TABLE_NAME "AVX-512"
#include "kernels/cpu/isa/table.inc.h"
