"""Suggests diverse sentences to annotate next, for all labels: those on which sources disagree or a pipeline is
uncertain."""

from collections import Counter
from contextlib import closing
from operator import itemgetter
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from spacy.language import Language
from spacy.tokens import Doc

from ..corpus.docbin import SUFFIX
from ..corpus.formats.writing import output_format, write_corpus
from ..corpus.gold import find_gold
from ..corpus.language import corpus_language, record_language
from ..corpus.overlaps import highest_ranked
from ..corpus.weak import (
    PREDICTED_PREFIX,
    SUGGEST,
    SUGGESTED_GROUP,
    WEAK_PREFIX,
    WRONG_GROUP,
    doc_ids,
    set_group,
    set_id,
    set_meta,
)
from ..errors import Errors, WeaknerError, check_range
from ..files import existing
from ..labeling.label import Label, LabelConfig, label_inputs
from ..labeling.sources import read_sources
from ..progress import Progress
from ..runtime.devices import on_device
from ..runtime.output import making
from ..runtime.stage import memory_zones
from ..scratch import scratch_folder
from ..ty import Entity
from .choosing import Sentence, SentencePool, choose_sentences
from .scoring import Model, Scorer
from .terms import N_TERMS, TermReport, suggest_terms

# Lines of a file whose sentences are in memory at a time.
BLOCK = 5000
N_SENTENCES = 50
# Number of sentences kept to choose from, per wanted sentence.
POOL = 50
# Minimum probability of candidates shown to annotators.
_LIKELY = 0.5
_Scored = List[Tuple[Entity, Optional[float]]]


class Suggestion(NamedTuple):
    """A sentence to annotate."""

    text: str
    id: Optional[str]
    score: float  # its uncertainty, normalized by its length
    why: str  # the most uncertain span; empty if there is none
    labels: List[str]  # labels of uncertain spans


class SuggestReport(NamedTuple):
    """Suggested sentences, in the order in which they were chosen, and numbers of the others."""

    read: int
    empty: int  # without a visible token
    annotated: int  # with complete gold, left out
    excluded: int  # in an excluded corpus, left out
    partial: int  # suggested with the entities of incomplete gold
    copies: int  # duplicates, left out
    near: int  # nearly the same as a chosen one, left out
    certain: int  # suggested although nothing is uncertain: there were no others
    labels: Dict[str, int]  # suggested sentences in which each label is uncertain
    lost: Dict[str, int]  # what the format of the output cannot hold
    remarks: List[str]  # on what was read
    sentences: List[Suggestion]


