"""Tokens turned into postings: sorted by term, gathered per document and field, positions packed into bytes.

An entry is one term in one field of one document. Entries are sorted by (term, document, field):

    entry_starts  0         3     5
    docs          4 4 9     0 9              one entry per column
    fields        0 1 0     1 1
    tfs           1 7 2     1 3
    positions     …the tfs[e] positions of entry e, each as the distance to the one before, seven bits a byte
"""

import numpy as np

from ranksieve.kernels.jit import njit


@njit(cache=True, nogil=True)
def count_tokens(raw, text_ends, text_analyzers, piece_starts, pieces, lengths, counts):
    """Terms of every text, and how often each term occurs; texts are tokens of `raw`, each analysed into pieces.

    First pass of a counting sort, `sort_tokens` is the second.
    """
    start = 0
    for i in range(len(text_ends)):
        starts = piece_starts[text_analyzers[i]]
        n = 0
        for k in range(start, text_ends[i]):
            for j in range(starts[raw[k]], starts[raw[k] + 1]):
                counts[pieces[j]] += 1
            n += starts[raw[k] + 1] - starts[raw[k]]
        lengths[i] = n
        start = text_ends[i]


@njit(cache=True, nogil=True)
def sort_tokens(raw, text_ends, text_analyzers, piece_starts, pieces, cursors, texts, places):
    """Occurrences by term, in the order of the texts: a stable counting sort. `cursors` are the terms' first slots.

    Positions count terms: a word that is dropped, such as a stop word, takes up none.
    """
    start = 0
    for i in range(len(text_ends)):
        starts = piece_starts[text_analyzers[i]]
        place = 0
        for k in range(start, text_ends[i]):
            for j in range(starts[raw[k]], starts[raw[k] + 1]):
                slot = cursors[pieces[j]]
                cursors[pieces[j]] += 1
                texts[slot], places[slot] = i, place
                place += 1
        start = text_ends[i]


@njit(cache=True, nogil=True)
def count_entries(occurrence_starts, texts, places, has_positions, entry_counts, byte_counts):
    """Entries and bytes of positions of every term."""
    for t in range(len(occurrence_starts) - 1):
        last, before = -1, 0
        for k in range(occurrence_starts[t], occurrence_starts[t + 1]):
            if texts[k] != last:
                entry_counts[t] += 1
                last, before = texts[k], 0
            if has_positions[texts[k]]:
                gap = places[k] - before
                byte_counts[t] += 1
                while gap >= 128:
                    gap >>= 7
                    byte_counts[t] += 1
                before = places[k]


@njit(cache=True, nogil=True)
def write_entries(occurrence_starts, texts, places, has_positions, text_docs, text_fields, docs, fields, tfs, firsts,
                  position_starts, positions):  # fmt: skip
    """Entries of all terms, their first places up to 255; `position_starts` counts bytes from the term's first."""
    entry, byte = -1, 0
    for t in range(len(occurrence_starts) - 1):
        last, before, first_byte = -1, 0, byte
        for k in range(occurrence_starts[t], occurrence_starts[t + 1]):
            text = texts[k]
            if text != last:
                entry += 1
                docs[entry], fields[entry], tfs[entry] = text_docs[text], text_fields[text], 0
                firsts[entry] = min(places[k], 255)
                position_starts[entry] = byte - first_byte
                last, before = text, 0
            tfs[entry] += 1
            if has_positions[text]:
                gap = places[k] - before
                while gap >= 128:
                    positions[byte] = (gap & 127) | 128
                    gap >>= 7
                    byte += 1
                positions[byte] = gap
                byte += 1
                before = places[k]


@njit(cache=True, nogil=True)
def append_run(local_starts, local_byte_starts, numbers, run, run_positions, cursors, byte_cursors, term_bytes, merged,
               positions):  # fmt: skip
    """Copy the postings of some terms of one run behind those of earlier runs, whose documents come before.

    `numbers[t]` is the term's place in the merged vocabulary; `run` and `merged` are (docs, fields, tfs, starts).
    """
    first, first_byte = local_starts[0], local_byte_starts[0]
    for t in range(len(numbers)):
        g = numbers[t]
        slot = cursors[g]
        for k in range(local_starts[t] - first, local_starts[t + 1] - first):
            merged[0][slot], merged[1][slot], merged[2][slot] = run[0][k], run[1][k], run[2][k]
            merged[3][slot] = run[3][k] + term_bytes[g]
            slot += 1
        cursors[g] = slot
        n_bytes = local_byte_starts[t + 1] - local_byte_starts[t]
        source = local_byte_starts[t] - first_byte
        for k in range(n_bytes):
            positions[byte_cursors[g] + k] = run_positions[source + k]
        byte_cursors[g] += n_bytes
        term_bytes[g] += n_bytes


@njit(cache=True, nogil=True)
def count_statistics(starts, docs, fields, tfs, document_frequency, collection_frequency):
    """Per term and field, and over all fields in the last column: documents with it, and its occurrences."""
    last_column = document_frequency.shape[1] - 1
    for t in range(len(starts) - 1):
        last = -1
        for k in range(starts[t], starts[t + 1]):
            document_frequency[t, fields[k]] += 1
            collection_frequency[t, fields[k]] += tfs[k]
            collection_frequency[t, last_column] += tfs[k]
            if docs[k] != last:
                document_frequency[t, last_column] += 1
                last = docs[k]


@njit(cache=True, nogil=True)
def add_document_norms(starts, docs, fields, tfs, idf, squares, distinct):
    """Squared lengths of the documents' tf·idf vectors, and their distinct terms, per field and over all."""
    last_column = idf.shape[1] - 1
    for t in range(len(starts) - 1):
        k = starts[t]
        while k < starts[t + 1]:
            doc, whole = docs[k], 0
            while k < starts[t + 1] and docs[k] == doc:
                squares[fields[k], doc] += ((1.0 + np.log(tfs[k])) * idf[t, fields[k]]) ** 2
                distinct[fields[k], doc] += 1
                whole += tfs[k]
                k += 1
            squares[last_column, doc] += ((1.0 + np.log(whole)) * idf[t, last_column]) ** 2
            distinct[last_column, doc] += 1


@njit(cache=True, nogil=True)
def count_forward(entry_starts, docs, first_doc, counts):
    """Distinct terms of every document of a run."""
    for t in range(len(entry_starts) - 1):
        last = -1
        for k in range(entry_starts[t], entry_starts[t + 1]):
            if docs[k] != last:
                last = docs[k]
                counts[last - first_doc] += 1


@njit(cache=True, nogil=True)
def write_forward(entry_starts, docs, tfs, firsts, first_doc, cursors, terms, frequencies, earliest):
    """The terms of every document in order, each with its frequency and its earliest place over all fields."""
    for t in range(len(entry_starts) - 1):
        last, slot = -1, -1
        for k in range(entry_starts[t], entry_starts[t + 1]):
            if docs[k] != last:
                last = docs[k]
                slot = cursors[last - first_doc]
                cursors[last - first_doc] += 1
                terms[slot], frequencies[slot], earliest[slot] = t, 0, firsts[k]
            frequencies[slot] += tfs[k]
            earliest[slot] = min(earliest[slot], firsts[k])
