"""Joint labeling (Kruengkrai et al. 2020): a bidirectional LSTM, attention on it, and a learning rate that falls when
the score on dev no longer rises. Its two heads are `crf_ner` and `sentence_category`."""
