"""Trees whose nodes divide rows by a sparse linear separator that is learnt from their labels (FastXML).

A node divides its rows in two steps. First, without the features, each side has a ranking of the labels, and
the sum over rows of

    nDCG = Σ over labels l of the row of  gain_l / log₂(1 + rank of l)  /  Σ_{r ≤ |y|} 1 / log₂(1 + r)

is maximized by turns over the rankings and over the sides of rows. Then an L1-regularized logistic regression
of the side on the features is the separator that the rows, and those of queries, follow.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, vstack

from ..kernels import DEFAULT, Engine
from ..runtime.parallel import blocks, map_blocks
from ..validation import stored

Array = np.ndarray

N_ROUNDS = 100  # of rankings and sides, at most
TOLERANCE = 0.1  # of the separators, relative to the violation of the optimality conditions at 0
N_STEPS = 5  # of Newton's method, at most
N_ATTEMPTS = 3  # to divide a node, from other random sides, at most
RAISE = 4.0  # factor of the cost in the next attempt


class Forest(NamedTuple):
    """Trees; the nodes of all of them are numbered together, and so are their leaves.

    roots : (t,) int64, the first node of each tree; a number below 0 is the leaf −1 − number
    children : (m, 2) int64, where rows go with margins up to 0, and above; numbers below 0 are leaves
    starts, features, weights : (m + 1,) int64, and int32 and float32, the separator of each node;
    bias : (m,) float32
    leaves : (k, L) csr float32, the label distribution of each leaf
    """

    roots: Array
    children: Array
    starts: Array
    features: Array
    weights: Array
    bias: Array
    leaves: csr_matrix


def fit(
    X: csr_matrix,
    Y: csr_matrix,
    n_trees: int,
    rng: np.random.Generator,
    *,
    gains: Array | None = None,
    cost: float = 1.0,
    max_leaf: int = 10,
    n_leaf_labels: int = 100,
    n_jobs: int | None = None,
    engine: Engine = DEFAULT,
) -> Forest:
    """Grow trees, each with a random generator of its own.

    X : (n, d) csr float32;  Y : (n, L) csr of ones, at least one in each row
    gains : (L,) the gain of each label; ones if not given
    cost : factor of the loss of the separators, relative to ‖w‖₁
    max_leaf : a node with more rows is divided, if a separator can
    n_leaf_labels : labels with the largest shares that a leaf keeps
    """
    gains = np.ones(Y.shape[1]) if gains is None else np.asarray(gains, np.float64)
    seeds = rng.spawn(n_trees)

    def grow(which: slice) -> Forest:
        tree, leaf_of_row = _grow(X, Y, gains, seeds[which.start], cost, max_leaf, engine)
        return tree._replace(leaves=_distributions(leaf_of_row, Y, n_leaf_labels))

    done = map_blocks(grow, blocks(n_trees, 1), n_jobs=n_jobs, stage="trees", total=n_trees, unit="trees")
    return _joined(list(done))


def _grow(
    X: csr_matrix,
    Y: csr_matrix,
    gains: Array,
    rng: np.random.Generator,
    cost: float,
    max_leaf: int,
    engine: Engine,
) -> tuple[Forest, Array]:
    """A tree whose leaves have no distributions yet, and (n,) int64, the leaf of each row; level by level."""
    n = X.shape[0]
    rows, leaf_of_row, n_leaves = np.arange(n), np.empty(n, np.int64), 0
    discounts = 1 / np.log2(np.arange(2, Y.shape[1] + 2))
    sides, margins = np.empty(n, np.int8), np.empty(n)
    pending = _Pending(np.array([0]), np.array([n]), np.array([0]), np.array([0]))
    children, separators, n_nodes = np.zeros(2 * n + 1, np.int64), [], 0
    while len(pending.begins):
        # Nodes with few rows are leaves, and so are those that no separator divides.
        is_leaf = (pending.ends - pending.begins <= max_leaf) | (pending.attempts == N_ATTEMPTS)
        begins, ends, places, _ = pending.some(is_leaf)
        numbers = n_leaves + np.arange(len(begins))
        leaf_of_row[rows[_positions(begins, ends)]] = np.repeat(numbers, ends - begins)
        children[places] = -1 - numbers
        n_leaves += len(begins)
        own = pending.some(~is_leaf)
        states = rng.integers(2**63, size=len(own.begins), dtype=np.uint64)
        nodes = rows, own.begins, own.ends
        engine.assign_sides(Y.indptr, Y.indices, gains, discounts, *nodes, states, N_ROUNDS, sides)
        costs = cost * RAISE**own.attempts
        separator = _separators(X, rows, sides, own, costs, margins, engine)
        inside = _positions(own.begins, own.ends)
        of_node = np.repeat(np.arange(len(own.begins)), own.ends - own.begins)
        is_above = margins[inside] > 0
        n_above = np.bincount(of_node[is_above], minlength=len(own.begins))
        cuts = own.ends - n_above
        is_divided = (own.begins < cuts) & (cuts < own.ends)
        rows[inside] = rows[inside[np.argsort(2 * of_node + is_above, kind="stable")]]
        numbers = n_nodes + np.arange(int(is_divided.sum()))
        children[own.places[is_divided]] = numbers
        separators.append(_of_nodes(separator, is_divided))
        n_nodes += len(numbers)
        # The two parts of what is divided, and, for another attempt, the others.
        below = own.some(is_divided)._replace(ends=cuts[is_divided], places=1 + 2 * numbers)
        above = own.some(is_divided)._replace(begins=cuts[is_divided], places=2 + 2 * numbers)
        rest = own.some(~is_divided)
        pending = _Pending(*(np.concatenate(parts) for parts in zip(below, above, rest)))
        pending.attempts[: 2 * len(numbers)] = 0
        pending.attempts[2 * len(numbers) :] += 1
    counts, features, weights, bias = (np.concatenate(parts) for parts in zip(*separators))
    starts = np.concatenate(([0], np.cumsum(counts)))
    own_children = children[1 : 1 + 2 * n_nodes].reshape(-1, 2)
    tree = children[:1].copy(), own_children.copy(), starts, features, weights, bias
    return Forest(*tree, csr_matrix((n_leaves, Y.shape[1]), dtype=np.float32)), leaf_of_row


class _Pending(NamedTuple):
    """Nodes that are not divided yet.

    begins, ends : (k,) int64, where their rows are
    places : (k,) int64, where their numbers stand in `children` once they are known; the root has place 0
    attempts : (k,) int64, how often no separator was found
    """

    begins: Array
    ends: Array
    places: Array
    attempts: Array

    def some(self, is_one: Array) -> _Pending:
        return _Pending(*(values[is_one] for values in self))


def _positions(begins: Array, ends: Array) -> Array:
    """The numbers from each begin to its end, one after the other."""
    lengths = ends - begins
    return np.arange(lengths.sum()) + np.repeat(begins - np.cumsum(lengths) + lengths, lengths)


def _separators(
    X: csr_matrix,
    rows: Array,
    sides: Array,
    nodes: _Pending,
    costs: Array,
    margins: Array,
    engine: Engine,
) -> tuple[Array, Array, Array, Array]:
    """The starts, features and weights of separators, and their biases; the margins of rows are written."""
    own = rows[_positions(nodes.begins, nodes.ends)]
    size = int((X.indptr[own + 1] - X.indptr[own]).sum())
    starts, bias = np.zeros(len(nodes.begins) + 1, np.int64), np.empty(len(nodes.begins), np.float32)
    features, weights = np.empty(size, np.int32), np.empty(size, np.float32)
    given = X.indptr, X.indices, X.data, X.shape[1], rows, sides, nodes.begins, nodes.ends, costs
    engine.fit_separators(*given, TOLERANCE, N_STEPS, starts, features, weights, bias, margins)
    return starts, features[: starts[-1]].copy(), weights[: starts[-1]].copy(), bias


def _of_nodes(separators: tuple[Array, ...], is_kept: Array) -> tuple[Array, Array, Array, Array]:
    """The number of weights of each separator that is kept, their features and values, and the biases."""
    starts, features, weights, bias = separators
    counts = np.diff(starts)
    own = np.repeat(is_kept, counts)
    return counts[is_kept], features[own], weights[own], bias[is_kept]


def _distributions(leaf_of_row: Array, Y: csr_matrix, n_leaf_labels: int) -> csr_matrix:
    """(k, L) csr float32, the shares of a leaf's rows that have each label; the largest ones."""
    n, sizes = len(leaf_of_row), np.bincount(leaf_of_row)
    members = csr_matrix((np.ones(n, np.float32), (leaf_of_row, np.arange(n))), (len(sizes), n))
    shares = csr_matrix(members @ Y)
    shares.sort_indices()
    leaf = np.repeat(np.arange(len(sizes)), np.diff(shares.indptr))
    values = (shares.data / sizes[leaf]).astype(np.float32)
    order = np.lexsort((-values, leaf))  # stable, so that of equal labels the first are kept
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(shares.indptr[:-1], np.diff(shares.indptr))
    kept = rank < n_leaf_labels
    starts = np.concatenate(([0], np.cumsum(kept)))[shares.indptr]
    return csr_matrix((values[kept], shares.indices[kept], starts), shares.shape)


