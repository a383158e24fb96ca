"""Approximate nearest neighbours over the vectors of a collection, through FAISS."""
