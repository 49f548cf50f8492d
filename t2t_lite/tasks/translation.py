"""Translation: text in, text out, scored by BLEU (imported when asked for: sacreBLEU takes as long
as a tenth of TensorFlow)."""

from collections.abc import Callable, Sequence

from t2t_lite.tasks import task


class Translation(task.Task):
    """Plain text on both sides."""

    name = "translation"
    score_name = "BLEU"

    def scores(self, outputs: Sequence[str], references: Sequence[str]) -> dict[str, float]:
        """Return sacreBLEU's default figure (13a), and chrF2."""
        from t2t_lite.evaluate import bleu

        return {
            self.score_name: bleu.corpus_score(outputs, references),
            "chrF": bleu.corpus_chrf(outputs, references),
        }

    def scorer(self, target_language: str) -> Callable[[Sequence[str], Sequence[str]], str]:
        """Return a function that gives BLEU under each protocol, and chrF2."""
        from t2t_lite.evaluate import bleu

        if target_language:
            bleu.check_language(target_language)

        def figures(outputs: Sequence[str], references: Sequence[str]) -> str:
            scores = bleu.scores(outputs, references, target_language=target_language)
            return "\n".join(map(str, scores))

        return figures
