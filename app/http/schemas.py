"""Bodies of requests, as OpenAPI shows them. `context` checks the limits that a service can configure."""

import math
from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    StringConstraints,
    model_validator,
)
from pydantic_core import PydanticCustomError, PydanticKnownError

from ...pipelines.label import make_labels
from .settings import ServeSettings

Text = Annotated[str, StringConstraints(min_length=1)]
MOST_HITS = ServeSettings().max_k
FAIL_FAST = Field(fail_fast=True)
Texts = Annotated[list[Text], FAIL_FAST]
"""A list that is rejected at its first mistake: a million mistakes take seconds to describe."""


def number(value: Any) -> Any:
    """Reject what pydantic would turn into a number: "3" and true.

    Raises:
        PydanticKnownError: It is text, true or false.
    """
    if isinstance(value, bool | str):
        raise PydanticKnownError("float_type")
    return value


def whole(value: Any) -> Any:
    """Reject the same for an integer.

    Raises:
        PydanticKnownError: It is text, true or false.
    """
    if isinstance(value, bool | str):
        raise PydanticKnownError("int_type")
    return value


Whole = Annotated[int, BeforeValidator(whole)]
Number = Annotated[float, BeforeValidator(number)]
Scalar = StrictBool | StrictInt | StrictFloat | StrictStr


def one_value(value: Any) -> Any:
    """Reject what metadata cannot hold, in one sentence: pydantic has one for each type that it might be.

    Raises:
        PydanticCustomError: It is an object, a list of lists, or a number that JSON does not have.
    """
    for each in value if isinstance(value, list) else [] if value is None else [value]:
        if not isinstance(each, str | int | float) or (isinstance(each, float) and not math.isfinite(each)):
            raise PydanticCustomError("no_value", NO_VALUE)
    return value


NO_VALUE = "give text, a number, true, false, a list of these, or null; write dates as text, such as 2026-04-30"
Value = Annotated[Scalar | list[Scalar] | None, BeforeValidator(one_value)]


MOST_ENTRIES = 1_000


def few_entries(value: Any) -> Any:
    """Reject an object of very many entries before each is checked: a million mistakes take seconds to describe.

    Raises:
        PydanticCustomError: There are too many.
    """
    if isinstance(value, (dict, list)) and len(value) > MOST_ENTRIES:
        said = f"{len(value):,} entries; the maximum is {MOST_ENTRIES:,}"
        raise PydanticCustomError("too_many", "{said}", {"said": said})
    return value


class Body(BaseModel):
    """The body of a request. Unknown fields are rejected, so that a typo is not ignored."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    _few = model_validator(mode="before")(few_entries)

    collection: str | None = Field(None, description="Name of the collection; optional if there is only one.")


class Found(Body):
    """Options that all searches share."""

    k: Whole = Field(10, ge=1, description="Documents to return.", json_schema_extra={"maximum": MOST_HITS})
    offset: Whole = Field(
        0, ge=0, description=f"Number of top hits to skip; k and offset are at most {MOST_HITS:,} together.",
        json_schema_extra={"maximum": MOST_HITS - 1},
    )  # fmt: skip
    texts: StrictBool = Field(
        True, description="False: `text` and `passage.text` of each hit are empty; `excerpt` is enough for a list."
    )
    where: str | None = Field(
        None, description="An SQL condition on metadata, id, title, text, length and language.", examples=["stars <= 2"]
    )
    threshold: Number | None = Field(None, description="Minimum similarity: the cosine, or BM25 with mode lexical.")


class SearchRequest(Found):
    """A search in words."""

    query: Text = Field(description="What to look for.", examples=["the battery died after a week"])
    mode: Literal["hybrid", "dense", "lexical"] = "hybrid"
    fusion: Literal["convex", "rrf"] = "convex"
    explain: StrictBool = Field(False, description="Explain why each hit matched.")
    collapse: StrictBool = Field(True, description="Return documents with the same or nearly the same text as one hit.")
    rerank: StrictBool = Field(False, description="Rerank the best documents with a second stage.")
    rerank_model: Literal["late"] | None = Field(None, description="The second stage; the service has only this one.")
    rerank_depth: Whole | None = Field(
        None, ge=1, le=200, description="Documents that the second stage reads: 50, or the tuned number."
    )
    rerank_budget: str | None = Field(None, description="Time for the second stage.", examples=["300ms"])
    rerank_weight: Number | None = Field(None, ge=0, le=1, description="Weight of the second stage's score.")
    weight: Number | None = Field(None, ge=0, le=1, description="Weight of dense search in hybrid mode.")
    depth: Whole | None = Field(None, ge=1, le=1_000, description="Passages that dense search passes on to the fusion.")
    breadth: Whole | None = Field(None, ge=1, le=10_000, description="efSearch or nprobe of an approximate index.")


class SimilarRequest(Found):
    """A search by example: a stored document's id, or a text."""

    id: str | None = Field(None, examples=["4711"])
    text: str | None = Field(None, examples=["Arrived broken, and nobody answers my mails."])


