"""The encoding of files that are not UTF-8: Western names are no Polish, and Polish is no Western text."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from sonde.indexer.document import Document
from sonde.indexer.readers import read_source
from sonde.indexer.readers.encoding import detect_encoding

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
