"""Lets a weak source label a corpus: a term list, or any pipeline that finds entities."""

from collections import Counter
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, NamedTuple, Optional, Sequence, Set, Union

from spacy.language import Language
from spacy.tokens import Doc

from ..annotations.corpus import bare_copy
from ..annotations.weak import doc_entities, group_entities, set_group, weak_group
from ..errors import Errors, WeaknerError
from ..files import check_output, existing
from .formats import read_corpus
from .hashes import hash_path
from .pipelines import blank_pipeline, load_pipeline
from .shards import run_shards

Labeller = Callable[[Iterable[Doc]], Iterable[Doc]]
TERMS_SOURCE = "gazetteer"
# Not LEMMA: terms are read by a blank pipeline, which gives no lemmas.
ATTRS = ("ORTH", "LOWER", "NORM")


class LabelReport(NamedTuple):
    """What was labelled.

    docs (int): Docs written.
    excluded (int): Docs left out because an excluded corpus holds the same sentence.
    unmatched (int): Docs without a match; they are written too, unless `only_matched` is set.
    spans (Dict[str, int]): Spans per label.
    skipped (int): Shards that were finished already.
    source (str): Name of the source.
    """

    docs: int
    excluded: int
    unmatched: int
    spans: Dict[str, int]
    skipped: int
    source: str


def label(
    input_path: Path,
    output_path: Path,
    *,
    terms: Optional[Path] = None,
    pipeline: Optional[Union[Path, str]] = None,
    source: Optional[str] = None,
    spans_key: Optional[str] = None,
    attr: str = "LOWER",
    acronym_length: int = 5,
    stop: Sequence[str] = (),
    min_length: int = 1,
    term_label: Optional[str] = None,
    lang: str = "en",
    tokenizer: Optional[str] = None,
    exclude: Sequence[Path] = (),
    only_matched: bool = False,
    progress: bool = False,
) -> LabelReport:
    """Write the span group `weak:<source>` to every Doc of a corpus. Other groups and `doc.ents` stay as
    they are.

    input_path (Path): A `.spacy` file or a folder of them.
    output_path (Path): A `.spacy` file, or a folder where every shard keeps its name.
    terms (Optional[Path]): A term list, looked up by a `gazetteer_ruler`.
    pipeline (Optional[Union[Path, str]]): Or a pipeline: its folder or name. It gets the bare tokens of each
        Doc.
    source (Optional[str]): Name of the source; None: "gazetteer" for terms, and for a pipeline the last part of its
        path or name.
    spans_key (Optional[str]): Take this span group of the pipeline; None: its `doc.ents`.
    attr (str): Token attribute that terms are compared by: "ORTH", "LOWER" or "NORM".
    acronym_length (int): Terms up to this length with inner upper case must match in exact case.
    stop (Sequence[str]): Terms that are not to be matched, in any case.
    min_length (int): Terms with fewer characters are not matched.
    term_label (Optional[str]): Label of terms that come without one.
    lang (str): Language of the text; for terms.
    tokenizer (Optional[str]): Name of the registered tokenizer that splits the terms; should be that of the
        corpus.
    exclude (Sequence[Path]): Corpora in any format, such as dev and test, whose sentences are to be left out.
        Sentences are equal if they differ only in case and white space.
    only_matched (bool): Leave out Docs without a match.
    progress (bool): Show a bar, if the output is a terminal.
    RETURNS (LabelReport): What was labelled.
    RAISES (WeaknerError): For malformed, empty or missing input, for unusable settings, and if a pipeline writes span
        groups but not what was to be taken.
    """
    if (terms is None) == (pipeline is None):
        raise WeaknerError(Errors.WK303)
    source = _source_name(pipeline) if source is None else source
    for setting, value, is_fine, expected in (
        ("source", source, bool(source), "a name"),
        ("spans_key", spans_key, spans_key is None or (bool(spans_key) and pipeline is not None), "none for terms"),
        ("attr", attr, attr in ATTRS, f"one of {', '.join(ATTRS)} (for LEMMA, run a pipeline with a gazetteer_ruler)"),
    ):
        if not is_fine:
            raise WeaknerError(Errors.WK005.format(setting=setting, value=repr(value), expected=expected))
    check_output(map(Path, exclude), [Path(output_path)])
    settings: Dict[str, Any] = {"source": source, "only_matched": only_matched}
    counts: Counter[str] = Counter()
    settings["exclude"] = [hash_path(existing(Path(path))) for path in exclude]
    if terms is not None:
        settings["terms"] = hash_path(existing(Path(terms)))
        ruler = {"attr": attr, "acronym_length": acronym_length, "stop": list(stop), "min_length": min_length}
        settings.update(ruler, term_label=term_label, lang=lang, tokenizer=tokenizer)
        nlp = blank_pipeline(lang, tokenizer)
        labeller = make_term_labeller(nlp, Path(terms), {"source": source, **ruler}, term_label)
    elif pipeline is not None:
        nlp = load_pipeline(pipeline)
        settings.update(pipeline=_pipeline_key(pipeline, nlp), spans_key=spans_key)
        labeller = make_pipeline_labeller(nlp, source, spans_key, counts)
    known = sentence_keys(exclude, nlp)
    group = weak_group(source)

    def keep(docs: Iterable[Doc]) -> Iterator[Doc]:
        for doc in docs:
            if known and sentence_key(doc.text) in known:
                counts["excluded"] += 1
            else:
                yield doc

    def transform(docs: Iterable[Doc]) -> Iterator[Doc]:
        for doc in labeller(keep(docs)):
            found = group_entities(doc, group)
            counts["unmatched"] += not found
            if found or not only_matched:
                counts.update(f"label:{label_}" for _, _, label_ in found)
                yield doc

    report = run_shards(
        input_path,
        output_path,
        "label",
        transform,
        settings,
        nlp.vocab,
        memory_zone=nlp.memory_zone,
        progress=progress,
        counts=counts,
    )
    spans = {key[len("label:") :]: n for key, n in sorted(report.counts.items()) if key.startswith("label:")}
    groups = sorted(key[len("group:") :] for key in report.counts if key.startswith("group:"))
    if groups and not spans:
        what = "entities" if spans_key is None else f"spans in the group '{spans_key}'"
        raise WeaknerError(Errors.WK306.format(pipeline=pipeline, what=what, groups=", ".join(groups)))
    return LabelReport(
        docs=report.docs_out,
        excluded=report.counts["excluded"],
        unmatched=report.counts["unmatched"],
        spans=spans,
        skipped=report.skipped,
        source=source,
    )


