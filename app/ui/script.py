"""What Streamlit runs for every page; a script has no package, hence the absolute import."""

from sonde.app.ui.main import show

show()
