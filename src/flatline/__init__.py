"""Why did my training run flatline? A grounded verdict from what a run left behind."""

from __future__ import annotations

__version__ = "0.1.0"

__all__ = ["__version__"]
