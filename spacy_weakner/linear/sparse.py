"""A linear layer over indicator features, see `linear.indicators`."""

from typing import Any, Callable, List, Optional, Tuple

import numpy
from thinc.api import Model, chain
from thinc.types import Floats2d, Ints2d

from ..batching import split_rows
from ..errors import WeaknerError

NAME = "sparse_linear"
ROWS = "indicator_rows"


def indicator_rows(encoder: Model) -> Optional[int]:
    """Return the number of rows that the features of an encoder are hashed to.

    encoder (Model): The encoder.
    RETURNS (Optional[int]): The number; None for encoders that return vectors.
    """
    return encoder.attrs.get(ROWS)


def linear_scores(
    features: Optional[Model[Any, Any]], nO: Optional[int] = None
) -> Optional[Model[Any, List[Floats2d]]]:
    """Create a linear model of indicator features, to use in addition to an encoder.

    features (Optional[Model]): The features, e.g. `spacy_weakner.IndicatorFeatures.v1`.
    nO (Optional[int]): Number of scores; inferred at initialization.
    RETURNS (Optional[Model[Any, List[Floats2d]]]): Scores of each Doc, (n_tokens, n_outputs), initially zero; None
        without features.
    RAISES (WeaknerError): If the layer does not return indicator features.
    """
    if features is None:
        return None
    rows = indicator_rows(features)
    if rows is None:
        raise WeaknerError(
            f"The layer '{features.name}' in 'linear' returns no indicator features. Use "
            "spacy_weakner.IndicatorFeatures.v1 there, and put encoders in 'tok2vec'."
        )
    return chain(features, SparseLinear(rows, nO))


def check_readable(name: str, model: Any) -> None:
    """Check that a model can use the outputs of its encoder.

    name (str): Name of the component.
    model (Any): The component's model.
    RAISES (WeaknerError): If an encoder in it returns indicator features, and no layer uses them.
    """
    nodes = list(model.walk()) if isinstance(model, Model) else []
    if any(indicator_rows(node) is not None for node in nodes) and not any(node.name == NAME for node in nodes):
        raise WeaknerError(
            f"spacy_weakner.IndicatorFeatures.v1 returns features instead of vectors, which the model '{name}' cannot "
            "use. spacy_weakner.CRFTagger.v1 can use them; other models need another encoder."
        )


def SparseLinear(rows: int, nO: Optional[int] = None) -> Model[List[Ints2d], List[Floats2d]]:
    """Sum the weights of the active features: the product of sparse indicators and a table. All weights are initialized
    with zeros.

    rows (int): Rows of the table.
    nO (Optional[int]): Number of scores; inferred at initialization.
    RETURNS (Model[List[Ints2d], List[Floats2d]]): Maps rows, (n_tokens, n_features) for each Doc, to scores, (n_tokens,
        n_outputs) for each Doc.
    """
    return Model(NAME, _forward, init=_init, dims={"nO": nO, "nI": rows}, params={"W": None})


def _init(model: Model, X: Optional[List[Ints2d]] = None, Y: Optional[List[Floats2d]] = None) -> None:
    if Y is not None:
        model.set_dim("nO", Y[0].shape[1])
    model.set_param("W", model.ops.alloc2f(model.get_dim("nI"), model.get_dim("nO")))


def _forward(
    model: Model, ids: List[Ints2d], is_train: bool
) -> Tuple[List[Floats2d], Callable[[List[Floats2d]], List[Ints2d]]]:
    if not ids:
        return [], lambda _: ids
    ops: Any = model.ops
    table: Any = model.get_param("W")
    active = _OnCPU(ids, len(table)) if ops.device_type == "cpu" else _OnDevice(ops, ids)

    def backprop(gradient: List[Floats2d]) -> List[Ints2d]:
        if not model.has_grad("W"):
            model.set_grad("W", ops.alloc2f(*table.shape))
        active.add(model.get_grad("W"), ops.as_contig(ops.xp.concatenate(gradient), "float32"))
        return ids

    return split_rows(active.sum(table), ids), backprop


class _OnCPU:
    """The active features as a sparse matrix of tokens and rows."""

    def __init__(self, ids: List[Ints2d], n_rows: int) -> None:
        from scipy.sparse import csr_array

        tokens: Any = ids
        active = numpy.concatenate(tokens)
        n_tokens, n_features = active.shape
        ends = numpy.arange(0, active.size + 1, n_features, dtype=active.dtype)
        ones = numpy.ones(active.size, dtype="float32")
        self.matrix = csr_array((ones, active.ravel(), ends), shape=(n_tokens, n_rows))

    def sum(self, table: Any) -> Any:
        return self.matrix @ table

    def add(self, table: Any, rows: Any) -> None:
        table += self.matrix.T @ rows


class _OnDevice:
    """The same, one feature at a time, so that the weights of all features of all tokens are never in memory at
    once."""

    def __init__(self, ops: Any, ids: List[Ints2d]) -> None:
        self.ops = ops
        self.features = ops.xp.ascontiguousarray(ops.xp.concatenate(ids).T)

    def sum(self, table: Any) -> Any:
        scores = self.ops.alloc2f(self.features.shape[1], table.shape[1])
        for active in self.features:
            scores += table[active]
        return scores

    def add(self, table: Any, rows: Any) -> None:
        for active in self.features:
            self.ops.scatter_add(table, active, rows)
