"""Encodes the sentences of a project once with a frozen Transformer, for all heads that are trained on it."""

import shutil
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence, cast

import numpy
import spacy
from spacy.language import Language
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import load_config
from spacy.vocab import Vocab
from thinc.api import Model

from ..code_version import code_version
from ..corpus.docbin import bare_copy, read_docs
from ..corpus.language import CorpusLanguage
from ..corpus.parts import Parts, split_examples
from ..corpus.sentences import SENTENCIZER, is_divided_name
from ..encoders.frozen import FROZEN_ENCODER, FrozenStatistics, statistics_of
from ..encoders.stored_vectors import ENDS, VectorStore, build_stored_vectors, reusing_vectors, write_vectors
from ..encoders.transformer_encoder import readers_in
from ..files import atomic_path
from ..pipelines import RULE, load_pipeline
from ..runtime.hashes import hash_model, hash_path, hash_settings
from ..runtime.receipts import Receipt
from ..training.augmenting import CaseCopies
from ..training.readers import make_example
from ..ty import BoolMask

# The component with the encoder, and the head of a training.
ENCODER, HEAD = "tok2vec", "crf_ner"
STORED = "spacy_weakner.StoredVectors.v1"
_LISTENER = "spacy.Tok2VecListener.v1"
_RECEIPT = "encoded.json"
# Number of sentences whose vectors are standardized.
_SAMPLE = 500


class Encoded:
    """The folder of a project's encoder and of the vectors that it has computed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pipeline = folder / "pipeline"  # with the component `ENCODER` alone
        self.vectors = folder / "vectors"

    @property
    def settings(self) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): The config of the encoder of a training, which reads the stored vectors."""
        return {"@architectures": STORED, "path": str(self.vectors)}


def encoder_of(model: Dict[str, Any]) -> Optional[Encoded]:
    """Return the encoder whose stored vectors a head reads, from the config of its model; None for other heads."""
    settings = model.get("tok2vec", {})
    return Encoded(Path(settings["path"]).parent) if settings.get("@architectures") == STORED else None


def encoder_config(config: Path) -> Dict[str, Any]:
    """Return the settings of the encoder of a head, from the config of its training."""
    settings: Dict[str, Any] = load_config(config, interpolate=True)["components"][HEAD]["model"]["tok2vec"]
    return settings


def listening(model: Dict[str, Any], encoded: Encoded) -> Dict[str, Any]:
    """Return the config of a model that listens to the encoder, instead of reading stored vectors."""
    width = VectorStore(encoded.vectors).width
    return {**model, "tok2vec": {"@architectures": _LISTENER, "width": width, "upstream": ENCODER}}


def encode(
    encoded: Encoded,
    config: Path,
    corpora: Sequence[Path],
    sample: Sequence[Path],
    cases: CaseCopies,
    language: CorpusLanguage,
    *,
    trained: Optional[Path] = None,
    progress: bool = False,
) -> None:
    """Write the encoder and the vectors of all sentences, unless this has been done before.

    encoded (Encoded): The folder.
    config (Path): Config of a head whose encoder is a frozen Transformer.
    corpora (Sequence[Path]): Corpora of the sentences.
    sample (Sequence[Path]): Corpora from which the statistics of the vectors are taken.
    cases (CaseCopies): Makes the copies in other case, which are encoded too.
    language (CorpusLanguage): Language of the corpora.
    trained (Optional[Path]): A pipeline whose head has trained this Transformer: the last layer of it comes first, and
        then the original.
    progress (bool): Show progress.
    """
    settings = encoder_config(config)
    inputs = [*corpora, *sample, *([] if trained is None else [trained])]
    made_from = {
        "inputs": {str(path): hash_path(path) for path in inputs},
        "encoder": hash_model(settings["name"] if "name" in settings else settings["source"]),
        "settings": hash_settings(
            {"encoder": settings, "cases": cases.shares, "language": [*language], "code": code_version()}
        ),
    }
    receipt = Receipt.read(encoded.folder / _RECEIPT)
    is_there = all(path.exists() for path in (encoded.vectors / ENDS, encoded.pipeline / "config.cfg"))
    if receipt is not None and not receipt.differences(made_from) and is_there:
        return
    shutil.rmtree(encoded.folder, ignore_errors=True)
    encoded.vectors.mkdir(parents=True)
    nlp = spacy.blank("xx")
    model = settings if trained is None else _beside(settings, trained, encoded.folder / "trained")
    encoder: Any = nlp.add_pipe(ENCODER, config={"model": model})
    encoder.model.initialize(X=_first(sample, nlp.vocab))
    shutil.rmtree(encoded.folder / "trained", ignore_errors=True)  # it is part of the model now
    nlp.to_disk(encoded.pipeline)
    # With the weights as they are stored, in half precision.
    stored: Any = load_pipeline(encoded.pipeline).get_pipe(ENCODER)
    known = [] if trained is None else _head(load_pipeline(trained)).divided_names
    sentences = _sentences(corpora, cases, language, known)
    write_vectors(encoded.vectors, stored.model, sentences, progress=progress)
    # Without it, an unfinished folder is written again.
    Receipt(made_from).write(encoded.folder / _RECEIPT)


