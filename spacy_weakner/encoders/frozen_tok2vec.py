"""The encoder of a trained spaCy pipeline, frozen."""

from functools import partial
from pathlib import Path
from typing import Any, Callable, List, Optional, Tuple, Union

import srsly
from confection import Config
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import load_model_from_config
from thinc.api import Model, Shim
from thinc.types import Floats2d

from ..errors import Errors, WeaknerError
from ..linear.indicators import no_gradient
from ..pipelines import WORD_TOKENIZER, load_pipeline
from .frozen import freeze
from .transformer_encoder import set_width

# Tokenizers of some languages are large, or need other packages.
_TOKENIZER = {"@tokenizers": WORD_TOKENIZER}
_UNUSED = ("tokenizer", "config")


def build_frozen_tok2vec(
    source: Union[str, Path], component: str = "tok2vec", width: Optional[int] = None, length: float = 2.8
) -> Model[List[Doc], List[Floats2d]]:
    """Represent every token by the vector that the encoder of a trained spaCy pipeline gives it, standardized as by
    `spacy_weakner.FrozenTransformer.v1`. Norms that a tokenizer sets ("not" for "n't") are not read. The encoder is
    stored with the model, with its word vectors and its vocabulary, which grows with new words. Registered as
    `spacy_weakner.FrozenTok2Vec.v1`.

    source (Union[str, Path]): The pipeline: the name of an installed package, or a folder. It is read when the model is
        initialized; a stored pipeline no longer needs it.
    component (str): Its component `tok2vec`, or one with an encoder of its own, such as a `tagger`.
    width (Optional[int]): Width of the output; listeners refer to it. None: any.
    length (float): Root mean square length of the vectors. The longer, the smaller the effect of an L2 penalty.
    RETURNS (Model[List[Doc], List[Floats2d]]): Vectors of each Doc, (n_tokens, width); 0 for white space.
    RAISES (WeaknerError): If a setting is out of range or, at initialization, there is no such pipeline or component,
        or it has no encoder of this kind.
    """
    encoder: Model[Any, Any] = Model(
        "pipeline_encoder",
        partial(_forward, component),
        init=partial(_init, source, component),
        shims=[PipelineShim(None)],
        dims={"nO": width},
    )
    return freeze(encoder, length, width)


class PipelineShim(Shim):
    """A shim that stores a pipeline with the component of the encoder alone. Its arrays are on the device on which it
    was loaded."""

    def to_device(self, device_type: str, device_id: int) -> None:
        pass

    def finish_update(self, optimizer: Any) -> None:
        pass

    def to_bytes(self) -> bytes:
        nlp = self._model
        if nlp is None:
            return srsly.msgpack_dumps(None)
        # Without the paths and settings of its training.
        config = Config({"nlp": {**nlp.config["nlp"], "tokenizer": _TOKENIZER}, "components": nlp.config["components"]})
        return srsly.msgpack_dumps({"config": config.to_str(), "nlp": nlp.to_bytes(exclude=_UNUSED)})

    def from_bytes(self, data: bytes) -> "PipelineShim":
        stored = srsly.msgpack_loads(data)
        if stored is not None:
            nlp = load_model_from_config(Config().from_str(stored["config"]), auto_fill=True)
            self._model = nlp.from_bytes(stored["nlp"], exclude=_UNUSED)
        return self


def _init(source: Union[str, Path], component: str, model: Model, X: Any = None, Y: Any = None) -> None:
    nlp = load_pipeline(source)
    if component not in nlp.component_names:
        names = ", ".join(nlp.component_names) or "none"
        raise WeaknerError(Errors.WK353.format(name=source, reason=f"it has no '{component}' (components: {names})"))
    for name in {*nlp.component_names} - {component}:
        nlp.remove_pipe(name)
    model.shims[0]._model = nlp
    encoder: Any = _encoder(nlp, component)
    found = [] if encoder is None else encoder.predict([Doc(nlp.vocab, ["a", "b"])])
    # The encoder of spaCy's parsers returns one array for all Docs.
    if not isinstance(found, list) or len(found) != 1:
        reason = f"'{component}' has no encoder of its own that gives each token a vector"
        raise WeaknerError(Errors.WK353.format(name=source, reason=reason))
    set_width(model, found[0].shape[1], f"'{component}'")


def _encoder(nlp: Language, component: str) -> Optional[Model]:
    """Return the encoder of a component; None if it has none."""
    pipe: Any = nlp.get_pipe(component)
    model = getattr(pipe, "model", None)
    if not isinstance(model, Model):
        return None
    found = model.maybe_get_ref("tok2vec") if model.has_ref("tok2vec") else model
    return None if found is None or any(hasattr(node, "upstream_name") for node in found.walk()) else found


def _forward(
    component: str, model: Model, docs: List[Doc], is_train: bool
) -> Tuple[List[Floats2d], Callable[[Any], List[Doc]]]:
    nlp = model.shims[0]._model
    encoder: Any = _encoder(nlp, component)
    # In its vocabulary, with the norms and vectors of its words.
    texts = [Doc(nlp.vocab, [token.text for token in doc], [bool(token.whitespace_) for token in doc]) for doc in docs]
    return encoder.predict(texts), no_gradient
