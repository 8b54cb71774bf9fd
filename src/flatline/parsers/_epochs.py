"""A counter beside an epoch: whether it is the epoch's own or the whole run's, and counted on."""

from __future__ import annotations


class Epochs:
    """Of one stream. `own`: whether the counter begins anew with each epoch; None: not known."""

    def __init__(self) -> None:
        self.own: bool | None = None
        self._first_epoch: float | None = None
        self._epoch: float | None = None
        self._n = 0
        self._base = 0
        self._stride = 1

    def over(
        self, n: int, of: int | None, epoch_of: tuple[float, int | None], own: bool | None
    ) -> tuple[int, int | None]:
        """
        (step, planned) of a counter beside an epoch.

        It is its epoch's own where its shape says so, where the epoch contradicts it, or once it
        fell as the epoch rose; it is the whole run's once both rose.  Until that is known its
        total is no plan, unless there is one epoch alone.
        """
        epoch, epochs = epoch_of
        if self._first_epoch is None or epoch < self._first_epoch:
            self._first_epoch = epoch
        rose = self._epoch is not None and epoch > self._epoch
        fell = rose and n < self._n
        if own is not None:
            self.own = own
        elif fell or _contradicts(n, of, epoch, epochs):
            self.own = True
        elif rose and self.own is None:
            self.own = False
        if fell:
            self._base += self._n + self._stride
        elif epoch == self._epoch and n > self._n:
            self._stride = n - self._n
        self._epoch, self._n = epoch, n
        if self.own is None and of is not None and epochs == 1 and n <= of:
            return n, of  # an epoch that is all there is
        if of is None or not self.own:
            return self._base + n, of if self.own is False else None
        zero = min(self._first_epoch, 1)
        plan = epochs * of if epochs and self._first_epoch <= 1 else None
        return int(epoch - zero) * of + n, plan


def _contradicts(n: int, of: int | None, epoch: float, epochs: int | None) -> bool:
    """Whether n of `of` cannot be the whole run's, because the epoch says otherwise."""
    if not of or not epochs or epochs < 2:
        return False
    return not (epoch - 1.5) / epochs <= n / of <= (epoch + 1.5) / epochs
