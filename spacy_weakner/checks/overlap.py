"""Sentences that stand in two files: what was seen in training says nothing about new text."""

from typing import Dict, List, Sequence

from ..corpus.sentences import sentence_key
from ..evaluation.tables import shorten
from ..runs.groups import SHORT
from .corpora import CheckedCorpus, Sentence
from .findings import Findings, listed, percent, plural

SAME = 0.9  # share of common sentences above which one file is the other
_EXAMPLES = 5
_WIDTH = 40


def check_overlap(corpora: Sequence[CheckedCorpus], findings: Findings) -> None:
    """Compare gold, dev and test with each other.

    corpora (Sequence[CheckedCorpus]): Those that there are.
    findings (Findings): Takes what is wrong.
    """
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
    shown = listed(
        [f"'{shorten(a.text, _WIDTH)}' ({_line(corpus, a)}, {_line(other, b)})" for a, b in common], _EXAMPLES
    )
    if len(common) >= SAME * n:
        message = f"{corpus.name} is {other.name}: {count} are also in {other.name}: {shown}."
        if other.name == "gold":
            what = (
                "scores would be close to 100 and mean nothing" if corpus.name == "test" else "models would be chosen"
            )
            what += "" if corpus.name == "test" else " by how well they know their own training data"
            findings.error(
                corpus.where,
                f"{message[:-1]}; {what}.",
                f"Give other sentences for --{corpus.name}, annotated in the same way: split them off the gold.",
            )
        else:
            findings.warning(
                corpus.where, f"{message[:-1]}; scores will be too good.", "Give other sentences for one of the two."
            )
        return
    long = [pair for pair in common if len(pair[0].words) > SHORT]
    message = f"{count} of {corpus.name} are also in {other.name}: {shown}."
    if not long:
        findings.info(corpus.where, f"{message[:-1]}; all of them are short.")
        return
    findings.warning(
        corpus.where,
        message,
        f"Remove them from {other.name}, so that the scores on {corpus.name} are those of new text.",
    )


def _line(corpus: CheckedCorpus, sentence: Sentence) -> str:
    return f"{corpus.name}: {sentence.place.removeprefix(f'{corpus.path}, ')}"


def check_text(texts: Sequence[str], gold: CheckedCorpus, where: str, findings: Findings) -> None:
    """Look for gold sentences in the text without labels.

    texts (Sequence[str]): Some of the texts.
    gold (CheckedCorpus): The gold.
    where (str): The text's option and file.
    findings (Findings): Takes what is found.
    """
    keys: List[str] = [sentence_key(sentence.text) for sentence in gold.sentences]
    whole = set(map(sentence_key, texts))
    n = sum(key in whole for key in keys)
    if n:
        findings.info(
            where,
            f"{n:,} of {plural(len(keys), 'gold sentence')} also stand in the text.",
            "Where only the others are to be labelled: spacy weakner label ... --exclude GOLD",
        )
