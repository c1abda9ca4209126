"""Makes the demo corpus: invented product titles and search queries with gold entities and categories.

    python assets/demo/make_corpus.py OUT --seed 0 --train 3000 --gold 100 --dev 200 --test 800 --languages en,de,fr

Standard library and Typer only. The same seed gives the same bytes, and each file of each language has its own random
stream, so that another size of one file leaves the others as they are (but for sentences that would occur twice), and
a language is the same whatever other languages are asked for. A language is a folder of word lists: see the README.
"""

import csv
import io
import json
import os
import random
import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Dict, Iterator, List, Optional, Sequence, Set, Tuple

import typer

HERE = Path(__file__).resolve().parent
CATEGORIES = ("clothing", "shoes", "kitchen", "furniture", "toys", "garden")
LABELS = ("BRAND", "PRODUCT", "MATERIAL", "COLOR", "PATTERN", "GROUP")
FILES = {
    "BRAND": "brands",
    "PRODUCT": "products",
    "MATERIAL": "materials",
    "COLOR": "colors",
    "PATTERN": "patterns",
    "GROUP": "groups",
    "DEPT": "departments",
}
DEFAULT_LANGUAGE = "en"
LANGUAGES = sorted(path.parent.name for path in HERE.glob("*/templates.csv"))
TYPO_RATE = 0.042
SHADE_RATE = 0.12
PLURAL_RATE = 0.2
TITLE_RATE = 0.65
WRONG_LABEL_RATE = 0.1
AMBIGUOUS_WEIGHT = 0.01
# Share of the entities of a wiki that are links.
LINK_RATE = 0.7
COVERED = {"BRAND": 0.5, "PRODUCT": 0.53, "MATERIAL": 0.6, "COLOR": 0.55, "PATTERN": 0.5, "GROUP": 0.6}
Span = Tuple[int, int, str]
Sentence = Tuple[List[str], List[Span], Dict[str, float]]
Corpus = Tuple[Dict[str, List[Dict]], List[Tuple[str, str]]]


@dataclass
class Word:
    """A term of one of the word lists.

    term (str): The words, in the case of the list.
    plural (str): Its plural, or the term itself.
    categories (Tuple[str, ...]): Product categories in which it is used.
    weight (float): How often it is drawn.
    held_out (bool): Whether it occurs in dev and test only.
    has_shades (bool): Whether it is a color that takes a shade.
    """

    term: str
    plural: str
    categories: Tuple[str, ...]
    weight: float
    held_out: bool
    has_shades: bool


@dataclass
class World:
    """All word lists and templates of a language.

    language (str): Code of the language.
    words (Dict[str, List[Word]]): The terms of each label, and of the slot DEPT.
    noise (List[str]): Phrases without an entity.
    shades (List[str]): Shades, with "{}" for a color.
    sizes (List[str]): Sizes, with "{}" for a number.
    lower (Set[str]): Words that titles do not capitalize.
    wrong (List[Tuple[str, str]]): Label and term of wrong entries for the term list.
    templates (Dict[str, List[Tuple[str, float]]]): Templates and their weights for "title" and "query".
    """

    language: str
    words: Dict[str, List[Word]]
    noise: List[str]
    shades: List[str]
    sizes: List[str]
    lower: Set[str]
    wrong: List[Tuple[str, str]]
    templates: Dict[str, List[Tuple[str, float]]]
    _by_category: Dict[Tuple[str, str, bool], Tuple[List[Word], List[float]]] = field(default_factory=dict)

    def draw(self, rng: random.Random, name: str, category: str, held_out: bool) -> Word:
        """Draw a term for a category.

        rng (random.Random): The random stream.
        name (str): Label or "DEPT".
        category (str): Product category.
        held_out (bool): Whether held-out terms may be drawn.
        RETURNS (Word): The term.
        """
        key = (name, category, held_out)
        if key not in self._by_category:
            words = [w for w in self.words[name] if category in w.categories and (held_out or not w.held_out)]
            self._by_category[key] = (words, list(accumulate(w.weight for w in words)))
        words, cumulative = self._by_category[key]
        return rng.choices(words, cum_weights=cumulative)[0]

    def surfaces(self, label: str) -> Set[str]:
        """All correctly spelled surfaces of a label, in lower case.

        label (str): The label.
        RETURNS (Set[str]): Terms, plurals of products and colors with a shade included.
        """
        forms = {form for word in self.words[label] for form in (word.term, word.plural)}
        forms |= {shaded(shade, word.term) for word in self.words[label] if word.has_shades for shade in self.shades}
        return {form.lower() for form in forms}

    def stream(self, seed: int, name: str) -> random.Random:
        """A random stream of this language.

        seed (int): Seed.
        name (str): Name of the stream.
        RETURNS (random.Random): The stream.
        """
        # English came first: its files stay as they were before there were other languages.
        prefix = "" if self.language == DEFAULT_LANGUAGE else f"{self.language}:"
        return random.Random(f"{seed}:{prefix}{name}")


