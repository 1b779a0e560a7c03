"""Cross-fit a re-ranking model on folds, score the rows that these hold out, and refit it on all rows."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from ..runtime.progress import phase
from ..selection import HoldOut, TrainingSet
from ..voting.base import NeighborVoting
from .pipeline import (
    Config,
    FittedPipeline,
    RerankingPipeline,
    ShortlistScores,
    concatenate,
    fit_pipeline,
    fit_reranker,
    fit_shortlister,
    refit_pipeline,
)
from .search import MIN_GAIN, TimeBudget, tune_temperature
from .stack import stacked_quality

Array = np.ndarray


@dataclass
class CrossFit:
    """What was fitted on folds, and the scores of the rows that each fold held out.

    config : with the settings that were tuned on the first fold
    last, train_rows : what was fitted on the last fold, and the rows that it was fitted on
    scores, held_rows : the short lists of all held-out rows, and their numbers
    seconds : that a fold took on average
    counts : (f, L) rows of each label that each fold was fitted on;  folds : (h,) the fold of held-out rows
    """

    config: Config
    last: FittedPipeline | None
    train_rows: Array
    scores: ShortlistScores
    held_rows: Array
    seconds: float
    counts: Array
    folds: Array

    def take_last(self) -> FittedPipeline:
        """Hand over what was fitted on the last fold, so that it is freed where it is not used any more."""
        assert self.last is not None
        last, self.last = self.last, None
        return last


class Start(NamedTuple):
    """What does not depend on the re-ranker's configuration.

    folds : all of them;  train, held : the rows of the first one, split
    shortlister : fitted to the first one, in these seconds
    rngs : random generators of its re-ranker and second shortlister
    """

    folds: list[HoldOut]
    train: TrainingSet
    held: TrainingSet
    shortlister: NeighborVoting
    seconds: float
    rngs: tuple[Generator, Generator]


def start(
    method: NeighborVoting,
    rows: TrainingSet,
    *,
    fold_rng: Generator,
    fit_rng: Generator,
    n_folds: tuple[int, int],
) -> Start:
    """Draw folds, and fit the shortlister to the first one; n_folds : at least and at most."""
    started, folds = time.perf_counter(), HoldOut.folds(rows.n, fold_rng, *n_folds)
    train, held = folds[0].split(rows)
    first_rng, rerank_rng, second_rng = fit_rng.spawn(3)
    shortlister = fit_shortlister(method, train, first_rng)
    return Start(folds, train, held, shortlister, time.perf_counter() - started, (rerank_rng, second_rng))


def cross_fit(
    config: Config,
    rows: TrainingSet,
    first: Start | None,
    *,
    fit_rng: Generator,
    ensemble_rng: Generator | None,
    budget: TimeBudget,
) -> CrossFit:
    """Fit on folds as long as time allows, at least on one, and score the rows that were held out.

    first : what was fitted to the first fold already; it is freed after that fold where nobody else has it
    ensemble_rng : draws the learners that are added while held-out rows reward them; None adds none
    """
    assert first is not None
    started, folds, last = budget.spent() - first.seconds, first.folds, None
    scores: list[ShortlistScores] = []
    held_rows: list[Array] = []
    counts: list[Array] = []
    for hold_out in folds:
        if scores and not budget.allows(2.5 * (budget.spent() - started) / len(scores)):
            break
        train, held = hold_out.split(rows) if first is None else (first.train, first.held)
        number, n_folds = len(scores) + 1, len(folds)
        with phase(f"fold {number} of {n_folds}", train.n, until=number / n_folds):
            if first is not None:
                (config, last), first = _fit_first_fold(config, first, ensemble_rng, budget), None
            else:
                del last  # its memory, before the next is fitted
                last = fit_pipeline(config, train, fit_rng)
            scores.append(last.pipeline.score_in_blocks(held))
        counts.append(np.bincount(train.Y.indices, minlength=train.Y.shape[1]))
        held_rows.append(hold_out.held_rows)
        train_rows = hold_out.train_rows  # of the last fold that was fitted
    assert last is not None
    return CrossFit(
        config,
        last,
        train_rows,
        concatenate(scores),
        np.concatenate(held_rows),
        (budget.spent() - started) / len(scores),
        np.stack(counts),
        np.repeat(np.arange(len(held_rows)), list(map(len, held_rows))),
    )


def _fit_first_fold(
    config: Config, first: Start, ensemble_rng: Generator | None, budget: TimeBudget
) -> tuple[Config, FittedPipeline]:
    """Fit the first fold, and choose temperatures and the size of the ensemble on its held-out rows."""
    train, held, (rerank_rng, second_rng) = first.train, first.held, first.rngs
    shortlister, _ = tune_temperature(first.shortlister, held)
    second = None
    if config.second is not None:
        second, _ = tune_temperature(fit_shortlister(config.second, train, second_rng), held)
    fitted = fit_reranker(config, shortlister, second, train, rerank_rng)
    if ensemble_rng is not None and shortlister.has_random_start:
        pipeline = _grow_ensemble(config, fitted.pipeline, train, held, ensemble_rng, budget)
        fitted, shortlister = fitted._replace(pipeline=pipeline), pipeline.shortlister
    tuned = config._replace(
        shortlister=shortlister.tuned_clone(), second=None if second is None else second.tuned_clone()
    )
    return tuned, fitted


def _grow_ensemble(
    config: Config,
    pipeline: RerankingPipeline,
    train: TrainingSet,
    held: TrainingSet,
    rng: Generator,
    budget: TimeBudget,
) -> RerankingPipeline:
    """Add learners while there is time and the stacked ranking of held-out rows improves."""
    n_jobs = pipeline.shortlister.n_jobs
    seconds, best = 0.0, stacked_quality(pipeline.score_in_blocks(held), held, n_jobs)
    while budget.allows(4 * seconds):
        before = budget.spent()
        more = fit_shortlister(config.shortlister, train, rng)
        grown = pipeline._replace(shortlister=pipeline.shortlister.with_learners(more.learners_))
        quality = stacked_quality(grown.score_in_blocks(held), held, n_jobs)
        seconds = budget.spent() - before
        if quality - best < MIN_GAIN:
            break
        pipeline, best = grown, quality
    return pipeline


def refit(
    fitted: CrossFit, rows: TrainingSet, rng: Generator, budget: TimeBudget
) -> tuple[FittedPipeline, Array]:
    """Fit on all rows, continuing from the last fold, if time allows; returns also its rows."""
    if not budget.allows(1.25 * fitted.seconds):
        return fitted.take_last(), fitted.train_rows
    order = np.concatenate([fitted.train_rows, np.setdiff1d(np.arange(rows.n), fitted.train_rows)])
    with phase("refit on all rows", rows.n, until=1.0):
        pipeline = refit_pipeline(fitted.config, fitted.take_last(), rows.subset(order), rng)
    return pipeline, order
