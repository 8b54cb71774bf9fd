"""A GPU whose PCIe link runs with fewer lanes than it has, or slower, while those of the others do
not."""

from __future__ import annotations

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.gpus import BUSY_RATIO, Readings, readings
from flatline.judging.timeline import instant
from flatline.model import Claim, Place

NOW, MOST = "gpu_pcie_link_width", "gpu_pcie_link_width_max"
"""A link that is idle lowers its speed to save power, and keeps its lanes: fewer are a fault of a
slot, a riser or a card, or how the board is wired, which it then is for others of its kind too."""
SPEED, WORK = "gpu_pcie_link_generation", "gpu_utilization_ratio"
FAR = 4
"""Times as many lanes: half of them may be how a board is wired."""
OTHERS = 3
"""So many links of one speed tell what a busy one runs at.  A judgement."""


def narrow(facts: Facts, place: Place, begins: float, ends: float) -> Claim | None:
    """That the link was narrow or slow throughout; None where it was not, others' are as well, or
    it was not read."""
    found = the_narrow(facts, begins, ends) if place.gpu is not None else None
    return found[1] if found is not None and found[0] == place else None


def the_narrow(facts: Facts, begins: float, ends: float) -> tuple[Place, Claim] | None:
    """The one GPU of which that holds, and what shows it."""
    window = f"[{max(1, int(ends - begins))}s]"
    return _fewer_lanes(facts, window, ends) or _slower(facts, window, ends)


def _highest(facts: Facts, signal: str, window: str, ends: float) -> Readings | None:
    if not facts.measured(signal):
        return None
    return readings(instant(facts, f"max_over_time({signal}{window})", ends))


def _fewer_lanes(facts: Facts, window: str, ends: float) -> tuple[Place, Claim] | None:
    now, most = (_highest(facts, signal, window, ends) for signal in (NOW, MOST))
    if now is None or most is None:
        return None if now is None else _far_fewer(now)
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


def _far_fewer(now: Readings) -> tuple[Place, Claim] | None:
    """The same beside the others', where nothing tells how many a link has."""
    lanes = {one: row.last for one, row in now.rows.items() if row.last > 0}
    cut = min(lanes, key=lambda one: lanes[one], default=None)
    others = {value for one, value in lanes.items() if one != cut}
    if cut is None or len(lanes) <= OTHERS or len(others) != 1 or FAR * lanes[cut] > min(others):
        return None
    other = next(one for one in lanes if one != cut)
    cites = [now.cite(one, now.rows[one].times[-1], "lanes of its PCIe link")
             for one in (cut, other)]  # fmt: skip
    text = f"The PCIe link of {cut} ran with {lanes[cut]:.0f} lanes, that of every other with"
    return cut, claim(f"{text} {min(others):.0f}", *cites)


def _slower(facts: Facts, window: str, ends: float) -> tuple[Place, Claim] | None:
    """Of cards that all worked, the one whose link never reached the generation of the others'."""
    speed = _highest(facts, SPEED, window, ends)
    work = readings(instant(facts, f"avg_over_time({WORK}{window})", ends))
    if speed is None or work is None:
        return None
    busy = [one for one in speed.rows
            if one in work.rows and work.rows[one].last > BUSY_RATIO]  # fmt: skip
    reached = {one: speed.rows[one].last for one in busy}
    fastest = max(reached.values(), default=0.0)
    behind = [one for one, value in reached.items() if 0 < value < fastest]
    if len(behind) != 1 or len(busy) <= OTHERS:
        return None
    other = next(one for one in busy if reached[one] == fastest)
    cites = [speed.cite(one, speed.rows[one].times[-1], "highest generation of its PCIe link")
             for one in (behind[0], other)]  # fmt: skip
    own, usual = cites
    if own is None or usual is None:
        return None
    text = (
        f"The PCIe link of {behind[0]} never ran above generation {own.value:.0f} while it worked"
    )
    return behind[0], claim(f"{text}, those of the others at {usual.value:.0f}", own, usual)
