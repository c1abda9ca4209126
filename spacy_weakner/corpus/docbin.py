"""Reading and writing of `.spacy` files: one file, or a folder of them (shards)."""

from pathlib import Path
from typing import Any, Iterable, Iterator, List, Optional, Sequence, Set

import numpy
import srsly
from spacy.attrs import DEP, ENT_ID, ENT_IOB, ENT_KB_ID, ENT_TYPE, LEMMA, MORPH, NORM, ORTH, POS, SPACY, TAG
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from .._compat import MsgpackConverters
from ..errors import Errors, WeaknerError, one_line
from ..files import atomic_path, existing, visible_files
from .weak import check_stored, copy_group, stored_user_data

SUFFIX = ".spacy"
# Marks a folder that is being filled, or whose run ended before it was filled.
UNFINISHED = ".unfinished"
# Token attributes that are copied; the first two create the token.
COPIED = [ORTH, SPACY, NORM, TAG, POS, MORPH, LEMMA, ENT_IOB, ENT_TYPE, ENT_ID, ENT_KB_ID]
# Token attributes that are hashes of strings: the first two always exist, the others depend on the annotation.
HASHES = (ORTH, NORM, LEMMA, TAG, DEP, ENT_TYPE, ENT_KB_ID, ENT_ID)


def receipt_path(shard: Path) -> Path:
    """Return the path of the file in which a stage records the inputs and settings of a `.spacy` file."""
    return shard.with_name(f"{shard.name}.json")


def check_whole(path: Path) -> None:
    """Raise an error if a corpus is still being written."""
    if (path / UNFINISHED).exists():
        raise WeaknerError(Errors.WK789.format(path=path))


def corpus_files(path: Path) -> List[Path]:
    path = existing(Path(path))
    check_whole(path)
    files = [path] if path.is_file() else found_files(path)
    if not files:
        raise WeaknerError(Errors.WK101.format(path=path))
    return files


def found_files(folder: Path) -> List[Path]:
    """Return the `.spacy` files of a folder and its subfolders, sorted by name, whether or not the folder is
    complete."""
    return visible_files(folder, SUFFIX)


def read_docs(path: Path, vocab: Vocab) -> Iterator[Doc]:
    """Stream the Docs of a corpus, with one file at a time in memory."""
    for file_ in corpus_files(path):
        yield from bin_docs(read_bin(file_), vocab, file_)


def bin_docs(bin_: DocBin, vocab: Vocab, path: Path) -> Iterator[Doc]:
    """Stream the Docs of a `.spacy` file, like `bin_.get_docs`, but many times as fast if Docs have span groups."""
    labels: Set[int] = set()
    try:
        check_bin(bin_, vocab)
        docs, converters = bin_.get_docs(vocab), MsgpackConverters()
        for _ in range(len(bin_)):
            with converters:
                doc = next(docs)
            _check_spans(doc, labels)
            check_stored(doc)
            yield doc
    except Exception as error:  # invalid contents can fail anywhere in spaCy
        raise _damaged(path, error) from error


def stream_docs(path: Path) -> Iterator[Doc]:
    """Stream the Docs of a corpus with a vocabulary that does not grow from file to file. A Doc must not be used after
    the next one was requested."""
    for file_ in corpus_files(path):
        vocab = Vocab()
        with vocab.memory_zone():
            yield from read_docs(file_, vocab)


def bare_copy(doc: Doc, vocab: Optional[Vocab] = None) -> Doc:
    """Return a Doc with the same words and nothing else: the part of an annotated Doc that a component may see."""
    values: Any = doc.to_array([ORTH, SPACY])  # many times as fast as token by token
    strings: Any = doc.vocab.strings
    words = [strings[key] for key in values[:, 0].tolist()]
    return Doc(doc.vocab if vocab is None else vocab, words=words, spaces=values[:, 1].astype(bool).tolist())


def full_copy(doc: Doc) -> Doc:
    """Return a copy that shares the values of `doc.user_data`: those of other components may be large, or, like Spans,
    not be copied at all."""
    user_data, doc.user_data = doc.user_data, {}
    try:
        copy = doc.copy()
    finally:
        doc.user_data = user_data
    copy.user_data = {**user_data}
    return copy


