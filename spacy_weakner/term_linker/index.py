"""The terms of a list that are nearest to a mention: by the cosine of TF-IDF weights of their character 3-grams, as in
scispaCy's candidate generator."""

import re
from typing import Any, Dict, Iterable, List, NamedTuple, Sequence, Tuple

import numpy
from numpy.typing import NDArray

from ..gazetteer_ruler.forms import normal_form

# Hashed 3-grams; scikit-learn's own default. A 3-gram is kept as a number, so that no vocabulary has to be stored.
N_FEATURES = 2**20
# Mentions that are compared with all terms together.
BATCH = 64
_GAPS = re.compile(r"[\W_]+")
Floats1d = NDArray[numpy.float32]
Ints1d = NDArray[numpy.int32]


class Candidate(NamedTuple):
    """An id that a mention may have, and how near its nearest term is, in 0..1; 1: equal but for case, punctuation,
    plural and the order of words that a comma turns round."""

    id: str
    score: float


def compared_form(text: str, lang: str) -> str:
    """What is compared of a term or a mention: "Anemias, Hemolytic" is "hemolytic anemia"."""
    form = normal_form(text, lang)
    if form.count(", ") == 1:
        form = " ".join(reversed(form.split(", ")))
    return " ".join(map(_singular, _GAPS.sub(" ", form).split()))


def _singular(word: str) -> str:
    # English mostly; elsewhere it is the same loss of a letter on both sides.
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


class TermIndex:
    """Finds the terms of one label that are nearest to a mention.

    matrix: sparse, shape (N_FEATURES, n_forms): normalized weights of the 3-grams of `forms`, each once.
    """

    def __init__(self, forms: Sequence[str], ids: Sequence[Tuple[str, ...]], matrix: Any) -> None:
        self.ids = list(ids)
        self.matrix = matrix
        self.numbers: Dict[str, int] = {form: number for number, form in enumerate(forms)}

    @classmethod
    def build(cls, terms: Iterable[Tuple[str, str]], lang: str) -> "TermIndex":
        """Make the index of terms with their ids; terms of punctuation alone are left out."""
        ids: Dict[str, Dict[str, None]] = {}
        for term, identifier in terms:
            form = compared_form(term, lang)
            if form:
                ids.setdefault(form, {}).setdefault(identifier)
        counts = _counts(list(ids))
        matrix = _weighted(counts, len(ids), numpy.bincount(counts.indices, minlength=N_FEATURES)).T.tocsr()
        return cls(list(ids), [tuple(concepts) for concepts in ids.values()], matrix)

    @property
    def forms(self) -> List[str]:
        return list(self.numbers)

    def nearest(self, mentions: Sequence[str], limit: int) -> List[List[Candidate]]:
        """The terms nearest to each mention (a compared form), the best first; equally near ones in the order of the
        list."""
        found: List[List[Candidate]] = []
        frequencies = numpy.diff(self.matrix.indptr)
        for begin in range(0, len(mentions), BATCH):
            some = mentions[begin : begin + BATCH]
            # A 3-gram that no term has makes a mention longer, and no term nearer.
            scores = _weighted(_counts(some), len(self.ids), frequencies) @ self.matrix
            for row, mention in enumerate(some):
                span = slice(scores.indptr[row], scores.indptr[row + 1])
                found.append(self._candidates(mention, scores.indices[span], scores.data[span], limit))
        return found

    def _candidates(self, mention: str, numbers: Ints1d, scores: Floats1d, limit: int) -> List[Candidate]:
        if len(scores) > limit:
            # Of equally near ones, those that stand first in the list.
            best = numpy.lexsort((numbers, -scores))[:limit]
            numbers, scores = numbers[best], scores[best]
        equal = self.numbers.get(mention)
        scored = [(1.0 if n == equal else min(float(s), 1.0), n) for n, s in zip(numbers, scores, strict=True)]
        if equal is not None and equal not in numbers:
            scored.append((1.0, equal))  # words of one or two characters have no 3-grams of their own
        ids: Dict[str, float] = {}
        for score, number in sorted(scored, key=lambda item: (-item[0], item[1] != equal, item[1])):
            for identifier in self.ids[number]:
                ids.setdefault(identifier, score)
        return [Candidate(identifier, round(score, 4)) for identifier, score in ids.items()]

    # Storage

    def to_arrays(self) -> Dict[str, NDArray[Any]]:
        """The matrix, as `from_parts` takes it: by forms, which are fewer than 3-grams."""
        rows = self.matrix.T.tocsr()
        return {name: getattr(rows, name) for name in ("data", "indices", "indptr")}

    @classmethod
    def from_parts(
        cls, forms: Sequence[str], ids: Sequence[Tuple[str, ...]], arrays: Dict[str, NDArray[Any]]
    ) -> "TermIndex":
        """Put a stored index together. Raises `ValueError` if its parts do not fit."""
        from scipy.sparse import csr_matrix

        rows = csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=(len(forms), N_FEATURES))
        rows.check_format()
        if len(forms) != len(ids):
            raise ValueError("the parts of the index are of different sizes")
        return cls(forms, ids, rows.T.tocsr())


def _counts(forms: Sequence[str]) -> Any:
    """How often each form has each 3-gram of its words: sparse, shape (n_forms, N_FEATURES)."""
    from sklearn.feature_extraction.text import HashingVectorizer

    vectorizer = HashingVectorizer(
        analyzer="char_wb",
        ngram_range=(3, 3),
        n_features=N_FEATURES,
        norm=None,
        alternate_sign=False,
        lowercase=False,
        dtype=numpy.float32,
    )
    return vectorizer.transform(forms)


def _weighted(counts: Any, n_forms: int, frequencies: Any) -> Any:
    """Normalized weights of counts. The inverse document frequencies, of 3-grams that so many of the forms have, are
    smoothed as scikit-learn does it."""
    from sklearn.preprocessing import normalize

    weights = numpy.log((1 + n_forms) / (1 + frequencies[counts.indices])) + 1
    counts.data *= weights.astype("float32")
    return normalize(counts, copy=False)
