"""The web UI: Streamlit pages over the same calls that the command line and the Python API make."""
