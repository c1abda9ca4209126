"""All messages to users: each says what is wrong, where, and what to change."""

import unicodedata
from typing import Optional, Sequence

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


def one_line(text: str, longest: int = LONGEST) -> str:
    """Make a text fit to be printed as a message: on one line, not too long, without characters that control terminals.

    text (str): The text.
    longest (int): The result is shorter.
    RETURNS (str): Such characters are escaped, and what is too long loses its middle.
    """
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
    # Components and training
    WK001 = (
        "[WK001] '{name}' has no labels. Give labels in [initialize.components.{name}.labels], call add_label(), or "
        "train on a corpus that holds {kind} labels."
    )
    WK003 = (
        "[WK003] '{name}' met the {kind} label '{label}', which it was not initialised with (labels: {labels}). "
        "Fix the corpus, or list the label in [initialize.components.{name}.labels]."
    )
    WK004 = (
        "[WK004] '{name}' needs the training clock, and nothing has ticked it. Add to the config, in the section "
        '[training.before_update]: @callbacks = "spacy_weakner.TrainingClock.v1"'
    )
    WK005 = "[WK005] The setting '{setting}' = {value} is out of range: expected {expected}."
    WK006 = "[WK006] The loss of '{name}' is {loss} (not a number). Lower the learning rate or check the corpus."
    WK007 = (
        "[WK007] Sentence {index} of the batch has no tag sequence that satisfies both its annotations and the "
        "constraints of the tag scheme. Check the annotations, or set 'constrain = \"decoding\"', which allows such "
        "sequences in training."
    )
    WK008 = "[WK008] '{name}' is not initialised: run nlp.initialize() or load a trained pipeline first."
    WK009 = "[WK009] Unknown tag scheme '{scheme}'. Choose one of: {schemes}."
    WK014 = (
        "[WK014] The weights of '{name}' ({part}) in '{path}' do not fit: {reason}. "
        "The architecture and its sizes must be the same in both configs."
    )
    WK018 = (
        "[WK018] The reader of the {which} corpus uses '{setting}' = {value}, which would lose what weak labels "
        "need (splitting drops the stored confidences and tags). Remove the setting; split texts with "
        "'spacy weakner convert' instead."
    )
    WK020 = (
        "[WK020] {what} with {there}, but the config says {here}. Set it back in the config, or make the former anew."
    )
    WK021 = (
        "[WK021] The pipeline splits '{text}' into other tokens than the corpus has, so that its {what} have no "
        "place. Use the corpus' tokenizer ([nlp.tokenizer])."
    )
    WK022 = (
        "[WK022] Soft labels must be probabilities that sum to 1 for every token, or all 0. Make them again "
        "('aggregate')."
    )
    WK023 = (
        "[WK023] '{text}' is weakly labelled and has no confidence, which this loss needs. Complete the weak corpus "
        "with 'spacy weakner relabel complete --folds', or use a loss that needs none."
    )
    WK025 = (
        "[WK025] No example has annotated entities, so '{name}' cannot be calibrated. Give gold (in the span group "
        "that it learns from, if its 'spans_key' names one)."
    )
    WK026 = (
        "[WK026] In the span group '{key}' the span '{text}' has several labels ({labels}), but it can have one only. "
        "Keep one of them."
    )
    WK032 = (
        "[WK032] The question '{query}' leaves no room for text within {max_length} pieces. Shorten it, or raise "
        "the encoder's max_length."
    )
    WK034 = (
        "[WK034] {where}: the label '{label}' has no question. Write one, a text with at least one word, for every "
        "label."
    )
    WK035 = "[WK035] {path} is no JSON or TOML with questions by label: {reason}"
    WK036 = (
        "[WK036] '{name}' has no question for the labels {labels}. Give one for each in "
        "[initialize.components.{name}.queries]."
    )
    WK041 = (
        "[WK041] '{text}' has the categories {cats}, but for '{name}' a sentence has one category: one value is 1, all "
        "others are 0. Correct the corpus, or set 'exclusive_classes = false'."
    )
    WK042 = (
        "[WK042] '{name}' has one category, '{label}', and none to tell it from. Give it another one, or set "
        "'exclusive_classes = false'."
    )
    # Corpus files
    WK100 = "[WK100] Not found: {path}. Check the path{hint}."
    WK101 = "[WK101] No documents in {path}: the corpus is empty."
    WK102 = "[WK102] {path} is not a readable .spacy file ({reason}). Write it again with 'spacy weakner convert'."
    WK103 = "[WK103] {path}, {place}: {reason}"
    WK104 = "[WK104] {path} {found} (line {line}, byte {position}: {reason}). {cure}"
    WK105 = "[WK105] Cannot tell the format of {path}. Use one of {suffixes}, or pass the format."
    WK106 = "[WK106] Unknown tokenizer '{name}'. Registered tokenizers: {names}."
    WK107 = "[WK107] Cannot create a blank pipeline for the language '{lang}': {reason}"
    WK108 = "[WK108] Cannot load the pipeline '{name}': {reason}"
    WK110 = (
        "[WK110] Cannot load the pipeline '{name}', since what it names is not registered: {reason} If that is in a "
        "file of your own, give the file: --code FILE."
    )
    WK111 = "[WK111] {path} (--code) cannot be imported: {reason}. Correct it, or give another file."
    WK109 = "[WK109] {path} is a folder, but a file is needed here. Give the file itself."
    # Term lists
    WK200 = "[WK200] {path} holds no terms."
    WK201 = "[WK201] {path}, line {line}: {reason}"
    WK202 = (
        "[WK202] '{name}' has no terms: nothing to match. Give them in [initialize.components.{name}.terms] "
        '(for example with @readers = "spacy_weakner.TermList.v1"), or call add_terms().'
    )
    WK203 = (
        "[WK203] '{name}' matches on LEMMA, but the tokens have no lemmas. Put a component that sets them before it."
    )
    WK204 = (
        "[WK204] '{name}' skipped all {count} terms (stop list: {stop}, shorter than 'min_length': {short}, "
        "without tokens: {empty}). Relax these settings, or check the terms."
    )
    WK205 = (
        "[WK205] Cannot tell the format of the term list {path}. Rename it to one of {suffixes} (or these with .gz)."
    )
    WK206 = "[WK206] {path} is damaged ({reason}). Make or download it again."
    WK207 = "[WK207] Entry {index} of the terms of '{name}': {reason}"
    WK208 = (
        "[WK208] The terms of '{name}' have the label '{label}', which is not among the labels given to it "
        "({labels}). Correct the term list, or the setting 'labels'."
    )
    WK210 = (
        "[WK210] {path} is no compiled term table, or is damaged ({reason}). Initialise the gazetteer_ruler again, or "
        "copy the pipeline again."
    )
    WK671 = (
        "[WK671] The terms of '{name}' have to be a list (of strings, of pairs (label, term), or of rows "
        '{{"label", "term"}}), a dictionary from labels to lists of terms, or a reader: {reason}. Files are read by '
        "make_term_list(path)."
    )

    # Stages
    WK300 = (
        "[WK300] {path} exists and is no earlier result of the same command for this output, so it is neither "
        "overwritten nor removed. Remove it, or choose another output."
    )
    WK301 = "[WK301] No document in {path} has a span group that begins with 'weak:'. Run 'label' first."
    WK302 = "[WK302] {path}: no source '{source}' (sources there: {sources}). Correct 'sources' (--source)."
    WK303 = "[WK303] Give exactly one of: a term list (terms), a pipeline, or a declaration of sources (sources)."
    WK304 = (
        "[WK304] The output {path} is, lies in, or holds a part of the input {input}. "
        "Nothing ever overwrites its input: choose another output."
    )
    WK305 = "[WK305] The output {path} must be {expected}."
    WK306 = (
        "[WK306] The pipeline '{pipeline}' found no {what} in the whole corpus, but it wrote the span groups: "
        "{groups}. Choose one of them (label: spans_key, command line: --spans-key)."
    )
    WK307 = "[WK307] {path} cannot be read as a sources file: {reason}"
    WK308 = "[WK308] {place}, [sources.{name}]: '{key}' = {value}, but expected {expected}."
    WK309 = (
        "[WK309] '{setting}' is a setting of a single source, but 'sources' is given. Write it into the section of the "
        "source that it is meant for."
    )
    WK310 = (
        "[WK310] {path}, used by the source '{source}': {reason}. Correct the pattern; patterns that need more than "
        "tokens (tags, lemmas) belong into a pipeline with a 'span_ruler', as a source of the kind 'pipeline'."
    )
    WK311 = '[WK311] {place} declares no sources. Add a section like [sources.drugs] with terms = "drugs.csv".'
    WK312 = (
        "[WK312] The output {path} is one file, which cannot be made in parts. Choose a folder (a name without suffix) "
        "for several workers, or for a part of the shards."
    )
    WK313 = (
        "[WK313] A process ended before it had done {what}, perhaps because memory ran out (fewer workers need less). "
        "Finished shards are kept: run the same command again to continue."
    )
    WK314 = (
        "[WK314] {path} {exists}, and nothing is replaced unasked. Choose another output, or set 'overwrite' (command "
        "line: --overwrite) to replace it."
    )
    WK315 = (
        "[WK315] The pipeline '{pipeline}' wrote no span group '{group}' in the whole corpus (groups that it writes: "
        "{groups}). Correct 'spans_key' (command line: --spans-key), or leave it out to take the entities."
    )
    # Aggregation
    WK330 = (
        "[WK330] Nothing is known about the source '{source}': it declares no reliability, and there is no gold with "
        "its labels. Declare its reliability when labelling, give gold that it has labelled ('gold', on the command "
        "line --gold), or use the method 'label_model', which needs neither."
    )
    WK331 = (
        "[WK331] '{setting}' has no effect with the method '{method}'; it belongs to: {methods}. Remove it, or choose "
        "another method."
    )
    WK332 = (
        "[WK332] No document in {path} has both gold entities and labels of the sources {sources}. Label the gold "
        "corpus with the same sources first ('spacy weakner label')."
    )
    WK333 = (
        "[WK333] The sources {sources} propose no entity in {path}, so there is nothing to combine. Check the term "
        "lists and pipelines that they come from."
    )
    # Completion
    WK341 = (
        "[WK341] The pipeline '{pipeline}' has no component that {what}{named} (its components: {names}). Give a "
        "pipeline with {heads}, or the name of the component (--component)."
    )
    WK342 = (
        "[WK342] {path} holds no sentence with complete gold, so there is nothing to calibrate on. Give held-out gold "
        "that the model was not trained on."
    )
    WK343 = "[WK343] The score of '{text}' under '{pipeline}' is not a number. Train the pipeline again."
    WK344 = (
        "[WK344] {path}: '{text}' has entities that are not weak, and they would be overwritten. Give a corpus "
        "that 'spacy weakner aggregate' has made."
    )
    WK345 = (
        "[WK345] The accuracy of the weak sources is unknown. Calibrate on held-out gold that they have labeled too "
        "(command line: --folds), or give 'weak_accuracy' instead of 'estimate_accuracy'."
    )
    WK701 = (
        "[WK701] The rule '{rule}' needs an estimate of how good the weak labels are. Calibrate on held-out gold that "
        "the weak sources have labeled too (command line: --folds), or give another rule."
    )
    WK702 = (
        "[WK702] The rule 'none', which 'auto' can choose too, leaves labels as they are, so there can be no soft "
        "ones. Give another rule."
    )
    WK703 = (
        "[WK703] '{name}' writes no entities (annotate_ents = false): others decide on its candidates, and were fitted "
        "to them as they are. Give another component (--component), or set annotate_ents."
    )
    # Encoders of Hugging Face
    WK350 = (
        "[WK350] This needs {package}, which is not installed. Install the extra 'transformers': "
        'pip install "spacy_weakner[transformers]".'
    )
    WK351 = (
        "[WK351] Cannot load the encoder '{name}': {reason} Give the folder of a Hugging Face model, or the name of "
        "one that can be downloaded or is in the cache."
    )
    WK352 = (
        "[WK352] The encoder '{name}' has no weights as safetensors, and others are not read, since pickles can "
        "execute code. Load it where you trust it, and store it with save_pretrained(folder, safe_serialization=True)."
    )
    WK353 = "[WK353] '{name}' cannot serve as a masked language model: {reason}."
    WK354 = (
        "[WK354] The checkpoint '{name}' has no head for masked-language modelling (not there: {missing}). Choose one "
        "that has, or train a new head with 'spacy weakner encoder adapt --train-head'."
    )
    WK357 = "[WK357] There is no GPU {gpu_id} here (torch sees {count}). Choose another, or the CPU: --gpu-id -1."
    WK358 = (
        "[WK358] This pipeline runs no Transformer (its components: {names}), so there is nothing to be computed in "
        "bfloat16. Leave it out."
    )
    WK359 = (
        "[WK359] The Transformer is on {device}, and bfloat16 is for a CPU. On a GPU train with 'mixed_precision = "
        "true' in the settings of the Transformer."
    )
    # Trainings
    WK360 = "[WK360] The training in {output} failed with exit code {code}. The end of {log}: {tail}"
    WK361 = "[WK361] {path} has {docs} sentences, too few for {folds} folds. Give more gold, or fewer folds."
    WK362 = (
        "[WK362] None of the pipelines in {output} was evaluated on dev, so none can be chosen. Lower "
        "training.eval_frequency."
    )
    WK364 = (
        "[WK364] {config} does not train on '${{paths.train}}' (or the settings change it), so no fold "
        "could be held out. Give a config whose only training corpus is paths.train."
    )
    WK365 = "[WK365] The config {config} cannot be read with these settings: {reason}"
    WK369 = (
        "[WK369] {reason} See '--help' for the options; settings of the config have a dot, as in "
        "--training.max_steps 100."
    )
    WK366 = (
        "[WK366] {config} has no setting '{key}', so trying values of it would change nothing. Correct its name, or "
        "write it into the config."
    )
    WK367 = (
        "[WK367] {path} has changed since its pipeline was trained without it, or a later training of folds was "
        "interrupted. Run 'spacy weakner train --folds' again."
    )
    WK368 = "[WK368] {path} is there already, and 'train --grid' has not made it. Give another output folder."
    WK363 = "[WK363] {path} is damaged. Train the folds again with 'spacy weakner train --folds'."
    # Quality
    WK400 = (
        "[WK400] {path} does not hold the sentences of {test} (they differ from sentence {number} on). "
        "Compare label sets that were made from the test corpus."
    )
    WK404 = "[WK404] Two candidates are named '{name}'. Give each a name of its own."
    WK401 = "[WK401] Give candidates as NAME=PATH (got '{value}')."
    WK402 = (
        "[WK402] Document {number} of {path} has tokens without entity annotation, so scores would be meaningless. "
        "Use a test set with complete gold."
    )
    WK403 = (
        "[WK403] {path} is neither a pipeline (it has no config.cfg) nor a corpus (it holds no .spacy file). "
        "Correct the path."
    )
    WK405 = (
        "[WK405] No document in {path} has weak labels (span groups that begin with 'weak:', or the entities of "
        "'aggregate'), nor gold entities: there is nothing to analyse. Run 'label' first."
    )
    WK406 = (
        "[WK406] The gold corpus {path} does not hold the sentences of {corpus} (they differ from document {number} "
        "on). Give gold for the same sentences, in the same order and with the same tokens."
    )
    WK407 = "[WK407] The gold corpus {path} holds no gold: no document has entity annotations that are not weak."
    WK408 = "[WK408] There is nothing to compare. Give at least one candidate as NAME=PATH."
    WK409 = (
        "[WK409] The source '{source}' has not labeled document {number} of {path} (sources there: {sources}). "
        "Correct the name after '#', or let the source label the whole test set."
    )
    WK410 = "[WK410] The baseline '{name}' is not among the candidates ({names}). Correct its name."
    WK411 = (
        "[WK411] {what}. Give a test set with candidates to compare (test, candidates), or a corpus of weak labels to "
        "analyse (labels), or both."
    )
    WK413 = (
        "[WK413] Document {number} of {path} is weakly labeled: its entities are no gold to compare with. Give the "
        "test set as it was before 'aggregate'."
    )
    # Augmentation
    WK420 = (
        "[WK420] What the masked language model '{model}' predicts for '{text}' is not a number. Take another "
        "checkpoint, or adapt this one again ('spacy weakner encoder adapt')."
    )
    # Ensembles
    WK430 = (
        "[WK430] The members of an ensemble must have the same tags, but '{model}' has {labels}, and '{first}' has "
        "{other}. List the labels in the config ([initialize.components.NAME.labels]), and use one tag scheme."
    )
    WK437 = "[WK437] {path} is damaged. Train the members again with 'spacy weakner train --members'."
    WK436 = "[WK436] --{option} works only {modes}. Leave it out."
    WK431 = (
        "[WK431] The members of an ensemble differ by '{key}', so it cannot be set for all of them. Set the first seed "
        "instead: 'seed' (command line: --seed)."
    )
    WK710 = "[WK710] The number of passes decides on '{key}', so both cannot be given. Leave out one of them."
    WK713 = "[WK713] {config} does not say what to train on. Give --paths.train."
    # GPUs
    WK432 = "[WK432] Cannot use the GPU {gpu_id}: {reason}. Choose another, or the CPU: --gpu-id -1."
    # Anchors
    WK440 = (
        "[WK440] {markup} needs {package}, which is not installed. Install the extra 'wiki': "
        'pip install "spacy_weakner[wiki]".'
    )
    WK441 = (
        "[WK441] No sentence is left of {path} (pages: {pages}). Left out, for too few anchors: {few}, for their "
        "length: {long}. Lower 'min_anchors', or raise 'max_length', if that is what they are like."
    )
    WK442 = "[WK442] {path} is no XML export of MediaWiki that can be read ({reason})."
    # Formats of other tools
    WK740 = (
        "[WK740] {path} has the format '{name}', which can only be read as a whole. Convert it first: spacy weakner "
        "convert {file} NEW.spacy"
    )
    WK741 = "[WK741] {path}: the format '{name}' is written to files that end in {suffixes}. Give such a name."
    WK742 = (
        "[WK742] {path}, {place}: the span {span} should cover {said}, but there is {found}. No unit of offsets fits "
        "all of {n} records (misfits: {misfits}). Correct them, or take one (nothing is known about its misfits then): "
        "spacy weakner convert {file} NEW.spacy --offsets {unit}"
    )
    WK370 = (
        "[WK370] {path} holds {layout}, not a row per line, and no row of another tool was recognized in it. Name its "
        "format (convert --format), or write a row per line: {command}"
    )
    WK371 = (
        "[WK371] {path} is WebAnno TSV, whose columns are not tokens and tags. Export the documents from INCEpTION as "
        "'CoNLL 2002', or as 'UIMA CAS XMI', which a script of ours reads (docs/formats.md#inception)."
    )
    WK372 = (
        "[WK372] No document in {path} has the span group '{key}' (groups there: {groups}). Correct 'spans_key' "
        "(command line: --spans-key), or leave it out to take the entities."
    )
    WK748 = (
        "[WK748] {path} holds files of several formats ({names}), which cannot be converted in parts together. Convert "
        "one folder for each, or leave out 'workers' and 'ray'."
    )
    WK749 = (
        "[WK749] '{setting}' has no meaning for a corpus that is converted in parts: finished shards are replaced only "
        "when input or settings are others, and each part knows only itself. Leave it out, or 'workers' and 'ray'."
    )
    WK743 = "[WK743] Which format {path} is to have is not clear. Choose one ('to', command line: --to): {names}."
    WK744 = (
        "[WK744] Parquet files need pyarrow, which is not installed: pip install 'spacy_weakner[parquet]'. Or give "
        "rows of JSON."
    )
    WK745 = "[WK745] {path} is not a readable Parquet file: {reason}"
    WK746 = (
        "[WK746] {path}: the token {token} with the tag {tag} (in {text}) could not be read back from columns. Rename "
        "the label, remove the token, or write .jsonl."
    )
    WK747 = "[WK747] {path} has no text: {text} is not there. Put brat's text and annotations into one folder."
    # Configs
    WK443 = (
        "[WK443] The key would go to {host} without encryption (http://). Give an address with https:// (--url), or "
        "send it all the same with --insecure."
    )
    WK600 = "[WK600] There is no recipe '{name}'. Choose one of (the nearest first): {names}."
    WK601 = "[WK601] The recipe '{recipe}' has no size '{size}'. Choose one of: {sizes}."
    WK602 = (
        "[WK602] The size '{size}' has no Transformer, to name or to set the precision of. Leave that out, or choose "
        "another size. Those of '{recipe}' with a Transformer: {sizes}."
    )
    WK603 = "[WK603] spaCy has no language '{lang}'. Choose one of (the nearest first): {names}."
    WK604 = "[WK604] No tokenizer is registered as '{name}'. Choose one of (the nearest first): {names}."
    WK605 = "[WK605] {path} exists. Give another name, or replace it with --overwrite."

    # Projects
    WK680 = (
        "[WK680] There is nothing to learn from. Give gold (--gold), or text (--text) with a term list or other "
        "sources that label it, or whose rows hold labels themselves ('weak_ents')."
    )
    WK681 = "[WK681] {path} is damaged, or from an earlier version. Run 'spacy weakner {command}' again."
    WK682 = (
        "[WK682] {path} holds {docs} sentences and not one entity: nothing can be learned from it. Check that its "
        "annotations stand under 'ents' or 'spans'."
    )
    WK683 = (
        "[WK683] The batches of {config} ([training.batcher], {kind}) are not counted in words, so that nothing tells "
        "how many updates a corpus needs. Take spacy.batch_by_words.v1 or spacy.batch_by_padded.v1."
    )
    WK684 = (
        "[WK684] Nothing can be trained of {path}: there is neither gold, nor a term list, nor are there "
        "weak labels. Give 'prepare' gold or text, and label the text."
    )
    WK685 = (
        "[WK685] {path} holds {docs} sentences, all of the same text: they cannot be split for cross-validation. Give "
        "dev (--dev), or more gold."
    )
    WK686 = (
        "[WK686] '{name}' cannot be the name of a package: take letters from a to z, digits and underscores, with a "
        "letter first."
    )
    WK688 = (
        "[WK688] {path} exists and is not empty: a project is never written over something else. Give another folder, "
        "or remove it."
    )
    WK689 = "[WK689] The path {path} holds a quote, '$' or backslash, which project files cannot. Rename it."
    WK690 = "[WK690] {path} declares a source '{name}', and so does the command line. Give it another name there."
    WK691 = (
        "[WK691] {path} has labels of a source {name!r}, which is no valid name: no dot, quote, '$', "
        "backslash or control character, nor white space at the ends. Rename them under 'weak_ents'."
    )
    WK695 = (
        "[WK695] {path} has labels of a source '{name}', and the source '{source}' reads the same file: "
        "they would count twice. Leave out '{source}'."
    )
    WK692 = (
        "[WK692] {path} does not fit the settings of the project: {differences}. Write it anew: 'spacy weakner init "
        "config {recipe} {file} --overwrite' with --lang, --tokenizer and --size."
    )
    WK693 = (
        "[WK693] Only one sentence of {path} (or copies of it) has entities: without that one, nothing is left "
        "to learn from, so it cannot be split into folds. Give more gold with entities; in a project, dev (--dev) does "
        "as well."
    )
    WK694 = (
        "[WK694] {path} holds {docs} sentences and not one entity, so nothing can be {use} by it. Check that its "
        "annotations stand under 'ents' or 'spans', give other sentences for --{name}, or leave it out."
    )
    WK687 = "[WK687] The wheel could not be built: {reason}"

    # Judging weak labels
    WK650 = (
        "[WK650] {path} holds no gold: none of its {docs} documents has entity annotations that are not weak. Label "
        "a gold corpus with the same sources ('spacy weakner label GOLD OUTPUT ...'), and give that."
    )
    WK651 = (
        "[WK651] The gold in {path} has no entity in any of its {docs} documents, so nothing can be measured on it. "
        "Check that its annotations were read: 'ents' in JSONL, the last column in CoNLL."
    )

    # Votes of sources

    # Checking before anything is trained
    WK620 = (
        "[WK620] {path} holds zero bytes (line {line}, byte {position}), so it is no plain text, or damaged. Write it "
        "again as UTF-8, or remove them: tr -d '\\000' < {file} > {out}"
    )

    # Cleaning
    WK725 = (
        "[WK725] The folds in {folder} were made on another corpus: none of them holds this document with these labels "
        "('{text}'). Train folds of this corpus ('spacy weakner train --folds'), or give a pipeline that was trained "
        "on other data."
    )
    WK726 = "[WK726] Neither entities nor tokens outside of them are to be cleaned. Switch one of them on."

    # Thresholds
    WK727 = (
        "[WK727] No entity that {pipeline} predicts in {path} has a score (ent._.weakner_score). With crf_ner set "
        "'scores = true'; or give a pipeline that ends with ent_combiner."
    )
    WK729 = "[WK729] {path} holds no document with gold, so nothing can be learned from it."

    # Linear models

    # Deciding between candidates
    WK715 = (
        "[WK715] No Doc that '{name}' was given has gold: it learns from the reference Docs of the examples, which "
        "need gold entities (doc.ents that are not weak, or the span group 'gold')."
    )
    WK716 = (
        "[WK716] '{name}' was given {n} Docs with gold, but no candidates: the span groups that it reads in them "
        "({groups}) are empty or absent. Write 'weak:<source>' and 'pred:<component>' to these Docs first."
    )
    WK717 = (
        "[WK717] No Doc that '{name}' was given has the span group '{group}', which its settings name. The groups that "
        "are there: {groups}."
    )

    # Asking language models
    WK760 = "[WK760] {path} is no file or folder, so it cannot be read twice. Write the texts to a file first."
    WK761 = "[WK761] The prompt {path} has no placeholder for the text. Add {place}."
    WK762 = (
        "[WK762] '{labels}' is no list of labels. Give names with commas between them, like 'PER,LOC', or a .json or "
        ".toml file with what each of them means. No two may differ in case alone."
    )
    WK763 = "[WK763] {path} is no JSON or TOML file of labels with their meanings: {reason}"
    WK764 = "[WK764] Cannot reach {url}: {reason}. Check the address (--url), and that the server runs."
    WK765 = (
        "[WK765] {url} refuses the request about '{text}': {reason}. All answers so far are kept: correct the settings "
        "(or leave this text out), and run the same command again."
    )
    WK766 = "[WK766] The environment variable '{name}' (--key-env) holds no key: it {reason}."
    WK767 = (
        "[WK767] The address of the endpoint (--url) must begin with http:// or https:// and hold no user or password. "
        "Keys are read from an environment variable (--key-env)."
    )
    WK768 = "[WK768] {path} is in use by another run of 'ask'. Wait for it, stop it, or give another file."
    WK769 = (
        "[WK769] Requests failed, {n} one after the other ({reason}). All answers so far are kept: run the same "
        "command again later."
    )
    WK770 = (
        "[WK770] A budget needs to know what requests cost at most: give the prices of a million tokens (--price-in, "
        "--price-out), and a limit of tokens (--max-tokens)."
    )
    WK771 = (
        "[WK771] 'extra' = {value} is no JSON object of further parameters. Of these none may be given in it: {names}."
    )
    WK772 = (
        "[WK772] {path}, used by the source '{source}', holds answers to {found}. Choose one of these prompts: asked "
        '= "..." in [sources.{source}].'
    )
    WK773 = (
        "[WK773] {path} ends in the middle of a row: 'spacy weakner ask' was killed there, or still runs. Run the same "
        "'ask' again, which removes it."
    )
    WK774 = (
        "[WK774] With temperature 0 all {samples} samples would be the same. Set a higher temperature, or one sample."
    )

    # Disks, locks and processes
    WK785 = (
        "[WK785] {path} could not be written: {reason}. Make room, or choose another place, and run the same command "
        "again."
    )
    WK786 = (
        "[WK786] {path} is no file but a pipe or a device, which can be read only once; here it has to be read again. "
        "Write its contents to a file first, and give that."
    )
    WK787 = (
        "[WK787] {path} is being written by another run, which holds {lock}. Two runs never share an output: wait for "
        "that one, end it, or choose another output."
    )
    WK789 = (
        "[WK789] The corpus in {path} is not whole: the run that was writing it has ended before, or goes on. Run the "
        "same command again; after parts of it (--shard), once without them."
    )

    # Suggestions
    WK775 = (
        "[WK775] Nothing tells which sentences of {path} are uncertain.{asked} Give a pipeline with probabilities "
        "(--model; crf_ner, span_ner, token_ner, mrc_ner, ent_combiner), or at least two voters: sources (--sources), "
        "pipelines, or a corpus with the span groups of two sources."
    )
    WK776 = (
        "[WK776] {path} has no sentence to suggest: of {read} sentences {excluded} are excluded, and the others are "
        "empty or annotated. Give more text."
    )

    # Clusters
    WK711 = "[WK711] Both '{setting}' and 'ray' are given. Use processes on this machine, or a cluster: leave out one."
    WK714 = (
        "[WK714] Not all shards of {path} are what they should be after the cluster has made them: its machines do not "
        "see the same input and sources. Give all of them the same files, and run the same command again."
    )
    WK719 = "[WK719] The Ray cluster has no {kind}. Add a machine that has one, or leave out what asks for it."
    WK720 = "[WK720] 'ray' needs Ray, which is not installed. Install the extra: pip install \"spacy_weakner[ray]\"."
    WK721 = (
        "[WK721] Cannot connect to the Ray cluster '{address}': {reason}. Start one (ray start --head), or give 'auto'."
    )
    WK722 = (
        "[WK722] The machine {host} has another {what}: {its}, and not {mine}. All machines of a cluster must see "
        "input, sources and output under the same paths, and have the same Python and the same package."
    )
    WK723 = (
        "[WK723] The cluster could not do {what} ({reason}). Finished shards are kept: run the same command again to "
        "continue."
    )
    WK730 = (
        "[WK730] {path} holds no table of word pieces that can be read ({reason}). Make it anew with 'spacy weakner "
        "encoder distill', or give the folder of a static model (tokenizer.json, model.safetensors)."
    )
    WK731 = (
        "[WK731] The encoder has no table of word pieces. Give its folder: --paths.pieces FOLDER, which 'spacy weakner "
        "encoder distill' makes."
    )
    WK732 = "[WK732] '{name}' cannot give vectors of word pieces: {reason}. Take another Transformer."

    # Damaged and hostile files
    WK810 = (
        "[WK810] '{name}' was given no terms with ids. Give a list with a column 'id' under "
        "[initialize.components.{name}.terms], or remove the component."
    )
    WK800 = (
        "[WK800] What is stored of '{name}' is damaged: {reason}. Copy the pipeline again from where it was made, or "
        "train it anew."
    )


