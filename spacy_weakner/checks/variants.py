"""Terms that stand in the text only with variants of characters: curly apostrophes, other hyphens, invisible signs."""

import re
from typing import Dict, List, Sequence, Set

from spacy.language import Language

from ..corpus.sentences import sentence_key
from ..gazetteer_ruler.component import GazetteerRuler
from ..gazetteer_ruler.forms import FORM, folded, normal_form
from ..gazetteer_ruler.terms import Term
from ..labeling.sources import TermSource
from .findings import Findings, listed, plural

_WORD = re.compile(r"\w+")
_SHOWN, _BATCH = 5, 1000


def check_variants(
    terms: Sequence[Term], source: TermSource, where: str, nlp: Language, texts: Sequence[str], findings: Findings
) -> None:
    """Count the terms that only a variant finds.

    terms (Sequence[Term]): The terms.
    source (TermSource): The list, and how it will be used.
    where (str): Option and file, or the section of the source.
    nlp (Language): Its vocabulary and tokenizer are used.
    texts (Sequence[str]): Texts to find them in.
    findings (Findings): Takes the number.
    """
    # Looked up are only terms that have a variant on one of the two sides.
    words = {w for text in texts for chunk in text.split() if _is_variant(chunk) for w in _WORD.findall(folded(chunk))}
    visible = [t for t in terms if normal_form(t.text).strip()]
    wanted = [t for t in visible if _is_variant(t.text) or any(folded(w) in words for w in _WORD.findall(t.text))]
    only = _only_variants(wanted, nlp, texts) if wanted else {}
    if not only:
        return
    shown = listed([f"{term} (in the text: {text})" for term, text in sorted(only.items())], _SHOWN)
    message = f"{plural(len(only), 'term')} only with variants of characters in the text: {shown}."
    if source.attr == FORM:
        findings.info(where, f"{message} They are found.")
    else:
        cure = f'Set attr = "{FORM}" (--attr {FORM}), for which variants are the same.'
        findings.warning(where, f"{message} By {source.attr} few of them are found.", cure)


def _only_variants(terms: Sequence[Term], nlp: Language, texts: Sequence[str]) -> Dict[str, str]:
    """The terms that stand nowhere as they are spelled, each with a variant of it that does."""
    ruler = GazetteerRuler(nlp.vocab, "check", nlp=nlp, attr=FORM, acronym_length=0)
    ruler.add_terms(list(terms))
    spelled = {sentence_key(term.text) for term in terms}
    variants: Dict[str, str] = {}
    plain: Set[str] = set()
    for start in range(0, len(texts), _BATCH):
        docs = list(map(nlp.make_doc, texts[start : start + _BATCH]))
        for doc, matches in zip(docs, ruler.match_docs(docs), strict=True):
            found: List[str] = [doc[first:last].text for first, last, _ in matches]
            plain.update(folded(text) for text in found if sentence_key(text) in spelled)
            variants.update({folded(text): text for text in found if sentence_key(text) not in spelled})
    names = {folded(term.text): term.text for term in reversed(terms)}
    return {names[key]: text for key, text in variants.items() if key in names and key not in plain}


def _is_variant(text: str) -> bool:
    return folded(text) != sentence_key(text)
