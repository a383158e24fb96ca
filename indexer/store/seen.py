"""The ids that one index run has met."""

import sqlite3
from collections.abc import Iterable


class Seen:
    """The keys that this run has met, in a temporary SQLite table: flat memory for any number of documents."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self.connection.execute("CREATE TABLE seen(key TEXT PRIMARY KEY, times INTEGER NOT NULL) WITHOUT ROWID")
        self.connection.execute("PRAGMA synchronous = OFF")
        self.connection.execute("BEGIN")

    def count(self, key: str) -> int:
        """Note that a key was met and return how often it has been, this time included."""
        sql = "INSERT INTO seen VALUES (?, 1) ON CONFLICT(key) DO UPDATE SET times = times + 1 RETURNING times"
        return self.connection.execute(sql, (key,)).fetchone()[0]

    def missing(self, keys: Iterable[tuple[int, str]]) -> list[int]:
        """Return the numbers of those (number, key) pairs whose key was never met."""
        sql = "SELECT 1 FROM seen WHERE key = ?"
        return [number for number, key in keys if self.connection.execute(sql, (key,)).fetchone() is None]