class Warnings:
    WK906 = (
        "[WK906] '{name}' reads votes, and no gold sentence of the first batch has any of the span groups {groups}: "
        "they will count for nothing. Put what writes them before it in the pipeline and into "
        "[training] annotating_components, or list the sources in 'sources' of the corpus."
    )
    WK907 = (
        "[WK907] '{name}' was fitted with the predictions of {missing}, and the Docs have none: its entities are "
        "others now, and their scores no longer calibrated. Leave all components on that it was fitted with, or fit it "
        "anew without them ('predictions')."
    )
    WK908 = (
        "[WK908] '{name}' was fitted without the labels {labels}, which weak sources give: such matches are never "
        "entities. Correct the labels of the terms (a term is a pair of label and term), or fit it anew with gold "
        "that has them."
    )
    WK900 = (
        "[WK900] No example that '{name}' was initialised with has any entity annotation ('O' is one): there is "
        "nothing to learn. Write weak labels to doc.ents with 'spacy weakner aggregate', or check the training corpus."
    )
    WK904 = (
        "[WK904] No example that '{name}' was initialised with has a category that is known to apply (doc.cats, 'cats' "
        "in JSONL): there is nothing to learn. Check the training corpus."
    )
    WK903 = (
        "[WK903] The training clock renews every {interval} steps, and the training has only {total_steps}: there will "
        "be no renewal after the start. Lower 'interval' in [training.before_update], or train longer."
    )
    WK902 = (
        "[WK902] No example that '{name}' was initialised with has the span group '{key}' (spans_key): there is "
        "nothing to learn. Correct the name of the group, or give a corpus that has it."
    )
    WK901 = (
        "[WK901] {n} of the {total} entities that '{name}' was initialised with are wider than max_width = {max_width} "
        "tokens (the widest has {widest}): they are left out, and such entities are never found. Raise max_width if "
        "they matter."
    )


def check_range(setting: str, value: float, low: float, high: Optional[float]) -> None:
    """Refuse a setting that is out of range.

    setting (str): Its name.
    value (float): Its value.
    low (float): The lowest that is allowed.
    high (Optional[float]): The highest; None: any.
    RAISES (WeaknerError): If it is out of range, or NaN.
    """
    if not (low <= value and (high is None or value <= high)):
        expected = f"at least {low}" if high is None else f"between {low} and {high}"
        raise WeaknerError(Errors.WK005.format(setting=setting, value=value, expected=expected))


def check_choice(setting: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a setting that is none of the known ones.

    setting (str): Its name.
    value (str): Its value.
    choices (Sequence[str]): The known ones.
    RAISES (WeaknerError): If it is none of them.
    """
    if value not in choices:
        raise WeaknerError(Errors.WK005.format(setting=setting, value=value, expected=" or ".join(choices)))
