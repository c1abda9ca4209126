"""Converts a pipeline so that its Transformers compute in int8, which is smaller and faster on a CPU."""

import logging
import shutil
import warnings
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple, Union

import numpy
from spacy.util import load_config
from thinc.api import Model

from ..encoders.onnx_encoder import OnnxTransformer, build_onnx_encoder, make_session
from ..errors import Errors, WeaknerError, require
from ..files import folder_size
from ..pipelines import load_pipeline
from ..runtime.output import made_folder, making

# Encoders, and those that run their Transformers in int8.
_IN_INT8 = {
    "spacy_weakner.TransformerEncoder.v1": "spacy_weakner.OnnxEncoder.v1",
    "spacy_weakner.FrozenTransformer.v1": "spacy_weakner.FrozenOnnx.v1",
}
# Settings that both encoders have.
_KEPT = ("width", "pooling", "max_length", "stride", "length")
_TOLERANCE = 1e-3


class QuantizeReport(NamedTuple):
    """The result of a quantization."""

    encoders: int  # Transformers that were quantized
    before: int  # size of the pipeline in bytes
    after: int  # size of the new pipeline in bytes
    kept: Sequence[str] = ()  # components whose Transformers cannot be quantized: they read a question beside each text


@making("output_path", "model", folder=True)
def quantize(model: Union[str, Path], output_path: Path, *, overwrite: bool = False) -> QuantizeReport:
    """Write a pipeline whose Transformers compute in int8, for prediction on a CPU: weights are quantized per column,
    and their inputs per text. ONNX Runtime runs the Transformers. Predictions differ slightly.

    Each `spacy_weakner.TransformerEncoder.v1`, in a head or shared, becomes a `spacy_weakner.OnnxEncoder.v1`, which
    cannot be trained, and each `spacy_weakner.FrozenTransformer.v1` a `spacy_weakner.FrozenOnnx.v1`; everything else is
    kept.

    model (Union[str, Path]): The pipeline: its folder, or the name of an installed package.
    output_path (Path): Folder for the quantized pipeline; written whole or not at all.
    overwrite (bool): Replace an output that was edited.
    RETURNS (QuantizeReport): The result.
    RAISES (WeaknerError): If a package is missing, the pipeline cannot be loaded or has no such encoder, an encoder
        cannot be exported to ONNX, or the output exists, or is the pipeline.
    """
    require("onnx", "onnxruntime", extra="onnx")
    output_path = Path(output_path)
    nlp = load_pipeline(model)
    config = load_config(nlp.path / "config.cfg")
    encoders = 0
    with made_folder(output_path) as folder:
        shutil.copytree(nlp.path, folder)
        # This includes disabled components.
        pipes: List[Tuple[str, Any]] = nlp.components
        for name, pipe in pipes:
            found = _nodes(pipe, "transformer_encoder")
            for encoder in found:
                made = _quantized(encoder, name)
                if pipe.model is encoder:
                    pipe.model = made
                else:
                    pipe.model.replace_node(encoder, made)
            if found:
                pipe.model.to_disk(folder / name / "model")
                config["components"][name] = _renamed(config["components"][name])
            encoders += len(found)
        kept = [name for name, pipe in pipes if _nodes(pipe, "transformer_reader")]
        if not encoders:
            done = [name for name, pipe in pipes if _nodes(pipe, "onnx_encoder")]
            names = ", ".join(nlp.component_names) or "none"
            reason = f"no component of '{model}' runs a Transformer of this package (components: {names})"
            if done:
                reason = f"the Transformer of '{model}' is already in int8 (components: {', '.join(done)})"
            elif kept:
                reason = f"the Transformer of '{model}' reads a question beside each text ({', '.join(kept)})"
            raise WeaknerError(Errors.WK358.format(what="int8", reason=reason))
        config.to_disk(folder / "config.cfg")
    return QuantizeReport(encoders, folder_size(nlp.path), folder_size(output_path), kept)


