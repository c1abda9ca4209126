"""Makes `doc.ents` from the labels of weak sources: by a policy for conflicts, by votes, or by a label model."""

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple, cast

from spacy.tokens import Doc
from spacy.util import minibatch
from spacy.vocab import Vocab

from ..aggregation.fitting import labels_of, learn
from ..aggregation.methods import Method, combine_sources
from ..aggregation.observations import SourceAccuracy
from ..aggregation.policies import POLICIES, all_spans, candidates_of, contested, select_spans
from ..corpus import weak
from ..corpus.docbin import corpus_files, full_copies, read_docs, stream_docs
from ..corpus.entities import set_entities
from ..corpus.gold import keep_gold, missing_tokens
from ..errors import Errors, WeaknerError, check_choice, check_range
from ..files import existing
from ..runtime.executor import Executor, MakePart
from ..runtime.hashes import hash_file, hash_text
from ..runtime.lock import holding
from ..runtime.shards import Shards, ShardShare
from ..runtime.stage import Report, Stage
from ..ty import Entity

UNION = "union"
METHODS = (UNION, "majority", "weighted", "label_model")
UNMATCHED = ("missing", "outside", "confident")
MIN_PROBABILITY = 0.9
BATCH_SIZE = 256


@dataclass
class AggregateCounts(Report):
    """What is counted, beside the fields of `Report`.

    unlabeled (int): Docs that no source has labeled; all their tokens are missing.
    gold (int): Docs whose gold entities were moved to the span group "gold".
    candidates (int): Distinct candidates (the same span and label counts once).
    missing (int): Tokens without annotation.
    answers (Counter[str]): Docs that each source has labeled.
    nested (int): Spans written to the group "sc".
    """

    unlabeled: int = 0
    gold: int = 0
    candidates: int = 0
    entities: "Counter[str]" = field(default_factory=Counter)
    tokens: int = 0
    missing: int = 0
    answers: "Counter[str]" = field(default_factory=Counter)
    nested: int = 0


@dataclass
class AggregateReport(AggregateCounts):
    """`AggregateCounts`, and the results of the fit.

    source_accuracies (Tuple[SourceAccuracy, ...]): From gold or declarations (method "weighted", token by token), or
        from agreement (method "label_model"). Empty if all shards were already finished.
    fitted_docs (int): Docs from which the accuracies were estimated.
    iterations (int): Iterations of the label model.
    converged (bool): True if the label model converged.
    """

    source_accuracies: Tuple[SourceAccuracy, ...] = ()
    fitted_docs: int = 0
    iterations: int = 0
    converged: bool = True

    @property
    def unanswered(self) -> Tuple[str, ...]:
        """The sources to use, given or found in the fitted text, that have labeled no Doc."""
        return tuple(source for source, n in self.answers.items() if not n)


def aggregate_docs(
    docs: Iterable[Doc],
    method: str = UNION,
    *,
    gold: Optional[Iterable[Doc]] = None,
    fit_on: Optional[Iterable[Doc]] = None,
    **settings: Any,
) -> List[Doc]:
    """Write `doc.ents` of Docs in memory from their span groups `weak:<source>`, as `aggregate` does for a corpus.
    They are written to copies: the given Docs are not changed.

    docs (Iterable[Doc]): The Docs, perhaps of several vocabularies.
    method (str): See `aggregate`.
    gold (Optional[Iterable[Doc]]): For the method "weighted": Docs with gold and labels of the same sources.
    fit_on (Optional[Iterable[Doc]]): For the method "label_model": the labeled Docs that it is fitted on; None: `docs`.
    **settings (Any): `policy`, `nested`, `sources`, `unmatched`, `min_probability` and `soft`; see `aggregate`.
    RETURNS (List[Doc]): The copies.
    RAISES (WeaknerError): For Docs without weak labels, and invalid settings.
    """
    for setting, given, its_method in (("gold", gold, "weighted"), ("fit_on", fit_on, "label_model")):
        if given is not None and method != its_method:
            raise WeaknerError(Errors.WK331.format(setting=setting, where=f"with method = {its_method}", instead=""))
    made_with = _make_settings(method, **settings)
    sources = made_with["sources"]
    docs = list(full_copies(docs))
    if not docs:
        return []
    fitted = docs if fit_on is None else list(fit_on)
    place, labels = (Path("the list of Docs"), ()) if fitted is docs else (Path("fit_on"), labels_of(docs, sources))
    _check_sources(fitted, place, sources)

    def fit() -> Method:
        gold_place = None if gold is None else Path("the gold")
        return learn(fitted, method, sources, gold or (), place=place, gold_place=gold_place, labels=labels)

    stage = _make_stage(made_with, fit)
    stage.open()
    return list(stage(docs))


