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
        self.counts = [Counter(term for text in texts for term in text) for texts in self.terms]
        self.idfs = {term: self.idf(n) for term, n in Counter(itertools.chain(*self.counts)).items()}

    def lengths(self, f: int) -> list[int]:
        return [len(doc[f]) for doc in self.terms]

    def mean_length(self, f: int) -> float:
        return sum(self.lengths(f)) / self.n_docs

    def mean_of_counts(self) -> float:
        """The mean length of documents, all fields together."""
        return sum(sum(counts.values()) for counts in self.counts) / self.n_docs

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

    def postings(self, ids: list[str]) -> dict[tuple[str, str, int], list[int]]:
        """Positions by term, document id and field number."""
        out: dict = {}
        for id, texts in zip(ids, self.terms, strict=True):
            for f, terms in enumerate(texts):
                for place, term in enumerate(terms):
                    out.setdefault((term, id, f), []).append(place)
        return out


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
    return feedback_values(index.counts, index.idfs, index.mean_of_counts(), docs, scores, rank)


def feedback_values(documents, idf, mean, docs, scores, rank, n_terms=30) -> dict[str, float]:
    """Cosines of the candidate at a rank with the best ones, and its BM25 by their `n_terms` most telling terms.

    Documents are the frequencies of their terms, `idf` are weights of terms, and `mean` is the mean length.
    """

    def unit(doc):
        vector = {term: (1 + math.log(tf)) * idf[term] for term, tf in documents[doc].items()}
        norm = math.hypot(*vector.values())
        return {term: weight / norm for term, weight in vector.items()}

    own, mine, out = unit(docs[rank]), documents[docs[rank]], {}
    for n in (3, 5, 10):
        others = [(share, unit(docs[k])) for k, share in enumerate(feedback_shares(scores, n)) if k != rank]
        total = sum(share for share, _ in others)
        likeness = sum(share * other.get(term, 0) * weight for share, other in others for term, weight in own.items())
        out[f"feedback.cosine_{n}"] = likeness / total if total > 1e-9 else 0.0
    for n in (5, 10):
        chances: dict = {}
        for doc, share in zip(docs, feedback_shares(scores, n), strict=False):
            for term, tf in documents[doc].items():
                chances[term] = chances.get(term, 0.0) + share * tf / sum(documents[doc].values())
        best = sorted(chances, key=lambda term: -chances[term] * idf[term])[:n_terms]
        total = sum(chances[term] for term in best)
        half = 1.2 * (0.25 + 0.75 * sum(mine.values()) / mean)
        out[f"feedback.bm25_{n}"] = sum(
            chances[term] / total * idf[term] * 2.2 * mine[term] / (mine[term] + half) for term in best if term in mine
        )
    return out


def feedback_shares(scores, n):
    """Shares of the n best candidates in feedback: by score, or equal where scores are not above 0."""
    best = scores[:n]
    return [1 / len(best)] * len(best) if best[-1] <= 0 else [score / sum(best) for score in best]


def expansion_features(
    index: NaiveIndex, text: str, docs: list[int], scores: list[float], rank: int
) -> dict[str, float]:
    """Scores of the candidate at a rank by the query and by expanded ones."""
    counts: Counter = Counter()
    for some in index.query(text):
        counts |= some
    query = {term: 9 * n / (8 + n) for term, n in counts.items() if index.df(term)}
    query = {term: weight / sum(query.values()) for term, weight in query.items()}
    firsts = [
        {term: min(min(some.index(term) for some in texts if term in some), 255) for term in itertools.chain(*texts)}
        for texts in index.terms
    ]
    return expansion_values(index.counts, firsts, index.idfs, index.mean_of_counts(), query, docs, scores, rank)


def expansion_values(documents, firsts, idf, mean, query, docs, scores, rank, n_terms=50) -> dict[str, float]:
    """BM25 of the candidate at a rank by the query, openings counted; then by it and `n_terms` of the best candidates.

    `firsts` are the positions at which each document's terms occur first; the other arguments are as above.
    """

    def weights(doc, openings):
        out, half = {}, 1.2 * (0.4 + 0.6 * sum(documents[doc].values()) / mean)
        for term, tf in documents[doc].items():
            full = tf + (math.exp(-firsts[doc][term] / 8) if openings else 0)
            out[term] = idf[term] * 2.2 * full / (full + half)
        return out

    out = {"opening.bm25": sum(weight * weights(docs[rank], True).get(term, 0) for term, weight in query.items())}
    for name, openings in (("opening", True), ("bm25", False)):
        mine = weights(docs[rank], openings)
        for n in (3, 5, 10):
            sums: dict = {}
            for doc, share in zip(docs, feedback_shares(scores, n), strict=False):
                for term, weight in weights(doc, openings).items():
                    sums[term] = sums.get(term, 0.0) + share * weight
            added = dict(sorted(sums.items(), key=lambda item: -item[1])[:n_terms])
            total = sum(added.values())
            out[f"expanded.{name}_{n}"] = sum(
                0.5 * (query.get(term, 0) + added.get(term, 0) / total) * weight for term, weight in mine.items()
            )
    return out


