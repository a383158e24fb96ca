"""The encoding of files that are not UTF-8: found, or given by the user and refused where plainly another one."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from command_line import Command

from sonde.indexer.document import Document, Skipped
from sonde.indexer.errors import UsageError
from sonde.indexer.readers import ReadOptions, read_source
from sonde.indexer.readers.encoding import detect_encoding
from sonde.indexer.readers.read import preview

WESTERN = {
    "German with foreign names": [
        "José Núñez: Die Lieferung kam zu spät",
        "Marie Lefèvre: Aus Liège kam nichts an, schöne Grüße",
        "Lucía: ¿Cuándo llega mi paquete?",
        "Åsa: Größe passt nicht",
        "Nicolò: Alles in Ordnung, sehr schön",
        "João aus São Paulo: Gas 5 m³ verbraucht",
        "Frau Beneš: Straße nicht gefunden",
    ],
    "names": ["José Núñez", "Marie Lefèvre aus Liège", "Nicolò", "Åsa", "São Tomé", "Søren", "Zoë", "Ana Simões"],
    "Spanish": [
        "¿Cuándo llega mi paquete?",
        "¡Está roto! Quiero mi dinero la próxima semana",
        "El niño pidió otra talla, ¿será posible?",
        "El nº 3 de la 1ª planta está cerrado",
    ],
    "Portuguese": [
        "A encomenda não chegou, as informações estão erradas",
        "João vai à praia",
        "As condições são péssimas, três vezes já",
    ],
    "Italian": [
        "La spedizione è già arrivata però era rotta",
        "Perché non è possibile? È una bella città",
        "Così non va più, né lunedì né martedì",
    ],
    "Icelandic": [
        "Pakkinn kom of seint og var skemmdur",
        "Þjónustan er mjög léleg, það er ekkert svar",
        "Ég vil fá peningana mína til baka",
    ],
}
CENTRAL = {
    "Polish": [
        "Paczka przyszła za późno i była uszkodzona.",
        "Chciałbym zwrócić produkt i odzyskać pieniądze.",
        "Bardzo dobra jakość, polecam każdemu.",
        "Obsługa klienta nie odpowiada na moje wiadomości.",
    ],
    "Czech": [
        "Zásilka byla doručena pozdě, řidič nezvonil.",
        "Prosím o vrácení peněz na můj účet.",
        "Reklamace trvala příliš dlouho, ale nakonec je vše v pořádku.",
    ],
    "Hungarian": [
        "A csomag későn érkezett és sérült volt.",
        "Nagyon jó minőség, mindenkinek ajánlom.",
        "Szeretném visszakapni a pénzemet, mert a termék hibás.",
        "A futár nem csengetett, a szállítás késett.",
    ],
    "Slovak": [
        "Zásielka bola doručená neskoro a poškodená.",
        "Veľmi dobrá kvalita, odporúčam každému.",
        "Chcel by som vrátiť výrobok a dostať späť peniaze.",
    ],
    "Romanian": [
        "Coletul a ajuns târziu şi era deteriorat.",
        "Foarte bună calitate, recomand tuturor.",
        "Aş vrea să returnez produsul şi să primesc banii înapoi.",
    ],
    "Croatian": [
        "Paket je stigao kasno i bio je oštećen.",
        "Vrlo dobra kvaliteta, preporučujem svima.",
        "Želim vratiti proizvod i dobiti novac natrag.",
    ],
}
OTHERS = {
    "cp1254": ["Sipariş İstanbul'a ulaşmadı", "Kargo çok geç geldi, şikâyetçiyim", "Müşteri hizmetleri yardım etmedi"],
    "cp1256": ["لم يصل الطرد بعد", "أريد استرداد المال", "البطارية لا تعمل منذ أمس"],
    "cp1255": ["החבילה לא הגיעה", "אני רוצה החזר כספי", "המוצר הגיע שבור"],
    "euc_jp": ["荷物がまだ届いていません。", "返金をお願いします", "商品が壊れていました"],
    "gb18030": ["包裹还没有收到，请尽快处理。", "我要退款", "商品损坏了，发票金额也不对。"],
    "euc_kr": ["택배가 아직 도착하지 않았습니다.", "환불을 요청합니다", "상품이 파손되었습니다"],
    "cp1251": ["Посылка так и не пришла", "Хочу вернуть деньги", "Товар сломан"],
    "koi8_r": ["Посылка так и не пришла", "Хочу вернуть деньги", "Товар сломан"],
    "cp1253": ["Το δέμα δεν έφτασε ακόμα", "Θέλω επιστροφή χρημάτων", "Το προϊόν είναι χαλασμένο"],
    "shift_jis": ["荷物がまだ届いていません。", "返金をお願いします", "商品が壊れていました"],
}


def _table(rows: Sequence[str], encoding: str) -> bytes:
    return "".join(["id;text\r\n", *(f"{n};{row}\r\n" for n, row in enumerate(rows))]).encode(encoding)


@pytest.mark.parametrize("count", [3, 300])
@pytest.mark.parametrize(
    ("rows", "encoding"),
    [
        *(pytest.param(rows, "cp1252", id=name) for name, rows in WESTERN.items()),
        *(pytest.param(rows, "cp1250", id=name) for name, rows in CENTRAL.items()),
    ],
)
def test_names_of_western_languages_are_no_central_european_text(
    rows: Sequence[str], encoding: str, count: int
) -> None:
    for first in range(len(rows)):
        shown = [rows[(first + n) % len(rows)] for n in range(count)]
        assert detect_encoding(_table(shown, encoding)) == encoding


@pytest.mark.parametrize(
    ("rows", "encoding"), [(WESTERN["German with foreign names"], "cp1252"), (CENTRAL["Polish"], "cp1250")]
)
def test_the_texts_and_the_encoding_that_is_named(tmp_path: Path, rows: Sequence[str], encoding: str) -> None:
    (tmp_path / "t.csv").write_bytes(_table(rows, encoding))
    reading = read_source(tmp_path / "t.csv")
    assert [item.text for item in reading if isinstance(item, Document)] == rows
    assert reading.columns.note == f"delimiter ';', {encoding}"


@pytest.mark.parametrize("count", [3, 300])
@pytest.mark.parametrize("encoding", OTHERS)
def test_other_languages_and_scripts(encoding: str, count: int) -> None:
    """Turkish was taken for Icelandic, Hebrew for Russian, and Arabic, Japanese and Chinese for broken UTF-8."""
    rows = OTHERS[encoding]
    for first in range(len(rows)):
        shown = [rows[(first + n) % len(rows)] for n in range(count)]
        assert detect_encoding(_table(shown, encoding)) == encoding
        assert detect_encoding(_table([f"{row}, and a comment in English" for row in shown], encoding)) == encoding


def test_a_file_in_an_unknown_encoding_is_refused_with_the_option_for_it(tmp_path: Path) -> None:
    rows = ["พัสดุยังไม่มาถึง", "ต้องการเงินคืน", "สินค้าชำรุด"]
    (tmp_path / "t.csv").write_bytes(_table(rows, "cp874").replace(b"text", "ข้อความ".encode("cp874")))
    said = (
        "3 of the first 3 rows are neither UTF-8 nor in an encoding that can be detected: set encoding, such as cp1252"
    )
    with pytest.raises(UsageError, match=said):
        read_source(tmp_path / "t.csv")
    given = read_source(tmp_path / "t.csv", options=ReadOptions(encoding="cp874"))
    assert [item.text for item in given if isinstance(item, Document)] == rows


ROWS = "id,text\n" + "".join(f"{n},{'Á la carte' if n in (2, 5) else 'plain text'} {n}\n" for n in range(1, 41))


def written(folder: Path, name: str, data: bytes) -> Path:
    (folder / name).write_bytes(data)
    return folder / name


def test_a_few_rows_that_are_not_of_the_encoding_are_skipped_and_say_so(tmp_path: Path) -> None:
    """The reason was "broken UTF-8", although the file was read as cp1252."""
    path = written(tmp_path, "t.csv", ROWS.encode())
    for encoding, shown in (("cp1252", "cp1252"), ("Windows-1252", "Windows-1252")):
        items = list(read_source(path, options=ReadOptions(encoding=encoding)))
        assert [item for item in items if isinstance(item, Skipped)] == [
            Skipped(f"row {n}", f"not valid {shown}: byte 0x81 at character 2 of the text") for n in (2, 5)
        ]
    assert all(isinstance(item, Document) for item in read_source(path))
    broken = written(tmp_path, "u.csv", ROWS.encode().replace(b"plain text 9", b"bad \xff"))
    reason = "broken UTF-8: byte 0xff at character 5 of the text"
    assert Skipped("row 9", reason) in list(read_source(broken, options=ReadOptions(encoding="utf8")))


def test_an_encoding_that_was_found_is_named_too(tmp_path: Path) -> None:
    good = "Où êtes-vous allés à Noël, été, forêt, garçon?\n".encode("cp1252") * 25_000  # more than the sample
    *_, last = read_source(written(tmp_path, "t.csv", b"text\n" + good + b"Bad \x81 byte\n"))
    assert last == Skipped("row 25001", "not valid cp1252: byte 0x81 at character 5 of the text")


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_an_encoding_that_more_than_one_row_in_twenty_lacks_is_refused(tmp_path: Path, name: str) -> None:
    rows = [f"{'Á' if n % 10 == 4 else 'x'} text {n}" for n in range(40)]
    lines = ["text", *rows] if name == "t.csv" else [f'{{"text": "{row}"}}' for row in rows]
    path = written(tmp_path, name, "\n".join(lines).encode())
    place = "row" if name == "t.csv" else "line"
    said = f"{name}: 4 of the first 40 rows are not valid cp1252, the first is {place} 5: leave out encoding to detect"
    looks: list[Callable[[ReadOptions], Any]] = [lambda given: read_source(path, options=given)]
    looks.append(lambda given: preview([path], given))
    for look in looks:
        with pytest.raises(UsageError, match=said) as caught:
            look(ReadOptions(encoding="cp1252"))
        assert (caught.value.field, caught.value.value) == ("encoding", "cp1252")
    assert len(list(read_source(path))) == 40


def test_nothing_is_stored_of_a_file_in_another_encoding(tmp_path: Path, sonde: Command) -> None:
    path = written(tmp_path, "t.csv", ("text\n" + "Ápropos, Íslenska, Ýmir\n" * 30).encode())
    ran = sonde("index", path, "--to", tmp_path / "t.sonde", "--encoding", "cp1252")
    ran.refused("30 of the first 30 rows are not valid cp1252", "leave out --encoding to detect it", code=2)
    assert not (tmp_path / "t.sonde").exists()
