"""Taxonomies in files: JSON holds all, CSV is read back, SKOS is what rdflib reads; other collections are seeded."""

import csv
import io
import json
import re
from pathlib import Path

import pytest
from edited import WORDS, made, rows_of
from fake_encoder import FakeEncoder

from sonde.app.api import Collection, index
from sonde.indexer.errors import MissingExtraError, SondeError, UsageError


@pytest.fixture
def shop(tmp_path: Path) -> Collection:
    """Groups at two levels, with a rule, locks, a description, and a document in none."""
    found = made(tmp_path / "shop.sonde")
    found.edit_taxonomy("add", name="Shipping", description='by post, "fast"')
    found.edit_taxonomy("move", groups=["late", "lost"], to="Shipping")
    found.edit_taxonomy("rename", level=1, name="themes")
    found.edit_taxonomy("rule", groups=["weak"], where="n = 4", examples=["d3"], near=0.9)
    found.edit_taxonomy("move", ids=["d0"], to="weak")
    found.edit_taxonomy("move", ids=["d1"], to="none")
    found.edit_taxonomy("lock", groups=["dead"])
    return found


def other(folder: Path) -> Collection:
    rows = [{"id": f"e{n}", "text": f"{WORDS[n % 4]} {n + 500}"} for n in range(60)]
    return index(rows, folder, id="id", text="text", encoder=FakeEncoder())  # type: ignore[arg-type]


