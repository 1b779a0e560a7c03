// Runs CUDA kernels on the CPU, one block after the other: its threads take turns, and change at barriers.

#include <csetjmp>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <ucontext.h>
#include <utility>
#include <vector>

#define EXMLDS_ON_CPU
#define SHARED static
#define WHOLE_WARP 0xffffffffu
#define __device__
#define __global__
#define __launch_bounds__(...)

struct Number3 { int x, y, z; };
static Number3 threadIdx, blockIdx, blockDim, gridDim;
alignas(16) static unsigned char dynamic_shared[1 << 20];

struct Barrier {
    int expected = 0, arrived = 0, round = 0;
    void check() { if (expected && arrived == expected) { arrived = 0; ++round; } }
};

struct Thread {
    ucontext_t start;
    jmp_buf here;
    bool has_started, is_done;
    std::vector<char> stack;
};

static std::vector<Thread> threads;
static std::vector<Barrier> warps;
static Barrier block_barrier;
static std::vector<unsigned long long> exchanged;
static jmp_buf scheduler;
static ucontext_t back;
static void (*body)(void*);
static void* body_arguments;

static void give_way() {
    if (!_setjmp(threads[threadIdx.x].here)) _longjmp(scheduler, 1);
}

static void wait_at(Barrier& barrier) {
    int round = barrier.round;
    ++barrier.arrived;
    barrier.check();
    while (barrier.round == round) give_way();
}

static void __syncthreads() { wait_at(block_barrier); }
static void __syncwarp() { wait_at(warps[threadIdx.x / 32]); }

template <typename T> static T take_from(T value, int lane) {
    int first = threadIdx.x / 32 * 32;
    unsigned long long bits = 0;
    memcpy(&bits, &value, sizeof(T));
    exchanged[threadIdx.x] = bits;
    __syncwarp();
    bits = exchanged[first + lane];
    __syncwarp();
    memcpy(&value, &bits, sizeof(T));
    return value;
}

template <typename T> static T __shfl_sync(unsigned, T value, int lane) { return take_from(value, lane); }
template <typename T> static T __shfl_xor_sync(unsigned, T value, int other) {
    return take_from(value, (threadIdx.x % 32) ^ other);
}
static unsigned __ballot_sync(unsigned, bool is_set) {
    unsigned found = 0;
    for (int lane = 0; lane < 32; ++lane) found |= (unsigned)take_from((int)is_set, lane) << lane;
    return found;
}
static int __popc(unsigned bits) { return __builtin_popcount(bits); }

// Threads change at barriers alone, so that these need no more.
template <typename T, typename U> static T atomicAdd(T* at, U value) { T old = *at; *at += (T)value; return old; }
template <typename T> static T atomicCAS(T* at, T expected, T value) {
    T old = *at;
    if (old == expected) *at = value;
    return old;
}

static unsigned __float_as_uint(float value) { unsigned bits; memcpy(&bits, &value, 4); return bits; }
static float __uint_as_float(unsigned bits) { float value; memcpy(&value, &bits, 4); return value; }
static int min(int a, int b) { return a < b ? a : b; }
static float half_to_float(unsigned short bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    float size = exponent == 31 ? (fraction ? NAN : INFINITY)
                 : exponent ? std::ldexp(1024.0f + fraction, exponent - 25) : std::ldexp((float)fraction, -24);
    return bits & 0x8000 ? -size : size;
}

static void run_thread() {
    body(body_arguments);
    Thread& own = threads[threadIdx.x];
    own.is_done = true;
    --block_barrier.expected;
    block_barrier.check();
    Barrier& warp = warps[threadIdx.x / 32];
    --warp.expected;
    warp.check();
    _longjmp(scheduler, 1);
}

static void run_block(int n_threads) {
    if ((int)threads.size() < n_threads) threads.resize(n_threads);
    exchanged.assign(n_threads, 0);
    warps.assign((n_threads + 31) / 32, Barrier());
    block_barrier = Barrier();
    block_barrier.expected = n_threads;
    for (int i = 0; i < n_threads; ++i) {
        ++warps[i / 32].expected;
        threads[i].has_started = threads[i].is_done = false;
        threads[i].stack.resize(1 << 16);
    }
    for (volatile int left = n_threads; left;) {
        left = 0;
        for (volatile int i = 0; i < n_threads; ++i) {
            if (threads[i].is_done) continue;
            left = left + 1;
            threadIdx.x = i;
            if (_setjmp(scheduler)) continue;
            if (threads[i].has_started) _longjmp(threads[i].here, 1);
            threads[i].has_started = true;
            getcontext(&threads[i].start);
            threads[i].start.uc_stack.ss_sp = threads[i].stack.data();
            threads[i].start.uc_stack.ss_size = threads[i].stack.size();
            threads[i].start.uc_link = &back;
            makecontext(&threads[i].start, run_thread, 0);
            setcontext(&threads[i].start);
        }
    }
}

template <typename... Types> struct Call {
    void (*kernel)(Types...);
    void** arguments;
    template <size_t... I> void with(std::index_sequence<I...>) {
        kernel(*(std::decay_t<Types>*)arguments[I]...);
    }
    static void run(void* self) { ((Call*)self)->with(std::index_sequence_for<Types...>()); }
};

template <typename... Types>
static int launch(void (*kernel)(Types...), int n_blocks, int n_threads, int shared, int n, void** arguments) {
    if (n != (int)sizeof...(Types) || shared > (int)sizeof(dynamic_shared)) return 1;
    Call<Types...> call{kernel, arguments};
    body = Call<Types...>::run;
    body_arguments = &call;
    blockDim.x = n_threads;
    gridDim.x = n_blocks;
    for (volatile int block = 0; block < n_blocks; block = block + 1) {
        blockIdx.x = block;
        memset(dynamic_shared, 0xab, shared);  // a kernel must not rely on what shared memory holds
        run_block(n_threads);
    }
    return 0;
}

#define ENTRY(name) \
    extern "C" int launch_##name(int blocks, int threads, int shared, int n, void** arguments) { \
        return launch(name, blocks, threads, shared, n, arguments); \
    }