def neighbour_features(index: NaiveIndex, docs: list[int], scores: list[float], rank: int) -> dict[str, float]:
    """Scores of the candidates most like the one at a rank."""
    lowest, highest = min(scores), max(scores)
    scaled = [(score - lowest) / ((highest - lowest) or 1) for score in scores]
    sorted_by_term = [{term: index.counts[doc][term] for term in sorted(index.counts[doc])} for doc in docs]
    vectors = [key_vector(counts, index.idfs, 32) for counts in sorted_by_term]
    return {f"neighbours.score_{n}": neighbour_score(vectors, scaled, rank, n) for n in (5, 20)}


def key_vector(document, idf, size) -> dict:
    """The terms of a document with the largest tf·idf, as a vector of length one."""
    weights = {term: (1 + math.log(tf)) * idf[term] for term, tf in document.items()}
    # rounded: the order of equal weights must not depend on their last digits
    best = sorted((term for term in weights if weights[term] > 0), key=lambda term: -round(weights[term], 6))[:size]
    norm = math.hypot(*(weights[term] for term in best))
    return {term: weights[term] / norm for term in best}


def neighbour_score(vectors, scores, place, n) -> float:
    """The mean score of the n candidates with the largest cosine to the one at a place, weighted by it."""
    like = {
        k: sum(weight * vector.get(term, 0.0) for term, weight in vectors[place].items())
        for k, vector in enumerate(vectors)
        if k != place
    }
    nearest = sorted((k for k in like if like[k] > 0), key=lambda k: -round(like[k], 6))[:n]
    total = sum(like[k] for k in nearest)
    return sum(like[k] * scores[k] for k in nearest) / total if total else math.nan


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
    lengths = np.array([sum(one.values()) for one in documents], np.int32)
    return documents, forward_index(documents), lengths, 0.1 + rng.random(n_terms)


def forward_index(documents):
    """Documents, the frequencies of their terms, as arrays: where each begins, its terms, and their frequencies."""
    starts = np.cumsum([0, *map(len, documents)])
    terms = np.array([term for one in documents for term in one], np.int32)
    return starts, terms, np.array([tf for one in documents for tf in one.values()], np.int32)


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


def scores_by_terms(entries, query, scoring) -> dict[int, float]:
    """Scores of the documents that a query retrieves, as `kernels.retrieving` defines them.

    `entries` are frequencies by term, document and field. `query` has terms with the fields that count, scales and
    rates, and its total.
    """
    factors, steps, bases, logarithmic = scoring
    *terms, total = query
    scores: dict[int, float] = {}
    for term, mask, scale, rate in zip(*terms, strict=True):
        for doc in range(len(steps)):
            x = sum(factors[f, doc] * entries.get((term, doc, f), 0) for f in range(len(factors)) if mask[f])
            if x > 0:
                part = math.log1p(rate * x * steps[doc]) if logarithmic else x / (x + steps[doc])
                scores[doc] = scores.get(doc, 0.0) + scale * part
    return {doc: score + bases[doc] * total for doc, score in scores.items()}


def packed(places):
    """Distances of positions, seven bits a byte."""
    out, before = [], 0
    for place in places:
        gap, before = place - before, place
        while gap >= 128:
            out.append(gap & 127 | 128)
            gap >>= 7
        out.append(gap)
    return out


def unpacked(content, start, n):
    """The n positions whose distances begin at a place."""
    place, places = 0, []
    for _ in range(n):
        gap = shift = 0
        while content[start] >= 128:
            gap |= (int(content[start]) & 127) << shift
            shift, start = shift + 7, start + 1
        place += gap | int(content[start]) << shift
        places.append(place)
        start += 1
    return places


def terms_of_texts(words, ends, analyzers, piece_starts, pieces):
    """The terms of each text, in order: each word is some pieces under the text's analyzer."""
    texts, start = [], 0
    for end, analyzer in zip(ends, analyzers, strict=True):
        starts = piece_starts[analyzer]
        texts.append([int(term) for word in words[start:end] for term in pieces[starts[word] : starts[word + 1]]])
        start = end
    return texts


def snippet_window(words: list[str], wanted: set[str], n_words: int) -> tuple[int, int]:
    """The most distinct wanted words, and the most of them, in a stretch that begins four words before a match."""
    stretches = [words[k : k + n_words - 4] for k, word in enumerate(words) if word in wanted]
    return max(((len({*some} & wanted), sum(word in wanted for word in some)) for some in stretches), default=(0, 0))
