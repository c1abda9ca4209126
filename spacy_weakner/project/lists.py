"""Term lists as pipelines of their own: what every trained pipeline has to beat."""

from pathlib import Path
from typing import Callable, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Union

from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..corpus.docbin import bare_copy, copy_with_groups, read_docs, write_docs
from ..corpus.weak import copy_group, weak_group
from ..files import atomic_path, existing
from ..gazetteer_ruler.entities import annotate_entities
from ..gazetteer_ruler.terms import Term, make_term_list
from ..labeling.label import TERMS_SOURCE
from ..labeling.sources import TermSource, read_sources
from ..pipelines import blank_pipeline, load_pipeline

RULER = "gazetteer_ruler"


class TermList(NamedTuple):
    """A term list as a pipeline.

    source (str): Name of the source.
    title (str): What it is called among the candidates.
    pipeline (Path): The pipeline.
    """

    source: str
    title: str
    pipeline: Path


def term_sources(terms: Optional[Path], sources: Optional[Union[Path, str]]) -> List[TermSource]:
    """The sources that are term lists: what a pipeline can carry with it.

    terms (Optional[Path]): A term list.
    sources (Optional[Union[Path, str]]): Or a file that declares sources.
    RETURNS (List[TermSource]): Those that are term lists.
    RAISES (WeaknerError): If something is malformed.
    """
    if sources is not None:
        return [source for source in read_sources(sources) if isinstance(source, TermSource)]
    return [] if terms is None else [TermSource(name=TERMS_SOURCE, path=str(existing(Path(terms))))]


def make_lists(lists: List[TermSource], folder: Path, *, lang: str, tokenizer: Optional[str]) -> List[TermList]:
    """Make a pipeline of each term list: its matches are the entities, the longest first.

    lists (List[TermSource]): The term lists.
    folder (Path): Where they go.
    lang, tokenizer: See `convert`.
    RETURNS (List[TermList]): One pipeline per list.
    """
    made = []
    for n, source in enumerate(lists, start=1):
        name = "term list" if len(lists) == 1 else f"term list '{source.name}'"
        nlp = blank_pipeline(lang, tokenizer)
        settings = {**source.ruler_settings(), "reliability": source.reliability, "annotate_ents": True}
        ruler = nlp.add_pipe(RULER, config=settings)
        rows = _renamed(make_term_list(Path(source.path), label=source.term_label), source.labels)
        ruler.initialize(lambda: [], nlp=nlp, terms=rows)  # type: ignore[attr-defined]
        # The same scores as those of trained pipelines are asked for.
        nlp.config["training"]["score_weights"] = {"ents_f": 1.0}
        path = folder / f"list-{n}"  # a name may hold anything
        with atomic_path(path) as temporary:
            nlp.to_disk(temporary)
        made.append(TermList(source.name, name, path))
    return made


def listed(each: TermList, docs: Iterable[Doc]) -> Iterator[Doc]:
    """What a list's pipeline finds, taken from what the list says of the Docs.

    each (TermList): The list.
    docs (Iterable[Doc]): Docs with a group for it.
    YIELDS (Doc): Copies, with its matches as entities, the longest first.
    """
    for doc in docs:
        copy = copy_with_groups(doc, [weak_group(each.source)])
        annotate_entities(copy, list(copy.spans.get(weak_group(each.source), ())), "longest", True)
        yield copy


def label_with(lists: List[TermList], corpus: Path, output: Path) -> Path:
    """Write what term lists say of a corpus beside its gold.

    lists (List[TermList]): The lists.
    corpus (Path): A `.spacy` file.
    output (Path): Another one.
    RETURNS (Path): The output.
    """
    docs = list(read_docs(corpus, Vocab()))
    for each in lists:
        nlp = load_pipeline(each.pipeline)
        for doc, said in zip(docs, nlp.pipe([bare_copy(doc, nlp.vocab) for doc in docs]), strict=True):
            copy_group(said, doc, weak_group(each.source))
    write_docs(output, docs)
    return output


def _renamed(read: Callable[[], Iterator[Term]], labels: Optional[Mapping[str, str]]) -> Callable[[], Iterator[Term]]:
    """Terms with the labels that their source gives them; those that it does not name are left out."""
    if labels is None:
        return read
    return lambda: (term._replace(label=labels[term.label]) for term in read() if term.label in labels)
