// SPDX-License-Identifier: GPL-3.0-or-later
// Kernels for any processor; on x86-64 with what every one of them has.
#include "kernels/cpu/kernel_table.h"

#include "kernels/cpu/isa/vec_portable.h"

#include "kernels/cpu/isa/elementwise.inc.h"

#include "kernels/cpu/isa/kv_codes.inc.h"

#include "kernels/cpu/isa/kv_tiles.inc.h"

#include "kernels/cpu/isa/attention.inc.h"
#include "kernels/cpu/isa/matmul.inc.h"

#define KVSCOPE_TABLE portableKernels
#define KVSCOPE_TABLE_NAME "portable"
#include "kernels/cpu/isa/table.inc.h"
