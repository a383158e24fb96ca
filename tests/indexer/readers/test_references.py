"""References as databases of papers and reference managers export them: each one is a document."""

import gzip
from pathlib import Path

import pytest
from fake_encoder import FakeEncoder

from sonde.app.api import index
from sonde.indexer.document import Document, Skipped
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.readers import ReadOptions, read_source

RIS = """\ufeffTY  - JOUR\r
AU  - Müller, Ada\r
AU  - Smith, B.\r
TI  - Effects of sleep on memory\r
T2  - Journal of Sleep\r
PY  - 2020/05/12/\r
AB  - Background: sleep matters.\r
It helped in 40 % of cases - mostly.\r
II - Results: none.\r
DO  - https://doi.org/10.1000/ABC.1\r
KW  - sleep\r
KW  - memory\r
SP  - 12\r
EP  - 19\r
AN  - S1\r
C1  - a field of one's own\r
ER  - \r
\r
TY  - CHAP\r
TI  - Only a title\r
PY  - 1999\r
AN  - S2\r
ER  -\r
"""
NBIB = """
PMID- 123456
OWN - NLM
DP  - 2019 Mar 5
TI  - A randomized trial of caffeine on
      alertness in shift workers.
LID - S0140-6736(19)1 [pii]
AID - 10.1016/S0140-6736(19)1 [doi]
AB  - BACKGROUND: Coffee.
      METHODS: We drank it.
FAU - Jones, Carol
AU  - Jones C
FAU - Wu, D
AU  - Wu D
PT  - Randomized Controlled Trial
JT  - The Lancet
MH  - Coffee
MH  - Humans
OT  - caffeine

PMID- 123457
TI  - Second.
AB  - Short.
DP  - 2018
"""
CIW = """FN Clarivate Analytics Web of Science
VR 1.0
PT J
AU Doe, J
   Roe, K
AF Doe, Jane
   Roe, Karl
TI Deep learning for
   proteins
SO NATURE
AB We fold
   them.
DE proteins; folding
DI 10.1038/X1
PY 2021
BP 5
EP 9
UT WOS:0001
ER

EF
"""
BIB = r"""% from Zotero
@string{jt = "J. of Things"}
@article{smith2020, title={The {BERT} model: a $\beta$-study of \emph{things}},
  author={M{\"u}ller, J{\'e}r{\^o}me and Smith, A. and others}, journal=jt, year=2020, doi={10.1000/ABC},
  keywords={a, b; c},
  abstract={A long \textit{abstract} with 5% of things & 3 \% of more
    than a_b.}}
@inproceedings{bad, title={Unclosed
@article{smith2021, title="Another", year={2021}, url={https://x.org/a_b%20c}}
@article{nothing, year={2021}}
"""


def read(folder: Path, name: str, content: str, **options: str) -> list[Document | Skipped]:
    (folder / name).write_text(content, encoding="utf-8", newline="")
    return list(read_source(folder / name, options=ReadOptions(**options)))  # type: ignore[arg-type]


def test_ris(tmp_path: Path) -> None:
    first, second = read(tmp_path, "scopus.ris", RIS)
    said = {"authors": ["Müller, Ada", "Smith, B."], "year": 2020, "journal": "Journal of Sleep", "pages": "12-19"}
    said |= {"doi": "10.1000/abc.1", "keywords": ["sleep", "memory"], "kind": ["JOUR"], "source": "scopus.ris"}
    text = "Background: sleep matters. It helped in 40 % of cases - mostly. II - Results: none."
    assert first == Document(text, "Effects of sleep on memory", "S1", said, origin="line 1")
    assert second == Document(
        "", "Only a title", "S2", {"year": 1999, "kind": ["CHAP"], "source": "scopus.ris"}, origin="line 19"
    )


@pytest.mark.parametrize("name", ["pubmed.nbib", "pubmed-sleep-set.txt"])
def test_pubmed(tmp_path: Path, name: str) -> None:
    first, second = read(tmp_path, name, NBIB)
    assert isinstance(first, Document)
    assert (first.key, first.title) == ("123456", "A randomized trial of caffeine on alertness in shift workers.")
    assert first.text == "BACKGROUND: Coffee. METHODS: We drank it."
    assert first.metadata == {
        "authors": ["Jones, Carol", "Wu, D"], "year": 2019, "journal": "The Lancet", "keywords": ["caffeine"],
        "doi": "10.1016/s0140-6736(19)1", "subjects": ["Coffee", "Humans"], "kind": ["Randomized Controlled Trial"],
        "source": name,
    }  # fmt: skip
    assert second == Document("Short.", "Second.", "123457", {"year": 2018, "source": name}, origin="line 21")


