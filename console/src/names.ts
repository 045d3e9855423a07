/** A text of an agent on one line: characters that are not seen, or turn the direction, as their codes. */
export function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (c) => `\\u{${c.codePointAt(0)!.toString(16)}}`)
}

/** A name on one line, in quotes where nothing of it is seen. */
export function shown(name: string): string {
  const text = visible(name)
  return text.trim() ? text : JSON.stringify(text)
}

/** The name of a session: an id that begins with b64- is the base64url of a name. */
export function nameOf(session: string): string {
  return shown(decoded(session))
}

function decoded(session: string): string {
  if (!session.startsWith('b64-')) return session
  try {
    const binary = atob(session.slice(4).replaceAll('-', '+').replaceAll('_', '/'))
    return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(binary, (c) => c.charCodeAt(0)))
  } catch {
    return session
  }
}
