"""Makes the corpora of a project: gold, dev and test, given or split off, and text."""

import json
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..conversion.convert import convert
from ..corpus.conll import COLUMNS
from ..corpus.docbin import corpus_files, read_docs, receipt_path, write_docs
from ..corpus.formats.reading import has_span_groups
from ..corpus.language import corpus_language, record_language
from ..errors import Errors, WeaknerError
from ..files import check_output, existing, parse_json, write_text
from ..runtime.lock import holding
from ..scores import Strict
from .layout import Corpora, has_docs, reading
from .splitting import MIN_FOR_TEST, MIN_TO_SPLIT, split_gold

DEV, CROSS_VALIDATION, NOTHING = "dev", "cross-validation", "nothing"
_DROP, _ERROR = "drop", "error"
_CHECK = "Check that its annotations stand under 'ents' or 'spans'"


class Preparation(Strict):
    """Sentences and tokens of a project."""

    gold: int
    dev: int
    test: int
    text: int
    gold_words: int
    text_words: int
    chosen_by: str  # what candidates are compared on: "dev", "cross-validation" of the gold, or "nothing"
    notes: List[str]  # what was split off, and what was not


@holding("output")
def prepare(
    output: Path,
    *,
    text: Optional[Path] = None,
    gold: Optional[Path] = None,
    dev: Optional[Path] = None,
    test: Optional[Path] = None,
    lang: Optional[str] = None,
    tokenizer: Optional[str] = None,
    misaligned: str = _ERROR,
    columns: Tuple[int, int] = COLUMNS,
    spans_key: Optional[str] = None,
    seed: int = 0,
    progress: bool = False,
) -> Preparation:
    """Convert the given files, and split dev and test off the gold where they are not given.

    With fewer than 2,000 gold sentences there is no dev, and candidates are compared by cross-validation of the gold;
    with fewer than 400 there is no test.

    output (Path): Folder of the corpora; those of an earlier run are replaced.
    text (Optional[Path]): Text without labels.
    gold, dev, test (Optional[Path]): Complete annotations.
    lang, tokenizer, misaligned, columns: See `convert`.
    spans_key (Optional[str]): Span group of gold, dev and test that is read as the gold, if they are `.spacy` files.
    seed (int): Seed of the split.
    progress (bool): Show bars, if the output is a terminal.
    RETURNS (Preparation): Sizes of the corpora.
    RAISES (WeaknerError): If there is neither gold nor text, there is dev or test but no gold to train on nor text, a
        file is malformed, or gold, dev or test is given and has no entity.
    """
    if gold is None and text is None:
        raise WeaknerError(Errors.WK680.format(where=""))
    corpora = Corpora(Path(output))
    inputs = [Path(path) for path in (gold, text, dev, test) if path is not None]
    language = corpus_language(inputs[0], lang, tokenizer)
    options: Dict[str, Any] = {**language._asdict(), "columns": columns, "overwrite": True, "progress": progress}
    check_output(inputs, [corpora.gold, corpora.dev, corpora.test, corpora.text, corpora.splits])
    _forget(corpora, text is None)
    counts = {"gold": 0, "dev": 0, "test": 0, "text": 0, "gold_words": 0, "text_words": 0}
    notes: List[str] = []
    for name, given, path in (("dev", dev, corpora.dev), ("test", test, corpora.test), ("text", text, corpora.text)):
        if given is not None:
            how = _DROP if name == "text" else misaligned
            key = None if name == "text" else _key_of(given, spans_key)
            report = convert(given, path, misaligned=how, spans_key=key, **options)
            counts[name] = report.docs
            notes += [f"{name}: {remark}" for remark in report.remarks]
            if name == "text":
                counts["text_words"] = report.tokens
    if gold is not None:
        whole = corpora.folder / "gold-whole.spacy"
        report = convert(gold, whole, **options, misaligned=misaligned, spans_key=_key_of(gold, spans_key))
        notes += [f"gold: {remark}" for remark in report.remarks]
        docs = list(read_docs(whole, language.blank().vocab))
        whole.unlink()
        record_language(whole, None)
        counts.update(_split(corpora, _annotated(docs, gold, notes), dev is None, test is None, seed, notes))
    for path in filter(Path.exists, (corpora.gold, corpora.dev, corpora.test)):
        record_language(path, language)
    _check_given(corpora, {"dev": dev, "test": test})
    chosen_by = DEV if counts["dev"] else CROSS_VALIDATION if counts["gold"] else NOTHING
    result = Preparation(**counts, chosen_by=chosen_by, notes=notes)
    write_text(corpora.splits, json.dumps(result.model_dump(), indent=2) + "\n")
    return result


