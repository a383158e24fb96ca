"""Models that requests share beside the bi-encoders: each is loaded at its first use, once for the service."""

import threading

from ...pipelines.label import NliJudge, load_nli


class Models:
    """The NLI model of the service; requests can name no other, so nobody makes the service fetch one."""

    def __init__(self, device: str) -> None:
        """Take the device that models run on."""
        self._device = device
        self._loading = threading.Lock()
        self._nli: NliJudge | None = None

    def nli(self) -> NliJudge:
        """Return the NLI model.

        Raises:
            SondeError: It cannot be had.
        """
        with self._loading:
            if self._nli is None:
                self._nli = NliJudge(load_nli(device=self._device))
            return self._nli
