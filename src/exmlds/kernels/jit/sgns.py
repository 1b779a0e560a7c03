"""Skip-gram with negative sampling, pair by pair."""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .compiler import reordering_kernel

LINE = 16  # float32 values in a line of the cache


@intrinsic
def _prefetch(typing_context, matrix, row, column):
    """Begin to load the line of the cache with this item of a matrix."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        row_bytes = builder.mul(arguments[1], builder.extract_value(array.strides, 0))
        column_bytes = builder.mul(arguments[2], builder.extract_value(array.strides, 1))
        pointer = ir.IntType(8).as_pointer()
        start = builder.bitcast(array.data, pointer)
        item = builder.gep(start, [builder.add(row_bytes, column_bytes)])
        flags = [ir.Constant(ir.IntType(32), flag) for flag in (1, 3, 1)]  # to write, keep, data
        function = ir.FunctionType(ir.VoidType(), [pointer] + [ir.IntType(32)] * 3)
        builder.call(builder.module.declare_intrinsic("llvm.prefetch", [pointer], function), [item, *flags])
        return context.get_dummy_value()

    return types.none(matrix, types.int64, types.int64), generate


@reordering_kernel
def sgns_pairs(rows, columns, weights, negatives, first_rate, last_rate, vectors, contexts, skip_self):
    """See the twin in reference/sgns.py."""
    rank = vectors.shape[1]
    change = np.empty(rank, np.float32)
    n = negatives.shape[1] + 1
    steps = np.empty(n, np.float32)
    for p in range(len(rows)):
        rate = np.float32(first_rate + (last_rate - first_rate) * p / len(rows)) * weights[p]
        vector = vectors[rows[p]]
        change[:] = 0
        if p + 1 < len(rows):  # Most of the time went into waiting for vectors beyond the second cache.
            for t in range(n):
                target = columns[p + 1] if t == 0 else negatives[p + 1, t - 1]
                for c in range(0, rank, LINE):
                    _prefetch(contexts, target, c)
        # All inner products come first, so that the processor computes several at the same time.
        for t in range(n):
            target = columns[p] if t == 0 else negatives[p, t - 1]
            context = contexts[target]
            dot = np.float32(0)
            for c in range(rank):
                dot += vector[c] * context[c]
            steps[t] = dot
        for t in range(n):
            target_value = np.float32(1) if t == 0 else np.float32(0)
            steps[t] = rate * (target_value - np.float32(1) / (np.float32(1) + np.exp(-steps[t])))
        for t in range(n):
            target = columns[p] if t == 0 else negatives[p, t - 1]
            if skip_self and t > 0 and target == rows[p]:
                continue
            context, step = contexts[target], steps[t]
            # One loop takes half the time of two, which would each check whether their rows overlap.
            for c in range(rank):
                before = context[c]
                change[c] += step * before
                context[c] = before + step * vector[c]
        for c in range(rank):
            vector[c] += change[c]
