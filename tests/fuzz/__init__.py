"""
Hostile runs, and what holds of each: an answer in time, valid, verified, without a secret.

`make test` runs a few hundred of them, always the same; `make fuzz N=100000` runs as many as asked
for, others each time.
"""
