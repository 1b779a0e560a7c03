// Linear classifiers, one per label: a warp descends on the dual of one label, as the CPU does; see
// reference/rerank.py for the algorithm.

#define SHRINK_MARGIN 0.05f  // as in the twin, as the next one
#define SETTLED 0.2f

// The root α in (0, cost) of log(α / (cost − α)) + margin + square (α − old), by Newton's method on the smaller
// of α and cost − α, so that neither loses precision.
__device__ inline float logistic_step(float old, float cost, float square, float margin) {
    double a = square, b = margin, c = cost, start = old;
    bool is_lower = b + a * (c / 2 - start) > 0;
    double z = fmax(fmin(is_lower ? start : c - start, c / 2), 1e-12 * c);
    for (int i = 0; i < 20; ++i) {
        double rest = b + a * ((is_lower ? z : c - z) - start);
        double slope = log(z / (c - z)) + (is_lower ? rest : -rest);
        if (fabs(slope) < 1e-3) break;
        double next = z - slope / (a + c / (z * (c - z)));
        z = next > 0 ? fmin(next, c / 2) : z * 0.1;
    }
    return (float)(is_lower ? z : c - z);
}

// The features of a row are different, but for the zeros that pad it, which are left out.
__device__ inline void add_row(const uint32* features, const float* values, int64 begin, int64 end, float step,
                               float* w) {
    for (int64 p = begin + threadIdx.x % WARP; p < end; p += WARP)
        if (values[p] != 0) w[features[p]] += step * values[p];
    __syncwarp();
}

