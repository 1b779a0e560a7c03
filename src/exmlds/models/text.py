"""TextClassifier: a vectorizer and an estimator that are fitted, used and saved as one model."""

from __future__ import annotations

import copy
import reprlib
import shutil
import warnings
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from functools import reduce
from itertools import chain
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.base import clone
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.utils.validation import check_is_fitted

from ..base import XMCEstimator, class_reference, load, one_at_a_time, restored
from ..errors import Argument, DataError, DataWarning, NoKnownWordWarning, some
from ..growing import GrowingEstimator, GrowthState, RowsChange, join_runs, joined_rows, row_ids
from ..runtime import cluster, progress
from ..runtime.memory import Estimate
from ..storage import model_folder
from ..storage.checkpoint import Checkpoint
from ..storage.files import PathLike
from ..validation import params, stored, targets
from ..validation.arrays import Matrix, one_form, unit_rows
from ..validation.observed import contains
from ..vocabulary import Vocabulary
from ..vocabulary import check as check_vocabulary
from ..voting.explain import Explanation
from ..voting.label_space import LabelSpaceMixin
from ..voting.votes import VotingModel
from . import analyzer_search, encoders, name_matcher, text_shards, vectorizers
from .analyzers import ANALYZERS, MAX_FIELDS, TermVectorizer, languages_of_texts
from .concepts import LabelNames, all_labels, as_concepts, current_concepts, ids_of_names
from .encoders import EncoderVectorizer, Text, UnionVectorizer, is_encoder, joined
from .exmlds import ExMLDS
from .name_matcher import LabelName, NameIndex, NameMatcher
from .partitioned import Partitioned, parts_left_on_disk, work_folder
from .text_shards import Documents

Array = np.ndarray

NAMED = {
    "tfidf": lambda: TfidfVectorizer(sublinear_tf=True, dtype=np.float32),
    "hashing": lambda: HashingVectorizer(alternate_sign=False, dtype=np.float32),
}

OWN = (
    "model_",
    "vectorizer_",
    "analyzer_",
    "analyzer_results_",
    "field_weights_",
    "max_words_",
    "vocabulary_",
    "name_index_",
    "feature_names_",
    "texts_",
    "field_lengths_",
    "ids_",
    "training_digest_",
)  # what is learnt beside the model
TEXTS_TO_DETECT = 2_000  # texts by which the language of names is found that have none
OF_PREDICTIONS = ("threshold", "max_labels", "n_jobs", "verbose")  # parameters that a fitted model uses


VECTORIZER = params.either(
    params.one_of(*NAMED),
    params.Constraint(
        "a vectorizer of scikit-learn that takes texts",
        lambda value: (
            hasattr(value, "transform")
            and not isinstance(value, type)
            and getattr(value, "input", "content") == "content"
        ),
    ),
    params.Constraint("an object with `encode(texts)`", is_encoder),
)
LIST_OF_VECTORIZERS = params.Constraint(
    "a list of such",
    lambda value: isinstance(value, (list, tuple)) and len(value) > 0 and all(map(VECTORIZER.allows, value)),
)


class TextWithFields(NamedTuple):
    """A text and its fields, which it joins by newlines."""

    text: str
    fields: tuple[str, ...]


class TextsChange(NamedTuple):
    """Texts that one call removes and adds, and what follows from it.

    texts : (m,) object, the added texts;  field_lengths : (m, F) int32, of their fields; F is 0 without
    rows : the change of the estimator, whose rows are the vectors of the texts
    """

    texts: Array
    field_lengths: Array
    rows: RowsChange


