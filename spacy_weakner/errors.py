"""All messages to users: each says what is wrong, where, and what to change."""

import unicodedata
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Iterable, Optional

# Of a message; more of it would hide what matters.
LONGEST = 1500
_CUT = " [...] "
# What ends a line, moves the cursor, turns the direction of writing round, or is half of a surrogate pair.
_ESCAPED = frozenset(["Cc", "Cs", "Zl", "Zp"])
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class WeaknerError(ValueError):
    """Bad input or settings: the command line prints its message alone, without a traceback.

    message (str): The message. What stands in data goes into it as it is; it is made one line here.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(one_line(str(message)))


class UnknownLabel(KeyError):
    """A label that a component was not initialized with, which is the argument."""


def one_line(text: str, longest: int = LONGEST) -> str:
    """Make a text fit to be printed as a message: on one line, shorter than `longest`, without characters that control
    terminals."""
    if not text.isprintable():
        text = "".join(map(_escaped, text))
    if len(text) < longest:
        return text
    end = longest // 3
    return text[: longest - 1 - end - len(_CUT)] + _CUT + text[-end:]


def shorten(text: str, width: int) -> str:
    """Cut a text after `width` characters, for a message or a table, and escape what controls terminals."""
    text = text if text.isprintable() else "".join(map(_escaped, text[: width + 1]))
    return text if len(text) <= width else f"{text[: width - 3]}..."


def _escaped(char: str) -> str:
    if unicodedata.category(char) not in _ESCAPED and char not in _TURNING:
        return char
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")


class Errors:
    # Settings
    WK005 = "[WK005] The setting '{setting}' = {value} is invalid: expected {expected}."
    WK010 = "[WK010] '{setting}' is not set. Give {what}, in the config or on the command line (--{setting} PATH)."
    WK331 = "[WK331] '{setting}' works only {where}. Leave it out{instead}."
    WK364 = "[WK364] The config {config} has {reason}."
    WK369 = (
        "[WK369] {reason} Run the command with '--help' to list its options. To override a setting of the config, "
        "write its dotted name, for example --training.max_steps 100."
    )
    WK370 = (
        "[WK370] {option} is not an option of this command: variables are those of a project. Change '{name}' in its "
        "project.yml, or give it to weasel: weasel run all . --vars.{name} VALUE"
    )
    WK013 = "[WK013] Two packages have a recipe '{name}': {first} and {second}. Rename one of them."
    WK020 = (
        "[WK020] {what} with {there}, but the config has {here}. Change the config back to the first value, or create "
        "the corpus or pipeline again with the new value."
    )
    WK303 = (
        "[WK303] Give exactly one of these: a term list (terms), a pipeline (pipeline), or a file that declares "
        "sources (sources)."
    )
    WK401 = "[WK401] Give at least one candidate as NAME=PATH, each with a different name ({reason})."
    WK411 = (
        "[WK411] {what}. Give a test set with candidates to compare (test, candidates), or a corpus of weak labels to "
        "analyze (labels), or both."
    )
    WK602 = (
        "[WK602] The size '{size}' has no {setting} of a Transformer. Remove this setting, or choose another size. For "
        "'{recipe}', these have it: {sizes}."
    )
    # Files
    WK100 = "[WK100] Not found: {path}. Check the path{hint}."
    WK109 = "[WK109] {path} is a folder, but a file is needed here. Give the path of a file."
    WK101 = "[WK101] No documents in {path}: the corpus is empty."
    WK103 = "[WK103] {path}, {place}: {reason}"
    WK106 = (
        '[WK106] {path} is not a .spacy file, which "spacy_weakner.Corpus.v1" reads. Convert it: spacy weakner convert '
        '{file} {new}. (Or read rows of .jsonl with @readers = "spacy_weakner.JsonlCorpus.v1".)'
    )
    WK104 = "[WK104] {path} {found} (line {line}, byte {position}: {reason}). {cure}"
    WK620 = (
        "[WK620] {path} contains zero bytes (line {line}, byte {position}), so it is not plain text or is damaged. "
        "Save it again as UTF-8, or remove the zero bytes: tr -d '\\000' < {file} > {out}"
    )
    WK105 = "[WK105] Cannot determine the format of {path}. {cure}."
    WK206 = "[WK206] {path} cannot be read ({reason}). {cure}."
    WK304 = (
        "[WK304] The output {path} is the same as the input {input}, lies in it, or contains a part of it. Inputs are "
        "never overwritten: choose another output."
    )
    WK305 = "[WK305] The output {path} must be {expected}."
    WK300 = (
        "[WK300] {path} exists, but it is not the result of an earlier run of this command with this output, so it is "
        "neither overwritten nor removed. Remove it, or choose another output."
    )
    WK314 = (
        "[WK314] {path} {exists}. Choose another output, or set 'overwrite' (command line: --overwrite) to replace it."
    )
    WK785 = "[WK785] {path} could not be written: {reason}. {cure}, and run the same command again."
    WK786 = (
        "[WK786] {path} is a pipe or a device, which can be read only once, but this command reads it several times. "
        "Write its contents to a file first, and give that file."
    )
    WK787 = (
        "[WK787] {path} is being written by another run, which holds the lock {lock}. Two runs cannot share an output: "
        "wait for the other run, stop it, or choose another output."
    )
    WK789 = (
        "[WK789] The corpus in {path} is incomplete: the run that writes it was interrupted or is still running. Run "
        "the same command again. If you wrote the corpus in parts (--shard), run the command once without --shard."
    )
    # Formats of other tools
    WK371 = (
        "[WK371] {path} is WebAnno TSV, whose columns are not tokens and tags. Export the documents from INCEpTION as "
        "'CoNLL 2002'. Or export them as 'UIMA CAS XMI', and convert them with the script in docs/formats.md#inception."
    )
    WK372 = (
        "[WK372] No document {place} has the span group '{key}' (groups there: {groups}). Correct 'spans_key' (command "
        "line: --spans-key), or remove it to use the entities."
    )
    WK742 = (
        "[WK742] {path}, {place}: the span {span} should cover {expected}, but the text there is {found}. Records with "
        "such spans, out of {n}, by unit of the offsets: {misfits}. Correct the span, or let such spans count as "
        "unknown: spacy weakner convert {file} NEW.spacy --offsets {unit}"
    )
    WK746 = (
        "[WK746] {path}: the token {token} with the tag {tag} (in {text}) could not be read back from columns. Rename "
        "the label, remove the token, or write .jsonl."
    )
    # Pipelines, encoders and devices
    WK108 = "[WK108] Cannot load {what}: {reason}."
    WK350 = "[WK350] {package} is not installed. Install the extra '{extra}': pip install \"spacy_weakner[{extra}]\"."
    WK351 = (
        "[WK351] Cannot load the encoder '{name}': {reason}. Give the folder of a Hugging Face model, or the name of "
        "one that can be downloaded or is in the cache."
    )
    WK352 = (
        "[WK352] The encoder '{name}' has no safetensors weights. Weights in other formats are not read, because "
        "pickles can execute code. If you trust the encoder, load it yourself and save it with save_pretrained(folder, "
        "safe_serialization=True)."
    )
    WK353 = "[WK353] '{name}' cannot be used: {reason}."
    WK354 = (
        "[WK354] The checkpoint '{name}' has no head for masked-language modeling (missing weights: {missing}). Choose "
        "a checkpoint with such a head, or train a new head with 'spacy weakner encoder adapt --train-head'."
    )
    WK358 = "[WK358] {what} cannot be used: {reason}."
    WK432 = "[WK432] Cannot use the GPU {gpu_id}: {reason}. Choose another GPU, or use the CPU (--gpu-id -1)."
    WK738 = (
        "[WK738] There are no stored vectors of the sentence '{text}' in {path}. This pipeline is for the sentences of "
        "a project only. For other texts, use one of the pipelines in selection.json."
    )
    WK731 = (
        "[WK731] The encoder has no table of word pieces. Create a table with 'spacy weakner encoder distill', and "
        "give its folder: --paths.pieces FOLDER"
    )
    WK800 = (
        "[WK800] The stored data of '{name}' is damaged: {reason}. Copy the pipeline again from its original location, "
        "or train it again."
    )
    # Components
    WK001 = (
        "[WK001] '{name}' has no labels. Give labels in [initialize.components.{name}.labels], call add_label(), or "
        "train on a corpus that contains {kind} labels."
    )
    WK003 = (
        "[WK003] '{name}' found the {kind} label '{label}', which it was not initialized with (labels: {labels}). "
        "Correct the corpus ('spacy weakner convert --map LABEL=NAME' renames labels), or add the label to "
        "[initialize.components.{name}.labels]."
    )
    WK008 = "[WK008] '{name}' is not initialized: run nlp.initialize() or load a trained pipeline first."
    WK009 = (
        "[WK009] '{name}' listens to an encoder that has not run on a text. Keep the component with the encoder in the "
        "pipeline, before '{name}', and do not disable or exclude it."
    )
    WK011 = (
        "[WK011] '{name}' {why}, so it cannot listen to the encoder of another component. Give it an encoder of its "
        "own: replace the listener in [components.{name}.model.{section}] by the settings of that encoder (those in "
        "[components.tok2vec.model])."
    )
    WK032 = (
        "[WK032] The question '{query}' leaves no room for text within {max_length} word pieces. Shorten the question, "
        "or raise the encoder's max_length."
    )
    WK036 = "[WK036] {where}: {reason}. Give each label a question with at least one word."
    WK041 = (
        "[WK041] '{text}' has the categories {cats}, but '{name}' needs exactly one category per sentence: one value "
        "is 1, and all others are 0. Correct the corpus, or set 'exclusive_classes = false'."
    )
    WK042 = (
        "[WK042] '{name}' has only one category, '{label}', so there is nothing to choose between. Add another "
        "category, or set 'exclusive_classes = false'."
    )
    WK715 = "[WK715] '{name}' cannot be fitted: {reason}."
    # Term lists
    WK200 = "[WK200] {path} contains no terms."
    WK202 = (
        "[WK202] '{name}' has no terms to match. Give 'terms' or 'path' in its config, terms in "
        '[initialize.components.{name}.terms] (for example with @readers = "spacy_weakner.TermList.v1"), or call '
        "add_terms()."
    )
    WK203 = (
        "[WK203] '{name}' matches on LEMMA, but the tokens have no lemmas. Add a component that sets lemmas before "
        "'{name}'."
    )
    WK012 = "[WK012] '{name}' has no terms with {what}. Its terms are in 'terms', its labels in 'labels'."
    WK205 = (
        "[WK205] '{name}' compares {attr}, which the vocabulary of a Doc does not have: nothing would ever be found. A "
        "bare Vocab() has no forms of its words. Create Docs with the vocabulary of a pipeline (nlp.vocab)."
    )
    WK204 = (
        "[WK204] '{name}' skipped all {count} terms (stop list: {stop}, shorter than 'min_length': {short}, "
        "without tokens: {empty}). Relax these settings, or check the terms."
    )
    WK671 = (
        "[WK671] The terms of '{name}' must be a list (of strings, of pairs (label, term), or of rows {{\"label\", "
        '"term"}}), a dictionary from labels to lists of terms, or a reader: {reason}. To read a file, use '
        "make_term_list(path)."
    )
    WK810 = (
        "[WK810] '{name}' was given no terms with ids. Give a list with a column 'id' under "
        "[initialize.components.{name}.terms], or remove the component."
    )
    # Training
    WK004 = (
        "[WK004] '{name}' needs the training clock. Add these lines to the section [training.before_update] of "
        'the config: @callbacks = "spacy_weakner.TrainingClock.v1" and total_steps = ${{training.max_steps}}'
    )
    WK006 = "[WK006] The loss of '{name}' is {loss} (not a number). Lower the learning rate, or check the corpus."
    WK007 = (
        "[WK007] Sentence {index} of the batch has no tag sequence that satisfies both its annotations and the "
        "constraints of the tag scheme. Check the annotations, or set 'constrain = \"decoding\"', which allows such "
        "sequences in training."
    )
    WK014 = (
        "[WK014] The weights of '{name}' ({part}) in '{path}' do not fit: {reason}. "
        "The architecture and its sizes must be the same in both configs."
    )
    WK018 = (
        "[WK018] The reader of the {which} corpus uses '{setting}' = {value}, which splits documents and so drops the "
        "confidences and tags that weak labels need. Remove the setting, and split texts with 'spacy weakner convert' "
        "instead."
    )
    WK021 = (
        "[WK021] The pipeline tokenizes '{text}' differently from the corpus, so its {what} cannot be assigned to "
        "tokens. Use the tokenizer of the corpus in [nlp.tokenizer]."
    )
    WK022 = (
        "[WK022] The soft labels of a token must be probabilities that sum to 1, or all be 0. Create them again with "
        "the command that wrote them, such as 'spacy weakner aggregate'."
    )
    WK023 = (
        "[WK023] '{text}' is weakly labeled but has no confidence, which this loss needs. Complete the weak corpus "
        "with 'spacy weakner relabel complete --folds', or use a loss without confidences."
    )
    WK025 = (
        "[WK025] No example has annotated entities, so '{name}' cannot be calibrated. Give gold with entities; if "
        "'{name}' has a 'spans_key', the entities must be in that span group."
    )
    WK026 = (
        "[WK026] The span '{text}' in the span group '{key}' has several labels ({labels}), but only one is allowed. "
        "Keep one of them."
    )
    WK360 = "[WK360] The training in {output} failed with exit code {code}. The end of {log}: {tail}"
    WK361 = "[WK361] {path} cannot be split into folds: {reason}. Give more gold{instead}."
    WK362 = (
        "[WK362] None of the pipelines in {output} was evaluated on dev, so none can be chosen. Lower "
        "training.eval_frequency."
    )
    WK367 = (
        "[WK367] {path} has changed since the pipeline that does not use it was trained, or a later training of folds "
        "was interrupted. Run 'spacy weakner train --folds' again."
    )
    WK430 = (
        "[WK430] The members of an ensemble must have the same tags, but '{model}' has {labels}, and '{first}' has "
        "{other}. List the labels in the config ([initialize.components.NAME.labels]), and use the same tag scheme for "
        "all members."
    )
    WK725 = (
        "[WK725] The folds in {folder} were made from another corpus: none of them contains this document with these "
        "labels ('{text}'). Train folds on this corpus ('spacy weakner train --folds'), or give a pipeline that was "
        "trained on other data."
    )
    # Labeling
    WK301 = (
        "[WK301] No document in {path} has weak labels (span groups that begin with 'weak:', or entities that "
        "'aggregate' has written). Run 'spacy weakner label' first. If it wrote no documents, the excluded corpora "
        "contain all of them."
    )
    WK302 = (
        "[WK302] {path} has no source '{source}' (sources there: {sources}). Correct 'sources' (command line: "
        "--source)."
    )
    WK306 = (
        "[WK306] The pipeline '{pipeline}' found no {what} in the whole corpus, but it wrote these span groups: "
        "{groups}. Choose one of them with 'spans_key' (command line: --spans-key)."
    )
    WK307 = "[WK307] {path} cannot be read as a sources file: {reason}"
    WK308 = "[WK308] {place}, [sources.{name}]: '{key}' = {value} is invalid: expected {expected}."
    WK310 = (
        "[WK310] {path}, used by the source '{source}': {reason}. Correct the pattern. For patterns that need tags or "
        "lemmas, use a source of the kind 'pipeline': a pipeline with a 'span_ruler'."
    )
    WK311 = '[WK311] {place} declares no sources. Add a section like [sources.drugs] with terms = "drugs.csv".'
    WK441 = (
        "[WK441] No sentence of {path} is left (pages: {pages}). Sentences left out for too few anchors: {few}, for "
        "their length: {long}. Lower 'min_anchors', or raise 'max_length'."
    )
    WK772 = (
        "[WK772] {path}, used by the source '{source}', contains answers to {found}. Choose one of these prompts: "
        'asked = "..." in [sources.{source}].'
    )
    WK773 = (
        "[WK773] {path} ends in the middle of a row: 'spacy weakner ask' was interrupted there, or is still running. "
        "Run the same 'ask' command again: it removes the incomplete row."
    )
    # Language models
    WK443 = (
        "[WK443] The API key would be sent to {host} without encryption (http://). Give an address with https:// "
        "(--url), or set --insecure to send it anyway."
    )
    WK764 = "[WK764] Cannot reach {where}: {reason}. {cure}."
    WK765 = (
        "[WK765] {url} rejects the request for '{text}': {reason}. All answers so far are kept: correct the settings "
        "(or remove this text), and run the same command again."
    )
    WK766 = "[WK766] The environment variable '{name}' (--key-env) contains no API key: it {reason}."
    WK767 = (
        "[WK767] The address of the endpoint (--url) must begin with http:// or https:// and must not contain a user "
        "name or password. API keys are read from an environment variable (--key-env)."
    )
    WK769 = (
        "[WK769] {n} requests failed in a row ({reason}). All answers so far are kept: run the same command again "
        "later."
    )
    # Aggregation, completion and calibration
    WK330 = (
        "[WK330] The accuracy of the source '{source}' is unknown: it declares no reliability, and there is no gold "
        "with its labels. Declare its reliability when labeling, give gold that it has labeled ('gold'; command line: "
        "--gold), or use the method 'label_model', which needs neither."
    )
    WK332 = (
        "[WK332] No document in {path} has both gold entities and labels of the sources {sources}. Label the gold "
        "corpus with the same sources first ('spacy weakner label')."
    )
    WK333 = (
        "[WK333] The sources {sources} propose no entity in {path}, so there is nothing to combine. Check their term "
        "lists and pipelines."
    )
    WK341 = (
        "[WK341] The pipeline '{pipeline}' has no component that {what}{named} (its components: {names}). Give a "
        "pipeline with {heads}, or the name of the component ('component')."
    )
    WK343 = "[WK343] The prediction for '{text}' by '{pipeline}' is not a number. Train or adapt '{pipeline}' again."
    WK344 = (
        "[WK344] {path}: '{text}' has entities that are not weak labels and would be overwritten. Give a corpus that "
        "'spacy weakner aggregate' has written."
    )
    WK345 = (
        "[WK345] {path}: '{text}' has weak labels in doc.spans['{key}'], which would stay as they are: this command "
        "changes doc.ents alone. Give a corpus that 'spacy weakner aggregate' has written without --nested."
    )
    WK346 = (
        "[WK346] {path}: '{text}' has labels of sources ({sources}) that are not in doc.ents, and would have no "
        "effect. Aggregate them first ('spacy weakner aggregate')."
    )
    WK701 = (
        "[WK701] {what} needs an estimate of how good the weak labels are. Calibrate on held-out gold that the weak "
        "sources have also labeled (command line: --folds), or give {instead}."
    )
    WK703 = (
        "[WK703] '{name}' writes no entities (annotate_ents = false). Another component was fitted to its candidates, "
        "and chooses among them. Give another component (--component), or set annotate_ents."
    )
    WK727 = (
        "[WK727] No entity that {pipeline} predicts in {path} has a score (ent._.weakner_score). Set 'scores = true' "
        "for crf_ner, or give a pipeline that ends with ent_combiner."
    )
    WK728 = (
        "[WK728] {n} of the {of} documents of {path} have sentences that the pipeline was trained or chosen on, or are "
        "short. Its scores on these sentences are too high. Too few are left: {left}. Give other gold. A project needs "
        "no other gold: set 'precision' in its project.yml."
    )
    # Evaluation
    WK400 = (
        "[WK400] {path} does not contain the same sentences as {other} (they differ from document {number} on). Give "
        "the same sentences, in the same order and with the same tokens."
    )
    WK402 = (
        "[WK402] Document {number} of {path} {what}, so scores would be meaningless. Give a test set with complete "
        "gold."
    )
    WK403 = (
        "[WK403] {path} is neither a pipeline (it has no config.cfg) nor a corpus (it contains no .spacy file). "
        "Correct the path."
    )
    WK412 = (
        "[WK412] {path} and {other} have scores of '{name}' with the same seed {seed}, variables and config. Give each "
        "run once."
    )
    WK407 = "[WK407] {path} has no {what}. {cure}."
    WK409 = (
        "[WK409] The source '{source}' has not labeled document {number} of {path} (sources there: {sources}). Correct "
        "the name after '#', or label the whole test set with this source."
    )
    # Projects
    WK680 = (
        "[WK680] There is nothing to learn from{where}. Give gold (--gold), or text (--text) with a term list or other "
        "sources that label it. The rows of the text can also contain labels ('weak_ents')."
    )
    WK687 = "[WK687] The wheel could not be built: {reason}"
    WK688 = (
        "[WK688] The project {folder} ended with exit code {code}. Correct what its output names, and run the project "
        "again."
    )
    WK689 = (
        "[WK689] {name} contains a quote, '$', backslash or control character, which project files cannot contain. "
        "Rename it."
    )
    WK690 = "[WK690] {path} declares a source '{name}', and so does the command line. Rename the source in {path}."
    WK691 = (
        "[WK691] {path} has a source {name!r}, which is not a valid name. A name must not contain a dot, quote, '$', "
        "backslash or control character, or begin or end with white space. Rename it, under 'weak_ents' or in "
        "[sources]."
    )
    WK692 = (
        "[WK692] {path} does not fit the settings of the project: {differences}. Write it again with --lang, "
        "--tokenizer, --size and --transformer of the project: 'spacy weakner init config {recipe} {file} --overwrite'"
    )
    WK695 = (
        "[WK695] {path} has labels of a source '{name}', and the source '{source}' reads the same file, so these "
        "labels would count twice. Remove the source '{source}'."
    )
    WK696 = "[WK696] {path} and the command line have variables that change nothing. {problems}"
    WK697 = (
        "[WK697] {path} has changed since it was selected, so its scores are those of another pipeline. To package it "
        "as it is, give this folder instead of the selection. Otherwise remove it, and train it again: {again}."
    )
    # Suggestions
    WK775 = (
        "[WK775] The uncertainty of the sentences of {path} is unknown.{asked} Give a pipeline with probabilities "
        "(--model; crf_ner, span_ner, token_ner, mrc_ner, ent_combiner). Or give at least two of these, so that they "
        "can disagree: sources (--sources), pipelines, or span groups of sources in the corpus."
    )
    WK776 = (
        "[WK776] {path} has no sentence to suggest: {excluded} of its {read} sentences are excluded, and the others "
        "are empty or annotated. Give more text."
    )
    WK777 = (
        "[WK777] {path} has no term to suggest: of the {found} phrases that the pipeline finds, {known} are already in "
        "its lists, and {refuted} are not entities according to gold. Give more text, or another pipeline."
    )
    # Shards and clusters
    WK312 = (
        "[WK312] The output {path} is a single file, which cannot be written in parts. For several workers, or for a "
        "part of the shards, choose a folder (a name without suffix)."
    )
    WK313 = (
        "[WK313] A process ended before it finished {what}, perhaps because memory ran out (fewer processes need less "
        "memory). Finished work is kept: run the same command again to continue."
    )
    WK714 = (
        "[WK714] The cluster has not written all shards of {path}, because its machines do not see the same input and "
        "sources. Make the same files available on all machines, and run the same command again."
    )
    WK723 = (
        "[WK723] The cluster could not finish {what} ({reason}). Finished shards are kept: run the same command again "
        "to continue."
    )
    WK719 = (
        "[WK719] The Ray cluster has no {kind}. Add a machine with a {kind}, or run the command without the cluster "
        "(without 'ray')."
    )
    WK722 = (
        "[WK722] The machine {host} has a different {what}: {its} instead of {mine}. All machines of a cluster must "
        "see input, sources and output under the same paths, and have the same versions of Python and spacy_weakner."
    )


class Warnings:
    WK912 = (
        "[WK912] {n} files of {path} are not read, since their suffixes are unknown: {names}. Rename them, or move "
        "them elsewhere."
    )
    WK905 = (
        "[WK905] '{name}' and '{other}' have the same source '{source}': the later one replaces the matches of the "
        "other in doc.spans['weak:{source}']. Give them different sources ('source')."
    )
    WK906 = (
        "[WK906] '{name}' has source features, but no gold sentence of the first batch has any of the span groups "
        "{groups}, so these features have no effect. Add the component that writes these groups to the pipeline before "
        "'{name}' and to 'annotating_components' in [training], or list the sources in 'sources' of the corpus."
    )
    WK907 = (
        "[WK907] '{name}' was trained with the span groups {missing}, but the Docs do not have them. So its scores "
        "are no longer calibrated, and its entities may differ. Enable the components that write these groups, and "
        "keep them before '{name}' in the pipeline. Or train '{name}' again without the groups ('sources', "
        "'predictions')."
    )
    WK908 = (
        "[WK908] '{name}' was fitted without the labels {labels}, which weak sources assign. So matches with these "
        "labels never become entities. Correct the labels of the terms (a term is a pair of label and term), or fit "
        "'{name}' again with gold that has these labels."
    )
    WK909 = (
        "[WK909] '{name}' cannot be read again: {reason} So the Transformer keeps its weights, which may be trained. "
        "Correct 'name' in the config to start from the initial weights."
    )
    WK910 = (
        "[WK910] Labels of the source '{source}' were left out, because they belong to no Doc or do not fit its tokens "
        "({counts}). Compare the ids, texts and spans of its file with the Docs."
    )
    WK900 = (
        "[WK900] None of the examples that '{name}' was initialized with has entity annotation ('O' counts as "
        "annotation), so there is nothing to learn. Write weak labels to doc.ents with 'spacy weakner aggregate', or "
        "check the training corpus."
    )
    WK904 = (
        "[WK904] None of the examples that '{name}' was initialized with has a category that is known to apply "
        "(doc.cats, 'cats' in JSONL), so there is nothing to learn. Check the training corpus."
    )
    WK903 = (
        "[WK903] The training clock starts a renewal every {interval} steps, but the training has only {total_steps} "
        "steps, so nothing is renewed after the start. Train longer, or lower 'interval' in [training.before_update]."
    )
    WK902 = (
        "[WK902] None of the examples that '{name}' was initialized with has the span group '{key}' (spans_key), so "
        "there is nothing to learn. Correct the name of the group, or give a corpus that has it."
    )
    WK901 = (
        "[WK901] {n} of the {total} entities that '{name}' was initialized with are longer than max_width = "
        "{max_width} tokens (the longest has {widest}). They are left out, and entities of this length are never "
        "found. Raise max_width if they matter."
    )


def check_range(
    setting: str, value: Optional[float], low: float, high: Optional[float], *, optional: bool = False
) -> None:
    """Refuse a setting that is out of range, NaN, or None and not optional; `high` is None for any."""
    if value is None and optional:
        return
    if value is None or not low <= value or (high is not None and value > high):
        expected = f"at least {low}" if high is None else f"between {low} and {high}"
        raise WeaknerError(Errors.WK005.format(setting=setting, value=value, expected=expected))


def require(*packages: str, extra: str) -> None:
    """Refuse to go on without packages that an extra brings."""
    for package in packages:
        if find_spec(package) is None:
            raise WeaknerError(Errors.WK350.format(package=package, extra=extra))


def check_choice(setting: str, value: Optional[str], choices: Iterable[str], *, optional: bool = False) -> None:
    """Refuse a setting that is none of the known ones, or None and not optional; the message lists the nearest
    first."""
    known = list(choices)
    if value not in known and not (value is None and optional):
        near = get_close_matches(str(value), known, n=3, cutoff=0.5)
        expected = f"one of: {', '.join([*near, *(name for name in known if name not in near)])}"
        raise WeaknerError(Errors.WK005.format(setting=setting, value=repr(value), expected=expected))
