"""Word documents in a few bytes."""

import io
import zipfile

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def zipped(**parts: str) -> bytes:
    """Return an archive; the names of parts are given with __ for / and _ for a dot."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name.replace("__", "/").replace("_", "."), content)
    return out.getvalue()


def word(body: str, **parts: str) -> bytes:
    """Return a Word document."""
    names = f'xmlns:w="{WORD}" xmlns:mc="urn:mc" xmlns:wp="urn:wp"'
    return zipped(word__document_xml=f"<w:document {names}><w:body>{body}</w:body></w:document>", **parts)


def run(text: str) -> str:
    """Return a run of text."""
    return f"<w:r><w:t>{text}</w:t></w:r>"
