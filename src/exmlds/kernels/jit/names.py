"""Finding names in texts."""

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
