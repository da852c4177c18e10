/** Percent-encodes as signature schemes demand: only the unreserved characters of RFC 3986 §2.3 stay. */
export function percentEncode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}
