"""Scores with intervals, comparison of pipelines, analysis of labels, the report."""
