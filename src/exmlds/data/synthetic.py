"""Synthetic data: of any size for scaling runs, and a small library of books that a person can judge.

Both come from one generative model. Labels belong to topics, and their popularity follows a power law. A row
is about one or two topics; it draws labels from them, and words from its labels' words and from a background.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, vstack

from ..runtime import progress
from .dataset import Dataset

Array = np.ndarray
Seed = int | None | np.random.Generator

BLOCK = 10_000  # rows generated at a time
SECOND_TOPIC = 0.15  # share of a row's labels that come from another topic


class World(NamedTuple):
    """The distributions of labels and words. Labels are ordered by topic; `label_ids` are their columns."""

    label_ids: Array  # (L,) int64
    popularity: Array  # (L + 1,) float64, cumulative over the ordered labels
    topic_starts: Array  # (T + 1,) int64, offsets into the ordered labels
    words: Array  # (L, m) int32, the words of each ordered label, the most typical first
    background: Array  # (d,) float64, cumulative
    vocabulary: Array  # (d,) int32, the background's words, the most frequent first


def make_xmc(
    n_samples: int = 1_000,
    n_features: int = 1_000,
    n_labels: int = 200,
    *,
    n_topics: int | None = None,
    labels_per_row: float = 3.0,
    features_per_row: float = 30.0,
    exponent: float = 1.0,
    label_noise: float = 0.05,
    feature_noise: float = 0.3,
    random_state: Seed = None,
) -> Dataset:
    """Generate a data set whose power-law labels come in topics and are predictable from sparse features.

    Parameters
    ----------
    n_samples, n_features, n_labels : the numbers of rows, features and labels
    n_topics : the number of groups of labels that occur together; by default, the square root of n_labels
    labels_per_row, features_per_row : mean numbers per row, before duplicates are merged
    exponent : the exponent of the power law, frequency ~ rank^−exponent
    label_noise : the share of labels that are replaced by a random one, independent of the features
    feature_noise : the share of words that come from the background
    random_state : the seed; the same seed gives the same data

    Examples
    --------
    >>> make_xmc(100, 50, 10, random_state=0).X.shape
    (100, 50)
    """
    numbers = {"n_samples": n_samples, "n_features": n_features, "n_labels": n_labels, "n_topics": n_topics}
    means = {"labels_per_row": labels_per_row, "features_per_row": features_per_row}
    for name, value in {**numbers, **means}.items():
        if value is not None and value < 1:
            raise ValueError(f"The {name!r} parameter of make_xmc must be at least 1. Got {value} instead.")
    for name, share in {"label_noise": label_noise, "feature_noise": feature_noise}.items():
        if not 0 <= share <= 1:
            raise ValueError(f"The {name!r} parameter of make_xmc must be in [0, 1]. Got {share} instead.")
    rng = np.random.default_rng(random_state)
    world = _random_world(n_features, n_labels, n_topics or round(n_labels**0.5), exponent, rng)
    X, Y = _rows(world, n_samples, labels_per_row, features_per_row, label_noise, feature_noise, rng)
    return Dataset(X, Y)


def make_library(n_samples: int = 2_000, *, random_state: Seed = 0) -> Dataset:
    """Generate a small library: books as bags of words, with subjects as labels, and the names of both.

    Examples
    --------
    >>> books = make_library(500, random_state=0)
    >>> [books.label_names[j] for j in books.Y[0].indices]
    ['baking', 'war']
    """
    world, label_names, feature_names = _library_world()
    X, Y = _rows(world, n_samples, 2.2, 18.0, 0.03, 0.25, np.random.default_rng(random_state))
    return Dataset(X, Y, label_names, feature_names)


def _random_world(
    n_features: int, n_labels: int, n_topics: int, exponent: float, rng: np.random.Generator
) -> World:
    n_topics = min(n_topics, n_labels)
    weights = (1.0 + rng.permutation(n_labels)) ** -exponent
    topic = rng.integers(n_topics, size=n_labels)
    topic[rng.permutation(n_labels)[:n_topics]] = np.arange(n_topics)  # so that no topic is empty
    label_ids = np.argsort(topic, kind="stable")
    topic_starts = np.searchsorted(topic[label_ids], np.arange(n_topics + 1))
    own = rng.integers(n_features, size=(n_labels, 8), dtype=np.int32)
    topic_words = rng.integers(n_features, size=(n_topics, 40), dtype=np.int32)
    shared = topic_words[topic[label_ids, None], rng.integers(40, size=(n_labels, 4))]  # (L, 4)
    return World(
        label_ids,
        np.concatenate(([0.0], np.cumsum(weights[label_ids]))),
        topic_starts,
        np.concatenate((own[:, :4], shared, own[:, 4:]), axis=1),
        np.cumsum(1.0 / np.arange(1.0, n_features + 1)),
        rng.permutation(n_features).astype(np.int32),
    )


def _rows(
    world: World,
    n_samples: int,
    labels_per_row: float,
    features_per_row: float,
    label_noise: float,
    feature_noise: float,
    rng: np.random.Generator,
) -> tuple[csr_matrix, csr_matrix]:
    pieces = []
    starts = range(0, n_samples, BLOCK)
    with progress.stage("generating rows", n_samples) as advance:
        for start, block_rng in zip(starts, rng.spawn(len(starts))):
            n = min(BLOCK, n_samples - start)
            labels, rows = _draw_labels(world, n, labels_per_row, block_rng)
            X = _draw_words(world, labels, rows, n, features_per_row, feature_noise, block_rng)
            wrong = block_rng.random(len(labels)) < label_noise
            anything = block_rng.random(wrong.sum()) * world.popularity[-1]
            labels[wrong] = np.searchsorted(world.popularity, anything, side="right") - 1
            Y = csr_matrix(
                (np.ones(len(labels), np.float32), (rows, world.label_ids[labels])),
                shape=(n, len(world.label_ids)),
            )
            Y.data[:] = 1
            pieces.append((X, Y))
            advance(n)
    X, Y = (vstack(halves, format="csr") for halves in zip(*pieces))
    return X, Y


def _draw_labels(world: World, n: int, mean: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Ordered labels and the row of each, rows ascending; every row has one at least."""
    counts = 1 + rng.poisson(mean - 1, size=n)
    rows = np.repeat(np.arange(n), counts)
    edges = world.popularity[world.topic_starts]
    topics = np.searchsorted(edges, rng.random((2, n)) * edges[-1], side="right") - 1  # (2, n)
    second = rng.random(len(rows)) < SECOND_TOPIC
    topic = topics[second.astype(np.int64), rows]
    low, high = edges[topic], edges[topic + 1]
    drawn = np.searchsorted(world.popularity, low + rng.random(len(rows)) * (high - low), side="right") - 1
    return drawn, rows