def _nodes(pipe: Any, name: str) -> List[Model]:
    """Return the parts of this name of a component's model."""
    model = getattr(pipe, "model", None)
    return [node for node in model.walk() if node.name == name] if isinstance(model, Model) else []


def _renamed(block: Any) -> Any:
    """Return a block of a config with the other encoder."""
    if not isinstance(block, dict):
        return block
    made = _IN_INT8.get(block.get("@architectures", ""))
    if made is not None:
        return {"@architectures": made, **{key: block[key] for key in _KEPT if key in block}}
    return {key: _renamed(value) for key, value in block.items()}


def _quantized(encoder: Model, name: str) -> Model:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    reader = encoder.layers[0].shims[0]._model
    settings: Dict[str, Any] = {"tokenizer": reader.tokenizer.data, "max_pieces": reader.max_pieces}
    with TemporaryDirectory() as folder:
        exact, rounded = Path(folder, "exact.onnx"), Path(folder, "rounded.onnx")
        export(reader.transformer, exact, name)
        # The root logger recommends a further step, which changes nothing here.
        logging.disable(logging.WARNING)
        try:
            quantize_dynamic(exact, rounded, per_channel=True, weight_type=QuantType.QInt8)
        finally:
            logging.disable(logging.NOTSET)
        made = build_onnx_encoder(encoder.get_dim("nO"))
        made.shims[0]._model = OnnxTransformer(rounded.read_bytes(), **settings)
    return made


def export(transformer: Any, path: Path, name: str) -> None:
    """Export a Transformer to ONNX, from ids of shape (1, n_pieces) to float32 vectors of shape (n_pieces, width), and
    check that it gives the same results. `name` is that of the component, for messages."""
    import torch

    class OneText(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.transformer = transformer

        def forward(self, ids: Any) -> Any:
            return self.transformer(input_ids=ids, return_dict=True).last_hidden_state[0]

    module = OneText().eval().cpu()
    draw = numpy.random.RandomState(0)
    texts = [draw.randint(transformer.config.vocab_size, size=(1, length), dtype="int64") for length in (12, 1, 5, 16)]
    try:
        # torch's newer exporter requires additional packages, and its output is slower.
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            expected = [module(torch.as_tensor(ids)).numpy() for ids in texts]
            with _rows_scaled(transformer):
                torch.onnx.export(
                    module,
                    (torch.as_tensor(texts[0]),),
                    str(path),
                    input_names=["ids"],
                    output_names=["vectors"],
                    dynamic_axes={"ids": {1: "n_pieces"}, "vectors": {0: "n_pieces"}},
                    dynamo=False,
                )
        session = make_session(path.read_bytes())
        found = [session.run(None, {"ids": ids})[0] for ids in texts]
        same = all(numpy.abs(a - b).max() < _TOLERANCE for a, b in zip(expected, found, strict=True))
        reason = "" if same else "its outputs in ONNX are different"
    # Exporter and runtime raise many kinds of errors.
    except Exception as error:
        reason = f"it cannot be exported to ONNX ({(str(error).strip() or repr(error)).splitlines()[0]})"
    if reason:
        raise WeaknerError(Errors.WK358.format(what=f"int8 for the Transformer of '{name}'", reason=reason))


@contextmanager
def _rows_scaled(transformer: Any) -> Iterator[None]:
    """Let layers that read the wide inner vectors of a Transformer divide each vector by its largest number and
    multiply their output by it. The result is the same, but less precision is lost when all vectors of a text are
    quantized by their common maximum: these vectors differ most in size, since no normalization precedes them."""
    import torch

    def scaled(layer: Any, args: Any, output: Any) -> Any:
        (rows,) = args
        largest = rows.abs().amax(-1, keepdim=True).clamp(min=1e-6)
        product = torch.nn.functional.linear(rows / largest, layer.weight) * largest
        return product if layer.bias is None else product + layer.bias

    linear = (layer for layer in transformer.modules() if isinstance(layer, torch.nn.Linear))
    wide = [layer for layer in linear if layer.in_features > transformer.config.hidden_size]
    hooks = [layer.register_forward_hook(scaled) for layer in wide]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
