"""Measures weak labels on gold before models are trained on them, and finds the worst terms."""

from collections import Counter
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc

from ...aggregation.observations import SourceSurvey
from ...aggregation.policies import POLICIES
from ...corpus import weak
from ...corpus.docbin import read_docs, stream_docs
from ...corpus.gold import Gold, find_gold
from ...corpus.language import corpus_language
from ...errors import Errors, WeaknerError, check_choice, check_range
from ...labeling.aggregate import METHODS, UNION
from ...scores import Counts, count_matches
from ..bootstrap import Bootstrap
from ..compare import MOST_SAMPLES, SAMPLES
from .collected import find_collected
from .combining import SourceLabels, combined_labels
from .label_warnings import find_warnings
from .matches import MatchedSentence, choose_matches, read_sentence
from .results import IntervalScores, TermAnalysis, WorstTerm

TOP = 20
# Number of examples of a wrong term, and of tokens around its match.
_EXAMPLES, _CONTEXT = 2, 8
SentencesBySource = Mapping[str, Sequence[Optional[MatchedSentence]]]


def analyze_terms(
    labeled: Path,
    *,
    method: str = UNION,
    policy: Optional[str] = None,
    sources: Optional[Sequence[str]] = None,
    fit_on: Optional[Path] = None,
    bootstrap: int = SAMPLES,
    top: int = TOP,
) -> TermAnalysis:
    """Measure weak labels on gold.

    labeled (Path): Gold corpus that sources have labeled: complete gold in `doc.ents` (or in the span group "gold", to
        which `aggregate` moves it), and span groups `weak:<source>`. Documents without gold are skipped.
    method, policy, sources: As for `aggregate`. The weights of "weighted" are estimated on other folds of this gold.
    fit_on (Optional[Path]): Labeled text that a label model is fitted on; None: this corpus, without its gold. Warnings
        name its sources that have no answers on gold, and lists that match far less often in it than in gold.
    bootstrap (int): Number of resampled test sets for intervals.
    top (int): Number of worst terms.
    RETURNS (TermAnalysis): The scores and the worst terms.
    RAISES (WeaknerError): If the corpus is empty, or has no gold or no weak labels, or a setting is invalid.
    """
    labeled = Path(labeled)
    check_choice("method", method, METHODS)
    check_range("bootstrap", bootstrap, 1, MOST_SAMPLES)
    check_range("top", top, 0, None)
    if policy is not None and method != UNION:
        where, instead = f"with method = {UNION}", ", or choose that method"
        raise WeaknerError(Errors.WK331.format(setting=f"policy = {policy}", where=where, instead=instead))
    policy = policy or "longest"
    check_choice("policy", policy, POLICIES)
    docs, golds = _read(labeled)
    names, absent = _find_sources(labeled, docs, sources, fit_on)
    # Only a label model is fitted on text; the other methods combine the sources that have answers on gold.
    fitted_on = fit_on if method == "label_model" else None
    used = names if fitted_on is None else [*names, *absent]
    trusted = sorted(used) if sources is None else [name for name in sources if name in used]
    labels = combined_labels(docs, trusted, method=method, policy=policy, fit_on=fitted_on)
    matches = {name: [read_sentence(doc, gold, name) for doc, gold in zip(docs, golds, strict=True)] for name in names}
    alone: Dict[str, SourceLabels] = {
        name: [s and [m.candidate.entity for m in choose_matches(s.matches, policy)] for s in sentences]
        for name, sentences in matches.items()
    }
    rows = _count(golds, labels, alone)
    keys, sums = list(rows), Bootstrap(numpy.stack(list(rows.values())), bootstrap)
    scored = {
        key: IntervalScores(Counts(*map(int, row.sum(0))), sums.interval(i), int(row.any(1).sum()))
        for i, (key, row) in enumerate(rows.items())
    }
    per_source = {name: scored["source", name]._replace(docs=_labeled(alone[name])) for name in names}
    per_label = {name: scores for (kind, name), scores in scored.items() if kind == "label"}
    per_source_label = {name: _count_labels(golds, alone[name]) for name in names}
    scores = scored["total", ""]._replace(docs=_labeled(labels))
    of_lists = {
        name: [sentence for sentence in matches[name] if sentence is not None]
        for name in names
        if any(weak.terms_attr(doc, name) for doc in docs if weak.weak_group(name) in doc.spans)
    }
    better = {name: sums.difference(keys.index(("source", name)), 0, "") for name in names} if len(names) > 1 else {}
    unanswered = {name: len(docs) - _labeled(alone[name]) for name in names} | {name: len(docs) for name in absent}
    analysis = TermAnalysis(
        method=method,
        policy=policy if method == UNION else None,
        docs=len(docs),
        unlabeled=len(docs) - scores.docs,
        tokens=sum(map(len, docs)),
        entities=sum(len(gold.entities) for gold in golds),
        scores=scores,
        per_label=per_label,
        per_source=per_source,
        per_source_label=per_source_label,
        unanswered=tuple(name for name, n in unanswered.items() if n == len(docs)),
        worst_terms=_worst_terms(docs, matches, policy, top),
        warnings=[],
    )
    warnings = find_warnings(
        analysis,
        better={name: d.f1 for name, d in better.items() if d.low > 0 and per_source[name].docs == scores.docs},
        unanswered={name: n for name, n in unanswered.items() if n},
        found={name: _share_found(sentences) for name, sentences in of_lists.items()},
        collected={} if fit_on is None else find_collected(labeled, fit_on, list(of_lists)),
    )
    return analysis._replace(warnings=warnings)