@making(
    "output_path",
    "input_path",
    "model",
    "exclude",
    sources=lambda declared: [s.settings() for s in read_sources(declared)],
)
def suggest(
    input_path: Path,
    output_path: Path,
    *,
    review_terms: bool = False,
    n: Optional[int] = None,
    model: Sequence[str] = (),
    sources: Optional[Union[Path, str, Mapping[str, Any]]] = None,
    exclude: Sequence[Path] = (),
    to: Optional[str] = None,
    lang: Optional[str] = None,
    seed: int = 0,
    overwrite: bool = False,
    gpu_id: int = -1,
    progress: bool = False,
) -> Union[SuggestReport, TermReport]:
    """Write the sentences that are most useful to annotate next, with probable entities in the span group
    "suggested", and the reason in the row's "meta". They have no gold. With --review-terms, write terms to review
    instead: those that a pipeline finds but that its lists lack.

    input_path (Path): A corpus in any format: a file or a folder. It may have span groups `weak:<source>`, and
        `pred:<component>` with probabilities.
    output_path (Path): The file to write.
    review_terms (bool): Write terms, as CSV; see `terms.suggest_terms`.
    n (Optional[int]): Number of sentences or terms; None: 50 sentences, or 200 terms.
    model (Sequence[str]): Pipelines (folders or names). Their uncertainty is used and, with several, their disagreement
        with each other or with sources. The first pipeline annotates.
    sources (Optional[Union[Path, str, Mapping[str, Any]]]): Declarations of sources, as for `label`; they label the
        corpus during this run.
    exclude (Sequence[Path]): Corpora in any format, such as all gold, whose sentences are not suggested. Sentences are
        equal if they differ only in case and white space. With `review_terms`: gold; phrases that are non-entities in
        it are not suggested.
    to (Optional[str]): Format of the output; None: given by its suffix.
    lang: See `convert`.
    seed (int): Decides between sentences with equal scores.
    overwrite (bool): Replace an output that this command has not made, or that was edited.
    gpu_id (int): GPU for the predictions; -1 is the CPU.
    progress (bool): Show progress.
    RETURNS (Union[SuggestReport, TermReport]): The sentences or terms, with reasons.
    RAISES (WeaknerError): For malformed, empty or missing input, for invalid settings, and if there are neither
        probabilities nor two sources to show what is uncertain.
    """
    if review_terms:
        if len(model) != 1 or any(setting is not None for setting in (sources, to, lang)):
            expected = "exactly one model, and no sources, output format or language"
            raise WeaknerError(Errors.WK005.format(setting="review_terms", value=True, expected=expected))
        return suggest_terms(
            input_path,
            output_path,
            model=model[0],
            n=N_TERMS if n is None else n,
            exclude=exclude,
            gpu_id=gpu_id,
            progress=progress,
        )
    n = N_SENTENCES if n is None else n
    check_range("n", n, 1, None)
    input_path, output_path = existing(Path(input_path)), Path(output_path)
    output_format(output_path, to)
    language = corpus_language(input_path, lang)
    nlp = language.blank()
    declared = [] if sources is None else read_sources(sources)
    config = LabelConfig(declared, language, [existing(Path(path)) for path in exclude])
    counts: Counter[str] = Counter()
    with on_device(gpu_id), scratch_folder(output_path) as folder:
        stage, scorer, pool = (
            Label(config, {}, nlp, folder),
            Scorer([Model(name) for name in model]),
            SentencePool(POOL * n, n, seed),
        )
        sentences = _score_corpus(input_path, stage, scorer, counts)
        for sentence in Progress(sentences, desc="suggest", unit="sentence", enabled=progress):
            pool.add(sentence)
        candidates = pool.sentences()
        choice, excluded = choose_sentences(candidates, n), stage.stats.excluded
        if not choice.sentences:
            raise WeaknerError(Errors.WK776.format(path=input_path, read=counts["read"], excluded=excluded))
        labels = {label for model in scorer.models for label in model.labels}.union(*(s.by_label for s in candidates))
        written = write_corpus(output_path, _annotated(choice.sentences, scorer.models, nlp), to, labels=labels)
    if output_path.suffix == SUFFIX:
        record_language(output_path, language)
    found = [Suggestion(s.text, s.id, round(s.score, 4), s.why, sorted(s.by_label)) for s in choice.sentences]
    return SuggestReport(
        read=counts["read"],
        empty=counts["empty"],
        annotated=counts["annotated"],
        excluded=excluded,
        partial=sum(bool(sentence.gold) for sentence in choice.sentences),
        copies=pool.copies,
        near=choice.near,
        certain=sum(not sentence.why for sentence in found),
        labels=dict(sorted(Counter(label for sentence in found for label in sentence.labels).items())),
        lost=dict(written.lost),
        remarks=stage.stats.remarks,
        sentences=found,
    )


def _score_corpus(path: Path, stage: Label, scorer: Scorer, counts: "Counter[str]") -> Iterator[Sentence]:
    """Read the corpus in blocks, each in memory zones of its own."""
    inputs = label_inputs(path, stage.nlp, stage.config.language, BLOCK)
    stage.open()
    with closing(stage):
        for block in inputs:
            with memory_zones([*stage.zones(), *(model.nlp for model in scorer.models)]):
                docs, _ = block.read(stage.nlp.vocab, stage.stats)
                yield from scorer.score(stage(_without_gold(docs, counts)))
        if scorer.no_signal:
            names = ", ".join(model.name for model in scorer.models)
            asked = f" No probabilities come from: {names}." if names else ""
            raise WeaknerError(Errors.WK775.format(path=path, asked=asked))