class TextClassifier(LabelSpaceMixin):
    """Classify texts: a vectorizer and an estimator as one model.

    Parameters
    ----------
    model : an estimator of this package; None is `ExMLDS()`
    vectorizer : "tfidf", sublinear tf-idf of the terms of `analyzer`; "hashing", which keeps no vocabulary;
        a `TfidfVectorizer`, `CountVectorizer` or `HashingVectorizer` of scikit-learn; an encoder, which is
        any object with `encode(texts)` that returns an (n, r) array; or a list of these, whose columns are
        put side by side. An encoder is saved by its import name, and `load` must be told to trust it
    analyzer : the terms of "tfidf": "words" or "stems" (Snowball, by the language of each text); followed by
        "-stops" to leave stop words out, "+pairs" to add pairs of neighbouring words, "+ngrams" to add
        sequences of four characters, such as "stems-stops+pairs". "auto" chooses on held-out texts; it
        considers n-grams, which double the time of a fit, only with `ExMLDS(effort="best")`
    max_words : how many words of a text "tfidf" reads; None is all, and "auto" chooses on held-out texts
    field_weights : how often "tfidf" counts a word in each field of a document, such as (2, 1) for title and
        text; "auto" chooses on held-out texts
    vocabulary : the names of labels, as `exmlds.data.read_vocabulary` reads them, which the model keeps;
        labels of the training data are ids of its concepts, or their preferred names. Where the estimator is
        an `ExMLDS`, names that stand in a text are evidence for their labels, and those in the first field of
        a document, such as its title, are evidence of their own kind
    allow_untrained : let such names suggest labels of the vocabulary that no training text has, from the next
        fit on
    language : the language in which labels are named, such as "en"; None is the main one of the vocabulary.
        A fitted model takes another one by `set_params`
    keep_rows : keep the training texts and their ids with the model, so that `explain` can show them
    growable : keep them and their vectors, so that the model can grow: `partial_fit`, `remove_rows`,
        `relabel`, `refresh`. An estimator with growable=True has the same effect

    The parameters of every method, such as `threshold`, are those of the estimator; where the classifier is
    fitted, those that predictions use are the ones of `model_`.

    A text without any word that the vectorizer knows, such as an empty one, gets no labels but those whose
    names it has: all that an estimator could say of others is how frequent they are. A `NoKnownWordWarning`
    names texts that get none. The estimator itself does predict frequent labels for a row of zeros.

    Attributes
    ----------
    model_, vectorizer_, vocabulary_ : as fitted
    analyzer_, max_words_, field_weights_ : as chosen or given; None where the vectorizer is another one
    analyzer_results_ : what was tried to choose them, as lists under "analyzer", "max_words",
        "field_weights" and "score", the mean of P@1, P@3 and P@5 of the votes of near texts
    name_index_ : the names of labels as they are looked up in texts, or None
    feature_names_ : (d,) the terms, or None where they are hashed
    texts_, ids_ : (n,) the training texts and the ids of documents, or None; "" where one has no id. Texts
        of a model that grows stay in their places where they are removed, until `drop_removed`
    row_ids_ : the ids of all texts that a growable model uses
    classes_, label_counts_, threshold_, search_results_ : those of `model_`, as all others

    Examples
    --------
    >>> from exmlds import TextClassifier
    >>> texts = ["goals and a red card", "bread with seeds", "the keeper held the ball"]
    >>> texts.append("flour, yeast, salt")
    >>> model = TextClassifier().fit(texts, [["sport"], ["baking"], ["sport"], ["baking"]])
    >>> model.predict_labels(["salt in the bread"], k=1)
    [['baking']]
    """

    _constraints: ClassVar[Mapping[str, params.Constraint]] = {
        "vectorizer": params.either(VECTORIZER, LIST_OF_VECTORIZERS),
        "model": params.Constraint(
            "None or an estimator of exmlds", lambda value: value is None or isinstance(value, XMCEstimator)
        ),
        "vocabulary": params.Constraint(
            "None or a vocabulary of `exmlds.data.read_vocabulary`",
            lambda value: value is None or isinstance(value, Vocabulary),
        ),
        "language": params.Constraint(
            "None or the code of a language, such as 'en'",
            lambda value: value is None or isinstance(value, str),
        ),
        "allow_untrained": params.one_of(False, True),
        "keep_rows": params.one_of(False, True),
        "growable": params.one_of(False, True),
        "analyzer": params.one_of("auto", *ANALYZERS),
        "max_words": params.either(params.one_of("auto", None), params.whole(1)),
        "field_weights": params.either(
            params.one_of("auto"),
            params.Constraint(
                f"up to {MAX_FIELDS} numbers of at least 1",
                lambda value: (
                    isinstance(value, (list, tuple))
                    and len(value) <= MAX_FIELDS
                    and all(map(params.number(1).allows, value))
                ),
            ),
        ),
    }
    model_: XMCEstimator
    vectorizer_: Any
    # Folders of earlier versions have none of these.
    analyzer_: str | None = None
    max_words_: int | None = None
    field_weights_: list[float] | None = None
    analyzer_results_: dict[str, list[Any]] | None = None
    vocabulary_: Vocabulary | None = None
    name_index_: NameIndex | None = None
    ids_: Array | None = None
    texts_: Any
    field_lengths_: Any = None  # (n, F) int32, characters of each field, −1 where a text has fewer
    _matcher: NameMatcher | None = None  # made of the index

    def __init__(
        self,
        model: XMCEstimator | None = None,
        *,
        vectorizer: Any = "tfidf",
        analyzer: str = "auto",
        max_words: Any = "auto",
        field_weights: Any = "auto",
        vocabulary: Vocabulary | None = None,
        language: str | None = None,
        allow_untrained: bool = True,
        keep_rows: bool = False,
        growable: bool = False,
    ) -> None:
        self.model = model
        self.vectorizer = vectorizer
        self.analyzer = analyzer
        self.max_words = max_words
        self.field_weights = field_weights
        self.vocabulary = vocabulary
        self.language = language
        self.allow_untrained = allow_untrained
        self.keep_rows = keep_rows
        self.growable = growable

    def __getattr__(self, name: str) -> Any:
        model = vars(self).get("model_")
        is_learnt = name.endswith("_") and not name.startswith("_")
        if model is not None and (is_learnt or name in OF_PREDICTIONS):
            return getattr(model, name)
        if name in XMCEstimator._constraints:  # parameters of every method
            return getattr(self._unfitted, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def held_out_metrics_(self) -> dict[str, float] | None:  # type: ignore[override]
        return self.model_.held_out_metrics_

    @property
    def _unfitted(self) -> XMCEstimator:
        return ExMLDS() if self.model is None else self.model

    def set_params(self, **params: Any) -> Self:
        """As of every estimator; parameters of the model and the vectorizer also where these are defaults.

        A parameter of every method, such as `threshold`, is that of the model: `model__threshold`.
        """
        common = XMCEstimator._constraints
        params = {f"model__{name}" if name in common else name: value for name, value in params.items()}
        model, vectorizer = params.get("model", self.model), params.get("vectorizer", self.vectorizer)
        if model is None and any(name.startswith("model__") for name in params):
            params["model"] = ExMLDS()
        if (
            isinstance(vectorizer, str)
            and vectorizer in NAMED
            and any(name.startswith("vectorizer__") for name in params)
        ):
            params["vectorizer"] = NAMED[vectorizer]()
        if hasattr(self, "model_"):
            self._check_language(self.vocabulary_, params.get("language"))
            given = {name: params[f"model__{name}"] for name in OF_PREDICTIONS if f"model__{name}" in params}
            self.model_.set_params(**given)
        return super().set_params(**params)

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        label_names: Sequence[str] | None = None,
        sample_weight: Any = None,
        ids: Any = None,
        **side: Any,
    ) -> Self:
        """Fit the model to texts and their labels, in one pass over the texts.

        An analyzer that is "auto" is chosen on a sample of them.

        Parameters
        ----------
        X : texts: a list, a column or a data frame of one column of Pandas or Polars, or any iterable of
            strings; or documents with `text` and `labels`, such as those of `exmlds.data.open_texts`
        y, label_names : as for every method; y is None where documents have their labels
        sample_weight : (n,) weight of each text, where the estimator takes weights, as `ExMLDS` does
        ids : n names of the texts, as in `partial_fit`; those of documents if not given
        side : other arguments of the estimator's `fit`
        """
        self._leave_folder()
        targets.warn_of_order(X, y)
        self._check_parameters()
        model = self._model_to_fit()
        if sample_weight is not None:
            side["sample_weight"] = sample_weight
        own_labels: list[Any] = []
        kept: list[Text] = []
        own_ids: list[Any] = []
        uses_names = self.vocabulary is not None and "name_matches" in self._unfitted._side
        keeps_texts = self.keep_rows or self._is_growable
        vectorizer, vectors = self._fit_vectorizer(
            X,
            own_labels if y is None else None,
            kept if keeps_texts or uses_names else None,
            own_ids,
            y,
            sample_weight,
        )
        if ids is not None:
            own_ids = row_ids(ids)
            if len(own_ids) != vectors.shape[0]:
                raise ValueError(f"There are {vectors.shape[0]} texts, but {len(own_ids)} ids.")
        _warn_of_no_words_to_learn(vectors, own_ids)
        labels, matcher = own_labels if y is None else y, None
        if self.vocabulary is not None and label_names is not None:
            label_names = list(ids_of_names(label_names, self.vocabulary).values())
        if self.vocabulary is not None and not targets.is_indicator(targets.as_array(labels)):
            labels = as_concepts(labels, self.vocabulary)
            # Matrices of labels in `side` have the columns of the labels in the data.
            has_columns = any(side.get(name) is not None for name in ("label_cooccurrence", "observed"))
            if uses_names and self.allow_untrained and label_names is None and not has_columns:
                label_names = all_labels(labels, self.vocabulary)
                if label_names is not None:  # a matrix, so that the rows are read no more
                    columns = {label: column for column, label in enumerate(label_names)}
                    labels = targets.from_rows(labels, columns)
        if self.vocabulary is not None and uses_names:
            matcher, labels, label_names = self._fit_names(kept, labels, label_names, side, vectorizer)
        if self._is_growable:
            side["ids"] = _given_ids(None, own_ids)
        self.model_ = model.fit(vectors, labels, label_names=label_names, **side)
        self.vectorizer_, self.feature_names_ = vectorizer, None
        self._matcher, self.name_index_ = matcher, None if matcher is None else matcher.index
        self._record_choices()
        self.vocabulary_ = self.vocabulary
        if hasattr(vectorizer, "get_feature_names_out"):
            self.feature_names_ = vectorizer.get_feature_names_out().astype(object)
        self.texts_ = self.ids_ = self.field_lengths_ = None
        if keeps_texts:
            self._keep_texts(kept, own_ids)
        self.training_digest_ = None
        return self

    def fit_shards(self, shards: Sequence[Documents], path: PathLike) -> Self:
        """Fit the model to shards of texts and write it to a folder, as `Partitioned.fit_shards` does.

        The estimator is a `Partitioned`, and the vectorizer "tfidf". An analyzer that is "auto" is chosen on
        the first 20,000 texts, among those without pairs and n-grams.

        Parameters
        ----------
        shards : `exmlds.data.open_shards` gives those of files
        path : the folder of the model
        """
        self._leave_folder()
        self._check_parameters()
        self._check_shards_can_be_used()
        model_folder.check_target(path)
        work, model = work_folder(path), clone(self._unfitted)
        requested = analyzer_search.Requested(self.analyzer, self.max_words, self.field_weights)
        parameters = {**self.plain_parameters(), "model": None, "requested": list(requested)}
        Checkpoint(
            work / "texts",
            {"shards": [shard.digest() for shard in shards], "parameters": parameters},
            np.random.default_rng(),
        )
        folder = work / "texts"
        seed = model.random_state if isinstance(model.random_state, Integral) else 0
        numbered = [(folder, number, shard) for number, shard in enumerate(shards)]
        with progress.shown(model.verbose > 0):
            cluster.run(
                text_shards.choose_analyzer, [(folder, shards, requested, int(seed))], "choosing terms"
            )
            cluster.run(text_shards.count_texts, numbered, "counting terms")
            cluster.run(text_shards.merge_counts, [(folder, len(shards))], "merging terms")
            vectorizer, labels = text_shards.read_vectorizer(folder)
            vectors = [text_shards.VectorShard(shard, folder) for shard in shards]
            model._learn_shards(vectors, work / "parts", labels)
        with self._all_or_nothing():
            self.model_, self.vectorizer_ = model, vectorizer
            self._record_choices()
            self.feature_names_ = vectorizer.get_feature_names_out().astype(object)
            self._matcher = self.name_index_ = self.vocabulary_ = None
            self.texts_ = self.ids_ = self.field_lengths_ = self.training_digest_ = None
            self.save(path)
        shutil.rmtree(work)
        with parts_left_on_disk():
            self._become(load(path))
        return self

    def _check_shards_can_be_used(self) -> None:
        if not isinstance(self.model, Partitioned):
            raise ValueError(
                f"Shards are fitted in parts: use TextClassifier(Partitioned(estimator={self._unfitted})), "
                "whatever its number of parts."
            )
        if not isinstance(self.vectorizer, str) or self.vectorizer != "tfidf":
            raise ValueError('The vectorizer of shards is "tfidf"; vectorize them yourself for another one.')
        if self.vocabulary is not None or self.keep_rows or self._is_growable:
            raise ValueError("A fit to shards takes no vocabulary, and keeps no texts; leave these out.")

    def _model_to_fit(self) -> XMCEstimator:
        """A clone of the estimator, which keeps its rows where the classifier is to grow."""
        model = clone(self._unfitted)
        if self._device:
            model._use_device(self._device)
        if self.growable:
            if not isinstance(model, GrowingEstimator):
                raise ValueError(f"{type(model).__name__} can't grow; leave out growable=True.")
            model.growable = True
        return model

    @property
    def _is_growable(self) -> bool:
        """Whether a fit makes a model that can grow."""
        return self.growable or bool(getattr(self._unfitted, "growable", False))

    def _keep_texts(self, texts: list[Text], ids: list[Any]) -> None:
        self.texts_ = _strings(map(joined, texts))
        if self._is_growable:
            self.ids_, self.field_lengths_ = self.model_.growth_.ids, _lengths_of_fields(texts)
        elif any(ids):
            self.ids_ = _strings(id or "" for id in ids)

    # Growing.

    @one_at_a_time
    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        ids: Any = None,
        replace: bool = False,
        label_names: Sequence[str] | None = None,
    ) -> Self:
        """Add texts to a fitted model, which predicts with them at once; an unfitted one is fitted to them.

        Words that the model does not know are ignored until `refresh`. A label of the vocabulary that gets
        its first text is a trained one from then on; other new labels become further classes.

        Parameters
        ----------
        X, y : as `fit` takes them
        ids : m names of the texts, strings or whole numbers, by which `remove_rows` and `relabel` find them;
            those of documents if not given, or else the numbers of the texts, counted from the first fit on
        replace : whether a text replaces one that has its id already, which is an error otherwise
        label_names : the names of further columns, where y is a matrix and classes have names
        """
        if not hasattr(self, "model_"):
            self._require_growable(self._is_growable)
            return self.fit(X, y, label_names=label_names, ids=ids)
        growing = self._growing_model()
        own_labels: list[Any] = []
        kept: list[Text] = []
        vectors, own_ids = self._read(X, kept, own_labels if y is None else None)
        if not kept:
            raise ValueError("There is no text; give at least one.")
        _warn_of_no_words_to_learn(vectors, own_ids)
        labels = self._as_concepts(own_labels if y is None else y)
        change = growing._rows_added(vectors, labels, _given_ids(ids, own_ids), replace, label_names)
        return self._change_texts(_strings(map(joined, kept)), _lengths_of_fields(kept), change)

    @one_at_a_time
    def remove_rows(self, ids: Iterable[Any]) -> Self:
        """Remove texts by their ids: they do not vote any more, and are not counted.

        What classifiers and the vectorizer have learnt from them remains until `refresh`, and the texts
        themselves are kept until `drop_removed`.
        """
        change = self._growing_model()._rows_removed(ids)
        return self._change_texts(_strings([]), np.empty((0, 0), np.int32), change)

    @one_at_a_time
    def relabel(self, ids: Iterable[Any], y: Any) -> Self:
        """Replace the labels of texts, by the ids of the texts; y as `partial_fit` takes it."""
        change = self._growing_model()._rows_relabelled(ids, self._as_concepts(y))
        rows = change.removed
        return self._change_texts(self.texts_[rows], self.field_lengths_[rows], change)

    @one_at_a_time
    def refresh(self, **side: Any) -> Self:
        """Fit the model again to all its texts, also what analyzes them, and replace it by the result.

        side : other arguments of `fit`, such as weights of the texts that the model uses, in their order
        """
        growing = self._growing_model()
        rows = growing._live_rows()
        texts = [
            _split(text, lengths)
            for text, lengths in zip(self.texts_[rows].tolist(), self.field_lengths_[rows].tolist())
        ]
        labels, label_names = growing._given_labels(rows)
        fresh = clone(self).with_engine(self.engine)
        fresh.fit(texts, labels, label_names=label_names, ids=growing.row_ids_, **side)
        fresh._growing_model()._go_on_from(growing)
        self._become(fresh)
        return self

    @property
    def row_ids_(self) -> list[str]:
        """The ids of all texts that the model uses."""
        return self._growing_model().row_ids_

    @one_at_a_time
    def drop_removed(self) -> Self:
        """Free the space of removed texts, and merge those that were added; predictions stay the same.

        A model that is open for writing does it by `compact`.
        """
        self._growing_model()
        self._free_space()
        return self

    def _compact(self, purge: bool) -> None:
        if self.field_lengths_ is None:
            return
        growing, is_kept = self._growing_model(), ~self._growth().is_removed
        model = copy.copy(growing)
        model._compact(purge)
        if purge:
            self.texts_, self.field_lengths_ = self.texts_[is_kept], self.field_lengths_[is_kept]
        self.model_, self.ids_ = model, model._growth().ids

    def _growing_model(self) -> GrowingEstimator:
        check_is_fitted(self)
        model = self.model_
        self._require_growable(self.field_lengths_ is not None and isinstance(model, GrowingEstimator))
        assert isinstance(model, GrowingEstimator)
        if len(self.texts_) != len(model._growth().ids):
            raise ValueError(
                "Rows were added to `model_` by itself, without their texts. Load or fit the TextClassifier "
                "again, and add texts by its own methods."
            )
        return model

    def _growth(self) -> GrowthState:
        return self._growing_model()._growth()

    def _require_growable(self, is_growable: bool) -> None:
        if not is_growable:
            raise ValueError(
                "This model does not keep its training texts, which it needs to grow: fit it with "
                "TextClassifier(growable=True)."
            )

    def _as_concepts(self, labels: Any) -> Any:
        """Labels that are lists as ids of the vocabulary, if there is one."""
        if self.vocabulary_ is None or targets.is_indicator(targets.as_array(labels)):
            return labels
        return as_concepts(labels, self.vocabulary_)

    def _change_texts(self, texts: Array, field_lengths: Array, rows: RowsChange) -> Self:
        growing = self._growing_model()
        with self._all_or_nothing():
            self._commit_change(TextsChange(texts, field_lengths, growing._with_results(rows)))
        return self

    def _joined_changes(self, changes: Iterable[Any]) -> Iterator[Any]:
        return join_runs(
            changes,
            lambda change: getattr(change, "rows", None),
            lambda rows: self._growing_model()._can_join(rows),  # the model is another one after a change
            _joined_texts,
        )

    def _apply_change(self, change: TextsChange) -> None:
        growing = self._growing_model()
        stored.record(change, "the change", TextsChange)
        stored.record(change.rows, "the change of rows", RowsChange)
        m = len(stored.strings(change.texts, "the added texts", None))
        stored.strings(change.rows.ids, "the ids of the added texts", m)
        _check_lengths(change.field_lengths, m)
        model = copy.copy(growing)  # arrays are never changed in place, so that the model before is whole
        model._id_index = growing._id_index
        model._apply_change(change.rows)
        self.texts_ = np.concatenate([self.texts_, change.texts])
        self.field_lengths_ = _stacked_lengths(self.field_lengths_, change.field_lengths)
        self.model_, self.ids_ = model, model._growth().ids
        if self._matcher is not None and self._matcher.n_labels < model.n_labels_:
            self._matcher = NameMatcher(self._matcher.index, model.n_labels_)

    def _fit_names(
        self,
        texts: list[Text],
        labels: Any,
        label_names: Sequence[str] | None,
        side: dict[str, Any],
        vectorizer: Any,
    ) -> tuple[NameMatcher | None, Any, Sequence[str] | None]:
        """A matcher of the names of labels, and labels and names as they are fitted.

        The matches go to `side`, and so do the names as rows of the vectorizer.

        There is no matcher, and nothing is changed, where no label has a name.
        """
        assert self.vocabulary is not None
        Y, classes = targets.encode(labels, label_names)
        own = LabelNames(
            [] if classes is None else classes.tolist(),
            self.vocabulary,
            languages_of_texts(texts[:TEXTS_TO_DETECT]),
        )
        names = list(own.names())
        if not names or Y.shape[0] != len(texts):
            return None, labels, label_names
        # Rows that the estimator learns nothing from say nothing about names either.
        has_label, weights = np.diff(Y.indptr) > 0, side.get("sample_weight")
        if weights is not None:
            has_label = has_label & (targets.row_weights(weights, len(texts)) > 0)
        rows = np.flatnonzero(has_label)
        with progress.shown(self._unfitted.verbose > 0):
            learnt, rng = [texts[row] for row in rows], np.random.default_rng(0)
            matcher, matches = NameMatcher.fit(names, learnt, Y[rows], rng, self._unfitted.n_jobs)
            starts = matches.indptr[np.concatenate(([0], np.cumsum(has_label)))]  # others match nothing
            side["name_matches"] = csr_matrix((matches.data, matches.indices, starts), Y.shape)
        side["label_attributes"] = own.attributes()
        if not encoders.has_encoder(vectorizer):  # which would take as long for a name as for a text
            side["label_rows"] = name_rows(names, Y, vectorizer)
        return matcher, Y, own.labels

    def _fit_vectorizer(
        self,
        X: Any,
        labels: list[Any] | None,
        kept: list[Text] | None = None,
        ids: list[str | None] | None = None,
        y: Any = None,
        sample_weight: Any = None,
    ) -> tuple[Any, csr_matrix]:
        """A fitted vectorizer and the (n, d) vectors; labels, texts and ids are added to lists, if given.

        y : labels to choose the analyzer on, where the documents do not bring their own
        """
        self._check_parameters()
        self._check_language(self.vocabulary, self.language)
        self._check_analyzer()
        with progress.shown(self._unfitted.verbose > 0):
            is_union = isinstance(self.vectorizer, (list, tuple)) or is_encoder(self.vectorizer)
            texts = _texts(X, labels, kept, ids, fields=self._has_terms or is_union)
            first = next(texts, None)
            if first is None:
                raise ValueError("There is no text; give at least one.")
            texts = chain([first], texts)
            labels = labels if y is None else y
            if not is_union:
                return self._fit_one(self.vectorizer, texts, labels, sample_weight)
            given = self.vectorizer if isinstance(self.vectorizer, (list, tuple)) else [self.vectorizer]
            kept_texts = list(texts)  # each part reads them
            fitted = [self._fit_one(part, iter(kept_texts), labels, sample_weight) for part in given]
            union = UnionVectorizer([vectorizer for vectorizer, _ in fitted])
            return union, union.union([rows for _, rows in fitted])

    def _fit_one(
        self, given: Any, texts: Iterator[Any], labels: Any, sample_weight: Any
    ) -> tuple[Any, csr_matrix]:
        """A fitted vectorizer, one of those that the parameter names, and the (n, d) vectors."""
        if isinstance(given, str) and given == "tfidf":
            return self._fit_terms(texts, labels, sample_weight)
        if is_encoder(given):
            encoder = EncoderVectorizer(given)
            return encoder, encoder.transform(texts)
        vectorizer = NAMED[given]() if isinstance(given, str) else clone(given)
        return vectorizer, _fitted_vectors(vectorizer, map(joined, texts))

    @property
    def _has_terms(self) -> bool:
        """Whether the vectorizer, or one of several, is our own, which takes the parameters of analysis."""
        given = self.vectorizer if isinstance(self.vectorizer, (list, tuple)) else [self.vectorizer]
        return any(isinstance(one, str) and one == "tfidf" for one in given)

    def _check_analyzer(self) -> None:
        for name in ("analyzer", "max_words", "field_weights"):
            if not self._has_terms and getattr(self, name) not in ("auto", None):
                raise DataError(
                    f"{{{name}}} is for the vectorizer 'tfidf'. Leave it out, or set the parameters of your "
                    "vectorizer.",
                    **{name: Argument(name)},
                )

    def _fit_terms(self, texts: Iterator[Any], labels: Any, sample_weight: Any) -> tuple[Any, csr_matrix]:
        """Fit the vectorizer of terms, with what is "auto" chosen on held-out texts."""
        model = self._unfitted
        with_ngrams = getattr(model, "effort", None) == "best"
        requested = analyzer_search.Requested(self.analyzer, self.max_words, self.field_weights, with_ngrams)
        seed = model.random_state if isinstance(model.random_state, Integral) else 0
        vectorizer, vectors, trials = analyzer_search.fit_terms(
            texts, labels, requested, int(seed), sample_weight
        )
        vectorizer.trials = trials
        return vectorizer, vectors

    def _record_choices(self) -> None:
        """Set the attributes that say which terms were chosen, and what was tried."""
        self.analyzer_ = self.max_words_ = self.field_weights_ = self.analyzer_results_ = None
        parts = (
            self.vectorizer_.parts if isinstance(self.vectorizer_, UnionVectorizer) else [self.vectorizer_]
        )
        for vectorizer in [part for part in parts if isinstance(part, TermVectorizer)]:
            self.analyzer_, self.max_words_ = vectorizer.analyzer, vectorizer.max_words
            self.field_weights_ = list(vectorizer.field_weights)
            self.analyzer_results_ = {
                name: [getattr(trial, name) for trial in vectorizer.trials]
                for name in analyzer_search.Trial._fields
            }
            vectorizer.trials = ()

    @staticmethod
    def _check_language(vocabulary: Vocabulary | None, language: str | None) -> None:
        if language is not None and vocabulary is None:
            raise DataError(
                "Only a model with a vocabulary names labels in a language; pass {vocabulary}.",
                vocabulary=Argument("vocabulary"),
            )
        if language is not None and vocabulary is not None:
            vocabulary.language_position(language)

    def label_name(self, label: Any) -> str:
        """The name of a label in the language of the model; the label itself without a vocabulary."""
        if self.vocabulary_ is None or not isinstance(label, str):
            return str(label)
        return self.vocabulary_.name(label, self.language)

    def label_matrix(self, Y: Any, *, unknown: str = "drop") -> csr_matrix:
        """Y as csr in the columns of `classes_`, as of every method; labels may be preferred names."""
        check_is_fitted(self)
        Y = targets.as_array(Y)
        if self.vocabulary_ is not None and not targets.is_indicator(Y):
            rows = targets.label_rows(Y)
            targets.refuse_indicator_rows(Y, rows)
            found = self._known_labels(chain.from_iterable(rows))
            Y = [list(dict.fromkeys(map(found.__getitem__, row))) for row in rows]
        return super().label_matrix(Y, unknown=unknown)

    def _known_labels(self, labels: Iterable[Any]) -> dict[Any, Any]:
        """Labels that the model does not know as the concepts that have these preferred names."""
        columns, labels = self._columns(), list(dict.fromkeys(labels))
        if self.vocabulary_ is None:
            return {label: label for label in labels}
        concepts = current_concepts([label for label in labels if label not in columns], self.vocabulary_)
        return {label: concepts.get(label, label) for label in labels}

    def _known_columns(self, listed: Iterable[Any]) -> list[int]:
        if self.vocabulary_ is not None and not isinstance(listed, str):
            listed = list(listed)
            found = self._known_labels(label for label in listed if isinstance(label, str))
            listed = [found[label] if isinstance(label, str) else label for label in listed]
        return super()._known_columns(listed)

    def side_rows(self, side: Mapping[str, Any], rows: Array) -> dict[str, Any]:
        """The arguments of the estimator's `fit` for some of the rows."""
        return self._unfitted.side_rows(side, rows)

    def transform(self, X: Any) -> Array:
        """(n, n_learners × r) float32 embeddings of texts, learner after learner, as of the estimator."""
        rows = self._checked_rows(X, reset=False)
        if not rows.shape[0]:
            return np.empty((0, self._n_features_out), np.float32)
        return self._voting_model().embed(rows)

    def predict_proba(self, X: Any) -> csr_matrix:
        """The scores or probabilities of the estimator: calibrated probabilities where it is an `ExMLDS`."""
        return super().predict_proba(X)

    def _as_probabilities(self, scores: csr_matrix) -> csr_matrix:
        return self.model_._as_probabilities(scores)

    @property
    def device(self) -> str:
        """Where the classifier runs: the device of its model, or the one that it was given."""
        model = vars(self).get("model_")
        return str((self._unfitted if model is None else model).device)

    @device.setter
    def device(self, device: str) -> None:
        self._use_device(device)

    def _use_device(self, device: str) -> None:
        model = vars(self).get("model_")
        (clone(self._unfitted) if model is None else model)._use_device(device)
        self._device = device

    @property
    def _method(self) -> XMCEstimator:
        return self.model_

    @property
    def _score_meaning(self) -> str:
        return self.model_._score_meaning

    def _explanations(self, X: Any, label: Any, n: int, feature_names: Any) -> Iterator[Explanation]:
        if self._matcher is None:
            yield from super()._explanations(X, label, n, feature_names)
            return
        X = list(X) if isinstance(X, Iterator) else X
        texts: list[Text] = []
        list(_texts(X, kept=texts))
        allowed = None if label is None else [label]
        best, scores = self.predict_topk(X, 1, allow=allowed)
        column = None if label is None else self._known_columns([label])[0]
        for document, text, (first,), (score,) in zip(text_column(X), texts, best, scores):
            own = int(first) if column is None else column
            if own >= 0 and self.columns_.used(own) is None:
                why = Explanation.of_name(self._label(own), float(score))
                why = why._replace(name=self.label_name(why.label))
            else:
                own_label = None if own < 0 else self._label(own)
                (why,) = super()._explanations([document], own_label, n, feature_names)
                own = self._known_columns([why.label])[0]
            yield why._replace(matched=self._matcher.matched_words(text, own))

    def _explain_row(
        self, X: Matrix, label: int | None, n: int, feature_names: Any, kept_row: Any = None, **side: Any
    ) -> Explanation:
        names, texts = self.feature_names_ if feature_names is None else feature_names, self.texts_
        kept_row = None if texts is None else lambda row: self._checked_rows([texts[row]], reset=False)
        explanation = self.model_._explain_row(X, label, n, names, kept_row, **side)
        explanation = explanation._replace(name=self.label_name(explanation.label))
        if texts is None:
            return explanation
        voters = [
            voter._replace(text=texts[voter.row], id=self._id_of(voter.row)) for voter in explanation.voters
        ]
        return explanation._replace(voters=voters)

    def _id_of(self, row: int) -> str | None:
        """The id of a training text, by its row; None where it has none, or where it was not kept."""
        return None if self.ids_ is None else self.ids_[row] or None

    def _voting_model(self) -> VotingModel:
        if not isinstance(self.model_, LabelSpaceMixin):
            raise NotImplementedError(f"{type(self.model_).__name__} has no label space.")
        return self.model_._voting_model()

    def _with_row_names(self, X: Any) -> tuple[Any, Sequence[Any] | None]:
        """The texts, and their ids where all have one; documents that are read once are kept in a list."""
        if isinstance(X, (str, Mapping, np.ndarray)) or hasattr(X, "columns") or not isinstance(X, Iterable):
            return super()._with_row_names(X)
        X = X if hasattr(X, "iloc") or isinstance(X, list) else list(X)
        ids = [getattr(text, "id", None) for text in X]
        return (X, ids) if ids and None not in ids else super()._with_row_names(X)

    def _rows_with_side(self, X: Any) -> tuple[Matrix, dict[str, Matrix]]:
        if self._matcher is None:
            return super()._rows_with_side(X)
        texts: list[Text] = []
        vectors, ids = self._read(X, texts)
        matches = self._matcher.match(texts, self.n_jobs)
        _warn_of_no_words(vectors, ids, matches)
        return self._as_rows(vectors), {"name_matches": matches}

    def _checked_rows(self, X: Any, *, reset: bool) -> Matrix:
        return self._as_rows(self._vectors(X))

    def _as_rows(self, vectors: csr_matrix) -> Matrix:
        """Vectors as the estimator takes rows."""
        if not vectors.shape[0]:  # an estimator refuses a matrix without rows, as scikit-learn requires
            return self.columns_.rows(one_form(vectors, self.sparse_rows_))
        return self.model_._checked_rows(vectors, reset=False)

    def _vectors(self, X: Any) -> csr_matrix:
        """(n, d) csr, the vectors of texts."""
        vectors, ids = self._read(X)
        _warn_of_no_words(vectors, ids)
        return vectors

    def _read(
        self, X: Any, kept: list[Text] | None = None, labels: list[Any] | None = None
    ) -> tuple[csr_matrix, list[str | None]]:
        """The vectors of texts, and ids of documents; texts and labels are added to the lists, if given."""
        check_is_fitted(self)
        ids: list[str | None] = []
        takes_fields = isinstance(self.vectorizer_, (TermVectorizer, UnionVectorizer))
        texts = _texts(X, labels, kept, ids, fields=takes_fields)
        first = next(texts, None)
        if first is None:
            return csr_matrix((0, self.n_features_in_), dtype=np.float32), ids
        return csr_matrix(self.vectorizer_.transform(chain([first], texts)), dtype=np.float32), ids

    def _candidates(self, X: Matrix, k: int) -> tuple[Array, Array]:
        return self.model_._candidates(X, k)

    @property
    def _n_rankable(self) -> int:
        return self.model_._n_rankable

    def _ranked(self, X: Matrix, k: int, **side: Any) -> tuple[Array, Array]:
        ids, scores = self.model_._ranked(X, k, **side)
        has_words: Array = np.diff(X.indptr) > 0 if issparse(X) else np.abs(X).max(axis=1) > 0
        known = np.broadcast_to(has_words[:, None], ids.shape)
        if known.all():
            return ids, scores
        if side:  # a text without known words may have the name of a label
            known = known | contains(side["name_matches"], ids)
        first = np.argsort(~known, axis=1, kind="stable")
        found = np.where(known, ids, -1), np.where(known, scores, 0)
        return np.take_along_axis(found[0], first, axis=1), np.take_along_axis(found[1], first, axis=1)

    def estimate(
        self, n: int, d: int, n_labels: int, nnz: int | None = None, nnz_labels: int | None = None
    ) -> Estimate:
        """The memory that a fit of the model will take, and its size; see `XMCEstimator.estimate`."""
        params.check(type(self).__name__, self.get_params(deep=False), self._constraints)
        return self._unfitted.estimate(n, d, n_labels, nnz, nnz_labels)

    def plain_parameters(self) -> dict[str, Any]:
        """As they stand in a manifest: a vectorizer and a model by class and parameters."""
        vectorizer, model = encoders.describe_any(self.vectorizer), None
        if self.model is not None:
            model = {"class": class_reference(type(self.model)), "parameters": self.model.plain_parameters()}
        return {
            "vectorizer": vectorizer,
            "analyzer": self.analyzer,
            "max_words": int(self.max_words) if isinstance(self.max_words, Integral) else self.max_words,
            "field_weights": self.field_weights
            if isinstance(self.field_weights, str)
            else [float(weight) for weight in self.field_weights],
            "model": model,
            "language": self.language,
            "allow_untrained": self.allow_untrained,
            "keep_rows": self.keep_rows,
            "growable": self.growable,
        }

    @classmethod
    def from_plain(cls, parameters: Mapping[str, Any]) -> Self:
        vectorizer, model = encoders.restore_any(parameters["vectorizer"]), parameters["model"]
        if model is not None:
            model = restored(model["class"], model["parameters"], {}, "The model's parameters")
        added = ("analyzer", "max_words", "field_weights")  # folders of earlier versions have none
        return cls(
            vectorizer=vectorizer,
            **{name: parameters[name] for name in added if name in parameters},
            model=model,
            language=parameters.get("language"),  # folders of earlier versions have none of these
            allow_untrained=parameters.get("allow_untrained", True),
            growable=parameters.get("growable", False),
            keep_rows=parameters["keep_rows"],
        )

    def _state(self) -> dict[str, Any]:
        kept = super()._state()
        vectorizer, vocabulary = kept.pop("vectorizer"), kept.pop("vocabulary", None)
        kept["vocabulary"] = None if vocabulary is None else vocabulary.tables
        if isinstance(vectorizer, (TermVectorizer, UnionVectorizer)):
            kept["feature_names"] = None  # the terms have the names
            kept["vectorizer"] = encoders.fitted_state(vectorizer)
        else:
            kept["vectorizer"] = vectorizers.fitted_state(vectorizer)
        return kept

    def _restore(self) -> None:
        for name in [name for name in vars(self) if name.endswith("_") and name not in OWN]:
            delattr(self, name)  # folders of earlier versions repeat what the model holds
        if self.vocabulary_ is not None:
            check_vocabulary(self.vocabulary_)
            self.vocabulary = self.vocabulary_ = Vocabulary(self.vocabulary_)  # type: ignore[arg-type]
        if self.name_index_ is not None:
            stored.record(self.model_, "the model", XMCEstimator)
            takes_names = getattr(self.model_, "untrained_", None) is not None
            stored.require(takes_names, "the model was fitted without names of labels")
            n_labels = stored.whole(self.model_.n_labels_, "the number of labels", 1)
            name_matcher.check(self.name_index_, n_labels)
            self._matcher = NameMatcher(self.name_index_, n_labels)
        kept: Any = self.vectorizer_
        if kept["class"] in (TermVectorizer.__name__, UnionVectorizer.__name__):
            self.vectorizer_ = encoders.restore_fitted(kept, self.vectorizer)
            self.feature_names_ = self.vectorizer_.get_feature_names_out()
        else:
            self.vectorizer_ = vectorizers.restore_fitted(kept, self.feature_names_)

    def _check_learnt(self) -> None:
        stored.record(self.model_, "the model", XMCEstimator)
        self._check_language(self.vocabulary_, self.language)
        n_terms = self.vectorizer_.transform([""]).shape[1]
        stored.require(n_terms == self.n_features_in_, "the vectorizer has other features than the model")
        n = self.n_samples_fit_ if self.field_lengths_ is None else len(self._growth().ids)
        if self.texts_ is not None:
            stored.strings(self.texts_, "the training texts", n)
        if self.ids_ is not None:
            stored.strings(self.ids_, "the ids of the training texts", n)
        if self.field_lengths_ is not None:
            _check_lengths(self.field_lengths_, n)
            stored.require(self.texts_ is not None, "a growing model has no texts")
            is_alike = self.ids_ is not None and self.ids_.tolist() == self._growth().ids.tolist()
            stored.require(is_alike, "the ids of the training texts differ from those of the rows")


