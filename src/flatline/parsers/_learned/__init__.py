"""
Lines of loops that no format knows, read by what they say of themselves: `numbered` tells a line's
numbers and what each is called, `roles` what such a name means, `curves` which number counts the
steps.
"""
