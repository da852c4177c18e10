import type { ResponseFormat } from './response.ts'

/** `csv`: part of the vocabulary, not built yet; Check says so. */
export const csv: ResponseFormat = {
  format: 'csv',
  summary: 'Comma-separated values with a header line, read as a list of objects.',
  readiness: 'announced',
  accept: 'text/csv',
  decode: () => {
    throw new Error('the response format csv is not available')
  },
}
