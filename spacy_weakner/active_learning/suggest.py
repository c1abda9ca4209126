"""Suggests sentences to annotate next: those on which sources disagree or a pipeline is uncertain, unlike each other,
and about all labels."""

from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Union

from spacy.language import Language
from spacy.tokens import Doc

from ..corpus.docbin import SUFFIX
from ..corpus.formats.writing import output_format, write_corpus
from ..corpus.gold import find_gold
from ..corpus.language import corpus_language, record_language
from ..errors import Errors, WeaknerError, check_range
from ..files import check_output, existing
from ..labeling.label import Label, LabelConfig
from ..labeling.sources import read_sources
from ..progress import Progress
from ..runtime.devices import on_device
from ..runtime.output import check_there
from ..runtime.stage import memory_zones
from .annotating import annotated
from .choosing import choose
from .models import Model
from .pool import Pool, Sentence
from .scoring import Scorer
from .terms import N_TERMS, TermReport, suggest_terms

# Lines of a file of which sentences are in memory at once.
BLOCK = 5000
N_SENTENCES = 50
# So many times as many sentences as are wanted are kept to choose from.
POOL = 50


class Suggestion(NamedTuple):
    """A sentence to annotate."""

    text: str
    id: Optional[str]
    score: float  # its uncertainty, for its length
    why: str  # the most uncertain span; empty if there is none
    labels: List[str]  # uncertain ones


class SuggestReport(NamedTuple):
    """Suggested sentences, in the order in which they were chosen, and numbers of others."""

    read: int
    empty: int  # without a visible token
    annotated: int  # with complete gold of their own, left out
    excluded: int  # in an excluded corpus, left out
    copies: int  # of others, left out
    near: int  # nearly the same as one that was chosen, left out
    certain: int  # suggested although nothing is uncertain: there were no others
    labels: Dict[str, int]  # suggested sentences in which each label is uncertain
    lost: Dict[str, int]  # what the format of the output cannot hold
    sentences: List[Suggestion]

    def to_json(self) -> Dict[str, Any]:
        """What JSON can hold."""
        return {**self._asdict(), "sentences": [sentence._asdict() for sentence in self.sentences]}


