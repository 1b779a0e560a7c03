"""Finding names in texts."""

import numpy as np

from .compiler import kernel


@kernel
def find_names(
    first_nodes,
    child_starts,
    child_tokens,
    child_nodes,
    ends,
    indptr,
    tokens,
    starts,
    lengths,
    nodes,
    covered,
):
    """See the twin in reference/names.py."""
    n = 0
    for text in range(indptr.shape[0] - 1):
        end = indptr[text + 1]
        reach = -1  # the end of the names that start before
        for start in range(indptr[text], end):
            if tokens[start] < 0:
                continue
            node = first_nodes[tokens[start]]
            before, position = n, start + 1
            while node >= 0:
                if ends[node] and n < starts.shape[0]:
                    starts[n] = start
                    lengths[n] = position - start
                    nodes[n] = node
                    covered[n] = 1
                    n += 1
                if position == end or tokens[position] < 0:
                    break
                low = child_starts[node]
                high = child_starts[node + 1]
                stop = high
                while low < high:
                    middle = (low + high) // 2
                    if child_tokens[middle] < tokens[position]:
                        low = middle + 1
                    else:
                        high = middle
                node = child_nodes[low] if low < stop and child_tokens[low] == tokens[position] else -1
                position += 1
            if n > before:  # the others that start here are parts of the last
                last_end = start + lengths[n - 1]
                covered[n - 1] = last_end <= reach
                reach = max(reach, last_end)
    return n


@kernel
def collect_matches(
    texts,
    starts,
    lengths,
    nodes,
    covered,
    in_first,
    label_starts,
    labels,
    kinds,
    slots,
    out_texts,
    out_labels,
    facts,
):
    """See the twin in reference/names.py."""
    n = 0
    first = 0  # occurrence of the text
    while first < texts.shape[0]:
        begin = n
        last = first
        # The labels of the text, each once, in order.
        while last < texts.shape[0] and texts[last] == texts[first]:
            for at in range(label_starts[nodes[last]], label_starts[nodes[last] + 1]):
                if slots[labels[at]] < 0:
                    slots[labels[at]] = n
                    out_labels[n] = labels[at]
                    n += 1
            last += 1
        out_labels[begin:n].sort()
        for pair in range(begin, n):
            slots[out_labels[pair]] = pair
            out_texts[pair] = texts[first]
            facts[pair, 3] = 0
            facts[pair, 7] = 0
        for which in range(first, last):
            node = nodes[which]
            n_shared = label_starts[node + 1] - label_starts[node]
            for at in range(label_starts[node], label_starts[node + 1]):
                pair = slots[labels[at]]
                if facts[pair, 3] == 0:
                    facts[pair, 0] = kinds[at]
                    facts[pair, 1] = lengths[which]
                    facts[pair, 2] = covered[which]
                    facts[pair, 4] = starts[which]
                    facts[pair, 5] = n_shared
                    facts[pair, 6] = node
                else:
                    facts[pair, 0] = min(facts[pair, 0], kinds[at])
                    facts[pair, 1] = max(facts[pair, 1], lengths[which])
                    facts[pair, 2] = min(facts[pair, 2], covered[which])
                    facts[pair, 4] = min(facts[pair, 4], starts[which])
                    if n_shared < facts[pair, 5]:
                        facts[pair, 5] = n_shared
                        facts[pair, 6] = node
                facts[pair, 3] += 1
                facts[pair, 7] += in_first[which]
        for pair in range(begin, n):
            slots[out_labels[pair]] = -1
        first = last
    return n


N_EVIDENCE = 20
LOGARITHMS = 64  # of small numbers, which are looked up


@kernel
def _logarithms():
    """The logarithms of 1, 2, …, at the position of each number; the first is that of 1 too."""
    found = np.zeros(LOGARITHMS)
    for number in range(1, LOGARITHMS):
        found[number] = np.log(number)
    return found


@kernel
def _logarithm(number, known):
    return known[number] if number < LOGARITHMS else np.log(number)


