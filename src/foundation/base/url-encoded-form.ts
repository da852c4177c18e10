/** Most fields of a form or a query string. */
export const FORM_FIELDS_MAX = 10_000
/** Most bytes of a form or a query string: as many as a webhook may have. */
const FORM_BYTES_MAX = 25 * 1024 * 1024

const AMPERSAND = 0x26

/**
 * Whether a URL-encoded form or query string has too many fields or bytes. Fields are counted before they are parsed: parsing takes
 * time and memory for every one of them, also the empty ones.
 */
export function isFormTooLarge(bytes: Uint8Array): boolean {
  if (bytes.byteLength > FORM_BYTES_MAX) return true
  let separators = 0
  for (let at = bytes.indexOf(AMPERSAND); at >= 0; at = bytes.indexOf(AMPERSAND, at + 1))
    if (++separators >= FORM_FIELDS_MAX) return true
  return false
}

/** The fields of a URL-encoded form or query string in UTF-8, in their order; `undefined` for one that is too large. */
export function parseFormFields(bytes: Uint8Array): URLSearchParams | undefined {
  if (isFormTooLarge(bytes)) return undefined
  return new URLSearchParams(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString())
}