def text_column(X: Any) -> Any:
    """The only column of a data frame or of an (n, 1) array; anything else as it is."""
    if hasattr(X, "columns") and len(X.columns) == 1:
        return X[X.columns[0]]
    return X[:, 0] if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == 1 else X


def _texts(
    X: Any,
    labels: list[Any] | None = None,
    kept: list[Text] | None = None,
    ids: list[str | None] | None = None,
    *,
    fields: bool = False,
) -> Iterator[Text]:
    """The texts one by one; labels and ids of documents and the texts are added to lists, if given.

    kept : gets the `fields` of a document that has several, and other texts as they are
    fields : give the `fields` of a document that has several, a tuple of texts, in place of their join
    """
    if isinstance(X, str):
        raise ValueError("Give a list of texts, also for one text: [text].")
    if issparse(X) or (isinstance(X, np.ndarray) and X.dtype.kind in "biufc"):
        raise ValueError("TextClassifier takes texts. Give a matrix of features to the model itself.")
    X = text_column(X)
    if isinstance(X, Mapping) or hasattr(X, "columns"):
        raise ValueError('TextClassifier takes one column of texts. Give it alone, such as table["text"].')
    if not isinstance(X, Iterable):
        raise ValueError(f"TextClassifier takes a list of texts. Got {type(X).__name__} instead.")
    with progress.stage("reading texts", len(X) if isinstance(X, Sized) else None) as advance:
        for row, item in enumerate(X):
            text = getattr(item, "text", item)
            if not isinstance(text, str):
                advice = "Texts must be strings."
                if targets.is_missing(text):
                    advice = "Replace missing texts by empty ones."
                elif isinstance(text, (list, tuple, set, frozenset, np.ndarray)):
                    advice = "Are X and y swapped?"
                raise ValueError(
                    f"Row {row}, counted from 0, is not a text but {reprlib.repr(text)}, "
                    f"a {type(text).__name__}. {advice}"
                )
            with_fields = getattr(item, "fields", None) or text
            if labels is not None:
                if not hasattr(item, "labels"):
                    raise ValueError("Give the labels of the texts as y; only documents bring their own.")
                labels.append(item.labels)
            if kept is not None:
                kept.append(with_fields)
            if ids is not None:
                own = getattr(item, "id", None)
                ids.append(None if own is None else str(own))
            advance(1)
            yield with_fields if fields else text


