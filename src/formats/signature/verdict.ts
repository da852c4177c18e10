/** What a verification came to. */
export type Verdict = { readonly kind: 'genuine' } | Refused

/** `why` is one sentence for logs and for the owner of the definition; it never holds a value of the delivery or a secret. */
export interface Refused {
  readonly kind: 'refused'
  readonly why: string
}

/** A step on the way to a verdict: its result, or the refusal that ends the way. */
export type Found<T> = { readonly kind: 'found'; readonly value: T } | Refused

export const GENUINE: Verdict = { kind: 'genuine' }

export function refused(why: string): Refused {
  return { kind: 'refused', why }
}

export function found<T>(value: T): Found<T> {
  return { kind: 'found', value }
}
