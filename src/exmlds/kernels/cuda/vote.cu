// The labels with the largest vote shares: a block of threads for each query.

//   capacity : of the votes of a query, a power of two;  the labels of each vote are sorted, so that the votes
//   of a label are added in the order of the neighbours
KERNEL vote(const int64* neighbors, const float* weights, int m, const int64* indptr, const uint32* labels, int k,
            int capacity, int64* ids, float* shares) {
    SHARED int count;
    SHARED double total;
    uint64* votes = (uint64*)dynamic_shared;   // (capacity,) label and neighbour
    uint64* found = votes + capacity;          // (capacity,) share and label
    float* own_weights = (float*)(found + capacity);
    int* begins = (int*)(own_weights + m);     // (m + 1,) the first vote of each neighbour
    int64 q = blockIdx.x;
    for (int j = threadIdx.x; j < m; j += blockDim.x) {
        int64 row = neighbors[q * m + j];
        float weight = row < 0 ? 0 : weights[q * m + j];
        own_weights[j] = weight;
        begins[j + 1] = weight > 0 ? (int)(indptr[row + 1] - indptr[row]) : 0;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        begins[0] = count = 0;
        total = 0;
        for (int j = 0; j < m; ++j) {
            begins[j + 1] += begins[j];
            if (own_weights[j] > 0) total += own_weights[j];
        }
    }
    __syncthreads();
    int n_votes = begins[m];
    for (int j = threadIdx.x / WARP; j < m; j += blockDim.x / WARP) {
        int64 row = neighbors[q * m + j];
        for (int i = threadIdx.x % WARP; i < begins[j + 1] - begins[j]; i += WARP)
            votes[begins[j] + i] = ((uint64)labels[indptr[row] + i] << 16) | (uint64)j;
    }
    for (int i = n_votes + threadIdx.x; i < capacity; i += blockDim.x) votes[i] = LAST_KEY;
    for (int i = threadIdx.x; i < capacity; i += blockDim.x) found[i] = LAST_KEY;
    sort_keys(votes, capacity);
    for (int i = threadIdx.x; i < n_votes; i += blockDim.x) {
        uint64 label = votes[i] >> 16;
        if (i && votes[i - 1] >> 16 == label) continue;
        double sum = 0;
        for (int j = i; j < n_votes && votes[j] >> 16 == label; ++j) sum += own_weights[votes[j] & 0xffff];
        found[atomicAdd(&count, 1)] = key_of((float)(sum / total), (uint32)label);
    }
    sort_keys(found, capacity);
    for (int i = threadIdx.x; i < k && i < capacity; i += blockDim.x) {
        if (found[i] == LAST_KEY) continue;
        ids[q * k + i] = (int64)(uint32)found[i];
        shares[q * k + i] = score_of(found[i]);
    }
}