def _draw_words(
    world: World, labels: Array, rows: Array, n: int, mean: float, noise: float, rng: np.random.Generator
) -> csr_matrix:
    """Counts of words, (n, d)."""
    first = np.searchsorted(rows, np.arange(n + 1))
    of_row = np.repeat(np.arange(n), 1 + rng.poisson(mean - 1, size=n))
    spread = np.diff(first)[of_row]
    label = labels[first[of_row] + (rng.random(len(of_row)) * spread).astype(np.int64)]
    typical = np.cumsum(1.0 / np.arange(1.0, world.words.shape[1] + 1))
    place = np.searchsorted(typical, rng.random(len(of_row)) * typical[-1], side="right")
    words = world.words[label, place]
    aside = rng.random(len(of_row)) < noise
    drawn = np.searchsorted(world.background, rng.random(aside.sum()) * world.background[-1], side="right")
    words[aside] = world.vocabulary[drawn]
    X = csr_matrix((np.ones(len(words), np.float32), (of_row, words)), shape=(n, len(world.vocabulary)))
    X.sum_duplicates()
    return X


_LIBRARY = {
    "sky": {
        "astronomy": "star telescope galaxy planet orbit comet nebula moon observatory eclipse",
        "physics": "energy particle quantum force gravity field wave light atom relativity",
        "spaceflight": "rocket astronaut launch capsule orbit mission station satellite lander shuttle",
        "mathematics": "theorem proof number geometry equation function prime algebra curve infinity",
    },
    "earth": {
        "geology": "rock volcano mineral fault crystal glacier sediment earthquake fossil crust",
        "climate": "weather rain temperature carbon storm drought ocean season warming wind",
        "oceans": "sea tide coral whale current reef deep island wave shore",
        "mountains": "summit glacier climb ridge rope snow valley peak avalanche camp",
    },
    "living": {
        "botany": "plant leaf flower seed root pollen tree stem moss fern",
        "birds": "nest feather song migration wing owl egg heron flight beak",
        "evolution": "species gene selection fossil ancestor mutation descent adaptation trait island",
        "medicine": "patient disease hospital vaccine surgery doctor infection cure heart clinic",
        "psychology": "mind memory emotion behaviour dream therapy child habit attention self",
    },
    "home": {
        "gardening": "soil seed compost rose prune vegetable bed bulb spade greenhouse",
        "cooking": "recipe oven butter flour sauce onion simmer roast spice dough",
        "baking": "bread flour yeast dough cake oven crust sugar butter tart",
        "wine": "grape vineyard cellar bottle vintage cork barrel taste harvest oak",
        "crafts": "wool needle pattern stitch loom thread knit fabric scissors dye",
    },
    "past": {
        "ancient rome": "emperor legion senate forum aqueduct gladiator villa latin consul toga",
        "ancient greece": "athens temple sparta myth philosopher oracle homer column trireme olive",
        "middle ages": "knight castle monastery plague crusade bishop peasant guild king manuscript",
        "archaeology": "dig tomb pottery ruin layer temple bone museum inscription excavation",
        "war": "army battle soldier siege general trench tank treaty front invasion",
    },
    "society": {
        "economics": "market price trade tax bank inflation labour demand growth debt",
        "law": "court judge statute contract crime jury trial rights appeal evidence",
        "politics": "election party parliament vote minister campaign state reform power treaty",
        "education": "school teacher pupil lesson exam university reading class learning child",
    },
    "arts": {
        "painting": "canvas brush colour portrait museum oil fresco landscape studio pigment",
        "music": "orchestra piano melody opera concert violin song composer rhythm choir",
        "theatre": "stage actor play scene tragedy comedy curtain audience costume rehearsal",
        "poetry": "verse rhyme sonnet metaphor lyric stanza ode poem ballad image",
        "architecture": "building column arch dome brick facade concrete cathedral tower plan",
    },
    "work": {
        "programming": "code function compiler loop python variable test debug library server",
        "machine learning": "model training neural data gradient network label feature prediction layer",
        "databases": "table query index transaction sql join row key storage server",
        "electronics": "circuit voltage resistor transistor chip solder signal board battery antenna",
        "sailing": "boat sail wind mast harbour keel knot tide rope voyage",
    },
}
_COMMON = (
    "book chapter author edition reader story history world life years people guide introduction great "
    "new first modern art science study illustrated complete essential collected"
)


