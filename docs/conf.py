"""The site's settings; scripts/docs.sh builds it."""

import configparser
import os
import pathlib
import sys
import tomllib

_ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(_ROOT / "docs" / "extensions"))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"

_cfg = configparser.ConfigParser()
_cfg.read(_ROOT / "setup.cfg")
_repository = tomllib.loads((_ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["t2t-lite"][
    "repository"
]

project = "t2t-lite"
release = _cfg["metadata"]["version"]
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "api_modules",
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
html_title = f"t2t-lite {release}"
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
# Copying leaves out prompts, and of a block with prompts what the commands print.
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

# Links to the repository: only once its address is known.
if _repository:
    extensions.append("sphinx.ext.linkcode")
    html_theme_options = {
        "source_repository": _repository,
        "source_branch": "main",
        "source_directory": "docs/",
        "footer_icons": [{"name": "Repository", "url": _repository, "html": "Repository"}],
    }


def linkcode_resolve(domain: str, info: dict[str, str]) -> str | None:
    """Return the address of the file that defines what the API page describes."""
    if domain != "py" or not info["module"]:
        return None
    return f"{_repository}/blob/main/{info['module'].replace('.', '/')}.py"
