"""Whether gold, dev and test hold what training and scoring need."""

import shlex
from typing import List

from .corpora import CheckedCorpus, Sentence, examples
from .findings import Findings, plural

FEW = 50  # gold sentences below which figures are rough
_FEW_TEST = 100  # entities


def check_annotated(corpus: CheckedCorpus, findings: Findings) -> None:
    """Check one annotated corpus.

    corpus (CheckedCorpus): Gold, dev or test.
    findings (Findings): Takes what is wrong.
    """
    if not corpus.sentences:
        if not corpus.broken:
            findings.error(corpus.where, f"{corpus.path} is empty: there is no sentence in it.", _form(corpus))
        return
    unknown = [s for s in corpus.sentences if not s.is_annotated]
    weak = [s for s in corpus.sentences if s.weak]
    partly = [s for s in corpus.sentences if s.is_annotated and s.missing and not s.weak]
    if len(unknown) == len(corpus.sentences):
        if corpus.broken:  # what is wrong with the others has been said
            return
        findings.error(
            corpus.where,
            f"None of its {plural(len(unknown), 'sentence')} is annotated ('ents' is missing or null): nothing is "
            "known about them, which is not the same as that there are no entities.",
            _form(corpus),
        )
        return
    if corpus.name == "gold":
        _check_gold(corpus, unknown, weak, findings)
    else:
        _check_evaluated(corpus, unknown, weak, partly, findings)
    if not any(s.entities for s in corpus.sentences):
        use = "no label can be learned" if corpus.name == "gold" else "every score would be 0"
        findings.error(
            corpus.where,
            f"There is no entity in its {plural(len(corpus.sentences), 'sentence')} ('ents' is [] everywhere): {use}.",
            f"Annotate entities, or check that the right file was given for --{corpus.name}.",
        )


def _check_gold(corpus: CheckedCorpus, unknown: List[Sentence], weak: List[Sentence], findings: Findings) -> None:
    if unknown:
        findings.warning(
            corpus.where,
            f"{plural(len(unknown), 'sentence')} of {len(corpus.sentences):,} without annotation ('ents' missing or "
            f"null), from which nothing is learned: {examples([s.place for s in unknown])}.",
            'Write "ents": [] where there are no entities, or move such rows to --text.',
        )
    if weak:
        findings.warning(
            corpus.where,
            f"{plural(len(weak), 'sentence')} of {len(corpus.sentences):,} marked as weak labels: "
            f"{examples([s.place for s in weak])}.",
            "Only what a person has annotated is gold; other labels are a source (file = ...) in --sources.",
        )
    with_entities = sum(bool(s.entities) for s in corpus.sentences)
    if 0 < with_entities < FEW:
        findings.warning(
            corpus.where,
            f"Only {plural(with_entities, 'sentence')} with entities: everything that is chosen or measured with so "
            "few is rough (confidences, which method is best, scores of a dev set split off it).",
            f"Annotate more: from about {FEW} on this becomes better, 100 to 200 are good.",
        )


def _check_evaluated(
    corpus: CheckedCorpus, unknown: List[Sentence], weak: List[Sentence], partly: List[Sentence], findings: Findings
) -> None:
    for found, what in (
        (unknown, "without annotation ('ents' missing or null)"),
        (weak, "with weak labels only"),
        (partly, "in which nothing is known about some tokens ('missing')"),
    ):
        if found:
            findings.error(
                corpus.where,
                f"{plural(len(found), 'sentence')} of {len(corpus.sentences):,} {what}, but {corpus.name} must be "
                f"annotated completely to be scored on: {examples([s.place for s in found])}.",
                "Annotate them, or remove these rows.",
            )
    n = sum(len(s.entities) for s in corpus.sentences)
    if 0 < n < _FEW_TEST:
        findings.info(
            corpus.where, f"Only {plural(n, 'entity', 'entities')}: differences of a few points of F1 will be chance."
        )


def _form(corpus: CheckedCorpus) -> str:
    if corpus.groups:
        key = shlex.quote(max(corpus.groups, key=corpus.groups.__getitem__))
        return f"--spans-key {key} reads the spans of that group as gold."
    return (
        f'Give --{corpus.name} rows {{"text": ..., "ents": [[start, end, "LABEL"]]}} with character offsets (or '
        '"tokens" and token offsets), and "ents": [] where there is no entity.'
    )
