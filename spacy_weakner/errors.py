"""All messages to users: each says what is wrong, where, and what to change."""


class WeaknerError(ValueError):
    """Bad input or settings: the command line prints its message alone, without a traceback."""


class Errors:
    # Components and training
    E001 = (
        "[W001] '{name}' has no labels. Give labels in [initialize.components.{name}.labels], call add_label(), or "
        "train on a corpus that holds entities."
    )
    E002 = (
        "[W002] '{name}' was initialised with the labels {labels}, so '{label}' cannot be added. "
        "Initialise it again with all labels."
    )
    E003 = (
        "[W003] '{name}' met the entity label '{label}', which it was not initialised with (labels: {labels}). "
        "Fix the corpus, or list the label in [initialize.components.{name}.labels]."
    )
    E004 = (
        "[W004] '{name}' needs the training clock, and nothing has ticked it. Add to the config:\n"
        '[training.before_update]\n@callbacks = "spacy_weakner.TrainingClock.v1"'
    )
    E005 = "[W005] The setting '{setting}' = {value} is out of range: expected {expected}."
    E006 = "[W006] The loss of '{name}' is {loss} (not a number). Lower the learning rate or check the corpus."
    E007 = (
        "[W007] Sentence {index} of the batch has no tag sequence that satisfies both its annotations and the "
        "constraints of the tag scheme. Check the annotations, or set 'constrain = false'."
    )
    E008 = "[W008] '{name}' is not initialised: run nlp.initialize() or load a trained pipeline first."
    E009 = "[W009] Unknown tag scheme '{scheme}'. Choose one of: {schemes}."
    E010 = "[W010] The tag '{tag}' does not belong to the scheme {scheme} with the labels {labels}."
    E011 = "[W011] The pipeline '{path}' has no component '{name}' to load weights from (it has: {names})."
    E012 = "[W012] This pipeline has no component '{name}' to load weights into (it has: {names})."
    E013 = "[W013] Component '{name}' has no part '{part}' (it has: {parts}). Correct 'components' of LoadWeights."
    E014 = (
        "[W014] The weights of '{name}' ({part}) in '{path}' do not fit: {reason}. "
        "The architecture and its sizes must be the same in both configs."
    )
    E015 = (
        "[W015] The labels of '{name}' differ: here {labels}, in '{path}' {other}. "
        "A head can only be loaded for the same set of labels; load the part 'encoder' alone to reset the head."
    )
    E016 = (
        "[W016] The clock needs 'total_steps' or 'total_epochs' to tell progress, and exactly one of the two. "
        "Got total_steps={total_steps}, total_epochs={total_epochs}."
    )
    E017 = (
        "[W017] The clock has an 'interval' but no 'corpus' to renew components with. Add a nested reader: "
        "[training.before_update.corpus]."
    )
    E018 = (
        "[W018] The reader of the {which} corpus uses '{setting}' = {value}, which would lose what weak labels "
        "need (splitting drops the stored confidences and tags). Remove the setting; split texts with "
        "'spacy weakner convert' instead."
    )
    E019 = "[W019] The {which} corpus is empty, so there is nothing to mix. Check its path."
    # Corpus files
    E100 = "[W100] Not found: {path}. Check the path{hint}."
    E101 = "[W101] No documents in {path}: the corpus is empty."
    E102 = "[W102] {path} is not a readable .spacy file ({reason}). Write it again with 'spacy weakner convert'."
    E103 = "[W103] {path}, line {line}: {reason}"
    E104 = "[W104] {path} is not UTF-8 (byte {position}: {reason}). Convert it, for example: iconv -t UTF-8."
    E105 = "[W105] Cannot tell the format of {path}. Use one of {suffixes}, or pass the format."
    E106 = "[W106] Unknown tokenizer '{name}'. Registered tokenizers: {names}."
    E107 = "[W107] Cannot create a blank pipeline for the language '{lang}': {reason}"
    E108 = "[W108] Cannot load the pipeline '{name}': {reason}"
    # Term lists
    E200 = "[W200] {path} holds no terms."
    E201 = "[W201] {path}, line {line}: {reason}"
    E202 = (
        "[W202] '{name}' has no terms: nothing to match. Give them in [initialize.components.{name}.terms] "
        '(for example with @readers = "spacy_weakner.TermList.v1"), or call add_terms().'
    )
    E203 = "[W203] '{name}' matches on LEMMA, but the tokens have no lemmas. Put a component that sets them before it."
    E204 = (
        "[W204] '{name}' skipped all {count} terms (stop list: {stop}, shorter than 'min_length': {short}, "
        "without tokens: {empty}). Relax these settings, or check the terms."
    )
    E205 = "[W205] Cannot tell the format of the term list {path}. Rename it to one of {suffixes} (or these with .gz)."
    E206 = "[W206] {path} is damaged ({reason}). Make or download it again."
    E207 = "[W207] Entry {index} of the terms of '{name}': {reason}"
    E208 = (
        "[W208] The terms of '{name}' have the label '{label}', which is not among the labels given to it "
        "({labels}). Correct the term list, or the setting 'labels'."
    )
    E209 = (
        "[W209] The terms of '{name}' were tokenised for attr = {stored}, but the config says {attr}. "
        "Set it back, or initialise the component again."
    )
    # Stages
    E300 = "[W300] {path} exists and was made with other input or settings. Remove it, or choose another output."
    E301 = "[W301] No document in {path} has a span group that begins with 'weak:'. Run 'label' first."
    E302 = "[W302] {path}: no source '{source}' (sources there: {sources}). Correct 'sources'."
    E303 = (
        "[W303] Give either a term list (terms) or a pipeline as the weak source, and not both. "
        "For both, label twice with different names of the source."
    )
    E304 = "[W304] {path} is part of the input. A stage never overwrites its input: choose another output."
    # Quality
    E400 = (
        "[W400] {path} does not hold the sentences of {test} (they differ from sentence {number} on). "
        "Compare label sets that were made from the test corpus."
    )
    E401 = "[W401] Give candidates as NAME=PATH (got '{value}')."
