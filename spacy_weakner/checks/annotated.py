"""Checks of gold, dev and test: whether they hold what training and scoring need, and share no sentences."""

import shlex
from typing import Callable, Dict, List, Sequence

from ..corpus.sentences import SHORT, inner_starts, sentence_key
from ..errors import shorten
from .corpora import CheckedCorpus, CheckedSentence
from .findings import Findings, listed, percent, plural
from .language import stop_words
from .tokens import natural_text

FEW = 50  # gold sentences below which scores are imprecise
_FEW_TEST = 100  # entities
_SAME = 0.9  # share of common sentences above which two files count as the same
_EXAMPLES = 5
_WIDTH = 40
_NO_EDGES = {",", ";", ":"}
_PARTLY = "with tokens whose labels are unknown ('missing')"


def check_annotated(corpus: CheckedCorpus, lang: str, findings: Findings) -> None:
    where, sentences = corpus.where, corpus.sentences
    unknown = [s for s in sentences if not s.is_annotated]
    if len(unknown) == len(sentences):
        if not corpus.broken:  # otherwise other findings give the reason
            message = f"None of its {plural(len(unknown), 'sentence')} is annotated ('ents' is missing or null). "
            message += 'Annotated sentences without entities have "ents": [].'
            empty = f"{corpus.path} is empty: it contains no sentences."
            findings.error(where, message if sentences else empty, _form(corpus))
        return

    def report(add: Callable[[str, str, str], None], found: Sequence[CheckedSentence], what: str, cure: str) -> None:
        if found:
            count = f"{plural(len(found), 'sentence')} of {len(sentences):,}"
            add(where, f"{count} {what}: {listed([*dict.fromkeys(s.place for s in found)])}.", cure)

    weak = [s for s in sentences if s.weak]
    partly = [s for s in sentences if s.is_annotated and s.missing and not s.weak]
    n, n_entities = sum(bool(s.entities) for s in sentences), sum(len(s.entities) for s in sentences)
    if corpus.name == "gold":
        what = "without annotation ('ents' missing or null), which nothing can be learned from"
        cure = 'Write "ents": [] where there are no entities, or move such rows to --text.'
        report(findings.warning, unknown, what, cure)
        cure = "Gold is annotated by people. Declare other labels as a source (file = ...) in --sources."
        report(findings.warning, weak, "marked as weak labels", cure)
        cure = "Annotate them completely, or give --dev: without it, a project leaves them out to compare on gold."
        report(findings.warning, partly, _PARTLY, cure)
        if 0 < n < FEW:
            message = f"Only {plural(n, 'sentence')} with entities: choices and scores based on so few are imprecise "
            message += "(confidences, the choice of the method, scores on a dev set split off the gold)."
            findings.warning(where, message, "Annotate more: 100 to 200 are good.")
    else:
        must = f", but {corpus.name} must be annotated completely for scoring"
        # A project leaves them out.
        is_left = len(unknown) + len(partly) < len(sentences)
        for add, found, what in (
            (findings.warning, unknown, "without annotation ('ents' missing or null)"),
            (findings.error, weak, "with weak labels only"),
            (findings.warning if is_left else findings.error, partly, _PARTLY),
        ):
            report(add, found, what + must, "Annotate them, or remove these rows.")
        if 0 < n_entities < _FEW_TEST:
            entities = plural(n_entities, "entity", "entities")
            findings.info(where, f"Only {entities}: differences of a few points of F1 may be due to chance.")
    divided = [words for s in sentences for a, b, _ in s.entities if inner_starts(words := s.words[a:b])]
    if divided:
        shown = listed([shorten(natural_text(words), _WIDTH) for words in dict.fromkeys(divided)], _EXAMPLES)
        message = f"{plural(len(divided), 'entity', 'entities')} with the end of a sentence inside: {shown}."
        cure = "" if corpus.name == "gold" else "In new text, they are found if the gold or a term list has them, too."
        findings.info(where, message, cure)
    edges = [s.words[a:b] for s in sentences for a, b, _ in s.entities if {s.words[a], s.words[b - 1]} & _NO_EDGES]
    if edges:
        shown = listed([shorten(natural_text(words), _WIDTH) for words in dict.fromkeys(edges)], _EXAMPLES)
        message = f"{plural(len(edges), 'entity', 'entities')} with a comma, semicolon or colon at an end: {shown}."
        findings.warning(where, message, "Leave it out of these spans: an entity is right only if its bounds are.")
    several: Dict[str, List[CheckedSentence]] = {}
    for s in (s for s in sentences if not s.missing):
        several.setdefault(sentence_key(s.text), []).append(s)
    unlike = [
        f"'{shorten(same[0].text, _WIDTH)}' ({', '.join(dict.fromkeys(s.place for s in same))})"
        for same in several.values()
        if len(same[0].words) > SHORT and len({(s.words, frozenset(s.entities)) for s in same}) > 1
    ]
    if unlike:
        message = f"{plural(len(unlike), 'sentence')} that occur several times with different entities: "
        cure = "Correct them, or keep one of each: no model is right on both."
        findings.warning(where, f"{message}{listed(unlike, _EXAMPLES)}.", cure)
    stop = stop_words(lang)
    doubtful = [
        f"'{shorten(natural_text(words), _WIDTH)}' ({s.place})"
        for s in sentences
        for words in (s.words[a:b] for a, b, _ in s.entities)
        if any(words[i].casefold() in stop for i in inner_starts(words))
    ]
    if doubtful:
        count = plural(len(doubtful), "entity", "entities")
        message = f"{count} with a stop word after the end of a sentence: {listed(doubtful, _EXAMPLES)}."
        cure = "End them before the next sentence. Names belong into a term list: without one, texts are split there."
        findings.warning(where, message, cure)
    if not n:
        use = "no label can be learned" if corpus.name == "gold" else "every score would be 0"
        message = f"There is no entity in its {plural(len(sentences), 'sentence')} ('ents' is [] everywhere): {use}."
        cure = f"Annotate entities, or check that the right file was given for --{corpus.name}."
        findings.error(where, message, cure)