def read_rows(path: Path) -> List[Dict[str, str]]:
    """Read a CSV file with a header.

    path (Path): The file.
    RETURNS (List[Dict[str, str]]): Its rows.
    """
    with path.open(encoding="utf8", newline="") as file_:
        return list(csv.DictReader(file_))


def read_lines(path: Path) -> List[str]:
    """Read a file with a phrase a line.

    path (Path): The file.
    RETURNS (List[str]): Its lines.
    """
    return path.read_text(encoding="utf8").split("\n")[:-1]


def load_world(language: str = DEFAULT_LANGUAGE, folder: Path = HERE) -> World:
    """Read the word lists and templates of a language.

    language (str): Code of the language, which is the name of its folder.
    folder (Path): Folder with brands.csv, which serves all languages, and the folders of the languages.
    RETURNS (World): The word lists and templates.
    """
    words: Dict[str, List[Word]] = {}
    for name, file_name in FILES.items():
        rows = read_rows((folder if name == "BRAND" else folder / language) / f"{file_name}.csv")
        # Frequent and rare terms: the rank is the same for every seed, so that all seeds share one world.
        ranks = list(range(len(rows)))
        random.Random(f"rank:{name}").shuffle(ranks)
        words[name] = [
            Word(
                term=row["term"],
                plural=row.get("plural") or row["term"],
                categories=tuple(row["categories"].split()) or CATEGORIES,
                weight=(rank + 2) ** -1.15,
                held_out=row.get("held_out") == "yes",
                has_shades=name == "COLOR" and row.get("shades") != "no",
            )
            for row, rank in zip(rows, ranks, strict=True)
        ]
    others = {word.term.lower() for label in LABELS if label != "BRAND" for word in words[label]}
    for word in words["BRAND"]:
        if word.term.lower() in others:
            word.weight = max(word.weight, AMBIGUOUS_WEIGHT)
    templates: Dict[str, List[Tuple[str, float]]] = {"title": [], "query": []}
    for row in read_rows(folder / language / "templates.csv"):
        templates[row["kind"]].append((row["template"], float(row["weight"])))
    return World(
        language=language,
        words=words,
        noise=read_lines(folder / language / "noise.txt"),
        shades=read_lines(folder / language / "shades.txt"),
        sizes=read_lines(folder / language / "sizes.txt"),
        lower=set(read_lines(folder / language / "lower.txt")),
        wrong=[(row["label"], row["term"]) for row in read_rows(folder / language / "wrong_terms.csv")],
        templates=templates,
    )


def shaded(shade: str, color: str) -> str:
    """A color with a shade.

    shade (str): The shade, with "{}" for the color.
    color (str): The color.
    RETURNS (str): Both together.
    """
    # In lower case, for compounds: "Hell" and "Blau" are "Hellblau".
    return shade.replace("{}", color.lower())


def misspell(rng: random.Random, term: str) -> str:
    """Change one letter of one of the longer words.

    rng (random.Random): The random stream.
    term (str): The term.
    RETURNS (str): The term with a swapped, missing, doubled or wrong letter, if one is long enough.
    """
    words = term.split(" ")
    long = [i for i, word in enumerate(words) if len(word) >= 4 and word.isalpha()]
    if not long:
        return term
    i = rng.choice(long)
    word = words[i]
    # Not at the last two letters: "womens" would be split by the tokenizer's rules for contractions.
    at = rng.randrange(1, len(word) - 2)
    kind = rng.choice(("swap", "drop", "double", "replace"))
    if kind == "swap":
        word = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    elif kind == "drop":
        word = word[:at] + word[at + 1 :]
    elif kind == "double":
        word = word[:at] + word[at] + word[at:]
    else:
        word = word[:at] + rng.choice("aeioulnrst") + word[at + 1 :]
    words[i] = word
    return " ".join(words)


