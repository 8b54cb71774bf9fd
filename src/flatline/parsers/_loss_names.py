"""What the names of losses say of how they go, beside others in one line."""

from __future__ import annotations

import re

BESIDE = "unsupervised"
"""What DeepSpeed-Chat adds to an actor's loss, nought where it is off; alone it is a loss."""
MEL = re.compile(r"(?:^|[_/. ])mel(?:$|[_/. ])")
"""The distance of two spectra, which falls whatever plays beside it."""
HELD_SMALL = re.compile(r"(?:^|[_/. ])(?:kl|entropy)(?:$|[_/. ])")
"""What holds a policy, or a code, where it is."""
ADVERSARY = re.compile(r"(?:^|[_/. ])(?:([dg])|(d)isc\w*|(g)en(?:erator)?)(?=$|[_/. ])")
