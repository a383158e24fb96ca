"""One Markdown table of what the stages wrote."""

import json

from _stage import Stage

STAGES = ("check", "embed", "index", "search", "groups")


def main() -> None:
    """Write and print the table."""
    stage = Stage.of("report")
    lines = ["| stage | work | Sonde | beside | times as fast | goal |", "|---|---|---|---|---|---|"]
    for name in STAGES:
        path = stage.folder / f"{name}.jsonl"
        found = path.read_text("utf-8").splitlines() if path.exists() else []
        lines += [row(json.loads(line)) for line in found] or [f"| {name} | | not run | | | |"]
    (stage.folder / "report.md").write_text("\n".join(lines) + "\n", "utf-8")
    print("\n".join(lines))


def row(found: dict[str, object]) -> str:
    """Return a line of the table."""
    faster = "" if found["faster"] is None else f"{found['faster']:.2f}"
    return f"| {found['stage']} | {found['work']} | {found['sonde']} | {found['beside']} | {faster} | {found['goal']} |"


if __name__ == "__main__":
    main()
