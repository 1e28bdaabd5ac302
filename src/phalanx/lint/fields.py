"""What an attribute or an item may hold: fields of the project's classes, records, properties, entries of dictionaries."""

from __future__ import annotations

import ast
from abc import abstractmethod

from phalanx.lint.resolve import Names, Value
from phalanx.lint.syntax import argument, decorated, names_holding, returns
from phalanx.lint.tree import Binding, Scope

Bound = tuple[Binding, Scope]
_RECORDS = frozenset({"dataclass", "dataclasses.dataclass", "define", "attr.s", "attrs.define", "pydantic.dataclasses.dataclass"})  # fmt: skip
_RECORD_BASES = frozenset({"typing.NamedTuple", "pydantic.BaseModel", "typing.TypedDict"})
_NAMESPACES = frozenset({"types.SimpleNamespace", "argparse.Namespace", "easydict.EasyDict", "builtins.dict", "ml_collections.ConfigDict", "torch.utils.data.DataLoader"})  # fmt: skip
PROPERTIES = frozenset({"property", "cached_property", "functools.cached_property"})
_FIELDS = frozenset({"dataclasses.field", "attr.ib", "attrs.field", "pydantic.Field"})
TUPLE = "collections.namedtuple"
_DEPTH = 5


class Fields(Names):
    """Answers for one project. A field is a list of assignments, whichever way it gets its value."""

    @abstractmethod
    def callers(self, function: Scope) -> list[tuple[ast.Call, Scope]]:
        """Calls of a function or class."""

    @abstractmethod
    def origins(self, node: ast.expr, scope: Scope, path: tuple[int, ...] = ()) -> tuple[tuple[ast.expr, Scope], ...]:
        """The expressions that an expression's value may come from."""

    def fields(self, node: ast.Attribute, scope: Scope) -> list[Bound]:
        """What may have been assigned to `self.x`, `trainer.x`, `Config.x` or `args.x`."""
        base = node.value
        if isinstance(base, ast.Name) and base.id in ("self", "cls"):
            owner = self.owner_of(scope)
            return self.fields_of(owner, node.attr) if owner is not None else []
        found = list(scope.module.fields.get((base.id, node.attr), ())) if isinstance(base, ast.Name) else []
        owner = self.symbol(base, scope)
        if owner is not None and isinstance(owner.node, ast.ClassDef):
            return [*found, *self.fields_of(owner, node.attr)]
        for value in self.values(base, scope):
            found += self._of_value(value, node.attr)
        return found

    def _of_value(self, value: Value, name: str) -> list[Bound]:
        call = value.node
        if not isinstance(call, ast.Call):
            owner = self.project.find(value.type, value.scope.module)  # known from an annotation only
            return self.fields_of(owner, name) if owner is not None and isinstance(owner.node, ast.ClassDef) else []
        later = _stored(call, value.scope, name)
        if value.type in _NAMESPACES or value.type == TUPLE:
            names = self._names_of_tuple(call, value.scope) if value.type == TUPLE else []
            given = argument(call, names.index(name) if name in names else -1, name)
            return [*later, (Binding("assign", call, given), value.scope)] if given is not None else later
        owner = self.symbol(call.func, value.scope)
        if owner is None or not isinstance(owner.node, ast.ClassDef):
            return later
        given = self._constructed(owner, call, name)
        if given is not None:
            return [*self._assigned(owner, name), (Binding("assign", call, given), value.scope)]
        return self.fields_of(owner, name, calls=False)

    def _names_of_tuple(self, call: ast.Call, scope: Scope) -> list[str]:
        """The fields of `namedtuple("Batches", "train valid")`, where an object of it is made."""
        made = self.origins(call.func, scope)[0][0]
        given = argument(made, 1, "field_names") if isinstance(made, ast.Call) else None
        if isinstance(given, ast.Constant) and isinstance(given.value, str):
            return given.value.replace(",", " ").split()
        return [str(getattr(item, "value", "")) for item in getattr(given, "elts", [])]

    def fields_of(self, owner: Scope, name: str, depth: int = _DEPTH, *, calls: bool = True) -> list[Bound]:
        """A field of a class and of its bases within the project: assignments, class attributes, properties."""
        found = self._assigned(owner, name)
        for binding in owner.bindings.get(name, ()):
            if binding.kind == "assign" and binding.value is not None:
                found += self._default(binding, owner)
            elif binding.kind == "def" and decorated(binding.node, PROPERTIES):
                method = owner.module.scopes[binding.node]
                found += [(Binding("assign", result, result), method) for result in returns(method)]
        if calls and self._is_record(owner):
            for call, where in self.callers(owner):
                given = self._constructed(owner, call, name)
                found += [(Binding("assign", call, given), where)] if given is not None else []
        if found or not depth or owner.parent is None or not isinstance(owner.node, ast.ClassDef):
            return found
        bases = (self.symbol(base, owner.parent) for base in owner.node.bases)
        return [item for base in bases if base is not None for item in self.fields_of(base, name, depth - 1)]

    def _default(self, binding: Binding, owner: Scope) -> list[Bound]:
        """A class attribute; of `field(default_factory=…)` what the factory returns."""
        call = binding.value
        if not isinstance(call, ast.Call) or self.dotted(call.func, owner) not in _FIELDS:
            return [(binding, owner)]
        given, factory = argument(call, -1, "default"), argument(call, -1, "default_factory")
        if given is not None:
            return [(Binding("assign", call, given), owner)]
        made = owner.module.scopes.get(factory) or self.symbol(factory, owner) if factory is not None else None
        return [(Binding("assign", result, result), made) for result in returns(made)] if made is not None else []

    def _assigned(self, owner: Scope, name: str) -> list[Bound]:
        return list(owner.module.self_fields.get(owner.node, {}).get(name, ()))

    def _is_record(self, owner: Scope) -> bool:
        return decorated(owner.node, _RECORDS) or bool(self.bases(owner) & _RECORD_BASES)

    def _constructed(self, owner: Scope, call: ast.Call, name: str) -> ast.expr | None:
        """What the constructor of a record is given for a field."""
        if not self._is_record(owner):
            return None
        names = [
            item.target.id
            for item in owner.body
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
        ]
        return argument(call, names.index(name) if name in names else -1, name)

    def items(self, node: ast.Subscript, scope: Scope) -> list[Bound]:
        """What `config["rank"]` or `shape[0]` may be, where the container is written out in the program."""
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if key is None:
            return []
        name = getattr(node.value, "id", "")
        found = list(scope.module.fields.get((name, f"[{key!r}]"), ()))
        for made, where in self.origins(node.value, scope):
            value = _item(made, key)
            found += [(Binding("assign", made, value), where)] if value is not None else []
            if not found:
                found += _stored(made, where, f"[{key!r}]") or _stored(made, where, "[*]")
        return found


def _stored(made: ast.expr, scope: Scope, key: str) -> list[Bound]:
    """What the function that makes a container or a record puts into it afterwards, under its name there."""
    names = names_holding(made, scope)
    return [item for name in sorted(names) for item in scope.module.fields.get((name, key), ()) if item[1] is scope]


def _item(made: ast.expr, key: object) -> ast.expr | None:
    if isinstance(made, ast.Dict):
        pairs = zip(made.keys, made.values, strict=True)
        return next((v for k, v in pairs if isinstance(k, ast.Constant) and k.value == key), None)
    if isinstance(made, ast.Call) and getattr(made.func, "id", "") == "dict" and isinstance(key, str):
        return argument(made, -1, key)
    if isinstance(made, (ast.Tuple, ast.List)) and isinstance(key, int) and -len(made.elts) <= key < len(made.elts):
        return made.elts[key]
    return None
