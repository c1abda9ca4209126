"""Linear models: indicator features, clusters, sparse layers, subword vectors."""