def _joined(trees: list[Forest]) -> Forest:
    """The trees as one forest."""
    n_nodes = np.cumsum([0, *(len(tree.children) for tree in trees)])
    n_leaves = np.cumsum([0, *(tree.leaves.shape[0] for tree in trees)])
    n_weights = np.cumsum([0, *(len(tree.weights) for tree in trees)])

    def numbered(name: str) -> Array:
        parts = [getattr(tree, name) for tree in trees]
        moved = [
            np.where(part < 0, part - leaf, part + node) for part, node, leaf in zip(parts, n_nodes, n_leaves)
        ]
        return np.concatenate(moved)

    def joined(name: str) -> Array:
        return np.concatenate([getattr(tree, name) for tree in trees])

    starts = [tree.starts[:-1] + first for tree, first in zip(trees, n_weights)]
    return Forest(
        numbered("roots"),
        numbered("children"),
        np.concatenate([*starts, n_weights[-1:]]),
        joined("features"),
        joined("weights"),
        joined("bias"),
        csr_matrix(vstack([tree.leaves for tree in trees], format="csr")),
    )


def score(forest: Forest, X: csr_matrix, *, engine: Engine = DEFAULT) -> csr_matrix:
    """(n, L) csr float32, the mean over trees of the distributions of the leaves that a row reaches.

    X : (n, d) csr float32
    """
    n, n_trees = X.shape[0], len(forest.roots)
    leaves = np.empty((n, n_trees), np.int64)
    x = np.zeros(X.shape[1], np.float32)
    engine.route_rows(X.indptr, X.indices, X.data, *forest[:6], x, leaves)
    starts = np.arange(n + 1) * n_trees
    shares = np.full(leaves.size, 1 / n_trees, np.float32)
    reached = csr_matrix((shares, leaves.ravel(), starts), (n, forest.leaves.shape[0]))
    scores = csr_matrix(reached @ forest.leaves)
    np.minimum(scores.data, 1, out=scores.data)  # The shares of 50 trees may add up to a little more.
    return scores


