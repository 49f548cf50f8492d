"""Translation: text in, text out, scored by BLEU (imported when asked for: sacreBLEU takes as long
as a tenth of TensorFlow)."""

import functools
from collections.abc import Callable, Sequence

from t2t_lite.tasks import task


class Translation(task.Task):
    """Plain text on both sides."""

    name = "translation"
    score_name = "BLEU"

    def metrics(
        self, references: Sequence[str], target_language: str = ""
    ) -> dict[str, task.Metric]:
        """Return sacreBLEU's figure for the language, and chrF2: first where all lines are short.

        BLEU of another tokenizer than 13a is called after it: "BLEU-zh".
        """
        from t2t_lite.evaluate import bleu

        tokenize = bleu.tokenizer(references, target_language)
        name = self.score_name if tokenize == "13a" else f"{self.score_name}-{tokenize}"
        score = functools.partial(bleu.corpus_score, references=references, tokenize=tokenize)
        chrf = {"chrF2": functools.partial(bleu.corpus_chrf, references=references)}
        if bleu.has_four_words(references, tokenize):
            return {name: score, **chrf}
        return {**chrf, name: score}

    def scorer(self, target_language: str) -> Callable[[Sequence[str], Sequence[str]], str]:
        """Return a function that gives BLEU under each protocol, and chrF2."""
        from t2t_lite.evaluate import bleu

        if target_language:
            bleu.check_language(target_language)

        def figures(outputs: Sequence[str], references: Sequence[str]) -> str:
            scores = bleu.scores(outputs, references, target_language=target_language)
            return "\n".join(map(str, scores))

        return figures
