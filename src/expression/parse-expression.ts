import jsonata from 'jsonata'

/** Tells whether a text is JSONata, and if not, why, without evaluating anything. */
export function parseExpression(text: string): { readonly ok: true } | { readonly problem: string } {
  try {
    jsonata(text)
    return { ok: true }
  } catch (error) {
    return { problem: error instanceof Error ? error.message : 'it does not parse' }
  }
}
