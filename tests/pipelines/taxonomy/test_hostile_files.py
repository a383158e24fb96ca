"""Files of taxonomies that cannot be right: each is refused in one short line, and nothing is stored."""

import csv
import json
import time
from typing import Any

import pytest
from edited import made, rows_of

from sonde.app.api import Collection
from sonde.indexer.errors import SondeError
from sonde.pipelines.taxonomy.groups import Group, told_apart, totals, walk
from sonde.pipelines.taxonomy.skos import from_skos

A = {"number": 0, "name": "a"}


def file(*groups: object, **more: object) -> str:
    """A taxonomy in JSON; without groups, with one."""
    return json.dumps({"form": "sonde taxonomy 1", "groups": list(groups) or [A], **more})


def chain(depth: int) -> list[dict[str, Any]]:
    """Groups of which each lies under the one before."""
    return [{"number": n, "name": f"g{n}", "parent": n - 1 if n else None} for n in range(depth)]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    return made(tmp_path_factory.mktemp("hostile") / "shop.sonde")


JSON = {
    "deep": ("[" * 200_000, "the file is not a valid JSON taxonomy: it is nested too deeply"),
    "list": ("[]", "the file is not a valid JSON taxonomy: no 'form'"),
    "long form": (file(form="x" * 10**6), "; this version reads 'sonde taxonomy 1'"),
    "no groups": ('{"form": "sonde taxonomy 1"}', "'groups' is missing: give a list"),
    "groups": ('{"form": "sonde taxonomy 1", "groups": "ab"}', "'groups' is 'ab': give a list"),
    "group": (file(3), "'groups' holds 3: give objects"),
    "no number": (file({"name": "a"}), "'number' is missing: give a whole number"),
    "half a number": (file({**A, "number": 1.5}), "'number' is 1.5: give a whole number"),
    "true": (file({**A, "number": True}), "'number' is True: give a whole number"),
    "huge number": (file({**A, "number": 10**30}), "the number of a group is 1000000000"),
    "negative": (file({**A, "number": -1}), "the number of a group is -1: use 0 to 1,000,000,000"),
    "twice": (file(A, {**A, "name": "b"}), "two groups have the number 0"),
    "name": (file({**A, "name": 5}), "'name' is 5: give a text"),
    "no name": (file({**A, "name": " "}), "' ' is not a valid group name"),
    "control": (file({**A, "name": "a\x1b[2J"}), "is not a valid group name"),
    "long name": (file({**A, "name": "n" * 10**6}), "has 1,000,000 characters; the maximum is 1,000"),
    "surrogate": (file({**A, "description": "\ud800"}), "a text is not valid Unicode"),
    "description": (file({**A, "description": [1]}), "'description' is [1]: give a text"),
    "parent": (file({**A, "parent": "0"}), "'parent' is '0': give a whole number"),
    "no parent": (file({**A, "parent": 7}), "the group 0 'a' lies under 7, which does not exist"),
    "own parent": (file({**A, "parent": 0}), "the group 0 'a' lies under itself"),
    "circle": (file({**A, "parent": 1}, {"number": 1, "name": "b", "parent": 0}), "the group 0 'a' lies under itself"),
    "many levels": (file(*chain(101)), "it has more than 100 levels"),
    "locked": (file({**A, "locked": "no"}), "'locked' is 'no': give true or false"),
    "examples": (file({**A, "examples": "abc"}), "'examples' is 'abc': give a list"),
    "an example": (file({**A, "examples": [None]}), "'examples' holds None: give texts"),
    "rule": (file({**A, "rule": "x"}), "'rule' is 'x': give an object"),
    "filter": (file({**A, "rule": {"where": 5}}), "'where' is 5: give a text"),
    "near": (file({**A, "rule": {"where": "n > 1", "near": 7}}), "has a 'near' of 7.0: use -1 to 1"),
    "near NaN": (file({**A, "rule": {"where": "n > 1", "near": float("nan")}}), "'near' is nan: give a finite number"),
    "score": (file(documents=[{"id": "d0", "group": 0, "score": "x"}]), "'score' is 'x': give a number"),
    "infinite": (file(documents=[{"id": "d0", "group": 0, "score": 1e999}]), "'score' is inf: give a finite number"),
    "large": (file(documents=[{"id": "d0", "group": 0, "score": 10**400}]), "'score' is inf: give a finite number"),
    "document twice": (file(documents=[{"id": "d0", "group": 0}] * 2), "the document 'd0' is listed twice"),
    "document": (file(documents=[{"id": "d0", "group": 4}]), "the document 'd0' is in the group 4, which does not"),
    "id": (file(documents=[{"id": 3, "group": 0}]), "'id' is 3: give a text"),
    "long id": (file(documents=[{"id": "d" * 10**6, "group": 4}]), "is in the group 4, which does not exist"),
    "locks": (file(locked_elsewhere={"d0": "a"}), "'d0' is 'a': give a whole number"),
    "levels": (file(levels="abc"), "'levels' is 'abc': give a list"),
    "title": (file(name=["x"]), "'name' is ['x']: give a text"),
}  # fmt: skip


