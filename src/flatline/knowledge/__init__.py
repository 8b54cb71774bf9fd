"""
What was learnt of failures before: incident records, and the search for the one that fits.

A record is text under review, in a TOML file of its origin (`records/`) or in the site's own
folder (`site`).  `incident` reads and checks records, `tokens` and `index` find them by BM25,
`related` sets the fitting ones beside a verdict, `outcomes` remembers what held at this site.
A record is never evidence: it says what to look at, and a verdict rests on nothing here.
"""