def _beside(settings: Dict[str, Any], trained: Path, folder: Path) -> Dict[str, Any]:
    """Write the Transformer of a trained pipeline to a folder; return the config of an encoder with its last layer, and
    the original beside it."""
    nlp = load_pipeline(trained)
    (reader,) = readers_in(_head(nlp).model)
    reader.save(folder)
    # Read as it was trained.
    theirs = encoder_config(trained / "config.cfg")
    same: Dict[str, Any] = {key: theirs[key] for key in ("pooling", "max_length", "stride") if key in theirs}
    last = {**settings, **same, "name": str(folder), "layer": reader.transformer.config.num_hidden_layers}
    return {"@layers": "concatenate.v1", "*": {"trained": last, "original": settings}}


def _first(corpora: Sequence[Path], vocab: Vocab) -> List[Doc]:
    each = _SAMPLE // len(corpora)
    return [doc for path in corpora for doc, _ in zip(read_docs(path, vocab), range(each), strict=False)]


def _sentences(
    corpora: Sequence[Path], cases: CaseCopies, language: CorpusLanguage, known: Sequence[str]
) -> Iterator[Doc]:
    """Yield the parts of all Docs and of their copies that heads read: in training, in calibration, where no sentence
    ends inside an entity, and in prediction, where none ends inside a match of a list or a `known` name, or a name that
    the head has seen: without a fold of the gold, a head has seen others."""
    nlp = language.blank()
    docs = [each for path in corpora for doc in read_docs(path, nlp.vocab) for each in (doc, *cases.copies(doc))]
    language.add_sentences(nlp, [*known, *(ent.text for doc in docs for ent in doc.ents if is_divided_name(ent))])
    if language.sentences != RULE:
        # Names make no difference.
        for doc in docs:
            split = nlp(bare_copy(doc))
            yield from split_examples([make_example(doc), Example(split, doc)])[0].docs
            yield from Parts.of([doc, split]).docs
        return
    usual, joining = Sentencizer(), cast(Sentencizer, nlp.get_pipe(SENTENCIZER))
    for doc in docs:
        yield from split_examples([make_example(doc)])[0].docs
        for starts in _split_ways(*(numpy.asarray(each.predict([doc])[0]) for each in (usual, joining))):
            split = bare_copy(doc)
            usual.set_annotations([split], [starts])
            yield from split_examples([Example(split, doc)])[0].docs
            yield from Parts.of([split]).docs