@pytest.mark.parametrize("name", ["savedrecs.ciw", "savedrecs.txt"])
def test_web_of_science(tmp_path: Path, name: str) -> None:
    said = {"authors": ["Doe, Jane", "Roe, Karl"], "year": 2021, "journal": "NATURE", "pages": "5-9"}
    said |= {"doi": "10.1038/x1", "keywords": ["proteins", "folding"], "source": name}
    expected = Document("We fold them.", "Deep learning for proteins", "WOS:0001", said, origin="line 3")
    assert read(tmp_path, name, CIW) == [expected]


def test_bibtex(tmp_path: Path) -> None:
    first, broken, second, empty = read(tmp_path, "zotero.bib", BIB)
    said = {"authors": ["Müller, Jérôme", "Smith, A."], "year": 2020, "journal": "J. of Things", "doi": "10.1000/abc"}
    said |= {"keywords": ["a", "b", "c"], "kind": ["article"], "source": "zotero.bib"}
    text = "A long abstract with 5% of things & 3 % of more than a_b."
    assert first == Document(text, "The BERT model: a β-study of things", "smith2020", said, origin="line 3")
    assert isinstance(broken, Skipped) and broken.origin == "line 8"
    assert broken.reason.startswith("broken BibTeX: Unexpected block start: `@article`")
    said = {"year": 2021, "url": "https://x.org/a_b%20c", "kind": ["article"], "source": "zotero.bib"}
    assert second == Document("", "Another", "smith2021", said, origin="line 9")
    assert empty == Skipped("line 10", "it has neither title nor abstract")


