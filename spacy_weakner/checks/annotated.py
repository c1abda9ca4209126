"""Gold, dev and test: do they hold what training and scoring need, and are they different sentences."""

import shlex
from typing import Dict, List, Sequence

from ..corpus.sentences import sentence_key
from ..errors import shorten
from ..runs.groups import SHORT
from .corpora import CheckedCorpus, Sentence, examples
from .findings import Findings, listed, percent, plural

FEW = 50  # gold sentences below which figures are rough
_FEW_TEST = 100  # entities
_SAME = 0.9  # share of common sentences above which one file is the other
_EXAMPLES = 5
_WIDTH = 40


def check_annotated(corpus: CheckedCorpus, findings: Findings) -> None:
    if not corpus.sentences:
        if not corpus.broken:
            findings.error(corpus.where, f"{corpus.path} is empty: there is no sentence in it.", _form(corpus))
        return
    unknown = [s for s in corpus.sentences if not s.is_annotated]
    weak = [s for s in corpus.sentences if s.weak]
    partly = [s for s in corpus.sentences if s.is_annotated and s.missing and not s.weak]
    if len(unknown) == len(corpus.sentences):
        if not corpus.broken:  # else other findings tell why
            message = f"None of its {plural(len(unknown), 'sentence')} is annotated ('ents' is missing or null)."
            hint = 'Annotated sentences without entities have "ents": [].'
            findings.error(corpus.where, f"{message} {hint}", _form(corpus))
        return
    if corpus.name == "gold":
        _check_gold(corpus, unknown, weak, findings)
    else:
        _check_evaluated(corpus, unknown, weak, partly, findings)
    if not any(s.entities for s in corpus.sentences):
        use = "no label can be learned" if corpus.name == "gold" else "every score would be 0"
        sentences = plural(len(corpus.sentences), "sentence")
        message = f"There is no entity in its {sentences} ('ents' is [] everywhere): {use}."
        cure = f"Annotate entities, or check that the right file was given for --{corpus.name}."
        findings.error(corpus.where, message, cure)


def _check_gold(corpus: CheckedCorpus, unknown: List[Sentence], weak: List[Sentence], findings: Findings) -> None:
    if unknown:
        message = f"{_some(unknown, corpus)} without annotation ('ents' missing or null), from which nothing is learned"
        cure = 'Write "ents": [] where there are no entities, or move such rows to --text.'
        findings.warning(corpus.where, f"{message}: {examples([s.place for s in unknown])}.", cure)
    if weak:
        message = f"{_some(weak, corpus)} marked as weak labels: {examples([s.place for s in weak])}."
        cure = "Only what a person has annotated is gold; other labels are a source (file = ...) in --sources."
        findings.warning(corpus.where, message, cure)
    with_entities = sum(bool(s.entities) for s in corpus.sentences)
    if 0 < with_entities < FEW:
        message = (
            f"Only {plural(with_entities, 'sentence')} with entities: whatever is chosen or measured on so few is "
        )
        message += "imprecise (confidences, which method is best, scores of a dev set split off it)."
        findings.warning(corpus.where, message, "Annotate more: 100 to 200 are good.")


def _check_evaluated(
    corpus: CheckedCorpus, unknown: List[Sentence], weak: List[Sentence], partly: List[Sentence], findings: Findings
) -> None:
    for found, what in (
        (unknown, "without annotation ('ents' missing or null)"),
        (weak, "with weak labels only"),
        (partly, "in which nothing is known about some tokens ('missing')"),
    ):
        if found:
            message = f"{_some(found, corpus)} {what}, but {corpus.name} must be annotated completely to be scored on"
            places = examples([s.place for s in found])
            findings.error(corpus.where, f"{message}: {places}.", "Annotate them, or remove these rows.")
    n = sum(len(s.entities) for s in corpus.sentences)
    if 0 < n < _FEW_TEST:
        message = f"Only {plural(n, 'entity', 'entities')}: differences of a few points of F1 may be chance."
        findings.info(corpus.where, message)


def _some(found: List[Sentence], corpus: CheckedCorpus) -> str:
    return f"{plural(len(found), 'sentence')} of {len(corpus.sentences):,}"


def _form(corpus: CheckedCorpus) -> str:
    if corpus.groups:
        key = shlex.quote(max(corpus.groups, key=corpus.groups.__getitem__))
        return f"--spans-key {key} reads the spans of that group as gold."
    rows = f'Give --{corpus.name} rows {{"text": ..., "ents": [[start, end, "LABEL"]]}} with character offsets'
    return f'{rows} (or "tokens" and token offsets), and "ents": [] where there is no entity.'


def check_overlap(corpora: Sequence[CheckedCorpus], findings: Findings) -> None:
    """Compare gold, dev and test with each other."""
    by_name = {corpus.name: corpus for corpus in corpora if corpus.sentences}
    for name, other in (("test", "gold"), ("dev", "gold"), ("test", "dev")):
        if name in by_name and other in by_name:
            _compare(by_name[name], by_name[other], findings)


def _compare(corpus: CheckedCorpus, other: CheckedCorpus, findings: Findings) -> None:
    there: Dict[str, Sentence] = {}
    for sentence in other.sentences:
        there.setdefault(sentence_key(sentence.text), sentence)
    common = [(s, there[key]) for s in corpus.sentences if (key := sentence_key(s.text)) in there]
    if not common:
        return
    n = len(corpus.sentences)
    count = f"{len(common):,} of {plural(n, 'sentence')} ({percent(len(common), n)})"
    pairs = [f"'{shorten(a.text, _WIDTH)}' ({_line(corpus, a)}, {_line(other, b)})" for a, b in common]
    shown = listed(pairs, _EXAMPLES)
    if len(common) >= _SAME * n:
        message = f"{corpus.name} is {other.name}: {count} are also in {other.name}: {shown}"
        if other.name == "gold":
            test = "scores would be close to 100 and mean nothing"
            what = test if corpus.name == "test" else "models would be chosen on their own training data"
            cure = f"Give other sentences for --{corpus.name}, annotated in the same way: split them off the gold."
            findings.error(corpus.where, f"{message}; {what}.", cure)
        else:
            cure = "Give other sentences for one of the two."
            findings.warning(corpus.where, f"{message}; scores will be too good.", cure)
        return
    message = f"{count} of {corpus.name} are also in {other.name}: {shown}"
    if any(len(sentence.words) > SHORT for sentence, _ in common):
        cure = f"Remove them from {other.name}, so that the scores on {corpus.name} are those of new text."
        findings.warning(corpus.where, f"{message}.", cure)
    else:
        findings.info(corpus.where, f"{message}; all of them are short.")


def _line(corpus: CheckedCorpus, sentence: Sentence) -> str:
    return f"{corpus.name}: {sentence.place.removeprefix(f'{corpus.path}, ')}"


def check_text(texts: Sequence[str], gold: Sequence[Sentence], where: str, findings: Findings) -> None:
    """Look for gold sentences in the text without labels."""
    keys: List[str] = [sentence_key(sentence.text) for sentence in gold]
    whole = set(map(sentence_key, texts))
    n = sum(key in whole for key in keys)
    if n:
        message = f"{n:,} of {plural(len(keys), 'gold sentence')} also stand in the text."
        cure = "Where only the others are to be labeled: spacy weakner label ... --exclude GOLD"
        findings.info(where, message, cure)
