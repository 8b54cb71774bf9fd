"""`python -m flatline`."""

from __future__ import annotations

from flatline.cli import main

main()
