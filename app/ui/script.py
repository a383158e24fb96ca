"""What Streamlit runs for every page; a script has no package, hence the absolute import."""

from .main import show

show()
