"""Finds how readily a trained pipeline should give entities, on held-out gold."""

from pathlib import Path
from typing import List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy

from ..corpus.weak import doc_entities
from ..errors import Errors, WeaknerError
from ..runtime.devices import on_device
from ..runtime.lock import holding
from ..scores import count_matches
from ..ty import Entity
from .held_out import HeldOut

# Biases that are tried, and then those around the best of them.
WIDEST, STEP, FINE_STEP = 8.0, 0.5, 0.1


class BiasReport(NamedTuple):
    """What was found.

    component (str): Name of the component.
    bias (float): Its bias.
    before (float): F1 on the gold with the bias that it had, in [0, 100].
    after (float): The same with the new one; as it was chosen by this gold, a little too good.
    docs (int): Docs with complete gold.
    """

    component: str
    bias: float
    before: float
    after: float
    docs: int

    @property
    def at_bound(self) -> bool:
        """RETURNS (bool): Whether the bias is as low or as high as was tried."""
        return abs(self.bias) >= WIDEST


@holding("output_path")
def fit_bias(
    output_path: Path, model: Union[str, Path], gold: Path, *, component: Optional[str] = None, gpu_id: int = -1
) -> BiasReport:
    """Add to a component's scores of "O" the constant with which its F1 on held-out gold is best. A model that was
    trained on labels with holes, or on few negatives, has learnt another share of entities than there are. No
    temperature mends that, since it changes no decision. Entities that stand in a Doc before, and stay, count as found.
    What calibrates probabilities comes after it: `temperature`, `conformal`.

    output_path (Path): Folder for the changed pipeline.
    model (Union[str, Path]): The pipeline.
    gold (Path): Gold that it was not trained on: a `.spacy` file or a folder of them. It is held in memory.
    component (Optional[str]): Name of the component; None: the head that writes the entities.
    gpu_id (int): GPU for the predictions; -1 is the CPU.
    RETURNS (BiasReport): What was found. A bias that is no better than none, or than the present one, is not taken.
    RAISES (WeaknerError): For missing input, a pipeline without such a component, one whose entities nobody writes, or
        no complete gold.
    """
    output_path = Path(output_path)
    with on_device(gpu_id):
        held_out = HeldOut.read(output_path, model, gold, component, "writes entities")
        pipe, docs = held_out.pipe, [example.predicted for example in held_out.examples]
        if not pipe.annotate_ents:
            raise WeaknerError(Errors.WK703.format(name=held_out.name))
        wanted = [doc_entities(example.reference) for example in held_out.examples]
        kept = [[] if pipe.overwrite else doc_entities(doc) for doc in docs]

        def f1(biases: Sequence[float]) -> List[float]:
            found = pipe.entities_under(docs, biases)
            return f1_under(wanted, [[own + before for own in each] for before, each in zip(kept, found, strict=True)])

        (before,) = f1([pipe.bias])
        coarse = numpy.arange(-WIDEST, WIDEST + STEP, STEP).tolist()
        middle, _ = best_bias(coarse, f1(coarse))
        around = numpy.arange(middle - STEP, middle + STEP + FINE_STEP / 2, FINE_STEP).round(6).tolist()
        fine = [0.0, pipe.bias, *(bias for bias in around if abs(bias) <= WIDEST)]
        best, after = best_bias(fine, f1(fine))
        pipe.set_bias(best)
        held_out.save(output_path)
        return BiasReport(held_out.name, best, before, after, len(docs))


def f1_under(wanted: Sequence[Sequence[Entity]], found: Sequence[Sequence[Sequence[Entity]]]) -> List[float]:
    """F1 of what is found under several biases.

    wanted (Sequence[Sequence[Entity]]): Per Doc the gold.
    found (Sequence[Sequence[Sequence[Entity]]]): Per Doc and bias the entities.
    RETURNS (List[float]): Per bias F1 in [0, 100]; 0 if there is neither gold nor anything found.
    """
    return [count_matches(zip(wanted, each, strict=True))[0].f1 for each in zip(*found, strict=True)]


def best_bias(biases: Sequence[float], scores: Sequence[float]) -> Tuple[float, float]:
    """The bias with the best score; of equally good ones the one nearest to 0.

    biases (Sequence[float]): The biases.
    scores (Sequence[float]): Their scores.
    RETURNS (Tuple[float, float]): The bias, and its score.
    """
    best = max(range(len(biases)), key=lambda i: (scores[i], -abs(biases[i])))
    return biases[best], scores[best]
