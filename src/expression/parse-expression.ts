import jsonata from 'jsonata'

/** Tells whether a text is JSONata, and if not, why, without evaluating anything. */
export function parseExpression(text: string): { readonly ok: true } | { readonly problem: string } {
  try {
    jsonata(text)
    return { ok: true }
  } catch (error) {
    // jsonata throws plain objects, not errors.
    const isDescribed = typeof error === 'object' && error !== null && 'message' in error
    return { problem: isDescribed ? String(error.message) : 'it does not parse' }
  }
}
