__title__ = "spacy_weakner"
__version__ = "0.1.0"
