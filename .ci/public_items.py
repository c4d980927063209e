"""Lists the public items of a crate from the JSON that rustdoc writes of it, a line each.

Hidden items are left out, as are the implementations of traits. A function has its types.
"""

import json
import sys

crate = json.load(open(sys.argv[1]))
items, paths = crate["index"], crate["paths"]


def path_of(of):
    name = of.get("path") or of.get("name") or paths[str(of["id"])]["path"][-1]
    arguments = (of.get("args") or {}).get("angle_bracketed") or {}
    shown = [generic(argument) for argument in arguments.get("args", [])]
    for constraint in arguments.get("constraints", []):
        shown.append(f'{constraint["name"]} = {generic(constraint["binding"]["equality"])}')
    called = (of.get("args") or {}).get("parenthesized")
    if called:
        output = called["output"]
        arrow = f" -> {type_of(output)}" if output else ""
        return f'{name}({", ".join(map(type_of, called["inputs"]))}){arrow}'
    return name + (f'<{", ".join(shown)}>' if shown else "")


def generic(argument):
    if isinstance(argument, str):
        return "_"
    if "lifetime" in argument:
        return argument["lifetime"]
    return type_of(argument["type"]) if "type" in argument else str(argument)


def bounds(of):
    shown = []
    for bound in of:
        if "trait_bound" in bound:
            modifier = "?" if bound["trait_bound"]["modifier"] == "maybe" else ""
            shown.append(modifier + path_of(bound["trait_bound"]["trait"]))
        else:
            shown.append(bound.get("outlives", "use<..>") or "")
    return " + ".join(shown)


def type_of(of):
    ((kind, of),) = of.items() if isinstance(of, dict) else ((of, None),)
    if kind == "resolved_path":
        return path_of(of)
    if kind in ("generic", "primitive"):
        return of
    if kind == "tuple":
        return f'({", ".join(map(type_of, of))})'
    if kind == "slice":
        return f"[{type_of(of)}]"
    if kind == "array":
        return f'[{type_of(of["type"])}; {of["len"]}]'
    if kind == "borrowed_ref":
        lifetime = of["lifetime"] + " " if of["lifetime"] else ""
        return f'&{lifetime}{"mut " if of["is_mutable"] else ""}{type_of(of["type"])}'
    if kind == "raw_pointer":
        return f'*{"mut" if of["is_mutable"] else "const"} {type_of(of["type"])}'
    if kind == "impl_trait":
        return f"impl {bounds(of)}"
    if kind == "dyn_trait":
        return "dyn " + " + ".join(path_of(t["trait"]) for t in of["traits"])
    if kind == "qualified_path":
        return f'<{type_of(of["self_type"])}>::{of["name"]}'
    return kind


def function(item):
    of = item["inner"]["function"]
    parameters = [
        f'{p["name"]}: {bounds(p["kind"]["type"]["bounds"])}'.rstrip(": ")
        for p in of["generics"]["params"]
        if "type" in p["kind"] and not p["kind"]["type"]["is_synthetic"]
    ]
    inputs = ", ".join(f"{name}: {type_of(t)}" for name, t in of["sig"]["inputs"])
    output = f' -> {type_of(of["sig"]["output"])}' if of["sig"]["output"] else ""
    start = "unsafe fn" if of["header"]["is_unsafe"] else "fn"
    return start, (f'<{", ".join(parameters)}>' if parameters else "") + f"({inputs}){output}"


def is_hidden(item):
    return any("doc(hidden)" in str(attribute) or "hidden" == attribute for attribute in item["attrs"])


def walk(item, at):
    if is_hidden(item) or not (item["visibility"] == "public" or item["visibility"] == "default"):
        return
    ((kind, of),) = item["inner"].items()
    if kind == "use":
        if of["id"] is None or str(of["id"]) not in items:
            yield f'use {at}::{of["name"]} = {of["source"]}'
        else:
            yield from walk_as(items[str(of["id"])], at, of["name"])
        return
    yield from walk_as(item, at, item["name"])


def walk_as(item, at, name):
    ((kind, of),) = item["inner"].items()
    here = f"{at}::{name}" if at else name
    grows = " (non_exhaustive)" if any("non_exhaustive" in str(a) for a in item["attrs"]) else ""
    inside = []
    if kind == "module":
        yield f"mod {here}"
        inside = of["items"]
    elif kind == "function":
        start, rest = function(item)
        yield f"{start} {here}{rest}"
    elif kind == "struct":
        yield f"struct {here}{grows}"
        inside = (of["kind"].get("plain", {}).get("fields", []) if isinstance(of["kind"], dict) else []) + of["impls"]
    elif kind == "enum":
        yield f"enum {here}{grows}"
        inside = of["variants"] + of["impls"]
    elif kind == "variant":
        yield f"variant {here}"
        inside = of["kind"]["struct"]["fields"] if "struct" in of["kind"] else []
    elif kind == "struct_field":
        yield f"field {here}: {type_of(of)}"
    elif kind == "trait":
        yield f'trait {here}: {bounds(of["bounds"])}'
        inside = of["items"]
    elif kind in ("constant", "assoc_const"):
        yield f'const {here}: {type_of(of["type"])}'
    elif kind == "type_alias":
        yield f'type {here} = {type_of(of["type"])}'
    elif kind == "impl" and of["trait"] is None:
        here, inside = at, of["items"]
    for child in inside:
        child = items[str(child)]
        if "impl" in child["inner"]:
            if child["inner"]["impl"]["trait"] is None:
                yield from walk_as(child, here, None)
        else:
            yield from walk(child, here)


print("\n".join(sorted(set(walk(items[str(crate["root"])], "")))))
