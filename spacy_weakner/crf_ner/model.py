"""The CRF tagger as a Thinc model."""

from typing import Any, Callable, List, Optional, Tuple

import numpy
from spacy.tokens import Doc
from thinc.api import Dropout, Linear, Model, PyTorchWrapper_v3, chain, with_array, zero_init
from thinc.types import Floats2d, Ints2d
from thinc.util import get_torch_default_device

from ..crf.kernel import CRFParameters
from ..heads.layers import encoder_and_head
from ..linear.sparse import SparseLinear, indicator_rows, linear_scores
from ..torch_io import module_from_bytes, module_to_bytes

Emissions = List[Floats2d]


def build_crf_tagger(
    tok2vec: Model[List[Doc], List[Floats2d]],
    nO: Optional[int] = None,
    source_features: Optional[Model[List[Doc], List[Floats2d]]] = None,
    linear: Optional[Model[List[Doc], List[Ints2d]]] = None,
) -> Model[List[Doc], List[Floats2d]]:
    """Build a tagger that outputs the emissions of a linear-chain CRF. Registered as `spacy_weakner.CRFTagger.v1`.

    The transitions are in a `torchcrf.CRF` module (node "crf"), so weights can be exchanged with pytorch-crf. The
    module is not run in the forward pass: losses and decoding read its parameters (`crf_parameters`), and losses add
    their gradients to it (`add_crf_gradient`).

    Dropout is applied to the token vectors, at the rate `training.dropout`.

    tok2vec (Model[List[Doc], List[Floats2d]]): The encoder, or a listener to a shared one.
    nO (Optional[int]): Number of tags; inferred at initialization.
    source_features (Optional[Model[List[Doc], List[Floats2d]]]): Scores from the labels of sources, e.g.
        `spacy_weakner.SourceFeatures.v1`, that are added to the emissions. With them, or with `linear`, the weights of
        the emission layer are initialized with zeros.
    linear (Optional[Model[List[Doc], List[Ints2d]]]): Features of the words, e.g. `spacy_weakner.IndicatorFeatures.v1`.
        Their weighted sums, with initial weights of zero, are added to the emissions: with little gold, a linear model
        learns faster than the encoder, which learns the rest.
    RETURNS (Model[List[Doc], List[Floats2d]]): Emissions of each Doc, shape (n_tokens, n_tags).
    RAISES (WeaknerError): If `linear` does not return indicator features.
    """
    rows = indicator_rows(tok2vec)
    output = Linear(nO=nO) if source_features is None and linear is None else Linear(nO=nO, init_W=zero_init)
    dense: Model[Any, Any] = with_array(chain(Dropout(), output))
    emissions: Model[Any, Any] = dense if rows is None else SparseLinear(rows, nO)
    crf: Model[Any, Any] = PyTorchWrapper_v3(
        None,  # type: ignore[arg-type]
        serialize_model=_serialize_crf,
        deserialize_model=_deserialize_crf,
    )
    head: Model[Any, Any] = Model(
        "crf_head",
        _head_forward,
        init=_head_init,
        layers=[emissions, crf],
        dims={"nO": nO, "nI": None},
        refs={"emissions": emissions, "crf": crf},
    )
    return encoder_and_head("crf_tagger", tok2vec, head, source_features, linear_scores(linear, nO))


def crf_module(model: Model) -> Any:
    """Return the `torchcrf.CRF` of a tagger; None before it is initialized."""
    node = next(node for node in model.walk() if node.name == "crf_head")
    return node.layers[1].shims[0]._model


def crf_parameters(model: Model) -> CRFParameters:
    """Copy the transition scores of an initialized tagger to the host, as float64."""
    module = crf_module(model)
    tensors = (module.start_transitions, module.transitions, module.end_transitions)
    return CRFParameters(*(tensor.detach().cpu().double().numpy() for tensor in tensors))


def add_crf_gradient(model: Model, gradient: CRFParameters) -> None:
    """Add to the gradients of the transition scores, which `finish_update` updates with the other weights.

    model (Model): An initialized tagger.
    gradient (CRFParameters): Arrays on the host.
    """
    import torch

    module = crf_module(model)
    tensors = (module.start_transitions, module.transitions, module.end_transitions)
    for tensor, values in zip(tensors, gradient, strict=True):
        addend = torch.as_tensor(numpy.ascontiguousarray(values), dtype=tensor.dtype, device=tensor.device)
        tensor.grad = addend if tensor.grad is None else tensor.grad + addend


def _head_init(model: Model, X: Optional[List[Floats2d]] = None, Y: Optional[List[Floats2d]] = None) -> None:
    if X is not None and Y is not None:
        model.set_dim("nI", X[0].shape[1], force=True)
        model.set_dim("nO", Y[0].shape[1])
    emissions, crf = model.get_ref("emissions"), model.get_ref("crf")
    emissions.initialize(X=X, Y=Y)
    crf.shims[0]._model = _make_crf(model.get_dim("nO")).to(get_torch_default_device())


def _head_forward(
    model: Model, vectors: List[Floats2d], is_train: bool
) -> Tuple[Emissions, Callable[[Emissions], List[Floats2d]]]:
    return model.get_ref("emissions")(vectors, is_train)


def _make_crf(n_tags: int) -> Any:
    from torchcrf import CRF

    return CRF(n_tags, batch_first=True)


def _serialize_crf(module: Any) -> bytes:
    return module_to_bytes(module, {"n_tags": module.num_tags} if module is not None else {})


def _deserialize_crf(module: Any, data: bytes, device: Any) -> Any:
    return module_from_bytes(data, _make_crf, device, None if module is None else {"n_tags": module.num_tags})
