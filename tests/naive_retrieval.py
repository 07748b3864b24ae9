"""Retrieval as it is defined, in plain Python loops over documents: the slow truth for `retrieval/`."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from types import SimpleNamespace

import numpy as np

from ranksieve.retrieval.analysis import Field


class NaiveIndex:
    """Terms of every document and field, in order."""

    def __init__(self, documents: list[dict], fields: list[Field]):
        self.fields = fields
        self.terms = [[field.analyzer.terms(field.text(doc) or "") for field in fields] for doc in documents]
        self.n_docs = len(documents)

    def lengths(self, f: int) -> list[int]:
        return [len(doc[f]) for doc in self.terms]

    def mean_length(self, f: int) -> float:
        return sum(self.lengths(f)) / self.n_docs

    def df(self, term: str, f: int | None = None) -> int:
        """Documents with the term in field f, or in any."""
        return sum(
            any(term in doc[g] for g in ([f] if f is not None else range(len(self.fields)))) for doc in self.terms
        )

    def cf(self, term: str, f: int) -> int:
        return sum(doc[f].count(term) for doc in self.terms)

    def query(self, text: str) -> list[Counter]:
        """How often each term occurs in the query, as each field analyses it."""
        return [Counter(field.analyzer.terms(text)) for field in self.fields]

    def idf(self, df: int) -> float:
        return math.log(1 + (self.n_docs - df + 0.5) / (df + 0.5))


def rank(scores: dict[int, float], k: int) -> list[int]:
    return sorted(scores, key=lambda doc: (-scores[doc], doc))[:k]


def first_stage_scores(index: NaiveIndex, text: str, stage, weights: list[float], b: list[float]) -> dict[int, float]:
    """Scores of the documents that have a query term in a field with weight."""
    by_field = index.query(text)
    terms = sorted({term for f, counts in enumerate(by_field) if weights[f] > 0 for term in counts})
    only = [f for f, weight in enumerate(weights) if weight > 0]
    fields = range(len(weights))
    lengths = [sum(weights[f] * len(doc[f]) for f in fields) for doc in index.terms]
    mean = sum(lengths) / index.n_docs
    scores: dict[int, float] = {}
    for doc, texts in enumerate(index.terms):
        score, found, total = 0.0, False, 0.0
        for term in terms:
            used = [f for f in fields if weights[f] > 0 and by_field[f][term]]
            df = index.df(term, only[0] if len(only) == 1 else None)
            if df == 0 and index.df(term) == 0:
                continue
            repeats = max(by_field[f][term] for f in used)
            total += repeats
            x = sum(weights[f] * texts[f].count(term) for f in used)
            if x == 0:
                continue
            found = True
            share = sum(weights[f] * index.cf(term, f) for f in fields) / sum(lengths)
            score += repeats_of(stage, repeats) * part(stage, index, texts, term, used, weights, b, x, df, share,
                                                       lengths[doc], mean)  # fmt: skip
        if found:
            if stage.model == "dirichlet":
                score += total * math.log(stage.mu / (stage.mu + lengths[doc]))
            scores[doc] = score
    return scores


def repeats_of(stage, repeats: int) -> float:
    return repeats * (stage.k3 + 1) / (stage.k3 + repeats) if stage.model.startswith("bm25") else repeats


def part(stage, index, texts, term, used, weights, b, x, df, share, length, mean) -> float:
    """One term's part of a document's score."""
    if stage.model == "bm25f":
        x = sum(
            weights[f] * texts[f].count(term) / (1 - b[f] + b[f] * len(texts[f]) / index.mean_length(f))
            for f in used
            if texts[f]
        )
        return index.idf(df) * (stage.k1 + 1) * x / (x + stage.k1)
    if stage.model == "bm25":
        return index.idf(df) * (stage.k1 + 1) * x / (x + stage.k1 * (1 - stage.b + stage.b * length / mean))
    if stage.model == "dirichlet":
        return math.log(1 + x / (stage.mu * share))
    if stage.model == "jelinek-mercer":
        return math.log(1 + (1 - stage.mix) * x / length / (stage.mix * share))
    tfn = x * math.log2(1 + stage.c * mean / length)
    return tfn / (tfn + 1) * math.log2((index.n_docs + 1) / (df + 0.5))


def statistics(values: list[float]) -> list[float]:
    mean = sum(values) / len(values)
    return [sum(values), min(values), max(values), mean, sum((v - mean) ** 2 for v in values) / len(values)]


def lexical_features(index: NaiveIndex, text: str, doc: int, f: int | None) -> dict[str, float]:
    """Features of one document in field f, or over all fields."""
    fields = range(len(index.fields)) if f is None else [f]
    texts = [[term for g in fields for term in one[g]] for one in index.terms]
    mine, n_docs = texts[doc], index.n_docs
    queries = index.query(text)
    counts = {t: max(queries[g][t] for g in fields) for g in fields for t in queries[g]}
    counts = {t: n for t, n in counts.items() if any(t in other for other in texts)}
    total, mean = sum(map(len, texts)), sum(map(len, texts)) / n_docs
    out = dict.fromkeys(LEXICAL_NAMES, 0.0) | {"length": float(len(mine))}
    if not counts or not mine:
        return out
    df = {t: sum(t in other for other in texts) for t in counts}
    idf = {t: index.idf(df[t]) for t in counts}
    weight = {t: n * 9 / (8 + n) for t, n in counts.items()}
    share = {t: sum(other.count(t) for other in texts) / total for t in counts}
    tf = {t: mine.count(t) for t in counts}
    matched = [t for t in counts if tf[t]]
    for name, k1, b in (("bm25", 1.2, 0.75), ("bm25_flat", 0.9, 0.4), ("bm25_steep", 2.0, 0.9)):
        norm = k1 * (1 - b + b * len(mine) / mean)
        out[name] = sum(weight[t] * idf[t] * (k1 + 1) * tf[t] / (tf[t] + norm) for t in matched)
    vector = {t: (1 + math.log(mine.count(t))) * index.idf(sum(t in other for other in texts)) for t in set(mine)}
    wanted = {t: (1 + math.log(n)) * idf[t] for t, n in counts.items()}
    if matched:
        lengths = math.hypot(*vector.values()) * math.hypot(*wanted.values())
        out["tfidf_cosine"] = sum(vector[t] * wanted[t] for t in matched) / lengths
    length, distinct = len(mine), len(set(mine))
    smoothed = {
        "lm_dirichlet": lambda n, p: (n + 1000 * p) / (length + 1000),
        "lm_jelinek": lambda n, p: 0.5 * n / length + 0.5 * p,
        "lm_absolute": lambda n, p: max(n - 0.7, 0) / length + 0.7 * distinct / length * p,
    }
    for name, smooth in smoothed.items():
        out[name] = sum(weight[t] * math.log(smooth(tf[t], share[t]) / share[t]) for t in counts)
    out["lm_jelinek"] -= sum(weight.values()) * math.log(0.5)  # the part that no document changes
    for t in matched:
        tfn = tf[t] * math.log2(1 + mean / length)
        out["dfr_inl2"] += weight[t] * tfn / (tfn + 1) * math.log2((n_docs + 1) / (df[t] + 0.5))
        rate = share[t] * total / n_docs
        poisson = tfn * math.log2(tfn / rate) + (rate - tfn) * math.log2(math.e) + 0.5 * math.log2(2 * math.pi * tfn)
        out["dfr_pl2"] += weight[t] * poisson / (tfn + 1)
    for family, values in (
        ("tf", [tf[t] for t in counts]),
        ("tf_share", [tf[t] / length for t in counts]),
        ("tfidf", [tf[t] * idf[t] for t in counts]),
    ):
        out |= zip(
            (f"{family}_{name}" for name in ("sum", "min", "max", "mean", "variance")), statistics(values), strict=True
        )
    out["matched"], out["matched_share"] = len(matched), len(matched) / len(counts)
    out["coverage"] = sum(idf[t] for t in matched) / sum(idf.values())
    return out


LEXICAL_NAMES = [
    "bm25",
    "bm25_flat",
    "bm25_steep",
    "tfidf_cosine",
    "lm_dirichlet",
    "lm_jelinek",
    "lm_absolute",
    "dfr_inl2",
    "dfr_pl2",
    "tf_sum",
    "tf_min",
    "tf_max",
    "tf_mean",
    "tf_variance",
    "tf_share_sum",
    "tf_share_min",
    "tf_share_max",
    "tf_share_mean",
    "tf_share_variance",
    "tfidf_sum",
    "tfidf_min",
    "tfidf_max",
    "tfidf_mean",
    "tfidf_variance",
    "matched",
    "matched_share",
    "coverage",
]


def proximity_features(index: NaiveIndex, text: str, doc: int, f: int) -> dict[str, float]:
    """Features of one document in field f that depend on positions."""
    query, mine = index.fields[f].analyzer.terms(text), index.terms[doc][f]
    hits = [(place, term) for place, term in enumerate(mine) if term in query]
    names = ("window", "span", "position", "bigrams", "run", "phrase", "ordered", "unordered", "nearness")
    if not hits:
        return dict.fromkeys(names, 0.0) | dict.fromkeys(names[:3], math.nan)
    terms = {term for _, term in hits}
    windows = [
        hits[j][0] - hits[i][0] + 1
        for i in range(len(hits))
        for j in range(i, len(hits))
        if {term for _, term in hits[i : j + 1]} == terms
    ]
    pairs = [(a, b) for a, b in itertools.pairwise(hits) if a[1] != b[1]]
    near = [(a, b) for a, b in pairs if b[0] - a[0] <= 8]
    runs = [
        n
        for i in range(len(query))
        for n in range(1, len(query) - i + 1)
        if any(mine[k : k + n] == query[i : i + n] for k in range(len(mine)))
    ]
    return {
        "window": min(windows),
        "span": hits[-1][0] - hits[0][0] + 1,
        "position": hits[0][0],
        "bigrams": sum(
            any(mine[k : k + 2] == query[i : i + 2] for k in range(len(mine))) for i in range(len(query) - 1)
        ),
        "run": max(runs),
        "phrase": sum(mine[k : k + len(query)] == query for k in range(len(mine))),
        "ordered": sum(query.index(a[1]) < query.index(b[1]) for a, b in near),
        "unordered": len(near),
        "nearness": sum(
            index.idf(index.df(a[1], f)) * index.idf(index.df(b[1], f)) / (b[0] - a[0]) ** 2 for a, b in pairs
        ),
    }


def feedback_features(index: NaiveIndex, docs: list[int], scores: list[float], rank: int) -> dict[str, float]:
    """Similarity of the candidate at a rank to the best ones."""
    texts = [[term for text in doc for term in text] for doc in index.terms]
    mean = sum(map(len, texts)) / index.n_docs
    mine = Counter(texts[docs[rank]])

    def unit(doc: int) -> dict[str, float]:
        vector = {t: (1 + math.log(n)) * index.idf(index.df(t)) for t, n in Counter(texts[doc]).items()}
        return {t: value / math.hypot(*vector.values()) for t, value in vector.items()}

    out = {}
    for n in (3, 5, 10):
        others = [k for k in range(n) if k != rank]
        total = sum(scores[k] for k in others)
        vectors = [(scores[k] / total, unit(docs[k])) for k in others]
        out[f"cosine_{n}"] = sum(w * v.get(t, 0) * x for t, x in unit(docs[rank]).items() for w, v in vectors)
    for n in (5, 10):
        share: Counter = Counter()
        for k in range(n):
            for t, count in Counter(texts[docs[k]]).items():
                share[t] += scores[k] / sum(scores[:n]) * count / len(texts[docs[k]])
        best = sorted(share, key=lambda t: -share[t] * index.idf(index.df(t)))[:30]
        total = sum(share[t] for t in best)
        norm = 1.2 * (0.25 + 0.75 * len(texts[docs[rank]]) / mean)
        out[f"bm25_{n}"] = sum(
            share[t] / total * index.idf(index.df(t)) * 2.2 * mine[t] / (mine[t] + norm) for t in best
        )
    return out


def expansion_features(
    index: NaiveIndex, text: str, docs: list[int], scores: list[float], rank: int
) -> dict[str, float]:
    """Scores of the candidate at a rank by the query and by expanded ones."""
    texts = [[term for some in doc for term in some] for doc in index.terms]
    mean = sum(map(len, texts)) / index.n_docs

    def weights(doc: int, openings: bool) -> dict[str, float]:
        out = {}
        for term, tf in Counter(texts[doc]).items():
            place = min(some.index(term) for some in index.terms[doc] if term in some)
            tf += math.exp(-min(place, 255) / 8) if openings else 0
            out[term] = 2.2 * tf / (tf + 1.2 * (0.4 + 0.6 * len(texts[doc]) / mean)) * index.idf(index.df(term))
        return out

    counts: Counter = Counter()
    for some in index.query(text):
        counts |= some
    query = {term: 9 * n / (8 + n) for term, n in counts.items() if index.df(term)}
    query = {term: weight / sum(query.values()) for term, weight in query.items()}
    out = {"opening.bm25": sum(weight * weights(docs[rank], True).get(t, 0) for t, weight in query.items())}
    for name, openings in (("opening", True), ("bm25", False)):
        mine = weights(docs[rank], openings)
        for n in (3, 5, 10):
            sums: Counter = Counter()
            best = scores[:n]
            for k, score in enumerate(best):
                for term, weight in weights(docs[k], openings).items():
                    sums[term] += (score if best[-1] > 0 else 1) * weight
            added = dict(sums.most_common(50))
            total = sum(added.values())
            out[f"expanded.{name}_{n}"] = sum(
                0.5 * (query.get(t, 0) + added.get(t, 0) / total) * weight for t, weight in mine.items()
            )
    return out


def neighbour_features(index: NaiveIndex, docs: list[int], scores: list[float], rank: int) -> dict[str, float]:
    """Scores of the candidates most like the one at a rank."""
    lowest, highest = min(scores), max(scores)
    scaled = [(score - lowest) / ((highest - lowest) or 1) for score in scores]

    def telling(doc: int) -> dict[str, float]:
        counts = Counter(term for text in index.terms[doc] for term in text)
        weights = {t: round((1 + math.log(counts[t])) * index.idf(index.df(t)), 6) for t in sorted(counts)}
        kept = {t: weights[t] for t in sorted(weights, key=lambda t: -weights[t])[:32]}
        return {t: weight / math.hypot(*kept.values()) for t, weight in kept.items()}

    vectors = [telling(doc) for doc in docs]
    similarity = {k: round(sum(x * v.get(t, 0) for t, x in vectors[rank].items()), 6) for k, v in enumerate(vectors)}
    nearest = sorted((k for k in similarity if k != rank and similarity[k] > 0), key=lambda k: -similarity[k])
    out = {}
    for n in (5, 20):
        total = sum(similarity[k] for k in nearest[:n])
        out[f"score_{n}"] = sum(similarity[k] * scaled[k] for k in nearest[:n]) / total if total else math.nan
    return out


def fused(
    lists: list[list[tuple[str, float]]], method: str, norm: str, weights: list[float], k: float
) -> dict[str, float]:
    """Fused scores of one query as Cormack et al. (RRF), Fox and Shaw (CombSUM, CombMNZ) and ranx define them."""
    points: dict[str, list[tuple[float, float]]] = {}
    for ranked, weight in zip(lists, weights, strict=True):
        scores = [score for _, score in ranked]
        n = len(scores)
        for rank, (doc, score) in enumerate(ranked, 1):
            if method == "rrf":
                value = 1 / (k + rank)
            elif norm == "min-max":
                value = (score - min(scores)) / max(max(scores) - min(scores), 1e-9)
            elif norm == "zmuv":
                mean = sum(scores) / n
                value = (score - mean) / max(math.sqrt(sum((s - mean) ** 2 for s in scores) / n), 1e-9)
            elif norm == "rank":
                value = 1 - (rank - 1) / n
            else:
                value = score
            points.setdefault(doc, []).append((value, weight))
    if method == "mnz":
        return {doc: sum(v for v, _ in found) * sum(w for _, w in found) for doc, found in points.items()}
    return {doc: sum(v * w for v, w in found) for doc, found in points.items()}


def similarity(query: list[float], document: list[float], kind: str) -> float:
    """The dot product of two vectors, or their cosine; 0 where one is all zeros."""
    dot = math.fsum(a * b for a, b in zip(query, document, strict=True))
    if kind == "dot":
        return dot
    lengths = [math.sqrt(math.fsum(a * a for a in vector)) for vector in (query, document)]
    return dot / (lengths[0] * lengths[1]) if all(lengths) else 0.0


def dense_features(query: list[float], documents: list[list[float]]) -> list[dict[str, float]]:
    """The features of vectors of one list, which stands in the order of the first stage."""
    units = []
    for document in documents:
        length = math.sqrt(math.fsum(a * a for a in document))
        units.append([a / length if length else 0.0 for a in document])
    centroid = [math.fsum(column) / len(units) for column in zip(*units, strict=True)]
    found = []
    for place, (document, unit) in enumerate(zip(documents, units, strict=True)):
        others = [other for number, other in enumerate(units) if number != place]
        top = {
            f"dense.top_{n}": math.fsum(1 - similarity(unit, other, "dot") for other in others[:n]) / len(others[:n])
            if others
            else math.nan
            for n in (1, 5, 20)
        }
        found.append(
            {
                "dense.cosine": similarity(query, document, "cosine"),
                "dense.dot": similarity(query, document, "dot"),
                "dense.centroid": math.dist(unit, centroid),
                **top,
            }
        )
    return found


def small_index(seed, n_docs=14, n_terms=30):
    """Documents as dicts of terms, the same as a forward index, lengths, and idf of terms."""
    rng = np.random.default_rng(seed)
    documents = [
        {int(term): int(rng.integers(1, 6)) for term in rng.permutation(n_terms)[: rng.integers(2, 12)]}
        for _ in range(n_docs)
    ]
    starts = np.cumsum([0, *map(len, documents)])
    terms = np.array([term for one in documents for term in one], np.int32)
    tfs = np.array([tf for one in documents for tf in one.values()], np.int32)
    lengths = np.array([sum(one.values()) for one in documents], np.int32)
    return documents, (starts, terms, tfs), lengths, 0.1 + rng.random(n_terms)


def feedback_shares(scores, n):
    """Shares of the best candidates in feedback: by score, or equal where scores are not above 0."""
    best = scores[:n]
    return [1 / n] * n if best[-1] <= 0 else [score / sum(best) for score in best]


def random_postings(rng, n_docs=40, n_terms=9, n_fields=3):
    """Entries sorted by term, document and field; and the same as a dict of (term, document, field)."""
    found = {
        (term, doc, field): int(rng.integers(1, 9))
        for term in range(n_terms) for doc in range(n_docs) for field in range(n_fields) if rng.random() < 0.02 * term
    }  # fmt: skip
    keys = np.array([*found]).reshape(-1, 3)
    starts = np.searchsorted(keys[:, 0], np.arange(n_terms + 1))
    return found, SimpleNamespace(
        entry_starts=starts,
        docs=keys[:, 1].astype(np.int32),
        fields=keys[:, 2].astype(np.uint8),
        tfs=np.array([*found.values()], np.int32),
    )


def snippet_window(words: list[str], wanted: set[str], n_words: int) -> tuple[int, int]:
    """The most distinct wanted words, and the most of them, in a stretch that begins four words before a match."""
    stretches = [words[k : k + n_words - 4] for k, word in enumerate(words) if word in wanted]
    return max(((len({*some} & wanted), sum(word in wanted for word in some)) for some in stretches), default=(0, 0))
