"""
The words every surface shares: `rows` open a page, `places` folds ranks and hosts, `columns`
fits text to a terminal, `untrusted` disarms what the run wrote.

Nothing here judges and nothing here lays out a page.
"""
