"""The page of some texts, with all views, as one HTML file (see document)."""

from collections.abc import Sequence

from t2t_lite.explore import attending, document, export_explorer


def page(answers: export_explorer.Answers, texts: Sequence[tuple[str, str | None]]) -> str:
    """Return the page of some (text, target or None) with all views."""
    about = answers.about()
    saved = []
    for text, target in texts:
        translation = answers.translation(text, target)
        has_tokens = not translation["is_blank"]
        saved.append(
            {
                "text": text,
                "target": target,
                "translation": translation,
                "search": answers.search(text) if has_tokens and about["has_search"] else None,
                "attention": {
                    kind: [
                        document.weight_text(answers.attention(text, target, kind, layer))
                        for layer in range(
                            about["layers"]["encoder" if kind == "encoder" else "decoder"]
                        )
                    ]
                    for kind in attending.KINDS
                    if has_tokens and about["has_tokens"]
                },
            }
        )
    return document.document(
        {"about": {**about, "examples": [text for text, _ in texts]}, "texts": saved}
    )
