// SPDX-License-Identifier: GPL-3.0-or-later
// Kernels for processors with AVX2, FMA and F16C; compiled with their flags.
#include "kernels/cpu/kernel_table.h"

#include "kernels/cpu/isa/vec_avx2.h"

#include "kernels/cpu/isa/elementwise.inc.h"

#include "kernels/cpu/isa/kv_codes.inc.h"

#include "kernels/cpu/isa/kv_tiles.inc.h"

#include "kernels/cpu/isa/attention.inc.h"
#include "kernels/cpu/isa/matmul.inc.h"

#define KVSCOPE_TABLE avx2Kernels
#define KVSCOPE_TABLE_NAME "AVX2"
#include "kernels/cpu/isa/table.inc.h"
