"""Conversion of files of any format to corpora of rows or DocBin."""
