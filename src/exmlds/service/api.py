"""The routes of the API under /v1."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from starlette.responses import Response, StreamingResponse

from . import explaining, growth
from .core import ServiceOfRequest, SuggestOptions
from .feedback import joined_text
from .routing import ReadingRoute, WritingRoute, as_json, problems
from .schemas import (
    AddRequest,
    AddResponse,
    DocumentResponse,
    ExplainRequest,
    ExplainResponse,
    FeedbackRequest,
    FeedbackResponse,
    LabelResponse,
    LabelsResponse,
    Language,
    ModelResponse,
    SuggestRequest,
    SuggestResponse,
)

reading = APIRouter(prefix="/v1", route_class=ReadingRoute)
writing = APIRouter(prefix="/v1", route_class=WritingRoute)

OF_BODIES = ("malformed", "timeout", "too-large", "wrong-media-type", "invalid", "busy")
Id = Annotated[str, Path(max_length=500, description="The id, percent-encoded.")]


@reading.post("/suggest", response_model=SuggestResponse, responses=problems(*OF_BODIES, "unknown-label"))
async def suggest(wanted: SuggestRequest, service: ServiceOfRequest) -> Response:
    """Suggest labels for one text or for several."""
    service.serving.current.labels.check_language(wanted.language)
    allow, deny = (None if listed is None else tuple(listed) for listed in (wanted.allow, wanted.deny))
    options = SuggestOptions(wanted.limit, wanted.threshold, wanted.language, allow, deny)
    found = await service.suggest(wanted.all_texts, options)
    return as_json({"results": [{"suggestions": suggestions} for suggestions in found]})


@reading.post("/explain", response_model=ExplainResponse, responses=problems(*OF_BODIES, "unknown-label"))
async def explain(wanted: ExplainRequest, service: ServiceOfRequest) -> Response:
    """Say why a text has its score for a label: which documents voted, and which words spoke for it."""
    served = service.serving.current
    found = await service.reads.run(
        explaining.explain, served, wanted.text, wanted.label, wanted.limit, wanted.language
    )
    return as_json(found)


@reading.get(
    "/labels", response_model=LabelsResponse, responses=problems("invalid", "unknown-language", "busy")
)
async def labels(
    service: ServiceOfRequest,
    search: Annotated[str, Query(max_length=500, description="A part of a name, in any language.")] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 20,
    language: Annotated[Language, Query()] = None,
) -> Response:
    """Find labels by a part of a name or id; without a search, those with most documents."""
    known = service.serving.current.labels
    known.check_language(language)
    found = await service.reads.run(known.search, search, limit)
    return as_json({"labels": [known.found(id, language) for id in found]})


@reading.get(
    "/labels/{id:path}", response_model=LabelResponse, responses=problems("invalid", "unknown-label", "busy")
)
async def label(id: Id, service: ServiceOfRequest, language: Annotated[Language, Query()] = None) -> Response:
    """A label, similar labels, and documents that are typical of it."""
    served = service.serving.current
    return as_json(await service.reads.run(explaining.describe, served, id, language))


@reading.get("/model", response_model=ModelResponse)
async def model(service: ServiceOfRequest) -> Response:
    """The model that is served, and what the service keeps."""
    served = service.serving.current
    fitted = served.model
    found: dict[str, Any] = {
        "name": service.settings.name,
        "method": type(fitted._method).__name__,
        "n_labels": fitted.n_labels_,
        "n_documents": int(fitted.n_samples_fit_),
        "languages": served.labels.languages,
        "default_threshold": fitted._usable_threshold(),
        "growable": service.serving.is_growable,
        "feedback": service.feedback is not None,
        "feedback_note": service.feedback_note,
        "needs_write_token": service.settings.tokens.for_writing is not None,
        "generation": served.generation,
        "revision": served.revision,
    }
    return as_json(found)


@reading.get(
    "/documents/{id:path}",
    response_model=DocumentResponse,
    responses=problems("invalid", "unknown-document", "busy"),
)
async def document(
    id: Id, service: ServiceOfRequest, language: Annotated[Language, Query()] = None
) -> Response:
    """A document that the model has learnt from, where the model can grow."""
    served = service.serving.current
    return as_json(await service.reads.run(explaining.document, served, id, language))


@writing.post(
    "/documents",
    status_code=201,
    response_model=AddResponse,
    responses=problems(*OF_BODIES, "not-growable", "document-exists", "refused", "storage-full"),
)
async def add_documents(wanted: AddRequest, service: ServiceOfRequest) -> Response:
    """Add documents, from which the model learns at once; they are on the disk when this is answered."""
    ids = await service.writes.run(growth.add, service.serving, wanted.documents, replace=wanted.replace)
    return as_json({"ids": ids}, 201)


@writing.delete(
    "/documents/{id:path}",
    status_code=204,
    response_class=Response,
    responses=problems("invalid", "unknown-document", "not-growable", "refused", "storage-full", "busy"),
)
async def remove_document(
    id: Id,
    service: ServiceOfRequest,
    purge: Annotated[
        bool,
        Query(
            description="Whether its text leaves the model folder too, which takes as long as a save. "
            "Without it, the document has no vote any more, and its text is in the folder until then."
        ),
    ] = False,
) -> Response:
    """Remove a document."""
    await service.writes.run(growth.remove, service.serving, id, purge=purge)
    return Response(status_code=204)


@writing.post(
    "/feedback",
    status_code=201,
    response_model=FeedbackResponse,
    responses=problems(*OF_BODIES, "feedback-off", "storage-full"),
)
async def add_feedback(wanted: FeedbackRequest, service: ServiceOfRequest) -> Response:
    """Keep which suggestions somebody accepted and rejected; it is on the disk when this is answered."""
    id = await service.writes.run(
        service.kept_feedback.add,
        joined_text(wanted.text),
        wanted.accepted,
        wanted.rejected,
        wanted.document_id,
    )
    return as_json({"id": id}, 201)


@writing.get(
    "/feedback",
    response_class=Response,
    responses={
        200: {
            "description": "JSON lines: id, text, labels (the accepted ones), rejected, feedback_id",
            "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
        },
        **problems("invalid", "feedback-off"),
    },
)
async def export_feedback(
    service: ServiceOfRequest,
    format: Annotated[str, Query(pattern="^jsonl$", description="The format: jsonl.")] = "jsonl",
) -> Response:
    """Feedback as training data that `exmlds train` and `exmlds update` read."""
    return StreamingResponse(service.kept_feedback.training_data(), media_type="application/x-ndjson")


@writing.delete(
    "/feedback", status_code=204, response_class=Response, responses=problems("feedback-off", "busy")
)
async def clear_feedback(service: ServiceOfRequest) -> Response:
    """Delete all feedback, also from the disk."""
    await service.writes.run(service.kept_feedback.clear)
    return Response(status_code=204)


@writing.delete(
    "/feedback/{id}",
    status_code=204,
    response_class=Response,
    responses=problems("invalid", "feedback-off", "unknown-feedback", "busy"),
)
async def remove_feedback(id: Id, service: ServiceOfRequest) -> Response:
    """Delete feedback, also from the disk."""
    await service.writes.run(service.kept_feedback.remove, id)
    return Response(status_code=204)
