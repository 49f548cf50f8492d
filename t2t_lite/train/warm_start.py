"""Start a training from the weights of another (--warm_start_from)."""

from collections.abc import Mapping

import tensorflow as tf

from t2t_lite import errors
from t2t_lite.run import checkpoint
from t2t_lite.run import identity as identities


def load(
    source: str, variables: Mapping[str, tf.Variable], identity: identities.Identity
) -> list[str]:
    """Load the weights whose names and shapes match; return remarks about the others.

    Raises UserError for weights of another vocabulary, and if none fits.
    """
    prefix = checkpoint.resolve(source)
    of_source = checkpoint.identity_of(prefix)
    if of_source.vocabulary != identity.vocabulary:
        old, new = of_source.vocabulary, identity.vocabulary
        raise errors.UserError(
            f"--warm_start_from={source} was trained with another vocabulary (SHA-256 "
            f"{identities.shown(old)}..., here {identities.shown(new)}...): its weights stand "
            "for other tokens; give data generated with its vocabulary"
        )
    missing, unused = checkpoint.restore_fitting_weights(prefix, variables)
    count = len(variables) - len(missing)
    if not count:
        raise errors.UserError(
            f"--warm_start_from={source}: none of its weights has the name and shape of a "
            "weight of this model; give a model of the same size"
        )
    remarks = [f"warm start: {count} of {len(variables)} weights from {prefix}"]
    if difference := of_source.difference(identity):
        remarks.append(f"warm start: the model differs: {difference}")
    if missing:
        remarks.append(f"warm start: newly initialised: {', '.join(missing)}")
    if unused:
        remarks.append(f"warm start: unused: {', '.join(unused)}")
    return remarks
