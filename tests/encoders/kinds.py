"""Random Transformers of several kinds, made on the fly."""

from ..util import fix_seed

SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}


def roberta(folder, **settings):
    """A RoBERTa with pieces of bytes, which tells words by the spaces before them."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {piece: i for i, piece in enumerate(["<s>", "<pad>", "</s>", "<unk>", *alphabet])}
    merges = [("o", "b"), ("B", "ob"), ("Ġ", "Bob")]
    for a, b in merges:
        vocab[a + b] = len(vocab)
    tokenizer = Tokenizer(models.BPE(vocab, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    sizes = {"max_position_embeddings": 34, "type_vocab_size": 1, **settings}
    return _save(folder, "Roberta", tokenizer, ("<s>", "</s>", "<pad>", "<unk>"), **sizes)


def deberta(folder, **settings):
    """A DeBERTa-v2 with pieces of SentencePiece and relative positions."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    pieces = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "▁", *"abcdefghijklmnopqrstuvwxyzAB,", "▁Bob", "▁Anna", "ob"]
    tokenizer = Tokenizer(models.Unigram([(piece, -float(i)) for i, piece in enumerate(pieces)], unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 1), ("[SEP]", 2)]
    )
    relative = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False}
    sizes = {"max_position_embeddings": 64, "type_vocab_size": 0, **relative, **settings}
    return _save(folder, "DebertaV2", tokenizer, ("[CLS]", "[SEP]", "[PAD]", "[UNK]"), **sizes)


def bert(folder, tiny_bert, **settings):
    """A BERT with the pieces of another one."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_bert)
    tokenizer.save_pretrained(folder)
    config = transformers.BertConfig(vocab_size=len(tokenizer), max_position_embeddings=64, **{**SIZES, **settings})
    fix_seed(0)
    transformers.BertModel(config).save_pretrained(folder)
    return folder


def _save(folder, kind, tokenizer, special, **settings):
    import transformers

    names = dict(zip(("cls_token", "sep_token", "pad_token", "unk_token"), special, strict=True))
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)
    fast.save_pretrained(folder)
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=len(fast), pad_token_id=fast.pad_token_id, **{**SIZES, **settings}
    )
    fix_seed(0)
    getattr(transformers, f"{kind}Model")(config).save_pretrained(folder)
    return folder