def expand(rng: random.Random, template: str) -> List[str]:
    """Choose the optional and alternative parts of a template.

    rng (random.Random): The random stream.
    template (str): "[...]" is left out in half of the cases, "(a|b)" is one of both.
    RETURNS (List[str]): Words and slots.
    """
    template = re.sub(r"\[([^\[\]]*)\]", lambda m: m.group(1) if rng.random() < 0.5 else "", template)
    template = re.sub(r"\(([^()]*)\)", lambda m: rng.choice(m.group(1).split("|")), template)
    return template.split()


def title_case(word: str, lower: Set[str]) -> str:
    """Capitalize a word of a title.

    word (str): The word.
    lower (Set[str]): Words that stay as they are.
    RETURNS (str): The word, capitalized unless it is one of these.
    """
    return word if word in lower else word[:1].upper() + word[1:]


def fill(rng: random.Random, world: World, slot: str, category: str, kind: str, held_out: bool) -> str:
    """Fill one slot.

    rng (random.Random): The random stream.
    world (World): Word lists.
    slot (str): Name of the slot.
    category (str): Product category.
    kind (str): "title" or "query".
    held_out (bool): Whether held-out terms may be drawn.
    RETURNS (str): Words for the slot.
    """
    if slot == "NOISE":
        return rng.choice(world.noise)
    if slot == "NUM":
        return str(rng.choice((10, 15, 20, 25, 30, 40, 50, 100, 200)))
    if slot == "YEAR":
        return str(rng.choice((2022, 2023, 2024, 2025)))
    if slot == "CODE":
        letters = "".join(rng.choice("BDFGHKLNPQRTVXZ") for _ in range(2))
        return f"{letters}{rng.randrange(100, 9999)}"
    if slot == "SIZE":
        return rng.choice(world.sizes).replace("{}", str(rng.randrange(4, 60)))
    word = world.draw(rng, slot, category, held_out)
    term = word.term
    if slot == "PRODUCT" and rng.random() < PLURAL_RATE:
        term = word.plural
    if word.has_shades and rng.random() < SHADE_RATE:
        term = shaded(rng.choice(world.shades), term)
    if slot in LABELS and rng.random() < TYPO_RATE:
        term = misspell(rng, term)
    return term


def make_sentence(rng: random.Random, world: World, held_out: bool) -> Sentence:
    """Make one title or query.

    rng (random.Random): The random stream.
    world (World): Word lists and templates.
    held_out (bool): Whether held-out terms may occur.
    RETURNS (Sentence): Tokens, entities and categories.
    """
    kind = "title" if rng.random() < TITLE_RATE else "query"
    category = rng.choice(CATEGORIES)
    templates = world.templates[kind]
    template = rng.choices([t for t, _ in templates], weights=[w for _, w in templates])[0]
    casing = rng.random()
    upper_brand = rng.random() < 0.15
    tokens: List[str] = []
    ents: List[Span] = []
    last: Dict[str, str] = {}
    for part in expand(rng, template):
        if not part.startswith("{"):
            label, words = "", [part]
        else:
            label = part.strip("{*}")
            if not part.endswith("*}"):
                last[label] = fill(rng, world, label, category, kind, held_out)
            words = last[label].split(" ")
        if kind == "title" and casing < 0.85:
            words = [title_case(word, world.lower) for word in words]
            if label == "BRAND" and upper_brand:
                words = [word.upper() for word in words]
        elif kind == "query" and casing < 0.9:
            words = [word.lower() for word in words]
        if label in LABELS:
            ents.append((len(tokens), len(tokens) + len(words), label))
        tokens.extend(words)
    if kind == "title":
        tokens[0] = tokens[0][:1].upper() + tokens[0][1:]
    return tokens, ents, {name: float(name == category) for name in CATEGORIES}