def _form(corpus: CheckedCorpus) -> str:
    if corpus.groups:
        key = shlex.quote(max(corpus.groups, key=corpus.groups.__getitem__))
        return f"--spans-key {key} reads the spans of this group as gold."
    rows = f'Give --{corpus.name} rows {{"text": ..., "ents": [[start, end, "LABEL"]]}} with character offsets'
    return f'{rows} (or "tokens" and token offsets), and "ents": [] where there is no entity.'


def check_overlap(corpora: Sequence[CheckedCorpus], findings: Findings) -> None:
    """Compare gold, dev and test with each other."""
    by_name = {corpus.name: corpus for corpus in corpora if corpus.sentences}
    for name, other in (("test", "gold"), ("dev", "gold"), ("test", "dev")):
        if name in by_name and other in by_name:
            _compare(by_name[name], by_name[other], findings)


def _compare(corpus: CheckedCorpus, other: CheckedCorpus, findings: Findings) -> None:
    there: Dict[str, CheckedSentence] = {}
    for sentence in other.sentences:
        there.setdefault(sentence_key(sentence.text), sentence)
    common = [(s, there[key]) for s in corpus.sentences if (key := sentence_key(s.text)) in there]
    if not common:
        return
    n, where = len(corpus.sentences), corpus.where
    count = f"{len(common):,} of {plural(n, 'sentence')} ({percent(len(common), n)})"
    pairs = [f"'{shorten(a.text, _WIDTH)}' ({corpus.name}: {a.place}, {other.name}: {b.place})" for a, b in common]
    shown = f"also in {other.name}: {listed(pairs, _EXAMPLES)}"
    is_same = len(common) >= _SAME * n
    same = f"{corpus.name} {'is the same as' if is_same else 'contains'} {other.name}: {count} are {shown}"
    is_gold = other.name == "gold"
    keys = {sentence_key(sentence.text) for sentence in corpus.sentences}
    is_whole = all(len(s.words) > SHORT and sentence_key(s.text) in keys for s in other.sentences)
    if not is_same and not (is_gold and is_whole):
        message = f"{count} of {corpus.name} are {shown}"
        if all(len(sentence.words) <= SHORT for sentence, _ in common):
            findings.info(where, f"{message}; all of them are short.")
        else:
            removed = "'prepare' leaves them out of the gold" if is_gold else f"Remove them from {other.name}"
            cure = f"{removed}, so that the scores on {corpus.name} are scores on new text."
            findings.warning(where, f"{message}.", cure)
    elif is_gold:
        test = "scores would be close to 100 and meaningless"
        what = test if corpus.name == "test" else "models would be chosen on their own training data"
        cure = f"Give other sentences for --{corpus.name}, annotated in the same way: split some off the gold."
        findings.error(where, f"{same}; {what}.", cure)
    else:
        findings.warning(where, f"{same}; scores will be too good.", "Give other sentences for one of the two.")


def check_text(
    texts: Sequence[str], exact: bool, gold: Sequence[CheckedSentence], where: str, findings: Findings
) -> None:
    """Check for gold sentences in the unlabeled text. `exact` is True if these are all of its texts."""
    keys: List[str] = [sentence_key(sentence.text) for sentence in gold]
    rows: Dict[str, str] = {}  # the key of each row of several sentences
    for sentence, key in zip(gold, keys, strict=True):
        rows[sentence.place] = rows.get(sentence.place, "") + key
    whole = set(map(sentence_key, texts))
    n = sum(key in whole or rows[sentence.place] in whole for sentence, key in zip(gold, keys, strict=True))
    if exact and whole <= {*keys, *rows.values()}:
        message = f"All {plural(len(texts), 'text')} also occur in the gold: no other text is left to learn from."
        findings.error(where, message, "Give other texts, or leave out --text.")
    elif n:
        message = f"{n:,} of {plural(len(keys), 'gold sentence')} also occur in the text."
        cure = "To label only the other texts: spacy weakner label ... --exclude GOLD"
        findings.info(where, message, cure)
