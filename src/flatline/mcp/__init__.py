"""
Flatline for a model: the same verdict through the Model Context Protocol.

`roots` says what may be opened, `runs` holds what was diagnosed under a handle, `shapes` types
what is answered, `pack` and `parts` fill it within bounds, `words` is the short text beside it.
`tools`, `resources` and `prompts` are what a client sees, `server` puts them together, and `gate`
lets in who has the token.  Nothing here judges.  Only this package imports the SDK (the extra
`[mcp]`), and nothing below it knows that it exists.
"""