@holding("output_path")
def aggregate(
    input_path: Path,
    output_path: Path,
    *,
    method: str = UNION,
    policy: Optional[str] = None,
    nested: bool = False,
    sources: Optional[Sequence[str]] = None,
    unmatched: Optional[str] = None,
    min_probability: float = MIN_PROBABILITY,
    soft: Optional[bool] = None,
    gold: Optional[Path] = None,
    fit_on: Optional[Path] = None,
    if_answered: bool = False,
    workers: int = 1,
    ray: Optional[str] = None,
    progress: bool = False,
) -> AggregateReport:
    """Write `doc.ents` of a corpus from its span groups `weak:<source>`, which are not changed.

    Methods:

    - union: all spans of all sources; `policy` resolves conflicts (see `aggregation.policies.select_spans`);
    - majority: sources vote, token by token; ties go to the more trusted source (see `aggregation.votes`);
    - weighted: like majority, but votes are weighted by how often each source is right for that label: on gold, if
      given, else by its declared reliability;
    - label_model: estimates source accuracies from agreement, without gold (see `aggregation.label_model`).

    For the last three, a complete source votes "O" outside its spans (unless another source proposes a label that it
    never uses), other sources abstain there, and entities are selected from the proposed spans. Gold entities move to
    the span group "gold" and are not used. Tokens of a Doc that no source has labeled are missing.

    input_path (Path): A `.spacy` file or a folder of them.
    output_path (Path): A `.spacy` file, or a folder where every shard keeps its name.
    method (str): "union": all proposed spans; "majority": votes; "weighted": votes weighted by the accuracy of each
        source; "label_model": learns the accuracy of each source from agreement alone.
    policy (Optional[str]): For the method "union": "longest" (the default), "priority", "agreement" or "drop".
    nested (bool): For the method "union": also write all spans, including overlapping ones, to the span group "sc",
        from which `span_ner` and `mrc_ner` learn with `spans_key = "sc"`. A span has one label: that of the most
        trusted source. An existing group "sc" is gold, and moves to "gold".
    sources (Optional[Sequence[str]]): Sources to use, the most trusted first; None: all, by name.
    unmatched (Optional[str]): Annotation of tokens outside entities: "missing" (the default of "union"), "outside", or
        "confident" (the default of the other methods): "O" if its probability is at least `min_probability`, else
        missing. Under the policy "drop", the tokens of dropped candidates are always missing.
    min_probability (float): Minimum probability of "O" for `unmatched = "confident"`.
    soft (Optional[bool]): Write the method's distributions as soft labels; None: only for "label_model".
    gold (Optional[Path]): For the method "weighted": corpus with gold and labels of the same sources, from which the
        weights are estimated. (Do not evaluate the result on the same gold.)
    fit_on (Optional[Path]): Labeled text that "label_model" is fitted on, so that dev and test can be labeled without
        being fitted on; None: the input. Sources missing there are not used; sources found there need not have labeled
        the input: see `AggregateReport.answers`.
    if_answered (bool): If a source has no answers, write nothing and remove earlier output; the report then has 0 Docs.
    workers, ray: See `runtime.executor.Executor`. The method itself is fitted in this process.
    progress (bool): Show progress.
    RETURNS (AggregateReport): The counts, and the results of the fit.
    RAISES (WeaknerError): For missing input, input without weak labels, and invalid settings.
    """
    input_path = Path(input_path)
    executor = Executor(workers, ray)
    settings = _make_settings(method, policy, nested, sources, unmatched, min_probability, soft)
    for path in (gold, fit_on):  # some methods do not use them
        if path is not None:
            existing(Path(path))
    shards = Shards(Aggregation.name, input_path, output_path)
    if if_answered and not any(map(weak.weak_sources, read_docs(input_path, Vocab()))):
        shards.remove()
        return AggregateReport()
    gold = Path(gold) if gold is not None and method == "weighted" else None
    fit_on = Path(fit_on) if fit_on is not None and method == "label_model" else None
    place = fit_on or input_path
    _check_sources(read_docs(place, Vocab()), place, sources)
    if method != UNION:
        # The fit depends on the whole corpus, so a change to one shard affects all.
        settings.update(corpus=_hash_corpus(input_path))
        settings["gold"] = None if gold is None else _hash_corpus(gold)
        if fit_on is not None:
            settings["fit_on"] = _hash_corpus(fit_on)

    def fit() -> Method:
        labels = () if fit_on is None else labels_of(stream_docs(input_path), sources)
        golds = () if gold is None else stream_docs(gold)
        docs = stream_docs(place)
        return learn(docs, method, sources, golds, place=place, gold_place=gold, labels=labels)

    stage = _make_stage(settings, fit)
    counts = executor.run(shards, stage, partial(_hand_over, stage, input_path, Path(output_path)), progress=progress)
    report, fitted = AggregateReport(**vars(counts)), stage.method
    if if_answered and report.unanswered:
        shards.remove()
        report.docs = 0
    if fitted is not None:
        report.source_accuracies, report.fitted_docs = fitted.source_accuracies, fitted.docs
        report.iterations, report.converged = fitted.iterations, fitted.converged
    return report


