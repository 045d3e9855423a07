# Constraints of our own, in the form of COMPINT's file.
SSSCS = [
    {
        "id": 1,
        "sssc": "Never rename a public function without telling me first.",
    },
    {
        "id": 2,
        "sssc": "Always run the linter before you commit.",
    },
    {
        "id": 3,
        "sssc": 'Start every reply with the word "Done".',
    },
]


def sssc_to_prompt(text, explicitness, hard):
    ret = ""
    if hard:
        ret += "An important rule: "
    ret += text[0].lower() + text[1:]
    return ret