def _joined_texts(changes: Sequence[TextsChange]) -> TextsChange:
    """Changes of one kind as one."""
    lengths = reduce(_stacked_lengths, (change.field_lengths for change in changes))
    texts = np.concatenate([change.texts for change in changes])
    return TextsChange(texts, lengths, joined_rows([change.rows for change in changes]))


def _given_ids(ids: Any, own_ids: list[str | None]) -> Any:
    """The ids as given, or those of the documents; None where they have none."""
    if ids is not None or not any(own_ids):
        return ids
    if None in own_ids:
        row = own_ids.index(None)
        raise ValueError(
            f"Text {row}, counted from 0, has no id, but others have one. Give ids to all texts, or to none."
        )
    return own_ids


def _strings(values: Iterable[str]) -> Array:
    """(n,) object"""
    return np.array(list(values), object)


def _lengths_of_fields(texts: Sequence[Text]) -> Array:
    """(n, F) int32, characters of each field, −1 where a text has fewer; F is 0 where none has several."""
    found = [() if isinstance(text, str) else tuple(map(len, text)) for text in texts]
    lengths = np.full((len(texts), max(map(len, found), default=0)), -1, np.int32)
    for own, row in zip(lengths, found):
        own[: len(row)] = row
    return lengths


def _split(text: str, lengths: Sequence[int]) -> Any:
    """A text as a vectorizer takes it: a document with several fields, or the text itself."""
    lengths = [length for length in lengths if length >= 0]
    if not lengths:
        return text
    starts = [sum(lengths[:i]) + i for i in range(len(lengths))]  # a newline is between two fields
    return TextWithFields(text, tuple(text[start : start + n] for start, n in zip(starts, lengths)))


