"""The labelers of all kinds of weak sources, and how the spans that they find become span groups."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Dict, Generic, Iterable, Iterator, List, Optional, Tuple, TypeVar

from spacy.language import Language
from spacy.matcher import Matcher
from spacy.tokens import Doc

from ..abbreviations.expansion import expand_documents
from ..corpus import weak
from ..corpus.docbin import bare_copy
from ..corpus.parts import merge_entities, split_doc
from ..errors import Errors, WeaknerError
from ..files import parse_json, read_lines
from ..ty import Entity
from .alignment import Alignment
from .report import SourceCounts
from .sources import CorpusSource, PatternSource, PipelineSource, ScoredSource, Source, TermSource

# The span group to which the rulers of patterns write.
_PATTERN_SPANS = "spacy_weakner.spans"
S = TypeVar("S", bound=Source)


class Labeler(ABC, Generic[S]):
    """A labeler that runs a source on Docs. `prepare` must have run before one is created, in this process or another.

    nlp (Language): The pipeline that was passed to `prepare`.
    folder (Path): The folder that `prepare` has filled.
    key (str): Name of the source's files there: the name of the source may not be a valid file name.
    """

    # The pipeline that it runs, if it has one of its own.
    nlp: Optional[Language] = None

    def __init__(self, source: S, nlp: Language, folder: Path, key: str) -> None:
        self.source = source

    @classmethod
    def prepare(cls, source: S, nlp: Language, folder: Path, key: str) -> None:
        """Do the expensive work, once for all processes.

        nlp (Language): A blank pipeline, to which a component named `key` may be added.
        folder (Path): Folder for files whose names begin with `key`.
        key (str): See above.
        RAISES (WeaknerError): If something cannot be read.
        """

    @abstractmethod
    def find(self, docs: List[Doc], stats: SourceCounts) -> Iterable[Optional[Alignment]]:
        """Find spans, without writing them.

        stats (SourceCounts): Where to count.
        YIELDS (Optional[Alignment]): The spans of each Doc; None if the source did not label it.
        """

    def counts(self) -> SourceCounts:
        """Return the counts that are known before a shard is labeled."""
        return SourceCounts()

    def close(self) -> None:
        """Close files."""

    def declared(self, doc: Doc) -> Dict[str, Any]:
        """Return the source's declarations for a Doc not yet labeled: arguments of `corpus.weak.set_source`."""
        return {"reliability": self.source.reliability, "complete": self.source.complete}

    def label(self, docs: List[Doc], stats: SourceCounts) -> None:
        """Write the spans that the source finds to its span group, each span once."""
        for doc, found in zip(docs, self.find(docs, stats), strict=True):
            if found is None:
                stats.docs_without_row += 1
                weak.remove_group(doc, weak.weak_group(self.source.name))
            else:
                self._write(doc, found, stats)

    def _write(self, doc: Doc, found: Alignment, stats: SourceCounts) -> None:
        entities, scores, ids = found.entities, None, found.ids
        # Matches of terms are in order, each once.
        if not isinstance(self.source, TermSource) or self.source.labels is not None:
            best, ids = self._selected(found, stats)
            entities = sorted(best)
            scores = None if set(best.values()) <= {None} else [best[entity] for entity in entities]
        declared = self.declared(doc)
        # If something was lost, a token without a label may belong to it.
        declared["complete"] = declared["complete"] and not found.is_lossy
        weak.set_source(doc, self.source.name, entities, scores, ids=ids, **declared)
        stats.spans.update(label for _, _, label in entities)

    def _selected(
        self, found: Alignment, stats: SourceCounts
    ) -> Tuple[Dict[Entity, Optional[float]], Dict[Entity, List[str]]]:
        """Return the spans that pass the filters for labels and scores, with renamed labels: best scores, and ids."""
        labels = self.source.labels
        min_score = self.source.min_score if isinstance(self.source, ScoredSource) else None
        best: Dict[Entity, Optional[float]] = {}
        ids: Dict[Entity, List[str]] = {}
        for given, score in zip(found.entities, found.scores, strict=True):
            start, end, label = given
            if labels is not None and label not in labels:
                stats.left_out[label] += 1
            elif score is not None and min_score is not None and score < min_score:
                stats.low_scores += 1
            else:
                entity = (start, end, label if labels is None else labels[label])
                known = best.get(entity)
                best[entity] = score if known is None else known if score is None else max(known, score)
                ids[entity] = list(dict.fromkeys([*ids.get(entity, ()), *found.ids.get(given, ())]))
        return best, ids


class TermLabeler(Labeler[TermSource]):
    """A labeler that looks up a term list with a `gazetteer_ruler`."""

    def __init__(self, source: TermSource, nlp: Language, folder: Path, key: str) -> None:
        super().__init__(source, nlp, folder, key)
        self._ruler: Any = nlp.get_pipe(key)

    @classmethod
    def prepare(cls, source: TermSource, nlp: Language, folder: Path, key: str) -> None:
        ruler: Any = nlp.add_pipe("gazetteer_ruler", name=key, config=source.ruler_settings())
        ruler.name = source.name  # for messages and progress
        ruler.initialize(lambda: [], nlp=nlp, terms=source.every)

    def find(self, docs: List[Doc], stats: SourceCounts) -> Iterator[Alignment]:
        found = list(self._ruler.match_ids(docs))
        if self.source.abbreviations:
            found = expand_documents(docs, found)
        for ids in found:
            yield Alignment(
                list(ids), [None] * len(ids), ids={entity: listed for entity, listed in ids.items() if listed}
            )

    def declared(self, doc: Doc) -> Dict[str, Any]:
        return {**super().declared(doc), "terms": self.source.attr}


