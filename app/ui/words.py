"""The words of the pages for what errors and notices name: arguments, options, commands and files."""

import os
import re
from pathlib import Path

from ...indexer.errors import Message
from ...indexer.wording import visible

LABELS = {
    "annotations": "Labels",
    "budget": "Budget",
    "corrections_of": "Use the corrections of",
    "date": "Column with the dates",
    "delete_most": "Allow this even if it deletes most documents, or those of another source",
    "encoding": "Encoding",
    "id": "Id",
    "k": "Number of clusters",
    "keep": "Repeated ids",
    "labels": "Labels",
    "labels_file": "Labels",
    "language": "Language",
    "leave_out": "Metadata",
    "min_size": "Minimum size",
    "min_cluster_size": "Minimum size",
    "model": "Model",
    "name": "Name",
    "none": "None of these",
    "outliers": "Outliers",
    "reduce_to": "Topics",
    "region": "Country of phone numbers",
    "replace": "Replace the run",
    "since": "New since",
    "split": "Column with splits",
    "sync": "Sync",
    "text": "Text",
    "threshold": "Minimum probability",
    "title": "Title",
    "truth": "Column with the true labels",
    "where": "Filter",
}
"""Labels of widgets, by the Python name of the argument that they give. Any other argument keeps its own words."""
PLACES = {
    "check": "Check (Data page)",
    "cluster": "New run (Clusters and topics page)",
    "compact": "Compact (Data page, Health)",
    "delete": "Delete (Data page)",
    "evaluate": "the Evaluate page",
    "index": "Add texts (Data page)",
    "judge": "Relevant and Not relevant (Search page)",
    "label": "the Labels page",
    "map": "the Explore page",
    "model": "Model (Data page)",
    "repair": "Repair (Data page, Health)",
    "runs update": "the page of each run",
    "search": "the Search page",
    "tag": "Tag (Explore page)",
    "taxonomy": "Make a taxonomy (Clusters and topics page)",
    "topics": "New run (Clusters and topics page)",
    "verify": "Verify (Data page, Health)",
    "watch": "What is new (Data page)",
}
"""Where a page does what a command of `sonde` does. Other commands keep their names: they exist only there."""
MEASURES = {
    "accuracy": "the share of documents with the true label, 0 to 1; 1 means all of them",
    "ARI": (
        "how much two groupings agree (adjusted Rand index), 1 at most; "
        "1 means the same groups, and 0 as much as by chance"
    ),
    "coherence": "how often the top words of a group share a text (NPMI), -1 to 1; 1 means always, 0 as by chance",
    "diversity": "the share of different words among the top words of all groups, 0 to 1; 1 means that none repeats",
    "exact match": "the share of documents whose labels are exactly the true ones, 0 to 1; 1 means all of them",
    "F1": "the harmonic mean of precision and recall of a label, 0 to 1; 1 means that both are 1",
    "judged@10": "the share of the first ten hits that were judged, 0 to 1; the others count as not relevant",
    "macro F1": "the mean F1 of all labels; rare ones count as much as others, 0 to 1; 1 means no mistake",
    "MAP@100": "precision at each relevant hit, averaged, 0 to 1; 1 means that all relevant documents come first",
    "MRR@10": "1 divided by the rank of the first relevant hit, averaged, 0 to 1; 1 means that it is always first",
    "nDCG@10": "how good the first ten hits are, 0 to 1; 1 means the best order, relevant ones at the top",
    "NMI": (
        "how much two groupings agree (normalised mutual information), 0 to 1; "
        "1 means the same groups, and chance gives more than 0"
    ),
    "precision": "of the documents with a label, the share that rightly has it, 0 to 1; 1 means all of them",
    "purity": "the share of documents in the main class of their cluster, 0 to 1; 1 means one class in each cluster",
    "recall": "of the documents that belong to a label, the share that has it, 0 to 1; 1 means all of them",
    "recall@10": "for an index: the share of the ten nearest passages that it finds, 0 to 1; 1 means all of them",
    "recall@100": "the share of the relevant documents among the first 100 hits, 0 to 1; 1 means all of them",
    "silhouette": "how much nearer documents are to their own group than to the next one, -1 to 1; 1 means well apart",
    "stability": "how well groups are found again when clustering is repeated, 0 to 1; 1 means always the same",
    "stability of topics": "the ARI between groups of repeated runs, 1 at most; 1 means always the same, 0 chance",
    "V-measure": "the same number as NMI, 0 to 1; 1 means that clusters and classes are the same",
}
"""What measures say, their range and their direction, as docs/glossary.md has it."""
_SETTING = re.compile(r"\bset (?:format(?: to (\w+))?|[Ee]ncoding)$")
"""Settings of readers that no page has, at the end of messages about an uploaded file."""
_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])(?:[ =][A-Z]{2,}\b)?")
_CODE = re.compile(r"(`[^`\n]*`)")
_ELSEWHERE = r"taxonomy [a-z]|[^`]*--(?:forget|rebuild)\b"
"""The page makes a taxonomy only of a run, and no page forgets a model or rebuilds a shard."""
_COMMAND = re.compile(rf"`sonde (?!{_ELSEWHERE})({'|'.join(PLACES)})\b[^`]*`")
_PATH = re.compile(r"""(?<![\w./:~-])(?:~|[A-Za-z]:)?(?:[/\\][^/\\\s:'"`,;()]+)*[/\\]([^/\\\s:'"`,;()]+)""")


