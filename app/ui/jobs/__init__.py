"""Work that goes on while pages come and go: commands of `sonde` in processes of their own."""

from .events import Pace
from .job import Job, State
from .queue import Jobs
from .uploads import Uploads

__all__ = ["Job", "Jobs", "Pace", "State", "Uploads"]
