# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # From a term list to a pipeline
#
# You have raw text, a term list that finds part of what you want, and a few sentences that somebody has
# annotated. This notebook goes from there to a spaCy pipeline, and shows at each step what the labels look
# like. It needs no GPU. Its corpus is made up on the spot, so that nothing is downloaded; put your own files in its
# place.
#
# (`spacy weakner init project` does all of this, and more, with one command. Here you see what happens.)

# %%
import contextlib
import io
import random
import tempfile
from pathlib import Path

import spacy
import srsly
from IPython.display import HTML, display
from spacy import displacy
from spacy.cli.train import train

from spacy_weakner.configs import render_config
from spacy_weakner.conversion.convert import convert
from spacy_weakner.corpus.docbin import read_docs
from spacy_weakner.corpus.weak import weak_sources
from spacy_weakner.evaluation.analyze import analyze
from spacy_weakner.evaluation.compare import compare
from spacy_weakner.evaluation.report import report
from spacy_weakner.evaluation.tables import analysis_tables, comparison_table
from spacy_weakner.labeling.label import label

folder = Path(tempfile.mkdtemp())

# %% [markdown]
# ## A corpus
#
# Titles of products, with their brands and materials. Each is a row of tokens with its entities, `[start, end,
# label]` in tokens; ends are exclusive.

# %%
BRANDS = [["Amber", "Gate"], ["Blue", "Ferret"], ["Bramanta"], ["Olive", "Yard"], ["Tessel"], ["Old", "Harbour"]]
MATERIALS = [["wool"], ["merino", "wool"], ["linen"], ["organic", "cotton"], ["cotton"], ["oak"], ["walnut"], ["steel"]]
THINGS = ["coat", "shirt", "scarf", "table", "chair", "kettle", "tray", "rug"]
COLORS = ["navy", "olive", "red", "walnut", "white"]
PATTERNS = [
    ["BRAND", "MATERIAL", "THING"],
    ["THING", "by", "BRAND", ",", "made", "of", "MATERIAL"],
    ["COLOR", "MATERIAL", "THING", "with", "MATERIAL", "trim"],
    ["new", "BRAND", "THING", "in", "COLOR"],
    ["COLOR", "THING", "for", "the", "garden"],
]


def title(rng):
    words = {"THING": [[each] for each in THINGS], "COLOR": [[each] for each in COLORS]}
    words.update(BRAND=BRANDS, MATERIAL=MATERIALS)
    tokens, ents = [], []
    for slot in rng.choice(PATTERNS):
        chosen = rng.choice(words[slot]) if slot in words else [slot]
        if slot in ("BRAND", "MATERIAL"):
            ents.append([len(tokens), len(tokens) + len(chosen), slot])
        tokens += chosen
    return {"tokens": tokens, "ents": ents}


rng = random.Random(1)
seen, rows = set(), []
while len(rows) < 430:
    row = title(rng)
    if tuple(row["tokens"]) not in seen:
        seen.add(tuple(row["tokens"]))
        rows.append(row)
splits = {"gold": rows[:30], "test": rows[30:230], "text": rows[230:]}
# Nobody has looked at the text: its entities are taken away.
splits["text"] = [{"tokens": row["tokens"], "ents": None} for row in splits["text"]]
for name, some in splits.items():
    srsly.write_jsonl(folder / f"{name}.jsonl", some)
    convert(folder / f"{name}.jsonl", folder / f"{name}.spacy")
rows[0]

# %% [markdown]
# ## Two sources
#
# A term list of half of the brands and materials, one of which is also a color ("walnut"), and rules: "of" or "with"
# and the word behind it are a material, and so are some words wherever they stand. Both are wrong at times (the first
# rule takes the preposition along), and neither is complete.

# %%
terms = [("BRAND", " ".join(each)) for each in BRANDS[:3]]
terms += [("MATERIAL", " ".join(each)) for each in (MATERIALS[0], MATERIALS[2], MATERIALS[4], MATERIALS[6])]
srsly.write_jsonl(folder / "terms.jsonl", [{"label": name, "term": term} for name, term in terms])
rules = [{"label": "MATERIAL", "pattern": [{"LOWER": {"IN": ["of", "with"]}}, {"IS_ALPHA": True}]}]
rules += [{"label": "MATERIAL", "pattern": [{"LOWER": {"IN": ["cotton", "wool", "linen", "oak", "steel"]}}]}]
srsly.write_jsonl(folder / "rules.jsonl", rules)

