"""Reading and writing `.spacy` files: one file, or a folder of them (shards)."""

from pathlib import Path
from typing import Any, Iterable, Iterator, List, Optional, Set

from spacy.attrs import ORTH, SPACY
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from .._compat import MsgpackConverters
from ..errors import Errors, WeaknerError
from ..files import atomic_path, existing, visible_files
from .packing import DocPacker, check_bin
from .weak import check_stored, copy_group, stored_user_data

SUFFIX = ".spacy"
# A folder is being filled, or was when its run ended.
UNFINISHED = ".unfinished"


def receipt_path(shard: Path) -> Path:
    """RETURNS (Path): Where a stage notes what it has made a `.spacy` file from."""
    return shard.with_name(f"{shard.name}.json")


def check_whole(path: Path) -> None:
    """Check that a corpus is not being written.

    path (Path): A file, or a folder.
    RAISES (WeaknerError): If it is, or its run has ended before.
    """
    if (path / UNFINISHED).exists():
        raise WeaknerError(Errors.WK789.format(path=path))


def corpus_files(path: Path) -> List[Path]:
    """The `.spacy` files of a corpus.

    path (Path): A file, or a folder that is searched with its subfolders.
    RETURNS (List[Path]): The files, sorted by name.
    RAISES (WeaknerError): If the path does not exist or holds no such file, or not all of a corpus.
    """
    path = existing(Path(path))
    check_whole(path)
    files = [path] if path.is_file() else found_files(path)
    if not files:
        raise WeaknerError(Errors.WK101.format(path=path))
    return files


def found_files(folder: Path) -> List[Path]:
    """RETURNS (List[Path]): The `.spacy` files of a folder and its subfolders, sorted by name, whole or not."""
    return visible_files(folder, SUFFIX)


def read_docs(path: Path, vocab: Vocab) -> Iterator[Doc]:
    """Stream the Docs of a corpus; one file at a time is in memory.

    path (Path): A `.spacy` file or a folder of them.
    vocab (Vocab): The vocabulary of the Docs.
    YIELDS (Doc): The Docs, in the order of the files.
    RAISES (WeaknerError): If there is no such file, or one cannot be read.
    """
    for file_ in corpus_files(path):
        yield from bin_docs(read_bin(file_), vocab, file_)


def bin_docs(bin_: DocBin, vocab: Vocab, path: Path) -> Iterator[Doc]:
    """The Docs of a `.spacy` file: as `bin_.get_docs`, but many times as fast where Docs have span groups.

    bin_ (DocBin): What the file holds.
    vocab (Vocab): The vocabulary of the Docs.
    path (Path): The file.
    YIELDS (Doc): The Docs.
    RAISES (WeaknerError): If what it holds are no Docs.
    """
    docs, converters = bin_.get_docs(vocab), MsgpackConverters()
    labels: Set[int] = set()
    checked = False
    while True:
        try:
            if not checked:
                check_bin(bin_, vocab)
                checked = True
            with converters:
                doc = next(docs, None)
            if doc is not None:
                _check_spans(doc, labels)
                check_stored(doc)
        except Exception as error:  # wrong contents can fail anywhere in spaCy
            raise _damaged(path, error) from error
        if doc is None:
            break
        yield doc


def stream_docs(path: Path) -> Iterator[Doc]:
    """Stream the Docs of a corpus with a vocabulary that does not grow from file to file. A Doc must not be used any
    more when the next one is asked for.

    path (Path): A `.spacy` file or a folder of them.
    YIELDS (Doc): The Docs, in the order of the files.
    RAISES (WeaknerError): If there is no such file, or one cannot be read.
    """
    for file_ in corpus_files(path):
        vocab = Vocab()
        with vocab.memory_zone():
            yield from read_docs(file_, vocab)


def bare_copy(doc: Doc, vocab: Optional[Vocab] = None) -> Doc:
    """A Doc with the same words and nothing else: what a component may see of an annotated one.

    doc (Doc): The Doc.
    vocab (Optional[Vocab]): Vocabulary of the copy; None: that of the Doc.
    RETURNS (Doc): The copy.
    """
    values: Any = doc.to_array([ORTH, SPACY])  # many times as fast as to ask every token
    strings: Any = doc.vocab.strings
    words = [strings[key] for key in values[:, 0].tolist()]
    return Doc(doc.vocab if vocab is None else vocab, words=words, spaces=values[:, 1].astype(bool).tolist())


def copy_with_groups(doc: Doc, groups: Iterable[str], vocab: Optional[Vocab] = None) -> Doc:
    """A Doc with the same words and some of the same span groups, and nothing else.

    doc (Doc): The Doc.
    groups (Iterable[str]): Names of groups; those that the Doc does not have are passed over.
    vocab (Optional[Vocab]): Vocabulary of the copy; None: that of the Doc.
    RETURNS (Doc): The copy.
    """
    copy = bare_copy(doc, vocab)
    for group in groups:
        copy_group(doc, copy, group)
    return copy


def read_bin(path: Path) -> DocBin:
    """Read one `.spacy` file.

    path (Path): The file.
    RETURNS (DocBin): Its contents.
    RAISES (WeaknerError): If it is not one.
    """
    try:
        bin_ = DocBin(store_user_data=True).from_disk(path)
        parts = (bin_.spaces, bin_.cats, bin_.flags, bin_.span_groups, bin_.user_data)
        if any(len(part) != len(bin_) for part in parts):
            raise ValueError("its parts belong to different numbers of documents")
        return bin_
    except Exception as error:  # a damaged file can fail in zlib, msgpack or numpy
        raise _damaged(path, error) from error


def write_docs(path: Path, docs: Iterable[Doc]) -> int:
    """Write one `.spacy` file, whole or not at all. Of `doc.user_data` only the keys of `corpus.weak` are
    kept.

    path (Path): The file.
    docs (Iterable[Doc]): What to write.
    RETURNS (int): The number of Docs.
    """
    bin_, converters = DocPacker(), MsgpackConverters()
    for doc in docs:
        with converters:
            bin_.add(doc, stored_user_data(doc))
    with atomic_path(Path(path)) as temporary:
        bin_.to_disk(temporary)
    return len(bin_)


def _check_spans(doc: Doc, seen: Set[int]) -> None:
    """Check that all spans stand where tokens do, and their labels are those of strings; `seen` are labels that were
    looked up before."""
    strings: Any = doc.vocab.strings
    for name, group in doc.spans.items():
        for span in group:
            # Its places in the text are stored beside those among the tokens.
            tokens = doc[span.start : span.end] if 0 <= span.start <= span.end <= len(doc) else None
            if tokens is None or (tokens.start_char, tokens.end_char) != (span.start_char, span.end_char):
                raise ValueError(f"a span of the group '{name}' does not stand where its tokens do")
            if span.label not in seen:
                _ = strings[span.label]
                seen.add(span.label)


def _damaged(path: Path, error: Exception) -> WeaknerError:
    reason = f"{type(error).__name__}: {str(error).split('. ')[0]}"
    return WeaknerError(Errors.WK102.format(path=path, reason=reason))
