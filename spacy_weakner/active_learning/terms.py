"""Suggests terms to add to a list, which a pipeline finds and its lists lack, and terms of them that it overrules."""

import csv
from collections import Counter
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence

from spacy.language import Language
from spacy.tokens import Doc

from ..corpus.docbin import bare_copy
from ..corpus.formats.reading import Reading, read_corpus
from ..corpus.gold import find_gold
from ..corpus.weak import weak_group
from ..errors import Errors, WeaknerError, check_range
from ..files import check_output, existing, write_text
from ..gazetteer_ruler.component import GazetteerRuler
from ..gazetteer_ruler.forms import folded
from ..pipelines import load_pipeline
from ..progress import Progress
from ..runtime.blocks import corpus_inputs
from ..runtime.devices import on_device
from ..runtime.output import check_there
from .phrases import Found, Key, Lookup, Phrase

N_TERMS = 200
# So many times as many phrases as are wanted are looked up in the text.
_POOL = 4


class SuggestedTerm(NamedTuple):
    """A row of the list to be reviewed.

    label, term (str): A phrase, as it is written most often, and its label: as the list calls it.
    id (str): The id that its mentions were linked to most often; empty if none was.
    mentions (int): How often it was found with this label; of a term of the list, how often it was overruled.
    mean_score, max_score (Optional[float]): Of its mentions; None without calibrated scores.
    in_list (str): "yes": a list of the pipeline has it, and the pipeline overrules it; "no": none has it.
    against (str): What speaks against it as a term.
    nearest (str): The most similar concept, if the pipeline links entities and did not link this one.
    example (str): A mention in its text.
    accept (str): Empty; to be answered with yes or no.
    """

    label: str
    term: str
    id: str
    mentions: int
    mean_score: Optional[float]
    max_score: Optional[float]
    in_list: str
    against: str
    nearest: str
    example: str
    accept: str = ""


class TermReport(NamedTuple):
    """The terms, the best to add first and then those of the list that are overruled, and numbers of others.

    docs (int): Documents that were read.
    found (int): Phrases that the pipeline found.
    known (int): Those that its lists have.
    refuted (int): Those that stand in gold as non-entities at least as often as with their label.
    terms (List[SuggestedTerm]): The rows.
    """

    docs: int
    found: int
    known: int
    refuted: int
    terms: List[SuggestedTerm]

    def to_json(self) -> Dict[str, Any]:
        """What JSON can hold."""
        return {**self._asdict(), "terms": [term._asdict() for term in self.terms]}