def assert_refused(shop: Collection, said: str, text: str, form: Any, **more: Any) -> None:
    before = rows_of(shop.path)
    with pytest.raises(SondeError) as refused:
        shop.import_taxonomy(text, form, **{"name": "wrong", **more})
    told = str(refused.value)
    assert said in told and "\n" not in told and len(told) < 400 and told.isprintable()
    assert rows_of(shop.path) == before


@pytest.mark.parametrize(("text", "said"), JSON.values(), ids=JSON)
def test_json(shop: Collection, text: str, said: str) -> None:
    more = {"name": None} if "'name' is [" in said else {}
    assert_refused(shop, said, text, "json", **more)


CSV = {
    "huge cell": (f'name\n"{"x" * 2**25}"\n', None, "the table of groups is not valid CSV: field larger than"),
    "huge number": (f"number,name\n{'9' * 30},a\n", None, "the number of a group is 999999999999999999999999999999"),
    "many digits": (f"number,name\n{'9' * 5000},a\n", None, "row 2 of the table of groups has the number '9999"),
    "parent": (f"name,parent\na,{'9' * 5000}\n", None, "row 2 of the table of groups names the group '9999"),
    "near": ("name,where,near\na,n > 1,nan\n", None, "has a 'near' of nan: use -1 to 1"),
    "score": ("name\na\n", "id,group,score\nd0,0,abc\n", "documents has the score 'abc': give a number"),
    "infinite": ("name\na\n", "id,group,score\nd0,0,-inf\n", "'score' is -inf: give a finite number"),
    "twice": ("name\na\n", "id,group\nd0,0\nd0,0\n", "row 3 of the table of documents has the document 'd0' again"),
    "levels": ("number,name,parent\n" + "".join(f"{n},g{n},{n - 1 if n else ''}\n" for n in range(5000)), None,
               "it has more than 100 levels"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "documents", "said"), CSV.values(), ids=CSV)
def test_csv(shop: Collection, text: str, documents: str | None, said: str) -> None:
    csv.field_size_limit(131_072)  # another test may have raised it
    assert_refused(shop, said, text, "csv", documents=documents)


SKOS = "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n"


def test_skos(shop: Collection) -> None:
    pytest.importorskip("rdflib")
    circle = f"{SKOS}<urn:a> a skos:Concept; skos:broader <urn:b> .\n<urn:b> a skos:Concept; skos:broader <urn:a> ."
    assert_refused(shop, "lies under itself", circle, "ttl")
    assert_refused(shop, "the file is not valid json-ld: ", '{"a":' * 5_000 + "1" + "}" * 5_000, "jsonld")
    control = f'{SKOS}<urn:a> a skos:Concept; skos:prefLabel "x\\u0007" .'
    assert_refused(shop, "is not a valid group name", control, "ttl")


def test_literals_of_a_wrong_type_are_no_tracebacks(caplog: pytest.LogCaptureFixture) -> None:
    """rdflib logs one for each, which Python prints where nobody has asked for logs."""
    pytest.importorskip("rdflib")
    number = "<http://www.w3.org/2001/XMLSchema#integer>"
    found = from_skos(f'{SKOS}<urn:a|b> a skos:Concept; skos:prefLabel "late"^^{number} .', "ttl")
    assert [group.name for group in found.groups.values()] == ["late"]
    assert not caplog.records


