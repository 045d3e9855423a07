// Parts of JSON texts as they are written. The texts are valid: callers have parsed them.

/** Where the values of the members of an object are; undefined where a name comes twice. */
export function spans(text: string): Map<string, [from: number, to: number]> | undefined {
  const found = new Map<string, [number, number]>();
  for (let i = space(text, space(text, 0) + 1); text[i] !== "}"; ) {
    const name = JSON.parse(text.slice(i, (i = end(text, i)))) as string;
    const from = space(text, space(text, i) + 1);
    i = end(text, from);
    if (found.has(name)) return undefined;
    found.set(name, [from, i]);
    i = next(text, i);
  }
  return found;
}

/** The texts of the members of an object; undefined where a name comes twice. */
export function members(text: string): Map<string, string> | undefined {
  const found = spans(text);
  return found && new Map([...found].map(([name, span]) => [name, text.slice(...span)]));
}

/** The texts of the values of an array. */
export function elements(text: string): string[] {
  const found: string[] = [];
  for (let i = space(text, 1); text[i] !== "]"; ) {
    const from = i;
    found.push(text.slice(from, (i = end(text, from))));
    i = next(text, i);
  }
  return found;
}

/** An object of texts; members without one are left out. */
export function object(of: Iterable<readonly [string, string | undefined]>): string {
  const written = [...of].flatMap(([name, text]) => (text === undefined ? [] : [`${JSON.stringify(name)}:${text}`]));
  return `{${written.join(",")}}`;
}

/** The value of a text; undefined where it is no JSON. */
export function parse(text: string): any {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Where the value at a position ends. */
function end(text: string, i: number): number {
  for (let depth = 0; ; ) {
    const c = text[i];
    if (c === '"') i = endOfString(text, i);
    else if (c === "{" || c === "[") {
      depth++;
      i++;
    } else if (c === "}" || c === "]") {
      depth--;
      i++;
    } else if (depth === 0) {
      while (i < text.length && !" \t\n\r,]}".includes(text[i]!)) i++; // a number or a word
    } else {
      i++;
    }
    if (depth === 0) return i;
  }
}

function endOfString(text: string, i: number): number {
  for (;;) {
    i = text.indexOf('"', i + 1);
    let escapes = 0;
    while (text[i - 1 - escapes] === "\\") escapes++;
    if (escapes % 2 === 0) return i + 1;
  }
}

/** The position of the next value or name behind one, or of the end. */
function next(text: string, i: number): number {
  i = space(text, i);
  return text[i] === "," ? space(text, i + 1) : i;
}

function space(text: string, i: number): number {
  while (" \t\n\r".includes(text[i]!)) i++;
  return i;
}
