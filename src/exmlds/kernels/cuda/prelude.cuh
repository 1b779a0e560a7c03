// What all kernels begin with. EXMLDS_ON_CPU is defined where the tests compile them for the CPU.

typedef long long int64;
typedef unsigned long long uint64;
typedef unsigned int uint32;
typedef unsigned short uint16;
typedef signed char int8;

#ifndef EXMLDS_ON_CPU
#define SHARED __shared__
#define WHOLE_WARP 0xffffffffu
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif

extern __shared__ __align__(16) unsigned char dynamic_shared[];  // as many bytes as a launch asks for

__device__ inline float half_to_float(uint16 bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}
#endif

#define KERNEL extern "C" __global__ void
#define TINY 1e-37f  // in place of a zero, which has no inverse
#define WARP 32

const uint64 LAST_KEY = ~0ull;  // a key after all others

// Keys that sort by score, best first, and then by number.
__device__ inline uint64 key_of(float score, uint32 number) {
    uint32 bits = __float_as_uint(score);
    uint32 ascending = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return ((uint64)~ascending << 32) | number;
}

__device__ inline float score_of(uint64 key) {
    uint32 ascending = ~(uint32)(key >> 32);
    return __uint_as_float(ascending & 0x80000000u ? ascending & 0x7fffffffu : ~ascending);
}

// Sort keys in shared memory by bitonic sort; n is a power of two. All threads of the block call it.
__device__ inline void sort_keys(uint64* keys, int n) {
    for (int size = 2; size <= n; size *= 2) {
        for (int stride = size / 2; stride; stride /= 2) {
            __syncthreads();
            for (int pair = threadIdx.x; pair < n / 2; pair += blockDim.x) {
                int i = 2 * pair - (pair & (stride - 1)), j = i + stride;
                bool ascends = !(i & size);
                if ((keys[i] > keys[j]) == ascends) {
                    uint64 other = keys[i];
                    keys[i] = keys[j];
                    keys[j] = other;
                }
            }
        }
    }
    __syncthreads();
}

__device__ inline float warp_sum(float value) {
    for (int lane = WARP / 2; lane; lane /= 2) value += __shfl_xor_sync(WHOLE_WARP, value, lane);
    return value;
}

__device__ inline float warp_max(float value) {
    for (int lane = WARP / 2; lane; lane /= 2)
        value = fmaxf(value, __shfl_xor_sync(WHOLE_WARP, value, lane));
    return value;
}

// The sum over all threads of a block, always in the same order; partial holds a float for each warp.
__device__ inline float block_sum(float value, float* partial) {
    int warp = threadIdx.x / WARP, n_warps = blockDim.x / WARP;
    value = warp_sum(value);
    __syncthreads();
    if (threadIdx.x % WARP == 0) partial[warp] = value;
    __syncthreads();
    float total = 0;
    for (int i = 0; i < n_warps; ++i) total += partial[i];
    return total;
}

__device__ inline float block_max(float value, float* partial) {
    int warp = threadIdx.x / WARP, n_warps = blockDim.x / WARP;
    value = warp_max(value);
    __syncthreads();
    if (threadIdx.x % WARP == 0) partial[warp] = value;
    __syncthreads();
    float largest = partial[0];
    for (int i = 1; i < n_warps; ++i) largest = fmaxf(largest, partial[i]);
    return largest;
}
