// The steps of joint learning on one batch of 2b rows: b rows, then the positive of each.

// List the values of rows as keys (batch, feature), in the order of the rows.
//   slots : (s,) the rows of several batches;  batches : (s,) the batch of each;  ends : (s + 1,) of its values
//   keys, sources, places : for each value its key, its position in X, and the place of its row in the batch
KERNEL list_values(const int64* indptr, const uint32* features, const int64* slots, const int* batches,
                   const int* places, const int64* ends, int n_slots, uint64* keys, int64* sources,
                   int* places_of_values) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / WARP, n_warps = gridDim.x * blockDim.x / WARP;
    for (int slot = warp; slot < n_slots; slot += n_warps) {
        int64 begin = indptr[slots[slot]], out = ends[slot], n = ends[slot + 1] - out;
        uint64 batch = (uint64)batches[slot] << 32;
        for (int64 p = threadIdx.x % WARP; p < n; p += WARP) {
            keys[out + p] = batch | features[begin + p];
            sources[out + p] = begin + p;
            places_of_values[out + p] = places[slot];
        }
    }
}

// Embed the rows of a batch, a block each: U (2b, r) of unit length for the cosine, its transpose, and lengths.
KERNEL embed_batch(const int64* indptr, const uint32* features, const float* values, const int64* rows,
                   const float* V, int rank, int is_cosine, float* U, float* transposed, float* lengths) {
    SHARED float partial[WARP];
    int place = blockIdx.x;
    int64 begin = indptr[rows[place]], end = indptr[rows[place] + 1];
    float square = 0;
    for (int c = threadIdx.x; c < rank; c += blockDim.x) {
        float a = 0, b = 0, x = 0, y = 0;
        int64 p = begin;
        for (; p + 4 <= end; p += 4) {
            a += values[p] * V[(int64)features[p] * rank + c];
            b += values[p + 1] * V[(int64)features[p + 1] * rank + c];
            x += values[p + 2] * V[(int64)features[p + 2] * rank + c];
            y += values[p + 3] * V[(int64)features[p + 3] * rank + c];
        }
        for (; p < end; ++p) a += values[p] * V[(int64)features[p] * rank + c];
        float z = (a + b) + (x + y);
        U[(int64)place * rank + c] = z;
        square += z * z;
    }
    float length = is_cosine ? fmaxf(sqrtf(block_sum(square, partial)), TINY) : 1;
    if (threadIdx.x == 0) lengths[place] = length;
    for (int c = threadIdx.x; c < rank; c += blockDim.x) {
        float u = U[(int64)place * rank + c] / length;
        U[(int64)place * rank + c] = u;
        transposed[(int64)c * gridDim.x + place] = u;
    }
}

#define ROWS 4  // of a batch that one block takes

// Slopes of the softmax loss by the similarities of a row and all contexts: (b, b).
//   neighbors : (n, k) the contexts of all rows, and group : (n,) equal for rows with equal labels; what
//   belongs to the context of a row or has its labels is no negative of it
KERNEL softmax_slopes(const float* U, const float* transposed, const int64* rows, const int64* contexts,
                      const int64* neighbors, int n_neighbors, const int64* group, int b, int rank, float gamma,
                      float* slopes) {
    SHARED float partial[WARP];
    float* own = (float*)dynamic_shared;  // (ROWS, r)
    float* k = own + ROWS * rank;         // (ROWS, b)
    int first = blockIdx.x * ROWS, n_rows = min(ROWS, b - first);
    for (int i = threadIdx.x; i < n_rows * rank; i += blockDim.x) own[i] = U[(int64)first * rank + i];
    __syncthreads();
    for (int j = threadIdx.x; j < b; j += blockDim.x) {
        float sums[ROWS] = {0};
        for (int c = 0; c < rank; ++c) {
            float u = transposed[(int64)c * 2 * b + b + j];
            for (int i = 0; i < ROWS; ++i) sums[i] += u * own[min(i, n_rows - 1) * rank + c];
        }
        for (int i = 0; i < n_rows; ++i) k[i * b + j] = sums[i];
    }
    __syncthreads();
    for (int i = 0; i < n_rows; ++i) {
        int64 row = rows[first + i], own_group = group[row];
        const int64* near = neighbors + row * n_neighbors;
        float positive = k[i * b + first + i], largest = positive;
        __syncthreads();  // before the next loop overwrites it
        for (int j = threadIdx.x; j < b; j += blockDim.x) {
            int64 context = contexts[j];
            bool counts = context != row && group[context] != own_group && j != first + i;
            for (int q = 0; q < n_neighbors && counts; ++q) counts = near[q] != context;
            if (counts) largest = fmaxf(largest, k[i * b + j]);
            else k[i * b + j] = -INFINITY;
        }
        largest = block_max(largest, partial);
        float odds = expf(gamma * (positive - largest)), total = 0;
        for (int j = threadIdx.x; j < b; j += blockDim.x) {
            float e = k[i * b + j] == -INFINITY ? 0 : expf(gamma * (k[i * b + j] - largest));
            k[i * b + j] = e;
            total += e;
        }
        total = odds + block_sum(total, partial);
        float factor = gamma / ((float)b * total);
        for (int j = threadIdx.x; j < b; j += blockDim.x)
            slopes[(int64)(first + i) * b + j] =
                j == first + i ? (odds / total - 1) * gamma / (float)b : k[i * b + j] * factor;
    }
}

