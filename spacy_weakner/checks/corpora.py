"""Reading of annotated corpora for checks: all readable rows, and the errors in the others."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

from spacy.language import Language
from spacy.tokens import Doc

from ..corpus.conll import COLUMNS
from ..corpus.formats.reading import GROUPED, Reading, input_files, read_corpus
from ..corpus.gold import missing_tokens
from ..corpus.sampling import LIMIT
from ..corpus.weak import doc_entities, doc_ids, is_weak
from ..ty import Entity
from .findings import Findings, RowProblems


class CheckedSentence(NamedTuple):
    """A sentence of an annotated corpus: its place (line, and file in a folder), the number of missing tokens, whether
    its entities are weak labels, whether the spaces between its tokens are given, and the ids of its entities."""

    place: str
    text: str
    words: Tuple[str, ...]
    entities: List[Entity]
    missing: int = 0
    weak: bool = False
    spaced: bool = False
    ids: Mapping[Entity, Tuple[str, ...]] = {}

    @property
    def is_annotated(self) -> bool:
        return self.missing < len(self.words)


@dataclass
class CheckedCorpus:
    """The contents of gold, dev or test.

    where (str): The option and the file: "--gold gold.jsonl".
    misaligned (int): Spans that do not end at token boundaries; the first of them are in `misaligned_spans`.
    broken (bool): True if something could not be read.
    note (str): How much was read; empty: everything.
    groups (Counter[str]): Spans per group that is not read.
    """

    where: str
    name: str
    path: Path
    sentences: List[CheckedSentence] = field(default_factory=list)
    spans: int = 0
    misaligned: int = 0
    misaligned_spans: List[str] = field(default_factory=list)
    broken: bool = False
    note: str = ""
    groups: "Counter[str]" = field(default_factory=Counter)

    def labels(self) -> Dict[str, int]:
        return dict(Counter(label for sentence in self.sentences for _, _, label in sentence.entities))


def read_annotated(
    name: str,
    path: Path,
    nlp: Language,
    findings: Findings,
    limit: int = LIMIT,
    columns: Tuple[int, int] = COLUMNS,
    spans_key: Optional[str] = None,
) -> Optional[CheckedCorpus]:
    """Read about `limit` sentences of gold, dev or test, split as for training; return None if there is nothing to
    read."""
    corpus = CheckedCorpus(f"--{name} {path}", name, path)
    was_read = False
    with findings.guard(corpus.where):
        for file_, format_ in input_files(path):
            if format_ == "text":
                message = f"{file_} is plain text, which contains no entities."
                rows = 'JSONL rows {"text": ..., "ents": [[start, end, "LABEL"]]}'
                findings.error(corpus.where, message, f"Give {rows}, CoNLL columns or .spacy.")
                continue
            was_read = True
            left = limit - len(corpus.sentences)
            if left <= 0:
                corpus.note = corpus.note or f"the first {len(corpus.sentences):,} sentences"
                break
            errors = findings.errors
            key = spans_key if format_ in GROUPED else None
            reading = Reading(documents=True, misaligned="expand", columns=columns, spans_key=key)
            _add_file(corpus, file_, collect(file_, format_, nlp, reading, corpus.where, findings, left), findings)
            corpus.broken = corpus.broken or findings.errors > errors
    if corpus.note:
        findings.info(corpus.where, f"Large file, so only a sample was checked ({corpus.note}).")
    return corpus if was_read else None


def collect(
    path: Path, format: str, nlp: Language, reading: Reading, where: str, findings: Findings, limit: int
) -> Tuple[List[Tuple[str, Doc]], RowProblems]:
    """Return the readable Docs of a file, with their places; errors in the others become findings."""
    counts = RowProblems()
    docs = []
    with findings.guard(where):
        for doc in read_corpus(path, nlp, reading, format=format, counts=counts, limit=limit):
            docs.append((counts.place, doc))
    counts.report(where, findings)
    return docs, counts


def _add_file(
    corpus: CheckedCorpus, path: Path, found: Tuple[List[Tuple[str, Doc]], RowProblems], findings: Findings
) -> None:
    docs, counts = found
    file_ = "" if path == corpus.path else f"{path}, "
    corpus.sentences += [_sentence(doc, f"{file_}{place}") for place, doc in docs]
    corpus.spans += sum(len(doc.ents) + sum(map(len, doc.spans.values())) for _, doc in docs)
    corpus.note = counts.sampled or corpus.note
    corpus.groups += counts.groups
    corpus.misaligned += counts.moved + counts.misaligned
    corpus.misaligned_spans += [f"{file_}{span}" for span in counts.misaligned_spans]
    for remark in counts.remarks:
        findings.warning(corpus.where, f"{path}: {remark}.")
    # The unreadable rows may be those with annotations.
    tell = findings.warning if counts.places else findings.error
    for suspicion in counts.suspicion:
        tell(corpus.where, f"{path}: {suspicion}.")


def _sentence(doc: Doc, place: str) -> CheckedSentence:
    words = tuple(token.text for token in doc)
    missing = len(missing_tokens(doc))
    spaced = not doc.has_unknown_spaces
    return CheckedSentence(place, doc.text, words, doc_entities(doc), missing, is_weak(doc), spaced, doc_ids(doc))
