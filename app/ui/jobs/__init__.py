"""Background work that does not depend on open pages: `sonde` commands in separate processes."""

from .job import Job, JobPace, State
from .queue import Jobs, Uploads

__all__ = ["Job", "JobPace", "Jobs", "State", "Uploads"]
