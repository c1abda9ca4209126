"""What each kind of weak source runs, and how what it finds becomes its span group."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional

from spacy.language import Language
from spacy.tokens import Doc, Span

from ..corpus.docbin import bare_copy
from ..corpus.parts import merge_entities, split_doc
from ..corpus.weak import (
    doc_entities,
    get_reliability,
    group_entities,
    group_scores,
    is_complete,
    remove_group,
    set_source,
    terms_attr,
    weak_group,
    weak_sources,
)
from ..pipelines import load_pipeline
from ..ty import Entity
from .answering import AnswerFile
from .importing import LabelFile
from .mentions import Found
from .preparing import PATTERN_SPANS, prepared_name
from .report import SourceCounts
from .sources import CORPUS, FILES, Source


class Labeller(ABC):
    """Asks a source about Docs, and writes what it says.

    source (Source): The source.
    nlp (Optional[Language]): The pipeline that it runs, if that is its own.
    """

    nlp: Optional[Language] = None

    def __init__(self, source: Source) -> None:
        self.source = source

    @abstractmethod
    def find(self, docs: List[Doc], stats: SourceCounts) -> Iterable[Optional[Found]]:
        """Ask, without writing.

        docs (List[Doc]): The Docs.
        stats (SourceCounts): Where to count.
        YIELDS (Optional[Found]): What it finds in each Doc; None if it has not looked at it.
        """

    def counts(self) -> SourceCounts:
        """RETURNS (SourceCounts): What is known before a shard is labelled."""
        return SourceCounts()

    def close(self) -> None:  # noqa: B027
        """Nothing more will be asked."""

    def label(self, docs: List[Doc], stats: SourceCounts) -> None:
        """Write what the source finds to its span group, each span once.

        docs (List[Doc]): The Docs.
        stats (SourceCounts): Where to count.
        """
        for doc, found in zip(docs, self.find(docs, stats), strict=True):
            if found is None:
                stats.docs_without_row += 1
                remove_group(doc, weak_group(self.source.name))
            else:
                self._write(doc, found, stats)

    def declared(self, doc: Doc, is_whole: bool) -> Dict[str, Any]:
        """What the source declares of itself; see `corpus.weak.set_source`.

        doc (Doc): The Doc, as it was before.
        is_whole (bool): Whether nothing of what the source says of it was lost: silence may stand for that.
        RETURNS (Dict[str, Any]): The arguments.
        """
        source = self.source
        return {
            "reliability": source.reliability,
            "complete": source.complete and is_whole,
            "terms": source.attr if source.kind == "terms" else None,
        }

    def _write(self, doc: Doc, found: Found, stats: SourceCounts) -> None:
        source, entities, scores = self.source, found.entities, None
        is_whole = not (found.misaligned or found.not_found) if found.is_whole is None else found.is_whole
        if source.labels is not None or any(score is not None for score in found.scores):
            best = self._selected(found, stats)
            entities = sorted(best)
            scores = [best[entity] for entity in entities]
        elif source.kind != "terms":  # whose matches are in order, each once
            entities = sorted({*entities})
        set_source(
            doc,
            source.name,
            entities,
            None if scores is None or all(score is None for score in scores) else scores,
            **self.declared(doc, is_whole),
        )
        stats.spans.update(label for _, _, label in entities)

    def _selected(self, found: Found, stats: SourceCounts) -> Dict[Entity, Optional[float]]:
        """Spans that labels and scores allow, by the names that labels are to have, each with its best score."""
        labels, min_score = self.source.labels, self.source.min_score
        best: Dict[Entity, Optional[float]] = {}
        for (start, end, label), score in zip(found.entities, found.scores, strict=True):
            if labels is not None and label not in labels:
                stats.left_out[label] += 1
            elif score is not None and min_score is not None and score < min_score:
                stats.low_scores += 1
            else:
                entity = (start, end, label if labels is None else labels[label])
                known = best.get(entity)
                best[entity] = score if known is None else known if score is None else max(known, score)
        return best


class TermLabeller(Labeller):
    """A term list.

    ruler (Any): Its `gazetteer_ruler`, which is only asked.
    """

    def __init__(self, source: Source, ruler: Any) -> None:
        super().__init__(source)
        self.ruler = ruler

    def find(self, docs: List[Doc], stats: SourceCounts) -> Iterator[Found]:
        for entities in self.ruler.match_docs(docs):
            yield Found(entities, [None] * len(entities))


class PatternLabeller(TermLabeller):
    """Patterns; the ruler is their `span_ruler`."""

    def find(self, docs: List[Doc], stats: SourceCounts) -> Iterator[Found]:
        # On copies: patterns could ask for entities, which may be gold. White space is layout, as it is for terms.
        for parts in [split_doc(bare_copy(doc)) for doc in docs]:
            copies = self.ruler.pipe(part.doc for part in parts)
            entities = merge_entities(parts, (group_entities(copy, PATTERN_SPANS) for copy in copies))
            yield Found(entities, [None] * len(entities))


class PipelineLabeller(Labeller):
    """A pipeline."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.nlp: Language = load_pipeline(source.path)

    def find(self, docs: List[Doc], stats: SourceCounts) -> Iterator[Found]:
        wanted = self.source.spans_key
        # Bare copies, since components respect entities that are there, so that gold would come back as a prediction.
        for doc in self.nlp.pipe(bare_copy(doc, self.nlp.vocab) for doc in docs):
            stats.groups.update(key for key, group in doc.spans.items() if len(group) and key != wanted)
            if wanted is not None:
                scores = [None if score is None else float(score) for score in group_scores(doc, wanted)]
                yield Found(group_entities(doc, wanted), scores)
            elif Span.has_extension("weakner_score"):
                yield Found(doc_entities(doc), [ent._.weakner_score for ent in doc.ents])
            else:
                yield Found(doc_entities(doc), [None] * len(doc.ents))


