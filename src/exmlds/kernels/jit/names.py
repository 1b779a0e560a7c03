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


@kernel
def match_evidence(facts, texts, n_words, rarity, evidence):
    """See the twin in reference/names.py."""
    for pair in range(facts.shape[0]):
        own = evidence[pair]
        kind, n_shared = facts[pair, 0], facts[pair, 5]
        form, agreement = kind % 4, kind // 4
        length, count, n_first = facts[pair, 1], facts[pair, 3], facts[pair, 7]
        of_text = max(n_words[texts[pair]], 1)
        own[0] = np.log(length)
        own[1] = facts[pair, 2]
        own[2] = np.log(count)
        own[3] = length / of_text
        own[4] = facts[pair, 4] / of_text
        own[5] = np.log(of_text)
        own[6] = rarity[facts[pair, 6]]
        own[7] = np.log(n_shared)
        own[8] = form == 1
        own[9] = form == 2
        own[10] = form == 3
        own[11] = agreement == 1
        own[12] = own[6] * own[0]
        own[13] = own[6] * own[7]
        own[14] = own[0] * own[1]
        own[15] = own[6] * own[6]
        own[16] = n_first > 0
        own[17] = np.log1p(n_first)
        own[18] = agreement == 2
        own[19] = agreement == 3


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
