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
# You have text, a term list with ids, and a few hundred annotated sentences. This notebook shows what each of them is
# worth, and trains a spaCy pipeline that finds names, including names that are not in the list, and assigns their ids.
#
# The text is the Python reference manual, which is part of Python (`pydoc_data`). The task is to find names of the
# language in prose, for example to decide whether "with" is a keyword or an English word. Nothing is downloaded, and no
# GPU is needed.

# %%
import builtins
import keyword
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from pydoc_data.topics import topics

import spacy
import srsly
from IPython.display import HTML, display
from spacy import displacy

from spacy_weakner.conversion.convert import convert
from spacy_weakner.corpus.docbin import read_docs
from spacy_weakner.evaluation.analyze import analyze
from spacy_weakner.evaluation.compare import compare
from spacy_weakner.evaluation.tables import analysis_tables, comparison_table
from spacy_weakner.labeling.label import label
from spacy_weakner.project.new import init_project

folder = Path(tempfile.mkdtemp())

# %% [markdown]
# ## Text and gold
#
# The manual puts names in quotation marks: "ValueError", "with", "len()". These marks are the annotation. They are
# removed from the text, so that a name has to be recognized from the name itself and its context. 300 sentences are
# gold and 700 are the test set. The labels of the other sentences are discarded: they are the unlabeled text.


# %%
def label_of(name):
    bare = name.removesuffix("()")
    found = getattr(builtins, bare, None)
    if isinstance(found, type) and issubclass(found, BaseException):
        return "EXCEPTION"
    if keyword.iskeyword(bare):
        return "KEYWORD"
    return "FUNCTION" if name.endswith("()") and bare.isidentifier() else None


def sentences():
    for topic in topics.values():
        for paragraph in re.split(r"\n\s*\n", topic):
            paragraph = " ".join(paragraph.split())
            if paragraph.endswith((".", ":")) and ">>>" not in paragraph:
                yield from re.split(r"(?<=[.:;]) (?=[A-Z])", paragraph)


def row_of(sentence):
    text, spans, end = "", [], 0
    for quoted in re.finditer(r'(?<!\w)"([^"\s]+)"(?!\w)', sentence):
        text += sentence[end : quoted.start()]
        name = label_of(quoted[1])
        shown = quoted[1].removesuffix("()") if name else quoted[1]
        if name:
            spans.append({"start": len(text), "end": len(text) + len(shown), "label": name})
        text, end = text + shown, quoted.end()
    return {"text": text + sentence[end:], "spans": spans}


rows = [row_of(sentence) for sentence in dict.fromkeys(sentences()) if 6 <= len(sentence.split()) <= 60]
random.Random(1).shuffle(rows)
srsly.write_jsonl(folder / "gold.jsonl", rows[:300])
srsly.write_jsonl(folder / "test.jsonl", rows[300:1000])
srsly.write_jsonl(folder / "text.jsonl", [{"text": row["text"]} for row in rows[1000:]])
print(f"{len(rows)} sentences; {sum(len(row['spans']) for row in rows[:300])} names in 300 sentences of gold")

# %% [markdown]
# ## A term list with ids
#
# The list contains the keywords and the names of the module `builtins`. The id of a name in `builtins` is the address
# of its documentation. The list is complete for keywords and exceptions, but lacks methods. It is wrong wherever "in"
# or "for" is an English word.

# %%
LIBRARY = "https://docs.python.org/3/library"
terms = [{"label": "KEYWORD", "term": word, "id": f"keyword:{word}"} for word in keyword.kwlist]
for name, value in vars(builtins).items():
    if isinstance(value, type) and issubclass(value, BaseException):
        terms.append({"label": "EXCEPTION", "term": name, "id": f"{LIBRARY}/exceptions.html#{name}"})
    elif callable(value) and not name.startswith("_"):
        terms.append({"label": "FUNCTION", "term": name, "id": f"{LIBRARY}/functions.html#{name}"})
srsly.write_jsonl(folder / "terms.jsonl", terms)

# %% [markdown]
# ## What the list finds
#
# `label` writes the matches to a separate span group, `weak:gazetteer`, and does not change the gold.

# %%
convert(folder / "gold.jsonl", folder / "gold.spacy")
label(folder / "gold.spacy", folder / "labeled.spacy", terms=folder / "terms.jsonl")
docs = list(read_docs(folder / "labeled.spacy", spacy.blank("en").vocab))
COLORS = {"KEYWORD": "#8ec5e8", "FUNCTION": "#8fd9bf", "EXCEPTION": "#f2c6a0"}


def picture(doc, spans, title):
    ents = [{"start": span.start_char, "end": span.end_char, "label": span.label_} for span in spans]
    given = [{"text": doc.text, "ents": ents, "title": title}]
    return displacy.render(given, style="ent", manual=True, jupyter=False, options={"colors": COLORS})


for doc in [doc for doc in docs if len(doc.ents) > 1][:3]:
    groups = {"gold": doc.ents, "list": doc.spans["weak:gazetteer"]}
    display(HTML("".join(picture(doc, [*spans], title) for title, spans in groups.items())))

# %% [markdown]
# `analyze` shows, before anything is trained, how many gold entities the list finds and how often its matches are
# right.


# %%
def show(table):
    widths = [max(map(len, cells)) for cells in zip(table.header, *table.rows, strict=True)]
    print(table.title)
    for line in [table.header, *table.rows]:
        print("  ".join(f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True)))
    print()


for table in analysis_tables(analyze(folder / "labeled.spacy")):
    if {"P", "R", "F1"} <= {*table.header} or table.title == "Sources":
        show(table)

# %% [markdown]
# ## A project
#
# `init project` checks the files and writes a project; `weasel run all` trains models on the gold and on the list's
# labels in the text, combines them, and packages the result. It takes about a minute.

# %%
files = {name: folder / f"{name}.jsonl" for name in ("gold", "text", "terms")}
init_project(folder / "names", **files)
command = [sys.executable, "-m", "weasel", "run", "all", folder / "names"]
done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
print("\n".join(done.stdout.splitlines()[-12:]))
done.check_returncode()

# %% [markdown]
# ## The table
#
# The project has not used the test set. The interval shows how much F1 would vary on other sentences of this kind.

# %%
training = folder / "names" / "training"
convert(folder / "test.jsonl", folder / "test.spacy")
label(folder / "test.spacy", folder / "test-labeled.spacy", terms=folder / "terms.jsonl")
candidates = {
    "term list": f"{folder / 'test-labeled.spacy'}#gazetteer",
    "combined": training / "combined",
}
show(comparison_table(compare(folder / "test.spacy", candidates)))

# %% [markdown]
# ## The pipeline
#
# The result is an ordinary spaCy pipeline. Each entity has a score, the probability that it is right, and, if the list
# has one, an id; `__lookup__` is not in the list.

# %%
nlp = spacy.load(training / "combined")
doc = nlp("If no value is found in the list, __lookup__ is called with the name, and raises KeyError or calls len.")
for ent in doc.ents:
    print(f"{ent.text:12} {ent.label_:10} {ent._.weakner_score:.2f}  {ent.kb_id_}")
display(HTML(picture(doc, [*doc.ents], "what the pipeline finds")))
