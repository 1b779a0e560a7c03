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


def match_evidence(facts: Array, texts: Array, n_words: Array, rarity: Array, evidence: Array) -> None:
    """Write what is known of matches.

    The kind of a match is its form + 4 × how its words agree. The forms are 0 the name as it is, 1 rewritten,
    2 a heading and 3 the first part of it; words agree 0 by stems, 1 loosely, 2 as the last part of a
    compound, 3 as another part of it.

    facts : (m, 8) int32, those of `collect_matches`;  texts : (m,) the text of each pair
    n_words : (n,) number of words of each text;  rarity : (nodes,) of each name
    evidence : (m, 20) float64, written
    """
    kinds, length, covered, count, start, n_shared, nodes, count_in_first = facts.T
    of_text = np.maximum(n_words[texts], 1)
    log_length, rare, shared = np.log(length), rarity[nodes].astype(np.float64), np.log(n_shared)
    evidence[:] = np.stack(
        [
            log_length,
            covered,
            np.log(count),
            length / of_text,
            start / of_text,
            np.log(of_text),
            rare,
            shared,
            kinds % 4 == 1,
            kinds % 4 == 2,
            kinds % 4 == 3,
            kinds // 4 == 1,
            rare * log_length,
            rare * shared,
            log_length * covered,
            rare * rare,
            count_in_first > 0,
            np.log1p(count_in_first),
            kinds // 4 == 2,
            kinds // 4 == 3,
        ],
        axis=1,
    )


def match_logits(
    facts: Array,
    texts: Array,
    n_words: Array,
    rarity: Array,
    weights: Array,
    bias: float,
    logits: Array,
) -> None:
    """Write the sums of the weighted evidence on matches, without the evidence itself.

    facts, texts, n_words, rarity : as for `match_evidence`
    weights : (20,) float64, of the evidence;  bias : is added to each sum;  logits : (m,) float64, written
    """
    evidence = np.empty((len(facts), len(weights)))
    match_evidence(facts, texts, n_words, rarity, evidence)
    logits[:] = evidence @ weights + bias


def join_lists(
    ids: Array,
    votes: Array,
    indptr: Array,
    labels: Array,
    scores: Array,
    listed: int,
    least: float,
    state: Array,
    joined_ids: Array,
    joined_votes: Array,
) -> None:
    """Write short lists with the best matched labels that are not on them, which have no votes.

    These labels follow the first `listed` ones, and what followed those comes after them.

    ids, votes : (b, k) labels, −1 pads, and their votes
    indptr, labels, scores : csr, the matched labels of each row;  least : the least score of one that joins
    state : (L,) int64 zeros, used as scratch
    joined_ids, joined_votes : (b, k + most), written; at most so many labels join
    """
    most = joined_ids.shape[1] - ids.shape[1]
    joined_ids[:], joined_votes[:] = -1, 0
    joined_ids[:, :listed], joined_votes[:, :listed] = ids[:, :listed], votes[:, :listed]
    for row in range(len(ids)):
        own = slice(indptr[row], indptr[row + 1])
        first, rest = ids[row, :listed].tolist(), ids[row, listed:].tolist()
        found = [
            (-score, label)
            for label, score in zip(labels[own].tolist(), scores[own].tolist())
            if score >= least and label not in first
        ]
        new = [label for _, label in sorted(found, key=lambda pair: pair[0])[:most]]
        joined_ids[row, listed : listed + len(new)] = new
        left = [at for at, label in enumerate(rest) if label >= 0 and label not in new]
        joined_ids[row, listed + most : listed + most + len(left)] = [rest[at] for at in left]
        joined_votes[row, listed + most : listed + most + len(left)] = votes[row, listed:][left]
