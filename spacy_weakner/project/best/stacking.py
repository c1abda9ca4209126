"""What lists and heads say of gold that they have not seen, and how to decide between them, learned from that."""

from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import spacy
from spacy.language import Language
from spacy.tokens import Doc

from ...annotations.corpus import bare_copy, read_docs
from ...annotations.weak import copy_group, weak_group
from ...files import atomic_path
from ...training.readers import make_example
from ..folds import Fold
from .assembling import add_combiner, assemble


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
        # What was fitted, by the other sources and the fold that was left out: it is asked for more than once.
        self._fitted: Dict[Tuple[Tuple[str, ...], Optional[int]], bytes] = {}
        # Per fold the gold, with what is proposed for it.
        self.held_out = [self._propose(n) for n in range(len(self.folds))]

    def _propose(self, fold: int) -> List[Doc]:
        nlp = assemble(self.lists, self._paths(fold))
        gold = list(read_docs(self.folds[fold].held_out, nlp.vocab))
        for doc, said in zip(gold, nlp.pipe([bare_copy(doc) for doc in gold]), strict=True):
            for group in said.spans:
                copy_group(said, doc, group)
        return gold

    def decide(self) -> List[Doc]:
        """What is decided about each fold, by what was learned from the others.

        RETURNS (List[Doc]): The sentences of all folds, in their order.
        """
        decided: List[Doc] = []
        for n, docs in enumerate(self.held_out):
            combiner = self._combiner(spacy.blank("xx"), (), without=n)
            for doc in docs:
                copy = bare_copy(doc)
                for group in doc.spans:
                    copy_group(doc, copy, group)
                decided.append(combiner(copy))
        return decided

    def save(self, output: Path, *, others: Sequence[str] = (), fold: Optional[int] = None) -> Path:
        """Write the pipeline that decides.

        output (Path): Its folder.
        others (Sequence[str]): Weak sources beside the lists, which have labelled gold and text: what is decided about
            is to have what they say.
        fold (Optional[int]): A fold that nothing in it may have seen; None: it has seen all gold.
        RETURNS (Path): The folder.
        """
        nlp = assemble(self.lists, self._paths(fold))
        self._combiner(nlp, others, without=fold)
        with atomic_path(output) as temporary:
            nlp.to_disk(temporary)
        return output

    def _paths(self, fold: Optional[int]) -> Dict[str, Path]:
        return {member.name: member.whole if fold is None else member.folds[fold] for member in self.members}

    def _combiner(self, nlp: Language, others: Sequence[str], *, without: Optional[int]) -> Any:
        docs = [doc for n, own in enumerate(self.held_out) if n != without for doc in own]
        # Answers may cover a part of the gold alone.
        there = {group for doc in docs for group in doc.spans}
        sources = [source for source in (*self.lists, *others) if weak_group(source) in there]
        combiner = add_combiner(nlp, sources=sources, members=[member.name for member in self.members])
        key = (tuple(others), without)
        if key in self._fitted:
            return combiner.from_bytes(self._fitted[key])
        combiner.initialize(lambda: [make_example(doc) for doc in docs], nlp=nlp)
        self._fitted[key] = combiner.to_bytes()
        return combiner
