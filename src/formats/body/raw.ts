import type { BodyFormat } from './body.ts'

/** `raw`: a text as it is. */
export const raw: BodyFormat = {
  format: 'raw',
  summary: 'The text as it is; name its type in a `Content-Type` header. Other values are written as JSON.',
  encode: (value) => ({
    content: typeof value === 'string' ? value : JSON.stringify(value),
    contentType: typeof value === 'string' ? 'text/plain; charset=utf-8' : 'application/json',
  }),
}
