"""One test set, many candidates: trained pipelines and sets of weak labels in one table."""

import time
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from spacy.tokens import Doc
from spacy.util import load_model
from spacy.vocab import Vocab
from tqdm import tqdm

from ..annotations.corpus import SUFFIX, bare_copy, read_docs
from ..annotations.tags import same_tokens
from ..annotations.weak import GOLD_GROUP, doc_entities, group_entities
from ..errors import Errors, WeaknerError
from ..files import existing
from ..ty import Entity
from .scores import Counts, count_matches


class Comparison(NamedTuple):
    """Scores of one candidate.

    name (str): Its name.
    counts (Counts): Exact matches over all labels.
    per_label (Dict[str, Counts]): Per label.
    words_per_second (Optional[float]): Speed of prediction; None for label sets.
    """

    name: str
    counts: Counts
    per_label: Dict[str, Counts]
    words_per_second: Optional[float]

    def to_json(self) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): The scores as JSON, in [0, 100]."""
        return {
            "name": self.name,
            **_rounded(self.counts),
            "words_per_second": None if self.words_per_second is None else round(self.words_per_second),
            "per_label": {label: _rounded(counts) for label, counts in self.per_label.items()},
        }


def compare(test: Path, candidates: Mapping[str, Path], *, progress: bool = False) -> List[Comparison]:
    """Score candidates on one test set.

    test (Path): Corpus with complete gold in `doc.ents`.
    candidates (Mapping[str, Path]): By name: the folder of a pipeline, or a `.spacy` corpus (file or folder) of the
        test sentences, with labels in `doc.ents` and perhaps the gold in the span group "gold", as `aggregate`
        leaves it.
    progress (bool): Show a bar, if the output is a terminal.
    RETURNS (List[Comparison]): In the order of the candidates.
    RAISES (WeaknerError): For a missing path, a test set without complete gold, a candidate that is neither a pipeline
        nor a corpus, or a label set that does not hold the test set's sentences.
    """
    existing(test)
    for path in candidates.values():
        _check_candidate(existing(path, "train it first, or correct the path"))
    _check_gold(Path(test))
    bar = tqdm(candidates.items(), unit="candidate", disable=None if progress else True)
    return [_compare(name, Path(path), Path(test)) for name, path in bar]


def format_table(rows: List[Comparison]) -> Tuple[List[str], List[Tuple[str, ...]]]:
    """Lay a comparison out.

    rows (List[Comparison]): The scores.
    RETURNS (Tuple[List[str], List[Tuple[str, ...]]]): Header and cells.
    """
    header = ["", "P", "R", "F1", "words/s"]
    cells = []
    for row in rows:
        speed = "-" if row.words_per_second is None else f"{row.words_per_second:,.0f}"
        scores = (row.counts.precision, row.counts.recall, row.counts.f1)
        cells.append((row.name, *(f"{value:.1f}" for value in scores), speed))
    return header, cells


def _compare(name: str, candidate: Path, test: Path) -> Comparison:
    if _is_pipeline(candidate):
        pairs, speed = _pipeline_pairs(candidate, test)
    else:
        pairs, speed = _label_set_pairs(candidate, test), None
    counts, per_label = count_matches(pairs)
    return Comparison(name, counts, per_label, speed)


def _is_pipeline(path: Path) -> bool:
    return (path / "config.cfg").is_file()


def _check_candidate(path: Path) -> None:
    if path.is_dir() and not _is_pipeline(path) and not any(path.rglob(f"*{SUFFIX}")):
        raise WeaknerError(Errors.WK403.format(path=path))


def _check_gold(test: Path) -> None:
    # What a pipeline finds where nothing is known would count as wrong.
    for number, doc in enumerate(read_docs(test, Vocab()), start=1):
        if any(token.ent_iob == 0 for token in doc):
            raise WeaknerError(Errors.WK402.format(path=test, number=number))


def _pipeline_pairs(pipeline: Path, test: Path) -> Tuple[List[Tuple[List[Entity], List[Entity]]], float]:
    nlp = load_model(pipeline)
    gold, bare, words = [], [], 0
    for doc in read_docs(test, nlp.vocab):
        gold.append(doc_entities(doc))
        bare.append(bare_copy(doc))
        words += len(doc)
    started = time.perf_counter()
    predicted = [doc_entities(doc) for doc in nlp.pipe(bare)]
    seconds = time.perf_counter() - started
    return list(zip(gold, predicted, strict=True)), words / max(seconds, 1e-9)


def _label_set_pairs(labelled: Path, test: Path) -> List[Tuple[List[Entity], List[Entity]]]:
    vocab = Vocab()
    pairs, docs = [], read_docs(labelled, vocab)
    for number, gold in enumerate(read_docs(test, vocab), start=1):
        doc = next(docs, None)
        if doc is None or not same_tokens(gold, doc):
            raise WeaknerError(Errors.WK400.format(path=labelled, test=test, number=number))
        pairs.append((doc_entities(gold), doc_entities(doc)))
    if next(docs, None) is not None:
        raise WeaknerError(Errors.WK400.format(path=labelled, test=test, number=len(pairs) + 1))
    return pairs


def gold_against_weak(labelled: Path) -> Tuple[Counts, Dict[str, Counts]]:
    """Score the labels in `doc.ents` against the gold that stands beside them.

    labelled (Path): Corpus that `aggregate` wrote from a gold corpus.
    RETURNS (Tuple[Counts, Dict[str, Counts]]): Over all labels, and per label.
    """
    docs: Iterable[Doc] = read_docs(labelled, Vocab())
    return count_matches((group_entities(doc, GOLD_GROUP), doc_entities(doc)) for doc in docs)


def _rounded(counts: Counts) -> Dict[str, Any]:
    scores = {"p": counts.precision, "r": counts.recall, "f1": counts.f1}
    return {**{key: round(value, 2) for key, value in scores.items()}, **counts._asdict()}