def suggest_terms(
    input_path: Path,
    output_path: Path,
    *,
    model: str,
    n: int = N_TERMS,
    exclude: Sequence[Path] = (),
    overwrite: bool = False,
    gpu_id: int = -1,
    progress: bool = False,
) -> TermReport:
    """Write the phrases that a pipeline finds in a text and its term lists lack, to be reviewed: with "yes" in the
    column `accept` they are terms of the file, with "no" neither this list nor others beside it have them. Behind them
    stand the terms of its lists that the pipeline overrules most often.

    input_path (Path): A corpus in any format; its annotations are not read.
    output_path (Path): The list to write, as CSV.
    model (str): The pipeline, a folder or name. Terms of each `gazetteer_ruler` in it are known.
    n (int): How many terms to add, ranked by the sum of the scores of their mentions; and at most so many overruled.
    exclude (Sequence[Path]): Gold. A phrase that stands there as a non-entity at least as often as with its label is
        not suggested.
    overwrite (bool): Replace an output that exists.
    gpu_id (int): GPU for the predictions; -1 is the CPU.
    progress (bool): Show how far it has come.
    RETURNS (TermReport): The terms.
    RAISES (WeaknerError): For malformed, empty or missing input, and if there is nothing to suggest.
    """
    check_range("n", n, 1, None)
    input_path, output_path = existing(Path(input_path)), Path(output_path)
    golds = [existing(Path(path)) for path in exclude]
    if output_path.suffix != ".csv":
        raise WeaknerError(Errors.WK005.format(setting="output", value=str(output_path), expected="a .csv file"))
    check_output([input_path, *golds], [output_path])
    check_there(output_path, overwrite)
    with on_device(gpu_id):
        nlp = load_pipeline(model)
        texts = _Texts(input_path, nlp, progress)
        rulers: List[GazetteerRuler] = [pipe for _, pipe in nlp.pipeline if isinstance(pipe, GazetteerRuler)]
        found = Found([weak_group(ruler.source) for ruler in rulers])
        for doc in texts.read("find", predict=True):
            found.add(doc)
        raw = {name: label for ruler in rulers for label, name in (ruler.label_names or {}).items()}
        known = {key for ruler in rulers for key in _keys(ruler) if key in found.phrases}
        pool = [key for key in found.ranked() if key not in known][: _POOL * n]
        lookup = Lookup(nlp, {key: found.phrases[key].text for key in pool})
        docs = (doc for path in golds for doc in read_corpus(path, nlp, Reading()))
        refuted = lookup.refuted((doc, find_gold(doc)) for doc in docs)
        chosen = [key for key in pool if key not in refuted][:n]
        occurrences = Counter(key for doc in texts.read("count") for _, key in lookup.matches(doc))
        inside = lookup.count_inside(found)
        stops = {folded(word) for ruler in rulers for word in ruler.stop}
        rows = []
        for key in chosen:
            against = found.against(key, occurrences[key], inside[key])
            rows.append(_row(key, found.phrases[key], "no", against + ["stop word of the list"] * (key[1] in stops)))
        for key in found.most_overruled(n):
            phrase = found.listed[key]
            against = [f"overruled {phrase.mentions} of {found.matches[key]} times"]
            rows.append(_row(key, phrase, "yes", against))
        if not rows:
            n_found = len(found.phrases)
            raise WeaknerError(
                Errors.WK777.format(path=input_path, found=n_found, known=len(known), refuted=len(refuted))
            )
        rows = [row._replace(label=raw.get(row.label, row.label)) for row in rows]
    write_text(output_path, _csv(rows))
    return TermReport(texts.docs, len(found.phrases), len(known), len(refuted), rows)


@dataclass
class _Texts:
    """The text, in blocks, each in a memory zone of its own."""

    path: Path
    nlp: Language
    progress: bool
    docs: int = 0

    def read(self, desc: str, predict: bool = False) -> Iterator[Doc]:
        self.docs = 0
        blocks = corpus_inputs(self.path, self.nlp, reading=Reading(sentences=False))
        for block in Progress(blocks, desc=f"suggest: {desc}", unit="block", enabled=self.progress):
            with self.nlp.memory_zone():
                docs = (bare_copy(doc, self.nlp.vocab) for doc in block.read(self.nlp.vocab)[0])
                for doc in self.nlp.pipe(docs) if predict else docs:
                    self.docs += 1
                    yield doc


def _keys(ruler: GazetteerRuler) -> Iterator[Key]:
    names = ruler.label_names or {}
    return ((names.get(term.label, term.label), folded(term.text)) for term in ruler.terms)


def _row(key: Key, phrase: Phrase, in_list: str, against: Sequence[str]) -> SuggestedTerm:
    ids, nearest = (next((item for item, _ in counts.most_common(1)), "") for counts in (phrase.ids, phrase.nearest))
    return SuggestedTerm(
        label=key[0],
        term=phrase.text,
        id=ids,
        mentions=phrase.mentions,
        mean_score=round(sum(phrase.scores) / len(phrase.scores), 3) if phrase.scores else None,
        max_score=round(max(phrase.scores), 3) if phrase.scores else None,
        in_list=in_list,
        against="; ".join(against),
        nearest="" if ids else nearest,
        example=phrase.example,
    )


def _csv(rows: Sequence[SuggestedTerm]) -> str:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([SuggestedTerm._fields, *rows])
    return text.getvalue()
