"""Makes `doc.ents` of what the weak sources say, under a declared policy for conflicts."""

from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..annotations import weak
from ..annotations.corpus import read_docs
from ..annotations.rows import set_entities
from ..errors import Errors, WeaknerError
from ..ty import Entity
from .shards import run_shards

POLICIES = ("longest", "priority", "majority", "drop")
UNMATCHED = ("missing", "outside")


class Candidate(NamedTuple):
    """A span that a weak source proposes.

    start (int): First token.
    end (int): Token behind the last.
    label (str): Entity label.
    source (str): Name of the source.
    characters (int): Length of its text.
    """

    start: int
    end: int
    label: str
    source: str
    characters: int = 0

    @property
    def entity(self) -> Entity:
        """RETURNS (Entity): The candidate without its source."""
        return (self.start, self.end, self.label)


class AggregateReport(NamedTuple):
    """What was aggregated.

    docs (int): Docs written.
    unlabelled (int): Docs that none of the sources has looked at; all their tokens are missing.
    gold (int): Docs whose gold entities were moved to the span group "gold".
    candidates (int): Different candidates (same span and label counted once).
    entities (Dict[str, int]): Entities per label.
    tokens (int): Tokens written.
    missing (int): Tokens about which nothing is known.
    skipped (int): Shards that were finished already.
    """

    docs: int
    unlabelled: int
    gold: int
    candidates: int
    entities: Dict[str, int]
    tokens: int
    missing: int
    skipped: int


def resolve(candidates: Sequence[Candidate], policy: str, priority: Sequence[str]) -> List[Entity]:
    """Choose entities without overlaps.

    Longer means: more characters, then more tokens, then further left, then a source earlier in `priority`,
    then the label that is first in the alphabet. Policies:

    - longest: the longest candidate first, then the longest that does not overlap, and so on;
    - priority: the same, but those of earlier sources go before all others;
    - majority: the same, but spans with a label that more sources agree on go before;
    - drop: candidates that overlap another span or label all go; nothing is chosen between them.

    candidates (Sequence[Candidate]): The candidates, in any order.
    policy (str): The policy.
    priority (Sequence[str]): All sources, the most trusted first.
    RETURNS (List[Entity]): Entities from left to right.
    """
    _check_choice("policy", policy, POLICIES)
    if policy == "drop":
        lost = {candidate.entity for candidate in contested(candidates)}
        return sorted({candidate.entity for candidate in candidates} - lost)
    rank = {source: i for i, source in enumerate(priority)}
    votes: Dict[Entity, Set[str]] = {}
    for c in candidates:
        votes.setdefault(c.entity, set()).add(c.source)

    def key(c: Candidate) -> Tuple[int, int, int, int, int, str]:
        first = {"longest": 0, "priority": rank[c.source], "majority": -len(votes[c.entity])}[policy]
        return (first, -c.characters, c.start - c.end, c.start, rank[c.source], c.label)

    chosen: List[Entity] = []
    taken: Set[int] = set()
    for c in sorted(candidates, key=key):
        tokens = range(c.start, c.end)
        if taken.isdisjoint(tokens):
            chosen.append(c.entity)
            taken.update(tokens)
    return sorted(chosen)


def contested(candidates: Sequence[Candidate]) -> List[Candidate]:
    """Candidates that overlap a candidate with another span or another label.

    candidates (Sequence[Candidate]): The candidates, in any order.
    RETURNS (List[Candidate]): Those in conflict, in the order given.
    """
    entities = {c.entity for c in candidates}
    users: Counter[int] = Counter(i for start, end, _ in entities for i in range(start, end))
    return [c for c in candidates if any(users[i] > 1 for i in range(c.start, c.end))]


