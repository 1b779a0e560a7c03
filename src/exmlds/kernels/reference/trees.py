"""Trees that divide rows by their labels and then by their features: growing a level, and walking down."""

from __future__ import annotations

import numpy as np

Array = np.ndarray

LEAST_GAIN = 1e-10  # differences of nDCG below it are rounding errors
N_SWEEPS = 10  # of coordinate descent in a step of Newton's method, at most
INNER_SHARE = 0.1  # of the violation at the start of a step, at which its sweeps end
N_HALVINGS = 30  # of a step, at most
DECREASE = 0.01  # share of the expected decrease of the objective that a step must reach
LEAST_CURVATURE = 1e-12


def assign_sides(
    indptr: Array,
    labels: Array,
    gains: Array,
    discounts: Array,
    rows: Array,
    begins: Array,
    ends: Array,
    states: Array,
    n_rounds: int,
    sides: Array,
) -> None:
    """Divide the rows of each node between two sides, so that a ranking of labels for each has a high nDCG.

    The sides are random at first. In a round, the labels of each side are ranked by the sums of their gains,
    and each row changes to the side whose ranking gives it the larger nDCG, until no row changes.

    indptr, labels : the labels of all rows as csr; a row of a node has at least one
    gains : (L,) float64, the gain of each label;  discounts : (L,) float64, those of ranks
    rows : (m,) int64, the rows of all nodes, those of a node at begins to ends, (k,) int64
    states : (k,) uint64, of the linear congruential generators that draw the first sides
    n_rounds : rounds at most
    sides : (m,) int8, written: 0 or 1
    """
    for first, last, seed in zip(begins.tolist(), ends.tolist(), states.tolist()):
        own = [labels[indptr[row] : indptr[row + 1]] for row in rows[first:last]]
        names = list(
            dict.fromkeys(np.concatenate([labels[:0], *own]).tolist())
        )  # in the order of their first use
        Y = np.array([np.isin(names, listed) for listed in own], float) * gains[names]
        ideal = np.array([discounts[: len(listed)].sum() for listed in own])
        state, side = seed, np.zeros(last - first, np.int8)
        for i in range(last - first):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            side[i] = state >> 63
        for _ in range(n_rounds):
            of_ranks = []
            for which in (0, 1):
                order = np.argsort(-(Y / ideal[:, None])[side == which].sum(axis=0), kind="stable")
                weights = np.empty(len(names))
                weights[order] = discounts[: len(names)]
                of_ranks.append(weights)
            gain = Y @ (of_ranks[1] - of_ranks[0])
            new = np.where(np.abs(gain) > LEAST_GAIN, gain > 0, side).astype(np.int8)
            if np.array_equal(new, side):
                break
            side = new
        sides[first:last] = side


def fit_separators(
    indptr: Array,
    features: Array,
    values: Array,
    n_features: int,
    rows: Array,
    sides: Array,
    begins: Array,
    ends: Array,
    costs: Array,
    tolerance: float,
    n_steps: int,
    starts: Array,
    out_features: Array,
    out_weights: Array,
    bias: Array,
    margins: Array,
) -> None:
    """Fit a sparse logistic regression of the side of a row on its features, for each node.

    It minimizes ‖w‖₁ + |b| + cost Σᵢ cᵢ log(1 + exp(−sᵢ(⟨w, xᵢ⟩ + b))), sᵢ = ±1, where cᵢ is the number of
    rows over that of the rows of the same side. A node whose rows are all on one side gets no weights.

    indptr, features, values : all rows as csr float32, of n_features features
    rows, begins, ends : as in `assign_sides`;  sides : (m,) int8, 0 or 1
    costs : (k,) float64, of each node
    tolerance : of the violation of the optimality conditions, relative to that at w = 0
    n_steps : steps of Newton's method, at most
    starts : (k + 1,) int64 zeros, gets where the weights of each node start
    out_features, out_weights : int32 and float32, written; as long as these rows have values, at least
    bias : (k,) float32, written;  margins : (m,) float64, written: ⟨w, x⟩ + b
    """
    n_out = 0
    for node, (first, last) in enumerate(zip(begins.tolist(), ends.tolist())):
        X = np.zeros((last - first, n_features + 1))
        order: dict[int, None] = {}  # features in the order of their first use
        for i, row in enumerate(rows[first:last]):
            stored = slice(indptr[row], indptr[row + 1])
            X[i, features[stored]] = values[stored]
            order.update(dict.fromkeys(features[stored].tolist()))
        X[:, n_features] = 1
        names, side = np.array([*order, n_features]), sides[first:last]
        w = np.zeros(len(names))
        if 0 < side.sum() < len(side):
            of_rows = costs[node] * len(side) / np.where(side == 1, side.sum(), (1 - side).sum())
            w = _logistic(X[:, names], 2.0 * side - 1, of_rows, tolerance, n_steps)
        w = w.astype(np.float32)
        kept = np.flatnonzero(w[:-1])
        out_features[n_out : n_out + len(kept)] = names[kept]
        out_weights[n_out : n_out + len(kept)] = w[kept]
        n_out += len(kept)
        starts[node + 1], bias[node] = n_out, w[-1]
        margins[first:last] = X[:, names] @ w.astype(np.float64)