def _key_of(path: Path, spans_key: Optional[str]) -> Optional[str]:
    return spans_key if spans_key is not None and has_span_groups(path) else None


def _forget(corpora: Corpora, no_text: bool) -> None:
    """Remove the corpora of an earlier run, and what was made from them."""
    corpora.splits.unlink(missing_ok=True)
    for path in (corpora.gold, corpora.dev, corpora.test, corpora.gold_labeled, corpora.labels):
        path.unlink(missing_ok=True)
    receipt_path(corpora.gold_labeled).unlink(missing_ok=True)
    # Corpora only: a folder of that name may hold other files.
    if no_text and has_docs(corpora.text):
        for path in corpus_files(corpora.text):
            path.unlink()


def read_preparation(corpora: Corpora) -> Preparation:
    """Read what `prepare` has written."""
    path = existing(corpora.splits, "'spacy weakner prepare' makes it")
    with reading(path, "prepare"):
        return Preparation.model_validate(parse_json(path.read_bytes()))


def _annotated(docs: List[Doc], path: Path, notes: List[str]) -> List[Doc]:
    kept = [doc for doc in docs if len(doc) and doc.has_annotation("ENT_IOB")]
    if not any(doc.ents for doc in kept):
        raise WeaknerError(Errors.WK407.format(path=path, what=f"entity in its {len(docs)} sentences", cure=_CHECK))
    if len(kept) < len(docs):
        notes.append(f"{len(docs) - len(kept)} sentences of the gold without any annotation were left out")
    return kept


def _check_given(corpora: Corpora, given: Dict[str, Optional[Path]]) -> None:
    # Without entities all candidates are equal.
    for name, path, use in (("dev", corpora.dev, "chosen"), ("test", corpora.test, "measured")):
        source = given[name]
        if source is not None:
            entities = [len(doc.ents) for doc in read_docs(path, Vocab())]
            if not any(entities):
                what = f"entity in its {len(entities)} sentences, so nothing can be {use} by it"
                cure = f"{_CHECK}, give other sentences for --{name}, or leave it out"
                raise WeaknerError(Errors.WK407.format(path=source, what=what, cure=cure))


def _split(
    corpora: Corpora, docs: List[Doc], no_dev: bool, no_test: bool, seed: int, notes: List[str]
) -> Dict[str, int]:
    want_dev = no_dev and len(docs) >= MIN_TO_SPLIT
    want_test = no_test and len(docs) >= MIN_FOR_TEST
    split = split_gold(docs, dev=want_dev, test=want_test, seed=seed)
    write_docs(corpora.gold, split.gold)
    counts = {"gold": len(split.gold), "gold_words": sum(map(len, split.gold))}
    for name, wanted, path, own in (
        ("dev", want_dev, corpora.dev, split.dev),
        ("test", want_test, corpora.test, split.test),
    ):
        if name in split.reasons:
            instead = ": candidates are compared by cross-validation of the gold" if name == "dev" else ""
            notes.append(f"{name} was not given, and cannot be split off: {split.reasons[name]}{instead}")
        elif wanted:
            write_docs(path, own)
            counts[name] = len(own)
            by = f"by document ({split.documents} of them)" if split.documents else "sentence by sentence"
            notes.append(f"{name} was not given: {len(own)} sentences were split off the gold, {by}, seed {seed}")
            if split.dropped[name]:
                notes[-1] += f"; {split.dropped[name]} more were left out as copies of sentences in other parts"
    if no_dev and not want_dev:
        notes.append(
            f"dev was not given, and {len(docs)} gold sentences are too few to split some off (from {MIN_TO_SPLIT}): "
            "candidates are compared by cross-validation of the gold"
        )
    if no_test and not want_test:
        notes.append(
            f"test was not given, and {len(docs)} gold sentences are too few to split some off (from {MIN_FOR_TEST}): "
            "there are no scores but those of the selection"
        )
    return counts
