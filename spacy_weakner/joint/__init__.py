"""Joint labeling (Kruengkrai et al. 2020): a bidirectional LSTM, attention on top of it, and a learning rate that is
reduced when the score on dev does not improve. Its two heads are `crf_ner` and `sentence_category`."""
