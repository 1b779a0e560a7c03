// The logits of the stacker for the labels on short lists, a block of threads for each row; the evidence is not
// stored. See `stacking.build_evidence` for what it is, and the twin in reference/stacking.py.

KERNEL weigh_pairs(const float* votes, const float* margins, const double* counts, const float* second_votes,
                   int has_second, const float* lifts, int has_lifts, const float* similarities,
                   int has_similarities, const float* matches, const float* match_lifts, int has_matches,
                   const float* limits, const double* weights, double bias, int k, double* logits) {
    SHARED float partial[WARP];
    int64 first = (int64)blockIdx.x * k;
    float least_share = limits[0], largest_margin = limits[1], least_match = limits[2];
    float best_margin = -largest_margin, most_similar = -INFINITY;
    for (int j = threadIdx.x; j < k; j += blockDim.x) {
        best_margin = fmaxf(best_margin, fminf(margins[first + j], largest_margin));
        if (!has_similarities) continue;
        float a = similarities[first + j];
        most_similar = fmaxf(most_similar, a > -INFINITY ? a : 0);
    }
    best_margin = block_max(best_margin, partial);
    most_similar = block_max(most_similar, partial);
    for (int j = threadIdx.x; j < k; j += blockDim.x) {
        int64 at = first + j;
        float v = logf(fmaxf(votes[at], least_share));
        float z = fminf(fmaxf(margins[at], -largest_margin), largest_margin);
        double c = log(fmax(counts[at], 1.0));
        float values[34] = {v, votes[at], z, tanhf(z), (float)c, v * z, (float)(z * c), (float)(v * c), z * z, v * v,
                            log1pf((float)j), z - best_margin};
        int f = 12;
        if (has_second) {
            float s = logf(fmaxf(second_votes[at], least_share));
            float own[5] = {s, second_votes[at], s * z, s * s, s * v};
            for (int i = 0; i < 5; ++i) values[f++] = own[i];
        }
        if (has_lifts) {
            float own[3] = {lifts[at], lifts[at] * z, (float)(lifts[at] * c)};
            for (int i = 0; i < 3; ++i) values[f++] = own[i];
        }
        if (has_similarities) {
            float a = similarities[at] > -INFINITY ? similarities[at] : 0;
            float own[5] = {a, a * a, a * z, (float)(a * c), a - most_similar};
            for (int i = 0; i < 5; ++i) values[f++] = own[i];
        }
        if (has_matches) {
            float is_matched = matches[at] > 0, m = logf(fmaxf(matches[at], least_match) / least_match);
            float lift = match_lifts[at];
            float own[9] = {is_matched, m, is_matched * z, is_matched * v, (float)(m * c), m * z,
                            lift, lift * z, lift * v};
            for (int i = 0; i < 9; ++i) values[f++] = own[i];
        }
        double total = bias;
        for (int i = 0; i < f; ++i) total += values[i] * weights[i];
        logits[at] = total;
    }
}
