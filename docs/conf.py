"""The site's settings; scripts/docs.sh builds it."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "extensions"))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"

project = "t2t-lite"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "plain_docstrings",
    "command_help",
]
exclude_patterns = ["extensions"]
myst_heading_anchors = 3

napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
add_module_names = False
# The types of Python, TensorFlow and NumPy that signatures name have no page here. All else that a
# page refers to must be there (sphinx-build -n -W).
nitpick_ignore_regex = [("py:.*", r".*")]

html_theme = "furo"
html_title = "t2t-lite"
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]