def _logistic(X: Array, signs: Array, costs: Array, tolerance: float, n_steps: int) -> Array:
    """(m,) the minimum of ‖w‖₁ + Σ c log(1 + exp(−s ⟨w, x⟩)).

    A step of Newton's method minimizes the quadratic approximation of the loss, with the norm, by coordinate
    descent over the weights that are not 0 or should not be; its length is found by Armijo's rule.
    """

    def objective(w: Array) -> float:
        return float(np.abs(w).sum() + costs @ np.logaddexp(0, -signs * (X @ w)))

    w, first = np.zeros(X.shape[1]), None
    for _ in range(n_steps):
        wrong = 1 / (1 + np.exp(np.clip(signs * (X @ w), -700, 700)))
        gradient = -X.T @ (costs * signs * wrong)
        excess = _excess(w, gradient)
        first = excess.sum() if first is None else first
        if excess.sum() <= tolerance * first:
            break
        working = np.flatnonzero((w != 0) | (excess > 0))
        A = X[:, working]
        hessian = A.T @ (A * (costs * wrong * (1 - wrong))[:, None])
        curvature = np.diag(hessian) + LEAST_CURVATURE
        own, g, step = w[working], gradient[working].copy(), np.zeros(len(working))
        for _ in range(N_SWEEPS):
            rest = 0.0
            for j in range(len(working)):
                at, a, h = own[j] + step[j], g[j], curvature[j]
                rest += abs(a + np.sign(at)) if at else max(abs(a) - 1, 0)
                if a + 1 <= h * at:
                    z = -(a + 1) / h
                elif a - 1 >= h * at:
                    z = -(a - 1) / h
                else:
                    z = -at
                if z:
                    step[j] += z
                    g += z * hessian[j]
            if rest <= INNER_SHARE * excess.sum():
                break
        expected = gradient[working] @ step + np.abs(own + step).sum() - np.abs(own).sum()
        if expected >= 0:
            break
        size, whole = 1.0, np.zeros(len(w))
        whole[working] = step
        for _ in range(N_HALVINGS):
            if objective(w + size * whole) - objective(w) <= DECREASE * size * expected:
                break
            size /= 2
        w = w + size * whole
    return w


def _excess(w: Array, gradient: Array) -> Array:
    """How far the least subgradient of each coordinate is from 0."""
    return np.where(w == 0, np.maximum(np.abs(gradient) - 1, 0), np.abs(gradient + np.sign(w)))


def route_rows(
    indptr: Array,
    features: Array,
    values: Array,
    roots: Array,
    children: Array,
    starts: Array,
    used: Array,
    weights: Array,
    bias: Array,
    x: Array,
    leaves: Array,
) -> None:
    """Write the leaf of each tree that a row reaches.

    indptr, features, values : the rows as csr float32
    roots : (t,) int64, the first node of each tree;  children : (m, 2) int64, those of each node for margins
        up to 0 and above; a number below 0 is the leaf −1 − number
    starts, used, weights : (m + 1,) int64, and int32 and float32, the features and weights of each node
    bias : (m,) float32
    x : (d,) float32 zeros, a work array that is zero again at the end
    leaves : (n, t) int64, written
    """
    for row in range(len(leaves)):
        stored = slice(indptr[row], indptr[row + 1])
        own = np.zeros(len(x))
        own[features[stored]] = values[stored]
        for tree, node in enumerate(roots.tolist()):
            while node >= 0:
                of_node = slice(starts[node], starts[node + 1])
                margin = bias[node] + weights[of_node].astype(np.float64) @ own[used[of_node]]
                node = int(children[node, int(margin > 0)])
            leaves[row, tree] = -1 - node