def make_term_labeller(nlp: Language, terms: Path, config: Dict[str, Any], term_label: Optional[str]) -> Labeller:
    """Create a function that looks terms up. The component is added to the pipeline.

    nlp (Language): The pipeline; its tokenizer splits the terms.
    terms (Path): The term list.
    config (Dict[str, Any]): Settings of the `gazetteer_ruler`.
    term_label (Optional[str]): Label of terms that come without one.
    RETURNS (Labeller): Writes the span group to Docs.
    """
    from ..gazetteer_ruler.terms import make_term_list

    ruler: Any = nlp.add_pipe("gazetteer_ruler", config=config)
    ruler.initialize(lambda: [], nlp=nlp, terms=make_term_list(terms, label=term_label))

    def run(docs: Iterable[Doc]) -> Iterator[Doc]:
        for doc in docs:
            yield ruler(doc)

    return run


def make_pipeline_labeller(nlp: Language, source: str, spans_key: Optional[str], counts: "Counter[str]") -> Labeller:
    """Create a function that writes a pipeline's entities as a weak source.

    nlp (Language): The pipeline.
    source (str): Name of the source.
    spans_key (Optional[str]): Take this span group; None: `doc.ents`.
    counts (Counter[str]): Where to count, as "group:<key>", the Docs in which other span groups hold something.
    RETURNS (Labeller): Writes the span group to Docs.
    """

    def run(docs: Iterable[Doc]) -> Iterator[Doc]:
        # A bare copy, since components respect entities that are there, so that gold would come back as a
        # prediction.
        pairs = ((bare_copy(doc), doc) for doc in docs)
        for predicted, doc in nlp.pipe(pairs, as_tuples=True):
            found = doc_entities(predicted) if spans_key is None else group_entities(predicted, spans_key)
            set_group(doc, weak_group(source), found)
            counts.update(f"group:{key}" for key, group in predicted.spans.items() if len(group) and key != spans_key)
            yield doc

    return run


def sentence_key(text: str) -> str:
    """What makes sentences equal: the text without case and white space."""
    return "".join(text.casefold().split())


def sentence_keys(paths: Iterable[Path], nlp: Language) -> Set[str]:
    """Keys of all sentences of some corpora. Of Docs with several sentences, both the whole and the parts
    count.

    paths (Iterable[Path]): The corpora, in any format.
    nlp (Language): Reads them.
    RETURNS (Set[str]): The keys.
    """
    keys = set()
    for path in paths:
        for doc in read_corpus(Path(path), nlp, misaligned="drop"):
            keys.add(sentence_key(doc.text))
            if doc.has_annotation("SENT_START"):
                keys.update(sentence_key(sentence.text) for sentence in doc.sents)
    return keys


def _source_name(pipeline: Optional[Union[Path, str]]) -> str:
    return TERMS_SOURCE if pipeline is None else Path(pipeline).resolve().name


def _pipeline_key(pipeline: Union[Path, str], nlp: Language) -> str:
    path = Path(pipeline)
    return hash_path(path) if path.exists() else f"{nlp.meta['lang']}_{nlp.meta['name']} {nlp.meta['version']}"
