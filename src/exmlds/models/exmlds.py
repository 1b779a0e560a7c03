"""ExMLDS, the recommended method: short lists by nearest neighbours, re-ranked by classifiers, stacked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix
from sklearn.utils.validation import check_is_fitted

from .. import metrics
from ..growing import GrowingEstimator, RowsChange, stacked, widened
from ..reranking import explain as reranking_explain
from ..reranking import untrained
from ..reranking.cross_fit import cross_fit, refit, start
from ..reranking.effort import EFFORTS, Effort
from ..reranking.growth import (
    REFIT_SHARE,
    ClassifierSettings,
    RerankerUpdate,
    Retraining,
    apply_update,
    check_update,
    first_rows_of,
    labels_to_average,
    mark_trained,
    train_again,
)
from ..reranking.pipeline import (
    PRUNE_CENTROIDS_BELOW,
    EvidenceLimits,
    RerankingPipeline,
    ShortlistScores,
    TrainedExamples,
    fit_shortlister,
    transform_sparse,
)
from ..reranking.search import TEMPERATURES, ConfigSearch, SearchTrial, TimeBudget
from ..reranking.stack import Stacked, extend_by_votes, rank_by_stacker, stack
from ..reranking.untrained import SUPPORTING_LABELS, UntrainedLabels
from ..runtime import parallel
from ..runtime.memory import DataSize, Estimate
from ..runtime.progress import phase
from ..selection import HeldOutScores, TrainingSet
from ..stages import features, label_lift, rerank, stacking
from ..stages.quantize import Packed
from ..stages.stacking import Stacker
from ..validation import params, stored, targets
from ..validation.arrays import Matrix, one_form
from ..voting import explain
from ..voting.base import MIN_ROWS_TO_TUNE, NeighborVoting, check_rows
from ..voting.explain import ExplainOptions, Explanation
from ..voting.growth import voters_of
from ..voting.label_space import LabelSpaceMixin
from ..voting.votes import VotingModel
from .exmlds3 import ExMLDS3
from .exmlds4 import ExMLDS4

Array = np.ndarray


@dataclass(kw_only=True, eq=False, repr=False)
class ExMLDS(LabelSpaceMixin, GrowingEstimator):
    """The recommended method: nearest rows make a short list of labels, and classifiers re-rank it.

    Parameters
    ----------
    effort : "fast", "balanced" or "best": how long a fit may take for what accuracy. "fast" searches no
        configuration, makes shorter lists by fewer neighbours, and leaves out the centroids of labels; "best"
        fits an ensemble, more folds and longer lists. Parameters that are given take precedence
    candidates : the shortlister: "joint" learning (`ExMLDS4`), joint "sppmi" (`ExMLDS3`), or "auto", the
        better one on held-out rows; where rows are few, the votes of the other are evidence too
    n_learners : number of ensemble members of joint learning; "auto" is one, or three with the effort "best",
        and with a `time_budget` as many as it allows while held-out rows improve
    shortlist : number of labels of a row that are re-ranked; "auto" chooses it on held-out rows
    loss : of the classifiers, "squared_hinge" or "logistic"; "none" leaves them out
    cost : C of the classifiers, the weight of the loss; "auto" chooses it on held-out rows
    objective : "precision", or "psp", propensity-scored precision, which favours rare labels: scores are then
        probabilities over propensities, and so is a `threshold`; not with fewer than 50 rows
    complete_labels : as in `ExMLDS3`, which is the shortlister then; "auto" where co-occurrences are given
    time_budget : seconds that a fit should take, approximately: within it learners and folds are added while
        they pay; beyond it the last fit, on all rows, is left out
    keep_rows : keep the training rows with the model, so that `explain` can show shared features
    growable : keep them, so that the model can grow: `partial_fit`, `remove_rows`, `relabel`, `refresh`
    device : "cpu", or "cuda", an NVIDIA graphics card, which needs CuPy; it is not saved with the model

    The other parameters are those of every method, `XMCEstimator`.

    Attributes
    ----------
    shortlister_ : the fitted method that makes short lists;  second_shortlister_ : another one, or None
    shortlist_, cost_ : as chosen;  shortlist_recall_ : share of true labels on the lists of held-out rows
    held_out_quality_ : the mean of P@1, P@3 and P@5 on held-out rows
    search_results_ : what was tried and the score of each trial, as lists under "step", "params", "score" and
        "seconds"

    Examples
    --------
    >>> from exmlds import ExMLDS
    >>> from exmlds.data import make_library
    >>> X, Y, names, _ = make_library(500, random_state=0)
    >>> model = ExMLDS(random_state=0).fit(X, Y, label_names=names)
    >>> model.predict_labels(X[2:3], k=2)
    [['geology', 'mountains']]
    """

    _constraints: ClassVar[Mapping[str, params.Constraint]] = {
        **GrowingEstimator._constraints,
        "effort": params.one_of(*EFFORTS),
        "candidates": params.one_of("auto", "joint", "sppmi"),
        "n_learners": params.either(params.one_of("auto"), params.whole(1)),
        "shortlist": params.either(params.one_of("auto"), params.whole(1)),
        "loss": params.one_of(*rerank.LOSSES, "none"),
        "cost": params.either(params.one_of("auto"), params.number(0, above=True)),
        "objective": params.one_of("precision", "psp"),
        "complete_labels": params.either(params.one_of("auto"), params.number(0, 1)),
        "time_budget": params.either(params.one_of(None), params.number(0, above=True)),
        "keep_rows": params.one_of(False, True),
        "device": params.DEVICE,
    }

    _space: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "candidates": ("joint", "sppmi"),
        "n_learners": (1, 2, 3),
        "shortlist": (60, 120, 240),
        "cost": (0.1, 0.3, 1.0, 3.0),
        "loss": ("squared_hinge", "logistic", "none"),
    }
    _leaves_out_columns: ClassVar[bool] = True
    _side: ClassVar[Mapping[str, bool]] = {
        "label_cooccurrence": False,
        "observed": True,
        "sample_weight": True,
        "name_matches": True,
        "label_attributes": False,
        "label_rows": False,
    }

    effort: str = "balanced"
    candidates: str = "auto"
    n_learners: str | int = "auto"
    shortlist: str | int = "auto"
    loss: str = "squared_hinge"
    cost: str | float = "auto"
    objective: str = "precision"
    complete_labels: str | float = "auto"
    time_budget: float | None = None
    keep_rows: bool = False
    device: str = "cpu"
    _retraining = None  # a `Retraining` whose update is not applied yet
    # A feature transform, and the first of the rows that vote as the last training had them by it.
    _padded_rows = None

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        label_names: Sequence[str] | None = None,
        sample_weight: Any = None,
        label_cooccurrence: Any = None,
        observed: Any = None,
        name_matches: Any = None,
        label_attributes: Any = None,
        label_rows: Any = None,
        ids: Any = None,
    ) -> Self:
        """Fit the model to rows and their labels.

        Parameters
        ----------
        X, y, label_names : as for every method
        sample_weight : (n,) weight of each row, relative to the mean: a common factor changes nothing, and a
            row of weight 0 is left out. A weight of 2 is not exactly a row that is there twice, which would
            take two places among the nearest rows, and might be in a fold and held out at the same time
        label_cooccurrence, observed : as in `ExMLDS3.fit`; joint SPPMI is the shortlister then
        name_matches : (n, L) sparse, a score above 0 and up to 1 where the name of a label stands in the text
            of a row: about how often such a match is right. `TextClassifier` makes it of a vocabulary. A
            label without any training row can then be predicted by its name alone
        label_attributes : (L, A) sparse, attributes that several labels have, such as broader concepts or
            subdivisions: a label without training rows is more probable where others with them are. How much
            they count is learnt, for each kind of attributes where they are given as a list of matrices
        label_rows : (L, d) sparse, features that describe each label, such as the words of its name: joint
            learning (`ExMLDS4`) brings them near the rows that have the label. `TextClassifier` makes them of
            a vocabulary; a label without a description has a row of zeros
        ids : n names of the rows, as in `partial_fit`
        """
        return self._learn(
            X,
            y,
            label_names,
            ids=ids,
            sample_weight=sample_weight,
            label_cooccurrence=label_cooccurrence,
            observed=observed,
            name_matches=name_matches,
            label_attributes=label_attributes,
            label_rows=label_rows,
        )

    def predict_topk(
        self, X: Any, k: int = 5, *, allow: Any = None, deny: Any = None, name_matches: Any = None
    ) -> tuple[Array, Array]:
        """The k best labels of each row, as of every method.

        Parameters
        ----------
        name_matches : (n, L) sparse, as `fit` takes it, for a model that was fitted with it
        """
        if name_matches is None:
            return super().predict_topk(X, k, allow=allow, deny=deny)
        check_is_fitted(self)
        params.check_count("k", k)
        if self.untrained_ is None:
            raise ValueError("This model was fitted without name_matches, so it can't use them.")
        X = self._checked_rows(X, reset=False)
        side = {"name_matches": targets.match_scores(name_matches, (X.shape[0], self.n_labels_))}
        return self._topk(X, side, k, allow, deny)

    def _checked_side(self, Y: csr_matrix, **side: Any) -> dict[str, Any]:
        weights = side.pop("sample_weight")
        if weights is not None:
            weights = targets.row_weights(weights, Y.shape[0])
        matches, attributes = side.pop("name_matches"), side.pop("label_attributes")
        if matches is not None:
            matches = targets.match_scores(matches, Y.shape)
        if attributes is not None:
            attributes = targets.kinds_of_attributes(attributes, Y.shape[1])
        label_rows = side.pop("label_rows")
        if label_rows is not None:
            label_rows = targets.rows_of_labels(label_rows, (Y.shape[1], self.n_features_in_))
            label_rows = one_form(label_rows, self.sparse_rows_)
        checked = targets.of_missing(Y, **side)
        if matches is not None and checked["observed"] is not None:
            matches = csr_matrix(matches.multiply(checked["observed"]))  # an unknown cell is not a miss
        return {
            "sample_weight": weights,
            "name_matches": matches,
            "label_attributes": attributes,
            "label_rows": label_rows,
            **checked,
        }

    def _fit(self, X: Matrix, Y: csr_matrix, rng: Generator, **side: Any) -> HeldOutScores | None:
        budget = TimeBudget(self.time_budget)
        search_rng, fold_rng, fit_rng, ensemble_rng, refit_rng = rng.spawn(5)
        labelled = self._trainable_rows(Y, **side)
        if not labelled.size:
            raise ValueError("No row with a label has a sample_weight above 0.")
        kept_rows = X.copy() if self._keeps_rows else None
        matches = side.get("name_matches")
        self.untrained_ = None
        if matches is not None:
            self.untrained_ = UntrainedLabels(side.get("label_attributes") or [])
            side = {**side, "name_matches": self.columns_.of_labels(matches)}
        rows = _normalize_weights(TrainingSet(X, Y, side, self._side).subset(labelled))
        if rows.n < MIN_ROWS_TO_TUNE:  # too few to choose anything on
            self._store_votes_alone(rows, fit_rng, labelled)
            self.kept_rows_ = kept_rows
            return None
        # Labels are ranked by probability times gain where rare ones are favoured.
        gains = (
            _inverse_propensity_gains(np.bincount(rows.Y.indices, minlength=rows.Y.shape[1]), rows.n)
            if self.objective == "psp"
            else None
        )
        adds_learners = self.n_learners == "auto" and self.time_budget is not None

        # 1. Search the configuration on a sample of the rows, and begin to fit it on folds.
        with phase("search of the configuration", rows.n, until=0.2):
            config, trials, *first = self._config_search(self._first_method(side)).search(
                rows,
                search_rng,
                budget,
                lambda method: start(
                    method, rows, fold_rng=fold_rng, fit_rng=fit_rng, n_folds=self._effort.n_folds
                ),
            )
        # 2. Fit it on folds, and score the rows that each fold holds out.
        with phase("cross-fitting", rows.n, until=0.6):
            fitted = cross_fit(
                config,
                rows,
                first.pop(),  # so that it is freed after the first fold
                fit_rng=fit_rng,
                ensemble_rng=ensemble_rng if adds_learners else None,
                budget=budget,
            )
        held = rows.subset(fitted.held_rows)

        def stack_held() -> Stacked:
            with phase("stacking", held.n, until=0.7):
                return stack(fitted.scores, held, max(5, self.max_labels), gains, self.n_jobs)

        # 3. Stack the evidence on held-out rows, and calibrate probabilities there.
        # 4. Beside that, fit again on all rows, or keep the last fold where the time is up.
        stacked, ((pipeline, trained), used) = parallel.beside(
            stack_held,
            lambda: refit(fitted, rows, refit_rng, budget),
            n_jobs=self.n_jobs,
            shares=(4, 1),
        )
        if self.untrained_ is not None and matches is not None:
            of_held = csr_matrix(matches[labelled[fitted.held_rows]])
            self.untrained_ = self.untrained_.fit(of_held, held.Y, self.columns_, fitted, stacked)

        self._store(pipeline, config.cost, labelled[used], trials)
        self.trained_ = None
        if trained is not None and self.growable:
            self.trained_ = trained._replace(alphas=mark_trained(trained.alphas))
        self.centroid_idf_ = None
        if self.growable and pipeline.centroids is not None and pipeline.feature_map is not None:
            self.centroid_idf_ = rerank.inverse_frequencies(transform_sparse(pipeline.feature_map, rows.X))
        self.evidence_limits_ = EvidenceLimits.of(fitted.scores) if self.growable else None
        self.stacker_: Stacker | None = stacked.stacker
        self.gains_, self.kept_rows_ = gains, kept_rows
        self.shortlist_recall_, self.held_out_quality_ = stacked.recall, stacked.quality
        k = self.max_labels
        return HeldOutScores(labelled[fitted.held_rows], stacked.ids[:, :k], stacked.probabilities[:, :k])

    def _store(
        self, pipeline: RerankingPipeline, cost: float, rows: Array, trials: list[SearchTrial]
    ) -> None:
        second = pipeline.second
        self.shortlister_ = pipeline.shortlister._without_engine()
        self.second_shortlister_ = None if second is None else second._without_engine()
        self.shortlist_, self.counts_ = pipeline.shortlist, pipeline.counts
        self.feature_map_, self.classifiers_ = pipeline.feature_map, pipeline.classifiers
        self.lifts_, self.match_lifts_ = pipeline.lifts, pipeline.match_lifts
        self.centroids_ = pipeline.centroids
        self.cost_, self.rows_ = cost, rows.astype(np.int32)
        self.trained_counts_, self.n_listed_ = self.column_counts_, len(rows)
        self.n_mapped_ = len(rows)
        columns = zip(*trials) if trials else ((), (), (), ())
        self.search_results_ = dict(zip(SearchTrial._fields, map(list, columns)))

    def _store_votes_alone(self, rows: TrainingSet, rng: Generator, numbers: Array) -> None:
        """Fit a shortlister with its default settings, whose votes are the prediction."""
        method = self._make_shortlister(self._first_method(rows.side), "l2", self._effort.n_epochs)
        shortlister = fit_shortlister(method, rows, rng)
        counts = rows.label_counts()
        pipeline = RerankingPipeline(shortlister, None, rows.Y.shape[1], counts, None, None, None)
        self._store(pipeline, np.nan, numbers, [])
        self.gains_, self.stacker_, self.trained_, self.centroid_idf_ = None, None, None, None
        self.evidence_limits_ = None
        self.held_out_quality_, self.shortlist_recall_ = np.nan, np.nan

    # Growing.

    def _results_of(self, change: RowsChange) -> RerankerUpdate | None:
        """Classifiers to be trained again, where enough rows have changed."""
        growth = self._growth()
        n_changed = growth.n_pending + len(change.removed) + len(change.ids)
        if n_changed < REFIT_SHARE * growth.n_live or self.trained_ is None:
            return None
        assert self.feature_map_ is not None
        added = np.flatnonzero(np.diff(change.labels.indptr))
        shortlister = self._grow(self.shortlister_, change, added)
        settings = ClassifierSettings(self.feature_map_, self.shortlist_, self.loss, self.cost_)
        trained_counts = _padded(self.trained_counts_, change.labels.shape[1])
        feature_map, padded = self._padded_rows or (None, None)
        padded = padded if feature_map is self.feature_map_ else None
        n_padded = 0 if padded is None else len(padded.squares)
        X = stacked(self._kept(self.rows_[n_padded:]), change.X[added])
        maps = None
        if shortlister.needs_further_maps(self.n_mapped_):
            voters = stacked(self._kept(self.rows_), change.X[added])
            maps = shortlister.further_maps(voters, self.n_mapped_)
            shortlister = shortlister.with_maps(voters, maps)
        self._retraining = train_again(
            shortlister,
            X,
            self.n_listed_,
            self.trained_,
            trained_counts,
            n_changed,
            settings,
            padded,
            maps,
        )
        return self._retraining.update

    def _grow(self, method: NeighborVoting, change: RowsChange, added: Array) -> NeighborVoting:
        removed = voters_of(self.rows_, change.removed, len(self._growth().ids))
        own = method.with_engine(self.engine)
        return own.grown(removed, change.X[added], change.labels[added])

    def _can_join(self, change: RowsChange) -> bool:
        second = self.second_shortlister_
        return self.shortlister_._can_join(change) and (second is None or second._can_join(change))

    def _apply_rows(self, change: RowsChange, n_labels: int) -> None:
        added, n = np.flatnonzero(np.diff(change.labels.indptr)), len(self._growth().ids)
        second = self.second_shortlister_
        self.shortlister_, self.second_shortlister_ = (
            self._grow(self.shortlister_, change, added)._without_engine(),
            None if second is None else self._grow(second, change, added)._without_engine(),
        )
        self.rows_ = np.concatenate([self.rows_, n + added]).astype(np.int32)
        self.counts_ = self.column_counts_.astype(np.float32)
        trained, update = _padded(self.trained_counts_, change.labels.shape[1]), change.results
        self.stacker_ = self.stacker_ and stacking.with_labels(self.stacker_, n_labels)
        if self.lifts_ is not None:
            is_counted = update is not None
            labels_of_rows = self.shortlister_.labels_
            self.lifts_ = (
                label_lift.fit(labels_of_rows[np.diff(labels_of_rows.indptr) > 0])  # removed rows have none
                if is_counted
                else label_lift.with_labels(self.lifts_, n_labels)
            )
        if update is not None:
            assert self.classifiers_ is not None
            assert self.trained_ is not None
            ahead, self._retraining = self._retraining, None
            if ahead is not None and ahead.update is update:
                self.trained_, self._padded_rows = ahead.trained, (self.feature_map_, ahead.rows)
            else:
                labels_of_rows = self.shortlister_.labels_
                self.trained_ = apply_update(
                    self.trained_, update, labels_of_rows, n_jobs=self.n_jobs, engine=self.engine
                )
            self.n_listed_ = len(self.rows_)
            if update.maps is not None:
                self._replace_maps(update.maps, change.X[added], ahead)
            trained = trained.copy()
            trained[update.labels] = self.column_counts_[update.labels]
            self.classifiers_ = rerank.replace(
                *(self.classifiers_, update.labels, update.weights, n_labels),
                n_jobs=self.n_jobs,
                engine=self.engine,
            )
        self._update_centroids(change, n, n_labels)
        gone = np.flatnonzero((trained > 0) & (self.column_counts_ == 0))
        if len(gone) and self.classifiers_ is not None:
            self.classifiers_ = rerank.without(self.classifiers_, gone)
            trained = np.where(self.column_counts_ == 0, 0, trained)
        self.trained_counts_ = trained
        if self.match_lifts_ is not None:
            self.match_lifts_ = _padded(self.match_lifts_, n_labels)
        if self.gains_ is not None:
            n_voters = np.count_nonzero(
                np.diff(self.shortlister_.labels_.indptr)
            )  # removed rows have no label
            self.gains_ = _inverse_propensity_gains(self.column_counts_, int(n_voters))
        if self.untrained_ is not None:
            self.untrained_ = self.untrained_.with_labels(self.n_labels_)

    def _replace_maps(self, maps: list[list[Packed]], X: Matrix, ahead: Retraining | None) -> None:
        """Embed all rows that vote by other maps; X : those that were added;  ahead : what was computed"""
        self.n_mapped_ = len(self.rows_)
        if ahead is not None and ahead.update.maps is maps:
            self.shortlister_ = ahead.shortlister._without_engine()
            return
        voters = stacked(self._kept(self.rows_[: len(self.rows_) - X.shape[0]]), X)
        own = self.shortlister_.with_engine(self.engine)
        self.shortlister_ = own.with_maps(voters, maps)._without_engine()

    def _update_centroids(self, change: RowsChange, n: int, n_labels: int) -> None:
        """Average the rows of labels with few rows again; n : number of rows before the change."""
        if self.centroids_ is None or self.centroid_idf_ is None:
            return
        removed = widened(self._growth().labels[change.removed], n_labels)
        labels = labels_to_average(change.labels, removed, self.column_counts_)
        if not len(labels):
            return
        assert self.feature_map_ is not None
        starts, rows = first_rows_of(self.shortlister_.labels_, labels)
        feature_map, padded = self._padded_rows or (None, None)
        if padded is None or feature_map is not self.feature_map_ or len(padded.squares) < len(self.rows_):
            found, rows = np.unique(rows, return_inverse=True)
            numbers = self.rows_[found]
            X = stacked(self._kept(numbers[numbers < n]), change.X[numbers[numbers >= n] - n])
            padded = rerank.pad_rows(transform_sparse(self.feature_map_, X), engine=self.engine)
        self.centroids_ = rerank.replace_centroids(
            *(self.centroids_, labels, padded, starts, rows, self.centroid_idf_, n_labels),
            keep_from=PRUNE_CENTROIDS_BELOW,
            n_jobs=self.n_jobs,
            engine=self.engine,
        )

    def _check_results(self, change: RowsChange) -> None:
        results = change.results
        if results is None:
            return
        if self.classifiers_ is None or self.trained_ is None:
            raise ValueError("there are no classifiers to be trained again")
        n_added = int(np.count_nonzero(np.diff(change.labels.indptr)))
        n_all, n_labels = len(self.rows_) + n_added, change.labels.shape[1]
        check_update(results, n_all, n_labels, self.classifiers_, self.shortlister_)

    def _drop_voters(self, is_removed: Array, number: Array) -> None:
        is_dropped = is_removed[self.rows_]
        self.shortlister_ = self.shortlister_.without_voters(is_dropped)
        if self.second_shortlister_ is not None:
            self.second_shortlister_ = self.second_shortlister_.without_voters(is_dropped)
        if self.trained_ is not None:
            self.trained_ = TrainedExamples(*rerank.keep_rows(*self.trained_, ~is_dropped))
            self._padded_rows = None
        self.n_listed_ -= int(is_dropped[: self.n_listed_].sum())
        self.n_mapped_ -= int(is_dropped[: self.n_mapped_].sum())
        self.rows_ = number[self.rows_[~is_dropped]].astype(np.int32)

    def _has_long_tail(self, n_more: int) -> bool:
        return self.shortlister_.has_long_tail(n_more)

    def _merge_segments(self) -> None:
        self.shortlister_ = self.shortlister_.merged()
        if self.second_shortlister_ is not None:
            self.second_shortlister_ = self.second_shortlister_.merged()

    def _config_search(self, first_method: str) -> ConfigSearch:
        is_open, make = self.candidates == "auto", self._make_shortlister
        return ConfigSearch(make, first_method, is_open, self.shortlist, self.loss, self.cost, self._effort)

    @property
    def _effort(self) -> Effort:
        return EFFORTS[self.effort]

    def _first_method(self, side: Mapping[str, Any]) -> str:
        """The shortlister that is tried before others; labels that are missing need joint SPPMI."""
        given = side.get("label_cooccurrence") is not None or side.get("observed") is not None
        if given or self.complete_labels not in ("auto", 0):
            if self.candidates == "joint":
                raise ValueError(
                    "candidates='joint' can't use label_cooccurrence, observed or complete_labels; "
                    "leave 'candidates' at 'auto'."
                )
            return "missing"
        return "sppmi" if self.candidates == "sppmi" else "joint"

    def _make_shortlister(self, name: str, kind: str, n_epochs: int) -> NeighborVoting:
        """An unfitted voting method on this kind of features."""
        shared: dict[str, Any] = {
            "features": kind,
            "n_neighbors": self._effort.n_neighbors,
            "temperature": TEMPERATURES[0],
            "threshold": 0.0,
            "n_jobs": self.n_jobs,
            "max_memory": self.max_memory,
        }
        if name == "joint":
            n_learners = self._effort.n_learners if self.n_learners == "auto" else int(self.n_learners)
            # Converting float16 embeddings would take most of the time of a single query.
            method: NeighborVoting = ExMLDS4(
                n_epochs=n_epochs, n_learners=n_learners, storage="float32", **shared
            )
        elif name == "missing":
            method = ExMLDS3(complete_labels=self.complete_labels, **{**shared, "temperature": "auto"})
        else:
            method = ExMLDS3(n_components=100, l2=1.0, mu=(1.0, 1.0, 10.0), complete_labels=0.0, **shared)
        return method.with_engine(self.engine)

    @property
    def _n_rankable(self) -> int:
        return super()._n_rankable if self.untrained_ is None else self.n_labels_

    def _ranked(self, X: Matrix, k: int, **side: Any) -> tuple[Array, Array]:
        matches = side.get("name_matches")
        if matches is None or self.untrained_ is None:
            return super()._ranked(X, k)
        used = self.columns_.of_labels(matches)
        ids, scores = super()._ranked(X, max(k, SUPPORTING_LABELS), name_matches=used)
        return self.untrained_.add(ids, scores, matches, self.columns_, k, self._label_gains())

    def _candidates(self, X: Matrix, k: int, name_matches: csr_matrix | None = None) -> tuple[Array, Array]:
        if self.stacker_ is None:
            return self.shortlister_.with_engine(self.engine)._candidates(X, k)
        return self._rerank(self.pipeline.score(X, k, matches=name_matches), k)

    def _rerank(self, scores: ShortlistScores, k: int) -> tuple[Array, Array]:
        """The k best labels of short lists and what follows them, with their scores."""
        assert self.stacker_ is not None
        listed, width = self.pipeline.n_listed, scores.ids.shape[1]
        top = scores.slice(slice(None), slice(listed))
        is_extended = k > min(self.shortlist_, len(self.counts_)) and width > listed
        n_ranked = listed if is_extended else k
        logits = top.logits(self.stacker_, self.engine)
        ids, probabilities = rank_by_stacker(
            self.stacker_, top.ids, logits, top.evidence, n_ranked, self.gains_
        )
        if is_extended:
            ids, probabilities = extend_by_votes(ids, probabilities, scores, width, self.gains_)
            # The places of matched labels are empty where fewer names match.
            present_first = np.argsort(ids < 0, axis=1, kind="stable")
            ids = np.take_along_axis(ids, present_first, axis=1)
            probabilities = np.take_along_axis(probabilities, present_first, axis=1)
        return ids[:, :k], probabilities[:, :k]

    def _restore(self) -> None:
        super()._restore()
        # Folders of earlier versions have none.
        absent = dict.fromkeys(("match_lifts_", "untrained_", "centroids_", "centroid_idf_", "trained_"))
        absent["evidence_limits_"] = None
        absent |= {"n_listed_": 0, "n_mapped_": len(self.rows_), "trained_counts_": self.column_counts_}
        for name, value in absent.items():
            if not hasattr(self, name):
                setattr(self, name, value)
        if self.untrained_ is not None and not isinstance(self.untrained_.attributes, list):
            self.untrained_ = UntrainedLabels.of_first_version(self.untrained_)

    def _check_learnt(self) -> None:
        super()._check_learnt()
        d, n_labels = self._widths
        if self.untrained_ is not None:
            untrained.check(self.untrained_, self.n_labels_)
        if self.match_lifts_ is not None:
            stored.array(self.match_lifts_, "lifts of matched names", stored.FLOATS, n_labels)
        for method in (self.shortlister_, self.second_shortlister_):
            if method is not None or self.shortlister_ is None:
                stored.record(method, "a shortlister", NeighborVoting)
                alike = method._widths == (d, n_labels)
                stored.require(alike, "a shortlister has other features or labels than the model")
        stored.whole(self.shortlist_, "the length of short lists", 1)
        stored.array(self.counts_, "counts of labels of the stacker", stored.FLOATS, n_labels)
        stored.array(self.trained_counts_, "counts of trained labels", stored.INTEGERS, n_labels)
        stored.whole(self.n_listed_, "the number of rows with examples", 0)
        stored.whole(self.n_mapped_, "the number of rows when maps were last trained", 0)
        n = self.shortlister_.labels_.shape[0]
        if self.trained_ is not None:
            stored.record(self.trained_, "the examples of classifiers", TrainedExamples)
            stored.require(self.classifiers_ is not None, "there are examples without classifiers")
            assert self.classifiers_ is not None
            rerank.check_examples(self.trained_.examples, n, len(self.classifiers_.bias))
            stored.array(self.trained_.alphas, "dual variables", "float32", len(self.trained_.examples.rows))
        check_rows(self.rows_, n, self._n_stored, self.kept_rows_, d)
        for values in (self.gains_, self.lifts_):
            if values is not None:
                shape = (n_labels,) * (1 if values is self.gains_ else 2)
                stored.array(values, "gains or lifts of labels", "float16 float32", *shape)
        for name in ("cost_", "held_out_quality_", "shortlist_recall_"):
            stored.number(getattr(self, name), name)
        stored.record(self.search_results_, "the search", dict)
        if self.classifiers_ is not None and self.feature_map_ is not None:
            width = features.check(self.feature_map_, d)
            if self.centroid_idf_ is not None:
                stored.array(self.centroid_idf_, "inverse frequencies of features", "float32", width)
            for linear in filter(None, (self.classifiers_, self.centroids_)):
                stored.record(linear, "the classifiers", rerank.Classifiers)
                n_trained = min(len(linear.bias), n_labels)  # labels that came later have none
                rerank.check(linear, width, n_trained)
        if self.evidence_limits_ is not None:
            stored.record(self.evidence_limits_, "the limits of the evidence", EvidenceLimits)
            for limit in self.evidence_limits_:
                stored.number(limit, "a limit of the evidence")
        if self.stacker_ is not None:
            names = stacking.evidence_names(
                self.second_shortlister_ is not None,
                self.classifiers_ is not None and self.lifts_ is not None,
                self.centroids_ is not None,
                self.match_lifts_ is not None,
            )
            stacking.check(self.stacker_, len(names), n_labels)

    @property
    def pipeline(self) -> RerankingPipeline:
        """The fitted shortlisters and classifiers as one."""
        second = self.second_shortlister_
        return RerankingPipeline(
            self.shortlister_.with_engine(self.engine),
            None if second is None else second.with_engine(self.engine),
            self.shortlist_,
            self.counts_,
            self.feature_map_,
            self.classifiers_,
            self.lifts_,
            self.match_lifts_,
            self.centroids_,
            self.evidence_limits_ if self.growth_ is not None and self.growth_.has_changed else None,
        )

    def _explain_row(
        self,
        X: Matrix,
        label: int | None,
        n: int,
        feature_names: Any,
        kept_row: Any = None,
        **side: Any,
    ) -> Explanation:
        pipeline = self.pipeline
        found = pipeline.shortlister.search_neighbors(X)
        names = self.columns_.feature_names(feature_names)
        options = ExplainOptions.of(n, names, kept_row, self.kept_rows_)
        if self.stacker_ is None:
            label = int(pipeline.shortlister.rank(found, 1)[0][0, 0]) if label is None else label
            return self._explain_votes(found, X, label, options)
        matches = side.get("name_matches")
        matches = None if matches is None else self.columns_.of_labels(matches)
        scores = pipeline.score(X, found=found, matches=matches)
        n_listed = min(pipeline.n_listed, scores.ids.shape[1])
        ids, probabilities = self._rerank(scores, n_listed)
        label = int(ids[0, 0]) if label is None else label
        why = self._explain_votes(found, X, label, options)
        column = np.flatnonzero(scores.ids[0, :n_listed] == label)
        if not len(column):  # it follows the short list, if anybody voted for it
            n_labels = len(self.counts_)
            ids, probabilities = self._rerank(pipeline.score(X, n_labels, found, matches), n_labels)
            return why._replace(score=float(probabilities[0][ids[0] == label].sum()))
        score = float(probabilities[0][ids[0] == label].sum())
        adjustment = "top-rank adjustment" if self.gains_ is None else "gain of the label"
        listed = scores.slice(slice(None), slice(n_listed))
        given = self.stacker_, listed, int(column[0]), score, adjustment
        odds = reranking_explain.log_odds(*given, self.engine)
        why = why._replace(score=score, log_odds=odds)
        if self.classifiers_ is None or self.feature_map_ is None:
            return why
        if label >= len(self.classifiers_.bias):  # it came after the fit, and has no classifier yet
            return why
        A = transform_sparse(self.feature_map_, X)
        return why._replace(margin=reranking_explain.margin(self.classifiers_, A, label, options))

    def _explain_votes(self, found: list[Any], X: Matrix, label: int, options: ExplainOptions) -> Explanation:
        breakdown = self.shortlister_.vote_breakdown(found, label)
        name, prior = self._used_label(label), self._prior(label)
        return explain.by_votes(self._voting_model(), breakdown, X, name, prior, options)

    def _voting_model(self) -> VotingModel:
        return self.shortlister_._voting_model()._replace(row_numbers=self.rows_)

    @property
    def _score_meaning(self) -> str:
        if self.stacker_ is None:
            return "shares of votes"
        return "probabilities" if self.gains_ is None else "probabilities over propensities"

    def predict_proba(self, X: Any) -> csr_matrix:
        """(n, L) csr of calibrated probabilities of the labels on short lists, at most `max_labels` a row.

        A label that the top re-ranker moves has the probability of its new rank. Where `max_labels` is more
        than a short list holds, labels after it have lower probabilities than its last, by votes. With
        too few training rows for a stacker (`stacker_` is None), they are shares of votes, not calibrated.
        """
        return super().predict_proba(X)

    def _as_probabilities(self, scores: csr_matrix) -> csr_matrix:
        gains = self._label_gains()
        if gains is not None:
            scores.data = np.minimum(scores.data / gains[scores.indices], 1)
        return scores

    def _label_gains(self) -> Array | None:
        """(L,) what probabilities are multiplied by where rare labels are favoured, or None.

        A label without training rows has the largest gain, 1.
        """
        labels = self.columns_.all_labels
        if self.gains_ is None or labels is None:
            return self.gains_
        gains = np.ones(self.n_labels_, np.float32)
        gains[labels] = self.gains_
        return gains

    def _estimate(self, data: DataSize) -> Estimate:
        first_method = "sppmi" if self.candidates == "sppmi" else "joint"
        search = self._config_search(first_method)
        estimate = search.estimate(data)
        estimate = estimate.with_rows(data) if self._keeps_rows else estimate
        if not self.growable:
            return estimate
        # The labels of all rows, and an example's row, sign and dual variable.
        kept = data.labels_bytes() + (0.0 if self.loss == "none" else 9.0 * search.n_examples(data))
        return Estimate(estimate.memory + data.labels_bytes(), estimate.size + kept)


def _normalize_weights(rows: TrainingSet) -> TrainingSet:
    """Scale the sample weights so that their mean is 1."""
    if rows.row_weights is None:
        return rows
    return rows._replace(side={**rows.side, "sample_weight": rows.row_weights / rows.row_weights.mean()})


def _inverse_propensity_gains(counts: Array, n: int) -> Array:
    """(L,) float32 the inverse propensities of labels, over the largest of those that occur.

    counts : (L,) rows of each label, of n rows
    """
    inverse = metrics.inverse_propensity(counts, n_rows=n)
    return np.minimum(inverse / inverse[counts > 0].max(), 1).astype(np.float32)


def _padded(values: Array, n: int) -> Array:
    """(n,) with zeros at the end."""
    return np.concatenate([values, np.zeros(n - len(values), values.dtype)])
