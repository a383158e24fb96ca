"""From files to a collection on disk: readers, chunker, encoder, catalog, vectors and indexes."""
