"""Word vectors computed from the neighbors of words in a text."""

from pathlib import Path
from typing import NamedTuple, Optional, Sequence

from spacy.vectors import Vectors

from ..corpus.counts import RowCounts
from ..corpus.formats.reading import sentence_keys
from ..corpus.language import corpus_language
from ..corpus.sentences import sentence_key
from ..errors import Errors, WeaknerError
from ..files import existing
from ..progress import Progress
from ..runtime.output import made_folder, making
from .cooccurrence import SentenceSample, count_neighbors, decompose, information
from .reading import stream_text

# The most frequent words: how many are used as contexts, and how many get a vector.
CONTEXTS, MAX_WORDS = 2000, 100_000
# Maximum width of the vectors; words that occur less often have none.
_WIDTH, _LEAST = 64, 3


class VectorsReport(NamedTuple):
    """The vectors, and the data they were computed from."""

    words: int  # words with a vector; case and digits are folded
    width: int  # width of the vectors
    sentences: int  # sentences that were counted
    read: int  # sentences of the text
    excluded: int  # other sentences, which are in the excluded corpora
    tokens: int  # tokens that were counted
    different: int  # distinct words among these
    remarks: Sequence[str] = ()  # on what was read


# If there are more, a sample of between half this number and all of it is drawn.
MAX_SENTENCES = 1_000_000


@making("output_path", "inputs", "exclude", folder=True)
def vectors(
    inputs: Sequence[Path],
    output_path: Path,
    *,
    exclude: Sequence[Path] = (),
    overwrite: bool = False,
    lang: Optional[str] = None,
    tokenizer: Optional[str] = None,
    format: Optional[str] = None,
    progress: bool = False,
) -> VectorsReport:
    """Make word vectors from text, without a pre-trained model: the positive pointwise mutual information of each word
    and the most frequent words at the four nearest positions, reduced to its largest singular values (Levy and
    Goldberg, 2014). Case is ignored, and all digits are equal; words without frequent neighbors have no vector. The
    output is a pipeline without components, whose vectors any config can load by `[initialize] vectors`.

    inputs (Sequence[Path]): Corpora in any format; labels are not used.
    output_path (Path): Folder for the pipeline; written whole or not at all.
    exclude (Sequence[Path]): Corpora, such as the gold, whose sentences are left out: see `label`.
    overwrite (bool): Replace an output that was edited.
    lang, tokenizer, format: See `convert`.
    progress (bool): Show progress.
    RETURNS (VectorsReport): The vectors, and the data they were computed from.
    RAISES (WeaknerError): If an input cannot be read or has no words, or the output is refused.
    """
    paths, output_path = [Path(path) for path in inputs], Path(output_path)
    languages = [corpus_language(path, lang, tokenizer) for path in paths]
    n_excluded, counts = 0, RowCounts()
    sample = SentenceSample(MAX_SENTENCES, seed=0)
    for path, language in zip(paths, languages, strict=True):
        nlp = language.blank()
        excluded = sentence_keys(map(existing, map(Path, exclude)), nlp)
        docs = stream_text(path, nlp, counts, format)
        for doc in Progress(docs, desc=f"vectors {path.name}", unit="sentence", enabled=progress):
            if excluded and sentence_key(doc.text) in excluded:
                n_excluded += 1
            else:
                sample.add(doc)
    if not sample.words:
        raise WeaknerError(Errors.WK101.format(path=", ".join(map(str, paths))))
    words = sample.frequent(_LEAST)[:MAX_WORDS]
    made = decompose(information(count_neighbors(sample.sentences, words, CONTEXTS)), _WIDTH, seed=0)
    known = made.any(axis=1)
    rows = {word: row for row, word in enumerate(words[known].tolist())}
    found = languages[0].blank()
    # Also words as written: spaCy looks up only these.
    keys = {sample.words[word]: row for word, row in rows.items()}
    keys.update({form: rows[word] for form, word in sample.forms.items() if word in rows})
    table = Vectors(strings=found.vocab.strings, data=made[known], name="text")
    for form, row in keys.items():
        table.add(found.vocab.strings.add(form), row=row)
    found.vocab.vectors = table
    with made_folder(output_path) as folder:
        found.to_disk(folder)
    tokens = sum(map(len, sample.sentences))
    return VectorsReport(
        words=len(rows),
        width=made.shape[1],
        sentences=len(sample.sentences),
        read=sample.read,
        excluded=n_excluded,
        tokens=tokens,
        different=len(sample.frequent(1)),
        remarks=counts.remarks,
    )
