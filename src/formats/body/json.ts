import type { BodyFormat } from './body.ts'

/** `json`: the default. */
export const json: BodyFormat = {
  format: 'json',
  summary: 'JSON (`application/json`).',
  encode: (value) => ({ content: JSON.stringify(value), contentType: 'application/json' }),
}
