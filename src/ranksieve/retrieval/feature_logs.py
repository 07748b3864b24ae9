"""`read_feature_log`: features that Elasticsearch, OpenSearch and Solr have logged, and judgements, as a data set."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ranksieve.data.dataset import Dataset
from ranksieve.data.features import to_float
from ranksieve.data.lists import check_id
from ranksieve.data.pipes import spool_pipe
from ranksieve.data.read import check_missing
from ranksieve.dtypes import FEATURE
from ranksieve.errors import DataError
from ranksieve.retrieval.corpus import IDS, text_lines
from ranksieve.retrieval.notes import Notes, logged_notes
from ranksieve.retrieval.runs import Judgements, as_judgements

LOG = "responses of Elasticsearch or OpenSearch with 'fields._ltrlog', or of Solr with '[features]', as JSON"
QIDS = ("qid", "query_id", "query-id", "topic")  # fields of a response, or parameters of a Solr request
LTRLOG, TRANSFORMER = "_ltrlog", "[features]"


def read_feature_log(
    log: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    judgements: Any = None,
    *,
    id: str | None = None,
    field: str = TRANSFORMER,
    missing: str = "nan",
) -> Dataset:
    """A data set from the features that a search engine has logged; names of features are kept.

    Parameters
    ----------
    log
        Files of responses: JSON Lines, or JSON values one after another, such as those that `curl` has appended. Each
        response has its query's id in a field `qid` (also `query_id`, `query-id`, `topic`), which Solr takes as a
        parameter of the request. A response may also be wrapped, `{"qid": …, "response": …}`, and a line may be a
        single hit with `qid`.
    judgements
        Grades of documents by query id, a DataFrame with `qid`, `docno` and `label`, or a file; documents without get
        label 0.
    id
        The field with the documents' ids in Solr; `id`, `_id`, `docno`, `doc_id` or `docid` if None.
    field
        The field with the features in Solr, if the transformer was given another name, as in `fl=fv:[features]`.
    missing
        The value of a feature that was not logged for a document: "nan", or "zero" for Solr's `format=sparse`.

    Examples
    --------
    >>> from pathlib import Path
    >>> hit = '{"_id": "d7", "fields": {"_ltrlog": [{"main": [{"name": "title", "value": 1.5}, {"name": "age"}]}]}}'
    >>> _ = Path("log.jsonl").write_text('{"qid": "q1", "hits": {"hits": [' + hit + "]}}")
    >>> data = read_feature_log("log.jsonl", {"q1": {"d7": 2}})
    >>> data.feature_names, data.features.tolist(), data.labels.tolist()
    (('title', 'age'), [[1.5, nan]], [2.0])
    """
    absent, judged = check_missing(missing), as_judgements(judgements)
    files = [log] if isinstance(log, str | os.PathLike) else list(log)
    rows = _LoggedDocuments(id, field)
    with logged_notes() as notes:
        for file in files:
            rows.read(spool_pipe(file), notes)
        if not rows.docs:
            raise DataError(f"{', '.join(map(str, files))}: holds no documents with features; expected {LOG}")
        labels = rows.labels(judged, notes)
    data = Dataset.from_arrays(
        rows.matrix(absent),
        labels,
        qid=np.array([query for query, _ in rows.docs], dtype=object),
        doc_ids=np.array([doc for _, doc in rows.docs], dtype=object),
    ).with_features(list(rows.names))
    return replace(data, info=replace(data.info, source=", ".join(map(str, files)), absent=absent))


class _LoggedDocuments:
    """Logged documents in the order of the log, features in the order of their first occurrence."""

    def __init__(self, id: str | None, field: str) -> None:
        self._id, self._field = id, field
        self.names: dict[str, int] = {}
        self.docs: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]] = {}  # → numbers of features, and values

    def read(self, path: str, notes: Notes) -> None:
        for place, value in _values(path):
            for query, response in self._responses(place, value, None):
                hits = self._hits(place, response)
                if not hits:
                    notes.add("queries have no hits in the log", query)
                for hit in hits:
                    self._add(place, query, hit)

    def _responses(self, place: str, value: Any, query: str | None) -> Iterator[tuple[str, dict[str, Any]]]:
        """Each response in a JSON value, with the id of its query."""
        several = value if isinstance(value, list) else value.get("responses") if isinstance(value, dict) else None
        if isinstance(several, list):
            for one in several:
                yield from self._responses(place, one, query)
            return
        if not isinstance(value, dict):
            raise DataError(f"{place}: {json.dumps(value)[:40]} is not a response; expected {LOG}")
        query = _id_in(value, QIDS) or query
        inner = value.get("response")
        if isinstance(inner, list) or (isinstance(inner, dict) and "docs" not in inner):
            yield from self._responses(place, inner, query)
            return
        header = value.get("responseHeader")
        parameters = header.get("params") if isinstance(header, dict) else None
        query = query or (_id_in(parameters, QIDS) if isinstance(parameters, dict) else None)
        if query is None:
            raise DataError(
                f'{place}: the response has no query id; add a field \'qid\' to it, as in {{"qid": "q1", "response": '
                "…}, or in Solr a parameter qid=q1 with echoParams=all"
            )
        yield query, value

    def _hits(self, place: str, response: dict[str, Any]) -> list[Any]:
        """The documents of a response."""
        if "error" in response:
            error = response["error"]
            reason = error.get("reason") or error.get("msg") if isinstance(error, dict) else error
            raise DataError(f"{place}: the engine answered with the error {str(reason)!r}; send the query again")
        for outer, inner in (("hits", "hits"), ("response", "docs")):
            if isinstance(response.get(outer), dict) and isinstance(response[outer].get(inner), list):
                return list(response[outer][inner])
        if "fields" in response or self._field in response:
            return [response]
        raise DataError(f"{place}: has keys {', '.join(map(repr, list(response)[:5]))}; expected {LOG}")

    def _add(self, place: str, query: str, hit: Any) -> None:
        if not isinstance(hit, dict):
            raise DataError(f"{place}: the hit {json.dumps(hit)[:40]} is not an object; expected {LOG}")
        fields = hit.get("fields")
        logged = fields.get(LTRLOG) if isinstance(fields, dict) else None
        names = ("_id",) if logged is not None else IDS if self._id is None else (self._id,)
        doc = _id_in(hit, names)
        if doc is None:
            raise DataError(f"{place}: a hit of query {query!r} has no id; expected it in {' or '.join(names)}")
        check_id(query, "query", f"{place}: ")
        check_id(doc, "document", f"{place}: ")
        where = f"{place}: document {doc!r} of query {query!r}"
        if (query, doc) in self.docs:
            raise DataError(f"{where} occurs twice in the log; expected once")
        if logged is None and self._field not in hit:
            raise DataError(f"{where} has no features; log them with ext.ltr_log, or with fl={self._field} in Solr")
        found = _ltrlog(where, logged) if logged is not None else _transformed(where, hit[self._field])
        numbers = [self.names.setdefault(name, len(self.names)) for name in found]
        self.docs[query, doc] = np.array(numbers, dtype=np.int32), np.array(list(found.values()), dtype=np.float64)

    def matrix(self, absent: float) -> np.ndarray:
        """One row per document; `absent` where a feature was not logged, or without a value."""
        values = np.full((len(self.docs), len(self.names)), absent, dtype=FEATURE)
        for row, (numbers, found) in zip(values, self.docs.values(), strict=True):
            row[numbers] = to_float(np.where(np.isnan(found), absent, found))
        return values

    def labels(self, judgements: Judgements | None, notes: Notes) -> np.ndarray:
        """Grades of the documents, 0 where there is none; notes what the log and the judgements do not share."""
        judged = judgements or {}
        queries = dict.fromkeys(query for query, _ in self.docs)
        if judgements is not None:
            notes.extend(
                "queries have no judgements; their documents get label 0", (q for q in queries if q not in judged)
            )
            notes.extend("judged queries are not in the log", (q for q in judged if q not in queries))
            for query in (q for q in judged if q in queries):
                lost = (doc for doc, g in judged[query].items() if g > 0 and (query, doc) not in self.docs)
                notes.extend("relevant documents are not in the log", lost)
        return np.array([judged.get(query, {}).get(doc, 0.0) for query, doc in self.docs])


def _values(path: str) -> Iterator[tuple[str, Any]]:
    """The JSON values of a file with their places: one on each line, or one after another over several lines."""
    lines = text_lines(path, LOG)
    number, line = next(lines, (1, ""))
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        yield from _over_lines(path, [(number, line), *lines])
        return
    yield f"{path}:{number}", value
    for number, line in lines:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}:{number}: is not JSON ({error}); expected {LOG}") from error
        yield f"{path}:{number}", value


def _over_lines(path: str, lines: list[tuple[int, str]]) -> Iterator[tuple[str, Any]]:
    pieces, line = [], 1
    for number, content in lines:  # blank lines were left out
        pieces += ["\n" * (number - line), content]
        line = number
    text, decoder, line, counted_to = "".join(pieces), json.JSONDecoder(), 1, 0
    at = _after_space(text, 0)
    while at < len(text):
        line, counted_to = line + text.count("\n", counted_to, at), at
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            wrong = getattr(error, "lineno", line)
            raise DataError(f"{path}:{wrong}: is not JSON ({error}); expected {LOG}") from error
        yield f"{path}:{line}", value
        at = _after_space(text, end)


def _after_space(text: str, at: int) -> int:
    space = re.compile(r"\s*").match(text, at)
    return at if space is None else space.end()


def _id_in(fields: dict[str, Any], names: Sequence[str]) -> str | None:
    """The first of some fields that holds an id, as text."""
    found = (fields[name] for name in names if name in fields)
    return next((str(one) for one in found if isinstance(one, str | int) and not isinstance(one, bool)), None)


def _ltrlog(where: str, logged: Any) -> dict[str, float]:
    """Features by name: entries of the log are lists of `{"name": …, "value": …}`, or mappings in old versions."""
    found: dict[str, float] = {}
    try:
        for entries in logged if isinstance(logged, list) else [logged]:
            for entry in entries.values():
                pairs = entry.items() if isinstance(entry, dict) else [(one["name"], one.get("value")) for one in entry]
                for name, value in pairs:
                    _put(where, found, name, value)
    except (AttributeError, TypeError, KeyError) as error:
        raise DataError(f'{where}: {LTRLOG} is not like [{{"log": [{{"name": "bm25", "value": 1.5}}]}}]') from error
    return found


def _transformed(where: str, text: Any) -> dict[str, float]:
    """Features by name of Solr's `name=value,name=value`; before version 6.4 it was `name:value;name:value`."""
    if not isinstance(text, str):
        raise DataError(f"{where}: the features are {json.dumps(text)[:40]}; expected text like 'bm25=1.5,age=3.0'")
    sign, comma = ("=", ",") if "=" in text else (":", ";")
    found: dict[str, float] = {}
    for part in filter(None, text.split(comma)):
        name, given, value = part.rpartition(sign)
        if not given:
            raise DataError(f"{where}: the feature {part!r} has no value; expected text like 'bm25=1.5,age=3.0'")
        _put(where, found, name, value)
    return found


def _put(where: str, found: dict[str, float], name: Any, value: Any) -> None:
    if not isinstance(name, str) or not name or name in found:
        raise DataError(
            f"{where}: the feature name {name!r} is empty, not text or given twice; expected each name once"
        )
    check_id(name, "feature", f"{where}: ")
    try:
        if isinstance(value, bool) or (isinstance(value, str) and "_" in value):
            raise ValueError
        found[name] = float("nan") if value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{where}: feature {name!r} has the value {repr(value)[:40]}; expected a number") from None
