"""What each kind of weak source runs, and how what it finds becomes its span group."""

import json
from collections import Counter
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Protocol, Sequence, Set

from spacy.language import Language
from spacy.matcher import Matcher
from spacy.tokens import Doc, Span
from spacy.util import minibatch

from ...annotations.corpus import bare_copy
from ...annotations.weak import doc_entities, group_entities, group_scores, set_source, weak_group
from ...errors import Errors, WeaknerError
from ...files import read_lines
from ...gazetteer_ruler.terms import make_term_list
from ...ty import Entity
from ..pipelines import load_pipeline
from ..sentences import sentence_keys
from .importing import LabelFile, index_labels, pack_lines
from .mentions import Found
from .sources import Source

_BATCH = 1000
_SPANS = "spacy_weakner.spans"  # where the rulers leave their spans on copies of the Docs
_EXCLUDED = "excluded.txt"


class Finder(Protocol):
    """Asks a source about Docs, without writing to them."""

    def find(self, docs: List[Doc], counts: "Tally") -> Iterable[Optional[Found]]:
        """What it finds in each Doc; None if it has not looked at it."""

    def begin(self) -> None:
        """A new shard begins."""

    def end(self, counts: "Tally") -> None:
        """A shard ends: count what is counted per shard."""

    def close(self) -> None:
        """Nothing more will be asked."""


class Tally:
    """Counts of one source among those of all, as receipts keep them.

    counts (Counter[str]): Where to count.
    source (str): Name of the source.
    """

    def __init__(self, counts: "Counter[str]", source: str) -> None:
        self.counts = counts
        self.source = source

    def add(self, what: str, detail: str = "", n: int = 1) -> None:
        """Count something."""
        if n:
            self.counts[f"{self.source}\t{what}\t{detail}"] += n

    def get(self, what: str) -> Dict[str, int]:
        """What was counted, by detail."""
        prefix = f"{self.source}\t{what}\t"
        return {key[len(prefix) :]: n for key, n in sorted(self.counts.items()) if key.startswith(prefix)}


def prepare(sources: Sequence[Source], nlp: Language, folder: Path, exclude: Sequence[Path]) -> None:
    """Do the expensive part once, for all processes: compile term lists and patterns, index files with labels.

    sources (Sequence[Source]): The sources.
    nlp (Language): A blank pipeline; gets the rulers as components.
    folder (Path): Takes the rest.
    exclude (Sequence[Path]): Corpora whose sentences are to be left out.
    RAISES (WeaknerError): If something cannot be read.
    """
    keys = sentence_keys(exclude, nlp)
    (folder / _EXCLUDED).write_text("".join(f"{key}\n" for key in sorted(keys)), encoding="utf-8")
    for i, source in enumerate(sources):
        if source.kind == "terms":
            _add_terms(nlp, _name(i), source)
        elif source.kind == "patterns":
            _add_patterns(nlp, _name(i), source)
        elif source.kind == "file":
            index_labels(Path(source.path), folder, _name(i), source.name)


