"""Comparison of annotated tokens with the tokenizer: entities that begin or end within a token cannot be found."""

from typing import Callable, List, NamedTuple, Sequence, Tuple

from spacy.language import Language
from spacy.tokens import Doc

from ..corpus.sentences import longest_run
from ..pipelines import WORD_TOKENIZER
from ..tokenizers import create_word_tokenizer
from .corpora import CheckedCorpus, CheckedSentence
from .findings import FIRST, Findings, listed, percent, plural

LIMIT = 1000  # sentences that are tokenized again
_MUCH = 0.05  # share of differing sentences that is worth a warning
_CLOSING = frozenset(".,;:!?)]}%")
_OPENING = frozenset("([{")
_JOINING = frozenset("-/")


def check_misaligned(corpus: CheckedCorpus, misaligned: str, findings: Findings) -> None:
    """Report spans with character offsets that do not end at token boundaries."""
    n = corpus.misaligned
    if not n:
        return
    shown = corpus.misaligned_spans[:FIRST]
    more = f" and {n - len(shown):,} more" if n > len(shown) else ""
    total = max(corpus.spans, n)
    count = f"{n:,} of {plural(total, 'span')} ({percent(n, total)})"
    message = f"{count} do not begin and end at token boundaries: {', '.join(shown)}{more}."
    shifted = "If all are shifted, the offsets count other units (bytes or UTF-16 units), or the ends are inclusive."
    if misaligned == "error":
        drop = "--misaligned drop (their tokens become unknown), expand (to whole tokens) or contract"
        cure = f"Correct them, try another --lang or --tokenizer {WORD_TOKENIZER}, or {drop}. {shifted}"
        findings.error(corpus.where, message, cure)
    else:
        how = "their tokens become unknown" if misaligned == "drop" else "the spans are changed"
        findings.warning(corpus.where, f"{message} With --misaligned {misaligned}, {how}.", shifted)


class _Comparison(NamedTuple):
    sentences: int
    other: int
    entities: int
    cut: int
    shown: List[str]


def check_tokens(corpus: CheckedCorpus, nlp: Language, findings: Findings) -> None:
    """Tokenize the text of some sentences again, and compare the tokens."""
    sentences = corpus.sentences[:: max(1, -(-len(corpus.sentences) // LIMIT))]
    texts = [sentence.text if sentence.spaced else natural_text(sentence.words) for sentence in sentences]
    short = [(sentence, text) for sentence, text in zip(sentences, texts, strict=True) if not longest_run(text, nlp)]
    if len(short) < len(sentences):
        message = f"{plural(len(sentences) - len(short), 'sentence')} with tokens that take very long to tokenize"
        findings.info(corpus.where, f"{message}: they were not compared with the tokens of the tokenizer.")
    here, words = (_compare(short, tokenizer) for tokenizer in (nlp.tokenizer, create_word_tokenizer(nlp)))
    if here.other <= _MUCH * here.sentences:
        return
    better = words.other < 0.7 * here.other
    message = f"In {here.other:,} of {here.sentences:,} checked sentences ({percent(here.other, here.sentences)}), "
    message += f"the tokenizer splits the text into other tokens than the file: {listed(here.shown, 5)}."
    if here.cut:
        message += f" {here.cut:,} of {plural(here.entities, 'entity', 'entities')} "
        message += f"({percent(here.cut, here.entities)}) begin or end inside its tokens and could not be found in "
        message += "new text."
    cure = "Give texts with character offsets, or the language or tokenizer that splits like the file (--lang, "
    cure += "--tokenizer). Text that is "
    cure += 'already split like the file can be given as rows with "tokens".'
    if better:
        cure = (
            f"--tokenizer {WORD_TOKENIZER} (with it, {percent(words.other, words.sentences)} of the sentences differ)."
        )
    # Training on the given tokens does little harm as long as entities can be found.
    add = findings.warning if better or here.cut > _MUCH * here.entities / 5 else findings.info
    add(corpus.where, message, cure)


def _compare(pairs: Sequence[Tuple[CheckedSentence, str]], tokenizer: Callable[[str], Doc]) -> _Comparison:
    other = entities = cut = 0
    shown: List[str] = []
    for sentence, text in pairs:
        tokens = [token for token in tokenizer(text) if not token.text.isspace()]
        entities += len(sentence.entities)
        words = [word for word in sentence.words if not word.isspace()]
        if [token.text for token in tokens] == words:
            continue
        other += 1
        borders = find_borders(sentence.words, text)
        starts, ends = {token.idx for token in tokens}, {token.idx + len(token.text) for token in tokens}
        for start, end, _ in sentence.entities:
            cut += borders[start][0] not in starts or borders[end - 1][1] not in ends
        if len(shown) < FIRST:
            shown.append(_difference(words, [token.text for token in tokens]))
    return _Comparison(len(pairs), other, entities, cut, list(dict.fromkeys(shown)))


def natural_text(words: Sequence[str]) -> str:
    """Return the probable text of some tokens if the spaces between them are unknown."""
    text, joined = "", True
    for i, word in enumerate(words):
        within = (
            word in _JOINING and 0 < i < len(words) - 1 and words[i - 1][-1].isalnum() and words[i + 1][0].isalnum()
        )
        text += word if joined or word in _CLOSING or within else f" {word}"
        joined = within or word in _OPENING
    return text


def find_borders(words: Sequence[str], text: str) -> List[Tuple[int, int]]:
    """Return the start and the end of each token in the text."""
    borders, position = [], 0
    for word in words:
        start = text.index(word, position)
        position = start + len(word)
        borders.append((start, position))
    return borders


def _difference(words: Sequence[str], tokens: Sequence[str]) -> str:
    """Return the first place at which two tokenizations of a text differ."""
    i = next((i for i, (a, b) in enumerate(zip(words, tokens, strict=False)) if a != b), 0)
    a, b = i + 1, i + 1
    while (ahead := len("".join(words[i:a])) - len("".join(tokens[i:b]))) != 0:
        if ahead < 0 and a < len(words):
            a += 1
        elif ahead > 0 and b < len(tokens):
            b += 1
        else:
            break
    return f"'{' '.join(words[i:a])}' as '{' '.join(tokens[i:b])}'"
