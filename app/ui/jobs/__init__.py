"""Work that goes on while pages come and go: commands of `sonde` in processes of their own."""

from .job import Job, JobPace, State
from .queue import Jobs, Uploads

__all__ = ["Job", "JobPace", "Jobs", "State", "Uploads"]
