"""`generate_texts`: a small collection of readable texts with queries and grades, for demonstrations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ranksieve.errors import ParameterError, param
from ranksieve.retrieval.corpus import Document
from ranksieve.retrieval.generated_words import ASPECTS, PASSING, PLAIN, SUBJECTS, TITLES, TOPICAL
from ranksieve.retrieval.queries import Queries

OFF_TOPIC = 0.25  # share of documents that only mention subjects in passing
HIDDEN = 0.3  # share of titles that do not name the subject


class Collection(NamedTuple):
    """Documents, queries by id, and grades by query id and document."""

    documents: list[Document]
    queries: Queries
    judgements: dict[str, dict[str, float]]


class Topic(NamedTuple):
    """What a text is about, or a query asks for."""

    group: str
    subject: str
    aspect: str


def generate_texts(n_docs: int = 4000, n_queries: int = 120, *, seed: int = 0) -> Collection:
    """Articles on household, garden, sport and music, and queries that each ask for one aspect of one subject.

    Documents have the fields `id`, `title` and `text`, and the number `rating`. A document on the query's subject and
    aspect has grade 3, or 4 if it is rated well, or 2 if it is rated badly; one on another aspect of the subject has
    grade 1. A quarter of the documents mention subjects in passing and are never relevant.

    Parameters
    ----------
    n_docs, n_queries
        How many.
    seed
        The same seed gives the same texts.

    Examples
    --------
    >>> collection = generate_texts(100, 5)
    >>> len(collection.documents), len(collection.queries), sorted(collection.documents[0])
    (100, 5, ['id', 'rating', 'text', 'title'])
    """
    topics = [Topic(group, one, aspect) for group, some in SUBJECTS.items() for one in some for aspect in ASPECTS]
    for name, count in (("n_docs", n_docs), ("n_queries", n_queries)):
        if count < 1:
            raise ParameterError(param(name), f" is {count}; expected a whole number from 1")
    if n_queries > len(topics):
        raise ParameterError(param("n_queries"), f" is {n_queries}; there are {len(topics)} different ones")
    rng = np.random.default_rng(seed)
    about = [None if rng.random() < OFF_TOPIC else topics[rng.integers(len(topics))] for _ in range(n_docs)]
    documents = [_document(number, topic, topics, rng) for number, topic in enumerate(about)]
    wanted = [topics[place] for place in rng.permutation(len(topics))[:n_queries]]
    queries = {f"q{number:03d}": _query(topic, rng) for number, topic in enumerate(wanted, 1)}
    judgements = {
        id: {
            document["id"]: _grade(topic, found, document["rating"])
            for document, found in zip(documents, about, strict=True)
            if found is not None and found.subject == topic.subject
        }
        for id, topic in zip(queries, wanted, strict=True)
    }
    return Collection(documents, queries, judgements)


def _document(number: int, topic: Topic | None, topics: list[Topic], rng: np.random.Generator) -> Document:
    shown = topic or topics[rng.integers(len(topics))]
    is_named = topic is not None and rng.random() >= HIDDEN
    title = _filled(TITLES, shown if is_named else shown._replace(subject=f"{shown.group} page"), rng)
    about = [_filled(TOPICAL if rng.random() < 0.6 else PLAIN, shown, rng) for _ in range(rng.integers(3, 9))]
    if topic is None:
        about = [_filled(PLAIN, topics[rng.integers(len(topics))], rng) for _ in range(rng.integers(2, 6))]
    passing = [
        _filled(PASSING, topics[rng.integers(len(topics))], rng)
        for _ in range(rng.integers(0, 3) if topic is not None else rng.integers(3, 8))
    ]
    text = " ".join([*about, *passing])
    return {"id": f"doc-{number:04d}", "title": title, "text": text, "rating": float(rng.integers(1, 6))}


def _filled(templates: tuple[str, ...], topic: Topic, rng: np.random.Generator) -> str:
    """A sentence with words of a topic."""
    words = SUBJECTS[topic.group].get(topic.subject, "shop visit reader letter").split()
    first, second = rng.permutation(len(words))[:2]
    aspects = ASPECTS[topic.aspect].split()
    aspect = aspects[min(rng.geometric(0.35) - 1, len(aspects) - 1)]
    return templates[rng.integers(len(templates))].format(
        subject=topic.subject, Subject=topic.subject.capitalize(), aspect=aspect, Aspect=aspect.capitalize(),
        word=words[first], word2=words[second],
    )  # fmt: skip


def _query(topic: Topic, rng: np.random.Generator) -> str:
    aspects = ASPECTS[topic.aspect].split()[:3]
    asked = [topic.subject, *rng.permutation(aspects)[: rng.integers(1, 3)].tolist()]
    return " ".join(asked if rng.random() < 0.5 else asked[::-1])


def _grade(wanted: Topic, found: Topic, rating: float) -> float:
    if found.aspect != wanted.aspect:
        return 1.0
    return 4.0 if rating >= 4 else 2.0 if rating <= 1 else 3.0
