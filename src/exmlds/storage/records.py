"""The tables of what a model folder may hold: the records, and the names of learnt attributes on disk.

A record is a NamedTuple that is registered in `RECORDS` under a tag such as "stacker/1". A folder holds the
tag and the field names of that table, never the name of a Python module, so that code can be renamed and old
models still load.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Record(NamedTuple):
    """The class of a stored NamedTuple, and the names of its fields on disk, in the order of the class."""

    module: str
    name: str
    fields: tuple[str, ...]


def _record(module: str, name: str, fields: str) -> Record:
    return Record(f"exmlds.{module}", name, tuple(fields.split()))


# A changed layout gets a new tag with the next number; the old tag stays, so that old models still load.
RECORDS = {
    "estimator/1": _record("base", "Fitted", "method parameters state"),
    "cells/1": _record("stages.cells", "Cells", "centers starts rows numbers"),
    "classifiers/1": _record(
        "stages.rerank", "Classifiers", "starts labels values dense dense_slot scale bias"
    ),
    "evidence-limits/1": _record("reranking.pipeline", "EvidenceLimits", "least_count largest_similarity"),
    "examples/1": _record("stages.rerank", "Examples", "starts rows signs"),
    "feature-map/1": _record("stages.features", "Features", "kind center scale landmarks projection gamma"),
    "forest/1": _record("stages.trees", "Forest", "roots children starts features weights bias leaves"),
    "growth/1": _record(
        "growing", "GrowthState", "labels ids is_removed n_fitted n_removed n_pending next_number"
    ),
    "held-out-scores/1": _record("selection", "HeldOutScores", "rows ids scores"),
    "index/1": _record("stages.index", "Index", "segments metric center"),
    "joint-state/1": _record("stages.joint", "JointState", "V squares seed epoch"),
    "label-scorer/1": _record("stages.vote", "LabelScorer", "embeddings gram"),
    "learner/1": _record("voting.votes", "Learner", "router parts"),
    "name-index/1": _record(
        "models.name_matcher",
        "NameIndex",
        "languages agreements stems stemmings trie label_starts labels kinds rarity weights bias",
    ),
    "name-trie/1": _record(
        "stages.name_match",
        "NameTrie",
        "first_nodes child_starts child_tokens child_nodes ends most_nested",
    ),
    "network/1": _record("stages.network", "Network", "input_weights input_bias output_weights output_bias"),
    "part/1": _record("voting.votes", "Part", "rows columns V index"),
    "quantized/1": _record("stages.quantize", "Packed", "values scale"),
    "reranker-update/2": _record("reranking.growth", "RerankerUpdate", "examples labels weights alphas maps"),
    "reranker-update/1": _record("reranking.growth", "RerankerUpdate", "examples labels weights alphas"),
    "label-weights/1": _record("stages.rerank", "LabelWeights", "starts features values scale bias"),
    "router/1": _record("stages.partition", "Router", "centers"),
    "rows-change/1": _record("growing", "RowsChange", "removed X labels ids names used results merges"),
    "segment/1": _record("stages.index", "Segment", "rows bias"),
    "settings/1": _record("voting.votes", "Settings", "features path temperature embedding voting held_out"),
    "stacker/1": _record(
        "stages.stacking", "Stacker", "mean scale weights bias label_bias logits probabilities top_weights"
    ),
    "trained-examples/1": _record("reranking.pipeline", "TrainedExamples", "examples alphas"),
    "texts-change/1": _record("models.text", "TextsChange", "texts field_lengths rows"),
    "threshold-choice/1": _record("base", "ThresholdChoice", "given threshold metrics"),
    "untrained-labels/2": _record("reranking.untrained", "UntrainedLabels", "attributes scorer"),
    "untrained-labels/1": _record("reranking.untrained", "UntrainedLabels", "attributes scorer"),
    "untrained-scorer/1": _record("stages.name_match", "UntrainedScorer", "weights bias"),
    "used-columns/2": _record("validation.columns", "UsedColumns", "features labels added_labels"),
    "used-columns/1": _record("validation.columns", "UsedColumns", "features labels"),
    "vocabulary/1": _record(
        "vocabulary",
        "VocabularyTables",
        "ids languages texts name_languages kinds starts broader related notations replaced_by",
    ),
}

# The names on disk of the learnt attributes of the package's estimators. An attribute that is renamed keeps
# its name on disk; the attributes of a user's own method keep their Python names.
ATTRIBUTES = {
    "analyzer_": "analyzer",
    "analyzer_results_": "analyzer_results",
    "bias_": "label_biases",
    "centroid_idf_": "centroid_idf",
    "centroids_": "centroids",
    "chosen_threshold_": "chosen_threshold",
    "classifiers_": "classifiers",
    "column_counts_": "label_counts",
    "columns_": "used_columns",
    "complete_labels_": "completion_strength",
    "cost_": "cost",
    "counts_": "label_counts_of_stacker",
    "evidence_limits_": "evidence_limits",
    "feature_map_": "feature_map",
    "feature_names_": "feature_names",
    "feature_names_in_": "input_feature_names",
    "features_": "feature_transform",
    "field_lengths_": "field_lengths",
    "field_weights_": "field_weights",
    "forest_": "forest",
    "gains_": "label_gains",
    "growth_": "growth",
    "held_out_metrics_": "held_out_metrics",
    "held_out_quality_": "held_out_quality",
    "ids_": "training_ids",
    "index_": "index",
    "kept_rows_": "training_rows",
    "l1_": "l1",
    "l2_": "l2",
    "label_embeddings_": "label_embeddings",
    "labels_": "voting_labels",
    "learners_": "learners",
    "lifts_": "label_lifts",
    "map_": "linear_map",
    "match_lifts_": "match_lifts",
    "max_words_": "max_words",
    "model_": "model",
    "mu_": "mu",
    "n_epochs_": "n_epochs",
    "n_features_in_": "n_features",
    "n_labels_": "n_labels",
    "n_listed_": "n_listed_rows",
    "n_mapped_": "n_mapped_rows",
    "n_samples_fit_": "n_rows",
    "parts_": "parts",
    "part_label_counts_": "part_label_counts",
    "part_labels_": "part_labels",
    "part_rows_": "part_rows",
    "name_index_": "name_index",
    "names_": "labels",
    "ranking_": "label_ranking",
    "network_": "network",
    "router_": "router",
    "rows_": "voting_rows",
    "scored_labels_": "scored_labels",
    "scorer_": "label_scorer",
    "search_results_": "search_results",
    "second_shortlister_": "second_shortlister",
    "shares_": "label_shares",
    "shortlist_": "shortlist_length",
    "shortlist_recall_": "shortlist_recall",
    "shortlister_": "shortlister",
    "sparse_rows_": "sparse_rows",
    "stacker_": "stacker",
    "temperature_": "temperature",
    "texts_": "training_texts",
    "threshold_": "threshold",
    "trained_": "trained_examples",
    "trained_counts_": "trained_counts",
    "training_digest_": "training_digest",
    "untrained_": "untrained_labels",
    "vectorizer_": "vectorizer",
    "visible_share_": "visible_share",
    "vocabulary_": "vocabulary",
    "voter_weights_": "voter_weights",
    "voters_": "voters",
    "weights_": "label_weights",
}
FROM_DISK = {stored: name for name, stored in ATTRIBUTES.items()}


def is_learnt(name: str) -> bool:
    """Whether an attribute of this name is learnt by a fit, so that it is saved.

    >>> [is_learnt(name) for name in ("means_", "W2_", "prior", "_cache_")]
    [True, True, False, False]
    """
    return name.isidentifier() and name.endswith("_") and not name.startswith("_")


def to_stored_names(learnt: dict[str, Any]) -> dict[str, Any]:
    """Learnt attributes under their names on disk."""
    return {ATTRIBUTES.get(name, name): value for name, value in learnt.items()}


def to_attributes(stored: dict[str, Any]) -> dict[str, Any]:
    """What a model folder holds, under the names of Python attributes."""
    return {FROM_DISK.get(name, name): value for name, value in stored.items()}


def register(tag: str, kind: type[Any]) -> None:
    """Register a NamedTuple of another package, so that models can store it; its fields keep their names.

    Call it in the module that defines the class, so that it is registered before a model is loaded.
    """
    record = Record(kind.__module__, kind.__qualname__, tuple(getattr(kind, "_fields", ())))
    if not record.fields or RECORDS.get(tag, record) != record:
        raise ValueError(f"The tag {tag!r} is taken, or {kind.__qualname__} is not a NamedTuple.")
    RECORDS[tag] = record
