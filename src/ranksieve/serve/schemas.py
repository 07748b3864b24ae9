"""What the JSON routes take and answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ranksieve.errors import ParameterError, did_you_mean

MODEL = "A model's name, or first-stage; the first model if left out."


class SearchRequest(BaseModel):
    """The parameters of a search."""

    q: str = Field(description="The text to search for.")
    k: int = Field(10, description="How many documents.")
    model: str | None = Field(None, description=MODEL)
    depth: int | None = Field(None, description="Candidates of the first stage; as in training if left out.")
    weight: list[str] = Field([], description="Weights of fields, as in `title:2`.", max_length=64)
    stage: str | None = Field(
        None, description="Kind of first stage, as `hybrid` or `dense` where the index has vectors; /health lists them."
    )
    texts: bool = Field(False, description="Add titles and snippets.")


class FoundDocument(BaseModel):
    """A document: its rank from 1, and the rank that the first stage gave it."""

    rank: int
    document: str
    score: float
    first_rank: int
    title: list[tuple[str, bool]] | None = Field(None, description="Pieces of text, and whether each is a match.")
    snippet: list[tuple[str, bool]] | None = Field(None, description="The same.")


class Found(BaseModel):
    """Documents for a query, best first."""

    query: str
    model: str
    hits: list[FoundDocument]
    warning: str | None = Field(None, description="How candidates differ from those that the model was trained on.")


class VectorScores(BaseModel):
    """Scores of feature vectors, and their order, best first, from 0."""

    model: str
    scores: list[float]
    order: list[int]


class Body(BaseModel):
    """A request."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, given: Any) -> Any:
        for key in given if isinstance(given, dict) else ():
            if key not in cls.model_fields:
                known = ", ".join(cls.model_fields)
                hint = did_you_mean(key[:80], cls.model_fields)
                raise ParameterError(f"{key[:80]!r} is not a key; {hint}expected some of {known}")
        return given


class RerankRequest(Body):
    """A query and ids of documents, or feature vectors in the order of the model's features.

    A score depends on the other documents that are sent where the model uses features of the list.
    A feature is a number, or a text where it is categorical; null if missing.
    """

    query: str = ""
    documents: list[str] | None = None
    features: list[list[float | str | None]] | None = None
    model: str | None = None


class ExplainRequest(Body):
    """A query and one document, or two for the difference of their scores."""

    query: str
    document: str
    below: str | None = None
    model: str | None = None
    depth: int | None = None
    weights: list[str] = Field(default=[], max_length=64)
    stage: str | None = None


class Contribution(BaseModel):
    feature: str
    meaning: str
    value: float | str | None
    contribution: float


class FeatureDifference(BaseModel):
    feature: str
    meaning: str
    value_above: float | str | None
    value_below: float | str | None
    difference: float


class Explained(BaseModel):
    """`score = expected + sum of contributions`; with `below`, the differences add up to that of the scores."""

    model: str
    document: str
    score: float
    expected: float
    contributions: list[Contribution]
    below: str | None = None
    below_score: float | None = None
    differences: list[FeatureDifference] = []


class Grade(Body):
    """A grade from 0 to 4, or in the range of the grades in the file if that is wider; null removes it."""

    query: str
    document: str
    grade: Annotated[float, Field(strict=True)] | None


class Graded(BaseModel):
    """The grade that was stored, and the one before, with which it can be undone."""

    query_id: str
    document: str
    grade: float | None
    previous: float | None
    judged: int


class AllJudgements(BaseModel):
    queries: dict[str, str]
    judgements: dict[str, dict[str, float]]


class TrainingState(BaseModel):
    """How far training is: idle, running, done or failed; `model` is the name of a new model."""

    state: Literal["idle", "running", "done", "failed"]
    done: float
    line: str
    model: str | None


class ModelState(BaseModel):
    name: str
    size: str
    error: str | None


class Health(BaseModel):
    status: Literal["ok"]
    version: str
    documents: int
    read_only: bool
    stages: list[str]
    models: list[ModelState]
