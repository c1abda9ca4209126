"""Initializes a training stage with the weights of an earlier pipeline.

`source =` in a config copies a component with all its old settings and skips its initialization, so it cannot change
a loss or reset a head. Here, each stage's config builds new components, and this callback then loads weights.
"""

from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from spacy.language import Language
from spacy.util import load_model
from thinc.api import Model

from ..errors import Errors, WeaknerError
from ..files import existing
from ..heads.layers import ADDED

WHOLE = "all"
# The innermost encoder, which does not contain another one.
BASE = "base_encoder"
# References of the models, by the names in configs.
PARTS = {"encoder": "tok2vec", "head": "head"}


class LoadWeights:
    """A callback for `[initialize.after_init]` that loads weights of an earlier pipeline.

    path (Optional[Path]): The earlier pipeline. None, as in a config that waits for it, is an error.
    components (Optional[Dict[str, List[str]]]): Parts to load by component: "encoder", "head", "base_encoder" (the
        encoder without an attention layer on top of it, also of a shared "tok2vec") or "all". None: all parts of every
        trainable component of this pipeline.
    """

    def __init__(self, path: Optional[Path], components: Optional[Dict[str, List[str]]] = None) -> None:
        if path is None:
            raise WeaknerError(Errors.WK010.format(setting="paths.initial", what="the pipeline of the earlier stage"))
        self.path = path
        self.components = components

    def __call__(self, nlp: Language) -> Language:
        source = load_model(existing(self.path, "train the earlier stage first"))
        wanted = self.components
        if wanted is None:
            wanted = {name: [WHOLE] for name, pipe in nlp.pipeline if getattr(pipe, "is_trainable", False)}
        for name, parts in wanted.items():
            target_pipe = _get_pipe(nlp, name, "this pipeline")
            source_pipe = _get_pipe(source, name, f"the pipeline '{self.path}'")
            for part in parts:
                self._load(name, part, source_pipe, target_pipe)
        return nlp

    def _load(self, name: str, part: str, source: Any, target: Any) -> None:
        nodes = [(_find_part(name, part, source.model), _find_part(name, part, target.model))]
        if part == "head":
            nodes += self._other_parts(name, source, target)
        if part not in ("encoder", BASE) and hasattr(target, "labels") and getattr(target, "labels_have_weights", True):
            self._adopt_labels(name, source, target)
        try:
            for source_node, target_node in nodes:
                target_node.from_bytes(source_node.to_bytes())
        except Exception as error:  # thinc, numpy and torch raise different errors for a wrong shape
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise self._misfit(name, part, reason) from error

    def _other_parts(self, name: str, source: Any, target: Any) -> List[Tuple[Model, Model]]:
        """Return the layers that belong to a head besides the one with the reference "head"."""
        found = []
        for part in ADDED:
            nodes = [pipe.model.maybe_get_ref(part) for pipe in (source, target)]
            if (nodes[0] is None) != (nodes[1] is None):
                reason = f"only one of the two models has a layer '{part}'"
                raise self._misfit(name, "head", reason)
            if nodes[0] is not None:
                found.append((nodes[0], nodes[1]))
        return found

    def _adopt_labels(self, name: str, source: Any, target: Any) -> None:
        ours, theirs = list(target.labels), list(source.labels)
        has_cfg = isinstance(getattr(target, "cfg", None), dict) and "labels" in target.cfg
        if sorted(ours) != sorted(theirs) or (ours != theirs and not has_cfg):
            raise self._misfit(name, "head", f"its labels are {theirs}, not {ours}; 'encoder' loads no labels")
        if has_cfg:
            # The rows of the loaded weights are in the order of their labels.
            target.cfg["labels"] = theirs

    def _misfit(self, name: str, part: str, reason: str) -> WeaknerError:
        return WeaknerError(Errors.WK014.format(name=name, part=part, path=self.path, reason=reason))


def _get_pipe(nlp: Language, name: str, where: str) -> Any:
    if name not in nlp.component_names:
        names = ", ".join(nlp.component_names)
        raise ValueError(f"LoadWeights: {where} has no component '{name}' (it has: {names}).")
    pipe = nlp.get_pipe(name)
    if not hasattr(pipe, "model"):
        raise ValueError(f"LoadWeights: the component '{name}' of {where} has no weights. Correct 'components'.")
    return pipe


def _find_part(name: str, part: str, model: Model) -> Model:
    if part == WHOLE:
        return model
    if part in (BASE, "encoder") and model.has_ref("tok2vec"):
        upstream = getattr(_base_encoder(model), "upstream_name", None)
        if upstream is not None:
            raise ValueError(
                f"Component '{name}' has no '{part}' of its own, in this pipeline or in the other: it listens to "
                f"'{upstream}' ('*' is any encoder before it). Name that component in 'components' of LoadWeights; "
                "both pipelines must have it."
            )
    if part == BASE:
        return _base_encoder(model)
    reference = PARTS.get(part)
    if reference is None or not model.has_ref(reference):
        known = [WHOLE, *(key for key, ref in PARTS.items() if model.has_ref(ref)), BASE]
        raise ValueError(
            f"Component '{name}' has no part '{part}' (it has: {', '.join(known)}). Correct 'components' of "
            "LoadWeights."
        )
    return model.get_ref(reference)


def _base_encoder(model: Model) -> Model:
    while model.has_ref("tok2vec"):
        model = model.get_ref("tok2vec")
    return model