def _worst_terms(docs: Sequence[Doc], matches: SentencesBySource, policy: str, top: int) -> List[WorstTerm]:
    """Return the phrases with the largest difference of wrong and right matches; ties are sorted alphabetically."""
    right: Counter[Tuple[str, str, str]] = Counter()
    examples: Dict[Tuple[str, str, str], List[str]] = {}
    for source, sentences in matches.items():
        for doc, sentence in zip(docs, sentences, strict=True):
            for match in choose_matches(sentence.matches, policy) if sentence else ():
                start, end, label = match.candidate.entity
                key = (match.term, label, source)
                if sentence and match.candidate.entity in sentence.gold.entities:
                    right[key] += 1
                else:
                    examples.setdefault(key, []).append(doc[max(0, start - _CONTEXT) : end + _CONTEXT].text.strip())
    wrong = {key: len(found) for key, found in examples.items()}
    ranked = sorted(wrong, key=lambda key: (right[key] - wrong[key], key))[:top]
    return [WorstTerm(*key, wrong[key], right[key], tuple(examples[key][:_EXAMPLES])) for key in ranked]


def _share_found(sentences: Sequence[MatchedSentence]) -> float:
    """Return the percentage of gold entities that are among the matches of a source, including overlapping matches."""
    pairs = [(s.gold.entities, {m.candidate.entity for m in s.matches}) for s in sentences]
    right = sum(len(gold & found) for gold, found in pairs)
    return 100.0 * right / max(1, sum(len(gold) for gold, _ in pairs))


def _read(path: Path) -> Tuple[List[Doc], List[Gold]]:
    docs = list(read_docs(path, corpus_language(path).blank().vocab))
    if not docs:
        raise WeaknerError(Errors.WK101.format(path=path))
    pairs = [(doc, gold) for doc in docs if (gold := find_gold(doc)) is not None]
    if not pairs:
        cure = "Label a gold corpus with the same sources ('spacy weakner label GOLD OUTPUT ...'), and give the output"
        raise WeaknerError(Errors.WK407.format(path=path, what=f"gold in its {len(docs)} documents", cure=cure))
    if not any(gold.entities for _, gold in pairs):
        cure = "Check that its annotations were read: 'ents' in JSONL, the last column in CoNLL"
        what = f"entity in its {len(pairs)} documents with gold"
        raise WeaknerError(Errors.WK407.format(path=path, what=what, cure=cure))
    return [doc for doc, _ in pairs], [gold for _, gold in pairs]


def _find_sources(
    path: Path, docs: Sequence[Doc], wanted: Optional[Sequence[str]], fit_on: Optional[Path]
) -> Tuple[List[str], List[str]]:
    """Return the sources with answers on gold, the most trusted first, and those with answers on other text only."""
    here = {source for doc in docs for source in weak.weak_sources(doc)}
    elsewhere = SourceSurvey(wanted)
    for doc in () if fit_on is None else stream_docs(fit_on):
        elsewhere.add(doc)
    known = here | {*elsewhere.docs}
    if not known:
        raise WeaknerError(Errors.WK301.format(path=path))
    for source in wanted or ():
        if source not in known:
            raise WeaknerError(Errors.WK302.format(path=path, source=source, sources=", ".join(sorted(known))))
    order = sorted(known) if wanted is None else list(wanted)
    return [name for name in order if name in here], [name for name in order if name not in here]


def _labeled(labels: SourceLabels) -> int:
    return sum(entities is not None for entities in labels)


def _count(
    golds: Sequence[Gold], labels: SourceLabels, alone: Dict[str, SourceLabels]
) -> Dict[Tuple[str, str], "NDArray[numpy.int64]"]:
    """Count tp, fp and fn of every sentence: in total, per label and per source; 0 for unlabeled sentences."""
    all_labels = {label for gold in golds for _, _, label in gold.entities}
    all_labels |= {label for entities in labels for _, _, label in entities or ()}
    keys = [("total", ""), *(("label", x) for x in sorted(all_labels)), *(("source", name) for name in alone)]
    rows = {key: numpy.zeros((len(golds), 3), dtype="int64") for key in keys}
    for i, gold in enumerate(golds):
        given = {("source", name): answers[i] for name, answers in alone.items()}
        for key, entities in {("total", ""): labels[i], **given}.items():
            if entities is not None:
                rows[key][i], per_label = count_matches([(gold.entities, gold.scorable(entities))])
                for label, counts in per_label.items() if key[0] == "total" else ():
                    rows["label", label][i] = counts
    return rows


def _count_labels(golds: Sequence[Gold], labels: SourceLabels) -> Dict[str, Counts]:
    """Count matches per label, on the documents that are labeled."""
    pairs = zip(golds, labels, strict=True)
    scored = [(gold.entities, gold.scorable(entities)) for gold, entities in pairs if entities is not None]
    return dict(sorted(count_matches(scored)[1].items()))
