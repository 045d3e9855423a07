/** The name of a session: an id that begins with b64- is the base64url of a name. */
export function nameOf(session: string): string {
  if (!session.startsWith('b64-')) return session
  try {
    const binary = atob(session.slice(4).replaceAll('-', '+').replaceAll('_', '/'))
    return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(binary, (c) => c.charCodeAt(0)))
  } catch {
    return session
  }
}