class FileLabeller(Labeller):
    """A file with labels.

    file_ (LabelFile): The file.
    """

    def __init__(self, source: Source, file_: LabelFile) -> None:
        super().__init__(source)
        self._file = file_

    def find(self, docs: List[Doc], stats: SourceCounts) -> Iterator[Optional[Found]]:
        for line, found, other_text in self._file.look_up(docs):
            stats.other_text += other_text
            if found is not None:
                stats.used_rows.update([line])
                stats.misaligned += found.misaligned
                stats.not_found += found.not_found
            yield found

    def counts(self) -> SourceCounts:
        return SourceCounts(rows=self._file.n_rows, repeated_rows=self._file.repeated)

    def close(self) -> None:
        self._file.close()


class CorpusLabeller(Labeller):
    """Labels that the corpus brings along under the name of the source."""

    def find(self, docs: List[Doc], stats: SourceCounts) -> Iterator[Optional[Found]]:
        group = weak_group(self.source.name)
        for doc in docs:
            if group in doc.spans:
                yield Found(group_entities(doc, group), group_scores(doc, group))
            else:
                stats.groups.update(weak_sources(doc))
                yield None

    def declared(self, doc: Doc, is_whole: bool) -> Dict[str, Any]:
        name, said = self.source.name, super().declared(doc, is_whole)
        reliability = said["reliability"]
        return {
            "reliability": get_reliability(doc, name) if reliability is None else reliability,
            "complete": said["complete"] or is_complete(doc, name),
            "terms": terms_attr(doc, name),
        }


def make_labeller(number: int, source: Source, nlp: Language, folder: Path) -> Labeller:
    """Make a source ready to label.

    number (int): Its number among the sources, from 0.
    source (Source): The source.
    nlp (Language): The pipeline that `prepare` has made.
    folder (Path): The folder that it has filled.
    RETURNS (Labeller): The labeller.
    """
    name = prepared_name(number)
    if source.kind == "terms":
        return TermLabeller(source, nlp.get_pipe(name))
    if source.kind == "patterns":
        return PatternLabeller(source, nlp.get_pipe(name))
    if source.kind == CORPUS:
        return CorpusLabeller(source)
    if source.kind in FILES:
        reader = AnswerFile if source.kind == "answers" else LabelFile
        return FileLabeller(source, reader(Path(source.path), folder, name, source.name, source.misaligned))
    return PipelineLabeller(source)
