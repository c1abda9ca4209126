"""Linear models: indicator features, sparse layers, subword vectors."""
