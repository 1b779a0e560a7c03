"""What the service takes and gives, as JSON: names, types, bounds and examples."""

from __future__ import annotations

import re
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_validator,
)

LONGEST_TEXT = 1_000_000  # characters
MOST_TEXTS = 1_000  # in one request
MOST_SUGGESTIONS = 1_000  # for one text
MOST_DOCUMENTS = 100  # added by one request
MOST_LISTED = 10_000  # labels in a list of those to choose among, or to leave out
MOST_LABELS = 1_000  # of one document
MOST_FIELDS = 100  # of an object

EXAMPLE_TEXT = "The parcel came, but the invoice is wrong."
EXAMPLE_LABEL = "payment"


# A character that is shown: neither a control character nor a blank of any kind.
SHOWN = "[^\\u0000-\\u0020\\u007f-\\u00a0\\u1680\\u2000-\\u200f\\u2028-\\u202f\\u205f-\\u206f\\u3000\\ufeff]"


def _not_blank(name: str) -> str:
    if not re.search(SHOWN, name):
        raise ValueError("must have a character that is shown")
    return name


def _whole(value: Any) -> Any:
    """JSON does not tell 5.0 from 5."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Name = Annotated[
    str, Field(min_length=1, max_length=500, json_schema_extra={"pattern": SHOWN}), AfterValidator(_not_blank)
]
LabelId = Annotated[Name, Field(description="The id of a label.", examples=[EXAMPLE_LABEL])]
DocumentId = Annotated[Name, Field(description="The id of a document.", examples=["2026-1"])]
PlainText = Annotated[str, Field(max_length=LONGEST_TEXT)]
Fields = Annotated[dict[str, PlainText], Field(min_length=1, max_length=16)]


def _kind_of_text(value: Any) -> str:
    return "fields" if isinstance(value, dict) else "string"


Text = Annotated[
    Annotated[PlainText, Tag("string")] | Annotated[Fields, Tag("fields")],
    Discriminator(_kind_of_text),
    Field(
        description="A text, or its fields, such as title and body, in the order of the training data.",
        examples=[EXAMPLE_TEXT, {"title": "Invoice", "body": EXAMPLE_TEXT}],
    ),
]
Language = Annotated[
    str | None,
    Field(
        max_length=35,
        description="The language in which labels are named, one of the model's; null is its main one.",
        examples=["en"],
    ),
]
Labels = Annotated[list[LabelId], Field(max_length=MOST_LABELS)]
ListedLabels = Annotated[list[LabelId], Field(max_length=MOST_LISTED)]


class Taken(BaseModel):
    """What a request holds: nothing but what is declared, and of the declared types."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _has_few_fields(cls, value: Any) -> Any:
        if isinstance(value, dict) and len(value) > MOST_FIELDS:  # each one would be an error of its own
            raise ValueError(f"must have at most {MOST_FIELDS} fields")
        return value


class Given(BaseModel):
    """What a response holds."""

    model_config = ConfigDict(extra="forbid")


def _exactly_one_text(schema: dict[str, Any]) -> None:
    for name in ("text", "texts"):
        schema["properties"][name].pop("default", None)
    schema["oneOf"] = [{"required": ["text"]}, {"required": ["texts"]}]


class SuggestRequest(Taken):
    """One text or several, and which labels to suggest for them."""

    model_config = ConfigDict(json_schema_extra=_exactly_one_text)

    text: Text = ""
    texts: Annotated[list[Text], Field(min_length=1, max_length=MOST_TEXTS)] = []
    limit: Annotated[
        int,
        Field(ge=1, le=MOST_SUGGESTIONS, description="Suggestions for a text, at most."),
        BeforeValidator(_whole),
    ] = 10
    threshold: Annotated[float, Field(ge=0, le=1, description="The least score of a suggestion.")] = 0.0
    language: Language = None
    allow: Annotated[ListedLabels | None, Field(description="The only labels to suggest.")] = None
    deny: Annotated[ListedLabels | None, Field(description="Labels not to suggest.")] = None

    @model_validator(mode="after")
    def _has_exactly_one(self) -> Self:
        if len({"text", "texts"} & self.model_fields_set) != 1:
            raise ValueError("must have either text or texts")
        return self

    @property
    def all_texts(self) -> list[Any]:
        return self.texts if "texts" in self.model_fields_set else [self.text]


