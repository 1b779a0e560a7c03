// The best rows of each query: a coarse selection from blocks of scores, and exact scores of what it found.

#define STEP 4  // scores that a thread looks at between two barriers

template <typename Score> __device__ inline float as_float(Score score);
template <> __device__ inline float as_float<float>(float score) { return score; }
template <> __device__ inline float as_float<uint16>(uint16 score) { return half_to_float(score); }

// Merge the scores of m rows into the k best keys of a query; a block of threads calls it together.
//   bias : (m,) added to the scores, −inf leaves a row out;  first : the position of the first row
//   capacity : keys in shared memory, a power of two
template <typename Score>
__device__ inline void select_best(const Score* row, const float* bias, int m, int64 first, int k, int capacity,
                                   uint64* own) {
    SHARED int count;
    uint64* keys = (uint64*)dynamic_shared;
    int step = blockDim.x * STEP;
    for (int i = threadIdx.x; i < k; i += blockDim.x) keys[i] = own[i];
    if (threadIdx.x == 0) count = k;
    __syncthreads();
    uint64 worst = keys[k - 1];
    __syncthreads();
    for (int start = 0; start < m; start += step) {
        for (int i = 0; i < STEP; ++i) {
            int j = start + i * blockDim.x + threadIdx.x;
            if (j >= m) continue;
            float score = as_float<Score>(row[j]) + bias[j];
            if (!(score > -INFINITY)) continue;
            uint64 key = key_of(score, (uint32)(first + j));
            if (key < worst) keys[atomicAdd(&count, 1)] = key;
        }
        __syncthreads();
        bool is_last = start + step >= m;
        int filled = count;
        __syncthreads();
        if (filled + step > capacity || is_last) {
            // The order of what threads added does not matter: keys are different, and are sorted.
            for (int i = filled + threadIdx.x; i < capacity; i += blockDim.x) keys[i] = LAST_KEY;
            sort_keys(keys, capacity);
            worst = keys[k - 1];
            if (threadIdx.x == 0) count = k;
            __syncthreads();
        }
    }
    for (int i = threadIdx.x; i < k; i += blockDim.x) own[i] = keys[i];
}

// Scores (q, m) are merged into the best keys (q, k).
KERNEL select_from_halves(const uint16* scores, const float* bias, int m, int64 first, int k, int capacity,
                          uint64* best) {
    int64 q = blockIdx.x;
    select_best<uint16>(scores + q * m, bias, m, first, k, capacity, best + q * k);
}

KERNEL select_from_floats(const float* scores, const float* bias, int m, int64 first, int k, int capacity,
                          uint64* best) {
    int64 q = blockIdx.x;
    select_best<float>(scores + q * m, bias, m, first, k, capacity, best + q * k);
}

// Positions of the rows that were selected; −1 where there are fewer.
KERNEL positions_of_keys(const uint64* keys, int64 n, int64* positions) {
    for (int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64)gridDim.x * blockDim.x)
        positions[i] = keys[i] == LAST_KEY ? -1 : (int64)(uint32)keys[i];
}

// Exact scores of the rows at m positions of each query, and the best of them, which are sorted.
//   ids : (q, m) what the rows are called;  capacity : of keys, a power of two of at least m
//   best_ids, best_scores : (q, width), of which the first n_best are written
KERNEL rescore_rows(const float* queries, const float* rows, const float* bias, int rank, int is_euclidean,
                    const int64* positions, const int64* ids, int m, int n_best, int capacity, int width,
                    int64* best_ids, float* best_scores) {
    uint64* keys = (uint64*)dynamic_shared;
    float* query = (float*)(keys + capacity);
    int64 q = blockIdx.x;
    int lane = threadIdx.x % WARP, n_warps = blockDim.x / WARP;
    for (int c = threadIdx.x; c < rank; c += blockDim.x) query[c] = queries[q * rank + c];
    for (int i = threadIdx.x; i < capacity; i += blockDim.x) keys[i] = LAST_KEY;
    __syncthreads();
    for (int i = threadIdx.x / WARP; i < m; i += n_warps) {
        int64 position = positions[q * m + i];
        if (position < 0) continue;
        const float* row = rows + position * rank;
        float sum = 0;
        for (int c = lane; c < rank; c += WARP) {
            float x = row[c], y = query[c];
            sum += is_euclidean ? (x - y) * (x - y) : x * y;
        }
        sum = warp_sum(sum);
        float score = is_euclidean ? (bias[position] == -INFINITY ? -INFINITY : -sum) : sum + bias[position];
        if (lane == 0) keys[i] = key_of(score, (uint32)ids[q * m + i]);
    }
    sort_keys(keys, capacity);
    for (int i = threadIdx.x; i < n_best; i += blockDim.x) {
        if (keys[i] == LAST_KEY) continue;
        best_ids[q * width + i] = (int64)(uint32)keys[i];
        best_scores[q * width + i] = score_of(keys[i]);
    }
}

// The best rows of sparse queries: the posting lists of a query's features are added up one after the other.
//   scores : (blocks, n) work space of zeros, which is zero again at the end;  first : the id of the first row
KERNEL search_postings(const int64* indptr, const uint32* features, const float* values, int n_queries,
                       const int64* starts, const uint32* rows, const float* row_values, const float* bias, int n,
                       int64 first, int k, int capacity, float* scores, uint64* best) {
    float* own = scores + (int64)blockIdx.x * n;
    for (int q = blockIdx.x; q < n_queries; q += gridDim.x) {
        for (int64 p = indptr[q]; p < indptr[q + 1]; ++p) {
            uint32 f = features[p];
            for (int64 i = starts[f] + threadIdx.x; i < starts[f + 1]; i += blockDim.x)
                own[rows[i]] += values[p] * row_values[i];
            __syncthreads();
        }
        select_best<float>(own, bias, n, first, k, capacity, best + (int64)q * k);
        __syncthreads();
        for (int i = threadIdx.x; i < n; i += blockDim.x) own[i] = 0;
        __syncthreads();
    }
}