def _split_ways(starts: BoolMask, certain: BoolMask) -> Iterator[BoolMask]:
    """Yield sentence starts, and copies of them that join some neighboring sentences: in one of the copies, there is
    each sequence of sentences of which none but the first has a `certain` start."""
    yield starts
    bounds = [*numpy.flatnonzero(starts), len(starts)]
    for low, high in combinations(range(len(bounds)), 2):
        inner = bounds[low + 1 : high]
        if inner and not certain[inner].any():
            joined = starts.copy()
            joined[inner] = False
            yield joined


def read_stored(trained: Path, encoded: Encoded, output: Path) -> None:
    """Write a copy of the pipeline that trained the encoder, whose head reads the stored vectors. Its scores are the
    same: the standardization of the vectors is undone by its weights.

    trained (Path): The pipeline.
    encoded (Encoded): The encoder, see `encode`.
    output (Path): Folder of the copy.
    """
    nlp = load_pipeline(trained)
    model = _head(nlp).model
    stored = build_stored_vectors(encoded.vectors)
    stored.initialize()
    encoder: Any = load_pipeline(encoded.pipeline).get_pipe(ENCODER)
    length = load_config(encoded.pipeline / "config.cfg")["components"][ENCODER]["model"]["*"]["trained"]["length"]
    _undo_standardization(model.get_ref("head"), statistics_of(encoder.model.layers[0], length), stored.get_dim("nO"))
    model.replace_node(model.get_ref("tok2vec"), stored)
    with atomic_path(output) as folder:
        nlp.to_disk(folder)
        config = load_config(folder / "config.cfg")
        config["components"][HEAD]["model"]["tok2vec"] = encoded.settings
        config.to_disk(folder / "config.cfg")


def _undo_standardization(head: Model, statistics: FrozenStatistics, width: int) -> None:
    """Change W h + b to W' z + b', where the first numbers of z are (h - mean) * scale."""
    (linear,) = [node for node in head.walk() if node.name == "linear"]
    ops: Any = linear.ops
    mean, scale = map(ops.asarray1f, statistics)
    W: Any = linear.get_param("W")
    wide: Any = ops.alloc2f(len(W), width)
    wide[:, : W.shape[1]] = W / scale
    params = {"W": wide, "b": linear.get_param("b") + W @ mean}
    for name in params:
        linear.set_param(name, None)  # dimensions of layers with weights cannot be changed
    for node in head.walk():
        if node.has_dim("nI"):
            node.set_dim("nI", width, force=True)
    for name, values in params.items():
        linear.set_param(name, values)


def _head(nlp: Language) -> Any:
    return nlp.get_pipe(HEAD)


@contextmanager
def reusing(nlp: Language, encoded: Encoded, folder: Path) -> Iterator[None]:
    """Let the encoder of a pipeline take vectors of sentences that an earlier run has encoded with the same Transformer
    from a folder, which then has those of this run. One that was trained on the text changes with it."""
    pipe: Any = nlp.get_pipe(ENCODER)
    if pipe.model.name != FROZEN_ENCODER:
        yield
        return
    receipt = Receipt.read(encoded.folder / _RECEIPT)
    settings = load_config(encoded.pipeline / "config.cfg")["components"][ENCODER]
    made_from = {
        "encoder": receipt and receipt.made_from["encoder"],
        "settings": hash_settings({"encoder": settings, "code": code_version()}),
    }
    earlier = Receipt.read(folder / _RECEIPT)
    if earlier is None or earlier.differences(made_from):
        shutil.rmtree(folder, ignore_errors=True)
    with atomic_path(folder) as new:
        new.mkdir()
        with reusing_vectors(pipe.model, folder, new):
            yield
        Receipt(made_from).write(new / _RECEIPT)


def add_encoder(nlp: Language, encoded: Encoded) -> None:
    """Add the component with the encoder to a pipeline, unless it has it."""
    if ENCODER not in nlp.pipe_names:
        config = load_config(encoded.pipeline / "config.cfg", interpolate=True)
        pipe: Any = nlp.add_pipe(ENCODER, config={"model": config["components"][ENCODER]["model"]})
        pipe.from_disk(encoded.pipeline / ENCODER, exclude=["vocab"])