def full_copies(docs: Iterable[Doc]) -> Iterator[Doc]:
    """Yield full copies of the Docs that a user gives, and raise an error for anything else."""
    for doc in docs:
        if not isinstance(doc, Doc):
            value = one_line(repr(doc), 60)
            raise WeaknerError(Errors.WK005.format(setting="docs", value=value, expected="a list of Docs"))
        yield full_copy(doc)


def doc_of_words(vocab: Vocab, words: Any, attrs: Sequence[int], values: Any) -> Doc:
    """Create a Doc from words, or from their hashes, and set token attributes. `values` has shape (n_tokens, n_attrs),
    with ORTH and SPACY first. Attributes that no token has are not set."""
    doc = Doc(vocab, words=words, spaces=values[:, 1].astype(bool).tolist())
    used = [i for i in range(2, len(attrs)) if values[:, i].any()]
    if used:
        doc.from_array([attrs[i] for i in used], values[:, used])
    return doc


def copy_with_groups(doc: Doc, groups: Iterable[str], vocab: Optional[Vocab] = None) -> Doc:
    """Return a Doc with the same words and the given span groups, and nothing else."""
    copy = bare_copy(doc, vocab)
    for group in groups:
        copy_group(doc, copy, group)
    return copy


def read_bin(path: Path) -> DocBin:
    try:
        bin_ = DocBin(store_user_data=True).from_disk(path)
        parts = (bin_.spaces, bin_.cats, bin_.flags, bin_.span_groups, bin_.user_data)
        if any(len(part) != len(bin_) for part in parts):
            raise ValueError("its parts have different numbers of documents")
        return bin_
    except Exception as error:  # a damaged file can fail in zlib, msgpack or numpy
        raise _damaged(path, error) from error


def write_docs(path: Path, docs: Iterable[Doc]) -> int:
    """Write one `.spacy` file, whole or not at all. Only the keys of `corpus.weak` are kept of `doc.user_data`."""
    bin_, converters = DocBin(), MsgpackConverters()
    for doc in docs:
        with converters:
            bin_.add(doc)
            bin_.user_data.append(srsly.msgpack_dumps(stored_user_data(doc)))
    bin_.store_user_data = True
    with atomic_path(Path(path)) as temporary:
        bin_.to_disk(temporary)
    return len(bin_)


def _check_spans(doc: Doc, seen: Set[int]) -> None:
    """Check that all spans lie where their tokens do and that their labels are known strings. `seen` holds the labels
    that were looked up before."""
    strings: Any = doc.vocab.strings
    for name, group in doc.spans.items():
        for span in group:
            # Character offsets are stored beside token offsets.
            tokens = doc[span.start : span.end] if 0 <= span.start <= span.end <= len(doc) else None
            if tokens is None or (tokens.start_char, tokens.end_char) != (span.start_char, span.end_char):
                raise ValueError(f"the offsets of a span of the group '{name}' do not fit its tokens")
            if span.label not in seen:
                _ = strings[span.label]
                seen.add(span.label)


def _damaged(path: Path, error: Exception) -> WeaknerError:
    reason = f"{type(error).__name__}: {str(error).split('. ')[0]}"
    cure = "Write it again with 'spacy weakner convert'"
    return WeaknerError(Errors.WK206.format(path=path, reason=reason, cure=cure))


def check_bin(bin_: DocBin, vocab: Vocab) -> None:
    """Check the tokens of a file all at once, which takes a tenth of the time of a check per Doc."""
    # A space with a value over 1 shifts the tokens after it; spaces are stored beside the attributes.
    if SPACY in bin_.attrs or any((spaces.view("uint8") > 1).any() for spaces in bin_.spaces):
        raise ValueError("the tokens do not fit the text")
    strings: Any = vocab.strings
    for string in bin_.strings:
        strings.add(string)
    columns = [column for column, attr in enumerate(bin_.attrs) if attr in HASHES]
    for start in range(0, len(bin_), 1000):
        for key in numpy.unique(numpy.concatenate(bin_.tokens[start : start + 1000])[:, columns]).tolist():
            _ = strings[key]