def suggest(
    input_path: Path,
    output_path: Path,
    *,
    terms: bool = False,
    n: Optional[int] = None,
    model: Sequence[str] = (),
    sources: Optional[Union[Path, str, Mapping[str, Any]]] = None,
    exclude: Sequence[Path] = (),
    to: Optional[str] = None,
    lang: Optional[str] = None,
    seed: int = 0,
    overwrite: bool = False,
    gpu_id: int = -1,
    progress: bool = False,
) -> Union[SuggestReport, TermReport]:
    """Write the sentences that are worth annotating next, with probable entities in the span group "weak:suggested",
    and why they were chosen in the row's "meta". They have no gold. With --terms, write terms to review instead: those
    that a pipeline finds and its lists lack.

    input_path (Path): A corpus in any format: a file or a folder. It may have span groups `weak:<source>`, and
        `pred:<component>` with probabilities.
    output_path (Path): The file to write.
    terms (bool): Write terms, as CSV; see `terms.suggest_terms`.
    n (Optional[int]): How many; None: 50 sentences, or 200 terms.
    model (Sequence[str]): Pipelines, folders or names, whose uncertainty counts, and the disagreement of several with
        each other or with sources. The first one annotates.
    sources (Optional[Union[Path, str, Mapping[str, Any]]]): Declarations of sources, as for `label`; they label the
        corpus on the way.
    exclude (Sequence[Path]): Corpora in any format, such as all gold, whose sentences are not suggested. Sentences are
        equal if they differ only in case and white space. With `terms`: gold, and phrases that stand there as
        non-entities are not suggested.
    to (Optional[str]): Format of the output; None: its ending tells.
    lang: See `convert`.
    seed (int): Decides between sentences with equal scores.
    overwrite (bool): Replace an output that exists.
    gpu_id (int): GPU for the predictions; -1 is the CPU.
    progress (bool): Show how far it has come.
    RETURNS (Union[SuggestReport, TermReport]): The sentences or terms, and why.
    RAISES (WeaknerError): For malformed, empty or missing input, for unusable settings, and if neither
        probabilities nor two sources tell what is uncertain.
    """
    if terms:
        if len(model) != 1 or sources is not None or to is not None:
            expected = "used with one model, and neither sources nor an output format"
            raise WeaknerError(Errors.WK005.format(setting="terms", value=True, expected=expected))
        return suggest_terms(
            input_path,
            output_path,
            model=model[0],
            n=N_TERMS if n is None else n,
            exclude=exclude,
            overwrite=overwrite,
            gpu_id=gpu_id,
            progress=progress,
        )
    n = N_SENTENCES if n is None else n
    check_range("n", n, 1, None)
    input_path, output_path = existing(Path(input_path)), Path(output_path)
    output_format(output_path, to)
    check_output([input_path, *map(Path, exclude)], [output_path])
    check_there(output_path, overwrite)
    language = corpus_language(input_path, lang)
    nlp = language.blank()
    config = LabelConfig(
        input_path=input_path,
        output_path=output_path,
        sources=[] if sources is None else read_sources(sources),
        language=language,
        sentences=True,
        shard_size=BLOCK,
        only_matched=False,
        exclude=[existing(Path(path)) for path in exclude],
        gpu_id=gpu_id,
    )
    with on_device(gpu_id):
        reader = _Reader(config, nlp, Label(config, {}, nlp))
        scorer = Scorer([Model(name) for name in model])
        pool = Pool(POOL * n, n, seed)
        for sentence in Progress(reader.read(scorer), desc="suggest", unit="sentence", enabled=progress):
            pool.add(sentence)
        choice = choose(pool.sentences(), n)
        if not choice.sentences:
            raise WeaknerError(
                Errors.WK776.format(path=input_path, read=reader.counts["read"], excluded=reader.excluded)
            )
        written = write_corpus(output_path, annotated(choice.sentences, scorer.models, nlp), to)
    if output_path.suffix == SUFFIX:
        record_language(output_path, language)
    found = [_suggestion(sentence) for sentence in choice.sentences]
    return SuggestReport(
        read=reader.counts["read"],
        empty=reader.counts["empty"],
        annotated=reader.counts["annotated"],
        excluded=reader.excluded,
        copies=pool.copies,
        near=choice.near,
        certain=sum(not sentence.why for sentence in found),
        labels=dict(sorted(Counter(label for sentence in found for label in sentence.labels).items())),
        lost=dict(written.lost),
        sentences=found,
    )


class _Reader:
    """Reads the corpus in blocks, each in memory zones of its own."""

    def __init__(self, config: LabelConfig, nlp: Language, stage: Label) -> None:
        self.config = config
        self.nlp = nlp
        self.stage = stage
        self.counts: Counter[str] = Counter()

    @property
    def excluded(self) -> int:
        return self.stage.stats.excluded

    def read(self, scorer: Scorer) -> Iterator[Sentence]:
        inputs = self.config.inputs(self.nlp)
        self.stage.open()
        try:
            for block in inputs:
                with memory_zones([*self.stage.zones(), *(model.nlp for model in scorer.models)]):
                    yield from scorer.score(self.stage(self._wanted(block.read(self.nlp.vocab)[0])))
                if scorer.no_signal:
                    raise WeaknerError(_no_signal(self.config.input_path, [m.name for m in scorer.models]))
        finally:
            self.stage.close()

    def _wanted(self, docs: Any) -> Iterator[Doc]:
        for doc in docs:
            gold = find_gold(doc)
            empty = all(token.is_space for token in doc)
            annotated = not empty and gold is not None and not gold.missing
            self.counts.update({"read": 1, "empty": int(empty), "annotated": int(annotated)})
            if not (empty or annotated):
                yield doc


def _suggestion(sentence: Sentence) -> Suggestion:
    return Suggestion(sentence.text, sentence.id, round(sentence.score, 4), sentence.why, sorted(sentence.by_label))


def _no_signal(path: Path, models: Sequence[str]) -> str:
    asked = f" {', '.join(models)} gives no probabilities." if models else ""
    return Errors.WK775.format(path=path, asked=asked)