def _make_part(
    settings: Dict[str, Any], input_path: Path, output_path: Path, method: Optional[Method], part: ShardShare
) -> None:
    stage = _make_stage(settings, lambda: cast(Method, method))
    Shards(stage.name, input_path, output_path, part=part).run(stage)


def _hand_over(stage: "Aggregation", input_path: Path, output_path: Path, folder: Path) -> MakePart:
    """Fit the method once for all processes that make shards."""
    stage.open()
    return partial(_make_part, stage.settings, input_path, output_path, stage.method)


def _hash_corpus(path: Path) -> str:
    # The contents of the files, regardless of their order and names.
    return hash_text("\n".join(sorted(hash_file(file_) for file_ in corpus_files(path))))


def _make_settings(
    method: str,
    policy: Optional[str] = None,
    nested: bool = False,
    sources: Optional[Sequence[str]] = None,
    unmatched: Optional[str] = None,
    min_probability: float = MIN_PROBABILITY,
    soft: Optional[bool] = None,
) -> Dict[str, Any]:
    """Check the settings of a method, and return those that it uses, with its defaults."""
    check_choice("method", method, METHODS)
    check_choice("policy", policy, POLICIES, optional=True)
    check_choice("unmatched", unmatched, UNMATCHED, optional=True)
    check_range("min_probability", min_probability, 0.0, 1.0)
    if sources is not None and (not sources or len(set(sources)) < len(sources)):
        expected = "at least one source, without duplicates"
        raise WeaknerError(Errors.WK005.format(setting="sources", value=tuple(sources), expected=expected))
    voting = METHODS[1:]
    belongs = {
        "policy": (UNION,),
        "nested": (UNION,),
        "soft": voting,
        "unmatched": METHODS if unmatched != "confident" else voting,
    }
    for setting, value in {"policy": policy, "soft": soft, "unmatched": unmatched, "nested": nested}.items():
        if value not in (None, False) and method not in belongs[setting]:
            where, instead = f"with method = {', '.join(belongs[setting])}", ", or choose another method"
            raise WeaknerError(Errors.WK331.format(setting=f"{setting} = {value}", where=where, instead=instead))
    used = {"method": method, "sources": None if sources is None else list(sources)}
    if method == UNION:
        more = {"nested": True} if nested else {}
        return {**used, **more, "policy": policy or "longest", "unmatched": unmatched or "missing"}
    soft = method == "label_model" if soft is None else soft
    return {**used, "unmatched": unmatched or "confident", "min_probability": min_probability, "soft": soft}


def _check_sources(docs: Iterable[Doc], path: Path, sources: Optional[Sequence[str]]) -> None:
    # First, so that no output is made for a corpus without labels; reading stops when all sources are found.
    wanted = set(sources or ())
    seen: Set[str] = set()
    for doc in docs:
        seen.update(weak.weak_sources(doc))
        if seen and wanted <= seen:
            return
    if not seen:
        raise WeaknerError(Errors.WK301.format(path=path))
    source = next(s for s in sources or () if s not in seen)
    raise WeaknerError(Errors.WK302.format(path=path, source=source, sources=", ".join(sorted(seen))))