//   todo : (t,) the labels, those with most examples first;  next : the first of them that no warp has taken
//   order : (m,) work space;  w, kept_features, kept_values : (warps, d) work space, w of zeros
//   n_written : the weights of all labels so far;  begins, counts : (labels,) where those of a label are written
KERNEL __launch_bounds__(256, 3) train_labels(const int64* indptr, const uint32* features, const float* values, const float* squares,
                    const int64* starts, const int* rows, const int8* signs, const float* costs, const int* todo,
                    int n_todo, int* next, int64 first, int is_logistic, int n_new_epochs, int n_epochs,
                    float tolerance, float keep_from, float* alphas, uint32* order, int64 d, float* w,
                    uint32* kept_features, float* kept_values, uint64* n_written, int64* begins,
                    int64* counts, uint32* out_features, int8* out_values, float* out_scale, float* out_bias) {
    int lane = threadIdx.x % WARP;
    int64 warp = ((int64)blockIdx.x * blockDim.x + threadIdx.x) / WARP;
    w += warp * d;
    kept_features += warp * d;
    kept_values += warp * d;
    for (;;) {
        int turn = lane == 0 ? atomicAdd(next, 1) : 0;
        turn = __shfl_sync(WHOLE_WARP, turn, 0);
        if (turn >= n_todo) return;
        int64 own = todo[turn], start = starts[own], m = starts[own + 1] - start;
        uint32* ranks = order + start;
        uint64 state = (uint64)(first + own) * 2654435761ull + 12345ull;
        float bias = 0, threshold = INFINITY;
        // Start from w = Σ α sign x; new examples, with an α of 0, are before the others.
        int64 n_new = 0;
        for (int64 base = 0; base < m; base += WARP) {
            int64 i = base + lane;
            bool is_new = i < m && alphas[start + i] == 0;
            uint32 mask = __ballot_sync(WHOLE_WARP, is_new);
            int64 before = n_new + __popc(mask & ((1u << lane) - 1));
            if (is_new) ranks[before] = (uint32)i;
            else if (i < m) ranks[m - 1 - i + before] = (uint32)i;
            n_new += __popc(mask);
        }
        __syncwarp();
        for (int64 i = 0; i < m; ++i) {
            int64 row = rows[start + i];
            float alpha = alphas[start + i];
            if (alpha == 0 && is_logistic) {
                alpha = 1e-3f * costs[row];
                __syncwarp();
                if (lane == 0) alphas[start + i] = alpha;
            } else if (alpha != 0) threshold = SHRINK_MARGIN;
            if (alpha == 0) continue;
            float step = alpha * signs[start + i];
            bias += step;
            add_row(features, values, indptr[row], indptr[row + 1], step, w);
        }
        int64 active = m;
        int epoch = 0;
        if (n_new_epochs > 0 && n_new > 0 && n_new < m) {
            active = n_new;
            epoch = -n_new_epochs;
            threshold = INFINITY;
        } else {
            for (int64 i = lane; i < m; i += WARP) ranks[i] = (uint32)i;
        }
        __syncwarp();
        while (epoch < n_epochs) {
            float violation = 0, largest = 0, total = 0;
            if (lane == 0) {
                for (int64 i = active - 1; i > 0; --i) {
                    state = state * 6364136223846793005ull + 1442695040888963407ull;
                    int64 j = (int64)(((state >> 33) * (uint64)(i + 1)) >> 31);
                    uint32 other = ranks[i];
                    ranks[i] = ranks[j];
                    ranks[j] = other;
                }
            }
            __syncwarp();
            int64 position = 0, loaded = -1;
            int64 row = 0, begin = 0, end = 0;
            uint32 i = 0;
            float alpha = 0, sign = 0, cost = 1, square = 0;
            while (position < active) {
                // Each lane reads what belongs to one of the next examples.
                bool reads = position / WARP != loaded;
                if (reads) loaded = position / WARP;
                if (reads ? loaded * WARP + lane < active : false) {
                    i = ranks[loaded * WARP + lane];
                    row = rows[start + i];
                    alpha = alphas[start + i];
                    sign = signs[start + i];
                    begin = indptr[row];
                    end = indptr[row + 1];
                    cost = costs[row];
                    square = squares[row];
                }
                __syncwarp();
                int from = (int)(position % WARP);
                int64 own_begin = __shfl_sync(WHOLE_WARP, begin, from);
                int64 own_end = __shfl_sync(WHOLE_WARP, end, from);
                float own_sign = __shfl_sync(WHOLE_WARP, sign, from), old = __shfl_sync(WHOLE_WARP, alpha, from);
                float own_cost = __shfl_sync(WHOLE_WARP, cost, from);
                float own_square = __shfl_sync(WHOLE_WARP, square, from);
                uint32 own_i = __shfl_sync(WHOLE_WARP, i, from);
                float sum = 0;
                for (int64 p = own_begin + lane; p < own_end; p += WARP) sum += w[features[p]] * values[p];
                float margin = own_sign * (bias + warp_sum(sum)), changed;
                if (is_logistic) {
                    changed = logistic_step(old, own_cost, own_square + 1, margin);
                    violation = fmaxf(violation, fabsf(changed - old) / own_cost);
                } else {
                    float slack = 0.5f / own_cost, gradient = margin - 1 + old * slack;
                    if (old == 0 && gradient > threshold) {  // shrinking
                        active -= 1;
                        uint32 last = ranks[active];
                        __syncwarp();
                        if (lane == 0) {
                            ranks[position] = last;
                            ranks[active] = own_i;
                        }
                        if (lane == from) {
                            i = last;
                            row = rows[start + i];
                            alpha = alphas[start + i];
                            sign = signs[start + i];
                            begin = indptr[row];
                            end = indptr[row + 1];
                            cost = costs[row];
                            square = squares[row];
                        }
                        __syncwarp();
                        continue;
                    }
                    if (old == 0 && gradient >= 0) {
                        position += 1;
                        continue;
                    }
                    violation = fmaxf(violation, fabsf(gradient));
                    total += fabsf(gradient);
                    largest = fmaxf(largest, gradient);
                    changed = fmaxf(old - gradient / (own_square + 1 + slack), 0.0f);
                }
                float step = (changed - old) * own_sign;
                if (step != 0) {
                    if (lane == 0) alphas[start + own_i] = changed;
                    bias += step;
                    add_row(features, values, own_begin, own_end, step, w);
                }
                position += 1;
            }
            threshold = largest > 0 ? fminf(largest, SHRINK_MARGIN) : SHRINK_MARGIN;
            epoch += 1;
            if (epoch <= 0) {  // The pass was over new examples alone.
                if (violation < tolerance || epoch == 0) {
                    active = m;
                    epoch = 0;
                    threshold = SHRINK_MARGIN;
                }
            } else if (n_new_epochs > 0 && !is_logistic && total < SETTLED * tolerance * (float)active) {
                break;
            } else if (violation < tolerance) {
                if (active == m) break;
                active = m;
                threshold = INFINITY;
            }
        }
        // Weights are those of the features of examples with α > 0; a weight that was listed becomes zero.
        float greatest = 0;
        for (int64 i = 0; i < m; ++i) {
            if (alphas[start + i] == 0) continue;
            int64 row = rows[start + i];
            for (int64 p = indptr[row] + lane; p < indptr[row + 1]; p += WARP)
                greatest = fmaxf(greatest, fabsf(w[features[p]]));
        }
        greatest = warp_max(greatest);
        float least = keep_from * greatest, scale = greatest / 127;
        int64 n_kept = 0;
        for (int64 i = 0; i < m; ++i) {
            if (alphas[start + i] == 0) continue;
            int64 row = rows[start + i];
            for (int64 base = indptr[row]; base < indptr[row + 1]; base += WARP) {
                int64 p = base + lane;
                bool is_value = p < indptr[row + 1] && values[p] != 0;
                uint32 f = is_value ? features[p] : 0;
                float weight = is_value ? w[f] : 0;
                bool is_kept = weight != 0 && fabsf(weight) >= least;
                if (is_value) w[f] = 0;
                uint32 mask = __ballot_sync(WHOLE_WARP, is_kept);
                if (is_kept) {
                    int64 at = n_kept + __popc(mask & ((1u << lane) - 1));
                    kept_features[at] = f;
                    kept_values[at] = weight;
                }
                n_kept += __popc(mask);
            }
            __syncwarp();
        }
        // Examples whose α became 0 again have left zeros, or rounding errors, on features of their own.
        for (int64 i = 0; i < m; ++i) {
            if (alphas[start + i] != 0) continue;
            int64 row = rows[start + i];
            for (int64 p = indptr[row] + lane; p < indptr[row + 1]; p += WARP) w[features[p]] = 0;
        }
        int64 at = lane == 0 ? (int64)atomicAdd(n_written, (uint64)n_kept) : 0;
        at = __shfl_sync(WHOLE_WARP, at, 0);
        if (lane == 0) {
            begins[own] = at;
            counts[own] = n_kept;
            out_scale[own] = scale;
            out_bias[own] = bias;
        }
        __syncwarp();
        float divisor = scale > 0 ? scale : 1;
        for (int64 i = lane; i < n_kept; i += WARP) {
            out_features[at + i] = kept_features[i];
            out_values[at + i] = (int8)rintf(kept_values[i] / divisor);
        }
        __syncwarp();
    }
}