@kernel
def _write_evidence(facts, pair, of_text, log_of_text, rare, known, evidence, at):
    """Write the evidence on one match in a row, by the logarithms that are known."""
    form, agreement = facts[pair, 0] % 4, facts[pair, 0] // 4
    length, covered, n_first = facts[pair, 1], facts[pair, 2], facts[pair, 7]
    log_length, log_shared = _logarithm(length, known), _logarithm(facts[pair, 5], known)
    evidence[at, 0] = log_length
    evidence[at, 1] = covered
    evidence[at, 2] = _logarithm(facts[pair, 3], known)
    evidence[at, 3] = length / of_text
    evidence[at, 4] = facts[pair, 4] / of_text
    evidence[at, 5] = log_of_text
    evidence[at, 6] = rare
    evidence[at, 7] = log_shared
    evidence[at, 8] = form == 1
    evidence[at, 9] = form == 2
    evidence[at, 10] = form == 3
    evidence[at, 11] = agreement == 1
    evidence[at, 12] = rare * log_length
    evidence[at, 13] = rare * log_shared
    evidence[at, 14] = log_length * covered
    evidence[at, 15] = rare * rare
    evidence[at, 16] = n_first > 0
    evidence[at, 17] = np.log1p(n_first) if n_first > 0 else 0.0
    evidence[at, 18] = agreement == 2
    evidence[at, 19] = agreement == 3


@kernel
def match_evidence(facts, texts, n_words, rarity, evidence):
    """See the twin in reference/names.py."""
    known = _logarithms()
    for pair in range(facts.shape[0]):
        of_text, rare = max(n_words[texts[pair]], 1), np.float64(rarity[facts[pair, 6]])
        log_of_text = _logarithm(of_text, known)
        _write_evidence(facts, pair, of_text, log_of_text, rare, known, evidence, pair)


@kernel
def match_logits(facts, texts, n_words, rarity, weights, bias, logits):
    """See the twin in reference/names.py."""
    known, own = _logarithms(), np.empty((1, N_EVIDENCE))
    for pair in range(facts.shape[0]):
        of_text, rare = max(n_words[texts[pair]], 1), np.float64(rarity[facts[pair, 6]])
        log_of_text = _logarithm(of_text, known)
        _write_evidence(facts, pair, of_text, log_of_text, rare, known, own, 0)
        total = bias
        for which in range(N_EVIDENCE):
            total += own[0, which] * weights[which]
        logits[pair] = total


@kernel
def join_lists(ids, votes, indptr, labels, scores, listed, least, state, joined_ids, joined_votes):
    """See the twin in reference/names.py."""
    most = joined_ids.shape[1] - ids.shape[1]
    best = np.zeros(most, scores.dtype)
    for row in range(ids.shape[0]):
        stamp = 2 * row + 1
        for at in range(listed):
            joined_ids[row, at] = ids[row, at]
            joined_votes[row, at] = votes[row, at]
            if ids[row, at] >= 0:
                state[ids[row, at]] = stamp
        n = 0
        for entry in range(indptr[row], indptr[row + 1]):
            score = scores[entry]
            if score < least or state[labels[entry]] == stamp or (n == most and score <= best[n - 1]):
                continue
            n = min(n + 1, most)
            at = n - 1
            while at > 0 and best[at - 1] < score:  # equal ones stay in the order of labels
                best[at] = best[at - 1]
                joined_ids[row, listed + at] = joined_ids[row, listed + at - 1]
                at -= 1
            best[at] = score
            joined_ids[row, listed + at] = labels[entry]
        for at in range(listed, listed + n):
            joined_votes[row, at] = 0
            state[joined_ids[row, at]] = stamp + 1
        for at in range(listed + n, listed + most):
            joined_ids[row, at] = -1
            joined_votes[row, at] = 0
        to = listed + most
        for at in range(listed, ids.shape[1]):
            label = ids[row, at]
            if label >= 0 and state[label] != stamp + 1:
                joined_ids[row, to] = label
                joined_votes[row, to] = votes[row, at]
                to += 1
        for at in range(to, joined_ids.shape[1]):
            joined_ids[row, at] = -1
            joined_votes[row, at] = 0
