"""What lists and heads say of gold that they have not seen, and how to decide between them, learned from that."""

from pathlib import Path
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence

import spacy
from spacy.language import Language
from spacy.tokens import Doc

from ...corpus.docbin import copy_with_groups, read_docs
from ...corpus.weak import copy_group
from ...files import atomic_path
from ...training.readers import make_example
from ..folds import Fold
from .assembling import add_combiner, assemble, predict_docs


class Member(NamedTuple):
    """A head that proposes entities.

    name (str): Name of the component.
    title (str): What it is called among the candidates.
    whole (Path): The pipeline that was trained on all gold, or on none.
    folds (List[Path]): Per fold of the gold a pipeline that has not seen it.
    reads (bool): Whether it reads what the lists say.
    """

    name: str
    title: str
    whole: Path
    folds: List[Path]
    reads: bool = True


class Stack:
    """Term lists and heads, and what decides between them.

    lists (Mapping[str, Path]): Pipelines of term lists, by source.
    members (Sequence[Member]): The heads.
    folds (Sequence[Fold]): The folds of the gold, with what sources say of it.
    """

    def __init__(self, lists: Mapping[str, Path], members: Sequence[Member], folds: Sequence[Fold]) -> None:
        self.lists = dict(lists)
        self.members = list(members)
        self.folds = list(folds)
        # Per fold the gold, with what is proposed for it.
        self.held_out = [self._propose(n) for n in range(len(self.folds))]

    def _propose(self, fold: int) -> List[Doc]:
        nlp = assemble({}, {member.name: member.folds[fold] for member in self.members})
        gold = list(read_docs(self.folds[fold].held_out, nlp.vocab))
        for doc, predicted in zip(gold, predict_docs(nlp, gold), strict=True):
            for group in predicted.spans:
                copy_group(predicted, doc, group)
        return gold

    def decide(self) -> List[Doc]:
        """What is decided about each fold, by what was learned from the others.

        RETURNS (List[Doc]): The sentences of all folds, in their order.
        """
        decided: List[Doc] = []
        for n, docs in enumerate(self.held_out):
            combiner = self._combiner(spacy.blank("xx"), without=n)
            for doc in docs:
                decided.append(combiner(copy_with_groups(doc, doc.spans)))
        return decided

    def save(self, output: Path) -> Path:
        """Write the pipeline that decides, which has seen all gold.

        output (Path): Its folder.
        RETURNS (Path): The folder.
        """
        nlp = assemble(self.lists, {member.name: member.whole for member in self.members})
        self._combiner(nlp)
        with atomic_path(output) as temporary:
            nlp.to_disk(temporary)
        return output

    def _combiner(self, nlp: Language, without: Optional[int] = None) -> Any:
        docs = [doc for n, own in enumerate(self.held_out) if n != without for doc in own]
        combiner = add_combiner(nlp, sources=list(self.lists), members=[member.name for member in self.members])
        combiner.initialize(lambda: [make_example(doc) for doc in docs], nlp=nlp)
        return combiner
