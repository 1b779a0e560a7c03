"""Finding names in texts."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def find_names(
    first_nodes: Array,
    child_starts: Array,
    child_tokens: Array,
    child_nodes: Array,
    ends: Array,
    indptr: Array,
    tokens: Array,
    starts: Array,
    lengths: Array,
    nodes: Array,
    covered: Array,
) -> int:
    """Write all runs of tokens that are names, by position and then by length, and return their number.

    A run is covered if it is a part of a longer one that is a name too.

    first_nodes : (t,) int32, the node of a trie that each token leads to from its root, −1 for none
    child_starts, child_tokens, child_nodes : (m + 1,) int64, (c,) int32, (c,) int32, the children of each
        node, by ascending tokens
    ends : (m,) uint8, 1 where a name ends
    indptr, tokens : (n + 1,) int64 and int32, the tokens of each text; −1 is in no name
    starts, lengths, nodes, covered : int64, int32, int32 and uint8, written; what they have no room for is
        left out
    """
    names: dict[tuple[int, ...], int] = {}
    todo: list[tuple[tuple[int, ...], int]] = [
        ((token,), node) for token, node in enumerate(first_nodes.tolist()) if node >= 0
    ]
    while todo:
        name, node = todo.pop()
        if ends[node]:
            names[name] = node
        own = slice(child_starts[node], child_starts[node + 1])
        todo += [
            ((*name, token), child)
            for token, child in zip(child_tokens[own].tolist(), child_nodes[own].tolist())
        ]
    longest = max(map(len, names), default=0)
    n = 0
    for text in range(len(indptr) - 1):
        end = int(indptr[text + 1])
        found = [
            (start, length)
            for start in range(int(indptr[text]), end)
            for length in range(1, min(longest, end - start) + 1)
            if tuple(tokens[start : start + length].tolist()) in names
        ]
        for start, length in found[: len(starts) - n]:
            around = [
                other
                for other in found
                if other[1] > length and other[0] <= start and start + length <= sum(other)
            ]
            starts[n], lengths[n], covered[n] = start, length, bool(around)
            nodes[n] = names[tuple(tokens[start : start + length].tolist())]
            n += 1
    return n


def collect_matches(
    texts: Array,
    starts: Array,
    lengths: Array,
    nodes: Array,
    covered: Array,
    in_first: Array,
    label_starts: Array,
    labels: Array,
    kinds: Array,
    slots: Array,
    out_texts: Array,
    out_labels: Array,
    facts: Array,
) -> int:
    """Write each pair of a text and a label whose name occurs in it, and return their number.

    Pairs are in the order of the texts, and those of a text in the order of the labels.

    texts, starts, lengths, nodes, covered, in_first : (h,) occurrences of names, by text
    label_starts, labels, kinds : (m + 1,), (p,) and (p,), the labels of each node, and the kinds of names
    slots : (L,) int64 of −1, used as scratch and left as it was
    out_texts, out_labels : int64, written
    facts : (…, 8) int32, written: the smallest kind, the largest length, 1 if all occurrences are covered,
        their number, the first start, the fewest labels that share such a name, the node of the name that the
        fewest share, the first of these, and the number of occurrences in the first of several fields
    """
    found: dict[tuple[int, int], list[int]] = {}
    for text, start, length, node, is_covered, is_first in zip(
        *(part.tolist() for part in (texts, starts, lengths, nodes, covered, in_first))
    ):
        own = slice(label_starts[node], label_starts[node + 1])
        n_shared = int(label_starts[node + 1] - label_starts[node])
        for label, kind in zip(labels[own].tolist(), kinds[own].tolist()):
            now = [kind, length, int(is_covered), 1, start, n_shared, node, int(is_first)]
            if (text, label) in found:
                before = found[text, label]
                if before[5] <= n_shared:
                    now[5:7] = before[5:7]
                now = [
                    min(before[0], kind),
                    max(before[1], length),
                    min(before[2], now[2]),
                    before[3] + 1,
                    min(before[4], start),
                    *now[5:7],
                    before[7] + now[7],
                ]
            found[text, label] = now
    for at, (text, label) in enumerate(sorted(found)):
        out_texts[at], out_labels[at], facts[at] = text, label, found[text, label]
    return len(found)
