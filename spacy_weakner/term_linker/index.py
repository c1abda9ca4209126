"""Finds the terms of a list that are most similar to a mention, by the cosine of the TF-IDF weights of their character
3-grams, as in scispaCy's candidate generator."""

import re
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

import numpy
from numpy.typing import NDArray

from ..gazetteer_ruler.forms import normal_form

# Number of hashes of 3-grams; scikit-learn's default. Hashes need no stored vocabulary.
N_FEATURES = 2**20
# Number of mentions that are compared with all terms at once.
BATCH = 64
_GAPS = re.compile(r"[\W_]+")
Floats1d = NDArray[numpy.float32]
Ints1d = NDArray[numpy.int32]


class IdCandidate(NamedTuple):
    """A possible id of a mention, with the similarity of its nearest term, in [0, 1]; 1: equal except for case,
    punctuation, plural, and word order inverted with a comma."""

    id: str
    score: float
    is_spelled_so: bool = False  # a term with this id is spelled like the mention, and others of the same form are not


def compared_form(text: str, lang: str) -> str:
    """Normalize a term or mention for comparison: "Anemias, Hemolytic" becomes "hemolytic anemia"."""
    form = normal_form(text, lang)
    if form.count(", ") == 1:
        form = " ".join(reversed(form.split(", ")))
    return " ".join(map(_singular, _GAPS.sub(" ", form).split()))


def _singular(word: str) -> str:
    # Meant for English; in other languages, terms and mentions lose the same letter.
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