def _without_gold(docs: Iterable[Doc], counts: "Counter[str]") -> Iterator[Doc]:
    for doc in docs:
        gold = find_gold(doc)
        empty = all(token.is_space for token in doc)
        annotated = not empty and gold is not None and not gold.missing
        counts.update({"read": 1, "empty": int(empty), "annotated": int(annotated)})
        if not (empty or annotated):
            yield doc


def _annotated(sentences: Sequence[Sentence], models: Sequence[Model], nlp: Language) -> Iterator[Doc]:
    """Yield Docs without gold. The group "suggested" holds the entities of the first model; without a model, it
    holds probable candidates, or else the sources' entities (see `_majority`). Incomplete gold comes first."""
    docs = [_doc(sentence, nlp) for sentence in sentences]
    if models:
        predicted = models[0].predict(docs)
        found = [
            ([((ent.start, ent.end, ent.label_), ent._.weakner_score) for ent in doc.ents], doc_ids(doc))
            for doc in predicted
        ]
    else:
        found = [(_majority(sentence.groups), sentence.ids) for sentence in sentences]
    for sentence, doc, (entities, ids) in zip(sentences, docs, found, strict=True):
        doc.spans.clear()
        entities, ids = _beside_gold(sentence, entities), {**ids, **{e: sentence.ids.get(e, ()) for e in sentence.gold}}
        if sentence.wrong:
            set_group(doc, WRONG_GROUP, sentence.wrong)
        scores = [score for _, score in entities]
        known = any(score is not None for score in scores)
        set_group(doc, SUGGESTED_GROUP, [entity for entity, _ in entities], scores if known else None, ids)
        doc.cats = dict(sentence.cats)
        meta = {key: value for key, value in sentence.meta.items() if key != "why"}
        why = {"why": sentence.why} if sentence.why else {}
        set_meta(doc, {**meta, "score": round(sentence.score, 4), **why, "chosen_by": SUGGEST})
        yield doc


def _beside_gold(sentence: Sentence, entities: _Scored) -> _Scored:
    """Return the entities of incomplete gold, and those on other tokens that are not known to be wrong, with this label
    or any."""
    free = [
        ((start, end, label), score)
        for (start, end, label), score in entities
        if sentence.known.isdisjoint(range(start, end))
        and not {(start, end, label), (start, end, "")}.intersection(sentence.wrong)
    ]
    return sorted([*((entity, None) for entity in sentence.gold), *free], key=itemgetter(0))


def _doc(sentence: Sentence, nlp: Language) -> Doc:
    doc = Doc(nlp.vocab, words=list(sentence.words), spaces=list(sentence.spaces))
    set_id(doc, sentence.id)
    for name, entities in sentence.groups.items():
        set_group(doc, name, [entity for entity, _ in entities], [score for _, score in entities], sentence.ids)
    return doc


def _majority(groups: Mapping[str, _Scored]) -> _Scored:
    """Return probable candidates; if there are none, the sources' entities, the most proposed of overlapping ones."""
    probable: Dict[Entity, float] = {}
    for name, entities in groups.items():
        if name.startswith(PREDICTED_PREFIX):
            probable.update({entity: score for entity, score in entities if score is not None and score >= _LIKELY})
    votes: Counter[Entity] = Counter()
    for name, entities in groups.items():
        if name.startswith(WEAK_PREFIX):
            votes.update({entity for entity, _ in entities})
    ranked: Dict[Entity, float] = probable or {entity: float(n) for entity, n in votes.items()}
    return [(entity, probable.get(entity)) for entity in highest_ranked(ranked)]
