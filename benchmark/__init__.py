"""The benchmark: a pass side by side with DuckDB, a small run on a large lake, and a run with nothing to do; all as ratios."""
