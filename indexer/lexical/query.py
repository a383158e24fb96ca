"""Tantivy queries built from analysed terms, never parsed from a user's text."""

from collections.abc import Mapping, Sequence

from tantivy import Occur, Query, Schema

UNION_ROWS = 1_000
"""Up to so many rows, a union of single terms is faster than Tantivy's term set."""


def any_term(schema: Schema, counts: Mapping[str, int]) -> Query:
    """Match what has any of the terms, scored by BM25; a term that the query repeats counts as often."""
    return Query.boolean_query([(Occur.Should, _term(schema, term, count)) for term, count in counts.items()])


def within(schema: Schema, query: Query, rows: Sequence[int]) -> Query:
    """Match what the query matches among these rows, with the query's own scores."""
    if len(rows) > UNION_ROWS:
        chosen = Query.term_set_query(schema, "row", rows)
    else:
        chosen = Query.boolean_query([(Occur.Should, Query.term_query(schema, "row", row)) for row in rows])
    return Query.boolean_query([(Occur.Must, Query.const_score_query(chosen, 0.0)), (Occur.Must, query)])


def _term(schema: Schema, term: str, count: int) -> Query:
    # A boost costs the block-max shortcut, so the usual query, which repeats nothing, goes without.
    query = Query.term_query(schema, "text", term, index_option="freq")
    return query if count == 1 else Query.boost_query(query, float(count))
