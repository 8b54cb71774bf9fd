"""A GPU whose PCIe link runs with fewer lanes than it has, while those of the others do not."""

from __future__ import annotations

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.gpus import readings
from flatline.judging.timeline import instant
from flatline.model import Claim, Place

NOW, MOST = "gpu_pcie_link_width", "gpu_pcie_link_width_max"
"""A link that is idle lowers its speed to save power, and keeps its lanes: fewer are a fault of a
slot, a riser or a card, or how the board is wired, which it then is for others of its kind too."""


def narrow(facts: Facts, place: Place, begins: float, ends: float) -> Claim | None:
    """That the link was narrow throughout; None where it was not, others' are as well, or either
    was not read."""
    found = the_narrow(facts, begins, ends) if place.gpu is not None else None
    return found[1] if found is not None and found[0] == place else None


def the_narrow(facts: Facts, begins: float, ends: float) -> tuple[Place, Claim] | None:
    """The one GPU of which that holds, and what shows it."""
    if not facts.measured(NOW) or not facts.measured(MOST):
        return None
    window = f"[{max(1, int(ends - begins))}s]"
    now = readings(instant(facts, f"max_over_time({NOW}{window})", ends))
    most = readings(instant(facts, f"max_over_time({MOST}{window})", ends))
    if now is None or most is None:
        return None
    both = now.rows.keys() & most.rows.keys()
    cut = [one for one in both if 0 < now.rows[one].last < most.rows[one].last]
    if len(cut) != 1 or len(both) < 2:
        return None
    place = cut[0]
    own = now.cite(place, now.rows[place].times[-1], "lanes of its PCIe link")
    whole = most.cite(place, most.rows[place].times[-1], "lanes that it has")
    if own is None or whole is None:
        return None
    text = f"The PCIe link of {place} ran with {own.value:.0f} of its {whole.value:.0f} lanes"
    return place, claim(f"{text}, those of the others with all of theirs", own, whole)