// The gradients by the embeddings of all 2b rows, before they were scaled to unit length.
KERNEL batch_gradients(const float* U, const float* lengths, const float* slopes, int b, int rank,
                       int is_cosine, float* gradients) {
    SHARED float partial[WARP];
    float* factors = (float*)dynamic_shared;  // (b, ROWS)
    int blocks_of_half = (b + ROWS - 1) / ROWS;
    bool is_context = blockIdx.x >= blocks_of_half;
    int first = (blockIdx.x - (is_context ? blocks_of_half : 0)) * ROWS, n_rows = min(ROWS, b - first);
    for (int i = threadIdx.x; i < b * ROWS; i += blockDim.x) {
        int other = is_context ? i / ROWS : i % b, own = is_context ? i % ROWS : i / b;
        float slope = 0;
        if (own < n_rows)
            slope = is_context ? slopes[(int64)other * b + first + own] : slopes[(int64)(first + own) * b + other];
        factors[other * ROWS + own] = slope;
    }
    __syncthreads();
    const float* others = U + (is_context ? 0 : (int64)b * rank);
    int64 place = first + (is_context ? b : 0);
    float inner[ROWS] = {0};
    for (int c = threadIdx.x; c < rank; c += blockDim.x) {
        float sums[ROWS] = {0};
        for (int j = 0; j < b; ++j) {
            float u = others[(int64)j * rank + c];
            for (int i = 0; i < ROWS; ++i) sums[i] += factors[j * ROWS + i] * u;
        }
        for (int i = 0; i < n_rows; ++i) {
            gradients[(place + i) * rank + c] = sums[i];
            inner[i] += sums[i] * U[(place + i) * rank + c];
        }
    }
    if (!is_cosine) return;
    for (int i = 0; i < n_rows; ++i) {
        float along = block_sum(inner[i], partial), length = lengths[place + i];
        for (int c = threadIdx.x; c < rank; c += blockDim.x) {
            int64 at = (place + i) * rank + c;
            gradients[at] = (gradients[at] - along * U[at]) / length;
        }
    }
}

// One AdaGrad step: a block for each feature of the batch, whose values lie between two starts.
//   keys, places, values : the batch and feature of each value, the place of its row in the batch, and itself
KERNEL step_features(const int64* starts, const uint64* keys, const int* places, const float* values,
                     const float* gradients, int rank, float rate, float* V, float* squares) {
    int64 begin = starts[blockIdx.x], end = starts[blockIdx.x + 1], at = (int64)(uint32)keys[begin] * rank;
    for (int c = threadIdx.x; c < rank; c += blockDim.x) {
        const float* own = gradients + c;
        float g = 0;
        int64 p = begin;
        for (; p + 4 <= end; p += 4) {
            float first = values[p] * own[(int64)places[p] * rank];
            float second = values[p + 1] * own[(int64)places[p + 1] * rank];
            float third = values[p + 2] * own[(int64)places[p + 2] * rank];
            float fourth = values[p + 3] * own[(int64)places[p + 3] * rank];
            g += (first + second) + (third + fourth);
        }
        for (; p < end; ++p) g += values[p] * own[(int64)places[p] * rank];
        float square = squares[at + c] + g * g;
        squares[at + c] = square;
        V[at + c] -= rate * g / sqrtf(fmaxf(square, TINY));
    }
}

// Multiply rows, a block each, with the rows of a matrix that belong to their features.
//   number : (d,) the row of each feature, or −1
KERNEL multiply_packed(const int64* indptr, const uint32* features, const float* values, const int* number,
                       const float* V, int rank, float* Z) {
    int64 row = blockIdx.x;
    for (int c = threadIdx.x; c < rank; c += blockDim.x) {
        float sum = 0;
        for (int64 p = indptr[row]; p < indptr[row + 1]; ++p) {
            int own = number[features[p]];
            if (own >= 0) sum += values[p] * V[(int64)own * rank + c];
        }
        Z[row * rank + c] = sum;
    }
}
