"""What is not read in a folder: all of it is counted, by kind."""

import os
import re
from pathlib import Path

import pytest

from sonde.indexer.errors import SondeError
from sonde.indexer.readers import Reading, ReadOptions, read_source
from sonde.indexer.readers.unread import counted_kinds, unread_lines


def folder_of(folder: Path, *names: str) -> Path:
    """Return a folder with empty files of these names, beside one text."""
    for name in ("a.txt", *names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("A text." if name.endswith(".txt") else "")
    return folder


def read_keys(reading: Reading) -> list[str]:
    """Return where each document or skipped file comes from."""
    return [item.origin for item in reading]


def test_every_kind_is_counted(tmp_path: Path) -> None:
    names = [*(f"{n}.pptx" for n in range(7)), "a.doc", "b.doc", "c.mbox", "D.MSG", "e.csv.gz", "LICENSE", "p.2024"]
    hidden = [".DS_Store", ".git/config", ".git/objects/ab.txt", "sub/.x.txt"]
    reading = read_source(folder_of(tmp_path / "src", *names, *hidden, "Minutes v1.2 final", "sub/f.jpg"))
    assert read_keys(reading) == ["a.txt"]
    unread = {".pptx": 7, "hidden": 4, "without a suffix": 3, ".doc": 2}
    assert reading.unread_files == unread | {".csv.gz": 1, ".jpg": 1, ".mbox": 1, ".msg": 1}
    said = "7 .pptx, 2 .doc, 1 .csv.gz, 1 .jpg, 1 .mbox, 1 .msg, 3 without a suffix, 4 hidden files"
    assert f"(of 1 file; left out: {said})" in reading.columns.describe()


def test_the_numbers_add_up_if_there_are_many_kinds() -> None:
    unread = {f".x{n}": 20 - n for n in range(11)} | {"without a suffix": 1}
    named = ", ".join(f"{20 - n} .x{n}" for n in range(8))
    assert counted_kinds(unread) == f"{named}, 1 without a suffix and 33 more files of 3 kinds"
    assert counted_kinds({f".x{n}": 1 for n in range(9)}).count(", 1 .x") == 8


def test_the_lines_of_a_report() -> None:
    assert unread_lines({}) == []
    assert unread_lines({".eml": 1_006, ".rtf": 1, "without a suffix": 2, "hidden": 1}) == [
        "1,009 files of kinds that Sonde does not read were left out: 1,006 .eml, 1 .rtf, 2 without a suffix",
        "1 hidden file was left out",
    ]
    assert unread_lines({".rtf": 1}) == ["1 file of a kind that Sonde does not read was left out: 1 .rtf"]
    assert unread_lines({"hidden": 2, "pipe or device": 2}) == [
        "2 hidden files were left out",
        "2 pipes or devices were left out",
    ]


def test_files_below_two_given_folders_are_counted_once(tmp_path: Path) -> None:
    src = folder_of(tmp_path / "src", "sub/b.rtf", "sub/c.txt")
    assert read_source([src, src / "sub"]).unread_files == {".rtf": 1}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_is_counted_and_not_waited_for(tmp_path: Path) -> None:
    src = folder_of(tmp_path / "src")
    os.mkfifo(src / "b.txt")
    reading = read_source(src)
    assert (read_keys(reading), reading.unread_files) == (["a.txt"], {"pipe or device": 1})


def test_links_that_lead_out_of_the_folder_are_not_read(tmp_path: Path) -> None:
    """A private file that a link leads to came into a collection that others get."""
    src, home = folder_of(tmp_path / "src", "sub/b.txt"), folder_of(tmp_path / "home", "diary.txt")
    (tmp_path / "src2").mkdir()
    links = {
        "diary.txt": home / "diary.txt",
        "relative.txt": Path("../home/diary.txt"),
        "sub/nothing.txt": home / "gone.txt",
        "sub/beside.md": tmp_path / "src2" / "x.md",
        "twice.txt": src / "relative.txt",
        "folder": home,
    }
    for name, target in links.items():
        (src / name).symlink_to(target)
    reading = read_source(src)
    assert read_keys(reading) == ["a.txt", "sub/b.txt"]
    assert reading.unread_files == {"link that leads out of the folder": 6}
    assert "left out: 6 links that lead out of the folder)" in reading.columns.describe()
    assert unread_lines({"link that leads out of the folder": 1}) == [
        "1 link that leads out of the folder was left out"
    ]
    assert not [key for key in read_keys(read_source(src, options=ReadOptions(format="text"))) if key in links]


def test_links_that_stay_in_the_folder_are_read(tmp_path: Path) -> None:
    src = folder_of(tmp_path / "src", "sub/b.txt")
    (src / "c.txt").symlink_to(src / "sub" / "b.txt")
    (src / "up.txt").symlink_to(Path("sub/../a.txt"))
    (src / "sub" / "round").symlink_to(src)
    (src / "d.txt").symlink_to(src / "d.txt")
    link = tmp_path / "link"
    link.symlink_to(src)
    for folder in (src, link, link / "sub" / ".."):
        reading = read_source(folder)
        assert read_keys(reading) == ["a.txt", "c.txt", "d.txt", "sub/b.txt", "up.txt"]
        assert reading.unread_files == {}


def test_a_link_may_lead_into_another_given_folder_or_be_given_itself(tmp_path: Path) -> None:
    src, more = folder_of(tmp_path / "src"), folder_of(tmp_path / "more", "b.txt")
    (src / "b.txt").symlink_to(more / "b.txt")
    assert read_keys(read_source([src, more])) == ["src/a.txt", "src/b.txt", "more/a.txt", "more/b.txt"]
    reading = read_source([src, src / "b.txt"])
    assert (read_keys(reading), reading.unread_files) == (["a.txt", "b.txt"], {})


CONVERT = "to text, HTML or PDF, or to a table with a column of texts"
ADVICE = {
    f"export .msg and .pst files as .eml or .mbox files; convert .doc files {CONVERT}": [
        *("1.msg", "2.msg", "a.pst", "a.doc"),
    ],
    "give .csv.gz and .mbox files one by one": ["a.csv.gz", "b.png", "c.mbox"],
    f"give .xlsx files one by one; convert .rtf files {CONVERT}; unpack .zip files": [
        *("a.zip", "a.rtf", "a.xlsx"),
    ],
    "check the path": ["b.png", ".hidden"],
}


@pytest.mark.parametrize("advice", ADVICE)
def test_a_folder_without_a_file_to_read_says_what_to_do(tmp_path: Path, advice: str) -> None:
    folder = folder_of(tmp_path / "mail", *ADVICE[advice])
    (folder / "a.txt").unlink()
    with pytest.raises(SondeError, match=rf"/mail has no readable file \(.*\); it holds [12] .*: {re.escape(advice)}$"):
        read_source(folder)


def test_a_folder_of_links_that_lead_out_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.txt").symlink_to(folder_of(tmp_path / "home") / "a.txt")
    said = "it holds 1 link that leads out of the folder: copy the files that the links lead to into the folder"
    with pytest.raises(SondeError, match=f"{said}$"):
        read_source(tmp_path / "src")