class PatternLabeler(Labeler[PatternSource]):
    """A labeler that runs patterns with a `span_ruler`."""

    def __init__(self, source: PatternSource, nlp: Language, folder: Path, key: str) -> None:
        super().__init__(source, nlp, folder, key)
        self._ruler: Any = nlp.get_pipe(key)
        self._vocab = nlp.vocab

    @classmethod
    def prepare(cls, source: PatternSource, nlp: Language, folder: Path, key: str) -> None:
        attr = None if source.attr == "ORTH" else source.attr
        config = {"spans_key": _PATTERN_SPANS, "phrase_matcher_attr": attr}
        ruler: Any = nlp.add_pipe("span_ruler", name=key, config=config)
        probe = nlp.make_doc("x")
        patterns = []
        for number, line in enumerate(read_lines(Path(source.path)), start=1):
            if line.strip():
                try:
                    patterns.append(_check_pattern(parse_json(line), probe))
                except Exception as error:  # spaCy's matcher raises many kinds of errors for a bad pattern or regex
                    path = f"{source.path}, line {number}"
                    reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
                    raise WeaknerError(Errors.WK310.format(path=path, source=source.name, reason=reason)) from error
        if not patterns:
            raise WeaknerError(Errors.WK310.format(path=source.path, source=source.name, reason="no patterns"))
        ruler.add_patterns(patterns)

    def find(self, docs: List[Doc], stats: SourceCounts) -> Iterator[Alignment]:
        # On copies, since patterns could refer to entities, which may be gold. White space is layout, as for terms.
        for parts in [split_doc(bare_copy(doc, self._vocab)) for doc in docs]:
            copies = self._ruler.pipe(part.doc for part in parts)
            entities = merge_entities(parts, (weak.group_entities(copy, _PATTERN_SPANS) for copy in copies))
            yield Alignment(entities, [None] * len(entities))


def _check_pattern(row: Any, probe: Doc) -> Dict[str, Any]:
    """Check a row of spaCy's rulers, so that an error can name its line."""
    if not isinstance(row, dict) or not isinstance(row.get("label"), str) or not row["label"].strip():
        raise ValueError('expected {"label": ..., "pattern": ...}')
    pattern = row.get("pattern")
    if isinstance(pattern, list) and pattern:
        matcher = Matcher(probe.vocab, validate=True)
        matcher.add("pattern", [pattern])
        matcher(probe)
    elif not isinstance(pattern, str) or not pattern.strip():
        raise ValueError("the pattern must be a phrase, or a list with one object per token")
    if not isinstance(row.get("id"), (str, int, type(None))):
        raise ValueError("the id must be a string")
    return {"label": row["label"], "pattern": pattern}  # labels have no ids


class PipelineLabeler(Labeler[PipelineSource]):
    """A labeler that runs a pipeline."""

    def __init__(self, source: PipelineSource, nlp: Language, folder: Path, key: str) -> None:
        super().__init__(source, nlp, folder, key)
        self.nlp: Language = source.load()

    def find(self, docs: List[Doc], stats: SourceCounts) -> Iterator[Alignment]:
        wanted = self.source.spans_key
        # Bare copies, since components keep existing entities, so that gold would be returned as a prediction.
        for doc in self.nlp.pipe(bare_copy(doc, self.nlp.vocab) for doc in docs):
            stats.groups.update(key for key, group in doc.spans.items() if len(group) and key != wanted)
            if wanted is None:
                scores = [ent._.weakner_score for ent in doc.ents]
                yield Alignment(weak.doc_entities(doc), scores, ids=weak.doc_ids(doc))
            else:
                scores = [None if score is None else float(score) for score in weak.group_scores(doc, wanted)]
                yield Alignment(weak.group_entities(doc, wanted), scores, ids=weak.group_ids(doc, wanted))


class CorpusLabeler(Labeler[CorpusSource]):
    """A labeler that uses the labels stored in the corpus under the name of the source."""

    def find(self, docs: List[Doc], stats: SourceCounts) -> Iterator[Optional[Alignment]]:
        group = weak.weak_group(self.source.name)
        for doc in docs:
            if group in doc.spans:
                entities, scores = weak.group_entities(doc, group), weak.group_scores(doc, group)
                yield Alignment(entities, scores, ids=weak.group_ids(doc, group))
            else:
                stats.groups.update(weak.weak_sources(doc))
                yield None

    def declared(self, doc: Doc) -> Dict[str, Any]:
        name, reliability = self.source.name, self.source.reliability
        return {
            "reliability": weak.get_reliability(doc, name) if reliability is None else reliability,
            "complete": self.source.complete or weak.is_complete(doc, name),
            "terms": weak.terms_attr(doc, name),
        }
