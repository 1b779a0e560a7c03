// Products of a sparse matrix and a dense one: a block of threads for each row, whose values are added in order.

KERNEL multiply_csr(const int64* indptr, const uint32* indices, const float* data, const float* Q, int rank,
                    float* out) {
    int64 row = blockIdx.x, end = indptr[row + 1];
    for (int c = threadIdx.x; c < rank; c += blockDim.x) {
        float a = 0, b = 0, x = 0, y = 0;
        int64 p = indptr[row];
        for (; p + 4 <= end; p += 4) {
            a += data[p] * Q[(int64)indices[p] * rank + c];
            b += data[p + 1] * Q[(int64)indices[p + 1] * rank + c];
            x += data[p + 2] * Q[(int64)indices[p + 2] * rank + c];
            y += data[p + 3] * Q[(int64)indices[p + 3] * rank + c];
        }
        for (; p < end; ++p) a += data[p] * Q[(int64)indices[p] * rank + c];
        out[row * rank + c] = (a + b) + (x + y);
    }
}
