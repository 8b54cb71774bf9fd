"""
The investigator: a language model that may ask, read and explain, and never invents evidence.

`bench` is the run as its tools see it, `tools` what a model may call, `pages` keeps what they
answer within bounds.  `investigation` asks in three rounds, `thoughts` parses the reasoning,
`weighing` has every claim checked, `rules` answers where there is no model.  `endpoint` makes the
model, `metered` keeps its budget, `faults` says what went wrong, `transcript` and `replay` keep it
and run it again.  Only `endpoint`, `metered`, `investigation`, `faults`, `transcript` and `replay`
import pydantic-ai (the extra `[agent]`); nothing below this package knows that it exists.
"""