def label(field: str) -> str:
    """Return an argument or a setting as the pages call it: "Minimum size" for `min_size`."""
    return LABELS.get(field, field.replace("_", " "))


def explained(measure: str) -> str:
    """Return what a measure says as a sentence, for the help of a widget."""
    said = MEASURES[measure]
    return f"{said[0].upper()}{said[1:]}."


def in_pages(sentence: str) -> str:
    """Return a sentence of the library as the pages say it.

    Marked names and options of the command line become labels of widgets, and commands become pages. Control
    characters and what UTF-8 cannot express, such as broken bytes in a file's header, become escapes, as in a terminal.
    """
    said = _SETTING.sub(_by_file, _rendered(sentence)) if isinstance(sentence, Message) else sentence
    parts = [part if part.startswith("`") else _prose(part) for part in _CODE.split(in_places(said))]
    return visible("".join(parts)).encode("utf-8", "backslashreplace").decode()


def in_places(sentence: str) -> str:
    """Return a sentence with the page that does the same in place of each command."""
    return _COMMAND.sub(lambda found: PLACES[found[1]], sentence)


def _rendered(sentence: Message) -> str:
    """Return a sentence with labels of widgets; the empty id of the command line is a choice of its widget."""
    return sentence.render(label).replace(f"{label('id')} ''", label("id"))


def _by_file(found: re.Match[str]) -> str:
    """Return what to do with the file instead of a setting that no page has."""
    if found[0].endswith("ncoding"):
        return "save the file as text in UTF-8"
    return f"give the file the ending .{found[1]}" if found[1] else "give the file the ending of its format"


def _prose(text: str) -> str:
    return _OPTION.sub(lambda found: label(found[1].replace("-", "_")), text)


def without_folders(sentence: str, jobs: Path) -> str:
    """Return a sentence without the server's folders of collections, uploaded files and lists of labels.

    Args:
        sentence: What a page shows.
        jobs: The folder of the jobs, which is in the folder of the collections.
    """
    own = re.sub(re.escape(f"{jobs}{os.sep}") + r"(?:uploads[/\\]\w+|labels)[/\\]", "", sentence)
    return own.replace(f"{jobs.parent}{os.sep}", "")


def without_paths(sentence: str) -> str:
    """Return a sentence with server paths cut to their last part, because anybody may read a job's messages."""
    return _PATH.sub(r"\1", sentence)