// Copy the weights of labels to where they belong in the order of the labels.
//   begins : where the weights of a label are;  starts : (labels + 1,) where they go
KERNEL arrange_weights(const int64* begins, const int64* starts, int n_labels, const uint32* features, const int8* values, int* out_features, int8* out_values) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / WARP, n_warps = gridDim.x * blockDim.x / WARP;
    for (int label = warp; label < n_labels; label += n_warps) {
        for (int64 i = threadIdx.x % WARP; i < starts[label + 1] - starts[label]; i += WARP) {
            out_features[starts[label] + i] = (int)features[begins[label] + i];
            out_values[starts[label] + i] = values[begins[label] + i];
        }
    }
}

#define NO_LABEL 0xffffffffu

// The margins of the labels on each short list, a block of threads for each row.
//   capacity : of the table that finds a label on the list, a power of two above the length of the list
KERNEL score_labels(const int64* indptr, const uint32* features, const float* values, const int64* starts,
                    const uint32* labels, const int8* weights, const int8* dense, const int* dense_slot,
                    int64 n_labels, const float* scale, const float* bias, const int64* ids, int k, int capacity,
                    float* out) {
    uint32* table = (uint32*)dynamic_shared;   // (capacity,) labels
    int* place = (int*)(table + capacity);     // (capacity,) their places on the list
    int* listed = place + capacity;            // (k,) the list, −1 pads
    float* all_sums = (float*)(listed + k);    // (warps, k)
    int64 row = blockIdx.x;
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, n_warps = blockDim.x / WARP;
    for (int i = threadIdx.x; i < capacity; i += blockDim.x) table[i] = NO_LABEL;
    for (int i = threadIdx.x; i < k; i += blockDim.x) listed[i] = (int)ids[row * k + i];
    for (int i = threadIdx.x; i < n_warps * k; i += blockDim.x) all_sums[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < k; i += blockDim.x) {
        if (listed[i] < 0) continue;
        uint32 label = (uint32)listed[i], at = (label * 2654435761u) & (capacity - 1);
        while (atomicCAS(&table[at], NO_LABEL, label) != NO_LABEL) at = (at + 1) & (capacity - 1);
        place[at] = i;
    }
    __syncthreads();
    // Each warp takes every n-th feature and has sums of its own. A label occurs once among the weights of a
    // feature, so that no two threads add to the same sum at the same time.
    float* sums = all_sums + warp * k;
    for (int64 p = indptr[row] + warp; p < indptr[row + 1]; p += n_warps) {
        uint32 f = features[p];
        float x = values[p];
        for (int64 q = starts[f] + lane; q < starts[f + 1]; q += WARP) {
            uint32 label = labels[q], at = (label * 2654435761u) & (capacity - 1);
            while (table[at] != label && table[at] != NO_LABEL) at = (at + 1) & (capacity - 1);
            if (table[at] == label) sums[place[at]] += x * weights[q];
        }
        __syncwarp();
        if (dense_slot[f] >= 0) {
            const int8* own = dense + dense_slot[f] * n_labels;
            for (int i = lane; i < k; i += WARP)
                if (listed[i] >= 0) sums[i] += x * own[listed[i]];
        }
        __syncwarp();
    }
    __syncthreads();
    for (int i = threadIdx.x; i < k; i += blockDim.x) {
        int label = listed[i];
        float sum = 0;
        for (int w = 0; w < n_warps; ++w) sum += all_sums[w * k + i];
        out[row * k + i] = label < 0 ? -INFINITY : sum * scale[label] + bias[label];
    }
}
