"""
Arithmetic on time series: their storage, the formats they come in, and PromQL over them.

NumPy is imported by the modules inside, never here: a run without metrics does not pay for it.
"""