class Aggregation(Stage[AggregateCounts]):
    """Base of both stages."""

    name = "aggregate"
    report = AggregateCounts

    def __init__(self, settings: Dict[str, Any]) -> None:
        super().__init__(settings, Vocab())
        self.method: Optional[Method] = None

    def _begin(self, doc: Doc, sources: Iterable[str]) -> None:
        """Move gold aside, remove overlapping spans of an earlier run, and count which sources have labeled a Doc."""
        moved = keep_gold(doc)
        if weak.has_nested(doc):
            weak.remove_group(doc, weak.SPANS_KEY)
        elif weak.SPANS_KEY in doc.spans and self.settings.get("nested"):
            weak.copy_group(doc, doc, weak.SPANS_KEY, weak.GOLD_GROUP)
            weak.remove_group(doc, weak.SPANS_KEY)
            moved = True
        self.stats.gold += moved
        for source in sources:
            self.stats.answers[source] += weak.weak_group(source) in doc.spans

    def _write(
        self,
        doc: Doc,
        entities: Sequence[Entity],
        known: Sequence[bool],
        sources: Sequence[str],
        soft: Optional[weak.TagDistributions] = None,
    ) -> None:
        set_entities(doc, entities, known)
        weak.add_ids(doc, sources)
        weak.set_weak(doc)
        # Estimates, completed tags and suspicions of earlier labels do not apply to the new ones.
        weak.set_confidence(doc, None)
        weak.set_tags(doc, None)
        weak.set_soft_labels(doc, soft)
        weak.remove_group(doc, weak.MATCHED_GROUP)
        weak.remove_group(doc, weak.SUSPECT_GROUP)
        self.stats.tokens += len(doc)
        self.stats.missing += len(missing_tokens(doc))
        self.stats.entities.update(label for _, _, label in entities)


class Proposals(Aggregation):
    """The stage that takes all spans of all sources; a policy resolves conflicts."""

    def __call__(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        policy, sources = self.settings["policy"], self.settings["sources"]
        for doc in docs:
            there = weak.weak_sources(doc)
            used = there if sources is None else [source for source in sources if source in there]
            self._begin(doc, used if sources is None else sources)
            candidates = [candidate for source in used for candidate in candidates_of(doc, source)]
            known = [bool(used) and self.settings["unmatched"] == "outside"] * len(doc)
            if policy == "drop":
                for c in contested(candidates):
                    known[c.start : c.end] = [False] * (c.end - c.start)
            self._write(doc, select_spans(candidates, policy, used), known, used)
            if self.settings.get("nested") and used:
                spans = all_spans(candidates)
                # The mark distinguishes it from gold in a later run.
                weak.set_group(doc, weak.SPANS_KEY, spans, ids=weak.source_ids(doc, used), attrs={"weak": True})
                self.stats.nested += len(spans)
            self.stats.unlabeled += not used
            self.stats.candidates += len({c.entity for c in candidates})
            yield doc


class Distributions(Aggregation):
    """The stage that selects the most probable entities by votes or a label model. `fit` returns the method."""

    def __init__(self, settings: Dict[str, Any], fit: Callable[[], Method]) -> None:
        super().__init__(settings)
        self.fit = fit

    def open(self) -> None:
        if self.method is None:
            self.method = self.fit()

    def __call__(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        assert self.method is not None
        method, names, scheme = self.method, self.method.names, self.method.scheme
        for batch in minibatch(docs, BATCH_SIZE):
            for doc in batch:
                self._begin(doc, names)
            for doc, combined in zip(batch, combine_sources(method, batch), strict=True):
                if combined is None:
                    self._write(doc, [], [False] * len(doc), names)
                    self.stats.unlabeled += 1
                else:
                    probabilities: Any = combined.probabilities
                    rows = probabilities.astype("float32")
                    soft = weak.TagDistributions(scheme.tags, scheme.name, rows) if self.settings["soft"] else None
                    known = [self.settings["unmatched"] == "outside"] * len(doc)
                    if self.settings["unmatched"] == "confident":
                        known = (probabilities[:, 0] >= self.settings["min_probability"]).tolist()
                    self._write(doc, combined.entities, known, names, soft)
                    self.stats.candidates += combined.candidates
                yield doc


def _make_stage(settings: Dict[str, Any], fit: Callable[[], Method]) -> Aggregation:
    return Proposals(settings) if settings["method"] == UNION else Distributions(settings, fit)
