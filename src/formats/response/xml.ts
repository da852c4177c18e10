import type { ResponseFormat } from './response.ts'

/** `xml`: part of the vocabulary, not built yet; Check says so. */
export const xml: ResponseFormat = {
  format: 'xml',
  summary: 'XML as JSON: elements are keys, attributes `@name`, text `#text`.',
  readiness: 'announced',
  accept: 'application/xml',
  decode: () => {
    throw new Error('the response format xml is not available')
  },
}