def sentences(world: World, seed: int, name: str, seen: Set[str], held_out: bool) -> Iterator[Dict]:
    """Make sentences without end, none of them twice.

    world (World): Word lists and templates.
    seed (int): Seed.
    name (str): Name of the file, part of the seed and of the ids.
    seen (Set[str]): Sentences in lower case that may not occur; the new ones are added.
    held_out (bool): Whether held-out terms may occur.
    YIELDS (Dict): Rows with id, tokens, ents and cats.
    """
    rng = world.stream(seed, name)
    number = 0
    while True:
        tokens, ents, cats = make_sentence(rng, world, held_out)
        key = " ".join(tokens).lower()
        if key in seen:
            continue
        seen.add(key)
        spans = [list(ent) for ent in ents]
        yield {"id": f"{name}-{number:05d}", "tokens": tokens, "ents": spans, "cats": cats}
        number += 1


def make_terms(world: World, seed: int) -> List[Tuple[str, str]]:
    """Sample a term list that covers about half of the mentions, with some wrong entries.

    The frequencies come from sentences of a stream of their own, so the list does not depend on any file.

    world (World): Word lists and templates.
    seed (int): Seed.
    RETURNS (List[Tuple[str, str]]): Label and term, sorted.
    """
    counts: Counter = Counter()
    stream = sentences(world, seed, "terms", set(), held_out=False)
    for _ in range(4000):
        row = next(stream)
        for start, end, label in row["ents"]:
            counts[label, " ".join(row["tokens"][start:end]).lower()] += 1
    # One order of brands for all languages: the lists of several languages together still lack about half of them.
    rng = random.Random(f"{seed}:list")
    # Most surfaces with several labels are listed with their most frequent one only.
    best: Dict[str, str] = {}
    for (label, term), _ in counts.most_common():
        best.setdefault(term, label)
    terms: Set[Tuple[str, str]] = set(world.wrong)
    for label in LABELS:
        total = sum(count for (other, _), count in counts.items() if other == label)
        candidates = sorted(word.term for word in world.words[label] if not word.held_out)
        rng.shuffle(candidates)
        covered = 0
        for term in candidates:
            count = counts[label, term.lower()]
            if best.get(term.lower(), label) != label and rng.random() >= WRONG_LABEL_RATE:
                continue
            if covered + count <= COVERED[label] * total:
                covered += count
                terms.add((label, term))
    return sorted(terms)


def make_corpus(
    seed: int = 0,
    train: int = 3000,
    gold: int = 100,
    dev: int = 200,
    test: int = 800,
    world: Optional[World] = None,
    pages: int = 1000,
) -> Corpus:
    """Make the corpus of one language in memory.

    seed (int): Seed.
    train (int): Number of training sentences, gold ones included.
    gold (int): Number of training sentences with gold entities.
    dev (int): Number of development sentences.
    test (int): Number of test sentences.
    world (Optional[World]): Word lists and templates; None reads the English ones beside this file.
    pages (int): Number of sentences of the wiki.
    RETURNS (Corpus): Rows of each split, and the term list.
    """
    if min(train, gold, dev, test, pages) < 0 or gold > train:
        raise ValueError("Sizes must not be negative, and --gold must not be larger than --train.")
    world = world or load_world()
    seen: Set[str] = set()
    splits: Dict[str, List[Dict]] = {}
    for name, size, held_out in (
        ("test", test, True),
        ("dev", dev, True),
        ("gold", gold, False),
        ("text", train - gold, False),
        ("pages", pages, False),
    ):
        stream = sentences(world, seed, name, seen, held_out)
        splits[name] = [next(stream) for _ in range(size)]
    return splits, make_terms(world, seed)


def join_languages(corpora: Dict[str, Corpus]) -> Corpus:
    """Join languages: gold, text and terms of all of them, dev and test of the target language.

    corpora (Dict[str, Corpus]): The corpus of each language, the target language first.
    RETURNS (Corpus): Rows of each split, and the term list. The split "target" is the gold of the target language.
    """
    target = next(iter(corpora))
    joint = {**corpora[target][0], "target": corpora[target][0]["gold"]}
    for name in ("gold", "text"):
        joint[name] = [
            row if language == target else {**row, "id": f"{language}-{row['id']}"}
            for language, (splits, _) in corpora.items()
            for row in splits[name]
        ]
    # Languages share words, brands above all: each entry once.
    return joint, list(dict.fromkeys(entry for _, terms in corpora.values() for entry in terms))


