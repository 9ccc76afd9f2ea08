// What nvcc declares on its own, or only in device code, and headers name outside function bodies.
#pragma once
#include <cuda_runtime.h>

extern const uint3 threadIdx, blockIdx;
extern const dim3 blockDim, gridDim;
void __syncwarp(unsigned = 0xffffffffu);
void __syncthreads();

namespace nvcuda {
namespace wmma {
struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };
template <typename Use, int m, int n, int k, typename T, typename Layout = void>
class fragment;
namespace experimental {
namespace precision {
struct b1;
struct s4;
struct u4;
}  // namespace precision
enum bmmaBitOp { bmmaBitOpXOR = 1 };
enum bmmaAccumulateOp { bmmaAccumulateOpPOPC = 1 };
}  // namespace experimental
}  // namespace wmma
}  // namespace nvcuda
