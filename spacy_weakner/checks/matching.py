"""Matches of a term list in texts and gold: how many are right, and which terms match only as character variants."""

import re
from collections import Counter
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import filter_spans

from ..corpus.sentences import sentence_key
from ..errors import shorten
from ..gazetteer_ruler.component import GazetteerRuler
from ..gazetteer_ruler.forms import FORM, folded, normal_form
from ..gazetteer_ruler.terms import Term
from ..labeling.sources import TermSource
from ..pipelines import WORD_TOKENIZER, blank_pipeline
from .corpora import CheckedSentence
from .findings import Findings, listed, plural

SENTENCES = 1_000  # gold sentences that are checked, evenly spread
_SHOWN, _BATCH = 5, 1000
_MUCH = 0.05  # share of terms within tokens that is worth a warning
_WORD = re.compile(r"\w+")


class MatchedTexts(NamedTuple):
    """Texts to match with a term list: unannotated texts, gold, and the word count of the longest (0: unknown)."""

    nlp: Language
    longest: int = 0
    gold: Sequence[CheckedSentence] = ()
    texts: Sequence[str] = ()

    def judges(self) -> List[CheckedSentence]:
        """Return completely annotated sentences, evenly spread: only they show wrong matches."""
        whole = [sentence for sentence in self.gold if not sentence.missing and not sentence.weak]
        return whole[:: 1 + (len(whole) - 1) // SENTENCES] if whole else []


class MatchCounts(NamedTuple):
    """Matches by the folded text of their terms: gold entities, and others."""

    right: "Counter[str]"
    wrong: "Counter[str]"


def count_in_texts(terms: Sequence[Term], source: TermSource, seen: MatchedTexts) -> "Counter[str]":
    """Count the matches of doubtful terms in texts without annotation."""
    docs = list(map(seen.nlp.tokenizer, seen.texts))
    ruler = _ruler(terms, source, seen)
    if ruler is None:
        return Counter()
    found = zip(docs, ruler.match_docs(docs), strict=True)
    return Counter(folded(doc[start:end].text) for doc, matches in found for start, end, _ in matches)


def count_in_gold(
    doubtful: Sequence[Term],
    terms: Sequence[Term],
    source: TermSource,
    gold: Sequence[CheckedSentence],
    seen: MatchedTexts,
) -> MatchCounts:
    """Count the right and wrong matches of doubtful terms beside all other terms of the list, with the longest of
    overlapping matches. Matches with labels that the gold lacks are left out, since they cannot be judged."""
    counts = MatchCounts(Counter(), Counter())
    words: Set[str] = {word for sentence in gold for word in _words(sentence.text)}
    # Other terms cannot match: a list of a million terms need not be compiled for a thousand sentences.
    there = [term for term in terms if source.attr == "LEMMA" or words.issuperset(_words(term.text))]
    wanted, names = {folded(term.text) for term in doubtful}, source.labels or {}
    labels = {label for sentence in gold for _, _, label in sentence.entities}
    docs = [Doc(seen.nlp.vocab, words=list(sentence.words)) for sentence in gold]
    ruler = _ruler([*doubtful, *there], source, seen)
    if ruler is None:
        return counts
    for doc, sentence, matches in zip(docs, gold, ruler.match_docs(docs), strict=True):
        kept = (match for match in matches if source.labels is None or match[2] in names)
        found = [(start, end, names.get(label, label)) for start, end, label in kept]
        # If a span has several labels, each is counted.
        longest = {(span.start, span.end) for span in filter_spans([doc[start:end] for start, end, _ in found])}
        for start, end, label in found:
            key = folded(doc[start:end].text)
            if (start, end) in longest and key in wanted and label in labels:
                right = (start, end, label) in sentence.entities
                (counts.right if right else counts.wrong)[key] += 1
    return counts


def _words(text: str) -> List[str]:
    return _WORD.findall(normal_form(text))


def _ruler(terms: Sequence[Term], source: TermSource, seen: MatchedTexts) -> Optional[GazetteerRuler]:
    """Return a ruler for the terms with a visible character; None if there are none."""
    visible = [term for term in terms if normal_form(term.text).strip()]
    if not visible:
        return None
    settings = {**source.ruler_settings(), "min_length": 1, "stop": []}
    ruler = GazetteerRuler(seen.nlp.vocab, source.name, nlp=seen.nlp, **settings)
    ruler.add_terms(visible)
    return ruler


def check_glued(terms: Sequence[Term], source: TermSource, where: str, seen: MatchedTexts, findings: Findings) -> None:
    """Count the places where a term is only a part of a longer token, such as "asthma" of "asthma[1]"."""
    words = {word for text in seen.texts for word in _words(text)}
    there = [term for term in terms if len(term.text) > 2 and words.issuperset(_words(term.text))]
    nlp = blank_pipeline(seen.nlp.lang or "en", WORD_TOKENIZER)
    ruler = _ruler(there, source, seen._replace(nlp=nlp))
    if ruler is None:
        return
    docs = list(map(nlp.tokenizer, seen.texts))
    total, glued = 0, Counter[str]()
    for doc, matches in zip(docs, ruler.match_docs(docs), strict=True):
        spans = filter_spans([doc[start:end] for start, end, _ in matches])
        total += len(spans)
        tokens = seen.nlp.tokenizer(doc.text) if spans else doc
        for span in spans:
            if tokens.char_span(span.start_char, span.end_char) is None:
                around: Any = tokens.char_span(span.start_char, span.end_char, alignment_mode="expand")
                glued[f"{span.text} (in '{shorten(around.text, 40)}')"] += 1
    if glued:
        add = findings.warning if glued.total() > _MUCH * total else findings.info
        shown = listed([text for text, _ in glued.most_common()], _SHOWN)
        message = f"{glued.total():,} of {plural(total, 'mention')} of terms in the text are parts of longer tokens, "
        cure = f"--tokenizer {WORD_TOKENIZER} makes each punctuation mark a token: use it for text and gold alike."
        add(where, f"{message}in which terms are not found: {shown}.", cure)


def check_variants(
    terms: Sequence[Term], source: TermSource, where: str, nlp: Language, texts: Sequence[str], findings: Findings
) -> None:
    """Count the terms that match only as variants."""
    # Only terms with a variant in the list or in the texts are looked up.
    words = {w for text in texts for chunk in text.split() if _is_variant(chunk) for w in _WORD.findall(folded(chunk))}
    visible = [t for t in terms if normal_form(t.text).strip()]
    wanted = [t for t in visible if _is_variant(t.text) or any(folded(w) in words for w in _WORD.findall(t.text))]
    only = _only_variants(wanted, nlp, texts) if wanted else {}
    if not only:
        return
    shown = listed([f"{term} (in the text: {text})" for term, text in sorted(only.items())], _SHOWN)
    message = f"{plural(len(only), 'term')} that occur in the text only with variant characters: {shown}."
    if source.attr == FORM:
        findings.info(where, f"{message} They are matched.")
    else:
        cure = f'Set attr = "{FORM}", which treats the variants as the same.'
        findings.warning(where, f"{message} With {source.attr}, few of them are matched.", cure)


def _only_variants(terms: Sequence[Term], nlp: Language, texts: Sequence[str]) -> Dict[str, str]:
    """Return the terms that never occur as spelled, each with a variant that occurs."""
    ruler = GazetteerRuler(nlp.vocab, "check", nlp=nlp, attr=FORM, acronym_length=0)
    ruler.add_terms(list(terms))
    spelled = {sentence_key(term.text) for term in terms}
    variants: Dict[str, str] = {}
    plain: Set[str] = set()
    for start in range(0, len(texts), _BATCH):
        docs = list(map(nlp.tokenizer, texts[start : start + _BATCH]))
        for doc, matches in zip(docs, ruler.match_docs(docs), strict=True):
            found: List[str] = [doc[first:last].text for first, last, _ in matches]
            plain.update(folded(text) for text in found if sentence_key(text) in spelled)
            variants.update({folded(text): text for text in found if sentence_key(text) not in spelled})
    names = {folded(term.text): term.text for term in reversed(terms)}
    return {names[key]: text for key, text in variants.items() if key in names and key not in plain}


def _is_variant(text: str) -> bool:
    return folded(text) != sentence_key(text)