class Labellers:
    """All sources, ready to label.

    sources (Sequence[Source]): The sources.
    nlp (Language): The pipeline that `prepare` has made.
    folder (Path): The folder that it has filled.
    """

    def __init__(self, sources: Sequence[Source], nlp: Language, folder: Path) -> None:
        self.excluded: Set[str] = set((folder / _EXCLUDED).read_text(encoding="utf-8").split("\n")[:-1])
        self._pipelines = [nlp]
        self._finders: List[Finder] = []
        self.sources = sources
        for i, source in enumerate(sources):
            if source.kind == "terms":
                self._finders.append(_RulerFinder(nlp.get_pipe(_name(i)), weak_group(source.name), copy=False))
            elif source.kind == "patterns":
                self._finders.append(_RulerFinder(nlp.get_pipe(_name(i)), _SPANS, copy=True))
            elif source.kind == "file":
                self._finders.append(_FileFinder(source, folder, _name(i)))
            else:
                self._pipelines.append(load_pipeline(source.path))
                self._finders.append(_PipelineFinder(self._pipelines[-1], source.spans_key))

    @contextmanager
    def memory_zone(self) -> Iterator[None]:
        """Forget at the end what the vocabularies have learned."""
        with ExitStack() as stack:
            for nlp in self._pipelines:
                stack.enter_context(nlp.memory_zone())
            yield

    def label(self, docs: Iterable[Doc], counts: "Counter[str]") -> Iterator[Doc]:
        """Write the groups of all sources to the Docs of a shard.

        docs (Iterable[Doc]): The Docs.
        counts (Counter[str]): Where to count.
        YIELDS (Doc): The same Docs.
        """
        pairs = [(f, s, Tally(counts, s.name)) for f, s in zip(self._finders, self.sources, strict=True)]
        for finder, _, _ in pairs:
            finder.begin()
        for batch in map(list, minibatch(docs, _BATCH)):
            for finder, source, tally in pairs:
                for doc, found in zip(batch, finder.find(batch, tally), strict=True):
                    write_source(doc, source, found, tally)
            yield from batch
        for finder, _, tally in pairs:
            finder.end(tally)

    def close(self) -> None:
        """Close files."""
        for finder in self._finders:
            finder.close()


def write_source(doc: Doc, source: Source, found: Optional[Found], tally: Tally) -> None:
    """Write what a source has found to its span group, each span once.

    doc (Doc): The Doc.
    source (Source): The source.
    found (Optional[Found]): What it has found; None: it has not looked, and gets no group.
    tally (Tally): Where to count.
    """
    if found is None:
        tally.add("docs_without_row")
        doc.spans.pop(weak_group(source.name), None)
        return
    best: Dict[Entity, Optional[float]] = {}
    for (start, end, label), score in zip(found.entities, found.scores, strict=True):
        if source.labels is not None and label not in source.labels:
            tally.add("left_out", label)
        elif score is not None and source.min_score is not None and score < source.min_score:
            tally.add("low_scores")
        else:
            entity = (start, end, label if source.labels is None else source.labels[label])
            known = best.get(entity)
            best[entity] = score if known is None else known if score is None else max(known, score)
    entities = sorted(best)
    scores = [best[entity] for entity in entities]
    set_source(
        doc,
        source.name,
        entities,
        None if all(score is None for score in scores) else scores,
        reliability=source.reliability,
        # Where an answer was lost, silence may stand for it.
        complete=source.complete and not (found.misaligned or found.not_found),
        terms=source.attr if source.kind == "terms" else None,
    )
    for _, _, label in entities:
        tally.add("label", label)


# The kinds


class _Stateless:
    def begin(self) -> None:
        pass

    def end(self, counts: Tally) -> None:
        pass

    def close(self) -> None:
        pass


class _RulerFinder(_Stateless):
    def __init__(self, ruler: Any, key: str, copy: bool) -> None:
        self._ruler = ruler
        self._key = key
        self._copy = copy

    def find(self, docs: List[Doc], counts: Tally) -> Iterator[Found]:
        # Token patterns could ask for entities, which may be gold.
        asked = [bare_copy(doc) for doc in docs] if self._copy else docs
        for doc in self._ruler.pipe(asked):
            found = group_entities(doc, self._key)
            yield Found(found, [None] * len(found))


