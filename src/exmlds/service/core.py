"""What the routes of the service share: the model, the threads, the feedback and the measurements."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, FastAPI, Request

from .batching import Batcher
from .explaining import as_text
from .feedback import FeedbackStore
from .problems import Problem
from .prometheus import Measurements
from .serving import Serving
from .settings import ServiceSettings
from .work import Work

MOST_IN_ANSWER = 200_000  # suggestions, which take about 0.2 s to be written


class SuggestOptions(NamedTuple):
    """What the texts of a batch have in common; lists of labels as their ids."""

    limit: int
    threshold: float = 0.0
    language: str | None = None
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] | None = None


class Service:
    """A model that is served. It is closed by `close`, after which others may write to the model folder."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        self.serving = Serving(settings.model, is_read_only=settings.is_read_only, trusted=settings.trusted)
        try:  # after the model: where there is none, no file of feedback is left behind
            self.feedback = None if settings.feedback is None else FeedbackStore(settings.feedback)
        except BaseException:
            self.serving.close()
            raise
        self.measurements = Measurements()
        self.is_ending = False
        self.batcher = Batcher(self._suggest, self.measurements.batches.add)
        self.reads = Work("read", "explanations and searches", n_threads=1, most_waiting=200)
        self.writes = Work("write", "changes", n_threads=1, most_waiting=200)

    @asynccontextmanager
    async def running(self, _: FastAPI) -> AsyncIterator[None]:
        """Run the threads while an application runs; all that was begun is finished at its end."""
        self.batcher.start()
        try:
            yield
        finally:
            await self.batcher.close()
            self.reads.close()
            self.writes.close()
            self.close()

    def close(self) -> None:
        self.serving.close()
        if self.feedback is not None:
            self.feedback.close()

    async def suggest(self, texts: list[Any], options: SuggestOptions) -> list[list[dict[str, Any]]]:
        """The suggestions for each text, as JSON, best first."""
        n_labels = len(self.serving.current.labels.classes if options.allow is None else options.allow)
        if len(texts) * min(options.limit, n_labels) > MOST_IN_ANSWER:
            raise Problem(
                "too-large",
                f"At most {MOST_IN_ANSWER:,} suggestions are given. Lower the limit, or send fewer texts.",
            )
        return await self.batcher.submit(list(map(as_text, texts)), options)

    def _suggest(self, options: SuggestOptions, texts: list[Any]) -> list[list[dict[str, Any]]]:
        served = self.serving.current
        model, labels = served.model, served.labels
        allow, deny = (
            None if listed is None else list(map(labels.label, listed))
            for listed in (options.allow, options.deny)
        )
        ids, scores = model.predict_topk(
            texts, min(options.limit, len(labels.classes)), allow=allow, deny=deny
        )
        return [
            [
                labels.suggestion(column, score, options.language)
                for column, score in zip(columns, row)
                if column >= 0 and score >= options.threshold
            ]
            for columns, row in zip(ids.tolist(), scores.tolist())
        ]

    @property
    def kept_feedback(self) -> FeedbackStore:
        if self.feedback is None:
            raise Problem(
                "feedback-off", "It was started with --no-feedback; nothing that is sent here is kept."
            )
        return self.feedback

    @property
    def feedback_note(self) -> str:
        if self.feedback is None:
            return "This service keeps no feedback, and no text that is sent to it for suggestions."
        return (
            "Feedback is kept in a file on the machine that runs this service until somebody deletes it: "
            "DELETE /v1/feedback deletes all of it, and DELETE /v1/feedback/{id} one entry. Texts that are "
            "sent for suggestions alone are not kept."
        )


async def _service(request: Request) -> Service:
    return request.app.state.service


ServiceOfRequest = Annotated[Service, Depends(_service)]