def test_entities_in_xml_are_refused(shop: Collection) -> None:
    """Nested ones stand for gigabytes of text; expat's own limit lets megabytes pass, which took rdflib minutes."""
    pytest.importorskip("rdflib")
    bomb = "<!DOCTYPE a [<!ENTITY b 'bbbbbbbbbb'>" + "".join(
        f"<!ENTITY {chr(99 + n)} '{f'&{chr(98 + n)};' * 10}'>" for n in range(9)
    )
    said = "the file has a DOCTYPE, which Sonde does not read: save it without one, or as Turtle or JSON-LD"
    began = time.monotonic()
    assert_refused(shop, said, f"{bomb}]><a>&k;</a>", "rdf")
    assert_refused(shop, said, '<!DOCTYPE a SYSTEM "http://localhost/a.dtd"><a/>', "rdf")
    assert time.monotonic() - began < 2


def test_numbers_are_not_written_out() -> None:
    """With all its digits, this one takes 2 GB."""
    pytest.importorskip("rdflib")
    number = '"1E+999999999"^^<http://www.w3.org/2001/XMLSchema#decimal>'
    found = from_skos(f"{SKOS}<urn:a> a skos:Concept; skos:prefLabel {number} .", "ttl")
    assert [group.name for group in found.groups.values()] == ["1E+999999999"]


@pytest.mark.parametrize(
    "context",
    ['"http://localhost:9/c"', '[{}, "c.json"]', '{"@import": "c"}', '{"a": {"@id": "b:c", "@context": "d"}}'],
)
def test_contexts_at_an_address_are_not_fetched(
    shop: Collection, context: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rdflib")
    monkeypatch.setattr("rdflib.plugins.shared.jsonld.context.source_to_json", lambda *_, **__: pytest.fail("fetched"))
    assert_refused(shop, "the file's @context is an address", f'{{"@context": {context}}}', "jsonld")


def test_equal_names_are_told_apart_at_once() -> None:
    """Trying (2), (3) and so on again for each group took minutes for these."""
    groups = {n: Group(n, "a" * 999 if n % 2 else "b") for n in range(20_000)}
    began = time.monotonic()
    found, notes = told_apart(groups, {})
    assert time.monotonic() - began < 2
    assert [found[n].name for n in (0, 2, 19_998)] == ["b", "b (2)", "b (10000)"]
    assert len({group.name for group in found.values()}) == 20_000 and len(notes) == 19_998


@pytest.mark.long
def test_a_large_tree_is_read_at_once(shop: Collection) -> None:
    """Naive walks take the square or the cube of the number of groups: minutes for these."""
    groups = [{"number": n, "name": f"g{n}", "parent": n // 8 - 1 if n >= 8 else None} for n in range(20_000)]
    began = time.monotonic()
    found = shop.import_taxonomy(file(*groups, documents=[{"id": "d0", "group": 19_999}]), name="large")
    assert time.monotonic() - began < 20
    assert len(found.groups) == 20_000 and found[19_999].level == 4
    assert [one.total for one in found.groups if 19_999 in (one.number,) or one.total] == [1] * 5
    shop.delete_run("large", kind="taxonomy")


def test_too_many_groups_to_label_by(shop: Collection) -> None:
    text = file(*({"number": n, "name": f"g{n}"} for n in range(2_001)))
    assert_refused(
        shop, "has 2,001 groups to label by; the maximum is 2,000: import it without", text, "json", label=True
    )


def test_trees_deeper_than_the_stack_are_walked() -> None:
    groups = {n: Group(n, f"g{n}", parent=n - 1 if n else None) for n in range(30_000)}
    assert [depth for _, depth in walk(groups)] == list(range(30_000))
    assert totals(groups, {29_999: 2, 10: 1})[0] == 3


def test_ids_with_spaces_come_back(shop: Collection) -> None:
    ids = ["d 1", 'say "d2"', "d3"]
    text = file({**A, "rule": {"where": None, "examples": ids, "near": 0.5}})
    shop.import_taxonomy(text, name="ids")
    again = shop.import_taxonomy(shop.export_taxonomy("csv", "ids"), "csv", "again")
    assert again[0].rule == "cosine of at least 0.5 to " + ", ".join(ids)
    for name in ("ids", "again"):
        shop.delete_run(name, kind="taxonomy")
