"""Finding mistakes in files and settings before anything is trained."""