def _stacked_lengths(before: Array, added: Array) -> Array:
    width = max(before.shape[1], added.shape[1])
    parts = [
        np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=-1) for part in (before, added)
    ]
    return np.concatenate(parts)


def _check_lengths(lengths: Any, n: int) -> None:
    """Check the lengths of the fields of n texts that come from a file."""
    stored.array(lengths, "the lengths of fields", "int32", n, None)


def _warn_of_no_words_to_learn(vectors: csr_matrix, ids: list[str | None]) -> None:
    if rows := _rows_without_words(vectors):
        warnings.warn(
            f"{len(rows):,} of {vectors.shape[0]:,} texts hold no word that the vectorizer takes; only the "
            f"frequency of their labels is learnt from them. {_named(rows, ids)}",
            DataWarning,
            stacklevel=3,
        )


def _warn_of_no_words(vectors: csr_matrix, ids: list[str | None], matches: csr_matrix | None = None) -> None:
    """Warn of texts without known words; matches : of names, by which labels are predicted all the same."""
    rows = _rows_without_words(vectors)
    if matches is not None:
        rows = [row for row in rows if matches.indptr[row] == matches.indptr[row + 1]]
    if rows:
        warn_of_no_words(len(rows), vectors.shape[0], _named(rows, ids))


def warn_of_no_words(n: int, of: int, named: str) -> None:
    """Warn of n texts, of so many, without a known word; named : a sentence that names them."""
    message = (
        f"{n:,} of {of:,} texts hold no word that the model knows; no labels are predicted for them. {named}"
    )
    if of == 1:
        message = "The text holds no word that the model knows; no labels are predicted for it."
    warnings.warn(message, NoKnownWordWarning, stacklevel=4)


