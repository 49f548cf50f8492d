"""The tasks by the names that problems and run.json give them."""

from t2t_lite import errors
from t2t_lite.tasks import parsing, task, translation
from t2t_lite.text import any_vocabulary
from t2t_lite.text import vocabulary as vocabularies

TASKS: dict[str, type[task.Task]] = {
    cls.name: cls for cls in (translation.Translation, parsing.Parsing)
}


def task_class(name: str) -> type[task.Task]:
    """Return the class of a task; raise UserError for an unknown name."""
    if name not in TASKS:
        raise errors.UserError(f"unknown task {name!r}; known are {', '.join(TASKS)}")
    return TASKS[name]


def task_of_run(name: str | None, vocabulary: any_vocabulary.AnyVocabulary) -> task.Task:
    """Return a run's task with its vocabulary.

    Runs written before run.json recorded a task have no name: a vocabulary with the symbols of
    trees is a parser's then.
    """
    if name is None:
        has_symbols = isinstance(vocabulary, vocabularies.Vocabulary) and vocabulary.symbol_ids
        name = "parsing" if has_symbols else "translation"
    return task_class(name)(vocabulary)