def test_a_key_that_comes_twice_is_no_silent_loss(tmp_path: Path) -> None:
    entries = [f"@misc{{k{n}, title={{Number {n} of many}}}}" for n in range(20)] + ["@misc{k3, title={Another one}}"]
    (tmp_path / "two.bib").write_text("\n".join(entries))
    said = "the id column 'id' has repeated values, so 1 row of 21 would replace another"
    with pytest.raises(UsageError, match=said):
        index(tmp_path / "two.bib", tmp_path / "c.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    made = index(tmp_path / "two.bib", tmp_path / "c.sonde", id="", encoder=FakeEncoder())  # type: ignore[arg-type]
    assert {"Another one", "Number 3 of many"} < {row["title"] for row in made.rows()}


def test_the_same_reference_from_two_databases_is_two_documents(tmp_path: Path) -> None:
    """They are duplicates, whose number a review reports: none of them replaces the other."""
    (tmp_path / "a.ris").write_text(RIS)
    (tmp_path / "b.bib").write_text(BIB.replace("10.1000/ABC", "10.1000/abc.1"))
    made = index([tmp_path / "a.ris", tmp_path / "b.bib"], tmp_path / "c.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    assert sorted(row["id"] for row in made.rows(where="doi = '10.1000/abc.1'")) == ["S1", "smith2020"]


def test_compressed_and_named_otherwise(tmp_path: Path) -> None:
    (tmp_path / "a.ris.gz").write_bytes(gzip.compress(RIS.encode()))
    assert [item.origin for item in read_source(tmp_path / "a.ris.gz")] == ["line 1", "line 19"]
    assert [item.origin for item in read(tmp_path, "export", RIS, format="ris")] == ["line 1", "line 19"]


def test_a_running_number_is_no_id(tmp_path: Path) -> None:
    """EndNote numbers the references of each export from 1: those of a second export replaced those of the first."""
    for name in ("one", "two"):
        (tmp_path / f"{name}.ris").write_text(f"TY  - JOUR\nID  - 1\nTI  - Paper {name}\nDO  - 10.1000/a\nER  - \n")
        made = index(tmp_path / f"{name}.ris", tmp_path / "c.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    assert sorted(row["title"] for row in made.rows()) == ["Paper one", "Paper two"]
    assert [(row["text"], row["doi"]) for row in made.rows()] == [("", "10.1000/a")] * 2


def test_endnote_writes_a_keyword_on_each_line(tmp_path: Path) -> None:
    said = (
        "TY  - JOUR\nTI  - Sleep\nKW  - sleep\nhumans\nolder people\nAB  - [No abstract available]\nLA  - eng\nER  - \n"
    )
    [item] = read(tmp_path, "endnote.ris", said)
    kept = {
        "keywords": ["sleep", "humans", "older people"],
        "kind": ["JOUR"],
        "language": "en",
        "source": "endnote.ris",
    }
    assert item == Document("", "Sleep", None, kept, "en", "line 1")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_web_of_science_as_a_table(tmp_path: Path, encoding: str) -> None:
    table = 'PT\tAU\tTI\tSO\tAB\tPY\tUT\nJ\tDoe, J; Roe, K\tA "fold"\tNATURE\t\t2021\tWOS:1\n\n'
    (tmp_path / "savedrecs.txt").write_bytes(table.encode(encoding))
    said = {"authors": ["Doe, J", "Roe, K"], "year": 2021, "journal": "NATURE", "source": "savedrecs.txt"}
    assert list(read_source(tmp_path / "savedrecs.txt")) == [Document("", 'A "fold"', "WOS:1", said, origin="line 2")]


def test_the_cochrane_library(tmp_path: Path) -> None:
    record = "Record #{0} of 2\nID: CN-{0}\nAU: Doe J\nAU: Roe K\nTI: Trial {0}\nYR: 2020\nKY: Sleep; Humans\n"
    record += "AB: We slept.\n\n"
    first, second = read(tmp_path, "citation-export.txt", record.format(1) + record.format(2))
    said = {
        "authors": ["Doe J", "Roe K"],
        "keywords": ["Sleep", "Humans"],
        "year": 2020,
        "source": "citation-export.txt",
    }
    assert first == Document("We slept.", "Trial 1", "CN-1", said, origin="line 2")
    assert second.origin == "line 11"


@pytest.mark.parametrize("name", ["a.ris", "a.bib", "a.nbib"])
def test_what_is_no_text_is_skipped(tmp_path: Path, name: str) -> None:
    whole = {"a.ris": "TY  - JOUR\nTI  - A t\udcfftle\nER  - \n", "a.bib": "@misc{k, title={A t\udcfftle}}",
             "a.nbib": "PMID- 1\nTI  - A t\udcfftle\n"}[name]  # fmt: skip
    (tmp_path / name).write_bytes(whole.encode("utf-8", "surrogateescape"))
    [item] = read_source(tmp_path / name, options=ReadOptions(encoding="utf-8"))
    assert isinstance(item, Skipped) and item.reason.startswith("broken UTF-8: byte 0xff at character")


def test_a_text_stays_a_text(tmp_path: Path) -> None:
    [item] = read(tmp_path, "a.txt", "TY  means something else here.\nPMID- too")
    assert item.origin == "a.txt"
    [item] = read(tmp_path, "b.txt", NBIB, format="text")
    assert item.origin == "b.txt"


@pytest.mark.parametrize(("name", "content"), [("a.ris", "no tags\n"), ("b.bib", "no entries\n"), ("c.nbib", "\n\n")])
def test_a_file_without_references_says_so(tmp_path: Path, name: str, content: str) -> None:
    with pytest.raises(SondeError, match=rf"{name} holds no (reference|entry)"):
        read(tmp_path, name, content)


def test_references_come_back_with_what_was_said_of_them(tmp_path: Path) -> None:
    """A reference manager reads what Sonde writes: labels and tags are its keywords."""
    (tmp_path / "a.ris").write_text(RIS)
    encoder = FakeEncoder()
    made = index(tmp_path / "a.ris", tmp_path / "c.sonde", encoder=encoder)  # type: ignore[arg-type]
    made.label(["include", "exclude"], engine="similarity", name="screening")
    made.tag("read twice", ids=["S1"])
    label = {row["id"]: row["label:screening"] for row in made.rows()}
    assert made.export(tmp_path / "out.ris") == 2
    first, second = read_source(tmp_path / "out.ris")
    before = list(read_source(tmp_path / "a.ris"))
    assert isinstance(first, Document) and isinstance(before[0], Document) and isinstance(second, Document)
    assert (first.text, first.title, first.key) == (before[0].text, before[0].title, before[0].key)
    said = {**first.metadata, "keywords": sorted(first.metadata["keywords"])}  # type: ignore[arg-type]
    keywords = sorted(["sleep", "memory", f"screening: {label['S1']}", "read twice"])
    assert said == {**before[0].metadata, "keywords": keywords, "source": "out.ris", "notes": "source: a.ris"}
    assert second.metadata["keywords"] == [f"screening: {label['S2']}"]
    with pytest.raises(UsageError, match=r"a \.ris file has no room for vectors"):
        made.export(tmp_path / "out.ris", vectors=True)