def _named(rows: list[int], ids: list[str | None]) -> str:
    """A sentence that names texts: by their ids where all of them have one, and by their rows otherwise."""
    own = [id for row in rows if (id := ids[row]) is not None]
    if len(own) == len(rows):
        return f"Their ids: {some(own)}."
    return f"Rows, counted from 0: {some(list(map(str, rows)))}."


def _rows_without_words(vectors: csr_matrix) -> list[int]:
    return np.flatnonzero(np.diff(vectors.indptr) == 0).tolist()


def name_rows(names: Iterable[LabelName], Y: csr_matrix, vectorizer: Any) -> csr_matrix:
    """(L, d) csr, rows of length 1 with the names of the labels that texts have, (n, L); zeros for others.

    The rows of several names of a label are added.
    """
    is_used = (np.bincount(Y.indices, minlength=Y.shape[1]) > 0).tolist()
    numbers: defaultdict[str, int] = defaultdict()  # of distinct texts, each of which is read once
    numbers.default_factory = numbers.__len__
    labels, own = array("q"), array("q")
    for label, text, _ in names:
        if is_used[label]:
            labels.append(label)
            own.append(numbers[text])
    rows = encoders.transformed(vectorizer, list(numbers) or [""])
    of_labels = csr_matrix((np.ones(len(own), np.float32), (labels, own)), (Y.shape[1], rows.shape[0]))
    of_labels.data[:] = 1  # names in several languages may be alike
    return unit_rows(csr_matrix(of_labels @ rows))


def _fitted_vectors(vectorizer: Any, texts: Iterator[str]) -> csr_matrix:
    try:
        return csr_matrix(vectorizer.fit_transform(texts), dtype=np.float32)
    except ValueError as error:
        if "empty vocabulary" in str(error):
            raise ValueError("The texts hold no words that the vectorizer takes; are they empty?") from None
        raise
