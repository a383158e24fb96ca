"""Work that goes on while pages come and go: commands of `sonde` in processes of their own."""

from .job import Job, State
from .queue import Jobs

__all__ = ["Job", "Jobs", "State"]
