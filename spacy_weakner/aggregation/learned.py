"""What a method has learned, as JSON: what one process has learned others label with."""

from typing import Any, Dict, Tuple

import numpy

from ..corpus.tags import make_scheme
from .fitting import Prepared
from .label_model import Fitted, LabelModel
from .methods import SCHEME, Majority, Method, Weighted
from .observations import Belief, Source
from .source_model import SourceParameters
from .votes import Accuracy


def to_json(prepared: Prepared) -> Dict[str, Any]:
    """Tell all that labelling needs.

    prepared (Prepared): What was learned.
    RETURNS (Dict[str, Any]): What JSON can hold, without any rounding.
    """
    method = prepared.method
    sources = method.sources if isinstance(method, (Majority, Weighted)) else ()
    return {
        "kind": type(method).__name__,
        "names": list(prepared.names),
        "labels": list(prepared.scheme.labels),
        "sources": [source._asdict() for source in sources],
        "learned": method.to_json(),
    }


def from_json(data: Dict[str, Any]) -> Prepared:
    """Read what `to_json` has made.

    data (Dict[str, Any]): The data.
    RETURNS (Prepared): What labels as the original does.
    """
    scheme = make_scheme(SCHEME, tuple(data["labels"]))
    sources = tuple(Source(**{**source, "labels": tuple(source["labels"])}) for source in data["sources"])
    learned = data["learned"]
    method: Method
    if data["kind"] == Majority.__name__:
        method = Majority(scheme, sources)
    elif data["kind"] == Weighted.__name__:
        accuracies = [Accuracy(**accuracy) for accuracy in learned["accuracies"]]
        by_source = tuple(tuple(a for a in accuracies if a.source == source.name) for source in sources)
        method = Weighted(scheme, sources, by_source, learned["quiet"])
    else:
        fit = learned["fit"]
        how = {**fit, "objective": tuple(fit["objective"])}
        how["beliefs"] = tuple(Belief(**belief) for belief in fit["beliefs"])
        method = Fitted(model=_label_model(learned["model"]), **how)
    return Prepared(method, tuple(data["names"]), scheme)


def _label_model(data: Dict[str, Any]) -> LabelModel:
    names: Tuple[str, ...] = tuple(data["sources"])
    sources = tuple(_parameters(source) for source in data["sources"].values())
    start, transitions = (numpy.array(data[name], dtype="float64") for name in ("start", "transitions"))
    return LabelModel(tuple(data["labels"]), names, start, transitions, sources)


def _parameters(data: Dict[str, Any]) -> SourceParameters:
    arrays: Dict[str, Any] = {k: numpy.array(v, dtype="float64") if isinstance(v, list) else v for k, v in data.items()}
    return SourceParameters(**arrays)
