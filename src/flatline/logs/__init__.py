"""Text as it was printed: files to lines, lines to rank, time and traceback, patterns to hits."""
