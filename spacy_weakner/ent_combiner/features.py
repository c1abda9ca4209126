"""The features of a candidate.

Features of each group (0 unless stated otherwise):

| column | value |
|--------|-------|
| exact | 1 if the group has the candidate |
| logit | half the log-odds of its probability, if the group has any; the minimum if the group lacks the candidate |
| exact:LABEL | exact, for candidates with one label |
| wider_left, wider_right | the candidate extends beyond an entity of the group on the left, or on the right |
| short_left, short_right | the candidate lacks tokens of an entity of the group on the left, or on the right |
| absent | 1 if the Doc lacks the group |

From "wider_left" to "short_right" the value is the probability of the entity, which has the candidate's label (1 if it
has no probability), and the maximum for several entities. Further features are the label; the number of groups that
have the candidate; case, digits, punctuation and stop words at its ends and next to it; and how often candidates with
the same words were right in the gold (`WordCounts`).
"""

from typing import Any, List, NamedTuple, Sequence, Tuple

import numpy
from spacy.strings import get_string_id

from ..ty import BoolMask, Floats, Hashes, Ints
from .candidates import Candidates, Sentences

# Probabilities are clipped to [LEAST, 1 - LEAST].
LEAST = 0.002
# Containment, crossing, other labels and the length were features, and brought nothing (best-details.md).
RELATIONS = ("wider_left", "wider_right", "short_left", "short_right")
PLACES = ("first", "last", "previous", "next")
KINDS = ("upper", "title", "digit", "punct", "stop", "short", "none")
# Words that are counted for a candidate and its label: all its words, those at its ends, and those next to it.
WORDS = ("text", "first", "last", "previous", "next")
COLUMNS = tuple(f"{which} {what}" for which in WORDS for what in ("seen right", "seen wrong"))
# Base of a polynomial hash of a phrase's words, modulo 2**64; it is odd, so that it has an inverse.
_BASE = 0x9E3779B97F4A7C15


class Words(NamedTuple):
    """The words of several sentences, and as the last row the padding beyond the ends of a sentence."""

    hashes: Hashes  # shape (n_tokens + 1,): hashes of the lower-case words
    kinds: BoolMask  # shape (n_tokens + 1, len(KINDS))


def read_words(sentences: Sentences) -> Words:
    """Read the words of some sentences."""
    orths, lengths, upper, title, punct, stop = sentences.attrs[:, :6].T
    unique, which = numpy.unique(orths, return_inverse=True)
    texts = [sentences.docs[0].vocab.strings[orth] for orth in unique.tolist()]
    hashes: Any = numpy.array([get_string_id(text.lower()) for text in texts], dtype="uint64")
    digit = numpy.array([any(map(str.isdigit, text)) for text in texts], dtype=bool)[which]
    columns = [(upper != 0) & (lengths > 1), title, digit, punct, stop, lengths < 3, numpy.zeros(len(orths))]
    kinds = numpy.stack(columns, axis=1) != 0
    beyond = numpy.array([[kind == "none" for kind in KINDS]])
    return Words(numpy.append(hashes[which], numpy.uint64(0)), numpy.concatenate([kinds, beyond]))


class WordCounts:
    """Counts of how often candidates with the same words were right and wrong: a term such as "water" may always be
    wrong. Each row has a key of `word_keys` and the two counts."""

    def __init__(self, rows: Sequence[Sequence[int]] = ()) -> None:
        table = numpy.array(sorted(map(list, rows)), dtype="uint64").reshape(-1, 3)
        self._keys = table[:, 0]
        # The last row is for unknown keys.
        self._counts = numpy.append(table[:, 1:], [[0, 0]], axis=0).astype("float64")

    @classmethod
    def of(cls, keys: Hashes, right: Floats) -> "WordCounts":
        """Count candidates, given their keys, shape (n, len(WORDS)), and `right`, shape (n,): 1 if right, else 0."""
        known, which = numpy.unique(keys.reshape(-1), return_inverse=True)
        is_right = numpy.repeat(right, len(WORDS))
        numbers = [numpy.bincount(which, weights, len(known)).astype("int64") for weights in (is_right, 1.0 - is_right)]
        return cls(list(zip(known.tolist(), *(column.tolist() for column in numbers), strict=True)))

    @property
    def rows(self) -> List[List[int]]:
        """The rows, sorted."""
        numbers = self._counts[:-1].astype("int64").tolist()
        return [[key, *pair] for key, pair in zip(self._keys.tolist(), numbers, strict=True)]

    def columns(self, keys: Hashes) -> Floats:
        """Compute the features of candidates from their keys; shape (n, len(COLUMNS)): count / (count + 1), where count
        is how often such candidates were right, or wrong."""
        places = numpy.searchsorted(self._keys, keys)
        found = numpy.append(self._keys, numpy.uint64(0))[places] == keys
        n = self._counts[numpy.where(found, places, len(self._keys))].reshape(-1, len(COLUMNS))
        result: Floats = n / (n + 1.0)
        return result


def word_keys(words: Hashes, candidates: Candidates, labels: Sequence[str]) -> Hashes:
    """Hash the words (see `Words`) of candidates with their labels; shape (n, len(WORDS))."""
    start, end, label = candidates.spans.T
    before, after = candidates.neighbors
    powers, inverse = (_powers(base, len(words)) for base in (_BASE, pow(_BASE, -1, 2**64)))
    sums = numpy.concatenate([numpy.zeros(1, dtype="uint64"), numpy.cumsum(words * powers)])
    text = (sums[end] - sums[start]) * inverse[start]
    keys = numpy.stack([text, words[start], words[end - 1], words[before], words[after]], axis=1)
    salts = [[get_string_id(f"{which}\t{name}") for which in WORDS] for name in labels]
    result: Hashes = keys ^ numpy.array(salts, dtype="uint64").reshape(-1, len(WORDS))[label]
    return result