def rank(scores: csr_matrix, k: int, *, engine: Engine = DEFAULT) -> tuple[Array, Array]:
    """(n, k) int64 and float32, the labels with the largest scores, and these; −1 and 0 pad."""
    n = scores.shape[0]
    ids, best = np.full((n, k), -1, np.int64), np.zeros((n, k), np.float32)
    engine.rank_rows(scores.indptr, scores.indices, scores.data, ids, best)
    return ids, best


def check(forest: Any, d: int, n_labels: int) -> None:
    """Check trees of d features and n_labels labels that come from a file."""
    stored.record(forest, "the trees", Forest)
    stored.record(forest.leaves, "the leaves of trees", csr_matrix)
    stored.matrix(forest.leaves, "the leaves of trees", None, n_labels)
    shares = stored.array(forest.leaves.data, "the shares in leaves of trees", "float32", None)
    is_share = ((shares > 0) & (shares <= 1)).all()
    stored.require(is_share, "the leaves of trees hold numbers that are no shares")
    n_leaves, m = (
        forest.leaves.shape[0],
        len(stored.array(forest.children, "nodes of trees", "int64", None, 2)),
    )
    for name, numbers in (("roots", forest.roots), ("nodes", forest.children.ravel())):
        stored.ids(numbers, f"the {name} of trees", None, m, low=-n_leaves, dtypes="int64")
    stored.require(len(forest.roots), "there are no trees")
    # Numbers rise from a node to its children, so that every way down ends.
    rises = (forest.children < 0) | (forest.children > np.arange(m)[:, None])
    stored.require(rises.all(), "the nodes of trees are not in order")
    used = stored.ids(forest.features, "the features of trees", None, d, dtypes="int32")
    stored.array(forest.weights, "the weights of trees", "float32", len(used))
    stored.offsets(forest.starts, "the weights of nodes", m, len(used))
    stored.array(forest.bias, "the biases of nodes", "float32", m)