def parse_languages(text: str) -> List[str]:
    """Read the option --languages.

    text (str): Codes, separated by commas.
    RETURNS (List[str]): The codes.
    """
    languages = [part.strip() for part in text.split(",")]
    for language in languages:
        if language not in LANGUAGES:
            raise typer.BadParameter(f"--languages: no language '{language}', there are {', '.join(LANGUAGES)}.")
        if languages.count(language) > 1:
            raise typer.BadParameter(f"--languages names '{language}' twice.")
    return languages


def write(path: Path, text: str) -> None:
    """Write a file in one step: to a temporary name, then renamed.

    path (Path): The file.
    text (str): Its content.
    """
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(text.encode("utf8"))
    os.replace(temporary, path)


def to_jsonl(rows: Sequence[Dict], keys: Sequence[str]) -> str:
    """Serialize rows.

    rows (Sequence[Dict]): The rows.
    keys (Sequence[str]): The keys to keep.
    RETURNS (str): One JSON object a line.
    """
    return "".join(json.dumps({key: row[key] for key in keys}, ensure_ascii=False) + "\n" for row in rows)


def to_wikitext(rows: Sequence[Dict], rng: random.Random) -> str:
    """Write sentences as a page of a wiki, a paragraph each.

    rows (Sequence[Dict]): The rows.
    rng (random.Random): Draws which entities are links.
    RETURNS (str): Wikitext.
    """
    paragraphs = []
    for row in rows:
        words = list(row["tokens"])
        for start, end, _ in row["ents"]:
            if rng.random() < LINK_RATE:
                words[start] = "[[" + words[start]
                words[end - 1] += "]]"
        paragraphs.append(" ".join(words))
    return "\n\n".join(paragraphs) + "\n"


def main(
    out: Annotated[Path, typer.Argument(help="Output folder", file_okay=False)],
    seed: Annotated[int, typer.Option("--seed", help="Random seed")] = 0,
    train: Annotated[int, typer.Option("--train", min=1, help="All training sentences")] = 3000,
    gold: Annotated[int, typer.Option("--gold", min=0, help="Training sentences with gold entities")] = 100,
    dev: Annotated[int, typer.Option("--dev", min=0, help="Development sentences")] = 200,
    test: Annotated[int, typer.Option("--test", min=0, help="Test sentences")] = 800,
    pages: Annotated[int, typer.Option("--pages", min=0, help="Sentences of the wiki")] = 1000,
    languages: Annotated[
        str, typer.Option("--languages", help=f"Target language, then others: of {', '.join(LANGUAGES)}")
    ] = DEFAULT_LANGUAGE,
) -> None:
    """Make the demo corpus: gold, target, dev, test, text and text-gold as JSONL, terms.csv, and pages.wiki.

    --gold and --train are sizes of each language. dev, test, target (a part of gold) and pages hold the first language
    alone.
    """
    if gold > train:
        raise typer.BadParameter("--gold must not be larger than --train.")
    corpora = {
        language: make_corpus(seed, train, gold, dev, test, load_world(language), pages)
        for language in parse_languages(languages)
    }
    splits, terms = join_languages(corpora)
    out.mkdir(parents=True, exist_ok=True)
    full = ("id", "tokens", "ents", "cats")
    for name, split, keys in (
        ("gold", "gold", full),
        ("target", "target", full),
        ("dev", "dev", full),
        ("test", "test", full),
        ("text", "text", ("id", "tokens", "cats")),
        ("text-gold", "text", full),
    ):
        write(out / f"{name}.jsonl", to_jsonl(splits[split], keys))
    write(out / "pages.wiki", to_wikitext(splits["pages"], random.Random(f"{seed}:links")))
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(("label", "term", "id"))
    # Products have ids, as in a shop's catalogue; the other terms have none.
    writer.writerows((*entry, f"P{n:04}" if entry[0] == "PRODUCT" else "") for n, entry in enumerate(terms, start=1))
    write(out / "terms.csv", buffer.getvalue())
    sizes = ", ".join(f"{len(rows)} {name}" for name, rows in splits.items())
    typer.echo(f"{out}: {sizes}, {len(terms)} terms")


if __name__ == "__main__":
    typer.run(main)