sources = folder / "sources.cfg"
sources.write_text('[sources.list]\nterms = "terms.jsonl"\n\n[sources.rules]\npatterns = "rules.jsonl"\n')
for name in splits:
    label(folder / f"{name}.spacy", folder / f"{name}-labeled.spacy", sources=sources)

# %% [markdown]
# Each source writes to a span group of its own, `weak:<source>`; gold stays what it is. Where do they disagree?

# %%
COLOR = {"BRAND": "#8ec5e8", "MATERIAL": "#8fd9bf"}
nlp = spacy.blank("en")
docs = list(read_docs(folder / "gold-labeled.spacy", nlp.vocab))


def spans_of(doc, source):
    return [(span.start, span.end, span.label_) for span in doc.spans[f"weak:{source}"]]


disagree = [doc for doc in docs if spans_of(doc, "list") != spans_of(doc, "rules")]
print(f"{len(disagree)} of {len(docs)} titles, in which the sources {', '.join(weak_sources(docs[0]))} disagree")


def picture(doc, spans, name):
    ents = [
        {"start": span.start_char, "end": span.end_char, "label": span.label_}
        for span in spacy.util.filter_spans(spans)
    ]
    given = [{"text": doc.text, "ents": ents, "title": name}]
    return displacy.render(given, style="ent", manual=True, jupyter=False, options={"colors": COLOR})


for doc in disagree[:3]:
    groups = {"gold": doc.ents, "list": doc.spans["weak:list"], "rules": doc.spans["weak:rules"]}
    display(HTML("".join(picture(doc, [*spans], name) for name, spans in groups.items())))

# %% [markdown]
# ## The audit
#
# `analyze` counts what each source finds, how far they agree, and, where there is gold, how often they are
# right. On gold one sees what a source is worth before anything is trained.


# %%
def show(table):
    widths = [max(map(len, cells)) for cells in zip(table.header, *table.rows, strict=True)]
    print(table.title)
    for line in [table.header, *table.rows]:
        print("  ".join(f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True)))
    print()


for table in analysis_tables(analyze(folder / "gold-labeled.spacy")):
    if {"P", "R", "F1"} <= {*table.header} or table.title == "Sources":
        show(table)

# %% [markdown]
# ## Two pipelines
#
# A linear CRF takes seconds. One learns from the 30 gold titles alone. The other also reads what the term list
# says of each token, as a feature: it learns how far the list is to be trusted, and the packaged pipeline
# carries the list along.

# %%
settings = {
    "gold alone": ("crf_ner", {}),
    "linear with list": ("crf_ner.terms", {"paths.terms": str(folder / "terms.jsonl")}),
}
candidates = {"term list": f"{folder / 'test-labeled.spacy'}#list"}
for name, (recipe, more) in settings.items():
    config = folder / f"{recipe}.cfg"
    config.write_text(render_config(recipe, "linear"), encoding="utf-8")
    corpora = {"paths.train": str(folder / "gold.spacy"), "paths.dev": str(folder / "gold.spacy")}
    # Without this line you see how the training goes.
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        train(config, folder / recipe, overrides={**corpora, **more})
    candidates[name] = folder / recipe / "model-last"

# %% [markdown]
# ## The table
#
# All are scored on the same test titles. The interval tells how far F1 would move on other titles of this kind.

# %%
scores = compare(folder / "test.spacy", candidates)
show(comparison_table(scores))

# %% [markdown]
# ## The report
#
# The same and more as one HTML file, which opens with the answer and needs nothing else: calibration, recall by
# length, and the sentences with most errors.

# %%
report(folder / "report.html", test=folder / "test.spacy", candidates=candidates, labels=folder / "gold-labeled.spacy")
(folder / "report.html").exists()

# %% [markdown]
# ## The pipeline
#
# It is a spaCy pipeline like any other. `scores` asks it how sure it is of each entity.

# %%
nlp = spacy.load(candidates["linear with list"], config={"components": {"crf_ner": {"scores": True}}})
doc = nlp("Old Harbour linen coat with wool trim")
for ent in doc.ents:
    print(f"{ent.text:15} {ent.label_:10} {ent._.weakner_score:.2f}")
display(HTML(picture(doc, [*doc.ents], "what the pipeline finds")))

# %% [markdown]
# What next? With your own files, `spacy weakner init project` tries more candidates, and packages a
# combination of them. The 200 titles of raw text here are still unused: a project also trains a head on the list's
# labels of them.