def held_out_columns(keys: Sequence[Hashes], right: Sequence[Floats], fold_of: Any) -> List[Floats]:
    """Return the columns of each Doc's candidates, counted in the Docs of other folds."""
    by_fold = {}
    for fold in numpy.unique(fold_of).tolist():
        others = numpy.flatnonzero(fold_of != fold).tolist()
        by_fold[fold] = count_words([keys[i] for i in others], [right[i] for i in others])
    return [by_fold[fold].columns(rows) for rows, fold in zip(keys, fold_of, strict=True)]


def count_words(keys: Sequence[Hashes], right: Sequence[Floats]) -> WordCounts:
    """Count the candidates of several Docs."""
    nothing = numpy.zeros((0, len(WORDS)), dtype="uint64")
    return WordCounts.of(numpy.concatenate([nothing, *keys]), numpy.concatenate([numpy.zeros(0), *right]))


def _powers(base: int, n: int) -> Hashes:
    """Return the first n powers of a number, modulo 2**64."""
    factors = numpy.full(n, base, dtype="uint64")
    factors[:1] = 1
    return numpy.cumprod(factors)


class FeatureSpace:
    """The definition of the feature columns."""

    def __init__(self, groups: Sequence[str], scored: Sequence[bool], labels: Sequence[str]) -> None:
        self.groups = tuple(groups)
        self.scored = tuple(scored)
        self.labels = tuple(labels)
        names: List[Tuple[str, bool]] = [("intercept", True)]
        names += [(f"label:{label}", False) for label in self.labels]
        for group, has_scores in zip(self.groups, self.scored, strict=True):
            names += [(f"{group} exact", True)]
            names += [(f"{group} logit", True)] if has_scores else []
            names += [(f"{group} exact:{label}", False) for label in self.labels]
            names += [(f"{group} {relation}", False) for relation in (*RELATIONS, "absent")]
        names += [(f"named by {count}", False) for count in range(2, len(self.groups) + 1)]
        names += [(f"{place} {kind}", False) for place in PLACES for kind in KINDS]
        names += [(column, False) for column in COLUMNS]
        self.names = tuple(name for name, _ in names)
        self.main = numpy.array([is_main for _, is_main in names])

    def matrix(self, words: Words, candidates: Candidates, counts: WordCounts) -> Floats:
        """Compute the features of candidates, which were read from the same groups; shape (n_candidates, n_features).
        The last columns are those of the counts."""
        spans = candidates.spans
        docs = candidates.sentences.doc_numbers[candidates.in_sentence]
        start, end, label = spans.T
        by_label = label[:, None] == numpy.arange(len(self.labels))
        columns: List[Any] = [numpy.ones(len(spans)), by_label]
        for proposed, scores, has_group, has_scores in zip(*candidates[2:5], self.scored, strict=True):
            columns.append(proposed)
            if has_scores:
                given = numpy.where(proposed, numpy.where(numpy.isnan(scores), 0.5, scores), 0.0)
                columns.append(numpy.where(has_group[docs], logit(given) / 2, 0.0))
            columns.append(by_label & proposed[:, None])
            columns.append(_relations(spans, spans[proposed], numpy.where(numpy.isnan(scores), 1.0, scores)[proposed]))
            columns.append(~has_group[docs])
        columns.append(candidates.proposed.sum(axis=0)[:, None] >= numpy.arange(2, len(self.groups) + 1))
        before, after = candidates.neighbors
        columns += [words.kinds[places] for places in (start, end - 1, before, after)]
        columns.append(counts.columns(word_keys(words.hashes, candidates, self.labels)))
        return numpy.column_stack(columns).astype("float64", copy=False)


def logit(probabilities: Floats) -> Floats:
    """Return the log-odds of probabilities; also finite for 0 and 1."""
    clipped = numpy.clip(probabilities, LEAST, 1.0 - LEAST)
    result: Floats = numpy.log(clipped) - numpy.log1p(-clipped)
    return result


def _relations(spans: Ints, entities: Ints, strength: Floats) -> Floats:
    result = numpy.zeros((len(spans), len(RELATIONS)))
    ours, theirs = _overlapping(spans, entities)
    low, high = numpy.sign(entities[theirs, 0] - spans[ours, 0]), numpy.sign(spans[ours, 1] - entities[theirs, 1])
    same = entities[theirs, 2] == spans[ours, 2]
    masks = [
        same & (low > 0) & (high == 0),
        same & (low == 0) & (high > 0),
        same & (low < 0) & (high == 0),
        same & (low == 0) & (high < 0),
    ]
    for column, mask in enumerate(masks):
        numpy.maximum.at(result[:, column], ours[mask], strength[theirs[mask]])
    return result


def _overlapping(spans: Ints, entities: Ints) -> Tuple[Ints, Ints]:
    """Return the indices of all pairs that share a token. Only neighbors are compared, since texts may be long."""
    order = numpy.argsort(entities[:, 0], kind="stable")
    starts, ends = entities[order, 0], entities[order, 1]
    first = numpy.searchsorted(numpy.maximum.accumulate(ends), spans[:, 0], side="right")
    counts = numpy.maximum(numpy.searchsorted(starts, spans[:, 1], side="left") - first, 0)
    ours = numpy.repeat(numpy.arange(len(spans)), counts)
    steps = numpy.arange(len(ours)) - numpy.repeat(numpy.cumsum(counts) - counts, counts)
    near = numpy.repeat(first, counts) + steps
    overlap = ends[near] > spans[ours, 0]
    return ours[overlap], order[near[overlap]]
