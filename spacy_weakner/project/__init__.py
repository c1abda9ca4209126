"""From files to a packaged pipeline: prepare corpora, decide what to train, compare, choose, report, package."""
