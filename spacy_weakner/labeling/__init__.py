"""Weak labels from term lists, patterns, pipelines, answers, language models and anchors."""
