"""Protocol buffer messages from their declarations, without generated code or TensorFlow.

    point = classes({"Point": ["int64 x = 1", "repeated string names = 2"]})["Point"]
    point(x=3, names=["a"]).SerializeToString()

The lines are those of a .proto file. A serialized message holds only numbers and types of fields,
so these messages equal those of a generated module, whose import takes seconds.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_Field = descriptor_pb2.FieldDescriptorProto


def classes(declarations: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return a proto3 message class for each name; its fields read "[repeated] type name = number".

    A type is one of protocol buffers' own or another message of the same declarations. A map is on
    the wire a repeated message with the fields `key = 1` and `value = 2`.
    """
    file = descriptor_pb2.FileDescriptorProto(name="messages.proto", syntax="proto3")
    for message_name, lines in declarations.items():
        message = file.message_type.add(name=message_name)
        for line in lines:
            *repeated, kind, name, _, number = line.split()
            field = message.field.add(name=name, number=int(number))
            field.label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
            if kind in declarations:
                field.type, field.type_name = _Field.TYPE_MESSAGE, f".{kind}"
            else:
                field.type = _Field.Type.Value(f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
        for name in declarations
    }