def aggregate(
    input_path: Path,
    output_path: Path,
    *,
    policy: str = "longest",
    sources: Optional[Sequence[str]] = None,
    unmatched: str = "missing",
    progress: bool = False,
) -> AggregateReport:
    """Write `doc.ents` of a corpus from its span groups `weak:<source>`, which stay as they are.

    Gold entities move to the span group "gold" first. All tokens of a Doc that none of the sources has
    looked at are missing.

    input_path (Path): A `.spacy` file or a folder of them.
    output_path (Path): A `.spacy` file, or a folder where every shard keeps its name.
    policy (str): What to do with conflicts, see `resolve`.
    sources (Optional[Sequence[str]]): Sources to use, the most trusted first; None: all, by name.
    unmatched (str): What tokens outside of entities become: "missing" or "outside". Under the policy "drop"
        the tokens of dropped candidates are missing in any case.
    progress (bool): Show a bar, if the output is a terminal.
    RETURNS (AggregateReport): What was aggregated.
    RAISES (WeaknerError): For missing input, input without weak labels, and unusable settings.
    """
    _check_choice("policy", policy, POLICIES)
    _check_choice("unmatched", unmatched, UNMATCHED)
    _check_sources(Path(input_path), sources)
    counts: Counter[str] = Counter()

    def transform(docs: Iterable[Doc]) -> Iterator[Doc]:
        for doc in docs:
            aggregate_doc(doc, policy, sources, unmatched, counts)
            yield doc

    settings: Dict[str, Any] = {"policy": policy, "unmatched": unmatched}
    settings["sources"] = None if sources is None else list(sources)
    report = run_shards(
        input_path, output_path, "aggregate", transform, settings, Vocab(), progress=progress, counts=counts
    )
    entities = {key[len("label:") :]: n for key, n in sorted(report.counts.items()) if key.startswith("label:")}
    return AggregateReport(
        docs=report.docs_out,
        unlabelled=report.counts["unlabelled"],
        gold=report.counts["gold"],
        candidates=report.counts["candidates"],
        entities=entities,
        tokens=report.counts["tokens"],
        missing=report.counts["missing"],
        skipped=report.skipped,
    )


def aggregate_doc(
    doc: Doc, policy: str, sources: Optional[Sequence[str]], unmatched: str, counts: "Counter[str]"
) -> None:
    """Write the `doc.ents` of one Doc.

    doc (Doc): The Doc.
    policy, sources, unmatched: See `aggregate`.
    counts (Counter[str]): Where to count.
    """
    if not weak.is_weak(doc) and doc.has_annotation("ENT_IOB"):
        weak.set_group(doc, weak.GOLD_GROUP, weak.doc_entities(doc))
        counts["gold"] += 1
    there = weak.weak_sources(doc)
    used = there if sources is None else [source for source in sources if source in there]
    candidates = [candidate for source in used for candidate in _candidates(doc, source)]
    entities = resolve(candidates, policy, used)
    known = [bool(used) and unmatched == "outside"] * len(doc)
    if policy == "drop":
        for c in contested(candidates):
            known[c.start : c.end] = [False] * (c.end - c.start)
    set_entities(doc, entities, known)
    weak.set_weak(doc)
    # What was estimated or completed for earlier labels says nothing about these.
    weak.set_confidence(doc, None)
    weak.set_tags(doc, None)
    weak.set_soft_labels(doc, None)
    counts["unlabelled"] += not used
    counts["candidates"] += len({c.entity for c in candidates})
    counts["tokens"] += len(doc)
    counts["missing"] += sum(token.ent_iob == 0 for token in doc)
    counts.update(f"label:{label}" for _, _, label in entities)


def _candidates(doc: Doc, source: str) -> Iterator[Candidate]:
    for span in doc.spans[weak.weak_group(source)]:
        yield Candidate(span.start, span.end, span.label_, source, span.end_char - span.start_char)


def _check_sources(path: Path, sources: Optional[Sequence[str]]) -> None:
    # Beforehand, so that no output is made of a corpus without labels; reading stops as soon as all is seen.
    if sources is not None and not sources:
        raise WeaknerError(Errors.WK005.format(setting="sources", value="()", expected="at least one source"))
    wanted = set(sources or ())
    seen: Set[str] = set()
    for doc in read_docs(path, Vocab()):
        seen.update(weak.weak_sources(doc))
        if seen and wanted <= seen:
            return
    if not seen:
        raise WeaknerError(Errors.WK301.format(path=path))
    source = next(s for s in sources or () if s not in seen)
    raise WeaknerError(Errors.WK302.format(path=path, source=source, sources=", ".join(sorted(seen))))


def _check_choice(setting: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise WeaknerError(Errors.WK005.format(setting=setting, value=value, expected=" or ".join(choices)))