class _PipelineFinder(_Stateless):
    def __init__(self, nlp: Language, spans_key: Optional[str]) -> None:
        self._nlp = nlp
        self._key = spans_key

    def find(self, docs: List[Doc], counts: Tally) -> Iterator[Found]:
        # Bare copies, since components respect entities that are there, so that gold would come back as a prediction.
        for doc in self._nlp.pipe(bare_copy(doc, self._nlp.vocab) for doc in docs):
            for key, group in doc.spans.items():
                if len(group) and key != self._key:
                    counts.add("group", key)
            if self._key is not None:
                scores = [None if score is None else float(score) for score in group_scores(doc, self._key)]
                yield Found(group_entities(doc, self._key), scores)
            elif Span.has_extension("weakner_score"):
                yield Found(doc_entities(doc), [ent._.weakner_score for ent in doc.ents])
            else:
                yield Found(doc_entities(doc), [None] * len(doc.ents))


class _FileFinder:
    def __init__(self, source: Source, folder: Path, key: str) -> None:
        self._file = LabelFile(Path(source.path), folder, key, source.name, source.misaligned)
        self._used: Set[int] = set()

    def begin(self) -> None:
        self._used = set()

    def find(self, docs: List[Doc], counts: Tally) -> Iterator[Optional[Found]]:
        for line, found, other_text in self._file.look_up(docs):
            counts.add("other_text", n=other_text)
            if found is not None:
                self._used.add(line)
                counts.add("misaligned", n=found.misaligned)
                counts.add("not_found", n=found.not_found)
            yield found

    def end(self, counts: Tally) -> None:
        # As names of counts: receipts add numbers up, but a row can find its Doc in several shards.
        counts.add("rows", str(self._file.n_rows))
        counts.add("repeated", str(self._file.repeated))
        counts.add("lines", pack_lines(self._used))

    def close(self) -> None:
        self._file.close()


def ruler_settings(source: Source) -> Dict[str, Any]:
    """Settings of the `gazetteer_ruler` of a term list.

    source (Source): The term list.
    RETURNS (Dict[str, Any]): The settings.
    """
    return {
        "source": source.name,
        "attr": source.attr,
        "acronym_length": source.acronym_length,
        "stop": list(source.stop),
        "min_length": source.min_length,
        "ambiguity": source.ambiguity,
    }


def _add_terms(nlp: Language, name: str, source: Source) -> None:
    ruler: Any = nlp.add_pipe("gazetteer_ruler", name=name, config=ruler_settings(source))
    ruler.initialize(lambda: [], nlp=nlp, terms=make_term_list(Path(source.path), label=source.term_label))


def _add_patterns(nlp: Language, name: str, source: Source) -> None:
    attr = None if source.attr == "ORTH" else source.attr
    ruler: Any = nlp.add_pipe("span_ruler", name=name, config={"spans_key": _SPANS, "phrase_matcher_attr": attr})
    probe = nlp.make_doc("x")
    patterns = []
    for number, line in enumerate(read_lines(Path(source.path)), start=1):
        if line.strip():
            try:
                patterns.append(_check_pattern(json.loads(line), probe))
            except Exception as error:  # of many kinds: what spaCy's matcher says to a bad pattern or regex
                path = f"{source.path}, line {number}"
                reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
                raise WeaknerError(Errors.WK310.format(path=path, source=source.name, reason=reason)) from error
    if not patterns:
        raise WeaknerError(Errors.WK310.format(path=source.path, source=source.name, reason="no patterns"))
    ruler.add_patterns(patterns)


def _check_pattern(row: Any, probe: Doc) -> Dict[str, Any]:
    """Try a row of spaCy's rulers, so that an error can name its line."""
    if not isinstance(row, dict) or not isinstance(row.get("label"), str) or not row["label"].strip():
        raise ValueError('expected {"label": ..., "pattern": ...}')
    pattern = row.get("pattern")
    if isinstance(pattern, list) and pattern:
        matcher = Matcher(probe.vocab, validate=True)
        matcher.add("pattern", [pattern])
        matcher(probe)
    elif not isinstance(pattern, str) or not pattern.strip():
        raise ValueError("the pattern must be a phrase, or a list with one object per token")
    return row


def _name(i: int) -> str:
    # Not the source's name, which may hold what no file name can.
    return f"source-{i + 1}"
