/** What a verification came to. */
export type VerificationResult = { readonly kind: 'genuine' } | InvalidDelivery

/** `why` is one sentence for logs and for the owner of the definition; it never holds a value of the delivery or a secret. */
export interface InvalidDelivery {
  readonly kind: 'refused'
  readonly why: string
}

/** A step on the way to a verdict: its result, or the refusal that ends the way. */
export type Result<T> = { readonly kind: 'found'; readonly value: T } | InvalidDelivery

export const VALID: VerificationResult = { kind: 'genuine' }

export function invalid(why: string): InvalidDelivery {
  return { kind: 'refused', why }
}

export function ok<T>(value: T): Result<T> {
  return { kind: 'found', value }
}