def without_times(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Everything but numbers, times and checksums of the run, and how it was made."""
    return [row[1:] for row in rows if len(row) == 4]


def test_json_holds_all_of_it(shop: Collection, tmp_path: Path) -> None:
    text = shop.export_taxonomy("json")
    before = rows_of(shop.path)
    shop.import_taxonomy(text, "json", replace=True)
    assert without_times(rows_of(shop.path)) == without_times(before)
    assert shop.export_taxonomy("json") == text
    values = json.loads(text)
    assert values["levels"] == ["level 0", "themes"] and len(values["documents"]) == 40
    assert [one["id"] for one in values["documents"] if one["locked"]] == ["d0", "d1"]
    assert values["groups"][0]["typical"][0].startswith("parcel late") and "typical" not in values["groups"][4]


def test_csv_is_read_back(shop: Collection) -> None:
    groups, documents = shop.export_taxonomy("csv"), shop.export_taxonomy("documents")
    columns = "number,name,parent,description,locked,proposed,where,examples,near,source,path,documents"
    assert groups.splitlines()[0] == columns
    counts = {one.number: one.documents for one in shop.taxonomy("tree").groups}
    assert groups.splitlines()[1:3] == [
        f"2,dead,,,yes,,,,,,dead,{counts[2]}", f"3,weak,,,,,n = 4,d3,0.9,,weak,{counts[3]}",
    ]  # fmt: skip
    assert sum(counts.values()) > counts[3] > 0
    assert documents.splitlines()[:3] == ["id,group,path,score,locked,name", "d0,3,weak,,yes,weak", "d1,,,,yes,"]
    again = shop.import_taxonomy(groups, "csv", "again", documents=documents)
    assert [one.to_dict() for one in again.groups] == [one.to_dict() for one in shop.taxonomy("tree").groups]
    assert shop.export_taxonomy("documents", "again") == documents


def test_parents_can_be_names_and_paths(shop: Collection) -> None:
    found = shop.import_taxonomy(
        "name,parent\n=Mail,\nlate,=Mail\nlate,\nvery,=Mail > late\n", "csv", "paths",
        documents="id,group\nd0,=Mail > late > very\nd1,2\n",
    )  # fmt: skip
    assert [(one.path, one.documents) for one in found.groups] == [
        ("=Mail", 0), ("=Mail > late", 0), ("=Mail > late > very", 1), ("late", 1),
    ]  # fmt: skip
    assert "0,'=Mail," in shop.export_taxonomy("csv", "paths")  # a spreadsheet would run it


def test_rows_without_a_number_get_those_after_the_largest(shop: Collection) -> None:
    found = shop.import_taxonomy("number,name\n,a\n0,b\n,c\n7,d\n", "csv", "mixed")
    assert [(one.number, one.name) for one in found.groups] == [(0, "b"), (7, "d"), (8, "a"), (9, "c")]


@pytest.mark.parametrize("sign", [";", "\t"])
def test_tables_of_spreadsheets_may_have_other_separators(shop: Collection, sign: str) -> None:
    groups, documents = shop.export_taxonomy("csv"), shop.export_taxonomy("documents")

    def written(text: str) -> str:
        stream = io.StringIO()
        csv.writer(stream, delimiter=sign).writerows(csv.reader(io.StringIO(text)))
        return stream.getvalue()

    again = shop.import_taxonomy(written(groups), "csv", "again", documents=written(documents))
    assert [one.to_dict() for one in again.groups] == [one.to_dict() for one in shop.taxonomy("tree").groups]
    assert shop.export_taxonomy("documents", "again") == documents


WRONG = [
    ("{", "json", "the file is not a valid JSON taxonomy: Expecting property name"),
    ('{"a": 1}', "json", "the file is not a valid JSON taxonomy: no 'form'"),
    ('{"form": "sonde taxonomy 9", "groups": []}', "json", "the file has the form 'sonde taxonomy 9'; this version"),
    ("title\nx\n", "csv", "the table of groups has no column 'name': there is only title"),
    ("name,parent\na,b\nb,a\n", "csv", "the group 0 'a' lies under itself"),
    ("name,parent\na,c\n", "csv", "row 2 of the table of groups names the group 'c', which does not exist"),
    ("number,name\n1,a\n1,b\n", "csv", "row 3 of the table of groups has the number 1, as row 2 has"),
    (
        "number,name,parent\n0,a,\n\n1,b,45\n",
        "csv",
        "row 4 of the table of groups names the group '45', which does not",
    ),
    ("name,parent\na,\n \n,a\n", "csv", "row 4 of the table of groups: '' is not a valid group name"),
    ("name,near,where\na,close,n > 1\n", "csv", "row 2 of the table of groups has the near 'close': give a number"),
    (
        "number,name,parent\n0,a,\n1,a,0\n2,b,a\n",
        "csv",
        "names the group 'a', which is the name of the groups 0, 1: give",
    ),
    ("number,name\nx,a\n", "csv", "row 2 of the table of groups has the number 'x': give a whole number"),
    ("name\n\u0007\n", "csv", "is not a valid group name"),
    ("x", "documents", "form is 'documents': use json, csv, ttl, jsonld, rdf"),
]


@pytest.mark.parametrize(("text", "form", "said"), WRONG, ids=[said[:40] for _, _, said in WRONG])
def test_what_is_no_taxonomy_is_refused_in_one_line(shop: Collection, text: str, form: str, said: str) -> None:
    with pytest.raises(SondeError) as refused:
        shop.import_taxonomy(text, form, "wrong")  # type: ignore[arg-type]
    assert said in str(refused.value) and "\n" not in str(refused.value)
    assert [run.name for run in shop.runs("taxonomy")] == ["tree"]


def test_documents_need_a_table_of_groups(shop: Collection) -> None:
    with pytest.raises(UsageError, match="documents is for a table of groups"):
        shop.import_taxonomy(shop.export_taxonomy(), "json", "x", documents="id,group\n")
    with pytest.raises(UsageError, match="form is 'xls': use json, csv, documents, ttl, jsonld"):
        shop.export_taxonomy("xls")  # type: ignore[arg-type]


@pytest.mark.parametrize(("form", "name"), [("ttl", "turtle"), ("jsonld", "json-ld")])
def test_rdflib_reads_what_is_written_in_skos(shop: Collection, form: str, name: str) -> None:
    rdflib = pytest.importorskip("rdflib")
    skos = rdflib.namespace.SKOS
    text = shop.export_taxonomy(form)  # type: ignore[arg-type]
    graph = rdflib.Graph().parse(data=text, format=name)
    scheme, node = rdflib.URIRef("urn:sonde:taxonomy:tree"), rdflib.URIRef("urn:sonde:taxonomy:tree:4")
    assert set(graph.subjects(skos.topConceptOf, scheme)) == {rdflib.URIRef(f"{scheme}:{n}") for n in (2, 3, 4)}
    assert set(graph.subjects(skos.broader, node)) == {rdflib.URIRef(f"{scheme}:{n}") for n in (0, 1)}
    assert str(graph.value(node, skos.definition)) == 'by post, "fast"'
    labels = {str(graph.value(one, skos.prefLabel)) for one in graph.subjects(skos.inScheme, scheme)}
    assert labels == {"late", "lost", "dead", "weak", "Shipping"}
    back = shop.import_taxonomy(text, form, "back")  # type: ignore[arg-type]
    assert [(one.number, one.path, one.description) for one in back.groups] == [
        (one.number, one.path, one.description) for one in shop.taxonomy("tree").groups
    ]


RDF = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:skos="http://www.w3.org/2004/02/skos/core#">
<skos:Concept rdf:about="http://example.org/animals">
  <skos:prefLabel xml:lang="de">Tiere</skos:prefLabel><skos:prefLabel xml:lang="en">animals</skos:prefLabel>
  <skos:narrower rdf:resource="http://example.org/cats"/>
</skos:Concept>
<skos:Concept rdf:about="http://example.org/cats"><skos:scopeNote>They purr.</skos:scopeNote></skos:Concept>
</rdf:RDF>"""


def test_skos_of_others_is_read(shop: Collection) -> None:
    pytest.importorskip("rdflib")
    found = shop.import_taxonomy(RDF, "rdf", "animals")
    assert [(one.number, one.path, one.description) for one in found.groups] == [
        (0, "animals", ""), (1, "animals > cats", "They purr."),
    ]  # fmt: skip
    with pytest.raises(SondeError, match="the file is not valid turtle: "):
        shop.import_taxonomy("<a> <b", "ttl", "x")
    with pytest.raises(SondeError, match="the file has no skos:Concept"):
        shop.import_taxonomy("<urn:a> <urn:b> <urn:c> .", "ttl", "x")
    remote = '{"@context": "https://example.org/c.jsonld", "@id": "urn:a"}'
    with pytest.raises(SondeError, match="the file's @context is an address, and Sonde fetches nothing"):
        shop.import_taxonomy(remote, "jsonld", "x")


def test_without_rdflib_the_extra_is_named(shop: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "rdflib", None)
    with pytest.raises(MissingExtraError, match=r"reading SKOS needs rdflib, .*: pip install 'sonde\[skos\]'"):
        shop.import_taxonomy("", "ttl", "x")
    assert shop.export_taxonomy("ttl").startswith("@prefix skos: <http://www.w3.org/2004/02/skos/core#> .")


def test_a_taxonomy_seeds_another_collection(shop: Collection, tmp_path: Path) -> None:
    shop.edit_taxonomy("unlock", groups=["dead"])
    shop.edit_taxonomy("rule", groups=["weak"])
    away = other(tmp_path / "away.sonde")
    bare = away.import_taxonomy(shop.export_taxonomy(), name="bare")
    assert bare.documents == 0 and bare.unknown == 60
    assert bare.locked == 0  # locks by id are kept, should the documents come
    away.put([{"id": "d0", "text": "parcel late 0"}])
    assert away.taxonomy("bare").locked == 1
    away.delete("d0")
    seeded = away.import_taxonomy(
        "name,description\nlate,parcel late\nbattery,battery weak\n", "csv", "seeded", label=True
    )
    assert re.search(r"^imported 2 groups, 0 documents, [1-9]\d* labelled$", away.taxonomy_log("seeded")[-1].said)
    assert seeded.documents == 60
    groups = {one.id: one.number for one in away.assignments("seeded")}
    assert {groups[f"e{n}"] for n in range(0, 60, 4)} <= {0, -1}
    assert {groups[f"e{n}"] for n in range(3, 60, 4)} <= {1, -1}
    assert sum(number >= 0 for number in groups.values()) > 30
    with pytest.raises(UsageError, match="labelling needs at least two groups: add groups to the taxonomy first"):
        away.import_taxonomy("name\none\n", "csv", "one", label=True)


def test_examples_teach_the_labels(shop: Collection, tmp_path: Path) -> None:
    """The names say nothing here: only the examples tell what belongs where."""
    examples = {0: ["parcel late 1", "parcel lost 2"], 1: ["battery dead 3", "battery weak 4"]}
    groups = [{"number": n, "name": f"zzz{n}", "examples": texts} for n, texts in examples.items()]
    text = json.dumps({"form": "sonde taxonomy 1", "groups": groups})
    away = other(tmp_path / "away.sonde")
    away.import_taxonomy(text, "json", "taught", label=True)
    found = {one.id: one.number for one in away.assignments("taught")}
    right = [found[f"e{n}"] == (n % 4 > 1) for n in range(60) if found[f"e{n}"] >= 0]
    assert len(right) >= 30 and sum(right) / len(right) > 0.9