class Label(Given):
    id: str = Field(examples=[EXAMPLE_LABEL])
    label: str = Field(description="The name of the label.", examples=["Payment"])


class ScoredLabel(Label):
    notation: str | None = Field(
        description="The notation of the label in its vocabulary.", examples=["42.1"]
    )
    score: float = Field(
        ge=0, le=1, description="A calibrated probability where the method gives one.", examples=[0.87]
    )


class Suggested(Given):
    suggestions: list[ScoredLabel]


class SuggestResponse(Given):
    results: list[Suggested] = Field(description="The suggestions for each text, best first.")


class ExplainRequest(Taken):
    """A text, and the label whose score for it is explained."""

    text: Text
    label: LabelId
    limit: Annotated[
        int, Field(ge=1, le=50, description="Documents and words to name, at most."), BeforeValidator(_whole)
    ] = 5
    language: Language = None


class VotingDocument(Given):
    id: str
    text: str | None = Field(description="The beginning of the document, where the model keeps texts.")
    labels: list[Label]
    similarity: float
    share: float = Field(description="What the document adds to the label's share of the votes.")


class Word(Given):
    word: str
    weight: float = Field(description="Above 0 where the word speaks for the label, below 0 against it.")


class MarkedRange(Given):
    start: int = Field(ge=0, description="The first character of the range; fields are joined by newlines.")
    end: int = Field(description="The character after the range.")
    weight: float
    kind: str = Field(pattern="^(word|name)$", description="A word, or a name of the label.")


class Evidence(Given):
    name: str
    value: float


class ExplainResponse(Given):
    id: str
    label: str
    score: float
    documents: list[VotingDocument] = Field(
        description="The training documents with the largest shares of the votes."
    )
    words: list[Word] = Field(description="The words of the text that speak for the label or against it.")
    marks: list[MarkedRange] = Field(
        description="The ranges of the text to be marked, by their first characters."
    )
    log_odds: list[Evidence] = Field(description="What adds up to the log-odds of the score.")


class NamedLabel(Label):
    notation: str | None
    count: int = Field(ge=0, description="The number of training documents with the label.")


class FoundLabel(NamedLabel):
    alternatives: list[str] = Field(description="Other names of the label.")


class LabelsResponse(Given):
    labels: list[FoundLabel]


class SimilarLabel(Label):
    score: float = Field(description="The cosine of the two labels.")


class Excerpt(Given):
    id: str
    text: str | None


class LabelResponse(NamedLabel):
    similar: list[SimilarLabel]
    documents: list[Excerpt] = Field(description="Documents that are typical of the label.")


class DocumentResponse(Given):
    id: str
    text: str
    labels: list[Label]


class NewDocument(Taken):
    id: Annotated[DocumentId | None, Field(description="Its id; null lets the service choose one.")] = None
    text: Text
    labels: Annotated[Labels, Field(description="Its labels, by id or name; new ones become labels.")]


class AddRequest(Taken):
    """Documents from which the model learns at once."""

    documents: Annotated[list[NewDocument], Field(min_length=1, max_length=MOST_DOCUMENTS)]
    replace: Annotated[bool, Field(description="Whether a document replaces one that has its id.")] = False


class AddResponse(Given):
    ids: list[str] = Field(description="The ids of the documents, which are on the disk now.")


class FeedbackRequest(Taken):
    """Which labels somebody accepted for a text, and which they rejected."""

    text: Text
    accepted: Labels
    rejected: Labels = []
    document_id: Annotated[DocumentId | None, Field(description="The document that the text is of.")] = None


class FeedbackResponse(Given):
    id: str = Field(description="The id of the feedback, which is on the disk now.")


class ModelResponse(Given):
    name: str
    method: str
    n_labels: int
    n_documents: int
    languages: list[str]
    default_threshold: float
    growable: bool = Field(description="Whether documents can be added and removed.")
    feedback: bool = Field(description="Whether feedback is kept.")
    feedback_note: str = Field(description="Where feedback is kept, for how long, and how to delete it.")
    needs_write_token: bool
    generation: str = Field(description="The generation of the model folder.")
    revision: int = Field(description="How often the model has changed since the service was started.")


class PlaceOfError(Given):
    where: str
    detail: str


class ProblemResponse(Given):
    """Problem details, as RFC 9457 describes them."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[PlaceOfError] | None = None


class Status(Given):
    status: str