def _library_world() -> tuple[World, list[str], list[str]]:
    label_names = sorted(tag for tags in _LIBRARY.values() for tag in tags)
    feature_names = sorted(
        {word for tags in _LIBRARY.values() for words in tags.values() for word in words.split()}
        | set(_COMMON.split())
    )
    column, word_id = _positions(label_names), _positions(feature_names)
    ordered = [(tag, words.split()) for tags in _LIBRARY.values() for tag, words in tags.items()]
    sizes = [len(tags) for tags in _LIBRARY.values()]
    weights = 1.0 / (1.0 + np.array([column[tag] * 17 % len(ordered) for tag, _ in ordered]))
    common = [word_id[word] for word in _COMMON.split()]
    others = sorted(set(range(len(feature_names))) - set(common))
    world = World(
        np.array([column[tag] for tag, _ in ordered]),
        np.concatenate(([0.0], np.cumsum(weights))),
        np.concatenate(([0], np.cumsum(sizes))),
        np.array([[word_id[word] for word in words] for _, words in ordered], np.int32),
        np.cumsum(1.0 / np.arange(1.0, len(feature_names) + 1)),
        np.array(common + others, np.int32),
    )
    return world, label_names, feature_names


def _positions(names: list[str]) -> dict[str, int]:
    return {name: i for i, name in enumerate(names)}