class EmbedRequest(Body):
    """Texts to embed with the collection's bi-encoder."""

    texts: Texts = Field(min_length=1, examples=[["late delivery"]])
    query: StrictBool = Field(False, description="Embed the texts as queries, with the model's prompt for queries.")


def _named(labels: Any) -> Any:
    """Return a list of labels as names with descriptions, parsed as in Python's `classify`."""
    few_entries(labels)
    if isinstance(labels, list) and all(isinstance(label, str) for label in labels):
        return {label.name: label.description for label in make_labels(labels, several=True)}
    return labels


class LabelRequest(Body):
    """Texts to label with the collection's bi-encoder."""

    texts: Texts = Field(min_length=1, examples=[["My parcel never came."]])
    labels: Annotated[dict[Text, str], BeforeValidator(_named, json_schema_input_type=dict[Text, str] | list[Text])] = (
        Field(
            description="Labels with their descriptions, which may be empty, or a list of labels.",
            examples=[{"refund": "the customer wants money back", "delivery": ""}, ["refund", "delivery"]],
        )
    )
    engine: Literal["similarity", "nli", "ensemble"] | None = Field(None, description="The default if left out.")
    multi_label: StrictBool = Field(
        False, description="Judge each label by itself: a text may get several labels, or none."
    )
    threshold: Number | None = Field(None, ge=0, le=1, description="Minimum probability for a label.")
    template: str | None = Field(None, description="NLI's hypothesis.", examples=["This example is {}."])
    none: StrictBool = Field(False, description="Texts that probably fit no label get the label none of these.")
    promise: Number | None = Field(
        None, gt=0, lt=1, description="The same, but at most this share of the fitting texts is refused."
    )


class EntailRequest(BaseModel):
    """Two sentences to test for entailment."""

    model_config = ConfigDict(extra="forbid")

    premise: Text = Field(examples=["A man is playing a guitar."])
    hypothesis: Text = Field(examples=["Somebody is making music."])


class RerankRequest(Body):
    """A query and the texts to rank for it."""

    query: Text = Field(examples=["the battery died"])
    texts: Texts = Field(min_length=1, examples=[["It stopped working.", "Great phone."]])


class Call(Body):
    """A method call by name, with the arguments of the Python API."""

    options: dict[str, Any] = Field({}, description="Arguments by name, as `sonde.connect` writes them.")
    run: str | None = Field(None, description="For methods of topics and maps: the run's name, the newest if left out.")


def _few_values(metadata: Any) -> Any:
    for value in few_entries(metadata).values() if isinstance(metadata, dict) else ():
        few_entries(value)
    return metadata


class DocumentIn(BaseModel):
    """A document to write; it replaces any document with the same id."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    id: Text = Field(max_length=1_000, examples=["4711"])
    text: str = Field(examples=["The battery died after a week."])
    title: str = ""
    _few = model_validator(mode="before")(few_entries)

    metadata: Annotated[dict[Text, Value], BeforeValidator(_few_values)] = Field({}, examples=[{"stars": 1}])


class PutRequest(Body):
    """Documents to add or replace in one request."""

    documents: Annotated[list[DocumentIn], FAIL_FAST] = Field(min_length=1)


def typed(value: Any) -> Any:
    """Convert a date in a metadata value to a date type, which JSON does not have but the catalog does."""
    if isinstance(value, list):
        return [typed(item) for item in value]
    if not isinstance(value, str) or not 10 <= len(value) <= 32 or value[4:5] != "-":
        return value
    try:
        return date.fromisoformat(value) if len(value) == 10 else datetime.fromisoformat(value)
    except ValueError:
        return value
