"""The tasks by the names that problems and run.json give them."""

from t2t_lite import errors
from t2t_lite.tasks import parsing, task, translation

TASKS: dict[str, type[task.Task]] = {
    cls.name: cls for cls in (translation.Translation, parsing.Parsing, parsing.ParsingWithTags)
}


def task_class(name: str) -> type[task.Task]:
    """Return the class of a task; raise UserError for an unknown name."""
    if name not in TASKS:
        raise errors.UserError(f"unknown task {name!r}; known are {', '.join(TASKS)}")
    return TASKS[name]