class TermIndex:
    """An index of the terms of one label that finds those most similar to a mention.

    grams: the hashes of all 3-grams, ascending, shape (n_grams,); matrix: the normalized weights of the 3-grams in the
    unique `forms`, sparse, shape (n_grams, n_forms); spelled: of terms whose form has several ids ("CD4+" and "CD4-"),
    the ids by spelling, with and without case.
    """

    def __init__(
        self,
        forms: Sequence[str],
        ids: Sequence[Tuple[str, ...]],
        grams: Ints1d,
        matrix: Any,
        spelled: Mapping[str, Tuple[str, ...]],
    ) -> None:
        self.ids = list(ids)
        self.spelled = dict(spelled)
        self.grams = grams
        self.matrix = matrix
        self._frequencies = numpy.diff(matrix.indptr)
        self.numbers: Dict[str, int] = {form: number for number, form in enumerate(forms)}

    @classmethod
    def build(cls, terms: Iterable[Tuple[str, str]], lang: str) -> "TermIndex":
        """Build the index of terms with their ids; terms of only punctuation are left out."""
        from scipy.sparse import csr_matrix

        ids: Dict[str, Dict[str, None]] = {}
        spellings: Dict[str, Dict[str, None]] = {}
        forms: Dict[str, str] = {}
        for term, identifier in terms:
            form = compared_form(term, lang)
            if form:
                ids.setdefault(form, {}).setdefault(identifier)
                for spelling in (" ".join(term.split()), " ".join(term.casefold().split())):
                    forms[spelling] = form
                    spellings.setdefault(spelling, {}).setdefault(identifier)
        spelled = {spelling: tuple(found) for spelling, found in spellings.items() if len(ids[forms[spelling]]) > 1}
        counts = _counts(list(ids))
        grams, columns, frequencies = numpy.unique(counts.indices, return_inverse=True, return_counts=True)
        _weight(counts, len(ids), frequencies[columns])
        matrix = csr_matrix((counts.data, columns, counts.indptr), shape=(len(ids), len(grams))).T.tocsr()
        return cls(list(ids), [tuple(concepts) for concepts in ids.values()], grams.astype("int32"), matrix, spelled)

    @property
    def forms(self) -> List[str]:
        return list(self.numbers)

    def by_spelling(self, mention: str, candidates: Sequence[IdCandidate]) -> List[IdCandidate]:
        """Of candidates with equal scores, put those first whose term is spelled like the mention."""
        same = self.spelled.get(mention) or self.spelled.get(mention.casefold(), ())
        marked = [candidate._replace(is_spelled_so=candidate.id in same) for candidate in candidates]
        return sorted(marked, key=lambda candidate: (-candidate.score, not candidate.is_spelled_so))

    def nearest(self, mentions: Sequence[str], limit: int) -> List[List[IdCandidate]]:
        """Find the terms most similar to each mention (a compared form), the best first; ties keep the order of the
        list."""
        from scipy.sparse import csr_matrix

        if not len(self.grams):
            return [[] for _ in mentions]
        found: List[List[IdCandidate]] = []
        for begin in range(0, len(mentions), BATCH):
            some = mentions[begin : begin + BATCH]
            counts = _counts(some)
            columns = numpy.searchsorted(self.grams[:-1], counts.indices)
            is_known = self.grams[columns] == counts.indices
            _weight(counts, len(self.ids), self._frequencies[columns] * is_known)
            # A 3-gram that is in no term adds to the norm of a mention, but not to the similarity of any term.
            known = csr_matrix((counts.data * is_known, columns, counts.indptr), shape=(len(some), len(self.grams)))
            scores = known @ self.matrix
            for row, mention in enumerate(some):
                span = slice(scores.indptr[row], scores.indptr[row + 1])
                found.append(self._candidates(mention, scores.indices[span], scores.data[span], limit))
        return found

    def _candidates(self, mention: str, numbers: Ints1d, scores: Floats1d, limit: int) -> List[IdCandidate]:
        if len(scores) > limit:
            # Ties keep the order of the list.
            best = numpy.lexsort((numbers, -scores))[:limit]
            numbers, scores = numbers[best], scores[best]
        equal = self.numbers.get(mention)
        scored = [(1.0 if n == equal else min(float(s), 1.0), n) for n, s in zip(numbers, scores, strict=True)]
        if equal is not None and equal not in numbers:
            scored.append((1.0, equal))  # cut off above, among terms with the same 3-grams in another order
        ids: Dict[str, float] = {}
        for score, number in sorted(scored, key=lambda item: (-item[0], item[1] != equal, item[1])):
            for identifier in self.ids[number]:
                ids.setdefault(identifier, score)
        return [IdCandidate(identifier, round(score, 4)) for identifier, score in ids.items()]

    # Storage

    def to_arrays(self) -> Dict[str, NDArray[Any]]:
        """Return the arrays of the index for `from_parts`."""
        return {"grams": self.grams, **{name: getattr(self.matrix, name) for name in ("data", "indices", "indptr")}}

    @classmethod
    def from_parts(
        cls,
        forms: Sequence[str],
        ids: Sequence[Tuple[str, ...]],
        arrays: Dict[str, NDArray[Any]],
        spelled: Mapping[str, Sequence[str]],
    ) -> "TermIndex":
        """Make an index from stored parts. Raises `ValueError` if they do not fit each other."""
        from scipy.sparse import csr_matrix

        shape = (len(arrays["grams"]), len(forms))
        matrix = csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
        matrix.check_format()
        if len(forms) != len(ids):
            raise ValueError("the parts of the index are of different sizes")
        return cls(forms, ids, arrays["grams"], matrix, {spelling: tuple(some) for spelling, some in spelled.items()})


def _counts(forms: Sequence[str]) -> Any:
    """Count the 3-grams of the words of each form: sparse, shape (n_forms, N_FEATURES)."""
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import HashingVectorizer

    if not forms:
        return csr_matrix((0, N_FEATURES), dtype="float32")
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


def _weight(counts: Any, n_forms: int, frequencies: Any) -> None:
    """Turn counts into normalized TF-IDF weights, in place. `frequencies` has the document frequency of each count's
    3-gram; inverse frequencies are smoothed as in scikit-learn."""
    from sklearn.preprocessing import normalize

    counts.data *= (numpy.log((1 + n_forms) / (1 + frequencies)) + 1).astype("float32")
    if counts.shape[0]:
        normalize(counts, copy=False)
