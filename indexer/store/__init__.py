"""The collection on disk: catalog, embeddings, runs, and one consistent view of them."""
