"""The actions of WebShop: `search[words]` and `click[text]`."""


def parse_action(action: str) -> tuple[str, str]:
    """Name and lower-case argument of `name[argument]`; two empty texts for anything else.

    Only the first line counts, up to its last ']'; the argument starts at the last '[' that leaves
    it at least one character: "click[a[b]]c" has the name "click[a" and the argument "b]".
    """
    line = action.partition("\n")[0]
    end = line.rfind("]")
    start = line.rfind("[", 1, max(end - 1, 0))
    if start < 1:
        return "", ""
    return line[:start], line[start + 1 : end].lower()
